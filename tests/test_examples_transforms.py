"""The examples of the transformations: their figures against other libraries' and published ones, and their errors."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import heat
import hmc
import logistic
import lynx_hare
import newton
import numpy as np
import processes
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats
from conftest import LIMIT
from example_runs import EXAMPLES, seed_decides
from numpy.testing import assert_allclose

import adjoint as ad

MODULES = pytest.mark.parametrize("module", [newton, logistic, hmc, heat, lynx_hare], ids=lambda m: m.__name__)
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("matplotlib", "rich", "sklearn")),
    reason="needs the examples' libraries: pip install 'adjoint[examples]'",
)


# --- Newton's method ---


@pytest.mark.parametrize("seed", range(3))
def test_newton_converges_quadratically_to_what_scikit_learn_finds(seed: int) -> None:
    data, test, _ = newton.load(seed)
    found = newton.newton(data)
    assert len(found) <= 12
    assert_allclose(found[-1], newton.scikit_learns(data), atol=1e-8)
    assert abs(newton.order(found, data) - 2) < 0.1
    assert newton.accuracy(found[-1], test) > 0.95


def test_gradient_descent_converges_linearly() -> None:
    data, _, _ = newton.load(0)
    slow = newton.descent(data, 300)
    slopes = newton.slopes(slow, data)
    assert abs(newton.order(slow, data) - 1) < 0.1
    assert slopes[-1] > 1
    assert slopes == sorted(slopes, reverse=True)


def test_standard_errors_follow_from_the_hessian_in_closed_form() -> None:
    data, _, _ = newton.load(0)
    w = newton.newton(data)[-1]
    p = 1 / (1 + np.exp(-data.x @ w))
    ridge = np.diag([newton.RIDGE] * 30 + [0])
    hessian = data.x.T @ (data.x * (p * (1 - p))[:, None]) + ridge
    assert_allclose(ad.hessian(newton.loss)(w, data), hessian, rtol=1e-10, atol=1e-10)
    assert_allclose(newton.standard_errors(w, data), np.sqrt(np.diag(np.linalg.inv(hessian))), rtol=1e-8)


# --- SciPy's optimizers ---


@pytest.mark.parametrize("seed", range(3))
def test_scipys_optimizers_find_what_scikit_learn_finds(seed: int) -> None:
    data, test, _ = logistic.load(seed)
    theirs = newton.scikit_learns(data)
    gradients, products = [logistic.fit(data, method) for method in logistic.METHODS]
    for found in (gradients, products):
        assert_allclose(found.coefficients, theirs, atol=1e-4)
        assert newton.accuracy(found.coefficients, test) > 0.95
    assert len(products.losses) < len(gradients.losses)
    assert logistic.by_differences(data).evaluations > 20 * gradients.evaluations


# --- Hamiltonian Monte Carlo ---


def test_densities_are_scipys() -> None:
    """Up to a constant, so differences are compared."""
    data = hmc.load()
    rng = np.random.default_rng(0)
    points = [np.append(rng.normal(0, 20, 11), rng.normal(4)) for _ in range(3)]

    def normal(p: np.ndarray) -> float:
        return scipy.stats.norm.logpdf(data.y, data.x @ p[:-1], np.exp(p[-1])).sum()

    for ours, theirs in ((hmc.normal(data), normal), (hmc.student(data), lambda p: student(data, p))):
        found = [ours(ad.tensor(p)).item() for p in points]
        assert_allclose(np.diff(found), np.diff([theirs(p) for p in points]), rtol=1e-10)


def student(data: hmc.Data, p: np.ndarray) -> float:
    return scipy.stats.t.logpdf(data.y, hmc.FREEDOM, data.x @ p[:-1], np.exp(p[-1])).sum()


def start(data: hmc.Data) -> np.ndarray:
    estimate, _ = hmc.closed_form(data)
    return np.append(estimate, np.log(np.std(data.y - data.x @ estimate)))


def diagnoses(draws: hmc.Draws) -> tuple[np.ndarray, np.ndarray]:
    found = [hmc.diagnose(draws.values[:, :, i]) for i in range(draws.values.shape[-1])]
    return np.array([r for r, _ in found]), np.array([n for _, n in found])


@pytest.mark.slow
def test_draws_under_normal_noise_have_the_closed_form_mean_and_covariance() -> None:
    data = hmc.load()
    draws = hmc.sample(hmc.normal(data), start(data), 1000, np.random.default_rng(0), "")
    ratio, effective = diagnoses(draws)
    assert 0.85 < draws.accepted < 0.97
    assert (ratio < 1.01).all()
    assert (effective > 4000).all()

    mean, covariance = hmc.closed_form(data)
    spread = np.sqrt(np.diag(covariance))
    found = draws.pooled()[:, :-1]
    assert (np.abs(found.mean(0) - mean) < 4 * spread / np.sqrt(effective[:-1])).all()
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (found - mean).T)
    assert_allclose(np.cov(whitened), np.eye(11), atol=0.1)


@pytest.mark.slow
def test_draws_under_students_noise_have_the_mean_of_importance_sampling() -> None:
    """Draws from a wide distribution around the mode, weighted by SciPy's density."""
    data = hmc.load()
    draws = hmc.sample(hmc.student(data), start(data), 500, np.random.default_rng(0), "")
    _, effective = diagnoses(draws)

    mode, factor = hmc.around_mode(hmc.student(data), start(data))
    proposed = scipy.stats.multivariate_t(mode, factor @ factor.T, df=10, seed=1)
    points = proposed.rvs(4000)
    logs = np.array([student(data, p) for p in points]) - proposed.logpdf(points)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ points
    spread = np.sqrt(weights @ (points - mean) ** 2)
    error = spread * np.sqrt((weights**2).sum() + 1 / effective)
    assert (np.abs(draws.pooled().mean(0) - mean) < 4 * error).all()
    assert_allclose(draws.pooled().std(0), spread, rtol=0.1)


def test_diagnoses_of_chains_that_are_known() -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((8, 20000))
    ratio, effective = hmc.diagnose(noise)
    assert abs(ratio - 1) < 0.001
    assert_allclose(effective, noise.size, rtol=0.05)

    chains = np.zeros_like(noise)  # each draw is 0.8 of the one before, and noise: (1 - 0.8) / (1 + 0.8) are effective
    for i in range(1, chains.shape[1]):
        chains[:, i] = 0.8 * chains[:, i - 1] + noise[:, i]
    _, effective = hmc.diagnose(chains)
    assert_allclose(effective, noise.size / 9, rtol=0.05)

    ratio, effective = hmc.diagnose(noise + np.arange(8)[:, None])
    assert ratio > 2
    assert effective < 50


# --- the heat equation ---


def test_residuals_are_those_of_difference_quotients() -> None:
    rng = np.random.default_rng(0)
    net = heat.layers(heat.initial(rng))
    x, t = rng.random((2, 20))
    h = 1e-4

    def u(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        return heat.everywhere(net, x, t)

    u_t = (u(x, t + h) - u(x, t - h)) / (2 * h)
    u_xx = (u(x + h, t) - 2 * u(x, t) + u(x - h, t)) / h**2
    assert_allclose(heat.residuals(net, 0.3, x, t), u_t - 0.3 * u_xx, rtol=1e-5, atol=1e-6)


def test_the_minimiser_finds_scipys_minimum() -> None:
    def rosenbrock(p: ad.Tensor) -> ad.Tensor:
        return (100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2).sum()

    begin = np.array([-1.2, 1, 0.5, 2, -0.3])
    fit = heat.minimise(rosenbrock, begin, range(100))
    assert_allclose(fit.losses[0], scipy.optimize.rosen(begin))
    assert_allclose(fit.path[-1], scipy.optimize.minimize(scipy.optimize.rosen, begin).x, atol=1e-4)
    assert fit.losses == sorted(fit.losses, reverse=True)


@pytest.mark.slow
def test_the_equation_is_solved() -> None:
    fit = heat.solve(np.random.default_rng(0), 400)
    assert fit.losses[-1] < 1e-6
    assert np.abs(heat.errors(fit.path[-1])).max() < 2e-4


def test_alpha_is_that_of_a_fit_of_the_exact_solution() -> None:
    rng = np.random.default_rng(0)
    readings = heat.read(rng)
    found = heat.alphas(heat.identify(rng, readings, 150))[-1]

    def misfit(alpha: float) -> float:
        return float(((heat.exact(readings.x, readings.t, alpha) - readings.u) ** 2).sum())

    best = scipy.optimize.minimize_scalar(misfit, bounds=(0.01, 1), method="bounded").x
    assert_allclose(found, best, rtol=5e-3)
    assert abs(found - heat.ALPHA) < 3 * heat.standard_error(readings)


# --- lynxes and hares ---


def least_squares() -> tuple[np.ndarray, float]:
    """SciPy's fit, with its solver, its differences and its minimiser."""

    def residuals(q: np.ndarray) -> np.ndarray:
        a, b, c, d = np.exp(q[:4])

        def rates(_: float, z: np.ndarray) -> list[float]:
            return [a - b * np.exp(z[1]), d * np.exp(z[0]) - c]

        years = lynx_hare.YEARS
        out = scipy.integrate.solve_ivp(rates, years[[0, -1]], q[4:], t_eval=years, rtol=1e-9, atol=1e-9)
        return (out.y.T - np.log(lynx_hare.PELTS)).ravel()

    found = scipy.optimize.least_squares(residuals, np.log([0.5, 0.03, 0.8, 0.03, 30, 5]), xtol=1e-10)
    return found.x, np.sqrt(2 * found.cost / 36)


@pytest.mark.slow
def test_parameters_are_scipys_and_the_published_ones() -> None:
    fit = lynx_hare.fit(lynx_hare.PELTS[None], lynx_hare.first_guess(lynx_hare.PELTS), "")
    q, noise = least_squares()
    assert_allclose(fit.q[0], q, atol=2e-5)
    assert_allclose(fit.noise[0], noise, rtol=1e-5)
    assert 0.20 < fit.noise[0] < 0.31  # the published 80% of the noise
    for value, (mean, low, high) in zip(np.exp(q), lynx_hare.PUBLISHED.values(), strict=False):
        assert_allclose(value, mean, rtol=0.04)
        assert low < value < high


@pytest.mark.slow
def test_intervals_of_simulated_records_are_the_published_ones() -> None:
    fit = lynx_hare.fit(lynx_hare.PELTS[None], lynx_hare.first_guess(lynx_hare.PELTS), "")
    again = lynx_hare.fit(lynx_hare.simulated(fit, 200, np.random.default_rng(0)), fit.q[0], "")
    published = np.array(list(lynx_hare.PUBLISHED.values())).T[1:]
    assert_allclose(lynx_hare.intervals(again), published, rtol=0.06)
    assert_allclose(np.std(again.q, axis=0), np.sqrt(np.diag(fit.covariance[0])), rtol=0.2)


# --- the command lines ---


SMALL: dict[ModuleType, list[str]] = {
    newton: [],
    logistic: [],
    hmc: ["--draws", "10"],
    heat: ["--iterations", "3"],
    lynx_hare: ["--records", "3"],
}


@pytest.mark.slow
@MODULES
def test_the_seed_decides_the_numbers_and_the_picture(module: ModuleType, tmp_path: Path) -> None:
    seed_decides(module, SMALL[module], {}, tmp_path)


@MODULES
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--colour"], "--colour"),
        (["--seed", "-1"], "--seed"),
        (["--out", "nowhere/x.png"], "nowhere/x.png"),
        (["--out", "x.doc"], "x.doc"),
    ],
)
def test_wrong_options_get_one_line(
    module: ModuleType, arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        module.main(arguments)
    out, err = capsys.readouterr()
    assert stopped.value.code == 2
    assert out == ""
    assert err.startswith(f"{module.__name__}.py: ")
    assert said in err
    assert err.count("\n") == 1


@MODULES
def test_help(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        module.main(["--help"])
    assert not stopped.value.code
    out, _ = capsys.readouterr()
    assert all(option in out for option in ("--seed", "--out", *SMALL[module][:1]))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are not sent like this there")
@pytest.mark.parametrize(
    ("module", "option", "shown"),
    [(hmc, "--draws", b"sampling"), (heat, "--iterations", b"solving"), (lynx_hare, "--records", b"simulated")],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_ctrl_c_ends_with_one_line(module: ModuleType, option: str, shown: bytes, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / f"{module.__name__}.py"), option, "20000"]
    env = os.environ | {"FORCE_COLOR": "1"}
    with processes.started(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, bufsize=0) as process:
        assert process.stderr is not None
        seen = b""
        while seen.count(shown) < 3:  # the live bar was drawn a few times
            part = os.read(process.stderr.fileno(), 4096)
            assert part, seen
            seen += part
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert err.endswith(f"{module.__name__}.py: interrupted; no picture was written\n".encode())
    assert list(tmp_path.iterdir()) == []
