using Test

push!(LOAD_PATH, joinpath(@__DIR__, "..", "src"))
using PyFinchBridge, Finch

const PROGRAM =
    "plan(query(alias(A), aggregate(immediate(+), immediate(0.0), mapjoin(immediate(*), " *
    "relabel(subquery(alias(X), table(deferred(T0, `csr`), field(b), field(a))), field(k), field(i)), " *
    "relabel(subquery(alias(Y), table(deferred(T1, `csr`), field(d), field(c))), field(j), field(k))), field(k))), " *
    "produces(alias(A)))"

@testset "the text of a program reads back" begin
    @test print_logic(parse_logic(PROGRAM)) == PROGRAM
    for value in ("1.5", "-Inf", "NaN", "true", "7", "Int8(-3)", "UInt64(3)", "2.5f0", "ComplexF64(1.0, -0.0)",
        "initwrite(0.0)", "choose(false)", "known_fill(0.0)", "cast(int8)", "`my operator`", "max", "nothing")
        @test print_logic(parse_logic("immediate($value)")) == "immediate($value)"
    end
end

@testset "what is not in the language is refused" begin
    for text in ("immediate(run(`ls`))", "immediate(exit)", "eval(alias(A))", "alias(A", "alias(A) alias(B)")
        @test_throws ArgumentError parse_logic(text)
    end
end

@testset "Finch.jl's optimizer, pass by pass" begin
    found = passes(PROGRAM)
    @test length(found) == 24
    @test all(print_logic(parse_logic(text)) == text for (_, text) in found)
    @test first(last(found)) == "normalize_names"
    @test string(Finch.optimize(parse_logic(PROGRAM)).kind) == "plan"
end

using PyFinchBridge: COMPILED, KEPT, compile_kernel, make_function, release, run_kernel, FUNCTIONS

@testset "a loop program is compiled, run on memory of others, and let go" begin
    vector = "dense(element(0.0))"
    number = compile_kernel("R .= 0.0\nfor i = _\nR[i] += A[i] * 2.0\nend\nreturn R", "A $vector", "R $vector", "", "", "")
    A = [1.0, 2.0, 3.0]
    row, out = Int64[3, Int(pointer(A)), 3, 3], zeros(Int64, 2)
    GC.@preserve A row out begin
        kept = run_kernel(number, Int(pointer(row)), 4, Int(pointer(out)), 2)
        @test unsafe_wrap(Array, Ptr{Float64}(out[1]), out[2]) == [2.0, 4.0, 6.0]
        @test haskey(KEPT, kept)
        numbers = Int64[kept]
        GC.@preserve numbers release(Int(pointer(numbers)), 1)
        @test !haskey(KEPT, kept)
    end
    @test occursin("function kernel(A, R)", COMPILED[number].source)
    @test !occursin("@fastmath", COMPILED[number].source)
end

@testset "what is not in the Loop language is refused" begin
    for text in ("R .= run(`ls`)", "for i = _\nexit()\nend", "@eval 1", "for i = _\nR[i] = eval(1)\nend", "R[j] = 1.0",
        "B .= 0.0", "for i = 2:3\nR[i] = 1.0\nend", "while true\nend", "R .= \"text\"")
        @test_throws ArgumentError compile_kernel(text, "", "R dense(element(0.0))", "", "", "")
    end
    for kind in ("dense(run(`ls`))", "sparse_list(element(0.0), Int8, Int32)", "element(exit())", "other(element(0.0))")
        @test_throws ArgumentError compile_kernel("R .= 0.0", "", "R $kind", "", "", "")
    end
    @test_throws ArgumentError make_function("f", "x", "open(x)")
    @test Base.invokelatest(FUNCTIONS[make_function("f", "x y", "z = x * y\nifelse(z > 1.0, sqrt(z), -z)")], 2.0, 8.0) == 4.0
end

@testset "operators mean what NumPy means" begin
    @test PyFinchBridge.floor_divide(Int8(7), Int8(-2)) === Int8(-4)
    @test PyFinchBridge.floor_divide(3, 0) === 0
    @test PyFinchBridge.floor_divide(typemin(Int8), Int8(-1)) === typemin(Int8)
    @test PyFinchBridge.remainder(-7.0, 3.0) === 2.0
    @test isnan(PyFinchBridge.remainder(1.0, 0.0))
    @test isnan(PyFinchBridge.quiet_sqrt(-1.0))
    @test PyFinchBridge.power(Int8(2), Int8(7)) === Int8(-128)
    @test isnan(PyFinchBridge.power(-8.0, 1 / 3))
    @test PyFinchBridge.left_shift(Int8(1), Int8(-1)) === Int8(0)
    @test PyFinchBridge.right_shift(Int8(-5), Int8(100)) === Int8(-1)
    @test PyFinchBridge.Cast{Int8}()(300.7) === Int8(44)
    @test PyFinchBridge.Cast{Bool}()(NaN) === true
    @test PyFinchBridge.Cast{Float32}()(1.5 + 2im) === 1.5f0
    @test PyFinchBridge.logaddexp(0.0, -Inf) === 0.0
end
