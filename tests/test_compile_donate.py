"""Donated arguments of compiled functions: what is written over, what never is, and what using them says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors

N = 1000


def numbers() -> Any:
    return np.arange(float(N))


def address(x: Any) -> Any:
    return x.detach().numpy().ctypes.data


def test_results_are_written_over_donated_tensors() -> None:
    f = ad.compile(lambda x, g: x * 2 - g, donate=0)
    g = ad.ones(N, dtype=ad.float64)
    for x in (ad.tensor(numbers()), ad.tensor(numbers(), device="numpy"), ad.tensor(numbers()).require_grad().detach()):
        place = address(x)
        y = f(x, g)
        assert address(y) == place
        np.testing.assert_array_equal(y.numpy(), numbers() * 2 - 1)
    np.testing.assert_array_equal(g.numpy(), np.ones(N))


def test_what_somebody_else_sees_is_left_as_it_is() -> None:
    f, g = ad.compile(lambda x, g: x - g, donate=(0,)), ad.ones(N, dtype=ad.float64)
    for kept in (
        lambda x: x[3:],
        lambda x: x.detach(),
        lambda x: x.reshape((10, 100)),
        lambda x: x.numpy(),
    ):
        x = ad.tensor(numbers())
        other = kept(x)
        before = np.array(other)
        y = f(x, g)
        np.testing.assert_array_equal(np.asarray(other), before)
        np.testing.assert_array_equal(y.numpy(), numbers() - 1)
    w = ad.tensor(numbers()).require_grad()
    loss = (w * w).sum()  # whose graph keeps it
    np.testing.assert_array_equal(f(w.detach(), g).numpy(), numbers() - 1)
    np.testing.assert_array_equal(loss.backward()[w].numpy(), 2 * numbers())


@pytest.mark.parametrize("donate", [0, (0,), (0, 1)])
def test_arrays_of_the_caller_are_written_to_where_they_are_donated(donate: Any) -> None:
    f, plain = ad.compile(lambda x, g: (x - g, x * g), donate=donate), ad.compile(lambda x, g: (x - g, x * g))
    for make in (numbers, lambda: np.arange(2.0 * N)[::2], lambda: np.broadcast_to(2.0, (N,)), lambda: _frozen()):
        x, g, y, h = make(), make(), make(), make()
        found, expected = f(x, g), plain(y, h)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(y, make())  # not donated: as it was
        np.testing.assert_array_equal(h, make())
    x = numbers()
    np.testing.assert_array_equal(f(x, x)[0], np.zeros(N))  # one array twice
    x = numbers()
    np.testing.assert_array_equal(f(x[1:], x[:-1])[0], np.ones(N - 1))
    np.testing.assert_array_equal(x, numbers())


def _frozen() -> Any:
    x = numbers()
    x.flags.writeable = False
    return x


USES: dict[str, Any] = {
    "add": lambda x: x + 1,
    "other": lambda x: ad.ones(3) * x,
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "tensor": ad.asarray,
    "tolist": lambda x: x.tolist(),
    "text": repr,
    "index": lambda x: x[0],
    "assignment": lambda x: x.__setitem__(0, 1.0),
    "sum": lambda x: x.sum(),
    "item": lambda x: x[:1].item(),
    "grad": lambda x: ad.grad(lambda x: x.sum())(x),
    "vmap": lambda x: ad.vmap(ad.sin)(x),
    "detach": lambda x: x.detach(),
    "require_grad": lambda x: x.require_grad(),
    "to_device": lambda x: x.to_device("reference"),
    "DLPack": lambda x: x.__dlpack__(),
    "copy": lambda x: x.copy(),
    "compiled": ad.compile(lambda x: x * 2),
}


@pytest.mark.parametrize("name", USES)
def test_a_donated_tensor_is_gone(name: str) -> None:
    f = ad.compile(lambda x: x * 2, donate=0)
    x, kept = ad.ones(3), ad.ones(3)
    f(x)
    with pytest.raises(errors.EndedError, match="was donated to <lambda>, which may have written results over it"):
        USES[name](x)
    assert kept.sum().item() == 3


def test_also_where_the_call_fails() -> None:
    f, x = ad.compile(lambda x: ad.one_hot(x, 3), donate=0), ad.tensor([0, 1])
    f(ad.tensor([0, 1]))
    bad = ad.tensor([0, 5])
    with pytest.raises(errors.AdjointError, match="5"):
        f(bad)
    with pytest.raises(errors.EndedError):
        bad + 1
    assert x.sum().item() == 1


def test_a_training_loop() -> None:
    def step(w: Any, slots: Any, x: Any) -> Any:
        slope = ad.grad(lambda w: ((x @ w) ** 2).mean())(w)
        slots = tree_map(lambda m: 0.9 * m + slope, slots)
        return w - 0.1 * slots["m"], slots

    tree_map = ad.tree.map
    x = ad.tensor(np.random.default_rng(0).normal(size=(8, 200)))
    results = []
    for compiled in (ad.compile(step), ad.compile(step, donate=(0, 1))):
        w, slots = ad.ones(200, dtype=ad.float64), {"m": ad.zeros(200, dtype=ad.float64)}
        for _ in range(5):
            w, slots = compiled(w, slots, x)
        results.append(w.numpy())
    np.testing.assert_array_equal(*results)


def test_an_argument_that_is_returned_stays() -> None:
    x = ad.ones(3).require_grad()
    y, _ = ad.compile(lambda x: (x, x.detach() * 2), donate=0)(x)
    assert y is x
    assert y.sum().item() == 3


def test_around_a_donation_nothing_is_given_away() -> None:
    f, x = ad.compile(lambda x: (x * x).sum(), donate=0), ad.tensor(numbers())
    np.testing.assert_array_equal(ad.grad(f)(x).numpy(), 2 * numbers())
    np.testing.assert_array_equal(x.numpy(), numbers())


def test_extremes_are_written_over_operands() -> None:
    """NumPy takes the array to write to by its name alone there."""
    x = np.linspace(-1.0, 1.0, 100_000)
    found = ad.compile(lambda x: ad.minimum(ad.maximum(x * 2, -1.0), 0.5))(x)
    np.testing.assert_array_equal(found, np.clip(x * 2, -1.0, 0.5))


def test_loops_do_not_write_over_what_each_step_reads() -> None:
    x = np.linspace(-1.0, 1.0, N)
    f = lambda x: (ad.fori_loop(0, 3, lambda i, c: c + (x + 1.0) * 2.0, ad.zeros(N, dtype=ad.float64)), x * 3.0)
    for found, wanted in zip(ad.compile(f, donate=0)(x.copy()), f(ad.asarray(x)), strict=True):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-12)
    g = lambda x: ad.scan(lambda c, _: ((x - 2.0)[0], c), ad.zeros((), dtype=ad.float64), None, length=3)[1]
    np.testing.assert_array_equal(ad.compile(g, donate=0)(numbers()), [0.0, -2.0, -2.0])


NUMBERS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "a power that is no integer": (lambda x, n: (x * 2 + 1) * 2**n, (1, 2, -1, 3)),
    "a root of a negative number": (lambda x, r: (x * 2 + 1) * r**0.5, (1.0, 2.0, -4.0, 3.0)),
    "a quotient": (lambda x, n: (x * 2 + 1) / (n - 4), (1, 2, 4, 3)),
    "too many digits for an integer": (lambda x, n: (x * 2 + 1) + n * n, (1, 2, 2**40, 3)),
    "too many digits for a small integer": (lambda x, n: (x.astype(ad.int8) * 2 + 1) + n, (1, 2, 300, 3)),
    "too many digits for a float": (lambda x, n: (x * 2 + 1) * 2**n, (1, 2, 1024, 3)),
}


@pytest.mark.parametrize("case", NUMBERS)
@pytest.mark.parametrize("kind", [ad.int64, ad.float64, np.float64])
def test_nothing_is_given_away_before_numbers_fit(case: str, kind: Any) -> None:
    """A number that the program cannot take is found before it runs, and the call is recorded for it."""
    f, numbers = NUMBERS[case]
    g = ad.compile(f, donate=0)
    for n in numbers:
        x = np.arange(float(N)) if kind is np.float64 else ad.arange(N, dtype=kind)
        kept, before = np.array(x), ad.tensor(np.array(x))
        try:
            with np.errstate(divide="ignore"):
                expected = f(before, n)
        except (ZeroDivisionError, errors.AdjointError) as error:
            with pytest.raises(type(error)):
                g(x, n)
            np.testing.assert_array_equal(np.asarray(x), kept)  # neither given away nor written to
            continue
        found = g(x, n)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
        if kind is not np.float64:
            with pytest.raises(errors.EndedError):
                x.sum()


def test_what_a_function_does_beside_its_result_is_done_once_where_a_number_does_not_fit() -> None:
    shown: list[float] = []

    @ad.compile
    def f(x: Any, n: int) -> Any:
        ad.debug.callback(lambda y: shown.append(float(y)), x.sum())
        return x * ad.random.uniform((3,), dtype=ad.float64) * 2**n

    for seed, n in enumerate((1, 2, -1)):
        ad.random.seed(seed)
        first, after = f(ad.ones(3, dtype=ad.float64), n), ad.random.uniform((3,))
        ad.random.seed(seed)
        np.testing.assert_array_equal(first.numpy(), (ad.random.uniform((3,), dtype=ad.float64) * 2.0**n).numpy())
        np.testing.assert_array_equal(after.numpy(), ad.random.uniform((3,)).numpy())
    assert shown == [3.0] * 3
