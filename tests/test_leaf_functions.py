"""Every public function on another library's arrays: the gradients of its cases, numerically."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import peer
from functions import FUNCTIONS, Draw
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoint as ad

peer("torch")


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=3)
@given(data=st.data())
def test_gradients_on_torch(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    ad.testing.check_grads(f, tuple(args), order=1, device="autodiff<torch>")
