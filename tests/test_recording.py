"""Only leaves look at values: everything runs on backends that record, with the results that it has without.

The decorator sees every primitive and hides what the leaf is. The leaf has no values before its program runs. Not even
constants have any, unless it folds them, so that labels, indices and masks that a function makes are hidden, too.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from functions import FUNCTIONS, PLAIN, Draw
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import NUMPY, OnDemand, Recorder, on_recorder, on_recording
from test_package import PAGES, ROOT, blocks_of, need_missing

import adjoint as ad
from adjoint import errors
from adjoint import tree as trees
from adjoint.concrete import collected_checks
from adjoint.random_keys import Replay, replayed

# What needs values where there are none, with the reason; all else must not.
NEEDS_VALUES = {
    "operator.getitem": "a mask picks as many elements as are true",
    "bincount": "there are as many counts as the largest number needs, unless length= says how many",
    "nonzero": "there are as many places as are true",
}


def alike(found: Any, expected: Any) -> None:
    """Assert that two trees of results are the same but for the order of rounding."""
    for x, y in zip(trees.flatten(found)[0], trees.flatten(expected)[0], strict=True):
        x, y = (np.asarray(v.numpy() if isinstance(v, ad.Tensor) else v) for v in (x, y))
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


def compared(f: Any, args: Any, *, needs_values: bool = False) -> None:
    """Run f on NumPy, and on both backends that record."""
    replay = Replay()
    replay.keys = [(0, i) for i in range(100)]
    with np.errstate(all="ignore"):
        with replayed(replay):
            expected = f(*[ad.asarray(x, device=NUMPY) if isinstance(x, np.ndarray) else x for x in args])
        with replayed(replay):
            alike(on_recorder(f, *args), expected)
        if not needs_values:
            with replayed(replay):
                alike(on_recording(f, *args), expected)
        try:
            with replayed(replay):
                alike(on_recording(f, *args, fold=False), expected)
        except errors.TrackedError:
            assert needs_values


def derivatives(f: Any) -> Any:
    """The function with its pullback of ones and its pushforward of ones, where it has them."""

    def g(*xs: Any) -> Any:
        places = [i for i, x in enumerate(xs) if isinstance(x, ad.Tensor) and x.dtype.kind in "fc"]

        def of(*active: Any) -> Any:
            given = list(xs)
            for i, x in zip(places, active, strict=True):
                given[i] = x
            out = trees.flatten(f(*given))[0]
            return [x for x in out if isinstance(x, ad.Tensor) and x.dtype.kind in "fc"]

        if not places:
            return f(*xs)
        ys = tuple([xs[i] for i in places])
        out, pull = ad.vjp(of, *ys)
        return out, pull([ad.ones_like(x) for x in out]), ad.jvp(of, ys, tuple([ad.ones_like(y) for y in ys]))

    return g


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=4)
@given(data=st.data())
def test_every_function_and_its_derivatives_are_recorded(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    compared(f, args, needs_values=name in NEEDS_VALUES)
    compared(derivatives(f), args, needs_values=name in NEEDS_VALUES)


@pytest.mark.parametrize("name", PLAIN)
def test_every_function_without_derivatives_is_recorded(name: str) -> None:
    rng, f = np.random.default_rng(0), getattr(ad, name)
    for shape in ((3,), (2, 3)):
        x, y = (rng.integers(0, 3, shape) for _ in range(2))
        two = name.startswith(("bitwise_", "logical_", "equal", "not_", "less", "greater"))
        two = (two and name not in ("bitwise_invert", "logical_not")) or name == "isin"
        if name in NEEDS_VALUES:
            with pytest.raises(errors.TrackedError):
                on_recording(f, x)
            alike(on_recorder(f, x), f(ad.tensor(x, device=NUMPY)))
        else:
            compared(f, [x, y][: 1 + two])


X = np.array([0.7, 1.3, -0.4])
SQUARE = ad.custom_vjp(lambda x: x * x)
SQUARE.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))
CUBE = ad.custom_jvp(lambda x: x**3)
CUBE.defjvp(lambda primals, tangents: (primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]))


def total(x: Any) -> Any:
    return (ad.sin(x) * x).sum()


TRANSFORMS: dict[str, Any] = {
    "grad": lambda x: ad.grad(total)(x),
    "value_and_grad": lambda x: ad.value_and_grad(total)(x),
    "grad of grad": lambda x: ad.grad(lambda x: (ad.grad(total)(x) ** 2).sum())(x),
    "jacobian": lambda x: [ad.jacobian(lambda x: ad.exp(x) * x.sum(), mode=mode)(x) for mode in ("forward", "reverse")],
    "hessian": lambda x: ad.hessian(total)(x),
    "hvp": lambda x: ad.hvp(total, (x,), (x,)),
    "linearize": lambda x: ad.linearize(lambda x: ad.tanh(x) * 2, x)[1](x),
    "jet": lambda x: ad.jet(lambda x: ad.exp(ad.sin(x)), (x,), ([ad.ones_like(x), x],)),
    "vmap": lambda x: ad.vmap(ad.grad(lambda y: ad.sin(y) * y))(x),
    "grad of vmap": lambda x: ad.grad(lambda x: ad.vmap(lambda y: y * x.sum())(x).sum())(x),
    "checkpoint": lambda x: ad.grad(lambda x: ad.checkpoint(total)(x))(x),
    "scan": lambda x: ad.grad(lambda x: ad.scan(lambda c, y: (c * y, c + y), 1.0, x)[0])(x),
    "scan again": lambda x: ad.grad(lambda x: ad.scan(lambda c, y: (c * y, c), 1.0, x, checkpoint_every=2)[0])(x),
    "map": lambda x: ad.map(lambda y: y * y, x),
    "fori_loop": lambda x: ad.grad(lambda x: ad.fori_loop(0, 3, lambda i, c: c * x, x).sum())(x),
    "custom_vjp": lambda x: [ad.grad(lambda x: SQUARE(x).sum())(x), ad.vmap(ad.grad(SQUARE))(x), SQUARE(x)],
    "custom_jvp": lambda x: [ad.jvp(CUBE, (x,), (x,)), ad.grad(lambda x: CUBE(x).sum())(x), ad.vmap(CUBE)(x)],
    "jet of a rule": lambda x: ad.jet(CUBE, (x,), ([ad.ones_like(x), x],)),
    "custom and vmap": lambda x: ad.grad(lambda x: ad.vmap(SQUARE)(x).sum())(x),
    "stop_gradient": lambda x: ad.grad(lambda x: (x * ad.stop_gradient(x)).sum())(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform_is_recorded(name: str) -> None:
    compared(TRANSFORMS[name], [X])


# Control flow and solvers look at values, and say so where there are none.
LOOKING = {
    "cond": lambda x: ad.cond(x[0] > 0, ad.sin, ad.cos, x),
    "switch": lambda x: ad.switch(ad.argmax(x), [ad.sin, ad.cos, ad.exp], x),
    "while_loop": lambda x: ad.while_loop(lambda y: y.sum() < 100, lambda y: 2 * abs(y), x),
    "root": lambda x: ad.implicit.root(lambda y: y * y - 2 - x * x, x * 0 + 1),
    "linear_transpose": lambda x: ad.linear_transpose(lambda y: 2 * y, x)(x),
    "odeint": lambda x: ad.odeint(lambda y, t: -y, x, np.array([0.0, 1.0])),
    "odeint, Radau": lambda x: ad.odeint(lambda y, t: -y, x, np.array([0.0, 1.0]), method="Radau"),
    "odeint_event": lambda x: ad.odeint_event(lambda y, t: -y, x, (0.0, 1.0), event=lambda y, t: t - 0.5)[1],
}


@pytest.mark.parametrize("name", LOOKING)
def test_control_flow_and_solvers_look_at_values(name: str) -> None:
    f = LOOKING[name]
    alike(on_recorder(f, X), f(ad.tensor(X, device=NUMPY)))
    with pytest.raises(errors.TrackedError, match="recording"):
        on_recording(f, X, fold=False)


def test_levels_of_a_recording_end_with_it() -> None:
    kept: list[Any] = []
    on_recording(lambda x: kept.append(x) or x, X)
    with pytest.raises(errors.EndedError):
        kept[0] + 1


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: ad.one_hot(x, 3), np.array([0, 3])),
        (lambda x: ad.tensor([1.0, 2.0])[x], np.array([0, 2])),
        (lambda x: ad.nn.embedding(x, ad.ones((2, 2))), np.array([-1])),
        (lambda x: ad.segment_sum(ad.ones(2), x, 2), np.array([0, 2])),
        (lambda x: ad.random.bernoulli(x), np.array([0.5, 1.5])),
        (lambda x: ad.random.categorical(x), np.array([-np.inf, -np.inf])),
        (lambda x: ad.histogram(x, 3), np.array([0.0, np.nan])),
    ],
)
def test_checks_that_wait_for_values_raise_the_same_error(f: Any, x: Any) -> None:
    with pytest.raises(errors.AdjointError) as now:
        f(ad.tensor(x, device=NUMPY))
    with pytest.raises(errors.AdjointError) as later:
        on_recording(f, x)
    assert (type(later.value), str(later.value)) == (type(now.value), str(now.value))


def test_checks_are_left_out_where_nobody_collects_them() -> None:
    with collected_checks() as checks:
        ad.one_hot(ad.tensor([0, 1]), 3)
    assert checks == []


@pytest.mark.parametrize("backend", [Recorder(NUMPY), OnDemand()], ids=["decorator", "leaf"])
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow) if "ode" in page else page for page in PAGES]
)
def test_examples_on_pages_are_as_on_numpy(page: str, backend: Any, capsys: pytest.CaptureFixture[str]) -> None:
    first, *sections = [blocks_of(text) for text in (ROOT / page).read_text().split("\n## ")]
    if need_missing(first):
        pytest.skip("needs what its first lines import")
    scope: dict[str, object] = {"__name__": "__main__", "backend": backend}
    with ad.use_device(ad.Autodiff(backend)):
        for block in [*first, *itertools.chain(*[blocks for blocks in sections if not need_missing(blocks)])]:
            if "os.environ" in block:  # for a process of its own
                continue
            said = re.findall(r"^ *(?:ad\.debug\.)?print\(.*\) +# (.*)$", block, re.MULTILINE)
            exec(block.replace("ad.NumPy()", "backend") if page == "README.md" else block, scope)
            printed = capsys.readouterr().out.replace(backend.name, "numpy")
            assert printed.split() == " ".join(said).split()
