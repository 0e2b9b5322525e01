"""A compiled function among levels: its derivatives and batches, each compiled as well.

A transform around a compiled function meets it as it meets a function with rules of its own. The rule is no other than
the function's derivative: that, too, is a function of arrays, and is recorded when it is first asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from adjoint import tree as trees
from adjoint.backend import Backend, Decorator
from adjoint.compiler.programs import Halves, Place, Program, halves, placed, results_of
from adjoint.compiler.traced import Traced
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.batched import Batched
from adjoint.devices import observed_leaf, running_on
from adjoint.dtypes import INEXACT, chosen_dtype, default_dtype
from adjoint.graph.nodes import Var
from adjoint.operands import common_backend, lift_to
from adjoint.random_keys import Replay as Keys
from adjoint.random_keys import replayed
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import zeros_like
from adjoint.transforms.forward import jvp
from adjoint.transforms.levels import CustomRules, Pullback, Tensors
from adjoint.transforms.recomputed import Examples, apply_on_level
from adjoint.transforms.reverse import vjp

Flat = Callable[[Tensors], Tensors]
Made = Callable[[Sequence[Any], Sequence[Var]], Tensors]  # results, of arrays and of those on the level


class Family:
    """A function of tensors, and what was made of it: programs by the types of arguments, derivatives, batches."""

    f: Flat
    name: str

    def __init__(self, name: str, f: Flat) -> None:
        self.name, self.f = name, f
        self.programs: dict[Any, Any] = {}
        self.kin: dict[Any, Any] = {}


class Rules(CustomRules):
    """One call of such a function. All that is computed for it draws the same random numbers."""

    family: Family
    keys: Keys
    name: str
    options: Any

    differs = False

    def __init__(self, family: Family, options: Any, keys: Keys | None = None) -> None:
        self.family, self.name, self.options = family, family.name, options
        self.keys = Keys() if keys is None else keys

    def on(self, xs: Tensors) -> Tensors:
        return apply_on_level(self, xs)

    def kin(self, identity: Any, make: Callable[[], Any]) -> Any:
        """What is made of the function once."""
        found = self.family.kin.get(identity)
        if found is None:
            found = self.family.kin.setdefault(identity, make())
        return found

    def derived(self, identity: Any, f: Flat) -> Rules:
        family = self.kin(identity, lambda: Family(f"{self.name}, {identity[0]}", f))
        return Rules(family, self.options, self.keys)

    # --- programs ---

    def device_over(self, base: Backend) -> Backend:
        """Where the function finds its arguments: with reverse mode if it had that where it was called."""
        return base if self.options is None else Autodiff(base, *self.options)

    def identity(self, kind: str, xs: Tensors, base: Backend) -> Any:
        specs = tuple([(x.shape, x.dtype) for x in xs])
        return kind, base, self.options, default_dtype(), chosen_dtype(), specs

    def program(self, xs: Tensors, base: Backend) -> Program:
        identity = self.identity("plain", xs, base)
        found = self.family.programs.get(identity)
        if found is None:
            device = self.device_over(base)

            def record(place: Place) -> Program:
                given = [place.argument(x.shape, x.dtype, device) for x in xs]
                results, outputs = results_of(place, self.family.f([x for _, x in given]), {})
                graph: Any = place.recording.graphs[0]
                graph.inputs, graph.outputs = [value for value, _ in given], outputs
                return Program(base, graph, results, _row(len(results)), self.name)

            found = placed(base, device, record)
            self.family.programs[identity] = found
        return found

    def parts(self, xs: Tensors, active: Sequence[int], base: Backend) -> Halves:
        """The function, and its pullback to these arguments."""
        identity = *self.identity("halves", xs, base), tuple(active)
        found = self.family.programs.get(identity)
        if found is None:
            device = self.device_over(base)

            def record(place: Place) -> Halves:
                given = [place.argument(x.shape, x.dtype, device) for x in xs]
                tensors = [x for _, x in given]
                ys, pull = vjp(
                    lambda *moved: self.family.f(_with(tensors, active, moved)), *[tensors[i] for i in active]
                )
                _, outputs = results_of(place, ys, {})
                cotangents = [place.argument(y.shape, y.dtype, device) for y in ys]
                gradients = pull(
                    [g if y.dtype.kind in INEXACT else y for (_, g), y in zip(cotangents, ys, strict=True)]
                )
                graph: Any = place.recording.graphs[0]
                graph.inputs = [value for value, _ in (*given, *cotangents)]
                graph.outputs = [*outputs, *results_of(place, gradients, {})[1]]
                return halves(graph, len(ys), [value for value, _ in cotangents], base, self.name)

            found = placed(base, device, record)
            self.family.programs[identity] = found
        return found

    def drawing(self, draws: bool) -> Any:
        return replayed(self.keys) if draws else contextlib.nullcontext()

    # --- what levels ask for ---

    def plain(self, xs: Tensors) -> Tensors:
        device = common_backend(*xs)
        base = grounded(xs, device)
        if base is None:
            with replayed(self.keys):
                return self.family.f(xs)
        program = self.program(xs, base)
        with self.drawing(program.draws):
            ys = program.tensors([_leaf_array(x) for x in xs], xs)
        return [wrap(lift_to(y, device), device) for y in ys]

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        return self.forward_by(xs, [True] * len(xs))

    def forward_by(self, xs: Tensors, active: Sequence[bool]) -> tuple[Tensors, Any]:
        device = common_backend(*xs)
        base = grounded(xs, device)
        places = [i for i, (x, by) in enumerate(zip(xs, active, strict=True)) if by and x.dtype.kind in INEXACT]
        if base is None or not places:
            return self.on(xs), (xs, None, ())
        parts = self.parts(xs, places, base)
        with self.drawing(parts.draws):
            out = parts.forward([_leaf_array(x) for x in xs])
        ys = [wrap(device.lift(y, base), device) for y in out[: parts.results]]
        return ys, (xs, (parts, places, base, device), out[parts.results :])

    def node(self, xs: Tensors, device: Autodiff[Any], active: Sequence[int]) -> Made | None:
        """What calls of the function record on reverse mode over what computes, for arguments like these."""
        run = self._direct([wrap(_leaf_array(x), device.inner) for x in xs], device.inner, active)
        if run is None:
            return None
        name = self.name

        def made(arrays: Sequence[Any], operands: Sequence[Var]) -> list[Tensor[Any]]:
            values, pull = run(arrays)
            return [wrap(var, device) for var in device.record(name, pull, operands, values)]

        return made

    def pullback(self, below: Tensors, device: Decorator[Any], active: Sequence[bool]) -> tuple[list[Any], Pullback]:
        base = grounded(below, device.inner)
        wanted = [i for i, x in enumerate(below) if active[i] and x.dtype.kind in INEXACT]
        if base is not None and base is device.inner and wanted:
            run = self._direct(below, base, wanted)
            if run is not None:
                return run([_leaf_array(x) for x in below])
        return super().pullback(below, device, active)

    def _direct(
        self, xs: Tensors, inner: Backend, active: Sequence[int]
    ) -> Callable[[Sequence[Any]], tuple[list[Any], Pullback]] | None:
        """The results and the pullback of a node, of arrays on what computes; None where it takes more than that."""
        with running_on(inner):
            parts = self.parts(xs, active, inner)
        graph: Any = parts.forward.graph
        if parts.draws or any([x.dtype.kind == "c" for x in (*graph.inputs, *graph.outputs[: parts.results])]):
            return None
        count, size = parts.results, len(xs)
        on_levels = self.pull_of(None, inner, [(x.shape, x.dtype) for x in xs], Keys())  # recorded, or of a batch

        def run(arrays: Sequence[Any]) -> tuple[list[Any], Pullback]:
            out = parts.forward(arrays)
            kept = out[count:]

            def pull(on: Any, cotangents: Sequence[Any], operands: Sequence[Any], results: Sequence[Any]) -> list[Any]:
                if on is not inner:
                    return on_levels(on, cotangents, operands, results)
                given = [zeros_like(on, y) if c is None else c for c, y in zip(cotangents, results, strict=True)]
                found = dict(zip(active, parts.backward([*kept, *given]), strict=True))
                return [found.get(i) for i in range(size)]

            return list(out[:count]), pull

        return run

    def residuals(self, xs: Tensors, ys: Tensors) -> Any:
        return xs, None, ()

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        xs, how, kept = saved
        if how is not None:
            parts, active, base, device = how
            if grounded(cotangents, device) is base:
                with self.drawing(parts.draws):
                    out = parts.backward([*kept, *[_leaf_array(g) for g in cotangents]])
                found = dict(zip(active, out, strict=True))
                return [wrap(device.lift(found[i], base), device) if i in found else x for i, x in enumerate(xs)]
        return self.derived(("pullback", len(xs)), lambda both: self._pulled(both, len(xs))).on([*xs, *cotangents])

    def _pulled(self, both: Tensors, count: int) -> Tensors:
        xs, cotangents = both[:count], both[count:]
        active = [i for i, x in enumerate(xs) if x.dtype.kind in INEXACT]
        ys, pull = vjp(lambda *moved: self.family.f(_with(xs, active, moved)), *[xs[i] for i in active])
        found = dict(
            zip(
                active,
                pull([g if y.dtype.kind in INEXACT else y for g, y in zip(cotangents, ys, strict=True)]),
                strict=True,
            )
        )
        return [found.get(i, x) for i, x in enumerate(xs)]

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        family, count = self.family, len(xs)

        def pushed(both: Tensors) -> Tensors:
            xs, tangents = both[:count], both[count:]
            active = [i for i, x in enumerate(xs) if x.dtype.kind in INEXACT]
            ys, moved = jvp(
                lambda *moved: family.f(_with(xs, active, moved)),
                [xs[i] for i in active],
                [tangents[i] for i in active],
            )
            return [*ys, *moved]

        out = self.derived(("pushforward", count), pushed).on([*xs, *tangents])
        return out[: len(out) // 2], out[len(out) // 2 :]

    def batch(self, level: Batched[Any], size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        identity = "examples", *level.configuration()[1:], size, tuple(flags), tuple([(x.shape, x.dtype) for x in xs])
        examples = self.kin(
            (*identity, "function"),
            lambda: Examples(self.family.f, Batched(observed_leaf(level), *level.configuration()[1:]), size, flags),
        )
        ys = self.derived(identity, examples.alike).on(xs)
        return ys, examples.found


def _with(xs: Tensors, places: Sequence[int], values: Sequence[Any]) -> Tensors:
    given = list(xs)
    for i, x in zip(places, values, strict=True):
        given[i] = x
    return given


def _leaf_array(x: Tensor[Any]) -> Any:
    return x._device.leaf_array(x._array)


def grounded(xs: Sequence[Tensor[Any]], device: Backend) -> Backend | None:
    """The backend that computes, if these are constants of all levels over it; None where a level has to see them."""
    base = observed_leaf(device)
    level = device
    while level is not base:
        if not isinstance(level, Decorator) or level.observes:
            return None
        level = level.inner
    if isinstance(base.leaf, Traced):
        return None
    return None if any([x._device.tracked(x._array) for x in xs]) else base


def _row(count: int) -> Any:
    """The structure of a list of so many leaves."""
    return trees.structure([0.0] * count)
