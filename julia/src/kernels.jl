# Loop programs, compiled by Finch.jl. The text is parsed and rebuilt from what the language has; nothing else passes.

"A compiled program: operands are wrapped, the result and workspaces made, and the numbers passed as they are."
struct Kernel
    run::Function
    operands::Vector{Spec}
    result::Spec
    workspaces::Vector{Spec}
    numbers::Int
    source::String
end
const COMPILED = Kernel[]
"Functions that users made operators of."
const FUNCTIONS = Function[]

mutable struct Scope
    indices::Set{Symbol}
    values::Set{Symbol}
    functions::Dict{Symbol,Function}
end

refuse(x) = throw(ArgumentError("$(repr(x)) is not in the Loop language"))

"""
Compile a Loop program.

`tensors` has a line `name type` for each tensor: the operands, the result, the workspaces. `numbers` names the integers
that the program is called with, `functions` has a line `name number` for each operator that a user made.
"""
function compile_kernel(program, operands, result, workspaces, numbers, functions)
    reads, (write,), rooms = typed(operands), typed(result), typed(workspaces)
    own = Dict(Symbol(name) => FUNCTIONS[parse(Int, number)] for (name, number) in fields(functions))
    ints = Symbol.(split(numbers))
    tensors = [reads; [write]; rooms]
    scope = Scope(Set{Symbol}(), Set{Symbol}(ints), own)
    body = statement(Meta.parse("begin\n$program\nend"), scope, Dict(name => fill_of(s) for (name, s) in tensors))
    blank = Row(zeros(Int64, 64), 0)
    types = [name => typeof(fresh(s, (blank.at = 0; blank))) for (name, s) in tensors]
    name = gensym(:kernel)
    definition = definition_of(name, [types; [n => Int for n in ints]], body)
    run = Core.eval(PyFinchBridge, definition)
    source = replace(string(definition), "var\"$name\"" => "kernel")
    push!(COMPILED, Kernel(run, last.(reads), last(write), last.(rooms), length(ints), source))
    return length(COMPILED)
end

"""
The function that Finch.jl lowers a program to. As its `finch_kernel`, but the program is handed over as a node and not
as a type, which Julia would compile code for, and without `@fastmath`, which takes nan, inf and -0.0 for impossible.
"""
function definition_of(name, arguments, body)
    bound = [:($key = $(FinchNotation.variable(key))) for (key, _) in arguments]
    program = Core.eval(PyFinchBridge, Expr(:let, Expr(:block, bound...), :(FinchNotation.@finch_program $body)))
    context = Finch.FinchCompiler(; algebra=Finch.DefaultAlgebra(), mode=:fast)
    code = Finch.contain(context) do inner
        for (key, T) in arguments
            virtual = Finch.virtualize(inner.code, key, T, key)
            Finch.set_binding!(inner, FinchNotation.variable(key), FinchNotation.finch_leaf(virtual))
        end
        Finch.contain(innermost -> Finch.lower_global(innermost, program), inner)
    end
    code = Finch.unquote_literals(Finch.dataflow(Finch.unresolve(Finch.pretty(code))))
    return Finch.striplines(:(function $name($(first.(arguments)...))
        @inbounds $(Finch.striplines(Finch.unblock(code)))
    end))
end

fill_of(::ElementSpec{Vf}) where {Vf} = Vf
fill_of(::ScalarSpec{Vf}) where {Vf} = Vf
fill_of(::PatternSpec) = false
fill_of(::Union{DenseSpec{L},DictSpec{L},ListSpec{<:Any,<:Any,L},COOSpec{<:Any,<:Any,<:Any,L},ByteMapSpec{<:Any,<:Any,L}}) where {L} = fill_of(L())

fields(text) = [split(line, ' '; limit=2) for line in split(text, '\n'; keepempty=false)]
typed(text) = Tuple{Symbol,Spec}[(Symbol(name), spec(kind)) for (name, kind) in fields(text)]

kernel_source(number::Int) = COMPILED[number].source

"""
Run a kernel. The row at `address` describes operands, result and workspaces, then come the numbers; the description of
the result is written to `out`. Returns the number under which the result is kept.
"""
function run_kernel(number::Int, address::Int, size::Int, out::Int, outs::Int)
    kernel = COMPILED[number]
    row = Row(unsafe_wrap(Array, Ptr{Int64}(address), size), 0)
    arguments = Any[wrap(s, row) for s in kernel.operands]
    result = fresh(kernel.result, row)
    push!(arguments, result)
    for s in kernel.workspaces
        push!(arguments, fresh(s, row))
    end
    for _ in 1:(kernel.numbers)
        push!(arguments, next!(row))
    end
    Base.invokelatest(kernel.run, arguments...)
    buffers = Buffers(unsafe_wrap(Array, Ptr{Int64}(out), outs), 0, Any[])
    describe!(buffers, kernel.result, result)
    return keep!(buffers.kept)
end

# ------------------------------------------------------------------------------------------------------------ statements

function statement(ex, scope::Scope, tensors)
    ex isa Expr || refuse(ex)
    if ex.head === :block
        kept = [statement(part, scope, tensors) for part in ex.args if !(part isa LineNumberNode) && !silent(part)]
        return Expr(:block, kept...)
    elseif ex.head === :for
        (ex.args[1] isa Expr && ex.args[1].head === :(=) && ex.args[1].args[1] isa Symbol) || refuse(ex.args[1])
        index, range = ex.args[1].args
        extent = loop_extent(range, scope)
        inner = Scope(union(scope.indices, [index]), scope.values, scope.functions)
        return Expr(:for, :($index = $extent), statement(ex.args[2], inner, tensors))
    elseif ex.head === :if && length(ex.args) == 2
        return Expr(:if, expression(ex.args[1], scope, tensors), statement(ex.args[2], scope, tensors))
    elseif ex.head === :let
        return definitions(ex, scope, tensors)
    elseif ex.head === :.= && haskey(tensors, ex.args[1])
        return Expr(:.=, ex.args[1], expression(ex.args[2], scope, tensors))
    elseif ex.head === :(=) && ex.args[1] isa Expr && ex.args[1].head === :ref
        lhs = element(ex.args[1], scope, tensors)
        op = Finch.initwrite(tensors[lhs.args[1]])
        return Expr(:>>=, Expr(:call, :<<, lhs, op), expression(ex.args[2], scope, tensors))
    elseif ex.head === :>>= && ex.args[1] isa Expr && ex.args[1].head === :call && ex.args[1].args[1] === :<<
        _, target, name = ex.args[1].args
        op = operator(name, scope)
        lhs = Expr(:call, :<<, element(target, scope, tensors), op)
        return Expr(:>>=, lhs, expression(ex.args[2], scope, tensors))
    elseif endswith(string(ex.head), '=') && length(ex.args) == 2
        op = operator(Symbol(chop(string(ex.head))), scope)
        lhs = Expr(:call, :<<, element(ex.args[1], scope, tensors), op)
        return Expr(:>>=, lhs, expression(ex.args[2], scope, tensors))
    end
    refuse(ex)
end

"Whether a statement says what Finch.jl finds out by itself: where tensors freeze, and what is returned."
function silent(ex)
    ex isa Expr || return false
    return ex.head === :return || (ex.head === :macrocall && ex.args[1] in (Symbol("@freeze"), Symbol("@thaw")))
end

function definitions(ex::Expr, scope::Scope, tensors)
    given = ex.args[1].head === :block ? ex.args[1].args : [ex.args[1]]
    inner = Scope(scope.indices, copy(scope.values), scope.functions)
    made = map(given) do one
        (one isa Expr && one.head === :(=) && one.args[1] isa Symbol) || refuse(one)
        value = expression(one.args[2], inner, tensors)
        push!(inner.values, one.args[1])
        :($(one.args[1]) = $value)
    end
    body = statement(ex.args[2], inner, tensors)
    return foldr((one, below) -> Expr(:let, one, Expr(:block, below)), made; init=body)
end

"`0:n-1` here is `1:n` there."
function loop_extent(range, scope)
    range === :_ && return :_
    (range isa Expr && range.head === :call && range.args[1] === :(:) && range.args[2] == 0) || refuse(range)
    stop = range.args[3]
    stop isa Int && return :(1:($(stop + 1)))
    if stop isa Expr && stop.head === :call && stop.args[1] === :- && stop.args[3] == 1 && stop.args[2] in scope.values
        return :(1:($(stop.args[2])))
    end
    refuse(range)
end

"`A[i, k]` here, outermost first, is `A[k, i]` there."
function element(ex, scope, tensors)
    (ex isa Expr && ex.head === :ref && haskey(tensors, ex.args[1])) || refuse(ex)
    indices = map(reverse(ex.args[2:end])) do index
        index isa Int && return index + 1
        index in scope.indices ? index : refuse(index)
    end
    return Expr(:ref, ex.args[1], indices...)
end

# ----------------------------------------------------------------------------------------------------------- expressions

expression(x::Union{Bool,Int64,Float64}, scope, tensors) = x
expression(x, scope, tensors) = refuse(x)
function expression(x::Symbol, scope, tensors)
    haskey(SPECIAL, string(x)) && return SPECIAL[string(x)]
    x in scope.indices && return Expr(:call, -, x, 1)
    return x in scope.values ? x : refuse(x)
end
function expression(ex::Expr, scope, tensors)
    ex.head === :ref && return element(ex, scope, tensors)
    ex.head === :call || refuse(ex)
    value = typed_literal(ex)
    value === nothing || return value
    op = operator(ex.args[1], scope)
    return Expr(:call, op, (expression(argument, scope, tensors) for argument in ex.args[2:end])...)
end

"The function that a name, or a carrier with its value, stands for."
function operator(name::Symbol, scope)
    haskey(scope.functions, name) && return scope.functions[name]
    haskey(OPERATORS, string(name)) && return OPERATORS[string(name)]
    haskey(TYPES, string(name)) && return Cast{TYPES[string(name)]}()
    haskey(COMPLEX, string(name)) && return Cast{COMPLEX[string(name)]}()
    refuse(name)
end
function operator(ex::Expr, scope)
    ex.head === :call && length(ex.args) == 2 || refuse(ex)
    name, argument = ex.args
    name === :cast && haskey(DTYPES, string(argument)) && return Cast{DTYPES[string(argument)]}()
    haskey(CARRIERS, string(name)) && return CARRIERS[string(name)](literal(argument))
    refuse(ex)
end
operator(x, scope) = refuse(x)

"The value of a literal such as `0.5`, `-Inf` or `Int8(-3)`."
function literal(x)
    x isa Union{Bool,Int64,Float64,Int128} && return x
    x isa Symbol && haskey(SPECIAL, string(x)) && return SPECIAL[string(x)]
    value = typed_literal(x)
    return value === nothing ? refuse(x) : value
end

function typed_literal(ex)
    (ex isa Expr && ex.head === :call) || return nothing
    name, arguments = ex.args[1], ex.args[2:end]
    (name === :- && length(arguments) == 1 && plain(arguments[1])) && return -literal(arguments[1])
    T = get(TYPES, string(name), get(COMPLEX, string(name), nothing))
    (T === nothing || !all(plain, arguments)) && return nothing
    return T(map(literal, arguments)...)
end
plain(x) = x isa Union{Bool,Int64,Float64,Int128} || (x isa Symbol && haskey(SPECIAL, string(x))) || negative(x)
negative(x) = x isa Expr && x.head === :call && x.args[1] === :- && length(x.args) == 2 && plain(x.args[2])

# ------------------------------------------------------------------------------------------------------ users' functions

"""
Make a function of an expression over its arguments' names; returns its number. The expression has operators,
conversions, literals and `ifelse`.
"""
function make_function(name, arguments, text)
    names = Symbol.(split(arguments))
    scope = Scope(Set{Symbol}(), Set{Symbol}(names), Dict{Symbol,Function}())
    body = function_body(Meta.parse("begin\n$text\nend"), scope)
    push!(FUNCTIONS, Core.eval(PyFinchBridge, :(function $(gensym(String(name)))($(names...))
        $body
    end)))
    return length(FUNCTIONS)
end

function function_body(ex::Expr, scope)
    statements = map(filter(part -> !(part isa LineNumberNode), ex.args)) do part
        if part isa Expr && part.head === :(=) && part.args[1] isa Symbol
            value = expression(part.args[2], scope, Dict())
            push!(scope.values, part.args[1])
            return :($(part.args[1]) = $value)
        end
        return expression(part, scope, Dict())
    end
    return Expr(:block, statements...)
end
