"""The life of graphs: no leaks, no cycles, no recursion, and many threads."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import LIMIT

import adjoint as ad
from adjoint import errors
from adjoint.graph.nodes import Node, Var
from adjoint.graph.remat import Remat
from adjoint.rules import RECORDS

LONG = 1_000_000


def alive() -> int:
    """How many nodes, arrays and rematerialisations of graphs there are."""
    return sum(issubclass(type(thing), (Node, Var, Remat)) for thing in gc.get_objects())  # isinstance asks __class__


def leaf(*values: float) -> Any:
    return ad.tensor(values, dtype=ad.float64).require_grad()


def model(x: Any) -> Any:
    """Uses a good part of the vocabulary: several results, scalars, indexing, composed primitives."""
    h = (x.reshape((2, 2)) @ x.reshape((2, 2))).exp()
    values, _ = ad.topk(h.reshape(-1), 3)
    changed = h * 1
    changed[0] = values[:2]
    losses = ad.nn.cross_entropy(ad.special.log_softmax(changed, axis=-1), np.array([0, 1]))
    return losses + ad.nn.layer_norm(values, 3).sum() + ad.where(x > 0, x, 0.0).sum() + ad.concat([x, values]).sum()


# --- freed by reference counting alone ---


def test_a_graph_is_freed_without_the_collector(device: Any, no_collector: None) -> None:
    x = leaf(0.1, 0.2, 0.3, 0.4)
    before = alive()
    loss = model(x)
    watched = weakref.ref(loss._array.node)
    assert alive() > before
    del loss
    assert watched() is None
    assert alive() == before


def test_a_graph_is_freed_after_backward(device: Any, no_collector: None) -> None:
    x = leaf(0.1, 0.2, 0.3, 0.4)
    before = alive()
    loss = model(x)
    grads = loss.backward()
    del loss
    assert alive() == before
    assert x in grads


def test_backward_frees_what_it_has_used(device: Any, no_collector: None) -> None:
    """While the root is still held: only its own node remains, and no saved value."""
    x = leaf(0.1, 0.2, 0.3, 0.4)
    h = x * 2
    y = h.exp()
    saved, middle = weakref.ref(y._array), weakref.ref(h._array.node)
    loss = (y * y).sum()
    del h, y
    loss.backward()
    assert saved() is None
    assert middle() is None
    assert loss._array.node is not None


def test_retained_graphs_are_freed_with_their_root(device: Any, no_collector: None) -> None:
    x = leaf(0.1, 0.2, 0.3, 0.4)
    before = alive()
    loss = model(x)
    loss.backward(retain_graph=True)
    loss.backward(retain_graph=True, wrt=[loss])
    del loss
    assert alive() == before


def test_a_graph_is_freed_after_an_error_in_backward(no_collector: None) -> None:
    class Fails(ad.Autodiff[Any]):
        def _lift(self, primitive: Any, run: Any, record: Any) -> Any:
            from adjoint.rules import Elementwise

            def rule(B: Any, g: Any, out: Any) -> Any:
                raise ZeroDivisionError("on purpose")

            return super()._lift(primitive, run, Elementwise(x=rule) if primitive.name == "exp" else record)

    x = ad.ones(3, device=Fails(ad.NumPy())).require_grad()
    before = alive()
    loss = ((x * 2).exp() * x).sum()
    try:
        loss.backward()
    except errors.BackwardError:
        pass
    else:
        pytest.fail("the rule must fail")
    del loss
    assert alive() == before


def test_nested_graphs_are_freed(no_collector: None) -> None:
    x = leaf(0.1, 0.2, 0.3, 0.4)
    before = alive()
    high = ad.from_inner(x).require_grad()
    gradient = model(high).backward()[high]
    second = gradient.sum().backward()[x]
    assert second.shape == (4,)
    del high, gradient, second
    assert alive() == before


def test_traced_graphs_are_freed(device: Any, no_collector: None) -> None:
    with ad.testing.source_locations():
        x = leaf(0.1, 0.2, 0.3, 0.4)
        before = alive()
        loss = model(x) * model(x.detach())
        assert alive() > before
        del loss
        assert alive() == before


def test_gradients_keep_leaves_but_no_graph(device: Any, no_collector: None) -> None:
    x = leaf(1, 2)
    h = x * 3
    watched = weakref.ref(h._array.node)
    grads = (h * h).sum().backward()
    del h
    assert watched() is None
    key = weakref.ref(x._array.node)
    del x
    assert len(list(grads)) == 1
    del grads
    assert key() is None


def test_assignment_leaves_no_cycle(device: Any, no_collector: None) -> None:
    x = leaf(1, 2, 3)
    before = alive()
    y = x * 1
    for i in range(3):
        y[i] = y[i] * y[i - 1]
        y *= x
    y += y
    del y
    assert alive() == before


# --- forward alone leaks nothing ---


def test_forward_steps_without_backward_leak_nothing(device: Any, no_collector: None) -> None:
    w = ad.tensor(1.5).require_grad()

    def steps(count: int) -> None:
        for _ in range(count):
            y = w * 2.0
            y = y.exp() + w
            del y

    steps(10)
    nodes, blocks = alive(), sys.getallocatedblocks()
    steps(100_000)
    assert alive() == nodes
    assert sys.getallocatedblocks() - blocks < 1000


def test_steps_of_training_leak_nothing(device: Any, no_collector: None) -> None:
    w = ad.tensor([0.5, -0.5]).require_grad()

    def steps(w: Any, count: int) -> Any:
        for _ in range(count):
            grads = ((w - 1) ** 2).sum().backward()
            w = w.with_value(w.inner() - 0.1 * grads[w])
        return w

    w = steps(w, 10)
    nodes, blocks = alive(), sys.getallocatedblocks()
    w = steps(w, 2000)
    assert alive() == nodes
    assert sys.getallocatedblocks() - blocks < 500


def test_memory_of_a_loop_stays_flat(device: Any) -> None:
    """Large arrays: what one step holds is gone at the next."""
    w = ad.ones(100_000).require_grad()
    tracemalloc.start()
    try:
        for i in range(30):
            loss = ((w * 2).exp() * w).sum()
            if i % 2:
                loss.backward()
            del loss
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * 400_000


# --- deep graphs ---


def chain(x: Any, length: int) -> Any:
    y = x
    for _ in range(length // 2):
        y = y * 1.0000001
        y = y + 1e-9
    return y


MODES = pytest.mark.parametrize("device", ["keep", pytest.param("balanced", marks=pytest.mark.slow)], indirect=True)


@MODES
def test_a_million_operations_forward_and_backward(device: Any, no_collector: None) -> None:
    x = ad.tensor(1.0, dtype=ad.float64).require_grad()
    y = chain(x, LONG)
    gradient = y.backward()[x]
    np.testing.assert_allclose(gradient.item(), 1.0000001 ** (LONG // 2), rtol=1e-9)
    del y


@MODES
def test_a_million_operations_are_freed_without_backward(device: Any, no_collector: None) -> None:
    x = ad.tensor(1.0, dtype=ad.float64).require_grad()
    y = chain(x, LONG)
    first = weakref.ref(y._array.node)
    del y
    assert first() is None


def recurrent(w: Any, x: Any) -> Any:
    """A network whose steps slice, add, multiply and join: `x` are the inputs."""
    h = ad.zeros((1, 2), dtype=ad.float64, device=w.device)
    states = []
    for t in range(x.shape[0]):
        z = h @ w + x[t]
        gate, new = z[:, :2], z[..., -2:]
        h = ad.special.expit(gate) * ad.tanh(new) + h * 0.5
        states.append(h)
    return ad.stack(states).sum() + ad.concat([w[1:], w[::-1]]).mean()


def test_a_node_is_one_object_to_the_collector() -> None:
    """Python's collector visits every object that it tracks in each of its full runs: of a long graph, nodes alone."""
    gc.collect()
    before = {id(thing) for thing in gc.get_objects()}
    with ad.use_device("autodiff<numpy>"):
        w, x = ad.ones((2, 4), dtype=ad.float64).require_grad(), ad.ones((200, 1, 4), dtype=ad.float64).require_grad()
        loss = recurrent(w, x)
    gc.collect()  # tuples of what is no container are let go here
    new = [thing for thing in gc.get_objects() if id(thing) not in before]
    nodes = sum(issubclass(type(thing), Node) for thing in new)
    others = [type(thing).__name__ for thing in new if not issubclass(type(thing), Node)]
    assert nodes > 2000
    assert len(others) < 300, {name: others.count(name) for name in others}  # lifted primitives, made at the first call
    assert loss.is_tracked()


def test_a_graph_with_many_parents_is_freed_without_recursion(no_collector: None) -> None:
    x = ad.tensor([1.0, 2.0], dtype=ad.float64).require_grad()
    before = alive()
    y = x
    for _ in range(100_000):
        y = ad.concat([y[:1], y[1:], y[:0]])
    kept = weakref.ref(y._array.node)
    assert len(y._array.node.parents) == 3
    del y
    assert kept() is None
    assert alive() == before


def test_a_walk_frees_nodes_of_any_number_of_parents(no_collector: None) -> None:
    x = ad.tensor([1.0, 2.0], dtype=ad.float64).require_grad()
    parts = [x * k for k in range(1, 6)]
    watched = [weakref.ref(part._array.node) for part in parts]
    root = ad.concat(parts)
    node = root._array.node
    assert [parent.name for parent in node.parents] == ["multiply"] * 5
    del parts
    assert root.sum().backward()[x].tolist() == [15.0, 15.0]
    assert node.parents is None
    assert not any(node() for node in watched)


def test_what_another_pass_used_up_is_refused_by_marks_not_by_what_is_left(device: Any) -> None:
    """A shared part: the pass that comes second finds it marked, and marks nothing of its own."""
    x = leaf(1.0, 2.0)
    shared = x * 3
    first, second = shared.sum(), (shared * x).sum()
    middle = second._array.node.parents[0]
    first.backward()
    with pytest.raises(ad.errors.FreedGraphError, match="'multiply' was used up by an earlier backward"):
        second.backward()
    with pytest.raises(ad.errors.FreedGraphError):
        second.backward(wrt=[x])
    assert middle.parents is not None


def test_pulling_back_through_a_concatenation_takes_linear_work(device: Any) -> None:
    """Counted in comparisons that its rule makes of the places of operands, each of which was sought in a list."""

    class Place(int):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Place.compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    rule = RECORDS["concat"].pullback
    assert rule is not None
    n = 100
    pieces = rule(ad.NumPy(), np.arange(n * 2.0), tuple(map(Place, range(n))), ((2,),) * n, 0)
    np.testing.assert_array_equal(np.concatenate(pieces), np.arange(n * 2.0))
    assert Place.compared == 0


def test_a_deep_graph_of_two_operands() -> None:
    """Every step uses the last two, as Fibonacci's numbers do: shared nodes are pulled back once."""
    x = ad.tensor(1.0, dtype=ad.float64).require_grad()
    a, b = x, x
    for _ in range(70):
        a, b = b, a + b
    assert b.backward(retain_graph=True)[x].item() == b.item()
    assert ad.why(x, b).startswith("connected")


def test_deep_graphs_under_tracing_nesting_and_several_results(no_collector: None) -> None:
    with ad.testing.source_locations():
        x = ad.tensor(1.0, dtype=ad.float64).require_grad()
        y = chain(x, 50_000)
        assert ad.why(x, y).count("multiply") == 25_000
        z = y.detach()
        for _ in range(50_000):
            z = z + 1
        assert "cut at 'detach'" in ad.why(x, z)
        assert y.backward()[x].item() > 1
        del y, z
    high = ad.from_inner(x).require_grad()
    out = chain(high * high, 50_000)
    gradient = out.backward()[high]
    np.testing.assert_allclose(gradient.backward()[x].item(), 2 * 1.0000001**25_000)
    values = leaf(1, 2, 3)
    part = values
    for _ in range(5_000):
        part, _places = ad.topk(part, 3)
    assert part.sum().backward()[values].tolist() == [1.0, 1.0, 1.0]


def test_a_wide_graph(device: Any) -> None:
    leaves = [leaf(i) for i in range(2000)]
    grads = (ad.concat(leaves) * 2).sum().backward()
    assert len(grads) == 2000
    assert {g.item() for g in grads.values()} == {2.0}


# --- threads ---


def together(work: Callable[[int], Any], count: int) -> list[Any]:
    """Run `work(i)` in threads that start at one moment; the results or exceptions, in order."""
    barrier, found = threading.Barrier(count), [None] * count

    def run(i: int) -> None:
        barrier.wait(LIMIT)
        try:
            found[i] = work(i)
        except Exception as error:
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "deadlock"
    return found


@pytest.fixture
def busy() -> Iterator[None]:
    """Threads change as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def values_of(i: int) -> Any:
    return np.linspace(0.1, 1.0, 4) + i / 10


def test_separate_graphs_in_threads(device: Any, busy: None) -> None:
    def work(i: int) -> Any:
        found = []
        for _ in range(20):
            x = ad.tensor(values_of(i), device=device).require_grad()
            found.append(model(x).backward()[x].numpy())
        return found

    for i, found in enumerate(together(work, 8)):
        x = ad.tensor(values_of(i), device=device).require_grad()
        expected = model(x).backward()[x].numpy()
        assert len(found) == 20
        for gradient in found:
            np.testing.assert_array_equal(gradient, expected)


def test_graphs_built_in_threads_and_joined(device: Any, busy: None) -> None:
    x = leaf(0.1, 0.2, 0.3, 0.4)
    parts = together(lambda i: model(x * (1 + i / 10)), 8)
    total = sum(parts[1:], parts[0])
    gradient = total.backward()[x]
    again = sum((model(x * (1 + i / 10)) for i in range(1, 8)), model(x * 1.0))
    np.testing.assert_allclose(gradient.numpy(), again.backward()[x].numpy(), rtol=1e-12)


def test_backward_in_threads_over_a_shared_prefix_that_is_retained(device: Any, busy: None) -> None:
    x = leaf(0.1, 0.2, 0.3, 0.4)
    prefix = x
    for _ in range(20):
        prefix = (prefix * 1.01).sin() + x
    roots = [model(prefix * (1 + i / 10)) for i in range(8)]
    expected = [root.backward(retain_graph=True)[x].numpy() for root in roots]
    for _ in range(5):
        found = together(lambda i: roots[i].backward(retain_graph=True)[x].numpy(), 8)
        for gradient, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(gradient, other)


def test_of_walks_that_use_up_a_shared_prefix_one_succeeds(device: Any, busy: None) -> None:
    for attempt in range(40):
        x = leaf(0.1, 0.2, 0.3, 0.4)
        prefix = x
        for _ in range(10):
            prefix = (prefix * 1.01).sin() + x
        roots = [(prefix * (2.0 + i)).sum() for i in range(4)]
        found = together(lambda i, roots=roots, x=x: roots[i].backward()[x], 4)
        won = [i for i, result in enumerate(found) if isinstance(result, ad.Tensor)]
        lost = [result for result in found if isinstance(result, errors.FreedGraphError)]
        assert (len(won), len(lost)) == (1, 3), (attempt, found)
        fresh = x
        for _ in range(10):
            fresh = (fresh * 1.01).sin() + x
        expected = (fresh * (2.0 + won[0])).sum().backward()[x]
        np.testing.assert_array_equal(found[won[0]].numpy(), expected.numpy())


def test_a_retaining_pass_against_a_freeing_one(device: Any, busy: None) -> None:
    """The freeing pass succeeds; the retaining one gives the right gradient or the error, never a wrong one."""
    for _ in range(40):
        x = leaf(0.1, 0.2, 0.3, 0.4)
        prefix = x
        for _ in range(30):
            prefix = (prefix * 1.01).sin() + x
        root = (prefix * 2).sum()
        expected = root.backward(retain_graph=True)[x].numpy()
        freeing, retaining = together(lambda i, root=root, x=x: root.backward(retain_graph=i == 1)[x].numpy(), 2)
        np.testing.assert_array_equal(freeing, expected)
        if not isinstance(retaining, errors.FreedGraphError):
            np.testing.assert_array_equal(retaining, expected)


def test_no_lock_is_held_while_rules_run() -> None:
    """A rule that waits for another thread's backward to finish."""
    entered, finished = threading.Event(), threading.Event()

    class Waits(ad.Autodiff[Any]):
        def _lift(self, primitive: Any, run: Any, record: Any) -> Any:
            from adjoint.rules import Elementwise

            def rule(B: Any, g: Any, out: Any) -> Any:
                entered.set()
                assert finished.wait(timeout=60)
                return B.multiply(g, out)

            return super()._lift(primitive, run, Elementwise(x=rule) if primitive.name == "exp" else record)

    level = Waits(ad.NumPy())
    x = ad.ones(3, device=level).require_grad()
    shared = x * 2

    def work(i: int) -> Any:
        if i == 0:
            return shared.exp().sum().backward(retain_graph=True)[x]
        assert entered.wait(timeout=60)
        gradient = (shared * 3).sum().backward(retain_graph=True)[x]
        finished.set()
        return gradient

    first, second = together(work, 2)
    np.testing.assert_allclose(first.numpy(), 2 * np.exp([2.0, 2.0, 2.0]), rtol=1e-6)
    assert second.tolist() == [6.0, 6.0, 6.0]


def test_many_threads_share_parameters_as_in_data_parallel_training(device: Any, busy: None) -> None:
    w = ad.tensor(np.linspace(-1, 1, 12).reshape(4, 3)).require_grad()
    data = np.random.default_rng(0).standard_normal((8, 5, 4))

    def loss(i: int) -> Any:
        return (ad.tensor(data[i], device=w.device) @ w).tanh().sum()

    for _ in range(3):
        grads = sum(together(lambda i: loss(i).backward(), 8))
        expected = sum(loss(i).backward()[w].numpy() for i in range(8))
        np.testing.assert_allclose(grads[w].numpy(), expected, rtol=1e-12)
