"""`torch.nn.utils.prune`: parts of parameters that are zero, by a mask which stands beside what they are made of."""

from __future__ import annotations

import abc
import numbers
from collections.abc import Iterable, Iterator
from typing import Any

from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.state import no_grad


class BasePruningMethod(abc.ABC):
    """A way to choose what is zero: subclasses say `compute_mask` and `PRUNING_TYPE`."""

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abc.abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of a tensor: ones where it stays, and no ones where the mask before has none."""

    def apply_mask(self, module: Any) -> Any:
        """The original with zeros where the mask has some."""
        if not getattr(self, "_tensor_name", None):
            raise AssertionError(f"Module {module} has to be pruned")
        mask, original = (getattr(module, f"{self._tensor_name}_{part}") for part in ("mask", "orig"))
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a parameter of a module, from now on before every call."""
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        found = [(key, hook) for key, hook in _methods_of(module) if hook._tensor_name == name]
        for key, old in found:
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            method = container
            del module._forward_pre_hooks[key]
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise AssertionError(
                "importance_scores should have the same shape as parameter "
                f"{name} of {module}, got {importance_scores.shape} vs {original.shape}"
            )
        with no_grad():
            before = getattr(module, f"{name}_mask").clone() if found else FUNCTIONS["ones_like"](original)
            mask = method.compute_mask(original if importance_scores is None else importance_scores, before)
        if not found:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A tensor with zeros where this method says, by its own numbers or by others."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        before = FUNCTIONS["ones_like"](t) if default_mask is None else default_mask
        with no_grad():
            mask = self.compute_mask(t if importance_scores is None else importance_scores, before)
        return t * mask

    def remove(self, module: Any) -> None:
        """Make the pruned values the parameter."""
        name = self._tensor_name
        original = module._parameters[f"{name}_orig"]
        original.data = self.apply_mask(module).detach()
        delattr(module, name)
        del module._parameters[f"{name}_orig"], module._buffers[f"{name}_mask"]
        module.register_parameter(name, original)


def _methods_of(module: Any) -> list[tuple[int, Any]]:
    """The methods that prune parameters of a module, by the number of their hook."""
    found = module._forward_pre_hooks.items()
    return [(key, hook) for key, hook in found if isinstance(hook, BasePruningMethod)]


class PruningContainer(BasePruningMethod):
    """Several methods for one tensor: each chooses among what those before it left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1 and not isinstance(args[0], Iterable):
            self._tensor_name = args[0]._tensor_name
        for method in args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method of the same tensor."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        name = getattr(self, "_tensor_name", None)
        if method is not None and name is not None and method._tensor_name != name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{name}' to PruningContainer {self}. "
                f"Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            part: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    "Pruning methods of PRUNING_TYPE structured need to have the attribute `dim` defined."
                )
            axis = method.dim % t.dim()
            left = mask.sum([d for d in range(t.dim()) if d != axis]) != 0
            part = (*[slice(None)] * axis, left)
        elif method.PRUNING_TYPE == "global":
            part = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = mask.clone()
        mask[part] = method.compute_mask(t[part], mask[part]).to(dtype=mask.dtype)
        return mask


# --- how many --------------------------------------------------------------------------------------


def _checked_amount(amount: Any) -> Any:
    """An amount: a count, or a part of all. Raises TypeError or ValueError for what is neither."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    number: Any = amount
    if number < 0 or (not isinstance(amount, numbers.Integral) and number > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
    return amount


def _count(amount: Any, size: int) -> int:
    """How many of so many are pruned."""
    if isinstance(amount, numbers.Integral):
        if int(amount) > size:
            raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
        return int(amount)
    return round(float(amount) * size)


def _channels(t: Any, dim: int) -> int:
    """How many channels a tensor has along an axis, which it must have."""
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.dim()} dims"
        )
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")
    return int(t.shape[dim])


def _without(mask: Any, places: Any) -> Any:
    """A mask with zeros at places that are counted through."""
    flat = mask.reshape(-1).clone()
    flat[places] = 0
    return flat.reshape(mask.shape)


def _of_channels(t: Any, default_mask: Any, dim: int, kept: Any) -> Any:
    """The mask of which some channels are kept."""
    mask = FUNCTIONS["zeros_like"](t)
    mask[(*[slice(None)] * (dim % t.dim()), kept)] = 1
    return mask * default_mask.to(dtype=mask.dtype)


# --- the methods -----------------------------------------------------------------------------------


class Identity(BasePruningMethod):
    """Prunes nothing, but there is a mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes numbers of chance."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        self.amount = _checked_amount(amount)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = _count(self.amount, t.numel())
        return _without(default_mask, FUNCTIONS["randperm"](t.numel())[:count]) if count else default_mask.clone()


class L1Unstructured(RandomUnstructured):
    """Prunes the numbers of smallest absolute value."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = _count(self.amount, t.numel())
        if not count:
            return default_mask.clone()
        return _without(default_mask, t.abs().reshape(-1).topk(count, largest=False).indices)


class RandomStructured(BasePruningMethod):
    """Prunes channels of chance along an axis."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        self.amount, self.dim = _checked_amount(amount), dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        size = _channels(t, self.dim)
        count = _count(self.amount, size)
        return _of_channels(t, default_mask, self.dim, FUNCTIONS["randperm"](size)[count:]) if count else default_mask


class LnStructured(BasePruningMethod):
    """Prunes the channels of smallest norm along an axis."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        self.amount, self.n, self.dim = _checked_amount(amount), n, dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        size = _channels(t, self.dim)
        count = _count(self.amount, size)
        if not count:
            return default_mask
        axis = self.dim % t.dim()
        norm = t.norm(self.n, tuple([d for d in range(t.dim()) if d != axis]))
        return _of_channels(t, default_mask, self.dim, norm.topk(size - count).indices)


class CustomFromMask(BasePruningMethod):
    """Prunes where a mask that is given has zeros."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask: expected the shape {self.mask.shape}, received {default_mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)


# --- the functions ---------------------------------------------------------------------------------


def identity(module: Any, name: str) -> Any:
    """A mask of ones for a parameter."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune a count, or a part, of a parameter's numbers by chance."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the numbers of smallest absolute value, or of smallest score.

    >>> import adjoint.torch as torch
    >>> layer = torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(3, 2), "weight", amount=4)
    >>> int((layer.weight == 0).sum()), sorted(layer.state_dict())
    (4, ['bias', 'weight_mask', 'weight_orig'])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune channels along an axis by chance."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:
    """Prune the channels of smallest norm along an axis."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune where a mask has zeros."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune several parameters, pairs of a module and a name, by what is smallest in all of them together."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if not isinstance(importance_scores, (dict, type(None))):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs, scores = list(parameters), importance_scores or {}
    values = [scores.get((module, name), getattr(module, name)).detach() for module, name in pairs]
    masks = [getattr(m, f"{name}_mask", FUNCTIONS["ones_like"](getattr(m, name))) for m, name in pairs]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found {pruning_method} of type '
            f"{method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    flat, before = (FUNCTIONS["cat"]([x.reshape(-1) for x in found]) for found in (values, masks))
    with no_grad():
        mask = container.compute_mask(flat, before)
    start = 0
    for module, name in pairs:
        shape = getattr(module, name).shape
        custom_from_mask(module, name, mask[start : start + shape.numel()].reshape(shape))
        start += shape.numel()


def remove(module: Any, name: str) -> Any:
    """Make the pruned values the parameter, without a mask. Raises ValueError where there is none."""
    for key, hook in _methods_of(module):
        if hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether a parameter of a module, or of one of its parts, is pruned."""
    return any([_methods_of(part) for part in module.modules()])
