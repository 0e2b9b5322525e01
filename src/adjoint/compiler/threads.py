"""How many threads the loops of machine code may share."""

from __future__ import annotations

import os
import sys

from adjoint.functions.arguments import as_integer

_MODULE = "adjoint.compiler.native.pool"
_given: int | None = None


def set_num_threads(n: int) -> None:
    """Have loops of machine code share at most n threads from now on, the calling one among them.

    The loops are those of `ad.compile` and of fused optimizers, where they are long enough. Results are the same, to
    the last bit, for every number. It counts for the process, and may be called at any time. Large products of matrices
    are BLAS's, which has threads of its own. Raises ArgumentTypeError if n is no integer, ArgumentError if it is not
    positive.

    >>> import adjoint as ad
    >>> before = ad.get_num_threads()
    >>> ad.set_num_threads(2)
    >>> ad.get_num_threads()
    2
    >>> ad.set_num_threads(before)
    """
    global _given
    _given = as_integer(n, "set_num_threads", "n", 1)
    if _MODULE in sys.modules:  # else there are no threads yet
        sys.modules[_MODULE].stop()


def get_num_threads() -> int:
    """How many threads loops of machine code may share.

    It is what `set_num_threads` was called with, else the number in the environment variable OMP_NUM_THREADS, else that
    of the processor's cores that this process may use.

    >>> import adjoint as ad
    >>> ad.get_num_threads() >= 1
    True
    """
    if _given is not None:
        return _given
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdecimal() and int(first) > 0:
        return int(first)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
