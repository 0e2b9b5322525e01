"""Programs of indices, and of shapes that change in place, for both libraries, as those of `torch_autograd`."""

from __future__ import annotations

import warnings
from typing import Any

from torch_autograd import module, program, refused, shown


@program
def truth_values_and_masks_of_bytes_are_indices(torch: Any, show: Any) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    yes, no = torch.tensor(True), torch.tensor(False)
    one, rows = torch.tensor(1, dtype=torch.uint8), torch.tensor([1, 0, 1], dtype=torch.uint8)
    keys: list[Any] = [
        True, False, yes, no, one, rows, (0, True), (True, 0), (slice(None), True), (slice(None), True, 0),
        (0, True, 0), ([0, 1], True), (slice(None), [0, 1], True), (yes, slice(None), [0, 1]), (..., False),
        (None, True, slice(1, 2)), (True, yes), (rows.bool(), True), (rows.bool(), slice(None, None, 2)),
        rows.numpy(),
    ]  # fmt: skip
    for key in keys:
        show(shown(x[key]))
        y = x.clone().requires_grad_()
        (y[key] * 3).sum().backward()
        show(shown(y.grad))
        if not isinstance(key, (torch.Tensor, type(rows.numpy()))):  # which PyTorch takes for masked_fill
            y = x.clone()
            y[key] = 7.0
            show(shown(y))
    y = x.clone()
    y[True] = torch.ones(1, 1, 3, 4)
    y[rows.bool()] = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    show(shown(y))
    for key in (True, yes):
        refused(show, lambda key=key: y.__setitem__(key, torch.ones(5, 1, 3, 4)), 0)
    refused(show, lambda: x[[0, 1], False], 0)
    for key in (True, rows):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            x[key]
        show([w.category.__name__ for w in found])


@program
def lists_of_indices_are_tuples(torch: Any, show: Any) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    two = torch.tensor([0, 1])
    for key in (
        [[0, 1], [2, 3]],
        [[0, 1]],
        [slice(1), 2],
        [None, 1],
        [two, two],
        [range(2), range(2)],
        [0, two],
        [0, 2],
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            show(shown(x[key]), [w.category.__name__ for w in found])
    long = [range(i, i + 2) for i in range(40)]
    show(torch.arange(50)[long].shape)
    refused(show, lambda: torch.arange(50)[long[:31]], 16)


@program
def indices_that_are_refused(torch: Any, show: Any) -> None:
    x = torch.zeros(2, 3)
    place, grid = torch.tensor([5]), torch.tensor([[5], [0]])
    ones = torch.ones(2, 1)
    calls: list[Any] = [
        lambda: x.gather(1, grid), lambda: x.scatter(1, grid, 1.0), lambda: x.scatter_add(1, grid, ones),
        lambda: x.index_add(1, place, ones), lambda: x.scatter_reduce(1, grid, ones, "sum"),
        lambda: x.index_fill(1, place, 1.0),
    ]  # fmt: skip
    for call in calls:
        refused(show, call)
    for call in (
        lambda: x.index_copy(1, place, ones),
        lambda: x.put(torch.tensor([99]), torch.ones(1)),
        lambda: x[:, place],
    ):
        refused(show, call, 0)
    refused(show, lambda: torch.zeros(10, 0)[:, [0, 1]])
    refused(show, lambda: torch.tensor(1)[0], 33)
    refused(show, lambda: x["0":"1"])
    refused(show, lambda: x.index_fill(1, torch.tensor([0]), 1j))
    refused(show, lambda: torch.take_along_dim(x, torch.tensor([0]), 0))
    refused(show, lambda: torch.take_along_dim(x, grid.int(), 0))
    for indices, shape in ((torch.tensor(0.5), (2, 2)), (torch.tensor(0), (2, 2.0)), (torch.tensor(0), (2, -3))):
        refused(show, lambda indices=indices, shape=shape: torch.unravel_index(indices, shape), 50)
    refused(show, lambda: torch.view_as_complex(torch.zeros(3, 3).as_strided((2, 2), (1, 1))))
    refused(show, lambda: torch.view_as_complex(torch.tensor(1.0)))

    def delete() -> None:
        del x[0]

    refused(show, delete)
    show(torch.zeros(2, 3, 4, 5)[:, :, :, 1][:, 1:1].is_contiguous())


@program
def shapes_change_in_place_where_memory_is_shared(torch: Any, show: Any) -> None:
    changes: list[Any] = [
        lambda x: x.t_(), lambda x: x.transpose_(0, 1), lambda x: x.swapaxes_(-1, 0), lambda x: x.unsqueeze_(1),
        lambda x: x.squeeze_(),
    ]  # fmt: skip
    for change in changes:
        for tracked in (False, True):
            leaf = torch.arange(6.0).reshape(2, 3).requires_grad_(tracked)
            base = leaf * 1.0
            row, view = base[0], base.view(2, 3)
            show(change(view) is view, view.stride(), view.storage_offset(), view._version, view._base is base)
            view.mul_(2.0)
            row.add_(10.0)
            below = view[0]
            show(shown([base, view, row, below]), base.stride())
            if tracked:
                weights = torch.arange(1.0, 7.0).reshape(view.shape)
                ((view * weights).sum() + (base * base).sum() + below.sum() + row.sum()).backward()
                show(shown(leaf.grad), type(view.grad_fn).__name__)

            base = leaf * 1.0
            row, other = base[1], base.detach()
            show(change(base) is base, base.stride(), base._version, base._base is None, row._base is base)
            base.mul_(3.0)
            row.sub_(1.0)
            other.view(-1)[0] = 9.0
            show(shown([base, row, other]), row.stride(), other.stride())
            if tracked:
                ((base.reshape(-1) * torch.arange(1.0, 7.0)).sum() + (row * row).sum()).backward()
                show(shown(leaf.grad))

    shared = torch.zeros(2, 3)
    array = shared.numpy()
    shared.t_()
    shared[2, 0] = 5.0
    show(array.tolist(), shown(shared))
    wide = torch.arange(3.0).reshape(3, 1).expand(3, 2)
    wide.t_()
    show(shown(wide), wide.stride())
    wide[1, 2] = 7.0
    show(shown(wide))


@program
def writes_through_parts_of_views_whose_elements_meet(torch: Any, show: Any) -> None:
    leaf = torch.arange(10.0, requires_grad=True)
    x = leaf * 1.0
    windows = x.unfold(0, 3, 2)
    windows[1, 0] = 50.0
    windows[0, 2].mul_(2.0)
    flat = x.as_strided((2, 3, 2), (1, 0, 1)).flatten(1, 2)
    flat[1, 0] = -1.0
    show(shown([x, windows, flat]))
    (x * x).sum().backward()
    show(shown(leaf.grad))
    z = torch.tensor([1.0 + 2.0j, 3.0 - 1.0j])
    z.real = torch.tensor([5.0, 6.0])
    z.imag = torch.tensor([7.0 + 1.0j, 8.0])
    show(shown(torch.view_as_real(z)))


@program
def strides_of_what_is_expanded_under_transforms(torch: Any, show: Any) -> None:
    func = module(torch, "func")
    v = torch.arange(3.0)

    def rows(x: Any) -> Any:
        return x.expand(4, 3).as_strided((2, 3), (0, 1), 0)

    show(shown(rows(v)), shown(func.jvp(rows, (v,), (v + 1,))))
    show(shown(func.jacrev(rows)(v)), shown(func.vmap(lambda x: x.expand(2, 3).diagonal())(v.expand(2, 3))))
