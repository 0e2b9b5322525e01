"""What functions read their arguments with: each gives the argument in the form that is used, or raises a typed error.

`name` is the function that users called, and `what` the argument, for the message. Here is what one value has to be;
what trees of values and the functions that a transform runs have to be is in `transforms/arguments.py`.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Backend, over_leaf
from adjoint.counterparts import PARAMETERS, counterpart
from adjoint.devices import current_level, default_device, leaf_of, libraries_imported
from adjoint.devices import device as find_device
from adjoint.dtypes import DType
from adjoint.operands import adapted, available_dtype, cast, concrete_values, fitting, is_weak, of_later, operand
from adjoint.primitives import Shape, real_dtype
from adjoint.primitives.sizes import stands
from adjoint.tensor import Axis, Number, Scalar, Tensor, wrap

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Sizes = int | Sequence[int]
AXES = 64  # that an array of NumPy's has at most
ELEMENTS = 2**59  # of sixteen bytes each are more than a machine has addresses for
_ALL = [tuple(range(ndim)) for ndim in range(AXES + 1)]
_MANY = 1_000_000  # numbers in a list of sizes, axes or places: nobody means more


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether it is one of Python's or NumPy's integers; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def is_number(value: Any) -> TypeGuard[float]:
    """Whether it is one of Python's or NumPy's real numbers; True and False are none."""
    return is_integer(value) or isinstance(value, (float, np.floating))


def is_array(value: Any) -> TypeGuard[Any]:
    """Whether it is a tensor, or an array or number of NumPy's, of whatever dtype."""
    return isinstance(value, (Tensor, np.ndarray, np.generic))


def is_numeric(value: Any) -> TypeGuard[Any]:
    """Whether it is an array of numbers or booleans: NumPy has others too."""
    return is_array(value) and dtypes.of_numbers(value.dtype, "biu" + dtypes.INEXACT)


def is_value(value: Any) -> bool:
    """Whether it is an array of numbers or booleans, or one of these."""
    return is_numeric(value) or isinstance(value, Scalar)


def kind_of(value: Any) -> str:
    """What it is, for a message."""
    return f"an array of {value.dtype}" if is_array(value) else type(value).__name__


def as_integer(value: Any, name: str, what: str, least: int | None = None) -> int:
    """One integer.

    Raises ArgumentTypeError for anything else, ArgumentError for one below the least, 0 or 1, RangeError for one of
    hundreds of digits.
    """
    if not is_integer(value):
        raise errors.ArgumentTypeError(f"{name}: {what} is an integer, received {errors.shown(value)}")
    if least is not None and value < least:
        kind = "a positive" if least else "a non-negative"
        raise errors.ArgumentError(f"{name}: {what} is {kind} integer, received {errors.shown(value)}")
    return _short(_exact(value), name, what)


def as_layers(value: Any, name: str) -> int:
    """How many layers a module stacks. Raises as `as_integer`, and ArgumentError for more than 10 000."""
    layers = as_integer(value, name, "num_layers", 1)
    if layers > 10_000:
        raise errors.ArgumentError(f"{name}: num_layers is at most 10000, received {errors.shown(value)}")
    return layers


def _exact(value: Any) -> int:
    """Python's integer; a size that ad.compile records stays what it is."""
    return value if value.__class__ is int else int(value)


def _short(value: int, name: str, what: str) -> int:
    """The integer; raises RangeError for one that Python would not write out in a message."""
    if not -ELEMENTS < value < ELEMENTS and value.bit_length() > 1000:
        raise errors.RangeError(f"{name}: {what} is too large, an {errors.shown(value)[1:-1]}; pass a smaller integer")
    return value


def items(value: Any) -> tuple[Any, ...] | None:
    """What is in a sequence; None for what is none, or is no end of one."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__") or not getattr(value, "ndim", 1):
        return None
    if is_array(value) and value.shape[0] > _MANY:
        return None
    try:
        found = tuple(itertools.islice(value, _MANY + 1))
    except TypeError:  # of a class, say
        return None
    return found if len(found) <= _MANY else None


def integers(value: Any, name: str, what: str) -> tuple[int, ...]:
    """Integers: one, or a sequence of them; raises ArgumentTypeError for other types, and as `as_integer`."""
    found = (value,) if isinstance(value, (int, np.integer)) else items(value)
    if found is None or not all(is_integer(n) for n in found):
        raise errors.ArgumentTypeError(f"{name}: {what} are integers; received {errors.shown(value)}")
    return tuple([_short(_exact(n), name, what) for n in found])


def as_number(value: Any, name: str, what: str) -> Any:
    """A real number, NumPy's made Python's.

    Raises ArgumentTypeError for anything else, RangeError for an integer that no float is near to.
    """
    if not is_number(value):
        hint = "; x.detach().item() is its value" if isinstance(value, Tensor) and value.size == 1 else ""
        raise errors.ArgumentTypeError(f"{name}: {what} is a number, received {errors.shown(value)}{hint}")
    return _as_python(value, name, what)


def _as_python(value: Any, name: str, what: str) -> Any:
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise errors.RangeError(f"{name}: {what} is beyond all floats, received {errors.shown(value)}")
    if isinstance(value, np.generic):
        return float(value) if isinstance(value, np.floating) else int(value)
    return value


_LARGEST = int(np.finfo(np.float64).max)


def as_positive(value: Any, name: str, what: str, *, zero: bool = False) -> Any:
    """A number above zero, or also zero. Raises ArgumentTypeError for no number, ArgumentError for others and nan."""
    known = is_number(value)
    if known and (value >= 0 if zero else value > 0):
        return _as_python(value, name, what)
    wanted = "a number of zero or more" if zero else "a positive number"
    error = errors.ArgumentError if known else errors.ArgumentTypeError
    raise error(f"{name}: {what} is {wanted}, received {errors.shown(value)}")


def as_flag(value: Any, name: str, what: str = "keepdims") -> bool:
    """True or False. Raises ArgumentTypeError for what is neither."""
    if value.__class__ is not bool and not isinstance(value, (int, np.bool_)):
        raise errors.ArgumentTypeError(f"{name}: {what} is True or False, received {errors.shown(value)}")
    return bool(value)


def as_probability(value: Any, name: str, what: str = "p") -> Any:
    """A number from 0 to 1. Raises as `as_number`, and ArgumentError for any other."""
    value = as_number(value, name, what)
    if not 0 <= value <= 1:
        raise errors.ArgumentError(f"{name}: {what} is a probability, received {errors.shown(value)}")
    return value


def as_choice(value: Any, name: str, what: str, known: Sequence[str | None]) -> Any:
    """One of some words, or None among them; raises ArgumentError, which lists them, for anything else."""
    if not isinstance(value, (str, type(None))) or value not in known:
        *others, last = map(repr, known)
        listed = f"{', '.join(others)} or {last}" if others else last
        raise errors.ArgumentError(f"{name}: {what} is {listed}, received {errors.shown(value)}")
    return value


def check_callable(name: str, f: Any, what: str | None = None) -> None:
    """Raises ArgumentTypeError for what is no function."""
    if not callable(f):
        wanted = "expected a function" if what is None else f"{what} is a function"
        raise errors.ArgumentTypeError(f"{name}: {wanted}, received {errors.shown(f)}")


def called(name: str, form: str, f: Callable[..., T], /, *args: Any) -> T:
    """What a user's function gives; raises ArgumentTypeError, which shows how it is called, where it takes others."""
    try:
        return f(*args)
    except TypeError as error:
        if takes(f, args):
            raise
        raise errors.ArgumentTypeError(f"{name}: a function that is called as {form}: {error}") from None


def takes(f: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any] | None = None) -> bool:
    """Whether a function can be called with so many arguments, and options of these names; yes if it does not say."""
    try:
        inspect.signature(f).bind(*args, **(options or {}))
    except TypeError:
        return False
    except ValueError:  # of compiled functions that do not say
        pass
    return True


def check_tensor(name: str, x: Any) -> None:
    """Raises ArgumentTypeError for what is no tensor."""
    if not isinstance(x, Tensor):
        raise errors.ArgumentTypeError(f"{name}: expected a tensor, received {errors.shown(x)}")


def as_shape(shape: Any, name: str = "shape") -> Shape:
    """A tuple of sizes, from an int or a sequence of them.

    Raises ArgumentTypeError for other types, ShapeError for negative sizes, and for more axes or elements than an
    array has.
    """
    sizes = integers(shape, name, "sizes")
    if any(n < 0 for n in sizes):
        raise errors.ShapeError(f"{name}: sizes are not negative; received {errors.shown(shape)}")
    return check_shape(sizes, name)


def check_shape(shape: Shape, name: str) -> Shape:
    """The shape of a result; raises ShapeError for more axes or elements than an array has."""
    if len(shape) > AXES:
        raise errors.ShapeError(f"{name}: an array has at most {AXES} axes; received {len(shape)} sizes")
    if math.prod([n or 1 for n in shape]) > ELEMENTS:
        raise errors.ShapeError(f"{name}: an array has at most 2**59 elements; the shape is {errors.shown(shape)}")
    return shape


def as_size(value: Any, name: str, what: str) -> int:
    """The size of one axis. Raises as `as_integer`, ShapeError below 0, and for more elements than an array has."""
    size = as_integer(value, name, what)
    if size < 0:
        raise errors.ShapeError(f"{name}: sizes are not negative; {what} is {size}")
    if size > ELEMENTS:
        raise errors.ShapeError(f"{name}: an array has at most 2**59 elements; {what} is {errors.shown(size)}")
    return size


def computed(name: str, make: Callable[..., T], /, *args: Any, **options: Any) -> T:
    """What NumPy makes of arguments that were checked; raises OutOfMemoryError where there is not enough memory."""
    try:
        return make(*args, **options)
    except errors.AdjointError:
        raise
    except MemoryError as error:
        raise errors.OutOfMemoryError(f"{name}: {error}; ask for fewer elements") from None


def sizes(value: Any, axes: int, name: str, what: str, least: int) -> tuple[int, ...]:
    """A number for each of so many axes, from one for all or a sequence; raises as `as_size`."""
    if value.__class__ is int and value >= least:
        return (as_size(value, name, what),) * axes
    given = (value,) * axes if isinstance(value, (int, np.integer)) else items(value) or ()
    if len(given) != axes or not all(is_integer(n) and n >= least for n in given):
        several = f"an integer of at least {least}" + (f" or {axes} of them" if axes > 1 else "")
        raise errors.ArgumentError(f"{name}: {what} is {several}, received {errors.shown(value)}")
    return tuple([as_size(n, name, what) for n in given])


def positive(value: Any, name: str, what: str) -> int:
    """One integer from 1."""
    return sizes(value, 1, name, what, 1)[0]


def as_axis(axis: Any, ndim: int, name: str) -> int:
    """One axis, counted from the front. Raises AxisError where the tensor has no such axis."""
    if axis.__class__ is not int and not is_integer(axis):
        raise errors.ArgumentTypeError(f"{name}: an axis is an integer, received {errors.shown(axis)}")
    if not -ndim <= axis < ndim:
        raise errors.AxisError(f"{name}: axis {errors.shown(axis)} is out of range for a tensor of {ndim} axes")
    return int(axis) % ndim if ndim else 0


def as_axes(axis: Axis, ndim: int, name: str) -> tuple[int, ...]:
    """All axes for None, else the given ones, counted from the front and in order."""
    if axis is None:
        return _ALL[ndim]
    if isinstance(axis, (int, np.integer)):
        return (as_axis(axis, ndim, name),)
    return tuple(sorted(axes_in_order(axis, ndim, name)))


def axes_in_order(axis: Axis, ndim: int, name: str) -> tuple[int, ...]:
    """All axes for None, else the given ones in their order, counted from the front."""
    if axis is None:
        return _ALL[ndim]
    found = tuple([as_axis(i, ndim, name) for i in integers(axis, name, "axes")])
    if len(set(found)) < len(found):
        raise errors.AxisError(f"{name}: axis {errors.shown(axis)} names an axis twice")
    return found


def as_constant(value: Any, dtype: DType, name: str) -> Any:
    """One number to fill a tensor of the dtype with, as a Python scalar.

    Raises ArgumentTypeError for what is no single number, DtypeError and RangeError for what the dtype does not hold,
    TrackedError for a tensor whose gradient would be lost.
    """
    if isinstance(value, Tensor) and value.device.tracked(value._array):
        raise errors.TrackedError(
            f"{name}: a tracked tensor of shape {value.shape} in the place of a number would lose its gradient "
            "silently; pass x.detach() for its value, or do the arithmetic with the tensor that comes out"
        )
    if isinstance(value, (Tensor, np.ndarray, np.generic)) and value.size == 1:
        values = concrete_values(value, name) if isinstance(value, Tensor) else value
        value = (values if values.shape == value.shape else value).item()  # of a batch the tensor's, which raises
    if not isinstance(value, (int, float, complex)):
        raise errors.ArgumentTypeError(f"{name}: expected one number, received {errors.shown(value)}")
    if isinstance(value, complex) and dtype.kind not in "cb":
        raise errors.DtypeError(f"{name}: the complex number {value} does not fit in {dtype}; take .real first")
    return fitting(value, dtype, name)


def values_of(
    values: Any, dtype: Any, name: str, place: Backend | None = None, wide: bool = False
) -> np.ndarray[Any, Any]:
    """A NumPy array of Python's values; raises ArgumentError for a list of tensors."""
    if isinstance(dtypes.first_value(values), Tensor):
        raise errors.ArgumentError(
            f"{name}: a list of tensors is joined by ad.asarray, ad.stack or ad.concat, differentiably"
        )
    return dtypes.values_of(values, dtype, name, place, wide)


def as_drawn_dtype(dtype: Any, name: str, place: Backend) -> DType:
    """A real floating dtype, for None the one that random numbers are drawn in; raises DtypeError for others."""
    return place.leaf.widest(dtypes.drawn_dtype()) if dtype is None else dtypes.as_real(dtype, name)


def as_device(device: Any) -> Backend:
    """The backend that is meant, the default device for None; raises DeviceError for what names none."""
    return default_device() if device is None else find_device(device)


def as_tensor(x: Any, name: str, *beside: Any) -> Tensor[Any]:
    """A function's argument as a tensor: tensors as they are, values copied to the default device.

    `beside` are the function's other arguments: where there are tensors among them, values are copied to the device of
    the first one. Else an array of an optional library is a constant on that library's leaf. Python's floats are as
    precise as what is beside them.
    """
    if isinstance(x, Tensor):
        return adapted([x], name)[0] if x.__class__ is Number else x
    wide = any(map(dtypes.is_wide, beside))
    for like in beside:
        if isinstance(like, Tensor):
            return operand(x, like, name, wide)
    if isinstance(x, (int, float, complex, np.ndarray, np.generic, list, tuple)):
        place = default_device()
        if stands(x):
            return of_later(x, place, wide)
        return wrap(place.from_numpy(values_of(x, None, name, place, wide), copy=True), place)
    leaf = leaf_of(x) if libraries_imported() else None
    if leaf is not None:
        place = default_device()
        if place.leaf is not leaf:
            place = over_leaf(place, leaf) if current_level() is None else leaf
        return wrap(place.from_native(x), place)
    if dtypes.is_table(x):
        return as_tensor(x.to_numpy(), name)
    raise errors.DtypeError(
        f"{name}: expected a tensor or numbers, received {errors.shown(x)} of type {type(x).__name__}"
    )


def _with_arrays(xs: Sequence[Any]) -> list[Tensor[Any]] | None:
    """Tensors, and arrays of NumPy's beside the first of them if these are of its floating dtype, too; else None."""
    for like in xs:
        if like.__class__ is Tensor:
            break
    else:
        return None
    dtype, device = like._dtype, like._device
    if dtype.kind not in "fc":
        return None
    for x in xs:
        if (x._dtype if x.__class__ is Tensor else x.dtype if x.__class__ is np.ndarray else None) is not dtype:
            return None
    return [x if x.__class__ is Tensor else wrap(device.from_numpy(x, copy=True), device, dtype) for x in xs]


def as_tensors(xs: Sequence[Any], name: str, *beside: Any) -> list[Tensor[Any]]:
    """Arguments that go together as tensors of one dtype, where the tensors are; Python's numbers adapt to others.

    Other arguments `beside` them say where that is, too.
    """
    dtype = xs[0]._dtype if xs[0].__class__ is Tensor else None
    if dtype is not None and all([x.__class__ is Tensor and x._dtype is dtype for x in xs]):  # mostly they fit
        return list(xs)
    if (found := _with_arrays(xs)) is not None:
        return found
    if any([x.__class__ is Number for x in xs]):
        xs = adapted(xs, name)
    first = next((x for x in (*xs, *beside) if isinstance(x, Tensor)), None)
    wide = any([dtypes.is_wide(x) for x in xs])
    if first is not None and not any([is_weak(x) for x in xs]):
        given = [x if x.__class__ is Tensor else operand(x, first, name, wide) for x in xs]
        dtype = given[0].dtype
        for tensor in given[1:]:
            dtype = dtypes.promote(dtype, tensor.dtype)
        return [cast(x, dtype) for x in given]
    alone = all([is_weak(x) for x in xs])
    tensors: list[Any] = [
        x if is_weak(x) and not alone else as_tensor(x, name, *xs) if first is None else operand(x, first, name, wide)
        for x in xs
    ]
    given = [x for x in tensors if isinstance(x, Tensor)]
    dtype = given[0].dtype
    for tensor in given[1:]:
        dtype = dtypes.promote(dtype, tensor.dtype)
    for x in tensors:
        if not isinstance(x, Tensor):
            dtype = dtypes.promote_scalar(dtype, x)
    dtype = available_dtype(dtype, given)
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            number = fitting(x, dtype, name)
            if stands(number):
                tensors[i] = of_later(number, given[0].device, dtype=dtype)
            else:
                tensors[i] = operand(np.asarray(number, dtype), given[0], name)
    return [cast(x, dtype) for x in tensors]


def inexact(x: Any, name: str, *beside: Any) -> Tensor[Any]:
    """An argument as a tensor of a floating dtype: integers and booleans get the default one."""
    tensor = as_tensor(x, name, *beside)
    return tensor if tensor.dtype.kind in dtypes.INEXACT else cast(tensor, dtypes.default_on(tensor.device))


def as_wide(x: Tensor[Any]) -> Tensor[Any]:
    """Booleans and integers of small types as int64, for what grows beyond them; uint64 and all else as it is."""
    return cast(x, x.device.leaf.widest(dtypes.int64)) if x.dtype.kind in "biu" and x.dtype != np.uint64 else x


def as_floating(values: Sequence[Any], name: str) -> list[Tensor[Any]]:
    """Arguments that go together as tensors of one floating dtype."""
    return [inexact(x, name) for x in as_tensors(values, name)]


def real(value: Any, name: str, *beside: Any) -> Tensor[Any]:
    """A tensor of a real floating dtype; integers get the default one. Raises DtypeError for complex numbers."""
    x = value if value.__class__ is Tensor else as_tensor(value, name, *beside)
    if x.dtype.kind in dtypes.FLOATING:
        return x
    if x.dtype.kind == "c":
        raise errors.DtypeError(f"{name}: expected real values, received {x.dtype}; take abs, real or imag")
    return inexact(x, name)


def as_ordered(value: Any, name: str, *beside: Any) -> Tensor[Any]:
    """An argument as a tensor whose elements have an order; raises DtypeError for complex numbers."""
    x = as_tensor(value, name, *beside)
    if x.dtype.kind == "c":
        raise errors.DtypeError(f"{name}: complex numbers have no order, received {x.dtype}; take abs, real or imag")
    return x


def own_values(x: Tensor[Any], name: str, way: str = "") -> np.ndarray[Any, Any]:
    """The values that the shape of a result depends on; raises ShapeError for a batch, whose examples differ.

    `way` is what the caller can say instead.
    """
    way = way or "the shape of the result depends on them; compute it before, or choose with ad.where, which keeps it"
    values = concrete_values(x, name, way)
    if values.shape != x.shape:
        raise errors.ShapeError(
            f"{name}: the shape depends on the values, and the examples of a batch would differ in shape"
        )
    return values


def images(name: str, axes: int, given: Any, *beside: Any) -> Tensor[Any]:
    """A real tensor of so many axes behind batch and channels, or behind channels alone."""
    x = real(given, name, *beside)
    if x.ndim not in (axes + 1, axes + 2):
        what = ", ".join(("depth", "height", "width")[3 - axes :]) if axes > 1 else "length"
        raise errors.ShapeError(f"{name}: expected (batch, channels, {what}) or (channels, {what}), received {x.shape}")
    return x


def matrices_of(value: Any, name: str, *beside: Any) -> Tensor[Any]:
    """An argument as a stack of matrices of a floating dtype; raises ShapeError for fewer than two axes."""
    x = inexact(value, name, *beside)
    if x.ndim < 2:
        raise errors.ShapeError(f"{name}: expected matrices, shape (..., m, n); received {x.shape}")
    return x


def square(value: Any, name: str, read: Callable[[Any, str], Tensor[Any]] = inexact) -> Tensor[Any]:
    """An argument as a stack of square matrices; raises NotSquareError for others."""
    x = read(value, name)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise errors.NotSquareError(f"{name}: expected square matrices, shape (..., n, n); received {x.shape}")
    return x


def relative(rtol: Any, x: Tensor[Any], name: str) -> Any:
    """The tolerance for singular values of x: a number, or a tensor of shape (..., 1, 1)."""
    dtype = real_dtype(x.dtype)
    if rtol is None:
        return max(x.shape[-2:]) * float(dtypes.finfo(dtype).eps)
    if isinstance(rtol, (Tensor, np.ndarray)):
        return cast(operand(rtol, x, name), dtype)[..., None, None]
    return as_number(rtol, name, "rtol")


def as_parameter(value: Any, name: str, what: str) -> Any:
    """A parameter of a distribution: a number, a tensor, or values, all real; else raises ArgumentTypeError."""
    if isinstance(value, (list, tuple)):
        value = dtypes.values_of(value, None, name)
    if is_number(value):
        return _as_python(value, name, what) if value.__class__ is int else value
    if not isinstance(value, (np.ndarray, Tensor)) or not dtypes.of_numbers(value.dtype, "biu" + dtypes.FLOATING):
        raise errors.ArgumentTypeError(f"{name}: {what} is a number or a tensor, received {errors.shown(value)}")
    return value


# --- keywords that functions do not have ---------------------------------------------------------

# Python reports those before a function runs, and cannot say what is meant. So a function that has `dim=` in PyTorch
# takes `**unknown: Never`, and looks at it itself: all that could stand around the function costs more than these 1 to
# 2 % of a sum of three numbers.


def explained(function: F) -> F:
    """A function whose signature does not show `**unknown`, which is there for `keyword_error` alone."""
    signature = inspect.signature(function)
    shown = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    return function


def keyword_error(function: Callable[..., Any], unknown: Mapping[str, Any]) -> errors.ArgumentTypeError:
    """The error for a keyword that a function does not have: the parameter that is meant, or all that there are.

    >>> import adjoint as ad
    >>> ad.sum(ad.ones((2, 3)), dim=0)
    Traceback (most recent call last):
    adjoint.errors.ArgumentTypeError: sum: no parameter is called dim; write axis=0
    """
    import difflib

    (name, value), *_ = unknown.items()
    known = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.POSITIONAL_ONLY]
    meant = [word for word in PARAMETERS.get(name, ()) if word in known]
    if meant := meant or difflib.get_close_matches(name, known, 1, 0.7):
        hint = f"; write {meant[0]}={errors.shown(value)}"
    else:
        hint = counterpart("parameters", name) or f"; its parameters are {', '.join(known)}"
    return errors.ArgumentTypeError(f"{function.__name__}: no parameter is called {errors.said(name)}{hint}")
