"""`torch.utils.data`: datasets, samplers, and the loader of batches."""

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
from adjoint.torch.utils.data.samplers import RandomSampler as RandomSampler
from adjoint.torch.utils.data.samplers import Sampler as Sampler
from adjoint.torch.utils.data.samplers import SequentialSampler as SequentialSampler
from adjoint.torch.utils.data.samplers import SubsetRandomSampler as SubsetRandomSampler
from adjoint.torch.utils.data.samplers import WeightedRandomSampler as WeightedRandomSampler
