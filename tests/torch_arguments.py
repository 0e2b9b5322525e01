"""Programs of wrong arguments, each for both libraries, as those of `torch_autograd`: types of errors must agree."""

from __future__ import annotations

from typing import Any

from torch_autograd import program, refused, shown


@program
def flags_and_generators_that_are_none(torch: Any, show: Any) -> None:
    x = torch.ones(2)
    for flag in ("a", 1, 0.0):
        for do in (
            lambda flag=flag: torch.tensor([1.0], requires_grad=flag),
            lambda flag=flag: torch.ones(2, requires_grad=flag),
            lambda flag=flag: x.requires_grad_(flag),
            lambda flag=flag: setattr(x, "requires_grad", flag),
            lambda flag=flag: torch.set_grad_enabled(flag),
        ):
            refused(show, do, 0)
    for wrong in (3, "a"):
        for do in (
            lambda wrong=wrong: torch.rand(2, generator=wrong),
            lambda wrong=wrong: torch.randperm(3, generator=wrong),
            lambda wrong=wrong: torch.randint(3, (2,), generator=wrong),
            lambda wrong=wrong: torch.bernoulli(x, generator=wrong),
            lambda wrong=wrong: x.normal_(generator=wrong),
        ):
            refused(show, do, 0)
    for seed in (2**70, -(2**64)):
        refused(show, lambda seed=seed: torch.manual_seed(seed), 0)
        refused(show, lambda seed=seed: torch.Generator().manual_seed(seed), 0)
    for seed in (2**64 - 1, -(2**63)):
        torch.manual_seed(seed)
    for do in (
        lambda: torch.manual_seed("a"), lambda: torch.Generator().manual_seed("a"), lambda: torch.Generator(3),
        lambda: torch.device("cuda", -1), lambda: torch.device("cpu", "a"), lambda: torch.device(),
        lambda: torch.device(3.0), lambda: torch.device("foo"), lambda: torch.tensor([1.0]).type("a"),
    ):  # fmt: skip
        refused(show, do, 0)


@program
def gradients_of_what_does_not_fit(torch: Any, show: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    grad = torch.autograd.grad
    show(shown(grad((x * 2).sum(), {"a": x})))
    (x * 2).sum().backward(inputs={"a": x})
    show(x.grad, (x * 2).grad_fn(None))
    for given in (torch.ones(3, 3), torch.ones(0, 2), torch.tensor(1.0), 3):
        refused(show, lambda given=given: grad(x * 2, x, given, is_grads_batched=True), 0)
    batches = (torch.ones(3, 2), torch.ones(4, 2))
    refused(show, lambda: grad((x * 2, x * 3), x, batches, is_grads_batched=True), 0)
    for do in (
        lambda: grad((x * 2).sum(), 3), lambda: grad(x * 2, x, "a"), lambda: (x * 2).backward(3), lambda: grad(3, x),
        lambda: (x * 2).grad_fn("a"), lambda: (x * 2).sum().backward(inputs=3),
    ):  # fmt: skip
        refused(show, do, 0)
    d = x.detach().double().requires_grad_()
    for check in (lambda v: v > 0, lambda v: (v * 2, v > 0)):
        refused(show, lambda check=check: torch.autograd.gradcheck(check, (d,)), 0)


@program
def types_that_are_none_and_bfloat16(torch: Any, show: Any) -> None:
    bounds = torch.finfo(torch.bfloat16)
    show(bounds.eps, bounds.max, bounds.bits, bounds.min, bounds.tiny, bounds.smallest_normal, bounds.dtype, bounds)
    show(torch.promote_types(torch.bfloat16, torch.float16), torch.promote_types(torch.int64, torch.bfloat16))
    show(torch.can_cast(torch.bfloat16, torch.float32), torch.can_cast(torch.bfloat16, torch.int32))
    for do in (
        lambda: torch.finfo("a"), lambda: torch.finfo(None), lambda: torch.finfo(torch.int32), lambda: torch.iinfo("a"),
        lambda: torch.iinfo(None), lambda: torch.iinfo(torch.bfloat16), lambda: torch.can_cast(3, torch.int32),
        lambda: torch.promote_types(3, torch.int32), lambda: torch.result_type("a", torch.ones(2)),
    ):  # fmt: skip
        refused(show, do, 0)
    x = torch.arange(6.0).reshape(2, 3)
    show(x[..., 0, ...], x[..., ...], x[0, ..., ...])
    refused(show, lambda: torch.ones(2, dtype=torch.int8).__setitem__(0, float("nan")), 0)
