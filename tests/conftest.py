"""What all test modules share: the two ways of checkpointing, exact comparison, the optional peer libraries, a limit of
forked processes, and lists of what has passed, so that CI runs a test once, as soon as all that it needs is there."""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import signal
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

import adjoint as ad
from adjoint.user_primitives import DECLARED, withdraw

# machine code takes longer to make than most tests take: test_native.py and its like make it
os.environ.setdefault("ADJOINT_COMPILE", "replay")
os.environ.setdefault("ADJOINT_CACHE", "0")

hypothesis.settings.register_profile("suite", max_examples=20, deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("suite")

LIMIT = 600  # seconds of a process that a test starts; pytest's faulthandler_timeout is longer, and ends the test's own

LEVELS = {
    "keep": lambda: ad.Autodiff(ad.NumPy()),
    "balanced": lambda: ad.Autodiff(ad.NumPy(), checkpointing="balanced"),
}


@pytest.fixture(params=LEVELS)
def device(request: pytest.FixtureRequest) -> Iterator[ad.Autodiff[ad.NumPy]]:
    """An Autodiff level under each checkpointing mode; also the default device while a test runs."""
    level = LEVELS[request.param]()
    with ad.use_device(level):
        yield level


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Reference counting alone: the cycle collector is off."""
    gc.collect()
    gc.freeze()  # what is there already need not be looked through each time
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """What a test declares is gone after it: others go through the table of primitives. Nor does it leave handlers."""
    before, handlers = set(DECLARED), _handlers()
    try:
        result = yield
    finally:
        for name in set(DECLARED) - before:
            withdraw(name)
        left = {number: now for number, now in _handlers().items() if now is not handlers[number]}
        for number in left:
            signal.signal(number, handlers[number])
    assert not left, f"the test left handlers of signals, which would end another test: {left}"
    return result


def _handlers() -> dict[int, Any]:
    """What Python does at signals; a handler in C shows as None."""
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def peer(name: str, extra: str = "peers") -> Any:
    """A library that tests compare with, or need: without it they skip, but in CI they fail."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        if os.environ.get("CI"):
            raise ModuleNotFoundError(f"{name} must be installed in CI: pip install 'adjoint[{extra}]'") from error
        pytest.skip(f"needs {name}: pip install 'adjoint[{extra}]'", allow_module_level=True)


def same(x: ad.Tensor[Any] | None, y: Any) -> None:
    """Assert that a tensor has these values, to the bit, their shape and their dtype."""
    assert isinstance(x, ad.Tensor)
    expected = np.asarray(y)
    assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(x.numpy(), expected)


def joined(thread: threading.Thread) -> None:
    """Wait for a thread to end, which it does."""
    thread.join(LIMIT)
    assert not thread.is_alive(), f"{thread.name} did not end within {LIMIT} s"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--passed-to", type=Path, help="write the ids of the tests that pass to this file")
    parser.addoption("--except-in", type=Path, help="leave out the tests whose ids are in this file")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (path := config.getoption("--except-in")) is not None:
        passed = set(path.read_text().splitlines())
        items[:] = [item for item in items if item.nodeid not in passed]


class _Passed:
    """Writes down what passes; with pytest-xdist the process that hears of all workers does."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", buffering=1)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            print(report.nodeid, file=self._file)

    def pytest_unconfigure(self) -> None:
        self._file.close()


def _limit_children() -> None:
    """Have a forked process that hangs show its stack, and end: its copies of pipes would keep pytest-xdist waiting."""
    stderr = os.dup(2)  # before pytest captures it

    def limit() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.register(signal.SIGALRM, stderr, chain=True)
        signal.alarm(LIMIT)

    os.register_at_fork(after_in_child=limit)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(os, "register_at_fork"):
        _limit_children()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # shells start what runs in the background deaf to Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if (path := config.getoption("--passed-to")) is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Passed(path))
