"""The examples of models: what they print is what is asserted here, beside what is known without them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import autoencoder
import ensemble
import gallery
import low_rank
import neural_ode
import numpy as np
import pytest
import scipy.stats
from example_runs import seed_decides
from numpy.testing import assert_allclose

import adjoint as ad

MODULES = pytest.mark.parametrize("module", [autoencoder, ensemble, low_rank, neural_ode], ids=lambda m: m.__name__)
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("matplotlib", "rich", "sklearn")),
    reason="needs the examples' libraries: pip install 'adjoint[examples]'",
)


def numbers(module: ModuleType) -> list[float]:
    """Those that the run of the site's gallery prints."""
    return [float(number) for number in re.findall(r"-?\d+\.\d+", gallery.run(module.__name__).printed)]


# --- the variational autoencoder ---


def test_the_likelihood_of_an_image_is_scipys() -> None:
    rng = np.random.default_rng(0)
    x, logits = rng.integers(0, 17, (3, 64)), rng.normal(size=(3, 64))
    expected = scipy.stats.binom.logpmf(x, 16, 1 / (1 + np.exp(-logits))).sum(1)
    found = autoencoder.log_likelihood(ad.tensor(x, dtype=ad.float64), ad.tensor(logits))
    assert_allclose(found.numpy(), expected, rtol=1e-6)


@pytest.mark.slow
def test_two_numbers_say_much_of_a_digit() -> None:
    bound, plain = numbers(autoencoder)
    train, test = (images for images, _ in autoencoder.load(0))
    share = (train.sum(0) + 0.5) / (16 * len(train) + 1)
    assert_allclose(plain, scipy.stats.binom.logpmf(test, 16, share).sum(1).mean(), atol=0.06)
    assert -140 < bound < -125


# --- adaptation of low rank ---


@pytest.mark.slow
def test_a_tenth_of_the_numbers_adapts_a_network() -> None:
    upright, before, every, last, *ranks = numbers(low_rank)
    assert upright > 96
    assert before < 20
    assert every > 95
    assert 70 < last < 90
    assert ranks == sorted(ranks)
    assert ranks[1] > last + 5  # with fewer numbers
    assert ranks[2] > 92
    assert ranks[3] > every - 3


# --- the neural differential equation ---


def test_the_adjoint_equation_gives_the_gradient_of_the_network() -> None:
    with ad.use_dtype(ad.float64):
        ad.random.seed(0)
        model = neural_ode.Populations().map(lambda w: 0.3 * w)
        found, expected = [
            ad.grad(lambda model, how: neural_ode.to_record(model, 8, gradient=how, tolerance=1e-10))(model, gradient)
            for gradient in ("adjoint", "direct")
        ]
    for name, slope in expected.named_parameters().items():
        assert_allclose(found.at(name).get().numpy(), slope.numpy(), rtol=1e-7, atol=1e-8)


@pytest.mark.slow
def test_a_network_knows_the_record_and_foretells_better_than_guesses() -> None:
    fitted, later, mechanism, mechanism_later, mean, mean_later, last, last_later = numbers(neural_ode)
    assert fitted < 0.18 < mechanism < 0.2
    assert mechanism_later < later < 0.52  # five years are foretold best by who knows the mechanism
    assert min(mean_later, last_later) > 0.75
    assert_allclose([mean, last], [neural_ode.errors(x)[0] for x in list(neural_ode.guesses().values())[1:]], atol=1e-3)


# --- the ensemble ---


def test_gradients_of_all_members_are_those_of_each_alone() -> None:
    ad.random.seed(0)
    members = [ensemble.network() for _ in range(3)]
    data, _, _ = ensemble.load(0)
    x, y = data.x[:24].reshape(3, 8, 10), data.y[:24].reshape(3, 8, 1)
    found = ad.vmap(ad.grad(ensemble.loss))(ad.tree.map(lambda *ws: ad.stack(ws), *members), x, y)
    for i, member in enumerate(members):
        for name, slope in ad.grad(ensemble.loss)(member, x[i], y[i]).named_parameters().items():
            assert_allclose(found.at(name).get()[i].numpy(), slope.numpy(), rtol=1e-4, atol=1e-6)


def test_the_moments_of_an_ensemble_are_those_of_draws_from_its_members() -> None:
    rng = np.random.default_rng(0)
    means, variances = rng.normal(size=(3, 1)), rng.uniform(0.5, 2, (3, 1))
    draws = rng.normal(means, np.sqrt(variances), (3, 200_000)).ravel()
    mean, variance = ensemble.together(means, variances)
    assert_allclose([mean.item(), variance.item()], [draws.mean(), draws.var()], atol=0.01)
    expected = -scipy.stats.norm.logpdf(0.3, mean, np.sqrt(variance))
    assert_allclose(ensemble.surprise(np.array([[0.3]]), mean[None], variance[None]), expected.item(), rtol=1e-6)


@pytest.mark.slow
def test_an_ensemble_is_less_surprised_than_its_average_member() -> None:
    members, best, together = numbers(ensemble)
    assert best < members
    assert together < members - 0.01
    assert together < 1.3  # without measurements it is from 1.34 to 1.46


# --- the command lines ---


@MODULES
@pytest.mark.parametrize(
    ("arguments", "said"), [(["--colour"], "--colour"), (["--seed", "-1"], "--seed"), (["--out", "x.doc"], "x.doc")]
)
def test_wrong_options_get_one_line(
    module: ModuleType, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        module.main(arguments)
    out, err = capsys.readouterr()
    assert (stopped.value.code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"{module.__name__}.py: ")
    assert said in err


@MODULES
def test_help(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        module.main(["--help"])
    assert not stopped.value.code
    assert {"--seed", "--out"} <= set(re.findall(r"--\w+", capsys.readouterr().out))


@pytest.mark.slow
@pytest.mark.parametrize(("module", "option"), [(autoencoder, "--epochs"), (ensemble, "--members")])
def test_the_seed_decides_the_numbers_and_the_picture(module: ModuleType, option: str, tmp_path: Path) -> None:
    seed_decides(module, [option, "2"], {}, tmp_path)
