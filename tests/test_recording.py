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
BATCHED = ad.custom_batching(lambda x: ad.sin(x) * x)
BATCHED.def_batching(lambda size, batched, x: (ad.sin(x) * x, True))


def CONVERTED(x: Any) -> Any:
    f, *kept = ad.closure_convert(lambda y: ad.sin(y) * x, x)
    return f(x, *kept[0])


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
    "linear_transpose": lambda x: ad.linear_transpose(lambda y: 2 * y, x)(x),
    "vjp": lambda x: ad.vjp(lambda x: ad.sin(x) * x, x)[1](x),
    "closure_convert": lambda x: ad.grad(lambda x: CONVERTED(x).sum())(x),
    "apply_where": lambda x: ad.grad(lambda x: ad.apply_where(x > 0, x, ad.sqrt, fill_value=0.0).sum())(x),
    "apply_along_axis": lambda x: ad.apply_along_axis(lambda v: v * v.sum(), 0, ad.outer(x, x)),
    "custom_batching": lambda x: ad.vmap(ad.grad(BATCHED))(x),
    "checkpoint_name": lambda x: ad.grad(ad.checkpoint(lambda x: ad.checkpoint_name(ad.sin(x), "a").sum()))(x),
    "backward": lambda x: ad.grad(lambda x: (((x**3).sum().backward()[x]) ** 2).sum())(x),
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


# --- modules, optimizers, distributions ---

N, RNG = ad.nn, np.random.default_rng(5)
ROWS, SERIES, IMAGES = (RNG.normal(size=shape) for shape in ((4, 3), (2, 5, 4), (2, 3, 5, 5)))
MODULES: dict[str, Any] = {
    "Linear": (lambda: N.Linear(3, 2), ROWS),
    "Bilinear": (lambda: N.Bilinear(3, 3, 2), ROWS, ROWS),
    "Conv2d": (lambda: N.Conv2d(3, 2, 2), IMAGES),
    "ConvTranspose2d": (lambda: N.ConvTranspose2d(3, 2, 2), IMAGES),
    "BatchNorm": (lambda: N.BatchNorm(3), IMAGES),
    "LayerNorm": (lambda: N.LayerNorm(3), ROWS),
    "RMSNorm": (lambda: N.RMSNorm(3), ROWS),
    "GroupNorm": (lambda: N.GroupNorm(1, 3), IMAGES),
    "InstanceNorm": (lambda: N.InstanceNorm(3), IMAGES),
    "Embedding": (lambda: N.Embedding(5, 3), np.array([0, 3, 1])),
    "PositionalEncoding": (lambda: N.PositionalEncoding(4), SERIES),
    "PReLU": (lambda: N.PReLU(), ROWS),
    "RReLU": (lambda: N.RReLU(), ROWS),
    "Dropout": (lambda: N.Dropout(0.5), ROWS),
    "FeatureAlphaDropout": (lambda: N.FeatureAlphaDropout(0.5), IMAGES),
    "Dropout2d": (lambda: N.Dropout2d(0.5), IMAGES),
    "FractionalMaxPool2d": (lambda: N.FractionalMaxPool2d(2, 2), IMAGES),
    "AlphaDropout": (lambda: N.AlphaDropout(0.5), ROWS),
    "Flatten": (lambda: N.Flatten(), IMAGES),
    "Identity": (lambda: N.Identity(), ROWS),
    "Lambda": (lambda: N.Lambda(ad.sin), ROWS),
    "Residual": (lambda: N.Residual(N.Linear(3, 3)), ROWS),
    "Sequential": (lambda: N.Sequential(N.Linear(3, 2), N.ReLU()), ROWS),
    "RNN": (lambda: N.RNN(4, 3), SERIES),
    "LSTM": (lambda: N.LSTM(4, 3), SERIES),
    "GRU": (lambda: N.GRU(4, 3), SERIES),
    "RNNCell": (lambda: N.RNNCell(3, 2), ROWS),
    "LSTMCell": (lambda: N.LSTMCell(3, 2), ROWS),
    "GRUCell": (lambda: N.GRUCell(3, 2), ROWS),
    "PositionalEmbedding": (lambda: N.PositionalEmbedding(5, 4), SERIES),
    "MultiHeadAttention": (lambda: N.MultiHeadAttention(4, 2), SERIES),
    "TransformerEncoderLayer": (lambda: N.TransformerEncoderLayer(4, 2, 8), SERIES),
    "TransformerDecoderLayer": (lambda: N.TransformerDecoderLayer(4, 2, 8), SERIES, SERIES),
    "TransformerEncoder": (lambda: N.TransformerEncoder(4, 2, 1, 8), SERIES),
    "TransformerDecoder": (lambda: N.TransformerDecoder(4, 2, 1, 8), SERIES, SERIES),
    "Transformer": (lambda: N.Transformer(4, 2, 1, 1, 8), SERIES, SERIES),
    "DeformConv2d": (lambda: N.DeformConv2d(3, 2, 2), IMAGES, RNG.normal(size=(2, 8, 4, 4))),
    "EmbeddingBag": (lambda: N.EmbeddingBag(5, 3), np.array([[0, 3], [1, 1]])),
    "Unflatten": (lambda: N.Unflatten(1, (3, 1)), ROWS),
    "LowRank": (lambda: N.LowRank(N.Linear(3, 2), 1), ROWS),
    "AdaptiveLogSoftmaxWithLoss": (lambda: N.AdaptiveLogSoftmaxWithLoss(3, 4, [2], 2.0), ROWS, np.array([0, 3, 1, 2])),
}


def test_every_module_is_in_a_case() -> None:
    """But for functions as modules, which have cases of their own."""
    kinds = [getattr(N, name) for name in N.__all__]
    kinds = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, N.Module)]
    own = {kind.__name__ for kind in kinds if " as a module, with its settings." not in kind.__doc__}
    assert {re.sub("[13]d$", "2d", name) for name in own} <= {*MODULES, "Module"}


def on(model: Any, like: Any) -> Any:
    """The module with its arrays where another tensor is."""
    return trees.map(lambda p: ad.asarray(p, device=like.device), model)


def of_constants(model: Any) -> Any:
    """The module with NumPy's arrays, which a compiled function has as constants."""
    return trees.map(lambda p: p.numpy(), model)


def sum_of_squares(out: Any) -> Any:
    return sum((y * y).sum() for y in trees.leaves(out) if isinstance(y, ad.Tensor) and y.dtype.kind == "f")


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_recorded(name: str) -> None:
    make, *args = MODULES[name]
    model = of_constants(make())

    def slopes(*xs: Any) -> Any:
        return trees.leaves(ad.grad(lambda model: sum_of_squares(model(*xs)))(on(model, xs[0])))

    compared(slopes if trees.leaves(model) else lambda *xs: trees.leaves(model(*xs)), args)


LINEAR = of_constants(N.Linear(3, 2, dtype=ad.float64))
OPTIMIZERS = [kind for kind in map(ad.optim.__dict__.get, ad.optim.__all__) if isinstance(kind, type)]
OPTIMIZERS = [kind for kind in OPTIMIZERS if issubclass(kind, ad.optim.Optimizer) and "Optimizer" not in kind.__name__]
OPTIMIZERS = [kind for kind in OPTIMIZERS if not issubclass(kind, ad.optim.ClosureOptimizer)]
SETTINGS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "dampening": 0.3},
    "Adam": {"lr": 0.1, "amsgrad": True},
    "RMSprop": {"lr": 0.1, "centered": True},
    "Averaged": {"optimizer": ad.optim.Adam(lr=0.1), "start": 2, "every": 2},
}
RATES = {
    "cosine": ad.optim.cosine(0.1, 10),
    "warmup": ad.optim.warmup(ad.optim.polynomial(0.1, 0.0, 6, 2.0), 2),
    "one_cycle": ad.optim.one_cycle(0.1, 10),
    "stairs": ad.optim.joined([ad.optim.stairs(0.1, 2), ad.optim.noam(4, 3)], [2]),
}


def trained(optimizer: Any, x: Any) -> Any:
    """The parameters after seven steps of a loop, in which the number of steps done may have no value."""
    model = on(LINEAR, x)

    def step(carry: Any, _: Any) -> Any:
        model, state = carry
        return optimizer.step(model, ad.grad(lambda model: (model(x) ** 2).sum())(model), state), None

    return trees.leaves(ad.scan(step, (model, optimizer.init(model)), None, length=7)[0])


@pytest.mark.parametrize("kind", OPTIMIZERS, ids=lambda kind: kind.__name__)
def test_optimizers_are_recorded(kind: Any) -> None:
    chooses = kind is ad.optim.SOAP  # by ad.cond, when to compute eigenvectors
    settings = SETTINGS.get(kind.__name__, {"lr": 0.1})
    compared(lambda x: trained(kind(**settings), x), [ROWS], needs_values=chooses)


def test_a_second_gradient_is_recorded() -> None:
    def moved(x: Any) -> Any:
        model, optimizer = on(LINEAR, x), ad.optim.SAM(optimizer=ad.optim.Adam(lr=0.1))
        loss = ad.value_and_grad(lambda model: (model(x) ** 2).sum())
        return trees.leaves(optimizer.step(model, loss, optimizer.init(model)))

    compared(moved, [ROWS])


@pytest.mark.parametrize("name", RATES)
def test_rates_are_recorded(name: str) -> None:
    compared(lambda x: trained(ad.optim.SGD(lr=RATES[name]), x), [ROWS])


SEVERAL: dict[str, Any] = {
    "dirichlet": ([0.2, 0.3, 0.5], [2.0, 1.5, 3.0]),
    "multinomial": ([1.0, 0.0, 2.0], 3.0, [0.2, 0.3, 0.5]),
    "dirichlet_multinomial": ([1.0, 0.0, 2.0], [2.0, 1.5, 3.0], 3.0),
    "multivariate_normal": ([1.0, 2.0], [0.5, 0.0], [[2.0, 0.3], [0.3, 1.0]]),
    "multivariate_t": ([1.0, 2.0], [0.5, 0.0], [[2.0, 0.3], [0.3, 1.0]], 2.5),
    "matrix_normal": ([[1.0, 2.0]], 0.5, [[1.5]], [[2.0, 0.3], [0.3, 1.0]]),
    "wishart": ([[2.0, 0.3], [0.3, 1.0]], 2.5, [[1.0, 0.2], [0.2, 1.0]]),
    "invwishart": ([[2.0, 0.3], [0.3, 1.0]], 2.5, [[1.0, 0.2], [0.2, 1.0]]),
}
METHODS = "pdf logpdf pmf logpmf cdf sf logcdf logsf ppf isf".split()


@pytest.mark.slow  # six seconds
@pytest.mark.parametrize("name", ad.stats.__all__)
def test_distributions_are_recorded(name: str) -> None:
    distribution = getattr(ad.stats, name)
    if name in SEVERAL:
        args = [np.array(x) for x in SEVERAL[name]]
        f = getattr(distribution, "logpmf" if "multinomial" in name else "logpdf")
        compared(f, args)
        compared(lambda *args: ad.grad(f, argnums=len(args) - 1)(*args), args)
        return
    shapes = [np.full(3, 0.45) if name in ("bernoulli", "geom") else np.array([2.0, 2.5, 3.0])]
    shapes *= len(distribution.shapes)
    found = [method for method in METHODS if hasattr(distribution, method)]
    assert found
    for method in found:
        f = getattr(distribution, method)
        x = np.array([1.0, 2.0, 0.0]) if "pmf" in method else np.array([0.3, 0.6, 0.8])
        compared(f, [x, *shapes])
        compared(lambda x, *shapes, f=f: ad.grad(lambda x: f(x, *shapes).sum())(x), [x, *shapes])


def test_functions_that_need_values_say_who_asks() -> None:
    for name, f, x in [
        ("bincount", lambda x: ad.bincount(x), np.array([0, 1])),
        ("delete", lambda x: ad.delete(ad.ones(3), x), np.array([0, 1])),
    ]:
        with pytest.raises(
            errors.TrackedError, match=f"^{name} asks for the values of a tensor of shape .* on recording"
        ):
            on_recording(f, x)


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


@pytest.mark.slow
@pytest.mark.parametrize("backend", [Recorder(NUMPY), OnDemand()], ids=["decorator", "leaf"])
@pytest.mark.parametrize("page", PAGES)
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
