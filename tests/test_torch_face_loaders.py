"""`adjoint.torch.utils.data`: how records become batches, datasets of datasets, loaders and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
import torch_loaders

import adjoint.torch as ours
from adjoint.torch.utils.data import DataLoader, IterableDataset, get_worker_info


@pytest.mark.peers
def test_calls_give_what_they_give_under_pytorch() -> None:
    theirs = pytest.importorskip("torch")
    found, wanted = torch_loaders.answers(ours), torch_loaders.answers(theirs)
    assert found == wanted


def test_workers_of_a_stream_have_datasets_of_their_own() -> None:
    begun = []

    class Stream(IterableDataset[int]):
        def __init__(self) -> None:
            self.first, self.last = 0, 7

        def __iter__(self) -> Any:
            return iter(range(self.first, self.last))

    def begin(worker: int) -> None:
        info = get_worker_info()
        assert info.id == worker
        info.dataset.first, info.dataset.last = worker * 4, min(7, worker * 4 + 4)
        begun.append(info.seed)

    loader = DataLoader(Stream(), batch_size=2, num_workers=2, worker_init_fn=begin)
    assert [batch.tolist() for batch in loader] == [[0, 1], [4, 5], [2, 3], [6]]
    assert begun[1] == begun[0] + 1
    assert get_worker_info() is None
    batches = iter(DataLoader(range(5), batch_size=2, num_workers=2, in_order=True))
    assert len(batches) == 3
    assert next(batches).tolist() == [0, 1]


class Failing:
    """A dataset whose second record cannot be read."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> int:
        if i:
            raise self.error
        return i


def test_errors_of_workers_say_where_they_were_raised() -> None:
    # what PyTorch 2.13 raises; its processes leave handlers of signals in a test
    for error, kind in (
        (ValueError("bad"), ValueError),
        (KeyError("k"), KeyError),
        (OSError(2, "x"), FileNotFoundError),
        (UnicodeDecodeError("utf8", b"a", 0, 1, "r"), RuntimeError),
    ):
        with pytest.raises((ValueError, KeyError, OSError, RuntimeError)) as caught:
            list(DataLoader(Failing(error), num_workers=1))
        lines = str(caught.value).splitlines()
        assert caught.type is kind
        assert lines[0] == f"Caught {type(error).__name__} in DataLoader worker process 0."
        assert lines[1].startswith("Original Traceback")
