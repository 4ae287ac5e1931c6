# Tensors that share memory with NumPy. A type is a nest of the singletons below, outermost level first, as Finch.jl nests
# its levels; what a call brings of a tensor is a row of integers: for each level its extents, then an address and a
# length for each buffer.

abstract type Spec end
struct ElementSpec{Vf,Tv} <: Spec end
struct PatternSpec <: Spec end
struct ScalarSpec{Vf,Tv} <: Spec end
struct DenseSpec{L} <: Spec end
struct ListSpec{Ptr,Idx,L} <: Spec end
struct COOSpec{N,Ptr,Idx,L} <: Spec end
struct ByteMapSpec{Ptr,Idx,L} <: Spec end
"A level that is written in any order; it stands in workspaces only."
struct DictSpec{L} <: Spec end

"Finch.jl's names of levels differ by version: one table. These are those of 1.2."
const LEVELS = (
    dense=Finch.DenseLevel, sparse_list=Finch.SparseListLevel, sparse_coo=Finch.SparseCOOLevel,
    sparse_bytemap=Finch.SparseByteMapLevel, sparse_dict=Finch.SparseDictLevel, element=Finch.ElementLevel,
    pattern=Finch.PatternLevel,
)

# Finch.jl stores positions of its own type (Int) in pointer arrays of ours (Int32).
function Base.setindex!(v::Finch.PlusOneVector{T,Vector{T}}, value::Integer, index::Int) where {T}
    return v.data[index] = convert(T, value - 1)
end

"The type that a text such as `dense(sparse_list(element(0.0), Int32, Int64))` stands for."
spec(text::AbstractString) = spec(Meta.parse(text))
spec(x) = throw(ArgumentError("$x is not a type of tensor"))
function spec(ex::Expr)
    ex.head === :call || throw(ArgumentError("$ex is not a type of tensor"))
    head, arguments = ex.args[1], ex.args[2:end]
    if head isa Expr && head.head === :ref && head.args[1] === :sparse_coo
        child, ptr, idx = arguments
        return COOSpec{head.args[2]::Int,index_type(ptr),index_type(idx),typeof(spec(child))}()
    elseif head === :element || head === :scalar
        value = literal(only(arguments))
        return head === :element ? ElementSpec{value,typeof(value)}() : ScalarSpec{value,typeof(value)}()
    elseif head === :pattern
        return PatternSpec()
    elseif head === :dense || head === :sparse_dict
        L = typeof(spec(only(arguments)))
        return head === :dense ? DenseSpec{L}() : DictSpec{L}()
    elseif head === :sparse_list || head === :sparse_bytemap
        child, ptr, idx = arguments
        P, I, L = index_type(ptr), index_type(idx), typeof(spec(child))
        return head === :sparse_list ? ListSpec{P,I,L}() : ByteMapSpec{P,I,L}()
    end
    throw(ArgumentError("$(repr(head)) is not a level"))
end

function index_type(name)
    name === :Int32 && return Int32
    name === :Int64 && return Int64
    throw(ArgumentError("$name is not a type of indices"))
end

"Reads the integers of a call one after another."
mutable struct Row
    numbers::Vector{Int64}
    at::Int
end
next!(r::Row) = r.numbers[r.at += 1]

"The next buffer: an address and a length; the memory stays its owner's."
function buffer!(r::Row, ::Type{T}) where {T}
    address, size = next!(r), next!(r)
    return size == 0 ? T[] : unsafe_wrap(Array, Ptr{T}(address), size)
end
shifted!(r::Row, ::Type{T}) where {T} = Finch.PlusOneVector(buffer!(r, T))

"A tensor over the memory that a row describes."
wrap(s::Spec, r::Row) = Finch.Tensor(level(s, r))
wrap(::ScalarSpec{Vf,Tv}, r::Row) where {Vf,Tv} = Finch.Scalar{Vf,Tv}(only(buffer!(r, Tv)))

level(::ElementSpec{Vf,Tv}, r::Row) where {Vf,Tv} = LEVELS.element{Vf,Tv,Int}(buffer!(r, Tv))
level(::PatternSpec, ::Row) = LEVELS.pattern{Int}()
function level(::DenseSpec{L}, r::Row) where {L}
    extent = next!(r)
    return LEVELS.dense{Int}(level(L(), r), extent)
end
function level(::ListSpec{P,I,L}, r::Row) where {P,I,L}
    extent = I(next!(r))
    ptr, idx = shifted!(r, P), shifted!(r, I)
    return LEVELS.sparse_list{I}(level(L(), r), extent, ptr, idx)
end
function level(::COOSpec{N,P,I,L}, r::Row) where {N,P,I,L}
    extents = reverse(ntuple(_ -> I(next!(r)), N))
    ptr = shifted!(r, P)
    idxs = reverse(ntuple(_ -> shifted!(r, I), N))
    return LEVELS.sparse_coo{N,NTuple{N,I}}(level(L(), r), extents, ptr, idxs)
end
function level(::ByteMapSpec{P,I,L}, r::Row) where {P,I,L}
    extent = I(next!(r))
    ptr, idx, tbl = shifted!(r, P), shifted!(r, I), buffer!(r, Bool)
    listed = Vector{Tuple{Int,I}}(undef, length(idx))
    for p in 1:(length(ptr) - 1), q in ptr[p]:(ptr[p + 1] - 1)
        listed[q] = (p, idx[q])
    end
    return LEVELS.sparse_bytemap{I}(level(L(), r), extent, Vector{Int}(ptr), tbl, listed)
end

"A tensor to be written, of the extents that a row gives."
fresh(s::Spec, r::Row) = Finch.Tensor(fresh_level(s, r))
fresh(::ScalarSpec{Vf,Tv}, ::Row) where {Vf,Tv} = Finch.Scalar{Vf,Tv}()

fresh_level(::ElementSpec{Vf,Tv}, ::Row) where {Vf,Tv} = LEVELS.element{Vf,Tv,Int}(Tv[])
fresh_level(::PatternSpec, ::Row) = LEVELS.pattern{Int}()
function fresh_level(::DenseSpec{L}, r::Row) where {L}
    extent = next!(r)
    return LEVELS.dense{Int}(fresh_level(L(), r), extent)
end
function fresh_level(::ListSpec{P,I,L}, r::Row) where {P,I,L}
    extent = I(next!(r))
    ptr, idx = Finch.PlusOneVector(P[0]), Finch.PlusOneVector(I[])
    return LEVELS.sparse_list{I}(fresh_level(L(), r), extent, ptr, idx)
end
function fresh_level(::COOSpec{N,P,I,L}, r::Row) where {N,P,I,L}
    extents = reverse(ntuple(_ -> I(next!(r)), N))
    idxs = ntuple(_ -> Finch.PlusOneVector(I[]), N)
    return LEVELS.sparse_coo{N,NTuple{N,I}}(fresh_level(L(), r), extents, Finch.PlusOneVector(P[0]), idxs)
end
function fresh_level(::ByteMapSpec{P,I,L}, r::Row) where {P,I,L}
    extent = I(next!(r))
    return LEVELS.sparse_bytemap{I}(fresh_level(L(), r), extent)
end
function fresh_level(::DictSpec{L}, r::Row) where {L}
    extent = next!(r)
    return LEVELS.sparse_dict{Int}(fresh_level(L(), r), extent)
end

"""
What describes the buffers of a result: pairs of an address and a length, level after level. `kept` collects the arrays
that must outlive the description.
"""
mutable struct Buffers
    numbers::Vector{Int64}
    at::Int
    kept::Vector{Any}
end

function put!(out::Buffers, array::Vector, size)
    push!(out.kept, array)
    out.numbers[out.at += 1] = Int64(pointer(array))
    out.numbers[out.at += 1] = size
    return nothing
end

describe!(out::Buffers, s::Spec, tensor) = describe_level!(out, s, tensor.lvl, 1)
describe!(out::Buffers, ::ScalarSpec{Vf,Tv}, x) where {Vf,Tv} = put!(out, Tv[x.val], 1)

describe_level!(out, ::ElementSpec, lvl, positions) = put!(out, lvl.val, positions)
describe_level!(out, ::PatternSpec, lvl, positions) = nothing
function describe_level!(out, ::DenseSpec{L}, lvl, positions) where {L}
    return describe_level!(out, L(), lvl.lvl, positions * lvl.shape)
end
function describe_level!(out, ::ListSpec{P,I,L}, lvl, positions) where {P,I,L}
    size = Int(lvl.ptr.data[positions + 1])
    put!(out, lvl.ptr.data, positions + 1)
    put!(out, lvl.idx.data, size)
    return describe_level!(out, L(), lvl.lvl, size)
end
function describe_level!(out, ::COOSpec{N,P,I,L}, lvl, positions) where {N,P,I,L}
    size = Int(lvl.ptr.data[positions + 1])
    put!(out, lvl.ptr.data, positions + 1)
    for idx in reverse(lvl.tbl)
        put!(out, idx.data, size)
    end
    return describe_level!(out, L(), lvl.lvl, size)
end
function describe_level!(out, ::ByteMapSpec{P,I,L}, lvl, positions) where {P,I,L}
    size = lvl.ptr[positions + 1] - 1
    put!(out, P[lvl.ptr[p] - 1 for p in 1:(positions + 1)], positions + 1)
    put!(out, I[lvl.srt[q][2] - 1 for q in 1:size], size)
    put!(out, lvl.tbl, positions * Int(lvl.shape))
    return describe_level!(out, L(), lvl.lvl, positions * Int(lvl.shape))
end

"What the Python side still views, by number."
const KEPT = Dict{Int,Vector{Any}}()
const LAST = Ref(0)

function keep!(arrays::Vector{Any})
    KEPT[LAST[] += 1] = arrays
    return LAST[]
end

"Let go of results; `address` and `size` are of their numbers."
function release(address::Int, size::Int)
    for number in unsafe_wrap(Array, Ptr{Int64}(address), size)
        delete!(KEPT, number)
    end
    return nothing
end
