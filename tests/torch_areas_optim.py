"""Programs of optimizers and schedulers, each for both libraries."""

from __future__ import annotations

import copy
from typing import Any

from torch_areas import numbers, seen
from torch_areas_nn import filled
from torch_autograd import module, program, refused

# --- optimizers -----------------------------------------------------------------------------------------


def stepped(torch: Any, show: Any, optimizer: Any, scheduler: Any, parameters: Any, count: int = 4) -> None:
    for i in range(count):
        optimizer.zero_grad()
        loss = sum(((p - 0.3 * j) ** 2 * (i + 1)).sum() + p.prod() for j, p in enumerate(parameters))
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        show(
            [f"{g['lr']:.6g}" for g in optimizer.param_groups],
            seen(list(parameters)),
            None if scheduler is None else [f"{v:.6g}" for v in scheduler.get_last_lr()],
        )


@program
def groups_added_later_with_schedulers(torch: Any, show: Any) -> None:
    optim = torch.optim
    for kind, options in (
        (optim.SGD, {"momentum": 0.9, "nesterov": True}),
        (optim.Adam, {"amsgrad": True}),
        (optim.AdamW, {}),
        (optim.RMSprop, {"centered": True, "momentum": 0.3}),
        (optim.Adagrad, {"lr_decay": 0.1}),
    ):
        a, b, c = (numbers(torch, 2, grad=True, shift=float(i)) for i in range(3))
        optimizer = kind([{"params": [a], "lr": 0.05}, {"params": b, "weight_decay": 0.1}], lr=0.02, **options)
        scheduler = optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
        stepped(torch, show, optimizer, scheduler, [a, b])
        optimizer.add_param_group({"params": [c], "lr": 0.2})
        for wrong in ({"params": [a]}, {"lr": 0.1}):
            refused(show, lambda optimizer=optimizer, wrong=wrong: optimizer.add_param_group(wrong))
        again = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        show(again.base_lrs, [g.get("initial_lr") for g in optimizer.param_groups])
        stepped(torch, show, optimizer, again, [a, b, c], 2)
        state = copy.deepcopy(optimizer.state_dict())
        show(sorted(state["param_groups"][0]), [g["params"] for g in state["param_groups"]], sorted(state["state"]))
        fresh = kind([{"params": [a]}, {"params": b}, {"params": [c]}], lr=1.0, **options)
        fresh.load_state_dict(state)
        stepped(torch, show, fresh, None, [a, b, c], 2)


@program
def chains_of_schedulers_and_their_states(torch: Any, show: Any) -> None:
    s = torch.optim.lr_scheduler

    def made(optimizer: Any) -> Any:
        yield s.SequentialLR(optimizer, [s.ConstantLR(optimizer, 0.1, 2), s.ExponentialLR(optimizer, 0.9)], [3])
        yield s.ChainedScheduler([s.ConstantLR(optimizer, 0.1, 2), s.ExponentialLR(optimizer, 0.9)])
        yield s.SequentialLR(
            optimizer,
            [s.LinearLR(optimizer, 0.1, total_iters=2), s.CosineAnnealingLR(optimizer, 4), s.StepLR(optimizer, 1)],
            [2, 5],
        )
        yield s.CosineAnnealingWarmRestarts(optimizer, 2, 2, eta_min=0.01)
        yield s.OneCycleLR(optimizer, 0.5, total_steps=8)
        yield s.CyclicLR(optimizer, 0.01, 0.2, step_size_up=2, mode="exp_range", gamma=0.9)
        yield s.PolynomialLR(optimizer, 4, 2.0)
        yield s.MultiStepLR(optimizer, [2, 2, 4], 0.5)
        yield s.LambdaLR(optimizer, lambda n: 1 / (n + 1))
        yield s.MultiplicativeLR(optimizer, lambda n: 0.9)
        yield s.ChainedScheduler(
            [s.LinearLR(optimizer, 0.5, total_iters=3), s.MultiStepLR(optimizer, [1], 0.1)], optimizer
        )

    for number in range(11):
        x = numbers(torch, 3, grad=True)

        def pair(number: int = number, x: Any = x) -> Any:
            optimizer = torch.optim.SGD([x], lr=0.3, momentum=0.9)
            return optimizer, _nth(made(optimizer), number)

        optimizer, scheduler = pair()
        show(
            type(scheduler).__name__,
            [f"{v:.6g}" for v in scheduler.get_last_lr()],
            scheduler.last_epoch if hasattr(scheduler, "last_epoch") else "",
        )
        stepped(torch, show, optimizer, scheduler, [x], 3)
        states = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
        show(sorted(states[1]))
        optimizer, scheduler = pair()
        optimizer.load_state_dict(states[0])
        scheduler.load_state_dict(states[1])
        stepped(torch, show, optimizer, scheduler, [x], 4)


def _nth(schedulers: Any, number: int) -> Any:
    """One of them, made with an optimizer of its own each."""
    for i, scheduler in enumerate(schedulers):
        if i == number:
            return scheduler
    raise IndexError(number)


@program
def plateaus(torch: Any, show: Any) -> None:
    x = numbers(torch, 2, grad=True)
    for options in (
        {},
        {"mode": "max", "threshold_mode": "abs", "threshold": 0.1},
        {"cooldown": 1, "factor": 0.5, "min_lr": 0.01, "patience": 0},
        {"eps": 0.5, "patience": 1},
    ):
        optimizer = torch.optim.SGD([x], lr=0.1)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **{"patience": 2, **options})
        for value in (1.0, 0.9, 0.95, 0.95, 0.96, torch.tensor(0.97), 0.5, 0.6, 0.6, 0.6, 0.6, 0.7):
            scheduler.step(value)
            show(
                f"{optimizer.param_groups[0]['lr']:.6g}",
                scheduler.num_bad_epochs,
                f"{float(scheduler.best):.4g}",
                scheduler.get_last_lr(),
            )
        show(sorted(scheduler.state_dict()))
    refused(show, lambda: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=1.0))
    refused(show, lambda: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="other"))
    refused(show, lambda: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, min_lr=[0.1, 0.2]))


@program
def schedulers_of_resumed_and_wrapped_optimizers(torch: Any, show: Any) -> None:
    s = torch.optim.lr_scheduler
    x = numbers(torch, 2, grad=True)
    optimizer = torch.optim.SGD([x], lr=0.1)
    refused(show, lambda: s.StepLR(optimizer, 2, last_epoch=3))
    optimizer.param_groups[0]["initial_lr"] = 0.1
    scheduler = s.StepLR(optimizer, 2, gamma=0.1, last_epoch=3)
    show(scheduler.last_epoch, [f"{v:.6g}" for v in scheduler.get_last_lr()])
    stepped(torch, show, optimizer, scheduler, [x], 3)
    optimizer.param_groups[0]["lr"] = 0.5
    stepped(torch, show, optimizer, scheduler, [x], 2)
    refused(show, lambda: s.StepLR(object(), 2))
    refused(show, lambda: s.LambdaLR(optimizer, [lambda n: 1, lambda n: 1]))
    refused(show, lambda: s.SequentialLR(optimizer, [scheduler], [1, 2]))
    refused(show, lambda: s.OneCycleLR(optimizer, 0.1))
    refused(show, lambda: s.CosineAnnealingWarmRestarts(optimizer, 0))
    t = torch.tensor(0.1)
    optimizer = torch.optim.Adam([x], lr=t)
    scheduler = s.ExponentialLR(optimizer, 0.5)
    scheduler.step()
    show(seen(optimizer.param_groups[0]["lr"]), optimizer.param_groups[0]["lr"] is t, scheduler.get_last_lr())


@program
def averages_of_weights(torch: Any, show: Any) -> None:
    swa = module(torch, "optim.swa_utils")
    nn = torch.nn
    net = filled(torch, nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    average = swa.AveragedModel(net)
    moving = swa.AveragedModel(net, multi_avg_fn=swa.get_ema_multi_avg_fn(0.8), use_buffers=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scheduler = swa.SWALR(optimizer, 0.02, anneal_epochs=2)
    x = numbers(torch, 6, 2)
    for _ in range(3):
        optimizer.zero_grad()
        net(x).pow(3).sum().backward()
        optimizer.step()
        scheduler.step()
        average.update_parameters(net)
        moving.update_parameters(net)
        show(
            [f"{v:.5g}" for v in scheduler.get_last_lr()],
            seen(average.n_averaged),
            seen([*average.parameters()]),
            seen([*moving.parameters()]),
        )
    swa.update_bn([x, x * 2], average)
    show(seen(dict(average.state_dict())), list(moving.state_dict()))
