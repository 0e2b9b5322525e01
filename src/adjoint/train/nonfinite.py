"""Where a nan or an infinity in training comes from: which layer gave the first."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.observed import Checked
from adjoint.dtypes import INEXACT
from adjoint.functions.arguments import is_array
from adjoint.functions.logic import isfinite
from adjoint.functions.reduction import all as every
from adjoint.module.base import Module
from adjoint.module.fields import Fields, is_setting, joined, leaves_of, opened, rebuilt
from adjoint.tensor import Tensor

Run = Callable[[Any], Any]  # what is done with a model


def all_finite(grads: Mapping[str, Tensor[Any]]) -> bool:
    """Whether all numbers are finite. Of what is, mostly, one pass over the gradients finds that."""
    for g in grads.values():
        with g.device.leaf.quiet():  # a sum of finite numbers may be none
            if not np.isfinite(g.sum().item()) and not every(isfinite(g)).item():
                return False
    return True


def find_layer(model: Module, batch: Any, forward: Run, backward: Run) -> tuple[str, Exception | None]:
    """What gave the first value that is not finite, in words, and the primitive that did, as an exception.

    `forward` of a model gives the loss, `backward` of one its gradients by path. Both run again.
    """
    bad = [leaf.path for leaf in leaves_of(model) if isinstance(leaf.value, Tensor) and not _finite(leaf.value)]
    if bad:
        return f"in the model itself, at {bad[0]}", None
    leaves, structure = trees.flatten(batch)
    bad = [path for path, x in zip(trees.paths(structure), leaves, strict=True) if is_array(x) and "nan" in _kinds(x)]
    if bad:
        return f"in the batch, at batch{bad[0]}", None
    cause = _primitive(model, backward)
    found: list[str] = []
    loss = _quietly(forward, _watched(model, "", found))
    if found:
        return f"first in the output of {found[0]}", cause
    if loss is not None and not _finite(loss):
        return "in the loss, of finite predictions", cause
    grads = _quietly(backward, model) or {}
    bad = [path for path, g in grads.items() if not _finite(g)]
    if bad:
        later = [path for path in grads if path not in bad]
        after = f"; those of {errors.shown(', '.join(later))} are finite" if later else ""
        return f"on the way back first in the gradient of {bad[-1]}{after}", cause
    return "which a second run does not show", cause


def _primitive(model: Module, run: Run) -> Exception | None:
    """What `Checked` says of it, where values are there to be looked at."""
    try:
        device = next(leaf.value.device for leaf in leaves_of(model) if isinstance(leaf.value, Tensor))
        leaf = device.leaf
        run(model.fork(Autodiff(Checked(leaf))))
    except (errors.NonFiniteError, errors.BackwardError) as error:
        return error
    except errors.AdjointError:
        return None
    return None


def _quietly(run: Run, model: Any) -> Any:
    """What a run gives; None where it raises, as arithmetic with a nan may."""
    try:
        return run(model)
    except (errors.AdjointError, ArithmeticError, ValueError):
        return None


def _watched(tree: Any, path: str, found: list[str]) -> Any:
    """The model with every layer, and every function among its parts, noting where what it gives is not finite."""
    if isinstance(tree, Fields):
        cls = _watching(type(tree), path, found)
        children = [_watched(vars(tree)[name], joined(path, name), found) for name in tree._fields]
        return rebuilt(cls, children, tree._frozen, tree._training)
    if is_array(tree):
        return tree
    if is_setting(tree):
        name = getattr(tree, "__name__", type(tree).__name__)
        return _noting(tree, f"{path} ({name})", found) if callable(tree) and not isinstance(tree, type) else tree
    children, names, build = opened(tree)
    return build([_watched(x, joined(path, name), found) for x, name in zip(children, names, strict=True)])


def _watching(cls: type[Any], path: str, found: list[str]) -> Any:
    """A subclass whose calls note."""
    label = f"{path} ({cls.__name__})" if path else f"the model ({cls.__name__})"
    own = {name: _noting(getattr(cls, name), label, found) for name in ("__call__", "apply") if hasattr(cls, name)}
    return types.new_class(cls.__name__, (cls,), exec_body=lambda body: body.update(own, __module__=cls.__module__))


def _noting(f: Callable[..., Any], label: str, found: list[str]) -> Callable[..., Any]:
    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        if _kinds(out) - _kinds((args, kwargs)):  # as `Checked` blames: what came in was better
            found.append(label)
        return out

    return run


def _kinds(tree: Any) -> set[str]:
    """Which of nan and inf are in the arrays of a tree."""
    arrays = [_values(x) for x in trees.leaves(tree) if is_array(x)]
    tests = {"nan": np.isnan, "inf": np.isinf}
    return {kind for kind, test in tests.items() for x in arrays if x.dtype.kind in INEXACT and test(x).any()}


def _finite(x: Any) -> bool:
    return not _kinds(x)


def _values(x: Any) -> np.ndarray[Any, Any]:
    return x.numpy() if isinstance(x, Tensor) else np.asarray(x)
