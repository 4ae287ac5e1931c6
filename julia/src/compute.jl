# Logic programs run by Finch.jl end to end, and tensors for people who use Julia and Python together.

const EXECUTOR = Finch.LogicExecutor(Finch.DefaultLogicOptimizer(Finch.LogicCompiler()))

"""
Run a Logic program by Finch.jl's own optimizer and compiler. `tensors` has a line `name type` for each table, the row
at `address` describes them. Returns for each result its size, the coordinates (from 1, a column an entry) and values of
what is stored, its fill, and its element type.
"""
function compute_program(text, tensors, address::Int, size::Int)
    row = Row(unsafe_wrap(Array, Ptr{Int64}(address), size), 0)
    bound = Dict{String,Any}(string(name) => wrap(s, row) for (name, s) in typed(tensors))
    return map(EXECUTOR(bind(parse_logic(text), bound))) do result
        extents, coords, values, fill = listed(result)
        (extents, coords, values, fill, string(eltype(values)))
    end
end

"The program with tensors where their names stand."
function bind(node::LogicNode, bound)
    if node.kind === FinchLogic.table
        tensor = bound[node.children[1].val.name]
        return FinchLogic.table(FinchLogic.immediate(tensor), node.children[2:end]...)
    elseif node.kind in (FinchLogic.immediate, FinchLogic.field, FinchLogic.alias)
        return node
    end
    return node.kind((bind(child, bound) for child in node.children)...)
end

listed(x::Number) = (Int[], zeros(Int, 0, 1), [x], [x])
function listed(x)
    ndims(x) == 0 && return listed(x[])
    return listed(x, Finch.fill_value(x))
end
function listed(x::Finch.SwizzleArray{dims}, fill) where {dims}
    extents, coords, values, fills = listed(x.body)
    order = collect(dims)
    return (extents[order], coords[order, :], values, fills)
end
function listed(x, fill)
    coords..., values = Finch.ffindnz(x)
    return (collect(Int, size(x)), permutedims(hcat(map(Vector{Int}, coords)...)), Vector(values), [fill])
end

# -------------------------------------------------------------------------------------------------- tensors of people's

"A tensor over Python's memory; its arrays keep `owner` alive."
function adopt(text, address::Int, size::Int, owner)
    tensor = wrap(spec(text), Row(unsafe_wrap(Array, Ptr{Int64}(address), size), 0))
    tensor isa Finch.Scalar || hold(tensor.lvl, owner)
    return tensor
end

hold(x, owner) = foreach(name -> hold(getfield(x, name), owner), fieldnames(typeof(x)))
hold(x::Tuple, owner) = foreach(part -> hold(part, owner), x)
hold(x::Union{Number,Tuple{}}, owner) = nothing
hold(x::Vector, owner) = (finalizer(Slot(occupy(owner)), x); nothing)

# An owner that only a finalizer knew of would itself be collected, so it has a place in a list that the finalizer clears.
const OWNERS = Any[]
struct Slot
    number::Int
end
(slot::Slot)(x) = (OWNERS[slot.number] = nothing; nothing)

function occupy(owner)
    GC.enable_finalizers(false)
    number = something(findfirst(isnothing, OWNERS), length(OWNERS) + 1)
    number > length(OWNERS) ? push!(OWNERS, owner) : (OWNERS[number] = owner)
    GC.enable_finalizers(true)
    return number
end

"""
The type and buffers of a tensor of Finch.jl: the text of its format and of its fill, its extents outermost first, and its
description. Arrays that are stored from 0 and values are shared, indices that count from 1 are copied.
"""
function export_tensor(x::Finch.Tensor)
    s, lvl, text = shared(x.lvl)
    out = Buffers(zeros(Int64, 64), 0, Any[x])
    describe_level!(out, s, lvl, 1)
    fill = value_text(eltype(x)(Finch.fill_value(x)))
    return (keep!(out.kept), text, fill, collect(Int, reverse(size(x))), out.numbers[1:(out.at)])
end
export_tensor(x) = throw(ArgumentError("a $(typeof(x)) has no buffers that can be shared; give a Tensor"))

from_zero(v::Finch.PlusOneVector{T,Vector{T}}) where {T<:Union{Int32,Int64}} = v
from_zero(v::AbstractVector) = Finch.PlusOneVector(Int64[i - 1 for i in v])
kinds(ptr, idx) = "ptr=$(DTYPE_NAMES[eltype(ptr)]), idx=$(DTYPE_NAMES[eltype(idx)])"

function shared(lvl::Finch.ElementLevel{Vf,Tv}) where {Vf,Tv}
    val = lvl.val isa Vector{Tv} ? lvl.val : Vector{Tv}(lvl.val)
    return ElementSpec{Vf,Tv}(), LEVELS.element{Vf,Tv,Int}(val), "element($(DTYPE_NAMES[Tv]))"
end
shared(lvl::Finch.PatternLevel) = (PatternSpec(), lvl, "pattern()")
function shared(lvl::Finch.DenseLevel)
    s, child, text = shared(lvl.lvl)
    return DenseSpec{typeof(s)}(), LEVELS.dense{Int}(child, Int(lvl.shape)), "dense($text)"
end
function shared(lvl::Finch.SparseListLevel)
    s, child, text = shared(lvl.lvl)
    ptr, idx = from_zero(lvl.ptr), from_zero(lvl.idx)
    P, I = eltype(ptr), eltype(idx)
    made = LEVELS.sparse_list{I}(child, I(lvl.shape), ptr, idx)
    return ListSpec{P,I,typeof(s)}(), made, "sparse_list($text, $(kinds(ptr, idx)))"
end
function shared(lvl::Finch.SparseCOOLevel{N}) where {N}
    s, child, text = shared(lvl.lvl)
    ptr, idxs = from_zero(lvl.ptr), map(from_zero, lvl.tbl)
    P, I = eltype(ptr), eltype(first(idxs))
    made = LEVELS.sparse_coo{N,NTuple{N,I}}(child, map(I, lvl.shape), ptr, idxs)
    return COOSpec{N,P,I,typeof(s)}(), made, "sparse_coo[$N]($text, $(kinds(ptr, first(idxs))))"
end
function shared(lvl::Finch.SparseByteMapLevel{Ti}) where {Ti}
    s, child, text = shared(lvl.lvl)
    made = LEVELS.sparse_bytemap{Int}(child, Int(lvl.shape), lvl.ptr, lvl.tbl, lvl.srt)
    return ByteMapSpec{Int64,Int64,typeof(s)}(), made, "sparse_bytemap($text, ptr=int64, idx=int64)"
end
shared(lvl) = throw(ArgumentError("a level $(typeof(lvl).name.name) has no counterpart in pyfinch"))
