"""`Gradients`: a mapping from leaf tensors to gradients, that can be computed with and sent around."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from conftest import joined, same

import adjoint as ad
from adjoint import errors

# Python warns of forks beside threads, and JAX of any, where another test module has imported it
FORKING = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:os.fork:RuntimeWarning")


def leaf(*values: float) -> Any:
    return ad.tensor(values, dtype=ad.float64).require_grad()


@pytest.fixture
def graph(device: Any) -> tuple[Any, Any, Any]:
    """Two leaves, and the gradients [3, 4] and [1, 2] of x * y."""
    x, y = leaf(1, 2), leaf(3, 4)
    return x, y, (x * y).sum().backward()


def test_mapping(graph: Any) -> None:
    x, y, grads = graph
    same(grads[x], [3.0, 4.0])
    same(grads[y], [1.0, 2.0])
    assert x in grads
    assert y in grads
    assert leaf(1) not in grads
    assert "x" not in grads
    assert x.inner() not in grads
    assert len(grads) == 2
    assert [t.tolist() for t in grads] == [t.tolist() for t in grads.keys()]  # noqa: SIM118
    assert sorted(t.tolist() for t in grads) == [[1.0, 2.0], [3.0, 4.0]]
    assert sorted(g.tolist() for g in grads.values()) == [[1.0, 2.0], [3.0, 4.0]]
    for tensor, gradient in grads.items():
        assert tensor.is_require_grad()
        same(grads[tensor], gradient.numpy())


def test_iteration_gives_the_leaves_themselves(graph: Any) -> None:
    x, y, grads = graph
    total = sum((t * 2).sum() for t in grads)
    again = total.backward()
    same(again[x], [2.0, 2.0])
    same(again[y], [2.0, 2.0])


def test_iteration_over_gradients_of_intermediate_tensors(device: Any) -> None:
    x = leaf(0, 2)
    h = x * 3
    grads = (h * h).sum().backward(wrt=[h, x])
    assert sorted(t.tolist() for t in grads) == [[0.0, 2.0], [0.0, 6.0]]
    assert {tuple(t.tolist()): g.tolist() for t, g in grads.items()} == {
        (0.0, 6.0): [0.0, 12.0],
        (0.0, 2.0): [0.0, 36.0],
    }
    assert len(grads.map(lambda g: g * 2).keys()) == 2


def test_the_cotangent_alone_is_given_by_position(device: Any) -> None:
    x = leaf(1, 2)
    same((x * x).backward([1.0, 0.0])[x], [2.0, 0.0])
    with pytest.raises(TypeError, match="positional"):
        (x * x).backward(None, True)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_constants_of_levels_above_are_cotangents_and_gradients(levels: int, device: Any) -> None:
    top = device
    for _ in range(levels - 1):
        top = device.over(top)
    x = ad.tensor([1.0, 2.0], device=top).require_grad()
    for level in (device, top, ad.NumPy()):
        two = ad.tensor(2.0, device=level)
        grads = (x * x).sum().backward(two)
        same(grads[x], np.array([4.0, 8.0], "f4"))
        same((grads * two)[x], np.array([8.0, 16.0], "f4"))
        same((grads / two)[x], np.array([2.0, 4.0], "f4"))
        x.grad_replace(grads, ad.ones(2, device=level))
        same(grads[x], np.ones(2, "f4"))
        assert grads.map(lambda g, level=level: ad.zeros(2, device=level))[x].device is top.inner


def test_cotangents_are_anything_that_asarray_takes(device: Any) -> None:
    x = leaf(1, 2)
    for cotangent in ([1, 0], (1.0, 0.0), np.array([1.0, 0.0], "f4"), np.array([1, 0]), np.array([True, False])):
        same((x * x).backward(cotangent)[x], [2.0, 0.0])
    for number in (3, 3.0, np.float32(3), np.int8(3)):
        same((x * x).sum().backward(number)[x], [6.0, 12.0])


def test_cotangents_tracked_below_keep_their_graph(device: Any) -> None:
    c, top = leaf(3), device.over(device)
    x = ad.tensor([2.0], dtype=ad.float64, device=top).require_grad()
    slope = (x * x).backward(ad.asarray(c, device=top))[x]
    same(slope.backward()[c], [4.0])


def test_get_and_pop(graph: Any) -> None:
    x, y, grads = graph
    other = leaf(1)
    same(grads.get(x), [3.0, 4.0])
    assert grads.get(other) is None
    assert grads.get(other, 5) == 5
    assert grads.pop(other, None) is None
    same(grads.pop(x), [3.0, 4.0])
    assert x not in grads
    assert len(grads) == 1
    assert grads.pop(x, "gone") == "gone"
    same(grads.pop(y), [1.0, 2.0])
    assert len(grads) == 0
    assert list(grads) == []


def test_key_errors_say_why(graph: Any, device: Any) -> None:
    x, y, grads = graph
    for attempt in (lambda t: grads[t], grads.pop):
        with pytest.raises(KeyError, match=r"shape \(3,\) is not a leaf.*require_grad\(\)"):
            attempt(ad.ones(3))
        with pytest.raises(KeyError, match=r"tensor of shape \(1,\) was not reached from the root; ad\.why"):
            attempt(leaf(1))
        with pytest.raises(KeyError, match=r"intermediate result, not a leaf.*wrt=\[x\]"):
            attempt(x * 2)
        with pytest.raises(KeyError, match=r"it is on numpy, these are gradients of"):
            attempt(x.inner())
        with pytest.raises(KeyError, match=r"it is on autodiff<autodiff"):
            attempt(ad.from_inner(x).require_grad())
        with pytest.raises(KeyError, match="is a tensor, received str"):
            attempt("x")
    grads.pop(x)
    with pytest.raises(errors.NoGradientError, match=r"shape \(2,\) was popped already"):
        grads[x]
    with pytest.raises(errors.NoGradientError, match="popped already"):
        grads.pop(x)


def test_an_intermediate_that_was_asked_for_and_not_reached(device: Any) -> None:
    x, y = leaf(1), leaf(2)
    h = y * 2
    grads = (x * 3).backward(wrt=[x, h])
    with pytest.raises(KeyError, match=r"was not reached from the root"):
        grads[h]


def test_setting(graph: Any, device: Any) -> None:
    x, y, grads = graph
    grads[x] = [7.0, 8.0]
    same(grads[x], [7.0, 8.0])
    grads[x] = ad.ones(2, dtype=ad.float64, device=device.inner)
    same(grads[x], [1.0, 1.0])
    new = leaf(5)
    grads[new] = np.array([9.0])
    same(grads[new], [9.0])
    assert len(grads) == 3
    with pytest.raises(errors.ShapeError, match=r"\(3,\).*\(2,\)"):
        grads[x] = [1.0, 2.0, 3.0]
    with pytest.raises(errors.DtypeError, match="float32.*float64"):
        grads[x] = ad.ones(2, device=device.inner)
    with pytest.raises(errors.DeviceError, match=r"inner\(\)"):
        grads[x] = leaf(1, 1)
    same(grads[x], [1.0, 1.0])
    grads.pop(x)
    grads[x] = [0.0, 0.0]
    same(grads[x], [0.0, 0.0])


def test_sums(graph: Any) -> None:
    x, y, grads = graph
    z = leaf(1, 1)
    other = (x * z).sum().backward()
    total = grads + other
    same(total[x], [4.0, 5.0])
    same(total[y], [1.0, 2.0])
    same(total[z], [1.0, 2.0])
    same(grads[x], [3.0, 4.0])  # the operands stay
    same(other[x], [1.0, 1.0])
    same(sum([grads, other, grads])[x], [7.0, 9.0])
    assert len(list(total)) == 3


def test_multiples(graph: Any, device: Any) -> None:
    x, _, grads = graph
    same((grads * 2)[x], [6.0, 8.0])
    same((0.5 * grads)[x], [1.5, 2.0])
    same((grads / 2)[x], [1.5, 2.0])
    same((grads * ad.tensor(3.0, device=device.inner))[x], [9.0, 12.0])
    same((grads * np.float64(2))[x], [6.0, 8.0])
    same(grads[x], [3.0, 4.0])
    with pytest.raises(TypeError):
        grads * "a"
    with pytest.raises(TypeError):
        grads + 1


def test_multiples_keep_the_dtype(device: Any) -> None:
    x = ad.ones(2).require_grad()
    grads = (x * 2).sum().backward()
    for scaled in (grads * 2.5, grads * ad.tensor(2.0, dtype=ad.float64, device=device.inner), grads / np.float64(3)):
        assert scaled[x].dtype is ad.float32


def test_map(graph: Any) -> None:
    x, y, grads = graph
    clipped = grads.map(lambda g: ad.clip(g, 0, 2))
    same(clipped[x], [2.0, 2.0])
    same(clipped[y], [1.0, 2.0])
    same(grads[x], [3.0, 4.0])
    assert len(list(clipped)) == 2
    with pytest.raises(errors.DeviceError, match="map"):
        grads.map(lambda g: 1.0)


def test_map_keeps_the_shape_and_dtype(graph: Any) -> None:
    _, _, grads = graph
    with pytest.raises(errors.ShapeError, match="map"):
        grads.map(lambda g: g.sum())
    with pytest.raises(errors.DtypeError, match="map"):
        grads.map(lambda g: g.astype(ad.float32))


def test_differences(graph: Any) -> None:
    x, y, grads = graph
    same((-grads)[y], [-1.0, -2.0])
    other = (x * x * y).sum().backward()
    same((grads - other)[x], [3.0 - 6.0, 4.0 - 16.0])
    same((grads - other)[y], [1.0 - 1.0, 2.0 - 4.0])
    alone = (x * x).sum().backward()
    same((grads - alone)[y], [1.0, 2.0])
    same((alone - grads)[y], [-1.0, -2.0])
    same((alone - grads)[x], [2.0 - 3.0, 4.0 - 4.0])
    for wrong in (lambda: grads - 1.0, lambda: 1.0 - grads, lambda: 1.0 + grads):
        with pytest.raises(TypeError, match="unsupported operand"):
            wrong()


def test_recorded_differences_are_differentiated(device: Any) -> None:
    x = leaf(1, 2)
    first, second = ((x**k).sum().backward(create_graph=True) for k in (3, 2))
    same((first - second)[x].sum().backward(retain_graph=True)[x], [6.0 - 2.0, 12.0 - 2.0])
    same((-first)[x].sum().backward()[x], [-6.0, -12.0])


def test_a_step_with_all_gradients_names_that_of_one_leaf(graph: Any) -> None:
    w, _, grads = graph
    of_one = w.inner().numpy()
    for step in (
        lambda: w - 0.1 * grads, lambda: w + grads, lambda: w.inner() - grads, lambda: of_one - grads,
        lambda: grads - w, lambda: grads + w, lambda: grads - of_one,
    ):  # fmt: skip
        with pytest.raises(errors.ArgumentTypeError, match=r"grads\[w\].*with_value"):
            step()
    for product in (lambda: w * grads, lambda: grads * w.inner(), lambda: of_one * grads, lambda: grads / w):
        with pytest.raises(errors.ArgumentTypeError, match=r"grads\[w\] is that of one, as in w \* grads\[w\]"):
            product()


def test_a_dict_of_gradients_says_what_they_are_instead(graph: Any) -> None:
    x, _, grads = graph
    for wrong in (lambda: dict(grads), lambda: {x: 1}, lambda: {x}):
        with pytest.raises(errors.ArgumentTypeError, match=r"unhashable.*grads\[x\].*grads\.items\(\)"):
            wrong()


def test_the_wrong_leaf_of_a_step_is_named(graph: Any) -> None:
    old, y, grads = graph
    new = old.with_value(old.inner() - 0.1 * grads[old])
    listed = y.with_value([0.0, 1.0])  # through the other branch
    for leaf_, gradients in ((new, grads), (listed, grads), (listed, pickle.loads(pickle.dumps(grads)))):
        with pytest.raises(
            errors.NoGradientError, match=r"shape \(2,\) is the new leaf that with_value made.*the old one"
        ):
            gradients[leaf_]
    later = (new * listed).sum().backward()
    for leaf_, gradients in ((old, later), (y, later), (y, later * 2.0)):
        with pytest.raises(errors.NoGradientError, match=r"shape \(2,\) is the old leaf.*the new one"):
            gradients[leaf_]
    newest = new.with_value([5.0, 6.0])
    with pytest.raises(errors.NoGradientError, match="is the new leaf"):
        grads[newest]
    same((newest * y).sum().backward()[newest], [3.0, 4.0])


def test_gradients_of_different_levels_do_not_add(graph: Any) -> None:
    x, _, grads = graph
    high = ad.from_inner(x).require_grad()
    with pytest.raises(errors.DeviceError, match="do not add"):
        grads + (high * 2).sum().backward()


def test_gradients_of_a_nested_level_are_tracked_below() -> None:
    x = leaf(2)
    high = ad.from_inner(x).require_grad()
    grads = (high**3).sum().backward()
    total = (grads + grads * 2).map(lambda g: g * g)
    same(total[high], [(3 * 12.0) ** 2])
    same(total[high].sum().backward()[x], [2 * 36.0 * 36.0])


def test_repr(graph: Any) -> None:
    _, _, grads = graph
    assert repr(grads).startswith("Gradients(2 of autodiff")
    assert "(2,)" in repr(grads)


def test_gradients_outlive_tensors_and_graphs(device: Any) -> None:
    def build() -> Any:
        x = leaf(1, 2)
        return (x * x).sum().backward()

    grads = build()
    assert [g.tolist() for g in grads.values()] == [[2.0, 4.0]]
    (x,) = grads
    assert x.tolist() == [1.0, 2.0]
    same(grads[x], [2.0, 4.0])


def test_copies_are_independent(graph: Any) -> None:
    x, _, grads = graph
    other = deepcopy(grads)
    other.pop(x)
    assert x in grads
    assert x not in other


# --- other processes and threads ---


def test_pickle_keeps_keys(graph: Any) -> None:
    x, y, grads = graph
    grads.pop(y)
    loaded = pickle.loads(pickle.dumps(grads))
    same(loaded[x], [3.0, 4.0])
    with pytest.raises(KeyError, match="popped already"):
        loaded[y]
    assert [t.tolist() for t in loaded] == [[1.0, 2.0]]
    same((loaded + grads)[x], [6.0, 8.0])


def test_a_leaf_is_known_as_long_as_one_of_its_copies_lives(device: Any) -> None:
    x = leaf(1, 2)
    payload = pickle.dumps((x * 3).sum().backward())
    again = pickle.loads(pickle.dumps(x))
    del again
    (found,) = pickle.loads(payload)
    same(pickle.loads(payload)[found], [3.0, 3.0])
    same(found, [1.0, 2.0])


def test_gradients_that_are_tracked_below_do_not_leave_their_graph() -> None:
    x = leaf(2)
    high = ad.from_inner(x).require_grad()
    grads = (high * high * x).sum().backward()
    for take_along in (pickle.dumps, deepcopy):
        with pytest.raises(errors.TrackedError, match=r"detach\(\)"):
            take_along(grads)
    assert pickle.loads(pickle.dumps(grads.map(lambda g: g.detach())))[high].tolist() == [8.0]


def _work(queue: Any, leaves: Any) -> None:
    """In another process: gradients with respect to leaves that came from the first one."""
    x, y = leaves
    own = ad.tensor([5.0, 5.0], dtype=ad.float64).require_grad()
    grads = (x * y * own).sum().backward()
    queue.put((grads, own))


def _read(queue: Any, payload: Any) -> None:
    grads, x = payload
    try:
        list(grads)
        message = "no error"
    except KeyError as error:
        message = str(error)
    queue.put((grads[x].tolist(), sorted(g.tolist() for g in grads.values()), message))


@pytest.mark.parametrize("method", ["spawn", "fork"])
@FORKING
def test_gradients_come_back_from_another_process(method: str) -> None:
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    x, y = leaf(1, 2), leaf(3, 4)
    process = context.Process(target=_work, args=(queue, (x, y)))
    process.start()
    grads, theirs = queue.get(timeout=60)
    process.join(timeout=60)
    assert process.exitcode == 0
    same(grads[x], [15.0, 20.0])
    same(grads[y], [5.0, 10.0])
    same(grads[theirs], [3.0, 8.0])  # a leaf made there has a key of its own
    assert len(grads) == 3
    mine = (x * y).sum().backward()
    same((grads + mine)[x], [18.0, 24.0])


def test_gradients_go_to_another_process_with_some_of_their_leaves() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    x, y = leaf(1, 2), leaf(3, 4)
    grads = (x * y).sum().backward()
    process = context.Process(target=_read, args=(queue, (grads, x)))
    process.start()
    of_x, values, message = queue.get(timeout=60)
    process.join(timeout=60)
    assert of_x == [3.0, 4.0]
    assert values == [[1.0, 2.0], [3.0, 4.0]]
    assert "another process" in message


@FORKING
def test_keys_of_forked_processes_differ() -> None:
    """Both processes number leaves alike; the process is part of a key."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    x = leaf(1, 2)

    def child() -> None:
        own = leaf(7, 7)
        queue.put(own)

    process = context.Process(target=child)
    process.start()
    mine = leaf(3, 4)
    theirs = queue.get(timeout=60)
    process.join(timeout=60)
    grads = (mine * x).sum().backward()
    assert mine in grads
    assert theirs not in grads


def test_gradients_are_handed_between_threads(device: Any) -> None:
    x = leaf(1, 2)
    found: list[Any] = []

    def work(factor: float) -> None:
        found.append((x * factor).sum().backward())

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        joined(thread)
    same(sum(found)[x], [28.0, 28.0])
