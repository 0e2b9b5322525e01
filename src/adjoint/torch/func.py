"""`torch.func`: adjoint's transforms, of functions of the face's tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NoReturn

import adjoint as ad
from adjoint import errors
from adjoint import tree as trees
from adjoint.tensor import wrap
from adjoint.torch.autograd.graph import disable_saved_tensors_hooks
from adjoint.torch.calls import translated
from adjoint.torch.lifted import below, examples_of, inner_of, restore, to_face, to_inner, without_history
from adjoint.torch.missing import missing as _missing
from adjoint.torch.nn.utils.stateless import functional_call as functional_call
from adjoint.torch.nn.utils.stateless import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from adjoint.torch.nn.utils.stateless import stack_module_state as stack_module_state
from adjoint.torch.state import grad_mode, in_transform, modes
from adjoint.torch.tensor import Tensor, axis_of, is_lifted

# how errors for results that are no tensors begin
_RETURNS = {
    "vjp(f, *primals)": "vjp(f, *primals)", "jacrev": "vjp(f, *primals)", "jvp": "jvp(f, primals, tangents)",
    "jacfwd": "jvp(f, primals, tangents)",
}  # fmt: skip
_FORWARD = ("jvp", "linearize", "jacfwd")
_NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use "
    "case."
)


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
        raise RuntimeError(f"argnums elements must be unique, got {tuple(out)}")
    return tuple(out)


class _Call:
    """Arguments of which some are differentiated, as a flat list of adjoint's tensors."""

    def __init__(self, name: str, func: Any, args: Any, options: Any, argnums: Any, has_aux: bool = False) -> None:
        self.name, self.func, self.options, self.has_aux = name, func, options, bool(has_aux)
        self.returns = _RETURNS.get(name)
        numbers = _numbers_of(argnums, len(args))
        chosen: Any = tuple([args[n] for n in numbers]) if isinstance(argnums, tuple) else args[numbers[0]]
        leaves, self.structure = trees.flatten(chosen)
        for x in leaves:
            if not isinstance(x, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
            if x._dtype.kind not in "fc" and name not in ("jvp", "linearize"):
                raise RuntimeError("only Tensors of floating point dtype can require gradients")
        self.args, self.numbers, self.several = args, numbers, isinstance(argnums, tuple)
        self.leaves = leaves
        self.given = [to_inner(x) for x in leaves]

    def __call__(self, variables: Any) -> Any:
        """The function of the list of tensors."""
        others = [x for x in trees.leaves((self.others(), self.options)) if isinstance(x, Tensor)]
        block, writes = in_transform(differentiates=True, given=others), []
        try:
            with block, grad_mode(True), self._saving():
                args, made = self.replaced(variables)
                out = self.func(*args, **self.options)
            out = (self._results(out[0]), self._aux(out[1])) if self._has_pair(out) else self._results(out)
            written = [(given, x) for given, x in zip(self.leaves, made, strict=True) if x._rare and x._rare.writes]
            written += [(x, x) for x in block.roots]
            writes = [(given, below(x, variables[0].device)) for given, x in written]
        finally:
            restore(block)
        for given, value in writes:
            given.copy_(value)
        return out

    def _saving(self) -> Any:
        """The block in which the function runs: no hooks for saved tensors see what reverse mode saves."""
        if self.name in _FORWARD:
            return nullcontext()
        if modes.saved_hooks:
            raise RuntimeError(_NO_HOOKS)
        return disable_saved_tensors_hooks(_NO_HOOKS)

    def _has_pair(self, out: Any) -> bool:
        if self.has_aux and (not isinstance(out, tuple) or len(out) != 2):
            name = self.returns if self.name == "jvp" else self.name
            raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
        return self.has_aux

    def _aux(self, aux: Any) -> Any:
        for x in trees.leaves(aux):
            if not isinstance(x, Tensor):
                raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
        return _inner(aux)

    def _results(self, out: Any) -> Any:
        """The results, which are tensors."""
        if self.returns:
            found = trees.leaves(out)
            if not found or any([x is None for x in found]):
                raise RuntimeError(
                    f"{self.returns}: Expected f to be a function that has non-empty output (got output = {out})"
                )
            for x in found:
                if not isinstance(x, Tensor):
                    raise RuntimeError(
                        f"{self.returns}: expected f(*primals) to return only tensors, got unsupported type {type(x)}"
                    )
                if self.returns.startswith("vjp") and x._dtype.kind not in "fc":
                    raise RuntimeError(
                        "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with "
                        f"dtype {x.dtype}"
                    )
        return _inner(out)

    def others(self) -> list[Any]:
        """The arguments that nothing is differentiated by."""
        return [x for i, x in enumerate(self.args) if i not in self.numbers]

    def replaced(self, variables: Any) -> tuple[list[Any], list[Any]]:
        """The arguments with variables in them, and these."""
        leaves = [to_face(v) for v in variables]
        made = trees.unflatten(self.structure, leaves)
        if self.name not in _FORWARD:
            for x in leaves:
                x._rare.argument = True
        args = list(self.args)
        for n, x in zip(self.numbers, made if self.several else (made,), strict=True):
            args[n] = x
        return args, leaves

    def answer(self, found: Any) -> Any:
        """A list as the structure of what was differentiated by."""
        return trees.unflatten(self.structure, [_out(g) for g in found])


def _out(x: Any) -> Any:
    """A result, which leads nowhere where nothing is recorded."""
    return to_face(x if modes.enabled or not isinstance(x, ad.Tensor) else without_history(x))


def _inner(tree: Any) -> Any:
    return trees.map(to_inner, tree)


def _face(tree: Any) -> Any:
    return trees.map(_out, tree)


def grad_and_value(func: Any, argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of func and its value; with `has_aux`, the gradient and (value, aux).

    >>> import adjoint.torch as torch
    >>> torch.func.grad_and_value(lambda x: x**3)(torch.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _Call("grad_and_value(f)(*args)", func, args, kwargs, argnums, has_aux)

        def checked(variables: Any) -> Any:
            out = call(variables)
            value = out[0] if has_aux else out
            if not isinstance(value, ad.Tensor):
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}")
            if value.ndim:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
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
        out = ad.vjp(call, call.given, has_aux=call.has_aux)
    value = _face(out[0])
    structure = trees.structure(value)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        if trees.structure(cotangents) != structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function."
                f" cotangents: {trees.structure(cotangents)}, primal output: {structure}"
            )
        for x in trees.leaves(cotangents):
            if not isinstance(x, Tensor):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(x).__name__}")
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
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals). "
            f"Got {type(primals)}"
        )
    for which, given in (("primals", primals), ("tangents", tangents)):
        found = trees.leaves(given)
        if not found:
            raise RuntimeError(f"jvp(f, primals, tangents): Expected {which} to contain at least one Tensor.")
        for x in found:
            if not isinstance(x, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected {which} to only contain Tensors, got {type(x)}"
                )
    call = _Call("jvp", func, primals, {}, tuple(range(len(primals))), has_aux)
    leaves, structure = trees.flatten(tangents)
    if structure != call.structure:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, "
            "if primals is a tuple of 3 tensors, tangents also must be."
        )
    for x, t in zip(call.given, leaves, strict=True):
        if tuple(x.shape) != tuple(t.shape):
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. Tensor is of size {list(x.shape)} while the given forward gradient is of size "
                f"{list(t.shape)}."
            )

    def run(variables: Any) -> Any:
        out = call(variables)
        if strict and any(
            [getattr(x._array, "tangent", None) is None for x in trees.leaves(out[0] if has_aux else out)]
        ):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )
        return out

    with _errors():
        out = ad.jvp(run, (call.given,), ([to_inner(t) for t in leaves],), call.has_aux)
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
            raise RuntimeError(
                f"Expected the tangents {structure} to have the same argspec as the primals {call.structure}"
            )
        for i, (x, t) in enumerate(zip(call.given, leaves, strict=True)):
            if isinstance(t, Tensor) and tuple(t.shape) != tuple(x.shape):
                raise RuntimeError(
                    f"tangent:{i} with shape {t.shape} in flattened pytree doesn't match the shape "
                    f"{to_face(x).shape} of the corresponding primal."
                )
            if isinstance(t, Tensor) and t._dtype != x.dtype:
                raise RuntimeError(
                    f"tangent:{i} with dtype {t.dtype} in flattened pytree doesn't match the dtype "
                    f"{to_face(x).dtype} of the corresponding primal."
                )
        with _errors():
            return _face(derivative([to_inner(t) for t in leaves]))

    return _face(value), along


def _jacobian(
    name: str, mode: str, func: Any, argnums: Any, has_aux: bool, randomness: str | None = None,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _check_randomness(randomness or "error")
        call = _Call(name, func, args, kwargs, argnums, has_aux)
        for i, x in enumerate(call.given):
            if x.dtype.kind == "c":
                raise RuntimeError(
                    f"{name}: Expected all inputs to be real but received complex tensor at flattened input idx: {i}"
                )
        structure: Any = None

        def flat(variables: Any) -> Any:
            nonlocal structure
            if randomness is None:
                found = call(variables)
            else:  # all tangents share a draw
                with _drawn("error" if randomness == "error" else "same", 0, None):
                    found = call(variables)
            out, aux = found if has_aux else (found, None)
            leaves, structure = trees.flatten(out)
            for i, x in enumerate(leaves):
                if x.dtype.kind == "c":
                    raise RuntimeError(
                        f"{name}: Expected all outputs to be real but received complex tensor at flattened input idx: "
                        f"{i}"
                    )
            return (leaves, aux) if has_aux else leaves

        with _errors():
            if chunk_size is not None:
                found = _rows_in_chunks(flat, call.given, has_aux, chunk_size)
            else:
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
    return _jacobian("jacrev", "reverse", func, argnums, has_aux, chunk_size=chunk_size)


def _rows_in_chunks(function: Any, given: Any, has_aux: bool, size: int) -> Any:
    """The Jacobian by rows, so many at a time; one at a time they are no batch."""
    value, pull, *aux = ad.vjp(function, given, has_aux=has_aux)
    rows = []
    for i, y in enumerate(value):
        basis = ad.reshape(ad.eye(y.size, dtype=y.dtype, device=y.device.leaf), (y.size, *y.shape))
        zeros = [ad.zeros_like(other) for other in value]
        along: Any = lambda g, i=i, zeros=zeros: pull([*zeros[:i], g, *zeros[i + 1 :]])[0]
        parts = [
            [ad.expand_dims(g, 0) for g in along(basis[start])]
            if size == 1 and y.size
            else ad.vmap(along)(basis[start : start + size])
            for start in range(0, max(y.size, 1), size)
        ]
        rows.append(
            [
                ad.reshape(ad.concat(list(column)), (*y.shape, *x.shape))
                for column, x in zip(zip(*parts, strict=True), given, strict=True)
            ]
        )
    return (rows, aux[0]) if has_aux else rows


def jacfwd(func: Any, argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable[..., Any]:
    """A function that gives the Jacobian of func, by columns.

    >>> import adjoint.torch as torch
    >>> torch.func.jacfwd(torch.square)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _jacobian("jacfwd", "forward", func, argnums, has_aux, randomness)


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


def _check_randomness(given: str) -> None:
    if given not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {given}")


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
    _check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, structure, axes = _axes_in(in_dims, args, func)
        size = _size(leaves, axes)

        @functools.wraps(func, updated=())
        def run(given: list[Any]) -> Any:
            return func(*trees.unflatten(structure, given), **kwargs)

        if chunk_size is None or chunk_size >= size:
            return _mapped(run, leaves, axes, out_dims, randomness, size)
        return _in_chunks(run, leaves, axes, out_dims, randomness, size, chunk_size)

    return wrapper


@contextmanager
def _drawn(randomness: str, size: int, level: Any) -> Iterator[None]:
    """In this block random functions draw for the examples of a level."""
    before = modes.drawing
    modes.drawing = (*before, (randomness, size, level))
    try:
        yield
    finally:
        modes.drawing = before


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
    axes_out: list[Any] = []
    written: list[int] = []  # arguments that the function wrote to
    name = getattr(run, "__name__", "f")

    def flat(*tensors: Any) -> Any:
        nonlocal structure
        given = list(leaves)
        with in_transform(differentiates=False), _drawn(randomness, size, tensors[0].device):
            for i, x in zip(places, tensors, strict=True):
                given[i] = to_face(x)
            out = run(given)
        found, structure = trees.flatten(out)
        for x in found or [None]:
            if not isinstance(x, Tensor):
                raise ValueError(
                    f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)} as a return."
                )
        nonlocal axes_out
        axes_out = _axes_out(out_dims, structure, name)
        for x, axis in zip(found, axes_out, strict=True):
            if axis is None and any([level is tensors[0].device for _, level in examples_of(x)]):
                raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        written.extend([i for i in places if axes[i] is not None and is_lifted(given[i]) and given[i]._rare.writes])
        return tuple([to_inner(x) for x in (*found, *[given[i] for i in written])])

    def placed(found: Any) -> Any:
        """Results with the axis of examples where it was asked for."""
        return [to_face(x) if axis == 0 else _moved(to_face(x), axis) for x, axis in zip(found, axes_out, strict=True)]

    draws = "split" if randomness == "different" else "shared"
    with _errors():
        found = ad.vmap(flat, in_axes=tuple([axes[i] for i in places]), axis_size=size, randomness=draws)(
            *[to_inner(leaves[i]) for i in places]
        )
    count = len(found) - len(written)
    for i, x in zip(written, found[count:], strict=True):
        leaves[i].copy_(_moved(to_face(x), axes[i]))
    found = found[:count]
    return trees.unflatten(structure, placed(found))


def _axes_out(out_dims: Any, structure: Any, name: str) -> list[Any]:
    """The axis of examples of each result."""
    tree = trees.unflatten(structure, list(range(structure.num_leaves)))
    if isinstance(tree, int) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    try:
        axes = _spread(out_dims, tree)
    except (ValueError, TypeError, KeyError):
        if not isinstance(out_dims, (tuple, list, dict)):
            axes = [out_dims]
        else:
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
                f"`outputs`. out_dims has structure {trees.structure(out_dims)} but outputs has structure {structure}."
            ) from None
    for axis in axes:
        if axis is not None and not isinstance(axis, int):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
                f"ints representing where in the outputs the vmapped dimension should appear, got {axis!r}"
            )
    return axes


def _moved(x: Any, axis: Any) -> Any:
    if axis is None:
        return x.select(0, 0)
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


def functionalize(func: Any, *, remove: str = "mutations") -> Callable[..., Any]:
    """The function itself: writes and views are recorded as functions of values here."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for `remove`={remove}. Valid options "
            "are: remove='mutations', remove='mutations_and_views'"
        )
    return func  # type: ignore[no-any-return]


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """The values of a tensor inside of a transform, of all examples of a `vmap`; of one level without `recurse`.

    >>> import adjoint.torch as torch
    >>> _ = torch.vmap(lambda x: [print(torch.func.debug_unwrap(x)), x][1])(torch.ones(2))
    tensor([1., 1.])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    if not is_lifted(tensor):
        return tensor
    inner = inner_of(tensor)
    device, array = inner.device, inner._array
    while True:
        array, device = array.value, device.inner
        found = to_face(wrap(array, device, None))
        if not recurse or not is_lifted(found):
            return found.detach()


def __getattr__(name: str) -> NoReturn:
    raise _missing(name, "adjoint.torch.func")
