"""Attention and transformers: PyTorch's with the same weights; caches, rotations and masks; first values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors

RNG = np.random.default_rng(4)


def attention_of(other: Any, layer: Any, width: int) -> Any:
    """Our attention with the weights of PyTorch's."""
    weights, biases = other.in_proj_weight.detach().numpy(), other.in_proj_bias
    for k, name in enumerate(("queries", "keys", "values")):
        rows = slice(k * width, (k + 1) * width)
        layer = layer.at(f"{name}.weight").set(ad.asarray(weights[rows].copy()))
        if biases is not None:
            layer = layer.at(f"{name}.bias").set(ad.asarray(biases.detach().numpy()[rows].copy()))
    layer = layer.at("out.weight").set(ad.asarray(other.out_proj.weight.detach().numpy()))
    return layer if biases is None else layer.at("out.bias").set(ad.asarray(other.out_proj.bias.detach().numpy()))


def layer_of(other: Any, layer: Any, decodes: bool) -> Any:
    """Our layer with the weights of PyTorch's."""
    layer = layer.at("attention").set(attention_of(other.self_attn, layer.attention, 8))
    if decodes:
        layer = layer.at("across").set(attention_of(other.multihead_attn, layer.across, 8))
    for name, its in {"first": "linear1", "second": "linear2", "norm1": "norm1", "norm2": "norm2"}.items():
        layer = layer.at(name).set(weights_of(getattr(other, its), getattr(layer, name)))
    return layer.at("norm3").set(weights_of(other.norm3, layer.norm3)) if decodes else layer


def weights_of(other: Any, layer: Any) -> Any:
    return layer.load_record({name: p.detach().numpy().copy() for name, p in other.named_parameters()})


def randomised(torch: Any, other: Any) -> Any:
    for p in other.parameters():
        p.data = torch.from_numpy(RNG.normal(size=tuple(p.shape)) / 2)
    return other


@pytest.mark.peers
def test_attention_is_pytorchs() -> None:
    torch = peer("torch")
    other = randomised(torch, torch.nn.MultiheadAttention(8, 2, batch_first=True).double())
    layer = attention_of(other, ad.nn.MultiHeadAttention(8, 2, dtype=ad.float64), 8)
    x, y = RNG.normal(size=(3, 5, 8)), RNG.normal(size=(3, 6, 8))
    hidden = RNG.random((5, 6)) < 0.3
    hidden[:, 0] = False
    for given, theirs in (
        ({}, {}),
        ({"mask": ~hidden}, {"attn_mask": torch.from_numpy(hidden)}),
    ):
        found = layer(ad.asarray(x), ad.asarray(y), **{k: ad.asarray(v) for k, v in given.items()})
        tx, ty = torch.from_numpy(x), torch.from_numpy(y)
        wanted, _ = other(tx, ty, ty, **theirs)
        np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-10)
    wanted.square().sum().backward()
    slopes = ad.grad(lambda m: (m(ad.asarray(x), ad.asarray(y), mask=ad.asarray(~hidden)) ** 2).sum())(layer)
    np.testing.assert_allclose(
        slopes.keys.weight.numpy(), other.in_proj_weight.grad.numpy()[8:16], rtol=1e-8, atol=1e-9
    )
    np.testing.assert_allclose(slopes.out.bias.numpy(), other.out_proj.bias.grad.numpy(), rtol=1e-8)


@pytest.mark.peers
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("kind", ["Encoder", "Decoder"])
def test_layers_are_pytorchs(kind: str, norm_first: bool) -> None:
    torch = peer("torch")
    make = getattr(torch.nn, f"Transformer{kind}Layer")
    other = randomised(torch, make(8, 2, 16, 0.0, batch_first=True, norm_first=norm_first).double())
    layer = getattr(ad.nn, f"Transformer{kind}Layer")(8, 2, 16, 0.0, norm_first=norm_first, dtype=ad.float64)
    layer = layer_of(other, layer, kind == "Decoder")
    x, memory = RNG.normal(size=(3, 5, 8)), RNG.normal(size=(3, 6, 8))
    causal = torch.nn.Transformer.generate_square_subsequent_mask(5).double()
    extra = (memory,) if kind == "Decoder" else ()
    options = {"tgt_mask": causal} if kind == "Decoder" else {"src_mask": causal}
    wanted = other(*[torch.from_numpy(v) for v in (x, *extra)], **options).detach().numpy()
    found = layer(*[ad.asarray(v) for v in (x, *extra)], is_causal=True).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [False, True])
def test_whole_transformers_are_pytorchs(norm_first: bool) -> None:
    torch = peer("torch")
    how: dict[str, Any] = {"norm_first": norm_first}
    other = randomised(torch, torch.nn.Transformer(8, 2, 2, 2, 16, 0.0, batch_first=True, **how).double())
    model = ad.nn.Transformer(8, 2, 2, 2, 16, 0.0, dtype=ad.float64, **how)
    for part, decodes in (("encoder", False), ("decoder", True)):
        theirs = getattr(other, part)
        for k in range(2):
            place = model.at(f"{part}.layers.{k}")
            model = place.set(layer_of(theirs.layers[k], place.get(), decodes))
        model = model.at(f"{part}.norm").set(weights_of(theirs.norm, getattr(model, part).norm))
    x, y = RNG.normal(size=(3, 6, 8)), RNG.normal(size=(3, 5, 8))
    causal = torch.nn.Transformer.generate_square_subsequent_mask(5).double()
    wanted = other(torch.from_numpy(x), torch.from_numpy(y), tgt_mask=causal)
    found = model(ad.asarray(x), ad.asarray(y), is_causal=True)
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-8, atol=1e-9)
    wanted.square().sum().backward()
    slopes = ad.grad(lambda m: (m(ad.asarray(x), ad.asarray(y), is_causal=True) ** 2).sum())(model)
    for mine, its in (
        (slopes.encoder.layers[0].first.weight, other.encoder.layers[0].linear1.weight),
        (slopes.decoder.layers[1].norm3.bias, other.decoder.layers[1].norm3.bias),
        (slopes.decoder.norm.weight, other.decoder.norm.weight),
    ):
        np.testing.assert_allclose(mine.numpy(), its.grad.numpy(), rtol=1e-7, atol=1e-8)


def test_stacks_of_layers() -> None:
    model = ad.nn.TransformerEncoder(8, 2, 3, 16, dtype=ad.float64).train(False)
    assert model.norm is None
    assert ad.nn.TransformerEncoder(8, 2, 1, norm_first=True).norm is not None
    assert not (model.layers[0].first.weight == model.layers[1].first.weight).any()
    x = ad.random.normal((2, 5, 8), dtype=ad.float64)
    y = x
    for layer in model.layers:
        y = layer(y, is_causal=True)
    np.testing.assert_array_equal(model(x, is_causal=True).numpy(), y.numpy())
    with pytest.raises(errors.ArgumentError, match="TransformerDecoder: num_layers is a positive integer, received 0"):
        ad.nn.TransformerDecoder(8, 2, 0)


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("groups", [4, 2, 1])
def test_a_cache_is_the_whole_sequence(groups: int, rotary: bool) -> None:
    layer = ad.nn.MultiHeadAttention(16, 4, num_kv_heads=groups, rotary=rotary, dtype=ad.float64)
    x = ad.random.normal((2, 7, 16), dtype=ad.float64)
    whole = layer(x, is_causal=True)
    cache, found = layer.empty_cache(x), []
    for part in (x[:, :3], x[:, 3:4], x[:, 4:]):
        out, cache = layer(part, is_causal=True, cache=cache)
        found.append(out)
    np.testing.assert_allclose(ad.concat(found, axis=1).numpy(), whole.numpy(), rtol=1e-10, atol=1e-12)
    assert cache.keys.shape == (2, groups, 7, 4)
    one, _ = layer(x[0, :3], is_causal=True, cache=layer.empty_cache(x[0]))
    np.testing.assert_allclose(one.numpy(), whole[0, :3].numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("kind", ["Encoder", "Decoder"])
def test_a_stack_with_a_cache_is_the_whole_sequence(kind: str, norm_first: bool, rotary: bool) -> None:
    """A few steps, then one at a time; also of one example, with a mask, and its gradients."""
    how: dict[str, Any] = {"norm_first": norm_first, "rotary": rotary, "dtype": ad.float64}
    model = getattr(ad.nn, f"Transformer{kind}")(8, 2, 2, 16, **how).train(False)
    x, memory = ad.random.normal((2, 6, 8), dtype=ad.float64), ad.random.normal((2, 4, 8), dtype=ad.float64)
    others = [memory] if kind == "Decoder" else []

    def stepwise(model: Any, x: Any, *others: Any, **more: Any) -> Any:
        cache, found = model.empty_cache(x, *others), []
        for start, stop in ((0, 3), (3, 4), (4, 5), (5, 6)):
            mask = {"mask": more["mask"][start:stop, :stop]} if more else {}
            given = [None for _ in others]  # the cache has it
            out, cache = model(x[..., start:stop, :], *given, is_causal=True, cache=cache, **mask)
            found.append(out)
        return ad.concat(found, axis=-2)

    mask = RNG.random((6, 6)) < 0.7
    np.fill_diagonal(mask, True)
    for more in ({}, {"mask": ad.asarray(mask)}):
        wanted = model(x, *others, is_causal=True, **more).numpy()
        np.testing.assert_allclose(stepwise(model, x, *others, **more).numpy(), wanted, rtol=1e-9, atol=1e-11)
    one = stepwise(model, x[0], *[y[0] for y in others])
    np.testing.assert_allclose(one.numpy(), model(x, *others, is_causal=True)[0].numpy(), rtol=1e-9, atol=1e-11)
    found = ad.grad(lambda m: (stepwise(m, x, *others) ** 2).sum())(model)
    slopes = ad.grad(lambda m: (m(x, *others, is_causal=True) ** 2).sum())(model)
    for path, g in slopes.named_parameters().items():
        np.testing.assert_allclose(found.at(path).get().numpy(), g.numpy(), rtol=1e-7, atol=1e-9)
    for wrong in (3, (), (3, 4)):
        with pytest.raises(errors.ArgumentTypeError, match="the cache is what empty_cache"):
            model(x, *others, cache=wrong)


def test_positions_start_where_they_are_said_to() -> None:
    x = ad.random.normal((2, 6, 8), dtype=ad.float64)
    for layer in (ad.nn.PositionalEncoding(), ad.nn.PositionalEmbedding(6, 8, dtype=ad.float64)):
        whole = layer(x).numpy()
        for start, stop in ((0, 2), (2, 3), (3, 6)):
            found = layer(x[:, start:stop], start=start).numpy()
            np.testing.assert_allclose(found, whole[:, start:stop], rtol=1e-12)
        with pytest.raises(errors.ArgumentError, match="start is a non-negative integer, received -1"):
            layer(x, start=-1)
    with pytest.raises(errors.ShapeError, match="x has 7 steps, and there are vectors for 6"):
        layer(x, start=1)


def test_masks_meet_causality() -> None:
    layer = ad.nn.MultiHeadAttention(4, 2, dtype=ad.float64)
    x = ad.random.normal((2, 5, 4), dtype=ad.float64)
    mask = RNG.random((5, 5)) < 0.7
    np.fill_diagonal(mask, True)
    wanted = layer(x, mask=ad.asarray(mask & np.tri(5, dtype=bool))).numpy()
    np.testing.assert_allclose(layer(x, mask=ad.asarray(mask), is_causal=True).numpy(), wanted, rtol=1e-12)
    numbers = np.where(mask, 0.0, -np.inf)
    np.testing.assert_allclose(layer(x, mask=ad.asarray(numbers), is_causal=True).numpy(), wanted, rtol=1e-12)


def test_rotations_depend_on_distances() -> None:
    q, k = (ad.random.normal((6,), dtype=ad.float64) for _ in range(2))
    at = lambda x, place: ad.nn.rotary(x[None], ad.tensor([place]))[0]
    near = [(at(q, i) * at(k, i + 3)).sum().item() for i in (0, 4, 100)]
    np.testing.assert_allclose(near, near[0], rtol=1e-9)
    np.testing.assert_allclose((at(q, 7) ** 2).sum().item(), (q**2).sum().item())
    with pytest.raises(errors.ArgumentError, match="rotary: the width is even, received 5"):
        ad.nn.rotary(ad.ones((2, 5)))


def test_positions() -> None:
    table = ad.nn.sinusoids(50, 6, dtype=ad.float64).numpy()
    t, rates = np.arange(50)[:, None], 10000.0 ** (-np.arange(0, 6, 2) / 6)
    np.testing.assert_allclose(table[:, ::2], np.sin(t * rates), atol=1e-12)
    np.testing.assert_allclose(table[:, 1::2], np.cos(t * rates), atol=1e-12)
    assert ad.nn.sinusoids(50, 6).dtype == ad.float32
    x = ad.zeros((2, 50, 6), dtype=ad.float64)
    np.testing.assert_allclose(ad.nn.PositionalEncoding()(x)[1].numpy(), table)
    learnt = ad.nn.PositionalEmbedding(10, 6)
    assert learnt(ad.zeros((3, 4, 6)))[2].tolist() == learnt.weight[:4].tolist()
    with pytest.raises(errors.ShapeError, match="PositionalEmbedding: x has 50 steps, and there are vectors for 10"):
        learnt(x)


def test_wrong_attention() -> None:
    with pytest.raises(
        errors.ArgumentError, match="MultiHeadAttention: embed_dim is a multiple of num_heads, .*6, 4 and"
    ):
        ad.nn.MultiHeadAttention(6, 4)


def test_first_values() -> None:
    init, shape = ad.nn.init, (300, 20, 5)
    ad.random.seed(0)
    assert (init.zeros(3) == 0).all()
    assert (init.ones(3) == 1).all()
    assert (init.constant((2, 2), 7) == 7).all()
    spread = {
        "xavier_uniform": np.sqrt(2 / (100 + 1500)), "xavier_normal": np.sqrt(2 / (100 + 1500)),
        "kaiming_uniform": np.sqrt(2 / 100), "kaiming_normal": np.sqrt(2 / 100), "lecun_normal": np.sqrt(1 / 100),
        "normal": 1.0, "uniform": 1 / np.sqrt(12),
    }  # fmt: skip
    for name, wanted in spread.items():
        assert getattr(init, name)(shape).numpy().std() == pytest.approx(wanted, rel=0.02), name
    assert init.kaiming_normal(shape, "tanh", "out").numpy().std() == pytest.approx(5 / 3 / np.sqrt(1500), rel=0.02)
    cut = init.truncated_normal((10000,), 1.0, 2.0, low=-1.0, high=2.0).numpy()
    assert -1 <= cut.min() < -0.9
    assert 1.9 < cut.max() <= 2
    for sizes in ((4, 9), (9, 4), (5, 2, 2)):
        q = init.orthogonal(sizes, gain=2.0, dtype=ad.float64).numpy().reshape(sizes[0], -1)
        product = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
        np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)
    for call, message in (
        (lambda: init.kaiming_normal((3,)), "kaiming_normal: a weight of inputs and outputs has two axes"),
        (lambda: init.orthogonal(3), "orthogonal: a matrix or more axes"),
        (lambda: init.kaiming_uniform((3, 3), "sin"), "kaiming_uniform: nonlinearity"),
    ):
        with pytest.raises(errors.AdjointError, match=message):
            call()
