"""Functions that users give derivatives and batching of their own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import errors, trees
from adjoint.devices import active_level, default_device
from adjoint.tensor import Tensor, cast, lifted, meet, same, wrap
from adjoint.transforms.calls import Function, array_of, check_callable, refuse_ended, zeros_like
from adjoint.transforms.levels import Rules, Tensors, apply
from adjoint.transforms.reverse import vjp


class _Custom(Rules):
    """A function of pytrees, with rules, as one of flat lists; one object per call."""

    def __init__(self, owner: Any, structure: Any, static: list[Any], places: list[int]) -> None:
        self.owner, self.structure, self.static, self.places = owner, structure, static, places
        self.name = owner.__name__
        self.out_structure: Any = None
        self.out_static: list[Any] = []

    def arguments(self, xs: Tensors, static: Sequence[Any] | None = None) -> list[Any]:
        """The positional arguments with these leaves, objects of their own: a function may assign to them."""
        leaves = list(self.static if static is None else static)
        for place, x in zip(self.places, xs, strict=True):
            leaves[place] = same(x)
        return list(trees.unflatten(self.structure, leaves))

    def results(self, out: Any) -> Tensors:
        leaves, self.out_structure = trees.flatten(out)
        return [x if isinstance(x, Tensor) else _tensor(x, self.name) for x in leaves]

    def plain(self, xs: Tensors) -> Tensors:
        return self.results(self.owner.function(*self.arguments(xs)))

    def per_argument(self, found: Any, likes: Tensors, what: str) -> Tensors:
        """A tuple with an entry per argument, as a list per leaf; None stands for zeros."""
        structure_of = trees.unflatten(self.structure, list(range(len(self.static))))
        if not isinstance(found, (tuple, list)) or len(found) != len(structure_of):
            raise errors.ArgumentError(
                f"{self.name}: its rule gives {what} as a tuple with an entry per argument, {len(structure_of)}; "
                f"received {type(found).__name__}" + (f" of {len(found)}" if isinstance(found, (tuple, list)) else "")
            )
        slots: dict[int, Any] = {}
        for entry, numbers in zip(found, structure_of, strict=True):
            wanted, shape = trees.flatten(numbers)
            if entry is None:
                continue
            leaves, given = trees.flatten(entry)
            if given != shape:
                raise errors.ArgumentError(f"{self.name}: {what} have the structure {given}, the argument has {shape}")
            slots.update(zip(wanted, leaves, strict=True))
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

    def __init__(self, function: Function) -> None:
        check_callable(type(self).__name__, function)
        self.function = function
        functools.update_wrapper(self, function)
        self.__name__ = f"{type(self).__name__}({getattr(function, '__name__', repr(function))})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._ready()
        if kwargs:
            args = self._positional(args, kwargs)
        leaves, structure = trees.flatten(args)
        places = [i for i, x in enumerate(leaves) if isinstance(x, (Tensor, np.ndarray, np.generic, float, complex))]
        tensors = [leaves[i] for i in places]
        known = [x for x in tensors if isinstance(x, Tensor)]
        refuse_ended(self.__name__, known)
        level = active_level()
        device = meet(*known) if known else (level or default_device())
        xs = [
            wrap(lifted(x, device) if isinstance(x, Tensor) else array_of(x, device, keep=True), device)
            for x in tensors
        ]
        rules = self._rules(self, structure, leaves, places)
        ys = apply(rules, xs, device) if xs else rules.plain([])
        out = trees.unflatten(rules.out_structure, ys)
        if known or level is not None:
            return out
        return trees.map(lambda x: x.numpy()[()] if isinstance(x, Tensor) else x, out)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments given by name in their places: rules take them there."""
        try:
            call = inspect.signature(self.function).bind(*args, **kwargs)
        except (TypeError, ValueError) as error:
            raise errors.ArgumentTypeError(f"{self.__name__}: {error}") from None
        call.apply_defaults()
        if call.kwargs:
            raise errors.ArgumentTypeError(
                f"{self.__name__}: rules have no keyword-only arguments such as {', '.join(call.kwargs)}; let the "
                "function take them by position"
            )
        return call.args

    def _ready(self) -> None:
        raise NotImplementedError


def _tensor(x: Any, name: str) -> Tensor[Any]:
    if not isinstance(x, (np.ndarray, np.generic, int, float, complex)):
        raise errors.ArgumentTypeError(f"{name}: results are tensors, received {type(x).__name__}")
    device = active_level() or default_device().leaf
    return wrap(array_of(x, device, keep=True), device)


class _VJP(_Custom):
    owner: custom_vjp

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        assert self.owner.fwd is not None
        out = self.owner.fwd(*self.arguments(xs))
        if not isinstance(out, tuple) or len(out) != 2:
            raise errors.ArgumentTypeError(f"{self.name}: its forward rule returns a pair (result, residuals)")
        return self.results(out[0]), (xs, out[1])

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        assert self.owner.bwd is not None
        xs, residuals = saved
        residuals = trees.map(lambda r: same(r) if isinstance(r, Tensor) else r, residuals)  # bwd may assign to them
        found = self.owner.bwd(residuals, trees.unflatten(self.out_structure, cotangents))
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

    Raises
    ------
    GraphError
        The function was called before its rules were given.
    ArgumentError, ShapeError, DtypeError
        The rule gives cotangents that do not fit the arguments. In a walk back these are the cause of a BackwardError.
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

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.fwd: Function | None = None
        self.bwd: Function | None = None

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Give the rules. Raises ArgumentTypeError for what is no function."""
        check_callable("defvjp", fwd)
        check_callable("defvjp", bwd)
        self.fwd, self.bwd = fwd, bwd

    def _ready(self) -> None:
        if self.fwd is None or self.bwd is None:
            raise errors.GraphError(f"{self.__name__} has no rules yet; give them with defvjp(fwd, bwd)")


class _JVP(_Custom):
    owner: custom_jvp

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        assert self.owner.jvp is not None
        constant = [0 if isinstance(x, int) else None for x in self.static]
        out = self.owner.jvp(tuple(self.arguments(xs)), tuple(self.arguments(tangents, constant)))
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
            if t.dtype.kind == "c" and y.dtype.kind != "c":
                raise errors.DtypeError(f"{self.name}: a tangent is {t.dtype}, its result {y.dtype}; take its .real")
        return ys, [cast(t, y.dtype) for y, t in zip(ys, moved, strict=True)]

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
    are tuples; the tangent of a Python integer is 0, and None stands for that of what is no number. Reverse mode
    transposes it.

    Raises GraphError where the function is called before its rule was given, ArgumentError, ShapeError and DtypeError
    for a tangent that does not fit the result; in a walk back they are the cause of a BackwardError.

    >>> import adjoint as ad
    >>> @ad.custom_jvp
    ... def log1pexp(x):
    ...     return ad.log1p(ad.exp(x))
    >>> log1pexp.defjvp(lambda p, t: (log1pexp(p[0]), t[0] * (1 - 1 / (1 + ad.exp(p[0])))))
    >>> ad.grad(log1pexp)(100.0)
    np.float64(1.0)
    """

    _rules = _JVP

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.jvp: Function | None = None

    def defjvp(self, rule: Function) -> None:
        """Give the rule. Raises ArgumentTypeError for what is no function."""
        check_callable("defjvp", rule)
        self.jvp = rule

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
    >>> total.def_batching(lambda size, batched, x: (ad.sum(x, axis=1), True))
    >>> ad.vmap(total)(np.ones((2, 3)))
    array([3., 3.])
    """

    _rules = _Batching

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.rule: Function | None = None

    def def_batching(self, rule: Function) -> None:
        """Give the rule. Raises ArgumentTypeError for what is no function."""
        check_callable("def_batching", rule)
        self.rule = rule

    def _ready(self) -> None:
        if self.rule is None:
            raise errors.GraphError(f"{self.__name__} has no rule yet; give it with def_batching(rule)")
