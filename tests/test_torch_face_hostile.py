"""Arguments that nobody should pass, to everything public of `adjoint.torch`: an answer or one of PyTorch's errors, at
once, and nothing half done."""

from __future__ import annotations

import random
import signal
import warnings
from typing import Any

import pytest
import torch_hostile
from each import Each
from hostile import Slow, guarded
from torch_hostile import Call

import adjoint.torch as torch

SECONDS = 10
# what PyTorch raises, too: of a list of parameter groups, of sizes that do not fit, of a memory that is tracked
ALSO = {
    "optim.": KeyError,
    "autograd.functional.": AssertionError,
    "nn.MultiheadAttention": AssertionError,
    "nn.Transformer": AssertionError,
    "nn.Embedding": AssertionError,
    "nn.functional.embedding": AssertionError,
    "nn.GroupNorm": ZeroDivisionError,
    "torch.from_dlpack": BufferError,
    "utils.data.": AssertionError,
}
# loops and copies that are as long, or as deep, as one says
ENDLESS = {
    *[(f"nn.{name}", "num_layers") for name in ("RNNBase", "RNN", "LSTM", "GRU")],
    *[(f"nn.Transformer{name}", 1) for name in ("Encoder", "Decoder")],
    *[("nn.Transformer", name) for name in ("num_encoder_layers", "num_decoder_layers", "activation")],
}


def _answered(call: Call, args: Any, options: Any) -> BaseException | None:
    """The error of a call, None if it gives a result."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        call.run(torch, args, options)
    except (Exception, Slow) as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def judged(call: Call, error: BaseException) -> str | None:
    """What is wrong with an error; None if it is one that PyTorch has for such arguments."""
    if isinstance(error, Slow):
        return f"no answer in {SECONDS} seconds"
    also = next((kind for name, kind in ALSO.items() if call.function.startswith(name)), RuntimeError)
    right = isinstance(error, (RuntimeError, TypeError, ValueError, IndexError, OverflowError, also))
    if not right or isinstance(error, (RecursionError, UnicodeError)):
        return f"{type(error).__name__}: {error}"[:300]
    return f"a message of {len(str(error))} characters" if len(str(error)) > 2000 else None


def _check(place: str, seed: int, singles: int, pairs: int, every: int = 1) -> int:
    """Arguments are replaced, one or two at a time: all such calls, or one of so many."""
    number, count = random.Random(f"{place} {seed}").randrange(every), 0
    with Each() as each, guarded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in torch_hostile.calls(torch):
            if call.place != place:
                continue
            for changed in torch_hostile.chosen(call, random.Random(f"{call.function} {seed}"), singles, pairs):
                number += 1
                if number % every or any([(call.function, where) in ENDLESS for where in changed]):
                    continue
                count += 1
                args, options = call.arguments(torch, changed)
                before = torch_hostile.looked(torch, [*args, *options.values()])
                with each(call.function, call.source, changed):
                    error = _answered(call, args, options)
                    if error is not None:
                        wrong = judged(call, error)
                        assert wrong is None, wrong
                        assert torch_hostile.looked(torch, [*args, *options.values()]) == before
    return count


@pytest.mark.parametrize("place", torch_hostile.PLACES)
def test_an_answer_or_an_error(place: str) -> None:
    every = {"torch": 8, "Tensor": 8, "nn": 5, "nn.functional": 4}.get(place, 3)
    assert _check(place, 0, 1, 1, every) > 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("place", torch_hostile.PLACES)
def test_an_answer_or_an_error_of_many_calls(place: str, seed: int) -> None:
    _check(place, seed, 3, 2)
