"""Small examples of the gallery: what they find against published and closed results, their pictures and errors."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from types import ModuleType

import beam
import circles
import command_line
import deblur
import equilibrium
import gallery
import gaussian_process
import greeks
import hologram
import ignition
import karate
import loop
import numpy as np
import pytest
import style
import swing_up
import taylor_orbit
import thin_film
import three_bodies
import wave_inversion
from numpy.testing import assert_allclose

import adjoint as ad

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("matplotlib", "rich", "scipy")),
    reason="needs the examples' libraries: pip install 'adjoint[examples]'",
)
SMALL = {
    gaussian_process: ["--points", "12"],
    greeks: ["--paths", "50"],
    equilibrium: ["--steps", "2"],
    swing_up: ["--iterations", "2"],
    deblur: ["--iterations", "2", "--size", "16"],
    circles: ["--iterations", "2"],
    thin_film: ["--starts", "1"],
    karate: ["--iterations", "2"],
    style: ["--iterations", "2", "--size", "16"],
    wave_inversion: ["--iterations", "1"],
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


def test_a_check_ends_the_program_where_a_result_is_too_far(capsys: pytest.CaptureFixture[str]) -> None:
    command_line.check("the formula", 1e-9, 1e-8)
    assert capsys.readouterr().out == "checked: the formula: differs by 1.0e-09, allowed 1e-08\n"
    for error in (1e-7, float("nan")):
        with pytest.raises(SystemExit, match="wrong: the formula"):
            command_line.check("the formula", error, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "options", "said"),
    [
        (ignition, ["--points", "8"], "226 x 226"),
        (taylor_orbit, ["--turns", "1"], "order 20:    54 steps"),
        (loop, ["--steps", "100"], "scan("),
        (hologram, ["--size", "16", "--steps", "2"], "runs on:"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_examples_compare_with_agrees(
    module: ModuleType, options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They end with an error where it does not."""
    module.main([*options, "--out", str(tmp_path / "found.png")])
    out, _ = capsys.readouterr()
    assert said in out
    assert "checked: " in out
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_cluster_fits_as_one_process() -> None:
    pytest.importorskip("distributed")
    printed = gallery.run("data_parallel").printed
    assert "checked: the fit of scikit-learn" in printed
    assert all([int(n) > 100 for n in re.findall(r"worker \d: (\d+) pieces", printed)])


@pytest.mark.slow
def test_equations_of_a_balance_are_those_of_a_matrix() -> None:
    """On any grid, and the sparse Jacobian is the dense one."""
    n, rng = 5, np.random.default_rng(0)
    v = rng.normal(size=n * n + 1)
    second = (n + 1) ** 2 * (np.eye(n, k=1) + np.eye(n, k=-1) - 2 * np.eye(n))
    laplacian = np.kron(second, np.eye(n)) + np.kron(np.eye(n), second)
    heat = laplacian @ v[:-1] + v[-1] * np.exp(v[:-1])
    assert_allclose(ignition.equations(v, 0.5), [*heat, v[n * n // 2] - 0.5], rtol=1e-10)
    vessel = ignition.Vessel(n)
    expected = np.zeros((n * n + 1, n * n + 1))
    expected[:-1, :-1] = laplacian + v[-1] * np.diag(np.exp(v[:-1]))
    expected[:-1, -1], expected[-1, n * n // 2] = np.exp(v[:-1]), 1
    assert_allclose(vessel.jacobian(v, 0.5).toarray(), expected, rtol=1e-10)


@pytest.mark.slow
def test_coefficients_of_an_orbit_are_those_of_a_circle() -> None:
    pace = np.sqrt(taylor_orbit.PULL)  # at distance 1
    t = np.arange(13)
    powers = pace**t / np.array([float(math.factorial(k)) for k in t])
    x, y = np.cos(t * np.pi / 2) * powers, np.sin(t * np.pi / 2) * powers
    found = taylor_orbit.series(np.array([1.0, 0.0, 0.0, pace]), 12)
    for column, exact in enumerate((x, y)):
        assert_allclose(found[:, column], exact, rtol=1e-12, atol=1e-12)
    for when in (0.0, 20.0, 37.6):  # the place moves with the speed, and the energy stays
        place, speed = np.split(taylor_orbit.kepler(when), 2)
        ahead, behind = taylor_orbit.kepler(when + 1e-6)[:2], taylor_orbit.kepler(when - 1e-6)[:2]
        assert_allclose((ahead - behind) / 2e-6, speed, rtol=1e-5, atol=1e-6)
        energy = speed @ speed / 2 - taylor_orbit.PULL / np.linalg.norm(place)
        assert_allclose(energy, -taylor_orbit.PULL / (2 * taylor_orbit.AXIS), rtol=1e-8)


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
    """Those of a textbook, and differences of the value, of which calls and puts are each other's."""
    market = greeks.TODAY
    first, second = ad.grad(greeks.value)(market), ad.hessian(greeks.value)(market)
    delta, vega, gamma = greeks.formulas()
    for found, formula in ((first.stock, delta), (first.volatility, vega), (second.stock.stock, gamma)):
        assert_allclose(found, formula, rtol=1e-9, atol=1e-9)
    draws = np.random.default_rng(0).normal(size=(400, 3))
    for f, slopes in ((greeks.value, first), (lambda m: greeks.simulated(m, draws), None)):
        slopes = slopes or ad.grad(f)(market)
        for name in ("rate", "correlation", *(["time"] if f is greeks.value else [])):
            at, h = getattr(market, name), 1e-5
            up, down = (float(f(market._replace(**{name: at + step}))) for step in (h, -h))
            assert_allclose(getattr(slopes, name), (up - down) / (2 * h), rtol=1e-5)
        for i, step in enumerate(1e-5 * np.eye(3)):
            for name in ("stock", "volatility"):
                up, down = (float(f(market._replace(**{name: getattr(market, name) + s}))) for s in (step, -step))
                assert_allclose(getattr(slopes, name)[i], (up - down) / 2e-5, rtol=1e-4)
    for name in ("stock", "volatility"):
        up, down = (
            ad.grad(greeks.value)(market._replace(**{name: getattr(market, name) + s})).volatility[0]
            for s in (np.array([1e-5, 0, 0]), np.array([-1e-5, 0, 0]))
        )
        assert_allclose(getattr(second.volatility, name)[0, 0], (up - down) / 2e-5, rtol=1e-6)
    call, put = (float(greeks.option(*np.array([100.0, 90.0, 0.2, 0.03, 0.5]), sign)) for sign in (1.0, -1.0))
    assert_allclose(call - put, 100 - 90 * np.exp(-0.015), rtol=1e-12)


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
def test_the_figure_eight_is_the_published_one() -> None:
    assert "-0.932407, -0.864731" in gallery.run("three_bodies").printed
    assert (gallery.KEPT / "three_bodies.png").read_bytes().startswith(b"\x89PNG")
    assert np.linalg.norm(np.asarray(three_bodies.gap(three_bodies.PUBLISHED))) < 1e-6


@pytest.mark.slow
def test_reflectance_is_that_of_airys_formula() -> None:
    """One layer in closed form; a stack whose layers are cut in two is the same one."""
    for thickness, n in ((0.0, 1.7), (91.0, 1.38), (137.0, 2.35)):
        air, glass = (1 - n) / (1 + n), (n - thin_film.GLASS) / (n + thin_film.GLASS)
        back = glass * np.exp(-4j * np.pi * n * thickness / thin_film.WAVES)
        found = thin_film.reflectance(np.array([thickness]), np.array([n]))
        assert_allclose(found, np.abs((air + back) / (1 + air * back)) ** 2, rtol=1e-12)
    t = np.random.default_rng(0).uniform(20, 180, 6)
    halves = thin_film.reflectance(np.repeat(t / 2, 2), np.repeat(thin_film.LAYERS, 2))
    assert_allclose(thin_film.reflectance(t, thin_film.LAYERS), halves, rtol=1e-12)
    thickness, best, median = thin_film.search(20, 0)
    assert_allclose(thin_film.reflectance(thickness, thin_film.LAYERS).mean(), best, rtol=1e-12)
    assert best < 0.002 < 0.008 < median


@pytest.mark.slow
def test_the_network_knows_all_but_the_member_that_zachary_explains() -> None:
    """He had an examination three weeks later, for the teacher's belt, and stayed."""
    matrix = np.zeros((34, 34))
    matrix[karate.EDGES[:, 0], karate.EDGES[:, 1]] = 1
    matrix += matrix.T
    degrees = [16, 9, 10, 6, 3, 4, 4, 4, 5, 2, 3, 1, 2, 5, 2, 2, 2, 2, 2, 3, 2, 2, 2, 5, 3, 3, 2, 4, 3, 4, 4, 6, 12, 17]
    assert matrix.sum(axis=0).tolist() == degrees
    loops = matrix + np.eye(34)
    x = np.random.default_rng(0).normal(size=(34, 3))
    scale = np.diag(loops.sum(axis=0) ** -0.5)
    assert_allclose(karate.mixed(x), scale @ loops @ scale @ x, rtol=1e-12)
    probability = karate.learn(200, 0)
    assert np.flatnonzero(probability.argmax(axis=1) != karate.SIDES).tolist() == [8]
    away = karate.steps_between()
    assert away.max() == 5  # the published diameter
    assert_allclose(away[away == 1].size, matrix.sum())


@pytest.mark.slow
def test_the_beam_is_that_of_a_matrix_put_together_square_by_square() -> None:
    nu = beam.POISSON  # the first row of the published matrix (Andreassen and others, 2011)
    row = [1 / 2 - nu / 6, 1 / 8 + nu / 8, -1 / 4 - nu / 12, -1 / 8 + 3 * nu / 8,
           -1 / 4 + nu / 12, -1 / 8 - nu / 8, nu / 6, 1 / 8 - 3 * nu / 8]  # fmt: skip
    assert_allclose(beam.stiffness()[0], np.array(row) / (1 - nu**2), atol=1e-15)
    made = beam.Beam()
    density = np.random.default_rng(0).uniform(0.2, 1, (beam.WIDTH, beam.HEIGHT))
    young = beam.VOID + (1 - beam.VOID) * np.asarray(made.filtered(density)) ** beam.POWER
    matrix = np.zeros((made.size + 50, made.size + 50))
    for at, e in zip(beam.unknowns(), young.ravel(), strict=True):
        matrix[np.ix_(at, at)] += e * beam.stiffness()
    moved = np.linalg.solve(matrix[50:, 50:], made.force)
    assert_allclose(made.work(density), moved @ made.force, rtol=1e-8)
    slope, h = ad.grad(made.work)(density), 1e-5
    step = np.random.default_rng(1).normal(size=density.shape)
    change = (float(made.work(density + h * step)) - float(made.work(density - h * step))) / (2 * h)
    assert_allclose((slope * step).sum(), change, rtol=1e-6)
    assert "volume: 0.500" in gallery.run("beam").printed
    designs, works = beam.search(20)
    assert works[-1] < 75 < 310 < works[0]
    assert works == sorted(works, reverse=True)
    assert_allclose(designs[-1], designs[-1][:, ::-1], atol=1e-5)  # nothing tells up from down


@pytest.mark.slow
def test_bodies_in_the_ground_are_found() -> None:
    exact = wave_inversion.ground()
    heard = np.asarray(wave_inversion.waves(exact)[0])
    inner = wave_inversion.SIZE - 2 * wave_inversion.BORDER
    step = 0.01 * np.random.default_rng(0).normal(size=(inner, inner))
    slope = ad.grad(wave_inversion.misfit)(step, heard)
    up, down = (float(wave_inversion.misfit((1 + h) * step, heard)) for h in (1e-4, -1e-4))
    assert_allclose((slope * step).sum(), (up - down) / 2e-4, rtol=1e-5)
    found, losses = wave_inversion.invert(heard, 15)
    uniform = np.full_like(exact, wave_inversion.SPEED)
    assert losses[-1] < 0.1 * losses[0]
    assert np.linalg.norm(found - exact) < 0.5 * np.linalg.norm(uniform - exact)


@pytest.mark.slow
def test_a_painting_shows_what_it_should_in_the_other_manner() -> None:
    image, example = style.content(32), style.manner(32, 0)
    assert image.min() >= 0
    assert example.max() <= 1
    wanted = [np.asarray(style.gram(a)) for a in style.answers(ad.tensor(example), 0)]
    shown = [np.asarray(a) for a in style.answers(ad.tensor(image), 0)]
    at_first = [float(d) for d in style.distances(ad.tensor(image), shown, wanted, 0)]
    assert at_first[0] == 0
    painted, one, other = style.paint(image, example, 60, 0)
    assert other < 0.1 * at_first[1]
    assert one < float(style.distances(ad.tensor(example), shown, wanted, 0)[0])
    assert painted.min() >= 0
    assert painted.max() <= 1
