"""`torch.utils.checkpoint`: what a function saves is computed again in backward, instead of being kept."""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

from adjoint.torch import engine, saving
from adjoint.torch.autograd.function import Function
from adjoint.torch.autograd.graph import saved_tensors_hooks
from adjoint.torch.generators import default_generator
from adjoint.torch.missing import missing as _missing
from adjoint.torch.state import grad_mode, modes, running
from adjoint.torch.tensor import Tensor

_PASS_IT = (
    "{name}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is recommended, but if you "
    "need to preserve the current default behavior, you can pass use_reentrant=True."
)
_NOT_BY_GRAD = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
    ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing "
    "the `inputs` argument."
)
_ONCE = (
    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling "
    "ctx.saved_tensors in backward, make sure to do so only once."
)


class CheckpointError(RuntimeError):
    """The function did something else when it ran again."""


class _EnoughError(Exception):
    """All is there that backward asked for."""


_OVERLAP = (
    "torch.utils.checkpoint: Performing two backward calls that overlap (i.e. require the same saved tensors) inside "
    "of one GraphExecGroup is not supported."
)
_DEBUGGED = (
    " An error happened while unpacking tensors. You are seeing this error because you passed `debug=True` to "
    "checkpoint, or called set_checkpoint_debug_enabled(True).\n"
)
_early_stop: list[bool | None] = [None]  # what a block says, None for the default
_debug: list[bool | None] = [None]
_groups: list[GraphExecGroup] = []  # the blocks around, the innermost last


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A block of checkpoints whose errors say more, or do not, whatever `debug` says; with None as `debug` says."""
    before = _debug[0]
    _debug[0] = enabled
    try:
        yield
    finally:
        _debug[0] = before


class GraphExecGroup:
    """A block of backward passes that share what checkpoints compute again: none of it may be asked for twice."""

    def __init__(self) -> None:
        self._callbacks: list[Any] = []

    def __enter__(self) -> GraphExecGroup:
        _groups.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _groups.remove(self)
        while self._callbacks:
            self._callbacks.pop()()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A block of checkpoints that run again as far as is needed, or to their end."""
    before = _early_stop[0]
    _early_stop[0] = enable
    try:
        yield
    finally:
        _early_stop[0] = before


def noop_context_fn() -> tuple[Any, Any]:
    """No contexts: for the function when it runs first, and when it runs again."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def _described(x: Tensor) -> dict[str, Any]:
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


class _Slot:
    """What a node keeps of a tensor: which one it was."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class _Frame:
    """One call of a function whose saved tensors are made again."""

    def __init__(self, function: Any, args: Any, options: Any, context: Any, check: bool, keep_rng: bool) -> None:
        self.function, self.options, self.context, self.check = function, options, context, check
        self.stops: bool = True  # at the last tensor that is asked for
        self.debug: bool = False  # whether errors say more
        self.random = default_generator.get_state() if keep_rng else None
        self.args = [_Argument(a) if isinstance(a, Tensor) else a for a in args]
        self.slots: list[Any] = []  # weakly: of what nobody can ask for nothing is kept
        self.known: list[dict[str, Any]] = []
        self.made: dict[Any, dict[int, Tensor]] = {}  # by backward pass
        self.completed: bool = False  # the function has run once
        self.again_inside: bool = False  # it differentiated inside, and ran again before it had run once

    def pack(self, x: Tensor) -> _Slot:
        slot = _Slot(len(self.slots))
        self.slots.append(weakref.ref(slot))
        self.known.append(_described(x))
        return slot

    def unpack(self, slot: _Slot) -> Tensor:
        walk = running()
        if walk is None:
            return self.again()[slot.number]
        group = _groups[-1] if _groups else None
        key = id(group or walk)
        made = self.made.get(key)
        if made is None:
            try:
                made = self.made[key] = self.again()
            except CheckpointError as error:
                raise CheckpointError(_DEBUGGED + str(error)) if self.debug else error from None
            (walk.callbacks if group is None else group._callbacks).append(lambda: self.made.pop(key, None))
        try:
            return made.pop(slot.number)
        except KeyError:
            raise CheckpointError(_ONCE if group is None else _OVERLAP) from None

    def again(self) -> dict[int, Tensor]:
        """Run the function again, for what it saves."""
        made: dict[int, Tensor] = {}
        count = 0
        self.again_inside = self.again_inside or not self.completed

        def pack(x: Tensor) -> _Slot:
            nonlocal count
            i, count = count, count + 1
            if i >= len(self.slots):
                if self.completed and not self.stops and not self.again_inside:
                    raise CheckpointError(
                        "torch.utils.checkpoint: trying to save more tensors during recomputation than during the "
                        "original forward pass."
                    )
                slot = _Slot(i)
                held[id(slot)] = x.detach()
                return slot
            if self.check and (found := _described(x)) != self.known[i]:
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                    f"during the forward pass.\ntensor at position {i}:\nsaved metadata: {self.known[i]}\nrecomputed "
                    f"metadata: {found}"
                )
            if self.slots[i]() is not None:
                made[i] = x.detach() if x.requires_grad else x
            if self.stops and count == len(self.slots):
                raise _EnoughError
            slot = _Slot(i)
            held[id(slot)] = x.detach()
            return slot

        held: dict[int, Tensor] = {}  # for a function that differentiates inside
        args = [a.tensor() if isinstance(a, _Argument) else a for a in self.args]
        before = default_generator.get_state()
        if self.random is not None:
            default_generator.set_state(self.random)
        try:
            with saved_tensors_hooks(pack, lambda slot: held[id(slot)]), grad_mode(True), self.context:
                self.function(*args, **self.options)
        except _EnoughError:
            pass
        finally:
            if self.random is not None:
                default_generator.set_state(before)
        if count != len(self.slots) and not self.again_inside:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.slots)}\nNumber of tensors saved "
                f"during recomputation: {count}."
            )
        return made


class _Argument:
    """An argument for the second run; inside of another checkpoint that one keeps it."""

    def __init__(self, x: Tensor) -> None:
        self.tracked = x.requires_grad
        self.kept: Any = saving.pack(x.detach()) if modes.saved_hooks and modes.enabled else x
        self.version = None if x.is_inference() else x._version

    def tensor(self) -> Tensor:
        if isinstance(self.kept, Tensor):
            if self.version is not None and self.kept._version != self.version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"an argument of checkpoint() is at version {self.kept._version}; expected version {self.version} "
                    "instead."
                )
            return self.kept
        x: Any = saving.unpack(self.kept)
        return x.detach().requires_grad_(self.tracked)  # type: ignore[no-any-return]


class CheckpointFunction(Function):
    """The reentrant form: backward runs the function again, and a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        ctx.run_function = run_function
        ctx.random = default_generator.get_state() if preserve_rng_state else None
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.args = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        if not any([a.requires_grad for a in args if isinstance(a, Tensor)]):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4)
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        walk = running()
        if walk is None or walk.partial:
            raise RuntimeError(_NOT_BY_GRAD)
        args = list(ctx.args)
        for i, x in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = x.detach().requires_grad_(x.requires_grad)
        before = default_generator.get_state()
        if ctx.random is not None:
            default_generator.set_state(ctx.random)
        try:
            with grad_mode(True):
                out = ctx.run_function(*args)
        finally:
            if ctx.random is not None:
                default_generator.set_state(before)
        outputs = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        engine.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *[a.grad if isinstance(a, Tensor) else None for a in args])


def checkpoint(
    function: Any,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Any = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args)`, whose saved tensors are computed again in backward.

    >>> import adjoint.torch as torch
    >>> from adjoint.torch.utils.checkpoint import checkpoint
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(lambda v: v.exp().sin().sum(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor([-2.4784,  3.3129])
    """
    if use_reentrant is None:
        warnings.warn(_PASS_IT.format(name="torch.utils.checkpoint"), stacklevel=2)
        use_reentrant = True
    keep_rng = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, keep_rng, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    first, second = context_fn()
    if not modes.enabled:
        return function(*args, **kwargs)
    frame = _Frame(function, args, kwargs, second, determinism_check == "default", keep_rng)
    frame.stops = early_stop if _early_stop[0] is None else _early_stop[0]
    frame.debug = debug if _debug[0] is None else _debug[0]
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        out = function(*args, **kwargs)
    frame.completed = True
    return out


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """A chain of functions in so many parts, each but the last one a checkpoint.

    >>> import adjoint.torch as torch
    >>> from adjoint.torch.utils.checkpoint import checkpoint_sequential
    >>> x = torch.ones(2, requires_grad=True)
    >>> checkpoint_sequential([torch.sin, torch.exp, torch.cos], 2, x, use_reentrant=False)
    tensor([-0.6809, -0.6809], grad_fn=<CosBackward0>)
    """
    if use_reentrant is None:
        warnings.warn(_PASS_IT.format(name="torch.utils.checkpoint.checkpoint_sequential"), stacklevel=2)
        use_reentrant = True
    keep_rng = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    chain = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def part(start: int, end: int) -> Any:
        def forward(x: Any) -> Any:
            for function in chain[start : end + 1]:
                x = function(x)
            return x

        return forward

    size = len(chain) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=keep_rng)
    return part(end + 1, len(chain) - 1)(input)


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The states of the GPUs' random numbers: none, because one generator draws for all devices."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: Any = None) -> None:
    """Take back what `get_device_states` gave: nothing."""


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)
