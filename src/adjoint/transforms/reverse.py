"""Derivatives by pulling back: gradients and vector-Jacobian products."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Array
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import current_level, transform_level
from adjoint.dtypes import FLOATING, INEXACT, choosing, chosen_dtype, creating_in, default_dtype, finfo
from adjoint.functions.arguments import as_flag
from adjoint.graph.nodes import Var, key_of, new_leaf
from adjoint.operands import refuse
from adjoint.random_keys import Replay, replayed
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import (
    Argnums,
    Arguments,
    Function,
    Nested,
    are_on,
    as_argnums,
    below,
    has_no_slope,
    matching,
    named,
    on_level,
    results_of,
    reverse_level,
    split_aux,
    to_base,
    zeros_like,
)
from adjoint.transforms.libraries import kept_of_any_library

_COMPLEX = "; for a complex derivative pass holomorphic=True"


def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """A function that gives f's value and its gradient.

    Called with NumPy arrays, f runs on NumPy's backend. Where it meets a tensor there that `require_grad` tracks, it
    begins again, as in all transforms, on that tensor's: what it prints comes twice. Make the tensor an argument, and
    it runs once.

    Parameters
    ----------
    f
        A function with a scalar result: a tensor of shape (), or a number.
    argnums
        The positions or names of the arguments to differentiate by, pytrees of floating arrays; integers beside them
        are constants, and None in the gradient. For a sequence of arguments the gradient is a tuple.
    has_aux
        f returns a pair (result, aux), and the value is that pair; aux is not differentiated.
    holomorphic
        f is a holomorphic function of complex arguments, and the gradient is its complex derivative. Otherwise the
        gradient of a real result by a complex argument is the direction of steepest ascent.

    Raises
    ------
    ShapeError, DtypeError
        The result is no scalar, or not real (complex if holomorphic); an argument has no derivatives.
    ArgumentError
        `argnums` does not name arguments of the call.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> value, gradient = ad.value_and_grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """

    return value_and_gradient("value_and_grad", f, argnums, has_aux, holomorphic)


def value_and_gradient(
    name: str, f: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """`value_and_grad`, whose errors name what it is a part of."""

    argnums = as_argnums(name, argnums)
    has_aux = as_flag(has_aux, name, "has_aux")
    holomorphic = as_flag(holomorphic, name, "holomorphic")

    @named(name, f)
    def run(*args: Any, **kwargs: Any) -> Any:
        call, value, aux, found = pulled(name, f, argnums, has_aux, holomorphic, args, kwargs)
        result = call.result(value)
        return (result, aux) if has_aux else result, found

    return run


def pulled(
    name: str, f: Function, argnums: Argnums, has_aux: bool, holomorphic: bool, args: Any, kwargs: Any
) -> tuple[Arguments, Array, Any, Any]:
    """The arguments, f's value as an array of their base, what it returns beside it, and the gradient."""
    around = current_level()
    single = argnums.__class__ is int and argnums == 0 and len(args) == 1
    every = single or (argnums.__class__ is range and argnums == range(len(args)))
    if around is not None and every and not kwargs and not holomorphic and callable(f) and are_on(around, args):
        call: Arguments = Nested(around, args, single)
        arrays = [x._array for x in args]
    else:
        call = Arguments(name, f, argnums, args, kwargs)
        arrays = call.arrays
        if holomorphic:
            call.check_complex(holomorphic)
    level = reverse_level(call.base)
    with transform_level(level, call.dtype):
        variables = list(map(new_leaf, arrays))
        out, aux = call.run(f, level, variables), None
        if has_aux:
            out, aux = split_aux(name, out, has_aux)
            aux = trees.map(lambda x: to_base(x, level, call), aux)
        root = _scalar(name, out, level, holomorphic)
        value = root.value
        del out
        found = {} if root.node is None else level.pull([(root, None)])
    grads = []
    for x in variables:
        g = found.get(x.node.key)  # type: ignore[union-attr]
        grads.append(zeros_like(call.base, x.value) if g is None else call.base.conj(g[1]) if holomorphic else g[1])
    return call, value, aux, call.answer(grads)


def _scalar(name: str, out: Any, level: Autodiff[Any], holomorphic: bool) -> Var:
    """The result that a gradient is taken of."""
    root: Var
    if out.__class__ is Tensor and out._device is level and out._array.value.shape == ():
        root, dtype = out._array, out._dtype
    else:
        leaves, _ = results_of(name, out)
        if len(leaves) != 1 or leaves[0].shape != ():
            what = f"a result of shape {leaves[0].shape}" if len(leaves) == 1 else f"{len(leaves) or 'no'} results"
            wanted = "gradients are of one scalar, so sum it, or take ad.jacobian or ad.vjp"
            if name == "minimize":
                wanted = "what is minimised is one real scalar"
            raise errors.ShapeError(f"{name}: the function gives {what}; {wanted}")
        root = on_level(leaves[0], level)
        dtype = level.dtype_of(root)
    kind = dtype.kind
    if kind not in ("c" if holomorphic else FLOATING):
        raise errors.DtypeError(
            f"{name}: the function gives {dtype}; expected a "
            + ("complex result of a holomorphic function" if holomorphic else "real floating result")
            + ("" if kind != "c" else _COMPLEX if name in ("grad", "value_and_grad") else "; take its real part")
        )
    return root


def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """A function that gives the gradient of f; with `has_aux`, a pair of it and aux.

    The gradient has the structure, shapes and dtypes of the argument. Parameters and errors are those of
    `value_and_grad`, and so is how often f runs.

    >>> import adjoint as ad
    >>> ad.grad(lambda x: x**3)(2.0)
    np.float64(12.0)
    """

    return gradient("grad", f, argnums, has_aux, holomorphic)


def gradient(name: str, f: Function, argnums: Argnums, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """`grad`, whose errors name the transform that it is a part of."""
    argnums = as_argnums(name, argnums)
    if has_aux is not False or holomorphic is not False:
        has_aux, holomorphic = as_flag(has_aux, name, "has_aux"), as_flag(holomorphic, name, "holomorphic")

    return named(name, f)(inner_gradient(name, f, argnums, has_aux, holomorphic))


def inner_gradient(
    name: str, f: Function, argnums: Argnums, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """`gradient` for who calls it in a transform of its own, which has seen to the arguments."""

    def run(*args: Any, **kwargs: Any) -> Any:
        _, _, aux, found = pulled(name, f, argnums, has_aux, holomorphic, args, kwargs)
        return (found, aux) if has_aux else found

    return run


@kept_of_any_library
def vjp(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """f's value, and its pullback: cotangents of the result to a tuple of cotangents of the primals.

    Gives (value, pullback), with `has_aux` (value, pullback, aux). The pullback can be called any number of times, also
    inside of other transforms: of a cotangent that one of them follows, it runs f again. Of complex functions it is the
    conjugate transpose of the derivative, as in PyTorch.

    Raises
    ------
    DtypeError
        A primal has no derivatives.
    ArgumentError, ShapeError
        The pullback was given cotangents of another structure or shape than the result.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> value, pullback = ad.vjp(lambda x, y: x * y, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    >>> pullback(np.array([1.0, 1.0]))
    (array([3., 4.]), array([1., 2.]))
    >>> ad.vmap(pullback)(np.eye(2))[0]
    array([[3., 0.],
           [0., 4.]])
    """
    return _vjp("vjp", f, primals, as_flag(has_aux, "vjp", "has_aux"))


def _vjp(name: str, f: Function, primals: tuple[Any, ...], has_aux: bool, replay: Replay | None = None) -> Any:
    """`vjp`; random keys are those of an earlier run of f."""
    call = Arguments(name, f, range(len(primals)), primals, {}, keep=True)
    level = reverse_level(call.base)
    replay = Replay() if replay is None else replay
    with transform_level(level, call.dtype), replayed(replay):
        chosen, dtype = chosen_dtype(), default_dtype()
        variables = [new_leaf(array) for array in call.arrays]
        out, aux = split_aux(name, call.run(f, level, variables), has_aux)
        leaves, structure = results_of(name, out)
        roots = [on_level(x, level) for x in leaves]
        value = trees.unflatten(structure, [below(root, level, call) for root in roots])
        aux = trees.map(lambda x: to_base(x, level, call), aux)

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        if (later := call.above(cotangents)) is not None:
            with choosing(chosen), creating_in(dtype):
                return call.again(lambda primals: _vjp(name, f, primals, has_aux, replay)[1](cotangents), later)  # type: ignore[no-any-return]
        given = matching(
            "the pullback" if name == "vjp" else name,
            "cotangent",
            cotangents,
            structure,
            [r.value for r in roots],
            call.base,
        )
        pairs = [(root, g) for root, g in zip(roots, given, strict=True) if g is not None and root.node is not None]
        found = level.pull(pairs, retain_graph=True) if pairs else {}
        answers = [found.get(key_of(x)) for x in variables]
        return call.answer(  # type: ignore[no-any-return]
            [zeros_like(call.base, x.value) if g is None else g[1] for x, g in zip(variables, answers, strict=True)]
        )

    return (value, pullback, aux) if has_aux else (value, pullback)


@kept_of_any_library
def linear_transpose(f: Function, *primals: Any) -> Function:
    """The transpose of a linear function: cotangents of its result to a tuple of cotangents of its arguments.

    Of `primals` only structures, shapes and dtypes count, and the integers in trees, which are constants. Nothing is
    conjugated. Raises ArgumentError if f is not linear: it is run at zero, where it has to be zero, and once at random
    values, where it has to be its derivative.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.linear_transpose(lambda x: 3 * x[:1], np.zeros(2))(np.array([1.0]))
    (array([3., 0.]),)
    """
    replay = Replay()
    value, pullback = _vjp("linear_transpose", f, trees.map(_zeros, primals), False, replay)
    for x in trees.flatten(value)[0]:
        refuse(x != 0, lambda: _not_linear("zero where its arguments are"), "linear_transpose")

    def transposed(cotangents: Any) -> tuple[Any, ...]:
        answer = pullback(trees.map(conjugate, cotangents))
        return tuple([trees.map(conjugate, part) for part in answer])

    rng = np.random.default_rng(0)
    probe, weights = trees.map(lambda x: _drawn(x, rng), primals), trees.map(lambda x: _drawn(x, rng), value)
    reached, _ = _vjp("linear_transpose", f, probe, False, replay)
    moved = [x for x in trees.flatten(probe)[0] if not has_no_slope(x)]
    (forth, most, eps), (back, other, _) = paired(weights, reached), paired(transposed(weights), moved)
    wrong = abs(forth - back) > eps**0.4 * (most + other)  # of linear functions it is a rounding error
    refuse(wrong, lambda: _not_linear("its own derivative"), "linear_transpose")
    return transposed


def _not_linear(what: str) -> errors.ArgumentError:
    return errors.ArgumentError(
        f"linear_transpose: the function is not {what}, so not linear; ad.vjp is for any function"
    )


def _zeros(x: Any) -> Any:
    """Zeros of the same kind; integers stay, and so does what is no array, which is refused where it is met."""
    if has_no_slope(x):
        return x
    if isinstance(x, Tensor):
        return wrap(zeros_like(x.device, x._array), x.device)
    return np.zeros_like(x) if isinstance(x, (np.ndarray, np.generic, float, complex)) else x


def _drawn(x: Any, rng: np.random.Generator) -> Any:
    """Random numbers of the same kind, between 1 and 2 in size."""
    if has_no_slope(x):
        return x
    values = np.asarray(rng.uniform(1, 2, np.shape(x)) * rng.choice([-1, 1], np.shape(x)))
    if not isinstance(x, Tensor):
        return values.astype(np.asarray(x).dtype)
    return wrap(x.device.from_numpy(values.astype(x.dtype), copy=False), x.device)


def paired(tree: Any, other: Any) -> tuple[Any, Any, float]:
    """The real part of the sum of all products, the sum of their sizes, and how exact they are."""
    total, sizes, eps = 0.0, 0.0, 0.0
    for x, y in zip(trees.flatten(tree)[0], trees.flatten(other)[0], strict=True):
        if x.dtype.kind not in INEXACT:
            continue
        eps = max(eps, float(finfo(x.dtype).eps))
        if x.dtype.itemsize == 2:  # whose sums may be too large for it
            x, y = x.astype(np.float32), y.astype(np.float32)
        total, sizes = total + (x * y).real.sum(), sizes + abs(x * y).sum()
    return total, sizes, eps


def conjugate(x: Any) -> Any:
    return x.conj() if getattr(x, "dtype", np.dtype(float)).kind == "c" else x


def stop_gradient(tree: Any) -> Any:
    """The same values as constants of every level: no derivative flows through them, in any mode.

    Structure, shapes and dtypes are those of the tree.

    >>> import adjoint as ad
    >>> ad.grad(lambda x: x * ad.stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return trees.map(lambda x: x.detach() if isinstance(x, Tensor) else x, tree)
