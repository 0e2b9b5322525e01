"""Functions that users give derivatives and batching of their own."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.decorators.batched import Batched
from adjoint.devices import current_level, default_device, observed_leaf
from adjoint.dtypes import FLOATING, INEXACT, promote, promote_scalar
from adjoint.functions.arguments import called, check_callable, is_integer, is_value, kind_of
from adjoint.operands import cast, common_backend, is_weak, lift_to, refuse
from adjoint.tensor import Number, Tensor, refuse_ended, same, wrap
from adjoint.transforms.arguments import Function, array_of, check_pair, to_numpy, zeros_like
from adjoint.transforms.levels import CustomRules, Tensors, apply, notice
from adjoint.transforms.libraries import of_any_library
from adjoint.transforms.reverse import conjugate, paired, stop_gradient, vjp


class _Custom(CustomRules):
    """A function of pytrees, with rules, as one of flat lists; one object per call."""

    def __init__(self, owner: Any, structure: Any, static: list[Any], places: list[int], fixed: dict[int, Any]) -> None:
        self.owner, self.structure, self.static, self.places = owner, structure, static, places
        self.fixed = fixed
        self.name = owner.__name__
        self.out_structure: Any = None
        self.out_static: list[Any] = []

    def arguments(self, xs: Tensors, static: Sequence[Any] | None = None) -> list[Any]:
        """The positional arguments without those of `nondiff_argnums`, with these leaves.

        The leaves are objects of their own: a function may assign to them.
        """
        leaves = list(self.static if static is None else static)
        for place, x in zip(self.places, xs, strict=True):
            leaves[place] = same(x)
        return list(trees.unflatten(self.structure, leaves))

    def all_arguments(self, xs: Tensors) -> list[Any]:
        args = self.arguments(xs)
        for i, x in self.fixed.items():  # in order
            args.insert(i, x)
        return args

    def results(self, out: Any) -> Tensors:
        leaves, self.out_structure = trees.flatten(out)
        return [x if isinstance(x, Tensor) else _tensor(x, self.name) for x in leaves]

    def plain(self, xs: Tensors) -> Tensors:
        return self.results(self.owner.function(*self.all_arguments(xs)))

    def ruled(self, what: str, form: str, rule: Function, *args: Any) -> Any:
        """A rule called; where it takes what is tracked out of its graph, the error names it."""
        try:
            return called(f"{self.name}: {what}", form, rule, *args)
        except errors.TrackedError as error:
            raise errors.TrackedError(
                f"{self.name}: {what} meets what a transform follows: write it with functions of adjoint, or take "
                f"ad.external, whose rules get NumPy arrays. {error}"
            ) from error

    def transposed(self, rule: Function, likes: Tensors, given: Tensors, what: str) -> Tensors:
        """What the transpose of a linear rule makes of these tensors, where the rule takes tensors like those.

        Those that are no floating numbers have zeros for derivatives, in the rule's arguments and in its transpose's.
        Raises ArgumentError for a rule that is not linear: one is its own derivative. The first time that is looked at,
        and with a tolerance far above rounding in any dtype.
        """
        # not at 0 or 1, where powers, exponentials and clipping at 1 may look linear
        floats = [i for i, x in enumerate(likes) if x.dtype.kind in INEXACT]
        at = [_full_like(likes[i], 1.5) for i in floats]

        def among_zeros(values: Sequence[Any]) -> Tensors:
            given = dict(zip(floats, values, strict=True))
            return [given[i] if i in given else _full_like(x, 0) for i, x in enumerate(likes)]

        value, transpose = vjp(lambda *values: rule(among_zeros(values)), *at)
        found = list(transpose(given))
        if not self.owner.transposable and found:
            with common_backend(*at).leaf.quiet():
                forth, size, eps = paired(*stop_gradient(([conjugate(x) for x in given], value)))
                back, other, _ = paired(*stop_gradient((found, at)))
                left = 10 * eps * paired(*stop_gradient((given, [_full_like(x, 1.0) for x in given])))[1]
                message = (
                    f"{self.name}: its rule is not linear in {what}, so that it has no transpose; every term has one "
                    f"of the {what} as a factor"
                )
                wrong = abs(forth - back) > 0.05 * (size + other) + left  # of a derivative that is 0, but for rounding
                self.owner.transposable = refuse(wrong, lambda: errors.ArgumentError(message), self.name)
        return among_zeros(found)

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


def _full_like(x: Tensor[Any], value: float) -> Tensor[Any]:
    return wrap(x.device.full(shape=x.shape, value=value, dtype=x.dtype), x.device)


class _Decorated:
    """A callable that stands for a function and carries rules."""

    _rules: type[_Custom]
    transposable = False  # whether its rule was seen to be linear

    def __init__(self, function: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        check_callable(type(self).__name__, function)
        if not isinstance(nondiff_argnums, (tuple, list)) or any(not is_integer(i) or i < 0 for i in nondiff_argnums):
            raise errors.ArgumentTypeError(
                f"{type(self).__name__}: nondiff_argnums are positions, received {errors.shown(nondiff_argnums)}"
            )
        self.function = function
        self.nondiff_argnums: tuple[int, ...] = tuple(sorted(set(nondiff_argnums)))
        functools.update_wrapper(self, function)
        self.__name__: str = f"{type(self).__name__}({getattr(function, '__name__', repr(function))})"
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):
            self._signature = None

    @of_any_library
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._ready()
        fixed, args = self._split(self._positional(args, kwargs))
        leaves, structure = trees.flatten(args)
        places = [i for i, x in enumerate(leaves) if isinstance(x, (Tensor, np.ndarray, np.generic, float, complex))]
        tensors = [leaves[i] for i in places]
        known = [x for x in tensors if isinstance(x, Tensor)]
        for x in known:
            refuse_ended(x, self.__name__)
        level = current_level()
        device = common_backend(*known) if known else (level or default_device())
        xs = _in_one_dtype(
            [
                wrap(lift_to(x, device) if isinstance(x, Tensor) else array_of(x, device, keep=True), device)
                for x in tensors
            ],
            [is_weak(x) or x.__class__ is Number for x in tensors],
        )
        rules = self._rules(self, structure, leaves, places, fixed)
        ys = apply(rules, xs, device) if xs else rules.plain([])
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

    def _ready(self) -> None:
        raise NotImplementedError


def _in_one_dtype(xs: Tensors, weak: list[bool]) -> Tensors:
    """The arguments, with Python's numbers in the dtype in which tensors and arrays meet them, if there are any."""
    kinds = [x.dtype for x, number in zip(xs, weak, strict=True) if not number]
    if not kinds or not any(weak):
        return xs
    inexact = [dtype for dtype in kinds if dtype.kind in INEXACT]
    dtype = functools.reduce(promote, inexact) if inexact else kinds[0]
    return [
        cast(x, promote_scalar(dtype, 1j if x.dtype.kind == "c" else 1.0)) if number else x
        for x, number in zip(xs, weak, strict=True)
    ]


def _tensor(x: Any, name: str) -> Tensor[Any]:
    if not is_value(x):
        raise errors.ArgumentTypeError(f"{name}: results are tensors, received {kind_of(x)}")
    device = current_level() or observed_leaf(default_device())
    return wrap(array_of(x, device, keep=True), device)


class _VJP(_Custom):
    owner: custom_vjp

    def __init__(self, owner: Any, structure: Any, static: list[Any], places: list[int], fixed: dict[int, Any]) -> None:
        super().__init__(owner, structure, static, places, fixed)
        notice()

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        assert self.owner.fwd is not None
        out = self.ruled("its forward rule", "fwd(*args)", self.owner.fwd, *self.all_arguments(xs))
        check_pair(self.name, out, "its forward rule", "(result, residuals)")
        return self.results(out[0]), (xs, out[1])

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        assert self.owner.bwd is not None
        xs, residuals = saved
        residuals = trees.map(lambda r: same(r) if isinstance(r, Tensor) else r, residuals)  # bwd may assign to them
        given = trees.unflatten(self.out_structure, cotangents)
        found = self.ruled(
            "its backward rule", "bwd(residuals, cotangent)", self.owner.bwd, *self.fixed.values(), residuals, given
        )
        return self.per_argument(found, xs, "cotangents")

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        """Forward mode: the backward rule is linear in the cotangents, and its transpose pushes tangents."""
        ys, saved = self.forward(xs)

        def pullback(cotangents: Tensors) -> Tensors:
            return [g for g, x in zip(self.backward(saved, cotangents), xs, strict=True) if x.dtype.kind in INEXACT]

        given = [t for t, x in zip(tangents, xs, strict=True) if x.dtype.kind in INEXACT]
        return ys, self.transposed(pullback, ys, given, "cotangents")


class custom_vjp(_Decorated):
    """A function with a reverse-mode rule of its own.

    `f.defvjp(fwd, bwd)`: `fwd(*args)` gives (result, residuals), `bwd(residuals, cotangent)` a tuple with the
    cotangent of each argument, None for zero. The rule is itself a function of tensors, so that it may be
    differentiated again; forward mode transposes it. Cotangents of complex results are those of `Tensor.backward`.
    In `vmap`, of a result that all examples share the rule gets an equal part of the cotangent for each.

    Arguments at the positions `nondiff_argnums` are no arrays (functions, say): bwd gets them first, and gives no
    cotangents for them. Arguments by name and defaults reach the rules by position.

    Raises
    ------
    GraphError
        The function was called before its rules were given.
    ArgumentTypeError
        A rule is no function; an argument of `nondiff_argnums` is a tensor; one that has no position.
    ArgumentError, ShapeError, DtypeError
        The rule gives cotangents that do not fit the arguments; forward mode of a rule that is not linear. In a pass
        back these are the cause of a BackwardError.
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
        """Give the rules. Raises ArgumentTypeError for what is no function."""
        check_callable(self.__name__, fwd, "fwd")
        check_callable(self.__name__, bwd, "bwd")
        self.fwd, self.bwd = fwd, bwd
        self.transposable = False

    def _ready(self) -> None:
        if self.fwd is None or self.bwd is None:
            raise errors.GraphError(f"{self.__name__} has no rules yet; give them with defvjp(fwd, bwd)")


class _JVP(_Custom):
    owner: custom_jvp

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        assert self.owner.jvp is not None
        constant = [0 if isinstance(x, int) else None for x in self.static]
        given = tuple(self.arguments(xs)), tuple(self.arguments(tangents, constant))
        out = self.ruled("its rule", "jvp(primals, tangents)", self.owner.jvp, *self.fixed.values(), *given)
        check_pair(self.name, out, "its rule", "(result, tangent)")
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
            if t.dtype.kind == "c" and y.dtype.kind in FLOATING:
                raise errors.DtypeError(f"{self.name}: a tangent is {t.dtype}, its result {y.dtype}; take its .real")
        # integers have no tangent
        return ys, [cast(t, y.dtype) if y.dtype.kind in INEXACT else y for y, t in zip(ys, moved, strict=True)]

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        return apply(self, xs, common_backend(*xs)), xs  # levels below have the rule, too

    def residuals(self, xs: Tensors, ys: Tensors) -> Tensors:
        return xs

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        """Reverse mode: the rule is linear in the tangents, and its transpose pulls cotangents."""
        return self.transposed(lambda tangents: self.push(saved, tangents)[1], saved, cotangents, "tangents")


class custom_jvp(_Decorated):
    """A function with a forward-mode rule of its own.

    `f.defjvp(rule)`: `rule(primals, tangents)` gives (result, tangent), linear in the tangents; primals and tangents
    are tuples; the tangent of a Python integer is 0, and None stands for that of what is no number. Reverse mode
    transposes it. Arguments at the positions `nondiff_argnums` are no arrays (functions, say), and stand before the
    tuples instead; arguments by name and defaults reach the rule by position.

    Raises GraphError where the function is called before its rule was given, ArgumentError, ShapeError and DtypeError
    for a tangent that does not fit the result, and in reverse mode for a rule that is not linear; in backward they
    are the cause of a BackwardError. ArgumentTypeError for a rule that is no function.

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
        check_callable(self.__name__, rule, "a rule")
        self.jvp = rule
        self.transposable = False
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
        for rule in rules:
            if rule is not None:
                check_callable(self.__name__, rule, "a rule")

        def total(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(primals) != len(rules):
                raise errors.ArgumentError(
                    f"{self.__name__}: defjvps has {len(rules)} rules, and the call {len(primals)} arguments"
                )
            out = self(*primals)
            terms = [rule(t, out, *primals) for rule, t in zip(rules, tangents, strict=True) if rule is not None]
            none = trees.map(lambda y: wrap(zeros_like(y.device, y._array), y.device), out)
            return out, functools.reduce(lambda a, b: trees.map(operator.add, a, b), terms) if terms else none

        self.defjvp(total)

    def _ready(self) -> None:
        if self.jvp is None:
            raise errors.GraphError(f"{self.__name__} has no rule yet; give it with defjvp(rule)")


class _Batching(_Custom):
    owner: custom_batching
    differentiates = False

    def batch(self, level: Batched[Any], size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        assert self.owner.rule is not None
        marks: list[Any] = [False] * len(self.static)
        for place, flag in zip(self.places, flags, strict=True):
            marks[place] = flag
        answer = self.owner.rule(size, list(trees.unflatten(self.structure, marks)), *self.arguments(xs))
        check_pair(self.name, answer, "its rule", "(result, whether each is batched)")
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
        check_callable(self.__name__, rule, "a rule")
        self.rule = rule
        return rule

    def _ready(self) -> None:
        if self.rule is None:
            raise errors.GraphError(f"{self.__name__} has no rule yet; give it with def_batching(rule)")
