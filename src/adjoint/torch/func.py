"""`torch.func`: adjoint's transforms, of functions of the face's tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import adjoint as ad
from adjoint import errors
from adjoint import tree as trees
from adjoint.torch.calls import translated
from adjoint.torch.lifted import to_face, to_inner
from adjoint.torch.missing import missing as _missing
from adjoint.torch.state import grad_mode, modes
from adjoint.torch.tensor import Tensor, axis_of

_AUX = "{name}: output of function f should be a tuple: (output, aux) if has_aux is True"


@contextmanager
def _errors() -> Iterator[None]:
    """adjoint's errors as those types that PyTorch raises."""
    try:
        yield
    except errors.AdjointError as error:
        raise translated(error) from error


def _numbers_of(argnums: Any, count: int) -> tuple[int, ...]:
    """The positions that `argnums` names."""
    several = isinstance(argnums, tuple)
    if several and not argnums:
        raise RuntimeError("argnums must be non-empty")
    out = []
    for n in argnums if several else (argnums,):
        if not isinstance(n, int):
            kind = "argnum must be int" if several else "argnums must be int or Tuple[int, ...]"
            raise RuntimeError(f"{kind}, got: {type(n)}")
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
        out.append(n % count)
    if len(set(out)) != len(out):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple(out)


class _Call:
    """Arguments of which some are differentiated, as a flat list of adjoint's tensors."""

    def __init__(self, name: str, func: Any, args: Any, options: Any, argnums: Any, has_aux: bool = False) -> None:
        self.name, self.func, self.options, self.has_aux = name, func, options, has_aux
        numbers = _numbers_of(argnums, len(args))
        chosen: Any = tuple([args[n] for n in numbers]) if isinstance(argnums, tuple) else args[numbers[0]]
        leaves, self.structure = trees.flatten(chosen)
        for x in leaves:
            if not isinstance(x, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        self.args, self.numbers, self.several = args, numbers, isinstance(argnums, tuple)
        self.given = [to_inner(x) for x in leaves]

    def __call__(self, variables: Any) -> Any:
        """The function of the list of tensors."""
        with grad_mode(True):
            out = self.func(*self.replaced(variables), **self.options)
        if self.has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise RuntimeError(_AUX.format(name=self.name))
            return _inner(out[0]), _inner(out[1])
        return _inner(out)

    def replaced(self, variables: Any) -> list[Any]:
        made = trees.unflatten(self.structure, [to_face(v) for v in variables])
        args = list(self.args)
        for n, x in zip(self.numbers, made if self.several else (made,), strict=True):
            args[n] = x
        return args

    def answer(self, found: Any) -> Any:
        """A list as the structure of what was differentiated by."""
        return trees.unflatten(self.structure, [to_face(g) for g in found])


def _inner(tree: Any) -> Any:
    return trees.map(to_inner, tree)


def _face(tree: Any) -> Any:
    return trees.map(to_face, tree)


def grad_and_value(func: Any, argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of func and its value; with `has_aux`, the gradient and (value, aux).

    >>> import adjoint.torch as torch
    >>> torch.func.grad_and_value(lambda x: x**3)(torch.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _Call("grad_and_value", func, args, kwargs, argnums, has_aux)

        def checked(variables: Any) -> Any:
            out = call(variables)
            value = out[0] if has_aux else out
            if not isinstance(value, ad.Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a single tensor, got {type(value)}"
                )
            if value.ndim:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{value.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            return out

        with _errors():
            value, found = ad.value_and_grad(checked, has_aux=has_aux)(call.given)
        return call.answer(found), _face(value)

    return wrapper


def grad(func: Any, argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of func, whose value is one number; with `has_aux` a pair with aux.

    >>> import adjoint.torch as torch
    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.5))
    tensor(-0.4794)
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def vjp(func: Any, *primals: Any, has_aux: bool = False) -> Any:
    """The value of func, and a function from cotangents of it to those of the primals.

    >>> import adjoint.torch as torch
    >>> value, pull = torch.func.vjp(torch.sin, torch.zeros(2))
    >>> pull(torch.ones(2))
    (tensor([1., 1.]),)
    """
    call = _Call("vjp(f, *primals)", func, primals, {}, tuple(range(len(primals))), has_aux)
    with _errors():
        out = ad.vjp(call, call.given, has_aux=has_aux)
    value = _face(out[0])
    structure = trees.structure(value)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        if trees.structure(cotangents) != structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function."
                f" cotangents: {trees.structure(cotangents)}, primal output: {structure}"
            )
        with _errors():
            (found,) = out[1](_inner(cotangents))
        return call.answer(found)

    return (value, pull, _face(out[2])) if has_aux else (value, pull)


def jvp(func: Any, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The value of func, and its derivative along tangents.

    >>> import adjoint.torch as torch
    >>> torch.func.jvp(lambda x: x**2, (torch.tensor(3.0),), (torch.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        which, got = ("primals", primals) if not isinstance(primals, tuple) else ("tangents", tangents)
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected {which} to be a tuple. E.g. it should be valid to call f(*primals). "
            f"Got {type(got)}"
        )
    call = _Call("jvp", func, primals, {}, tuple(range(len(primals))), has_aux)
    leaves, structure = trees.flatten(tangents)
    if structure != call.structure:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, "
            "if primals is a tuple of 3 tensors, tangents also must be."
        )
    with _errors():
        out = ad.jvp(call, (call.given,), ([to_inner(t) for t in leaves],), has_aux)
    return tuple([_face(part) for part in out])


def linearize(func: Any, *primals: Any) -> Any:
    """The value of func, and its derivative there as a linear function of tangents.

    >>> import adjoint.torch as torch
    >>> value, along = torch.func.linearize(torch.sin, torch.zeros(2))
    >>> along(torch.ones(2))
    tensor([1., 1.])
    """
    call = _Call("linearize", func, primals, {}, tuple(range(len(primals))))
    with _errors():
        value, derivative = ad.linearize(call, call.given)

    def along(*tangents: Any) -> Any:
        leaves, structure = trees.flatten(tangents)
        if structure != call.structure:
            raise RuntimeError(f"linearize: tangents have the structure {structure}, primals {call.structure}")
        with _errors():
            return _face(derivative([to_inner(t) for t in leaves]))

    return _face(value), along


def _jacobian(name: str, mode: str, func: Any, argnums: Any, has_aux: bool) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _Call(name, func, args, kwargs, argnums, has_aux)
        if any([x.dtype.kind == "c" for x in call.given]):
            raise RuntimeError(f"{name}: Expected all inputs to be real but received complex tensor")
        structure: Any = None

        def flat(variables: Any) -> Any:
            nonlocal structure
            out, aux = call(variables) if has_aux else (call(variables), None)
            leaves, structure = trees.flatten(out)
            return (leaves, aux) if has_aux else leaves

        with _errors():
            found = ad.jacobian(flat, mode=mode, has_aux=has_aux)(call.given)
        rows = found[0] if has_aux else found
        answer = trees.unflatten(structure, [call.answer(row) for row in rows])
        return (answer, _face(found[1])) if has_aux else answer

    return wrapper


def jacrev(
    func: Any, argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function that gives the Jacobian of func, by rows.

    >>> import adjoint.torch as torch
    >>> torch.func.jacrev(torch.square)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return _jacobian("jacrev", "reverse", func, argnums, has_aux)


def jacfwd(func: Any, argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable[..., Any]:
    """A function that gives the Jacobian of func, by columns.

    >>> import adjoint.torch as torch
    >>> torch.func.jacfwd(torch.square)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _jacobian("jacfwd", "forward", func, argnums, has_aux)


def hessian(func: Any, argnums: Any = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of func.

    >>> import adjoint.torch as torch
    >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


# --- batches ------------------------------------------------------------------------------------------


def _axes_in(in_dims: Any, args: Any, func: Any) -> tuple[list[Any], Any, list[Any]]:
    """The leaves of arguments, their structure, and the axis of examples of each leaf."""
    name = getattr(func, "__name__", repr(func))
    start = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{start}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, structure = trees.flatten(args)
    prefix = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
    try:
        axes = _spread(prefix, args)
    except (ValueError, TypeError, KeyError):
        raise ValueError(
            f"{start}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{trees.structure(in_dims)} but inputs has structure {structure}."
        ) from None
    for i, (x, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        if not isinstance(axis, int):
            raise ValueError(
                f"{start}Got in_dim={axis} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(x, Tensor):
            raise ValueError(
                f"{start}Got in_dim={axis} for an input but the input is of type {type(x)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(
                f"{start}Got in_dim={axis} for some input, but that input is a Tensor of dimensionality {x.ndim} so "
                f"expected in_dim to satisfy -{x.ndim} <= in_dim < {x.ndim}."
            )
        axes[i] = axis % x.ndim
    return leaves, structure, axes


def _spread(prefix: Any, tree: Any) -> list[Any]:
    """An entry of a prefix for each leaf below it."""
    if prefix is None or isinstance(prefix, int) or isinstance(tree, Tensor):
        return [prefix] * len(trees.leaves(tree))
    if isinstance(tree, dict):
        if set(prefix) != set(tree):
            raise ValueError
        return [axis for name in sorted(tree) for axis in _spread(prefix[name], tree[name])]
    return [axis for p, t in zip(prefix, tree, strict=True) for axis in _spread(p, t)]


def vmap(
    func: Any, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """A function that runs func for each example of a batch, all together.

    `in_dims` and `out_dims` say which axis counts the examples, for all or in the structure of arguments and results;
    None stands for what all examples share. `randomness` is "error", "same" or "different".

    >>> import adjoint.torch as torch
    >>> torch.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
    tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, structure, axes = _axes_in(in_dims, args, func)
        named, shape = trees.flatten(kwargs)
        every, along = [*leaves, *named], [*axes, *[0 if isinstance(x, Tensor) else None for x in named]]
        size = _size(every, along)

        def run(given: list[Any]) -> Any:
            count = structure.num_leaves
            return func(*trees.unflatten(structure, given[:count]), **trees.unflatten(shape, given[count:]))

        if chunk_size is None or chunk_size >= size:
            return _mapped(run, every, along, out_dims, randomness, size)
        return _in_chunks(run, every, along, out_dims, randomness, size, chunk_size)

    return wrapper


def _size(leaves: list[Any], axes: list[Any]) -> int:
    sizes = [x.shape[axis] for x, axis in zip(leaves, axes, strict=True) if axis is not None]
    if not sizes:
        raise ValueError(
            "vmap: at least one of the inputs must have a dimension that is mapped over, all in_dims are None"
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return int(sizes[0])


def _mapped(run: Any, leaves: Any, axes: Any, out_dims: Any, randomness: str, size: int) -> Any:
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    structure: Any = None

    def flat(*tensors: Any) -> Any:
        nonlocal structure
        given = list(leaves)
        for i, x in zip(places, tensors, strict=True):
            given[i] = to_face(x)
        before = modes.drawing
        modes.drawing = (*before, (randomness, size, tensors[0].device))
        try:
            out = run(given)
        finally:
            modes.drawing = before
        found, structure = trees.flatten(out)
        for x in found:
            if not isinstance(x, Tensor):
                raise ValueError(
                    f"vmap({getattr(run, '__name__', 'f')}, ...): `f` must only return Tensors, got type {type(x)} as "
                    "a return."
                )
        return tuple([to_inner(x) for x in found])

    def placed(found: Any) -> Any:
        """Results with the axis of examples where it was asked for."""
        axes_out = _spread(out_dims, trees.unflatten(structure, list(range(len(found)))))
        return [to_face(x) if axis == 0 else _moved(to_face(x), axis) for x, axis in zip(found, axes_out, strict=True)]

    with _errors():
        found = ad.vmap(flat, in_axes=tuple([axes[i] for i in places]), axis_size=size, randomness="shared")(
            *[to_inner(leaves[i]) for i in places]
        )
    return trees.unflatten(structure, placed(found))


def _moved(x: Any, axis: Any) -> Any:
    if axis is None:
        return x.select(0, 0)
    if not isinstance(axis, int):
        raise ValueError(f"vmap: `out_dims` must be an int, None or a python collection of ints, got {axis!r}")
    return x.movedim(0, axis_of(axis, x.ndim))


def _in_chunks(run: Any, leaves: Any, axes: Any, out_dims: Any, randomness: str, size: int, chunk: int) -> Any:
    """The batch in parts, one after the other."""
    from adjoint.torch.reductions import cat

    parts = []
    for start in range(0, size, chunk):
        count = min(chunk, size - start)
        given = [x if axis is None else x.narrow(axis, start, count) for x, axis in zip(leaves, axes, strict=True)]
        parts.append(_mapped(run, given, axes, out_dims, randomness, count))
    flat = [trees.leaves(part) for part in parts]
    structure = trees.structure(parts[0])
    along = _spread(out_dims, parts[0])
    return trees.unflatten(
        structure,
        [
            column[0] if axis is None else cat(column, axis)
            for column, axis in zip(zip(*flat, strict=True), along, strict=True)
        ],
    )


# --- modules --------------------------------------------------------------------------------------------


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, *, tie_weights: bool = True,
    strict: bool = False,
) -> Any:  # fmt: skip
    """A module called with other parameters and buffers, which it has again afterwards as they were."""
    given: dict[str, Any] = {}
    several = isinstance(parameter_and_buffer_dicts, (list, tuple))
    for found in parameter_and_buffer_dicts if several else (parameter_and_buffer_dicts,):
        if set(given) & set(found):
            raise ValueError(
                f"{sorted(set(given) & set(found))} appeared in multiple dictionaries; behavior of functional call is "
                "ambiguous"
            )
        given.update(found)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    places = {name: (x, owner, part) for owner, part, name, x in _slots(module)}
    if strict and (set(given) ^ set(places)):
        raise RuntimeError(
            f"Missing key(s): {sorted(set(places) - set(given))}. "
            f"Unexpected key(s): {sorted(set(given) - set(places))}."
        )
    swapped = []
    try:
        for name, value in given.items():
            if name not in places:
                continue
            old = places[name][0]
            tied = [(o, p) for x, o, p in places.values() if x is old] if tie_weights else [places[name][1:]]
            for owner, part in tied:
                swapped.append((owner, part, old))
                owner[part] = value
        return module(*args, **(kwargs or {}))
    finally:
        for owner, key, old in reversed(swapped):
            owner[key] = old


def _slots(module: Any) -> Iterator[tuple[dict[str, Any], str, str, Any]]:
    """Where a module and its parts keep parameters and buffers: the dict, the key, the whole name, the tensor."""
    for prefix, part in module.named_modules():
        for kept in (part._parameters, part._buffers):
            for key, x in kept.items():
                if x is not None:
                    yield kept, key, f"{prefix}.{key}" if prefix else key, x


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of equal modules, each stacked along a first axis, for `vmap`."""
    from adjoint.torch.reductions import stack

    if not len(models):
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all([m.training for m in models]) or all([not m.training for m in models])):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all([type(m) is type(models[0]) for m in models]):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parts: list[dict[str, Any]] = []
    for of in ("named_parameters", "named_buffers"):
        found = [dict(getattr(m, of)()) for m in models]
        made = {}
        for name, first in found[0].items():
            joined = stack([each[name] for each in found])
            made[name] = joined.detach().requires_grad_(first.requires_grad)
        parts.append(made)
    return parts[0], parts[1]


def __getattr__(name: str) -> NoReturn:
    raise _missing(name, "adjoint.torch.func")
