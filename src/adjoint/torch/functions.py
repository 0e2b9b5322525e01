"""Elementwise functions that take more than a primitive, copies, types and devices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import numpy as np

import adjoint as ad
from adjoint import errors
from adjoint.torch import creation, devices, lifted
from adjoint.torch.calls import NUMBERS, call, into, number, off, operand, run, write
from adjoint.torch.dtypes import bfloat16, default_float, numpy_dtype, result_dtype
from adjoint.torch.graph import label, maker, marks_of, name_of
from adjoint.torch.operators import FUNCTIONS, METHODS
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
    next_number,
    of,
    values,
    where_is,
)

F = TypeVar("F", bound=Callable[..., Any])


def public(*names: str, in_place: bool = False, method: bool = True, out: bool = False) -> Callable[[F], F]:
    """Make it a function of the face under these names, and a method; with `in_place` there are `name_`, too."""

    def given(function: F) -> F:
        made = NODES.get(names[0])
        spelled: Any = function if made is None else one_node(*made.split())(function)
        careful = guarded(spelled)
        tensors = [kind for name, kind in function.__annotations__.items() if name != "return" and "Tensor" in kind]
        several = len(tensors) > 1 or "dim" in _parameters(function)
        called = with_out(spelled) if out else careful
        known: Any = called if out or several else spelled
        for f in (function, spelled, careful, called):
            f.__name__ = f.__qualname__ = names[0]
        for name in names:
            FUNCTIONS[name] = called
            if method:
                METHODS[name] = known
            if in_place:
                METHODS[name + "_"] = writing(name + "_", careful)
        return known  # type: ignore[no-any-return]

    return given


def writing(name: str, function: Any) -> Any:
    """The in-place method of a function."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return write(self, function, *args, **options)

    method.__name__ = method.__qualname__ = name
    method.__wrapped__ = function  # type: ignore[attr-defined]
    return method


def spelled_as(name: str, parameters: str, function: Any, *, by_place: bool = False) -> Any:
    """A function of any arguments as one of these parameters, which are written as in a `def`.

    It gets those behind a star by name, or by place as the others.
    """
    given = [word.partition(":")[0].partition("=")[0].strip() for word in parameters.split(", ")]
    at = given.index("*") if "*" in given else len(given)
    passed = ", ".join([*given[:at], *[word if by_place else f"{word}={word}" for word in given[at + 1 :]]])
    scope: dict[str, Any] = {"function": function}
    exec(f"def {name}({parameters}):\n    return function({passed})", scope)
    made = scope[name]
    made.__module__ = function.__module__
    return made


# what PyTorch calls the node of a function, where it is not what the last step is called here, - for that; the second
# name is for a tensor in the last place
NODES = {
    "deg2rad": "Deg2Rad", "rad2deg": "Rad2Deg", "rsub": "Rsub", "clamp_min": "ClampMin", "clamp_max": "ClampMax",
    "remainder": "Remainder RemainderBackward1", "fmod": "Fmod FmodBackward1", "lerp": "Lerp LerpBackward1",
    "nanmean": "Div", "kron": "UnsafeView", "aminmax": "Aminmax", "var_mean": "VarMean", "std_mean": "StdMean",
    "scatter_reduce": "ScatterReduce", "index_reduce": "IndexReduce", "cholesky": "Cholesky", "index_add": "IndexAdd",
    "cholesky_inverse": "CholeskyInverse", "lu_unpack": "LuUnpack", "fill": "Fill FillBackward1", "max": "-",
    "min": "-", "kthvalue": "-", "mode": "-", "view_as_complex": "ViewAsComplex",
    "masked_fill": "MaskedFill MaskedFillBackward1", "index_fill": "IndexFill IndexFillBackward1",
    "quantile": "SqueezeBackward4", "nanquantile": "SqueezeBackward4", "triangular_solve": "TriangularSolve",
    "repeat_interleave": "View", "logdet": "Where", "matrix_power": "Mm", "median": "-", "nanmedian": "-",
    "select_scatter": "SelectScatter", "slice_scatter": "SliceScatter", "diagonal_scatter": "DiagonalScatter",
    "scatter": "ScatterBackward1 Scatter", "index_put": "IndexPut", "diagflat": "DiagEmbed",
    **{f"{name}_copy": f"{made}Backward0_copy" for name, made in {
        "alias": "Alias", "as_strided": "AsStrided", "diagonal": "Diagonal", "expand": "Expand", "permute": "Permute",
        "select": "Select", "slice": "Slice", "split": "Split", "split_with_sizes": "SplitWithSizes",
        "squeeze": "Squeeze", "t": "T", "transpose": "Transpose", "unbind": "Unbind", "unfold": "Unfold",
        "unsqueeze": "Unsqueeze", "view": "View", "view_as_complex": "ViewAsComplex", "view_as_real": "ViewAsReal",
        "detach": "Detach",
    }.items()},
    "narrow_copy": "NarrowCopy",
}  # fmt: skip


def one_node(made: str, made_of_tensor: str = "") -> Callable[[F], F]:
    """A decorator of functions whose steps are one node to users."""
    return lambda function: _one_node(function, made, made_of_tensor)


def same_types(name: str, *tensors: Any) -> None:
    """Raise RuntimeError for tensors of several types, where PyTorch finds none that they meet in."""
    for x in tensors[1:]:
        if x._dtype is not tensors[0]._dtype:
            raise RuntimeError(
                f"{name}: expected tensors to have the same dtype, but got {tensors[0].dtype.class_name} and "
                f"{x.dtype.class_name}"
            )


def _one_node(function: Any, made: str, made_of_tensor: str) -> Any:
    @functools.wraps(function)
    def spelled(*args: Any, **options: Any) -> Any:
        start = next_number()
        found = function(*args, **options)
        if not off():
            last = [*args, *options.values()][-1]
            name = made_of_tensor if made_of_tensor and isinstance(last, Tensor) else made
            for x in found if isinstance(found, tuple) else (found,):
                node = None if is_lifted(x) else x._array.node
                if node is not None and node.number > start:
                    first = maker(node)
                    label(first, name_of(first, marks_of(first).label) if name == "-" else name, start)
        return found

    return spelled


# other names of arguments: NumPy's, which PyTorch takes as well
OTHER_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
# what PyTorch calls arguments where they are numbers, or lists
OTHER_NAMES |= {"self": "input", "element": "elements", "test_element": "test_elements", "train": "training"}
OTHER_NAMES |= dict.fromkeys(("sections", "indices", "tensor_indices_or_sections"), "indices_or_sections")


def _parameters(function: Any) -> tuple[str, ...]:
    code = inspect.unwrap(function).__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]  # type: ignore[no-any-return]


def _renaming(function: Any) -> Any:
    """What gives options their own names in the place of NumPy's."""
    known = _parameters(function)
    names = {other: own for other, own in OTHER_NAMES.items() if own in known and other not in known}

    def rename(options: dict[str, Any]) -> None:
        for name in options.keys() & names.keys():
            if names[name] not in options:
                options[names[name]] = options.pop(name)

    return rename


def guarded(function: Any) -> Any:
    """A function as users call it: arguments also by NumPy's names, and PyTorch's errors for those of wrong types."""
    rename, tensors = _renaming(function), _tensors(function)
    known = inspect.unwrap(function).__annotations__
    optional = {name for name in _parameters(function) if known.get(name) in ("Tensor", "Tensor | None")}

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if options:
            rename(options)
            for name in options.keys() & optional:
                if options[name] is not None and not isinstance(options[name], Tensor):
                    refuse_others(function, args, options)
        for value, wanted in zip(args, tensors, strict=False):
            if wanted and not isinstance(value, Tensor):
                refuse_others(function, args, options)
        try:
            return function(*args, **options)
        except Exception as error:
            again = refuse_others(function, args, options, error)
            if again is None:
                raise
        return function(*again.args, **again.kwargs)

    return called


def _tensors(function: Any) -> list[bool]:
    """For each parameter by place, whether only a tensor may stand there."""
    function = inspect.unwrap(function)
    code = function.__code__
    return [function.__annotations__.get(name) == "Tensor" for name in code.co_varnames[: code.co_argcount]]


Number: TypeAlias = Any  # in annotations: of these the names say what PyTorch takes
Sizes: TypeAlias = Any


def _are_sizes(value: Any) -> bool:
    """Whether it is an integer, or a sequence of some."""
    entries = value if isinstance(value, (tuple, list)) else (value,)
    return all([isinstance(n, (int, np.integer)) or (isinstance(n, Tensor) and not n.ndim) for n in entries])


_FITS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda value: isinstance(value, Tensor),
    "bool": lambda value: isinstance(value, (bool, np.bool_)),
    "int": lambda value: isinstance(value, (int, np.integer)),
    "float": lambda value: isinstance(value, (int, float, np.number)),
    "Number": lambda value: isinstance(value, (int, float, complex, np.number, np.bool_)),
    "Sizes": _are_sizes,
    "str": lambda value: isinstance(value, str),
}


def refuse_others(
    function: Any, args: tuple[Any, ...], options: dict[str, Any], error: Exception | None = None
) -> inspect.BoundArguments | None:
    """Raise PyTorch's error for arguments of wrong types, such as a list in the place of a tensor, or of sizes.

    Where tensors of one element stand in the place of numbers, which PyTorch reads, the result is the arguments with
    the numbers. None if nothing is wrong with them.
    """
    name = function.__name__
    if isinstance(error, NotImplementedError):
        return None
    try:
        bound = inspect.signature(function).bind_partial(*args, **options)
    except TypeError:  # it is of another number of arguments
        return None
    known, read = inspect.unwrap(function).__annotations__, False
    for place, (key, value) in enumerate(bound.arguments.items(), 1):
        words = str(known.get(key)).removesuffix(" | None").split(" | ")
        needed = known.get(key) == "Tensor"
        variadic = bound.signature.parameters[key].kind in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        )
        if variadic or not set(words) <= _FITS.keys() or (value is None and not needed):
            continue
        if isinstance(value, Tensor) and not value.ndim and not {"Tensor", "str"} & set(words):
            if not is_lifted(value) and not value.requires_grad:
                bound.arguments[key], read = value.item(), True
        elif not any([_FITS[word](value) for word in words]):
            if isinstance(error, ValueError) and "str" in words:
                continue  # it says which words there are
            kind = type(value).__name__
            raise TypeError(
                f"{name}(): argument '{key}' (position {place}) must be {' or '.join(words)}, not {kind}"
            ) from None
    if isinstance(error, MemoryError):
        raise RuntimeError(f"{name}(): can't allocate memory: {error}") from error
    if isinstance(error, OverflowError):
        raise ValueError(f"{name}(): Overflow when unpacking long long: {error}") from error
    if isinstance(error, RecursionError):
        raise ValueError(f"{name}(): too many dimensions, or a list that contains itself") from error
    if isinstance(error, ZeroDivisionError):
        raise RuntimeError(f"{name}(): {error}") from error
    if isinstance(error, AttributeError):
        inside = isinstance(error.obj, Tensor) and error.name.startswith("_")  # an error of ours
        if not inside and not isinstance(error.obj, ModuleType):
            given = ", ".join([type(value).__name__ for value in bound.arguments.values()])
            raise TypeError(f"{name}() received an invalid combination of arguments - got ({given})") from error
    return bound if read else None


def tensor_of(value: Any, name: str, place: str = "other") -> Tensor:
    """The value. Raises TypeError for what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}(): argument '{place}' must be Tensor, not {type(value).__name__}")
    return value


def with_out(function: Any) -> Any:
    """A guarded function that takes `out=`, too, tensors that its results are written to."""
    careful = guarded(function)

    @functools.wraps(function)
    def wrapped(*args: Any, out: Any = None, **options: Any) -> Any:
        made = careful(*args, **options)
        return made if out is None else into(out, made, (*args, *options.values()))

    return wrapped


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
    "sinc": "special.sinc", "i0": "special.i0",
}.items():  # fmt: skip
    _unary(_name, _function)
_unary("frac", lambda x: x - ad.trunc(x))
_quick_reciprocal = METHODS["reciprocal"]


@public("reciprocal", in_place=True, out=True)
def reciprocal(input: Tensor) -> Any:
    """1 / input."""
    check_tensors("reciprocal", input)
    return _quick_reciprocal(input)


@public("nan_to_num", in_place=True, out=True)
def nan_to_num(input: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
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
    if input._dtype.kind in "biu":
        raise RuntimeError(f"\"round_vml_cpu\" not implemented for '{input.dtype.class_name}'")
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


METHODS["__invert__"] = bitwise_not


@public("angle", out=True)
def angle(input: Tensor) -> Any:
    return call("angle", "Angle", floating_of(input))


@public("conj_physical", "conj", in_place=True, out=True)
def conj(input: Tensor) -> Tensor:
    return run("conj", (input,), "Conj") if input._dtype.kind == "c" else input


@public("resolve_conj")
def resolve_conj(input: Tensor) -> Tensor:
    return input


@public("resolve_neg")
def resolve_neg(input: Tensor) -> Tensor:
    return input


# --- two arguments ------------------------------------------------------------------------------------


# what takes no numbers of Python's, and what takes none as its first operand
_TENSORS = frozenset(
    "arctan2 atan2 complex fmax fmin gcd heaviside hypot igamma igammac isclose lcm logaddexp logical_and logical_or "
    "logical_xor maximum minimum nextafter polar".split()
)
_FIRST = frozenset("copysign fmod rsub".split())


def check_tensors(name: str, *operands: Any, places: tuple[str, str] = ("input", "other")) -> None:
    """Raise PyTorch's TypeError for numbers where a function takes tensors alone."""
    count = 2 if name in _TENSORS else 1 if name in _FIRST else 0
    for i, (place, x) in enumerate(zip(places[:count], operands, strict=False)):
        if isinstance(x, NUMBERS):
            raise TypeError(f"{name}(): argument '{place}' (position {i + 1}) must be Tensor, not {type(x).__name__}")
    if not count and not any([isinstance(x, Tensor) for x in operands]):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(operands[0]).__name__}")


def _pair(name: str, primitive: str, made: str, *, floating: bool = False, symbol: str = "") -> None:
    def spelled(input: Any, other: Any) -> Tensor:
        check_tensors(name, input, other)
        return run(primitive, (operand(input, name, "input"), operand(other, name)), made, floating=floating)

    public(name, in_place=True, out=True)(spelled)
    if symbol:
        _symbols(symbol, FUNCTIONS[name], METHODS[name + "_"])


_KNOWN = (Tensor, *NUMBERS, np.number, np.bool_)


def _symbols(symbol: str, function: Any, in_place: Any) -> None:
    METHODS[f"__{symbol}__"] = lambda x, y: function(x, y) if isinstance(y, _KNOWN) else NotImplemented
    METHODS[f"__r{symbol}__"] = lambda x, y: function(y, x) if isinstance(y, _KNOWN) else NotImplemented
    METHODS[f"__i{symbol}__"] = lambda x, y: in_place(x, y) if isinstance(y, _KNOWN) else NotImplemented


for _row in """
atan2           atan2           Atan2        floating  -
arctan2         atan2           Atan2        floating  -
maximum         maximum         Maximum      -         -
minimum         minimum         Minimum      -         -
hypot           hypot           Hypot        -         -
logaddexp       logaddexp       Logaddexp    -         -
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
    _symbols(symbol, spelled, METHODS[name + "_"])


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
    if isinstance(y, Tensor):
        return run("pow", (x, y), "PowBackward1" if isinstance(x, Tensor) else "PowBackward2")
    dtype = result_dtype((x, y))
    if dtype.kind in "biu" and y < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if y == 2 and dtype.kind in "fc":
        return run("square", (x,), "Pow", dtype=dtype)
    return run("pow", (x, y), "Pow")


METHODS["__pow__"] = lambda x, y: pow(x, y) if isinstance(y, _KNOWN) else NotImplemented
METHODS["__rpow__"] = lambda x, y: pow(y, x) if isinstance(y, _KNOWN) else NotImplemented
METHODS["__ipow__"] = lambda x, y: x.pow_(y) if isinstance(y, _KNOWN) else NotImplemented


def composed(name: str, function: Any, made: str, parameters: str, *, floating: bool = True) -> Any:
    """A function of adjoint's, of tensors and numbers that meet in one dtype."""

    def apply(*args: Any, **options: Any) -> Any:
        check_tensors(name, *args)
        tensors = [a for a in args if isinstance(a, _KNOWN)]
        dtype = result_dtype(tensors)
        if floating and dtype.kind in "biu":
            dtype = default_float()
        cast = [a.to(dtype=dtype) if isinstance(a, Tensor) and a._dtype is not dtype else a for a in args]
        return call(function, made, *cast, **options)

    return spelled_as(name, parameters, apply)


def _truths(x: Any) -> bool:
    return x.dtype == np.dtype(bool)  # type: ignore[no-any-return]


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
    public(name, in_place=True, out=True)(composed(name, function, made, parameters, floating=floating))


_TWO = "input: Tensor, other: Tensor"
# of two that are equal the first has the gradient
_composed(
    "fmax", lambda x, y: ad.logical_or(x, y) if _truths(x) else ad.where((x >= y) | ad.isnan(y), x, y), "Fmax", _TWO
)
_composed(
    "fmin", lambda x, y: ad.logical_and(x, y) if _truths(x) else ad.where((x <= y) | ad.isnan(y), x, y), "Fmin", _TWO
)
_composed(
    "heaviside", lambda x, y: ad.astype(ad.heaviside(x, y), y.dtype), "Heaviside", "input: Tensor, values: Tensor"
)
_composed("xlogy", "special.xlogy", "Xlogy", "input, other", floating=True)
_lerp = composed("lerp", lambda x, end, weight: ad.lerp(x, end, weight), "Lerp", "input, end, weight", floating=False)


@public("lerp", in_place=True, out=True)
def lerp(input: Tensor, end: Tensor, weight: Any) -> Any:
    """input + weight * (end - input)"""
    same_types("lerp", input, end)
    return _lerp(input, end, weight)


_THREE = "input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number=1"
for _name, _step in {
    "addcmul": lambda x, a, b, *, value: x + a * b * value if value != 1 else x + a * b,
    "addcdiv": lambda x, a, b, *, value: x + a / b * value if value != 1 else x + a / b,
}.items():
    public(_name, in_place=True, out=True)(numbers_first(composed(_name, _step, _name.capitalize(), _THREE), "value"))


@public("logaddexp2", out=True)
def logaddexp2(input: Tensor, other: Tensor) -> Any:
    return call(lambda x, y: ad.logaddexp(x * _LN2, y * _LN2) / _LN2, "Logaddexp2", input, other)


_LN2 = float(np.log(2.0))


@public("rsub", method=False)
def rsub(input: Any, other: Any, alpha: Any = 1) -> Any:
    check_tensors("rsub", input, other)
    return other - (input if alpha == 1 else input * alpha)


@public("clamp", "clip", in_place=True, out=True)
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The input between two bounds, which are numbers or tensors."""
    check_tensors("clamp", input)
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounds = [b for b in (min, max) if b is not None]
    dtype = result_dtype([input, *bounds])
    x = input if input._dtype is dtype else input.to(dtype=dtype)
    if not any([isinstance(b, Tensor) for b in bounds]):
        return call(lambda a: ad.clip(a, min, max), "ClampBackward1", x)  # type: ignore[no-any-return]
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


@public("where", method=False, out=True)
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    if input is None:
        return FUNCTIONS["nonzero"](condition, as_tuple=True)
    x, y = operand(input, "where", "input"), operand(other, "where")
    dtype = result_dtype((x, y))
    if condition._dtype.kind != "b" and condition._dtype != np.dtype("uint8"):
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}"
        )
    parts = [
        v.to(dtype=dtype) if isinstance(v, Tensor) else beside(condition, np.asarray(number(v, dtype))) for v in (x, y)
    ]
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
    kind = value._dtype.kind if isinstance(value, Tensor) else "c" if isinstance(value, complex) else ""
    if kind == "c" and input._dtype.kind != "c":
        raise RuntimeError(f"value cannot be converted to type {input.dtype.name} without overflow")
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


METHODS["bfloat16"] = lambda self, *, memory_format=None: to(self, dtype=bfloat16)


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
    return to(self, dtype=getattr(dtype, "dtype", dtype))  # of torch.FloatTensor and its like it is the type's


METHODS["type"] = _type
METHODS["type_as"] = lambda self, other: to(self, dtype=tensor_of(other, "type_as")._dtype)
METHODS["cpu"] = lambda self, memory_format=None: to(self, device=devices.CPU)
METHODS["cuda"] = lambda self, device=None, non_blocking=False, memory_format=None: to(
    self, device=devices.on_gpu(device), memory_format=memory_format
)
METHODS["pin_memory"] = lambda self, device=None: self
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
    return call(lambda r, t: ad.cos(t) * r + ad.sin(t) * r * 1j, "Polar", abs, angle)
