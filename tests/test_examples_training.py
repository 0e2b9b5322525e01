"""The examples of training: their figures against other libraries' and simpler models' ones."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import diabetes
import pytest
from numpy.testing import assert_allclose

import adjoint as ad

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
MODULES = pytest.mark.parametrize("module", [diabetes], ids=lambda m: m.__name__)
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("matplotlib", "rich", "sklearn")),
    reason="needs the examples' libraries: pip install adjoint[examples]",
)


# --- diabetes ---


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


# --- the command lines ---


@MODULES
@pytest.mark.slow
def test_the_seed_decides_the_numbers_and_the_picture(module: ModuleType, tmp_path: Path) -> None:
    outs, pictures = [], []
    for seed in ("3", "3", "4"):
        command = [sys.executable, str(EXAMPLES / f"{module.__name__}.py"), "--seed", seed]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert [path.name for path in tmp_path.iterdir()] == [f"{module.__name__}.png"]
        outs.append(done.stdout)
        pictures.append((tmp_path / f"{module.__name__}.png").read_bytes())
    assert outs[0] == outs[1] != outs[2]
    assert pictures[0] == pictures[1] != pictures[2]
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
