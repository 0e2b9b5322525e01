"""Distributions of the face crossed with what programs do with them, beside PyTorch: derivatives of any kind, `vmap`,
`no_grad`, copies, invalid values, and the points where formulas change."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from each import Each
from test_torch_face_distributions import CASES, FAMILIES, OTHERS, values_of

import adjoint.torch as torch

T = pytest.importorskip("torch")
HALF, ZERO, ONE, UNIT = [0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [[0.0, 1.0, 0.5]]

# parameters and values at which a formula takes another branch, or a term of it is 0
SPECIAL: list[tuple[str, dict[str, Any], Any]] = [
    ("Normal", {"loc": ZERO, "scale": ONE}, [ZERO]), ("Laplace", {"loc": ZERO, "scale": ONE}, [ZERO]),
    ("StudentT", {"df": [1.0, 2.0, 1e6], "loc": ZERO, "scale": ONE}, [ZERO]),
    ("Uniform", {"low": ZERO, "high": ONE}, [[0.0, 0.5, 0.25]]),
    ("HalfNormal", {"scale": ONE}, [[0.0, 1e-3, 30.0]]), ("HalfCauchy", {"scale": ONE}, [[0.0, 1e-3, 30.0]]),
    ("Gamma", {"concentration": [1.0, 2.0, 0.5], "rate": ONE}, [[0.0, 0.0, 1e-8]]),
    ("Chi2", {"df": [2.0, 1.0, 4.0]}, [[0.0, 1.0, 0.0]]), ("Exponential", {"rate": ONE}, [[0.0, 1.0, 200.0]]),
    ("Weibull", {"scale": ONE, "concentration": [1.0, 2.0, 0.5]}, [[1e-6, 1.0, 50.0]]),
    ("Pareto", {"scale": ONE, "alpha": [1.0, 2.0, 3.0]}, [[1.0, 1.5, 1e5]]),
    ("Beta", {"concentration1": [1.0, 2.0, 0.5], "concentration0": [1.0, 2.0, 0.5]}, UNIT),
    ("Kumaraswamy", {"concentration1": [1.0, 2.0, 0.5], "concentration0": [1.0, 2.0, 0.5]}, [[0.5, 0.99, 1e-3]]),
    ("ContinuousBernoulli", {"probs": HALF}, UNIT), ("ContinuousBernoulli", {"logits": ZERO}, UNIT),
    ("ContinuousBernoulli", {"probs": [0.0, 1.0, 0.499]}, UNIT),
    ("Dirichlet", {"concentration": [ONE, [1.0, 2.0, 0.5]]}, [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]),
    ("Bernoulli", {"probs": HALF}, [[0.0, 1.0, 1.0]]), ("Bernoulli", {"logits": ZERO}, [[0.0, 1.0, 1.0]]),
    ("Bernoulli", {"probs": [0.0, 1.0, 0.0]}, [[0.0, 1.0, 1.0]]),
    ("Geometric", {"probs": [0.5, 1.0, 1e-6]}, [[0.0, 0.0, 3.0]]), ("Geometric", {"logits": ZERO}, [[0.0, 0.0, 3.0]]),
    ("Binomial", {"total_count": 4, "probs": [0.5, 0.0, 1.0]}, [[2.0, 0.0, 4.0]]),
    ("Binomial", {"total_count": 4, "logits": ZERO}, [[0.0, 4.0, 2.0]]),
    ("NegativeBinomial", {"total_count": [1.0, 0.0, 2.0], "probs": HALF}, [[0.0, 0.0, 3.0]]),
    ("Categorical", {"probs": [[0.0, 1.0], [0.5, 0.5]]}, [1, 0]),
    ("Categorical", {"logits": [[0.0, 0.0], [-100.0, 100.0]]}, [1, 0]),
    ("OneHotCategorical", {"probs": [[0.0, 1.0, 0.0], [0.5, 0.25, 0.25]]}, [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    ("Multinomial", {"total_count": 4, "probs": [[0.0, 0.5, 0.5]]}, [[0.0, 2.0, 2.0]]),
    ("Multinomial", {"total_count": 4, "logits": [ZERO, ONE]}, [[0.0, 2.0, 2.0], [4.0, 0.0, 0.0]]),
    ("MultivariateNormal", {"loc": ZERO, "covariance_matrix": np.eye(3).tolist()}, [ZERO]),
]  # fmt: skip
ROUGH = {"VonMises", "RelaxedBernoulli", "RelaxedOneHotCategorical"}  # where PyTorch's are of single precision
# a Cholesky factor's upper triangle, and a covariance's two triangles, which PyTorch's rules fill in another way
TRIANGLES = {"Wishart"}
# PyTorch's formula has no second derivative where the log odds are 0
WRONG_CURVES = {("Binomial", "second"), ("Binomial", "hessian")}


@pytest.fixture(autouse=True)
def _precise() -> Iterator[None]:
    for lib in (torch, T):
        lib.set_default_dtype(lib.float64)
        lib.distributions.Distribution.set_default_validate_args(True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    for lib in (torch, T):
        lib.set_default_dtype(lib.float32)


class Case:
    """A distribution of one library, as a function of its parameters."""

    def __init__(self, lib: Any, name: str, parameters: dict[str, Any], values: Any = 0.0, **options: Any) -> None:
        self.lib, self.make, self.options = lib, getattr(lib.distributions, name), options
        tensors = {k: lib.tensor(v) for k, v in parameters.items() if isinstance(v, list)}
        self.names = [k for k in tensors if k != "total_count"]
        self.fixed = {k: tensors.get(k, v) for k, v in parameters.items() if k not in self.names}
        self.leaves = [tensors[k] for k in self.names]
        self.x = values_of(lib, values)

    def __call__(self, *leaves: Any) -> Any:
        return self.make(**self.fixed, **dict(zip(self.names, leaves, strict=True)), **self.options)

    def log_prob(self, *leaves: Any) -> Any:
        return self(*leaves).log_prob(self.x)

    def places(self) -> tuple[int, ...]:
        return tuple(range(len(self.leaves)))


def plain(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [plain(v) for v in x]
    return np.asarray(x.detach()) if hasattr(x, "detach") else x


def outcome(compute: Callable[[], Any]) -> Any:
    try:
        return plain(compute())
    except Exception as error:
        return error


def agree(ours: Any, theirs: Any, rtol: float) -> None:
    """What PyTorch refuses, such as a loop over values in `vmap`, may be known here."""
    if isinstance(theirs, Exception):
        return
    assert not isinstance(ours, Exception), ours
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for x, y in zip(ours, theirs, strict=True):
            agree(x, y, rtol)
    elif isinstance(theirs, np.ndarray):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * 1e-2)
    else:
        assert ours == theirs


def _second(case: Case) -> Any:
    lib, leaves = case.lib, [x.requires_grad_() for x in case.leaves]
    slopes = lib.autograd.grad(case.log_prob(*leaves).sum(), leaves, create_graph=True, allow_unused=True)
    slopes = [g for g in slopes if g is not None and g.requires_grad]
    return list(lib.autograd.grad(sum((g * g).sum() for g in slopes), leaves, allow_unused=True)) if slopes else None


def _modes(case: Case) -> Any:
    lib, d = case.lib, case(*[x.requires_grad_() for x in case.leaves])
    with lib.no_grad():
        found = [d.log_prob(case.x).requires_grad]
        other = case(*case.leaves)  # what is lazy has gradients all the same
        for name in ("logits", "probs", "scale_tril"):
            found.append(getattr(other, name).requires_grad if hasattr(other, name) else None)
    return [*found, d.log_prob(case.x).requires_grad, d.sample((2,)).requires_grad, tuple(d.sample((2,)).shape)]


def _copies(case: Case) -> Any:
    found: list[Any] = []
    for d in (copy.copy(case()), copy.deepcopy(case()), pickle.loads(pickle.dumps(case()))):
        found += [repr(d), d.log_prob(case.x), [tuple(d.batch_shape), tuple(d.event_shape)]]
    return found


def _thrice(case: Case) -> list[Any]:
    return [case.lib.stack([x, x, x]) for x in case.leaves]


CROSSED: dict[str, Callable[[Case], Any]] = {
    "grad": lambda c: c.lib.func.grad(lambda *p: c.log_prob(*p).sum(), argnums=c.places())(*c.leaves),
    "jvp": lambda c: c.lib.func.jvp(c.log_prob, tuple(c.leaves), tuple(0.3 + 0 * x for x in c.leaves)),
    "hessian": lambda c: c.lib.func.hessian(lambda p: c.log_prob(p, *c.leaves[1:]).sum())(c.leaves[0]),
    "second": _second,
    "vmap of parameters": lambda c: c.lib.func.vmap(c.log_prob)(*_thrice(c)),
    "vmap of values": lambda c: c.lib.func.vmap(c(*c.leaves).log_prob)(c.lib.stack([c.x, c.x])),
    "vmap of grad": lambda c: c.lib.func.vmap(
        c.lib.func.grad(lambda *p: c.log_prob(*p).sum(), argnums=c.places())
    )(*_thrice(c)),
    "modes": _modes,
}  # fmt: skip
EVERY = [case for case in (*CASES, *SPECIAL) if any(isinstance(v, list) for v in case[1].values())]
IDS = [f"{i}-{name}-{'-'.join(parameters)}" for i, (name, parameters, _) in enumerate(EVERY)]


@pytest.mark.parametrize(("name", "parameters", "values"), EVERY, ids=IDS)
def test_log_densities_in_every_transform(name: str, parameters: dict[str, Any], values: Any) -> None:
    with Each() as each:
        for what, compute in CROSSED.items():
            cases = [Case(lib, name, parameters, values) for lib in (torch, T)]
            if not cases[0].leaves or (
                name in TRIANGLES and what in ("grad", "jvp", "hessian", "second", "vmap of grad")
            ):
                continue
            with each(what):
                ours, theirs = (outcome(lambda c=c: compute(c)) for c in cases)  # noqa: B023
                if (name, what) in WRONG_CURVES and 0.0 in np.asarray(cases[0](*cases[0].leaves).logits.detach()):
                    continue
                agree(ours, theirs, 1e-5 if name in (*ROUGH, "FisherSnedecor") else 1e-7)


@pytest.mark.parametrize(("name", "parameters", "values"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_single_precision_copies_and_names(name: str, parameters: dict[str, Any], values: Any) -> None:
    with Each() as each:
        for lib in (torch, T):
            lib.set_default_dtype(lib.float32)
        ours, theirs = (Case(lib, name, parameters, values) for lib in (torch, T))
        for case in (ours, theirs):
            case.x = case.x.float() if case.x.is_floating_point() else case.x
        with each("float32"):
            agree(*(outcome(lambda c=c: c.log_prob(*c.leaves)) for c in (ours, theirs)), 2e-4)
        for case in (ours, theirs):
            case.__dict__["fixed"] |= dict(zip(case.names, case.leaves, strict=True))
            case.names.clear()
        with each("copies"):
            agree(plain(_copies(ours)), plain(_copies(theirs)), 2e-4)
        with each("names"):
            found, wanted = ({n for n in dir(c()) if n[0] != "_"} for c in (ours, theirs))
            assert found - wanted <= {"param_shape"}
            assert wanted - found <= {"base_dist", "transforms", "concentration_reciprocal"}  # of transformed ones


@pytest.mark.parametrize("first", sorted(FAMILIES))
def test_divergences_in_every_transform(first: str) -> None:
    for second in sorted(OTHERS):
        found: list[list[Any]] = []
        for lib in (torch, T):
            p, q = Case(lib, first, FAMILIES[first]), Case(lib, second, OTHERS[second])
            leaves, at = (*p.leaves, *q.leaves), len(p.leaves)
            kl = lambda *v, lib=lib, p=p, q=q, at=at: lib.distributions.kl_divergence(p(*v[:at]), q(*v[at:]))
            many = [lib.stack([v, v]) for v in leaves]
            ways = [
                lambda lib=lib, kl=kl, v=leaves: lib.func.grad(lambda *v: kl(*v).sum(), tuple(range(len(v))))(*v),
                lambda lib=lib, kl=kl, v=leaves: lib.func.jvp(kl, tuple(v), tuple(0.1 + 0 * x for x in v)),
                lambda lib=lib, kl=kl, v=many: lib.func.vmap(kl)(*v),
            ]
            found.append([outcome(way) for way in ways])
        if first != "Wishart":
            agree(*found, 1e-6)


# --- samples ---


@pytest.mark.parametrize(("name", "parameters", "values"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_samples_in_transforms(name: str, parameters: dict[str, Any], values: Any) -> None:
    """Gradients through samples are the same in `func.grad`; examples of a `vmap` draw as they are told."""
    case = Case(torch, name, parameters)
    if not case.leaves:
        return
    draw = lambda *v: (case(*v).rsample if case(*v).has_rsample else case(*v).sample)((2,))
    if case(*case.leaves).has_rsample:
        torch.manual_seed(3)
        found = torch.func.grad(lambda *v: draw(*v).sum(), case.places())(*case.leaves)
        torch.manual_seed(3)
        leaves = [v.clone().requires_grad_() for v in case.leaves]
        wanted = torch.autograd.grad(draw(*leaves).sum(), leaves, allow_unused=True)
        for g, w in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(g), 0.0 if w is None else np.asarray(w), rtol=1e-10, atol=1e-12)
    many = [torch.stack([v] * 8) for v in case.leaves]
    y = torch.func.vmap(draw, randomness="different")(*many)
    assert tuple(y.shape) == (8, *draw(*case.leaves).shape)
    if not bool((y == y[0]).all()):
        assert len({str(row.tolist()) for row in y}) > 1
    else:
        assert name in ("Geometric", "Categorical"), y
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.func.vmap(draw)(*many)


# --- what is not valid ---


def test_checks_see_all_examples_of_a_batch() -> None:
    make = lambda s: torch.distributions.Normal(torch.zeros(()), s).log_prob(torch.ones(()))
    assert torch.func.vmap(make)(torch.tensor([1.0, 2.0])).shape == (2,)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        torch.func.vmap(make)(torch.tensor([1.0, -2.0]))
    with pytest.raises(ValueError, match="support"):
        torch.func.vmap(torch.distributions.Exponential(1.0).log_prob)(torch.tensor([1.0, -2.0]))
    with pytest.raises(ValueError, match="Expected parameter probs"):
        torch.func.vmap(lambda p: torch.distributions.Geometric(p).mean)(torch.tensor([0.5, -2.0]))


WRONG: dict[str, Callable[[Any], Any]] = {
    "a chi-squared one of negative degrees": lambda lib: lib.distributions.Chi2(lib.tensor([1.0, -1.0])),
    "an infinite covariance": lambda lib: lib.distributions.MultivariateNormal(
        lib.zeros(3), lib.full((3, 3), math.inf)
    ),
    "shapes": lambda lib: lib.distributions.Normal(lib.zeros(2), lib.ones(3)),
    "shapes of three": lambda lib: lib.distributions.StudentT(lib.ones(3), lib.zeros(1, 3), lib.ones(2)),
    "shapes of values": lambda lib: lib.distributions.ContinuousBernoulli(lib.ones(3) / 2).cdf(lib.ones(2, 2)),
    "unchecked chances": lambda lib: lib.distributions.OneHotCategorical(lib.tensor([-1.0, 3.0]), validate_args=False),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_valid_is_refused_as_by_pytorch(name: str) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        WRONG[name](T)
    with pytest.raises(type(theirs.value)) as ours:
        WRONG[name](torch)
    assert str(ours.value)[:40] == str(theirs.value)[:40]


def test_moments_that_do_not_exist() -> None:
    for lib in (torch, T):
        d = lib.distributions.GeneralizedPareto(lib.zeros(2), lib.ones(2), lib.tensor([0.4, 1.5]))
        assert d.mean.isnan().tolist() == d.variance.isnan().tolist() == [False, True]
        x = lib.tensor(0.7)
        np.testing.assert_allclose(d.log_cdf(x).exp().numpy(), d.cdf(x).numpy())
        np.testing.assert_allclose(d.log_survival_function(x).exp().numpy(), 1 - d.cdf(x).numpy())


def test_curvature_of_even_chances() -> None:
    """-n p (1 - p), where PyTorch's is 0."""
    curve = torch.func.hessian(lambda logits: torch.distributions.Binomial(4, logits=logits).log_prob(torch.ones(())))
    np.testing.assert_allclose(float(curve(torch.zeros(()))), -1.0)
    torch.manual_seed(0)
    assert torch.distributions.NegativeBinomial(torch.zeros(3), torch.full((3,), 0.5)).sample().tolist() == ZERO
