"""Choices and loops: against JAX's, against plain Python, in every mode, batched, and what they refuse."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import peer, same
from hypothesis import given
from hypothesis import strategies as st
from loops import (
    BATCH,
    PROGRAMS,
    all_close,
    close,
    compare,
    derivatives,
    derivatives_of_batches,
    doubling,
    newton,
)

import adjoint as ad
from adjoint import errors

RNG = np.random.default_rng(5)


# --- against jax.lax ---------------------------------------------------------------------------------


@pytest.fixture
def jax() -> Iterator[Any]:
    library = peer("jax")
    with library.enable_x64(True):
        yield library


def pair(program: Any, jax: Any) -> tuple[Any, Any]:
    return lambda x: program(ad, ad, x), lambda x: program(jax.lax, jax.numpy, jax.numpy.asarray(x))


def forward(T: Any, f: Any) -> Any:
    def along(f: Any) -> Any:
        return lambda x: T.jvp(f, (x,), (x + 1,))

    return lambda x: {
        "value": T.vmap(f)(x),
        "vmap of jvp": T.vmap(along(f))(x),
        "jvp of vmap": along(T.vmap(f))(x),
        "jvp of jvp": T.vmap(along(lambda x: along(f)(x)[1]))(x),
    }


@pytest.mark.peers
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_jax(program: Any, jax: Any) -> None:
    ours, theirs = pair(program, jax)
    wanted = jax.jit(jax.vmap(derivatives(jax, theirs)))(BATCH)
    compare(ad.vmap(derivatives(ad, ours))(BATCH), wanted)
    for i, x in enumerate(BATCH):
        compare(derivatives(ad, ours)(x), jax.tree.map(lambda leaf, i=i: leaf[i], wanted))


@pytest.mark.peers
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_of_batches_as_in_jax(program: Any, jax: Any) -> None:
    ours, theirs = pair(program, jax)
    twice = BATCH.reshape(2, 2, 3)
    compare(derivatives_of_batches(ad, ours)(twice), jax.jit(derivatives_of_batches(jax, theirs))(twice))


@pytest.mark.peers
@pytest.mark.parametrize("program", [newton, doubling], ids=lambda p: p.__name__)
def test_while_loops_as_in_jax(program: Any, jax: Any) -> None:
    ours, theirs = pair(program, jax)
    wanted = jax.jit(forward(jax, theirs))(BATCH)
    compare(forward(ad, ours)(BATCH), wanted)
    for i, x in enumerate(BATCH):
        close(ours(x), wanted["value"][i])
        all_close(ad.jvp(ours, (x,), (x + 1,)), [part[i] for part in wanted["vmap of jvp"]])


# --- against plain Python ----------------------------------------------------------------------------

UNARY = [ad.sin, ad.tanh, ad.cos, lambda x: x * 0.7, lambda x: x * x * 0.3, lambda x: 1.0 / (2.0 + x * x)]
BINARY = [operator.add, operator.sub, operator.mul, ad.maximum, lambda x, y: ad.where(x > y, x * y, y)]


def bodies(data: Any) -> Callable[..., list[Any]]:
    """A small random program from some tensors to two."""
    steps = [
        (
            data.draw(st.sampled_from(BINARY)),
            data.draw(st.sampled_from(UNARY)),
            data.draw(st.tuples(*[st.integers(0, 9)] * 2)),
        )
        for _ in range(data.draw(st.integers(1, 4)))
    ]

    def body(*xs: Any) -> list[Any]:
        known = list(xs)
        for join, bend, (i, j) in steps:
            known.append(bend(join(known[i % len(known)], known[j % len(known)])))
        return [ad.tanh(known[-1]), ad.sin(known[len(known) // 2] + known[0])]

    return body


def agree(f: Any, g: Any, *args: Any) -> None:
    """Two functions of arrays with one array as result: values, and derivatives in both modes and of second order."""
    args = tuple(np.asarray(x) for x in args)
    close(f(*args), g(*args))
    where = tuple(range(len(args)))
    ones = tuple(np.ones_like(x) for x in args)

    def total(h: Any) -> Any:
        return lambda *xs: ad.sum(ad.sin(h(*xs)))

    all_close(ad.grad(total(f), where)(*args), ad.grad(total(g), where)(*args))
    all_close(ad.jvp(f, args, ones), ad.jvp(g, args, ones))
    all_close(ad.hvp(total(f), args, ones), ad.hvp(total(g), args, ones))


@given(data=st.data())
def test_scan_is_a_loop(data: Any) -> None:
    body = bodies(data)
    length, reverse = data.draw(st.integers(0, 5)), data.draw(st.booleans())
    every = data.draw(st.sampled_from([None, 1, 2, 3, 7]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    init, xs, w = rng.standard_normal(2), rng.standard_normal((length, 2)), rng.standard_normal(2)

    def scanned(init: Any, xs: Any, w: Any) -> Any:
        last, ys = ad.scan(lambda c, x: tuple(body(c, x, w)), init, xs, None, reverse, every)
        return ad.concat([last[None], ys])

    def looped(init: Any, xs: Any, w: Any) -> Any:
        c, ys = init, []
        for i in reversed(range(length)) if reverse else range(length):
            c, y = body(c, xs[i], w)
            ys.append(y)
        return ad.stack([c, *(ys[::-1] if reverse else ys)])

    agree(scanned, looped, init, xs, w)


@given(data=st.data())
def test_fori_loop_is_a_loop(data: Any) -> None:
    body = bodies(data)
    lower, upper = data.draw(st.integers(-2, 3)), data.draw(st.integers(-2, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))

    def looped(a: Any, b: Any) -> Any:
        c = (a, b)
        for i in range(lower, upper):
            c = tuple(body(*c, b * i))
        return ad.stack(c)

    agree(
        lambda a, b: ad.stack(ad.fori_loop(lower, upper, lambda i, c: tuple(body(*c, b * i)), (a, b))),
        looped,
        *rng.standard_normal((2, 2)),
    )


def one_by_one(f: Any) -> Any:
    return lambda *args: np.stack([f(*group) for group in zip(*args, strict=True)])


@given(data=st.data())
def test_batches_of_choices_are_choices_one_by_one(data: Any) -> None:
    count = data.draw(st.integers(2, 4))
    branches = [bodies(data) for _ in range(count)]
    size = data.draw(st.integers(1, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    index = np.array(data.draw(st.lists(st.integers(-1, count), min_size=size, max_size=size)))

    def f(i: Any, x: Any, w: Any) -> Any:
        chosen = ad.switch(i, [lambda x, w, b=b: b(x, w) for b in branches], x, w)
        return ad.cond(i < 1, lambda a, b: a * b, lambda a, b: a - ad.exp(b), *chosen)

    def total(i: Any, x: Any, w: Any) -> Any:
        return f(i, x, w).sum()

    x, w = rng.standard_normal((2, size, 2))
    close(ad.vmap(f)(index, x, w), one_by_one(f)(index, x, w))
    for argnum in (1, 2):
        gradient = ad.grad(total, argnum)
        close(ad.vmap(gradient)(index, x, w), one_by_one(gradient)(index, x, w))
        close(ad.grad(lambda *args: ad.vmap(total)(*args).sum(), argnum)(index, x, w), ad.vmap(gradient)(index, x, w))
        hessian = ad.hessian(total, argnum)
        close(ad.vmap(hessian)(index, x, w), one_by_one(hessian)(index, x, w))
    shared = ad.vmap(f, in_axes=(0, 0, None))
    close(shared(index, x, w[0]), np.stack([f(i, row, w[0]) for i, row in zip(index, x, strict=True)]))


@given(data=st.data())
def test_batches_of_loops_are_loops_one_by_one(data: Any) -> None:
    """Examples start and end at different steps."""
    body = bodies(data)
    size = data.draw(st.integers(1, 5))
    ends = st.lists(st.integers(-2, 4), min_size=size, max_size=size)
    lower, upper = np.array(data.draw(ends)), np.array(data.draw(ends))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal((size, 2))

    def counted(lower: Any, upper: Any, x: Any) -> Any:
        return ad.stack(ad.fori_loop(lower, upper, lambda i, c: tuple(body(*c, c[1] * i)), (x, x * 0.5))).sum()

    def until(lower: Any, upper: Any, x: Any) -> Any:
        step = lambda c: (c[0] + 1, *body(*c[1:], c[2] * c[0]))
        return ad.stack(ad.while_loop(lambda c: c[0] < upper, step, (lower, x, x * 0.5))[1:]).sum()

    wanted = one_by_one(counted)(lower, upper, x)
    close(ad.vmap(counted)(lower, upper, x), wanted)
    close(ad.vmap(until)(lower, upper, x), wanted)
    gradient = ad.grad(counted, 2)
    wanted = one_by_one(gradient)(lower, upper, x)
    close(ad.vmap(gradient)(lower, upper, x), wanted)
    close(ad.vmap(ad.jacobian(until, 2, "forward"))(lower, upper, x), wanted)
    close(ad.grad(lambda x: ad.vmap(counted)(lower, upper, x).sum())(x), wanted)
    close(ad.vmap(counted, in_axes=(None, 0, 0))(1, upper, x), one_by_one(counted)(np.full(size, 1), upper, x))
    close(ad.vmap(counted, in_axes=(0, None, 0))(lower, 2, x), one_by_one(counted)(lower, np.full(size, 2), x))


# --- excluded branches -------------------------------------------------------------------------------


def root(x: Any) -> Any:
    return ad.cond(x > 0, ad.sqrt, ad.zeros_like, x)


def test_no_nan_comes_out_of_an_excluded_branch() -> None:
    """sqrt has no value below 0, and no derivative at 0; NumPy's warnings would be errors here."""
    x = np.array([4.0, 0.0, -1.0])
    slopes = np.array([0.25, 0.0, 0.0])
    close(ad.vmap(root)(x), [2.0, 0.0, 0.0])
    close(ad.vmap(ad.grad(root))(x), slopes)
    close(ad.grad(lambda x: ad.vmap(root)(x).sum())(x), slopes)
    close(ad.vmap(lambda x: ad.jvp(root, (x,), (1.0,)))(x)[1], slopes)
    close(ad.jvp(ad.vmap(root), (x,), (np.ones(3),))[1], slopes)
    close(ad.vmap(ad.grad(ad.grad(root)))(x), [-1 / 32, 0.0, 0.0])
    close(ad.vmap(ad.hessian(root))(x), [-1 / 32, 0.0, 0.0])
    close(ad.vmap(ad.vmap(ad.grad(root)))(np.stack([x, x[::-1]])), np.stack([slopes, slopes[::-1]]))
    close(ad.vmap(lambda x: ad.vmap(root)(x).sum())(np.stack([x, x])), [2.0, 2.0])


def test_no_nan_comes_out_of_an_excluded_branch_in_a_checkpoint() -> None:
    """The predicate is of the level, the operand of the checkpoint's view of it."""

    def f(x: Any) -> Any:
        return ad.checkpoint(lambda v: ad.cond(x > 0, ad.sqrt, ad.zeros_like, v))(x)

    x, slopes = np.array([4.0, 0.0, -1.0]), [0.25, 0.0, 0.0]
    close(ad.vmap(ad.grad(f))(x), slopes)
    close(ad.grad(lambda x: ad.vmap(f)(x).sum())(x), slopes)


def test_no_nan_reaches_what_examples_share() -> None:
    def f(w: Any, x: Any) -> Any:
        return ad.cond(x > 0, lambda w, x: ad.log(w * x), lambda w, x: w * x, w, x)

    def total(w: Any, x: Any) -> Any:
        return ad.vmap(f, in_axes=(None, 0))(w, x).sum()

    x = np.array([2.0, 0.0, -3.0])
    close(ad.grad(total)(0.5, x), 1 / 0.5 + 0.0 - 3.0)
    close(ad.grad(total, 1)(0.5, x), [0.5, 0.5, 0.5])
    close(ad.hessian(total)(0.5, x), -1 / 0.25)


def test_an_excluded_branch_does_not_index_outside() -> None:
    table = ad.tensor([1.0, 2.0, 3.0])
    pick = ad.vmap(lambda i: ad.cond(i < 3, lambda i: table[i], lambda i: ad.zeros(()), i))
    same(pick(ad.tensor([2, 5, 0])), np.array([3.0, 0.0, 1.0], np.float32))


def test_a_finished_example_takes_no_further_step() -> None:
    """1 / (x - 1) for x = 1 would warn."""
    down = ad.vmap(lambda x: ad.while_loop(lambda c: c > 1, lambda c: c - 1 / (1 / (c - 1)), x))
    close(down(np.array([1.0, 2.0, 1.0])), [1.0, 1.0, 1.0])
    over = ad.vmap(ad.grad(lambda x, n: ad.fori_loop(0, n, lambda _, c: ad.sqrt(c - 1), x)))
    close(over(np.array([5.0, 1.0, 0.0]), np.array([2, 0, 0])), [1 / 8, 1.0, 1.0])


def test_a_branch_that_nobody_takes_is_not_run() -> None:
    def never(*_: Any) -> Any:
        raise AssertionError

    assert ad.cond(True, lambda x: x + 1, never, 1) == 2
    assert ad.cond(np.array(False), never, lambda: 3) == 3
    assert ad.switch(7, [never, lambda x: -x], 2.0) == -2.0
    assert ad.switch(-1, [lambda x: -x, never], 2.0) == -2.0
    close(ad.vmap(lambda x: ad.cond(x > 0, ad.sqrt, never, x))(np.array([1.0, 4.0])), [1.0, 2.0])
    two = ad.vmap(lambda i: ad.switch(i, [never, lambda i: i * 2, lambda i: i * 3], i))
    assert two(np.array([1, 2, 9])).tolist() == [2, 6, 27]


def test_recursion_that_ends_at_different_depths() -> None:
    def factorial(n: Any) -> Any:
        return ad.cond(n > 1, lambda n: n * factorial(n - 1), lambda n: ad.ones_like(n), n)

    assert ad.vmap(factorial)(np.arange(6)).tolist() == [1, 1, 2, 6, 24, 120]


def test_choices_of_python_numbers() -> None:
    pick = lambda x: ad.cond(x > 0, lambda x: 2 * x, lambda x: 0, x)
    found = ad.vmap(pick)(np.array([1.5, -1.0]))
    assert found.dtype == np.float64
    close(found, [3.0, 0.0])
    found = ad.vmap(lambda x: ad.cond(x > 0, lambda: 1, lambda: 2.5))(np.array([1.5, -1.0]))
    assert found.dtype == np.float32
    close(found, [1.0, 2.5])


def test_no_examples() -> None:
    assert ad.vmap(root)(np.zeros(0)).shape == (0,)
    assert ad.vmap(lambda x: ad.while_loop(lambda c: c < 3, lambda c: c + 1, x))(np.zeros(0)).shape == (0,)
    assert ad.vmap(lambda n: ad.fori_loop(0, n, lambda i, c: c + i, 0))(np.zeros(0, np.int64)).shape == (0,)


def test_unsigned_bounds() -> None:
    count = ad.vmap(lambda a, b: ad.fori_loop(a, b, lambda i, c: c + 1, 0))
    assert count(np.array([5, 1], np.uint8), np.array([3, 4], np.uint8)).tolist() == [0, 3]


# --- reverse mode and while_loop ---------------------------------------------------------------------


def test_while_loop_refuses_reverse_mode_before_it_runs() -> None:
    calls = []

    def count(c: Any) -> Any:
        calls.append(c)
        return c < 10

    def of_carry(x: Any) -> Any:
        return ad.while_loop(count, lambda c: c * 2, x)

    def of_closure(x: Any) -> Any:
        return ad.while_loop(count, lambda c: c * x, 1.0)

    def of_tree(x: Any) -> Any:
        weights = {"w": [x, 1.0]}
        return ad.while_loop(count, lambda c: c * weights["w"][0], 1.0)

    two = np.full(2, 2.0)
    runs: list[Callable[[Any], Any]] = [
        lambda f: ad.grad(f)(2.0),
        lambda f: ad.hessian(f)(2.0),
        lambda f: ad.jacobian(f, mode="reverse")(2.0),
        lambda f: ad.vmap(ad.grad(f))(two),
        lambda f: ad.grad(lambda x: ad.vmap(f)(x).sum())(two),
        lambda f: ad.hvp(f, (2.0,), (1.0,)),
        lambda f: ad.grad(lambda x: ad.jvp(f, (x,), (x,))[1])(2.0),
        lambda f: f(ad.tensor(2.0).require_grad()),
    ]
    for f in (of_carry, of_closure, of_tree):
        for run in runs:
            with pytest.raises(errors.GraphError, match=r"tracked by reverse mode.*fori_loop or scan.*ad\.jvp"):
                run(f)
    assert calls == []


def test_a_bounded_while_loop_is_the_python_loop_in_reverse_mode() -> None:
    def plain(x: Any) -> Any:
        while x.sum() < 100.0:
            x = x * x + 1
        return x

    bounded = lambda x: ad.while_loop(lambda s: s.sum() < 100.0, lambda s: s * s + 1, x, max_steps=20)
    x = ad.tensor([1.5, 2.0], dtype=ad.float64)
    for transform in (lambda f: ad.grad(lambda x: f(x).sum()), lambda f: ad.hessian(lambda x: f(x).sum()), ad.jacobian):
        np.testing.assert_array_equal(transform(bounded)(x).numpy(), transform(plain)(x).numpy())
    ad.testing.check_grads(lambda x: ad.while_loop(lambda s: s < 10, lambda s: s * x, x, max_steps=9), (1.7,), order=2)


def test_jacobians_through_while_loop_go_forward() -> None:
    def f(x: Any) -> Any:
        return {"y": ad.while_loop(lambda c: c.sum() < 9, lambda c: c * x[:2], x[:2] * x[1:])}, x

    def f2(x: Any) -> Any:
        return ad.while_loop(lambda c: c < 9, lambda c: c * x.sum(), x[0] * x[1])

    x = np.array([1.5, 2.0, 0.5])
    found, aux = ad.jacobian(f, has_aux=True)(x)
    np.testing.assert_array_equal(found["y"], ad.jacobian(f, mode="forward", has_aux=True)(x)[0]["y"])
    np.testing.assert_array_equal(aux, x)
    np.testing.assert_array_equal(ad.jacobian(f2)(x), ad.jacobian(f2, mode="forward")(x))
    assert ad.vmap(ad.jacobian(f2))(np.stack([x, 2 * x])).shape == (2, 3)
    twice = ad.jacobian(ad.jacobian(f2))(x)
    np.testing.assert_array_equal(twice, ad.jacobian(ad.jacobian(f2, mode="forward"), mode="forward")(x))
    assert twice.any()
    for refused in (ad.jacobian(f2, mode="reverse"), ad.grad(lambda x: ad.jacobian(f2)(x).sum()), ad.hessian(f2)):
        with pytest.raises(errors.ForwardOnlyError, match="the carry is tracked by reverse mode"):
            refused(x)


def test_while_loop_names_what_is_tracked() -> None:
    with pytest.raises(errors.GraphError, match=r"the carry\['a'\]\[1\] is tracked"):
        ad.grad(lambda x: ad.while_loop(lambda c: True, lambda c: c, {"a": (0.0, x)})["a"][1])(1.0)
    with pytest.raises(errors.GraphError, match=r"a tensor of shape \(\) that body_fun closes over is tracked"):
        ad.grad(lambda x: ad.while_loop(lambda c: True, lambda c: c * x, 1.0))(1.0)


def test_while_loop_refuses_what_only_a_step_shows() -> None:
    steps = []

    class Model:
        def __init__(self, w: Any) -> None:
            self.w = w

        def __call__(self, c: Any) -> Any:
            steps.append(c)
            return c * self.w

    with ad.use_dtype(ad.float32), pytest.raises(errors.GraphError, match="the carry is tracked"):
        ad.grad(lambda x: ad.while_loop(lambda c: c < 10, Model(x), 1.0))(2.0)
    assert len(steps) == 2  # the second with the dtype that the first gave to 1.0


def test_while_loop_on_constants_inside_reverse_mode() -> None:
    """Only the predicate, or nothing, depends on what is tracked."""

    def f(x: Any) -> Any:
        steps = ad.while_loop(lambda n: n * n < x, lambda n: n + 1, 0)
        fixed = ad.stop_gradient(x)
        return ad.while_loop(lambda c: c < 5.0, lambda c: c * fixed, 1.0) * steps * x

    assert ad.value_and_grad(f)(2.5) == (6.25 * 2 * 2.5, 6.25 * 2)


def test_while_loop_forward() -> None:
    root = lambda a: ad.while_loop(lambda x: ad.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), 1.0)
    a = np.array([2.0, 9.0, 1e4])
    close(ad.vmap(root)(a), np.sqrt(a))
    close(ad.vmap(lambda a: ad.jvp(root, (a,), (1.0,)))(a)[1], 0.5 / np.sqrt(a))
    close(ad.jacobian(root, mode="forward")(2.0), 0.5 / np.sqrt(2))
    close(ad.jvp(lambda a: ad.jvp(root, (a,), (1.0,))[1], (2.0,), (1.0,))[1], -0.25 / 2**1.5)
    assert root(2.0).dtype == np.float64


# --- trees, numbers, tensors and NumPy ---------------------------------------------------------------


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class State:
    place: Any
    steps: Any


def test_carries_and_results_are_trees() -> None:
    def step(c: State, x: Any) -> Any:
        return State(Point(c.place.x + x["a"], c.place.y), c.steps + 1), {"p": Point(x["a"], None), "n": [c.steps]}

    last, ys = ad.scan(step, State(Point(np.zeros(2), np.ones(1)), 0), {"a": np.arange(6.0).reshape(3, 2)})
    assert isinstance(last, State)
    assert isinstance(last.place, Point)
    assert last.place.x.tolist() == [6.0, 9.0]
    assert last.steps == 3
    assert ys["p"].x.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert ys["p"].y is None
    assert ys["n"][0].tolist() == [0, 1, 2]


def test_numpy_gives_numpy_and_tensors_give_tensors(device: Any) -> None:
    def calls(x: Any) -> list[Any]:
        return [
            ad.cond(x.sum() > 0, lambda x: x, lambda x: -x, x),
            ad.switch(1, [lambda x: x, lambda x: -x], x),
            ad.while_loop(lambda c: c.sum() < 9, lambda c: c * 2, ad.stop_gradient(x)),
            ad.fori_loop(0, 2, lambda i, c: c + i, x),
            ad.map(lambda v: v * v, x),
            *ad.scan(lambda c, v: (c + v, c), x[0], x),
        ]

    values = np.array([1.0, 2.0])
    tensors = calls(ad.tensor(values))
    for mine, tensor in zip(calls(values), tensors, strict=True):
        assert isinstance(mine, (np.ndarray, np.float64))
        assert tensor.device is device
        same(tensor, mine)
    for x in calls(ad.tensor(values).require_grad())[0], calls(ad.tensor(values, device="numpy"))[0]:
        assert isinstance(x, ad.Tensor)
    values += 1  # results are the caller's own
    assert ad.fori_loop(0, 0, lambda i, c: c, values) is not values


def test_what_meets_a_tensor_stays_a_tensor(device: Any) -> None:
    w = ad.tensor(3.0, dtype=ad.float64).require_grad()
    last, ys = ad.scan(lambda c, x: (c * w, x), np.array(1.0), np.arange(3.0))
    assert isinstance(ys, np.ndarray)
    assert last.device is device
    assert last.backward()[w].item() == 27.0
    inner = ad.fori_loop(0, 2, lambda i, c: c + ad.fori_loop(0, 2, lambda j, d: d + 1, 0.0), np.float32(0))
    assert inner == 4.0
    assert inner.dtype == np.float32  # 0.0 is no array of float64 inside of a loop


def test_leaf_tensors_backward(device: Any) -> None:
    w = ad.tensor([0.3, -0.2], dtype=ad.float64).require_grad()
    xs = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.1]])
    last, ys = ad.scan(lambda c, x: (ad.tanh(c * w + x), c), ad.zeros_like(w), xs)
    grads = (last.sum() + (ys * ys).sum()).backward()

    def plain(w: Any) -> Any:
        c, total = w * 0, 0.0
        for x in xs:
            total = total + (c * c).sum()
            c = ad.tanh(c * w + x)
        return c.sum() + total

    close(grads[w].numpy(), ad.grad(plain)(np.array([0.3, -0.2])))


def test_python_numbers_take_the_dtype_of_the_first_step() -> None:
    single = ad.tensor([1.0, 2.0])
    double = ad.tensor([1.0, 2.0], dtype=ad.float64)
    for x in (single, double):
        last, ys = ad.scan(lambda c, v: (c + v, c), 0.1, x)
        assert (last.dtype, ys.dtype) == (x.dtype, x.dtype)
        close(ys[0].item(), np.asarray(0.1, x.dtype).item())
        assert ad.fori_loop(0, 2, lambda i, c, x=x: c * x[i], 1).dtype == x.dtype
        assert ad.while_loop(lambda c: c[0] < 9, lambda c, x=x: (c[0] * x[1], c[1]), (1.5, x))[0].dtype == x.dtype
    assert ad.scan(lambda c, v: (c + 1, v), 0, single)[0].dtype == np.int64
    with pytest.raises(errors.DtypeError, match=r"was a Python float, and became int64"):
        ad.scan(lambda c, v: (ad.tensor(1), v), 0.5, single)


def test_the_first_step_is_not_run_again_on_what_it_assigned_to() -> None:
    buffer = ad.zeros(3, dtype=ad.float64)

    def body(i: Any, c: Any) -> Any:
        c[0][i] += 1.0
        return c[0], c[1] + c[0].sum()  # the number becomes float64

    last, total = ad.fori_loop(0, 3, body, (buffer, 0.0))
    same(last, [1.0, 1.0, 1.0])
    assert total.item() == 6.0
    same(buffer, [0.0, 0.0, 0.0])


def test_assignment_in_a_body(device: Any) -> None:
    """Tensors are values: neither what is passed in nor what was returned before changes."""
    init, w = ad.zeros(3), ad.tensor([1.0, 2.0, 3.0]).require_grad()

    def step(c: Any, i: Any) -> Any:
        c[i] = w[i] * w[i]
        return c, c

    last, ys = ad.scan(step, init, ad.arange(3))
    same(init, np.zeros(3, np.float32))
    same(last, np.array([1, 4, 9], np.float32))
    same(ys, np.array([[1, 0, 0], [1, 4, 0], [1, 4, 9]], np.float32))
    same(ys.sum().backward()[w], np.array([6, 8, 6], np.float32))


# --- what is refused ---------------------------------------------------------------------------------

ONE, TWO = np.array(1.0), np.array([1.0, 2.0])


def in_batch(f: Any) -> Any:
    return ad.vmap(f)(np.array([1.0, -1.0]))


def choosing(a: Any, b: Any) -> Any:
    return lambda: in_batch(lambda x: ad.cond(x > 0, lambda: a, lambda: b))


REFUSED: dict[str, tuple[Any, Any, str]] = {
    # what is no function
    "cond branch": (lambda: ad.cond(True, ad.sin, 3, ONE), errors.ArgumentTypeError, "false_fun is a function"),
    "switch branch": (lambda: ad.switch(0, [ad.sin, None], ONE), errors.ArgumentTypeError, r"branches\[1\] is a func"),
    "while cond": (lambda: ad.while_loop(True, ad.sin, ONE), errors.ArgumentTypeError, "cond_fun is a function"),
    "while body": (lambda: ad.while_loop(ad.any, "f", ONE), errors.ArgumentTypeError, "body_fun is a function"),
    "fori body": (lambda: ad.fori_loop(0, 1, 0, ONE), errors.ArgumentTypeError, "fori_loop: body_fun is a function"),
    "scan body": (lambda: ad.scan(ONE, ONE, TWO), errors.ArgumentTypeError, "scan: expected a function, received"),
    "map body": (lambda: ad.map(TWO, TWO), errors.ArgumentTypeError, "map: expected a function, received"),
    # predicates and bounds
    "pred shape": (lambda: ad.cond(TWO > 0, ad.sin, ad.cos, TWO), errors.ShapeError, r"pred has shape \(2,\).*vmap"),
    "pred dtype": (lambda: ad.cond(ONE, ad.sin, ad.cos, ONE), errors.DtypeError, "pred is float64.*boolean.*!= 0"),
    "pred int": (lambda: ad.cond(1, ad.sin, ad.cos, ONE), errors.DtypeError, "pred is int64"),
    "pred type": (lambda: ad.cond("yes", ad.sin, ad.cos, ONE), errors.ArgumentTypeError, "pred is str 'yes'"),
    "pred none": (lambda: ad.cond(None, ad.sin, ad.cos, ONE), errors.ArgumentTypeError, "pred is NoneType"),
    "index dtype": (lambda: ad.switch(1.0, [ad.sin]), errors.DtypeError, "index is float.*an integer scalar"),
    "index bool": (lambda: ad.switch(True, [ad.sin]), errors.DtypeError, "index is bool"),
    "index shape": (lambda: ad.switch(np.arange(2), [ad.sin]), errors.ShapeError, r"index has shape \(2,\)"),
    "while pred": (lambda: ad.while_loop(ad.sin, ad.sin, ONE), errors.DtypeError, "result of cond_fun is float64"),
    "while shape": (lambda: ad.while_loop(lambda c: c > 0, ad.sin, TWO), errors.ShapeError, r"cond_fun has .*\(2,\)"),
    "lower": (lambda: ad.fori_loop(0.0, 2, max, ONE), errors.DtypeError, "fori_loop: lower is float"),
    "upper": (lambda: ad.fori_loop(0, np.arange(2), max, ONE), errors.ShapeError, "fori_loop: upper has shape"),
    "batch pred": (
        lambda: ad.vmap(lambda x: ad.cond(x > 0, ad.sin, ad.cos, x))(np.ones((2, 3))), errors.ShapeError, r"\(3,\)"
    ),
    # branches
    "no branch": (lambda: ad.switch(0, []), errors.ArgumentError, "branches is empty"),
    "branches": (lambda: ad.switch(0, ad.sin, ONE), errors.ArgumentTypeError, "a list or tuple of functions"),
    "structures": (choosing({"a": ONE}, (ONE,)), errors.ArgumentError, r"true_fun gives .*'a'.* false_fun PyTree"),
    "shapes": (
        choosing({"a": TWO}, {"a": ONE}), errors.ShapeError, r"result\['a'\] of true_fun is .*\(2,\).*false_fun .*\(\)"
    ),
    "dtypes": (choosing(ONE, ONE > 0), errors.DtypeError, "of true_fun is float64 .* false_fun bool"),
    "numbers": (choosing(np.array(1), 2.5), errors.DtypeError, "of true_fun is int64 .* false_fun float32"),
    "no results": (choosing("a", "b"), errors.ArgumentTypeError, "cond: the result is str 'a'"),
    # carries
    "carry shape": (
        lambda: ad.scan(lambda c, x: ({"a": [c["a"][0][None]]}, x), {"a": [ONE]}, TWO),
        errors.ShapeError,
        r"scan: the carry\['a'\]\[0\] was float64 of shape \(\), and became float64 of shape \(1,\); shapes stay",
    ),
    "carry dtype": (
        lambda: ad.fori_loop(0, 2, lambda i, c: (c[0], c[1] > 0), (ONE, ONE)),
        errors.DtypeError,
        r"fori_loop: the carry\[1\] was float64 of shape \(\), and became bool",
    ),
    "carry later": (
        lambda: ad.fori_loop(0, 2, lambda i, c: c if i == 0 else c.astype(ad.float32), ONE),
        errors.DtypeError,
        "the carry was float64 of shape .*, and became float32",
    ),
    "carry structure": (
        lambda: ad.while_loop(lambda c: True, lambda c: {"a": c["a"]}, {"a": ONE, "b": ONE}),
        errors.ArgumentError,
        r"while_loop: the carry changed its structure \(\['b'\] is gone\): it was .*, and became",
    ),
    "carry grows": (
        lambda: ad.while_loop(lambda c: True, lambda c: (*c, c[0]), (ONE,)),
        errors.ArgumentError,
        r"the carry changed its structure \(\[1\] is new\)",
    ),
    "carry node": (
        lambda: ad.while_loop(lambda c: True, lambda c: list(c), (ONE,)), errors.ArgumentError, r"was .*\(\*,\).*\[\*\]"
    ),
    "carry type": (lambda: ad.scan(lambda c, x: (c, x), "a", TWO), errors.ArgumentTypeError, "the carry is str 'a'"),
    "carry becomes": (
        lambda: ad.scan(lambda c, x: (max, x), ONE, TWO), errors.ArgumentTypeError, "the carry is builtin_function"
    ),
    "carry in a batch": (
        lambda: in_batch(lambda x: ad.while_loop(lambda c: c < 3, lambda c: c[None] + 1, x)),
        errors.ShapeError,
        r"while_loop: the carry was float64 of shape \(\), and became float64 of shape \(1,\)",
    ),
    # scan
    "pair": (lambda: ad.scan(lambda c, x: c, ONE, TWO), errors.ArgumentTypeError, r"scan: f returns a pair \(carry, y"),
    "y shape": (
        lambda: ad.scan(lambda c, x: (c + 1, {"s": np.zeros(int(c))}), ONE, TWO),
        errors.ShapeError,
        r"scan: the result y\['s'\] was float64 of shape \(1,\), and became float64 of shape \(2,\)",
    ),
    "y of map": (lambda: ad.map(lambda x: (x, 1) if x > 1 else x, TWO), errors.ArgumentError, "map: the result y ch"),
    "y type": (lambda: ad.scan(lambda c, x: (c, "a"), ONE, TWO), errors.ArgumentTypeError, "the result y is str 'a'"),
    "lengths": (
        lambda: ad.scan(lambda c, x: (c, x), ONE, {"a": TWO, "b": (np.zeros((3, 2)),)}),
        errors.ShapeError,
        r"scan: xs\['b'\]\[0\] has 3 slices along its first axis, and xs\['a'\] has 2",
    ),
    "length": (lambda: ad.scan(lambda c, x: (c, x), ONE, TWO, length=3), errors.ShapeError, "xs has 2 .*length is 3"),
    "no length": (lambda: ad.scan(lambda c, x: (c, x), ONE), errors.ArgumentError, "no arrays; .* length="),
    "negative": (lambda: ad.scan(lambda c, x: (c, x), ONE, length=-1), errors.ArgumentError, "length is a non-neg"),
    "fraction": (lambda: ad.scan(lambda c, x: (c, x), ONE, length=1.5), errors.ArgumentTypeError, "received 1.5"),
    "a word": (lambda: ad.map(ad.sin, (TWO, "a")), errors.ArgumentTypeError, r"map: xs\[1\] is 'a', which has no"),
    "chunk of none": (
        lambda: ad.scan(lambda c, x: (c, x), ONE, TWO, checkpoint_every=0), errors.ArgumentError, "every is a positive"
    ),
    "chunk of parts": (
        lambda: ad.scan(lambda c, x: (c, x), ONE, TWO, checkpoint_every=2.0), errors.ArgumentTypeError, "received 2.0"
    ),
    "carry in a chunk": (
        lambda: ad.grad(lambda x: ad.scan(lambda c, _: (c[None], x), x, length=3, checkpoint_every=2)[0])(ONE),
        errors.ShapeError,
        r"scan: the carry was float64 of shape \(\), and became",
    ),
    "no axis": (lambda: ad.map(ad.sin, {"a": ONE}), errors.ShapeError, r"map: xs\['a'\] is .* no first axis"),
    "no arrays": (lambda: ad.map(ad.sin, ()), errors.ArgumentError, r"map: xs has no arrays$"),
    "batch of none": (lambda: ad.map(ad.sin, TWO, batch_size=0), errors.ArgumentError, "size is a positive"),
    "half a batch": (lambda: ad.map(ad.sin, TWO, batch_size=0.5), errors.ArgumentTypeError, "received 0.5"),
    "a list": (lambda: ad.map(ad.sin, [1.0, 2.0]), errors.ShapeError, r"xs\[0\] is .*1\., .*ad\.tensor makes"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    run, error, message = REFUSED[case]
    with pytest.raises(errors.AdjointError, match=f"(?s){message}") as caught:
        run()
    assert type(caught.value) is error
