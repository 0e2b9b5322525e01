"""Calls of `utils.data` whose answer, or error, is the same under both libraries."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import importlib
import warnings
from typing import Any

import numpy as np

CASES = r"""
D.default_collate([1,2])
D.default_collate([1.,2.])
D.default_collate([True,False])
D.default_collate([1+2j])
D.default_collate(['a','b'])
D.default_collate([b'a',b'b'])
D.default_collate([None,None])
D.default_collate([P(1,2),P(3,4)])
D.default_collate([{'a':1,'b':'x'},{'a':2,'b':'y'}])
D.default_collate([Map(a=1),Map(a=2)])
D.default_collate([MDict(a=1),MDict(a=2)])
D.default_collate([UD(a=1),UD(a=2)])
D.default_collate([collections.OrderedDict(a=1),collections.OrderedDict(a=2)])
D.default_collate([collections.defaultdict(list,a=1),collections.defaultdict(list,a=2)])
D.default_collate([Seq(1,2),Seq(3,4)])
D.default_collate([UL([1,2]),UL([3,4])])
D.default_collate([DC(),DC()])
D.default_collate([[1,2],[3]])
D.default_collate([(1,2),(3,4)])
D.default_collate([{'a':1},{'b':2}])
D.default_collate([])
D.default_collate([np.array([1,2]),np.array([3,4])])
D.default_collate([np.float32(1),np.float32(2)])
D.default_collate([np.array('a')])
D.default_collate([np.array([object()])])
D.default_collate([np.str_('a')])
D.default_collate([torch.ones(2),torch.ones(3)])
D.default_collate([np.ones(2),np.ones(3)])
D.default_collate([{1},{2}])
D.default_collate([range(2),range(2)])
D.default_collate([1,2.5])
D.default_collate([()])
D.default_collate([[],[]])
D.default_convert([1,np.array([1.,2.]),'a'])
D.default_convert((1,np.int64(3)))
D.default_convert(P(np.ones(1),2))
D.default_convert({'a':np.ones(1)})
D.default_convert(MDict(a=np.ones(1)))
D.default_convert(Map(a=np.ones(1)))
D.default_convert(Seq(np.ones(1),2))
D.default_convert(None)
D.default_convert(np.array(['a']))
D.default_convert(DC())
len(D.DataLoader(DS(5),batch_size=2))
len(iter(D.DataLoader(DS(5),batch_size=2)))
len(D.DataLoader(It(5),batch_size=2))
len(D.DataLoader(ItL(5),batch_size=2))
[b for b in D.DataLoader(DS(5),batch_size=2,drop_last=True)]
[b for b in D.DataLoader(DS(3),batch_size=None)]
[b for b in D.DataLoader(It(5),batch_size=2)]
[b for b in D.DataLoader(It(3),batch_size=None)]
[b for b in D.DataLoader(DS(5),batch_sampler=[[0,1],[3]])]
[b for b in D.DataLoader(DS(5),sampler=[4,1],batch_size=2)]
[b for b in D.DataLoader(DS(4),batch_size=2,collate_fn=lambda x:x)]
D.DataLoader(DS(5),batch_size=0)
D.DataLoader(DS(5),batch_size=-1)
D.DataLoader(DS(5),batch_size=1.5)
D.DataLoader(DS(5),batch_size=2,batch_sampler=[[0]])
D.DataLoader(DS(5),shuffle=True,batch_sampler=[[0]])
D.DataLoader(DS(5),drop_last=True,batch_sampler=[[0]])
D.DataLoader(DS(5),sampler=[0],shuffle=True)
D.DataLoader(DS(5),batch_size=None,drop_last=True)
D.DataLoader(DS(5),batch_size=None,shuffle=True).sampler.__class__.__name__
D.DataLoader(It(5),shuffle=True)
D.DataLoader(It(5),shuffle=False).batch_size
D.DataLoader(It(5),shuffle='x')
D.DataLoader(It(5),sampler=[0])
D.DataLoader(It(5),batch_sampler=[[0]])
D.DataLoader(DS(5),num_workers=-1)
D.DataLoader(DS(5),timeout=-1)
D.DataLoader(DS(5),prefetch_factor=2)
D.DataLoader(DS(5),prefetch_factor=-2,num_workers=1)
D.DataLoader(DS(5),persistent_workers=True)
D.DataLoader(DS(5),pin_memory=True).pin_memory
D.DataLoader(DS(5)).prefetch_factor
D.DataLoader(DS(5),num_workers=1).prefetch_factor
D.DataLoader(DS(5)).in_order
D.DataLoader(DS(5)).persistent_workers
D.DataLoader(DS(5)).timeout
D.DataLoader(DS(5)).multiprocessing_context
D.DataLoader(DS(0),shuffle=True)
[b for b in D.DataLoader(DS(0))]
D.RandomSampler(DS(0))
D.RandomSampler(DS(3),num_samples=0)
D.RandomSampler(DS(3),replacement=3)
len(D.RandomSampler(DS(3),num_samples=7))
D.BatchSampler(range(3),2,3)
D.BatchSampler(range(3),0,False)
list(D.BatchSampler(range(5),2,False))
len(D.BatchSampler(range(5),2,True))
D.WeightedRandomSampler([1,2],0)
D.WeightedRandomSampler([[1,2]],1)
D.WeightedRandomSampler([1,2],3,'a')
list(D.WeightedRandomSampler([0,1.],3))
D.ConcatDataset([])
len(D.ConcatDataset([DS(2),DS(3)]))
D.ConcatDataset([DS(2),DS(3)])[-1]
D.ConcatDataset([DS(2),DS(3)])[3]
D.ConcatDataset([DS(2),DS(3)])[7]
D.ConcatDataset([DS(2),DS(3)])[-9]
D.ConcatDataset([It(2)])
list(D.ChainDataset([It(2),It(1)]))
len(D.ChainDataset([ItL(2),ItL(1)]))
list(D.ChainDataset([DS(2)]))
list(It(2)+It(1))
len(DS(2)+DS(1))
D.Subset(DS(5),[3,1])[1]
len(D.Subset(DS(5),[3,1]))
D.Subset(DS(5),[3,1])[[0,1]]
D.Subset(DS(5),[3,1]).__getitems__([0,1])
D.StackDataset(DS(2),DS(2))[1]
D.StackDataset(a=DS(2),b=DS(2))[1]
D.StackDataset(DS(2),DS(3))
D.StackDataset()
D.StackDataset(DS(2),a=DS(2))
D.StackDataset(DS(3),DS(3)).__getitems__([0,1])
[len(s) for s in D.random_split(DS(10),[.5,.3,.2])]
[len(s) for s in D.random_split(DS(10),[1/3,1/3,1/3])]
[len(s) for s in D.random_split(DS(7),[3,4])]
D.random_split(DS(7),[3,3])
D.random_split(DS(7),[1.5,-.5])
D.random_split(DS(7),[.5,.4])
[len(s) for s in D.random_split(DS(3),[0,3])]
D.TensorDataset(torch.ones(2),torch.ones(3))
D.TensorDataset(torch.ones(2),torch.ones(2))[1]
len(D.TensorDataset(torch.ones(2,3)))
D.Dataset()[0]
list(D.DataLoader(D.TensorDataset(torch.arange(4)),batch_size=2))
D.get_worker_info()
D.DataLoader(DS(4),num_workers=1,timeout='a')
D.SubsetRandomSampler([1,2]).indices
list(D.SequentialSampler(DS(2)))
next(iter(D.DataLoader(DS(2),collate_fn=lambda b:None)))
next(iter(D.DataLoader([{'a':None}])))
next(iter(D.DataLoader([DC()])))
next(iter(D.DataLoader(5)))
next(iter(D.DataLoader([1,2],batch_size=2,generator=torch.Generator())))
next(iter(D.DataLoader([P(torch.ones(1),'s')])))
D.DataLoader(DS(4)).dataset.n
iter(D.DataLoader(DS(4))) is not None and next(iter(D.DataLoader(DS(4))))
""".strip().splitlines()

P = collections.namedtuple("P", "a b")


class Map(collections.abc.Mapping[str, Any]):
    def __init__(self, known: Any = None, **more: Any) -> None:
        self.known = dict(known or {}, **more)

    def __getitem__(self, key: str) -> Any:
        return self.known[key]

    def __iter__(self) -> Any:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


class MDict(dict[str, Any]):
    pass


class UD(collections.UserDict[str, Any]):
    pass


class Seq(collections.abc.Sequence[Any]):
    def __init__(self, *values: Any) -> None:
        self.values = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else list(values)

    def __getitem__(self, i: Any) -> Any:
        return self.values[i]

    def __len__(self) -> int:
        return len(self.values)


class UL(collections.UserList[Any]):
    pass


@dataclasses.dataclass
class DC:
    a: int = 1


def _datasets(D: Any) -> dict[str, Any]:
    class DS(D.Dataset):
        def __init__(self, n: int) -> None:
            self.n = n

        def __len__(self) -> int:
            return self.n

        def __getitem__(self, i: int) -> int:
            return i

    class It(D.IterableDataset):
        def __init__(self, n: int) -> None:
            self.n = n

        def __iter__(self) -> Any:
            return iter(range(self.n))

    class ItL(It):
        def __len__(self) -> int:
            return self.n

    class Sh(It):
        def __iter__(self) -> Any:
            worker = D.get_worker_info()
            return iter(range(self.n) if worker is None else range(worker.id, self.n, worker.num_workers))

    return {kind.__name__: kind for kind in (DS, It, ItL, Sh)}


def answers(torch: Any) -> dict[str, str]:
    """What each case gives under a library, as text."""
    D = importlib.import_module(f"{torch.__name__}.utils.data")
    scope = {**globals(), **_datasets(D), "torch": torch, "D": D, "np": np}

    def shown(x: Any) -> str:
        if isinstance(x, torch.Tensor):
            return f"{x.dtype}{x.tolist()}"
        if isinstance(x, collections.abc.Mapping):
            return f"{type(x).__name__}({', '.join([f'{key}: {shown(value)}' for key, value in x.items()])})"
        if isinstance(x, (list, tuple, Seq, UL)):
            return f"{type(x).__name__}({', '.join([shown(value) for value in x])})"
        return repr(x)

    found = {}
    for case in CASES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[case] = shown(eval(case, scope))
            except Exception as error:
                found[case] = f"{type(error).__name__}: {error}"
    return found
