"""Tensors inside of `torch.func` and of forward mode: their arrays are of adjoint's levels over the face's own.

Such a tensor has no array of the face's level but a tensor of adjoint's, and functions run on that. A write gives it
another one; a view of it is read and written through its parent, as everywhere in the face.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from adjoint.backend import Decorator
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.batched import Batch, Batched
from adjoint.decorators.tangent import Dual, Tangent
from adjoint.graph.nodes import var_of
from adjoint.operands import cast, common_backend, lift_to
from adjoint.operands import run as run_primitive
from adjoint.tensor import Tensor as Inner
from adjoint.tensor import wrap
from adjoint.torch.devices import where_of_leaf
from adjoint.torch.state import modes
from adjoint.torch.tensor import (
    INNER,
    LEVEL,
    Rare,
    Tensor,
    forget,
    is_lifted,
    level_of,
    looked,
    meeting,
    new,
    of,
    rare_of,
    values,
)

_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations."
)
_CONTROL = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet."
)
_SHARED = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
    "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
    "over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic."
)
CAPTURED = (
    "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation that "
    "would mutate a captured Tensor. This is not supported; please rewrite the function being transformed to "
    "explicitly accept the mutated Tensor(s) as inputs."
)
_STATISTICS = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
    "were not batched."
)
_ALIASES = (
    "adjoint.torch: a value of a function transform is written to a tensor outside of it that has other views; write "
    "to a clone() of it"
)


class Lifted(Rare):
    """What a lifted tensor is."""

    entangled = True

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.writes = 0  # so often it was written to, directly or through a view
        self.known = 0  # so often its root had been when it was read
        self.viewed = False  # there is, or was, a view of it
        self.tangent: Any = None  # what make_dual got
        self.born = modes.transforms

    def values_again(self, x: Any) -> Any:
        return values_of(x)


class Shaped:
    """Stands where values are asked for that differ between the examples of a batch."""

    dtype: Any
    shape: tuple[Any, ...]
    size: Any

    class flags:
        c_contiguous = True

    base = None

    def __init__(self, inner: Any) -> None:
        self.shape, self.dtype, self.size = tuple(inner.shape), inner.dtype, inner.size

    def item(self) -> Any:
        raise RuntimeError(_ITEM)

    def tolist(self) -> Any:
        raise RuntimeError(_ITEM)

    def __bool__(self) -> bool:
        raise RuntimeError(_CONTROL)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError(f"{_CONTROL} The function needs values, which differ between examples.")


def lifted(inner: Any) -> Tensor:
    """The face's tensor of one of adjoint's on a level over the face's."""
    out: Tensor = new(Tensor)
    out._dtype, out._rare = inner.dtype, Lifted(inner)
    if modes.duals is not None and modes.duals.has(inner.device):
        modes.duals.made.append(weakref.ref(out))
    return out


def of_examples(value: Any, levels: Any) -> Tensor:
    """An array whose first axes count the examples of levels, the outermost first, as a tensor of one example."""
    x = wrap(value, INNER)
    for level in levels:
        x = wrap(Batch(lift_to(x, level.inner), True), level)
    return lifted(x)


def examples_of(x: Tensor) -> list[tuple[int, Any]]:
    """How many examples a tensor has values for, and their level: those of all vmaps around, the outermost first."""
    found: list[tuple[int, Any]] = []
    if is_lifted(x):
        inner = inner_of(x)
        device, array = inner.device, wrap_of(inner)
        while isinstance(device, Decorator):
            if isinstance(device, Batched) and array.batched:
                found.insert(0, (int(array.value.shape[0]), device))
            array, device = device.unwrap(array), device.inner
    return found


def values_of_examples(x: Tensor, examples: list[tuple[int, Any]], ndim: int) -> Any:
    """A look at the values for each of these examples, which the first axes count; so many axes follow."""
    counts, shape = [count for count, _ in examples], (*[1] * (ndim - x.ndim), *x.shape)
    if not is_lifted(x):
        value, own = looked(x), []
    else:
        inner, own = inner_of(x), [level for _, level in examples_of(x)]
        value = inner.device.concrete_values(wrap_of(inner))
    known = [count if level in own else 1 for count, level in examples]
    return np.broadcast_to(np.reshape(value, (*known, *shape)), (*counts, *shape))


def as_many(out: Tensor, examples: list[tuple[int, Any]]) -> Tensor:
    """A constant as a tensor that has a place of its own for each example."""
    if not examples:
        return out
    value = np.broadcast_to(values(out), (*[count for count, _ in examples], *out.shape))
    return of_examples(value.copy(), [level for _, level in examples])


def spread(x: Tensor, examples: list[tuple[int, Any]]) -> Any:
    """A tensor as one that has a value for each example; what has them already stays."""
    held = {id(level) for _, level in examples_of(x)}
    missing = [(count, level) for count, level in examples if id(level) not in held]
    if not missing or x._dtype.kind not in "fc":
        return x
    zeros = np.zeros((*[count for count, _ in missing], *[1] * x.ndim), x._dtype)
    return x + of_examples(zeros, [level for _, level in missing])  # type: ignore[operator]


def to_face(x: Any) -> Any:
    """A tensor of adjoint's as one of the face."""
    if not isinstance(x, Inner):
        return x
    device = x.device
    if device is LEVEL or device is INNER:
        return of(wrap_of(x) if device is LEVEL else var_of(wrap_of(x), None))
    where = where_of_leaf(device.leaf)
    if where is None or (device is not where.level and device is not where.leaf):
        return lifted(x)
    return of(wrap_of(x) if device is where.level else var_of(wrap_of(x), None))


def wrap_of(x: Any) -> Any:
    return x._array


def to_inner(x: Any) -> Any:
    """A tensor of the face as one of adjoint's."""
    if not isinstance(x, Tensor):
        return x
    return inner_of(x) if is_lifted(x) else wrap(x._array, level_of(x), x._dtype)


def _root(rare: Any) -> Any:
    while rare.parent is not None:
        rare = rare.parent._rare
    return rare


def inner_of(x: Any) -> Any:
    """What a lifted tensor stands for; a view is read again where what it views was written to."""
    rare = x._rare
    if rare.parent is not None and rare.known != _root(rare).writes:
        parent = inner_of(rare.parent)
        rare.inner = wrap(rare.view.read(parent.device, wrap_of(parent)), parent.device, parent.dtype)
        rare.known = _root(rare).writes
    while rare.inner.device.ended and not isinstance(rare.inner.device, Batched):
        # kept from a transform that has returned: its value, which the levels around it still record
        level = rare.inner.device
        rare.inner = wrap(wrap_of(rare.inner).value, level.inner, rare.inner.dtype)
    return rare.inner


def values_of(x: Any) -> Any:
    """The values of a lifted tensor, for a look; of a batch there is the shape alone."""
    inner = inner_of(x)
    device, array = inner.device, wrap_of(inner)
    while isinstance(device, Decorator):
        if isinstance(device, Batched) and array.batched:
            return Shaped(inner)
        array, device = device.unwrap(array), device.inner
    return array


def all_true(x: Any) -> bool:
    """Whether all of a tensor of bools are true; inside of vmap, those of all examples."""
    if not is_lifted(x):
        return bool(x.all())
    inner = inner_of(x)
    return bool(inner.device.concrete_values(wrap_of(inner)).all())


def primal_of(x: Any) -> Any:
    """The array of a dual number without its tangent: backward passes are of that."""
    if in_transform(x):
        raise NotImplementedError(
            "adjoint.torch: autograd.grad of examples and grad_fn are not there inside of vmap, grad and their like; "
            "write torch.func.grad"
        )
    return wrap_of(inner_of(x)).value


def node_of(x: Any) -> Any:
    """The node of the innermost level that recorded a lifted tensor."""
    inner = inner_of(x)
    array, device = wrap_of(inner), inner.device
    while getattr(array, "node", None) is None:
        array, device = device.unwrap(array), device.inner
    return array.node


def in_transform(x: Any) -> bool:
    """Whether a tensor is one of a function that a transform runs; dual numbers are lifted, too, and are not."""
    return is_lifted(x) and (modes.duals is None or not modes.duals.has(inner_of(x).device))


def gradients(outputs: Any, inputs: Any, cotangents: Any, create: bool) -> list[Any]:
    """The gradients of tensors on a level of `torch.func.grad`, by others there; None where nothing leads to one."""
    for i, y in enumerate(outputs):
        if not y.requires_grad:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    level = inner_of(next(x for x in outputs if is_lifted(x))).device
    wanted = [to_inner(x) for x in inputs]
    if not isinstance(level, Autodiff) or any([x.device is not level or wrap_of(x).node is None for x in wanted]):
        primal_of(next(x for x in (*outputs, *inputs) if is_lifted(x)))
    total: list[Any] = [None] * len(wanted)
    for y, g in zip(outputs, cotangents, strict=True):
        inner = to_inner(y)
        if inner.device is not level or wrap_of(inner).node is None:
            raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
        if g is None and y.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        found = inner.backward(None if g is None else to_inner(g), retain_graph=True, create_graph=create, wrt=wanted)
        for i, x in enumerate(wanted):
            part = found.get(x)
            total[i] = part if total[i] is None else total[i] if part is None else total[i] + part
    return [None if g is None else to_face(g) for g in total]


def is_dual(x: Any) -> bool:
    """Whether a tensor has a tangent."""
    return is_lifted(x) and any([isinstance(level, Tangent) for level in inner_of(x).device.chain()])


def is_batched(x: Any) -> bool:
    """Whether it is a tensor, and has a level of examples."""
    return (
        isinstance(x, Tensor)
        and is_lifted(x)
        and any([isinstance(level, Batched) for level in inner_of(x).device.chain()])
    )


def detached(x: Any) -> Tensor:
    return lifted(inner_of(x).detach())


def detach_(x: Any) -> None:
    """Forget how a tensor that is no view was computed, and its tangent."""
    x._rare.inner = inner_of(x).detach()
    x._rare.writes += 1


def requires_grad(x: Any) -> bool:
    """Whether a level, or the face's own, records what is done with it."""
    inner = inner_of(x)
    array, device = wrap_of(inner), inner.device
    while isinstance(device, Decorator):
        if getattr(array, "node", None) is not None:
            return True
        array, device = device.unwrap(array), device.inner
    return False


def run(name: str, operands: Any, dtype: Any, parameters: dict[str, Any], quiet: bool) -> Tensor:
    """A primitive on tensors, some of them lifted, and arrays of NumPy's of the dtype in which they meet."""
    given = []
    where = meeting([x for x in operands if isinstance(x, Tensor)])
    for x in operands:
        if isinstance(x, Tensor):
            inner = wrap(values(x), level_of(x).inner, x._dtype) if quiet and not is_lifted(x) else to_inner(x)
            given.append(inner if x._dtype is dtype else cast(inner, dtype))
        else:
            given.append(wrap(x, INNER, dtype) if where is None else wrap(where.constant(x), where.leaf, dtype))
    out = run_primitive(name, given, **parameters)
    return to_face(without_history(out) if quiet else out)  # type: ignore[no-any-return]


def without_history(inner: Any) -> Any:
    """A tensor, made where nothing is recorded, whose parts lead nowhere; tangents and examples stay."""
    return wrap(_bare(inner.device, wrap_of(inner)), inner.device, None)


def _bare(device: Any, array: Any) -> Any:
    if isinstance(device, Autodiff):
        return var_of(_bare(device.inner, array.value), None)
    if isinstance(device, Tangent):
        parts = (array.value, None if modes.inference else array.tangent)
        return Dual(*[None if part is None else _bare(device.inner, part) for part in parts])
    return Batch(_bare(device.inner, array.value), array.batched) if isinstance(device, Batched) else array


def view_of(x: Any, view: Any) -> Tensor:
    """A view of a lifted tensor."""
    inner = inner_of(x)
    seen = wrap(view.read(inner.device, wrap_of(inner)), inner.device, None)
    out = lifted(seen if modes.enabled else without_history(seen))
    rare = rare_of(out)
    rare.parent, rare.view, rare.known = x, view, _root(x._rare).writes  # type: ignore[attr-defined]
    x._rare.viewed = True
    return out


def reshaped(x: Any, function: Any) -> Any:
    """Give a lifted tensor that has no views the shape of `function(x)`, a view of all of it."""
    before: Any = new(Tensor)
    before._dtype, before._rare = x._dtype, x._rare
    made = function(before)
    if x._rare.parent is None:
        x._rare.inner, x._rare.viewed = inner_of(made), False
    else:
        x._rare = made._rare
    return x


def write(x: Any, out: Tensor) -> Any:
    """Give a tensor another value, where one of the two is lifted; what is left to be written, if it turns out that
    neither is."""
    check_write(x)
    if modes.transforms:
        _keep(x)
    return _put(x, out)


def _put(x: Any, out: Tensor) -> Any:
    inner = to_inner(out)
    while isinstance(inner.device, Batched) and not wrap_of(inner).batched:  # one value for all examples
        inner = wrap(wrap_of(inner).value, inner.device.inner, inner.dtype)
    if not is_lifted(x) and (inner.device is LEVEL or inner.device is INNER):
        return to_face(inner)
    if inner.dtype is not x._dtype:
        inner = cast(inner, x._dtype)
    if tuple(inner.shape) != tuple(x.shape):
        raise RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(inner.shape)}")
    root = x
    while root._rare is not None and root._rare.parent is not None:
        root = root._rare.parent
    held = examples_of(root)
    if any([level not in [known for _, known in held] for _, level in examples_of(lifted(inner))]):
        raise RuntimeError(_SHARED)
    if root is x and held:  # each example keeps a place of its own
        inner = to_inner(spread(lifted(inner), held))
    if not is_lifted(x):
        _lift(x)
    meeting = common_backend(inner_of(x), inner)
    rare = x._rare
    if rare.parent is None:
        array = lift_to(inner, meeting)
        if modes.duals is not None and array.__class__ is Dual and array.tangent is None:
            array = _still_dual(array, lift_to(inner_of(x), meeting), meeting, x._dtype)
        rare.inner = wrap(array, meeting, x._dtype)
        rare.writes += 1
        return None
    parent = rare.parent
    old = inner_of(parent)
    if rare.view.write is None:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    array = rare.view.write(meeting, lift_to(old, meeting), lift_to(inner, meeting))
    _put(parent, lifted(wrap(array, meeting, parent._dtype)))
    return None


def _still_dual(array: Any, old: Any, level: Any, dtype: Any) -> Any:
    """A constant in the place of a dual number, which keeps a tangent: zeros."""
    if old.tangent is None:
        return array
    zeros = level.leaf.full(shape=tuple(array.shape), value=0, dtype=dtype)
    return Dual(array.value, level.inner.lift(zeros, level.leaf))


def _chain(x: Any) -> list[Any]:
    """A tensor, what it is a view of, and so on."""
    chain = [x]
    while chain[-1]._rare is not None and chain[-1]._rare.parent is not None:
        chain.append(chain[-1]._rare.parent)
    return chain


def _keep(x: Any) -> None:
    """Remember what an argument was that a transform does not differentiate by, and is going to be written to."""
    innermost = next((one for one in reversed(modes.transforms) if one.differentiates), None)
    chain = _chain(x)
    root = chain[-1]
    if innermost is None or (root._rare is not None and innermost in root._rare.born):
        return
    if not any([root is known for known in innermost.roots]):
        innermost.roots.append(root)
    for t in chain:
        if not any([t is known for known, *_ in innermost.before]):
            shared = t._rare is not None and t._rare.memory is not None
            array = None if shared or is_lifted(t) else t._array
            rare: Any = t._rare
            innermost.before.append((t, rare, array, rare.inner if is_lifted(t) else None))


def restore(block: Any) -> None:
    """Make arguments what they were before the function of a transform wrote values of its level to them."""
    for t, rare, array, inner in block.before:
        t._rare = rare
        if inner is not None:
            rare.inner = inner
        elif array is not None:
            t._array = array


def below(x: Any, level: Any) -> Any:
    """What a tensor of a level stands for below it."""
    inner = to_inner(x)
    if inner.device is not level:
        return to_face(inner)
    return to_face(wrap(level.unwrap(wrap_of(inner)), level.inner, inner.dtype))


def check_write(x: Any) -> None:
    """Raise if a derivative transform runs, and a tensor from outside of it or its argument is to be written to."""
    innermost = next((one for one in reversed(modes.transforms) if one.differentiates), None)
    if innermost is None:
        return
    chain = _chain(x)
    root = chain[-1]
    if root._rare is None or innermost not in root._rare.born:
        if not any([t is known for t in chain for known in innermost.given]):
            raise RuntimeError(CAPTURED)
        return
    if root._rare.argument and modes.enabled:
        what = "a leaf" if root is x else "a view of a leaf"
        raise RuntimeError(f"{what} Variable that requires grad is being used in an in-place operation.")


def value_alone(x: Any) -> Any:
    """What a lifted tensor is below all levels, which all examples have to share."""
    if not is_lifted(x):
        return x
    inner = inner_of(x)
    while isinstance(inner.device, (Autodiff, Tangent, Batched)) and inner.device is not LEVEL:
        array = wrap_of(inner)
        if isinstance(inner.device, Batched) and array.batched:
            raise RuntimeError(_STATISTICS)
        inner = wrap(array.value, inner.device.inner, inner.dtype)
    return to_face(inner).detach()


def _lift(x: Any) -> None:
    """Make a tensor of the face's level, and what it is a view of, tensors of another one."""
    chain = _chain(x)
    memory = chain[-1]._rare.memory if chain[-1]._rare is not None else None
    if memory is not None:
        living = memory.living()
        if memory.buffer is not None or any([not any([t is known for known in chain]) for t in living]):
            raise NotImplementedError(_ALIASES)
    for t in chain:
        inner = wrap(t._array, level_of(t), t._dtype)
        made = Lifted(inner)
        if t._rare is not None:
            made.parent, made.view, made.born = t._rare.parent, t._rare.view, t._rare.born
        t._rare = made
        forget(t)
