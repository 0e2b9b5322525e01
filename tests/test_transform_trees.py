"""Transforms of functions of trees of every sort, and `ad.tree`."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import optree
import pytest
from with_jax import XS, X, agree

import adjoint as ad


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any


@dataclasses.dataclass(frozen=True)
class Model:
    first: Layer
    rest: list[Layer]
    built: str = dataclasses.field(default="here", init=False)


class Registered:
    def __init__(self, value: Any, name: str) -> None:
        self.value, self.name = value, name


optree.register_pytree_node(
    Registered, lambda r: ([r.value], r.name), lambda name, children: Registered(children[0], name), namespace="adjoint"
)


def _layer(scale: float) -> Layer:
    return Layer(scale * np.eye(2), np.full(2, scale))


def _through(layer: Layer, x: Any) -> Any:
    return ad.tanh(layer.weight @ x + layer.bias)


def _energy(model: Model, x: Any) -> Any:
    x = _through(model.first, x)
    for layer in model.rest:
        x = _through(layer, x)
    return (x**2).sum()


def test_dataclasses_named_tuples_and_registered_types() -> None:
    x = np.array([0.3, -0.5])
    model = Model(_layer(0.5), [_layer(1.5), _layer(-0.7)])
    gradient = ad.grad(_energy)(model, x)
    assert isinstance(gradient, Model)
    assert isinstance(gradient.rest[1], Layer)
    wanted = ad.grad(lambda ws: _energy(Model(Layer(*ws[0]), [Layer(*w) for w in ws[1:]]), x))(
        [(layer.weight, layer.bias) for layer in (model.first, *model.rest)]
    )
    for layer, (weight, bias) in zip((gradient.first, *gradient.rest), wanted, strict=True):
        agree([layer.weight, layer.bias], [weight, bias])

    pair = ad.vmap(lambda p: Pair(p.left * 2, p.right.sum()), (Pair(0, 1),))(Pair(XS, XS.T))
    assert isinstance(pair, Pair)
    agree([*pair], [2 * XS, XS.sum(axis=1)])
    tangent = ad.jvp(lambda p: Pair(p.right, p.left * p.right), (Pair(X, X),), (Pair(X, 2 * X),))[1]
    agree([*tangent], [2 * X, X * X * 3])

    own = ad.grad(lambda r: (r.value**2).sum())(Registered(X, "mine"))
    assert isinstance(own, Registered)
    assert own.name == "mine"
    agree(own.value, 2 * X)
    batch = ad.vmap(lambda r: Registered(r.value.sum(), r.name))(Registered(XS, "batch"))
    assert batch.name == "batch"
    agree(batch.value, XS.sum(axis=1))
    nested = ad.jacobian(lambda d: Pair(d["m"].weight.sum(), d["m"].bias))({"m": _layer(1.0)})
    agree(nested.left["m"].weight, np.ones((2, 2)))
    agree(nested.right["m"].bias, np.eye(2))


@dataclasses.dataclass
class Named:
    weight: Any
    activation: Any = dataclasses.field(default=ad.tanh, metadata={"static": True})
    name: str = dataclasses.field(default="first", metadata={"static": True})

    def __call__(self, x: Any) -> Any:
        return self.activation(self.weight @ x)


def test_static_fields_of_dataclasses_go_along() -> None:
    layer = Named(np.eye(2), ad.sin, "mine")
    gradient = ad.grad(lambda layer: layer(X[:2]).sum())(layer)
    assert (gradient.activation, gradient.name) == (ad.sin, "mine")
    agree(gradient.weight, np.outer(np.cos(X[:2]), X[:2]))
    stack = Named(np.stack([np.eye(2), 2 * np.eye(2)]))
    batch = ad.vmap(lambda layer: dataclasses.replace(layer, weight=layer(X[:2])))(stack)
    assert batch.name == "first"
    agree(batch.weight, np.tanh([X[:2], 2 * X[:2]]))
    last, _ = ad.scan(lambda c, _: (dataclasses.replace(c, weight=c.weight * 2), None), layer, length=3)
    agree(last.weight, 8 * np.eye(2))
    with pytest.raises(ad.errors.ArgumentError, match="do not have the structure of the primals"):
        ad.jvp(lambda layer: layer.weight, (layer,), (Named(np.eye(2), ad.cos, "mine"),))


def test_none_and_empty_containers_stay() -> None:
    found = ad.grad(lambda d: d["x"].sum())({"x": X, "none": None, "empty": [], "nested": {"t": ()}})
    assert {**found, "x": None} == {"x": None, "none": None, "empty": [], "nested": {"t": ()}}
    assert ad.vmap(lambda d: (d["none"], d["x"]))({"x": X, "none": None})[0] is None
    assert ad.grad(lambda d: 3.0)({}) == {}
    agree(ad.jacobian(lambda x: (x, None, {}))(X)[0], np.eye(3))


# --- ad.tree ---


def test_trees_are_flattened_and_built_again() -> None:
    x = ad.tensor([1.0, 2.0])
    tree = {"b": [x, 3.0], "a": (None, np.ones(2))}
    leaves, structure = ad.tree.flatten(tree)
    assert leaves[1] is x
    assert ad.tree.paths(structure) == ["['a'][1]", "['b'][0]", "['b'][1]"]
    again = ad.tree.unflatten(structure, leaves)
    assert again["b"][0] is x
    assert again["a"][0] is None
    assert ad.tree.structure(again) == structure
    assert [y is z for y, z in zip(ad.tree.leaves(again), leaves, strict=True)] == [True] * 3
    assert ad.tree.map(lambda *pair: pair, (1, [2]), (3, [4])) == ((1, 3), [(2, 4)])
    with pytest.raises(ad.errors.ArgumentError, match="3 leaves, received 2"):
        ad.tree.unflatten(structure, leaves[:2])
    with pytest.raises(ad.errors.ArgumentError, match="do not go together"):
        ad.tree.map(lambda x, y: x, [1], (1,))


def test_what_a_class_refuses_is_its_own_error() -> None:
    @dataclasses.dataclass
    class Positive:
        value: Any

        def __post_init__(self) -> None:
            if self.value < 0:
                raise ValueError("not negative")

    structure = ad.tree.structure(Positive(1.0))
    with pytest.raises(ValueError, match="not negative") as caught:
        ad.tree.unflatten(structure, [-1.0])
    assert not isinstance(caught.value, ad.errors.AdjointError)


def test_integers_in_trees_are_constants() -> None:
    """What has no derivative stands beside what has: its gradient is None."""
    n = np.array([2, 3])
    tree = {"x": X[:2], "n": n, "deep": [3, (ad.asarray(n), True)]}
    none = {"x": X[:2], "n": None, "deep": [None, (None, None)]}

    def f(tree: Any) -> Any:
        assert isinstance(tree["n"], ad.Tensor)  # as other arguments' arrays are
        power, (factor, flag) = tree["deep"]
        return (tree["x"] ** power * tree["n"] * factor).sum() if flag else 0.0

    def alone(x: Any) -> Any:
        return (x**3 * n * n).sum()

    wanted = ad.grad(alone)(X[:2])

    def same(found: Any, values: Any = wanted) -> None:
        assert (found["n"], found["deep"]) == (None, [None, (None, None)])
        np.testing.assert_allclose(np.asarray(ad.stop_gradient(found["x"])), values, rtol=1e-12)

    same(ad.grad(f)(tree))
    same(ad.value_and_grad(f)(tree)[1])
    same(ad.jacobian(f, mode="forward")(tree))
    same(ad.vjp(f, tree)[1](1.0)[0])
    same(ad.vmap(ad.grad(f), in_axes=({"x": 0, "n": None, "deep": None},))({**tree, "x": X[None, :2]}), wanted[None])
    same(ad.hvp(f, (tree,), (none,)), ad.hvp(alone, (X[:2],), (X[:2],)))
    same(ad.hessian(f)(tree)["x"], ad.hessian(alone)(X[:2]))
    same(ad.grad(lambda tree: (ad.grad(f)(tree)["x"] ** 2).sum())(tree), ad.hessian(alone)(X[:2]) @ (2 * wanted))
    along = wanted @ X[:2]
    for tangent in (ad.jvp(f, (tree,), (none,))[1], ad.linearize(f, tree)[1](none)):
        np.testing.assert_allclose(np.asarray(tangent), along)
    same(ad.linear_transpose(lambda tree: tree["x"] * tree["n"] * tree["deep"][0], tree)(X[:2])[0], X[:2] * n * 3)
    leaf = {**tree, "x": ad.tensor(X[:2]).require_grad()}
    same(ad.grad(f)(leaf))
