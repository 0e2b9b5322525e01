"""Functions with derivatives and batching of their own.

A custom function meets the levels of its arguments from the outermost inwards. A level that has
nothing to do with them hands it on; the first one that differentiates uses its rule, and runs it on the
level below, where it is a function like any other; a batch runs rule and function for all examples.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import errors, trees
from adjoint.backend import Array, Backend, Decorator
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.batched import Batch, Batched
from adjoint.decorators.dependence import Dependence, Dependent, whole
from adjoint.decorators.tangent import Dual, Tangent
from adjoint.decorators.taylor import Series, Taylor
from adjoint.devices import active_level, default_device, observed_leaf, running_on
from adjoint.tensor import Tensor, cast, lifted, meet, run, wrap
from adjoint.transforms.calls import Function, array_of, refuse_ended, to_numpy, zeros_like
from adjoint.transforms.reverse import vjp

Tensors = list[Tensor[Any]]
# levels that ask for derivatives, or for where there are any
_DIFFERENTIATING = (Autodiff, Tangent, Taylor, Dependence)


class _Rules:
    """What levels ask of a custom function, on flat lists of tensors."""

    name: str

    def plain(self, xs: Tensors) -> Tensors:
        """The function."""
        raise NotImplementedError

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        """The function, and what `backward` needs of it."""
        raise NotImplementedError

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        """The cotangents of the arguments."""
        raise NotImplementedError

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        """The function and its tangents."""
        raise NotImplementedError

    def batch(self, size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]] | None:
        """The function for all examples, if there is a rule for that."""
        return None

    differentiates = True  # it has a derivative of its own
    differs = True  # ... which may be another one than that of what it computes


def _apply(rules: _Rules, xs: Tensors, device: Backend) -> Tensors:
    """Run a custom function on tensors of one device."""
    if not isinstance(device, Decorator):
        return rules.plain(xs)
    inner = device.inner
    below = [wrap(device.unwrap(x._array), inner) for x in xs]
    varying = [device.varies(x._array) for x in xs]
    if not any(varying) and isinstance(device, (*_DIFFERENTIATING, Batched)):
        with running_on(inner):
            return _lift(_apply(rules, below, inner), device)
    if isinstance(device, _DIFFERENTIATING) and not rules.differentiates:
        return rules.plain(xs)
    if isinstance(device, (Taylor, Dependence)) and not rules.differs:
        return rules.plain(xs)
    if isinstance(device, Autodiff):
        return _recorded(rules, xs, below, device)
    if isinstance(device, Tangent):
        moving = [x._array.tangent for x in xs]
        tangents = [
            wrap(zeros_like(inner, y._array) if t is None else t, inner) for t, y in zip(moving, below, strict=True)
        ]
        with running_on(inner):
            ys, moved = rules.push(below, tangents)
        return [
            wrap(Dual(lifted(y, inner), lifted(t, inner) if t.dtype.kind in "fc" else None), device)
            for y, t in zip(ys, moved, strict=True)
        ]
    if isinstance(device, Taylor):
        return _expanded(rules, xs, device)
    if isinstance(device, Dependence):
        return _depending(rules, xs, below, device)
    if isinstance(device, Batched):
        size = next(x._array.value.shape[0] for x in xs if x._array.batched)
        with running_on(inner):
            answer = rules.batch(size, varying, below)
        if answer is not None:
            return [wrap(Batch(lifted(y, inner), flag), device) for y, flag in zip(*answer, strict=True)]
    if not any(isinstance(level, _DIFFERENTIATING) for level in inner.chain()):
        return rules.plain(xs)
    through = _Through(rules, device, varying)
    with running_on(inner):
        ys = _apply(through, below, inner)
    return through.up(ys, through.outs, device)


def _lift(ys: Tensors, device: Backend) -> Tensors:
    return [wrap(lifted(y, device), device) for y in ys]


def _recorded(rules: _Rules, xs: Tensors, below: Tensors, device: Autodiff[Any]) -> Tensors:
    """One node for the function, whose pullback is its backward rule."""
    inner = device.inner
    with running_on(inner):
        ys, saved = rules.forward(below)
    for y in ys:
        if y.device is not inner and not any(level is y.device for level in inner.chain()):
            raise errors.TrackedError(
                f"{rules.name}: the function closes over a tensor that {device} tracks, for which its rule has no "
                "derivative; make it an argument (ad.closure_convert finds such tensors)"
            )
    values = [lifted(y, inner) for y in ys]
    shapes = [x.shape for x in below]
    kinds = [x.dtype for x in below]

    def pull(cotangents: Sequence[Array | None]) -> list[Array | None]:
        given = []
        for c, value in zip(cotangents, values, strict=True):
            array = zeros_like(inner, value) if c is None else c
            given.append(wrap(inner.conj(array) if inner.dtype_of(array).kind == "c" else array, inner))
        with running_on(inner):
            found = rules.backward(saved, given)
        answers: list[Array | None] = []
        for i, (g, shape, dtype) in enumerate(zip(found, shapes, kinds, strict=True)):
            if dtype.kind not in "fc":
                answers.append(None)
                continue
            if g.shape != shape or g.dtype != dtype:
                raise errors.ShapeError(
                    f"{rules.name}: the cotangent of argument {i} is {g.dtype} of shape {g.shape}, the argument "
                    f"{dtype} of shape {shape}"
                )
            array = lifted(g, inner)
            answers.append(inner.conj(array) if dtype.kind == "c" else array)
        return answers

    return [wrap(var, device) for var in device.record(rules.name, pull, [x._array for x in xs], values)]


def _expanded(rules: _Rules, xs: Tensors, device: Taylor[Any]) -> Tensors:
    """The rule pushes the derivatives in t of the arguments, series of one order less, to those of the results."""
    inner, order = device.inner, device.order
    assert order is not None  # what varies on a level without an order comes from rules, not from users
    lower: Taylor[Any] = Taylor.fresh(inner, order - 1)
    below, derivatives = [], []
    for x in xs:
        terms = [x._array.term(k) for k in range(order + 1)]
        first = zeros_like(inner, terms[0]) if terms[1] is None else terms[1]
        below.append(wrap(Series(terms[0], terms[1:-1], None), lower))
        derivatives.append(wrap(Series(first, terms[2:], None), lower))
    with running_on(lower):
        ys, moved = rules.push(below, derivatives)
    answers = []
    for y, t in zip(ys, moved, strict=True):
        derivative: Series = lifted(t, lower)
        known = [derivative.term(k) for k in range(order)] if t.dtype.kind in "fc" else []
        answers.append(wrap(Series(lifted(y, lower).value, known, None), device))
    return answers


def _depending(rules: _Rules, xs: Tensors, below: Tensors, device: Dependence[Any]) -> Tensors:
    """What the tangents that the rule gives depend on, where those of the arguments do on what they do.

    Where a rule applies such a function to tangents, itself perhaps, that stands for everything.
    """
    inner = device.inner
    if device.in_rule:
        with running_on(inner):
            ys = [lifted(y, inner) for y in rules.plain(below)]
        patterns = [x._array.pattern for x in xs if x._array.pattern is not None]
        return [
            wrap(Dependent(y, whole(patterns, math.prod(y.shape)) if inner.dtype_of(y).kind in "fc" else None), device)
            for y in ys
        ]
    lower: Dependence[Any] = Dependence.fresh(inner)
    lower.in_rule = True
    values = [wrap(lower.wrap(y._array), lower) for y in below]
    moving = [wrap(Dependent(y._array, x._array.pattern), lower) for x, y in zip(xs, below, strict=True)]
    with running_on(lower):
        ys, moved = rules.push(values, moving)
    return [
        wrap(Dependent(lifted(y, lower).value, lifted(t, lower).pattern), device)
        for y, t in zip(ys, moved, strict=True)
    ]


class _Through(_Rules):
    """A custom function as one on the arrays inside a decorator's: of all examples of a batch, say."""

    def __init__(self, rules: _Rules, level: Decorator[Any], flags: list[bool]) -> None:
        self.rules, self.name = rules, rules.name
        self.differentiates, self.differs = rules.differentiates, rules.differs
        self.level, self.flags = level, flags
        self.outs: list[bool] = []

    def up(self, xs: Tensors, flags: list[bool], level: Any) -> Tensors:
        """Tensors of the inner backend as those of the level."""
        if isinstance(level, Batched):
            return [wrap(Batch(lifted(x, level.inner), flag), level) for x, flag in zip(xs, flags, strict=True)]
        return [wrap(level.wrap(lifted(x, level.inner)), level) for x in xs]

    def down(self, ys: Tensors, level: Any) -> tuple[Tensors, list[bool]]:
        arrays = [lifted(y, level) for y in ys]
        return [wrap(level.unwrap(a), level.inner) for a in arrays], [level.varies(a) for a in arrays]

    def fresh(self, xs: Tensors) -> Decorator[Any]:
        """The level over the backend of these tensors; the one that was may have ended."""
        return type(self.level).fresh(meet(*xs), *self.level.configuration()[1:])

    def plain(self, xs: Tensors) -> Tensors:
        level = self.fresh(xs)
        with running_on(level):
            ys, self.outs = self.down(self.rules.plain(self.up(xs, self.flags, level)), level)
        return ys

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        level = self.fresh(xs)
        with running_on(level):
            results, saved = self.rules.forward(self.up(xs, self.flags, level))
            ys, self.outs = self.down(results, level)
        return ys, (level, saved, xs)

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        level, inside, xs = saved
        size = next((x.shape[0] for x, flag in zip(xs, self.flags, strict=True) if flag), None)
        with running_on(level):
            found = self.rules.backward(inside, self.up(cotangents, self.outs, level))
            arrays = [lifted(g, level) for g in found]
        answers = []
        inner = level.inner
        for array, flag in zip(arrays, self.flags, strict=True):
            value, batched = level.unwrap(array), level.varies(array)
            if flag and not batched:
                value = inner.broadcast_to(inner.expand_dims(value, axis=(0,)), shape=(size, *value.shape))
            elif batched and not flag:  # all examples share the argument
                value = inner.sum(value, axis=(0,), keepdims=False)
            answers.append(wrap(value, inner))
        return answers

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        level = self.fresh([*xs, *tangents])
        with running_on(level):
            ys, moved = self.rules.push(self.up(xs, self.flags, level), self.up(tangents, self.flags, level))
            below, self.outs = self.down(ys, level)
            down, flags = self.down(moved, level)
        size = next((x.shape[0] for x, flag in zip(xs, self.flags, strict=True) if flag), 0)
        spread = [
            run("broadcast_to", (run("expand_dims", (t,), axis=(0,)),), shape=(size, *t.shape))
            if mine and not flag
            else t
            for t, flag, mine in zip(down, flags, self.outs, strict=True)
        ]
        return below, spread


# --- what users write ----------------------------------------------------------------------------


class _Custom(_Rules):
    """A function of pytrees, with rules, as one of flat lists; one object per call."""

    def __init__(self, owner: Any, structure: Any, static: list[Any], places: list[int], fixed: dict[int, Any]) -> None:
        self.owner, self.structure, self.static, self.places = owner, structure, static, places
        self.fixed = fixed
        self.name = owner.__name__
        self.out_structure: Any = None
        self.out_static: list[Any] = []

    def arguments(self, xs: Sequence[Any]) -> list[Any]:
        """The positional arguments with these leaves, without those of `nondiff_argnums`."""
        leaves = list(self.static)
        for place, x in zip(self.places, xs, strict=True):
            leaves[place] = x
        return list(trees.unflatten(self.structure, leaves))

    def all_arguments(self, xs: Sequence[Any]) -> list[Any]:
        args = self.arguments(xs)
        for i, x in self.fixed.items():  # in order
            args.insert(i, x)
        return args

    def results(self, out: Any) -> Tensors:
        leaves, self.out_structure = trees.flatten(out)
        return [x if isinstance(x, Tensor) else _tensor(x, self.name) for x in leaves]

    def plain(self, xs: Tensors) -> Tensors:
        return self.results(self.owner.function(*self.all_arguments(xs)))

    def per_argument(self, found: Any, likes: Tensors, what: str) -> Tensors:
        """A tuple with an entry per argument, as a list per leaf; None stands for zeros."""
        children = self.structure.children()
        if not isinstance(found, (tuple, list)) or len(found) != len(children):
            raise errors.ArgumentError(
                f"{self.name}: its rule gives {what} as a tuple with an entry per argument, {len(children)}; "
                f"received {type(found).__name__}" + (f" of {len(found)}" if isinstance(found, (tuple, list)) else "")
            )
        slots: dict[int, Any] = {}
        start = 0
        for entry, child in zip(found, children, strict=True):
            if entry is not None:
                leaves, given = trees.flatten(entry)
                if given != child:
                    raise errors.ArgumentError(
                        f"{self.name}: {what} have the structure {given}, the argument has {child}"
                    )
                slots.update(enumerate(leaves, start))
            start += child.num_leaves
        answers = []
        for place, like in zip(self.places, likes, strict=True):
            x = slots.get(place)
            if x is None:
                answers.append(wrap(zeros_like(like.device, like._array), like.device))
            else:
                answers.append(
                    x if isinstance(x, Tensor) else wrap(array_of(np.asarray(x, like.dtype), like.device), like.device)
                )
        return answers


class _Decorated:
    """A callable that stands for a function and carries rules."""

    _rules: type[_Custom]

    def __init__(self, function: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        if not callable(function):
            raise errors.ArgumentTypeError(f"{type(self).__name__}: expected a function, received {function!r}")
        if not isinstance(nondiff_argnums, (tuple, list)) or any(
            isinstance(i, bool) or not isinstance(i, int) or i < 0 for i in nondiff_argnums
        ):
            raise errors.ArgumentTypeError(
                f"{type(self).__name__}: nondiff_argnums are positions, received {errors.shown(nondiff_argnums)}"
            )
        self.function = function
        self.nondiff_argnums = tuple(sorted(set(nondiff_argnums)))
        functools.update_wrapper(self, function)
        self.__name__ = f"{type(self).__name__}({getattr(function, '__name__', repr(function))})"
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):
            self._signature = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._ready()
        fixed, args = self._split(self._positional(args, kwargs))
        leaves, structure = trees.flatten(args)
        places = [i for i, x in enumerate(leaves) if isinstance(x, (Tensor, np.ndarray, np.generic, float, complex))]
        tensors = [leaves[i] for i in places]
        known = [x for x in tensors if isinstance(x, Tensor)]
        refuse_ended(self.__name__, known)
        level = active_level()
        device = meet(*known) if known else (level or default_device())
        xs = [
            wrap(lifted(x, device), device) if isinstance(x, Tensor) else wrap(array_of(x, device), device)
            for x in tensors
        ]
        rules = self._rules(self, structure, leaves, places, fixed)
        ys = _apply(rules, xs, device) if xs else rules.plain([])
        out = trees.unflatten(rules.out_structure, ys)
        if known or level is not None:
            return out
        return trees.map(lambda x: to_numpy(x._array, x.device) if isinstance(x, Tensor) else x, out)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, with the defaults of those that are not given: rules have an entry for each."""
        if self._signature is None or (not kwargs and len(args) >= len(self._signature.parameters)):
            if kwargs:
                raise errors.ArgumentTypeError(f"{self.__name__}: has no signature; give arguments by position")
            return args
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise errors.ArgumentTypeError(f"{self.__name__}: {error}") from None
        bound.apply_defaults()
        if bound.kwargs:
            raise errors.ArgumentTypeError(
                f"{self.__name__}: its rules take arguments by position, and {list(bound.kwargs)} can only be given by "
                "name"
            )
        return bound.args

    def _split(self, args: tuple[Any, ...]) -> tuple[dict[int, Any], tuple[Any, ...]]:
        """The arguments of `nondiff_argnums`, and the others."""
        if not self.nondiff_argnums:
            return {}, args
        if self.nondiff_argnums[-1] >= len(args):
            raise errors.ArgumentError(
                f"{self.__name__}: nondiff_argnums are {self.nondiff_argnums}, but the call has {len(args)} arguments"
            )
        fixed = {i: args[i] for i in self.nondiff_argnums}
        for i, x in fixed.items():
            if any([isinstance(leaf, Tensor) for leaf in trees.flatten(x)[0]]):
                raise errors.ArgumentTypeError(
                    f"{self.__name__}: argument {i}, one of nondiff_argnums, is a tensor; make it an ordinary one, "
                    "for which the rule gives None"
                )
        return fixed, tuple([x for i, x in enumerate(args) if i not in fixed])

    def _rule(self, name: str, rule: Any) -> Function:
        """A rule that was given, if it is a function."""
        if not callable(rule):
            raise errors.ArgumentTypeError(f"{self.__name__}: {name} is a function, received {errors.shown(rule)}")
        return rule  # type: ignore[no-any-return]

    def _ready(self) -> None:
        raise NotImplementedError


def _tensor(x: Any, name: str) -> Tensor[Any]:
    if not isinstance(x, (np.ndarray, np.generic, int, float, complex)):
        raise errors.ArgumentTypeError(f"{name}: results are tensors, received {type(x).__name__}")
    device = active_level() or observed_leaf(default_device())
    return wrap(array_of(x, device), device)


class _VJP(_Custom):
    owner: custom_vjp

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        assert self.owner.fwd is not None
        out = self.owner.fwd(*self.all_arguments(xs))
        if not isinstance(out, tuple) or len(out) != 2:
            raise errors.ArgumentTypeError(f"{self.name}: its forward rule returns a pair (result, residuals)")
        return self.results(out[0]), (xs, out[1])

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        assert self.owner.bwd is not None
        xs, residuals = saved
        found = self.owner.bwd(*self.fixed.values(), residuals, trees.unflatten(self.out_structure, cotangents))
        return self.per_argument(found, xs, "cotangents")

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        """Forward mode: the backward rule is linear in the cotangents, and its transpose pushes tangents."""
        ys, saved = self.forward(xs)
        zeros = [wrap(zeros_like(y.device, y._array), y.device) for y in ys]
        floats = [i for i, y in enumerate(ys) if y.dtype.kind in "fc"]

        def pulled(*cotangents: Any) -> Any:
            filled = list(zeros)
            for i, c in zip(floats, cotangents, strict=True):
                filled[i] = c
            return [g for g, x in zip(self.backward(saved, filled), xs, strict=True) if x.dtype.kind in "fc"]

        _, transpose = vjp(pulled, *[zeros[i] for i in floats])
        moved = transpose([t for t, x in zip(tangents, xs, strict=True) if x.dtype.kind in "fc"])
        answers = list(zeros)
        for i, t in zip(floats, moved, strict=True):
            answers[i] = t
        return ys, answers


class custom_vjp(_Decorated):
    """A function with a reverse-mode rule of its own.

    `f.defvjp(fwd, bwd)`: `fwd(*args)` gives (result, residuals), `bwd(residuals, cotangent)` a tuple with the
    cotangent of each argument, None for zero. The rule is itself a function of tensors, so that it may be
    differentiated again; forward mode transposes it. Cotangents of complex results are those of `Tensor.backward`.

    Arguments at the positions `nondiff_argnums` are no arrays (functions, say): bwd gets them first, and gives no
    cotangents for them. Arguments by name and defaults reach the rules by position.

    Raises
    ------
    GraphError
        The function was called before its rules were given.
    ArgumentTypeError
        A rule is no function; an argument of `nondiff_argnums` is a tensor; one that has no position.
    ArgumentError, ShapeError
        In backward: the rule gives cotangents that do not fit the arguments.
    TrackedError
        The function closes over a tracked tensor.

    Examples
    --------
    >>> import adjoint as ad
    >>> @ad.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (ad.clip(g, -1.0, 1.0),))
    >>> ad.grad(lambda x: 10 * clipped(x))(2.0)
    np.float64(1.0)
    """

    _rules = _VJP

    def __init__(self, function: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        super().__init__(function, nondiff_argnums)
        self.fwd: Function | None = None
        self.bwd: Function | None = None

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Give the rules."""
        self.fwd, self.bwd = self._rule("fwd", fwd), self._rule("bwd", bwd)

    def _ready(self) -> None:
        if self.fwd is None or self.bwd is None:
            raise errors.GraphError(f"{self.__name__} has no rules yet; give them with defvjp(fwd, bwd)")


class _JVP(_Custom):
    owner: custom_jvp

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        assert self.owner.jvp is not None
        out = self.owner.jvp(*self.fixed.values(), tuple(self.arguments(xs)), tuple(self.arguments(tangents)))
        if not isinstance(out, tuple) or len(out) != 2:
            raise errors.ArgumentTypeError(f"{self.name}: its rule returns a pair (result, tangent)")
        ys = self.results(out[0])
        structure = self.out_structure
        moved = self.results(out[1])
        if structure != self.out_structure:
            raise errors.ArgumentError(
                f"{self.name}: the tangent has the structure {self.out_structure}, the result {structure}"
            )
        for y, t in zip(ys, moved, strict=True):
            if y.shape != t.shape:
                raise errors.ShapeError(f"{self.name}: a tangent has shape {t.shape}, its result {y.shape}")
            if t.dtype.kind == "c" and y.dtype.kind == "f":
                raise errors.DtypeError(f"{self.name}: a tangent is {t.dtype}, its result {y.dtype}; take its .real")
        # integers have no tangent
        return ys, [cast(t, y.dtype) if y.dtype.kind in "fc" else y for y, t in zip(ys, moved, strict=True)]

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        return self.plain(xs), xs

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        """Reverse mode: the rule is linear in the tangents, and its transpose pulls cotangents."""
        zeros = [wrap(zeros_like(x.device, x._array), x.device) for x in saved]
        floats = [i for i, x in enumerate(saved) if x.dtype.kind in "fc"]

        def pushed(*tangents: Any) -> Any:
            filled = list(zeros)
            for i, t in zip(floats, tangents, strict=True):
                filled[i] = t
            return self.push(saved, filled)[1]

        _, transpose = vjp(pushed, *[zeros[i] for i in floats])
        found = transpose(cotangents)
        answers = list(zeros)
        for i, g in zip(floats, found, strict=True):
            answers[i] = g
        return answers


class custom_jvp(_Decorated):
    """A function with a forward-mode rule of its own.

    `f.defjvp(rule)`: `rule(primals, tangents)` gives (result, tangent), linear in the tangents; primals and tangents
    are tuples. Reverse mode transposes it. Arguments at the positions `nondiff_argnums` are no arrays (functions, say),
    and stand before the tuples instead; arguments by name and defaults reach the rule by position.

    Raises GraphError where the function is called before its rule was given, ArgumentError, ShapeError and DtypeError
    for a tangent that does not fit the result, ArgumentTypeError for a rule that is no function.

    >>> import adjoint as ad
    >>> @ad.custom_jvp
    ... def log1pexp(x):
    ...     return ad.log1p(ad.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t * (1 - 1 / (1 + ad.exp(x)))
    >>> ad.grad(log1pexp)(100.0)
    np.float64(1.0)
    """

    _rules = _JVP

    def __init__(self, function: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        super().__init__(function, nondiff_argnums)
        self.jvp: Function | None = None

    def defjvp(self, rule: Function) -> Function:
        """Give the rule, which comes back: `@f.defjvp` above it does as well."""
        self.jvp = self._rule("a rule", rule)
        return rule

    def defjvps(self, *rules: Function | None) -> None:
        """Give a rule for each argument: `rule(tangent, result, *primals)`, None where the derivative is zero.

        >>> import adjoint as ad
        >>> @ad.custom_jvp
        ... def product(x, y):
        ...     return x * y
        >>> product.defjvps(lambda t, out, x, y: t * y, None)
        >>> ad.grad(product, (0, 1))(2.0, 3.0)
        (np.float64(3.0), np.float64(0.0))
        """
        if self.nondiff_argnums:
            raise errors.ArgumentError(f"{self.__name__}: with nondiff_argnums give one rule, with defjvp")
        given = [rule if rule is None else self._rule("a rule", rule) for rule in rules]

        def total(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(primals) != len(given):
                raise errors.ArgumentError(
                    f"{self.__name__}: defjvps has {len(given)} rules, and the call {len(primals)} arguments"
                )
            out = self(*primals)
            terms = [rule(t, out, *primals) for rule, t in zip(given, tangents, strict=True) if rule is not None]
            none = trees.map(lambda y: wrap(zeros_like(y.device, y._array), y.device), out)
            return out, functools.reduce(lambda a, b: trees.map(operator.add, a, b), terms) if terms else none

        self.defjvp(total)

    def _ready(self) -> None:
        if self.jvp is None:
            raise errors.GraphError(f"{self.__name__} has no rule yet; give it with defjvp(rule)")


class _Batching(_Custom):
    owner: custom_batching
    differentiates = False

    def batch(self, size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        assert self.owner.rule is not None
        marks: list[Any] = [False] * len(self.static)
        for place, flag in zip(self.places, flags, strict=True):
            marks[place] = flag
        answer = self.owner.rule(size, list(trees.unflatten(self.structure, marks)), *self.arguments(xs))
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise errors.ArgumentTypeError(f"{self.name}: its rule returns a pair (result, whether each is batched)")
        ys = self.results(answer[0])
        batched, structure = trees.flatten(answer[1])
        if structure != self.out_structure:
            raise errors.ArgumentError(
                f"{self.name}: its rule says {answer[1]!r} about results of structure {self.out_structure}"
            )
        for y, flag in zip(ys, batched, strict=True):
            if flag and (not y.ndim or y.shape[0] != size):
                raise errors.ShapeError(
                    f"{self.name}: a result of shape {y.shape} is said to be batched, but its first axis does not "
                    f"count {size} examples"
                )
        return ys, [bool(flag) for flag in batched]


class custom_batching(_Decorated):
    """A function with a rule of its own for `vmap`.

    `f.def_batching(rule)`: `rule(axis_size, in_batched, *args)` gets the arguments of all examples, those batched
    with an axis of examples in front, and gives (result, out_batched): results for all examples, and for each
    whether it has that axis. Derivatives are those of the function; where they are taken inside vmap, f itself is
    batched.

    Raises GraphError where the function is called before its rule was given, ShapeError for a result whose first
    axis does not count the examples.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> @ad.custom_batching
    ... def total(x):
    ...     return x.sum()
    >>> @total.def_batching
    ... def rule(size, batched, x):
    ...     return ad.sum(x, axis=1), True
    >>> ad.vmap(total)(np.ones((2, 3)))
    array([3., 3.])
    """

    _rules = _Batching

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.rule: Function | None = None

    def def_batching(self, rule: Function) -> Function:
        """Give the rule, which comes back: `@f.def_batching` above it does as well."""
        self.rule = self._rule("a rule", rule)
        return rule

    def _ready(self) -> None:
        if self.rule is None:
            raise errors.GraphError(f"{self.__name__} has no rule yet; give it with def_batching(rule)")
