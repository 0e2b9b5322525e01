"""Batching: every primitive run for all examples at once gives what each example gives alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from calls import DIFFERENTIABLE, RECORDED, arrays_of, call, is_finite, rounds, subsets
from cases import CASES, Case
from each import Each

import adjoint as ad
from adjoint.decorators.batched import Batch
from adjoint.primitives import CREATION, LINALG, RANDOM, TABLE

SIZE = 3
LEAF = ad.NumPy()


def varied(name: str, x: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """Another example: the elements change places, or where matrices must stay regular and lines sorted, grow."""
    if x.dtype.kind in "fc" and (x.size < 2 or TABLE[name].kind is LINALG or name == "searchsorted"):
        return np.asarray(x * (1 + n))
    return np.roll(x, n)


def examples(name: str, case: Case, batched: tuple[int, ...]) -> list[list[Any]]:
    """The operands of each example: those named differ, the others are shared."""
    return [[varied(name, x, n) if i in batched else x for i, x in enumerate(arrays_of(case))] for n in range(SIZE)]


def together(name: str, case: Case, batched: tuple[int, ...]) -> Any:
    """The result for all examples on a Batched backend, as a list per example."""
    level: ad.Batched[Any] = ad.Batched(LEAF)
    each = examples(name, case, batched)
    operands = [
        Batch(np.stack([e[i] for e in each]), True)
        if i in batched
        else level.wrap(x)
        if isinstance(x, np.ndarray)
        else x
        for i, x in enumerate(each[0])
    ]
    with np.errstate(all="ignore"):
        out = getattr(level, name)(*operands, **case.parameters)
    parts = out if isinstance(out, tuple) else (out,)
    for part in parts:
        assert part.batched
        assert part.value.shape == (SIZE, *part.shape)
    return [[part.value[n] for part in parts] for n in range(SIZE)]


def choices(case: Case) -> list[tuple[int, ...]]:
    arrays = [i for i, x in enumerate(arrays_of(case)) if isinstance(x, np.ndarray)]
    return [chosen for n in range(1, len(arrays) + 1) for chosen in itertools.combinations(arrays, n)]


@pytest.mark.parametrize("name", [name for name in RECORDED if not TABLE[name].dynamic])
def test_every_case_with_every_choice_of_batched_operands(name: str) -> None:
    compared = 0
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                for batched in choices(case):
                    found = together(name, case, batched)
                    for n, operands in enumerate(examples(name, case, batched)):
                        with np.errstate(all="ignore"):
                            out = getattr(LEAF, name)(*operands, **case.parameters)
                        for mine, wanted in zip(found[n], out if isinstance(out, tuple) else (out,), strict=True):
                            assert (mine.shape, mine.dtype) == (wanted.shape, wanted.dtype), batched
                            np.testing.assert_allclose(mine, wanted, rtol=1e-12, atol=1e-12, err_msg=str(batched))
                            compared += 1
    assert compared


SLOW = {"attention_pullback", "lstm_pullback"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in DIFFERENTIABLE])
def test_gradients_of_examples(name: str) -> None:
    checked = 0
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                operands = arrays_of(case)
                if rounds(name, case) or not is_finite(name, case):
                    continue
                for tracked in subsets(operands):
                    f = call(name, case, operands, tracked)
                    ad.testing.check_grads(f, tuple(operands[i] for i in tracked), modes=("batched",))
                    checked += 1
    assert checked


def test_a_batch_of_no_examples() -> None:
    image, kernel = np.ones((1, 2, 4, 4)), np.ones((3, 2, 2, 2))
    assert ad.vmap(ad.nn.conv2d, in_axes=(0, None))(np.ones((0, *image.shape)), kernel).shape == (0, 1, 3, 3, 3)
    for mode in ("forward", "reverse"):
        jacobian = ad.jacobian(ad.nn.conv2d, (0, 1), mode)(image[:0], kernel)
        assert [j.shape for j in jacobian] == [(0, 3, 3, 3, 0, 2, 4, 4), (0, 3, 3, 3, *kernel.shape)]


def test_places_of_elements_cannot_differ_in_number() -> None:
    with pytest.raises(ad.errors.ShapeError, match=r"ad\.where"):
        ad.vmap(lambda x: x[x > 0])(np.ones((2, 3)))


@pytest.mark.parametrize("name", [n for n, p in TABLE.items() if p.kind is CREATION])
def test_created_arrays_are_the_same_for_all(name: str) -> None:
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                out = getattr(ad.Batched(LEAF), name)(**case.parameters)
                assert not out.batched
                np.testing.assert_array_equal(out.value, getattr(LEAF, name)(**case.parameters))


# --- random numbers ---


@pytest.mark.parametrize("name", [n for n, p in TABLE.items() if p.kind is RANDOM and not p.operands])
def test_random_numbers_are_shared_or_split_on_request(name: str) -> None:
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                one = getattr(LEAF, name)(**case.parameters)
                shared = getattr(ad.Batched(LEAF, randomness="shared"), name)(**case.parameters)
                assert not shared.batched
                np.testing.assert_array_equal(shared.value, one)
                split = getattr(ad.Batched(LEAF, 200, "split"), name)(**case.parameters)
                assert split.batched
                assert (split.value.shape, split.value.dtype) == ((200, *one.shape), one.dtype)
                if one.size > 2:
                    assert len({row.tobytes() for row in split.value}) > 50
                with pytest.raises(ad.errors.ArgumentError, match="randomness="):
                    getattr(ad.Batched(LEAF), name)(**case.parameters)


@pytest.mark.parametrize("name", [n for n, p in TABLE.items() if p.kind is RANDOM and p.operands])
def test_random_numbers_of_parameters_are_shared_or_split_on_request(name: str) -> None:
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                one = getattr(LEAF, name)(*case.operands, **case.parameters)
                differing = [Batch(np.stack([x * n for n in range(1, 201)]), True) for x in case.operands[:1]]
                differing += [Batch(x, False) for x in case.operands[1:]]
                for batched in (False, True):
                    operands = differing if batched else [Batch(x, False) for x in case.operands]
                    split = getattr(ad.Batched(LEAF, 200, "split"), name)(*operands, **case.parameters)
                    assert split.batched
                    assert (split.value.shape, split.value.dtype) == ((200, *one.shape), one.dtype)
                    if one.size > 2:
                        assert len({row.tobytes() for row in split.value}) > 50
                    with pytest.raises(ad.errors.ArgumentError, match="randomness="):
                        getattr(ad.Batched(LEAF), name)(*operands, **case.parameters)
                with pytest.raises(ad.errors.ArgumentError, match="cannot share one draw"):
                    getattr(ad.Batched(LEAF, randomness="shared"), name)(*differing, **case.parameters)
                constants = [Batch(x, False) for x in case.operands]
                shared = getattr(ad.Batched(LEAF, randomness="shared"), name)(*constants, **case.parameters)
                assert not shared.batched
                np.testing.assert_array_equal(shared.value, one)


def test_split_permutations_are_permutations() -> None:
    found = ad.vmap(lambda _: ad.random.permutation(5), randomness="split")(np.zeros(100))
    assert (np.sort(found, axis=1) == np.arange(5)).all()
    assert len({tuple(row) for row in found}) > 30


def test_options() -> None:
    assert ad.Batched(LEAF) is ad.Batched(LEAF)
    assert ad.device("batched<numpy>") is ad.Batched(LEAF)
    with pytest.raises(ad.errors.ArgumentError, match="'maybe'"):
        ad.Batched(LEAF, randomness="maybe")
    with pytest.raises(ad.errors.ArgumentError, match="size="):
        ad.Batched(LEAF, randomness="split")


# --- what a batched tensor shows and refuses ---


def test_a_batched_tensor_has_no_one_value() -> None:
    def f(x: Any) -> Any:
        shown = repr(x)
        assert "shape=(2,) of each example" in shown
        assert "[1., 1.]" in shown
        for read in (bool, float, lambda t: t.item(), lambda t: t.numpy()):
            with pytest.raises(ad.errors.TrackedError, match=r"differs? between|no value under vmap"):
                read(x.sum())
        with pytest.raises(ad.errors.TrackedError):
            np.asarray(x)
        return x

    ad.vmap(f)(np.ones((3, 2)))


def test_assignment_in_a_batch() -> None:
    def f(x: Any, i: Any) -> Any:
        y = ad.zeros(3, dtype=ad.float64)
        y[i] = x.sum()
        y[0] += 1.0
        return y

    found = ad.vmap(f)(np.arange(4.0).reshape(2, 2), np.array([1, 2]))
    np.testing.assert_array_equal(found, [[1, 1, 0], [1, 0, 5]])


def test_indices_that_differ_pick_from_what_all_share() -> None:
    """A table of an inner level, indexed by each example: the index must not come down to the table."""
    table = ad.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    places = ad.tensor([2, 0, 2, 1])
    expected = table.numpy()[[2, 0, 2, 1]]
    np.testing.assert_array_equal(ad.vmap(lambda i: table[i])(places).numpy(), expected)
    np.testing.assert_array_equal(ad.vmap(lambda i: ad.take(table, i, axis=0))(places).numpy(), expected)
    np.testing.assert_array_equal(ad.vmap(lambda i: table[i, 1])(places).numpy(), expected[:, 1])
    w = table.require_grad()
    gradient = ad.vmap(lambda i: w[i] * 2.0)(places).sum().backward()[w]
    np.testing.assert_array_equal(gradient.numpy(), [[2, 2], [2, 2], [4, 4]])
