"""What `detect_anomaly` adds to a graph and to a backward pass: the place of an operation, and whether nan came."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

import numpy as np

from adjoint.torch import graph
from adjoint.torch.devices import numpy_of
from adjoint.torch.state import running

_KEY, _PARENT = "traceback_", "parent_"


def locate(node: Any) -> None:
    """Note where the program is at a new node."""
    node = graph.maker(node)
    if node.__class__ is not graph.Accumulate:
        metadata = graph.marks_of(node).metadata
        if _KEY not in metadata:
            metadata[_KEY] = traceback.format_stack()[:-2]
            walk = running()
            if walk is not None and walk.at is not None:
                metadata[_PARENT] = graph.maker(walk.at)


def check_nan(node: Any, pulled: Any) -> None:
    """Raise RuntimeError if a gradient is nan somewhere."""
    for i, c in enumerate(pulled):
        value = getattr(c, "value", c)
        if value is not None and getattr(value, "dtype", None) is not None and np.isnan(numpy_of(value)).any():
            raise RuntimeError(f"Function '{graph.full_name(node)}' returned nan values in its {i}th output.")


def report(node: Any) -> None:
    """Warn of an error in a backward pass, with the place of the operation that the node is of."""
    metadata = graph.marks_of(graph.maker(node)).metadata
    name, where = graph.full_name(node), metadata.get(_KEY)
    if where is None:
        text = (
            f"Error detected in {name}. No forward pass information available. Enable detect anomaly during forward "
            "pass for more information."
        )
    else:
        text = f"Error detected in {name}. Traceback of forward call that caused the error:\n{''.join(where)}"
    warnings.warn(text, stacklevel=4)
    while (parent := metadata.get(_PARENT)) is not None:  # the node whose backward made this one
        metadata = graph.marks_of(parent).metadata
        name, where = graph.full_name(parent), metadata.get(_KEY)
        known = "No forward pass information available." if where is None else "".join(where)
        warnings.warn(
            f"Previous calculation was induced by {name}. Traceback of forward call that induced the previous "
            f"calculation:\n{known}",
            stacklevel=4,
        )
