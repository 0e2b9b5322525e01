#!/usr/bin/env python
"""Break derivative rules, one at a time, and see whether the tests find each.

    python scripts/mutants.py                      # all of them, a few minutes
    python scripts/mutants.py cos "fft x" -- tests/test_fft.py

Arguments name primitives, or a part of one's record; those behind `--` are pytest's. A mutant is a record in memory
with one part changed. Tests are collected once; for each mutant a forked process runs those whose id names the
primitive, then the others, until one fails. The exit status is 1 if a mutant lived.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parent.parent

Rule = Callable[..., Any]


@dataclass(frozen=True)
class Mutant:
    """A wrong part of a primitive's record: the rule of an operand, or a field such as `pushforward`."""

    primitive: str
    part: str
    what: str
    wrong: Callable[[Rule], Rule]  # from the right one
    tests: tuple[str, ...] = ()  # names of tests, or in their ids, besides the primitive's

    def __str__(self) -> str:
        return f"{self.primitive} {self.part}: {self.what}"

    @property
    def names(self) -> set[str]:
        return {self.primitive, *self.tests}

    def apply(self) -> None:
        from adjoint.backend import forget
        from adjoint.rules import RECORDS

        forget(self.primitive)
        record = RECORDS[self.primitive]
        if self.part in record.rules:
            record.rules[self.part] = self.wrong(record.rules[self.part])
        else:
            right = getattr(record, self.part)
            assert right is not None, f"{self.primitive} has no {self.part}"
            setattr(record, self.part, self.wrong(right))


def then(change: Callable[[Any, Any], Any], at: int | None = None) -> Callable[[Rule], Rule]:
    """What the rule gives, changed; of several results the one at this place."""

    def changed(B: Any, out: Any) -> Any:
        if at is None or out is None:
            return None if out is None else change(B, out)
        return tuple([change(B, x) if i == at and x is not None else x for i, x in enumerate(out)])

    def wrong(right: Rule) -> Rule:
        code = right.__code__
        names = code.co_varnames[: code.co_argcount]
        if code.co_kwonlyargcount or code.co_flags & 0b1100:  # keywords and *operands, which nobody picks by name
            return lambda B, *args, **kwargs: changed(B, right(B, *args, **kwargs))
        given = ", ".join(names)  # rules are called with what their parameters name
        made: Rule = eval(f"lambda {given}: changed({names[0]}, right({given}))", {"changed": changed, "right": right})
        made.__defaults__ = right.__defaults__
        return made

    return wrong


def instead(rule: Rule) -> Callable[[Rule], Rule]:
    return lambda right: rule


def negative(B: Any, x: Any) -> Any:
    return B.negative(x)


def twice(B: Any, x: Any) -> Any:
    return B.multiply(x, 2.0)


def first_axis_flipped(B: Any, x: Any) -> Any:
    return B.flip(x, axis=(0,)) if x.shape else x


def last_axis_flipped(B: Any, x: Any) -> Any:
    return B.flip(x, axis=(len(x.shape) - 1,))


def other_examples(B: Any, x: Any) -> Any:
    """Of a batch, whose results are an array and whether it has an axis of examples."""
    array, *flags = x if isinstance(x, tuple) else (x,)
    array = first_axis_flipped(B, array)
    return (array, *flags) if isinstance(x, tuple) else array


MUTANTS = [
    # elementwise
    Mutant("sin", "x", "no factor cos(x)", instead(lambda B, g: g)),
    Mutant("cos", "x", "sign", then(negative)),
    Mutant("sqrt", "x", "no factor 1/2", then(twice)),
    Mutant("divide", "y", "sign", then(negative)),
    Mutant("pow", "y", "no logarithm", instead(lambda B, g, out: B.multiply(g, out))),
    Mutant("tanh", "x", "no square", instead(lambda B, g, out: B.multiply(g, B.subtract(1.0, out)))),
    Mutant("atan2", "x", "sign", then(negative)),
    Mutant("logaddexp", "y", "factor", then(twice)),
    Mutant("clip", "high", "sign", then(negative)),
    Mutant("imag", "x", "sign", then(negative)),
    Mutant("abs", "pushforward", "sign", then(negative)),
    Mutant("fmod", "definition", "sign", then(negative)),
    # reductions
    Mutant("cumulative_sum", "x", "from the wrong end", instead(lambda B, g, axis: B.cumulative_sum(g, axis=axis))),
    Mutant(
        "prod", "pushforward", "no other factors",
        instead(lambda B, tangents, axis, keepdims: B.sum(tangents[0], axis=axis, keepdims=keepdims)),
    ),
    Mutant("max", "x", "factor", then(twice)),
    Mutant("softmax", "x", "no mean", instead(lambda B, g, out: B.multiply(g, out))),
    Mutant("logsumexp", "definition", "sign", then(negative)),
    Mutant("argmax", "batching", "examples in the wrong order", then(other_examples)),
    # shape
    Mutant("permute_dims", "x", "wrong axes", instead(lambda B, g, axes: B.permute_dims(g, axes=axes))),
    Mutant("permute_dims", "batching", "examples in the wrong order", then(other_examples)),
    Mutant("flip", "x", "wrong axis", instead(lambda B, g, axis: first_axis_flipped(B, g))),
    Mutant("concat", "pullback", "parts in the wrong order", then(lambda B, out: out[::-1])),
    Mutant("tril", "x", "the other half", instead(lambda B, g, k: B.triu(g, k=k))),
    # indexing
    Mutant("index", "accumulate", "sign", then(negative)),
    Mutant("index_set", "value", "sign", then(negative)),
    Mutant("index_set", "batching", "examples in the wrong order", then(other_examples)),
    Mutant("take_along_axis", "x", "factor", then(twice)),
    Mutant("index_multiply", "pullback", "sign of the values", then(negative, at=1)),
    Mutant("sort", "definition", "wrong axis", then(first_axis_flipped)),
    Mutant("topk", "pushforward", "factor", then(twice, at=0)),
    # contractions and convolutions
    Mutant("matmul", "x", "not transposed", instead(lambda B, g, y: B.matmul(g, y))),
    Mutant("conv", "weight", "sign", then(negative)),
    Mutant("conv_input", "g", "factor", then(twice)),
    Mutant("convolve", "v", "from the wrong end", then(last_axis_flipped)),
    Mutant("max_pool", "x", "sign", then(negative)),
    # linear algebra
    Mutant("solve", "pullback", "sign of the matrix's", then(negative, at=0)),
    Mutant("det", "pushforward", "factor", then(twice)),
    Mutant("cholesky", "x", "no factor 1/2", then(twice)),
    Mutant("eigh", "pullback", "sign", then(negative, at=0)),
    Mutant("svd", "pushforward", "sign of the singular values", then(negative, at=1)),
    Mutant("qr", "pullback", "factor", then(twice, at=0)),
    # Fourier transforms
    Mutant("fft", "x", "wrong axis", instead(lambda B, g, inverse, norm: B.fft(g, axis=0, inverse=inverse, norm=norm))),
    Mutant("rfft", "x", "factor", then(twice)),
    # special functions
    Mutant("gammaln", "x", "sign", then(negative)),
    Mutant("betainc", "a", "factor", then(twice)),
    Mutant("erfinv", "x", "sign", then(negative)),
    # networks and random numbers
    Mutant("normalize", "pullback", "factor", then(twice, at=0)),
    Mutant("attention", "pullback", "sign of the values'", then(negative, at=2)),
    Mutant("attention_pullback", "definition", "factor", then(twice, at=0)),
    Mutant("random_loggamma", "pushforward", "sign", then(negative), ("test_forward_mode_equals_reverse_mode",)),
]  # fmt: skip


class Run:
    """Pytest's plugin: what it does in place of running the tests."""

    def __init__(self, mutants: list[Mutant]) -> None:
        self.mutants = mutants
        self.lived = 0
        self._out = os.fdopen(os.dup(1), "w", buffering=1)  # pytest captures what is printed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        names = {name for mutant in self.mutants for name in mutant.names}
        if failed := self._first_failure(None, _naming(session.items, names)):
            raise pytest.UsageError(f"a test fails without any mutant: {failed}")
        for mutant in self.mutants:
            named = _naming(session.items, mutant.names)
            others = [item for item in session.items if item not in set(named)]
            failed = self._first_failure(mutant, [*named, *others])
            self.lived += not failed
            print("found" if failed else "LIVES", f"{mutant}  {failed}", sep="  ", file=self._out)
        print(f"{len(self.mutants) - self.lived} of {len(self.mutants)} mutants were found", file=self._out)
        return True

    def _first_failure(self, mutant: Mutant | None, items: list[pytest.Item]) -> str:
        """The id of the first test that fails in a process of its own, empty if none does."""
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            status = 1
            try:
                if mutant is not None:
                    mutant.apply()
                for item in items:
                    if any(report.failed for report in runtestprotocol(item, log=False, nextitem=None)):
                        os.write(write, item.nodeid.encode())
                        break
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        with os.fdopen(read) as said:
            failed = said.read()
        if os.waitpid(child, 0)[1] != 0:
            raise pytest.UsageError(f"the process with {mutant} died")
        return failed


def _naming(items: list[pytest.Item], names: set[str]) -> list[pytest.Item]:
    """The tests that have one of these names as a parameter, or as their own."""
    found = []
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if names & {getattr(item, "originalname", ""), *map(str, parameters)}:
            found.append(item)
    return found


def main(arguments: list[str]) -> int:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    wanted, options = set(arguments[:at]), arguments[at + 1 :]
    run = Run([m for m in MUTANTS if not wanted or {m.primitive, f"{m.primitive} {m.part}"} & wanted])
    os.chdir(ROOT)
    status = pytest.main(["-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", *options], plugins=[run])
    return int(status) or int(run.lived > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
