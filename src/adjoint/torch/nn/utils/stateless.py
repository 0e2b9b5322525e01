"""Modules as functions of their parameters and buffers, for `torch.func`."""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Iterator
from typing import Any


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, *, tie_weights: bool = True,
    strict: bool = False,
) -> Any:  # fmt: skip
    """A module called with other parameters and buffers, which it has again afterwards as they were."""
    if not isinstance(parameter_and_buffer_dicts, (dict, list, tuple)):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
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
            f"Error(s) in reparametrizing for {type(module).__name__}: Missing key(s): "
            f"{sorted(set(places) - set(given))}. "
            f"Unexpected key(s): {sorted(set(given) - set(places))}."
        )
    if tie_weights:
        _check_ties(given, places)
    owners: list[dict[str, Any]] = []
    keys: list[str] = []
    values: list[Any] = []
    # one call in C, in the middle of which no signal raises an error
    restore: Any = functools.partial(collections.deque, map(operator.setitem, owners, keys, values), 0)
    try:
        for name, value in given.items():
            if name not in places:
                continue
            old = places[name][0]
            tied = [(o, p) for x, o, p in places.values() if x is old] if tie_weights else [places[name][1:]]
            for owner, part in tied:
                owners.append(owner)
                keys.append(part)
                values.append(old)
                owner[part] = value
        return module(*args, **(kwargs or {}))
    finally:
        restore()


def _check_ties(given: dict[str, Any], places: dict[str, Any]) -> None:
    """Raises ValueError where several names of one tensor are given several values."""
    named: dict[int, list[str]] = {}
    for name in given:
        if name in places:
            named.setdefault(id(places[name][0]), []).append(name)
    for names in named.values():
        if any([given[name] is not given[names[0]] for name in names]):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                "tie_weights=False"
            )


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
            if any([each[name].requires_grad is not first.requires_grad for each in found]):
                raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
            joined = stack([each[name] for each in found])
            made[name] = joined.detach().requires_grad_(first.requires_grad)
        parts.append(made)
    return parts[0], parts[1]


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Take the running statistics from every batch normalisation of a module, which keeps none from then on."""
    from adjoint.torch.nn import LAYERS

    kinds = tuple([LAYERS[f"BatchNorm{n}d"] for n in (1, 2, 3)])
    for part in root.modules():
        if isinstance(part, kinds):
            part.running_mean = part.running_var = part.num_batches_tracked = None
            part.track_running_stats = False
    return root
