#!/usr/bin/env python
"""Break derivative rules, one at a time, and see whether the tests find each.

    python scripts/mutants.py                      # all of them, two minutes
    python scripts/mutants.py cos "fft x" -- tests/test_fft.py

Arguments name primitives, or a part of one's record; those behind `--` are pytest's. A mutant is a record in memory
with one part changed: a wrong sign, a wrong or missing factor or term, a wrong axis or order along one. Tests, without
the slow ones, are collected once; for each mutant a forked process runs those whose id names the primitive, then the
others, until one fails that passes without the mutant. The exit status is 1 if a mutant lived, or if a test failed
without any.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

Rule = Callable[..., Any]


@dataclass(frozen=True)
class Mutant:
    """A wrong part of a primitive's record: the rule of an operand, or a field such as `pushforward`."""

    primitive: str
    part: str
    what: str  # sign, factor, term or axis, and after a colon what of it
    wrong: Callable[[Rule], Rule]  # from the right one
    tests: tuple[str, ...] = ()  # names of tests, or in their ids, besides the primitive's

    def __str__(self) -> str:
        return f"{self.primitive} {self.part}, {self.what}"

    @property
    def kind(self) -> str:
        return self.what.partition(":")[0]

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
    Mutant("sin", "x", "factor: no cos(x)", instead(lambda B, g: g)),
    Mutant("cos", "x", "sign", then(negative)),
    Mutant("sqrt", "x", "factor: no 1/2", then(twice)),
    Mutant("divide", "y", "sign", then(negative)),
    Mutant("pow", "y", "factor: no logarithm", instead(lambda B, g, out: B.multiply(g, out))),
    Mutant("tanh", "x", "term: not squared", instead(lambda B, g, out: B.multiply(g, B.subtract(1.0, out)))),
    Mutant("atan2", "x", "sign", then(negative)),
    Mutant("logaddexp", "y", "factor", then(twice)),
    Mutant("clip", "high", "sign", then(negative)),
    Mutant("imag", "x", "sign", then(negative)),
    Mutant("abs", "pushforward", "sign", then(negative)),
    Mutant("fmod", "definition", "sign", then(negative)),
    # reductions
    Mutant(
        "cumulative_sum", "x", "axis: from the wrong end",
        instead(lambda B, g, axis: B.cumulative_sum(g, axis=axis)),
    ),
    Mutant(
        "prod", "pushforward", "factor: none of the other elements",
        instead(lambda B, tangents, axis, keepdims: B.sum(tangents[0], axis=axis, keepdims=keepdims)),
    ),
    Mutant("max", "x", "factor", then(twice)),
    Mutant("softmax", "x", "term: no mean", instead(lambda B, g, out: B.multiply(g, out))),
    Mutant("logsumexp", "definition", "sign", then(negative)),
    Mutant("argmax", "batching", "axis: examples in the wrong order", then(other_examples)),
    # shape
    Mutant("permute_dims", "x", "axis: not inverted", instead(lambda B, g, axes: B.permute_dims(g, axes=axes))),
    Mutant("permute_dims", "batching", "axis: examples in the wrong order", then(other_examples)),
    Mutant("flip", "x", "axis", instead(lambda B, g, axis: first_axis_flipped(B, g))),
    Mutant("concat", "pullback", "axis: parts in the wrong order", then(lambda B, out: out[::-1])),
    Mutant("tril", "x", "axis: the other half", instead(lambda B, g, k: B.triu(g, k=k))),
    # indexing
    Mutant("index", "accumulate", "sign", then(negative)),
    Mutant("index_set", "value", "sign", then(negative)),
    Mutant("index_set", "batching", "axis: examples in the wrong order", then(other_examples)),
    Mutant("take_along_axis", "x", "factor", then(twice)),
    Mutant("index_multiply", "pullback", "sign: of the values", then(negative, at=1)),
    Mutant("sort", "definition", "axis", then(first_axis_flipped)),
    Mutant("topk", "pushforward", "factor", then(twice, at=0)),
    # contractions and convolutions
    Mutant("matmul", "x", "axis: not transposed", instead(lambda B, g, y: B.matmul(g, y))),
    Mutant("conv", "weight", "sign", then(negative)),
    Mutant("conv_input", "g", "factor", then(twice)),
    Mutant("convolve", "v", "axis: from the wrong end", then(last_axis_flipped)),
    Mutant("max_pool", "x", "sign", then(negative)),
    # linear algebra
    Mutant("solve", "pullback", "sign: of the matrix's", then(negative, at=0)),
    Mutant("det", "pushforward", "factor", then(twice)),
    Mutant("cholesky", "x", "factor: no 1/2", then(twice)),
    Mutant("eigh", "pullback", "sign", then(negative, at=0)),
    Mutant("svd", "pushforward", "sign: of the singular values", then(negative, at=1)),
    Mutant("qr", "pullback", "factor", then(twice, at=0)),
    # Fourier transforms
    Mutant("fft", "x", "axis", instead(lambda B, g, inverse, norm: B.fft(g, axis=0, inverse=inverse, norm=norm))),
    Mutant("rfft", "x", "factor", then(twice)),
    # special functions
    Mutant("gammaln", "x", "sign", then(negative)),
    Mutant("betainc", "a", "factor", then(twice)),
    Mutant("erfinv", "x", "sign", then(negative)),
    # networks and random numbers
    Mutant("normalize", "pullback", "factor", then(twice, at=0)),
    Mutant("attention", "pullback", "sign: of the values'", then(negative, at=2)),
    Mutant("attention_pullback", "definition", "factor", then(twice, at=0)),
    Mutant("random_loggamma", "pushforward", "sign", then(negative), ("test_forward_mode_equals_reverse_mode",)),
]  # fmt: skip


class Run:
    """Pytest's plugin: what it does in place of running the tests."""

    def __init__(self, mutants: list[Mutant]) -> None:
        self.mutants = mutants
        self.lived: list[Mutant] = []
        self.broken: list[pytest.Item] = []  # tests that fail without any mutant
        self._out = os.fdopen(os.dup(1), "w", buffering=1)  # pytest captures what is printed
        self._failed = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for mutant in self.mutants:
            named = _naming(session.items, mutant.names)
            others = [item for item in session.items if item not in set(named)]
            if (failed := self._found_by(session, mutant, [*named, *others])) is None:
                self.lived.append(mutant)
            print("found" if failed else "LIVES", mutant, failed.nodeid if failed else "", sep="  ", file=self._out)
        self._summarise()
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def _found_by(self, session: pytest.Session, mutant: Mutant, items: list[pytest.Item]) -> pytest.Item | None:
        """The first test that fails with the mutant and passes without; tests that fail all the same are left out."""
        items = [item for item in items if item not in self.broken]
        while (failed := self._first_failure(session, mutant, items)) is not None:
            if self._first_failure(session, None, [failed]) is None:
                return failed
            self.broken.append(failed)
            items = items[items.index(failed) + 1 :]
        return None

    def _first_failure(
        self, session: pytest.Session, mutant: Mutant | None, items: list[pytest.Item]
    ) -> pytest.Item | None:
        """The first test that fails in a process of its own."""
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            status = 1
            try:
                if mutant is not None:
                    mutant.apply()
                session.config.pluginmanager.unregister(name="terminalreporter")  # its dots and letters
                for i, item in enumerate(items):
                    following = items[i + 1] if i + 1 < len(items) else None
                    # the hook, because marks such as filterwarnings are obeyed by pytest's plugins around it
                    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                    if self._failed:
                        os.write(write, str(i).encode())
                        break
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        with os.fdopen(read) as said:
            place = said.read()
        if os.waitpid(child, 0)[1] != 0:
            raise pytest.UsageError(f"the process with {mutant} died")
        return items[int(place)] if place else None

    def _summarise(self) -> None:
        for kind in dict.fromkeys(mutant.kind for mutant in self.mutants):
            mutants = [mutant for mutant in self.mutants if mutant.kind == kind]
            found = [mutant for mutant in mutants if mutant not in self.lived]
            print(f"wrong {kind}: {len(found)} of {len(mutants)}", file=self._out)
        print(f"{len(self.mutants) - len(self.lived)} of {len(self.mutants)} mutants were found", file=self._out)
        for item in self.broken:
            print(f"fails without any mutant: {item.nodeid}", file=self._out)


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
    if unknown := wanted - {name for m in MUTANTS for name in (m.primitive, f"{m.primitive} {m.part}")}:
        sys.exit(f"there are no mutants of {', '.join(sorted(unknown))}")
    run = Run([m for m in MUTANTS if not wanted or {m.primitive, f"{m.primitive} {m.part}"} & wanted])
    os.chdir(ROOT)
    status = pytest.main(["-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", *options], plugins=[run])
    return int(status) or int(bool(run.lived or run.broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
