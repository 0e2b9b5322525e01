"""What is not there says so by name."""

from __future__ import annotations

_OUT_OF_SCOPE = {
    "jit": "there is no compiler of PyTorch's programs",
    "sparse": "there are no sparse tensors",
    "profiler": "see ad.Profiled",
    "SparseAdam": "there are no sparse tensors; Adam takes the gradients of tables, which are dense",
    "_C": "it is PyTorch's own inside",
}


def missing(name: str, of: str = "adjoint.torch") -> AttributeError:
    """The error for a name that PyTorch has and the face has not."""
    why = _OUT_OF_SCOPE.get(name)
    return AttributeError(f"{of} has no {name!r}" + (f": {why}" if why else "; docs/torch.md lists what is there"))
