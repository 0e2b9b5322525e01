"""Changes of low rank: the model's values at first, gradients of the factors alone, and a plain model again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors
from adjoint.module.fields import leaves_of


def network(dtype: Any = ad.float64) -> Any:
    made = {"dtype": dtype}
    return ad.nn.Sequential(
        ad.nn.Conv1d(2, 4, 3, **made), ad.nn.BatchNorm(4, **made), ad.nn.Flatten(), ad.tanh, ad.nn.Linear(12, 3, **made)
    )


def moved(model: Any) -> Any:
    """The adapted model with other factors than it starts with."""
    ad.random.seed(5)
    factors = model.factors.map(lambda x: ad.random.normal(x.shape, dtype=x.dtype))
    return model.at("factors").set(factors)


X = np.random.default_rng(0).normal(size=(6, 2, 5))


def loss(model: Any) -> Any:
    return (model(ad.asarray(X)) ** 2).mean()


def test_it_starts_as_the_model() -> None:
    base = network()
    model = ad.nn.LowRank(base, 2)
    np.testing.assert_array_equal(model(ad.asarray(X)).numpy(), base(ad.asarray(X)).numpy())
    paths = [f"factors.layers.{n}.weight.{name}" for n in (0, 4) for name in ("up", "down")]
    assert [leaf.path for leaf in leaves_of(model) if leaf.kind == "parameter"] == paths
    assert [leaf.path for leaf in leaves_of(model) if leaf.kind == "buffer"] == [
        "base.layers.1.running_mean", "base.layers.1.running_var",
    ]  # fmt: skip
    assert {path: x.shape for path, x in model.factors.named_parameters().items()} == {
        "layers.0.weight.up": (4, 2), "layers.0.weight.down": (2, 6),
        "layers.4.weight.up": (3, 2), "layers.4.weight.down": (2, 12),
    }  # fmt: skip
    wide = ad.nn.LowRank(ad.nn.Linear(400, 300), 100).factors.weight.down.numpy()
    assert wide.std() == pytest.approx(1 / 20, rel=0.05)


def test_values_and_gradients_are_those_of_the_sum() -> None:
    base = network()
    model = moved(ad.nn.LowRank(base, 2, alpha=3.0))
    values = [x.numpy() for x in model.factors.named_parameters().values()]

    def by_hand(up0: Any, down0: Any, up4: Any, down4: Any) -> Any:
        first = base.layers[0].weight + 1.5 * (up0 @ down0).reshape((4, 2, 3))
        whole = base.at("layers.0.weight").set(first)
        return loss(whole.at("layers.4.weight").set(base.layers[4].weight + 1.5 * up4 @ down4))

    np.testing.assert_allclose(loss(model).item(), by_hand(*map(ad.asarray, values)).item(), rtol=1e-12)
    wanted = ad.grad(by_hand, (0, 1, 2, 3))(*values)
    found = ad.grad(loss)(model)
    assert list(found.named_parameters()) == [f"factors.{path}" for path in model.factors.named_parameters()]
    for mine, theirs in zip(found.named_parameters().values(), wanted, strict=True):
        np.testing.assert_allclose(mine.numpy(), np.asarray(theirs), rtol=1e-10)
    leaves = model.require_grad()
    grads = loss(leaves).backward()
    assert len(grads) == 4
    np.testing.assert_allclose(grads[leaves.factors.layers[0].weight.up].numpy(), np.asarray(wanted[0]), rtol=1e-10)
    place = model.valid().at("factors.layers.4.weight.up")
    x = ad.asarray(X, device="numpy")
    ad.testing.check_grads(lambda up: place.set(up)(x), (place.get(),), order=2)


def test_merged() -> None:
    base = network().freeze("layers.1")
    model = moved(ad.nn.LowRank(base, 2))
    plain = model.merged()
    assert isinstance(plain, ad.nn.Sequential)
    assert {leaf.path: leaf.kind for leaf in leaves_of(plain)} == {leaf.path: leaf.kind for leaf in leaves_of(base)}
    np.testing.assert_array_equal(plain(ad.asarray(X)).numpy(), model(ad.asarray(X)).numpy())
    assert np.linalg.matrix_rank((plain.layers[4].weight - base.layers[4].weight).numpy()) == 2
    np.testing.assert_array_equal(plain.layers[4].bias.numpy(), base.layers[4].bias.numpy())


def test_training_goes_into_the_factors_alone() -> None:
    """A task that is the first one, shifted by a change of rank one."""
    ad.random.seed(1)
    base = ad.nn.Linear(8, 6, dtype=ad.float64)
    x = ad.random.normal((40, 8), dtype=ad.float64)
    shift = ad.random.normal((6, 1), dtype=ad.float64) @ ad.random.normal((1, 8), dtype=ad.float64)
    target = base(x) + x @ shift.mT

    def loss(model: Any) -> Any:
        return ((model(x) - target) ** 2).mean()

    model = ad.nn.LowRank(base, 1)
    optimizer = ad.optim.Adam(lr=0.05)
    state = optimizer.init(model)
    before = loss(model).item()
    for _ in range(150):
        model, state = optimizer.step(model, ad.grad(loss)(model), state)
    assert loss(model).item() < 1e-3 * before
    np.testing.assert_array_equal(model.base.weight.numpy(), base.weight.numpy())
    assert loss(model.merged()).item() == loss(model).item()


@pytest.mark.peers
def test_values_are_pytorchs() -> None:
    """Adapted in PyTorch's own way, as a parametrization."""
    torch = peer("torch")
    base = ad.nn.Linear(5, 4, dtype=ad.float64)
    model = moved(ad.nn.LowRank(base, 2, alpha=1.0))
    values = {path: torch.from_numpy(x.copy()).requires_grad_() for path, x in model.factors.record().items()}

    class Change(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, weight: Any) -> Any:
            return weight + 0.5 * values["weight.up"] @ values["weight.down"]

    other = torch.nn.Linear(5, 4).double()
    other.load_state_dict({path: torch.from_numpy(x.copy()) for path, x in base.record().items()})
    torch.nn.utils.parametrize.register_parametrization(other, "weight", Change())
    x = np.random.default_rng(2).normal(size=(3, 5))
    out = other(torch.from_numpy(x)).square().sum()
    out.backward()
    found = ad.grad(lambda model: (model(ad.asarray(x)) ** 2).sum())(model)
    np.testing.assert_allclose((model(ad.asarray(x)) ** 2).sum().item(), out.item(), rtol=1e-12)
    for path, value in values.items():
        np.testing.assert_allclose(found.factors.at(path).get().numpy(), value.grad.numpy(), rtol=1e-10)


def test_what_is_chosen_saved_and_unfrozen(tmp_path: Any) -> None:
    pytest.importorskip("safetensors")
    encoder = ad.nn.TransformerEncoder(8, 2, 2, 16)
    model = ad.nn.LowRank(encoder, 2, where=("*.attention.queries", lambda path, x: path.endswith("values.weight")))
    chosen = {path.rpartition(".")[0] for path in model.factors.named_parameters()}
    assert chosen == {f"layers.{n}.attention.{part}.weight" for n in (0, 1) for part in ("queries", "values")}
    model = moved(model)
    model.factors.save(tmp_path / "change.safetensors")
    fresh = ad.nn.LowRank(encoder, 2, where=("*.attention.queries", "*.attention.values"))
    again = fresh.at("factors").apply(lambda f: f.load(tmp_path / "change.safetensors"))
    x = ad.random.normal((3, 5, 8))
    np.testing.assert_array_equal(again.train(False)(x).numpy(), model.train(False)(x).numpy())
    part = model.unfreeze("base.layers.1.norm2")
    names = set(ad.grad(lambda m: m(x).sum())(part).named_parameters()) - set(
        ad.grad(lambda m: m(x).sum())(model).named_parameters()
    )
    assert names == {"base.layers.1.norm2.weight", "base.layers.1.norm2.bias"}
    one, two = (ad.nn.LowRank(encoder, 2, key=3).record() for _ in range(2))
    assert all((one[path] == two[path]).all() for path in one)


def test_buffers_and_leaves() -> None:
    base = network().require_grad()
    model = ad.nn.LowRank(base, 2).require_grad()
    assert len(loss(model).backward()) == 4  # the leaves of the model are constants here
    state = model.state()
    _, after = model.apply(ad.asarray(X), state)
    _, wanted = base.apply(ad.asarray(X), base.state())
    np.testing.assert_array_equal(after.base.layers[1].running_mean.numpy(), wanted.layers[1].running_mean.numpy())
    assert ad.tree.structure(after) == ad.tree.structure(state)
    models = ad.tree.map(lambda x: ad.stack([x, x]), model)
    assert ad.vmap(loss)(models).shape == (2,)


def test_other_layers_and_dtypes() -> None:
    table = ad.nn.LowRank(ad.nn.Embedding(10, 4), 2)
    np.testing.assert_array_equal(table(ad.tensor([1, 2])).numpy(), table.base.weight.numpy()[1:3])
    turned = ad.nn.LowRank(ad.nn.Linear(400, 300).map(lambda w: w.astype(ad.complex64)), 100)
    down = turned.factors.weight.down.numpy()
    assert down.dtype == np.complex64
    assert np.sqrt((abs(down) ** 2).mean()) == pytest.approx(1 / 20, rel=0.05)
    assert turned(ad.ones((1, 400))).dtype == ad.complex64


def test_wrong_input() -> None:
    model = ad.nn.Sequential(ad.nn.Linear(8, 6), ad.nn.Linear(6, 1))
    for call, error, message in (
        (lambda: ad.nn.LowRank(model, 0), errors.ArgumentError, "LowRank: rank is a positive integer, received 0"),
        (lambda: ad.nn.LowRank(model, 2, "layer"), errors.ArgumentError, "LowRank: nothing fits 'layer'; parameters"),
        (lambda: ad.nn.LowRank(model, 2, "*.bias"), errors.ArgumentError, "LowRank: no parameter of two axes or more"),
        (lambda: ad.nn.LowRank(model, 1, alpha=-1), errors.ArgumentError, "LowRank: alpha"),
        (lambda: ad.nn.LowRank(ad.tanh, 1), errors.ArgumentTypeError, "LowRank: expected a module, received"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()


class Tied(ad.nn.Module):
    first: ad.Tensor[Any]
    second: ad.Tensor[Any]

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        return x @ self.first @ self.second.mT


@pytest.mark.parametrize("where", ["*", "first", "second"])
def test_a_tensor_in_two_places_has_one_change(where: str) -> None:
    weight = ad.ones((4, 3))
    model = ad.nn.LowRank(Tied(weight, weight), 2, where=where, key=0).at("factors.first.up").set(ad.ones((4, 2)))
    assert model.factors.num_params() == 2 * (4 + 3)
    made = model.merged()
    assert made.first is made.second
    assert float(abs(made.first - 1).max().item()) > 0
    assert model.summary((2, 4)).rows[0].parameters == 12 + 14


def test_a_rank_is_at_most_that_of_the_weight() -> None:
    base = ad.nn.Sequential(ad.nn.Linear(6, 9), ad.nn.relu, ad.nn.Linear(9, 2))
    model = ad.nn.LowRank(base, rank=4)
    assert {path: x.shape for path, x in model.factors.named_parameters().items()} == {
        "layers.0.weight.up": (9, 4), "layers.0.weight.down": (4, 6),
        "layers.2.weight.up": (2, 2), "layers.2.weight.down": (2, 9),
    }  # fmt: skip
    assert model.scale == 1.0
    lines = repr(model).split("\n")
    assert lines[0] == "LowRank(scale=1.0)  # 165 parameters, 82 of them trained"
    assert lines[1] == "  base: Sequential()  # 83 parameters, 0 of them trained"
    table = model.summary((3, 6))
    assert [row.trained for row in table.rows[:2]] == [82, 0]
    assert table.trained == 82
    assert "trained" in str(table).split("\n")[0]
    assert "trained" not in str(base.summary((3, 6))).split("\n")[0]
