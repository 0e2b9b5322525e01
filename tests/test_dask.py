"""Dask as a backend: laziness, chunks, one graph for forward and backward, and a cluster of processes."""

from __future__ import annotations

import os
import pickle
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies
import numpy as np
import processes
import pytest
from calls import DIFFERENTIABLE, arrays_of, call, is_finite, is_float, rounds
from cases import CASES
from conftest import peer
from functions import FUNCTIONS, Draw

import adjoint as ad
from adjoint import errors

dask = peer("dask")
da = pytest.importorskip("dask.array")
Callback = pytest.importorskip("dask.callbacks").Callback
distributed = peer("distributed")

SMALL = ad.Dask(chunks=2)
LEVEL = ad.Autodiff(SMALL)
ROWS = np.arange(20.0).reshape(5, 4) / 8  # whose sums are exact


@pytest.fixture
def here() -> Iterator[None]:
    """Tasks run in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def lazy(here: None, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Computing is an error, unless the list says otherwise."""
    allowed: list[int] = []
    computed = ad.Dask.computed

    def guarded(self: ad.Dask, arrays: Any) -> Any:
        assert allowed, "values were computed"
        return computed(self, arrays)

    monkeypatch.setattr(ad.Dask, "computed", guarded)
    return allowed


# --- arrays come in and out ---


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2**40, 0), (0, 2**40, 5)])
def test_nothing_is_not_divided(shape: tuple[int, ...]) -> None:
    for place in ("autodiff<dask>", "autodiff<dask[chunks=2]>"):
        x = ad.zeros(shape, device=place)
        assert x.shape == (x + 1).shape == shape
        assert ad.sum(x).item() == 0.0


def test_names_and_configurations() -> None:
    assert ad.device("dask") is ad.Dask()
    assert ad.device("autodiff<dask[chunks=2]>") is LEVEL
    assert ad.device("dask[chunks=64mib]").divided((10**8,), np.dtype("f8"))[0][0] == 2**23
    assert pickle.loads(pickle.dumps(SMALL)) is SMALL
    for chunks in (0, -1, True, 1.5, "many", None):
        with pytest.raises(errors.DeviceError, match="chunks are"):
            ad.Dask(chunks)  # type: ignore[arg-type]


def test_dask_arrays_come_in_as_they_are(lazy: list[int]) -> None:
    theirs = da.from_array(ROWS, chunks=(3, 2))
    x = ad.asarray(theirs, device=LEVEL)
    assert (x.shape, x.dtype, x.device) == ((5, 4), ad.float64, LEVEL)
    assert x._array.value.chunks == ((3, 2), (2, 2))
    theirs[0] = 7.0  # an assignment to their object
    lazy.append(1)
    np.testing.assert_array_equal(x.numpy(), ROWS)


def test_dask_arrays_that_are_refused(lazy: list[int]) -> None:
    x = da.from_array(ROWS, chunks=2)
    with pytest.raises(errors.ShapeError, match="compute_chunk_sizes"):
        ad.asarray(x[x > 1], device=SMALL)
    sparse = x.map_blocks(pytest.importorskip("scipy.sparse").csr_array)
    for array, message in (
        (x.astype(object), "object"), (x.astype("M8[s]"), "datetime64"), (x.astype("longdouble"), "float128"),
        (da.ma.masked_greater(x, 1), "masked arrays"), (sparse, "chunks are scipy"),
    ):  # fmt: skip
        with pytest.raises(errors.DtypeError, match=message):
            ad.asarray(array, device=SMALL)


def test_bytes_in_another_order_are_turned_round(lazy: list[int]) -> None:
    x = ad.asarray(da.from_array(ROWS.astype(">f8"), chunks=2), device=SMALL)
    assert x.dtype is ad.float64
    lazy.append(1)
    np.testing.assert_array_equal((x * 1).numpy(), ROWS)


@pytest.mark.parametrize("f", [
    lambda x: (x.max(axis=0) ** 2).sum(), lambda x: ad.argmax(x, axis=0), lambda x: ad.sort(x, axis=0),
    lambda x: ad.special.logsumexp(x, axis=0), lambda x: ad.linalg.norm(x, ord=np.inf), lambda x: x[[4, 0]],
])  # fmt: skip
def test_chunks_without_elements(f: Any, lazy: list[int]) -> None:
    """A filter leaves some of them."""
    given = da.from_array(ROWS, chunks=((0, 2, 0, 3), (4,)))
    x = ad.asarray(given, device=LEVEL).require_grad()
    out = f(x)
    found = [out, out.sum().backward()[x]] if out.is_tracked() else [out]
    lazy.append(1)
    y = ad.tensor(ROWS, device="autodiff<numpy>").require_grad()
    out = f(y)
    for values, expected in zip(
        ad.compute(found), [out, *out.sum().backward().values()] if out.is_tracked() else [out], strict=True
    ):
        np.testing.assert_allclose(values, expected.numpy(), rtol=1e-12)
    nothing = ad.asarray(da.zeros((0, 4), chunks=((0, 0), 4)), device=SMALL)
    assert nothing.sum().item() == 0


def test_what_people_see_is_not_computed(lazy: list[int]) -> None:
    x = ad.ones((5, 4), device=LEVEL).require_grad()
    assert repr(x) == (
        "Tensor(shape=(5, 4), chunks=((2, 2, 1), (2, 2)), dtype=float32, device=autodiff<dask[chunks=2]>, leaf)"
    )
    assert "chunks=((2, 2, 1), (2, 2))" in x._repr_html_()
    assert repr(ad.zeros(20, device=SMALL)).startswith("Tensor(shape=(20,), chunks=((2, ..., 2),)")
    assert repr(ad.tensor(x.detach())).endswith("device=autodiff<dask[chunks=2]>)")


def test_values_that_python_needs_are_computed(here: None) -> None:
    x = ad.asarray(ROWS, device=SMALL)
    assert x.sum().item() == ROWS.sum()
    assert bool((x >= 0).all())
    np.testing.assert_array_equal(x[x > 1].numpy(), ROWS[ROWS > 1])
    np.testing.assert_array_equal(ad.nonzero(x)[0].numpy(), np.nonzero(ROWS)[0])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).numpy(), ROWS)


def test_one_run_computes_a_tree(here: None) -> None:
    runs: list[int] = []

    def counted(block: Any) -> Any:
        runs.append(1)
        return block

    x = ad.asarray(da.from_array(ROWS, chunks=(5, 4)).map_blocks(counted, meta=np.empty((0, 0))), device=LEVEL)
    w = ad.ones(4, dtype=ad.float64, device=LEVEL).require_grad()
    loss = (x @ w).sum()
    grads = loss.backward()
    out = ad.compute({"loss": loss, "grads": grads, "more": (ad.tensor([1.0]), "text", w)})
    assert len(runs) == 1
    assert isinstance(out["loss"], np.ndarray)
    np.testing.assert_allclose(out["loss"], ROWS.sum())
    np.testing.assert_allclose(out["grads"][w].numpy(), ROWS.sum(axis=0))
    assert len(runs) == 1
    assert out["more"][1] == "text"
    assert [type(v) for v in (out["more"][0], out["more"][2])] == [np.ndarray] * 2
    with pytest.raises(ValueError, match="read-only"):
        out["more"][2][0] = 1.0
    np.testing.assert_allclose(loss.compute(), ROWS.sum())
    assert len(runs) == 2


def test_persist_keeps_values_and_tracking(here: None) -> None:
    w = ad.asarray(ROWS, device=LEVEL).require_grad()
    for _ in range(5):
        g = (w * w).sum().backward()
        w = w.with_value(ad.persist(w.inner() - 0.25 * g[w]))
    assert len(w._array.value.dask) == 6  # a task for each chunk: no graph that grows
    np.testing.assert_allclose(w.numpy(), ROWS / 2**5)
    y = ad.persist(w * 3)
    assert y.is_tracked()
    np.testing.assert_allclose(y.sum().backward()[w].numpy(), np.full((5, 4), 3.0))
    grads = ad.persist((w * w).sum().backward())
    np.testing.assert_allclose(grads[w].numpy(), ROWS / 2**4)
    assert ad.persist([1, ad.tensor(2.0)])[0] == 1


def test_inside_of_transforms(lazy: list[int]) -> None:
    x = ad.asarray(ROWS, device=SMALL)
    seen = []

    def f(row: ad.Tensor[Any]) -> ad.Tensor[Any]:
        seen.append(repr(row))
        return ad.sin(row * row).sum()

    found = ad.vmap(f)(x), ad.vmap(ad.grad(f))(x), ad.hessian(f)(x[0]), ad.jvp(f, (x[1],), (x[2],))[1]
    assert all("chunks=" in text for text in seen)
    with pytest.raises(errors.TrackedError, match="persist.*differ between"):
        ad.vmap(lambda row: ad.persist(row))(x)
    lazy.append(1)
    for y, expected in zip(ad.compute(found), (
        ad.vmap(f)(ROWS), ad.vmap(ad.grad(f))(ROWS), ad.hessian(f)(ROWS[0]), ad.jvp(f, (ROWS[1],), (ROWS[2],))[1]
    ), strict=True):  # fmt: skip
        np.testing.assert_allclose(y, expected, rtol=1e-12)


def test_a_mask_is_assigned_to_without_computing(lazy: list[int]) -> None:
    found = []
    for device in (LEVEL, ad.Autodiff(ad.NumPy())):
        x = ad.asarray(ROWS, device=device).require_grad()
        v = ad.asarray(np.arange(4.0), device=device).require_grad()
        y = x * x
        y[y > 1] = 0.5
        y[y[:, 1] > 0.2] = v
        gradient = (y * y).sum().backward()
        found += [y, gradient[x], gradient[v]]
    lazy.append(1)
    for out, expected in zip(found[:3], found[3:], strict=True):
        np.testing.assert_array_equal(out.numpy(), expected.numpy())


# --- chunks ---


def blocks(x: ad.Tensor[Any]) -> Any:
    return x.native().chunks


def test_primitives_keep_chunks(lazy: list[int]) -> None:
    x = ad.asarray(da.zeros((6, 5, 4), chunks=(2, 5, 4)), device=SMALL)
    image = ad.asarray(da.zeros((6, 2, 4, 4), chunks=(2, 2, 4, 4)), device=SMALL)
    for out in (
        ad.exp(x), x + x[:, :, :1], x.sum(axis=1), ad.nn.softmax(x, -1), ad.sort(x), ad.fft.fft(x), x @ x.mT,
        ad.cumulative_sum(x, axis=2), ad.linalg.svdvals(x), ad.nn.conv2d(image, ad.zeros((3, 2, 2, 2), device=SMALL)),
        ad.nn.max_pool2d(image, 2), ad.topk(x, 2)[0], ad.flip(x, axis=1), x[:, 1], ad.permute_dims(x, (0, 2, 1)),
        ad.nn.scaled_dot_product_attention(x, x, x), ad.tril(x), ad.concat([x, x], axis=1), ad.argmax(x, axis=1),
        ad.take(x, ad.tensor([1, 1], device=SMALL), axis=1), ad.nn.layer_norm(x, (4,)),
    ):  # fmt: skip
        assert blocks(out)[0] == (2, 2, 2)


def test_moving_to_other_chunks_computes_nothing(lazy: list[int]) -> None:
    x = ad.asarray(da.from_array(ROWS, chunks=(3, 4)), device="autodiff<dask>").require_grad()
    moved = (x * x).to_device(SMALL)
    assert moved.device is LEVEL
    assert blocks(moved.detach()) == ((2, 2, 1), (2, 2))
    back = moved.to_device(ad.Dask())
    assert blocks(back.detach()) == ((2, 2, 1), (2, 2))
    gradient = (back * moved.detach().to_device(ad.Dask())).sum().backward()[x]
    lazy.append(1)
    np.testing.assert_array_equal(gradient.numpy(), 2 * ROWS**3)


def test_what_is_broadcast_takes_the_chunks_of_what_it_meets(lazy: list[int]) -> None:
    auto = ad.Dask()
    x = ad.asarray(da.zeros((6, 4), chunks=(3, 4)), device=auto)
    for constant in (ad.ones((6, 4), device=auto), ad.broadcast_to(ad.tensor(2.0, device=auto) * 2, (6, 4))):
        assert blocks(constant * 2 + x) == ((3, 3), (4,))
        assert blocks(x.mT @ constant) == ((4,), (4,))
    big = ad.ones((10**6, 10**6), device=auto) * 3  # nothing of this size is made
    lazy.append(1)
    assert big[5, 7].item() == 3


def test_a_gradient_is_made_in_the_chunks_of_its_data(lazy: list[int]) -> None:
    data = da.random.default_rng(0).normal(size=(1000, 3), chunks=(100, 3))
    x, w = ad.asarray(data, device="autodiff<dask>"), ad.zeros(3, device="autodiff<dask>").require_grad()
    gradient = ad.nn.softplus(x @ w).mean().backward()[w]
    largest: list[int] = []

    class Sizes(Callback):  # type: ignore[misc]
        def _posttask(self, key: Any, result: Any, *_: Any) -> None:
            largest.append(getattr(result, "size", 0))

    lazy.append(1)
    with Sizes():
        found = gradient.numpy()
    assert max(largest) == 100 * 3
    np.testing.assert_allclose(found, data.compute().mean(axis=0) / 2, rtol=1e-6)


def test_embedding_gradients_add_up_over_chunks(lazy: list[int]) -> None:
    rows = np.random.default_rng(0).integers(0, 7, (3, 11))
    weight = ad.asarray(np.arange(21.0).reshape(7, 3), device=LEVEL).require_grad()
    places = ad.asarray(rows, device=LEVEL)
    out = ad.nn.embedding(places, weight)
    gradient = (out * out).sum().backward()[weight]
    lazy.append(1)
    expected = np.zeros((7, 3))
    np.add.at(expected, rows, 2 * np.arange(21.0).reshape(7, 3)[rows])
    np.testing.assert_allclose(gradient.numpy(), expected)


# --- errors that only values show ---


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda D: ad.asarray(ROWS, device=D)[ad.tensor([0, 5], device=D)], errors.OutOfRangeError),
        (lambda D: ad.asarray(ROWS, device=D)[ad.tensor([0, -6], device=D)], errors.OutOfRangeError),
        (lambda D: ad.nn.embedding(ad.tensor([-1], device=D), ad.asarray(ROWS, device=D)), errors.OutOfRangeError),
        (lambda D: ad.nn.one_hot(ad.tensor([3], device=D), 3), errors.OutOfRangeError),
        (
            lambda D: ad.nn.cross_entropy(ad.asarray(ROWS, device=D), ad.tensor([0, 1, 4, 0, 1], device=D)),
            errors.OutOfRangeError,
        ),
        (
            lambda D: ad.nn.nll_loss(ad.asarray(ROWS, device=D), ad.tensor([0, 1, -1, 0, 1], device=D)),
            errors.OutOfRangeError,
        ),
        (lambda D: ad.random.exponential(3, scale=ad.tensor(-1.0, device=D)), errors.ArgumentError),
        (lambda D: ad.linalg.inv(ad.zeros((2, 2), device=D)), errors.SingularError),
    ],
)
def test_checks_of_values_run_in_tasks(make: Any, error: type[Exception], lazy: list[int]) -> None:
    for device in (SMALL, LEVEL):
        lazy.clear()
        out = make(device)
        lazy.append(1)
        with pytest.raises(error):
            out.numpy()
        with pytest.raises(error):  # as NumPy's does, at once
            make(ad.NumPy())


def test_shapes_are_checked_at_once(lazy: list[int]) -> None:
    x = ad.asarray(ROWS, device=LEVEL)
    for wrong in (lambda: x @ x, lambda: x + x[:3], lambda: x.reshape((3, 3)), lambda: ad.linalg.inv(x)):
        with pytest.raises(errors.ShapeError):
            wrong()


# --- gradients ---


def representative(name: str) -> Any:
    """The first case that has differences, with as many axes as any, so that there are chunks."""
    cases = [c for c in CASES[name] if any(map(is_float, arrays_of(c))) and not rounds(name, c) and is_finite(name, c)]
    cases = [c for c in cases if all(x.size for x in arrays_of(c) if isinstance(x, np.ndarray))] or cases
    return max(cases, key=lambda c: min(60, sum(x.size for x in arrays_of(c) if isinstance(x, np.ndarray))))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_primitives(name: str, here: None) -> None:
    case = representative(name)
    operands = arrays_of(case)
    tracked = tuple(i for i, x in enumerate(operands) if is_float(x))
    f = call(name, case, operands, tracked)
    ad.testing.check_grads(f, tuple(operands[i] for i in tracked), order=1, modes=("reverse",), device=LEVEL)


# what depends on values in its shape computes at once
COMPUTES = {
    "bincount": "there are as many counts as the largest number needs",
}


def results(device: Any, f: Any, arguments: list[Any]) -> list[Any]:
    """What a function gives, and its gradients."""
    floats = [isinstance(x, np.ndarray) and x.dtype.kind in "fc" for x in arguments]
    given = [ad.asarray(x, device=device).require_grad() if f else x for x, f in zip(arguments, floats, strict=True)]
    leaves = [x for x, f in zip(given, floats, strict=True) if f]
    with ad.use_device(device):
        device.seed(7)
        out = f(*given)
    found = [x for x in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(x, ad.Tensor)]
    for x in list(found):
        if x.is_tracked():
            grads = x.backward(retain_graph=True)
            found += [grads[leaf] for leaf in leaves if leaf in grads]
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.xfail(reason=COMPUTES[name], strict=True)] if name in COMPUTES else [])
        for name in FUNCTIONS
    ],
)
@hypothesis.settings(
    max_examples=3,
    phases=[hypothesis.Phase.generate],
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(data=hypothesis.strategies.data())
def test_public_functions_build_one_graph(name: str, lazy: list[int], data: Any) -> None:
    """Values and gradients are NumPy's, and until they are asked for nothing is computed."""
    f, *arguments = FUNCTIONS[name](Draw(data))
    with np.errstate(all="ignore"):
        expected = results(ad.Autodiff(ad.NumPy()), f, arguments)
    lazy.clear()
    found = results(LEVEL, f, arguments)
    lazy.append(1)
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in expected]
    for x, y in zip(ad.compute(found), expected, strict=True):
        np.testing.assert_allclose(x, y.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_schedulers_without_a_cluster(scheduler: str) -> None:
    x = ad.asarray(da.from_array(ROWS, chunks=(2, 3)), device="autodiff<dask>")
    w = ad.asarray(np.linspace(-1, 1, 4), device="autodiff<dask>").require_grad()
    loss = ad.square(ad.tanh(x @ w)).sum()
    with dask.config.set(scheduler=scheduler, num_workers=1):
        value, gradient = ad.compute((loss, loss.backward()[w]))
    t = np.tanh(ROWS @ np.linspace(-1, 1, 4))
    np.testing.assert_allclose(value, (t * t).sum())
    np.testing.assert_allclose(gradient, (2 * t * (1 - t * t)) @ ROWS)


# --- on a cluster of processes: two workers of 600 MB each ---


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, memory_limit="600MB", dashboard_address=":0"
        ) as made,
        distributed.Client(made),
    ):
        yield made


@pytest.fixture
def unharmed(cluster: Any) -> Iterator[None]:
    """No worker came over its limit: the cluster kills those that do, and starts others."""
    client = distributed.default_client()
    assert [worker["memory_limit"] for worker in client.scheduler_info()["workers"].values()] == [600_000_000] * 2
    pids = client.run(os.getpid)
    yield
    assert client.run(os.getpid) == pids


@pytest.mark.slow
def test_an_array_larger_than_a_worker(unharmed: None) -> None:
    x = ad.asarray(da.random.default_rng(0).random((1_000, 125_000), chunks=(20, 125_000)), device="autodiff<dask>")
    assert x.size * 8 > 600e6
    w = ad.zeros(1_000, dtype=ad.float64, device="autodiff<dask>").require_grad()
    y = ad.exp(x * w[:, None])  # as large again
    total, gradient = ad.compute((y.mean(), y.mean().backward()[w]))
    assert total == 1.0
    np.testing.assert_allclose(gradient * 1_000, np.full(1_000, 0.5), rtol=0.01)


@pytest.mark.slow
def test_logistic_regression_on_two_gigabytes(unharmed: None) -> None:
    rows, columns, size = 5_000_000, 50, 100_000
    rng = da.random.default_rng(0)
    data = rng.normal(size=(rows, columns), chunks=(size, columns))
    assert data.nbytes == 2_000_000_000
    labels = (rng.random(rows, chunks=size) < 1 / (1 + da.exp(-data @ np.linspace(-1, 1, columns)))).astype("f8")
    x, y = ad.asarray(data, device="autodiff<dask>"), ad.asarray(labels, device="autodiff<dask>")
    w = ad.zeros(columns, dtype=ad.float64, device="autodiff<dask>").require_grad()
    points, losses, gradients = [], [], []
    for _ in range(2):
        points.append(w.numpy())
        logits = x @ w
        loss = (ad.nn.softplus(logits) - y * logits).mean()
        value, gradient = ad.compute((loss, loss.backward()[w]))
        losses.append(value)
        gradients.append(gradient)
        w = w.with_value(points[-1] - 2 * gradient)
    assert losses[1] < losses[0]

    def by_hand(block: Any, labels: Any) -> Any:
        return np.stack([block.T @ (1 / (1 + np.exp(-(block @ p))) - labels) for p in points])[None]

    sums = da.blockwise(by_hand, "ipj", data, "ij", labels, "i", new_axes={"p": 2}, adjust_chunks={"i": 1}, dtype="f8")
    np.testing.assert_allclose(np.stack(gradients), sums.sum(axis=0).compute() / rows, rtol=1e-9, atol=1e-12)


def test_a_worker_killed_in_the_middle_of_a_backward(cluster: Any, tmp_path: Any) -> None:
    def slow(block: Any, kind: str) -> Any:
        time.sleep(0.1)
        (tmp_path / f"{kind}{time.monotonic_ns()}").touch()
        return block

    def slowly(x: Any, kind: str) -> Any:
        made = x._array.map_blocks(slow, kind, meta=np.empty((0,) * x.ndim))
        return ad.asarray(made, device=x.device)

    @ad.custom_vjp
    def delayed(x: Any) -> Any:
        return x

    delayed.defvjp(lambda x: (slowly(x, "forward"), None), lambda _, g: (slowly(g, "backward"),))
    values = np.random.default_rng(0).normal(size=(24, 30))
    x = ad.asarray(da.from_array(values, chunks=(1, 30)), device="autodiff<dask>")
    w = ad.asarray(np.linspace(0, 1, 30), device="autodiff<dask>").require_grad()
    loss = ad.log(ad.square(ad.tanh(delayed(x @ w))).sum())  # its derivative waits for all chunks

    client = distributed.default_client()
    pids = set(client.run(os.getpid).values())
    future = client.compute(loss.backward()[w]._array)
    while len(list(tmp_path.glob("backward*"))) < 5:
        assert not future.done()
        time.sleep(0.02)
    os.kill(pids.copy().pop(), 9)
    t = np.tanh(values @ np.linspace(0, 1, 30))
    expected = values.T @ (2 * t * (1 - t * t)) / np.square(t).sum()
    np.testing.assert_allclose(future.result(timeout=100), expected, rtol=1e-12)
    assert len(list(tmp_path.glob("forward*"))) > 24  # what the dead one had, again
    assert set(client.run(os.getpid).values()) != pids


# --- the example ---


def test_the_example_goes_downhill() -> None:
    script = Path(__file__).parent.parent / "examples/out_of_core.py"
    options = ["--rows", "20000", "--chunk", "5000", "--steps", "3", "--workers", "1"]
    done = processes.run([sys.executable, script, *options])
    losses = [float(value) for value in re.findall(r"loss ([\d.]+)", done.stdout)]
    assert losses[0] == round(float(np.log(2)), 4)
    assert losses == sorted(losses, reverse=True)
    assert len(losses) == 3


@pytest.mark.parametrize(
    "solver",
    ["root", "fixed_point", *[pytest.param(each, marks=pytest.mark.slow) for each in ("root, gmres", "minimize")]],
)
def test_steps_of_a_search_are_not_computed_again(solver: str) -> None:
    """A step looks at values: its graph is that of this step, however many there were before."""
    sizes: list[int] = []

    def seen(x: Any) -> Any:
        graph = getattr(x.detach().native(), "__dask_graph__", dict)()
        sizes.append(len(dict(graph)))
        return x

    x0 = ad.tensor(np.array([0.5, -1.5, 2.0]), device="autodiff<dask>")
    searches: dict[str, Any] = {
        "root": lambda: ad.implicit.root(lambda x: seen(x) ** 3 + x - 1, x0),
        "root, gmres": lambda: ad.implicit.root(lambda x: seen(x) ** 3 + x - 1, x0, linear_solver="gmres"),
        "fixed_point": lambda: ad.implicit.fixed_point(lambda x: 0.9 * ad.cos(seen(x)), x0),
        "minimize": lambda: ad.implicit.minimize(lambda x: ((seen(x) ** 2 - 1) ** 2).sum() + x.sum(), x0),
    }
    searches[solver]()
    assert len(sizes) > 5
    assert max(sizes[len(sizes) // 2 :]) <= max(sizes[: len(sizes) // 2])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: ad.while_loop(lambda c: c.sum() < 40.0, lambda c: c + abs(x), abs(x)),
        lambda x: ad.while_loop(lambda c: c.sum() < 40.0, lambda c: c + ad.random.uniform(), abs(x)),
        lambda x: ad.fori_loop(0, (x.max() * 0 + 3).astype(ad.int32), lambda i, c: c * x + i, x),
        lambda x: ad.cond(x.sum() > 0.0, ad.sin, ad.cos, x),
        lambda x: ad.switch(x.argmax() * 0 + 1, [ad.sin, ad.cos, ad.exp], x),
        lambda x: ad.scan(lambda c, t: (c * ad.random.uniform() + t, c), x[0], x)[0],
    ],
    ids=["while_loop", "while_loop that draws", "fori_loop", "cond", "switch", "scan that draws"],
)
@pytest.mark.usefixtures("here")
def test_compiled_choices_and_loops(f: Any) -> None:
    """They looked for a program of Dask's that chooses."""
    seen: list[Any] = []

    def g(x: Any) -> Any:
        ad.debug.callback(lambda v: seen.append(v.sum()), x)
        return f(x)

    for device in (SMALL, LEVEL):
        x = ad.tensor(ROWS, device=device)
        found = []
        for run in (f, ad.compile(g)):
            with ad.use_device(device):
                ad.random.seed(3)
                found.append(run(x).numpy())
        np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
    assert seen == [ROWS.sum()] * 2
