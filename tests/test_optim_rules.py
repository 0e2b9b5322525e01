"""Optimizers beyond the classical ones: ten steps are PyTorch's, Optax's or the paper's; shapes, dtypes, errors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from conftest import peer
from test_optim import X, Y, loss, model, trained

import adjoint as ad
from adjoint import errors

RNG = np.random.default_rng(5)
Array = np.ndarray[Any, Any]

TORCHS: list[tuple[str, dict[str, Any]]] = [
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.5, "weight_decay": 0.1, "beta2_decay": -0.5, "eps": (1e-3, 0.2), "d": 1.5}),
    ("Rprop", {"lr": 0.05}),
    ("Rprop", {"lr": 0.05, "etas": (0.3, 3.0), "step_sizes": (1e-2, 0.2)}),
    ("ASGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.2, "lambd": 0.3, "alpha": 0.5, "t0": 3}),
]
OPTAXS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("LAMB", {"lr": 0.1}, "lamb", {}),
    ("LAMB", {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}, "lamb",
     {"b1": 0.8, "b2": 0.95, "eps": 1e-3, "weight_decay": 0.1}),
    ("Adan", {"lr": 0.1}, "adan", {}),
    ("Adan", {"betas": (0.9, 0.8, 0.95), "eps": 1e-3, "eps_root": 1e-4, "weight_decay": 0.1}, "adan",
     {"b1": 0.9, "b2": 0.8, "b3": 0.95, "eps": 1e-3, "eps_root": 1e-4, "weight_decay": 0.1}),
    ("Muon", {"lr": 0.1}, "contrib.muon", {}),
    ("Muon", {"momentum": 0.8, "nesterov": False, "weight_decay": 0.1, "ns_coefficients": (2.0, -1.5, 0.5),
              "ns_steps": 3, "eps": 1e-3, "betas": (0.8, 0.9), "adam_weight_decay": 0.2}, "contrib.muon",
     {"beta": 0.8, "nesterov": False, "weight_decay": 0.1, "ns_coeffs": (2.0, -1.5, 0.5), "ns_steps": 3,
      "eps": 1e-3, "adam_b1": 0.8, "adam_b2": 0.9, "adam_weight_decay": 0.2}),
    ("ScheduleFreeSGD", {"lr": 0.3}, "contrib.schedule_free_sgd", {"weight_decay": 0.0}),
    ("ScheduleFreeSGD", {"lr": 0.3, "b1": 0.7, "weight_decay": 0.1, "weight_lr_power": 1.0},
     "contrib.schedule_free_sgd", {"b1": 0.7, "weight_decay": 0.1, "weight_lr_power": 1.0}),
    ("ScheduleFreeAdamW", {"lr": 0.1}, "contrib.schedule_free_adamw", {}),
    ("ScheduleFreeAdamW", {"lr": 0.1, "b1": 0.8, "b2": 0.9, "eps": 1e-3, "weight_decay": 0.1},
     "contrib.schedule_free_adamw", {"b1": 0.8, "b2": 0.9, "eps": 1e-3, "weight_decay": 0.1}),
]  # fmt: skip

# every shape a parameter may have, and what gradients are pulled from
STARTS = {"number": (), "vector": (3,), "wide": (2, 4), "tall": (5, 2), "kernel": (2, 3, 2), "row": (1, 3)}
STARTS["square"] = (3, 3)
PULLS = {name: (RNG.normal(size=shape), RNG.normal(size=shape)) for name, shape in STARTS.items()}


class Parts(ad.nn.Module):
    """Parameters by name."""

    of: dict[str, Any]


def gradient(name: str, x: Any, t: int, spoilt: float | None = None) -> Any:
    """Of a step, different at each, and a function of where it is taken; of the seventh, one number may be spoilt."""
    a, b = PULLS[name]
    found = np.asarray(a * np.cos(3 * t) + b * x - 0.1)
    if spoilt is not None and t == 7:
        found.flat[-1] = spoilt
    return found


def steps(
    optimizer: Any, count: int = 10, shapes: Any = STARTS, dtype: Any = np.float64, spoilt: float | None = None
) -> tuple[Any, Any]:
    """The model and the state after some steps."""
    made = Parts({name: ad.asarray(np.asarray(0.5 * PULLS[name][1], dtype)) for name in shapes})
    state = optimizer.init(made)
    for t in range(count):
        found = {name: gradient(name, x.numpy(), t, spoilt).astype(dtype) for name, x in made.of.items()}
        grads = {f"of.{name}": ad.asarray(g) for name, g in found.items()}
        made, state = optimizer.step(made, grads, state)
    return made, state


@pytest.mark.peers
@pytest.mark.parametrize(("name", "settings"), TORCHS)
def test_ten_steps_are_pytorchs(name: str, settings: dict[str, Any]) -> None:
    torch = peer("torch")
    torch.set_default_dtype(torch.float64)
    try:
        theirs = {n: torch.nn.Parameter(torch.tensor(0.5 * PULLS[n][1])) for n in STARTS}
        rule = getattr(torch.optim, name)(theirs.values(), **settings)
        for t in range(10):
            for n, p in theirs.items():
                p.grad = torch.as_tensor(gradient(n, p.detach().numpy(), t))
            rule.step()
    finally:
        torch.set_default_dtype(torch.float32)
    optimizer = getattr(ad.optim, name)(**settings)
    made, state = steps(optimizer)
    for n, p in theirs.items():
        np.testing.assert_allclose(made.of[n].numpy(), p.detach().numpy(), rtol=1e-10, atol=1e-12, err_msg=n)
    if name == "ASGD":
        average = optimizer.averaged(made, state)
        for n, p in theirs.items():
            np.testing.assert_allclose(average.of[n].numpy(), rule.state[p]["ax"].numpy(), rtol=1e-10, atol=1e-12)


def optaxs(name: str, settings: dict[str, Any], function: str, options: dict[str, Any], spoilt: Any = None) -> Any:
    """Optax's parameters after ten steps, and its averages where it has any."""
    jax, optax = peer("jax"), peer("optax")
    place, _, last = function.rpartition(".")
    rate = getattr(ad.optim, name)(**settings).lr
    # Optax's matrices have inputs first, ours have outputs first, as PyTorch's
    turned = lambda x: np.asarray(x).T if name == "Muon" and np.ndim(x) == 2 else np.asarray(x)
    with jax.enable_x64(True):
        rule = getattr(getattr(optax, place) if place else optax, last)(rate, **options)
        theirs = {n: jax.numpy.asarray(turned(0.5 * PULLS[n][1])) for n in STARTS}
        memory, update = rule.init(theirs), jax.jit(rule.update)
        for t in range(10):
            grads = {n: jax.numpy.asarray(turned(gradient(n, turned(x), t, spoilt))) for n, x in theirs.items()}
            updates, memory = update(grads, memory, theirs)
            theirs = optax.apply_updates(theirs, updates)
        free = name.startswith("ScheduleFree")
        averages = optax.contrib.schedule_free_eval_params(memory, theirs) if free else theirs
        return [{n: turned(x) for n, x in found.items()} for found in (theirs, averages)]


# The others take a second each to compile.
OPTAXS_TESTED = [case if case[0] in ("LAMB", "Adan") and not case[3] else pytest.param(*case, marks=pytest.mark.slow)
                 for case in OPTAXS]  # fmt: skip


@pytest.mark.peers
@pytest.mark.parametrize(("name", "settings", "function", "options"), OPTAXS_TESTED)
def test_ten_steps_are_optaxs(name: str, settings: dict[str, Any], function: str, options: dict[str, Any]) -> None:
    found, averages = optaxs(name, settings, function, options)
    optimizer = getattr(ad.optim, name)(**settings)
    made, state = steps(optimizer)
    for n, x in found.items():
        assert x.dtype == np.float64
        np.testing.assert_allclose(made.of[n].numpy(), x, rtol=1e-10, atol=1e-12, err_msg=n)
    if isinstance(optimizer, ad.optim.AveragingOptimizer):
        for n, x in averages.items():
            np.testing.assert_allclose(optimizer.averaged(made, state).of[n].numpy(), x, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("spoilt", [np.nan, np.inf])
@pytest.mark.parametrize(("name", "settings", "function", "options"), OPTAXS[::2])
def test_a_gradient_that_is_not_finite_spoils_what_it_spoils_in_optax(
    name: str, settings: dict[str, Any], function: str, options: dict[str, Any], spoilt: float
) -> None:
    found, _ = optaxs(name, settings, function, options, spoilt)
    with np.errstate(all="ignore"):
        made, _ = steps(getattr(ad.optim, name)(**settings), spoilt=spoilt)
    assert not np.isfinite(made.of["vector"].numpy()[-1])
    for n, x in found.items():
        np.testing.assert_allclose(made.of[n].numpy(), x, rtol=1e-10, atol=1e-12, err_msg=n)


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("name", ["Adafactor", "Rprop", "ASGD", "LAMB", "Adan", "Muon", "Shampoo", "SOAP",
                                  "ScheduleFreeSGD", "ScheduleFreeAdamW", "SGD", "RAdam", "NAdam", "Adam"])  # fmt: skip
def test_a_step_can_be_compiled(name: str) -> None:
    """The count of steps is an argument of the program, too, and rates are functions of it."""
    rates = {
        "SGD": ad.optim.cosine(0.1, 3),
        "RAdam": ad.optim.warmup(ad.optim.one_cycle(0.1, 4), 2),
        "NAdam": ad.optim.stairs(0.1, 2),
        "Adam": ad.optim.polynomial(0.1, 0.0, 3),
    }
    more = {"momentum": 0.9, "dampening": 0.1} if name == "SGD" else {}
    jax, optimizer = peer("jax"), getattr(ad.optim, name)(lr=rates.get(name, 0.1), **more)
    with jax.enable_x64(True), ad.use_device("jax"):
        made = Parts({n: ad.asarray(0.5 * PULLS[n][1]) for n in ("vector", "square")})

        def step(xs: Any, gradients: Any, state: Any) -> Any:
            after, state = optimizer.step(Parts(xs), {f"of.{n}": g for n, g in gradients.items()}, state)
            return after.of, state

        compiled = jax.jit(step)
        found = xs = made.of
        memory = state = optimizer.init(made)
        for t in range(4):
            gradients = {n: ad.asarray(gradient(n, PULLS[n][1], t)) for n in xs}
            found, memory = compiled(found, gradients, memory)
            xs, state = step(xs, gradients, state)
        for n, x in xs.items():
            np.testing.assert_allclose(found[n].numpy(), x.numpy(), rtol=1e-10)


# --- the papers' algorithms in NumPy -------------------------------------------------------------


def root(x: Array, power: float) -> Array:
    values, vectors = np.linalg.eigh(x)
    return vectors @ np.diag(values**power) @ vectors.T


def unfolded(x: Array, axis: int) -> Array:
    """The matricization: rows are along the axis."""
    return np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)


def multiplied(x: Array, matrix: Array, axis: int) -> Array:
    """The tensor-matrix product: `matrix` times each vector along the axis."""
    return np.moveaxis(np.tensordot(matrix, x, axes=([1], [axis])), 0, axis)


@pytest.mark.parametrize("most", [1200, 3])
def test_shampoo_is_the_papers(most: int) -> None:
    made, _ = steps(ad.optim.Shampoo(lr=0.3, eps=1e-2, weight_decay=0.1, max_size=most))
    for name, shape in STARTS.items():
        x = np.atleast_1d(0.5 * PULLS[name][1])
        kept = [1e-2 * np.eye(n) for n in x.shape]
        for t in range(10):
            g = new = gradient(name, x.reshape(shape), t).reshape(x.shape) + 0.1 * x
            for axis, n in enumerate(x.shape):
                whole = unfolded(g, axis) @ unfolded(g, axis).T
                kept[axis] = kept[axis] + (whole if n <= most else np.diag(np.diag(whole)))
                new = multiplied(new, root(kept[axis], -0.5 / x.ndim), axis)
            x = x - 0.3 * new
        np.testing.assert_allclose(made.of[name].numpy(), x.reshape(shape), rtol=1e-10, atol=1e-12, err_msg=name)


# of a first gradient of full rank along each axis: other null spaces have no eigenvectors of their own
FULL = {3: ["number", "vector", "square", "kernel", "wide", "tall"], 10000: ["number", "vector", "square", "kernel"]}


@pytest.mark.parametrize("most", [10000, 3])
def test_soap_is_the_papers(most: int) -> None:
    b1, b2, lr, eps, decay, every = 0.9, 0.8, 0.1, 1e-8, 0.2, 3
    made, _ = steps(
        ad.optim.SOAP(lr=lr, betas=(b1, b2), weight_decay=decay, precondition_frequency=every, max_size=most),
        shapes=FULL[most],
    )
    for name in FULL[most]:
        shape = STARTS[name]
        x = 0.5 * PULLS[name][1]
        axes = [k for k, n in enumerate(shape) if n <= most] if len(shape) > 1 else []
        m = v = np.zeros(shape)
        first = gradient(name, x, 0)
        p = {k: (1 - b2) * unfolded(first, k) @ unfolded(first, k).T for k in axes}
        q = {k: np.linalg.eigh(p[k])[1] for k in axes}
        for t in range(1, 10):
            g = turned = gradient(name, x, t)
            m = b1 * m + (1 - b1) * g
            mean = m
            for k in axes:
                turned, mean = multiplied(turned, q[k].T, k), multiplied(mean, q[k].T, k)
            v = b2 * v + (1 - b2) * turned**2
            new = mean / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + eps)
            for k in axes:
                new = multiplied(new, q[k], k)
                p[k] = b2 * p[k] + (1 - b2) * unfolded(g, k) @ unfolded(g, k).T
                if t % every == 0:
                    q[k] = np.linalg.qr(p[k] @ q[k])[0]
            x = x - lr * decay * x - lr * new
        np.testing.assert_allclose(made.of[name].numpy(), x, rtol=1e-9, atol=1e-10, err_msg=name)


def test_a_schedule_weighs_the_average() -> None:
    rate = ad.optim.warmup(ad.optim.constant(0.4), 4)  # 0 at the first step, which has no weight then
    optimizer = ad.optim.ScheduleFreeSGD(lr=rate, weight_decay=0.1)
    made, state = steps(optimizer, shapes=["wide"])
    x = y = z = 0.5 * PULLS["wide"][1]
    total = 0.0
    for t in range(10):
        z = z - rate(t) * (gradient("wide", y, t) + 0.1 * y)
        total += max(map(rate, range(t + 1))) ** 2
        c = rate(t) ** 2 / total if total else 0.0
        x = (1 - c) * x + c * z
        y = 0.9 * x + 0.1 * z
    np.testing.assert_allclose(made.of["wide"].numpy(), y, rtol=1e-12)
    np.testing.assert_allclose(optimizer.averaged(made, state).of["wide"].numpy(), x, rtol=1e-12)


# --- what holds for all --------------------------------------------------------------------------

ALL = [
    ad.optim.Adafactor(lr=0.1),
    ad.optim.Rprop(lr=0.02),
    ad.optim.ASGD(lr=0.05),
    ad.optim.LAMB(lr=0.03),
    ad.optim.Adan(lr=0.05),
    ad.optim.Muon(lr=0.05),
    ad.optim.Shampoo(lr=0.5),
    ad.optim.SOAP(lr=0.05, precondition_frequency=2),
    ad.optim.ScheduleFreeSGD(lr=0.3),
    ad.optim.ScheduleFreeAdamW(lr=0.1),
]
each = pytest.mark.parametrize("optimizer", ALL, ids=lambda rule: type(rule).__name__)


@each
def test_gradients_of_all_kinds_and_states_from_files_give_the_same(optimizer: Any) -> None:
    wanted = trained(optimizer, 3)
    leaves = model().require_grad()
    state = optimizer.init(leaves)
    for _ in range(3):
        leaves, state = optimizer.step(leaves, loss(leaves).backward(), state)
        assert all(x.is_require_grad() for x in leaves.named_parameters().values())
        state = pickle.loads(pickle.dumps(state))
        assert ad.tree.structure(state) == ad.tree.structure(optimizer.init(model()))
    for path, x in leaves.named_parameters().items():
        np.testing.assert_allclose(x.numpy(), wanted[path], rtol=1e-12)


@each
def test_ensembles_are_trained_at_once(optimizer: Any) -> None:
    models = [model().map(lambda x, k=k: x * (1 + k)) for k in range(3)]

    def run(made: Any) -> Any:
        state = optimizer.init(made)
        for _ in range(3):
            made, state = optimizer.step(made, ad.grad(loss)(made), state)
        return made

    together = ad.vmap(run)(ad.tree.map(lambda *xs: ad.stack(xs), *models))
    for k, one in enumerate(models):
        for path, x in run(one).named_parameters().items():
            np.testing.assert_allclose(together.at(path).get()[k].numpy(), x.numpy(), rtol=1e-8, atol=1e-12)


@each
def test_it_learns(optimizer: Any) -> None:
    """A line through points is found, to a part of its first error."""
    target = X @ np.array([[1.0], [-2.0], [0.5]])
    error = lambda m: ((m(ad.asarray(X)) - ad.asarray(target)) ** 2).mean()
    ad.random.seed(2)
    made = ad.nn.Linear(3, 1, dtype=ad.float64)
    before, state = error(made).item(), optimizer.init(made)
    for _ in range(150):
        made, state = optimizer.step(made, ad.grad(error)(made), state)
    assert error(made).item() < 0.02 * before
    if isinstance(optimizer, ad.optim.AveragingOptimizer):
        assert error(optimizer.averaged(made, state)).item() < 0.02 * before


def shapes_of(optimizer: Any) -> Any:
    return FULL[10000] if isinstance(optimizer, ad.optim.SOAP) else STARTS


@each
def test_single_precision_stays_and_is_near_double(optimizer: Any) -> None:
    wide, _ = steps(optimizer, 4, shapes_of(optimizer))
    found, state = steps(optimizer, 4, shapes_of(optimizer), np.float32)
    for name, x in found.of.items():
        assert x.dtype == ad.float32
        np.testing.assert_allclose(x.numpy(), wide.of[name].numpy(), rtol=1e-3, atol=1e-4)
    assert all(x.dtype == ad.float32 for slots in state.slots.values() for x in slots.values())


@pytest.mark.peers
@each
def test_on_pytorchs_leaf(optimizer: Any) -> None:
    peer("torch")
    wanted, _ = steps(optimizer, 4, shapes_of(optimizer))
    with ad.use_device("torch"):
        found, _ = steps(optimizer, 4, shapes_of(optimizer))
    for name, x in found.of.items():
        assert "torch" in str(x.device)
        np.testing.assert_allclose(x.numpy(), wanted.of[name].numpy(), rtol=1e-8, atol=1e-10)


@each
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 2), (1, 1)])
def test_shapes_without_elements_and_of_one(optimizer: Any, shape: tuple[int, ...]) -> None:
    made = Parts({"x": ad.ones(shape, dtype=ad.float64)})
    state = optimizer.init(made)
    for _ in range(3):
        made, state = optimizer.step(made, {"of.x": ad.ones(shape, dtype=ad.float64)}, state)
    assert made.of["x"].shape == shape
    assert np.isfinite(made.of["x"].numpy()).all()
    assert (made.of["x"].numpy() < 1).all()


@each
def test_gradients_of_zero_move_nothing_but_what_decays(optimizer: Any) -> None:
    made = Parts({name: ad.asarray(np.asarray(PULLS[name][0])) for name in STARTS})
    state = optimizer.init(made)
    after = made
    for _ in range(2):
        after, state = optimizer.step(after, {f"of.{n}": ad.zeros_like(x) for n, x in made.of.items()}, state)
    decay = getattr(optimizer, "weight_decay", 0) or getattr(optimizer, "lambd", 0)
    for name, x in after.of.items():
        np.testing.assert_allclose(x.numpy(), made.of[name].numpy(), rtol=2 * decay * optimizer.lr + 1e-12)


@pytest.mark.peers
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["Adafactor", "Rprop", "ASGD"])
def test_a_gradient_that_is_not_finite_spoils_what_it_spoils_in_pytorch(name: str, value: float) -> None:
    torch = peer("torch")
    starts = {"vector": np.array([1.0, -2.0, 3.0]), "matrix": np.arange(1.0, 7.0).reshape(2, 3)}
    theirs = {n: torch.nn.Parameter(torch.tensor(x)) for n, x in starts.items()}
    rule, optimizer = getattr(torch.optim, name)(theirs.values()), getattr(ad.optim, name)()
    made = Parts({n: ad.asarray(x) for n, x in starts.items()})
    state = optimizer.init(made)
    for t in range(2):
        grads = {n: np.cos(x + t) for n, x in starts.items()}
        for g in grads.values() if t == 1 else ():
            g[..., 1] = value
        for n, p in theirs.items():
            p.grad = torch.tensor(grads[n])
        rule.step()
        with np.errstate(all="ignore"):
            made, state = optimizer.step(made, {f"of.{n}": ad.asarray(g) for n, g in grads.items()}, state)
    for n, p in theirs.items():
        np.testing.assert_allclose(made.of[n].numpy(), p.detach().numpy(), rtol=1e-6, err_msg=n)


@pytest.mark.parametrize("name", ["Adafactor", "Muon", "Shampoo", "SOAP"])
def test_matrices_are_real(name: str) -> None:
    with pytest.raises(errors.DtypeError, match=f"{name}: of.x is of complex64, but only real parameters have rows"):
        getattr(ad.optim, name)().init(Parts({"x": ad.ones((2, 2), dtype=ad.complex64)}))


@pytest.mark.parametrize("name", ["LAMB", "Adan", "Rprop", "ASGD", "ScheduleFreeSGD", "ScheduleFreeAdamW"])
def test_complex_parameters_are_pairs(name: str) -> None:
    optimizer, x = getattr(ad.optim, name)(lr=0.1), np.array([1 + 2j, -0.3 + 0.1j])
    pair = lambda z: np.stack([z.real, z.imag], -1)
    made, pairs = Parts({"x": ad.asarray(x)}), Parts({"x": ad.asarray(pair(x))})
    state, other = optimizer.init(made), optimizer.init(pairs)
    for t in range(3):
        g = x * (1 + 0.3j) - t
        made, state = optimizer.step(made, {"of.x": ad.asarray(g)}, state)
        pairs, other = optimizer.step(pairs, {"of.x": ad.asarray(pair(g))}, other)
    np.testing.assert_allclose(pair(made.of["x"].numpy()), pairs.of["x"].numpy(), rtol=1e-12)
    if isinstance(optimizer, ad.optim.AveragingOptimizer):
        found = optimizer.averaged(made, state).of["x"].numpy()
        np.testing.assert_allclose(pair(found), optimizer.averaged(pairs, other).of["x"].numpy(), rtol=1e-12)


def test_averages_in_half_precision_move() -> None:
    """Though the squares of rates, which weigh them, are 0 there."""
    made, optimizer = Parts({"x": ad.ones(2, dtype=ad.float16)}), ad.optim.ScheduleFreeSGD(lr=1e-4)
    state = optimizer.init(made)
    for _ in range(3):
        made, state = optimizer.step(made, {"of.x": ad.full(2, 1000.0, dtype=ad.float16)}, state)
    found = optimizer.averaged(made, state).of["x"]
    assert found.dtype == ad.float16
    np.testing.assert_allclose(found.numpy(), 1 - 0.2, rtol=5e-3)  # of 0.9, 0.8 and 0.7


def test_averages_of_leaves_are_leaves_and_frozen_ones_stay() -> None:
    made = model().freeze("layers.0").require_grad()
    optimizer = ad.optim.ScheduleFreeSGD(lr=0.1)
    made, state = optimizer.step(made, loss(made).backward(), optimizer.init(made))
    average = optimizer.averaged(made, state)
    assert average.layers[0].weight is made.layers[0].weight
    assert average.layers[2].weight.is_require_grad()
    with pytest.raises(errors.ArgumentError, match="averaged: the state knows nothing of layers.0.weight"):
        optimizer.averaged(model(), state)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("Adafactor", {"lr": -1}, "Adafactor: lr is a number of zero or more, received -1"),
        ("Adafactor", {"beta2_decay": 0.8}, "Adafactor: -beta2_decay is a number of zero or more, received -0.8"),
        ("Adafactor", {"eps": (None, -1)}, "Adafactor: eps is a number of zero or more, received -1"),
        ("Adafactor", {"eps": 1e-3}, "Adafactor: eps are 2 numbers, received 0.001"),
        ("Adafactor", {"d": 0}, "Adafactor: d is a positive number, received 0"),
        ("LAMB", {"lr": "a"}, "LAMB: lr is a number of zero or more, received 'a'"),
        ("LAMB", {"betas": (0.9, 1.0)}, "LAMB: betas is less than 1, received 1.0"),
        ("Adan", {"betas": (0.9, 0.9)}, r"Adan: betas are 3 numbers, received \(0.9, 0.9\)"),
        ("Adan", {"eps": float("nan")}, "Adan: eps is a number of zero or more, received nan"),
        ("Muon", {"ns_steps": 2.5}, "Muon: ns_steps is an integer, received 2.5"),
        ("Muon", {"ns_steps": 2**63}, "Muon: ns_steps is less than 100, received 9223372036854775808"),
        ("Muon", {"ns_coefficients": (1, 2)}, r"Muon: ns_coefficients are 3 numbers, received \(1, 2\)"),
        ("Muon", {"momentum": 1}, "Muon: momentum is less than 1, received 1"),
        ("Shampoo", {"eps": 0}, "Shampoo: eps is a positive number, received 0"),
        ("SOAP", {"precondition_frequency": 0}, "SOAP: precondition_frequency is a positive integer, received 0"),
        ("Rprop", {"etas": (0.5, 0.9)}, "Rprop: etas are a number below 1 and one above, received"),
        ("ASGD", {"t0": -1}, "ASGD: t0 is a number of zero or more, received -1"),
        ("ScheduleFreeSGD", {"b1": 0}, "ScheduleFreeSGD: b1 is more than 0, as x is found from y"),
        ("ScheduleFreeAdamW", {"b2": 1.5}, "ScheduleFreeAdamW: b2 is less than 1, received 1.5"),
    ],
)
def test_wrong_settings(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        getattr(ad.optim, name)(**settings)


def test_a_setting_may_be_a_tensor() -> None:
    """So that a step can be differentiated by it."""
    after = lambda beta: loss_after(ad.optim.LAMB(lr=0.1, betas=(beta, 0.99)))
    slope = ad.grad(after)(0.8)
    np.testing.assert_allclose(slope, (after(0.8 + 1e-6) - after(0.8 - 1e-6)).item() / 2e-6, rtol=1e-5)


def loss_after(optimizer: Any) -> Any:
    made = model()
    state = optimizer.init(made)
    for _ in range(3):
        made, state = optimizer.step(made, ad.grad(loss)(made), state)
    return ((made(ad.asarray(X)) - ad.asarray(Y)) ** 2).mean()
