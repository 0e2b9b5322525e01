"""Optimizers that ask for loss and gradients themselves: L-BFGS is PyTorch's, SAM is Optax's."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import peer
from test_optim import X, Y, loss, model

import adjoint as ad
from adjoint import errors


class Point(ad.nn.Module):
    """Two parameters, which are one vector to L-BFGS."""

    first: ad.Tensor[Any]
    others: ad.Tensor[Any]


def point(dtype: Any = np.float64) -> Any:
    return Point(ad.asarray(np.array(-1.2, dtype)), ad.asarray(np.array([1.0, -0.5, 0.8], dtype)))


def rosenbrock(xs: list[Any], steep: float = 100.0) -> Any:
    return sum(steep * (y - x * x) ** 2 + (1 - x) ** 2 for x, y in zip(xs, xs[1:], strict=False))


def valley(made: Any) -> Any:
    return rosenbrock([made.first, *made.others])


def values(made: Any) -> np.ndarray[Any, Any]:
    return np.append(made.first.numpy(), made.others.numpy())


def runs(optimizer: Any, f: Any, made: Any) -> Iterator[Any]:
    state = optimizer.init(made)
    while True:
        made, state = optimizer.step(made, ad.value_and_grad(f), state)
        state = pickle.loads(pickle.dumps(state))
        yield made


def after(steps: int, optimizer: Any, f: Any, made: Any) -> Any:
    return next(itertools.islice(runs(optimizer, f, made), steps - 1, None))


# Where there are dozens of iterations, rounding grows from one to the next: the valley is less steep.
SETTINGS: list[dict[str, Any]] = [
    {"max_iter": 1},  # where PyTorch's max_eval is 1, so that the line search tries one point
    {"max_iter": 1, "max_eval": 25, "tolerance_change": 1e-14},
    {"max_iter": 3, "history_size": 2},
    {"max_iter": 4, "max_eval": 40, "lr": 0.3, "history_size": 3},
    {"max_iter": 4, "max_eval": 9, "lr": 20.0},
    {"max_iter": 1, "lr": 1e-3, "line_search_fn": None},
    {"max_iter": 3, "lr": 1e-3, "line_search_fn": None},
    {},
]


@pytest.mark.peers
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_ten_steps_of_lbfgs_are_pytorchs(settings: dict[str, Any]) -> None:
    torch = peer("torch")
    steep = 100.0 if settings.get("max_iter") == 1 else 3.0
    theirs = [torch.nn.Parameter(torch.tensor(x.numpy())) for x in point().named_parameters().values()]
    asked = []

    def closure() -> Any:
        rule.zero_grad()
        found = rosenbrock([theirs[0], *theirs[1]], steep)
        found.backward()
        asked.append(found.item())
        return found

    rule = torch.optim.LBFGS(theirs, **{"line_search_fn": "strong_wolfe", **settings})
    seen: list[float] = []

    def observed(made: Any) -> Any:
        found, grads = ad.value_and_grad(lambda made: rosenbrock([made.first, *made.others], steep))(made)
        seen.append(found.item())
        return found, grads

    optimizer, made = ad.optim.LBFGS(**settings), point()
    state = optimizer.init(made)
    for _ in range(10):
        rule.step(closure)
        made, state = optimizer.step(made, observed, state)
        wanted = np.append(*[p.detach().numpy() for p in theirs])
        np.testing.assert_allclose(values(made), wanted, rtol=1e-10, atol=1e-12)
        assert len(seen) == len(asked)
    np.testing.assert_allclose(seen, asked, rtol=1e-7, atol=1e-13)


@pytest.mark.peers
def test_lbfgs_of_a_network_is_pytorchs_and_complex_parameters_are_pairs() -> None:
    torch = peer("torch")
    start = np.array([[1 + 2j, -0.5j], [0.3, 2 - 1j]])
    target = np.array([1.0 - 1j, 0.5j])
    theirs = torch.nn.Parameter(torch.tensor(start))
    rule = torch.optim.LBFGS([theirs], max_iter=2, line_search_fn="strong_wolfe")

    def closure() -> Any:
        rule.zero_grad()
        found = ((theirs @ theirs - torch.tensor(target)).abs() ** 2).sum()
        found.backward()
        return found

    class Matrix(ad.nn.Module):
        x: ad.Tensor[Any]

    far = lambda made: (abs(made.x @ made.x - ad.asarray(target)) ** 2).sum()
    for _, made in zip(range(10), runs(ad.optim.LBFGS(max_iter=2), far, Matrix(ad.asarray(start))), strict=False):
        rule.step(closure)
        np.testing.assert_allclose(made.x.numpy(), theirs.detach().numpy(), rtol=1e-8, atol=1e-10)


def test_lbfgs_finds_minima() -> None:
    found = after(4, ad.optim.LBFGS(tolerance_change=1e-14), valley, point())
    np.testing.assert_allclose(values(found), np.ones(4), atol=1e-7)
    assert loss(after(3, ad.optim.LBFGS(), loss, model())).item() < 0.5 * loss(model()).item()
    narrow = after(1, ad.optim.LBFGS(), valley, point(np.float32))
    assert narrow.others.dtype == ad.float32
    assert valley(narrow).item() < 0.1 * valley(point()).item()


def test_lbfgs_stays_at_a_minimum_and_goes_on_from_there() -> None:
    made = Point(ad.tensor(1.0, dtype=ad.float64), ad.ones(3, dtype=ad.float64))
    optimizer = ad.optim.LBFGS()
    state = optimizer.init(made)
    after, state = optimizer.step(made, ad.value_and_grad(valley), state)
    assert state.step == 1
    np.testing.assert_array_equal(values(after), np.ones(4))
    after, _ = optimizer.step(after, ad.value_and_grad(lambda made: (made.others**2).sum()), state)
    np.testing.assert_allclose(values(after), [1, 0, 0, 0], atol=1e-6)  # what has no part in the loss stays


@pytest.mark.peers
@pytest.mark.parametrize("search", ["strong_wolfe", None])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_lbfgs_where_the_loss_is_not_finite_is_pytorchs(search: str | None, value: float) -> None:
    """Beyond a wall the loss is not a number, or infinite, and so are its gradients."""
    torch = peer("torch")
    theirs = torch.nn.Parameter(torch.tensor([3.0, 1.0]).double())
    rule = torch.optim.LBFGS([theirs], max_iter=2, lr=8.0, line_search_fn=search)

    def closure() -> Any:
        rule.zero_grad()
        found = (theirs**2).sum()
        if theirs.detach().min() < -1:
            found = found * value
        found.backward()
        return found

    class Pair(ad.nn.Module):
        x: ad.Tensor[Any]

    def evaluate(made: Any) -> Any:
        factor = value if made.x.min().item() < -1 else 1.0
        found, grads = ad.value_and_grad(lambda made: (made.x**2).sum())(made)
        return found * factor, {"x": grads.x * factor}

    optimizer, made = ad.optim.LBFGS(max_iter=2, lr=8.0, line_search_fn=search), Pair(ad.asarray(np.array([3.0, 1.0])))
    state = optimizer.init(made)
    for _ in range(3):
        rule.step(closure)
        with np.errstate(all="ignore"):
            made, state = optimizer.step(made, evaluate, state)
        np.testing.assert_allclose(made.x.numpy(), theirs.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (ad.optim.SGD(lr=0.1, momentum=0.9), lambda optax: optax.sgd(0.1, momentum=0.9)),
        (ad.optim.Adam(lr=0.1), lambda optax: optax.adam(0.1)),
    ],
)
def test_ten_steps_of_sam_are_optaxs(ours: Any, theirs: Any) -> None:
    jax, optax = peer("jax"), peer("optax")
    contrib = optax.contrib
    for made, wanted in zip(
        runs(ad.optim.SAM(optimizer=ours, rho=0.3), loss, model()), optaxs(jax, optax, contrib, theirs), strict=False
    ):
        for path, x in made.named_parameters().items():
            np.testing.assert_allclose(x.numpy(), wanted[path], rtol=1e-10, atol=1e-12)


def optaxs(jax: Any, optax: Any, contrib: Any, theirs: Any) -> Iterator[dict[str, Any]]:
    def error(w: Any) -> Any:
        hidden = jax.numpy.tanh(X @ w["layers.0.weight"].T + w["layers.0.bias"])
        return ((hidden @ w["layers.2.weight"].T + w["layers.2.bias"] - Y) ** 2).mean()

    with jax.enable_x64(True):
        uphill = optax.chain(contrib.normalize(), optax.sgd(0.3))
        rule = contrib.sam(theirs(optax), uphill, opaque_mode=True)
        params = {path: jax.numpy.asarray(x.numpy()) for path, x in model().named_parameters().items()}
        memory = rule.init(params)

        @jax.jit
        def step(params: Any, memory: Any) -> Any:
            slope = lambda params, _: jax.grad(error)(params)
            updates, memory = rule.update(slope(params, 0), memory, params, grad_fn=slope)
            return optax.apply_updates(params, updates), memory

        for _ in range(10):
            params, memory = step(params, memory)
            yield {path: np.asarray(x) for path, x in params.items()}


def test_sam_is_two_steps_of_the_paper() -> None:
    """x + rho g / ||g|| and the gradient there, with leaves, with frozen parameters, and with gradients by path."""
    optimizer = ad.optim.SAM(optimizer=ad.optim.SGD(lr=ad.optim.exponential(0.1, 0.5)), rho=0.2)
    made = model().freeze("layers.0.bias").require_grad()
    state = optimizer.init(made)
    xs = {path: x.numpy() for path, x in made.named_parameters().items()}

    def slopes(xs: Any) -> Any:
        there = model().freeze("layers.0.bias")
        for path, x in xs.items():
            there = there.at(path).set(ad.asarray(x))
        return {path: g.numpy() for path, g in ad.grad(loss)(there).named_parameters().items()}

    trained = [path for path in xs if path != "layers.0.bias"]

    def leaves(made: Any) -> Any:
        found = loss(made)
        return found, found.backward()

    for t in range(3):
        g = slopes(xs)
        norm = np.sqrt(sum((g[path] ** 2).sum() for path in trained))
        above = slopes({path: x + 0.2 * g[path] / norm if path in trained else x for path, x in xs.items()})
        xs = {path: x - 0.1 * 0.5**t * above[path] if path in trained else x for path, x in xs.items()}
        made, state = optimizer.step(made, leaves, state)
        assert made.layers[2].weight.is_require_grad()
        for path, x in made.named_parameters().items():
            np.testing.assert_allclose(x.numpy(), xs[path], rtol=1e-10)


def test_sam_of_zero_gradients_mixed_precision_and_complex_numbers() -> None:
    made = Point(ad.tensor(1.0, dtype=ad.float64), ad.ones(3, dtype=ad.complex64))
    optimizer = ad.optim.SAM(optimizer=ad.optim.SGD(lr=1.0), rho=1.0)
    still = lambda made: (0 * made.first) + (abs(0 * made.others) ** 2).sum()
    after, state = optimizer.step(made, ad.value_and_grad(still), optimizer.init(made))
    np.testing.assert_array_equal(values(after), values(made))
    high = lambda made: made.first**2 / 2 + (abs(made.others) ** 2).sum() / 2
    after, state = optimizer.step(after, ad.value_and_grad(high), state)
    assert (after.first.dtype, after.others.dtype) == (ad.float64, ad.complex64)
    np.testing.assert_allclose(values(after), -0.5 * np.ones(4), rtol=1e-6)  # x - (x + x / 2)


def test_ensembles_of_sam_are_trained_at_once() -> None:
    optimizer, models = (
        ad.optim.SAM(optimizer=ad.optim.Adam(lr=0.1)),
        [model().map(lambda x, k=k: x * k) for k in (1, 2)],
    )
    run = lambda made: optimizer.step(made, ad.value_and_grad(loss), optimizer.init(made))[0]
    together = ad.vmap(run)(ad.tree.map(lambda *xs: ad.stack(xs), *models))
    for k, one in enumerate(models):
        for path, x in run(one).named_parameters().items():
            np.testing.assert_allclose(together.at(path).get()[k].numpy(), x.numpy(), rtol=1e-9)


def test_wrong_input() -> None:
    made = model()
    for optimizer in (ad.optim.LBFGS(), ad.optim.SAM(optimizer=ad.optim.SGD())):
        state, name = optimizer.init(made), type(optimizer).__name__
        for given in (ad.grad(loss)(made), ad.optim.GradientsParams({}), 3):
            with pytest.raises(errors.ArgumentTypeError, match=f"step: {name} takes a function of a model that gives"):
                optimizer.step(made, given, state)
        with pytest.raises(errors.ArgumentTypeError, match=r"as ad.value_and_grad\(loss\) does; it gave Tensor"):
            optimizer.step(made, loss, state)
        with pytest.raises(errors.ArgumentTypeError, match="step: grads are what backward"):
            optimizer.step(made, lambda made: (loss(made), 3), state)
    with pytest.raises(errors.ArgumentError, match="step: the state is not of this model"):
        ad.optim.LBFGS().step(made, ad.value_and_grad(loss), ad.optim.LBFGS().init(point()))
    with pytest.raises(errors.ArgumentError, match="step: the state is not of this model"):
        ad.optim.LBFGS().step(made, ad.value_and_grad(loss), ad.optim.SGD().init(made))
    with pytest.raises(errors.ArgumentError, match="LBFGS: the model has no parameters to train"):
        ad.optim.LBFGS().init(made.freeze())
    with pytest.raises(errors.ArgumentTypeError, match="SAM: optimizer is one that takes gradients, such as"):
        ad.optim.SAM(optimizer=ad.optim.LBFGS())
    for settings, message in (
        ({"lr": -1}, "LBFGS: lr is a number of zero or more, received -1"),
        ({"max_iter": 0}, "LBFGS: max_iter is a positive integer, received 0"),
        ({"max_eval": 0.5}, "LBFGS: max_eval is an integer, received 0.5"),
        ({"line_search_fn": "armijo"}, "LBFGS: line_search_fn is 'strong_wolfe' or None, received 'armijo'"),
        ({"tolerance_grad": None}, "LBFGS: tolerance_grad is a number of zero or more, received None"),
    ):
        with pytest.raises(errors.ArgumentError, match=message):
            ad.optim.LBFGS(**settings)
    with pytest.raises(errors.ArgumentError, match="SAM: rho is a number of zero or more, received -1"):
        ad.optim.SAM(optimizer=ad.optim.SGD(), rho=-1)
