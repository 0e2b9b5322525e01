"""`torch.nn.utils.parametrizations`: weights by direction and length, or of spectral norm 1; and their older forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.torch import creation, linalg
from adjoint.torch.nn import functional as F
from adjoint.torch.nn.layers.parametric import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from adjoint.torch.nn.module import Module
from adjoint.torch.nn.parameter import Parameter
from adjoint.torch.nn.utils.parametrize import register_parametrization
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.state import no_grad
from adjoint.torch.tensor import Tensor

_normalize: Any = F.ALL["normalize"]


def _norm_except(v: Any, dim: int) -> Any:
    """The norms along all axes but one, which stays; of everything for -1."""
    if dim == -1:
        return linalg.vector_norm(v)
    axes = [i for i in range(v.ndim) if i != dim]
    return linalg.vector_norm(v, 2, axes, True) if axes else v.abs()


def _axis(dim: Any, weight: Any) -> int:
    return -1 if dim is None or dim == -1 else dim % weight.ndim


class _WeightNorm(Module):
    """length * direction / |direction|. T. Salimans, D. Kingma (2016)."""

    def __init__(self, dim: int = 0) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, g: Any, v: Any) -> Any:
        return v * (g / _norm_except(v, self.dim))

    def right_inverse(self, weight: Any) -> Any:
        return _norm_except(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: Any = 0) -> Any:
    """A weight by its direction and its length, of each entry of an axis or of the whole.

    >>> import adjoint.torch as torch
    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
    >>> layer.parametrizations.weight.original0.shape
    torch.Size([3, 1])
    """
    return register_parametrization(module, name, _WeightNorm(_axis(dim, getattr(module, name))), unsafe=True)


def _as_rows(weight: Any, dim: int) -> Any:
    """The weight as a matrix, an axis of it first."""
    if dim:
        weight = weight.permute(dim, *[i for i in range(weight.ndim) if i != dim])
    return weight.reshape(weight.shape[0], -1)


def _output_axis(module: Any, dim: Any) -> int:
    if dim is not None:
        return int(dim)
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


class _SpectralNorm(Module):
    """The weight over its largest singular value, from power iterations. T. Miyato et al. (2018)."""

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps, self.n_power_iterations = dim if dim >= 0 else dim + weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            rows = _as_rows(weight.detach(), self.dim)
            drawn = [creation.randn(n, dtype=weight.dtype, device=weight.device) for n in rows.shape]
            for key, x in zip(("_u", "_v"), drawn, strict=True):
                self.register_buffer(key, _normalize(x, dim=0, eps=eps))
            self._power_method(rows, 15)

    def _power_method(self, rows: Any, count: int) -> None:
        with no_grad():
            for _ in range(count):
                self._u.copy_(_normalize(rows.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(_normalize(rows.T.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return _normalize(weight, dim=0, eps=self.eps)
        rows = _as_rows(weight, self.dim)
        if self.training:
            self._power_method(rows.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(rows.mv(v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: Any = None
) -> Any:
    """A weight over its largest singular value, which each forward pass in training estimates better."""
    made = _SpectralNorm(getattr(module, name), n_power_iterations, _output_axis(module, dim), eps)
    return register_parametrization(module, name, made)


class _Orthogonal(Module):
    """Orthogonal matrices by exponentials, Cayley's map or Householder's reflections. M. Lezcano Casado (2019)."""

    def __init__(self, weight: Any, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        wide = X.shape[-2] < X.shape[-1]
        x = X.mT if wide else X
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            reflectors = x.tril(-1)
            factors = 2.0 / (1.0 + (reflectors * reflectors).sum(-2))
            signs = x.diagonal(dim1=-2, dim2=-1).detach().int()
            out = linalg.householder_product(reflectors, factors) * signs.unsqueeze(-2)
        else:
            lower = x.tril()
            if n != k:
                lower = F.ALL["pad"](lower, (0, n - k))
            skew = lower - lower.mH
            if self.orthogonal_map == "matrix_exp":
                out = linalg.matrix_exp(skew)
            else:
                one = creation.eye(n, dtype=skew.dtype, device=skew.device)
                out = linalg.solve(one - skew / 2, one + skew / 2)
            out = out[..., :k]
        if "base" in self._buffers:
            out = self.base @ out
        return out.mT if wide else out

    def right_inverse(self, Q: Any) -> Any:
        """The tensor that gives Q, or the orthogonal matrix next to it by its QR decomposition."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        if "base" not in self._buffers:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        with no_grad():
            tall = Q.mT if Q.shape[-2] < Q.shape[-1] else Q
            n, k = tall.shape[-2:]
            if n != k:
                rest = creation.randn(*tall.shape[:-2], n, n - k, dtype=tall.dtype, device=tall.device)
                tall = FUNCTIONS["cat"]([tall, rest], dim=-1)
            self.base = tall.clone() if _is_orthogonal(tall) else _made_orthogonal(tall)
            found = FUNCTIONS["zeros_like"](Q)
            found.diagonal(dim1=-2, dim2=-1).fill_(-1.0)  # zero reflectors with these signs give the identity
        return found


def _is_orthogonal(q: Any) -> Any:
    n = q.shape[-1]
    one = creation.eye(n, dtype=q.dtype, device=q.device)
    return FUNCTIONS["allclose"](q.mH @ q, one, atol=10.0 * n * np.finfo(q._dtype).eps)


def _made_orthogonal(x: Any) -> Any:
    """The orthogonal factor whose triangle has a positive diagonal."""
    q, r = linalg.qr(x)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """A weight that is an orthogonal matrix: of a wide one the rows are, of a tall one the columns.

    >>> import adjoint.torch as torch
    >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 3))
    >>> torch.allclose(layer.weight.T @ layer.weight, torch.eye(2), atol=1e-5)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    if orthogonal_map == "householder" and not use_trivialization:
        raise NotImplementedError(
            "adjoint.torch: orthogonal(orthogonal_map='householder', use_trivialization=False) is not there; take "
            "use_trivialization=True"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


# --- the older forms, `torch.nn.utils.weight_norm` and `spectral_norm`: hooks before the forward pass ---------------


class _Hook:
    def __init__(self, name: str, compute: Any, names: list[str]) -> None:
        self.name, self.compute, self.names = name, compute, names

    def __call__(self, module: Any, inputs: Any) -> None:
        object.__setattr__(module, self.name, self.compute(module))


def _hooked(module: Any, name: str, parameters: dict[str, Any], compute: Any, what: str) -> Any:
    for known in module._forward_pre_hooks.values():
        if isinstance(known, _Hook) and known.name == name and what == "weight_norm":
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    module._parameters.pop(name)
    for key, value in parameters.items():
        module.register_parameter(f"{name}{key}", Parameter(value.detach()))
    hook = _Hook(name, compute, [f"{name}{key}" for key in parameters])
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def old_weight_norm(module: Any, name: str = "weight", dim: Any = 0) -> Any:
    """As `parametrizations.weight_norm`, with parameters `weight_g` and `weight_v`."""
    weight = getattr(module, name)
    axis = _axis(dim, weight)

    def compute(module: Any) -> Any:
        v = getattr(module, f"{name}_v")
        return v * (getattr(module, f"{name}_g") / _norm_except(v, axis))

    return _hooked(module, name, {"_g": _norm_except(weight.detach(), axis), "_v": weight}, compute, "weight_norm")


def old_spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: Any = None
) -> Any:
    """As `parametrizations.spectral_norm`, with a parameter `weight_orig` and buffers `weight_u` and `weight_v`."""
    if f"{name}_orig" in module._parameters:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    weight = getattr(module, name)
    axis = _output_axis(module, dim)
    rows = _as_rows(weight.detach(), axis)
    start = [
        _normalize(creation.randn(n, dtype=weight.dtype, device=weight.device), dim=0, eps=eps) for n in rows.shape
    ]

    def compute(module: Any) -> Any:
        weight = getattr(module, f"{name}_orig")
        rows = _as_rows(weight, axis)
        u, v = getattr(module, f"{name}_u"), getattr(module, f"{name}_v")
        if module.training:
            with no_grad():
                for _ in range(n_power_iterations):
                    v.copy_(_normalize(rows.T.mv(u), dim=0, eps=eps))
                    u.copy_(_normalize(rows.mv(v), dim=0, eps=eps))
        return weight / u.clone().dot(rows.mv(v.clone()))

    module.register_buffer(f"{name}_u", start[0])
    module.register_buffer(f"{name}_v", start[1])
    training, module.training = module.training, False
    try:
        return _hooked(module, name, {"_orig": weight}, compute, "spectral_norm")
    finally:
        module.training = training


def _removed(module: Any, name: str, what: str, names: list[str]) -> Any:
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, _Hook) and hook.names == names:
            with no_grad():
                weight = hook.compute(module).detach().clone()
            del module._forward_pre_hooks[key]
            for other in [*names, f"{name}_u", f"{name}_v"]:
                module._parameters.pop(other, None)
                module._buffers.pop(other, None)
            module.__dict__.pop(name, None)
            module.register_parameter(name, Parameter(weight))
            return module
    raise ValueError(f"{what} of '{name}' not found in {module}")


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight a parameter again."""
    return _removed(module, name, "weight_norm", [f"{name}_g", f"{name}_v"])


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight a parameter again."""
    return _removed(module, name, "spectral_norm", [f"{name}_orig"])
