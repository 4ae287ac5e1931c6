"A tensor, format or operator that the sender knows by name only; it is handed back as it came."
struct Named
    name::String
end

"A tensor that a program reads: its name, the text of its type, and how many modes it has where it stands."
struct TensorName
    name::String
    type::String
    ndims::Int
end

"""
What Finch.jl's optimizer asks of a tensor: its element type. It asks for the levels too, but no pass before formats
are chosen decides anything by them.
"""
function Finch.data_rep(x::TensorName)
    found = match(r"element\((?:(?:\([^()]*\)|[^(),]*), )?(\w+)\)", x.type)
    T = occursin("pattern()", x.type) ? Bool : found === nothing ? Float64 : get(DTYPES, found[1], Float64)
    return foldl((rep, _) -> Finch.SparseData(rep), 1:(x.ndims); init=Finch.ElementData(zero(T), T))
end

const SPECIAL = Dict{String,Any}(
    "true" => true, "false" => false, "nothing" => nothing,
    "NaN" => NaN, "Inf" => Inf, "-Inf" => -Inf, "NaN32" => NaN32, "Inf32" => Inf32, "-Inf32" => -Inf32,
)
const KINDS = Dict{String,Any}(
    "table" => FinchLogic.table, "mapjoin" => FinchLogic.mapjoin, "aggregate" => FinchLogic.aggregate,
    "reorder" => FinchLogic.reorder, "relabel" => FinchLogic.relabel, "reformat" => FinchLogic.reformat,
    "subquery" => FinchLogic.subquery, "query" => FinchLogic.query, "produces" => FinchLogic.produces,
    "plan" => FinchLogic.plan,
)
const TOKEN = r"\G\s*([(),]|`[^`]*`|\"(?:[^\"\\]|\\.)*\"|[^\s(),`\"]+)"

mutable struct LogicReader
    text::String
    place::Int
end

fail(r::LogicReader, message) = throw(ArgumentError("$message at character $(r.place) of the Logic text"))

function peek_token(r::LogicReader)
    found = match(TOKEN, r.text, r.place)
    return found === nothing ? "" : String(found.captures[1])
end

function take_token(r::LogicReader, wanted=nothing)
    found = match(TOKEN, r.text, r.place)
    found === nothing && fail(r, "the text ends")
    token = String(found.captures[1])
    (wanted === nothing || token == wanted) || fail(r, "expected $(repr(wanted)), found $(repr(token))")
    r.place = found.offset + ncodeunits(found.match)
    return token
end

"Read the text of a Logic program; throw an `ArgumentError` at what is not in the language."
function parse_logic(text::AbstractString)
    r = LogicReader(String(text), 1)
    node = read_node(r)
    peek_token(r) == "" || fail(r, "unexpected $(repr(peek_token(r)))")
    return node
end

function read_node(r::LogicReader)
    word = take_token(r)
    take_token(r, "(")
    if word == "immediate"
        node = FinchLogic.immediate(read_value(r))
    elseif word == "field"
        node = FinchLogic.field(Symbol(read_name(r)))
    elseif word == "alias"
        node = FinchLogic.alias(Symbol(read_name(r)))
    elseif word == "deferred"
        name = read_name(r)
        take_token(r, ",")
        node = FinchLogic.immediate(TensorName(name, take_token(r), 0))
    else
        haskey(KINDS, word) || fail(r, "$(repr(word)) is not a kind of Logic node")
        parts = Any[]
        while peek_token(r) != ")"
            push!(parts, read_node(r))
            peek_token(r) == "," ? take_token(r) : break
        end
        word == "table" && !isempty(parts) && (parts[1] = sized(parts[1], length(parts) - 1))
        node = KINDS[word](parts...)
    end
    take_token(r, ")")
    return node
end

function sized(tensor::LogicNode, n)
    named = tensor.kind === FinchLogic.immediate && tensor.val isa TensorName
    return named ? FinchLogic.immediate(TensorName(tensor.val.name, tensor.val.type, n)) : tensor
end

function read_name(r::LogicReader)
    token = take_token(r)
    return startswith(token, '"') ? unescape_string(token[2:(end - 1)]) : token
end

function read_value(r::LogicReader)
    token = take_token(r)
    startswith(token, '`') && return Named(token[2:(end - 1)])
    haskey(SPECIAL, token) && return SPECIAL[token]
    haskey(OPERATORS, token) && return OPERATORS[token]
    if peek_token(r) == "("
        token == "cast" && return read_cast(r)
        parts = read_arguments(r)
        haskey(CARRIERS, token) && return CARRIERS[token](only(parts))
        haskey(TYPES, token) && return TYPES[token](only(parts))
        haskey(COMPLEX, token) && return COMPLEX[token](parts...)
        fail(r, "$(repr(token)) is not a type or an operator")
    end
    number = read_number(token)
    number === nothing && fail(r, "$(repr(token)) is not an operator or a number")
    return number
end

function read_arguments(r::LogicReader)
    take_token(r, "(")
    parts = Any[read_value(r)]
    while peek_token(r) == ","
        take_token(r)
        push!(parts, read_value(r))
    end
    take_token(r, ")")
    return parts
end

function read_cast(r::LogicReader)
    take_token(r, "(")
    name = take_token(r)
    take_token(r, ")")
    haskey(DTYPES, name) || fail(r, "$(repr(name)) is not a dtype")
    return Cast{DTYPES[name]}()
end

function read_number(token)
    occursin(r"^[+-]?\d+$", token) && return something(tryparse(Int64, token), tryparse(UInt64, token), Some(nothing))
    occursin(r"^[+-]?[\d.]+f[+-]?\d+$", token) && return tryparse(Float32, replace(token, "f" => "e"))
    return tryparse(Float64, token)
end

"The text of a Logic node, as pyfinch reads it."
print_logic(node::LogicNode) = sprint(write_node, node)

function write_node(io::IO, node::LogicNode)
    kind = node.kind
    if kind === FinchLogic.immediate && node.val isa TensorName
        print(io, "deferred(", name_text(node.val.name), ", ", node.val.type, ")")
    elseif kind === FinchLogic.immediate
        print(io, "immediate(", value_text(node.val), ")")
    elseif kind === FinchLogic.field || kind === FinchLogic.alias
        print(io, kind, "(", name_text(string(node.name)), ")")
    else
        print(io, kind, "(")
        for (number, child) in enumerate(node.children)
            number > 1 && print(io, ", ")
            write_node(io, child)
        end
        print(io, ")")
    end
end

name_text(name) = occursin(r"^[\p{L}_]\w*[!']*$", name) ? name : "\"$(escape_string(name))\""

value_text(x::Named) = "`$(x.name)`"
value_text(::Cast{T}) where {T} = "cast($(DTYPE_NAMES[T]))"
value_text(::Finch.FinchNotation.InitWriter{z}) where {z} = "initwrite($(value_text(z)))"
value_text(::Finch.Chooser{z}) where {z} = "choose($(value_text(z)))"
value_text(::KnownFill{z}) where {z} = "known_fill($(value_text(z)))"
value_text(x::Union{Bool,Int64,Float32,Float64}) = repr(x)
value_text(x::Integer) = "$(typeof(x))($(Int128(x)))"
value_text(x::ComplexF32) = "ComplexF32($(value_text(real(x))), $(value_text(imag(x))))"
value_text(x::ComplexF64) = "ComplexF64($(value_text(real(x))), $(value_text(imag(x))))"
value_text(::Nothing) = "nothing"
value_text(x) = get(() -> throw(ArgumentError("$x has no text")), NAMES, x)

"The passes of Finch.jl's default optimizer, in its order."
const PASSES = (
    :lift_subqueries, :propagate_map_queries_backward, :isolate_reformats, :isolate_aggregates, :isolate_tables,
    :lift_subqueries, :pretty_labels, :propagate_fields, :propagate_copy_queries, :propagate_transpose_queries,
    :propagate_map_queries, :propagate_fields, :push_fields, :lift_fields, :push_fields,
    :propagate_transpose_queries, :set_loop_order, :push_fields, :concordize,
    :materialize_squeeze_expand_productions, :propagate_copy_queries, :propagate_into_reformats,
    :propagate_copy_queries, :normalize_names,
)

"The name of each pass and the text of the program after it."
function passes(text::AbstractString)
    node = parse_logic(text)
    return map(PASSES) do name
        node = getproperty(Finch, name)(node)
        (string(name), print_logic(node))
    end
end
