"""`torch.nn.modules`: where PyTorch has its layers; here they are those of `torch.nn`."""

from __future__ import annotations

import re
from typing import Any

from adjoint.torch import nn as _nn
from adjoint.torch.missing import rooms as _rooms
from adjoint.torch.nn.layers.base import Loss as _Loss

# room | the layers that PyTorch has there
_TABLE = """
conv          | .*Conv.*
batchnorm     | .*BatchNorm.*
instancenorm  | .*InstanceNorm.*
normalization | (Group|Layer|RMS)Norm|LocalResponseNorm
pooling       | .*[pP]ool.*
padding       | .*Pad[123]d
loss          | (?!Adaptive).*Loss
dropout       | .*Dropout.*
rnn           | (RNN|GRU|LSTM).*
transformer   | Transformer.*
linear        | (Lazy|Bi)?[lL]inear|Identity
sparse        | Embedding.*
upsampling    | Upsampl.*
distance      | CosineSimilarity|PairwiseDistance
flatten       | Flatten|Unflatten
fold          | Fold|Unfold
adaptive      | Adaptive.*Loss
channelshuffle | ChannelShuffle
pixelshuffle  | Pixel.*
activation    | .*
"""
_LISTED = [row.partition("|")[::2] for row in _TABLE.strip().splitlines()]
_BASES: dict[str, dict[str, Any]] = {  # what programs ask `isinstance` of
    "conv": {"_ConvNd": _nn.LAYERS["Conv1d"].__mro__[2]},
    "batchnorm": dict(zip(("_BatchNorm", "_NormBase"), _nn.LAYERS["BatchNorm1d"].__mro__[1:], strict=False)),
    "instancenorm": {"_InstanceNorm": _nn.LAYERS["InstanceNorm1d"].__mro__[1]},
    "loss": {"_Loss": _Loss},
    "lazy": {"LazyModuleMixin": _nn.LAYERS["LazyLinear"].__mro__[1]},
}
_found: dict[str, list[str]] = {room.strip(): [*_BASES.get(room.strip(), ())] for room, _ in _LISTED}
for _name in _nn.LAYERS:
    _found[next(room.strip() for room, names in _LISTED if re.fullmatch(names.strip(), _name))].append(_name)
_found["lazy"] = ["LazyModuleMixin"]
_found["container"] = ["Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]
_rooms(__name__, _found, {**vars(_nn), **{name: base for known in _BASES.values() for name, base in known.items()}})

from adjoint.torch.nn.modules import module as module  # noqa: E402  (a name of `nn`, too, which is another module)
from adjoint.torch.nn.modules import utils as utils  # noqa: E402


def __getattr__(name: str) -> Any:
    return getattr(_nn, name)
