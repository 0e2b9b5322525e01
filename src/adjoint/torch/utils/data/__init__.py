"""`torch.utils.data`: datasets, samplers, and the loader of batches."""

from typing import Any

from adjoint.torch.missing import missing as _missing
from adjoint.torch.missing import rooms as _rooms
from adjoint.torch.utils.data.datasets import ChainDataset as ChainDataset
from adjoint.torch.utils.data.datasets import ConcatDataset as ConcatDataset
from adjoint.torch.utils.data.datasets import Dataset as Dataset
from adjoint.torch.utils.data.datasets import IterableDataset as IterableDataset
from adjoint.torch.utils.data.datasets import StackDataset as StackDataset
from adjoint.torch.utils.data.datasets import Subset as Subset
from adjoint.torch.utils.data.datasets import TensorDataset as TensorDataset
from adjoint.torch.utils.data.datasets import random_split as random_split
from adjoint.torch.utils.data.loader import DataLoader as DataLoader
from adjoint.torch.utils.data.loader import default_collate as default_collate
from adjoint.torch.utils.data.loader import default_convert as default_convert
from adjoint.torch.utils.data.loader import get_worker_info as get_worker_info
from adjoint.torch.utils.data.samplers import BatchSampler as BatchSampler
from adjoint.torch.utils.data.samplers import DistributedSampler as DistributedSampler
from adjoint.torch.utils.data.samplers import RandomSampler as RandomSampler
from adjoint.torch.utils.data.samplers import Sampler as Sampler
from adjoint.torch.utils.data.samplers import SequentialSampler as SequentialSampler
from adjoint.torch.utils.data.samplers import SubsetRandomSampler as SubsetRandomSampler
from adjoint.torch.utils.data.samplers import WeightedRandomSampler as WeightedRandomSampler

_DATASETS = "ChainDataset ConcatDataset Dataset IterableDataset StackDataset Subset TensorDataset random_split"
_SAMPLERS = "BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler WeightedRandomSampler"
_LOADER = "DataLoader default_collate get_worker_info"
_rooms(
    __name__,
    {
        "dataset": _DATASETS.split(), "sampler": _SAMPLERS.split(), "dataloader": _LOADER.split(),
        "distributed": ["DistributedSampler"],
    },
    globals(),
)  # fmt: skip


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)
