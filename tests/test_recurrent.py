"""Recurrent modules: PyTorch's with the same weights; sequences of several lengths are sequences one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors

KINDS = ["RNN", "LSTM", "GRU"]


def leaves(state: Any) -> list[Any]:
    return list(state) if isinstance(state, tuple) else [state]


def copied(layer: Any, other: Any, torch: Any, rng: Any) -> Any:
    """Our layer and PyTorch's with the same random weights."""
    for name, p in other.named_parameters():
        value = rng.normal(size=tuple(p.shape)) / 2
        p.data = torch.from_numpy(value)
        layer = layer.at(ours(name, layer)).set(ad.asarray(value))
    return layer


def ours(name: str, layer: Any) -> str:
    """Where PyTorch's `weight_ih_l1_reverse` is here."""
    if "_l" not in name:
        return name
    base, _, rest = name.partition("_l")
    number, _, reverse = rest.partition("_")
    directions = 2 if layer.bidirectional else 1
    return f"cells.{int(number) * directions + (reverse == 'reverse')}.{base}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", ["bias_ih", "bias_hh"])
def test_one_of_two_biases_may_be_left_out(kind: str, left: str) -> None:
    """All steps at once, and one after the other: as with a bias of zeros, in values and gradients."""
    ad.random.seed(0)
    model = getattr(ad.nn, kind)(3, 4, dtype=ad.float64)
    x = ad.random.normal((5, 2, 3), dtype=ad.float64)
    without = model.at(f"cells.0.{left}").set(None)
    zero = model.at(f"cells.0.{left}").apply(ad.zeros_like)
    loss = lambda model, **how: (model(x, **how)[0] ** 2).sum()
    for how in ({}, {"lengths": ad.tensor([5, 5])}):
        found, slopes = ad.value_and_grad(lambda model, how=how: loss(model, **how))(without)
        expected, others = ad.value_and_grad(lambda model, how=how: loss(model, **how))(zero)
        np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-12)
        for path, g in slopes.named_parameters().items():
            np.testing.assert_allclose(g.numpy(), others.at(path).get().numpy(), rtol=1e-10, atol=1e-14)


@pytest.mark.peers
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
def test_cells_are_pytorchs(kind: str, bias: bool) -> None:
    torch = peer("torch")
    rng = np.random.default_rng(1)
    other = getattr(torch.nn, f"{kind}Cell")(3, 4, bias).double()
    cell = copied(getattr(ad.nn, f"{kind}Cell")(3, 4, bias, dtype=ad.float64), other, torch, rng)
    x, state = rng.normal(size=(5, 3)), [rng.normal(size=(5, 4)) for _ in range(cell.states)]
    pack = lambda parts: tuple(parts) if len(parts) > 1 else parts[0]
    for given, theirs in (
        ((), ()),
        ((pack([ad.asarray(s) for s in state]),), (pack([torch.from_numpy(s) for s in state]),)),
    ):
        found, wanted = cell(ad.asarray(x), *given), other(torch.from_numpy(x), *theirs)
        for mine, its in zip(leaves(found), leaves(wanted), strict=True):
            np.testing.assert_allclose(mine.numpy(), its.detach().numpy(), rtol=1e-10)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"num_layers": 3, "bias": False},
    {"num_layers": 2, "bidirectional": True, "batch_first": True},
]


@pytest.mark.peers
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_pytorchs(kind: str, options: dict[str, Any]) -> None:
    torch = peer("torch")
    rng = np.random.default_rng(2)
    other = getattr(torch.nn, kind)(3, 4, **options).double()
    layer = copied(getattr(ad.nn, kind)(3, 4, **options, dtype=ad.float64), other, torch, rng)
    x = rng.normal(size=(5, 6, 3))
    wanted, last = other(torch.from_numpy(x))
    found, mine = layer(ad.asarray(x))
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-12)
    for a, b in zip(leaves(mine), leaves(last), strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)
    wanted.square().sum().backward()
    slopes = ad.grad(lambda layer: (layer(ad.asarray(x))[0] ** 2).sum())(layer)
    for name, p in other.named_parameters():
        g = slopes.at(ours(name, layer)).get()
        np.testing.assert_allclose(g.numpy(), p.grad.numpy(), rtol=1e-8, atol=1e-10)
    alone, _ = layer(ad.asarray(x[0] if options.get("batch_first") else x[:, 0]))
    np.testing.assert_allclose(alone.numpy(), found.numpy()[0] if options.get("batch_first") else found.numpy()[:, 0])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_lengths(kind: str, bidirectional: bool) -> None:
    rng = np.random.default_rng(3)
    layer = getattr(ad.nn, kind)(3, 4, num_layers=2, bidirectional=bidirectional, dtype=ad.float64)
    x, lengths = ad.asarray(rng.normal(size=(5, 3, 3))), [5, 0, 3]
    together, last = layer(x, lengths=ad.asarray(lengths))
    for i, n in enumerate(lengths):
        out, alone = layer(x[:n, i])
        np.testing.assert_allclose(together[:n, i].numpy(), out.numpy(), rtol=1e-12)
        assert not together[n:, i].numpy().any()
        for a, b in zip(leaves(last), leaves(alone), strict=True):
            np.testing.assert_allclose(a[:, i].numpy(), b.numpy(), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_in_two_parts(kind: str) -> None:
    layer = getattr(ad.nn, kind)(3, 4, num_layers=2, dtype=ad.float64)
    x = ad.random.normal((6, 2, 3), dtype=ad.float64)
    whole, end = layer(x)
    first, state = layer(x[:4])
    second, last = layer(x[4:], state)
    np.testing.assert_allclose(ad.concat([first, second]).numpy(), whole.numpy(), rtol=1e-12)
    for a, b in zip(leaves(last), leaves(end), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_transforms_of_recurrent_layers() -> None:
    layer = ad.nn.GRU(2, 3, dtype=ad.float64)
    x = ad.random.normal((4, 5, 2), dtype=ad.float64)
    each = ad.vmap(lambda x: layer(x)[0], in_axes=1, out_axes=1)(x)
    np.testing.assert_allclose(each.numpy(), layer(x)[0].numpy(), rtol=1e-12)
    small, start = layer.valid(), x[:, :2].inner()
    place = small.at("cells.0.weight_hh")
    ad.testing.check_grads(lambda w: place.set(w)(start)[0], (place.get(),), order=2)
    dropped = ad.nn.RNN(2, 30, num_layers=2, dropout=0.5)
    y = ad.random.normal((4, 2))
    assert not (dropped(y)[0] == dropped(y)[0]).all()
    assert (dropped.train(False)(y)[0] == dropped.train(False)(y)[0]).all()


def test_wrong_input() -> None:
    layer = ad.nn.LSTM(2, 3)
    x = ad.ones((4, 5, 2))
    with pytest.raises(errors.ShapeError, match=r"LSTM: x is \(steps, batch, input_size\), .* received \(2,\)"):
        layer(ad.ones(2))
    with pytest.raises(errors.ShapeError, match=r"LSTM: a state is two tensors of shape \(1, 5, 3\), received"):
        layer(x, (ad.ones((1, 5, 3)), ad.ones((1, 5, 4))))
    with pytest.raises(errors.ShapeError, match=r"LSTM: lengths are integers of shape \(5,\), received int64 of shape"):
        layer(x, lengths=[1, 2])
    with pytest.raises(errors.ArgumentError, match="LSTM: num_layers is a positive integer, received 0"):
        ad.nn.LSTM(2, 3, 0)
    with pytest.raises(errors.ArgumentError, match="RNNCell: nonlinearity"):
        ad.nn.RNN(2, 3, nonlinearity="sin")


def by_cells(layer: Any, x: Any) -> Any:
    state, outs = None, []
    for row in ad.unstack(x):
        state = layer.cells[0](row, state)
        outs.append(state[0])
    return ad.stack(outs)


@pytest.mark.parametrize("dtype", [ad.float32, ad.float64])
def test_all_steps_of_an_lstm_are_its_cell_step_by_step(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    from adjoint.backends.numpy import recurrence

    monkeypatch.setattr(recurrence, "_BLOCK", 50)  # some steps at once, and a rest
    ad.random.seed(3)
    layer = ad.nn.LSTM(3, 4, dtype=dtype)
    x, w = ad.random.normal((7, 1, 3), dtype=dtype), ad.random.normal((7, 1, 4), dtype=dtype)
    tight = {"rtol": 1e-4, "atol": 1e-6} if dtype == ad.float32 else {"rtol": 1e-10, "atol": 1e-14}
    for scale in (1.0, 1e4):  # gates that are open or shut: exp of them is infinite
        for f in (lambda l, x: l(x)[0], lambda l, x: l(x)[1][1]):
            again = by_cells if f(layer, x).shape == w.shape else lambda l, x: l(x, lengths=ad.tensor([7]))[1][1]
            for loss in (f, again):
                total = lambda l, x, loss=loss, scale=scale: (loss(l, x * scale) * w[:1]).sum()
                found = ad.value_and_grad(total, (0, 1))(layer, x)
                if loss is f:
                    first = found
            for a, b in zip(ad.tree.leaves(first), ad.tree.leaves(found), strict=True):
                if isinstance(a, ad.Tensor):
                    assert np.isfinite(a.numpy()).all()
                    np.testing.assert_allclose(a.numpy(), b.numpy(), **tight)


def test_an_lstm_of_other_cells_takes_their_steps() -> None:
    class Still(ad.nn.LSTMCell, init=False):
        def step(self, projected: Any, state: Any) -> Any:
            return state

    class Layer(ad.nn.LSTM, init=False):
        cell = Still

    assert Layer(3, 4)(ad.ones((5, 2, 3)))[0].sum().item() == 0


def test_an_lstm_of_complex_numbers() -> None:
    layer, x = ad.nn.LSTM(2, 2), ad.ones((3, 1, 2)) * 1j
    np.testing.assert_allclose(layer(x)[0].numpy(), by_cells(layer, x).numpy(), rtol=1e-5)
