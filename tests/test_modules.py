"""Modules: what their fields are, what transforms make of them, and what they refuse."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors
from adjoint.module.fields import leaves_of

Tensor = ad.Tensor[Any]


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Bag:
    inside: Any
    size: int = dataclasses.field(default=3, metadata={"static": True})


class Part(ad.nn.Module):
    weight: Tensor
    running: ad.nn.Buffer
    power: int = 2

    def __call__(self, x: Any, *, key: int | None = None) -> Any:
        return (self.weight * x) ** self.power + self.running


class Whole(ad.nn.Module):
    """Arrays and modules in containers of all kinds, beside settings of all kinds."""

    scale: Tensor
    parts: tuple[Any, ...]
    named: dict[str, Any]
    pair: Pair
    bag: Bag
    table: np.ndarray[Any, Any]
    count: Tensor
    nothing: Tensor | None
    activation: Callable[..., Any]
    name: str
    kept: ClassVar[int] = 7

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        draw = lambda *shape: ad.tensor(rng.normal(size=shape), dtype=ad.float64)
        self.scale = draw()
        self.parts = [Part(draw(2), draw(2)), ad.tanh, Part(draw(2), draw(2), 3)]  # type: ignore[assignment]
        self.named = {"b": draw(2), "a": (draw(), "text")}
        self.pair = Pair(draw(2), None)
        self.bag = Bag(draw(2))
        self.table = rng.normal(size=2)
        self.count = ad.tensor(5, dtype=ad.int64)
        self.nothing = None
        self.activation = ad.sin
        self.name = "whole"

    def __call__(self, x: Any, *, key: int | None = None) -> Any:
        first, between, last = self.parts
        x = last(between(first(x))) * self.scale + self.named["b"] * self.named["a"][0] + self.pair.first
        return self.activation(x * self.bag.inside + self.table * self.count)


PARAMETERS = ["scale", "parts.0.weight", "parts.2.weight", "named.a.0", "named.b", "pair.first", "bag.inside"]
X = np.array([0.3, -0.7])


def loss(model: Any) -> Any:
    return (model(ad.asarray(X)) ** 2).sum()


def of_values(model: Whole) -> tuple[Callable[..., Any], list[Any]]:
    """The loss as a function of the values of parameters, which go into their places one by one."""
    places = list(model.named_parameters())

    def run(*values: Any) -> Any:
        for path, value in zip(places, values, strict=True):
            model_at = run.model.at(path)  # type: ignore[attr-defined]
            run.model = model_at.set(value)  # type: ignore[attr-defined]
        return loss(run.model)  # type: ignore[attr-defined]

    run.model = model  # type: ignore[attr-defined]
    return run, [x.numpy() for x in model.named_parameters().values()]


# --- fields --------------------------------------------------------------------------------------


def test_what_the_fields_are() -> None:
    kinds = {leaf.path: leaf.kind for leaf in leaves_of(Whole())}
    assert [path for path, kind in kinds.items() if kind == "parameter"] == PARAMETERS
    assert [path for path, kind in kinds.items() if kind == "buffer"] == ["parts.0.running", "parts.2.running"]
    assert [path for path, kind in kinds.items() if kind == "constant"] == ["table", "count"]
    assert list(Whole().named_parameters()) == PARAMETERS
    assert Whole().num_params() == 12
    assert Whole.kept == 7


def test_leaves_are_in_the_order_of_the_pytree() -> None:
    model = Whole()
    leaves, structure = ad.tree.flatten(model)
    assert all(x is leaf.value for x, leaf in zip(leaves, leaves_of(model), strict=True))
    again = ad.tree.unflatten(structure, leaves)
    assert again.name == "whole"
    assert again.activation is ad.sin
    assert again.parts[2].power == 3
    assert isinstance(again.pair, Pair)
    assert isinstance(again.bag, Bag)
    assert ad.tree.structure(again) == structure == ad.tree.structure(Whole(1))
    assert ad.tree.structure(model.at("name").set("other")) != structure


def test_lists_become_tuples() -> None:
    assert isinstance(Whole().parts, tuple)


def test_init_takes_the_fields() -> None:
    part = Part(ad.ones(2), running=ad.zeros(2))
    assert part.power == 2
    with pytest.raises(errors.ArgumentTypeError, match=r"Part: missing a required argument: 'running'; its fields are"):
        Part(ad.ones(2))  # type: ignore[call-arg]
    with pytest.raises(errors.ArgumentTypeError, match="Part: got an unexpected keyword argument 'bias'"):
        Part(ad.ones(2), ad.ones(2), bias=3)  # type: ignore[call-arg]


def test_fields_of_base_classes_come_first() -> None:
    class Longer(Part):
        bias: Tensor | None = None

    made = Longer(ad.ones(1), ad.zeros(1), 3, ad.ones(1))
    assert [leaf.path for leaf in leaves_of(made)] == ["weight", "running", "bias"]
    assert made.power == 3
    assert [leaf.kind for leaf in leaves_of(made)][1] == "buffer"


def test_a_class_may_keep_the_init_of_its_base() -> None:
    class Steep(ad.nn.Linear, init=False):
        factor: float = 2.0

        def __call__(self, x: Any, *, key: int | None = None) -> Any:
            return self.factor * super().__call__(x)

    layer = Steep(3, 2, bias=False)
    assert layer.factor == 2.0
    x = ad.ones((1, 3))
    np.testing.assert_allclose(layer(x).numpy(), 2 * (x @ layer.weight.mT).numpy(), rtol=1e-6)


def test_wrong_classes_and_assignments() -> None:
    with pytest.raises(errors.ArgumentError, match=r"Bad: the field 'map' would hide Module\.map; rename it"):

        class Bad(ad.nn.Module):
            map: Tensor  # type: ignore[assignment]

    with pytest.raises(errors.ArgumentTypeError, match="Late: fields without a default come first, and it has weight"):

        class Late(Part):
            bias: Tensor

    class Unset(ad.nn.Module):
        weight: Tensor

        def __init__(self) -> None:
            pass

    with pytest.raises(errors.ArgumentError, match="Unset: the field 'weight' has no value; assign it in __init__"):
        Unset()

    class Unknown(ad.nn.Module):
        def __init__(self) -> None:
            self.weight = ad.ones(1)

    with pytest.raises(errors.ArgumentError, match="Unknown has no field 'weight'; annotate it in the class"):
        Unknown()
    model = Whole()
    for change in (lambda: setattr(model, "scale", 1), lambda: setattr(model, "other", 1)):
        with pytest.raises(errors.FrozenModuleError, match=r"Whole is a value, .*; model\.at\("):
            change()
    with pytest.raises(errors.FrozenModuleError, match="cannot be deleted"):
        del model.scale


# --- transforms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "autodiff<numpy>"])
def test_gradients_are_those_of_the_values(backend: str) -> None:
    model = Whole().to_device(backend)
    run, values = of_values(model)
    wanted = ad.grad(run, tuple(range(len(values))))(*values)
    found = ad.grad(loss)(model)
    assert isinstance(found, Whole)
    assert list(found.named_parameters()) == PARAMETERS
    assert [leaf.path for leaf in leaves_of(found)] == PARAMETERS  # and None in all other places
    assert (found.table, found.count, found.parts[0].running) == (None, None, None)
    assert found.activation is ad.sin
    for mine, theirs in zip(found.named_parameters().values(), wanted, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-12)


def test_backward_gives_the_same() -> None:
    model = Whole().require_grad()
    found, wanted = loss(model).backward(), ad.grad(loss)(model)
    assert len(found) == len(PARAMETERS)
    for path, x in model.named_parameters().items():
        assert x.is_require_grad()
        slope = wanted.at(path).get()
        assert not slope.is_tracked()  # parameters are values to a transform
        np.testing.assert_allclose(found[x].numpy(), slope.numpy(), rtol=1e-12)


def test_gradients_of_gradients() -> None:
    """Parameters are values to a transform, but what an outer one differentiates by stays tracked in an inner one."""
    model = Whole()

    def steep(model: Any) -> Any:
        slopes = ad.grad(loss)(model)
        return sum((slopes.at(path).get() ** 2).sum() for path in PARAMETERS)

    run, values = of_values(model)
    every = tuple(range(len(values)))
    slopes, blocks = ad.grad(run, every)(*values), ad.hessian(run, every)(*values)
    flat = np.concatenate([np.ravel(g) for g in slopes])
    matrix = np.block([[np.reshape(b, (np.size(g), -1)) for b in row] for g, row in zip(slopes, blocks, strict=True)])
    leaves = model.require_grad()
    stacked = ad.tree.map(lambda x: ad.stack([ad.asarray(x), ad.asarray(x)]), model)
    for found in (
        ad.grad(steep)(model),
        ad.grad(steep)(leaves),
        ad.jacobian(steep, mode="forward")(model),
        ad.tree.map(lambda x: x[1], ad.vmap(ad.grad(steep))(stacked)),
    ):
        vector = np.concatenate([np.ravel(found.at(path).get().numpy()) for path in PARAMETERS])
        np.testing.assert_allclose(vector, 2 * matrix @ flat, rtol=1e-9, atol=1e-11)
    with pytest.raises(errors.GraphError, match="depends on no leaf"):
        steep(leaves).backward()
    grads = loss(leaves).backward(create_graph=True)
    recorded = sum((grads[x] ** 2).sum() for x in leaves.named_parameters().values()).backward()
    vector = np.concatenate([np.ravel(recorded[x].numpy()) for x in leaves.named_parameters().values()])
    np.testing.assert_allclose(vector, 2 * matrix @ flat, rtol=1e-9, atol=1e-11)


def test_other_derivatives() -> None:
    model = Whole()
    run, values = of_values(model)
    every = tuple(range(len(values)))
    slope = ad.grad(loss)(model)
    directions = [g.numpy() for g in slope.named_parameters().values()]
    wanted = ad.jvp(run, tuple(values), tuple(directions))
    for value, tangent in (
        ad.jvp(loss, (model,), (slope,)),
        (loss(model), ad.linearize(loss, model)[1](slope)),
    ):
        np.testing.assert_allclose([value.item(), tangent.item()], wanted, rtol=1e-12)
    value, pull = ad.vjp(loss, model)
    assert ad.tree.structure(pull(ad.ones((), dtype=ad.float64))[0]) == ad.tree.structure(slope)
    product = ad.hvp(loss, (model,), (slope,))
    product = product[0] if isinstance(product, tuple) else product
    theirs = ad.hvp(run, tuple(values), tuple(directions))
    for mine, other in zip(product.named_parameters().values(), theirs, strict=True):
        np.testing.assert_allclose(mine.numpy(), other, rtol=1e-10, atol=1e-12)
    second = ad.hessian(loss)(model)
    blocks = ad.hessian(run, every)(*values)
    for i, row in enumerate(PARAMETERS):
        for j, column in enumerate(PARAMETERS):
            np.testing.assert_allclose(
                second.at(row).get().at(column).get().numpy(), blocks[i][j], rtol=1e-9, atol=1e-11
            )


def test_a_network_has_a_jacobian() -> None:
    model = ad.nn.Sequential(ad.nn.Linear(2, 3), ad.tanh, ad.nn.Linear(3, 2))
    x = ad.tensor(X, dtype=ad.float32)
    slopes = ad.jacobian(lambda model: model(x))(model)
    assert slopes.layers[0].weight.shape == (2, 3, 2)
    assert ad.jacobian(model)(x).shape == (2, 2)


def test_ensembles() -> None:
    models = [Whole(seed) for seed in range(3)]
    stacked = ad.tree.map(lambda *xs: ad.stack([ad.asarray(x) for x in xs]), *models)
    values = ad.vmap(loss)(stacked)
    slopes = ad.vmap(ad.grad(loss))(stacked)
    for i, model in enumerate(models):
        np.testing.assert_allclose(values[i].item(), loss(model).item(), rtol=1e-12)
        alone = ad.grad(loss)(model).named_parameters()
        for path, g in alone.items():
            np.testing.assert_allclose(slopes.at(path).get()[i].numpy(), g.numpy(), rtol=1e-11)
    shared = ad.vmap(lambda model, x: model(x), in_axes=(None, 0))(models[0], np.stack([X, 2 * X]))
    np.testing.assert_allclose(shared[1].numpy(), models[0](ad.asarray(2 * X)).numpy())


def test_modules_in_control_flow_and_checkpoints() -> None:
    model = Whole()
    wanted = ad.grad(loss)(model).named_parameters()

    def looped(model: Any) -> Any:
        return ad.scan(lambda carry, _: ((carry[0], carry[1] + loss(carry[0])), None), (model, 0.0), length=2)[0][1] / 2

    for f in (ad.checkpoint(loss), looped, lambda m: ad.cond(True, loss, lambda m: 0 * loss(m), m)):
        found = ad.grad(f)(model).named_parameters()
        for path, g in found.items():
            np.testing.assert_allclose(g.numpy(), wanted[path].numpy(), rtol=1e-10)


def test_under_jax_jit() -> None:
    jax = peer("jax")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        model = ad.nn.Sequential(ad.nn.Linear(2, 3, dtype=ad.float64), ad.tanh, ad.nn.Linear(3, 1, dtype=ad.float64))
        model = model.to_device("jax")
        names = list(model.named_parameters())

        @jax.jit
        def slopes(values: Any, x: Any) -> Any:
            made = model
            for name, value in zip(names, values, strict=True):
                made = made.at(name).set(ad.asarray(value, device="jax"))
            found = ad.grad(lambda m: (m(ad.asarray(x, device="jax")) ** 2).sum())(made)
            return [g.native() for g in found.named_parameters().values()]

        x = jax.numpy.asarray(X)[None]
        found = slopes([v.native() for v in model.named_parameters().values()], x)
        wanted = ad.grad(lambda m: (m(ad.asarray(x, device="jax")) ** 2).sum())(model)
        for mine, theirs in zip(found, wanted.named_parameters().values(), strict=True):
            np.testing.assert_allclose(np.asarray(mine), theirs.numpy(), rtol=1e-10)


# --- other modules of one ------------------------------------------------------------------------


def test_freezing() -> None:
    model = Whole()
    some = model.freeze("parts", "named.*")
    assert [leaf.path for leaf in leaves_of(some) if leaf.kind == "frozen"] == [
        "parts.0.weight", "parts.2.weight", "named.a.0", "named.b",
    ]  # fmt: skip
    assert list(ad.grad(loss)(some).named_parameters()) == ["scale", "pair.first", "bag.inside"]
    assert list(loss(some.require_grad()).backward().keys()) is not None
    assert len(loss(some.require_grad()).backward()) == 3
    assert some.parts[0].freeze().num_params() == 2  # frozen parameters are parameters
    part = some.parts[0]  # and a part stays frozen where it goes
    assert [leaf.kind for leaf in leaves_of(part)] == ["frozen", "buffer"]
    back = some.unfreeze("parts.0")
    assert "parts.0.weight" in ad.grad(loss)(back).named_parameters()
    assert list(ad.grad(loss)(some.unfreeze()).named_parameters()) == PARAMETERS
    large = model.freeze(lambda path, value: value.ndim == 0 and path == "scale")
    assert [leaf.path for leaf in leaves_of(large) if leaf.kind == "frozen"] == ["scale"]
    leaves = model.require_grad()
    assert len(loss(leaves.freeze("parts")).backward()) == len(PARAMETERS) - 2
    assert len(loss(leaves.freeze("parts").unfreeze("parts.0")).backward()) == len(PARAMETERS) - 1
    with pytest.raises(errors.ArgumentError, match="freeze: nothing fits 'layer'; parameters are 'scale"):
        model.freeze("layer")
    with pytest.raises(errors.ArgumentError, match="the field named is frozen as a whole, or not at all"):
        model.freeze("named.b")


def test_places() -> None:
    model = Whole()
    assert model.at("parts.2.weight").get() is model.parts[2].weight
    other = model.at("parts.2.weight").set(ad.zeros(2))
    assert other.parts[2].weight.tolist() == [0, 0]
    assert model.parts[2].weight.tolist() != [0, 0]
    assert other.parts[0] is model.parts[0]
    assert model.at("pair.first").apply(lambda x: x * 0).pair.first.tolist() == [0, 0]
    named = model.at("named.a.0").set(ad.ones(())).named
    assert (named["a"][0].item(), named["a"][1]) == (1, "text")
    assert named["b"] is model.named["b"]
    assert isinstance(model.at("bag.inside").set(ad.ones(2)).bag, Bag)
    for path, key in (("part.0", "part"), ("parts.9", "9"), ("parts.x", "x"), ("scale.weight", "weight")):
        with pytest.raises(errors.ArgumentError, match=f"at: Whole has nothing at '{path}': there is no '{key}'"):
            model.at(path)
    with pytest.raises(errors.ArgumentError, match="there is no '9' in tuple, which has '0, 1, 2'"):
        model.at("parts.9")
    with pytest.raises(errors.ArgumentTypeError, match="at: a place is a path such as .*, received 3"):
        model.at(3)  # type: ignore[arg-type]


def test_what_takes_the_place_of_a_tensor_is_one() -> None:
    """An array would be a constant, and a number a setting: neither would be trained."""
    model = Whole()
    for value in (np.ones(2, "float32"), 3, 2.5):
        made = model.at("parts.0.weight").set(value).parts[0]
        assert [leaf.kind for leaf in leaves_of(made)] == ["parameter", "buffer"]
        assert made.weight.device is model.scale.device
        assert made.weight.dtype == (ad.float32 if isinstance(value, np.ndarray) else ad.float64)
    assert model.at("parts.0.weight").set(None).parts[0].weight is None
    for wrong in ("text", [1.0], ad.tanh):
        with pytest.raises(errors.ArgumentTypeError, match=r"at: a tensor stands at parts\.0\.weight, and"):
            model.at("parts.0.weight").set(wrong)
    assert isinstance(model.at("table").set(np.ones(2)).table, np.ndarray)


def test_maps_of_several() -> None:
    model = Whole().freeze("named")
    grads = ad.grad(loss)(model)
    stepped = model.map(lambda w, g, h: w - 0.1 * g * h, grads, grads)
    for path, x in model.named_parameters().items():
        new = stepped.at(path).get()
        if path.startswith("named"):
            assert new is x  # there is no gradient
        else:
            np.testing.assert_allclose(new.numpy(), (x - 0.1 * grads.at(path).get() ** 2).numpy())
    with pytest.raises(errors.ArgumentTypeError, match="Module.map: expected another module, received 3"):
        model.map(lambda w, g: w, 3)


def test_wrong_arguments() -> None:
    model, x = Whole(), ad.ones((4, 2))
    net = ad.nn.Sequential(ad.nn.Linear(2, 3), ad.nn.BatchNorm(3))
    moved = net.state().at("layers.1.running_mean").set(ad.ones(9))
    for call, error, message in (
        (lambda: model.freeze(3), errors.ArgumentTypeError, "freeze: a path, a pattern or a function of path"),
        (lambda: model.unfreeze(["scale"]), errors.ArgumentTypeError, "unfreeze: a path, a pattern or a function"),
        (lambda: model.train("no"), errors.AdjointError, "Module.train: training is True or False"),
        (lambda: model.load_record([1, 2]), errors.ArgumentTypeError, "load_record: a record maps paths to arrays"),
        (lambda: model.load_record({}, rename=3), errors.ArgumentTypeError, "load_record: rename is a function"),
        (lambda: model.at("scale").apply(3), errors.ArgumentTypeError, "apply: expected a function, received 3"),
        (lambda: net.apply(x, None), errors.ArgumentTypeError, "Sequential.apply: the state is what"),
        (lambda: net.apply(x, model.state()), errors.ArgumentTypeError, "or its part of one; received Whole"),
        (lambda: net.layers[1].apply(x, None), errors.ArgumentTypeError, "BatchNorm.apply: the state is what"),
        (lambda: net.with_state(moved), errors.ShapeError,
         r"with_state: layers.1.running_mean has shape \(9,\) in the state, and \(3,\) in the module"),
        (lambda: ad.nn.Residual(3), errors.ArgumentTypeError, "Residual: expected a function, received 3"),
        (lambda: ad.nn.Lambda(3), errors.ArgumentTypeError, "Lambda: expected a function, received 3"),
        (lambda: ad.nn.MultiHeadAttention(4, 2)(ad.ones(4)), errors.ShapeError, "MultiHeadAttention: x is"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()
    with pytest.raises(AttributeError, match=r"'Whole' object has no attribute 'state_dict': use model.record\(\)"):
        model.state_dict
    with pytest.raises(AttributeError, match="'Whole' object has no attribute 'other'$"):
        model.other


def test_training_and_not() -> None:
    model = ad.nn.Sequential(ad.nn.Dropout(0.5), ad.nn.Sequential(ad.nn.Dropout(0.9)))
    assert model.training
    assert model.layers[1].layers[0].training
    still = model.train(False)
    assert not still.training
    assert not still.layers[1].layers[0].training
    assert model.training
    x = ad.ones(5)
    assert still(x).tolist() == [1] * 5
    used = Whole().require_grad().valid()
    assert not used.training
    assert {x.device for x in used.named_parameters().values()} == {ad.NumPy()}


def test_buffers() -> None:
    model = ad.nn.Sequential(ad.nn.Linear(3, 2), ad.nn.BatchNorm(2, momentum=0.5), ad.nn.relu)
    x = ad.random.normal((50, 3))
    state = model.state()
    assert [leaf.path for leaf in leaves_of(state)] == ["layers.1.running_mean", "layers.1.running_var"]
    y, after = model.apply(x, state)
    np.testing.assert_allclose(y.numpy(), model(x).numpy())
    hidden = model.layers[0](x).numpy()
    np.testing.assert_allclose(after.layers[1].running_mean.numpy(), 0.5 * hidden.mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        after.layers[1].running_var.numpy(), 0.5 + 0.5 * hidden.var(0, ddof=1), rtol=1e-4, atol=1e-6
    )
    assert ad.tree.structure(after) == ad.tree.structure(state)
    trained = model.with_state(after)
    assert trained.layers[1].running_mean is after.layers[1].running_mean
    assert trained.layers[0] is not None
    assert trained.named_parameters().keys() == model.named_parameters().keys()
    again, same = trained.train(False).apply(x, after)
    assert ad.tree.leaves(same)[0] is after.layers[1].running_mean
    assert not np.allclose(again.numpy(), y.numpy())
    batch = ad.vmap(lambda x: model.apply(x, state))(ad.random.normal((4, 50, 3)))
    assert batch[1].layers[1].running_mean.shape == (4, 2)
    _, kept = ad.checkpoint(lambda m, x: m.apply(x, state))(model, x)
    np.testing.assert_allclose(kept.layers[1].running_mean.numpy(), after.layers[1].running_mean.numpy(), rtol=1e-6)
    with pytest.raises(errors.ArgumentError, match=r"Whole\.apply: there is a buffer at parts\.0\.running; define"):
        Whole().apply(X, Whole().state())
    with pytest.raises(errors.ArgumentError, match=r"with_state: the state has nothing at layers\.1\.running_mean"):
        model.with_state(model.map(lambda x: x).at("layers.1").set(None))


def test_forks_share_no_leaf() -> None:
    model = Whole().require_grad()
    fork = model.fork("autodiff<numpy>")
    grads = loss(fork).backward()
    assert all(x not in grads for x in model.named_parameters().values())
    assert all(x in grads for x in fork.named_parameters().values())
    np.testing.assert_array_equal(fork.scale.numpy(), model.scale.numpy())


def test_copies_and_pickles() -> None:
    model = Whole().freeze("scale").train(False)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert ad.tree.structure(other) == ad.tree.structure(model) or other.activation is not None
        assert not other.training
        assert list(ad.grad(loss)(other).named_parameters()) == PARAMETERS[1:]
        np.testing.assert_array_equal(loss(other).numpy(), loss(model).numpy())
        with pytest.raises(errors.FrozenModuleError):
            other.scale = 1


def test_text() -> None:
    text = repr(ad.nn.Sequential(ad.nn.Linear(1000, 3), ad.nn.relu, ad.nn.Dropout(0.1)))
    assert text.split("\n") == [
        "Sequential()  # 3,003 parameters",
        "  layers:",
        "    0: Linear()  # 3,003 parameters",
        "      weight: float32[3, 1000]",
        "      bias: float32[3]",
        "    1: relu",
        "    2: Dropout(p=0.1)  # 0 parameters",
    ]


def test_keys() -> None:
    model = ad.nn.Sequential(ad.nn.Dropout(0.5), ad.nn.Linear(40, 40), ad.nn.Dropout(0.5), ad.nn.BatchNorm(40))
    x = ad.ones((3, 40))
    first = model(x, key=7).numpy()
    ad.random.normal(5)
    np.testing.assert_array_equal(model(x, key=7).numpy(), first)
    np.testing.assert_array_equal(model.apply(x, model.state(), key=7)[0].numpy(), first)
    np.testing.assert_array_equal(ad.checkpoint(lambda x: model(x, key=7))(x).numpy(), first)
    assert not (model(x, key=8).numpy() == first).all()
    assert not (model(x).numpy() == model(x).numpy()).all()
    drop = ad.nn.Dropout(0.5)
    assert not (ad.nn.Sequential(drop, drop)(x, key=7).numpy() == drop(x, key=7).numpy() * 2).all()  # one mask each
    ad.random.seed(3)
    alone = ad.random.normal(4).numpy()
    ad.random.seed(3)
    model(x, key=7)
    np.testing.assert_array_equal(ad.random.normal(4).numpy(), alone)  # other sequences do not move

    class Own(ad.nn.Module):
        inside: ad.nn.Dropout  # type: ignore[valid-type]

        def __call__(self, x: Any) -> Any:
            return self.inside(x)

    np.testing.assert_array_equal(Own(drop)(x, key=1).numpy(), drop(x, key=1).numpy())
    slope = ad.grad(lambda x: (model(x, key=7) ** 2).sum())
    np.testing.assert_array_equal(slope(x).numpy(), slope(x).numpy())
    for key in (-1, 1.5, "a"):
        with pytest.raises(errors.ArgumentError, match="key: a non-negative integer, received"):
            model(x, key=key)


def test_arrays_of_other_libraries_are_no_fields() -> None:
    torch = peer("torch")
    with pytest.raises(errors.ArgumentTypeError, match=r"a torch\.Tensor, which would not be trained; ad\.asarray"):
        Part(torch.ones(2), ad.zeros(2))
