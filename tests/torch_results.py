"""Programs of what functions give, and of copies of it, each for both libraries, as those of `torch_autograd`."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

from torch_autograd import program, refused


@program
def results_with_names(torch: Any, show: Any) -> None:
    x, linalg = torch.tensor([[2.0, 1.0], [1.0, 3.0]]), torch.linalg
    found = [
        x.max(0),
        x.min(1),
        x.sort(),
        x.topk(1),
        x.median(0),
        x.mode(),
        x.kthvalue(1),
        x.cummax(0),
        torch.slogdet(x),
    ]
    found += [
        torch.aminmax(x),
        torch.frexp(x),
        torch.histogram(x, 2),
        linalg.eigh(torch.eye(2)),
        linalg.qr(torch.eye(2)),
    ]
    found += [torch.slogdet(x), linalg.eigh(torch.eye(2)), linalg.slogdet(x)]
    found += [linalg.svd(torch.eye(2)), linalg.lu(x), linalg.lu_factor(x), linalg.inv_ex(x)]
    found += [linalg.eig(torch.eye(2)), linalg.lu_factor_ex(x), linalg.cholesky_ex(x), torch.qr(torch.eye(2))]
    found += [linalg.solve_ex(x, x), torch.lu_unpack(*linalg.lu_factor(x)), torch.return_types.max((x, x))]
    for pair in found:
        show(pair, type(pair).__name__, copy.deepcopy(pair), pickle.loads(pickle.dumps(pair)))
    file = io.BytesIO()
    torch.save({"m": x.max(0)}, file)
    show(torch.load(io.BytesIO(file.getvalue()), weights_only=False))


@program
def copies_share_memory_as_what_they_are_of(torch: Any, show: Any) -> None:
    x = torch.arange(6.0)
    copies = copy.deepcopy([x, x[1:3], x.view(2, 3).t(), x.detach()])
    copies[0][1] = 9
    show([part.tolist() for part in copies], x.tolist())
    copies = copy.deepcopy({"a": x[::2], "b": x})
    copies["a"][1] = 7
    show(copies["b"].tolist(), copies["a"].stride(), copies["a"].storage_offset())
    copies = copy.deepcopy([x[1:], x[:2], x[1:]])
    copies[0].zero_()
    show([part.tolist() for part in copies])

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(4))
            self.register_buffer("a", torch.ones(4))
            self.register_buffer("b", self.a[:2])
            self.register_buffer("e", torch.zeros(1).expand(3))

    module = copy.deepcopy(Module())
    module.a.mul_(2)
    show(module.b.tolist(), module.e.stride())
    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.ones(2)
    copies = copy.deepcopy([leaf, leaf.grad[:1], leaf.detach()])
    copies[1].zero_()
    with torch.no_grad():
        copies[0].add_(1)
    show(copies[0].grad.tolist(), copies[2].tolist(), copies[0].requires_grad, copies[0].is_leaf)
    pairs = torch.tensor([1 + 2j, 3j])
    copies = copy.deepcopy([pairs, torch.view_as_real(pairs)])
    copies[1].zero_()
    show(copies[0], torch.eye(2).expand(3, 2, 2).stride(), copy.deepcopy(torch.eye(2).expand(3, 2, 2)).stride())
    array = x.numpy()
    copies = copy.deepcopy([x, array])
    copies[0].zero_()
    show(copies[1].tolist(), x.tolist())
    x.about = [x]
    again = copy.deepcopy(x)
    show(again.about[0] is again)
    refused(show, lambda: copy.deepcopy(leaf * 2), 40)


@program
def matrices_that_fail(torch: Any, show: Any) -> None:
    linalg = torch.linalg
    good, singular = torch.tensor([[2.0, 1.0], [1.0, 3.0]]), torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    negative, zero = torch.tensor([[1.0, 2.0], [2.0, 1.0]]), torch.zeros(2, 2)
    for stack in (
        good, torch.stack([good, singular]), torch.stack([negative, good, zero]), zero, torch.zeros(0, 2, 2),
        torch.zeros(2, 0, 0), torch.zeros(3, 2, 2), torch.ones(2, 3), torch.ones(2),
    ):  # fmt: skip
        ones = torch.ones(*stack.shape[:-1], 1)
        for function in (
            linalg.cholesky_ex,
            linalg.inv_ex,
            lambda a, ones=ones, **options: linalg.solve_ex(a, ones, **options),
            linalg.lu_factor_ex,
        ):
            try:
                found = function(stack)
            except RuntimeError:
                show("refused")
                continue
            show(found.info, found.info.dtype, found[0].shape, found[0] if not found.info.any() else "")
            try:
                function(stack, check_errors=True)
            except RuntimeError as error:
                show("refused", str(error)[:30])
