"""Elementwise functions that take more than a primitive, copies, types and devices."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

import adjoint as ad
from adjoint import conventions, errors, numpy_functions
from adjoint.torch import creation, devices, lifted
from adjoint.torch.arguments import guarded, public, spelled_as, tensor_of
from adjoint.torch.calls import (
    KNOWN,
    beside_tensors,
    call,
    check_factor,
    check_size,
    element,
    factor,
    into,
    number,
    number_of,
    off,
    operand,
    overflow,
    run,
    without_slope,
)
from adjoint.torch.dtypes import bfloat16, default_float, numpy_dtype, of_numpy, result_dtype
from adjoint.torch.graph import label
from adjoint.torch.operators import FUNCTIONS, METHODS
from adjoint.torch.overriding import asking, operated
from adjoint.torch.tensor import (
    INNER,
    LEVEL,
    Tensor,
    beside,
    constant,
    copied,
    is_lifted,
    leaf_of,
    level_of,
    of,
    values,
    where_is,
)
from adjoint.torch.unsupported import NO_NUMBERS

# --- one argument -------------------------------------------------------------------------------------


def floating_of(x: Tensor) -> Tensor:
    """Integers in the default floating type."""
    return x if x._dtype.kind in "fc" else FUNCTIONS["to"](x, dtype=default_float())


def _unary(name: str, function: Any, made: str | None = None, *, floating: bool = True) -> None:
    made = made or name.capitalize()

    def spelled(input: Any) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        return call(function, made, floating_of(input) if floating else input)

    public(name, in_place=True, out=True)(spelled)


for _name, _function in {
    "deg2rad": "deg2rad", "exp2": "exp2", "rad2deg": "rad2deg", "rsqrt": "rsqrt",
    "i0": "special.i0", "sinc": "special.sinc",
}.items():  # fmt: skip
    _unary(_name, _function)
_unary("frac", conventions.fraction)
_quick_reciprocal = METHODS["reciprocal"]


@public("reciprocal", in_place=True, out=True)
def reciprocal(input: Tensor) -> Any:
    """1 / input."""
    check_tensors("reciprocal", input)
    return _quick_reciprocal(input)


@public("nan_to_num", in_place=True, out=True)
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Any:
    """Numbers in the place of nan, 0 where none is given, and of infinities, the largest of the type."""
    given = {"nan": nan or 0.0, "posinf": posinf, "neginf": neginf}
    return call("nan_to_num", "NanToNum", input, **given)


@public("logit", in_place=True, out=True)
def logit(input: Tensor, eps: float | None = None) -> Any:
    """log(x / (1 - x)), of x between eps and 1 - eps where eps is given."""
    x = floating_of(input)
    return call("special.logit", "Logit", x if eps is None else clamp(x, eps, 1 - eps))


_round = FUNCTIONS["round"]


@public("round", in_place=True)
def round(input: Tensor, *, decimals: int = 0, out: Any = None) -> Any:
    """The nearest integers, or numbers of so many decimals; of two the even one."""
    if not decimals:
        return _round(input) if out is None else _round(input, out=out)
    if input._dtype.kind != "f":
        raise NotImplementedError(f"\"round_cpu\" not implemented for '{input.dtype.class_name}'")
    return into(out, call(lambda x: ad.round(x, decimals), "RoundBackward1", input))


@public("sgn", in_place=True, out=True)
def sgn(input: Tensor) -> Tensor:
    return FUNCTIONS["sign"](input) if input._dtype.kind == "b" else run("sign", (input,), "Sgn")


@public("positive")
def positive(input: Tensor) -> Tensor:
    if input._dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


METHODS["__pos__"] = positive


def _test(name: str) -> None:
    def spelled(input: Tensor) -> Tensor:
        x = input if input._dtype.kind in "fc" or name == "logical_not" else floating_of(input)
        return run(name, (x,))

    public(name, in_place=name == "logical_not", out=name in ("logical_not", "signbit"))(spelled)


for _name in ("isnan", "isinf", "isfinite", "logical_not", "signbit"):
    _test(_name)


@public("isposinf", out=True)
def isposinf(input: Tensor) -> Any:
    return tensor_of(input, "isposinf", "input") == float("inf")


@public("isneginf", out=True)
def isneginf(input: Tensor) -> Any:
    return tensor_of(input, "isneginf", "input") == float("-inf")


@public("isreal")
def isreal(input: Tensor) -> Any:
    return input.imag == 0 if input._dtype.kind == "c" else creation.full_like(input, True, dtype=bool)


@public("bitwise_not", in_place=True, out=True)
def bitwise_not(input: Tensor) -> Tensor:
    return run("logical_not" if input._dtype.kind == "b" else "bitwise_invert", (input,))


def _invert(self: Tensor) -> Any:
    if self._dtype.kind in "fc":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return METHODS["bitwise_not"](self)


METHODS["__invert__"] = _invert


@public("angle", out=True)
def angle(input: Tensor) -> Any:
    x = floating_of(input)
    if x._dtype.kind == "c":
        return call("angle", "Angle", x)
    return without_slope("Angle", call("angle", None, x.detach()), x)


@public("conj_physical", "conj", in_place=True, out=True)
def conj(input: Tensor) -> Tensor:
    return run("conj", (input,), "Conj") if input._dtype.kind == "c" else input


del METHODS["conj_"]  # there is conj_physical_


@public("resolve_conj")
def resolve_conj(input: Tensor) -> Tensor:
    return input


@public("resolve_neg")
def resolve_neg(input: Tensor) -> Tensor:
    return input


# --- two arguments ------------------------------------------------------------------------------------


# what takes no numbers as its first operand
_FIRST = frozenset("copysign fmod rsub".split())


def check_tensors(name: str, *operands: Any, places: tuple[str, str] = ("input", "other")) -> None:
    """Raise PyTorch's TypeError for numbers where a function takes tensors alone."""
    count = 2 if name in NO_NUMBERS else 1 if name in _FIRST else 0
    for i, (place, x) in enumerate(zip(places[:count], operands, strict=False)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): argument '{place}' (position {i + 1}) must be Tensor, not {type(x).__name__}")
    if not count and not any([isinstance(x, Tensor) for x in operands]):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(operands[0]).__name__}")


def _pair(name: str, primitive: str, made: str, *, floating: bool = False, symbol: str = "") -> None:
    def spelled(input: Any, other: Any) -> Tensor:
        check_tensors(name, input, other)
        x, y = operand(input, name, "input"), operand(other, name)
        if name in _DIVISIONS and (kind := result_dtype((x, y))).kind in "iu" and _has_zero(y, kind):
            raise RuntimeError("ZeroDivisionError")
        return run(primitive, (x, y), made, floating=floating)

    public(name, in_place=name not in _NEW_ALONE, out=True)(spelled)
    if symbol:
        _symbols(symbol, name, FUNCTIONS[name], METHODS[name + "_"])


# what has no in-place form
_NEW_ALONE = frozenset(("maximum", "minimum", "fmax", "fmin", "logaddexp"))
_DIVISIONS = frozenset(("floor_divide", "fmod", "remainder"))


def _has_zero(y: Any, dtype: Any) -> bool:
    """Whether a divisor has zeros that can be seen at once: no other device, and no transform, has to be asked."""
    if isinstance(y, Tensor):
        return not is_lifted(y) and where_is(y) is None and not np.all(values(y))
    return not beside_tensors(y, dtype)


def _symbols(symbol: str, name: str, function: Any, in_place: Any) -> None:
    METHODS[f"__{symbol}__"] = lambda x, y: function(x, y) if isinstance(y, KNOWN) else operated(name, x, y)
    METHODS[f"__r{symbol}__"] = lambda x, y: function(y, x) if isinstance(y, KNOWN) else operated(name, y, x)
    METHODS[f"__i{symbol}__"] = lambda x, y: in_place(x, y) if isinstance(y, KNOWN) else operated(name + "_", x, y)


for _row in """
atan2           atan2           Atan2        floating  -
arctan2         atan2           Atan2        floating  -
maximum         maximum         Maximum      -         -
minimum         minimum         Minimum      -         -
hypot           hypot           Hypot        -         -
copysign        copysign        Copysign     floating  -
nextafter       nextafter       Nextafter    -         -
remainder       remainder       Remainder    -         mod
fmod            fmod            Fmod         -         -
floor_divide    floor_divide    FloorDivide  -         floordiv
gcd             gcd             Gcd          -         -
lcm             lcm             Lcm          -         -
logical_and     logical_and     -            -         -
logical_or      logical_or      -            -         -
logical_xor     logical_xor     -            -         -
bitwise_left_shift  bitwise_left_shift  -    -         lshift
bitwise_right_shift bitwise_right_shift -    -         rshift
""".strip().splitlines():
    _name, _primitive, _made, _floats, _symbol = _row.split()
    _pair(_name, _primitive, _made, floating=_floats == "floating", symbol=_symbol.replace("-", ""))


def _bits(name: str, symbol: str) -> None:
    def spelled(input: Any, other: Any) -> Tensor:
        check_tensors(name, input, other)
        x, y = operand(input, name, "input"), operand(other, name)
        if result_dtype((x, y)).kind == "b":
            return run("not_equal" if name == "bitwise_xor" else name.replace("bitwise", "logical"), (x, y))
        return run(name, (x, y))

    public(name, in_place=True, out=True)(spelled)
    _symbols(symbol, name, FUNCTIONS[name], METHODS[name + "_"])


for _name, _symbol in {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}.items():
    _bits(_name, _symbol)


_square = FUNCTIONS["square"]


@public("pow", in_place=True, out=True)
def pow(input: Any, exponent: Any) -> Tensor:
    """input to the power of exponent.

    >>> import adjoint.torch as torch
    >>> torch.pow(torch.tensor([2.0, 3.0]), 2)
    tensor([4., 9.])
    """
    if exponent.__class__ in (int, float) and exponent == 2 and isinstance(input, Tensor) and input._dtype.kind in "fc":
        return _square(input)  # type: ignore[no-any-return]
    x, y = operand(input, "pow", "input"), operand(exponent, "pow", "exponent")
    check_tensors("pow", x, y)
    dtype = result_dtype((x, y))
    if dtype.kind == "b":
        if isinstance(y, Tensor):
            raise NotImplementedError("\"pow\" not implemented for 'Bool'")
        return clone(x) if y else creation.full_like(x, True)
    if isinstance(y, Tensor):
        if dtype.kind == "i":
            base = x if isinstance(x, Tensor) else creation.tensor(x)
            return to(call(conventions.integer_power, None, base, y), dtype=dtype)
        return run("pow", (x, y), "PowBackward1" if isinstance(x, Tensor) else "PowBackward2")
    if dtype.kind in "biu" and y < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if y == 2 and dtype.kind in "fc":
        return run("square", (x,), "Pow", dtype=dtype)
    return run("pow", (x, y), "Pow")


METHODS["__pow__"] = lambda x, y: pow(x, y) if isinstance(y, KNOWN) else operated("pow", x, y)
METHODS["__rpow__"] = lambda x, y: pow(y, x) if isinstance(y, KNOWN) else operated("pow", y, x)
METHODS["__ipow__"] = lambda x, y: x.pow_(y) if isinstance(y, KNOWN) else operated("pow_", x, y)


def composed(name: str, function: Any, made: str, parameters: str, *, floating: bool = True) -> Any:
    """A function of adjoint's, of tensors and numbers that meet in one dtype."""

    def apply(*args: Any, **options: Any) -> Any:
        check_tensors(name, *args)
        tensors = [a for a in args if isinstance(a, KNOWN)]
        if len(tensors) < len(args):
            strange = next(a for a in args if not isinstance(a, KNOWN))
            raise TypeError(f"{name}(): an argument must be Tensor or Number, not {type(strange).__name__}")
        dtype = result_dtype(tensors)
        if floating and dtype.kind in "biu":
            dtype = default_float()
        for a in tensors:
            check_size(a)
        cast = [a.to(dtype=dtype) if isinstance(a, Tensor) and a._dtype is not dtype else a for a in args]
        return call(function, made, *cast, **options)

    return spelled_as(name, parameters, apply)


def numbers_first(function: Any, *numbers: str) -> Any:
    """It also takes numbers before tensors, as it once did: `x.addcmul_(0.5, y, z)`, `addmm(beta, x, alpha, y, z)`."""

    @functools.wraps(function)
    def spelled(*args: Any, **options: Any) -> Any:
        if len(args) > 3:
            given = [a for a in args if isinstance(a, (int, float, complex))]
            args = tuple([a for a in args if not isinstance(a, (int, float, complex))])
            options.update(zip(numbers, given, strict=False))
        return function(*args, **options)

    return spelled


def _composed(name: str, function: Any, made: str, parameters: str, *, floating: bool = False) -> None:
    apply = composed(name, function, made, parameters, floating=floating)
    public(name, in_place=name not in _NEW_ALONE, out=True)(apply)


_TWO = "input: Tensor, other: Tensor"
_composed("fmax", conventions.fmax_of_first, "Fmax", _TWO)
_composed("fmin", conventions.fmin_of_first, "Fmin", _TWO)
_heaviside = composed(
    "heaviside",
    lambda x, y: ad.astype(ad.heaviside(x, y), y.dtype),
    "Heaviside",
    "input: Tensor, values: Tensor",
    floating=False,
)


@public("heaviside", in_place=True, out=True)
def heaviside(input: Tensor, values: Tensor) -> Any:
    """0 below zero, 1 above, and the values at zero."""
    check_tensors("heaviside", input, values)
    if input._dtype is not values._dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return _heaviside(input, values)


_composed("xlogy", "special.xlogy", "Xlogy", "input, other", floating=True)
_lerp, _lerp_by_tensor = (
    composed("lerp", "lerp", made, "input, end, weight", floating=False) for made in ("Lerp", "LerpBackward1")
)


@public("lerp", in_place=True, out=True)
def lerp(input: Tensor, end: Tensor, weight: Any) -> Any:
    """input + weight * (end - input)"""
    for what, x in (("end", end), ("weight", weight)):
        if isinstance(x, Tensor) and x._dtype is not input._dtype:
            raise RuntimeError(f"expected dtype {input.dtype.name} for `{what}` but got dtype {x.dtype.name}")
    return (_lerp_by_tensor if isinstance(weight, Tensor) else _lerp)(input, end, weight)


_THREE = "input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number=1"


def _addcmul(x: Any, a: Any, b: Any, *, value: Any) -> Any:
    return conventions.add_product(x, a, b, factor(value, x.dtype))


def _addcdiv(x: Any, a: Any, b: Any, *, value: Any) -> Any:
    return conventions.add_quotient(x, a, b, factor(value, x.dtype))


def _of_three(name: str, step: Any) -> Any:
    apply = composed(name, step, name.capitalize(), _THREE, floating=False)

    @functools.wraps(apply)
    def spelled(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Any:
        kinds = [x._dtype.kind if isinstance(x, Tensor) else "" for x in (input, tensor1, tensor2)]
        if name == "addcdiv" and "".join(kinds[1:]) in _INTEGER_PAIRS:
            raise RuntimeError("Integer division with addcdiv is no longer supported: divide floats")
        if name == "addcmul" and kinds == ["b", "b", "b"]:
            raise NotImplementedError("\"addcmul_cpu_out\" not implemented for 'Bool'")
        return apply(input, tensor1, tensor2, value=value)

    return numbers_first(spelled, "value")


_INTEGER_PAIRS = {a + b for a in "biu" for b in "biu"}
for _name, _step in {"addcmul": _addcmul, "addcdiv": _addcdiv}.items():
    public(_name, in_place=True, out=True)(_of_three(_name, _step))


def _logaddexp(x: Any, y: Any) -> Any:
    if x.dtype.kind in "biu":
        raise NotImplementedError(f"\"logaddexp_cpu\" not implemented for '{of_numpy(x.dtype).class_name}'")
    return ad.logaddexp(x, y)


_composed("logaddexp", _logaddexp, "Logaddexp", _TWO)


@public("logaddexp2", out=True)
def logaddexp2(input: Tensor, other: Tensor) -> Any:
    kind = result_dtype((input, other))
    wide = np.dtype("float32") if kind.itemsize == 2 else kind
    found = call(numpy_functions.logaddexp2, "Logaddexp2", to(input, dtype=wide), to(other, dtype=wide))
    return to(found, dtype=kind)


@public("rsub", method=False)
def rsub(input: Any, other: Any, alpha: Any = 1) -> Any:
    check_tensors("rsub", input, other)
    alpha = number_of(alpha, "rsub", "alpha")
    if alpha.__class__ is not int:
        check_factor("alpha", alpha, (input, other))
    return other - (input if alpha == 1 else input * alpha)


@public("clamp", "clip", in_place=True, out=True)
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The input between two bounds, which are numbers or tensors."""
    check_tensors("clamp", input)
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounds = [b for b in (min, max) if b is not None]
    for b in bounds:
        check_size(b)
    for what, b in (("min", min), ("max", max)):
        if b is not None and not isinstance(b, KNOWN):
            raise TypeError(f"clamp(): argument '{what}' must be Tensor or Number, not {type(b).__name__}")
    if len({isinstance(b, Tensor) for b in bounds}) == 2 and not all(
        [b.ndim == 0 for b in bounds if isinstance(b, Tensor)]
    ):
        raise TypeError("clamp() received an invalid combination of arguments: one bound is a number, one a tensor")
    dtype = result_dtype([input, *bounds])
    x = input if input._dtype is dtype else input.to(dtype=dtype)
    if not any([isinstance(b, Tensor) for b in bounds]):
        if dtype.kind == "b":
            side = "min_" if max is None else "max_" if min is None else ""
            raise NotImplementedError(f"\"clamp_{side}scalar_cpu\" not implemented for 'Bool'")
        low, high = (None if b is None else number(b, dtype) for b in (min, max))
        return call(lambda a: ad.clip(a, low, high), "ClampBackward1", x)  # type: ignore[no-any-return]
    if dtype.kind == "b":
        least = x if min is None else run("maximum", (x, min), dtype=dtype)
        return least if max is None else run("minimum", (least, max), dtype=dtype)
    low, high = (b.to(dtype=dtype) if isinstance(b, Tensor) else b for b in (min, max))
    return call(ad.clip, "Clamp", x, low, high)  # type: ignore[no-any-return]


@public("clamp_min", in_place=True, out=True)
def clamp_min(input: Tensor, min: Any) -> Any:
    return clamp(input, min=min)


@public("clamp_max", in_place=True, out=True)
def clamp_max(input: Tensor, max: Any) -> Any:
    return clamp(input, max=max)


# of masks
BYTES = "dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."


@public("where", method=False, out=True)
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    if input is None:
        return FUNCTIONS["nonzero"](condition, as_tuple=True)
    x, y = operand(input, "where", "input"), operand(other, "where")
    dtype = result_dtype((x, y))
    if condition._dtype == np.uint8:
        warnings.warn(f"where: {BYTES}", UserWarning, stacklevel=3)
        condition = condition.bool()
    if condition._dtype.kind != "b":
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.class_name}"
        )
    parts = [v.to(dtype=dtype) if isinstance(v, Tensor) else beside(condition, element(v, dtype)) for v in (x, y)]
    return call("where", "Where", condition, *parts)


METHODS["where"] = lambda self, condition, other: where(condition, self, other)


@public("masked_fill", in_place=True)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """The input with a value where the mask is true."""
    if mask._dtype.kind != "b":
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    if isinstance(value, Tensor) and value._dtype.kind == "c" and input._dtype.kind != "c":
        raise overflow(input._dtype)
    fill = value.to(dtype=input._dtype) if isinstance(value, Tensor) else beside(input, number(value, input._dtype))
    return call("where", "MaskedFill", mask, fill, input)  # type: ignore[no-any-return]


# --- copies and types -----------------------------------------------------------------------------------


@public("clone")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy, differentiably."""
    if is_lifted(input):
        return lifted.lifted(lifted.inner_of(input))
    value = copied(values(input))
    if off():
        return constant(value)
    array = input._array
    if array.node is not None:
        array = level_of(input).reshape(array, shape=tuple(value.shape))
        array.node.marks = "Clone"
        array.value = value
        return of(array)
    return constant(value)


@public("to")
def to(
    input: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """The tensor in another type, or on another device; itself where nothing changes."""
    from adjoint.torch import dtypes

    flags = []
    for given in args:
        if isinstance(given, Tensor):
            dtype, device = given._dtype, given.device
        elif isinstance(given, (dtypes.dtype, type)):
            dtype = given
        elif isinstance(given, bool):
            flags.append(given)
        elif given is not None:
            device = given
    copy = copy or flags[1:] == [True]  # the first is non_blocking
    copy = copy or str(memory_format).startswith("torch.channels_last")  # an order of its own, which is taken as it is
    there = where_is(input) if device is None else devices.where(device)
    wanted = dtype if isinstance(dtype, np.dtype) else numpy_dtype(dtype)
    same = wanted is None or wanted is input._dtype
    if there is not where_is(input):
        out = _moved(input, there)
        return out if same else to(out, dtype=wanted)
    if same:
        return clone(input) if copy else input
    if is_lifted(input):
        return call(lambda a: ad.astype(a, wanted), "ToCopy", input)  # type: ignore[no-any-return]
    if off():
        return constant(leaf_of(values(input)).astype(values(input), dtype=wanted))
    out = of(level_of(input).astype(input._array, dtype=wanted))
    if out._array.node is not None:
        label(out._array.node, "ToCopy")
    return out


def _moved(x: Tensor, there: Any) -> Tensor:
    """The tensor on another device, differentiably."""
    here, level = (INNER, LEVEL) if there is None else (there.leaf, there.level)
    if is_lifted(x):
        raise NotImplementedError("adjoint.torch: to(device) is not there inside of function transforms")
    try:
        if off():
            return constant(copied(here.transfer(values(x), level_of(x).inner)))
        array = level.transfer(x._array, level_of(x))
    except errors.AdjointError as error:
        raise TypeError(f"Cannot convert a {x.device} tensor to {here}: {error}") from error
    array.value = copied(array.value)
    label(array.node, "ToCopy")
    return of(array)


def _bfloat16(self: Tensor, *, memory_format: Any = None) -> Tensor:
    return to(self, dtype=bfloat16)


def _cast(name: str, kind: str) -> None:
    METHODS[name] = lambda self, *, memory_format=None: to(self, dtype=np.dtype(kind), memory_format=memory_format)


for _name, _kind in {
    "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
    "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}.items():  # fmt: skip
    _cast(_name, _kind)


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is None:
        return f"torch.{self.dtype.class_name}Tensor"
    if isinstance(dtype, str):
        from adjoint.torch.dtypes import DTYPES

        found = next((d for d in DTYPES.values() if f"torch.{d.class_name}Tensor" == dtype), None)
        if found is None:
            raise ValueError(f"invalid type: {dtype!r}")
        dtype = found
    if non_blocking.__class__ is not bool:
        raise TypeError(f"type(): argument 'non_blocking' must be bool, not {type(non_blocking).__name__}")
    if isinstance(dtype, Tensor):
        raise TypeError("dtype must be a type, str, or dtype object")
    return to(self, dtype=getattr(dtype, "dtype", dtype))  # of torch.FloatTensor and its like it is the type's


def _cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    return to(self, device=devices.CPU)


def _cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    return to(self, device=devices.on_gpu(device), memory_format=memory_format)


def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    return self


METHODS["type"] = _type
_by_name: dict[str, Any] = {
    "cpu": _cpu, "cuda": _cuda, "bfloat16": _bfloat16, "pin_memory": _pin_memory,
}  # fmt: skip
for _name, _spelled in _by_name.items():
    _spelled.__name__ = _spelled.__qualname__ = _name
    METHODS[_name] = guarded(_spelled)


@asking
def _type_as(self: Any, other: Any) -> Any:
    return to(self, dtype=tensor_of(other, "type_as")._dtype)


_type_as.__name__ = _type_as.__qualname__ = "type_as"
METHODS["type_as"] = _type_as
METHODS["share_memory_"] = lambda self: self


@public("real")
def real(input: Tensor) -> Tensor:
    from adjoint.torch.kinds import Part
    from adjoint.torch.memory import view_of

    return view_of(input, Part("real"), "Select") if input._dtype.kind == "c" else input


@public("imag")
def imag(input: Tensor) -> Tensor:
    from adjoint.torch.kinds import Part
    from adjoint.torch.memory import view_of

    if input._dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return view_of(input, Part("imag"), "Select")


def _set_part(part: Any) -> Any:
    def setter(self: Tensor, value: Any) -> None:
        part(self).copy_(value.real if isinstance(value, Tensor) and value._dtype.kind == "c" else value)

    return setter


METHODS["real"], METHODS["imag"] = property(real, _set_part(real)), property(imag, _set_part(imag))


@public("complex", method=False, out=True)
def complex_(real: Tensor, imag: Tensor) -> Any:
    _check_parts("complex", real, imag, ("real", "imag"))
    return call(lambda a, b: a + b * 1j, "Complex", real, imag)


def _check_parts(name: str, one: Any, other: Any, places: tuple[str, str]) -> None:
    """Raise PyTorch's errors for what makes complex numbers: two tensors of one floating type."""
    check_tensors(name, one, other, places=places)
    kinds = [x.dtype.class_name for x in (one, other)]
    if any([x._dtype.kind != "f" for x in (one, other)]):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {kinds[0]} and {kinds[1]}"
        )
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            f"Expected object of scalar type {kinds[0]} but got scalar type {kinds[1]} for second argument"
        )


@public("polar", method=False, out=True)
def polar(abs: Tensor, angle: Tensor) -> Any:
    _check_parts("polar", abs, angle, ("abs", "angle"))
    return call(conventions.polar, "Polar", abs, angle)
