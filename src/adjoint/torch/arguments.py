"""How functions of the face are called: names, places and types of arguments, and errors, as PyTorch has them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import numpy as np

from adjoint.torch.calls import into, number_of, off, shares, write
from adjoint.torch.graph import label, maker, marks_of, name_of
from adjoint.torch.operators import FUNCTIONS, METHODS, OPERANDS
from adjoint.torch.refusals import OVERLAP
from adjoint.torch.tensor import Tensor, is_lifted, next_number

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


def same_types(name: str, *tensors: Any) -> None:
    """Raise RuntimeError for tensors of several types, where PyTorch finds none that they meet in."""
    for x in tensors[1:]:
        if x._dtype is not tensors[0]._dtype:
            raise RuntimeError(
                f"{name}: expected tensors to have the same dtype, but got {tensors[0].dtype.class_name} and "
                f"{x.dtype.class_name}"
            )


def one_node(made: str, made_of_tensor: str = "") -> Callable[[F], F]:
    """A decorator of functions whose steps are one node to users."""
    return lambda function: _one_node(function, made, made_of_tensor)


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
OTHER_NAMES = {"axis": "dim", "keepdims": "keepdim", **OPERANDS}
# what PyTorch calls arguments where they are numbers, or lists
OTHER_NAMES |= {
    "self": "input",
    "element": "elements",
    "test_element": "test_elements",
    "train": "training",
    "from": "from_",
}
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


def guarded(function: F) -> F:
    """A function as users call it: arguments also by NumPy's names, and PyTorch's errors for those of wrong types."""
    rename, tensors = _renaming(function), _tensors(function)
    known = inspect.unwrap(function).__annotations__
    optional = {name for name in _parameters(function) if known.get(name) in ("Tensor", "Tensor | None")}
    numbers = {name for name in _parameters(function) if known.get(name) == "Number"}

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if options:
            rename(options)
            for name in options.keys() & optional:
                if options[name] is not None and not isinstance(options[name], Tensor):
                    refuse_others(function, args, options)
            for name in options.keys() & numbers:
                options[name] = number_of(options[name], function.__name__, name)
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

    return called  # type: ignore[return-value]


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
        inside = isinstance(error.obj, Tensor) and str(error.name).startswith("_")  # an error of ours
        if not inside and not isinstance(error.obj, ModuleType):
            given = ", ".join([type(value).__name__ for value in bound.arguments.values()])
            raise TypeError(f"{name}() received an invalid combination of arguments - got ({given})") from error
    return bound if read else None


def tensor_of(value: Any, name: str, place: str = "other") -> Any:
    """The value. Raises TypeError for what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}(): argument '{place}' must be Tensor, not {type(value).__name__}")
    return value


# functions whose out= has the very type of the result, and those that write while they read
_EXACT = frozenset(
    "aminmax complex gather index_select isin log_softmax masked_select scatter_reduce softmax take "
    "diagonal_scatter select_scatter slice_scatter".split()
)
_APART = frozenset("cat gather index_select masked_select take".split())


def _check_places(out: Any, made: Any, operands: Any, exact: bool) -> None:
    """Raise RuntimeError for what a result goes to, if it is of another type, or memory that is read."""
    several = isinstance(made, tuple) and isinstance(out, (tuple, list))
    for o, result in zip(out, made, strict=False) if several else [(out, made)]:
        if not isinstance(o, Tensor) or not isinstance(result, Tensor):
            continue  # which `into` refuses
        if exact and o._dtype is not result._dtype:
            raise RuntimeError(f"Expected out tensor to have dtype {result.dtype.name}, but got {o.dtype.name} instead")
        if any([shares(o, x) for given in operands for x in (given if isinstance(given, (tuple, list)) else (given,))]):
            raise RuntimeError(OVERLAP)


def with_out(function: Any) -> Any:
    """A guarded function that takes `out=`, too, tensors that its results are written to."""
    careful = guarded(function)

    @functools.wraps(function)
    def wrapped(*args: Any, out: Any = None, **options: Any) -> Any:
        made = careful(*args, **options)
        if out is None:
            return made
        name, operands = wrapped.__name__, (*args, *options.values())
        exact = name in _EXACT or name.endswith("_copy") or function.__module__ == "adjoint.torch.linalg"
        if exact or name in _APART:
            _check_places(out, made, operands if name in _APART else (), exact)
        return into(out, made, operands)

    return wrapped
