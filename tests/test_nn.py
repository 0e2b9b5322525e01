"""Functions of neural networks: what comparisons with PyTorch do not say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors

nn = ad.nn
IMAGE = np.arange(9.0).reshape(1, 1, 3, 3)


def test_running_statistics_move_towards_the_batch() -> None:
    x = np.random.default_rng(0).standard_normal((6, 3, 4))
    mean, variance = nn.running_statistics(
        ad.tensor(x), ad.zeros(3, dtype=ad.float64), ad.ones(3, dtype=ad.float64), 0.3
    )
    np.testing.assert_allclose(mean.numpy(), 0.3 * x.mean((0, 2)), rtol=1e-12)
    np.testing.assert_allclose(variance.numpy(), 0.7 + 0.3 * x.var((0, 2), ddof=1), rtol=1e-12)
    assert not nn.running_statistics(ad.tensor(x).require_grad(), mean, variance)[0].is_tracked()


def test_dropout_keeps_the_mean_and_drops_the_same_in_the_gradient() -> None:
    ad.random.seed(3)
    x = ad.ones(20_000).require_grad()
    y = nn.dropout(x, 0.25)
    dropped = (y.numpy() == 0).mean()
    assert abs(dropped - 0.25) < 0.02
    np.testing.assert_allclose(y.numpy()[y.numpy() != 0], 1 / 0.75, rtol=1e-6)
    np.testing.assert_array_equal(y.sum().backward()[x].numpy(), y.numpy())
    assert nn.dropout(x, 1.0).sum().item() == 0
    np.testing.assert_array_equal(nn.dropout(x, 0.9, training=False).numpy(), x.numpy())
    ad.random.seed(3)
    np.testing.assert_array_equal(nn.dropout(x, 0.25).numpy(), y.numpy())


def test_weights_of_attention_are_dropped() -> None:
    ad.random.seed(1)
    q, v = ad.zeros((1, 400, 1)), ad.ones((1, 100, 1))
    out = nn.scaled_dot_product_attention(q, ad.zeros((1, 100, 1)), v, dropout_p=0.5)
    assert abs(out.mean().item() - 1) < 0.02
    assert out.numpy().std() > 0.05


def test_gumbel_softmax_draws_by_the_logits() -> None:
    ad.random.seed(2)
    logits = ad.log(ad.tensor([0.2, 0.8]))
    hard = nn.gumbel_softmax(ad.broadcast_to(logits, (5000, 2)), hard=True).numpy()
    assert set(np.unique(hard.round(6))) == {0.0, 1.0}
    assert abs(hard[:, 1].mean() - 0.8) < 0.03
    assert nn.gumbel_softmax(logits, tau=0.1).sum().item() == pytest.approx(1)


def test_rrelu_in_training_draws_slopes() -> None:
    ad.random.seed(0)
    slopes = -nn.rrelu(ad.full(2000, -1.0), 0.1, 0.3, training=True).numpy()
    assert slopes.min() >= 0.1
    assert slopes.max() <= 0.3
    assert abs(slopes.mean() - 0.2) < 0.01


def test_one_hot() -> None:
    assert nn.one_hot(ad.tensor([[2, 0]])).tolist() == [[[0, 0, 1], [1, 0, 0]]]
    assert nn.one_hot(ad.tensor([1]), 4).tolist() == [[0, 1, 0, 0]]
    assert nn.one_hot(ad.zeros((0,), dtype=ad.int64), 2).shape == (0, 2)


def test_the_first_of_equal_elements_gets_the_gradient_of_a_pool() -> None:
    x = ad.ones((1, 3, 3)).require_grad()
    pulled = nn.max_pool2d(x, 2, 1).sum().backward()[x]
    assert pulled.tolist() == [[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]]


def test_a_pool_shows_nan() -> None:
    x = ad.tensor([[1.0, np.nan, 3.0, 4.0]])
    assert np.isnan(nn.max_pool1d(x, 2).numpy()).tolist() == [[True, False]]


@pytest.mark.parametrize("examples", [1, 3, 70])
def test_convolutions_in_parts_are_the_same(examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from adjoint.backends import convolution

    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((examples, 4, 9, 7)), rng.standard_normal((6, 2, 3, 2))

    def values() -> list[Any]:
        leaves = [ad.tensor(v).require_grad() for v in (x, weight)]
        out = nn.conv2d(*leaves, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2)
        gradients = (out * out).sum().backward()
        return [out.numpy(), *[gradients[leaf].numpy() for leaf in leaves]]

    whole = values()
    monkeypatch.setattr(convolution, "PART", 1)
    for one, other in zip(values(), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_linear_layers_in_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from adjoint.backends.numpy import contraction

    rng = np.random.default_rng(0)
    x, weight, bias = (ad.tensor(rng.standard_normal(shape)) for shape in ((3, 7, 5), (4, 5), (4,)))
    for given in (x, x.swapaxes(0, 1), x[1]):
        expected = given.numpy() @ weight.numpy().T + bias.numpy()
        for block in (1, 10, 1 << 18):
            monkeypatch.setattr(contraction, "_BLOCK", block)
            np.testing.assert_allclose(nn.linear(given, weight, bias).numpy(), expected, rtol=1e-12, atol=1e-12)


def _heads_inside(x: Any) -> Any:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, 2)), 2, 1)


LAYOUTS: dict[str, Any] = {
    "heads inside": _heads_inside,
    "reversed": lambda x: x.copy()[:, :, ::-1][:, :, ::-1],
    "backwards": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
    "columns": lambda x: x.swapaxes(2, 3).copy().swapaxes(2, 3),
    "heads last": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, 3)), 3, 1),
    "every other": lambda x: np.repeat(x, 2, axis=3)[..., ::2],
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_attention_of_arrays_however_they_lie(name: str, causal: bool) -> None:
    """Values and gradients, also of fewer queries than keys and of more, and of what is broadcast."""
    rng = np.random.default_rng(0)
    laid = LAYOUTS[name]
    for queries, keys, sizes in ((4, 6, (3, 2)), (6, 4, (2, 3)), (1, 1, (1, 1))):
        q, k, v = (
            rng.standard_normal((2, 3, *shape)) for shape in ((queries, sizes[0]), (keys, sizes[0]), (keys, sizes[1]))
        )
        v = np.broadcast_to(v[:1, :1], v.shape) if queries > keys else v
        given = rng.standard_normal((2, 3, queries, sizes[1]))
        found = []
        for how in (np.array, laid):
            leaves = [ad.asarray(how(x)).require_grad() for x in (q, k, v)]
            out = nn.scaled_dot_product_attention(*leaves, is_causal=causal)
            gradients = out.backward(ad.asarray(how(given)))
            found.append([out.numpy(), *[gradients[leaf].numpy() for leaf in leaves]])
        scores = q @ k.swapaxes(2, 3) / sizes[0] ** 0.5
        powers = np.exp(np.where(np.tri(queries, keys) == 1, scores, -np.inf) if causal else scores)
        expected = powers @ v / powers.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(found[0][0], expected, rtol=1e-12, atol=1e-12)
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_attention_in_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from adjoint.backends.numpy import attention

    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape) for shape in ((5, 40, 3), (5, 30, 3), (5, 30, 2))]
    bias = rng.standard_normal((5, 40, 30))

    def values(*more: Any) -> list[Any]:
        leaves = [ad.tensor(v).require_grad() for v in given]
        out = nn.scaled_dot_product_attention(*leaves, *more, is_causal=not more)
        gradients = (out * out).sum().backward()
        return [out.numpy(), *[gradients[leaf].numpy() for leaf in leaves]]

    for more in ((), (ad.tensor(bias),), (ad.tensor(bias[:1] > 0),)):
        whole = values(*more)
        with monkeypatch.context() as patch:
            patch.setattr(attention, "_BLOCK", 500)
            for one, other in zip(values(*more), whole, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("large", [1.0, 30.0])
def test_attention_with_large_scores_does_not_overflow(large: float) -> None:
    q = ad.full((1, 2, 4), large * 20, dtype=ad.float32)
    out = nn.scaled_dot_product_attention(q, q, ad.ones((1, 2, 1)))
    assert out.tolist() == [[[1.0], [1.0]]]


def test_float16_is_summed_in_float32() -> None:
    x = ad.full((1, 1, 300), 300.0, dtype=ad.float16)
    assert nn.avg_pool1d(x, 300).tolist() == [[[300.0]]]
    assert nn.conv1d(x, ad.full((1, 1, 300), 0.5, dtype=ad.float16)).tolist() == [[[float(np.float16(45000))]]]
    assert nn.layer_norm(x, 300, ad.ones(300, dtype=ad.float16)).dtype is ad.float16
    for size in (300.0, 1e-4):
        x, y = ad.tensor(np.float16([size, size])), ad.tensor(np.float16([size, 0]))
        slope = ad.grad(lambda x, y=y: nn.cosine_similarity(x, y, axis=0))(x)
        assert nn.cosine_similarity(x, x, axis=0).item() == 1.0
        assert slope.dtype is ad.float16
        np.testing.assert_allclose(slope.numpy() * float(x[0]), [8**-0.5, -(8**-0.5)], rtol=2e-3)


def test_nothing_there() -> None:
    assert nn.conv2d(ad.ones((0, 1, 3, 3)), ad.ones((2, 1, 2, 2))).shape == (0, 2, 2, 2)
    assert nn.max_pool2d(ad.ones((0, 1, 4, 4)), 2).shape == (0, 1, 2, 2)
    assert nn.scaled_dot_product_attention(*[ad.ones((0, 3, 2))] * 3).shape == (0, 3, 2)
    assert nn.scaled_dot_product_attention(ad.ones((2, 2)), *[ad.ones((0, 2))] * 2).tolist() == [[0.0, 0.0]] * 2
    assert nn.layer_norm(ad.ones((0, 3)), 3, ad.ones(3)).shape == (0, 3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("corners", [True, False])
def test_samples_nowhere_and_infinitely_far_are_pytorchs(value: float, border: str, mode: str, corners: bool) -> None:
    torch = peer("torch")
    x = np.arange(1.0, 13.0).reshape(1, 1, 3, 4)
    grid = np.array([[[[value, value], [value, 0.0], [0.0, value]]]])
    expected = torch.nn.functional.grid_sample(torch.tensor(x), torch.tensor(grid), mode, border, corners)
    with np.errstate(invalid="ignore"):  # infinity less itself
        found = nn.grid_sample(ad.asarray(x), ad.asarray(grid), mode, border, corners)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_indices_of_a_pool_are_in_the_image_where_all_is_minus_infinity() -> None:
    x = ad.tensor([[-np.inf, -np.inf, -np.inf, 1.0]])
    assert nn.max_pool1d(x, 3, 1, padding=1, return_indices=True)[1].tolist() == [[0, 0, 3, 3]]
    image = ad.full((1, 3, 3), -np.inf)
    found = nn.max_pool2d(image, 3, 2, padding=1, ceil_mode=True, return_indices=True)[1]
    assert found.tolist() == [[[0, 1], [3, 4]]]


def test_bags_whose_offsets_are_known_late() -> None:
    table, indices = ad.tensor(np.arange(8.0).reshape(4, 2)), ad.tensor([0, 3, 1, 1, 2])
    for offsets, last in (([0, 2, 2], False), ([0, 2, 4], True), ([0], True)):
        f = lambda x, o, last=last: nn.embedding_bag(indices, x, o, include_last_offset=last)
        for g in (f, ad.grad(lambda x, o, f=f: (f(x, o) ** 2).sum())):
            given = table, ad.tensor(offsets)
            np.testing.assert_array_equal(ad.compile(g)(*given).numpy(), g(*given).numpy())
    with pytest.raises(errors.OutOfRangeError, match="offsets rise from 0 to at most 5"):
        ad.compile(f)(table, ad.tensor([0, 6]))


@pytest.mark.parametrize("targets", [[[1, 2, 2], [3, 0, 0]], [1, 2, 2, 3]])
def test_ctc_loss_of_targets_that_are_known_late(targets: Any) -> None:
    """They were refused where a function is compiled, and in vmap."""
    x = nn.log_softmax(ad.tensor(np.random.default_rng(0).normal(size=(6, 2, 4))), -1)
    given = [ad.tensor(v) for v in (targets, [6, 5], [3, 1])]
    for how in ({}, {"reduction": "none"}, {"reduction": "sum", "zero_infinity": True}):
        f = lambda x, *given, how=how: nn.ctc_loss(x, *given, **how).sum()
        for g in (f, ad.grad(f)):
            expected = g(x, *given)
            np.testing.assert_allclose(ad.compile(g)(x, *given).numpy(), expected.numpy(), rtol=1e-14)
            for k in range(1, 4):  # one of them known
                some = lambda x, v, g=g, k=k: g(x, *given[: k - 1], v, *given[k:])
                np.testing.assert_allclose(ad.compile(some)(x, given[k - 1]).numpy(), expected.numpy(), rtol=1e-14)
            batch = [ad.stack([v, v]) for v in given]
            for each in (ad.vmap(g, in_axes=(None, 0, 0, 0)), ad.compile(ad.vmap(g, in_axes=(None, 0, 0, 0)))):
                np.testing.assert_allclose(each(x, *batch)[1].numpy(), expected.numpy(), rtol=1e-14)
    run = ad.compile(nn.ctc_loss)
    wrong = {
        0: [errors.OutOfRangeError, np.array(targets) + 2],
        1: [errors.OutOfRangeError, [7, 5]],
        2: [errors.ShapeError, [4, 3]],
    }
    for k, (error, values) in wrong.items():
        with pytest.raises(error, match="ctc_loss"):
            run(x, *given[:k], ad.tensor(values), *given[k + 1 :])
    with pytest.raises(errors.ShapeError, match="input_lengths are 2 integers"):
        run(x, given[0], ad.tensor([6, -5]), given[2])


def test_ctc_loss_without_time() -> None:
    x = nn.log_softmax(ad.asarray(np.random.default_rng(0).standard_normal((4, 3, 3)))).require_grad()
    losses = nn.ctc_loss(x, [[1], [1], [1]], [0, 0, 4], [1, 0, 1], reduction="none")
    assert losses.tolist()[:2] == [np.inf, 0.0]
    finite = nn.ctc_loss(x, [[1], [1], [1]], [0, 0, 4], [1, 0, 1], reduction="sum", zero_infinity=True)
    assert finite.item() == losses.tolist()[2]
    assert not finite.backward()[x].numpy()[:, :2].any()
    nothing = nn.ctc_loss(x[:, :0], ad.zeros((0, 1), dtype=ad.int64), [], [], reduction="sum")
    assert nothing.item() == 0.0


def test_a_target_of_probability_0_loses_nothing_as_a_logarithm_either() -> None:
    x = ad.tensor([-1.0, -2.0]).require_grad()
    target = ad.tensor([-np.inf, 0.0]).require_grad()
    losses = nn.kl_div(x, target, reduction="none", log_target=True)
    assert losses.tolist() == [0.0, 2.0]
    gradients = losses.sum().backward()
    assert gradients[x].tolist() == [0.0, -1.0]
    assert np.isfinite(gradients[target].numpy()).all()


def test_lists_and_arrays_are_operands() -> None:
    x = np.arange(6.0).reshape(1, 2, 3)
    weight = np.ones((1, 2, 2))
    for bias in ([1.0], np.ones(1), ad.ones(1)):
        assert nn.conv1d(x, weight, bias).tolist() == [[[9.0, 13.0]]]
        assert nn.conv_transpose1d(x, weight.reshape(2, 1, 2), bias).tolist() == [[[4.0, 9.0, 13.0, 8.0]]]
        assert nn.linear(x[0], [[1.0, 1.0, 1.0]], bias).tolist() == [[4.0], [13.0]]
        assert nn.bilinear(x[0], x[0], np.ones((1, 3, 3)), bias).tolist() == [[10.0], [145.0]]
    assert nn.interpolate(x, scale_factor=np.float32(2)).shape == (1, 2, 6)


@pytest.mark.parametrize(("name", "axes"), [("dropout1d", 1), ("dropout2d", 2), ("dropout3d", 3)])
def test_whole_channels_are_dropped(name: str, axes: int) -> None:
    ad.random.seed(4)
    for lead in ((40, 50), (2000,)):
        y = getattr(nn, name)(ad.ones((*lead, *(2, 1, 2)[:axes])), 0.25).numpy()
        each = y.reshape(*lead, -1)
        assert (each == each[..., :1]).all()
        np.testing.assert_allclose(np.unique(each), [0, 1 / 0.75], rtol=1e-6)
        assert abs((each == 0).mean() - 0.25) < 0.03
    assert getattr(nn, name)(ad.ones((2, 1, 2, 2)[: axes + 1]), 1.0).sum().item() == 0
    x = ad.ones((2, 1, 2, 2)[: axes + 1])
    np.testing.assert_array_equal(getattr(nn, name)(x, 0.9, training=False).numpy(), x.numpy())


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout"])
def test_alpha_dropout_keeps_mean_and_variance(name: str) -> None:
    ad.random.seed(4)
    x = ad.random.normal((400, 500, 2))
    np.testing.assert_array_equal(getattr(nn, name)(x, 0.3).numpy(), x.numpy())
    y = getattr(nn, name)(x, 0.3, True).numpy()
    assert abs(y.mean()) < 0.01
    assert abs(y.std() - 1) < 0.01
    values, counts = np.unique(y, return_counts=True)
    assert abs(counts.max() / y.size - 0.3) < 0.01
    lowest = values[counts.argmax()]
    slope, shift = ((1 - 0.3) * (1 + 0.3 * 1.7580993408473766**2)) ** -0.5, 1.7580993408473766
    assert lowest == pytest.approx(slope * (-shift + 0.3 * shift), rel=1e-5)
    together = (y == lowest).all(-1) == (y == lowest).any(-1)
    assert together.all() == name.startswith("feature")
    assert not getattr(nn, name)(x, 1.0, True).numpy().any()


def test_a_bag_without_rows_is_zeros() -> None:
    table = ad.asarray([[1.0, -2.0], [-3.0, 4.0]]).require_grad()
    for mode, first in (("sum", [-2.0, 2.0]), ("mean", [-1.0, 1.0]), ("max", [1.0, 4.0])):
        bags = nn.embedding_bag([0, 1, 1], table, [0, 2, 2], mode=mode, padding_idx=None)
        assert bags.tolist() == [first, [0.0, 0.0], [-3.0, 4.0]]
        assert np.isfinite(bags.sum().backward()[table].numpy()).all()
        assert nn.embedding_bag(ad.zeros((0, 3), dtype=ad.int64), table, mode=mode).shape == (0, 2)


def test_a_table_is_not_written_to() -> None:
    table = ad.asarray([[3.0, 4.0], [0.3, 0.4]]).require_grad()
    rows = nn.embedding([0, 1], table, max_norm=1.0)
    np.testing.assert_allclose(rows.numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    assert table.tolist()[0] == [3.0, 4.0]
    assert rows.sum().backward()[table].tolist() == [[1.0, 1.0], [1.0, 1.0]]


t = ad.tensor
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], list[str]]] = {
    "same, stride": (lambda: nn.conv2d(t(IMAGE), t(IMAGE), padding="same", stride=2), errors.ArgumentError,
        ["stride 1"]),
    "transposed channels": (lambda: nn.conv_transpose2d(t(IMAGE), t(np.ones((2, 1, 2, 2)))), errors.ShapeError,
        ["conv_transpose2d", "(2, 1, 2, 2)"]),
    "output padding": (lambda: nn.conv_transpose1d(t(IMAGE[0]), t(IMAGE[0, :, :1]), output_padding=1),
        errors.ArgumentError, ["output_padding", "stride"]),
    "nothing left": (lambda: nn.conv_transpose2d(t(IMAGE), t(IMAGE[..., :1, :1]), padding=2), errors.ShapeError,
        ["leave nothing"]),
    "pool axes": (lambda: nn.avg_pool1d(t(np.ones(3)), 2), errors.ShapeError, ["avg_pool1d", "(3,)"]),
    "adaptive size": (lambda: nn.adaptive_avg_pool2d(t(IMAGE), 0), errors.ArgumentError, ["output_size", "0"]),
    "norm type": (lambda: nn.lp_pool1d(t(IMAGE[0]), -1, 2), errors.ArgumentError, ["norm_type", "-1"]),
    "divisor": (lambda: nn.avg_pool2d(t(IMAGE), 2, divisor_override=0), errors.ArgumentError, ["divisor_override"]),
    "attention shapes": (lambda: nn.scaled_dot_product_attention(t(IMAGE), t(IMAGE), t(IMAGE[:, :, 1:])),
        errors.ShapeError, ["(..., L, E)", "(1, 1, 2, 3)"]),
    "two masks": (lambda: nn.scaled_dot_product_attention(*[t(IMAGE)] * 3, np.ones((3, 3)) > 0, is_causal=True),
        errors.ArgumentError, ["attn_mask", "is_causal"]),
    "mask shape": (lambda: nn.scaled_dot_product_attention(*[t(IMAGE)] * 3, np.ones(4) > 0), errors.ShapeError,
        ["mask", "(4,)"]),
    "mask of integers": (lambda: nn.scaled_dot_product_attention(*[t(IMAGE)] * 3, np.ones(3, int)), errors.DtypeError,
        ["mask", "int64"]),
    "probability": (lambda: nn.dropout(t([1.0]), 1.5), errors.ArgumentError, ["dropout", "1.5"]),
    "embedding rows": (lambda: nn.embedding(t([3]), t(IMAGE[0, 0])), errors.OutOfRangeError, ["embedding", "3"]),
    "embedding dtype": (lambda: nn.embedding(t([1.0]), t(IMAGE[0, 0])), errors.DtypeError, ["embedding", "float32"]),
    "one_hot": (lambda: nn.one_hot(t([-1])), errors.OutOfRangeError, ["one_hot", "-1"]),
    "groups": (lambda: nn.group_norm(t(np.ones((1, 3, 2))), 2), errors.ShapeError, ["2 groups", "3 channels"]),
    "statistics": (lambda: nn.batch_norm(t(np.ones((2, 3)))), errors.ArgumentError, ["running_mean", "training"]),
    "no variance": (lambda: nn.batch_norm(t(np.ones((1, 3))), training=True), errors.ArgumentError, ["variance"]),
    "channels": (lambda: nn.batch_norm(t(np.ones((2, 3))), weight=t([1.0]), training=True), errors.ShapeError,
        ["weight", "3 channels"]),
    "odd gate": (lambda: nn.glu(t([1.0])), errors.ShapeError, ["glu", "odd"]),
    "tau": (lambda: nn.gumbel_softmax(t([1.0]), tau=0), errors.ArgumentError, ["tau"]),
    "gelu": (lambda: nn.gelu(t([1.0]), approximate="erf"), errors.ArgumentError, ["approximate", "'erf'"]),
    "bounds": (lambda: nn.hardtanh(t([1.0]), 1, -1), errors.ArgumentError, ["min_val"]),
    "slopes": (lambda: nn.prelu(t(IMAGE), t([1.0, 2.0])), errors.ShapeError, ["prelu", "(2,)"]),
    "smoothing": (lambda: nn.cross_entropy(t([[1.0]]), t([0]), label_smoothing=2), errors.ArgumentError, ["smoothing"]),
    "class weights": (lambda: nn.cross_entropy(t([[1.0]]), t([0]), weight=[1.0, 2.0]), errors.ShapeError,
        ["1 classes"]),
    "nll class": (lambda: nn.nll_loss(t([[1.0]]), t([4])), errors.OutOfRangeError, ["nll_loss", "4"]),
    "margin p": (lambda: nn.multi_margin_loss(t([[1.0]]), t([0]), p=3), errors.ArgumentError, ["p is 1 or 2"]),
    "ctc lengths": (lambda: nn.ctc_loss(t(IMAGE[0, 0]), t([[1]]), [4], [1]), errors.OutOfRangeError, ["input_lengths"]),
    "ctc targets": (lambda: nn.ctc_loss(t(IMAGE[0, 0]), t([[1]]), [3], [2]), errors.ShapeError, ["targets", "(1, 1)"]),
    "ctc class": (lambda: nn.ctc_loss(t(IMAGE[0, 0]), t([[5]]), [3], [1]), errors.OutOfRangeError, ["5", "3 classes"]),
    "delta": (lambda: nn.huber_loss(t([1.0]), t([1.0]), delta=0), errors.ArgumentError, ["delta"]),
    "eps": (lambda: nn.gaussian_nll_loss(t([1.0]), t([1.0]), 1.0, eps=0), errors.ArgumentError, ["eps"]),
    "pad mode": (lambda: nn.pad(t([1.0]), (1, 1), "mirror"), errors.ArgumentError, ["'reflect'", "'mirror'"]),
    "pad widths": (lambda: nn.pad(t([1.0]), (1,)), errors.ArgumentError, ["pairs"]),
    "pad reflect": (lambda: nn.pad(t([1.0, 2.0]), (2, 0), "reflect"), errors.ShapeError, ["'reflect'", "2"]),
    "pad off": (lambda: nn.pad(t([1.0]), (-1, -1)), errors.ShapeError, ["axis 0"]),
    "interpolate mode": (lambda: nn.interpolate(t(IMAGE), 4, mode="linear"), errors.ArgumentError, ["bilinear"]),
    "interpolate both": (lambda: nn.interpolate(t(IMAGE), 4, 2), errors.ArgumentError, ["size", "scale_factor"]),
    "antialias": (lambda: nn.interpolate(t(IMAGE), 2, antialias=True), errors.ArgumentError,
        ["antialias", "'nearest'"]),
    "corners": (lambda: nn.interpolate(t(IMAGE), 4, align_corners=True), errors.ArgumentError, ["align_corners"]),
    "grid": (lambda: nn.grid_sample(t(IMAGE), t(IMAGE)), errors.ShapeError, ["grid", "(1, 1, 3, 3)"]),
    "fold": (lambda: nn.fold(t(np.ones((4, 3))), 3, 2), errors.ShapeError, ["2 x 2 windows", "(4, 3)"]),
    "channels to drop": (lambda: nn.dropout2d(t([1.0])), errors.ShapeError, ["dropout2d", "(1,)"]),
    "features to drop": (lambda: nn.feature_alpha_dropout(t([1.0])), errors.ShapeError, ["(1,)"]),
    "alpha": (lambda: nn.alpha_dropout(t([1.0]), -1), errors.ArgumentError, ["alpha_dropout", "-1"]),
    "channel groups": (lambda: nn.channel_shuffle(t(IMAGE), 2), errors.ShapeError, ["channel_shuffle", "2 divides"]),
    "pairs": (lambda: nn.pdist(t([1.0])), errors.ShapeError, ["pdist", "(1,)"]),
    "pairs' norm": (lambda: nn.pdist(t([[1.0]]), -1), errors.ArgumentError, ["pdist", "-1"]),
    "bag mode": (lambda: nn.embedding_bag([[0]], t(IMAGE[0, 0]), mode="prod"), errors.ArgumentError, ["'prod'"]),
    "bag offsets": (lambda: nn.embedding_bag([0, 1], t(IMAGE[0, 0]), [1]), errors.OutOfRangeError, ["from 0", "2"]),
    "no offsets": (lambda: nn.embedding_bag([0, 1], t(IMAGE[0, 0])), errors.ShapeError, ["offsets"]),
    "two offsets": (lambda: nn.embedding_bag([[0]], t(IMAGE[0, 0]), [0]), errors.ArgumentError, ["offsets"]),
    "bag factors": (lambda: nn.embedding_bag([[0]], t(IMAGE[0, 0]), per_sample_weights=[[1.0]]), errors.ArgumentError,
        ["'sum'"]),
    "unpooled places": (lambda: nn.max_unpool1d(t([[1.0]]), [[2]], 2), errors.OutOfRangeError, ["2", "output_size"]),
    "unpooled shape": (lambda: nn.max_unpool1d(t([[1.0]]), [2], 2), errors.ShapeError, ["max_unpool1d", "(1,)"]),
    "unpooled dtype": (lambda: nn.max_unpool1d(t([[1.0]]), [[0.0]], 2), errors.DtypeError, ["max_unpool1d", "float"]),
    "losses' weight": (lambda: nn.mse_loss(t([1.0]), t([1.0]), weight=[1.0, 2.0]), errors.ShapeError, ["mse_loss"]),
    "instances' statistics": (lambda: nn.instance_norm(t(IMAGE), use_input_stats=False), errors.ArgumentError,
        ["instance_norm", "running_mean"]),
    "bias": (lambda: nn.conv2d(t(IMAGE), t(IMAGE), [1.0, 2.0]), errors.ShapeError, ["conv2d", "bias", "(2,)"]),
    "linear": (lambda: nn.linear(None, t(IMAGE[0, 0])), errors.DtypeError, ["linear", "NoneType"]),
    "axes to interpolate": (lambda: nn.interpolate(t(IMAGE[0, 0]), 4), errors.ShapeError, ["interpolate", "(3, 3)"]),
    "factor": (lambda: nn.interpolate(t(IMAGE), scale_factor="2"), errors.ArgumentTypeError, ["scale_factor", "'2'"]),
    "no grid": (lambda: nn.affine_grid(t(np.ones((1, 2, 3))), (1, 1, 0, 2)), errors.ShapeError, ["affine_grid", "0"]),
    "targets of a list": (lambda: nn.cross_entropy([[1.0, 2.0]], [1, 0]), errors.ShapeError, ["(1, 2)", "(2,)"]),
    "complex logits": (lambda: nn.binary_cross_entropy_with_logits(t([1.0]), t([1j])), errors.DtypeError, ["complex"]),
    "ctc numbers": (lambda: nn.ctc_loss(t(IMAGE[0, 0]), [[0.5]], [3], [1]), errors.DtypeError, ["targets", "0.5"]),
    "slopes' bounds": (lambda: nn.rrelu(t([1.0]), 0.5, 0.2), errors.ArgumentError, ["lower", "0.5"]),
    "variance": (lambda: nn.gaussian_nll_loss(t([1.0]), t([1.0]), t([-1.0])), errors.ArgumentError, ["variance"]),
    "more variances": (lambda: nn.gaussian_nll_loss(t([1.0]), t([1.0]), t([1.0, 2.0])), errors.ShapeError,
        ["variance", "(2,)"]),
    "shuffle": (lambda: nn.pixel_shuffle(t(IMAGE), 2), errors.ShapeError, ["channels x 4"]),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    call, error, words = REFUSED[what]
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    for word in words:
        assert word in str(caught.value)


def test_cross_entropy_of_no_rows_is_nan_as_other_means_of_nothing_are() -> None:
    x = ad.tensor(np.zeros((0, 3))).require_grad()
    loss = ad.nn.cross_entropy(x, ad.tensor(np.zeros(0, np.int64)))
    assert np.isnan(loss.item())
    assert loss.backward()[x].shape == (0, 3)


@pytest.mark.parametrize("how", [lambda f: f, ad.compile], ids=["eager", "compiled"])
def test_derivatives_of_a_transposed_convolution_of_nothing(how: Any) -> None:
    """The image that comes out is smaller than the kernel."""
    x, weight = ad.zeros((1, 3, 0)), ad.ones((3, 1, 2))
    f = how(lambda x, weight: (nn.conv_transpose1d(x, weight) * weight.sum()).sum())
    assert f(x, weight).item() == 0.0
    assert ad.grad(f)(x, weight).shape == x.shape
    np.testing.assert_array_equal(ad.grad(f, 1)(x, weight).numpy(), np.zeros((3, 1, 2)))
    assert ad.hessian(f, 1)(x, weight).shape == (3, 1, 2, 3, 1, 2)
    images = ad.zeros((1, 2, 3, 0))
    kernel = ad.ones((2, 1, 2, 2))
    slope = ad.grad(how(lambda w: nn.conv_transpose2d(images, w).sum()))(kernel)
    np.testing.assert_array_equal(slope.numpy(), np.zeros((2, 1, 2, 2)))


@pytest.mark.parametrize("ignore", [-100, -4, -3, -1, 0, 2, 3, 7])
def test_an_ignored_label_may_be_any_number(ignore: int) -> None:
    x = np.random.default_rng(0).standard_normal((4, 3))
    labels = np.array([1, ignore, 1, ignore])
    loss, g = ad.value_and_grad(lambda x: nn.cross_entropy(x, labels, ignore_index=ignore))(x)
    wanted, rows = ad.value_and_grad(lambda x: nn.cross_entropy(x, labels[::2]))(x[::2])
    np.testing.assert_allclose(float(loss), float(wanted), rtol=1e-15)
    np.testing.assert_allclose(g[::2], rows, rtol=1e-15)
    assert not g[1::2].any()


@pytest.mark.peers
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_classes_may_be_on_any_axis(name: str) -> None:
    """As PyTorch's of the moved axis, values and gradients, with all other arguments."""
    torch = peer("torch")
    rng = np.random.default_rng(8)
    x, labels = rng.normal(size=(3, 5, 4)), rng.integers(0, 4, (3, 5))
    labels[0, 0] = -100
    target: Any = rng.dirichlet(np.ones(4), (3, 5))
    more = [{}, {"weight": np.arange(1.0, 5.0)}, {"reduction": "sum"}]
    more += [{"label_smoothing": 0.2, "weight": np.arange(1.0, 5.0)}] if name == "cross_entropy" else []
    for options in more:
        for t in (labels, target) if name == "cross_entropy" else (labels,):
            theirs = torch.tensor(x, requires_grad=True)
            known = {key: torch.tensor(v) if isinstance(v, np.ndarray) else v for key, v in options.items()}
            moved = torch.tensor(t if t is labels else np.moveaxis(t, -1, 1))
            wanted = getattr(torch.nn.functional, name)(theirs.movedim(-1, 1), moved, **known)
            wanted.backward()
            f = lambda x, t=t, options=options: getattr(ad.nn, name)(x, t, axis=-1, **options)
            np.testing.assert_allclose(f(x).item(), wanted.item(), rtol=1e-12)
            np.testing.assert_allclose(ad.grad(f)(x), theirs.grad.numpy(), rtol=1e-10, atol=1e-14)
    assert getattr(ad.nn, name)(x, labels, axis=-1, reduction="none").shape == (3, 5)
    f = lambda x: getattr(ad.nn, name)(x, labels[0] * 0, axis=0, reduction="none")
    assert f(np.moveaxis(x[0], -1, 0)).shape == (5,)
    with pytest.raises(errors.AxisError):
        getattr(ad.nn, name)(x, labels, axis=3)
