# Operators as NumPy means them. Where Base's function gives NumPy's value on arguments of the operator's own dtypes it is
# used, since Finch.jl knows its laws; where Base throws, or gives another value, the function is ours.

"Conversion of a number to `T` as NumPy converts arrays."
struct Cast{T} <: Function end
(::Cast{T})(x) where {T} = as(T, x)

as(::Type{Bool}, x::Integer) = !iszero(x)
as(::Type{Bool}, x::AbstractFloat) = !iszero(x)
as(::Type{Bool}, x::Complex) = !iszero(x)
as(::Type{T}, x::Integer) where {T<:Integer} = x % T
as(::Type{T}, x::Real) where {T<:AbstractFloat} = T(x)
as(::Type{Complex{T}}, x::Number) where {T} = Complex{T}(x)
as(::Type{T}, x::Complex) where {T<:Real} = as(T, real(x))
function as(::Type{T}, x::AbstractFloat) where {T<:Integer}
    -9.223372036854775808e18 <= x < 9.223372036854775808e18 && return unsafe_trunc(Int64, x) % T
    T === UInt64 && 0 < x < 1.8446744073709551616e19 && return unsafe_trunc(UInt64, x)
    return typemin(Int64) % T
end

# Base's elementary functions throw outside their domain.
for (f, outside) in (
    (:sqrt, :(x < 0)), (:log, :(x < 0)), (:log2, :(x < 0)), (:log10, :(x < 0)), (:log1p, :(x < -1)),
    (:sin, :(isinf(x))), (:cos, :(isinf(x))), (:tan, :(isinf(x))),
    (:asin, :(abs(x) > 1)), (:acos, :(abs(x) > 1)), (:acosh, :(x < 1)), (:atanh, :(abs(x) > 1)),
)
    name = Symbol("quiet_", f)
    @eval $name(x::Real) = $outside ? oftype(x, NaN) : $f(x)
    @eval $name(x::Complex) = $f(x)
end

minus(x) = -x
minus(x, y) = x - y
equal(x, y) = x == y
not_equal(x, y) = x != y
less(x, y) = x < y
less_equal(x, y) = x <= y
greater(x, y) = x > y
greater_equal(x, y) = x >= y
square(x) = x * x
first_of(x, y) = x
arctan2(y, x) = atan(y, x)
logical_xor(x, y) = xor(!iszero(x), !iszero(y))
clip(x, low, high) = min(max(x, low), high)

function floor_divide(x::T, y::T) where {T<:Integer}
    iszero(y) && return zero(T)
    T <: Signed && y == -1 && return -x
    return fld(x, y)
end

function floor_divide(x::T, y::T) where {T<:AbstractFloat}
    iszero(y) && return x / y
    rest = rem(x, y)
    quotient = (x - rest) / y
    !iszero(rest) && (y < 0) != (rest < 0) && (quotient -= 1)
    iszero(quotient) && return copysign(quotient, x / y)
    whole = floor(quotient)
    return quotient - whole > 0.5 ? whole + 1 : whole
end

function remainder(x::T, y::T) where {T<:Integer}
    (iszero(y) || (T <: Signed && y == -1)) && return zero(T)
    return mod(x, y)
end

function remainder(x::T, y::T) where {T<:AbstractFloat}
    (iszero(y) || isinf(x)) && return T(NaN)
    rest = rem(x, y)
    iszero(rest) && return copysign(rest, y)
    return (y < 0) != (rest < 0) ? rest + y : rest
end

function power(x::T, y::T) where {T<:Integer}
    y < 0 && throw(ArgumentError("an integer power needs exponents >= 0; cast the base to a float first"))
    result, factor = one(T), x
    while !iszero(y)
        isodd(y) && (result *= factor)
        y >>= 1
        factor *= factor
    end
    return result
end

function power(x::T, y::T) where {T<:AbstractFloat}
    (x < 0 && isfinite(y) && !isinteger(y)) || return x^y
    return isfinite(x) ? T(NaN) : y > 0 ? T(Inf) : zero(T)
end

power(x::Complex, y::Complex) = x^y

left_shift(x::T, y::T) where {T<:Integer} = 0 <= y < 64 ? x << y : zero(T)
right_shift(x::T, y::T) where {T<:Integer} = 0 <= y < 64 ? x >> y : x < 0 ? -one(T) : zero(T)

sign_of(x::Real) = sign(x)
function sign_of(z::Complex)
    size = abs(z)
    iszero(size) && return zero(z)
    isfinite(size) && return z / size
    isinf(real(z)) && iszero(imag(z)) && return oftype(z, sign(real(z)))
    isinf(imag(z)) && iszero(real(z)) && return oftype(z, im * sign(imag(z)))
    (isnan(z) || (isinf(real(z)) && isinf(imag(z)))) && return oftype(z, NaN + NaN * im)
    return isinf(real(z)) ? oftype(z, sign(real(z))) : oftype(z, im * sign(imag(z)))
end

function nextafter(x::T, y::T) where {T<:AbstractFloat}
    (isnan(x) || isnan(y)) && return T(NaN)
    return x == y ? y : x < y ? nextfloat(x) : prevfloat(x)
end

function logaddexp(x::T, y::T) where {T<:AbstractFloat}
    x == y && return x + T(log(2))
    low, high = minmax(x, y)
    return high + log1p(exp(low - high))
end
logaddexp(x::Complex, y::Complex) = log(exp(x) + exp(y))

"The operators by the names that program text has for them; those with laws that Finch.jl knows are Base's or its own."
const OPERATORS = Dict{String,Any}(
    "+" => +, "*" => *, "/" => /, "max" => max, "min" => min, "&" => &, "|" => |, "xor" => xor,
    "and" => Finch.and, "or" => Finch.or, "overwrite" => Finch.overwrite, "ifelse" => ifelse, "identity" => identity,
    "-" => minus, "==" => equal, "!=" => not_equal, "<" => less, "<=" => less_equal, ">" => greater,
    ">=" => greater_equal, "^" => power, "fld" => floor_divide, "mod" => remainder, "<<" => left_shift,
    ">>" => right_shift, "~" => ~, "!" => !, "first" => first_of, "square" => square, "inv" => inv, "abs" => abs,
    "sign" => sign_of, "hypot" => hypot, "copysign" => copysign, "nextafter" => nextafter,
    "logaddexp" => logaddexp, "clamp" => clip, "atan2" => arctan2, "logical_xor" => logical_xor,
    "exp" => exp, "expm1" => expm1, "sqrt" => quiet_sqrt, "log" => quiet_log, "log1p" => quiet_log1p,
    "log2" => quiet_log2, "log10" => quiet_log10, "sin" => quiet_sin, "cos" => quiet_cos, "tan" => quiet_tan,
    "asin" => quiet_asin, "acos" => quiet_acos, "atan" => atan, "sinh" => sinh, "cosh" => cosh, "tanh" => tanh,
    "asinh" => asinh, "acosh" => quiet_acosh, "atanh" => quiet_atanh,
    "ceil" => ceil, "floor" => floor, "trunc" => trunc, "round" => round,
    "real" => real, "imag" => imag, "conj" => conj,
    "isfinite" => isfinite, "isinf" => isinf, "isnan" => isnan, "signbit" => signbit,
)
const NAMES = IdDict{Any,String}(f => name for (name, f) in OPERATORS)
const CARRIERS = Dict{String,Any}(
    "initwrite" => Finch.initwrite, "choose" => Finch.choose, "known_fill" => z -> KnownFill{z}()
)
const TYPES = Dict{String,DataType}(
    string(T) => T for
    T in (Bool, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32, Float64)
)
const COMPLEX = Dict{String,DataType}("ComplexF32" => ComplexF32, "ComplexF64" => ComplexF64)
"The types by the names that NumPy has for them."
const DTYPES = Dict{String,DataType}(
    (lowercase(name) => T for (name, T) in TYPES)..., "complex64" => ComplexF32, "complex128" => ComplexF64
)
const DTYPE_NAMES = Dict{DataType,String}(T => name for (name, T) in DTYPES)

"An operator that keeps its argument, promising that the fill is `value`."
struct KnownFill{value} <: Function end
(::KnownFill)(x) = x
