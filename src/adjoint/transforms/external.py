"""Functions that compute outside of adjoint, on NumPy arrays, with derivatives that their callers give."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.concrete import Staged
from adjoint.devices import current_level, default_device
from adjoint.functions.arguments import called, check_callable
from adjoint.functions.shape import stack
from adjoint.operands import cast, common_backend, concrete_values, lift_to
from adjoint.primitives import DType, Shape
from adjoint.tensor import Tensor, refuse_ended, wrap
from adjoint.transforms.arguments import Function, array_of, to_numpy, zeros_like
from adjoint.transforms.levels import CustomRules, Tensors, apply
from adjoint.transforms.libraries import of_any_library


def external(
    f: Function, /, *, vjp: Function | None = None, jvp: Function | None = None, like: Function | None = None
) -> Function:
    """A function of NumPy arrays as one of tensors: a C library, a simulation, whatever adjoint cannot look into.

    Parameters
    ----------
    f
        From NumPy arrays, which it must not write to, to one array or a tuple of them.
    vjp
        `vjp(g, *args)`, for reverse mode: from the cotangent of the result (of several, one after the other) and the
        arguments to the cotangents of these: a tuple with one for each, None for zero, or just that of the only one.
    jvp
        `jvp(t, *args)`, for forward mode: from the tangent of the argument (of several, one after the other) and the
        arguments to the tangent of the result, or a tuple of them.
    like
        `like(*args)` gives tensors of the shapes and dtypes of the results, from the arguments as tensors: what a
        function of `ad.compile` has to know before f runs. Their values do not count.

    Returns
    -------
    Callable
        A function of arrays and tensors. Inside of `vmap` it calls f, and the rules, for one example after the other.
        It can be differentiated once, by the rules; more often if a rule is an `external` function with rules in turn.
        Complex cotangents are those of `Tensor.backward`: the vjp of `x**2` is `g * conj(2 * x)`.
        Of several devices it takes values to NumPy and back. In a function of `ad.compile` it is a step of the graph;
        elsewhere where there are no values yet, as under `jax.jit`, it raises.

    Raises
    ------
    ArgumentTypeError
        A function or rule is none; an argument or a result is no array.
    TrackedError
        A derivative is needed for which no rule was given; the message says which one. `like` is missing in a function
        of `ad.compile`.
    ArgumentError, ShapeError, DtypeError
        A rule gives something else than what it is asked for, or f something else than `like` says.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> def area(r):               # imagine that it calls a library of C
    ...     return np.pi * r**2
    >>> area = ad.external(area, vjp=lambda g, r: g * 2 * np.pi * r)
    >>> ad.grad(lambda r: area(2 * r))(1.0).round(4)
    np.float64(25.1327)
    """
    check_callable("external", f)
    for what, rule in (("vjp", vjp), ("jvp", jvp), ("like", like)):
        if rule is not None and not callable(rule):
            raise errors.ArgumentTypeError(f"external: {what} is a function, received {errors.shown(rule)}")
    name = f"external({getattr(f, '__name__', repr(f))})"

    @of_any_library
    @functools.wraps(f)
    def run(*args: Any) -> Any:
        for i, x in enumerate(args):
            if not isinstance(x, (Tensor, np.ndarray, np.generic, int, float, complex)):
                raise errors.ArgumentTypeError(f"{name}: argument {i} is {errors.shown(x)}, expected an array")
        known = [x for x in args if isinstance(x, Tensor)]
        for x in known:
            refuse_ended(x, name)
        level = current_level()
        device = common_backend(*known) if known else (level or default_device())
        xs = [
            wrap(lift_to(x, device) if isinstance(x, Tensor) else array_of(x, device, keep=True), device) for x in args
        ]
        rules = _External(name, f, vjp, jvp, like)
        ys = apply(rules, xs, device) if xs else rules.plain(xs)
        if not known and level is None:
            ys = [to_numpy(y._array, y.device) for y in ys]
        return rules.results.tree(ys)

    made: Any = run
    made.__name__ = made.__qualname__ = name
    made.made_by_external = made.__code__
    return made  # type: ignore[no-any-return]


def is_external(rule: Function) -> bool:
    """Whether `external` made a rule, which is a function of tensors then, or made what it is a copy of."""
    code = getattr(rule, "__code__", None)  # wrappers have the attributes of what they wrap, and other code
    return code is not None and getattr(rule, "made_by_external", None) is code


class _Results:
    """Whether f gives a tuple, which is known once it ran."""

    several = False

    def tree(self, leaves: Sequence[Any]) -> Any:
        return tuple(leaves) if self.several else leaves[0]

    def leaves(self, tree: Any, what: str) -> list[Any]:
        """The results as f gives them, or what a rule gives for them."""
        if self.several != isinstance(tree, tuple):
            raise errors.ArgumentTypeError(f"{what} is {errors.shown(tree)}, the result a {self.word}")
        return list(tree) if self.several else [tree]

    @property
    def word(self) -> str:
        return "tuple" if self.several else "single array"


class _Opaque(CustomRules):
    """A function that sees values as NumPy arrays, and so has no derivative but one that is given."""

    def values(self, given: list[np.ndarray[Any, Any]]) -> list[Any]:
        """The results, as arrays."""
        raise NotImplementedError

    def missing(self, what: str) -> errors.TrackedError:
        raise NotImplementedError

    def specs(self, xs: Tensors) -> list[tuple[Shape, DType]]:
        """The shapes and dtypes of the results, where there are no values yet."""
        raise NotImplementedError

    def later(self, xs: Tensors, leaf: Any) -> Tensors:
        """The results as those of a step of the leaf's program."""
        specs = self.specs(xs)

        def run(*given: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
            found = self.values(list(given))
            if len(found) != len(specs):
                raise errors.ArgumentError(f"{self.name}: {len(found)} results, and like= gives {len(specs)}")
            return [
                self.settled(y, shape, dtype, i) for i, (y, (shape, dtype)) in enumerate(zip(found, specs, strict=True))
            ]

        return [wrap(y, leaf) for y in leaf.host(run, [x._array for x in xs], specs)]

    def settled(self, y: np.ndarray[Any, Any], shape: Shape, dtype: DType, i: int) -> np.ndarray[Any, Any]:
        """A result, of the type that was said before."""
        if y.shape != shape:
            raise errors.ShapeError(f"{self.name}: result {i} has shape {y.shape}, and like= gives {shape}")
        if y.dtype != dtype:
            raise errors.DtypeError(f"{self.name}: result {i} is {y.dtype}, and like= gives {dtype}")
        return y

    def plain(self, xs: Tensors) -> Tensors:
        device = common_backend(*xs) if xs else current_level() or default_device()
        if isinstance(device, Staged) and device.hosts and not all([device.is_concrete(x._array) for x in xs]):
            return self.later(xs, device)
        given = [np.asarray(concrete_values(x, self.name)).view() for x in xs]
        for values in given:
            values.flags.writeable = False
        return [wrap(array_of(y, device, keep=True), device) for y in self.values(given)]

    def on(self, xs: Tensors) -> Tensors:
        """The same function on the levels below: they look at a copy, what is known of this level stays."""
        return apply(copy.copy(self), xs, common_backend(*xs)) if xs else self.plain(xs)

    def batch(self, level: Any, size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        if not size:
            raise errors.ArgumentError(f"{self.name}: of a batch of no examples nobody knows the shape of the result")
        rows = [self.on([x[k] if flag else x for x, flag in zip(xs, flags, strict=True)]) for k in range(size)]
        return [stack(column) for column in zip(*rows, strict=True)], [True] * len(rows[0])

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        return self.on(xs), xs

    def residuals(self, xs: Tensors, ys: Tensors) -> Any:
        return xs


class _External(_Opaque):
    """A function of NumPy arrays with rules."""

    def __init__(
        self, name: str, f: Function, vjp: Function | None, jvp: Function | None, like: Function | None
    ) -> None:
        self.name, self.f, self.vjp, self.jvp, self.like = name, f, vjp, jvp, like
        self.results = _Results()
        self.said: bool | None = None  # whether `like` gave a tuple

    def values(self, given: list[np.ndarray[Any, Any]]) -> list[Any]:
        out = self.f(*given)
        if self.said not in (None, isinstance(out, tuple)):
            raise errors.ArgumentTypeError(
                f"{self.name}: the result is {errors.shown(out)}, and like= gives a {self.results.word}"
            )
        self.results.several = isinstance(out, tuple)
        return [_array(y, f"{self.name}: a result") for y in self.results.leaves(out, self.name)]

    def missing(self, what: str) -> errors.TrackedError:
        return errors.TrackedError(
            f"{self.name}: its derivative is asked for, and it has no rule for that; give it {what}, or take "
            "ad.stop_gradient of its arguments"
        )

    def specs(self, xs: Tensors) -> list[tuple[Shape, DType]]:
        if self.like is None:
            raise errors.TrackedError(
                f"{self.name}: ad.compile records a function of NumPy arrays, and has to know what it gives before it "
                "runs: say like=, a function of the arguments that gives tensors of the same shapes and dtypes"
            )
        leaf: Any = common_backend(*xs).leaf
        with leaf.aside():
            out = called(self.name, "like(*args)", self.like, *xs)
        self.said = self.results.several = isinstance(out, tuple)
        tensors = self.results.leaves(out, f"{self.name}: what like gives")
        for y in tensors:
            if not isinstance(y, Tensor):
                raise errors.ArgumentTypeError(f"{self.name}: like gives {errors.shown(y)}, expected tensors")
        return [(y.shape, y.dtype) for y in tensors]

    def backward(self, saved: Tensors, cotangents: Tensors) -> Tensors:
        if self.vjp is None:
            raise self.missing("vjp=")
        if is_external(self.vjp):
            found = self.vjp(*cotangents, *saved)
            return [_zeros(x) if g is None else g for x, g in zip(saved, _each(found), strict=True)]
        return _Pullback(self, len(saved)).on([*saved, *cotangents])

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        if self.jvp is None:
            raise self.missing("jvp=")
        ys = self.on(xs)
        if is_external(self.jvp):
            found = self.results.leaves(self.jvp(*tangents, *xs), f"{self.name}: what jvp gives")
        else:
            found = _Pushforward(self, len(xs)).on([*xs, *tangents])
        return ys, [
            _beside(t, y, f"{self.name}: the tangent of result {i}")
            for i, (t, y) in enumerate(zip(found, ys, strict=True))
        ]


class _Rule(_Opaque):
    """A rule of a function: of its arguments, and linear in what follows them, by which alone it has derivatives."""

    given: str  # how the user gives it

    def __init__(self, of: _External, count: int) -> None:
        self.of, self.count = of, count
        self.name = f"{self.given} of {of.name}"
        self.active = True  # whether the level that applies it follows the arguments of the function

    def forward_by(self, xs: Tensors, active: Sequence[bool]) -> tuple[Tensors, Any]:
        self.active = any(active[: self.count])
        return self.forward(xs)

    def push_of(
        self, xs: Tensors, tangents: Sequence[Tensor[Any] | None]
    ) -> tuple[Tensors, Sequence[Tensor[Any] | None]]:
        self.active = any([t is not None for t in tangents[: self.count]])
        return super().push_of(xs, tangents)

    def missing(self, what: str) -> errors.TrackedError:
        return errors.TrackedError(
            f"{self.of.name}: a derivative of its derivative is asked for, and {self.given} is a function of NumPy "
            f"arrays; give {self.given}=ad.external(...) with rules of its own"
        )

    def linear(self, xs: Tensors) -> Tensors:
        """The arguments of the function, of which this level follows none."""
        if self.active:
            raise self.missing(self.given)
        return xs[: self.count]

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        known = self.linear(xs)
        return self.on(xs), self.on([*known, *tangents[self.count :]])


class _Pullback(_Rule):
    given = "vjp"

    def specs(self, xs: Tensors) -> list[tuple[Shape, DType]]:
        return [(x.shape, x.dtype) for x in xs[: self.count]]

    def values(self, given: list[np.ndarray[Any, Any]]) -> list[Any]:
        xs, cotangents = given[: self.count], given[self.count :]
        assert self.of.vjp is not None
        found = _each(called(self.name, "vjp(g, *args)", self.of.vjp, *cotangents, *xs))
        if len(found) != self.count:
            raise errors.ArgumentError(
                f"{self.name}: it gives {len(found)} cotangents, and the function has {self.count} arguments"
            )
        what = f"{self.name}: the cotangent of argument"
        return [_like(g, x, f"{what} {i}") for i, (g, x) in enumerate(zip(found, xs, strict=True))]

    def backward(self, saved: Tensors, cotangents: Tensors) -> Tensors:
        known = self.linear(saved)
        if self.of.jvp is None:
            raise self.of.missing("jvp=, by which its vjp is differentiated in the cotangent")
        return [*map(_zeros, known), *_Pushforward(self.of, self.count).on([*known, *cotangents])]


class _Pushforward(_Rule):
    given = "jvp"

    def specs(self, xs: Tensors) -> list[tuple[Shape, DType]]:
        return self.of.specs(xs[: self.count])

    def settled(self, y: np.ndarray[Any, Any], shape: Shape, dtype: DType, i: int) -> np.ndarray[Any, Any]:
        if y.dtype.kind == "c" and dtype.kind != "c":
            raise errors.DtypeError(f"{self.name}: tangent {i} is {y.dtype}, the result {dtype}; take its real part")
        return super().settled(y.astype(dtype, copy=False), shape, dtype, i)

    def values(self, given: list[np.ndarray[Any, Any]]) -> list[Any]:
        xs, tangents = given[: self.count], given[self.count :]
        assert self.of.jvp is not None
        found = self.of.results.leaves(
            called(self.name, "jvp(t, *args)", self.of.jvp, *tangents, *xs), f"{self.name}: what it gives"
        )
        return [_array(t, f"{self.name}: a tangent") for t in found]

    def backward(self, saved: Tensors, cotangents: Tensors) -> Tensors:
        known = self.linear(saved)
        if self.of.vjp is None:
            raise self.of.missing("vjp=, by which its jvp is differentiated in the tangents")
        return [*map(_zeros, known), *_Pullback(self.of, self.count).on([*known, *cotangents])]


def _each(found: Any) -> list[Any]:
    """What a vjp gives for each argument: a tuple, or just that of the only one."""
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _array(y: Any, what: str) -> np.ndarray[Any, Any]:
    if not isinstance(y, (np.ndarray, np.generic, int, float, complex)):
        raise errors.ArgumentTypeError(f"{what} is {errors.shown(y)}, expected a NumPy array")
    return np.asarray(y)


def _like(g: Any, x: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, Any]:
    """A cotangent in the dtype of its argument; None is zero. Raises where a part would be lost."""
    if g is None:
        return np.zeros(x.shape, x.dtype)
    values = _array(g, what)
    if values.shape != x.shape:
        raise errors.ShapeError(f"{what} has shape {values.shape}, the argument {x.shape}")
    if values.dtype.kind == "c" and x.dtype.kind != "c":
        raise errors.DtypeError(f"{what} is {values.dtype}, the argument {x.dtype}; take its .real")
    return values.astype(x.dtype)


def _beside(t: Tensor[Any], y: Tensor[Any], what: str) -> Tensor[Any]:
    """A tangent in the dtype of its result."""
    if t.shape != y.shape:
        raise errors.ShapeError(f"{what} has shape {t.shape}, the result {y.shape}")
    if t.dtype.kind == "c" and y.dtype.kind != "c":
        raise errors.DtypeError(f"{what} is complex, {t.dtype}, the result {y.dtype}; take its real part")
    return cast(t, y.dtype)


def _zeros(x: Tensor[Any]) -> Tensor[Any]:
    return wrap(zeros_like(x.device, x._array), x.device)
