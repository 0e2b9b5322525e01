"""Vectorisation: a backend whose arrays may stand for one array per example.

`Batched(B)` answers for a primitive with a *lifted* one that runs it once on `B` for all examples. How
follows from the primitive's kind: the examples are one more axis, in front, which elementwise
primitives broadcast over, reductions and moves of axes step past, and products carry along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Decorator, Implementation
from adjoint.primitives import (
    CONTRACTION,
    CREATION,
    ELEMENTWISE,
    INDEXING,
    LINALG,
    RANDOM,
    REDUCTION,
    STRUCTURAL,
    Kind,
    Primitive,
    Shape,
)
from adjoint.rules import record_of
from adjoint.rules.batching import BatchingRule, aligned, along_axes, count_of, each_alone, in_stacks, with_axis
from adjoint.variables import J


class Batch:
    """An array of a Batched backend: an inner array whose first axis counts the examples.

    `batched=False` marks a constant: the same for every example, without that axis.
    """

    __slots__ = ("batched", "value")

    def __init__(self, value: Array, batched: bool) -> None:
        self.value: Array = value
        self.batched: bool = batched

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

    examples_of: Batched[Any] | None = None  # another level whose examples are those of this one

    def __init__(self, inner: J, size: int | None = None, randomness: str = "error") -> None:
        super().__init__(inner)
        if not isinstance(randomness, str) or randomness not in ("error", "split", "shared"):
            raise errors.ArgumentError(
                f"Batched: randomness is 'error', 'split' or 'shared', received {errors.shown(randomness)}"
            )
        if randomness == "split" and size is None:
            raise errors.ArgumentError("Batched: to split randomness it has to know the number of examples, size=")
        if size is not None and (not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 0):
            raise errors.ArgumentError(f"Batched: the size is a whole number from 0, received {errors.shown(size)}")
        self.size = size
        self.randomness = randomness
        self.many: bool = size is not None

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner, self.size, self.randomness)

    def wrap(self, value: Array) -> Batch:
        return Batch(value, False)

    def unwrap(self, array: Batch) -> Array:
        return array.value

    def is_active(self, array: Batch) -> bool:
        return array.batched

    def map_arrays(self, array: Batch, f: Callable[[Array], Array]) -> Batch:
        return Batch(f(array.value), array.batched)

    def detach(self, array: Batch) -> Batch:
        return self.map_arrays(array, self.inner.detach)

    def apply_custom(self, rules: Any, xs: list[Any]) -> list[Any]:
        """Run for all examples: by a rule for that, or else rule and function on this level."""
        flags = [x._array.batched for x in xs]
        if not any(flags):
            return rules.handed_on(xs, self)  # type: ignore[no-any-return]
        inner, size = self.inner, count_of([x._array.value for x in xs], flags)
        with rules.running_on(inner):
            answer = rules.batch(self, size, flags, rules.below(xs, self))
        if answer is None:
            return super().apply_custom(rules, xs)
        return [rules.tensor(Batch(rules.lift_to(y, inner), flag), self) for y, flag in zip(*answer, strict=True)]

    def rewrap(self, value: Array, is_active: bool) -> Batch:
        return Batch(value, is_active)

    def cotangents(self, arrays: Sequence[Batch], size: int, flags: Sequence[bool]) -> list[Array]:
        """Of what all examples share it is the sum of theirs, which may be the same for each."""
        inner = self.inner
        return [
            with_axis(inner, a.value, a.batched, size)
            if flag
            else inner.sum(a.value, axis=(0,), keepdims=False)
            if a.batched
            else inner.multiply(a.value, size)
            for a, flag in zip(arrays, flags, strict=True)
        ]

    def alike(self, values: list[Batch], tangents: list[Batch]) -> tuple[list[Batch], list[Batch]]:
        size = next((x.value.shape[0] for x in (*values, *tangents) if x.batched), 0)

        def both(x: Batch, other: Batch) -> Batch:
            return Batch(with_axis(self.inner, x.value, x.batched, size), True) if other.batched else x

        return list(map(both, values, tangents)), list(map(both, tangents, values))

    def to_numpy(self, array: Batch) -> np.ndarray[Any, Any]:
        return self.inner.to_numpy(self._shared(array))

    def to_native(self, array: Batch) -> Any:
        return self.inner.to_native(self._shared(array))

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
        given = record_of(primitive).batching
        if primitive.kind is ELEMENTWISE and given is None:
            return self._elementwise(run)
        rule = given or _BY_KIND[primitive.kind]
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
                    f"{_drawing(primitive)} inside vmap: say whether examples draw numbers of their own, "
                    "vmap(..., randomness='split'), or share one draw, randomness='shared'"
                )

            return refuse
        if primitive.operands:

            def each(*operands: Any, shape: Shape, **parameters: Any) -> Batch:
                values = [aligned(self.inner, o.value, o.batched, len(shape)) for o in operands]
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


def _drawing(primitive: Primitive) -> str:
    """What users call it: `random.normal` runs random_normal."""
    return primitive.name.replace("_", ".", 1)


def _shared(primitive: Primitive, run: Implementation) -> Implementation:
    """One draw for all examples, which parameters that differ between them do not have."""

    def lifted(*operands: Batch, **parameters: Any) -> Batch:
        if any(o.batched for o in operands):
            raise errors.ArgumentError(
                f"{_drawing(primitive)} inside vmap: its parameters differ from example to example, which cannot share "
                "one draw then; write randomness='split'"
            )
        return Batch(run(*[o.value for o in operands], **parameters), False)

    return lifted


# What a primitive does whose record says nothing; elementwise ones broadcast.
_BY_KIND: dict[Kind, BatchingRule] = {
    REDUCTION: along_axes,
    STRUCTURAL: along_axes,
    INDEXING: along_axes,
    CONTRACTION: each_alone,
    LINALG: in_stacks,
}
