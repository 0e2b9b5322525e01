"""The examples of training: their figures against other libraries' and simpler models' ones."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import airline
import breast_cancer
import characters
import diabetes
import gallery
import numpy as np
import pytest
from example_runs import seed_decides
from numpy.testing import assert_allclose

import adjoint as ad

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
    printed = gallery.run("breast_cancer").printed
    before, after = (
        {key: float(value) for key, value in re.findall(r"(\w[\w ]*) (\d\.\d{4})", line)}
        for line in printed.splitlines()[:2]
    )
    temperatures = [float(t) for t in printed.splitlines()[2].partition(":")[2].split(",")]
    assert before["accuracy"] == after["accuracy"] >= 0.965
    assert len(temperatures) == breast_cancer.FOLDS
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
    """What it says in the run of the site's gallery, beside what is counted here."""
    printed = gallery.run("characters").printed
    found = {name: float(nats) for name, nats in re.findall(r"(\w+): (\d\.\d+) nats", printed)}
    letters, pairs = characters.counted()
    assert_allclose([found["letters"], found["pairs"]], [letters, pairs], atol=6e-4)
    assert letters > pairs > 2.2
    assert found["transformer"] < 1.5
    written = re.findall(r"--- '(.*?)' ---\n(.*?)(?=\n--- '|\npicture: )", printed, re.DOTALL)
    assert [text.startswith(start) for start, text in written] == [True] * 3
    words = set(characters.TEXT[: characters.CUT].split())
    assert np.mean([word in words for _, text in written for word in text.split()[:-1]]) > 0.5


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
    printed = gallery.run("airline").printed
    found = {
        name: float(e)
        for name, e in re.findall(r"^ *(.*?): root of the mean squared error +([\d.]+)", printed, re.MULTILINE)
    }
    again, _ = airline.simple(airline.PASSENGERS[: -airline.AHEAD], airline.AHEAD)
    assert_allclose(airline.rmse(again), np.sqrt(np.mean((again - airline.PASSENGERS[-24:]) ** 2)))
    assert_allclose(found["1958 again"], airline.rmse(again), atol=6e-3)
    assert found["LSTM, mean of networks"] < 0.65 * found["1958 again"]


# --- the command lines ---


# constants of each that make its runs short
SMALL: dict[ModuleType, tuple[list[str], dict[str, str]]] = {
    diabetes: ([], {"ALPHAS": "ALPHAS[::12]", "SHOWN": "1"}),
    breast_cancer: ([], {"EPOCHS": "2"}),
    characters: (["--epochs", "1"], {"CODES": "CODES[:9000]", "CUT": "7000"}),
    airline: ([], {"NETWORKS": "2", "EPOCHS": "2"}),
}


@MODULES
@pytest.mark.slow
def test_the_seed_decides_the_numbers_and_the_picture(module: ModuleType, tmp_path: Path) -> None:
    seed_decides(module, *SMALL[module], tmp_path)


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
