"""Vectorisation: a backend whose arrays may stand for one array per example.

`Batched(B)` answers for a primitive with a *lifted* one that runs it once on `B` for all examples. How
follows from the primitive's kind: the examples are one more axis, in front, which elementwise
primitives broadcast over, reductions and moves of axes step past, and products carry along.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Backend, Decorator, Implementation
from adjoint.primitives import (
    ARRAY,
    CONTRACTION,
    CREATION,
    ELEMENTWISE,
    INDEX,
    INDEXING,
    LINALG,
    RANDOM,
    REDUCTION,
    STRUCTURAL,
    Kind,
    Primitive,
    Shape,
    adjacent,
    index_shape,
)
from adjoint.rules import BATCHING

J = TypeVar("J", bound=Backend, covariant=True)


class Batch:
    """An array of a Batched backend: an inner array whose first axis counts the examples.

    `batched=False` marks a constant: the same for every example, without that axis.
    """

    __slots__ = ("batched", "value")

    def __init__(self, value: Array, batched: bool) -> None:
        self.value = value
        self.batched = batched

    @property
    def shape(self) -> Shape:
        """The shape of one example."""
        shape = self.value.shape
        return shape[1:] if self.batched else shape  # type: ignore[no-any-return]


class Batched(Decorator[J]):
    """One array per example, computed together, over another backend.

    Parameters
    ----------
    inner
        The backend that runs the primitives.
    size
        The number of examples; needed for random numbers of their own alone.
    randomness
        What random primitives draw: "split" draws for each example, "shared" once for all, "error"
        refuses, so that nobody gets one or the other by accident.

    Raises
    ------
    DeviceError, ArgumentError
        `inner` is no backend; an unknown `randomness`, or "split" without a size.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.Batched(ad.NumPy())
    batched<numpy>
    """

    def __init__(self, inner: J, size: int | None = None, randomness: str = "error") -> None:
        super().__init__(inner)
        if randomness not in ("error", "split", "shared"):
            raise errors.ArgumentError(f"Batched: randomness is 'error', 'split' or 'shared', received {randomness!r}")
        if randomness == "split" and size is None:
            raise errors.ArgumentError("Batched: to split randomness it has to know the number of examples, size=")
        self.size = size
        self.randomness = randomness

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner, self.size, self.randomness)

    def wrap(self, value: Array) -> Batch:
        return Batch(value, False)

    def unwrap(self, array: Batch) -> Array:
        return array.value

    def varies(self, array: Batch) -> bool:
        return array.batched

    def remade(self, array: Batch, f: Callable[[Array], Array]) -> Batch:
        return Batch(f(array.value), array.batched)

    def detach(self, array: Batch) -> Batch:
        return self.remade(array, self.inner.detach)

    def apply_custom(self, rules: Any, xs: list[Any]) -> list[Any]:
        """Run for all examples: by a rule for that, or else rule and function on this level."""
        flags = [x._array.batched for x in xs]
        if not any(flags):
            return rules.handed_on(xs, self)  # type: ignore[no-any-return]
        inner, size = self.inner, _size([x._array.value for x in xs], flags)
        with rules.running_on(inner):
            answer = rules.batch(size, flags, rules.below(xs, self))
        if answer is None:
            return super().apply_custom(rules, xs)
        return [rules.tensor(Batch(rules.lifted(y, inner), flag), self) for y, flag in zip(*answer, strict=True)]

    def rewrap(self, value: Array, varies: bool) -> Batch:
        return Batch(value, varies)

    def cotangents(self, arrays: Sequence[Batch], xs: Sequence[Array], flags: Sequence[bool]) -> list[Array]:
        """Of what all examples share it is the sum."""
        size = next((x.shape[0] for x, flag in zip(xs, flags, strict=True) if flag), 0)
        return [
            self.inner.sum(a.value, axis=(0,), keepdims=False)
            if a.batched and not flag
            else _with_axis(self.inner, a.value, a.batched or not flag, size)
            for a, flag in zip(arrays, flags, strict=True)
        ]

    def alike(self, values: list[Batch], tangents: list[Batch]) -> tuple[list[Batch], list[Batch]]:
        size = next((x.value.shape[0] for x in (*values, *tangents) if x.batched), 0)

        def both(x: Batch, other: Batch) -> Batch:
            return Batch(_with_axis(self.inner, x.value, x.batched, size), True) if other.batched else x

        return list(map(both, values, tangents)), list(map(both, tangents, values))

    def to_numpy(self, array: Batch) -> np.ndarray[Any, Any]:
        return self.inner.to_numpy(self._shared(array))

    def native(self, array: Batch) -> Any:
        return self.inner.native(self._shared(array))

    def _shared(self, array: Batch) -> Array:
        if array.batched:
            raise errors.TrackedError(
                f"the value of a batched tensor of shape {tuple(array.shape)} was asked for, which differs between "
                "examples; inside vmap write ad.where for a choice, or return the tensor"
            )
        return array.value

    def implement(self, primitive: Primitive) -> Implementation:
        run = self.inner[primitive]
        if primitive.kind is CREATION:
            return lambda **parameters: Batch(run(**parameters), False)
        if primitive.kind is RANDOM:
            return self._random(primitive, run)
        if primitive.kind is ELEMENTWISE and primitive.name not in BATCHING:
            return self._elementwise(run)
        rule = BATCHING.get(primitive.name) or _BY_NAME.get(primitive.name) or BY_KIND[primitive.kind]
        inner, results = self.inner, primitive.results

        def lifted(*operands: Any, **parameters: Any) -> Any:
            values = [o.value if o.__class__ is Batch else o for o in operands]
            flags = [o.__class__ is Batch and o.batched for o in operands]
            batched = True in flags
            out = rule(inner, primitive, values, flags, parameters) if batched else run(*values, **parameters)
            if results == 1:
                return Batch(out, batched)
            return tuple([Batch(part, batched) for part in out])

        return lifted

    def _elementwise(self, run: Implementation) -> Implementation:
        """Operands broadcast: of fewer axes than others, they get ones behind the axis of examples."""
        reshape = self.inner.reshape

        def lifted(*operands: Any, **parameters: Any) -> Batch:
            values, flags, batched, top = [], [], False, 0
            for operand in operands:
                flag = False
                if operand.__class__ is Batch:
                    flag = operand.batched
                    batched = batched or flag
                    operand = operand.value
                    rank = len(operand.shape) - flag
                    if rank > top:
                        top = rank
                values.append(operand)
                flags.append(flag)
            if batched and top and len(values) > 1:
                for i, flag in enumerate(flags):
                    if flag and len(values[i].shape) <= top:
                        count, *shape = values[i].shape
                        values[i] = reshape(values[i], shape=(count, *[1] * (top - len(shape)), *shape))
            return Batch(run(*values, **parameters), batched)

        return lifted

    def _random(self, primitive: Primitive, run: Implementation) -> Implementation:
        if self.randomness == "shared":
            return _shared(primitive, run)
        size = self.size
        if self.randomness == "error" or size is None:

            def refuse(*_: Any, **__: Any) -> Any:
                raise errors.ArgumentError(
                    f"{primitive.name} inside vmap: say whether examples draw numbers of their own, "
                    "vmap(..., randomness='split'), or share one draw, randomness='shared'"
                )

            return refuse
        if primitive.operands:

            def each(*operands: Any, shape: Shape, **parameters: Any) -> Batch:
                values = [_aligned(self.inner, o.value, o.batched, len(shape)) for o in operands]
                return Batch(run(*values, shape=(size, *shape), **parameters), True)

            return each
        if "shape" in primitive.parameters:
            return lambda *, shape, **parameters: Batch(run(shape=(size, *shape), **parameters), True)
        uniform, argsort, astype = self.inner.random_uniform, self.inner.argsort, self.inner.astype

        def permutation(*, key: Any, size: int, dtype: Any) -> Batch:
            """The order of random numbers: a sort of them is a permutation of its own for each example."""
            numbers = uniform(key=key, shape=(self.size, size), dtype=np.dtype(np.float64))
            return Batch(astype(argsort(numbers, axis=1, descending=False), dtype=dtype), True)

        return permutation


def _shared(primitive: Primitive, run: Implementation) -> Implementation:
    """One draw for all examples, which parameters that differ between them do not have."""

    def lifted(*operands: Batch, **parameters: Any) -> Batch:
        if any(o.batched for o in operands):
            raise errors.ArgumentError(
                f"{primitive.name} inside vmap: its parameters differ from example to example, which cannot share one "
                "draw then; write randomness='split'"
            )
        return Batch(run(*[o.value for o in operands], **parameters), False)

    return lifted


# --- rules, by kind ------------------------------------------------------------------------------
#
# rule(B, primitive, values, flags, parameters) -> the result with the examples' axis in front, where
# `flags` says which operands have that axis; at least one has.

Rule = Callable[[Any, Primitive, list[Any], list[bool], dict[str, Any]], Any]


def _rank(value: Any, batched: bool) -> int:
    return (len(value.shape) if hasattr(value, "shape") else 0) - batched


def _aligned(B: Any, value: Any, batched: bool, rank: int, tail: int = 0) -> Any:
    """A batched array of one example's rank `rank`: ones go between the examples' axis and the others.

    The last `tail` axes do not count.
    """
    missing = rank - (_rank(value, batched) - tail)
    if not batched or missing <= 0:
        return value
    return B.reshape(value, shape=(value.shape[0], *[1] * missing, *value.shape[1:]))


def _with_axis(B: Any, value: Any, batched: bool, size: int) -> Any:
    """The array with an axis of examples, whether or not they differ."""
    if batched:
        return value
    shape = tuple(value.shape)
    return B.broadcast_to(B.expand_dims(value, axis=(0,)), shape=(size, *shape))


def _size(values: Sequence[Any], flags: Sequence[bool]) -> int:
    return next(v.shape[0] for v, batched in zip(values, flags, strict=True) if batched)  # type: ignore[no-any-return]


def _all_with_axis(B: Any, values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    size = _size(values, flags)
    return [_with_axis(B, v, batched, size) for v, batched in zip(values, flags, strict=True)]


def _shifted(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a call for all examples: axes count one more."""
    shifted = dict(parameters)
    if "axis" in shifted:
        axis = shifted["axis"]  # those that count from the end stay, users' primitives may be given such
        shifted["axis"] = axis + (axis >= 0) if isinstance(axis, int) else tuple(i + (i >= 0) for i in axis)
    return shifted


def _along_axes(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    """What works along given axes, and needs all its operands with the axis of examples."""
    arrays = values if all(flags) else _all_with_axis(B, values, flags)
    return B[primitive](*arrays, **_shifted(parameters))


def _arg(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    """argmax and argmin: without an axis they count through the flat array."""
    (x,) = values
    if parameters["axis"] is not None:
        return _along_axes(B, primitive, values, flags, parameters)
    shape = tuple(x.shape)
    flat = B.reshape(x, shape=(shape[0], math.prod(shape[1:])))
    out = B[primitive](flat, axis=1, keepdims=False)
    return B.reshape(out, shape=(shape[0], *[1] * (len(shape) - 1))) if parameters["keepdims"] else out


def _leading(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    """Linear algebra: whatever stands before the matrices is a stack already."""
    rank = max(_rank(v, batched) - 2 for v, batched in zip(values, flags, strict=True))
    arrays = [_aligned(B, v, batched, rank, 2) for v, batched in zip(values, flags, strict=True)]
    return B[primitive](*arrays, **parameters)


def _matmul(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    x, y = values
    if flags == [True, False] and len(x.shape) == 3 and len(y.shape) == 2:  # one product for all
        rows = B.reshape(x, shape=(x.shape[0] * x.shape[1], x.shape[2]))
        return B.reshape(B.matmul(rows, y), shape=(x.shape[0], x.shape[1], y.shape[1]))
    return _leading(B, primitive, values, flags, parameters)


def _broadcast_to(B: Any, _: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    (x,), shape = values, parameters["shape"]
    return B.broadcast_to(_aligned(B, x, True, len(shape)), shape=(x.shape[0], *shape))


def _reshape(B: Any, _: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    (x,) = values
    return B.reshape(x, shape=(x.shape[0], *parameters["shape"]))


def _permute_dims(B: Any, _: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    return B.permute_dims(values[0], axes=(0, *[i + 1 for i in parameters["axes"]]))


def _pad(B: Any, _: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    return B.pad(values[0], widths=((0, 0), *parameters["widths"]), value=parameters["value"])


def _index(B: Any, _: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    key, arrays, order = _batched_key(B, values[0], flags[0], values[1:], flags[1:], parameters["key"])
    return _reordered(B, B.index(values[0], *arrays, key=key), order)


def _assign(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    """index_set and index_add: the value's axes stand where those of the indexed part do."""
    size = _size(values, flags)
    x = _with_axis(B, values[0], flags[0], size)
    target = index_shape(
        tuple(x.shape)[1:],
        *[tuple(a.shape)[f:] for a, f in zip(values[2:], flags[2:], strict=True)],
        key=parameters["key"],
    )
    key, arrays, order = _batched_key(B, x, True, values[2:], flags[2:], parameters["key"])
    value = values[1]
    if hasattr(value, "shape"):
        value = _aligned(B, _with_axis(B, value, flags[1], size), True, len(target))
        value = _reordered(B, value, tuple(sorted(range(len(order)), key=order.__getitem__)))
    return B[primitive](x, value, *arrays, key=key)


def _batched_key(
    B: Any, x: Any, x_batched: bool, arrays: Sequence[Any], flags: Sequence[bool], key: Any
) -> tuple[Any, list[Any], tuple[int, ...]]:
    """The key that indexes all examples at once, its arrays, and the order of axes it gives.

    The last is a permutation, empty where nothing moves: axis i of the wanted result (examples first) is axis order[i]
    of what the key gives. NumPy puts the axes of index arrays in front where the arrays are not side by side.
    """
    if not arrays:  # basic keys move no axes
        return (slice(0, x.shape[0], 1), *key), [], ()
    ranks = [_rank(a, f) for a, f in zip(arrays, flags, strict=True)]
    common = max(ranks, default=0)
    wanted = _axes(key, common, _rank(x, x_batched))
    if not any(flags):
        new = (slice(0, x.shape[0], 1), *key)
        given = _axes(new, common, len(x.shape), examples=0)
        return new, list(arrays), _order(wanted, given)
    size = _size([x, *arrays], [x_batched, *flags])
    indices = [_aligned(B, a, f, common) for a, f in zip(arrays, flags, strict=True)]
    if not x_batched:  # the examples are the first of the common axes
        given = _axes(key, common, len(x.shape), leading=True)
        return key, indices, _order(wanted, given)
    count = B.reshape(B.arange(start=0, stop=size, step=1, dtype=INDEX), shape=(size, *[1] * common))
    given = _axes((ARRAY, *key), common, len(x.shape), leading=True)
    return (ARRAY, *key), [count, *indices], _order(wanted, given)


def _axes(key: Any, common: int, rank: int, *, examples: int | None = None, leading: bool = False) -> list[Any]:
    """Names for the axes that a key gives: "examples", ("common", i), and ("axis", n) for basic ones.

    `examples` is the entry of the key that stands for the examples; `leading` says that they are
    the first of the common axes.
    """
    names: list[Any] = []
    at: int | None = None
    advanced = any(entry is ARRAY for entry in key)
    basic = 0
    used = 0
    for i, entry in enumerate(key):
        if entry is None:
            names.append(("axis", basic))
            basic += 1
        elif isinstance(entry, slice):
            used += 1
            if i == examples:
                names.append("examples")
            else:
                names.append(("axis", basic))
                basic += 1
        else:
            used += 1
            if advanced and at is None:
                at = len(names)
    names += [("axis", basic + i) for i in range(rank - used)]
    if advanced:
        block: list[Any] = ["examples"] * leading + [("common", i) for i in range(common)]
        place = at if adjacent(key) and at is not None else 0
        names[place:place] = block
    return names


def _order(wanted: list[Any], given: list[Any]) -> tuple[int, ...]:
    return tuple(given.index(name) for name in ["examples", *wanted])


def _reordered(B: Any, x: Any, order: tuple[int, ...]) -> Any:
    return x if order == tuple(range(len(order))) else B.permute_dims(x, axes=order)


def _searchsorted(
    B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]
) -> Any:
    """What all examples search for in one line is one search."""
    x, wanted = values
    if flags == [False, True] and len(x.shape) == 1:
        flat = B.reshape(wanted, shape=(math.prod(wanted.shape),))
        return B.reshape(B.searchsorted(x, flat, **parameters), shape=tuple(wanted.shape))
    return _along_axes(B, primitive, values, flags, parameters)


def _nonzero(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    raise errors.ShapeError(
        "inside vmap the places of non-zero elements differ in number from example to example, so boolean masks cannot "
        "pick elements; use ad.where(mask, x, other)"
    )


def _merged(B: Any, x: Any, axis: int) -> Any:
    """The axis of examples taken into another axis, counted without it; examples count slowest."""
    rest = [i for i in range(1, len(x.shape)) if i != axis + 1]
    order = sorted([*rest, axis + 1])
    order.insert(order.index(axis + 1), 0)
    shape = list(x.shape[1:])
    shape[axis] *= x.shape[0]
    return B.reshape(B.permute_dims(x, axes=tuple(order)), shape=tuple(shape))


def _split(B: Any, x: Any, axis: int, size: int) -> Any:
    """The inverse of `_merged`."""
    shape = list(x.shape)
    shape[axis : axis + 1] = [size, shape[axis] // size]
    out = B.reshape(x, shape=tuple(shape))
    order = [axis, *[i for i in range(len(shape)) if i != axis]]
    return B.permute_dims(out, axes=tuple(order))


# Which axes of a convolution's operands and of its result count the channels that groups divide.
_CHANNELS = {"conv": (1, 0, 1), "conv_input": (1, 0, 1), "conv_weight": (1, 1, 0)}


def _convolution(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    """Other images for each example are more images; other kernels are more groups of channels."""
    run, name = B[primitive], primitive.name
    size = _size(values, flags)
    if size == 0:
        one = primitive.shape(*[tuple(v.shape)[f:] for v, f in zip(values, flags, strict=True)], **parameters)
        return B.full(shape=(0, *one), value=0, dtype=B.dtype_of(values[0]))
    if flags == [True, False] and name != "conv_weight":
        return _split(B, run(_merged(B, values[0], 0), values[1], **parameters), 0, size)
    arrays = _all_with_axis(B, values, flags)
    merged = [_merged(B, v, axis) for v, axis in zip(arrays, _CHANNELS[name], strict=False)]
    out = run(*merged, **{**parameters, "groups": parameters["groups"] * size})
    return _split(B, out, _CHANNELS[name][2], size)


# These need more than their kind says.
_BY_NAME: dict[str, Rule] = {
    "argmax": _arg,
    "argmin": _arg,
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
    "permute_dims": _permute_dims,
    "pad": _pad,
    "matmul": _matmul,
    "attention": _along_axes,  # the examples are heads
    "attention_pullback": _along_axes,
    "index": _index,
    "index_set": _assign,
    "index_add": _assign,
    "index_multiply": _assign,
    "index_max": _assign,
    "index_min": _assign,
    "convolve": _leading,
    "nonzero": _nonzero,
    "searchsorted": _searchsorted,
}
BY_KIND: dict[Kind, Rule] = {
    REDUCTION: _along_axes,
    STRUCTURAL: _along_axes,
    INDEXING: _along_axes,
    CONTRACTION: _convolution,
    LINALG: _leading,
}
