"""`x[key]` and `x[key] = v`, and functions that pick and place by index."""

from __future__ import annotations

import math
import operator
import warnings
from sys import getrefcount as references
from typing import Any

import numpy as np

import adjoint as ad
from adjoint.graph.nodes import Var, numbers, var_of
from adjoint.torch import creation, overriding, state
from adjoint.torch.arguments import guarded, public
from adjoint.torch.calls import (
    LEAST,
    MOST,
    NUMBERS,
    call,
    element,
    explained,
    factor,
    number,
    only_number,
    put,
    refuse_misfit,
)
from adjoint.torch.functions import BYTES, to
from adjoint.torch.graph import overwritten
from adjoint.torch.kinds import Index
from adjoint.torch.lifted import is_batched
from adjoint.torch.memory import shape_of, view_of
from adjoint.torch.operators import METHODS
from adjoint.torch.tensor import (
    INNER,
    Rare,
    Tensor,
    axis_of,
    beside,
    constant,
    is_lifted,
    looked,
    new,
    next_number,
    placed,
    rare_of,
    where_is,
)
from adjoint.torch.writes import check_write

_index_set = INNER["index_set"]
_index_set_into = INNER.index_set_into


_NO_ARRAY = var_of(np.zeros(()), None)


class Selected(Rare):
    """What x[i] has of its own: it is a view that is read when it is used."""

    entangled = True
    named = "Select"
    place_in_parent: int

    @property
    def view(self) -> Index:
        return Index((self.place_in_parent,))


def getitem(self: Any, key: Any) -> Any:
    """A view for integers, slices, None and `...`; a copy for tensors of integers or booleans."""
    if key.__class__ is int and not state.special:
        rare = self._rare
        if rare is not None and rare.memory is not None and rare.creation is None and not rare.inference:
            try:
                array = self._here
            except AttributeError:  # it is elsewhere
                array = _NO_ARRAY
            shape = array.value.shape
            if shape and -shape[0] <= key < shape[0]:  # the usual loop
                out: Tensor = new(Tensor)
                out._dtype = self._dtype
                out._rare = view = Selected()
                view.place_in_parent = key + shape[0] if key < 0 else key
                view.parent = self
                view.memory = memory = rare.memory
                view.seen = memory.version
                view.tracked = array.node is not None
                memory.add(out)
                return out
    if (
        overriding.used
        and (found := overriding.overridden(METHODS["__getitem__"], (self, key), {})) is not NotImplemented
    ):
        return found
    try:
        entries = _entries(self, key)
    except (IndexError, TypeError):  # of what is no index, but overrides
        if (found := overriding.overridden(METHODS["__getitem__"], (self, key), {})) is not NotImplemented:
            return found
        raise
    if all([e is None or e.__class__ in (int, range) for e in entries]):
        return view_of(self, Index(tuple(entries)), _name(key, entries))
    return _advanced(self, entries)


def _name(key: Any, entries: list[Any]) -> str:
    """What PyTorch calls the last step of such an index."""
    if not isinstance(key, tuple):
        key = (key,)
    last = next((k for k in reversed(key) if k is not Ellipsis), None) if key else Ellipsis
    if not key or key == (Ellipsis,):
        return "Alias"
    if last is None:
        return "Unsqueeze"
    return "Slice" if isinstance(last, slice) else "Select"


class _Flag:
    """A truth value among the indices: a new axis, of size 1 if it is true, and 0 if not."""

    def __init__(self, truth: bool) -> None:
        self.places: Tensor = constant(np.zeros(int(truth), np.int64))


def _is_tuple(key: Any) -> bool:
    """Whether a list is meant as a tuple of indices, as NumPy once took it, and PyTorch still does."""
    if not isinstance(key, (list, range)) or len(key) >= 32:
        return False
    several = (Tensor, np.ndarray, slice, list, tuple, range)
    return any([isinstance(k, several) or k is None or k is Ellipsis for k in key])


def _given(key: Any) -> list[Any]:
    """The indices, one by one, with masks of bytes as masks."""
    if _is_tuple(key):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead of "
            "x[seq], or x[torch.tensor(seq)].",
            UserWarning,
            stacklevel=4,
        )
        key = tuple(key)
    out = []
    for k in key if isinstance(key, tuple) else (key,):
        entry = constant(np.array(k)) if isinstance(k, np.ndarray) else k
        if isinstance(entry, Tensor) and entry._dtype == np.uint8:
            warnings.warn(f"indexing with {BYTES}", UserWarning, stacklevel=4)
            entry = entry.bool()
        elif isinstance(entry, Tensor) and entry._dtype.kind == "i" and entry._dtype.itemsize < 4:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        truth = isinstance(entry, (bool, np.bool_)) or (
            isinstance(entry, Tensor) and entry._dtype.kind == "b" and not entry.ndim
        )
        out.append(_Flag(bool(entry)) if truth else entry)
    return out


def _entries(x: Any, key: Any) -> list[Any]:
    """The key as integers, ranges, None, truth values, and tensors of integers or booleans."""
    given = _given(key)
    shape = shape_of(x)
    used = 0
    for k in given:
        if k is None or k is Ellipsis or k.__class__ is _Flag:
            continue
        used += k.ndim if isinstance(k, Tensor) and k._dtype.kind == "b" else 1
    if used and not shape and not isinstance(key, (tuple, list, Tensor)):
        if isinstance(key, slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a number")
    if used > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    out: list[Any] = []
    axis = 0
    for k in given:
        if k is Ellipsis:
            out += [range(n) for n in shape[axis : axis + len(shape) - used]]
            axis += len(shape) - used
        elif k is None:
            out.append(None)
        elif isinstance(k, slice):
            out.append(_range(k, shape[axis]))
            axis += 1
        elif k.__class__ is _Flag:
            out.append(k)
        else:
            entry = _entry(k, shape, axis)
            if isinstance(entry, Tensor) and where_is(entry) is not where_is(x):
                if where_is(entry) is not None:
                    raise RuntimeError(
                        "indices should be either on cpu or on the same device as the indexed tensor "
                        f"({x.device}), and one is on {entry.device}"
                    )
                entry = to(entry, x.device)
            out.append(entry)
            axis += entry.ndim if isinstance(entry, Tensor) and entry._dtype.kind == "b" else 1
    return out


def _range(k: slice, n: int) -> range:
    try:
        bounds = [None if b is None else operator.index(b) for b in (k.start, k.stop, k.step)]
    except TypeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None
    if bounds[2] is not None and bounds[2] <= 0:
        raise ValueError("step must be greater than zero")
    found = range(n)[slice(*bounds)]
    return found if len(found) else range(min(found.start, n), min(found.start, n))


def _entry(k: Any, shape: Any, axis: int) -> Any:
    if isinstance(k, (list, tuple, range)):
        k = creation.tensor(list(k)) if len(k) else constant(np.zeros(0, np.int64))
    if isinstance(k, Tensor):
        if k._dtype.kind == "b":
            if tuple(k.shape) != shape[axis : axis + k.ndim]:
                raise IndexError(
                    f"The shape of the mask {list(k.shape)} at index 0 does not match the shape of the indexed tensor "
                    f"{list(shape)} at index {axis}"
                )
            return k
        if k._dtype.kind not in "iu":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if k.ndim or is_batched(k):
            return k
        k = k.item()
    if isinstance(k, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(k).__name__}'")
    try:
        i = operator.index(k)
    except TypeError:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
            f"{type(k).__name__})"
        ) from None
    n = shape[axis]
    if not -n <= i < n:
        if not -(1 << 63) <= i < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        raise IndexError(f"index {i} is out of bounds for dimension {axis} with size {n}")
    return i + n if i < 0 else i


def _advanced(x: Any, entries: list[Any]) -> Tensor:
    """A copy of the places that tensors name. Integers and slices are taken first, as views."""
    basic, rest = _apart(x, entries)
    source = x if basic is None else view_of(x, Index(_with_ranges(x, basic)), "Slice")
    try:
        out: Tensor = call(lambda a, *keys: a[_placed(rest, keys)], "Index", source, *_tensors(rest))
    except IndexError as error:
        if 0 in source.shape:
            raise IndexError("index is out of bounds for dimension with size 0") from None
        _refuse_places(source, rest)
        raise IndexError(f"index out of bounds: {error}") from None
    if out._rare is None and isinstance(out._array.value, np.ndarray) and not out._array.value.flags.c_contiguous:
        out._array.value = np.ascontiguousarray(out._array.value)
    return out


def _refuse_places(source: Any, rest: list[Any]) -> None:
    """Raise what PyTorch raises for tensors that name places which are not there."""
    axis = 0
    for e in rest:
        if isinstance(e, Tensor) and e._dtype.kind != "b":
            n = source.shape[axis]
            in_range(e, n, -n, axis, IndexError)
        axis += e.ndim if isinstance(e, Tensor) and e._dtype.kind == "b" else e is not None


def _apart(x: Any, entries: list[Any]) -> tuple[Any, list[Any]]:
    """Basic entries to take as a view of x first, and the key of tensors for what is left."""
    basic: list[Any] = []
    rest: list[Any] = []
    shape, axis = shape_of(x), 0
    for e in entries:
        if isinstance(e, Tensor):
            basic += [slice(None)] * (e.ndim if e._dtype.kind == "b" else 1)
            rest.append(e)
        elif e.__class__ is _Flag:
            basic.append(None)
            rest.append(e.places)
        else:
            basic.append(slice(None) if e is not None and axis < len(shape) and e == range(shape[axis]) else e)
            if not isinstance(e, int):
                rest.append(slice(None))
        if isinstance(e, Tensor) and e._dtype.kind == "b":
            axis += e.ndim
        elif e is not None and e.__class__ is not _Flag:
            axis += 1
    if all([isinstance(e, slice) for e in basic]):
        return None, rest
    return basic, rest


def _tensors(rest: list[Any]) -> list[Tensor]:
    return [e for e in rest if isinstance(e, Tensor)]


def _placed(rest: list[Any], keys: Any) -> tuple[Any, ...]:
    given = iter(keys)
    return tuple([next(given) if isinstance(e, Tensor) else e for e in rest])


def _with_ranges(x: Any, basic: list[Any]) -> tuple[Any, ...]:
    """Whole axes in a basic key as ranges of their sizes."""
    shape, axis, out = shape_of(x), 0, []
    for e in basic:
        out.append(range(shape[axis]) if isinstance(e, slice) else e)
        axis += e is not None
    return tuple(out)


def setitem(self: Any, key: Any, value: Any) -> None:
    """Write to a part; differentiable in what is written and in what stays."""
    kind = value.__class__
    if (
        (kind is float or (kind is int and LEAST <= value <= MOST))
        and key.__class__ is int
        and not state.special
        and self._dtype.kind == "f"
    ):
        rare = self._rare
        if rare is None or not rare.entangled:
            array = self._here
            if array.node is None:
                shape = array.value.shape
                if shape and -shape[0] <= key < shape[0]:
                    _set_number(self, array, key + shape[0] if key < 0 else key, value)
                    return
    if overriding.used and overriding.overridden(METHODS["__setitem__"], (self, key, value), {}) is not NotImplemented:
        return
    if key is True:
        key = None
    try:
        entries = _entries(self, key)
        if not isinstance(value, Tensor):
            value = _written(self, value)
    except (IndexError, TypeError):  # of what is no index or value, but overrides
        if overriding.overridden(METHODS["__setitem__"], (self, key, value), {}) is not NotImplemented:
            return
        raise
    if key is False:  # which is no write at all
        return
    if all([e is None or e.__class__ in (int, range) for e in entries]):
        whole = None not in entries and all([e == range(n) for e, n in zip(entries, shape_of(self), strict=False)])
        part = self if whole else view_of(self, Index(tuple(entries)), _name(key, entries))
        if not value.ndim and not (whole and not part.ndim):
            part.fill_(value)
        else:
            given = _trimmed(value, part.ndim)
            part.copy_(given if given.shape == part.shape else given.expand(part.shape))
        return
    index_put(self, entries, _trimmed(value, 0), False)


def delitem(self: Any, key: Any) -> None:
    """Refused: a tensor has the elements that it has."""
    raise TypeError("Tensor does not support deleting items")


def _written(x: Any, value: Any) -> Tensor:
    """A number that is written to a part."""
    if isinstance(value, (np.number, np.bool_)):
        value = value.item()
    if not isinstance(value, NUMBERS):
        raise TypeError(f"can't assign a {type(value).__name__} to a torch.{x.dtype.class_name}Tensor")
    if type(value) is int and not LEAST <= value <= MOST:
        raise ValueError("Overflow when unpacking long long")
    return placed(element(value, x._dtype), where_is(x))


getitem.__name__, setitem.__name__ = "__getitem__", "__setitem__"
METHODS["__getitem__"] = getitem
METHODS["__setitem__"] = setitem
METHODS["__delitem__"] = delitem


def _set_number(x: Any, array: Var, i: int, value: Any) -> None:
    """x[i] = number, of what is not recorded and shares no memory."""
    old = array.value
    if -65504 <= value <= 65504:  # which all floating types hold
        fill = INNER.as_scalar(value, x._dtype) if value else np.asarray(value, x._dtype)
    else:
        fill = element(value, x._dtype)
    if references(array) <= _ALONE[0] and references(old) <= _ALONE[1] and old.base is None:
        _index_set_into(old, fill, key=(i,))  # nobody else has the array
    else:
        new_value = _index_set(old, fill, key=(i,))
        overwritten(old, next(numbers))
        x._here = var_of(new_value, None)
    rare_of(x).version += 1


def _alone(x: Any, array: Var) -> tuple[int, int]:
    """How many references `_set_number` sees to an array, and to its value, that are the tensor's alone."""
    old = array.value
    return references(array), references(old)


def _alone_in_setitem(x: Any) -> tuple[int, int]:
    array = x._here
    return _alone(x, array)


_ALONE = _alone_in_setitem(constant(np.zeros(2)))


def _trimmed(value: Tensor, ndim: int) -> Any:
    """Without leading axes of size 1 that the place written to does not have."""
    out: Any = value
    while out.ndim > ndim and out.shape[0] == 1:
        out = out.select(0, 0)
    return out


def _joined(x: Any, places: Any, source: Any, mode: str) -> Any:
    """x with what is put at places, or joined there; a sum of truths is true where one of them is."""
    if mode == "set" or x.dtype != np.dtype(bool):
        return ad.scatter(x, places, source, mode=mode)
    bits = (ad.astype(part, np.uint8) for part in (x, source))
    return ad.astype(ad.scatter(next(bits), places, next(bits), mode="max" if mode == "add" else "min"), bool)


def index_put(x: Any, entries: list[Any], value: Tensor, accumulate: bool) -> Any:
    """Put values at the places that tensors name, or add them there."""
    check_write(x, (value,), apart=True)
    start = next_number()
    basic, rest = _apart(x, entries)
    target = x if basic is None else view_of(x, Index(_with_ranges(x, basic)), "Slice")
    if value._dtype is not x._dtype:
        masked = len(tensors := _tensors(rest)) == 1 and tensors[0]._dtype.kind == "b"
        if accumulate or value.ndim or not masked:
            raise _mismatch(x, value)
        if value._dtype.kind not in "fc":
            value = to(value, dtype=x._dtype)
    mode = "add" if accumulate else "set"
    keys = _tensors(rest)

    def placed(a: Any, v: Any, *keys: Any) -> Any:
        return _joined(a, _placed(rest, keys), v if v.dtype == a.dtype else ad.astype(v, a.dtype), mode)

    try:
        out = call(placed, "IndexPut", target, value, *keys)
    except (IndexError, RuntimeError):
        _refuse_places(target, rest)
        place, given = tuple(_advanced(target.detach(), rest).shape), tuple(value.shape)
        if len(given) > len(place) or any([n not in (1, m) for n, m in zip(given[::-1], place[::-1], strict=False)]):
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(given)} cannot be broadcast to indexing result of "
                f"shape {list(place)}"
            ) from None
        raise
    return put(target, out, start)


def _mismatch(x: Any, value: Any) -> RuntimeError:
    return RuntimeError(
        f"Index put requires the source and destination dtypes match, got {x.dtype.class_name} for the destination and "
        f"{value.dtype.class_name} for the source."
    )


def _index_put_(self: Any, indices: Any, values: Tensor, accumulate: bool = False) -> Any:
    if isinstance(values, Tensor) and values._dtype is not self._dtype:
        raise _mismatch(self, values)
    entries = _entries(self, tuple([slice(None) if i is None else i for i in indices]))
    index_put(self, entries, values, accumulate)
    return self


METHODS["index_put_"] = guarded(_index_put_)


@public("index_put")
def index_put_out(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Any:
    return _index_put_(input.clone(), indices, values, accumulate)


def check_index(index: Any, name: str) -> None:
    """Raise RuntimeError for what is no tensor of places."""
    if not isinstance(index, Tensor) or (index._dtype != np.int64 and index._dtype != np.int32):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


def check_long(index: Tensor, name: str) -> None:
    """Raise RuntimeError for places in another type than int64."""
    if index._dtype != np.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype.class_name}")


def in_range(index: Tensor, n: int, least: int = 0, dim: int = 0, error: Any = RuntimeError, what: str = "") -> None:
    """Raise what PyTorch raises for places that are not there."""
    found = looked(index)
    if is_lifted(index) and is_batched(index):
        return  # of each example: what is out of range is an error of adjoint's
    if found.size and (found.min() < least or found.max() >= n):
        wrong = int(found[(found < least) | (found >= n)].flat[0])
        raise error(f"{what}index {wrong} is out of bounds for dimension {dim} with size {n}")


def as_line(x: Any) -> Any:
    """A single element as a vector of it."""
    return x.reshape(1) if isinstance(x, Tensor) and not x.ndim else x


@public("gather", out=True)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Any:
    """Along an axis the elements whose places index names, everywhere its own ones."""
    axis = axis_of(dim, input.ndim)
    if isinstance(index, Tensor) and not index.numel():
        return input.reshape(-1)[:0].reshape(index.shape)
    check_index(index, "gather")
    if not input.ndim:
        return gather(as_line(input), 0, as_line(index)).reshape(index.shape)
    if input.ndim != index.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    in_range(index, input.shape[axis], dim=axis)
    return call(lambda x, i: x[_grid(axis, i.shape, i)], "Gather", input, index)


def _grid(axis: int, shape: Any, index: Any) -> tuple[Any, ...]:
    """The places that an index along one axis names, all axes considered."""
    places: list[Any] = list(np.ogrid[tuple([slice(n) for n in shape])])
    places[axis] = index
    return tuple(places)


def _scattered(mode: str, made: str) -> Any:
    def scattered(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None) -> Any:
        axis = axis_of(dim, input.ndim)
        if not index.numel():
            return input.clone()
        check_index(index, "scatter")
        if max(input.ndim, 1) != max(index.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
        if not input.ndim:
            return scattered(as_line(input), 0, as_line(index), as_line(src), value=value).reshape(())
        in_range(index, input.shape[axis], dim=axis)
        src = only_number(value, "scatter", "value") if src is None else src
        if isinstance(src, Tensor):
            if src._dtype is not input._dtype:
                raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
            if src.ndim != index.ndim or any([a > b for a, b in zip(index.shape, src.shape, strict=True)]):
                raise RuntimeError(
                    f"Expected index {list(index.shape)} to be no larger than src {list(src.shape)} apart from "
                    f"dimension {axis}"
                )
            cut = tuple([slice(n) for n in index.shape])
            return call(lambda x, i, s: _joined(x, _grid(axis, i.shape, i), s[cut], mode), made, input, index, src)
        fill = constant(number(src, input._dtype))
        return call(lambda x, i, s: _joined(x, _grid(axis, i.shape, i), s, mode), made, input, index, fill)

    return scattered


_set, _add = _scattered("set", "Scatter"), _scattered("add", "ScatterAdd")
_multiply = _scattered("multiply", "ScatterReduce")


@public("scatter", in_place=True, out=True)
def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: Any = None) -> Any:
    if src is not None and value is not None:
        raise TypeError("scatter() received an invalid combination of arguments: src and value")
    if reduce is not None:
        if not isinstance(reduce, str):
            raise TypeError(f"scatter(): argument 'reduce' must be str, not {type(reduce).__name__}")
        if reduce not in ("add", "multiply"):
            raise RuntimeError("reduce argument must be either add or multiply.")
        return (_add if reduce == "add" else _multiply)(input, dim, index, src, value=value)
    return _set(input, dim, index, src, value=value)


@public("scatter_add", in_place=True, out=True)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    return _add(input, dim, index, src)


@public("index_select", out=True)
def index_select(input: Tensor, dim: int, index: Tensor) -> Any:
    axis = axis_of(dim, input.ndim)
    check_index(index, "index_select")
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not input.ndim:
        return index_select(as_line(input), 0, as_line(index)).reshape(())
    in_range(index, input.shape[axis], dim=axis, error=IndexError, what="index out of range in self: ")
    return call(lambda x, i: ad.take(x, i, axis=axis), "IndexSelect", input, index)


def _along(axis: int, index: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * axis, index)


@public("index_add", in_place=True, out=True)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Any:
    axis = axis_of(dim, input.ndim)
    check_index(index, "index_add_")
    if input._dtype is not source._dtype:
        raise RuntimeError(
            f"index_add_(): self ({input.dtype.class_name}) and source ({source.dtype.class_name}) must have the same "
            "scalar type"
        )
    if not input.ndim:
        return index_add(as_line(input), 0, as_line(index), as_line(source), alpha=alpha).reshape(())
    in_range(index, input.shape[axis], dim=axis)
    if index.numel() != (source.shape[axis] if source.ndim else 1):
        raise RuntimeError(
            f"index_add_(): Number of indices ({index.numel()}) should be equal to source.size(dim): "
            f"({source.shape[axis] if source.ndim else 1}), for dim: {axis}"
        )
    if [n for i, n in enumerate(source.shape) if i != axis] != [n for i, n in enumerate(input.shape) if i != axis]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(input.shape)} source.shape = {list(source.shape)}"
        )
    alpha = factor(alpha, input._dtype)
    source = source if alpha == 1 else source * alpha
    return call(lambda x, i, s: _joined(x, _along(axis, i), s, "add"), "IndexAdd", input, index, source)


@public("index_copy", in_place=True, out=True)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    axis = axis_of(dim, input.ndim)
    if not input.ndim:
        return index_copy(as_line(input), 0, as_line(index), as_line(source)).reshape(())
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    check_long(index, "index_copy_")
    if source._dtype is not input._dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{input.dtype.class_name} and (source) {source.dtype.class_name}"
        )
    if source.ndim == input.ndim and source.shape[axis] != index.numel():
        raise IndexError(
            f"index_copy_(): Number of indices ({index.numel()}) should be equal to source.size(dim) "
            f"({source.shape[axis]})"
        )
    in_range(index, input.shape[axis], dim=axis, error=IndexError)
    return call(lambda x, i, s: ad.scatter(x, _along(axis, i), s), "IndexCopy", input, index, source)


@public("index_fill", in_place=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    axis = axis_of(dim, input.ndim)
    if index._dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if not input.ndim:
        return index_fill(as_line(input), 0, as_line(index), value).reshape(())
    in_range(index, input.shape[axis], dim=axis, error=IndexError)
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    kind = value._dtype.kind if isinstance(value, Tensor) else "c" if isinstance(value, complex) else ""
    if kind == "c" and input._dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    fill = to(value, dtype=input._dtype) if isinstance(value, Tensor) else constant(number(value, input._dtype))
    return call(lambda x, i, s: ad.scatter(x, _along(axis, i), s), "IndexFill", input, index, fill)


@public("masked_select", out=True)
def masked_select(input: Tensor, mask: Tensor) -> Any:
    if mask._dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    try:
        return call(lambda x, m: _spread(x, m), "MaskedSelect", input, mask)
    except ValueError as error:
        raise explained(error, (input, mask)) from None


def _spread(x: Any, mask: Any) -> Any:
    shape = np.broadcast_shapes(x.shape, mask.shape)
    return ad.broadcast_to(x, shape)[ad.broadcast_to(mask, shape)]


@public("masked_scatter", in_place=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Any:
    if mask._dtype.kind != "b":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.class_name}"
        )
    if source._dtype is not input._dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes")
    refuse_misfit(mask, input)
    shape = np.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    x = input if tuple(input.shape) == shape else input.expand(shape)
    if not is_lifted(mask) and source.numel() < math.prod(shape):
        if source.numel() < np.count_nonzero(np.broadcast_to(looked(mask), shape)):
            raise RuntimeError("Number of elements of source < number of ones in mask")
    return call("masked_scatter", "MaskedScatter", x, mask, source)


@public("take", out=True)
def take(input: Tensor, index: Tensor) -> Any:
    """Elements by their number in the flattened tensor."""
    check_long(index, "take")
    n = input.numel()
    in_range(index, n, -n, error=IndexError, what=f"out of range for a tensor of {n} elements: ")
    return call(lambda x, i: ad.reshape(x, (-1,))[i], "Take", input, index)


@public("take_along_dim", out=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Any:
    if dim is None:
        return take(input, indices.reshape(-1))
    if indices._dtype != np.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    axis = axis_of(dim, input.ndim)
    return call(lambda x, i: ad.take_along_axis(x, i, axis=axis), "Gather", input, indices)


@public("nonzero", out=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    if is_batched(input):
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over nonzero: "
            "how many elements are not zero differs between examples."
        )
    found = np.nonzero(np.atleast_1d(looked(input)))
    if as_tuple:
        return tuple([beside(input, places) for places in found])
    return beside(input, np.stack(found, 1) if input.ndim else np.zeros((len(found[0]), 0), np.int64))


@public("argwhere")
def argwhere(input: Tensor) -> Any:
    return nonzero(input)
