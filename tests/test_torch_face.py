"""`adjoint.torch`: what it promises, and PyTorch beside it. Random programs are in torch_programs.py."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import processes
import pytest
from each import Each
from torch_programs import TOLERATED, difference, program

import adjoint.torch as torch


def compared(seeds: range) -> Counter[str]:
    """How many random programs do the same under PyTorch, and what the others are refused for."""
    theirs = pytest.importorskip("torch")
    found: Counter[str] = Counter()
    with Each() as each, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            with each(seed):
                differs = difference(program(theirs, seed), program(torch, seed))
                found["same" if differs is None else differs] += 1
                assert differs is None or differs in TOLERATED, differs
    return found


@pytest.mark.peers
def test_random_programs_of_views_and_writes_do_what_they_do_under_pytorch() -> None:
    assert compared(range(15))["same"] >= 14


@pytest.mark.slow
@pytest.mark.peers
def test_thousands_of_random_programs_do_what_they_do_under_pytorch() -> None:
    assert compared(range(100, 5_100))["same"] >= 4_800


# --- the package ----------------------------------------------------------------------------------------


def test_adjoint_does_not_import_the_face_nor_the_face_pytorch() -> None:
    code = """
import sys, adjoint as ad
ad.ones(2).sum()
assert not [name for name in sys.modules if name.startswith("adjoint.torch")]
import adjoint.torch as torch
torch.ones(2).sum()
assert "torch" not in sys.modules
"""
    processes.python(code)


def test_what_is_not_there_says_so_by_name() -> None:
    with pytest.raises(AttributeError, match=r"no 'export'.*compiler"):
        torch.export
    with pytest.raises(AttributeError, match="no 'no_such_name'"):
        torch.no_such_name
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'no_such_name'"):
        torch.ones(2).no_such_name
    with pytest.raises(RuntimeError, match="No CUDA GPUs are available"):
        torch.ones(2).to("cuda")


# --- autograd -------------------------------------------------------------------------------------------


def test_gradients_add_up_until_they_are_zeroed() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(2):
        (x * x).sum().backward()
    kept = x.grad
    assert x.grad.tolist() == [4.0, 8.0]
    x.grad.zero_()
    (x * 3).sum().backward()
    assert x.grad is kept
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_second_backward_is_refused_where_values_had_been_saved_alone() -> None:
    x = torch.ones(3, requires_grad=True)
    linear = (x + 1).sum()
    for _ in range(3):
        linear.backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]
    square = (x * x).sum()
    square.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        square.backward()


def test_hooks_see_and_replace_gradients_in_the_order_of_pytorch() -> None:
    seen: list[str] = []
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: seen.append("tensor") or g * 2)
    y.grad_fn.register_prehook(lambda grads: seen.append("pre"))
    y.grad_fn.register_hook(lambda pulled, grads: seen.append("post"))
    x.register_hook(lambda g: seen.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(f"accumulated {t.grad.tolist()}"))
    y.sum().backward()
    assert seen == ["tensor", "pre", "post", "leaf", "accumulated [6.0, 6.0]"]
    assert y.grad.tolist() == [2.0, 2.0]


def test_a_removed_hook_is_quiet() -> None:
    seen = []
    x = torch.ones(2, requires_grad=True)
    handle = x.register_hook(seen.append)
    handle.remove()
    (x * 2).sum().backward()
    assert seen == []


def test_nodes_have_the_names_and_edges_of_pytorch() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    y = (x * 2 + 1).sum()
    assert y.grad_fn.name() == "SumBackward0"
    ((add, number),) = y.grad_fn.next_functions
    assert (add.name(), number) == ("AddBackward0", 0)
    (multiply, _), constant = add.next_functions
    assert constant == (None, 0)
    (leaf, _), _ = multiply.next_functions
    assert (multiply.name(), type(leaf).__name__) == ("MulBackward0", "AccumulateGrad")
    assert leaf.variable is x
    assert leaf.next_functions == ()


def test_gradients_of_gradients_to_any_depth() -> None:
    x = torch.tensor(2.0, requires_grad=True, dtype=torch.float64)
    y = x**4
    found = []
    for _ in range(5):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        found.append(y.item())
    assert found == [32.0, 48.0, 48.0, 24.0, 0.0]


def test_options_of_autograd_grad() -> None:
    x, z = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = x * torch.tensor([2.0, 3.0])
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(y.sum(), [x, z], retain_graph=True)
    assert torch.autograd.grad(y.sum(), [x, z], retain_graph=True, allow_unused=True)[1] is None
    found = torch.autograd.grad(y.sum(), [x, z], retain_graph=True, materialize_grads=True)
    assert found[1].tolist() == [0.0, 0.0]
    (rows,) = torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 3.0]]
    assert x.grad is None


def test_modes_are_contexts_and_decorators_and_end() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    assert torch.is_grad_enabled()

    @torch.no_grad()
    def double(v: torch.Tensor) -> torch.Tensor:
        return v * 2

    @torch.no_grad()
    def doubles(v: torch.Tensor):  # type: ignore[no-untyped-def]
        yield v * 2
        yield v * 2

    assert not double(x).requires_grad
    for y in doubles(x):
        assert not y.requires_grad
        assert torch.is_grad_enabled()  # outside of the generator's body
    with torch.inference_mode():
        frozen = x * 2
    assert frozen.is_inference()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        frozen.add_(1)
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        1 / 0
    assert torch.is_grad_enabled()


def test_a_step_of_gradient_descent_under_no_grad_keeps_the_leaf() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(2):
        (w * w).sum().backward()
        with torch.no_grad():
            w -= 0.25 * w.grad
        w.grad = None
    assert w.is_leaf
    assert w.requires_grad
    assert w.tolist() == [0.25, 0.5]


def test_graphs_are_freed_without_the_garbage_collector() -> None:
    import gc
    import weakref

    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        y = (x * 2).exp()
        y.register_hook(lambda g: None)
        part = y[0]
        part.detach()
        gone = weakref.ref(y._array.node)
        y.sum().backward()
        del y, part
        assert gone() is None
    finally:
        gc.enable()


# --- memory ---------------------------------------------------------------------------------------------


def test_memory_is_shared_with_numpy_both_ways() -> None:
    array = np.arange(4.0)
    x = torch.from_numpy(array)
    x[1] = 10.0
    assert array[1] == 10.0
    array[2] = 20.0
    assert x.tolist() == [0.0, 10.0, 20.0, 3.0]
    y = torch.ones(2, 2)
    row = y[0].numpy()
    y.mul_(3)
    assert row.tolist() == [3.0, 3.0]
    row[0] = 7.0
    assert y[0, 0].item() == 7.0
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        torch.ones(2, requires_grad=True).numpy()


def test_a_write_to_numpys_memory_changes_no_gradient() -> None:
    array = np.full(2, 3.0)
    x = torch.from_numpy(array)
    w = torch.ones(2, dtype=torch.float64, requires_grad=True)
    y = (x * w).sum()
    array[:] = 100.0
    y.backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_data_is_written_to_without_notice_and_gradients_stay_right() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    y.data.mul_(10)
    assert y._version == 0
    assert y.tolist() == [20.0, 20.0]
    z.backward()
    assert x.grad.tolist() == [8.0, 8.0]  # PyTorch gives 80: it uses what was written afterwards


def test_the_operand_of_a_write_may_be_its_own_data() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for write in (lambda y: y.mul_(y.data), lambda y: y.__imul__(y.data), lambda y: y[:].mul_(y.data)):
        y = x * 3
        write(y)
        assert y._version == 1
        assert torch.autograd.grad(y.sum(), x)[0].tolist() == [9.0, 18.0]  # PyTorch: [27, 108], of what is there later
    y = x * 3
    y.mul_(y.detach())  # which counts with it
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_write_reads_overlapping_operands_first() -> None:
    x = torch.arange(9.0).reshape(3, 3)
    expected = x.clone()
    expected.t()[1:].mul_(x[1:].clone())
    x.t()[1:].mul_(x[1:])
    assert torch.equal(x, expected)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda x: x.mul_(2), "a leaf Variable that requires grad"),
        (lambda x: x[0].mul_(2), "a view of a leaf Variable"),
        (lambda x: x.__setitem__(0, 1.0), "a view of a leaf Variable"),
        (lambda x: (x * 1).unbind(0)[0].mul_(2), "Output 0 of Unbind.*is a view and is being modified inplace"),
        (lambda x: (x * 1).split(1)[1].mul_(2), "Output 1 of Split.*is a view and is being modified inplace"),
        (lambda x: (x * 1).expand(2, 3).mul_(2), "more than one element of the written-to tensor"),
        (lambda x: torch.ones(3)[1:].add_(torch.ones(3)), "output with shape|must match the size"),
        (lambda x: torch.ones(3).long().add_(0.5), "result type Float can't be cast"),
        (lambda x: (x * 1)[0].detach_(), "Can't detach views in-place"),
        (lambda x: (x * 1).requires_grad_(False), "you can only change requires_grad flags of leaf"),
        (lambda x: torch.ones(3).long().requires_grad_(), "only Tensors of floating point dtype"),
        (lambda x: (x * 1).backward(), "grad can be implicitly created only for scalar outputs"),
        (lambda x: torch.ones(1).backward(), "element 0 of tensors does not require grad"),
        (lambda x: x + torch.ones(4), r"The size of tensor a \(3\) must match the size of tensor b \(4\)"),
        (lambda x: torch.ones(2, 3) @ torch.ones(2, 3), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"),
        (lambda x: bool(x), "Boolean value of Tensor with more than one value is ambiguous"),
        (lambda x: x.item(), "a Tensor with 3 elements cannot be converted to Scalar"),
        (lambda x: torch.ones(2, 3).t().view(6), "view size is not compatible"),
        (lambda x: x.reshape(4), "shape '.4.' is invalid for input of size 3"),
    ],
)
def test_refusals_say_what_pytorch_says(write, message) -> None:
    with pytest.raises(RuntimeError, match=message):
        write(torch.ones(3, requires_grad=True))


def test_an_overwritten_value_is_an_error_in_backward_alone() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    z = y.sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    y = x + 1  # saves nothing
    z = y.sum()
    y.mul_(2)
    z.backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_data_can_be_replaced_and_updated() -> None:
    w = torch.ones(2, requires_grad=True)
    w.data -= 0.5
    assert w.tolist() == [0.5, 0.5]
    kept = w.detach()
    w.data = w.data * 4
    assert w.tolist() == [2.0, 2.0]
    assert kept.tolist() == [0.5, 0.5]
    assert w.is_leaf
    (w * w).sum().backward()
    assert w.grad.tolist() == [4.0, 4.0]
    x = torch.zeros(2)
    part = x[0]
    x.data = torch.ones(2)
    assert (part.item(), x.tolist()) == (0.0, [1.0, 1.0])
    y = torch.zeros(2)
    part = y[:1]
    shared = y.numpy()
    y.data = torch.ones(2)
    shared[0] = 3.0
    assert (part.item(), y.tolist()) == (3.0, [1.0, 1.0])
    late = torch.from_numpy(np.zeros(2))
    unread = late[:1]
    late.data = torch.ones(2)
    assert unread.item() == 0.0


def test_pairs_are_printed_by_the_name_of_their_function() -> None:
    assert str(torch.tensor([1.0, 3.0]).max(0)) == ("torch.return_types.max(\nvalues=tensor(3.),\nindices=tensor(1))")
