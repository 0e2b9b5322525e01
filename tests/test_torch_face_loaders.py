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
