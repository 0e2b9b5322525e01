"""What all test modules share: the two ways of checkpointing, exact comparison, and the optional peer libraries."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import numpy as np
import pytest

import adjoint as ad

hypothesis.settings.register_profile("suite", max_examples=20, deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("suite")

LEVELS = {
    "keep": lambda: ad.Autodiff(ad.NumPy()),
    "balanced": lambda: ad.Autodiff(ad.NumPy(), checkpointing="balanced"),
}


@pytest.fixture(params=LEVELS)
def device(request: pytest.FixtureRequest) -> Iterator[ad.Autodiff[ad.NumPy]]:
    """An Autodiff level under each checkpointing mode; also the default device while a test runs."""
    level = LEVELS[request.param]()
    with ad.use_device(level):
        yield level


def peer(name: str) -> Any:
    """A peer library that serves as an oracle: without it tests skip, but in CI they fail."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        if os.environ.get("CI"):
            raise ModuleNotFoundError(f"{name} must be installed in CI: pip install adjoint[peers]") from error
        pytest.skip(f"needs {name}: pip install adjoint[peers]", allow_module_level=True)


def same(x: ad.Tensor[Any] | None, y: Any) -> None:
    """Assert that a tensor has these values, to the bit, their shape and their dtype."""
    assert isinstance(x, ad.Tensor)
    expected = np.asarray(y)
    assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(x.numpy(), expected)
