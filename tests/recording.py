"""Backends that record: a decorator, and a leaf without values, of which a program is run at the end.

Neither knows any primitive by name. That both give the results of the backend alone says that primitives, rules and
functions look at no values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import adjoint as ad
from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Array, Backend, Decorator, Implementation, LeafBackend
from adjoint.concrete import Check, collected_checks
from adjoint.devices import transform_level
from adjoint.primitives import Primitive, Spec, result_spec
from adjoint.tensor import wrap

NUMPY = ad.NumPy()


class Box:
    """An array of the recording decorator."""

    def __init__(self, value: Array) -> None:
        self.value = value

    @property
    def shape(self) -> Any:
        return self.value.shape


class Recorder(Decorator[Any]):
    """Runs every primitive on the inner backend, and keeps their names."""

    names: list[str] = []

    def wrap(self, value: Array) -> Box:
        return Box(value)

    def unwrap(self, array: Box) -> Array:
        return array.value

    def implement(self, primitive: Primitive) -> Implementation:
        run = self.inner[primitive]

        def recorded(*operands: Any, **parameters: Any) -> Any:
            self.names.append(primitive.name)
            out = run(*[x.value if isinstance(x, Box) else x for x in operands], **parameters)
            return tuple(map(Box, out)) if primitive.results > 1 else Box(out)

        return recorded


class Value:
    """An array of the recording leaf: what is known of it, and for a constant its values."""

    def __init__(self, spec: Spec, const: Any = None) -> None:
        self.shape, self.dtype, self.const = tuple(spec.shape), spec.dtype, const


class Recording(LeafBackend):
    """A program for NumPy, whose arrays are constants here. With `fold` primitives of constants are run at once.

    Without it nobody can look at constants either, such as labels or indices that a function makes of its arguments.
    """

    name = "recording"

    def __init__(self, fold: bool = True) -> None:
        super().__init__()
        self.fold = fold
        self.steps: list[tuple[Primitive, Any, Any, list[Value]]] = []

    def chain(self) -> Any:
        yield self
        yield from NUMPY.chain()

    def lift(self, array: Any, source: Backend) -> Any:
        return array if source is self else self.from_numpy(np.asarray(array), copy=False)

    def implement(self, primitive: Primitive) -> Implementation:
        def record(*operands: Any, **parameters: Any) -> Any:
            if self.fold and all(self.is_concrete(x) for x in operands):
                out = _run(primitive, [_const(x) for x in operands], parameters)
                made = [self.from_numpy(np.asarray(x), copy=False) for x in out]
            elif primitive.dynamic:
                raise errors.TrackedError(f"{self}: the shape of {primitive.name} depends on values")
            else:
                specs = [Spec(x.shape, x.dtype) if isinstance(x, Value) else x for x in operands]
                found = result_spec(primitive, specs, parameters)
                made = [Value(spec) for spec in (found if primitive.results > 1 else [found])]
                self.steps.append((primitive, operands, parameters, made))
            return tuple(made) if primitive.results > 1 else made[0]

        return record

    def is_concrete(self, array: Any) -> bool:
        return not isinstance(array, Value) or (self.fold and array.const is not None)

    def dtype_of(self, array: Value) -> Any:
        return array.dtype

    def from_numpy(self, values: Any, *, copy: bool) -> Value:
        values = np.array(values) if copy else values
        return Value(Spec(values.shape, values.dtype), values)

    def to_numpy(self, array: Value) -> Any:
        if not self.is_concrete(array):
            raise errors.TrackedError(f"{self}: there are no values before the program runs")
        return array.const

    def replay(self, given: dict[Value, Any], checks: list[Check]) -> Any:
        """A function that gives the values of arrays, when those of the arguments are given and pass the checks."""
        known = dict(given)
        read = lambda x: known[x] if x in known else _const(x)
        try:
            for primitive, operands, parameters, made in self.steps:
                known.update(zip(made, _run(primitive, list(map(read, operands)), parameters), strict=True))
        finally:  # what follows from values that fail a check is not told before it
            for check in checks:
                if check.holds in known or self.is_concrete(check.holds):
                    check.settle(read(check.holds), read(check.values))
        return read


class OnDemand(Recording):
    """The same leaf, whose program runs as far as it goes whenever somebody asks for values, as pages do that print."""

    name = "asked"  # as long as "numpy": pages cut messages

    def __init__(self) -> None:
        super().__init__(fold=False)

    def implement(self, primitive: Primitive) -> Implementation:
        record = super().implement(primitive)

        def run(*operands: Any, **parameters: Any) -> Any:
            values = [self.to_numpy(x) if isinstance(x, Value) else x for x in operands]
            made = [self.from_numpy(np.asarray(x), copy=False) for x in _run(primitive, values, parameters)]
            return tuple(made) if primitive.results > 1 else made[0]

        return run if primitive.dynamic else record

    def is_concrete(self, array: Any) -> bool:
        return True

    def to_numpy(self, array: Value) -> Any:
        steps, self.steps = self.steps, []
        for primitive, operands, parameters, made in steps:
            for value, x in zip(made, _run(primitive, list(map(_const, operands)), parameters), strict=True):
                value.const = np.asarray(x)
        return array.const


def _const(x: Any) -> Any:
    return x.const if isinstance(x, Value) else x


def _run(primitive: Primitive, operands: Any, parameters: Any) -> Any:
    with np.errstate(all="ignore"):
        out = NUMPY[primitive](*operands, **parameters)
    return out if primitive.results > 1 else [out]


def on_recorder(f: Any, *args: Any) -> Any:
    """f of arrays, on the recording decorator."""
    level = Recorder(NUMPY)
    out = f(*[ad.asarray(x, device=level) if isinstance(x, np.ndarray) else x for x in args])
    return trees.map(lambda x: x.numpy() if isinstance(x, ad.Tensor) else x, out)


def on_recording(f: Any, *args: Any, fold: bool = True) -> Any:
    """f of arrays, recorded on a leaf for this call, and then run."""
    leaf, given = Recording.fresh(fold), {}

    def argument(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        value = Value(Spec(x.shape, x.dtype))
        given[value] = x
        return wrap(value, leaf)

    with transform_level(leaf), collected_checks() as checks:
        out = f(*[argument(x) for x in args])
        read = leaf.replay(given, checks)
    return trees.map(lambda x: read(x.device.leaf_array(x._array)) if isinstance(x, ad.Tensor) else x, out)
