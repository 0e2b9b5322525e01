"""Small examples of the gallery: what they find against published and closed results, their pictures and errors."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import circles
import deblur
import gaussian_process
import greeks
import numpy as np
import pytest
import swing_up
import three_bodies
from numpy.testing import assert_allclose

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("matplotlib", "rich", "scipy")),
    reason="needs the examples' libraries: pip install adjoint[examples]",
)
SMALL = {
    gaussian_process: ["--points", "12"],
    greeks: ["--paths", "50"],
    swing_up: ["--iterations", "2"],
    deblur: ["--iterations", "2", "--size", "16"],
    circles: ["--iterations", "2"],
}


@pytest.mark.slow
@pytest.mark.parametrize("module", SMALL, ids=lambda module: module.__name__)
def test_numbers_are_printed_and_a_picture_is_drawn(
    module: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same for the same seed."""
    said = []
    for name in ("first.png", "second.png"):
        module.main([*SMALL[module], "--seed", "3", "--out", str(tmp_path / name)])
        out, _ = capsys.readouterr()
        said.append(out.replace(name, ""))
    assert said[0] == said[1]
    assert any(character.isdigit() for character in said[0])
    pictures = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    assert pictures[0] == pictures[1]
    assert pictures[0].startswith(b"\x89PNG")
    with pytest.raises(SystemExit) as stopped:
        module.main(["--seed", "-1"])
    assert stopped.value.code == 2
    assert "--seed" in capsys.readouterr().err


@pytest.mark.slow
def test_the_likelihood_is_scipys_normal_density() -> None:
    from scipy.stats import multivariate_normal

    x, y = gaussian_process.measure(12, 0)
    p = gaussian_process.START
    covariance = np.asarray(gaussian_process.kernel(p, x, x)) + np.exp(2 * p[2]) * np.eye(12)
    density = multivariate_normal(np.zeros(12), covariance).logpdf(y)
    assert_allclose(float(gaussian_process.loss(p, x, y)), -density, rtol=1e-10)
    found = gaussian_process.fit(x, y)
    assert found.likelihood > density
    for step in np.eye(3):
        assert float(gaussian_process.loss(np.log(found[:3]) + 0.01 * step, x, y)) > -found.likelihood


@pytest.mark.slow
def test_greeks_are_those_of_the_closed_formulas() -> None:
    from scipy.stats import norm

    stocks = np.array([80.0, 100.0, 125.0])
    strike, v, r, t = greeks.STRIKE, greeks.VOLATILITY, greeks.RATE, greeks.YEARS
    d1 = (np.log(stocks / strike) + (r + v**2 / 2) * t) / (v * np.sqrt(t))
    d2, discount = d1 - v * np.sqrt(t), np.exp(-r * t)
    found = greeks.greeks(stocks)
    expected = {
        "delta": norm.cdf(d1),
        "gamma": norm.pdf(d1) / (stocks * v * np.sqrt(t)),
        "vega": stocks * norm.pdf(d1) * np.sqrt(t),
        "rho": strike * t * discount * norm.cdf(d2),
        "theta": -stocks * norm.pdf(d1) * v / (2 * np.sqrt(t)) - r * strike * discount * norm.cdf(d2),
    }
    for name, values in expected.items():
        assert_allclose(found[name], values, rtol=1e-9)
    draws = np.random.default_rng(0).normal(size=(400, 5))
    delta, vega = greeks.simulated(stocks, draws)
    for n, stock in enumerate(stocks):
        up, down = (float(greeks.asian(stock + h, v, draws)) for h in (1e-4, -1e-4))
        assert_allclose(delta[n], (up - down) / 2e-4, atol=1e-3)
        up, down = (float(greeks.asian(stock, v + h, draws)) for h in (1e-6, -1e-6))
        assert_allclose(vega[n], (up - down) / 2e-6, rtol=1e-2)


@pytest.mark.slow
def test_the_pendulum_stands_though_the_motor_is_weak() -> None:
    swing = swing_up.search(400, 0)
    assert np.abs(swing.torque).max() <= swing_up.LIMIT
    assert_allclose(np.abs(swing.angle[-10:]), np.pi, atol=0.1)
    assert np.abs(swing.speed[-10:]).max() < 0.2


@pytest.mark.slow
def test_the_restored_image_is_near_the_original() -> None:
    exact = deblur.original(48)
    photograph = np.asarray(deblur.blur(exact)) + deblur.NOISE * np.random.default_rng(0).normal(size=exact.shape)
    found = deblur.restore(photograph, 200)
    assert deblur.error(found, exact) < 0.5 * deblur.error(photograph, exact)


@pytest.mark.slow
def test_circles_are_found() -> None:
    start = circles.TARGET + 0.04
    found, losses = circles.search(start, np.asarray(circles.render(circles.TARGET, 0.02)), 300)
    assert losses[-1] < 1e-3 * losses[0]
    assert_allclose(found, circles.TARGET, atol=0.01)


@pytest.mark.slow
def test_the_figure_eight_is_the_published_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "eight.png"
    three_bodies.main(["--out", str(picture)])
    assert "-0.932407, -0.864731" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert np.linalg.norm(np.asarray(three_bodies.gap(three_bodies.PUBLISHED))) < 1e-6
