"""Tensors and the outside world: NumPy, DLPack, Python values, pickles, and what people see."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Backend, Decorator, LeafBackend
from adjoint.concrete import Lazy
from adjoint.counterparts import scipy_counterpart
from adjoint.dtypes import is_table
from adjoint.functions.gradients import Gradients
from adjoint.lines import asked_by, is_search
from adjoint.operands import followed_by
from adjoint.tensor import Tensor, wrap

T = TypeVar("T")


def numpy(x: Tensor[Any], /) -> np.ndarray[Any, Any]:
    """The values as a read-only NumPy array, sharing memory where the backend can.

    Also of a tensor that `require_grad` tracks: it reads the value, and gradients do not flow through what is done with
    it. Raises TrackedError for one that a running transform tracks, as `item`, `tolist`, `native` and `compute` do.

    >>> import adjoint as ad
    >>> ad.tensor([1.0, 2.0]).numpy()
    array([1., 2.], dtype=float32)
    """
    _refuse_followed(x, "numpy()")
    return _view(x)


def _view(x: Tensor[Any]) -> np.ndarray[Any, Any]:
    view: np.ndarray[Any, Any] = x.device.to_numpy(x._array).view()
    view.flags.writeable = False
    return view


def native(x: Tensor[Any], /) -> Any:
    """The value as the leaf library's own array, which must not be written to: a `torch.Tensor`, a `jax.Array`.

    On the NumPy leaf it is a read-only view. Of a tracked tensor it is the value, and gradients do not flow through
    what is done with it. Under `jax.jit` it is what JAX traces.

    >>> import adjoint as ad
    >>> ad.tensor([1.0, 2.0]).native()
    array([1., 2.], dtype=float32)
    """
    _refuse_followed(x, "native()")
    array = x.device.to_native(x._array)
    return _view(x) if isinstance(array, (np.ndarray, np.generic)) else array


def compute(tree: T, /) -> T:
    """The tree with the values of its tensors: NumPy arrays of their shapes and dtypes, read-only.

    Tensors of a lazy library, such as Dask, are computed in one run of their
    graphs, so that what several have in common is computed once. `Gradients` in the tree are gradients with the values,
    as tensors. Everything else stays.

    >>> import adjoint as ad
    >>> ad.compute({"x": ad.tensor([1.0, 2.0]) * 2, "n": 3})
    {'x': array([2., 4.], dtype=float32), 'n': 3}
    """
    leaves, structure = trees.flatten(tree)
    found = _arrays(leaves, "compute()")
    values = iter(_at_once(found, _computed))
    out: list[Any] = []
    for x in leaves:
        if isinstance(x, Tensor):
            view = next(values).view()
            view.flags.writeable = False
            out.append(view)
        elif isinstance(x, Gradients):
            out.append(x.map(lambda g: wrap(g.device.from_numpy(next(values), copy=False), g.device)))
        else:
            out.append(x)
    return trees.unflatten(structure, out)  # type: ignore[no-any-return]


def persist(tree: T, /) -> T:
    """The tree with its tensors computed, in one run, and kept where they were computed.

    What is made of them starts from the values: without it the graph of a loop grows with every step. They are tracked
    as before. Where libraries compute at once, as all but Dask do, the tensors stay as they are. So does everything
    else in the tree.

    >>> import adjoint as ad
    >>> ad.persist(ad.tensor([1.0]) * 2)
    Tensor([2.], dtype=float32, device=autodiff<numpy>)
    """
    leaves, structure = trees.flatten(tree)
    arrays = iter(_at_once(_arrays(leaves, "persist()", stay_tracked=True), _persisted))
    out: list[Any] = []
    for x in leaves:
        if isinstance(x, Tensor):
            out.append(_with_value(x, next(arrays)))
        elif isinstance(x, Gradients):
            out.append(x.map(lambda g: _with_value(g, next(arrays))))
        else:
            out.append(x)
    return trees.unflatten(structure, out)  # type: ignore[no-any-return]


def _arrays(leaves: list[Any], what: str, *, stay_tracked: bool = False) -> list[tuple[LeafBackend, Any]]:
    """The arrays behind all tensors and gradients among leaves, in order, with their backends."""
    tensors = [t for x in leaves for t in (x.values() if isinstance(x, Gradients) else [x]) if isinstance(t, Tensor)]
    for x in tensors:
        _refuse_followed(x, what, batches_only=stay_tracked)
    return [(x.device.leaf, x.device.leaf_array(x._array)) for x in tensors]


def _computed(leaf: LeafBackend, arrays: list[Any]) -> list[Any]:
    return leaf.computed(arrays) if isinstance(leaf, Lazy) else [leaf.to_numpy(array) for array in arrays]


def _persisted(leaf: LeafBackend, arrays: list[Any]) -> list[Any]:
    return leaf.persisted(arrays) if isinstance(leaf, Lazy) else arrays


def _with_value(x: Tensor[Any], array: Any) -> Tensor[Any]:
    """The tensor with another leaf's array of the same value behind its levels."""
    return wrap(x.device.with_primal(x._array, lambda _: array), x.device)


def _at_once(found: list[tuple[LeafBackend, Any]], run: Callable[[LeafBackend, list[Any]], list[Any]]) -> list[Any]:
    """What `run` makes of the arrays of each backend."""
    out: list[Any] = [None] * len(found)
    for leaf in dict.fromkeys(leaf for leaf, _ in found):
        places = [i for i, (of, _) in enumerate(found) if of is leaf]
        for i, made in zip(places, run(leaf, [found[i][1] for i in places]), strict=True):
            out[i] = made
    return out


def item(x: Tensor[Any], /, *index: Any) -> Any:
    """The only element as a Python number, or as NumPy's `item(i)` and `item(i, j)` the one at a place.

    A single integer counts through all elements. Raises ArgumentError unless there is exactly one element, also at the
    place, and the errors of reading by an index.

    >>> import adjoint as ad
    >>> x = ad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.sum().item(), x.item(2), x.item(0, 1)
    (10.0, 3.0, 2.0)
    """
    if index:
        place = index[0] if len(index) == 1 else index
        x = x[place] if isinstance(place, tuple) else x.reshape(-1)[place]
    if x.size != 1:
        raise errors.ArgumentError(f"item: expected one element, received shape {x.shape}; use tolist()")
    _refuse_followed(x, "item()")
    return x.device.to_numpy(x._array).item()


def tolist(x: Tensor[Any], /) -> Any:
    """The elements as nested lists of Python numbers."""
    _refuse_followed(x, "tolist()")
    return x.device.to_numpy(x._array).tolist()


def __float__(x: Tensor[Any], /) -> float:
    """float(x) of a tensor of one element. Raises TrackedError for a tracked one, of which `item()` reads the value."""
    return float(_only(x, "float"))


def __complex__(x: Tensor[Any], /) -> complex:
    """complex(x) of a tensor of one element. Raises TrackedError for a tracked one."""
    return complex(_only(x, "complex"))


def __bool__(x: Tensor[Any], /) -> bool:
    """Whether the only element is other than zero, also of a tracked tensor. Raises ArgumentError for several."""
    array = x._array
    if array.shape != () and x.size != 1:
        raise errors.ArgumentError(
            f"the truth of a tensor of shape {x.shape} is ambiguous; use .any() or .all(), or ad.where"
        )
    if "scipy.optimize" in sys.modules:
        _refuse_choices(sys._getframe(1))
    return bool(x._device.to_numpy(array))


def __int__(x: Tensor[Any], /) -> int:
    """int(x) of a tensor of one finite element, cut off at the point. Raises TrackedError for a tracked one."""
    value = _only(x, "int")
    if value - value != 0:  # infinite, or nan
        kind = errors.ArgumentError if value != value else errors.RangeError
        raise kind(f"int: {value} is no integer; isfinite tells where numbers are")
    return int(value)


_KEEPING = {
    "float": "To keep the derivative, write ad.stack for an array of tensors, and ad.sin for math.sin",
    "int": "To keep the derivative, write ad.stack for an array of tensors, and ad.sin for math.sin; for an index, "
    "x.astype(ad.int64)",
    "complex": "To keep the derivative, write ad.stack for an array of tensors, x.astype(ad.complex128) for a complex "
    "one, and ad.sin for cmath.sin",
}


def _only(x: Tensor[Any], name: str) -> Any:
    """The only element, for a conversion to one of Python's numbers."""
    if x.size != 1:
        raise errors.ArgumentTypeError(f"{name}: expected one element, received shape {x.shape}; use tolist()")
    if x.dtype.kind == "c" and name != "complex":
        raise errors.DtypeError(f"{name}: expected a real number, received {x.dtype}; take .real, .imag or abs first")
    if x.device.tracked(x._array):
        level = followed_by(x)
        plain = ".item() is the plain value"
        if level is not None:
            plain = ".item() of ad.stop_gradient(x) is the plain value"
            if not level.differentiates:
                plain = ".item() has no value under vmap, where examples differ, and ad.debug.print shows each"
        raise _leaving(x) or errors.TrackedError(
            f"{plain}; {name}(x) would take a tracked tensor out of its graph silently. {_KEEPING[name]}"
        )
    return x.device.to_numpy(x._array).item()


# --- what would lose a derivative ---


def _refuse_followed(x: Tensor[Any], what: str, *, batches_only: bool = False) -> None:
    """Raises TrackedError where a running transform tracks the tensor, with what can be done there instead."""
    level = followed_by(x)
    if level is None:
        return
    if not level.differentiates:
        raise _leaving(x) or errors.TrackedError(
            f"{what}: ad.vmap runs its function once for all examples, and values of this tensor of shape {x.shape} "
            "differ between them; ad.debug.print shows each, ad.debug.callback(f, x) calls f with each, and ad.where "
            "chooses by them"
        )
    if not batches_only:
        raise errors.TrackedError(
            f"{what}: a transform that is running differentiates what comes of this tensor of shape {x.shape}, and its "
            f"value would lose the derivative silently; ad.stop_gradient(x).{what} is the value on purpose, and "
            "ad.debug.print shows it"
        )


def _refuse_tracked(x: Tensor[Any], what: str) -> None:
    _refuse_followed(x, what, batches_only=True)
    if x.device.tracked(x._array):
        raise _leaving(x) or errors.TrackedError(
            f"{what} would take a tracked tensor of shape {x.shape} out of its graph silently. To keep the derivative, "
            "write ad.stack([x, y]) for np.array([x, y]), and functions of adjoint for others; x.detach() is the plain "
            "value"
        )


def _refuse_searches(x: Tensor[Any], frame: FrameType) -> None:
    """Raises TrackedError where a search of SciPy's computes with a tracked tensor, of which it takes values.

    `frame` is what computes. The function that is minimised, which SciPy calls, may do with tensors what it wants.
    """
    if is_search(frame) and x.device.tracked(x._array) and (error := _leaving(x)) is not None:
        raise error


def _refuse_choices(frame: FrameType) -> None:
    """Raises TrackedError where a search of SciPy's chooses among numbers by tracked tensors, which would be lost."""
    for value in frame.f_locals.values() if is_search(frame) else ():
        if isinstance(value, Tensor):
            _refuse_searches(value, frame)


def _leaving(x: Tensor[Any]) -> errors.TrackedError | None:
    """The error for a tracked tensor that something known takes out of its graph, or out of its batch."""
    asked = asked_by()
    if asked is None:
        return None
    level = followed_by(x)
    batched = level is not None and not level.differentiates
    if asked == "assignment" and batched:
        return errors.TrackedError(
            f"n[i] = x: n is an array of NumPy's, and values of this tensor of shape {x.shape} differ between the "
            "examples of a batch; make n a tensor, as by ad.zeros, and assign to that, or join a list of tensors by "
            "ad.stack"
        )
    if asked == "assignment":
        return errors.TrackedError(
            f"n[i] = x: n is an array of NumPy's, and would take a tracked tensor of shape {x.shape} out of its graph "
            "silently; make n a tensor, as by ad.zeros, and assign to that, or join a list of tensors by ad.stack; "
            "x.detach() leaves the graph"
        )
    ours = scipy_counterpart(asked)
    use = f"for tensors there is {ours}" if ours else "ad.external gives a function of NumPy arrays its derivatives"
    if batched:
        return errors.TrackedError(
            f"{asked} computes with NumPy's numbers, and values of this tensor of shape {x.shape} differ between the "
            f"examples of a batch; {use}"
        )
    return errors.TrackedError(
        f"{asked} computes with NumPy's numbers, and would take a tracked tensor of shape {x.shape} out of its graph "
        f"silently; {use}; x.detach() leaves the graph"
    )


def __array__(x: Tensor[Any], dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """For `np.asarray(x)`. Raises TrackedError for a tracked tensor, ArgumentError where `copy=False` cannot be had."""
    _refuse_tracked(x, "conversion to a NumPy array")
    values = numpy(x)
    cast = dtype is not None and np.dtype(dtype) != values.dtype
    if copy is False and (cast or not _shares(x, values)):
        raise errors.ArgumentError(
            f"conversion to a NumPy array: {x.dtype} on {x.device} as {dtype or x.dtype} needs a copy; leave out "
            "copy=False"
        )
    if cast:
        return values.astype(dtype)
    return values.copy() if copy else values


def _shares(x: Tensor[Any], values: np.ndarray[Any, Any]) -> bool:
    """Whether these values are the tensor's own memory: not all backends have memory that NumPy can look at."""
    return not values.size or np.may_share_memory(values, numpy(x))


_VALUES = (Tensor, np.ndarray, np.generic, int, float, complex, list, tuple)


def __array_ufunc__(x: Tensor[Any], ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """For `np.sin(x)` and `ndarray + x`: what it means on tensors.

    Raises ArgumentTypeError for what has no meaning there, such as `out=`.
    """
    if not all([isinstance(value, _VALUES) or is_table(value) for value in inputs]):
        return NotImplemented
    return _numpy_protocols().array_ufunc(ufunc, method, inputs, options)


def __array_function__(x: Tensor[Any], function: Any, types: Any, args: Any, options: Any) -> Any:
    """For `np.sum(x, axis=0)` and its like: what it means on tensors. Errors as for `np.sin(x)`."""
    if not all([issubclass(kind, (Tensor, np.ndarray, np.generic)) for kind in types]):
        return NotImplemented
    _refuse_searches(x, sys._getframe(1))
    return _numpy_protocols().array_function(function, args, options)


def _numpy_protocols() -> Any:
    """The module of tables, which stands above all functions and is needed by few programs."""
    name = "adjoint.numpy_protocols"
    return sys.modules.get(name) or importlib.import_module(name)


def __dlpack__(
    x: Tensor[Any],
    /,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """For `from_dlpack(x)` of other libraries: a copy, unless the consumer asks for `copy=False`.

    What is shared must not be written to. It is marked read-only for consumers that know the mark, DLPack from 1.0.
    Backends have no streams: `stream` is None, else it is an ArgumentError. Raises TrackedError for a tracked tensor,
    BufferError where memory cannot be shared as asked.
    """
    _refuse_tracked(x, "export through DLPack")
    array = _exported(x)
    if array is not None:
        versioned = max_version if max_version is None or tuple(max_version) >= (1, 0) else None  # before 1.0 none was
        given = {"stream": stream, "max_version": versioned, "dl_device": dl_device, "copy": copy}
        return array.__dlpack__(**{"copy": True, **{name: value for name, value in given.items() if value is not None}})
    if stream is not None:
        raise errors.ArgumentError(
            f"__dlpack__: backends have no streams, received {errors.shown(stream)}; leave it out"
        )
    options: dict[str, Any] = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    values = numpy(x)
    if copy is not False:
        return values.copy().__dlpack__(**options)
    if not _shares(x, values):
        raise BufferError(f"{x.device} has no memory that could be shared; allow a copy")
    if tuple(max_version or (0,)) < (1, 0):  # a consumer that cannot be told
        return x.device.to_numpy(x._array).__dlpack__(**options)
    return values.__dlpack__(**options)


def _exported(x: Tensor[Any]) -> Any:
    """The array of a library with an export of its own; None for NumPy's, and for those without one."""
    array = native(x)
    return None if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__") else array


def __dlpack_device__(x: Tensor[Any], /) -> tuple[int, int]:
    """The kind and number of the device whose memory DLPack exports."""
    array = _exported(x)
    kind, number = (x.device.to_numpy(x._array) if array is None else array).__dlpack_device__()
    return int(kind), number


def _status(x: Tensor[Any]) -> str:
    node = getattr(x._array, "node", None)
    if node is None and tuple(x.device.leaf_array(x._array).shape) != x.shape:
        return f", shape={x.shape} of each example"
    if node is None:
        return ", tracked" if x.device.tracked(x._array) else ""
    return ", leaf" if node.parents == () else f", tracked by {node.name}"


def _lazy(x: Tensor[Any]) -> str | None:
    """What stands for values that would have to be computed."""
    leaf, array = x.device.leaf, x.device.leaf_array(x._array)
    if isinstance(leaf, Lazy):
        return leaf.summary(array)
    return None if leaf.is_concrete(array) else repr(array)


def __repr__(x: Tensor[Any], /) -> str:
    """The values as NumPy shows them, the dtype, the backend, and whether the tensor is tracked.

    In the place of values that are not computed yet stand the shape and its chunks.
    """
    if (lazy := _lazy(x)) is not None:
        return f"Tensor({lazy}, dtype={x.dtype}, device={x.device}{_status(x)})"
    values = np.array2string(x.device.concrete_values(x._array), separator=", ", prefix="Tensor(")
    empty = "" if x.size else f"shape={x.shape}, "
    return f"Tensor({values}, {empty}dtype={x.dtype}, device={x.device}{_status(x)})"


def _repr_html_(x: Tensor[Any], /) -> str:
    """For notebooks: one line of facts above the values."""
    from adjoint.markup import captioned, text  # used by few

    values = _lazy(x) or np.array2string(x.device.concrete_values(x._array), separator=", ")
    return captioned(f"Tensor: {x.dtype}, shape {x.shape}, {x.device}{_status(x)}", text(values))


def __format__(x: Tensor[Any], spec: str, /) -> str:
    """f"{x:.3f}" formats each element so. It reads values, also of tracked tensors: text is no computation.

    Of a tensor that differs between examples, or has no values yet, it is what `str` gives.
    """
    if not spec:
        return str(x)
    array = x.device.leaf_array(x._array)
    if tuple(array.shape) != x.shape or _lazy(x) is not None:
        return str(x)
    return formatted(x.device.concrete_values(x._array), spec)


def formatted(values: np.ndarray[Any, Any], spec: str) -> str:
    """Values as text, each element in this format. A format that is none for their type raises Python's ValueError."""
    if not values.ndim:
        return format(values.item(), spec) if spec else str(values[()])  # of float32 the digits that float32 has
    if not spec:
        return np.array2string(values, separator=", ")
    each: Any = {"all": lambda value: format(value.item(), spec)}
    return np.array2string(values, separator=", ", formatter=each)


def refuse_graphs(x: Tensor[Any], what: str) -> None:
    """Raises TrackedError for a tensor that is more than a constant or a leaf."""
    level, array = x.device, x._array
    while isinstance(level, Decorator):
        node = getattr(array, "node", None)
        if node is not None and node.parents != ():
            raise errors.TrackedError(
                f"{what}: the tensor of shape {x.shape} is the result {node.name!r} of a graph, which cannot go with "
                "it; take x.detach()"
            )
        if level.is_active(array) and (node is None or level.is_fresh):
            raise errors.TrackedError(
                f"{what}: a transform on {level} follows the tensor of shape {x.shape}, and cannot go with it; return "
                "it from the function, or take ad.stop_gradient(x).numpy()"
            )
        level, array = level.inner, level.unwrap(array)


def _dump(x: Tensor[Any], what: str) -> tuple[Backend, Any]:
    """What makes the tensor again: its backend and the values of each level, with the keys of leaves."""
    refuse_graphs(x, what)
    return x.device, x.device.dump(x._array)


def __reduce__(x: Tensor[Any], /) -> Any:
    """Pickling keeps the key of a leaf, so that gradients find it. Raises TrackedError for results."""
    return _load, _dump(x, "pickle")


def _load(device: Backend, state: Any) -> Tensor[Any]:
    return wrap(device.load(state, keys=None), device)


def __copy__(x: Tensor[Any], /) -> Tensor[Any]:
    """Another object with the same value, in the same graph."""
    return wrap(x._array, x.device)


def __deepcopy__(x: Tensor[Any], memo: Any, /) -> Tensor[Any]:
    """A tensor of its own; a leaf becomes another leaf. Raises TrackedError for results.

    In a transform's function it is the same value, and followed as x is.
    """
    if any(level.is_fresh for level in x.device.chain()):
        return wrap(x.device.copied(x._array), x.device)
    device, state = _dump(x, "deepcopy")
    return wrap(device.load(state, keys=memo.setdefault("adjoint: keys of leaves", {})), device)
