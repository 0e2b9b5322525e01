"""Any history of assignments, aliases and reads: values and gradients are those of independent copies.

A model keeps for every tensor its values and its Jacobian with respect to one leaf, as arrays of its own;
all steps are linear, so both are exact. No sharing of buffers may show.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoint as ad

N = 4
KEYS: list[Any] = [
    0,
    -1,
    slice(1, 3),
    slice(None),
    slice(None, None, -1),
    [0, 2],
    [1, 1],
    np.array([True, False, True, False]),
    ...,
]


class World:
    """Tensors, their models, and what was read from them on the way."""

    def __init__(self, device: Any) -> None:
        start = np.arange(1.0, N + 1)
        self.leaf = ad.asarray(start, device=device).require_grad()
        self.constant = ad.zeros(N, dtype=ad.float64, device=device)
        self.tensors: list[Any] = [self.leaf * 1, self.constant * 1]
        self.models: list[tuple[Any, Any]] = [(start.copy(), np.eye(N)), (np.zeros(N), np.zeros((N, N)))]
        self.held: list[tuple[Any, Any]] = []  # arrays and lifted tensors that must not change

    def add(self, tensor: Any, model: tuple[Any, Any]) -> None:
        self.tensors.append(tensor)
        self.models.append(model)

    def step(self, kind: str, i: int, j: int, key: Any) -> None:
        i, j = i % len(self.tensors), j % len(self.tensors)
        x, y = self.tensors[i], self.tensors[j]
        (value, slope), (other, other_slope) = self.models[i], self.models[j]
        match kind:
            case "assign part":  # x[key] = y[key], where y may be x
                x[key] = y[key] * 2
                new, new_slope = value.copy(), slope.copy()
                new[key], new_slope[key] = 2 * other[key], 2 * other_slope[key]
                self.models[i] = new, new_slope
            case "assign a number":
                x[key] = 7.0
                new, new_slope = value.copy(), slope.copy()
                new[key], new_slope[key] = 7.0, 0.0
                self.models[i] = new, new_slope
            case "add in place":
                x += y
                self.tensors[i] = x
                self.models[i] = value + other, slope + other_slope
            case "scale in place":
                x *= 0.5
                self.models[i] = value * 0.5, slope * 0.5
            case "combine":
                self.add(x - 3 * y, (value - 3 * other, slope - 3 * other_slope))
            case "copy":
                self.add(copy.copy(x), (value, slope))
            case "view":
                self.add(x.reshape((2, 2)).reshape(N)[:], (value, slope))
            case "turn":
                self.add(x[::-1], (value[::-1], slope[::-1]))
            case "detach":
                self.add(x.detach(), (value, np.zeros((N, N))))
            case "read":
                array = x.numpy()
                self.held.append((array, array.copy()))
            case "lift":
                lifted = ad.from_inner(x)
                self.held.append((lifted, value))
            case "share":
                values = np.arange(N) + 0.5
                self.add(ad.asarray(values, device=x.device), (values.copy(), np.zeros((N, N))))
                self.held.append((values, values.copy()))
            case "ask":
                assert x[i % N].item() == value[i % N]
                assert x.shape == (N,)

    def check(self) -> None:
        for tensor, (value, slope) in zip(self.tensors, self.models, strict=True):
            np.testing.assert_array_equal(tensor.numpy(), value)
            weights = np.arange(1.0, N + 1)
            expected = weights @ slope
            if tensor.is_tracked():
                grads = tensor.backward(weights, retain_graph=True)
                found = grads.get(self.leaf)
                np.testing.assert_array_equal(0 * expected if found is None else found.numpy(), expected)
            else:
                np.testing.assert_array_equal(expected, 0)
        for held, before in self.held:
            np.testing.assert_array_equal(held.numpy() if isinstance(held, ad.Tensor) else held, before)
        np.testing.assert_array_equal(self.leaf.numpy(), np.arange(1.0, N + 1))


STEPS = [
    "assign part", "assign a number", "add in place", "scale in place", "combine", "copy", "view", "turn", "detach",
    "read", "lift", "share", "ask",
]  # fmt: skip
histories = st.lists(
    st.tuples(st.sampled_from([*STEPS, *STEPS[:4]]), st.integers(0, 6), st.integers(0, 6), st.sampled_from(KEYS)),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize(
    "name",
    ["autodiff<numpy>", "autodiff[checkpointing=balanced]<numpy>", "autodiff<autodiff<numpy>>", "autodiff<reference>"],
)
@settings(max_examples=120)
@given(history=histories)
def test_any_history(name: str, history: Any) -> None:
    world = World(ad.device(name))
    for step in history:
        world.step(*step)
    world.check()


@settings(max_examples=120)
@given(history=histories)
def test_gradients_asked_for_on_the_way_change_nothing(history: Any) -> None:
    world = World(ad.device("autodiff<numpy>"))
    for step in history[:12]:
        world.step(*step)
        world.check()
