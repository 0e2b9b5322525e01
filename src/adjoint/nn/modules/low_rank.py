"""Weights with a change of low rank: what is trained of a large model whose own weights stay."""

from __future__ import annotations

import math
from typing import Any, Generic, TypeVar

from adjoint import errors
from adjoint.functions.arguments import as_integer, as_positive
from adjoint.functions.contraction import matmul
from adjoint.functions.creation import zeros
from adjoint.functions.shape import reshape
from adjoint.module.base import Module, chosen
from adjoint.module.fields import constant_of, leaves_of, mapped, with_arrays
from adjoint.nn.modules.linear import Key
from adjoint.random import normal
from adjoint.random_keys import seeded
from adjoint.tensor import Tensor

M = TypeVar("M", bound=Module)


class Factors(Module):
    """Two matrices whose product is added to a weight: up (rows, rank) and down (rank, columns)."""

    up: Tensor[Any]
    down: Tensor[Any]


class LowRank(Module, Generic[M]):
    """A model whose weights w are w + alpha / rank * up @ down: `up` and `down` are trained, the model is frozen.

    E. Hu et al. (2021). A weight of more than two axes, as of a convolution, is a matrix of its first axis and the
    rest. At first the values are the model's, since `up` is zeros; `down` is normal with variance 1 / columns. It is
    called as the model is, and layers of any sort are as they were: they see the sum.

    `factors` is a module of the model's shape, with None where nothing is added: `factors.save(path)` writes what was
    trained, and `at("factors").apply(lambda f: f.load(path))` reads it. What is to be trained beside it is unfrozen, as
    by `unfreeze("base.head")`.

    Parameters
    ----------
    model
        A module.
    rank
        How many columns `up` has, and rows `down`; in a weight of fewer rows or columns as many as that, which is every
        change it can have.
    where
        Which weights: a path, a pattern such as "*.attention.*", a function of path and value, or several of these. Of
        what they fit, parameters of two axes or more are taken.
    alpha
        The factor of the change, times the rank; the rank if None.
    key
        A seed for `down`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        The rank is none; `where` fits no parameter of two axes; `model` is no module.

    Examples
    --------
    >>> import adjoint as ad
    >>> base = ad.nn.Sequential(ad.nn.Linear(20, 30), ad.nn.relu, ad.nn.Linear(30, 1))
    >>> model = ad.nn.LowRank(base, rank=2, where="layers.0")
    >>> x = ad.ones((4, 20))
    >>> bool((model(x) == base(x)).all())
    True
    >>> sorted(ad.grad(lambda model: model(x).sum())(model).named_parameters())
    ['factors.layers.0.weight.down', 'factors.layers.0.weight.up']
    >>> type(model.merged()).__name__, model.factors.num_params()
    ('Sequential', 100)
    """

    base: M
    factors: Any
    scale: float

    def __init__(
        self, model: M, rank: int, where: Any = "*", *, alpha: float | None = None, key: int | None = None
    ) -> None:
        if not isinstance(model, Module):
            raise errors.ArgumentTypeError(f"LowRank: expected a module, received {errors.shown(model)}")
        size = as_integer(rank, "LowRank", "rank", 1)
        self.scale = 1.0 if alpha is None else float(as_positive(alpha, "LowRank", "alpha")) / size
        found = chosen(model, tuple(where) if isinstance(where, (tuple, list)) else (where,), "LowRank")
        places = {path for path, x in model.named_parameters().items() if path in found and x.ndim > 1}
        if not places:
            raise errors.ArgumentError(
                f"LowRank: no parameter of two axes or more at {errors.shown(where)}; there are "
                f"{errors.shown(', '.join(path for path, x in model.named_parameters().items() if x.ndim > 1))}"
            )
        self.base = model.map(constant_of)
        if key is None:
            self.factors = _started(model, places, size)
        else:
            with seeded(key):
                self.factors = _started(model, places, size)
        vars(self)["_frozen"] = frozenset({"base"})  # as a whole: its own marks are those of the merged model

    def merged(self) -> M:
        """The model with the changed weights, which has no other parameters than before."""
        before = {leaf.path: leaf.value for leaf in leaves_of(self.base)}
        values = {}
        for leaf in leaves_of(self.factors):
            path, _, name = leaf.path.rpartition(".")
            if name == "up":
                factors = self.factors.at(path).get()
                change = matmul(factors.up, factors.down)
                values[path] = before[path] + self.scale * reshape(change, before[path].shape)
        return with_arrays(self.base, values)

    def __call__(self, *args: Any, key: Key = None, **kwargs: Any) -> Any:
        return self.merged()(*args, **kwargs)

    def apply(self, x: Any, state: Any, *, key: Key = None) -> tuple[Any, Any]:
        out, after = self.merged().apply(x, state.base)
        return out, state.at("base").set(after)


def _started(model: M, places: set[str], rank: int) -> M:
    """Factors at these places of a model, and None at all others."""

    def start(leaf: Any) -> Factors | None:
        if leaf.path not in places:
            return None
        x = leaf.value
        rows, columns = x.shape[0], math.prod(x.shape[1:])
        own = min(rank, rows, columns)
        parts = 2 if x.dtype.kind == "c" else 1
        drawn = [
            normal((own, columns), std=1 / math.sqrt(parts * columns), dtype=x.real.dtype, device=x.device)
            for _ in range(parts)
        ]
        down = drawn[0] if parts == 1 else (drawn[0] + 1j * drawn[1]).astype(x.dtype)
        return Factors(zeros((rows, own), dtype=x.dtype, device=x.device), down)

    return mapped(model, start)
