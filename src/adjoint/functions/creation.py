"""Making tensors: from values, from other libraries' arrays, and from a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never, TypeVar, overload

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Backend, Decorator, over_leaf
from adjoint.backends.numpy import NumPy
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import device as find_device
from adjoint.devices import leaf_of
from adjoint.dtypes import DType
from adjoint.functions.arguments import (
    as_constant,
    as_device,
    as_flag,
    as_integer,
    as_shape,
    as_tensor,
    as_tensors,
    check_tensor,
    computed,
    explained,
    keyword_error,
    values_of,
)
from adjoint.operands import (
    adapted,
    cast,
    described,
    fail,
    followed_by,
    has_none_yet,
    in_dtype,
    is_concrete,
    of_later,
    refuse_fractions,
    run,
)
from adjoint.primitives import Shape
from adjoint.primitives.sizes import LATER, stands
from adjoint.tensor import Number, Operand, Tensor, refuse_ended, same, wrap

D = TypeVar("D", bound=Backend)
Default = Tensor[Autodiff[NumPy]]
ShapeLike = int | Sequence[int]


def _joined(values: Sequence[Any]) -> Tensor[Any]:
    """The tensor of nested lists of tensors and numbers, differentiable in each."""
    shape: tuple[int, ...] = ()
    leaves: list[Any] = list(values)
    while True:
        nested = [isinstance(x, (list, tuple)) for x in leaves]
        if not any(nested):
            break
        if not all(nested) or len({len(x) for x in leaves}) > 1:
            raise errors.ShapeError("asarray: the nested lists do not form an array")
        shape += (len(leaves[0]),)
        leaves = [x for row in leaves for x in row]
    tensors = as_tensors(leaves, "asarray")
    if len({x.shape for x in tensors}) > 1:
        raise errors.ShapeError("asarray: the tensors in the nested lists differ in shape; all must be equal")
    joined = run("concat", [run("expand_dims", (x,), axis=(0,)) for x in tensors], axis=0)
    return run("reshape", (joined,), shape=(len(values), *shape, *tensors[0].shape))  # type: ignore[no-any-return]


@overload
def tensor(values: Any, dtype: Any = None, *, device: None = None) -> Default: ...
@overload
def tensor(values: Any, dtype: Any = None, *, device: D) -> Tensor[D]: ...
@overload
def tensor(values: Any, dtype: Any = None, *, device: str) -> Tensor[Any]: ...
@explained
def tensor(values: Any, dtype: Any = None, *, device: Any = None, **unknown: Never) -> Tensor[Any]:
    """A tensor with a copy of the values.

    A number is a scalar, of shape (), and a list of n such values has n in front of their shape.

    Parameters
    ----------
    values
        Numbers, nested lists of numbers, or an array. A tensor that nothing tracks is copied; of one that is tracked
        `ad.asarray(x)` and `x.copy()` keep the derivative.
    dtype
        Python's floats and complex numbers get the default, `ad.default_dtype()`, ints int64; NumPy's numbers and
        arrays keep theirs, also in lists.
    device
        A backend or its name; the default device if None.

    Raises
    ------
    ShapeError, DtypeError, DeviceError
        Ragged lists; values that are no numbers; an unknown device.
    TrackedError
        A tensor that `require_grad` or a transform tracks: `ad.stop_gradient(x)` is a constant with its values.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.tensor([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    """
    if unknown:
        raise keyword_error(tensor, unknown)
    if isinstance(values, Tensor):
        if followed_by(values) is not None or values.device.tracked(values._array):
            raise errors.TrackedError(
                f"tensor: a copy of the values of {described(values)} would be a constant; ad.asarray(x) and x.copy() "
                "keep its derivative, and ad.stop_gradient(x) is the constant on purpose"
            )
        if values.__class__ is Number and dtype is None:
            values = adapted([values], "tensor")[0]
        device = values.device if device is None else device
        array = values.device.leaf_array(values._array)
        lazy = not is_concrete(values) and as_device(device).leaf is values.device.leaf and array.shape == values.shape
        values = array if lazy else values.numpy()
    place = as_device(device)
    found = _of_library(values, dtype, place)
    if found is not None:
        return wrap(place.copied(found._array), place)
    if stands(values):
        return of_later(values, place, dtype=None if dtype is None else dtypes.as_dtype(dtype))
    return wrap(place.from_numpy(values_of(values, dtype, "tensor", place), copy=True), place)


@overload
def asarray(  # pyright: ignore[reportOverlappingOverload]  # a tensor is among Any, and keeps its backend
    values: Tensor[D], /, dtype: Any = None, *, device: None = None, copy: bool | None = None
) -> Tensor[D]: ...
@overload
def asarray(values: Any, /, dtype: Any = None, *, device: None = None, copy: bool | None = None) -> Default: ...
@overload
def asarray(values: Any, /, dtype: Any = None, *, device: D, copy: bool | None = None) -> Tensor[D]: ...
@overload
def asarray(values: Any, /, dtype: Any = None, *, device: str, copy: bool | None = None) -> Tensor[Any]: ...
@explained
def asarray(
    values: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None, **unknown: Never
) -> Tensor[Any]:
    """A tensor with these values, sharing memory where it can: then do not write to the array.

    A tensor is lifted into `device` where that decorates the tensor's own backend, differentiably
    for the levels it already has. Nested lists may hold tensors, of one shape, which are joined differentiably.
    Arguments and errors are those of `tensor`; `copy=True` never shares, `copy=False` raises ArgumentError
    where values must be copied.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.asarray(np.arange(3.0)).dtype
    dtype('float64')
    """
    if unknown:
        raise keyword_error(asarray, unknown)
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    copy = None if copy is None else as_flag(copy, "asarray", "copy")
    if copy is not False and dtypes.holds(values, (Tensor, *LATER)):
        values, copy = _joined(values), None
    if isinstance(values, Tensor):
        refuse_ended(values, "asarray")
        if values.__class__ is Number:
            values = adapted([values], "asarray")[0] if wanted is None else cast(same(values), wanted)
        place = values.device if device is None else find_device(device)
        if copy is False and not (_is(wanted, values.dtype) and any(level is values.device for level in place.chain())):
            raise _unshared("asarray", place)
        out = values if place is values.device else _exactly_on(values, place)
        if wanted is not None:
            dtypes.refuse_complex(out.dtype, wanted, "asarray")
            out = cast(out, wanted)
        return _copied(out) if copy and out is values else out
    place = as_device(device)
    found = _of_library(values, dtype, place)
    if found is not None:
        return wrap(found.device.copied(found._array), found.device) if copy else found
    if hasattr(values, "__dlpack__") and not isinstance(values, (np.ndarray, np.generic)):
        out = from_dlpack(values, device=device, copy=copy)
        if copy is False and not _is(wanted, out.dtype):
            raise _unshared("asarray", out.device)
        return out if wanted is None else cast(out, wanted)
    if copy is False and dtypes.holds(values, Tensor):
        raise errors.ArgumentError("asarray: tensors in a list are joined by a copy; leave out copy=False")
    if stands(values) and (wanted is None or values.__class__ not in LATER):
        return of_later(values, place, dtype=wanted)
    array = dtypes.values_of(values, dtype, "asarray", place)
    return _held("asarray", values, array, place, copy)


def _exactly_on(x: Tensor[Any], place: Backend) -> Tensor[Any]:
    """Where a device is named for what is made it is that one: a leaf takes no levels along."""
    return to_device(x, place) if isinstance(place, Decorator) else _constant_on(x, place)


def _of_library(values: Any, dtype: Any, place: Backend) -> Tensor[Any] | None:
    """The tensor of an array of the place's own library, in the dtype that is asked for; None for anything else."""
    array = (
        None if isinstance(values, (Tensor, np.ndarray, Sequence, int, float, complex)) else place.from_native(values)
    )
    if array is None:
        return None
    out = wrap(array, place)
    return out if dtype is None else cast(out, dtypes.as_dtype(dtype))


def _copied(x: Tensor[Any]) -> Tensor[Any]:
    """A tensor of its own: of a tracked one a result in the graph, so that a leaf's copy can be assigned to."""
    return run("astype", (x,), dtype=x.dtype) if x.device.tracked(x._array) else same(x)


def _is(wanted: DType | None, dtype: DType) -> bool:
    return wanted is None or wanted is dtype


def _held(name: str, source: Any, array: np.ndarray[Any, Any], place: Backend, copy: bool | None) -> Tensor[Any]:
    """The tensor of an array that was made of `source`; `copy=False` holds it to the memory of the source."""
    out = wrap(place.from_numpy(array, copy=copy is True), place)
    if copy is False:
        same_memory = isinstance(source, np.ndarray) and np.may_share_memory(source, place.to_numpy(out._array))
        if not same_memory and not (source is array and not array.size):  # nothing is in no memory
            raise _unshared(name, place)
    return out


def _unshared(name: str, place: Backend) -> errors.ArgumentError:
    return errors.ArgumentError(f"{name}: on {place} these values cannot be shared; leave out copy=False")


def from_dlpack(array: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor[Any]:
    """A tensor over the memory of another library's array, through DLPack.

    Of a tensor of adjoint's it stays on the tensor's device unless another one is given. `copy=True` never shares.
    Raises ArgumentError for `copy=False` where the values must be copied, TrackedError for
    a tensor that adjoint or its own library tracks, DtypeError where the array cannot be exported to NumPy.
    """
    if not hasattr(array, "__dlpack__"):
        raise errors.ArgumentTypeError(
            f"from_dlpack: expected an array with __dlpack__, received {type(array).__name__}"
        )
    copy = None if copy is None else as_flag(copy, "from_dlpack", "copy")
    place = array.device if isinstance(array, Tensor) and device is None else as_device(device)
    taken = None if copy is False else _of_library(array, None, place)
    if taken is not None:  # also on a GPU, from which NumPy reads nothing
        return wrap(place.copied(taken._array), place) if copy else taken
    try:
        values = np.from_dlpack(array, copy=False) if copy is False else np.from_dlpack(array)
    except errors.AdjointError:
        raise
    except (BufferError, TypeError, RuntimeError, ValueError) as error:
        if dtypes.is_parameter(array):
            return from_dlpack(array.detach(), device=device, copy=copy)
        leaf = leaf_of(array) if str(getattr(array, "dtype", "")).endswith("bfloat16") else None
        if leaf is None or copy is False:
            found = dtypes.unreadable(array, "from_dlpack", error)
            known = copy is not False or isinstance(found, errors.TrackedError)
            raise found if known else _unshared("from_dlpack", place) from error
        values = leaf.to_numpy(leaf.from_native(array))  # NumPy does not exchange it
    return _held("from_dlpack", values, values_of(values, None, "from_dlpack"), place, copy)


@overload
def from_inner(x: Tensor[D], device: None = None) -> Tensor[Autodiff[D]]: ...
@overload
def from_inner(x: Tensor[Any], device: D) -> Tensor[D]: ...
def from_inner(x: Tensor[Any], device: Any = None) -> Tensor[Any]:
    """The tensor as a constant of a decorator over its own backend: by default the `Autodiff` over it.

    What inner levels track stays tracked there. Raises DeviceError if `device` does not decorate
    the tensor's backend.

    >>> import adjoint as ad
    >>> ad.from_inner(ad.tensor([1.0], device="numpy")).device
    autodiff<numpy>
    """
    check_tensor("from_inner", x)
    place = Autodiff(x.device) if device is None else find_device(device)
    if not isinstance(place, Decorator) or place.inner is not x.device:
        raise errors.DeviceError(
            f"from_inner: {place} is no decorator over {x.device}; ad.asarray(x, device=...) lifts over several "
            "levels, and x.to_device(...) goes to another library"
        )
    return wrap(place.wrap(x._array), place)


def to_device(x: Tensor[Any], device: Any, /, *, stream: Any = None) -> Tensor[Any]:
    """The tensor on another backend.

    To another leaf, such as `ad.Torch("cuda:0")`, it moves with all levels of its chain, and gradients flow back
    through the move: one graph may span devices. Memory is shared where both libraries allow it (DLPack). Into a
    decorator over its own backend it is lifted, as a constant of the new levels and tracked as before by the old
    ones. To any other backend a constant is copied.

    Raises TrackedError for a tracked tensor that would have to leave its graph. Backends have no streams: `stream` is
    None.

    >>> import adjoint as ad
    >>> ad.tensor([1.0], device="numpy").to_device("autodiff<numpy>").device
    autodiff<numpy>
    """
    if stream is not None:
        raise errors.ArgumentError(
            f"to_device: backends have no streams, received {errors.shown(stream)}; leave it out"
        )
    refuse_ended(x, "to_device")
    place = find_device(device)
    here = x.device
    if place is here:
        return same(x)
    if any(level is here for level in place.chain()):
        return wrap(place.lift(x._array, here), place)
    moved = over_leaf(here, place.leaf)
    if moved is place or not isinstance(place, Decorator):
        return same(x) if moved is here else wrap(moved.transfer(x._array, here), moved)
    return _constant_on(x, place)


def _constant_on(x: Tensor[Any], place: Backend) -> Tensor[Any]:
    """A constant copied to an unrelated backend."""
    here = x.device
    if here.tracked(x._array):
        raise errors.TrackedError(
            f"to_device: the tensor is tracked on {here}, and {place} does not continue its chain; detach() makes it "
            "a constant, inner() takes off one level"
        )
    return wrap(place.from_numpy(here.to_numpy(x._array), copy=True), place)


def astype(x: Operand[Any], /, dtype: Any, *, copy: bool = True, device: Any = None) -> Tensor[Any]:
    """The tensor in another dtype, on another device if one is given; gradients come back in the old one.

    Complex to real keeps the real part. Raises DtypeError for an unknown dtype, and the errors of `to_device`.

    >>> import adjoint as ad
    >>> ad.tensor([1.7, -1.7]).astype(ad.int64)
    Tensor([ 1, -1], dtype=int64, device=autodiff<numpy>)
    """
    wanted = dtypes.as_dtype(dtype)
    copy = as_flag(copy, "astype", "copy")
    x = as_tensor(x, "astype")
    if device is not None and find_device(device) is not x.device:
        x, copy = to_device(x, device), False
    return _copied(x) if copy and x.dtype is wanted else cast(x, wanted)


def made(place: Backend, name: str, **parameters: Any) -> Tensor[Any]:
    """Run a creation primitive; one that fails is explained as a typed error."""
    try:
        return wrap(getattr(place, name)(**parameters), place)
    except Exception as error:
        fail(error, place, name, (), parameters)


def is_double(place: Backend) -> bool:
    """Whether a backend has double precision, so that places come out as NumPy computes them."""
    return place.leaf.widest(dtypes.float64) is dtypes.float64


def places_beside(
    x: Tensor[Any], stop: Any, start: Any = 0, step: int = 1, *, of: Any = (), dtype: DType = dtypes.int64
) -> Any:
    """The integers from `start` to before `stop`: NumPy's, or a tensor beside x where they stand for several.

    Also where one of those does that they are computed with, `of`. Where x has no double precision floats are NumPy's.
    """
    if not (stands(stop) or stands(start) or any(map(stands, of))) or (dtype.kind == "f" and not is_double(x._device)):
        return np.arange(start, stop, step, dtype=dtype)
    found = x._device.leaf.widest(dtype)
    return made(x._device, "arange", start=start, stop=stop, step=step, dtype=found)


def _full(shape: Shape, value: Any, dtype: Any, device: Any) -> Tensor[Any]:
    place = as_device(device)
    return made(place, "full", shape=shape, value=value, dtype=dtype_for(dtype, place))


def dtype_for(dtype: Any, place: Backend) -> DType:
    """The dtype that is meant, for None the default one."""
    return dtypes.default_on(place) if dtype is None else dtypes.as_dtype(dtype)


@overload
def zeros(shape: ShapeLike, dtype: Any = None, *, device: None = None) -> Default: ...
@overload
def zeros(shape: ShapeLike, dtype: Any = None, *, device: D) -> Tensor[D]: ...
@overload
def zeros(shape: ShapeLike, dtype: Any = None, *, device: str) -> Tensor[Any]: ...
@explained
def zeros(shape: ShapeLike, dtype: Any = None, *, device: Any = None, **unknown: Never) -> Tensor[Any]:
    """Zeros of a shape, of the default dtype unless one is given."""
    if unknown:
        raise keyword_error(zeros, unknown)
    return _full(as_shape(shape, "zeros"), 0, dtype, device)


@overload
def ones(shape: ShapeLike, dtype: Any = None, *, device: None = None) -> Default: ...
@overload
def ones(shape: ShapeLike, dtype: Any = None, *, device: D) -> Tensor[D]: ...
@overload
def ones(shape: ShapeLike, dtype: Any = None, *, device: str) -> Tensor[Any]: ...
@explained
def ones(shape: ShapeLike, dtype: Any = None, *, device: Any = None, **unknown: Never) -> Tensor[Any]:
    """Ones of a shape, of the default dtype unless one is given."""
    if unknown:
        raise keyword_error(ones, unknown)
    return _full(as_shape(shape, "ones"), 1, dtype, device)


@overload
def empty(shape: ShapeLike, dtype: Any = None, *, device: None = None) -> Default: ...
@overload
def empty(shape: ShapeLike, dtype: Any = None, *, device: D) -> Tensor[D]: ...
@overload
def empty(shape: ShapeLike, dtype: Any = None, *, device: str) -> Tensor[Any]: ...
@explained
def empty(shape: ShapeLike, dtype: Any = None, *, device: Any = None, **unknown: Never) -> Tensor[Any]:
    """A tensor to be assigned to; its values are zeros, so that programs stay deterministic."""
    if unknown:
        raise keyword_error(empty, unknown)
    return _full(as_shape(shape, "empty"), 0, dtype, device)


def _filled(shape: Shape, value: Any, dtype: DType, device: Any, name: str) -> Tensor[Any]:
    """One value everywhere: a number, or a tensor with one element, whose gradient flows.

    Where a program computes the value later, it fills the array then.
    """
    if not isinstance(value, Tensor) or not (value.device.tracked(value._array) or has_none_yet(value)):
        return _full(shape, as_constant(value, dtype, name), dtype, device)
    if value.size != 1:
        raise errors.ArgumentTypeError(f"{name}: expected one number, received {errors.shown(value)}")
    dtypes.refuse_complex(value.dtype, dtype, name)
    if value.__class__ is Number:
        value = in_dtype(value, dtype, value.device, name)
    number = run("reshape", (asarray(value, dtype=dtype, device=device),), shape=())
    return run("broadcast_to", (number,), shape=shape)  # type: ignore[no-any-return]


@overload
def full(shape: ShapeLike, fill_value: Tensor[D], dtype: Any = None, *, device: None = None) -> Tensor[D]: ...
@overload
def full(shape: ShapeLike, fill_value: complex, dtype: Any = None, *, device: None = None) -> Default: ...
@overload
def full(shape: ShapeLike, fill_value: complex | Tensor[Any], dtype: Any = None, *, device: D) -> Tensor[D]: ...
@overload
def full(shape: ShapeLike, fill_value: complex | Tensor[Any], dtype: Any = None, *, device: str) -> Tensor[Any]: ...
@explained
def full(shape: ShapeLike, fill_value: Any, dtype: Any = None, *, device: Any = None, **unknown: Never) -> Tensor[Any]:
    """A tensor with one value everywhere, of the dtype that the value has.

    `fill_value` is a number or a tensor of one element, on whose device the result is unless one is given; gradients
    flow to it. Raises ArgumentTypeError for anything else, DtypeError and RangeError for what `dtype` does not hold,
    TrackedError where a tracked tensor would leave its graph.

    >>> import adjoint as ad
    >>> x = ad.tensor(2.0).require_grad()
    >>> ad.full((2, 3), x).sum().backward()[x].item()
    6.0
    """
    if unknown:
        raise keyword_error(full, unknown)
    if fill_value.__class__ is Number and dtype is None:
        fill_value = adapted([fill_value], "full")[0]
    if isinstance(fill_value, Tensor):
        device, default = fill_value.device if device is None else device, fill_value.dtype
    elif stands(fill_value):
        default = of_later(fill_value, as_device(device)).dtype
    else:
        default = values_of(fill_value, None, "full", as_device(device)).dtype
    wanted = default if dtype is None else dtypes.as_dtype(dtype)
    return _filled(as_shape(shape, "full"), fill_value, wanted, device, "full")


@explained
def full_like(
    x: Operand[D], /, fill_value: Any, dtype: Any = None, *, device: Any = None, **unknown: Never
) -> Tensor[D]:
    """One value everywhere, in the shape of `x`, and in its dtype and on its device unless given.

    `fill_value` and errors are those of `full`. Raises DtypeError for a float where `x` is integers and no dtype is
    given.
    """
    if unknown:
        raise keyword_error(full_like, unknown)
    x = as_tensor(x, "full_like")
    device = x.device if device is None else device
    if dtype is None:
        refuse_fractions(fill_value, x.dtype, "full_like")
    return _filled(x.shape, fill_value, x.dtype if dtype is None else dtypes.as_dtype(dtype), device, "full_like")


@explained
def zeros_like(x: Operand[D], /, dtype: Any = None, *, device: Any = None, **unknown: Never) -> Tensor[D]:
    """Zeros of the shape of `x`, a tensor or anything with values, and its dtype and device unless given."""
    if unknown:
        raise keyword_error(zeros_like, unknown)
    return full_like(as_tensor(x, "zeros_like"), 0, dtype=dtype, device=device)


@explained
def ones_like(x: Operand[D], /, dtype: Any = None, *, device: Any = None, **unknown: Never) -> Tensor[D]:
    """Ones of the shape of `x`, and its dtype and device unless given."""
    if unknown:
        raise keyword_error(ones_like, unknown)
    return full_like(as_tensor(x, "ones_like"), 1, dtype=dtype, device=device)


@explained
def empty_like(x: Operand[D], /, dtype: Any = None, *, device: Any = None, **unknown: Never) -> Tensor[D]:
    """As `zeros_like`: a tensor to be assigned to."""
    if unknown:
        raise keyword_error(empty_like, unknown)
    return full_like(as_tensor(x, "empty_like"), 0, dtype=dtype, device=device)


@overload
def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *, device: None = None
) -> Default: ...
@overload
def eye(n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *, device: D) -> Tensor[D]: ...
@overload
def eye(n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *, device: str) -> Tensor[Any]: ...
@explained
def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *, device: Any = None, **unknown: Never
) -> Tensor[Any]:
    """Ones on a diagonal, zeros elsewhere, of the default dtype unless one is given; `k` counts diagonals upwards.

    The result is a matrix (n_rows, n_cols), square if n_cols is None.

    >>> import adjoint as ad
    >>> ad.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if unknown:
        raise keyword_error(eye, unknown)
    rows, columns = as_shape((n_rows, n_rows if n_cols is None else n_cols), "eye")
    diagonal = max(-rows, min(as_integer(k, "eye", "k"), columns))  # others are further out, whatever their number
    place = as_device(device)
    return made(place, "eye", rows=rows, columns=columns, k=diagonal, dtype=dtype_for(dtype, place))


def tri(rows: int, columns: int | None = None, /, k: int = 0, dtype: Any = None, *, device: Any = None) -> Tensor[Any]:
    """Ones at and below the k-th diagonal, zeros above, of the default dtype unless one is given.

    The result is a matrix (rows, columns), square if columns is None.
    """
    n, m = as_shape((rows, rows if columns is None else columns), "tri")
    diagonal = max(-n, min(as_integer(k, "tri", "k"), m))  # others are further out, whatever their number
    place = as_device(device)
    wanted = dtype_for(dtype, place)
    if any(map(stands, (n, m, diagonal))):
        return run("tril", (made(place, "full", shape=(n, m), value=1, dtype=wanted),), k=diagonal)  # type: ignore[no-any-return]
    return asarray(computed("tri", _tri, n, m, diagonal, wanted), device=place)


def _tri(n: int, m: int, k: int, dtype: DType) -> np.ndarray[Any, Any]:
    np.empty((n, m), dtype)  # raises before anything is written, where there is no room for the result
    return np.tri(n, m, k, dtype)
