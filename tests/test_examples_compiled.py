"""Every example runs with its functions compiled, replayed and as machine code: each gives what it gives eager.

What transforms make of an example's functions (`ad.grad`, `ad.vmap`, the gradients of a learner, those that a search
of SciPy's asks for) is run twice at each of its first calls, as it is and compiled; the example goes on with the
former.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors
from adjoint import tree as trees
from adjoint.devices import current_level, default_device
from adjoint.random_keys import Replay, replayed
from adjoint.train import learner

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(
            importlib.util.find_spec(name) is None for name in ("matplotlib", "rich", "scipy", "sklearn", "safetensors")
        ),
        reason="needs the examples' libraries: pip install 'adjoint[examples]'",
    ),
]
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOTHING = {
    "command_line": "options that examples share",
    "out_of_core": "arrays of Dask, whose graph is made without ad.compile",
}
SMALL: dict[str, list[str]] = {
    "airline": [],
    "autoencoder": ["--epochs", "1"],
    "beam": ["--iterations", "2"],
    "breast_cancer": [],
    "characters": ["--epochs", "1"],
    "circles": ["--iterations", "2"],
    "data_parallel": ["--rows", "1000"],
    "deblur": ["--iterations", "2", "--size", "16"],
    "diabetes": [],
    "digits": ["--epochs", "1"],
    "ensemble": ["--members", "2"],
    "equilibrium": ["--steps", "2"],
    "gaussian_process": ["--points", "12"],
    "greeks": ["--paths", "50"],
    "heat": ["--iterations", "2"],
    "hmc": ["--draws", "10"],
    "hologram": ["--steps", "2", "--size", "16"],
    "ignition": [],
    "karate": ["--iterations", "2"],
    "logistic": [],
    "loop": ["--steps", "100"],
    "low_rank": [],
    "lynx_hare": ["--records", "2"],
    "neural_ode": [],
    "newton": [],
    "style": ["--iterations", "2", "--size", "16"],
    "swing_up": ["--iterations", "2"],
    "taylor_orbit": [],
    "thin_film": ["--starts", "1"],
    "three_bodies": [],
    "tour": [],
    "wave_inversion": ["--iterations", "1"],
}
# functions without arguments, which are compiled as a whole
WITHOUT = {"tour": ["doubled", "squared", "chained", "regression", "squared_error", "one_layer", "jacobian_product"]}
CALLS = 2  # of each function that are compared
ENOUGH = 12  # functions compared, or calls that were not, after which an example is stopped


compile_ = ad.compile


class Enough(BaseException):
    """Nothing of an example catches it."""


class Twice:
    """Functions that are compared with what `ad.compile` makes of them."""

    def __init__(self) -> None:
        self.compared = self.passed = 0
        self.asks: list[str] = []  # messages of what asks for values

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        compiled, calls = compile_(f), [0]

        @functools.wraps(f, updated=())
        def both(*args: Any, **kwargs: Any) -> Any:
            if current_level() is not None:
                return f(*args, **kwargs)
            if calls[0] == CALLS:
                self.passed += 1
                if self.passed == ENOUGH:
                    raise Enough
                return f(*args, **kwargs)
            calls[0] += 1
            if self.compared + len(self.asks) == ENOUGH:
                raise Enough
            keys = Replay()
            with replayed(keys):
                expected = f(*args, **kwargs)
            try:
                with replayed(keys):
                    found = compiled(*args, **kwargs)
            except errors.TrackedError as error:
                self.asks.append(str(error))
                return expected
            alike(found, expected)
            self.compared += 1
            return expected

        both.lower = compiled.lower  # type: ignore[attr-defined]
        return both

    def transform(self, made: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: self(made(*args, **kwargs))

    def gradients(self, made: Callable[..., Any]) -> Callable[..., Any]:
        """Those of a learner's objective, beside the ones that it takes itself."""

        def gradients(f: Any, devices: Any, has_aux: bool) -> Any:
            mine = made(f, devices, has_aux=has_aux)
            both = self(ad.value_and_grad(lambda model, batch: loss_of(f.forward(model, batch, 0))))

            def run(model: Any, batch: Any) -> Any:
                both(model, batch)
                return mine(model, batch)

            return run

        return gradients

    def search(self, made: Callable[..., Any], of: Callable[..., Any]) -> Callable[..., Any]:
        """A search whose function's derivatives are compared where it starts."""

        def run(f: Any, start: Any, *args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("jac") and current_level() is None:
                self(of(f))(start, *(args[0] if args else ()))
            return made(f, start, *args, **kwargs)

        return run

    def pattern(self, made: Callable[..., Any]) -> Callable[..., Any]:
        """A sparse Jacobian, of a function whose values are compared where it is asked for."""

        def of(f: Any, *args: Any, **kwargs: Any) -> Any:
            mine, both = made(f, *args, **kwargs), self(f)

            def run(*xs: Any) -> Any:
                both(*xs)
                return mine(*xs)

            return run

        return of


def loss_of(found: Any) -> Any:
    return found["loss"] if isinstance(found, dict) else found[0] if isinstance(found, tuple) else found


def alike(found: Any, expected: Any) -> None:
    xs, structure = trees.flatten(found)
    ys, wanted = trees.flatten(expected)
    assert structure == wanted
    for x, y in zip(xs, ys, strict=True):
        if isinstance(x, np.ndarray) and isinstance(y, ad.Tensor):  # of NumPy arrays, ad.compile gives such
            y = y.numpy()
        assert type(x) is type(y), (x, y)
        if isinstance(x, (ad.Tensor, np.ndarray, np.generic)):
            x, y = [np.asarray(z.detach() if isinstance(z, ad.Tensor) else z) for z in (x, y)]
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            scale = np.abs(y[np.isfinite(y)]).max(initial=0) if y.dtype.kind in "fc" else 0
            single = y.dtype in (np.float32, np.complex64)
            np.testing.assert_allclose(
                x, y, rtol=2e-4 if single else 1e-9, atol=max(scale * (2e-5 if single else 1e-11), 1e-13)
            )  # what cancels leaves rounding
        else:
            assert x == y or x is y


def test_each_example_is_here() -> None:
    assert {p.stem for p in EXAMPLES.glob("*.py")} == {*SMALL, *NOTHING}


@pytest.mark.parametrize("how", ["replay", "native"])
@pytest.mark.parametrize("name", SMALL)
def test_examples_compiled(
    name: str, how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if how == "native":
        pytest.importorskip("llvmlite")
        monkeypatch.delenv("ADJOINT_COMPILE", raising=False)
    twice, device = Twice(), default_device()
    monkeypatch.setattr(ad, "compile", twice)
    for transform in ("grad", "value_and_grad", "hessian", "jacobian", "vmap"):
        monkeypatch.setattr(ad, transform, twice.transform(getattr(ad, transform)))
    monkeypatch.setattr(ad, "sparse_jacobian", twice.pattern(ad.sparse_jacobian))
    monkeypatch.setattr(learner, "data_parallel", twice.gradients(learner.data_parallel))
    monkeypatch.setattr(ad.scipy, "minimize", twice.search(ad.scipy.minimize, ad.value_and_grad))
    monkeypatch.setattr(ad.scipy, "least_squares", twice.search(ad.scipy.least_squares, ad.jacobian))
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    monkeypatch.chdir(tmp_path)
    sys.modules.pop(name, None)
    module = importlib.import_module(name)
    monkeypatch.setattr(sys, "argv", [name, *SMALL[name]])
    try:
        module.main(SMALL[name]) if SMALL[name] else module.main()
        for part in WITHOUT.get(name, ()):
            twice(getattr(module, part))()
    except Enough:
        pass
    finally:
        ad.set_default_device(device)  # some choose another
        sys.modules.pop(name, None)
    assert twice.compared
    assert not twice.asks
