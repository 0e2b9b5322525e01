"""User's Functions inside of function transforms: what adjoint's levels ask of a function with rules of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

from adjoint import errors
from adjoint import tree as trees
from adjoint.graph.nodes import var_of
from adjoint.operands import common_backend, lift_to
from adjoint.tensor import wrap
from adjoint.torch.calls import put_lifted, shares, translated
from adjoint.torch.devices import where_of_leaf
from adjoint.torch.lifted import CAPTURED, in_transform, primal_of, to_face, to_inner
from adjoint.torch.memory import base_of, is_view
from adjoint.torch.state import grad_mode, modes
from adjoint.torch.tensor import LEVEL, Tensor, copied, is_lifted, of, values
from adjoint.transforms.arguments import zeros_like
from adjoint.transforms.levels import CustomRules, apply

_NEEDS_SETUP = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
    "the setup_context staticmethod. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)
_NO_VMAP = (
    "You tried to vmap over {name}, but it does not have vmap support. Please override and implement the vmap "
    "staticmethod or set generate_vmap_rule=True. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)
_TWO_VMAPS = (
    "You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. "
    "Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
)


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told of the batch."""

    batch_size: int
    randomness: str


class FunctionRules(CustomRules):
    """A call of a user's Function, as one of a flat list of adjoint's tensors."""

    args: list[Any]
    function: Any
    kind: Any
    options: Any

    def __init__(self, kind: Any, function: Any, args: Any, options: Any) -> None:
        self.kind, self.function, self.args, self.options = kind, function, list(args), options
        self.name = f"{function.__name__}GeneratedBackward"  # of its node
        self.leaves, self.structure = trees.flatten(tuple(args))
        self.places: list[int] = [i for i, a in enumerate(self.leaves) if isinstance(a, Tensor)]
        self.out: Any = None  # what the function gave, with the places of tensors
        self.single: bool = True
        self.dirty: list[Any] = []  # what the function says that it wrote to
        self.unmoved: list[int] = []  # results that `jvp` gave no tangent
        self.wanted: Any = None  # for each argument: whether `backward` is asked for its gradient

    # --- between lists and what users see ---

    def given(self, xs: Any) -> list[Any]:
        leaves = list(self.leaves)
        for i, x in zip(self.places, xs, strict=True):
            leaves[i] = _apart(x)
        return list(trees.unflatten(self.structure, leaves))

    def results(self, out: Any) -> list[Any]:
        self.single = not isinstance(out, tuple)
        self.out = [out] if self.single else list(out)
        return [to_inner(o) for o in self.out if isinstance(o, Tensor)]

    def answer(self, ys: Any) -> Any:
        found = iter(ys)
        out = [to_face(next(found)) if isinstance(o, Tensor) else o for o in self.out]
        return out[0] if self.single else tuple(out)

    def in_places(self, xs: Any) -> list[Any]:
        """Something of each argument: None for those that are no tensors."""
        out: list[Any] = [None] * len(self.leaves)
        for i, x in zip(self.places, xs, strict=True):
            out[i] = x
        return list(trees.unflatten(self.structure, out))

    # --- what levels ask ---

    def handed_on(self, xs: Any, device: Any) -> Any:
        where = where_of_leaf(device.leaf)
        if device.inner is not (LEVEL if where is None else where.level):
            return super().handed_on(xs, device)
        ys, _ = self.forward(self.below(xs, device))  # a call as there is outside of transforms
        return [wrap(lift_to(y, device), device) for y in ys]

    def plain(self, xs: Any) -> list[Any]:
        args = self.given(xs)
        with grad_mode(False):
            if self.kind.has_setup(self.function):
                return self.results(self.function.forward(*args, **self.options))
            return self.results(self.function.forward(self.kind.new_ctx(self.function), *args, **self.options))

    def forward(self, xs: Any) -> tuple[list[Any], Any]:
        args = self.faces = self.given(xs)
        if self.kind.has_setup(self.function):
            out = self.function.apply(*args, **self.options)
            ctx = self.context(args, out)
        elif any([isinstance(a, Tensor) and is_lifted(a) for a in args]):
            raise RuntimeError(_NEEDS_SETUP)
        else:
            out, ctx = self.kind.called(self.function, tuple(args), self.options)
        return self.results(out), ctx

    def forward_by(self, xs: Any, active: Any) -> tuple[list[Any], Any]:
        self.wanted = [bool(flag) for flag in self.in_places(active)]
        return self.forward(xs)

    def context(self, args: Any, out: Any) -> Any:
        ctx = self.kind.new_ctx(self.function)
        ctx.needs_input_grad = tuple(self.wanted or [isinstance(a, Tensor) for a in self.args])
        self.function.setup_context(ctx, tuple(args), out)
        self.dirty = list(ctx.dirty_tensors or ())
        return ctx

    def is_written(self, x: Tensor) -> bool:
        """Whether the function wrote to an argument, or says so."""
        return _is_written(x) or any([x is t for t in self.dirty])

    def residuals(self, xs: Any, ys: Any) -> Any:
        if not self.kind.has_setup(self.function):
            return self.forward(xs)[1]
        return self.context(self.given(xs), self.answer(ys))

    def backward_of(self, saved: Any, cotangents: Any, results: Any) -> list[Any]:
        if saved.materialize_grads or all([c is None for c in cotangents]):
            return list(super().backward_of(saved, cotangents, results))
        return self.backward(saved, cotangents)

    def backward(self, saved: Any, cotangents: Any) -> list[Any]:
        grads = self.in_results(cotangents)
        found = self.kind.rule_of(self.function)(saved, *grads)
        given = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(given) < len(self.args) or any([g is not None for g in given[len(self.args) :]]):
            raise RuntimeError(
                f"function {self.name} returned an incorrect number of gradients (expected {len(self.args)}, "
                f"got {len(given)})"
            )
        device = common_backend(*[c for c in cotangents if c is not None])
        found = [g for i, x in enumerate(self.args) for g in _per_leaf(given[i], x)]
        return [self.cotangent(found[i], self.leaves[i], device) for i in self.places]

    def cotangent(self, g: Any, x: Any, device: Any) -> Any:
        """A gradient in the type and the shape of its argument, zeros where there is none."""
        if g is None:
            return wrap(device.full(shape=tuple(x.shape), value=0, dtype=x._dtype), device)
        g = g.sum_to_size(tuple(x.shape)) if tuple(g.shape) != tuple(x.shape) else g
        return to_inner(g.to(dtype=x.dtype))

    def in_results(self, tensors: Any) -> list[Any]:
        found = iter(tensors)
        return [to_face(next(found)) if isinstance(o, Tensor) else None for o in self.out]

    def push(self, xs: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        ys, ctx = self.forward(xs)
        ctx.use_saved_for_forward()
        pushed = self.in_places([_apart(t) for t in tangents])
        found = self.function.jvp(ctx, *pushed)
        if any([one.differentiates for one in modes.transforms]):
            for x, t in zip(self.faces, pushed, strict=False):
                if isinstance(t, Tensor) and _is_written(t) and not self.is_written(x):
                    raise RuntimeError(CAPTURED)
        given = list(found) if isinstance(found, tuple) else [found]
        moved = []
        self.unmoved = [i for i, t in enumerate(given) if t is None]
        for i, (o, t) in enumerate(zip(self.out, given, strict=True)):
            if t is not None and not (isinstance(o, Tensor) and o._dtype.kind in "fc"):
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not "
                    "a differentiable Tensor. You should return None at that position instead."
                )
            if isinstance(t, Tensor):
                self.check_memory(o, t, pushed)
            if isinstance(o, Tensor):
                y = to_inner(o)
                moved.append(wrap(zeros_like(y.device, lift_to(y, y.device)), y.device) if t is None else to_inner(t))
        return ys, moved

    def check_memory(self, o: Any, t: Tensor, pushed: list[Any]) -> None:
        """Raise where a result is on an argument's memory, and its tangent is not on that of the argument's."""
        place = next((i for i, a in enumerate(self.faces) if isinstance(a, Tensor) and shares(a, o)), None)
        if place is None:
            return
        if self.faces[place] is o and self.is_written(o):
            if t is not pushed[place] or not _is_written(t):
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
                    "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace "
                    "and return it."
                )
        elif not is_view(t):
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a "
                "view."
            )
        elif base_of(t) is not base_of(pushed[place]):
            of = "the same base as the given" if is_view(self.args[place]) else "the given"
            raise RuntimeError(
                f"A custom Function is returning a view but the jvp is not returning a view of {of} grad input."
            )

    def written(self, ys: list[Any]) -> Any:
        """What the user gets: where the function wrote to an argument, that."""
        answer = self.answer(ys)
        out = [answer] if self.single else list(answer)
        for i in self.unmoved:
            face = out[i]
            if isinstance(face, Tensor) and is_lifted(face) and not in_transform(face):
                out[i] = of(primal_of(face))
        for i, o in enumerate(self.out):
            for given, face in zip(self.args, getattr(self, "faces", ()), strict=False):
                if o is face and isinstance(o, Tensor) and self.is_written(o):
                    out[i] = put_lifted(given, out[i])
        return out[0] if self.single else tuple(out)

    def batch(self, level: Any, size: int, flags: Any, xs: Any) -> Any:
        own = self.kind.has_vmap(self.function)
        if self.function.generate_vmap_rule:
            if own:
                raise RuntimeError(_TWO_VMAPS.format(name=self.function.__name__))
            return None
        if not own:
            raise RuntimeError(_NO_VMAP.format(name=self.function.__name__))
        dims = tuple(self.in_places([0 if flag else None for flag in flags]))
        info = VmapInfo(size, modes.drawing[-1][0] if modes.drawing else "error")
        answer = self.function.vmap(info, dims, *self.given(xs), **self.options)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise RuntimeError(
                "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
                f"compatible with the output. Got a {type(answer).__name__}"
            )
        out, out_dims = answer
        self.single = not isinstance(out, tuple)
        self.out = [out] if self.single else list(out)
        several = isinstance(out_dims, tuple)
        if several and (self.single or len(out_dims) != len(self.out)):
            raise RuntimeError(
                "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
                f"out_dims={out_dims} to be compatible with the structure of `output`, which is of "
                f"{'one part' if self.single else f'{len(self.out)} parts'}."
            )
        axes = out_dims if several else (out_dims,) * len(self.out)
        ys, kept = [], []
        for o, axis in zip(self.out, axes, strict=True):
            if isinstance(o, Tensor):
                ys.append(to_inner(o if axis in (None, 0) else o.movedim(axis, 0)))
                kept.append(axis is not None)
        return ys, kept


def _apart(x: Any) -> Tensor:
    """What a function is given: it may write to it, so in an array of its own; a clone shares one in transforms."""
    face: Tensor = to_face(x)
    return face if is_lifted(face) else of(var_of(copied(values(face)), face._array.node))


def _per_leaf(g: Any, x: Any) -> list[Any]:
    """The gradients of the leaves of an argument."""
    if g is None or not isinstance(x, (tuple, list, dict)):
        return [g] * len(trees.leaves(x))
    pairs = [(g[k], x[k]) for k in sorted(x)] if isinstance(x, dict) else zip(g, x, strict=True)
    return [part for pair in pairs for part in _per_leaf(*pair)]


def _is_written(x: Tensor) -> bool:
    """Whether a function wrote to an argument, which was made for the call."""
    return bool(x._rare.writes if is_lifted(x) else x._version)


def applied(kind: Any, function: Any, args: Any, options: Any) -> Any:
    """A Function of lifted tensors."""
    rules = FunctionRules(kind, function, args, options)
    tensors = [to_inner(rules.leaves[i]) for i in rules.places]
    device = common_backend(*tensors)
    if not kind.has_setup(function) and (modes.duals is None or not modes.duals.has(device)):
        raise RuntimeError(_NEEDS_SETUP)
    try:
        ys = apply(rules, [wrap(lift_to(x, device), device) for x in tensors], device)
    except errors.AdjointError as error:
        raise translated(error) from error
    return rules.written(ys)
