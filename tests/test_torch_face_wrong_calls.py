"""Wrong calls end as they do in PyTorch: refused, with an error that the same `except` catches."""

from __future__ import annotations

import re

import pytest
from conftest import peer
from torch_hostile import PLACES
from torch_wrong_calls import Asked, Ended, compared, judged

peer("torch")

# What is taken here alone, as "place.name arguments": a pattern of all, with the reason.
TAKEN = {
    "settings of a layer or an optimizer are looked at when it computes": (
        r"nn\.(Hardtanh|HuberLoss|MultiMarginLoss|TripletMarginLoss|CrossEntropyLoss|FractionalMaxPool\dd|Unflatten"
        r"|MaxUnpool\dd|LazyConvTranspose\dd|RNNCellBase|\w*Loss) .*|optim\.\w+ .*|nn\.utils\.rnn\.PackedSequence .*"
        r"|utils\.data\.Sampler .*"
    ),
    "what does nothing here takes anything": (
        r"torch\.(compiled_with_cxx11_abi|init_num_threads) .*|nn\.utils\.\w+ .*foreach.*|Tensor\.new_tensor pin_memory"
        r"|torch\.get_device_module device"
    ),
    "it has the meaning that it looks as if it had": (
        r"torch\.(arange start|slice_copy dim|split_copy 1|isin 1)|Tensor\.(new device|resize_ size|set_ size)"
        r"|Tensor\.uniform_ from_|nn\.init\.uniform 0|nn\.functional\.gaussian_nll_loss 2"
    ),
    "the length of a window is an integer, and a truth is one": r"signal\.windows\.gaussian 0",
}
# How many raise another type, at most. A wrong type is a TypeError here, also where PyTorch's functions that are
# written in Python fail later, at what they do with it; and what PyTorch's parser of arguments refuses is at times
# refused here by what is computed: its error is of the value then.
OF_ANOTHER_TYPE = {
    "torch": 21, "Tensor": 13, "nn": 11, "nn.functional": 42, "nn.init": 4, "nn.utils": 1, "nn.utils.rnn": 4,
    "optim": 2, "optim.lr_scheduler": 5, "autograd.functional": 1, "linalg": 1, "fft": 1, "signal.windows": 1,
}  # fmt: skip
# What is refused here alone, at most: truths and NumPy's numbers in the place of numbers, options that are not here.
REFUSED = {
    "torch": 3, "Tensor": 2, "nn": 10, "nn.functional": 7, "optim": 11, "optim.lr_scheduler": 2, "utils.data": 1,
    "linalg": 1, "fft": 1,
}  # fmt: skip


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_wrong_calls_end_as_in_pytorch(place: str) -> None:
    counted, found = compared(Asked(place, 0, 1, 1))
    lines = {how: [each for each in found if each.how == how] for how in counted}
    known = re.compile("|".join([f"(?:{pattern})" for pattern in TAKEN.values()]))
    taken = [each for each in lines.get("taken here alone", []) if not known.fullmatch(each.call)]
    assert not taken, "\n".join([f"{each.call}: {each.changed}: {each.theirs.said}" for each in taken])
    for how, most in (("of another type", OF_ANOTHER_TYPE), ("refused here alone", REFUSED)):
        told = [f"{each.call}: {each.changed}: {each.theirs} and {each.ours}" for each in lines.get(how, [])]
        assert len(told) <= most.get(place, 0), "\n".join(told)
    assert counted["without an answer"] <= 2
    assert counted["alike"] > 5


def test_who_catches_an_error_of_pytorch_catches_this_one() -> None:
    answer, wrong = Ended("", [], "1"), Ended("TypeError", ["TypeError", "Exception"], "no")
    both = Ended("TypeError", ["TypeError", "AttributeError"], "no")
    value = Ended("AttributeError", ["AttributeError", "Exception"], "no")
    assert judged(answer, answer) == judged(wrong, wrong) == judged(value, both) == ""
    assert (judged(wrong, answer), judged(answer, wrong)) == ("taken here alone", "refused here alone")
    assert judged(value, wrong) == "of another type"
