"""The examples of models: what they print is what is asserted here, beside what is known without them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import autoencoder
import low_rank
import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import adjoint as ad

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
MODULES = pytest.mark.parametrize("module", [autoencoder, low_rank], ids=lambda m: m.__name__)
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("matplotlib", "rich", "sklearn")),
    reason="needs the examples' libraries: pip install adjoint[examples]",
)


def numbers(module: ModuleType, folder: Path, *arguments: str) -> list[float]:
    """What a run prints; it leaves nothing but its picture."""
    command = [sys.executable, str(EXAMPLES / f"{module.__name__}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in folder.iterdir()] == [f"{module.__name__}.png"]
    assert (folder / f"{module.__name__}.png").read_bytes().startswith(b"\x89PNG")
    return [float(number) for number in re.findall(r"-?\d+\.\d+", done.stdout)]


# --- the variational autoencoder ---


def test_the_likelihood_of_an_image_is_scipys() -> None:
    rng = np.random.default_rng(0)
    x, logits = rng.integers(0, 17, (3, 64)), rng.normal(size=(3, 64))
    expected = scipy.stats.binom.logpmf(x, 16, 1 / (1 + np.exp(-logits))).sum(1)
    found = autoencoder.log_likelihood(ad.tensor(x, dtype=ad.float64), ad.tensor(logits))
    assert_allclose(found.numpy(), expected, rtol=1e-6)


@pytest.mark.slow
def test_two_numbers_say_much_of_a_digit(tmp_path: Path) -> None:
    bound, plain = numbers(autoencoder, tmp_path)
    train, test = (images for images, _ in autoencoder.load(0))
    share = (train.sum(0) + 0.5) / (16 * len(train) + 1)
    assert_allclose(plain, scipy.stats.binom.logpmf(test, 16, share).sum(1).mean(), atol=0.06)
    assert -140 < bound < -125


# --- adaptation of low rank ---


@pytest.mark.slow
def test_a_tenth_of_the_numbers_adapts_a_network(tmp_path: Path) -> None:
    upright, before, every, last, *ranks = numbers(low_rank, tmp_path)
    assert upright > 96
    assert before < 20
    assert every > 95
    assert 70 < last < 90
    assert ranks == sorted(ranks)
    assert ranks[1] > last + 5  # with fewer numbers
    assert ranks[2] > 92
    assert ranks[3] > every - 3


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
