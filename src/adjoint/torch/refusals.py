"""What PyTorch says of writes and arguments that it refuses."""

from __future__ import annotations

from typing import Any

OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)
_IN_FUNCTION = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
    "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)
_OF_SEVERAL = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)


class WrongKindError(TypeError, AttributeError):
    """What stands in the place of a tensor is none.

    PyTorch's functions that are written in Python ask it for `size()`
    or `dim()`, and raise an AttributeError; its others raise a TypeError.
    """


class TooLongError(OverflowError):
    """An integer of more than 64 bits in the place of a number."""


class InFunction:
    """Why a result of a user's Function may not be written to: it shares memory with an argument."""

    name: str
    output: int
    several: bool

    def __init__(self, name: str, output: int, several: bool) -> None:
        self.name, self.output, self.several = name, output, several


def refusal(rare: Any, *, indirect: bool) -> str:
    """Why a view must not be written to, or read after a write to its base."""
    creation = rare.creation
    what = "its base or another view of its base has been modified inplace" if indirect else "is being modified inplace"
    if isinstance(creation, InFunction):
        why = _OF_SEVERAL if creation.several else _IN_FUNCTION
        return f"Output {creation.output} of {creation.name} is a view and {what}. {why}"
    if isinstance(creation, tuple):
        name = f"Output {creation[1]} of {creation[0]} is a view"
        if rare.quiet or not rare.tracked:
            name, what = "A view was created in no_grad mode", f"{what} with grad mode enabled"
        return f"{name} and {what}. {_OF_SEVERAL}"
    mode = "inference mode" if creation == "inference" else "no_grad mode"
    return (
        f"A view was created in {mode} and {what} with grad mode enabled. Given that this use case is ambiguous and "
        "error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both "
        "inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want the "
        "inplace to be tracked)."
    )
