"""Transforms in threads, tasks and generators: none sees the level of another."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from test_nesting import X, close

import adjoint as ad
from adjoint import devices, errors

# --- threads -------------------------------------------------------------------------------------


def test_threads_do_not_see_each_others_transforms() -> None:
    barrier = threading.Barrier(8)

    def work(n: int) -> float:
        rng = np.random.default_rng(n)
        total = 0.0
        for _ in range(20):
            a = float(rng.uniform(0.5, 2))
            seen: list[Any] = []

            def f(x: Any, a: float = a, seen: list[Any] = seen) -> Any:
                level = x.device
                barrier.wait(timeout=60)  # all threads are inside of their functions
                assert ad.default_device() is level
                inner = ad.grad(lambda y: x * y * y)(a)
                barrier.wait(timeout=60)
                assert ad.zeros(1).device is level
                seen.append(level)
                return inner * ad.vmap(lambda y: y * x)(np.ones(3)).sum()

            found = ad.hessian(f)(a) if n % 2 else ad.jacobian(ad.grad(f))(a)
            close(found, 12 * a)  # of 2 a x * 3 x
            assert devices.current_level() is None
            total += float(found)
        return total

    with ThreadPoolExecutor(8) as pool:
        assert all(total > 0 for total in pool.map(work, range(8)))


def test_threads_inside_of_a_transform() -> None:
    """A new thread has no level; tensors it is handed work there."""

    def f(x: Any) -> Any:
        def part(i: int) -> Any:
            assert devices.current_level() is None
            return x[i] ** 2 + ad.ones((), dtype=ad.float64)

        with ThreadPoolExecutor(3) as pool:
            return sum(pool.map(part, range(3)))

    close(ad.grad(f)(X), 2 * X)
    close(ad.vmap(f)(X[None]), [X @ X + 3])


def test_dataclasses_are_registered_once_by_many_threads() -> None:
    import dataclasses

    for _ in range(20):
        cls = dataclasses.make_dataclass("Made", ["a", "b"])
        barrier = threading.Barrier(4)

        def work(_: int, cls: Any = cls, barrier: threading.Barrier = barrier) -> Any:
            barrier.wait(timeout=60)
            return ad.grad(lambda p: p.a * p.b)(cls(2.0, 3.0)).a

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(4))) == [3.0] * 4


# --- tasks and generators ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["autodiff<numpy>", "reference"])
def test_tasks_that_outlive_a_transform_do_not_inherit_its_level(name: str) -> None:
    async def later(gate: asyncio.Event) -> list[Any]:
        await gate.wait()
        return [devices.current_level(), ad.default_device(), ad.zeros(1).device, ad.grad(lambda x: x**2)(3.0)]

    async def main() -> None:
        gate = asyncio.Event()
        tasks: list[asyncio.Task[Any]] = []

        def f(x: Any) -> Any:
            tasks.append(asyncio.get_running_loop().create_task(later(gate)))
            ad.grad(lambda y: (tasks.append(asyncio.get_running_loop().create_task(later(gate))), y * x)[1])(1.0)
            ad.vmap(lambda y: (tasks.append(asyncio.get_running_loop().create_task(later(gate))), y)[1])(X)
            return x

        ad.grad(f)(2.0)
        gate.set()
        assert len(tasks) == 3
        for found in await asyncio.gather(*tasks):
            assert found == [None, ad.device(name), ad.device(name), 6.0]

    with ad.use_device(name):
        asyncio.run(main())


def test_tasks_and_generators_that_outlive_an_inner_transform_are_on_the_outer_level() -> None:
    def outer(x: Any) -> Any:
        contexts: list[contextvars.Context] = []

        def inner(y: Any) -> Any:
            with ad.use_device("reference"):
                contexts.append(contextvars.copy_context())
            contexts.append(contextvars.copy_context())
            return y

        ad.jacobian(inner)(x)
        for context in contexts:
            assert context.run(devices.current_level) is x.device
        assert contexts[0].run(ad.default_device) is ad.device("reference")
        assert contexts[1].run(ad.default_device) is x.device
        close(*map(ad.stop_gradient, (contexts[1].run(lambda: ad.grad(lambda z: z * z)(x)), 2 * x)))
        return x

    ad.grad(outer)(2.0)


def test_generators_run_on_the_level_of_who_asks() -> None:
    def numbers() -> Iterator[Any]:
        while True:
            yield ad.zeros(1).device, devices.current_level()

    source = numbers()
    default = ad.default_device()
    assert next(source) == (default, None)

    def f(x: Any) -> Any:
        assert next(source) == (x.device, x.device)
        return x

    ad.grad(f)(1.0)
    assert next(source) == (default, None)

    def inside(x: Any) -> Iterator[Any]:
        yield x * 2

    kept = []
    ad.grad(lambda x: (kept.append(inside(x)), x)[1])(1.0)
    with pytest.raises(errors.EndedError):
        next(kept[0])


def test_transforms_in_tasks_that_take_turns() -> None:
    """A transform is a plain call: other tasks run before or after it, each in its context."""

    async def work(n: int) -> Any:
        found = []
        for i in range(5):
            await asyncio.sleep(0)
            found.append(ad.grad(lambda x, i=i: x**2 * n * i)(1.0))
        return found

    async def main() -> Any:
        with ad.use_device("numpy"):
            return await asyncio.gather(*[work(n) for n in range(4)])

    np.testing.assert_allclose(asyncio.run(main()), [[2 * n * i for i in range(5)] for n in range(4)])
