"""Distributions of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import adjoint.torch as torch
from adjoint.torch.creation import tensor
from adjoint.torch.distributions import constraints
from adjoint.torch.distributions.distribution import (
    LOG_2,
    LOG_2_PI,
    Centred,
    Distribution,
    ExponentialFamily,
    gamma_numbers,
    lazy_property,
)
from adjoint.torch.distributions.positive import Beta
from adjoint.torch.lifted import all_true

_SQUARES = "covariance_matrix", "precision_matrix", "scale_tril"


def _diagonal(x: Any) -> Any:
    return x.diagonal(dim1=-2, dim2=-1)


def _normal_like(shape: Any, like: Any) -> Any:
    return torch.randn(tuple(shape), dtype=like.dtype, device=like.device)


def _cholesky_of_inverse(p: Any) -> Any:
    """The Cholesky factor of a matrix's inverse, by the factor of the matrix with its axes turned around."""
    factor = torch.linalg.cholesky(torch.flip(p, (-2, -1)))
    turned = torch.flip(factor, (-2, -1)).mT
    eye = torch.eye(p.shape[-1], dtype=p.dtype, device=p.device)
    return torch.linalg.solve_triangular(turned, eye, upper=False)


def squared_distance(factor: Any, off: Any) -> Any:
    """off^T (L L^T)^-1 off, for a factor L."""
    shape = torch.broadcast_shapes(factor.shape[:-1], off.shape)
    solved = torch.linalg.solve_triangular(factor, off.expand(shape).unsqueeze(-1), upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


class _OfMatrix(Distribution):
    """A distribution with a matrix, which is given as one of three and makes the others: covariance C, precision
    C^-1, or Cholesky factor L of C = L L^T."""

    def _set_matrix(self, covariance: Any, precision: Any, factor: Any) -> tuple[str, Any]:
        given = dict(zip(_SQUARES, (covariance, precision, factor), strict=True))
        found = [(name, value) for name, value in given.items() if value is not None]
        if len(found) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, value = found[0]
        if value.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        return name, value

    def _set_factor(self, name: str, value: Any) -> None:
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = value
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = torch.linalg.cholesky(value)
        else:
            self._unbroadcasted_scale_tril = _cholesky_of_inverse(value)

    def _whole(self, value: Any) -> Any:
        n = value.shape[-1]
        return value.expand((*self._batch_shape, n, n))

    @lazy_property
    def scale_tril(self) -> Any:
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        factor = self._unbroadcasted_scale_tril
        return self._whole(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        return self._whole(torch.cholesky_inverse(self._unbroadcasted_scale_tril))

    def _expand_matrix(self, new: Any, batch_shape: Sequence[int]) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in _SQUARES:
            if name in self.__dict__:
                value = self.__dict__[name]
                setattr(new, name, value.expand((*batch_shape, *value.shape[-2:])))


class MultivariateNormal(Centred, _OfMatrix):
    """The normal distribution of vectors: `loc`, and a covariance, its inverse, or its Cholesky factor."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support: Any = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, value = self._set_matrix(covariance_matrix, precision_matrix, scale_tril)
        batch = torch.broadcast_shapes(value.shape[:-2], loc.shape[:-1])
        setattr(self, name, value.expand((*batch, *value.shape[-2:])))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        super().__init__(batch, self.loc.shape[-1:], validate_args)
        self._set_factor(name, value)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = type(self).__new__(type(self)) if _instance is None else _instance
        new.loc = self.loc.expand((*batch_shape, *self.event_shape))
        self._expand_matrix(new, batch_shape)
        return self._expanded_as(new, batch_shape, self.event_shape)

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        normal = _normal_like(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._unbroadcasted_scale_tril @ normal.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Any:
        return _diagonal(self._unbroadcasted_scale_tril).log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        distance = squared_distance(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * LOG_2_PI + distance) - self._half_log_det()

    def entropy(self) -> Any:
        found = 0.5 * self._event_shape[0] * (1.0 + LOG_2_PI) + self._half_log_det()
        return found.expand(tuple(self._batch_shape))


class LowRankMultivariateNormal(Centred):
    """The normal distribution of covariance W W^T + D: a factor W of few columns, and a diagonal D."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support: Any = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        batch = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand((*batch, *event)), cov_diag.expand((*batch, *event))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        super().__init__(batch, event, validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = type(self).__new__(type(self)) if _instance is None else _instance
        for name, rank in {"loc": 1, "cov_diag": 1, "cov_factor": 2}.items():
            value = getattr(self, name)
            setattr(new, name, value.expand((*batch_shape, *value.shape[-rank:])))
        return self._expanded_as(new, batch_shape, self.event_shape)

    @lazy_property
    def _capacitance_tril(self) -> Any:
        """The factor of I + W^T D^-1 W (Woodbury's formula)."""
        scaled = self.cov_factor / self.cov_diag.unsqueeze(-1)
        k = self.cov_factor.shape[-1]
        eye = torch.eye(k, dtype=self.loc.dtype, device=self.loc.device)
        return torch.linalg.cholesky(self.cov_factor.mT @ scaled + eye)

    @lazy_property
    def variance(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self) -> Any:
        return self.cov_factor @ self.cov_factor.mT + torch.diag_embed(self.cov_diag)

    @lazy_property
    def scale_tril(self) -> Any:
        return torch.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Any:
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        inner = torch.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return torch.diag_embed(self.cov_diag.reciprocal()) - inner.mT @ inner

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        few = _normal_like((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        more = _normal_like(shape, self.loc)
        return self.loc + (self.cov_factor @ few.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * more

    def _log_det(self) -> Any:
        return 2 * _diagonal(self._capacitance_tril).log().sum(-1) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        off = value - self.loc
        scaled = ((self.cov_factor / self.cov_diag.unsqueeze(-1)).mT @ off.unsqueeze(-1)).squeeze(-1)
        distance = (off.pow(2) / self.cov_diag).sum(-1) - squared_distance(self._capacitance_tril, scaled)
        return -0.5 * (self._event_shape[0] * LOG_2_PI + self._log_det() + distance)

    def entropy(self) -> Any:
        found = 0.5 * (self._event_shape[0] * (1.0 + LOG_2_PI) + self._log_det())
        return found.expand(tuple(self._batch_shape))


class Wishart(_OfMatrix, ExponentialFamily):
    """The distribution of sums of outer products of normal vectors: `df` of them, and the matrix of their covariance.

    Samples are by Bartlett's decomposition (1933).
    """

    support: Any = constraints.positive_definite
    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {
        "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(0),
    }  # fmt: skip

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, value = self._set_matrix(covariance_matrix, precision_matrix, scale_tril)
        df = df if isinstance(df, torch.Tensor) else tensor(df, dtype=value.dtype, device=value.device)
        batch, event = torch.broadcast_shapes(value.shape[:-2], df.shape), value.shape[-2:]
        if not all_true(df > event[-1] - 1):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        self.df = df.expand(tuple(batch))
        setattr(self, name, value.expand((*batch, *event)))
        super().__init__(batch, event, validate_args)
        self._set_factor(name, value)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = type(self).__new__(type(self)) if _instance is None else _instance
        new.df = self.df.expand(tuple(batch_shape))
        self._expand_matrix(new, batch_shape)
        return self._expanded_as(new, batch_shape, self.event_shape)

    @property
    def mean(self) -> Any:
        return self.df.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self._event_shape[-1] - 1
        return torch.where(factor > 0, factor, math.nan).view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        c = self.covariance_matrix
        d = _diagonal(c)
        return self.df.view((*self._batch_shape, 1, 1)) * (c.pow(2) + d.unsqueeze(-1) * d.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = (), max_try_correction: Any = None) -> Any:
        p = self._event_shape[-1]
        shape = self._extended_shape(sample_shape)
        degrees = self.df.unsqueeze(-1) - torch.arange(p, dtype=self.df.dtype, device=self.df.device)
        on = (2 * gamma_numbers(degrees / 2, shape[:-1])).sqrt()
        below = _normal_like(shape, self.df).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + on.diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        df, p, scale = self.df, self._event_shape[0], self._unbroadcasted_scale_tril
        spread = torch.cholesky_solve(value, scale.expand(value.shape))
        return (
            -df * (p * LOG_2 / 2 + _diagonal(scale).log().sum(-1)) - torch.mvlgamma(df / 2, p)
            + (df - p - 1) / 2 * torch.linalg.slogdet(value).logabsdet - _diagonal(spread).sum(-1) / 2
        )  # fmt: skip

    def entropy(self) -> Any:
        df, p, scale = self.df, self._event_shape[0], self._unbroadcasted_scale_tril
        places = torch.arange(p, dtype=df.dtype, device=df.device)
        digammas = torch.digamma(df.unsqueeze(-1) / 2 - places / 2).sum(-1)
        return (
            (p + 1) * (p * LOG_2 / 2 + _diagonal(scale).log().sum(-1)) + torch.mvlgamma(df / 2, p)
            - (df - p - 1) / 2 * digammas + df * p / 2
        )  # fmt: skip


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices with a density like a power of their determinants.

    By the onion method of D. Lewandowski, D. Kurowicka and H. Joe (2009): beta distributed norms of rows, and
    directions that are uniform.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.positive}
    support: Any = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration = torch.as_tensor(concentration, dtype=None if isinstance(concentration, torch.Tensor)
                                             else torch.get_default_dtype())  # fmt: skip
        batch = self.concentration.size()
        off = torch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        off = torch.cat([off.new_zeros((1,)), off])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(off + 0.5, marginal.unsqueeze(-1) - 0.5 * off)
        super().__init__(batch, (dim, dim), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = type(self).__new__(type(self)) if _instance is None else _instance
        new.dim, new.concentration = self.dim, self.concentration.expand(tuple(batch_shape))
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return self._expanded_as(new, batch_shape, self.event_shape)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with torch.no_grad():
            part = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = _normal_like(self._extended_shape(sample_shape), self.concentration).tril(-1)
            tiny = torch.finfo(normal.dtype).tiny
            direction = normal / normal.norm(dim=-1, keepdim=True).clamp(min=tiny)  # the first row has none
            below = torch.sqrt(part) * direction
            on = torch.clamp(1 - torch.sum(below**2, dim=-1), min=tiny).sqrt()
            return below + torch.diag_embed(on)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n = self.dim - 1
        on = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        powers = torch.arange(2, self.dim + 1, device=self.concentration.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - powers
        found = torch.sum(powers * on.log(), dim=-1)
        alpha = self.concentration + 0.5 * n
        norm = 0.5 * n * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, n) - torch.lgamma(alpha) * n
        return found - norm


__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]
