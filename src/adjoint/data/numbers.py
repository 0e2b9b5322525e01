"""Random numbers of a loader: functions of the seed and of what they are for, the same in any process.

Philox is a function of a counter and a key (Salmon et al., 2011, "Parallel random numbers: as easy as 1, 2, 3"). The
seed is the key, and the upper words of the counter say what for. NumPy promises that these bits stay the same in its
later versions, and does not promise it of `permutation`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_USES = {"order": 1, "record": 2, "batch": 3, "split": 4}


def _philox(seed: int, use: str, epoch: int, number: int) -> np.random.Philox:
    words: Any = np.array([0, number, epoch, _USES[use]], np.uint64)
    key: Any = np.array([seed, 0], np.uint64)
    return np.random.Philox(counter=words, key=key)


def generator(seed: int, use: str, epoch: int, number: int) -> np.random.Generator:
    """The generator of one record, or of one batch."""
    return np.random.Generator(_philox(seed, use, epoch, number))


def shuffled(size: int, seed: int, epoch: int, use: str = "order") -> np.ndarray[Any, Any]:
    """The numbers below the size in a random order.

    They are the low bits of random words, which are sorted.

    >>> shuffled(5, seed=0, epoch=0).tolist(), shuffled(5, seed=0, epoch=1).tolist()
    ([4, 2, 0, 1, 3], [0, 4, 1, 3, 2])
    """
    low = np.uint64(2 ** max(size - 1, 1).bit_length() - 1)
    words = _philox(seed, use, epoch, 0).random_raw(size)
    words &= ~low
    words |= np.arange(size, dtype=np.uint64)
    words.sort()
    words &= low
    return words.view(np.int64)
