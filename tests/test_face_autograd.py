"""`adjoint.autograd`: HIPS autograd's operators, boxes, rules of users and helpers, over any backend."""

from __future__ import annotations

import functools
import operator
import pathlib
import warnings
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as onp
import processes
import pytest
from conftest import peer
from each import Each
from numpy.testing import assert_allclose

import adjoint as ad
import adjoint.autograd.numpy as np
from adjoint import autograd, errors
from adjoint.autograd import core, extend, test_util
from adjoint.autograd.boxes import ArrayBox, getval, isbox
from adjoint.autograd.misc import const_graph, flatten, optimizers
from adjoint.autograd.misc.fixed_points import fixed_point
from adjoint.autograd.misc.flatten import flatten_func

X = onp.array([0.5, -1.0, 2.0])
V = onp.array([1.0, 0.5, -2.0])
MATRIX = onp.array([[2.0, 0.5, 0.25], [0.5, 1.5, 0.0], [0.25, 0.0, 3.0]])


def energy(x: Any) -> Any:
    return np.sum(np.tanh(x) * np.dot(MATRIX, x))


# --- operators, each against HIPS autograd -------------------------------------------------------


def of_both(program: Any) -> tuple[Any, Any]:
    """What a program gives with this face, and with HIPS autograd; it takes the package and its NumPy."""
    hips = peer("autograd")
    import autograd.numpy as hips_numpy
    from autograd.differential_operators import make_jvp_reversemode

    hips.make_jvp_reversemode = make_jvp_reversemode
    return program(autograd, np), program(hips, hips_numpy)


def function(n: Any) -> Any:
    return lambda x, y=2.0: n.sum(n.tanh(x) * n.dot(MATRIX, x)) * y


def rows(n: Any) -> Any:
    return lambda x: n.outer(x, n.sin(x))


PROGRAMS = {
    "grad": lambda a, n: a.grad(function(n))(X),
    "grad by another argument": lambda a, n: a.grad(function(n), 1)(X, 3.0),
    "grad by several": lambda a, n: a.grad(function(n), [1, 0])(X, 3.0),
    "grad of a result of one element": lambda a, n: a.grad(lambda x: n.sum(x * x, keepdims=True))(X),
    "grad by integers": lambda a, n: a.grad(lambda x: n.sum(x**2.0))(onp.arange(1, 4)),
    "grad of grad": lambda a, n: a.grad(a.grad(a.grad(lambda x: n.sin(x) * x**3)))(0.7),
    "grad by complex": lambda a, n: a.grad(lambda z: n.real(n.sum(z * z * n.conj(z))))(X + 1j * V),
    "value_and_grad": lambda a, n: a.value_and_grad(function(n))(X),
    "elementwise_grad": lambda a, n: a.elementwise_grad(lambda x: n.sin(x) * x)(X),
    "deriv": lambda a, n: a.deriv(lambda x: n.sin(x) * x)(X),
    "jacobian": lambda a, n: a.jacobian(rows(n))(X),
    "jacobian by complex": lambda a, n: a.jacobian(lambda z: n.real(z * z * n.conj(z)))(X + 1j * V),
    "hessian": lambda a, n: a.hessian(function(n))(X),
    "hessian of rows": lambda a, n: a.hessian(rows(n))(X),
    "hessian_vector_product": lambda a, n: a.hessian_vector_product(function(n))(X, V),
    "hessian_tensor_product": lambda a, n: a.hessian_tensor_product(lambda x: n.sum(x**3))(MATRIX, MATRIX.T),
    "tensor_jacobian_product": lambda a, n: a.tensor_jacobian_product(rows(n))(X, MATRIX),
    "vector_jacobian_product": lambda a, n: a.vector_jacobian_product(n.sin)(X, V),
    "make_vjp": lambda a, n: a.make_vjp(rows(n))(X)[0](MATRIX),
    "make_vjp of several": lambda a, n: a.make_vjp(lambda x, y: x * y, (0, 1))(X, V)[0](V),
    "make_vjp of complex": lambda a, n: a.make_vjp(lambda z: z**2)(X + 1j * V)[0](V + 2j * X),
    "make_vjp of a number of Python's": lambda a, n: a.make_vjp(lambda z: z**2)(1 + 2j)[0](2 + 1j),
    "make_jvp": lambda a, n: a.make_jvp(rows(n))(X)(V),
    "make_jvp of complex": lambda a, n: a.make_jvp(lambda z: z**2)(X + 1j * V)(V + 2j * X),
    "make_jvp_reversemode": lambda a, n: a.make_jvp_reversemode(rows(n))(X)(V),
    "make_ggnvp": lambda a, n: a.make_ggnvp(lambda x: n.dot(MATRIX, n.sin(x)))(X)(V),
    "make_ggnvp of a number": lambda a, n: a.make_ggnvp(lambda x: n.sum(n.sin(x) ** 2))(X)(V),
    "sums of a number": lambda a, n: [
        a.grad(a.grad(lambda x, name=name, axis=axis: getattr(n, name)(x**3, axis=axis)))(0.7)
        for name in ("sum", "prod", "max", "amin")
        for axis in (0, -1, None, ())
    ],
    "make_hvp": lambda a, n: a.make_hvp(function(n))(X)[0](V),
    "grad_and_aux": lambda a, n: a.grad_and_aux(lambda x: (n.sum(x**2), n.sin(x)))(X),
    "grad_named": lambda a, n: a.grad_named(lambda x, scale: n.sum(x) * scale**2, "scale")(X, 3.0),
    "holomorphic_grad": lambda a, n: a.holomorphic_grad(lambda z: n.sin(z) * z)(0.3 + 0.4j),
    "checkpoint": lambda a, n: a.grad(a.checkpoint(function(n)))(X),
    "checkpoint, twice": lambda a, n: a.hessian(a.checkpoint(function(n)))(X),
    "checkpoint in a closure": lambda a, n: a.grad(lambda s: a.grad(a.checkpoint(lambda x: s * x**3))(s))(2.0),
    "containers": lambda a, n: list(
        a.grad(lambda p: n.sum(p["w"][0] * p["w"][1]) + p["b"] ** 2)({"w": [X, V], "b": 3.0}).items()
    ),
    "a constant result": lambda a, n: a.grad(lambda x: 3.0)(X),
    "a closure over an outer argument": lambda a, n: a.grad(lambda x: a.grad(lambda y: x * y**2)(3.0) * x)(2.0),
    "a jacobian in a gradient": lambda a, n: a.grad(lambda x: n.sum(a.jacobian(rows(n))(x) ** 2))(X),
}


PROGRAMS |= {
    f"{name} of an iterator": lambda a, n, name=name: a.jacobian(lambda x: getattr(n, name)(v * x for v in x))(X)
    for name in ("stack", "vstack", "hstack", "concatenate", "column_stack")
}


def assert_same(x: Any, y: Any) -> None:
    if isinstance(y, (tuple, list)):
        assert type(x) is type(y)
        for a, b in zip(x, y, strict=True):
            assert_same(a, b)
    elif isinstance(y, dict):
        assert list(x) == list(y)
        assert_same(list(x.values()), list(y.values()))
    elif isinstance(y, str):
        assert x == y
    else:
        assert (onp.shape(x), onp.iscomplexobj(x)) == (onp.shape(y), onp.iscomplexobj(y))
        assert isinstance(x, (onp.ndarray, onp.generic))
        assert_allclose(x, y, rtol=1e-10, atol=1e-12)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:Output seems independent")
@pytest.mark.parametrize("name", PROGRAMS)
def test_operators_give_what_those_of_hips_autograd_give(name: str) -> None:
    assert_same(*of_both(PROGRAMS[name]))


def test_gradients_by_all_arguments_are_by_name() -> None:
    def f(a: Any, b: Any = 2.0, *more: Any, c: Any = 3.0, **named: Any) -> Any:
        return a * b * c + sum(x**2 for x in more) + named.get("d", 0.0)

    found = autograd.multigrad_dict(f)(5.0, 2.0, 7.0, d=1.0)
    assert found == {"a": 6.0, "b": 15.0, "more": (14.0,), "c": 10.0, "named": {"d": 1.0}}


def test_any_pytree_may_be_an_argument_or_a_result() -> None:
    class Pair(NamedTuple):
        a: Any
        b: Any

    f = lambda p: np.sum(p["x"].a * p["x"].b ** 2)
    tree = OrderedDict(x=Pair(X, V))
    found = autograd.grad(f)(tree)
    assert isinstance(found, OrderedDict)
    assert isinstance(found["x"], Pair)
    assert_allclose(found["x"].b, 2 * X * V)
    twice = autograd.grad(lambda t: np.sum(autograd.grad(f)(OrderedDict(x=Pair(t, V)))["x"].b))(X)
    assert_allclose(twice, 2 * V)
    vjp, value = autograd.make_vjp(lambda x: OrderedDict(x=Pair(x * 2, x * V)))(X)
    assert_allclose(value["x"].a, 2 * X)
    assert_allclose(vjp(tree), 2 * X + V * V)


@pytest.mark.parametrize("name", ["numpy.linalg.det", "extend.primitive", "tracer.isbox", "scipy.special.erf"])
def test_modules_are_there_after_the_import_of_their_package(name: str) -> None:
    peer("scipy")
    top = "adjoint.autograd.scipy" if name.startswith("scipy") else "adjoint.autograd"
    program = f"import {top}; adjoint.autograd.{name}"
    processes.python(program)


def test_scipy_is_asked_for_by_an_import_error() -> None:
    hidden = "import sys; sys.modules['scipy'] = None\n"
    program = "try:\n    import adjoint.autograd.scipy.special\nexcept ImportError as error:\n    print(error)"
    done = processes.python(hidden + program)
    assert done.stdout == "adjoint.autograd.scipy: needs SciPy; pip install 'adjoint[scipy]'\n"


def test_a_library_that_imports_hips_autograd_may_be_given_this_face() -> None:
    page = (pathlib.Path(__file__).parents[1] / "docs/autograd.md").read_text()
    lines = page.partition("import HIPS autograd by itself?")[2].partition("```py\n")[2]
    script = lines.partition("import pymanopt")[0] + (
        "import autograd.numpy as np\n"
        "from autograd import grad\n"
        "from autograd.core import VSpace\n"
        "from autograd.misc.flatten import flatten\n"
        "from autograd.numpy.linalg import det\n"
        "assert np is adjoint.autograd.numpy and VSpace is adjoint.autograd.core.VSpace\n"
        "assert np.allclose(flatten(grad(lambda x: det(np.outer(x, x) + np.eye(2)))(np.ones(2)))[0], 2.0)\n"
    )
    processes.python(script)


def test_operators_are_named_as_hips_autograd_names_them() -> None:
    assert autograd.grad(energy, 0).__name__ == "grad_of_energy_wrt_argnum_0"


def test_functions_called_without_boxes_are_numpys_own() -> None:
    out = np.sum(X)
    assert type(out) is onp.float64
    assert np.float64 is onp.float64
    assert np.linalg.LinAlgError is onp.linalg.LinAlgError
    assert set(np.__all__) == {name for name in dir(onp) if not name.startswith("_")}
    assert all(hasattr(np, name) for name in np.__all__)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: autograd.grad(np.sin)(X), TypeError),
        (lambda: autograd.grad(lambda z: z * z)(1 + 2j), TypeError),
        (lambda: autograd.grad(np.sin)(3), TypeError),
        (lambda: autograd.grad(np.sin)("text"), TypeError),
        (lambda: autograd.grad(lambda x: None)(X), TypeError),
        (lambda: autograd.grad(energy, "x")(X), TypeError),
        (lambda: autograd.grad(energy, ())(X), TypeError),
        (lambda: autograd.grad(energy, 3)(X), IndexError),
        (lambda: autograd.grad(3.0), TypeError),  # type: ignore[arg-type]
        (lambda: autograd.elementwise_grad(lambda z: z * 1j)(X), TypeError),
        (lambda: autograd.jacobian(lambda z: z * 1j)(X), TypeError),
        (lambda: autograd.jacobian(lambda p: p[0])((X, V)), TypeError),
        (lambda: autograd.jacobian(lambda x: (x, x))(X), TypeError),
        (lambda: autograd.grad_named(energy, "y"), ValueError),
        (lambda: core.vspace(3), TypeError),
        (lambda: core.vspace("text"), TypeError),
        (lambda: extend.Box.register(list), TypeError),
    ],
)
def test_wrong_calls_raise_typed_errors(wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        wrong()
    assert isinstance(caught.value, errors.AdjointError)


def test_a_result_without_its_argument_warns() -> None:
    with pytest.warns(UserWarning, match="independent of input"):
        assert autograd.grad(lambda x: 3.0)(2.0) == 0.0
    with pytest.warns(UserWarning, match="not complex"):
        autograd.holomorphic_grad(lambda z: z * z)(2.0)


# --- boxes ---------------------------------------------------------------------------------------


def inside(look: Any, x: Any = X) -> Any:
    """What `look` sees of a box."""
    seen = []
    autograd.grad(lambda x: (seen.append(look(x)), np.sum(x))[1])(x)
    return seen[0]


def test_a_box_shows_what_it_holds() -> None:
    assert inside(lambda x: (x.shape, x.ndim, x.size, x.dtype, len(x))) == ((3,), 1, 3, onp.dtype(float), 3)
    assert inside(lambda x: str(x[0])) == "Autograd ArrayBox with value 0.5"
    assert inside(lambda x: (isbox(x), isinstance(x, ArrayBox), bool(x[0]), int(x[2]))) == (True, True, True, 2)
    assert inside(lambda x: hash(x) == hash(x))
    values = inside(lambda x: (x._value, getval(x * 2), autograd.isinstance(x, onp.ndarray), autograd.type(x)))
    assert_allclose(values[0], X)
    assert_allclose(values[1], 2 * X)
    assert values[2:] == (True, onp.ndarray)


def test_the_value_of_a_box_of_two_levels_is_a_box_of_one() -> None:
    def outer(x: Any) -> Any:
        def inner(y: Any) -> Any:
            assert isbox((x * y)._value)
            assert not isbox((x * y)._value._value)
            assert not isbox(y._value)
            return x * y

        return autograd.grad(inner)(3.0)

    assert autograd.grad(outer)(2.0) == 1.0


def test_values_can_be_looked_at_when_the_gradient_is_there() -> None:
    kept: list[Any] = []
    autograd.grad(lambda x: (kept.append(x * 2), np.sum(x))[1])(X)
    assert_allclose(getval(kept[0]), 2 * X)
    assert_allclose(kept[0] + 1, 2 * X + 1)


def of_kept_boxes(a: Any, n: Any) -> Any:
    """Boxes of derivatives that are there, in operators, methods, functions and other derivatives."""
    kept: list[Any] = []
    a.grad(lambda x: (kept.extend([x * 2, x[0]]), n.sum(x))[1])(X)
    vector, number = kept
    return [
        *[vector + 1, X * vector, vector @ V, -vector, vector[1:], vector.sum(), vector.T, vector.astype(float)],
        *[n.exp(vector), n.array([number, 1.0]), n.concatenate([vector, X]), n.dot(MATRIX, vector), number**2],
        a.grad(lambda x: n.sum(x * vector) * number)(V),
        len(vector),
    ]


@pytest.mark.peers
def test_a_box_computes_on_as_its_value_when_the_gradient_is_there() -> None:
    ours, theirs = of_both(of_kept_boxes)
    for x, y in zip(ours, theirs, strict=True):
        assert_allclose(x, getattr(y, "_value", y))
    kept: list[Any] = []  # what follows HIPS autograd mixes up: forward mode, outer and second derivatives
    assert autograd.grad(lambda x: autograd.grad(lambda y: (kept.append(x * y), y)[1])(3.0) * kept.pop())(2.0) == 3.0
    autograd.make_jvp(lambda x: (kept.append(np.sin(x)), x)[1])(X)(V)
    assert_allclose(autograd.grad(lambda x: np.sum(x * kept[0]))(V), onp.sin(X))
    assert_allclose(autograd.hessian(lambda x: np.sum(x**2 * kept[0]))(V), onp.diag(2 * onp.sin(X)))


def test_a_box_of_examples_shows_its_shape() -> None:
    seen: list[str] = []
    ad.vmap(lambda x: autograd.grad(lambda y: (seen.append(str(y)), np.sum(y))[1])(x))(MATRIX)
    assert seen == ["Autograd ArrayBox of shape (3,) of each example of a batch"]


def test_a_box_of_an_example_of_a_batch_is_not_used_later() -> None:
    kept: list[Any] = []
    ad.vmap(lambda x: autograd.grad(lambda y: (kept.append(y), y * y)[1])(x)._tensor)(X)
    with pytest.raises(errors.EndedError):
        kept[0] + 1


def test_what_no_level_follows_is_an_array() -> None:
    plain = inside(lambda x: [x > 0, np.argmax(x), np.floor(x), np.zeros_like(x), np.shape(x), x.argsort()])
    assert [type(v) for v in plain] == [onp.ndarray, onp.int64, onp.ndarray, onp.ndarray, tuple, onp.ndarray]
    plain[0][0] = False  # a copy of one's own
    assert inside(lambda x: type(getval(x))) is onp.ndarray


@pytest.mark.parametrize(
    "leave",
    [
        lambda x: float(x[0]),
        lambda x: onp.zeros(3).__setitem__(0, x[0]),
        lambda x: onp.zeros(3).__iadd__(x),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.__delitem__(0),
        lambda x: onp.arange(x[0]),
        lambda x: operator.index(x[0]),
        lambda x: np.histogram2d(x, x),
        lambda x: np.random.normal(x),
        lambda x: onp.array(x, dtype=float),
    ],
)
def test_nothing_leaves_a_box_silently(leave: Any) -> None:
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        inside(leave)


@pytest.mark.parametrize("out", [lambda x: [x[0]], lambda x: (x[0],), lambda x: {"a": x[0]}])
def test_a_container_of_one_number_is_no_number(out: Any) -> None:
    for derivative in (autograd.grad, autograd.value_and_grad):
        with pytest.raises(errors.ArgumentTypeError, match="only applies to real scalar-output functions"):
            derivative(out)(onp.ones(2))


OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.floordiv,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS)
def test_operators_take_arrays_numbers_and_lists_on_both_sides(op: Any) -> None:
    for other in (V + 3, 2.0, 2, onp.float32(2.0), [1.0, 2.0, 3.0]):
        assert_allclose(inside(lambda x, o=other: getval(op(abs(x), o))), op(abs(X), onp.asarray(other)))
        assert_allclose(inside(lambda x, o=other: getval(op(o, abs(x)))), op(onp.asarray(other), abs(X)))


def test_methods_are_those_of_numpys_arrays() -> None:
    matrix = onp.arange(6.0).reshape(2, 3) - 2.5
    calls = [
        lambda x: x.sum(axis=0), lambda x: x.mean(), lambda x: x.var(ddof=1), lambda x: x.std(axis=1),
        lambda x: x.max(axis=1, keepdims=True), lambda x: x.min(), lambda x: x.prod(), lambda x: x.cumsum(axis=1),
        lambda x: x.reshape(3, 2), lambda x: x.reshape((3, -1)), lambda x: x.T, lambda x: x.transpose(1, 0),
        lambda x: x.ravel(), lambda x: x.flatten(), lambda x: x.clip(-1, 1), lambda x: x.repeat(2, axis=0),
        lambda x: x.swapaxes(0, 1), lambda x: x.trace(), lambda x: x.diagonal(), lambda x: x.dot(matrix.T),
        lambda x: x.astype(onp.float32), lambda x: x.round(), lambda x: x.take([0, 2]), lambda x: x.real,
        lambda x: x.squeeze(), lambda x: x.conj(), lambda x: x @ matrix.T, lambda x: -x, lambda x: x.argmax(axis=1),
    ]  # fmt: skip
    for call in calls:
        assert_allclose(inside(lambda x, call=call: getval(call(x)), matrix), call(matrix), rtol=1e-12)


def test_axes_of_numbers_are_those_of_scipys_functions() -> None:
    scipy_special = peer("scipy.special")
    from adjoint.autograd.scipy import special

    for name in ("logsumexp", "softmax", "log_softmax"):
        for axis in (0, -1, None):
            seen: list[Any] = []
            autograd.grad(lambda x: seen.append(getattr(special, name)(x, axis=axis)) or x)(0.7)  # noqa: B023
            assert getval(seen[0]) == getattr(scipy_special, name)(0.7, axis=axis)
    assert autograd.grad(lambda x: special.logsumexp(x**2, axis=-1))(0.7) == pytest.approx(1.4)


def test_numpys_own_functions_take_boxes() -> None:
    f = lambda n: lambda x: n.sum(n.where(x > 0, n.exp(x), x) * n.concatenate([x[:1], x[1:]]))
    assert_allclose(autograd.grad(f(onp))(X), autograd.grad(f(np))(X))


def test_functions_are_called_back_with_boxes() -> None:
    def by_rows(x: Any) -> Any:
        return np.sum(np.apply_along_axis(lambda row: np.sum(row**2) * np.ones(1), 1, np.outer(x, x)) ** 2)

    expected = autograd.grad(lambda x: np.sum(np.sum(np.outer(x, x) ** 2, axis=1) ** 2))(X)
    assert_allclose(autograd.grad(by_rows)(X), expected)


# --- other libraries -----------------------------------------------------------------------------


def loss(x: Any) -> Any:
    return np.sum(np.tanh(x) * np.array([1.0, 2.0, 3.0]) + np.linalg.norm(x) ** 2)


@pytest.mark.slow
@pytest.mark.peers
def test_operators_take_arrays_of_other_libraries_on_both_sides() -> None:
    torch, dask, jax = peer("torch"), peer("dask.array"), peer("jax.numpy")
    with Each() as each, peer("jax").enable_x64(True):
        for put in (torch.tensor, dask.from_array, jax.asarray):
            y = put(V + 3)
            for op in OPERATORS:
                with each(put.__module__, op.__name__):
                    left = inside(lambda x, op=op, y=y: [onp.asarray(getval(op(y, x)))], put(abs(X)))
                    right = inside(lambda x, op=op, y=y: [onp.asarray(getval(op(x, y)))], put(abs(X)))
                    assert_allclose(left[0], op(V + 3, abs(X)))
                    assert_allclose(right[0], op(abs(X), V + 3))
                    if op in OPERATORS[:5]:
                        f = lambda x, op=op: np.sum(op(put(V + 3), x) * x)  # noqa: B023
                        g = lambda x, op=op: np.sum(op(V + 3, x) * x)
                        assert_allclose(onp.asarray(autograd.grad(f)(put(abs(X)))), autograd.grad(g)(abs(X)))


@pytest.mark.slow
@pytest.mark.peers
def test_arrays_of_pytorch_give_arrays_of_pytorch() -> None:
    torch = peer("torch")
    x = torch.tensor(X)
    found = autograd.grad(loss)(x)
    assert isinstance(found, torch.Tensor)
    assert_allclose(found.numpy(), autograd.grad(loss)(X))
    assert isinstance(np.sin(x), torch.Tensor)
    assert_allclose(autograd.hessian(loss)(x).numpy(), autograd.hessian(loss)(X))
    value, tangent = autograd.make_jvp(loss)(x)(torch.tensor(V))
    assert_allclose(tangent.item(), autograd.make_jvp(loss)(X)(V)[1])
    by = autograd.grad(lambda x, y: np.sum(x * y))(X, torch.tensor(V))
    assert_allclose(onp.asarray(by), V)


@pytest.mark.slow
@pytest.mark.peers
def test_arrays_of_jax_give_arrays_of_jax() -> None:
    jax = peer("jax")
    with jax.enable_x64(True):
        found = autograd.grad(loss)(jax.numpy.asarray(X))
        assert isinstance(found, jax.Array)
        assert_allclose(found, autograd.grad(loss)(X))


@pytest.mark.slow
@pytest.mark.peers
def test_arrays_of_dask_give_arrays_of_dask() -> None:
    dask = peer("dask.array")
    found = autograd.grad(loss)(dask.from_array(X, chunks=2))
    assert isinstance(found, dask.Array)
    assert_allclose(found.compute(), autograd.grad(loss)(X))


# --- spaces, checks, helpers ---------------------------------------------------------------------


def test_vector_spaces_know_sizes_bases_and_products() -> None:
    space = core.vspace({"a": [X, 2.0], "z": 1 + 2j})
    assert space.size == 6
    assert len(list(space.standard_basis())) == 6
    assert space == core.vspace({"a": [V, 3.0], "z": 2j})
    assert space != core.vspace({"a": [V[:2], 3.0], "z": 2j})
    x = space.randn()
    assert space.inner_prod(x, x) > 0
    assert_allclose(space.inner_prod(x, space.zeros()), 0)
    assert space.covector({"a": [X, 2.0], "z": 1 + 2j})["z"] == 1 - 2j
    assert space.ones()["z"] == 1 + 1j
    assert core.vspace(X).zeros().dtype == X.dtype

    class Meters(float):
        pass

    extend.VSpace.register(Meters, lambda v: core.ArrayVSpace(float(v)))
    try:
        assert core.vspace(Meters(3.0)).size == 1
    finally:
        del extend.VSpace.mappings[Meters]


def test_containers_become_vectors_and_come_back() -> None:
    tree = OrderedDict(w=[X, MATRIX], b=(2.0, {"k": V}))
    vector, unflatten = flatten(dict(tree))
    assert_allclose(vector, onp.concatenate([[2.0], V, X, MATRIX.ravel()]))
    back = unflatten(vector * 2)
    assert_allclose(back["w"][1], MATRIX * 2)
    assert back["b"][0] == 4.0
    of_vectors, _, start = flatten_func(lambda p: {"y": p["x"] * 2}, {"x": X})
    assert_allclose(of_vectors(start), 2 * X)
    gradient = autograd.grad(lambda t: np.sum(flatten({"a": t, "b": 2 * t})[0] ** 2))(X)
    assert_allclose(gradient, 10 * X)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["sgd", "rmsprop", "adam"])
def test_optimizers_take_the_steps_of_hips_autograd(name: str) -> None:
    peer("autograd")
    from autograd.misc import optimizers as theirs

    start = {"x": X, "y": [2.0]}
    seen: list[Any] = []
    gradient = lambda p, i: {"x": 2 * (p["x"] - V), "y": [p["y"][0] + i]}
    ours = getattr(optimizers, name)(gradient, start, lambda p, i, g: seen.append(i), num_iters=7)
    assert seen == list(range(7))
    expected = getattr(theirs, name)(gradient, start, None, num_iters=7)
    assert_allclose(ours["x"], expected["x"])
    assert_allclose(ours["y"], expected["y"])

    def after(rate: Any) -> Any:
        step = getattr(optimizers, name)
        return np.sum(step(lambda x, i: autograd.elementwise_grad(np.cos)(x), X, None, 3, rate) ** 2)

    test_util.check_grads(after, modes=["rev"], order=1)(0.05)


def test_fixed_points_have_the_derivative_of_the_equation() -> None:
    newton = lambda a: lambda x: 0.5 * (x + a / x)
    root = functools.partial(
        fixed_point, newton, x0=onp.ones(2), distance=lambda x, y: np.max(np.abs(x - y)), tol=1e-12
    )
    a = onp.array([2.0, 9.0])
    assert_allclose(root(a), a**0.5)
    assert_allclose(autograd.jacobian(root)(a), onp.diag(0.5 * a**-0.5))
    assert_allclose(autograd.hessian(lambda a: np.sum(root(a)))(a), onp.diag(-0.25 * a**-1.5), atol=1e-9)


def test_a_graph_that_would_be_kept_is_made_again() -> None:
    f = const_graph(lambda x, y, z: x * y + z, 2.0)
    assert (f(3.0, 1.0), f(4.0, 1.0)) == (7.0, 9.0)
    assert autograd.grad(f)(3.0, 1.0) == 2.0


def test_differential_equations_have_derivatives_by_all_arguments() -> None:
    peer("scipy")
    from scipy.integrate import odeint as plain

    from adjoint.autograd.scipy.integrate import odeint

    def slope(y: Any, t: Any, rate: Any, shift: Any) -> Any:
        return np.array([-rate * y[0] + shift, y[0] - y[1] * t])

    times = onp.array([0.0, 0.4, 1.0])
    y0 = onp.array([1.0, 0.5])
    assert_allclose(odeint(slope, y0, times, (0.5, 0.1)), plain(slope, y0, times, (0.5, 0.1)))
    f = lambda y0, rate, shift: odeint(slope, y0, times, (rate, shift))
    test_util.check_grads(f, (0, 1, 2), modes=["rev"], order=1)(y0, 0.5, 0.1)
    with pytest.raises(errors.ArgumentTypeError, match="Dfun"):
        autograd.grad(lambda y: np.sum(odeint(slope, y, times, (0.5, 0.1), Dfun=slope)))(y0)


def test_a_normal_distribution_in_a_plane_has_derivatives_by_x_and_the_mean() -> None:
    """Where the covariance has no inverse; off the plane the density is 0."""
    peer("scipy")
    import scipy.stats

    from adjoint.autograd.scipy.stats import multivariate_normal

    random = onp.random.default_rng(5)
    factor = random.normal(size=(4, 2))
    covariance, mean = factor @ factor.T, factor @ onp.ones(2)
    xs, along, step = random.normal(size=(3, 2)) @ factor.T, factor @ onp.array([1.0, -2.0]), 1e-5
    for name in ("logpdf", "pdf"):

        def plain(x: Any, name: str = name) -> Any:
            density = getattr(scipy.stats.multivariate_normal, name)
            return density(x, mean, covariance, allow_singular=True).sum()

        def f(x: Any, mean: Any, name: str = name) -> Any:
            return np.sum(getattr(multivariate_normal, name)(x, mean, covariance, allow_singular=True))

        value, (by_x, by_mean) = autograd.value_and_grad(f, (0, 1))(xs, mean)
        assert_allclose(value, plain(xs), rtol=1e-12)
        assert_allclose(by_mean, -by_x.sum(0), rtol=1e-12)
        assert_allclose((by_x @ along).sum(), (plain(xs + step * along) - plain(xs - step * along)) / (2 * step), 1e-6)
        off = xs + random.normal(size=4)
        value, by_x = autograd.value_and_grad(f)(off, mean)
        assert value == plain(off)
        assert not by_x.any()


def test_the_entropy_of_normal_vectors_by_their_covariance() -> None:
    peer("scipy")
    import scipy.stats

    from adjoint.autograd.scipy.stats import multivariate_normal

    slope = autograd.value_and_grad(multivariate_normal.entropy, 1)
    inverse = onp.linalg.inv(MATRIX)
    for given, full, expected in (
        (MATRIX, MATRIX, inverse),
        (onp.diag(MATRIX), onp.diag(onp.diag(MATRIX)), 1 / onp.diag(MATRIX)),
        (2.0, 2.0 * onp.eye(3), 1.5),
    ):
        value, gradient = slope(onp.zeros(3), given)
        assert_allclose(value, scipy.stats.multivariate_normal.entropy(onp.zeros(3), full), rtol=1e-12)
        assert_allclose(gradient, 0.5 * expected, rtol=1e-12)


def test_what_is_not_there_raises_by_name() -> None:
    peer("scipy")
    from adjoint.autograd.scipy import linalg, special, stats

    covariance = MATRIX
    for call, said in (
        (lambda x: stats.multivariate_normal.logpdf(X, X, x[0] * covariance, allow_singular=True), "the covariance"),
        (lambda x: stats.multivariate_normal.cdf(x, X, covariance), "VJP of cdf"),
        (lambda x: special.pbdv(1.0, x)[0], "VJP of pbdv"),
        (lambda x: linalg.circulant(x), "VJP of circulant"),
        (lambda x: linalg.solve(covariance, x, assume_a="pos"), "assume_a"),
        (lambda x: np.busday_count(x, x), "busday_count"),
    ):
        with pytest.raises((TypeError, NotImplementedError), match=said):
            autograd.grad(lambda x, call=call: np.sum(call(x)))(X)
    for module, name in ((np, "nothing"), (np.linalg, "nothing"), (np.fft, "nothing"), (special, "nothing")):
        with pytest.raises(AttributeError, match="nothing"):
            getattr(module, name)
    assert stats.expon.logpdf(1.0) == -1.0
    assert_allclose(autograd.grad(lambda x: np.sum(stats.expon.logpdf(x)))(abs(X)), -onp.ones(3))


# --- documented examples, written anew -----------------------------------------------------------


def test_the_hyperbolic_tangent_of_the_readme() -> None:
    def tanh(x: Any) -> Any:
        return (1.0 - np.exp(-2 * x)) / (1.0 + np.exp(-2 * x))

    slope = autograd.grad(tanh)
    assert_allclose(slope(1.0), 1 - onp.tanh(1.0) ** 2)
    x, f = onp.linspace(-7, 7, 20), tanh
    for order in range(1, 5):
        f = autograd.elementwise_grad(f)
        expected = ad.jet(lambda t: ad.tanh(t), (0.3,), ([1.0] + [0.0] * (order - 1),))[1][order - 1]
        assert_allclose(f(0.3), expected, rtol=1e-6)
    assert f(x).shape == (20,)


def test_a_logistic_regression_as_in_the_tutorial() -> None:
    inputs = onp.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
    targets = onp.array([True, True, False, True])

    def sigmoid(x: Any) -> Any:
        return 0.5 * (np.tanh(x / 2.0) + 1)

    def cost(weights: Any) -> Any:
        right = sigmoid(np.dot(inputs, weights))
        right = right * targets + (1 - right) * (1 - targets)
        return -np.sum(np.log(right))

    slope, weights = autograd.grad(cost), onp.zeros(3)
    before = cost(weights)
    for _ in range(100):
        weights -= slope(weights) * 0.1
    assert cost(weights) < 0.3 * before
    test_util.check_grads(cost, modes=["rev"])(weights)


def test_a_rule_as_in_the_tutorial() -> None:
    @autograd.primitive
    def logsumexp(x: Any) -> Any:
        largest = onp.max(x)
        return largest + onp.log(onp.sum(onp.exp(x - largest)))

    extend.defvjp(logsumexp, lambda ans, x: lambda g: np.full(x.shape, g) * np.exp(x - np.full(x.shape, ans)))
    y = onp.array([1.5, 6.7, 1e-10])
    f = lambda y: logsumexp(y**2)
    assert_allclose(autograd.grad(f)(y), 2 * y * onp.exp(y**2 - logsumexp(y**2)))
    test_util.check_grads(f, modes=["rev"])(y)


def test_warnings_are_the_only_ones() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        autograd.hessian(energy)(X)


def test_quick_grad_check_is_there_and_deprecated() -> None:
    from adjoint.autograd.util import quick_grad_check

    with pytest.warns(UserWarning, match="deprecated"):
        quick_grad_check(lambda x, y: x**2 + y, 1.0, (2.0,))
    doubled = extend.primitive(lambda x: x * 2)
    extend.defvjp(doubled, lambda ans, x: lambda g: g)  # which is wrong
    with pytest.warns(UserWarning, match="deprecated"), pytest.raises(AssertionError, match="check of"):
        quick_grad_check(doubled, 1.0)
