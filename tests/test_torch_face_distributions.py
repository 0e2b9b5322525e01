"""`adjoint.torch.distributions` beside PyTorch's: densities and their gradients, moments, divergences, transforms."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import adjoint.torch as torch
import adjoint.torch.distributions as D

T = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _precise() -> Iterator[None]:
    """PyTorch's GeneralizedPareto takes parameters of the default dtype alone; its checks are on."""
    torch.set_default_dtype(torch.float64)
    T.set_default_dtype(T.float64)
    T.distributions.Distribution.set_default_validate_args(True)  # which an import of its compiler sets to False
    yield
    torch.set_default_dtype(torch.float32)
    T.set_default_dtype(T.float32)


P = [0.2, 0.7, 0.4]
SHARES = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
REAL = [[-1.5, 0.3, 2.0], [0.1, -0.2, 0.7]]
POSITIVE = [[0.5, 1.3, 2.0], [0.1, 3.2, 0.7]]
UNIT = [[0.5, 0.13, 0.9], [0.1, 0.32, 0.7]]
BITS = [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
COUNTS = [[0.0, 2.0, 1.0], [3.0, 1.0, 2.0]]
LOC, SCALE = [0.5, -1.0, 2.0], [1.5, 0.7, 2.5]
COVARIANCE = [[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.5]]
FACTOR = np.linalg.cholesky(COVARIANCE).tolist()
ONE_HOT = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
CORRELATION = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]

# a name, its parameters, and values; lists are tensors
CASES: list[tuple[str, dict[str, Any], Any]] = [
    ("Normal", {"loc": LOC, "scale": SCALE}, REAL),
    ("Normal", {"loc": 0.0, "scale": 2.0}, REAL),
    ("Laplace", {"loc": LOC, "scale": SCALE}, REAL),
    ("Cauchy", {"loc": LOC, "scale": SCALE}, REAL),
    ("Gumbel", {"loc": LOC, "scale": SCALE}, REAL),
    ("StudentT", {"df": [1.5, 3.0, 10.0], "loc": LOC, "scale": SCALE}, REAL),
    ("StudentT", {"df": 3.0}, REAL),
    ("Uniform", {"low": [-2.0, -1.0, -0.5], "high": [1.0, 2.0, 3.0]}, [[-1.5, 0.3, 2.0], [0.1, -0.2, 0.7]]),
    ("VonMises", {"loc": LOC, "concentration": SCALE}, REAL),
    ("HalfNormal", {"scale": SCALE}, POSITIVE),
    ("HalfCauchy", {"scale": SCALE}, POSITIVE),
    ("Gamma", {"concentration": [0.5, 1.0, 3.0], "rate": SCALE}, POSITIVE),
    ("Chi2", {"df": [0.5, 1.0, 3.0]}, POSITIVE),
    ("InverseGamma", {"concentration": [1.5, 2.5, 3.0], "rate": SCALE}, POSITIVE),
    ("Exponential", {"rate": SCALE}, POSITIVE),
    ("Weibull", {"scale": SCALE, "concentration": [0.5, 1.5, 3.0]}, POSITIVE),
    ("Pareto", {"scale": [0.05, 0.5, 0.3], "alpha": [0.5, 1.5, 3.0]}, POSITIVE),
    ("GeneralizedPareto", {"loc": [0.0, 0.0, 0.0], "scale": SCALE, "concentration": [0.3, 0.1, -0.4]}, POSITIVE),
    ("FisherSnedecor", {"df1": [0.5, 3.0, 3.0], "df2": [1.0, 3.0, 5.0]}, POSITIVE),
    ("Beta", {"concentration1": SCALE, "concentration0": [0.5, 1.5, 3.0]}, UNIT),
    ("Kumaraswamy", {"concentration1": SCALE, "concentration0": [0.5, 1.5, 3.0]}, UNIT),
    ("ContinuousBernoulli", {"probs": [0.2, 0.5002, 0.7]}, UNIT),
    ("ContinuousBernoulli", {"logits": LOC}, UNIT),
    ("Dirichlet", {"concentration": [[0.5, 1.5, 3.0], [0.4, 0.2, 0.3]]}, SHARES),
    ("Bernoulli", {"probs": P}, BITS),
    ("Bernoulli", {"logits": LOC}, BITS),
    ("Geometric", {"probs": P}, COUNTS),
    ("Geometric", {"logits": LOC}, COUNTS),
    ("Binomial", {"total_count": 4, "probs": P}, COUNTS),
    ("Binomial", {"total_count": [4.0, 4.0, 4.0], "logits": LOC}, COUNTS),
    ("NegativeBinomial", {"total_count": [2.0, 3.5, 1.0], "probs": P}, COUNTS),
    ("NegativeBinomial", {"total_count": 3, "logits": LOC}, COUNTS),
    ("Poisson", {"rate": SCALE}, COUNTS),
    ("Categorical", {"probs": SHARES}, [2, 0]),
    ("Categorical", {"logits": REAL}, [[2, 0], [1, 1]]),
    ("OneHotCategorical", {"probs": SHARES}, ONE_HOT),
    ("OneHotCategorical", {"logits": REAL}, ONE_HOT),
    ("OneHotCategoricalStraightThrough", {"probs": SHARES}, ONE_HOT),
    ("Multinomial", {"total_count": 4, "probs": SHARES}, [[1.0, 1.0, 2.0], [3.0, 1.0, 0.0]]),
    ("RelaxedBernoulli", {"temperature": [0.7], "probs": P}, UNIT),
    ("RelaxedOneHotCategorical", {"temperature": [0.7], "probs": SHARES}, SHARES),
    ("LogNormal", {"loc": LOC, "scale": SCALE}, POSITIVE),
    ("LogisticNormal", {"loc": LOC[:2], "scale": SCALE[:2]}, SHARES),
    ("MultivariateNormal", {"loc": REAL, "covariance_matrix": COVARIANCE}, POSITIVE),
    ("MultivariateNormal", {"loc": LOC, "precision_matrix": COVARIANCE}, REAL),
    ("MultivariateNormal", {"loc": LOC, "scale_tril": FACTOR}, REAL),
    ("LowRankMultivariateNormal",
     {"loc": LOC, "cov_factor": [[1.0, 0.2], [0.3, -1.0], [0.5, 0.4]], "cov_diag": SCALE}, REAL),
    ("Wishart", {"df": 4.5, "covariance_matrix": COVARIANCE}, COVARIANCE),
    ("Wishart", {"df": [4.5, 3.5], "scale_tril": FACTOR}, COVARIANCE),
    ("LKJCholesky", {"dim": 3, "concentration": 1.7}, CORRELATION),
]  # fmt: skip
IDS = [f"{name}-{'-'.join(parameters)}" for name, parameters, _ in CASES]

ROUGH = {"VonMises", "RelaxedBernoulli", "RelaxedOneHotCategorical"}  # where PyTorch's are of single precision
WRONG = {("Weibull", "mode"), ("Kumaraswamy", "mode")}  # PyTorch's below a concentration of 1, and above it


def made(lib: Any, name: str, parameters: dict[str, Any], *, grad: bool = False, **options: Any) -> tuple[Any, Any]:
    """A distribution in double precision, and its parameters that are tensors."""
    tensors = {
        key: lib.tensor(value, dtype=lib.float64, requires_grad=grad and key != "total_count")
        for key, value in parameters.items()
        if isinstance(value, list)
    }
    return getattr(lib.distributions, name)(**{**parameters, **tensors}, **options), tensors


def values_of(lib: Any, values: Any) -> Any:
    array = np.array(values)
    return lib.tensor(values, dtype=lib.int64 if array.dtype.kind == "i" else lib.float64)


def same(ours: Any, theirs: Any, what: str = "", rtol: float = 1e-9) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape), what
    ours, theirs = np.asarray(ours.detach()), theirs.detach().numpy()
    assert ours.dtype == theirs.dtype, what
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-11, err_msg=what)


def outcome(compute: Any) -> Any:
    """What it gives, or the type of what it raises."""
    try:
        return compute()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize(("name", "parameters", "values"), CASES, ids=IDS)
def test_densities_and_their_gradients(name: str, parameters: dict[str, Any], values: Any) -> None:
    found = []
    for lib in (torch, T):
        d, tensors = made(lib, name, parameters, grad=True)
        x = values_of(lib, values)
        if x.is_floating_point() and name not in ("Wishart", "LKJCholesky"):
            x.requires_grad_()
        y = d.log_prob(x)
        leaves = [t for t in (*tensors.values(), x) if t.requires_grad]
        # outside of a power's domain, as at 0, gradients are compared where they are finite
        grads = lib.autograd.grad(y.sum(), leaves, allow_unused=True) if y.requires_grad else ()
        found.append((y, grads, d.batch_shape, d.event_shape))
    (y, grads, *shapes), (y_, grads_, *shapes_) = found
    rtol = 1e-6 if name in ROUGH else 1e-9
    same(y, y_, "log_prob", rtol)
    assert [tuple(s) for s in shapes] == [tuple(s) for s in shapes_]
    assert len(grads) == len(grads_)
    for g, g_ in zip(grads, grads_, strict=True):
        assert (g is None) == (g_ is None)
        if g is not None:
            if name == "Wishart" and g.ndim == 2:
                g, g_ = (
                    g.tril(),
                    g_.tril(),
                )  # PyTorch has slopes above the diagonal, too
            same(g, g_, "gradient", max(rtol, 1e-7))


@pytest.mark.parametrize(("name", "parameters", "values"), CASES, ids=IDS)
def test_moments_and_the_rest(name: str, parameters: dict[str, Any], values: Any) -> None:
    (d, _), (t, _) = made(torch, name, parameters), made(T, name, parameters)
    x, x_ = values_of(torch, values), values_of(T, values)
    unit, unit_ = torch.tensor(P, dtype=torch.float64), T.tensor(P, dtype=T.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = {
            "mean": lambda d, x, u: d.mean,
            "mode": lambda d, x, u: d.mode,
            "variance": lambda d, x, u: d.variance,
            "stddev": lambda d, x, u: d.stddev,
            "entropy": lambda d, x, u: d.entropy(),
            "perplexity": lambda d, x, u: d.perplexity(),
            "cdf": lambda d, x, u: d.cdf(x),
            "icdf": lambda d, x, u: d.icdf(u),
            "enumerate_support": lambda d, x, u: d.enumerate_support(),
            "enumerate_support, not expanded": lambda d, x, u: d.enumerate_support(expand=False),
            "probs": lambda d, x, u: d.probs,
            "logits": lambda d, x, u: d.logits,
            "covariance": lambda d, x, u: d.covariance_matrix,
            "precision": lambda d, x, u: d.precision_matrix,
            "factor": lambda d, x, u: d.scale_tril,
        }
        for what, ask in asked.items():
            ours, theirs = outcome(lambda: ask(d, x, unit)), outcome(lambda: ask(t, x_, unit_))  # noqa: B023
            if isinstance(theirs, type):
                if name == "LKJCholesky" and what in ("mean", "mode", "variance"):
                    continue
                assert not isinstance(ours, type) or issubclass(ours, theirs), (what, ours, theirs)
            elif (name, what) not in WRONG:
                assert not isinstance(ours, type), (what, ours)
                same(ours, theirs, what, 1e-7)
    assert repr(d) == repr(t)
    assert d.has_rsample == t.has_rsample
    assert d.has_enumerate_support == t.has_enumerate_support
    wide, wide_ = d.expand((4, *d.batch_shape)), t.expand((4, *t.batch_shape))
    while x.ndim > len(t.batch_shape) + len(t.event_shape):
        x, x_ = x[0], x_[0]
    assert tuple(wide.batch_shape) == tuple(wide_.batch_shape)
    same(wide.log_prob(x), wide_.log_prob(x_), "expanded", 1e-6)
    assert type(wide) is type(d)


@pytest.mark.parametrize(("name", "parameters", "values"), CASES, ids=IDS)
def test_samples(name: str, parameters: dict[str, Any], values: Any) -> None:
    """They have the shape, lie in the support, follow the seed, and their mean is near the mean."""
    torch.manual_seed(3)
    (d, _), (t, _) = made(torch, name, parameters), made(T, name, parameters)
    x = d.sample((4000,))
    assert tuple(x.shape) == (4000, *t.batch_shape, *t.event_shape)
    assert x.dtype == (torch.int64 if name == "Categorical" else torch.float64)
    if name != "Multinomial":  # whose sums are the counts
        assert bool(d.support.check(x).all())
    torch.manual_seed(3)
    assert bool((d.sample((4000,)) == x).all())
    try:
        mean, variance = np.asarray(t.mean.detach()), np.asarray(t.variance.detach())
    except (NotImplementedError, AttributeError):
        return
    if name == "Categorical":
        shares = np.stack([(np.asarray(x) == k).mean(0) for k in range(3)], -1)
        np.testing.assert_allclose(shares, np.asarray(d.probs), atol=5 * 0.5 / math.sqrt(4000))
        return
    if name == "VonMises":  # a mean of angles, and a variance about it
        np.testing.assert_allclose(np.sin(np.asarray(x) - mean).mean(0), 0.0, atol=0.08)
        return
    known = np.isfinite(mean) & np.isfinite(variance)
    heavy = name in ("StudentT", "Pareto", "InverseGamma", "FisherSnedecor", "LogNormal", "GeneralizedPareto")
    off = np.abs(np.asarray(x).mean(0) - mean)[known]
    assert (off <= (20 if heavy else 5) * np.sqrt(variance[known] / 4000) + 1e-9).all()


REPARAMETERISED = [case for case in CASES if getattr(D, case[0]).has_rsample is True and "Straight" not in case[0]]


@pytest.mark.parametrize(("name", "parameters", "values"), REPARAMETERISED, ids=[c[0] for c in REPARAMETERISED])
def test_gradients_flow_through_samples(name: str, parameters: dict[str, Any], values: Any) -> None:
    """The gradient of the mean of many samples, beside that of the mean where there is one."""
    torch.manual_seed(1)
    d, tensors = made(torch, name, parameters, grad=True)
    if not tensors:
        return
    x = d.rsample((6000,))
    assert x.requires_grad
    try:
        mean = d.mean
    except NotImplementedError:
        return
    if not mean.requires_grad or not bool(torch.isfinite(d.variance).all()):
        return
    weights = torch.linspace(0.5, 1.5, mean.numel(), dtype=torch.float64).reshape(mean.shape)
    leaves = list(tensors.values())
    sampled = torch.autograd.grad((x.mean(0) * weights).sum(), leaves, allow_unused=True, retain_graph=True)
    exact = torch.autograd.grad((mean * weights).sum(), leaves, allow_unused=True)
    for g, e in zip(sampled, exact, strict=True):
        if e is not None:
            assert g is not None
            np.testing.assert_allclose(np.asarray(g), np.asarray(e), rtol=0.35, atol=0.25)


FAMILIES: dict[str, dict[str, Any]] = {name: parameters for name, parameters, _ in CASES[::-1] if name != "LKJCholesky"}
FAMILIES["Pareto"] = {"scale": [0.05, 0.5, 0.3], "alpha": [1.5, 2.5, 3.0]}
OTHERS: dict[str, dict[str, Any]] = {
    **FAMILIES, "Normal": {"loc": P, "scale": P}, "Laplace": {"loc": P, "scale": P}, "Gumbel": {"loc": P, "scale": P},
    "Bernoulli": {"probs": [0.5, 0.1, 0.9]}, "Categorical": {"probs": SHARES[::-1]},
    "Gamma": {"concentration": P, "rate": P},
    "Uniform": {"low": [-2.5, -1.0, -5.0], "high": [1.5, 2.5, 3.5]}, "Poisson": {"rate": P},
    "Cauchy": {"loc": P, "scale": P},
    "MultivariateNormal": {"loc": P, "precision_matrix": COVARIANCE},
    "Beta": {"concentration1": P, "concentration0": P},
    "Binomial": {"total_count": 4, "probs": [0.5, 0.1, 0.9]}, "Geometric": {"probs": [0.5, 0.1, 0.9]},
    "Dirichlet": {"concentration": [P, P]}, "Exponential": {"rate": P}, "HalfNormal": {"scale": P},
    "ContinuousBernoulli": {"probs": [0.3, 0.4, 0.8]}, "LogNormal": {"loc": P, "scale": P},
}  # fmt: skip


@pytest.mark.parametrize("first", sorted(FAMILIES))
def test_divergences(first: str) -> None:
    """Of every pair: PyTorch's value and gradients, or its refusal."""
    for second in sorted(OTHERS):
        found = []
        for lib in (torch, T):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (p, own), (q, other) = (
                    made(lib, first, FAMILIES[first], grad=True),
                    made(lib, second, OTHERS[second], grad=True),
                )
                y = outcome(lambda: lib.distributions.kl_divergence(p, q))  # noqa: B023
            grads: Any = ()
            if not isinstance(y, type) and y.requires_grad and bool(lib.isfinite(y).all()):
                leaves = [t for t in (*own.values(), *other.values()) if t.requires_grad]
                grads = lib.autograd.grad(y.sum(), leaves, allow_unused=True)
            found.append((y, grads))
        (y, grads), (y_, grads_) = found
        if isinstance(y_, type):
            if y_ is NotImplementedError:
                assert y is y_, (first, second)
            continue  # PyTorch's generic rule of exponential families may end in an error of its own
        same(y, y_, f"{first}, {second}", 1e-7)
        for g, g_ in zip(grads, grads_, strict=len(grads_) > 0):
            if g_ is not None:
                same(torch.zeros(g_.shape) if g is None else g, g_, f"{first}, {second}", 1e-6)


def test_slopes_at_a_concentration_of_zero() -> None:
    """Where PyTorch's are 0."""
    x = torch.tensor([0.3, 2.0])

    def at(concentration: Any) -> Any:
        d = D.GeneralizedPareto(0.0, 1.5, concentration)
        return torch.stack([d.log_prob(x), d.cdf(x), d.icdf(torch.tensor(P[:2]))])

    c = torch.zeros(2, requires_grad=True)
    slope = torch.autograd.functional.jvp(at, c, torch.ones(2))[1]
    difference = (at(torch.full((2,), 1e-5)) - at(torch.full((2,), -1e-5))) / 2e-5
    np.testing.assert_allclose(np.asarray(slope), np.asarray(difference), rtol=1e-6)


def _transforms(lib: Any) -> dict[str, tuple[Any, Any]]:
    """Transforms by name, each with what goes in."""
    d, tensor = lib.distributions, lib.tensor
    real, positive, unit = tensor(REAL), tensor(POSITIVE), tensor(UNIT)
    affine = d.AffineTransform(tensor(LOC), tensor(SCALE))
    return {
        "exp": (d.ExpTransform(), real), "sigmoid": (d.SigmoidTransform(), real), "tanh": (d.TanhTransform(), real),
        "softplus": (d.SoftplusTransform(), real), "power": (d.PowerTransform(tensor(1.7)), positive),
        "affine": (affine, real), "affine of vectors": (d.AffineTransform(1.0, -2.0, event_dim=1), real),
        "inverse": (d.ExpTransform().inv, positive), "compose": (d.ComposeTransform([affine, d.TanhTransform()]), real),
        "inverse of compose": (d.ComposeTransform([d.SigmoidTransform(), affine]).inv, affine(unit)),
        "vectors": (d.ComposeTransform([d.ExpTransform(), d.StickBreakingTransform()]), real),
        "independent": (d.IndependentTransform(d.ExpTransform(), 1), real), "none": (d.identity_transform, real),
        "reshape": (d.ReshapeTransform((3,), (3, 1)), real), "sticks": (d.StickBreakingTransform(), real),
        "sticks back": (d.StickBreakingTransform().inv, tensor(SHARES)), "softmax": (d.SoftmaxTransform(), real),
        "correlations": (d.CorrCholeskyTransform(), real), "abs": (d.AbsTransform(), real),
        "correlations back": (d.CorrCholeskyTransform().inv, tensor(CORRELATION)),
        "cholesky": (d.LowerCholeskyTransform(), tensor(COVARIANCE)),
        "definite": (d.PositiveDefiniteTransform(), tensor(COVARIANCE)),
        "cat": (d.CatTransform([d.ExpTransform(), d.TanhTransform()], -1, [1, 2]), real),
        "stack": (d.StackTransform([d.ExpTransform(), d.TanhTransform(), d.SigmoidTransform()], -1), real),
        "cdf": (d.CumulativeDistributionTransform(d.Normal(tensor(LOC), tensor(SCALE))), real),
        "cached": (d.ExpTransform(cache_size=1), real),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(_transforms(torch)))
def test_transforms(name: str) -> None:
    (t, x), (t_, x_) = _transforms(torch)[name], _transforms(T)[name]
    y, y_ = t(x.double()), t_(x_.double())
    same(y, y_, "forward", 1e-6)
    for what in (
        lambda t, x, y: t.inv(y),
        lambda t, x, y: t.log_abs_det_jacobian(x, y),
        lambda t, x, y: t.sign,
        lambda t, x, y: t.domain.event_dim,
        lambda t, x, y: t.codomain.event_dim,
        lambda t, x, y: t.bijective,
        lambda t, x, y: tuple(t.forward_shape(x.shape)),
        lambda t, x, y: tuple(t.inverse_shape(y.shape)),
        lambda t, x, y: t == t,
        lambda t, x, y: t.with_cache()(x),
    ):
        ours, theirs = outcome(lambda: what(t, x.double(), y)), outcome(lambda: what(t_, x_.double(), y_))  # noqa: B023
        if isinstance(theirs, T.Tensor):
            same(ours, theirs, name, 1e-6)
        else:
            assert ours == theirs or (isinstance(ours, type) and issubclass(ours, theirs)), (ours, theirs)
    if "cat" not in name and "stack" not in name:
        assert repr(t).split("(")[0] == repr(t_).split("(")[0]


CONSTRAINTS = [
    "boolean", "one_hot", "nonnegative_integer", "positive_integer", "real", "real_vector", "positive", "nonnegative",
    "unit_interval", "simplex", "lower_triangular", "lower_cholesky", "corr_cholesky", "square", "symmetric",
    "positive_semidefinite", "positive_definite", "dependent",
]  # fmt: skip
MADE = {
    "greater_than": (0.5,), "greater_than_eq": (0.5,), "less_than": (0.5,), "interval": (-0.5, 0.7),
    "half_open_interval": (-0.5, 0.7), "integer_interval": (0, 2), "multinomial": (4,),
}  # fmt: skip


@pytest.mark.parametrize("name", [*CONSTRAINTS, *MADE])
def test_constraints(name: str) -> None:
    values = [REAL, POSITIVE, UNIT, BITS, COUNTS, SHARES, ONE_HOT, COVARIANCE, CORRELATION, FACTOR, [[math.nan, 1.0]]]
    ours, theirs = (getattr(lib.distributions.constraints, name) for lib in (torch, T))
    if name in MADE:
        ours, theirs = ours(*MADE[name]), theirs(*MADE[name])
    assert repr(ours) == repr(theirs)
    for value in values:
        found = outcome(lambda: ours.check(torch.tensor(value)))  # noqa: B023
        expected = outcome(lambda: theirs.check(T.tensor(value)))  # noqa: B023
        assert found == expected if isinstance(expected, type) else (found.tolist() == expected.tolist()), value
    for registry in ("biject_to", "transform_to"):
        to, to_ = (getattr(lib.distributions, registry) for lib in (torch, T))
        made_, made__ = outcome(lambda: to(ours)), outcome(lambda: to_(theirs))  # noqa: B023
        if isinstance(made__, type):
            assert made_ is made__, registry
            continue
        x = COVARIANCE if made__.domain.event_dim == 2 else REAL
        same(made_(torch.tensor(x)), made__(T.tensor(x)), registry, 1e-6)


def test_composed_distributions() -> None:
    for build in (
        lambda d, t: d.Independent(d.Normal(t(REAL), t(POSITIVE)), 1),
        lambda d, t: d.TransformedDistribution(
            d.Normal(t(LOC), t(SCALE)), [d.AffineTransform(1.0, -2.0), d.ExpTransform()]
        ),
        lambda d, t: d.TransformedDistribution(d.Normal(t(LOC), t(SCALE)), d.StickBreakingTransform()),
        lambda d, t: d.MixtureSameFamily(d.Categorical(t(P)), d.Normal(t(LOC), t(SCALE))),
        lambda d, t: d.MixtureSameFamily(d.Categorical(t(P)), d.Independent(d.Normal(t(COVARIANCE), t(SCALE)), 1)),
    ):
        ours, theirs = build(D, torch.tensor), build(T.distributions, T.tensor)
        assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
        assert tuple(ours.event_shape) == tuple(theirs.event_shape)
        assert repr(ours) == repr(theirs)
        torch.manual_seed(0)
        x = ours.sample((5,))
        assert tuple(x.shape) == (5, *theirs.batch_shape, *theirs.event_shape)
        given = T.tensor(x.tolist())
        same(ours.log_prob(x), theirs.log_prob(given), "log_prob", 1e-6)
        for what in ("mean", "variance", "entropy", "cdf"):
            ask = lambda d, x: d.cdf(x) if what == "cdf" else d.entropy() if what == "entropy" else getattr(d, what)  # noqa: B023
            found, expected = outcome(lambda: ask(ours, x)), outcome(lambda: ask(theirs, given))  # noqa: B023
            if isinstance(expected, type):
                assert isinstance(found, type), what
                assert issubclass(found, expected), what
            else:
                same(found, expected, what, 1e-6)


WRONG_INPUT: dict[str, Any] = {
    "a scale below 0": lambda lib: lib.distributions.Normal(0.0, -1.0),
    "a scale of nan": lambda lib: lib.distributions.Normal(0.0, math.nan),
    "shapes": lambda lib: lib.distributions.Normal(lib.zeros(2), lib.ones(3)),
    "a string": lambda lib: lib.distributions.Normal("a", 1.0),
    "no parameter": lambda lib: lib.distributions.Bernoulli(),
    "both": lambda lib: lib.distributions.Bernoulli(0.5, 0.0),
    "chances above 1": lambda lib: lib.distributions.Bernoulli(1.5),
    "no axis": lambda lib: lib.distributions.Categorical(lib.tensor(0.5)),
    "bounds": lambda lib: lib.distributions.Uniform(1.0, 0.0),
    "a value below 0": lambda lib: lib.distributions.Gamma(1.0, 1.0).log_prob(lib.tensor(-1.0)),
    "a class too many": lambda lib: lib.distributions.Categorical(lib.ones(3)).log_prob(lib.tensor(3)),
    "a value that is no tensor": lambda lib: lib.distributions.Normal(0.0, 1.0).log_prob(0.5),
    "values that do not broadcast": lambda lib: lib.distributions.Normal(lib.zeros(2), 1.0).log_prob(lib.zeros(3)),
    "events": lambda lib: lib.distributions.Dirichlet(lib.ones(3)).log_prob(lib.ones(2) / 2),
    "more axes than there are": lambda lib: lib.distributions.Independent(lib.distributions.Normal(0.0, 1.0), 1),
    "two matrices": lambda lib: lib.distributions.MultivariateNormal(lib.zeros(2), lib.eye(2), lib.eye(2)),
    "not positive definite": lambda lib: lib.distributions.MultivariateNormal(lib.zeros(2), -lib.eye(2)),
    "no divergence": lambda lib: lib.distributions.kl_divergence(
        lib.distributions.Normal(0.0, 1.0), lib.distributions.Categorical(lib.ones(3))
    ),
    "no quantiles": lambda lib: lib.distributions.Gamma(1.0, 1.0).icdf(lib.tensor(0.5)),
    "no gradients": lambda lib: lib.distributions.Bernoulli(0.5).rsample(),
    "cache": lambda lib: lib.distributions.ExpTransform(cache_size=2),
    "no transform": lambda lib: lib.distributions.TransformedDistribution(lib.distributions.Normal(0.0, 1.0), [1]),
    "a mixture of another": lambda lib: lib.distributions.MixtureSameFamily(
        lib.distributions.Normal(0.0, 1.0), lib.distributions.Normal(lib.zeros(2), 1.0)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_INPUT)
def test_wrong_input_raises_as_pytorch_does(name: str) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        WRONG_INPUT[name](T)
    with pytest.raises(type(theirs.value)) as ours:
        WRONG_INPUT[name](torch)
    begin = str(theirs.value)[:24]
    assert type(ours.value) is type(theirs.value)
    assert not begin or str(ours.value)[:24] == begin or name in ("shapes", "not positive definite")


def test_a_rule_of_ones_own_and_unchecked_parameters() -> None:
    class Mine(D.Normal):
        pass

    @D.register_kl(Mine, Mine)
    def rule(p: Any, q: Any) -> Any:
        return torch.tensor(7.0)

    assert D.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)) == 7.0
    assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)) == 0.0
    assert D.Normal(0.0, -1.0, validate_args=False).variance == 1.0
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)


def test_a_policy_learns() -> None:
    """REINFORCE on a bandit of three arms (R. J. Williams, 1992)."""
    torch.manual_seed(0)
    logits = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.1)
    rewards = torch.tensor([0.1, 1.0, 0.3])
    for _ in range(60):
        policy = D.Categorical(logits=logits)
        action = policy.sample((16,))
        gain = rewards[action]
        loss = -(policy.log_prob(action) * (gain - gain.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert int(D.Categorical(logits=logits).mode) == 1
