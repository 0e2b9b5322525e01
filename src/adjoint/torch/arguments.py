"""How functions of the face are called: names, places and types of arguments, and errors, as PyTorch has them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import numpy as np

from adjoint.torch import overriding, unsupported
from adjoint.torch.calls import into, off, shares, write
from adjoint.torch.devices import device
from adjoint.torch.dtypes import (
    DTYPES,
    Size,
    check_cast,
    dtype,
    layout,
    memory_format,
    numpy_dtype,
    of_numpy,
    result_dtype,
)
from adjoint.torch.generators import Generator
from adjoint.torch.graph import label, maker, marks_of, name_of
from adjoint.torch.operators import FUNCTIONS, METHODS, OPERANDS
from adjoint.torch.refusals import OVERLAP, TooLongError, WrongKindError
from adjoint.torch.tensor import Tensor, is_lifted, next_number

F = TypeVar("F", bound=Callable[..., Any])


def public(*names: str, in_place: bool = False, method: bool = True, out: bool = False) -> Callable[[F], F]:
    """Make it a function of the face under these names, and a method; with `in_place` there are `name_`, too."""

    def given(function: F) -> F:
        made = NODES.get(names[0])
        spelled: Any = function if made is None else one_node(*made.split())(function)
        careful = guarded(spelled, names[0])
        several = len(_parameters(function)) > 1
        called = _writing_out(careful) if out else careful
        known: Any = called if out or several else spelled
        for f in (function, spelled, careful, called):
            f.__name__ = f.__qualname__ = names[0]
        for name in names:
            FUNCTIONS[name] = called
            if method:  # which takes no `out`
                METHODS[name] = careful if several or unsupported.codes_of(names[0]) else spelled
            if in_place:
                METHODS[name + "_"] = writing(name + "_", careful)
        return known  # type: ignore[no-any-return]

    return given


def writing(name: str, function: Any) -> Any:
    """The in-place method of a function."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return write(self, function, *args, **options)
        except NotImplementedError:
            _check_cast(self, args)
            raise

    method.__name__ = method.__qualname__ = name
    method.__wrapped__ = function  # type: ignore[attr-defined]
    return method


def _check_cast(x: Tensor, others: tuple[Any, ...]) -> None:
    """Raise PyTorch's first error for operands that would turn a tensor into another type, in place."""
    if not others or not isinstance(others[0], (Tensor, bool, int, float, complex)):
        return
    check_cast(result_dtype((x, others[0])), x._dtype)


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
    "deg2rad": "Deg2Rad", "rad2deg": "Rad2Deg", "rsub": "Rsub", "clamp_min": "ClampMin ClampMinBackward1",
    "clamp_max": "ClampMax ClampMaxBackward1",
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


# modules whose functions have names that are others' elsewhere
_PLACES = {"adjoint.torch.linalg": "linalg.", "adjoint.torch.fft": "fft."}


def guarded(function: F, name: str | None = None) -> F:
    """A function as users call it: arguments also by NumPy's names, and PyTorch's errors for those of wrong types."""
    rename = _renaming(function)
    own = inspect.unwrap(function)
    spelled = _PLACES.get(own.__module__, "") + (name or own.__name__)
    refused = unsupported.codes_of(spelled)
    by_name = {name: classes for name in _parameters(own) if (classes := _classes(own, name))}
    by_place = [by_name.get(name) for name in own.__code__.co_varnames[: own.__code__.co_argcount]]

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if overriding.used and (found := overriding.overridden(called, args, options)) is not NotImplemented:
            return found
        strange = False
        for value, classes in zip(args, by_place, strict=False):
            if classes and value.__class__ not in classes and not (Tensor in classes and isinstance(value, Tensor)):
                strange = True
        if options:
            rename(options)
            for name, value in options.items():
                classes = by_name.get(name)
                if classes and value.__class__ not in classes and not (Tensor in classes and isinstance(value, Tensor)):
                    strange = True
        if strange:
            if (found := overriding.overridden(called, args, options)) is not NotImplemented:
                return found
            if (read := refuse_others(function, args, options)) is not None:
                args, options = read.args, read.kwargs
        if refused:
            operands = (*args, *options.values()) if options else args
            for value in operands:
                if value.__class__ is complex or (isinstance(value, Tensor) and value._dtype.char in refused):
                    unsupported.refuse(spelled, operands)
                    break
        try:
            return function(*args, **options)
        except Exception as error:
            if (found := overriding.overridden(called, args, options)) is not NotImplemented:
                return found
            refuse_others(function, args, options, error)
            raise

    return called  # type: ignore[return-value]


Number: TypeAlias = Any  # in annotations: of these the names say what PyTorch takes
Sizes: TypeAlias = Any
Truth: TypeAlias = Any  # a flag of a function that is written in Python there: any value counts by its truth


def _are_sizes(value: Any) -> bool:
    """Whether it is an integer, or a sequence of some."""
    entries = value if isinstance(value, (tuple, list)) else (value,)
    return all([_is_int(n) or (isinstance(n, Tensor) and not n.ndim and n._dtype.kind in "iu") for n in entries])


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_long(value: Any) -> bool:
    """Whether it is an integer of more than 64 bits, or has one."""
    entries = value if isinstance(value, (tuple, list)) else (value,)
    return any([n.__class__ is int and not -(1 << 63) <= n < 1 << 63 for n in entries])


# of the words in annotations: the classes that surely fit, and what else does
_FITS: dict[str, tuple[frozenset[type], Callable[[Any], bool]]] = {
    "Tensor": (frozenset((Tensor,)), lambda value: isinstance(value, Tensor)),
    "bool": (frozenset((bool,)), lambda value: False),
    "Truth": (frozenset((bool,)), lambda value: True),
    "int": (frozenset((int,)), _is_int),
    "float": (frozenset((float, int)), lambda value: isinstance(value, (int, float, np.number, np.bool_))),
    "Number": (
        frozenset((float, int, bool, complex)),
        lambda value: isinstance(value, (int, float, complex, np.number, np.bool_)),
    ),
    "Sizes": (frozenset((int, tuple, list, Size)), _are_sizes),
    "str": (frozenset((str,)), lambda value: isinstance(value, str)),
    "layout": (frozenset((layout,)), lambda value: False),
    "memory_format": (frozenset((memory_format,)), lambda value: False),
    "dtype": (
        frozenset((dtype, *[type(d.of_numpy) for d in DTYPES.values()])),
        lambda value: (
            isinstance(value, (dtype, np.dtype)) or any([value is kind for kind in (bool, int, float, complex)])
        ),
    ),
    "device": (frozenset((device, str)), lambda value: isinstance(value, (device, str)) or _is_int(value)),
    "Generator": (frozenset((Generator,)), lambda value: isinstance(value, Generator)),
}
# what they are called in messages
_CALLED = {"Sizes": "tuple of ints", "dtype": "torch.dtype", "device": "torch.device", "Generator": "torch.Generator"}
_CALLED |= {name: f"torch.{name}" for name in ("layout", "memory_format")}
# what parameters of these names take in every function
_EVERYWHERE = {
    "alpha": "Number",
    "beta": "Number",
    "device": "device | None",
    "dilation": "Sizes",
    "dim": "Sizes",
    "dtype": "dtype | None",
    "generator": "Generator | None",
    "keepdim": "bool",
    "memory_format": "memory_format | None",
    "non_blocking": "bool",
    "output_padding": "Sizes",
    "padding": "Sizes",
    "pin_memory": "bool | None",
    "requires_grad": "bool | None",
    "stride": "Sizes",
    "unbiased": "bool | None",
}
# what parameters of these names take, where functions look themselves: it says of what an error is
_OF_ERRORS = {
    "correction": "Number | None",
    "dims": "Sizes",
    "fill_value": "Number | Tensor",
    "index": "Tensor",
    "other": "Tensor | Number",
    "physical_layout": "Sizes",
    "shape": "Sizes | dtype",
    "shifts": "Sizes",
    "size": "Sizes",
    "sizes": "Sizes",
    "split_sizes": "Sizes",
    "src": "Tensor | Number | None",
    "strides": "Sizes",
    "value": "Tensor | Number | None",
    "weight": "Tensor | Number | None",
}
# flags of functions that are written in Python there: any value counts by its truth
_TRUTHS = frozenset(
    "antialias enforce_sorted error_if_nonfinite foreach get_infos inplace recompute_scale_factor "
    "return_indices".split()
)


def _words(own: Any, name: str, error: Exception | None = None) -> list[str]:
    """What a parameter of a function without wrappers takes; nothing where anything does.

    An error says that something did not fit.
    """
    if name in _TRUTHS:
        return ["Truth"]
    written = str(own.__annotations__.get(name))
    if written == "object":  # the function looks itself
        return []
    words = written.split(" | ")
    if not set(words) - {"None"} <= _FITS.keys() or words == ["None"]:
        found = _EVERYWHERE.get(name) or (
            None if error is None or isinstance(error, TypeError) else _OF_ERRORS.get(name)
        )
        words = found.split(" | ") if found else []
    return words


def _classes(own: Any, name: str) -> frozenset[type]:
    """The classes of values that surely fit a parameter; none where anything does, or functions look themselves."""
    words = _words(own, name)
    if "str" in words:
        return frozenset()
    optional = {type(None)} if words and _takes_none(own, name, words) else set()
    return frozenset().union(optional, *[_FITS[word][0] for word in words if word != "None"])


def _takes_none(own: Any, name: str, words: list[str]) -> bool:
    return "None" in words or "Sizes" in words or name in _none_by_default(own)


@functools.cache
def _none_by_default(own: Any) -> frozenset[str]:
    """The parameters whose default is None, without the time that a signature takes."""
    places, values = own.__code__.co_varnames[: own.__code__.co_argcount], own.__defaults__ or ()
    by_place = zip(places[len(places) - len(values) :], values, strict=True)
    return frozenset([name for name, value in [*by_place, *(own.__kwdefaults__ or {}).items()] if value is None])


# functions of torch that are written in Python there
_IN_PYTHON = frozenset("norm pca_lowrank split svd_lowrank tensordot unravel_index".split())
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@functools.cache
def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(function)


def refuse_others(
    function: Any, args: tuple[Any, ...], options: dict[str, Any], error: Exception | None = None
) -> inspect.BoundArguments | None:
    """Raise PyTorch's error for arguments of wrong types, such as a list in the place of a tensor, or of sizes.

    Where tensors of one element stand in the place of numbers, which PyTorch reads, the result is the arguments with
    the numbers. A tensor that is tracked is no number: its gradient would be lost. None if nothing is wrong with them.
    """
    name, own = function.__name__, inspect.unwrap(function)
    if isinstance(error, (NotImplementedError, TooLongError)):
        return None
    try:
        bound = _signature(function).bind_partial(*args, **options)
    except TypeError:  # it is of another number of arguments
        return None
    read = False
    for place, (key, value) in enumerate(bound.arguments.items(), 1):
        if bound.signature.parameters[key].kind in _VARIADIC:
            words = ["Sizes"] if key == "given" and error is not None else []
            value = value[0] if words and len(value) == 1 else value  # as one sequence
        else:
            words = _words(own, key, error)
        if not words or (value is None and _takes_none(own, key, words)):
            continue
        if isinstance(value, Tensor) and _is_number(value, words):
            if not is_lifted(value):
                bound.arguments[key], read = value.item(), True
        elif words == ["Truth"]:
            bound.arguments[key], read = bool(value), True
        elif isinstance(value, (bool, np.bool_)) and "float" in words and not {"bool", "int", "Tensor"} & {*words}:
            bound.arguments[key], read = float(value), True
        elif not any([value.__class__ in _FITS[word][0] or _FITS[word][1](value) for word in words if word != "None"]):
            if isinstance(error, ValueError) and "str" in words:
                continue  # it says which words there are
            if key == "reduction":
                raise ValueError(f"{value} is not a valid value for reduction") from None
            wanted = " or ".join([_CALLED.get(word, word) for word in words if word != "None"])
            asked = place == 1 or key in ("target", "per_sample_weights")  # for `size()`; others go on to C++
            wrong_kind = asked and "Tensor" in words and (".nn." in function.__module__ or name in _IN_PYTHON)
            raise (WrongKindError if wrong_kind else TypeError)(
                f"{name}(): argument '{key}' (position {place}) must be {wanted}, not {type(value).__name__}"
            ) from None
        elif error is not None and {"int", "Sizes"} & {*words} and _is_long(value):
            alone = value.__class__ is int and key != "given"
            key = "shape" if key == "given" else key
            raise (ValueError if alone else TypeError)(
                f"{name}(): argument '{key}' (position {place}): Overflow when unpacking long long"
            ) from error
        elif (
            "Sizes" in words
            and error is not None
            and not {"Tensor", "dtype", "str"} & {*words}
            and not _are_sizes(value)
        ):
            raise TypeError(
                f"{name}(): argument '{key}' (position {place}) must be tuple of ints, not {type(value).__name__}"
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
            raise WrongKindError(f"{name}() received an invalid combination of arguments - got ({given})") from error
    return bound if read else None


def _is_number(x: Tensor, words: list[str]) -> bool:
    """Whether a tensor may stand where a number does: it has no axes, is not tracked, and is no real for an integer."""
    if x.ndim == 1 == x.numel() and words == ["Sizes"]:
        return x._dtype.kind in "iu"
    if x.ndim or {"Tensor", "str", "bool"} & set(words) or (x.requires_grad and not is_lifted(x)):
        return False
    if {"float", "Number"} & set(words):
        return x._dtype.kind != "c" or "Number" in words
    return x._dtype.kind in "iu" and not {"int", "Sizes", "Truth"}.isdisjoint(words)


def one_of(name: str, what: str, given: Any, named: Any) -> tuple[Any, ...]:
    """Sizes or axes that are given one by one, as one sequence, or by name. Raises TypeError for none, and for both."""
    if named is not None and given:
        raise TypeError(f"{name}() got multiple values for argument '{what}'")
    if named is None and not given:
        raise TypeError(f'{name}() missing 1 required positional arguments: "{what}"')
    found = (named,) if named is not None else given
    found = tuple(found[0]) if len(found) == 1 and isinstance(found[0], (tuple, list)) else tuple(found)
    if any([n.__class__ is not int for n in found]):  # tensors of one integer stand for it
        many = len(found) > 1
        return tuple([n.item() if isinstance(n, Tensor) and _is_size(n, many) else n for n in found])
    return found


def _is_size(x: Tensor, several: bool) -> bool:
    """Whether a tensor may stand where a size does: it is one integer, along an axis if it is the only size."""
    return x._dtype.kind in "iu" and not is_lifted(x) and (not x.ndim or (x.ndim == 1 == x.numel() and not several))


def tensors_of(values: Any, name: str, at: int = 0) -> Any:
    """The values, a list or tuple of tensors. Raises TypeError for anything else."""
    if isinstance(values, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position {at + 1}) must be tuple of Tensors, not Tensor")
    for i, x in enumerate(values):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument {at}, but got {type(x).__name__}")
    return values


def tensor_of(value: Any, name: str, place: str = "other") -> Any:
    """The value. Raises TypeError for what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}(): argument '{place}' must be Tensor, not {type(value).__name__}")
    return value


# functions whose out= has the very type of the result, those whose out= may be of bytes as well, and those of linalg
# whose out= may be of any type
_EXACT = frozenset(
    "addbmm addmm all amax amin aminmax any baddbmm bitwise_not bmm chain_matmul clamp clamp_max clamp_min complex "
    "conj_physical cross diag diagonal_scatter dot float_power frac gather heaviside histc index_add index_reduce "
    "index_select inner inverse isin isneginf isposinf log_softmax logcumsumexp lu_solve masked_select matmul mm msort "
    "mv nan_to_num nanquantile nonzero_static norm quantile renorm round scatter scatter_add scatter_reduce "
    "polar select_scatter sgn signbit slice_scatter softmax take take_along_dim tensordot tril triu vdot where".split()
)
_OR_BYTES = frozenset(("all", "any"))
_ANY_TYPE = frozenset("cond householder_product matrix_power matrix_rank pinv tensorinv tensorsolve".split())
_JOINS = frozenset("cat column_stack dstack hstack row_stack stack vstack".split())
_REAL = frozenset("hfft hfft2 hfftn irfft irfft2 irfftn".split())
# reductions that are of one axis where they have an out=
_OF_AN_AXIS = frozenset("median nanmedian prod sum".split())
# functions whose places go to integers alone; of several results the last are places
_OF_PLACES = frozenset(
    "argmax argmin bucketize cummax cummin kthvalue max median min mode nanmedian nonzero searchsorted sort "
    "topk".split()
)
_APART = frozenset("cat gather index_select masked_select take".split())


# reductions and running totals that are computed in the type of their out=
_IN_TYPE_OF_OUT = frozenset("cumprod cumsum mean nanmean nansum prod sum".split())
_CPP = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int",
    "int64": "long int", "float16": "c10::Half", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def in_cpp(kind: np.dtype[Any]) -> str:
    """A type as PyTorch's errors about `out=` call it."""
    return _CPP.get(kind.name, kind.name)


def _typed_as(name: str, out: Tensor, input: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a reduction that is computed in the type of its `out=`. Raises RuntimeError for a `dtype` that is
    another one."""
    asked = options.get("dtype")
    if asked is not None and (wanted := numpy_dtype(asked)) is not out._dtype:
        if name == "nansum":
            here, there = out.dtype.class_name, of_numpy(wanted).class_name
            raise RuntimeError(f"nansum: provided dtype must match dtype of result. Got {here} and {there}.")
        raise RuntimeError(f"Expected out tensor to have dtype {in_cpp(wanted)}, but got {in_cpp(out._dtype)} instead")
    if name[:3] == "nan" and out._dtype.kind in "biu":
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{out.dtype.class_name}'")
    if "mean" in name and (out._dtype.kind not in "fc" or (isinstance(input, Tensor) and input._dtype.kind in "biu")):
        return options
    return {**options, "dtype": out.dtype}


def check_places(out: Any, made: Any, operands: Any, *, exact: bool) -> None:
    """Raise RuntimeError for what a result goes to, if it is of another type, or memory that is read."""
    several = isinstance(made, tuple) and isinstance(out, (tuple, list))
    for o, result in zip(out, made, strict=False) if several else [(out, made)]:
        if not isinstance(o, Tensor) or not isinstance(result, Tensor):
            continue  # which `into` refuses
        if exact and o._dtype is not result._dtype:
            raise RuntimeError(
                f"Expected out tensor to have dtype {in_cpp(result._dtype)}, but got {in_cpp(o._dtype)} instead"
            )
        if any([shares(o, x) for given in operands for x in (given if isinstance(given, (tuple, list)) else (given,))]):
            raise RuntimeError(OVERLAP)


def with_out(function: Any) -> Any:
    """A guarded function that takes `out=`, too, tensors that its results are written to."""
    return _writing_out(guarded(function))


def _writing_out(careful: Any) -> Any:
    @functools.wraps(careful)
    def wrapped(*args: Any, out: Any = None, **options: Any) -> Any:
        if out is not None and not isinstance(out, (Tensor, tuple, list)):
            raise TypeError(f"{wrapped.__name__}(): argument 'out' must be Tensor, not {type(out).__name__}")
        name = wrapped.__name__
        for i, x in enumerate(out if isinstance(out, (tuple, list)) else ()):
            if not isinstance(x, Tensor):
                raise TypeError(f"{name}(): expected Tensor as element {i} in argument 'out', not {type(x).__name__}")
        if out is not None and name in _OF_AN_AXIS and len(args) + len(options.keys() - {"dtype", "keepdim"}) < 2:
            raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
        if isinstance(out, Tensor) and name in _IN_TYPE_OF_OUT:
            options = _typed_as(name, out, args[0] if args else None, options)
        made = careful(*args, **options)
        if out is None:
            return made
        operands = (*args, *options.values())
        exact = name in _EXACT or name.endswith("_copy") or careful.__module__ == "adjoint.torch.linalg"
        exact = (exact and name not in _ANY_TYPE) or (name in _OF_PLACES and isinstance(made, tuple))
        if isinstance(out, Tensor) and isinstance(made, Tensor):
            kinds = made._dtype.kind + out._dtype.kind
            if name in _OR_BYTES and out._dtype == np.dtype("uint8"):
                exact = False
            elif name in _JOINS and kinds in ("fi", "fu", "cf", "ci", "cu"):
                raise TypeError(
                    f"torch.cat(): input types can't be cast to the desired output type {out.dtype.class_name}"
                )
            elif name in _REAL and kinds == "fc":
                raise RuntimeError(f"{name} expects a floating point output tensor, but got {out.dtype.class_name}")
        if name in _OF_PLACES:
            o, places = out, made
            if isinstance(made, tuple) and isinstance(out, (tuple, list)) and len(out) == len(made):
                o, places = out[-1], made[-1]
            if isinstance(places, Tensor) and places._dtype == np.dtype("int64"):
                check_places(o, places, (), exact=True)
        if exact or name in _APART:
            check_places(out, made, operands if name in _APART else (), exact=exact)
        return into(out, made, operands)

    overriding.public[careful] = wrapped
    return wrapped
