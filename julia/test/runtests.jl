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
