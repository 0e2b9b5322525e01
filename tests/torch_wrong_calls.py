"""How the wrong calls of `torch_hostile` end under PyTorch and under the face: an answer, or a type of error.

Each library answers in a process of its own, which may crash, or take too long: then the next one goes on behind that
call. `python tests/torch_wrong_calls.py` prints what ends otherwise, and counts it.
"""

from __future__ import annotations

import builtins
import collections
import importlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch_hostile
from torch_hostile import Call

SECONDS = 10  # of the processor, for a call
MEMORY = 3 * 2**30  # beside what a library takes
# loops and copies that are as long, or as deep, as one says
ENDLESS = {
    *[(f"nn.{name}", "num_layers") for name in ("RNNBase", "RNN", "LSTM", "GRU")],
    *[(f"nn.Transformer{name}", 1) for name in ("Encoder", "Decoder")],
    *[("nn.Transformer", name) for name in ("num_encoder_layers", "num_decoder_layers", "activation")],
}


class Asked(NamedTuple):
    """Which calls: of a place all single arguments are replaced by so many values, and so many pairs."""

    place: str
    seed: int
    singles: int
    pairs: int


class Ended(NamedTuple):
    """How a call ended: `kind` is the name of the first type of Python's among an error's; "" is an answer."""

    kind: str
    also: list[str]  # the types that it is, too
    said: str


def wrong_calls(asked: Asked, ours: Any, theirs: Any) -> Iterator[tuple[int, Call, dict[int | str, str]]]:
    """The calls and what is replaced in them, counted."""
    number = 0
    for call in torch_hostile.calls(ours, theirs):
        if call.place != asked.place:
            continue
        choose = random.Random(f"{call.function} {asked.seed}")
        for changed in torch_hostile.chosen(call, choose, asked.singles, asked.pairs):
            number += 1
            if not any([(call.function, where) in ENDLESS for where in changed]):
                yield number, call, changed


def ended(call: Call, library: Any, changed: dict[int | str, str]) -> Ended:
    """What comes of a call."""
    args, options = call.arguments(library, changed)
    try:
        found = call.run(library, args, options)
    except Exception as error:
        known = [kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind]
        return Ended(known[0], known, str(error)[:300])
    try:
        return Ended("", [], repr(found)[:300])
    except Exception as error:  # PyTorch cannot print all that it makes
        return Ended("", [], f"{type(found).__name__} that cannot be shown: {error}"[:300])


def _work(library: str, asked: Asked, start: int, path: str) -> None:
    """Write a line for each call from a number on."""
    ours, theirs = importlib.import_module("adjoint.torch"), importlib.import_module("torch")
    used = ours if library == "adjoint.torch" else theirs
    theirs.set_num_threads(1)
    pages = Path("/proc/self/statm")
    if pages.exists():
        taken = int(pages.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, -1))
    warnings.simplefilter("ignore")
    with open(path, "a") as file:
        for number, call, changed in wrong_calls(asked, ours, theirs):
            if number < start:
                continue
            told = f"{call.function} {' '.join(map(str, changed))}"
            file.write(f"{number}\t{told}\t{changed}\t")
            file.flush()
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # nobody catches it: the process ends
            found = ended(call, used, changed)
            signal.setitimer(signal.ITIMER_PROF, 0)
            file.write(json.dumps(found) + "\n")
        file.flush()
    os._exit(0)  # no clean-up of what wrong calls left


class Asking(NamedTuple):
    """A call, and what is replaced in it, as text: two processes may count different calls."""

    call: str  # the function, and the places or names of what was replaced
    changed: str


def answers(library: str, asked: Asked) -> dict[Asking, Ended | None]:
    """How the calls end under a library; None for one that ended its process, or took too long."""
    found: dict[Asking, Ended | None] = {}
    start = 0
    while True:
        with tempfile.NamedTemporaryFile("r") as file:
            command = [sys.executable, __file__, "work", library, *map(str, asked), str(start), file.name]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
            for line in file.read().splitlines():
                number, call, changed, said = line.split("\t", 3)
                start = int(number) + 1
                found[Asking(call, changed)] = Ended(*json.loads(said)) if said else None
        if done.returncode == 0:
            return found
        if done.returncode > 0:
            raise RuntimeError(done.stderr.decode()[-2000:])


def judged(theirs: Ended, ours: Ended) -> str:
    """How the two differ; "" where who catches PyTorch's error catches this one."""
    if not theirs.kind and not ours.kind:
        return ""
    if not theirs.kind:
        return "refused here alone"
    if not ours.kind:
        return "taken here alone"
    return "" if theirs.kind in ours.also else "of another type"


class Different(NamedTuple):
    """A call that ends otherwise."""

    how: str
    call: str
    changed: str
    theirs: Ended
    ours: Ended


def compared(asked: Asked) -> tuple[collections.Counter[str], list[Different]]:
    """All that ends otherwise in a place, and how many calls end in which way."""
    here, there = answers("adjoint.torch", asked), answers("torch", asked)
    if here.keys() != there.keys():
        raise RuntimeError(f"the libraries were asked different calls: {here.keys() ^ there.keys()}")
    counted: collections.Counter[str] = collections.Counter()
    found = []
    for asking, a in here.items():
        b = there[asking]
        how = "without an answer" if a is None or b is None else judged(b, a)
        counted[how or "alike"] += 1
        if a is not None and b is not None and how:
            found.append(Different(how, *asking, b, a))
    return counted, found


if __name__ == "__main__":
    if sys.argv[1] == "work":
        _library, _place, _seed, _singles, _pairs, _start, _path = sys.argv[2:]
        _work(_library, Asked(_place, int(_seed), int(_singles), int(_pairs)), int(_start), _path)
    else:
        _counted: collections.Counter[str] = collections.Counter()
        for _place in sys.argv[4:] or torch_hostile.PLACES:
            _one, _found = compared(Asked(_place, *map(int, sys.argv[1:4])))
            _counted += _one
            for _each in _found:
                print("\t".join([_each.how, _each.call, _each.changed, f"{_each.theirs.kind}: {_each.theirs.said!r}",
                                 f"{_each.ours.kind}: {_each.ours.said!r}"]))  # fmt: skip
            print(_place, dict(_one), file=sys.stderr)
        print(dict(_counted))
