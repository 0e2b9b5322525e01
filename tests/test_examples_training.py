"""The examples of training: their figures against other libraries' and simpler models' ones."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import airline
import breast_cancer
import characters
import diabetes
import numpy as np
import processes
import pytest
from numpy.testing import assert_allclose

import adjoint as ad

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
MODULES = pytest.mark.parametrize("module", [diabetes, breast_cancer, characters, airline], ids=lambda m: m.__name__)
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("matplotlib", "rich", "sklearn")),
    reason="needs the examples' libraries: pip install 'adjoint[examples]'",
)


# --- diabetes ---


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "alpha"), [(0, 0.01), (1, 10.0), (2, 1000.0)])
def test_ridge_has_scikit_learns_coefficients_and_r2(seed: int, alpha: float) -> None:
    from sklearn.linear_model import Ridge

    ad.random.seed(seed)
    train, test, _ = diabetes.load(seed)
    model = diabetes.fit(train, alpha)
    coefficients, intercept = diabetes.scikit_learns(train, alpha)
    assert_allclose(model.weight.numpy()[0], coefficients, atol=2e-6)
    assert_allclose(model.bias.item(), intercept, rtol=1e-8)
    theirs = Ridge(alpha).fit(train.x, train.y[:, 0])
    for data in (train, test):
        assert_allclose(diabetes.r2(model, data), theirs.score(data.x, data.y), rtol=1e-8)


# --- breast cancer ---


@pytest.mark.slow
def test_temperatures_halve_the_cross_entropy_and_lower_the_calibration_error() -> None:
    ad.random.seed(0)
    x, y, folds = breast_cancer.load(0)
    logits = breast_cancer.unseen_logits(x, y, folds, 0)
    scaled, temperatures = breast_cancer.cooled(logits, y, folds)
    before, after = breast_cancer.judged(logits, y), breast_cancer.judged(scaled, y)
    assert before["accuracy"] == after["accuracy"] >= 0.965
    assert min(temperatures) > 2
    assert after["cross entropy"] < 0.65 * before["cross entropy"]
    assert after["calibration error"] < 0.018
    assert after["calibration error"] < 0.8 * before["calibration error"]


def test_the_temperature_is_scipys() -> None:
    import scipy.optimize

    rng = np.random.default_rng(0)
    logits = rng.normal(0, 4, (400, 1)).astype("float32")
    y = (rng.random((400, 1)) < 1 / (1 + np.exp(-logits / 3))).astype("float32")
    folds = np.arange(400) % breast_cancer.FOLDS
    _, found = breast_cancer.cooled(logits, y, folds)
    for fold, ours in enumerate(found):
        z, sign = logits[folds != fold], 2 * y[folds != fold] - 1
        theirs = scipy.optimize.minimize_scalar(lambda log: np.logaddexp(0, -sign * z * np.exp(-log)).mean())  # noqa: B023
        assert_allclose(ours, np.exp(theirs.x), rtol=1e-3)


# --- characters ---


@pytest.mark.slow
def test_the_transformer_predicts_better_than_pairs_of_letters() -> None:
    learner = characters.train(0, 1)
    found = learner.evaluate(characters.windows(characters.CODES[characters.CUT :], characters.WINDOW))["loss"]
    letters, pairs = characters.counted()
    assert letters > pairs > 2.2
    assert found < 1.7
    rng = np.random.default_rng(0)
    written = characters.write(learner.model.valid(), "The ", 300, rng)
    words = set(characters.TEXT[: characters.CUT].split())
    assert written.startswith("The ")
    assert np.mean([word in words for word in written.split()[:-1]]) > 0.5


def test_the_writer_does_not_look_ahead() -> None:
    ad.random.seed(0)
    model = characters.Writer()
    first, other = characters.CODES[:20], characters.CODES[:20].copy()
    other[12:] = characters.CODES[100:108]
    ours, theirs = (model(ad.asarray(codes[None])).numpy()[0] for codes in (first, other))
    assert_allclose(ours[:12], theirs[:12], atol=1e-5)
    assert np.abs(ours[12:] - theirs[12:]).max() > 0.01


# --- airline passengers ---


def test_passengers_are_those_of_box_and_jenkins() -> None:
    assert airline.PASSENGERS.shape == (144,)
    assert_allclose(airline.PASSENGERS.mean(), 280.2986111)  # as R prints of AirPassengers
    assert_allclose(airline.PASSENGERS.std(ddof=1), 119.9663169)


@pytest.mark.slow
def test_the_lstm_has_a_smaller_error_than_the_last_year_again() -> None:
    ad.random.seed(0)
    known = airline.PASSENGERS[: -airline.AHEAD]
    each = [airline.forecast(known, airline.AHEAD, seed)[0] for seed in range(airline.NETWORKS)]
    again, _ = airline.simple(known, airline.AHEAD)
    assert_allclose(airline.rmse(again), np.sqrt(np.mean((again - airline.PASSENGERS[-24:]) ** 2)))
    assert airline.rmse(np.mean(each, axis=0)) < 0.65 * airline.rmse(again)


# --- the command lines ---


SMALL: dict[ModuleType, list[str]] = {characters: ["--epochs", "1"]}


@MODULES
@pytest.mark.slow
def test_the_seed_decides_the_numbers_and_the_picture(module: ModuleType, tmp_path: Path) -> None:
    outs, pictures = [], []
    for seed in ("3", "3", "4")[: 2 if module in SMALL else 3]:  # a long one twice
        command = [sys.executable, str(EXAMPLES / f"{module.__name__}.py"), *SMALL.get(module, []), "--seed", seed]
        done = processes.run(command, cwd=tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [f"{module.__name__}.png"]
        outs.append(done.stdout)
        pictures.append((tmp_path / f"{module.__name__}.png").read_bytes())
    assert outs[0] == outs[1] not in outs[2:]
    assert pictures[0] == pictures[1] not in pictures[2:]
    assert pictures[0].startswith(b"\x89PNG")


@MODULES
@pytest.mark.parametrize("arguments", [["--colour"], ["--seed", "-1"], ["--out", "x.doc"]])
def test_wrong_options_get_one_line(
    module: ModuleType, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        module.main(arguments)
    out, err = capsys.readouterr()
    assert (stopped.value.code, out) == (2, "")
    assert err.startswith(f"{module.__name__}.py: ")
    assert arguments[-1] in err
    assert err.count("\n") == 1
