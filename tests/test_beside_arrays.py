"""NumPy arrays beside tensors of any device, in any place: they come to the tensors."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each
from functions import FUNCTIONS, Draw

import adjoint as ad
from adjoint import tree as trees
from adjoint.backend import Backend

Arguments = tuple[list[Any], dict[str, Any]]

V, W = np.array([0.5, 2.0, 1.5]), np.array([1.0, 0.25, 1.5])
N, M = np.array([3, 1, 2]), np.array([1, 2, 2])
X = np.array([[0.5, 0.25, 1.0], [2.0, 1.0, 0.125]])
LABELS = np.array([2, 0])
IMAGES = np.arange(48.0).reshape(1, 2, 4, 6) / 7

# what the calls that derivatives are tested with leave out: functions without derivatives, and further arguments
MORE: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("equal not_equal less less_equal greater greater_equal isclose allclose".split(), (V, W)),
    "array_equal": (V, W),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split(), (N, M)),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), (V > 1, W > 1)),
    "isin": (V, W),
    "digitize": (V, np.sort(W)),
    "searchsorted": (np.sort(V), W),
    "histogram": (V, np.array([0.0, 1.0, 2.0])),
    "nn.running_statistics": (X.T, W[:2], V[:2]),
    "nn.conv2d": (IMAGES, IMAGES[:, :, :2, :2], np.array([0.5])),
    "nn.conv_transpose2d": (IMAGES, np.moveaxis(IMAGES[:, :, :2, :2], 0, 1), np.array([0.5])),
    "nn.bilinear": (X, X, X.reshape(2, 3, 1) * V, np.array([0.5, 1.0])),
}
OPTIONS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("linalg.matrix_rank", (X,), {"rtol": np.array(0.1)}),
    ("linalg.lstsq", (X.T, V), {"rtol": np.array(0.1)}),
    ("histogram", (V, 3), {"weights": W}),
    ("quantile", (V, np.array(0.4)), {"weights": W, "method": "inverted_cdf"}),
    ("average", (V,), {"weights": W}),
    ("cov", (X,), {"fweights": N, "aweights": W}),
    ("bincount", (N,), {"weights": W}),
    ("trapezoid", (V,), {"dx": np.array(0.5)}),
    ("clip", (V, None, W), {}),
    ("nn.cross_entropy", (X, LABELS), {"weight": V}),
    ("nn.cross_entropy", (X, X / 4), {"weight": V}),
    ("nn.nll_loss", (X, LABELS), {"weight": V}),
    ("nn.multi_margin_loss", (X, LABELS), {"weight": V}),
    ("nn.multilabel_soft_margin_loss", (X, X / 4), {"weight": V}),
    ("nn.binary_cross_entropy", (X / 4, X / 4), {"weight": V}),
    ("nn.binary_cross_entropy_with_logits", (X, X / 4), {"weight": V, "pos_weight": W}),
    ("nn.mse_loss", (X, X / 4), {"weight": X}),
    ("nn.l1_loss", (X, X / 4), {"weight": X}),
    ("nn.huber_loss", (X, X / 4), {"weight": X}),
    ("nn.embedding_bag", (N, IMAGES[0, 0], np.array([0, 2])), {"mode": "sum", "per_sample_weights": V}),
    ("nn.instance_norm", (IMAGES,), {"running_mean": V[:2], "running_var": W[:2], "use_input_stats": False}),
]


class Seeded(Draw):
    """Draws without hypothesis: the same ones for a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]


def public(name: str) -> Any:
    return operator.attrgetter(name)(ad)


def called_with(f: Any, run: Callable[[], Any]) -> Arguments | None:
    """What a Python function is called with the first time while something runs."""
    code = getattr(f, "__code__", None)
    found: list[Arguments] = []

    def look(frame: Any, event: str, _: Any) -> None:
        if event != "call" or frame.f_code is not code or found:
            return
        names, count = code.co_varnames, code.co_argcount + code.co_kwonlyargcount
        given = [frame.f_locals[name] for name in names[:count]]
        rest = list(frame.f_locals[names[count]]) if code.co_flags & 4 else []  # *arrays
        named = dict(zip(names[code.co_argcount : count], given[code.co_argcount :], strict=True))
        found.append(([*given[: code.co_argcount], *rest], named))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(before)
    return found[0] if found else None


def calls() -> Iterator[tuple[str, Any, Arguments]]:
    """Calls of public functions: their names, functions, and all arguments, which closures of the tables hide."""
    for name in FUNCTIONS:
        for seed in range(2):
            f, *given = FUNCTIONS[name](Seeded(seed))
            given = [ad.asarray(np.array(x)) for x in given]  # some of the calls ask for the device
            known = None if name.startswith("operator.") else public(name)
            arguments = called_with(known, functools.partial(f, *given))
            if arguments is None or known.__name__ != name.rpartition(".")[2]:  # one of many with the same code
                known, arguments = f, (given, {})
            yield name, known, arguments
    for name, given in MORE.items():
        yield name, public(name), (list(given), {})
    for name, given, options in OPTIONS:
        yield name, public(name), (list(given), options)


def is_operand(x: Any) -> bool:
    return isinstance(x, (np.ndarray, ad.Tensor)) and x.dtype.kind in "biufc"


def outcome(f: Any, arguments: Arguments, tensors: set[int], device: Any) -> Any:
    """The call with some of the operands as tensors of a device, and NumPy arrays for the others."""
    leaves, structure = trees.flatten(arguments)
    for i, x in enumerate(leaves):
        if is_operand(x):
            values = x.numpy() if isinstance(x, ad.Tensor) else x
            leaves[i] = ad.asarray(np.array(values), device=device) if i in tensors else values
    given, options = trees.unflatten(structure, leaves)
    options = {name: device if isinstance(x, Backend) else x for name, x in options.items()}
    device.seed(3)
    return trees.flatten(f(*given, **options))[0]


@pytest.mark.parametrize("name", ["autodiff<reference>", pytest.param("autodiff<torch:cpu>", marks=pytest.mark.slow)])
def test_arrays_come_to_the_tensors(name: str) -> None:
    """What a function makes of them on the default device it makes on any other, whatever stands first."""
    if "torch" in name:
        peer("torch")
    device, count = ad.device(name), 0
    with Each() as each:
        for function, f, arguments in calls():
            operands = {i for i, x in enumerate(trees.flatten(arguments)[0]) if is_operand(x)}
            choices = {frozenset([i]) for i in operands} | {frozenset(operands - {i}) for i in operands}
            for tensors in choices - {frozenset()} if len(operands) > 1 else ():
                with each(f"{function}, tensors {sorted(tensors)} of {sorted(operands)}"):
                    wanted = outcome(f, arguments, set(tensors), ad.default_device())
                    found = outcome(f, arguments, set(tensors), device)
                    assert {x.device for x in found if isinstance(x, ad.Tensor)} <= {device}
                    for x, y in zip(found, wanted, strict=True):
                        if function == "linalg.svd_lowrank":  # signs of singular vectors are the library's
                            x, y = abs(x), abs(y)
                        both = [v.numpy() if isinstance(v, ad.Tensor) else v for v in (x, y)]
                        np.testing.assert_allclose(*both, rtol=1e-6, atol=1e-9)
                    count += 1
    assert count > 600
