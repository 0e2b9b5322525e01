"""Layers as modules: with the same weights, values and gradients are those of PyTorch's layers."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint.module.fields import leaves_of

pytestmark = pytest.mark.peers

# name, arguments, settings, shapes of operands ("int:n" for integers below n), PyTorch's name where it is another
Case = tuple[str, tuple[Any, ...], dict[str, Any], list[Any]]
X1, X2, X3 = [(2, 4, 9)], [(2, 4, 6, 7)], [(2, 4, 5, 6, 4)]
LAYERS: list[Case] = [
    ("Linear", (3, 2), {}, [(5, 3)]),
    ("Linear", (3, 2, False), {}, [(2, 5, 3)]),
    ("Bilinear", (3, 4, 2), {}, [(5, 3), (5, 4)]),
    ("Embedding", (7, 3), {}, [("int", 7, (2, 4))]),
    ("Embedding", (7, 3, 2), {}, [("int", 7, (2, 4))]),
    ("EmbeddingBag", (7, 3), {}, [("int", 7, (2, 4))]),
    ("EmbeddingBag", (7, 3), {"mode": "sum", "padding_idx": 2}, [("int", 7, (2, 4))]),
    ("PReLU", (), {}, X1),
    ("PReLU", (4, 0.1), {}, X2),
    ("Flatten", (), {}, X2),
    ("Flatten", (0, 2), {}, X2),
    ("Unflatten", (1, (2, -1)), {}, X1),
    ("Identity", (), {}, X1),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, X1),
    ("Conv2d", (4, 6, (3, 2)), {"padding": "same", "dilation": 2}, X2),
    ("Conv2d", (4, 6, 3), {"bias": False}, X2),
    ("Conv3d", (4, 2, 2), {}, X3),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "output_padding": 1}, X1),
    ("ConvTranspose2d", (4, 6, 3), {"padding": 1, "groups": 2, "dilation": 2}, X2),
    ("ConvTranspose3d", (4, 2, 2), {}, X3),
    ("LayerNorm", (9,), {}, X1),
    ("LayerNorm", ((6, 7),), {"bias": False}, X2),
    ("RMSNorm", (9,), {"eps": 1e-3}, X1),
    ("GroupNorm", (2, 4), {}, X2),
    ("GroupNorm", (4, 4), {"affine": False}, X1),
    ("BatchNorm:BatchNorm1d", (4,), {}, X1),
    ("BatchNorm:BatchNorm2d", (4,), {"momentum": 0.3}, X2),
    ("BatchNorm:BatchNorm3d", (4,), {"affine": False}, X3),
    ("InstanceNorm:InstanceNorm1d", (4,), {"affine": True}, X1),
    ("InstanceNorm:InstanceNorm2d", (4,), {}, X2),
    *[(name, (), {}, X2) for name in (
        "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish ReLU ReLU6 SELU SiLU "
        "Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink"
    ).split()],
    ("GELU", ("tanh",), {}, X1),
    ("GLU", (1,), {}, X1),
    ("Softmax", (1,), {}, X1),
    ("LogSoftmax", (2,), {}, X1),
    ("Softmin", (1,), {}, X1),
    ("Threshold", (0.1, 3.0), {}, X1),
    ("LocalResponseNorm", (3,), {}, X1),
    *[(f"{kind}Pool{n}d", (2,), {}, X) for kind in ("Max", "Avg") for n, X in ((1, X1), (2, X2), (3, X3))],
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1}, X2),
    *[(f"LPPool{n}d", (2, 2), {}, [X[0]]) for n, X in ((1, X1), (2, X2), (3, X3))],
    *[(f"Adaptive{kind}Pool{n}d", (2,), {}, X) for kind in ("Max", "Avg") for n, X in ((1, X1), (2, X2), (3, X3))],
    ("ChannelShuffle", (2,), {}, X2),
    ("PixelShuffle", (2,), {}, X2),
    ("PixelUnshuffle", (2,), {}, [(1, 1, 4, 6)]),
    ("Unfold", (2,), {}, X2),
    ("Fold", ((4, 5), (2, 2)), {}, [(2, 8, 12)]),
    ("Interpolate:Upsample", (), {"scale_factor": 2, "mode": "bilinear", "align_corners": False}, X2),
    # losses
    ("MSELoss", (), {}, [(4, 3), (4, 3)]),
    ("MSELoss", (), {"reduction": "sum"}, [(4, 3), (4, 3)]),
    ("L1Loss", (), {}, [(4, 3), (4, 3)]),
    ("SmoothL1Loss", (), {"beta": 0.3}, [(4, 3), (4, 3)]),
    ("HuberLoss", (), {"delta": 0.3}, [(4, 3), (4, 3)]),
    ("CrossEntropyLoss", (), {"label_smoothing": 0.1}, [(4, 3), ("int", 3, (4,))]),
    ("CrossEntropyLoss", (), {"weight": np.array([0.2, 0.5, 0.3])}, [(4, 3), ("int", 3, (4,))]),
    ("NLLLoss", (), {}, [(4, 3), ("int", 3, (4,))]),
    ("BCEWithLogitsLoss", (), {"pos_weight": np.array([2.0, 0.5, 1.0])}, [(4, 3), ("unit", (4, 3))]),
    ("BCELoss", (), {}, [("tracked unit", (4, 3)), ("unit", (4, 3))]),
    ("KLDivLoss", (), {"reduction": "batchmean"}, [(4, 3), ("unit", (4, 3))]),
    ("PoissonNLLLoss", (), {}, [(4, 3), ("unit", (4, 3))]),
    ("GaussianNLLLoss", (), {}, [(4, 3), (4, 3), ("unit", (4, 3))]),
    ("HingeEmbeddingLoss", (), {}, [(4, 3), ("sign", (4, 3))]),
    ("SoftMarginLoss", (), {}, [(4, 3), ("sign", (4, 3))]),
    ("MarginRankingLoss", (), {"margin": 0.1}, [(4,), (4,), ("sign", (4,))]),
    ("CosineEmbeddingLoss", (), {}, [(4, 3), (4, 3), ("sign", (4,))]),
    ("TripletMarginLoss", (), {}, [(4, 3), (4, 3), (4, 3)]),
    ("MultiMarginLoss", (), {}, [(4, 3), ("int", 3, (4,))]),
    ("MultiLabelSoftMarginLoss", (), {}, [(4, 3), ("unit", (4, 3))]),
    ("CosineSimilarity", (1,), {}, [(4, 3), (4, 3)]),
    ("PairwiseDistance", (), {}, [(4, 3), (4, 3)]),
]  # fmt: skip


def drawn(rng: Any, shape: Any) -> Any:
    if shape[0] == "int":
        return rng.integers(shape[1], size=shape[2])
    if shape[0] in ("unit", "tracked unit"):
        return rng.uniform(0.05, 0.95, size=shape[1])
    if shape[0] == "sign":
        return rng.choice([-1.0, 1.0], size=shape[1])
    return rng.normal(size=shape)


def pair(torch: Any, case: Case, rng: Any) -> tuple[Any, Any]:
    """Our layer and PyTorch's, both in float64 and with the same random weights."""
    (ours, _, theirs), args, settings = case[0].partition(":"), case[1], case[2]
    given = {k: ad.asarray(v) if isinstance(v, np.ndarray) else v for k, v in settings.items()}
    its = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in settings.items()}
    kind = getattr(ad.nn, ours)
    typed = {"dtype": ad.float64} if "dtype" in inspect.signature(kind.__init__).parameters else {}
    layer, other = kind(*args, **given, **typed), getattr(torch.nn, theirs or ours)(*args, **its).double()
    for name, p in other.named_parameters():
        value = rng.normal(size=tuple(p.shape))
        assert layer.at(name).get().shape == tuple(p.shape)
        layer = layer.at(name).set(ad.asarray(value))
        p.data = torch.from_numpy(value)
    assert list(layer.named_parameters()) == [name for name, _ in other.named_parameters()]
    return layer, other


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: f"{case[0]}{case[1]}{list(case[2])}")
def test_as_in_pytorch(case: Case) -> None:
    torch = peer("torch")
    rng = np.random.default_rng(7)
    layer, other = pair(torch, case, rng)
    values = [drawn(rng, shape) for shape in case[3]]
    tracked = [
        v.dtype.kind == "f" and shape[0] not in ("unit", "sign") for v, shape in zip(values, case[3], strict=True)
    ]
    given = [torch.from_numpy(v.copy()).requires_grad_(t) for v, t in zip(values, tracked, strict=True)]
    wanted = other(*given)
    weights = rng.normal(size=tuple(wanted.shape))
    (wanted * torch.from_numpy(weights)).sum().backward()

    def loss(layer: Any, *chosen: Any) -> Any:
        operands, rest = [], iter(chosen)
        for v, t in zip(values, tracked, strict=True):
            operands.append(next(rest) if t else ad.asarray(v))
        return (layer(*operands) * ad.asarray(weights)).sum()

    found = layer(*[ad.asarray(v) for v in values])
    close = 1e-7 if case[0] == "Hardsigmoid" else 1e-9  # whose sixth is a float32 there
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=close, atol=close / 10)
    inputs = [ad.asarray(v) for v, t in zip(values, tracked, strict=True) if t]
    slopes, *others = ad.grad(loss, tuple(range(1 + len(inputs))))(layer, *inputs)
    for name, p in other.named_parameters():
        np.testing.assert_allclose(slopes.at(name).get().numpy(), p.grad.numpy(), rtol=1e-8, atol=1e-9)
    for g, x in zip(others, [x for x in given if x.requires_grad], strict=True):
        np.testing.assert_allclose(g.numpy(), x.grad.numpy(), rtol=10 * close, atol=close)


@pytest.mark.parametrize("case", [case for case in LAYERS if case[0].startswith("BatchNorm")], ids=lambda case: case[0])
def test_running_statistics_are_pytorchs(case: Case) -> None:
    torch = peer("torch")
    rng = np.random.default_rng(7)
    layer, other = pair(torch, case, rng)
    state = layer.state()
    for _ in range(3):
        x = rng.normal(size=case[3][0]) * 3 + 1
        out, state = layer.apply(ad.asarray(x), state)
        np.testing.assert_allclose(out.numpy(), other(torch.from_numpy(x)).detach().numpy(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state.running_mean.numpy(), other.running_mean.numpy())
    np.testing.assert_allclose(state.running_var.numpy(), other.running_var.numpy())
    x = rng.normal(size=case[3][0])
    used = layer.with_state(state).train(False)
    np.testing.assert_allclose(
        used(ad.asarray(x)).numpy(), other.eval()(torch.from_numpy(x)).detach().numpy(), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("name", ["Linear", "Conv2d", "ConvTranspose2d", "Bilinear", "Embedding"])
def test_weights_start_as_pytorchs(name: str) -> None:
    torch = peer("torch")
    args = {"Linear": (400, 300), "Conv2d": (40, 30, 5), "ConvTranspose2d": (40, 30, 5), "Bilinear": (40, 30, 50)}
    given = args.get(name, (400, 300))
    ad.random.seed(0)
    torch.manual_seed(0)
    ours, theirs = getattr(ad.nn, name)(*given), getattr(torch.nn, name)(*given)
    for path, p in theirs.named_parameters():
        x, y = ours.at(path).get().numpy(), p.detach().numpy()
        for of in (np.std, np.max, np.min):
            np.testing.assert_allclose(of(x), of(y), rtol=0.15)


def test_every_module_has_a_case() -> None:
    apart = {"Module", "Lambda", "Sequential", "Residual", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "RReLU",
             "AlphaDropout", "FeatureAlphaDropout", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "CTCLoss",
             "MultiLabelMarginLoss", "TripletMarginWithDistanceLoss",
             "MultiHeadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "TransformerEncoder",
             "TransformerDecoder", "Transformer", "PositionalEmbedding", "PositionalEncoding", "DeformConv2d", "Pad",
             "LowRank", "AdaptiveLogSoftmaxWithLoss", "FractionalMaxPool2d", "FractionalMaxPool3d",
             "RNN", "RNNCell", "LSTM", "LSTMCell", "GRU", "GRUCell"}  # fmt: skip
    kinds = {name for name in ad.nn.__all__ if isinstance(getattr(ad.nn, name), type(ad.nn.Module))}
    assert kinds - apart <= {case[0].partition(":")[0] for case in LAYERS}, kinds - apart


@pytest.mark.parametrize("axes", [2, 3])
def test_fractional_pools_draw_anew(axes: int) -> None:
    """For each image and channel, in training or not; a key draws again what it drew."""
    ad.random.seed(0)
    x = ad.broadcast_to(ad.random.normal((15,) * axes), (2, 3, *(15,) * axes))
    layer = getattr(ad.nn, f"FractionalMaxPool{axes}d")(2, output_ratio=0.6).train(False)
    out = layer(x, key=3)
    assert out.shape == (2, 3, *(9,) * axes)
    assert (out == layer(x, key=3)).all()
    assert len(np.unique(out.numpy().reshape(6, -1), axis=0)) == 6
    assert not (layer(x) == layer(x)).all()


@pytest.mark.parametrize("name", ["Dropout", "Dropout2d", "AlphaDropout", "RReLU"])
def test_what_is_random_is_so_in_training_alone(name: str) -> None:
    layer, x = getattr(ad.nn, name)(), -ad.ones((3, 4, 5, 6))
    assert not (layer(x) == layer(x)).all()
    still = layer.train(False)
    assert (still(x) == still(x)).all()


def test_weights_of_losses_are_no_parameters() -> None:
    layer = ad.nn.CrossEntropyLoss(weight=ad.ones(3))
    assert [leaf.kind for leaf in leaves_of(layer)] == ["buffer"]


def test_deformable_convolutions_without_offsets_are_convolutions() -> None:
    torch = peer("torch")
    settings: dict[str, Any] = {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}
    case: Case = ("Conv2d", (4, 6, 3), settings, X2)
    rng = np.random.default_rng(7)
    plain, other = pair(torch, case, rng)
    layer = ad.nn.DeformConv2d(4, 6, 3, **settings, dtype=ad.float64)
    for name, p in plain.named_parameters().items():
        layer = layer.at(name).set(p)
    x = rng.normal(size=X2[0])
    wanted = other(torch.from_numpy(x)).detach().numpy()
    offset = ad.zeros((2, 18, *wanted.shape[2:]), dtype=ad.float64)
    np.testing.assert_allclose(layer(ad.asarray(x), offset).numpy(), wanted, rtol=1e-10)
    half = ad.full((2, 9, *wanted.shape[2:]), 0.5, dtype=ad.float64)
    bias = layer.bias.reshape((6, 1, 1)).numpy()
    np.testing.assert_allclose(layer(ad.asarray(x), offset, half).numpy(), (wanted + bias) / 2, rtol=1e-10)
    with pytest.raises(ad.errors.ArgumentError, match="DeformConv2d: 4 and 6 channels do not fall into 3 equal"):
        ad.nn.DeformConv2d(4, 6, 3, groups=3)


@pytest.mark.parametrize(
    ("theirs", "args"),
    [("ReflectionPad1d", ("reflect",)), ("ReplicationPad2d", ("replicate",)), ("CircularPad1d", ("circular",)),
     ("ConstantPad2d", ("constant", 3.0)), ("ZeroPad1d", ())],
)  # fmt: skip
def test_borders_are_pytorchs(theirs: str, args: tuple[Any, ...]) -> None:
    torch = peer("torch")
    widths = (1, 2) if theirs.endswith("1d") else (1, 2, 0, 3)
    x = np.random.default_rng(7).normal(size=(2, 4, 5) if theirs.endswith("1d") else (2, 4, 5, 6))
    other = getattr(torch.nn, theirs)(widths, *args[1:])
    found = ad.nn.Pad(widths, *args)(ad.asarray(x))
    np.testing.assert_array_equal(found.numpy(), other(torch.from_numpy(x)).numpy())


def test_all_of_pytorchs_modules_are_here_or_named() -> None:
    """A name of torch.nn is one of ours, or its error says what is here for it."""
    torch = peer("torch")
    for name in vars(torch.nn):
        kind = getattr(torch.nn, name)
        if isinstance(kind, type) and issubclass(kind, torch.nn.Module) and not hasattr(ad.nn, name):
            with pytest.raises(AttributeError, match="use "):
                getattr(ad.nn, name)


def test_wrong_input() -> None:
    with pytest.raises(ad.errors.AdjointError, match="Flatten"):
        ad.nn.Flatten(3)(ad.ones((2, 3)))
    with pytest.raises(ad.errors.ArgumentError, match=r"Flatten: axis 2 comes after axis 1 in shape \(2, 3, 4\)"):
        ad.nn.Flatten(2, 1)(ad.ones((2, 3, 4)))
    with pytest.raises(ad.errors.ArgumentError, match="EmbeddingBag: padding_idx 7 is none of 7 rows"):
        ad.nn.EmbeddingBag(7, 3, padding_idx=7)


def test_layers_of_a_sequence() -> None:
    model = ad.nn.Sequential(ad.nn.Linear(2, 3), ad.tanh, ad.nn.Linear(3, 1))
    assert len(model) == 3
    assert model[2] is model.layers[2]
    assert isinstance(model[:2], ad.nn.Sequential)
    assert model[:2](ad.ones((4, 2))).shape == (4, 3)
    assert [layer for layer in model] == list(model.layers)  # noqa: C416


@pytest.mark.parametrize("bias", [False, True])
def test_adaptive_softmax_is_pytorchs(bias: bool) -> None:
    torch = peer("torch")
    rng = np.random.default_rng(7)
    other = torch.nn.AdaptiveLogSoftmaxWithLoss(12, 20, [5, 11], 2.0, bias).double()
    layer = ad.nn.AdaptiveLogSoftmaxWithLoss(12, 20, [5, 11], 2.0, bias, dtype=ad.float64)
    named = {name: p.detach().numpy() for name, p in other.named_parameters()}
    to_ours = lambda name: re.sub(r"^tail\.(\d)\.", r"tail.\1.layers.", name)
    layer = layer.load_record({name: x.copy() for name, x in named.items()}, rename=to_ours)
    x, target = rng.normal(size=(6, 12)), np.array([0, 4, 5, 10, 11, 19])
    given = torch.from_numpy(x).requires_grad_()
    wanted = other(given, torch.from_numpy(target))
    found = layer(ad.asarray(x), ad.asarray(target))
    np.testing.assert_allclose(found.output.numpy(), wanted.output.detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(found.loss.item(), wanted.loss.item(), rtol=1e-10)
    logs = layer.log_prob(ad.asarray(x)).numpy()
    np.testing.assert_allclose(logs, other.log_prob(given).detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(np.exp(logs).sum(1), 1)
    np.testing.assert_array_equal(layer.predict(ad.asarray(x)).numpy(), other.predict(given).numpy())
    wanted.loss.backward()
    slopes, slope = ad.grad(lambda layer, x: layer(x, target).loss, (0, 1))(layer, ad.asarray(x))
    np.testing.assert_allclose(slope.numpy(), given.grad.numpy(), rtol=1e-9, atol=1e-12)
    for name, p in other.named_parameters():
        np.testing.assert_allclose(slopes.at(to_ours(name)).get().numpy(), p.grad.numpy(), rtol=1e-8, atol=1e-12)
    one = layer(ad.asarray(x[2]), target[2])
    np.testing.assert_allclose(one.output.item(), found.output[2].item())
    for cutoffs in ([], [5, 5], [0, 4], [20]):
        with pytest.raises(ad.errors.ArgumentError, match="AdaptiveLogSoftmaxWithLoss: cutoffs grow, from 1 or more"):
            ad.nn.AdaptiveLogSoftmaxWithLoss(12, 20, cutoffs)
    with pytest.raises(ad.errors.ArgumentError, match="nothing is left of 12 features in cluster 1"):
        ad.nn.AdaptiveLogSoftmaxWithLoss(12, 20, [5, 11], 4.0)
    with pytest.raises(ad.errors.OutOfRangeError, match="targets from 20 to 20"):
        layer(ad.asarray(x[:1]), [20])


@pytest.mark.peers
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 4, 3, 5), (2, 4, 3, 2, 2)])
@pytest.mark.parametrize("affine", [False, True])
def test_running_statistics_of_instances_are_pytorchs(shape: tuple[int, ...], affine: bool) -> None:
    """While training, then for use, values and gradients; also `batch_statistics` and a `Sequential`."""
    torch = peer("torch")
    how: dict[str, Any] = {"momentum": 0.3, "affine": affine, "track_running_stats": True}
    other = getattr(torch.nn, f"InstanceNorm{len(shape) - 2}d")(4, **how).double()
    layer = ad.nn.InstanceNorm(4, **how, dtype=ad.float64)
    state, rng = layer.state(), np.random.default_rng(3)
    for _ in range(3):
        x = rng.normal(1.0, 2.0, shape)
        theirs = torch.tensor(x, requires_grad=True)
        wanted = other(theirs)
        wanted.pow(3).sum().backward()
        found, state = layer.apply(ad.asarray(x), state)
        np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-10)
        slope = ad.grad(lambda x, state=state: (layer.apply(x, state)[0] ** 3).sum())(x)
        np.testing.assert_allclose(slope, theirs.grad.numpy(), rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(state.running_mean.numpy(), other.running_mean.numpy(), rtol=1e-10)
        np.testing.assert_allclose(state.running_var.numpy(), other.running_var.numpy(), rtol=1e-10)
    used = layer.with_state(state).train(False)
    theirs = torch.tensor(x, requires_grad=True)
    wanted = other.eval()(theirs)
    wanted.pow(3).sum().backward()
    np.testing.assert_allclose(used(ad.asarray(x)).numpy(), wanted.detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(ad.grad(lambda x: (used(x) ** 3).sum())(x), theirs.grad.numpy(), rtol=1e-8)
    assert used.apply(ad.asarray(x), state)[1] is state
    plain = ad.nn.InstanceNorm(4, dtype=ad.float64)
    assert plain.state().named_parameters() == {}
    np.testing.assert_array_equal(plain.train(False)(ad.asarray(x)).numpy(), plain(ad.asarray(x)).numpy())
    model = ad.optim.batch_statistics(ad.nn.Sequential(layer), [ad.asarray(x), ad.asarray(x)])
    np.testing.assert_allclose(model.layers[0].running_mean.numpy(), x.mean(axis=(0, *range(2, len(shape)))), rtol=1e-9)
