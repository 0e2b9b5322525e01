"""Layers of `adjoint.torch.nn`, made and called as PyTorch's are: the table that both libraries run.

A case is how the layer is made and the shapes of what it is called with: `f` of numbers, `p` of positive ones, `i` of
integers below the number behind it, `b` of 0 and 1, `s` of -1 and 1, `u` between 0 and 1, `l` of classes ended by -1,
`t` of log-probabilities, `j` of classes from 1, `n` of these integers, `d` of places to unpool to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# what PyTorch makes and calls it with, one case a line
CASES = """
Linear(3, 2)                                    | f4,3
Linear(3, 2, bias=False)                        | f2,4,3
Linear(3, 2)                                    | f3
Bilinear(2, 3, 4)                               | f5,2 f5,3
Identity(1, a=2)                                | f3
Flatten()                                       | f2,3,4
Unflatten(1, (2, 3))                            | f2,6
ReLU()                                          | f3,4
ReLU6()                                         | f3,4
LeakyReLU(0.2)                                  | f3,4
PReLU()                                         | f3,4
PReLU(4)                                        | f3,4,2
RReLU(0.2, 0.2)                                 | f3,4
ELU(1.5)                                        | f3,4
CELU(1.5)                                       | f3,4
SELU()                                          | f3,4
GELU()                                          | f3,4
GELU('tanh')                                    | f3,4
GLU(-1)                                         | f3,4
SiLU()                                          | f3,4
Mish()                                          | f3,4
Sigmoid()                                       | f3,4
Tanh()                                          | f3,4
Hardtanh(-0.5, 0.7)                             | f3,4
Hardsigmoid()                                   | f3,4
Hardswish()                                     | f3,4
Hardshrink(0.3)                                 | f3,4
Softshrink(0.3)                                 | f3,4
Tanhshrink()                                    | f3,4
Softsign()                                      | f3,4
Softplus()                                      | f3,4
Softplus(30.0, 5.0)                             | f3,4
LogSigmoid()                                    | f3,4
Threshold(0.1, 20.0)                            | f3,4
Softmax(1)                                      | f3,4
Softmin(0)                                      | f3,4
LogSoftmax(-1)                                  | f3,4
Softmax2d()                                     | f2,3,4,4
Dropout(0.0)                                    | f3,4
Conv1d(2, 3, 2)                                 | f2,2,6
Conv1d(2, 4, 3, stride=2, padding=1, groups=2)  | f2,6
Conv2d(2, 3, (2, 3), stride=(1, 2), padding=1)  | f2,2,5,6
Conv2d(2, 4, 3, padding='same', dilation=2)     | f1,2,5,5
Conv2d(2, 2, 3, padding=1, padding_mode='reflect', bias=False) | f1,2,5,5
Conv2d(2, 2, 3, padding=1, padding_mode='circular') | f1,2,5,4
Conv3d(1, 2, 2)                                 | f1,1,3,3,3
ConvTranspose1d(2, 3, 3, stride=2)              | f2,2,4
ConvTranspose2d(2, 4, 3, stride=2, padding=1, output_padding=1, groups=2) | f1,2,3,4
ConvTranspose3d(1, 2, 2)                        | f1,1,2,3,2
MaxPool1d(2)                                    | f2,3,6
MaxPool2d(3, stride=2, padding=1)               | f2,2,6,5
MaxPool2d((2, 3), ceil_mode=True)               | f1,2,5,5
MaxPool3d(2)                                    | f1,1,4,4,4
AvgPool1d(2, padding=1)                         | f2,3,6
AvgPool2d(2, stride=1, padding=1, count_include_pad=False) | f1,2,4,4
AvgPool2d(2, divisor_override=3)                | f1,2,4,4
AvgPool3d(2)                                    | f1,1,4,4,4
LPPool1d(2, 2)                                  | p1,2,6
LPPool2d(3, 2)                                  | p1,2,4,4
AdaptiveAvgPool1d(2)                            | f1,2,5
AdaptiveAvgPool2d((None, 2))                    | f1,2,4,5
AdaptiveAvgPool3d(1)                            | f1,2,2,3,2
AdaptiveMaxPool1d(2)                            | f1,2,5
AdaptiveMaxPool2d((3, 2))                       | f1,2,6,5
BatchNorm1d(3)                                  | f4,3
BatchNorm1d(3, momentum=None)                   | f4,3,5
BatchNorm2d(3, affine=False)                    | f2,3,2,2
BatchNorm2d(3, track_running_stats=False)       | f2,3,2,2
BatchNorm3d(2, bias=False)                      | f2,2,2,2,2
InstanceNorm1d(3)                               | f2,3,5
InstanceNorm2d(3, affine=True, track_running_stats=True) | f2,3,2,3
InstanceNorm3d(2)                               | f1,2,2,2,2
GroupNorm(2, 4)                                 | f3,4,5
LayerNorm(4)                                    | f3,4
LayerNorm((3, 4), bias=False)                   | f2,3,4
RMSNorm(4, eps=1e-6)                            | f3,4
LocalResponseNorm(2)                            | f2,4,3
Embedding(5, 3)                                 | i5:2,4
Embedding(5, 3, padding_idx=1, scale_grad_by_freq=True) | i5:2,4
EmbeddingBag(5, 3)                              | i5:2,4
EmbeddingBag(5, 3, mode='sum')                  | i5:2,4
EmbeddingBag(5, 3, mode='max')                  | i5:2,4
RNN(3, 4)                                       | f5,2,3
RNN(3, 4, 2, nonlinearity='relu', batch_first=True) | f2,5,3
RNN(3, 4, bias=False)                           | f5,3
LSTM(3, 4, num_layers=2, bidirectional=True)    | f5,2,3
LSTM(3, 4, batch_first=True)                    | f2,5,3
LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2) | f3,2,3
LSTM(3, 4, batch_first=True, bias=False, proj_size=2) | f2,3,3
GRU(3, 4, bidirectional=True)                   | f5,2,3
RNNCell(3, 4, nonlinearity='relu')              | f2,3 f2,4
LSTMCell(3, 4)                                  | f2,3
GRUCell(3, 4, bias=False)                       | f2,3 f2,4
MultiheadAttention(4, 2)                        | f3,2,4 f5,2,4 f5,2,4
MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True) | f2,3,4 f2,5,4 f2,5,4
MultiheadAttention(4, 2, kdim=3, vdim=5, bias=False) | f3,4 f5,3 f5,5
TransformerEncoderLayer(4, 2, 8, dropout=0.0)   | f3,2,4
TransformerEncoderLayer(4, 2, 8, dropout=0.0, norm_first=True, activation='gelu', batch_first=True) | f2,3,4
TransformerDecoderLayer(4, 2, 8, dropout=0.0, norm_first=True) | f3,2,4 f5,2,4
Transformer(4, 2, 1, 1, 8, dropout=0.0, batch_first=True) | f2,3,4 f2,5,4
ZeroPad1d(1)                                    | f2,3
ZeroPad2d((1, 2, 0, 1))                         | f1,2,3,3
ConstantPad1d((1, 2), 3.5)                      | f2,3
ReflectionPad1d(2)                              | f2,4
ReflectionPad2d((1, 0, 2, 1))                   | f1,1,4,4
ReplicationPad2d(1)                             | f1,1,3,3
CircularPad1d(2)                                | f2,4
Upsample(scale_factor=2)                        | f1,2,3,3
Upsample(size=(5, 4), mode='bilinear')          | f1,2,3,3
Upsample(scale_factor=(2, 1.5), mode='bicubic', align_corners=True) | f1,1,4,4
UpsamplingNearest2d(scale_factor=3)             | f1,1,2,3
UpsamplingBilinear2d(size=5)                    | f1,1,3,3
PixelShuffle(2)                                 | f1,4,2,3
PixelUnshuffle(2)                               | f1,1,4,6
ChannelShuffle(2)                               | f1,4,3,2
Fold((4, 5), (2, 3))                            | f1,6,9
Unfold(2, padding=1)                            | f1,2,3,3
CosineSimilarity()                              | f3,4 f3,4
PairwiseDistance(1.5)                           | f3,4 f3,4
L1Loss()                                        | f3,4 f3,4
L1Loss(reduction='none')                        | f3,4 f3,4
MSELoss(reduction='sum')                        | f3,4 f3,4
SmoothL1Loss(beta=0.5)                          | f3,4 f3,4
HuberLoss(delta=0.5)                            | f3,4 f3,4
NLLLoss()                                       | f3,4 i4:3
NLLLoss(weight=torch.tensor([1.0, 2.0, 0.5, 0.1], dtype=torch.float64), ignore_index=1) | f5,4,2 i4:5,2
CrossEntropyLoss()                              | f3,4 i4:3
CrossEntropyLoss(label_smoothing=0.1, reduction='sum') | f3,4,2 i4:3,2
CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5, 0.1], dtype=torch.float64)) | f3,4 p3,4
CrossEntropyLoss(reduction='none')              | f4 i4:
BCELoss()                                       | u3,4 u3,4
BCEWithLogitsLoss(pos_weight=torch.tensor([1.0, 2.0, 0.5, 0.1], dtype=torch.float64)) | f3,4 b3,4
KLDivLoss(reduction='batchmean')                | f3,4 p3,4
KLDivLoss(reduction='sum', log_target=True)     | f3,4 f3,4
PoissonNLLLoss(full=True)                       | f3,4 p3,4
GaussianNLLLoss()                               | f3,4 f3,4 p3,4
SoftMarginLoss()                                | f3,4 s3,4
HingeEmbeddingLoss(0.7)                         | f3,4 s3,4
MultiMarginLoss(p=2)                            | f3,4 i4:3
MultiLabelMarginLoss()                          | f3,4 l3,4
MultiLabelSoftMarginLoss()                      | f3,4 b3,4
CosineEmbeddingLoss(0.2)                        | f3,4 f3,4 s3
MarginRankingLoss(0.3)                          | f3 f3 s3
TripletMarginLoss(swap=True)                    | f3,4 f3,4 f3,4
TripletMarginWithDistanceLoss(margin=0.5)       | f3,4 f3,4 f3,4
AdaptiveLogSoftmaxWithLoss(16, 10, [3, 6])      | f4,16 i10:4
AdaptiveLogSoftmaxWithLoss(16, 10, [3, 6], head_bias=True) | f16 i4:
Dropout1d(0.0)                                  | f3,4
Dropout2d(0.0)                                  | f3,4,2
Dropout3d(0.0)                                  | f1,3,2,2,2
AlphaDropout(0.0)                               | f3,4
FeatureAlphaDropout(0.0)                        | f3,4
LPPool3d(2, 2)                                  | p1,1,2,4,2
AdaptiveMaxPool3d(2)                            | f1,1,4,4,3
MaxUnpool1d(2)                                  | f1,1,3 d3
MaxUnpool2d(2, stride=2)                        | f1,1,1,3 d3
MaxUnpool3d((1, 1, 2))                          | f1,1,1,1,3 d3
ZeroPad3d(1)                                    | f1,1,2,2,2
ConstantPad2d(1, -0.5)                          | f1,2,2,3
ConstantPad3d((1, 0, 0, 1, 1, 1), 2.0)          | f1,1,2,2,2
ReflectionPad3d(1)                              | f1,1,2,3,2
ReplicationPad1d((2, 1))                        | f2,3
ReplicationPad3d(1)                             | f1,1,2,3,2
CircularPad2d((1, 0, 1, 1))                     | f1,1,3,3
CircularPad3d(1)                                | f1,1,2,3,2
CTCLoss(zero_infinity=True)                     | t5,2,4 j2,2 n5,5 n2,1
TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 8, 0.0), 2, torch.nn.LayerNorm(4)) | f2,3,4
TransformerDecoder(torch.nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0), 2) | f3,2,4 f5,2,4
ModuleList([torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.ReLU()]) |
Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 2)) | f4,3
"""

ROWS = [line.rsplit("|", 1) for line in CASES.strip().splitlines()]


def arrays(spec: str, seed: int) -> list[Any]:
    """What a layer is called with."""
    r = np.random.default_rng(seed)
    out: list[Any] = []
    for word in spec.split():
        kind, rest = word[0], word[1:]
        below, _, sizes = rest.rpartition(":")
        shape = tuple([int(n) for n in sizes.split(",") if n])
        if kind == "n":
            out.append(np.array(shape))
        elif kind == "d":
            out.append(2 * np.arange(shape[0]).reshape(out[0].shape))
        elif kind == "j":
            out.append(r.integers(1, 4, shape))
        elif kind == "t":
            out.append(np.log(r.dirichlet(np.ones(shape[-1]), shape[:-1])))
        elif kind == "i":
            out.append(r.integers(0, int(below), shape))
        elif kind == "l":  # classes of each row, ended by -1
            out.append(np.where(np.arange(shape[1]) < 2, np.argsort(r.random(shape), 1), -1))
        else:
            made = r.standard_normal(shape)
            choices = {
                "f": made, "p": np.abs(made) + 0.1, "u": r.uniform(0.1, 0.9, shape),
                "b": (made > 0).astype(float), "s": np.where(made > 0, 1.0, -1.0),
            }  # fmt: skip
            out.append(choices[kind])
    return out


def numbers(value: Any) -> list[Any]:
    """The tensors of a result, as arrays."""
    if value is None:
        return []
    if isinstance(value, (tuple, list)):
        return [x for part in value for x in numbers(part)]
    return [value.detach().numpy()]


def total(torch: Any, value: Any) -> Any:
    """A number of all the tensors of a result, with other factors for each element."""
    if isinstance(value, (tuple, list)):
        return sum([total(torch, part) for part in value if part is not None])
    if not value.is_floating_point():
        return 0.0
    factors = torch.cos(torch.arange(value.numel(), dtype=torch.float64)).reshape(value.shape)
    return (value * factors).sum()


def run(
    torch: Any, text: str, spec: str, given: list[Any], state: dict[str, Any], training: bool = True
) -> dict[str, Any]:
    """What a layer with this state gives and is afterwards: texts, names, values, gradients."""
    layer = eval(text, {"torch": torch, **vars(torch.nn)})
    found: dict[str, Any] = {"text": repr(layer), "names": list(layer.state_dict())}
    found["start"] = {name: tuple(x.shape) for name, x in layer.state_dict().items()}
    layer.double()
    layer.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    layer.train(training)
    if not given:  # nothing to call
        return {**found, "values": [], "gradients": [], "state": {}}
    tracked = [word[0] in "fpu" for word in spec.split()]
    xs = [torch.tensor(x, requires_grad=t) for x, t in zip(given, tracked, strict=True)]
    out = layer(*xs)
    found["values"] = numbers(out)
    loss = total(torch, out)
    leaves = [x for x in [*xs, *layer.parameters()] if x.requires_grad]
    if leaves and loss is not None and getattr(loss, "requires_grad", False):
        loss.backward()
    found["gradients"] = [None if x.grad is None else x.grad.numpy() for x in leaves]
    found["state"] = {name: x.numpy() for name, x in layer.state_dict().items()}
    return found
