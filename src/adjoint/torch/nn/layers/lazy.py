"""Layers that learn the size of their inputs from the first of them."""

from __future__ import annotations

import inspect
from typing import Any

from adjoint.torch.nn.layers import parametric
from adjoint.torch.nn.module import Module
from adjoint.torch.nn.parameter import UninitializedBuffer, UninitializedParameter, Waiting
from adjoint.torch.tensor import Tensor


class _WithoutSize:
    """The signature of the class behind, but for the size that is found."""

    def __get__(self, value: Any, cls: Any = None) -> inspect.Signature | None:
        if not cls.__module__.startswith("adjoint.torch") or not hasattr(cls, "_becomes"):
            return None
        return inspect.Signature(list(inspect.signature(cls._becomes).parameters.values())[1:])


class _Lazy(Module):
    """A layer without one of its sizes: the first call finds it, and makes it the layer of the class behind."""

    _becomes: type
    __signature__ = _WithoutSize()
    _size = ""  # the name of what is found

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(0, *args, **options)
        for among, kind in ((self._parameters, UninitializedParameter), (self._buffers, UninitializedBuffer)):
            for name, x in among.items():
                if x is not None and x.ndim:  # the number of batches is known
                    among[name] = kind(device=x.device, dtype=x.dtype)

    def has_uninitialized_params(self) -> bool:
        """Whether parameters or buffers wait for their shapes."""
        return any([isinstance(x, Waiting) for x in (*self._parameters.values(), *self._buffers.values())])

    def reset_parameters(self) -> None:
        """First values, once there are shapes."""
        if getattr(self, self._size):
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:
        """Find the size from an input, and make the parameters."""
        if not getattr(self, self._size):
            setattr(self, self._size, self._size_of(input))
        if self.has_uninitialized_params():
            for name, shape in self._shapes().items():
                x = getattr(self, name)
                if isinstance(x, Waiting):
                    x.materialize(shape)
            self.reset_parameters()

    def _size_of(self, input: Tensor) -> int:
        return input.shape[-1]  # type: ignore[no-any-return]

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of parameters and buffers."""
        raise NotImplementedError

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.initialize_parameters(*args[:1])
        self.__class__ = self._becomes
        return self(*args, **options)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any, unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:  # fmt: skip
        for name, x in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if isinstance(x, Waiting) and given is not None and not isinstance(given, Waiting):
                x.materialize(given.shape)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class LazyLinear(_Lazy, parametric.Linear):
    """A `Linear` whose `in_features` are those of the first input.

    >>> import adjoint.torch as torch
    >>> layer = torch.nn.LazyLinear(2)
    >>> layer(torch.ones(4, 3)).shape, layer
    (torch.Size([4, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    _becomes, _size = parametric.Linear, "in_features"

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}


class _LazyConv(_Lazy):
    _size = "in_channels"

    def _size_of(self, input: Tensor) -> int:
        own: Any = self
        size: int = input.shape[-own._axes - 1]
        if size % own.groups:
            raise ValueError("in_channels must be divisible by groups")
        return size

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        own: Any = self
        channels = (own.in_channels, own.out_channels) if own._transposed else (own.out_channels, own.in_channels)
        return {"weight": (channels[0], channels[1] // own.groups, *own.kernel_size), "bias": (own.out_channels,)}


class _LazyNorm(_Lazy):
    _size = "num_features"
    _affine = _tracks = True  # also where the layer behind has no such default

    def _size_of(self, input: Tensor) -> int:
        return input.shape[1]  # type: ignore[no-any-return]

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        size = (getattr(self, self._size),)
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), size)


ALL: dict[str, Any] = {"LazyLinear": LazyLinear}
for _base, _names in ((_LazyConv, ("Conv", "ConvTranspose")), (_LazyNorm, ("BatchNorm", "InstanceNorm"))):
    for _name in [f"{name}{n}d" for name in _names for n in (1, 2, 3)]:
        _becomes: Any = getattr(parametric, _name)
        _text = f"A `{_name}` whose `{_base._size}` are those of the first input."
        ALL[f"Lazy{_name}"] = type(f"Lazy{_name}", (_base, _becomes), {"_becomes": _becomes, "__doc__": _text})
