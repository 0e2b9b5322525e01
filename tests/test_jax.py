"""The leaf over JAX: settings, tracing, pytrees, devices. Transforms of the arrays of JAX and PyTorch."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import processes
import pytest
from conftest import peer
from numpy.testing import assert_allclose

import adjoint as ad
from adjoint import errors
from adjoint.primitives import TABLE

jax, torch = peer("jax"), peer("torch")
jnp = jax.numpy
pytestmark = pytest.mark.peers
LEVEL = ad.Autodiff(ad.JAX())


@pytest.fixture(autouse=True)
def _narrow() -> Iterator[None]:
    """JAX as it is without settings, whatever other tests of this process set."""
    with jax.enable_x64(False):
        yield


def python(source: str, **environment: str) -> str:
    """What a program prints in a process of its own."""
    done = processes.run([sys.executable, "-W", "error", "-c", source], env={**os.environ, **environment})
    return done.stdout


# --- names and devices ---


def test_names_mean_one_backend_each() -> None:
    assert ad.device("jax") is ad.JAX() is pickle.loads(pickle.dumps(ad.JAX()))
    cpu = ad.JAX("cpu")
    assert ad.device("jax:cpu") is ad.device("jax:cpu:0") is cpu is pickle.loads(pickle.dumps(cpu))
    assert repr(cpu) == "jax:cpu:0"
    assert ad.device("autodiff<jax:cpu:0>") is ad.Autodiff(cpu)
    for name in ("jax:cpu:77", "jax:nothing", "jax:cpu:x"):
        with pytest.raises(errors.DeviceError, match="no device"):
            ad.device(name)


def test_devices_and_sharding() -> None:
    """On four devices of the CPU: arrays stay where they are, gradients are sharded as their arguments are."""
    out = python(
        """
import jax, jax.numpy as jnp, numpy as np, adjoint as ad
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
parts = NamedSharding(Mesh(np.array(jax.devices()), ("d",)), P("d"))
x = jax.device_put(jnp.arange(24.0).reshape(8, 3), parts)
t = ad.asarray(x, device=ad.JAX())
assert t.native() is x
f = lambda w, x: ((x @ w) ** 2).sum()
w = jnp.ones(3)
g = jax.jit(ad.grad(f, (0, 1)))(w, x)
assert g[1].sharding.is_equivalent_to(parts, 2)
np.testing.assert_allclose(g[0], jax.grad(f)(w, x))
J = ad.Autodiff(ad.JAX())
p = jax.pmap(lambda a: (a * a).sum())(ad.asarray(np.arange(8.0, dtype="f4").reshape(4, 2), device=J))
assert p.tolist() == [1.0, 13.0, 41.0, 85.0]
s = jax.pmap(lambda a: jax.lax.psum(ad.grad(lambda v: (v * v).sum())(a), "i"), axis_name="i")(jnp.ones((4, 2)))
assert s.tolist() == [[8.0, 8.0]] * 4
third = ad.JAX("cpu:2")
for y in (ad.ones(2, device=third), ad.arange(3, device=third) * 2 + 1, ad.random.normal(2, device=third)):
    assert y.native().devices() == {jax.devices()[2]}
assert ad.asarray(jnp.ones(2), device=third).native().devices() == {jax.devices()[2]}
v = ad.tensor([1.0, 2.0], device=ad.Autodiff(third)).require_grad()
pulled = lambda v: (v * v).to_device("jax:cpu:1").sum().backward()[v]
for g in (pulled(v), jax.jit(pulled)(v)):
    assert (g.device, g.tolist(), g.native().devices()) == (third, [2.0, 4.0], {jax.devices()[2]})
print("done")
""",
        XLA_FLAGS="--xla_force_host_platform_device_count=4",
    )
    assert out == "done\n"


# --- 64 bits ---


def test_no_other_library_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("array_api_compat", "array_api_extra"):
        monkeypatch.setitem(sys.modules, other, None)
    x = ad.tensor([1.0, 2.0], device="numpy").to_device("jax:cpu:0")
    assert x.device.name == "jax:cpu:0"
    assert ad.vmap(ad.searchsorted, (0, None))(ad.stack([x, x]), x).tolist() == [[0, 1], [0, 1]]
    assert ad.pad(x, 1).tolist() == [0, 1, 2, 0]


def test_without_64_bits_integers_are_narrow_and_wide_floats_refused() -> None:
    B = ad.JAX()
    x = ad.tensor([3, 1, 2], device=B)
    assert x.dtype == x.argsort().dtype == ad.arange(3, dtype=ad.int64, device=B).dtype == ad.int32
    assert ad.zeros(2, dtype=ad.uint64, device=B).dtype == ad.uint32
    for make in (
        lambda: ad.zeros(2, dtype=ad.float64, device=B),
        lambda: ad.tensor(np.ones(2), device=B),
        lambda: x.astype(ad.complex128),
    ):
        with pytest.raises(errors.DtypeError, match="jax_enable_x64"):
            make()
    with pytest.raises(errors.RangeError, match="int32"):
        ad.tensor([2**40], device=B)


def test_the_setting_may_change_later() -> None:
    B = ad.JAX()
    for _ in range(2):  # answers are kept from the first round
        assert ad.arange(3, device=B).dtype == ad.ones(3, device=B).argmax().dtype == ad.int32
        with jax.enable_x64(True):
            assert ad.arange(3, device=B).dtype == ad.ones(3, device=B).argmax().dtype == ad.int64
            wide = ad.special.gammaln(ad.tensor(np.array([10.3]), device=B))
            assert_allclose(wide.numpy(), ad.special.gammaln(ad.tensor(np.array([10.3]))).numpy(), rtol=1e-14)
            assert ad.full(2, 1j, dtype=ad.complex128, device=B).dtype == ad.complex128


def test_python_numbers_fit_where_there_are_no_64_bits() -> None:
    w = jnp.asarray(3.0)
    assert ad.grad(lambda w, s: s * w**2)(w, 2.0) == 12.0
    assert ad.grad(lambda w: 5.0)(w) == 0.0
    x = ad.tensor([1.0, 2.0, 4.0], device=LEVEL)
    x[0] = 2.5
    x[1:] = [0.5, 0.25]
    assert x.tolist() == [2.5, 0.5, 0.25]
    assert ad.quantile(x, 0.5).item() == 0.5
    assert ad.random.poisson(x).dtype == ad.int32
    (t,) = ad.odeint(lambda y, t: -y, ad.ones(1, device=LEVEL), [0.0, 1.0])[1].tolist()
    assert abs(t - np.exp(-1)) < 1e-5


def test_special_functions_are_as_exact_without_64_bits() -> None:
    x = np.linspace(0.1, 20, 50, dtype="f4")
    for name, how in (("gammaln", {}), ("erfcx", {}), ("digamma", {})):
        found = jax.jit(ad.JAX()[TABLE[name]])(jnp.asarray(x), **how)
        assert_allclose(found, ad.NumPy()[TABLE[name]](x, **how), rtol=3e-7)


# --- functions compiled by JAX ---


def test_grad_of_jax_arrays_under_jit_is_jax_s() -> None:
    def loss(w: Any, x: Any, y: Any) -> Any:
        return ((x @ w - y) ** 2).sum()

    w, x, y = jnp.ones(3), jnp.arange(6.0).reshape(2, 3), jnp.asarray([1.0, -1.0])
    expected = jax.grad(loss)(w, x, y)
    for found in (ad.grad(loss)(w, x, y), jax.jit(lambda w, x, y: ad.grad(loss)(w, x, y))(w, x, y)):
        assert isinstance(found, jax.Array)
        assert_allclose(found, expected)
    assert_allclose(jax.jit(ad.hessian(loss))(w, x, y), jax.hessian(loss)(w, x, y))
    assert_allclose(jax.vmap(ad.grad(loss), (None, 0, 0))(w, x, y), jax.vmap(jax.grad(loss), (None, 0, 0))(w, x, y))
    assert_allclose(jax.grad(lambda w: (ad.grad(loss)(w, x, y) ** 2).sum())(w), 4 * x.T @ x @ (x.T @ (x @ w - y)) * 2)


def step(w: Any, x: Any, labels: Any) -> Any:
    hidden = ad.nn.relu(x @ w[0])
    loss = ad.nn.cross_entropy(hidden @ w[1], labels)
    grads = loss.backward()
    return [v.with_value(v.inner() - 0.1 * grads[v]) for v in w], loss.detach(), grads


def test_training_steps_compile_once_and_are_the_numpy_leaf_s() -> None:
    rng = np.random.default_rng(0)
    start = [rng.normal(size=shape).astype("f4") for shape in ((4, 8), (8, 3))]
    x, labels = rng.normal(size=(16, 4)).astype("f4"), rng.integers(0, 3, 16)
    traced = []

    @jax.jit
    def compiled(w: Any, x: Any, labels: Any) -> Any:
        traced.append(w)
        assert all(v.is_require_grad() for v in w)
        return step(w, x, labels)

    results = []
    for device, f in ((LEVEL, compiled), (ad.Autodiff(ad.NumPy()), step)):
        w = [ad.tensor(v, device=device).require_grad() for v in start]
        for _ in range(5):
            w, loss, grads = f(w, ad.tensor(x, device=device), ad.tensor(labels, device=device))
        assert all(v.is_require_grad() for v in w)
        assert not loss.is_tracked()
        assert [g.device for g in grads.values()] == [device.inner] * 2
        results.append([*w, loss, *(grads + grads).values()])
    assert len(traced) == 1
    for found, expected in zip(*results, strict=True):
        assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_a_tracked_result_does_not_leave_its_graph() -> None:
    w = ad.ones(2, device=LEVEL).require_grad()
    with pytest.raises(errors.TrackedError, match=r"detach\(\)"):
        jax.jit(lambda x: x * 2)(w)
    with pytest.raises(errors.TrackedError, match=r"detach\(\)"):
        jax.jit(lambda x: x)(w * 2)
    assert jax.jit(lambda x: (x * 2).detach())(w).tolist() == [2.0, 2.0]


def test_functions_of_jax_inside_of_transforms_are_refused() -> None:
    """Their derivatives would be lost."""
    for f in (jax.jit(lambda x: x.sum()), jnp.sin, lambda x: jax.lax.cond(True, lambda x: x, lambda x: -x, x)):
        with pytest.raises(errors.TrackedError, match=r"jax.jit\(ad.grad\(f\)\)"):
            ad.grad(f)(jnp.ones(()))


def test_derivatives_of_jax_through_functions_of_tensors() -> None:
    """JAX's own derivatives ask for an array, or take the tensor apart."""
    x = jnp.asarray([0.5, 1.0])
    f = lambda x: (ad.sin(x) * x).sum()
    expected = jax.grad(lambda x: (jnp.sin(x) * x).sum())(x)
    assert_allclose(jax.grad(lambda x: f(x).native())(x), expected, rtol=1e-6)
    assert_allclose(jax.grad(jax.checkpoint(lambda x: f(x).native()))(x), expected, rtol=1e-6)
    one = ad.ones((), device=ad.JAX())
    out, pull = jax.vjp(f, x)
    assert_allclose(pull(jax.tree.map(lambda _: one.native(), out))[0], expected, rtol=1e-6)
    assert_allclose(jax.jvp(f, (x,), (x,))[1].numpy(), (expected * x).sum(), rtol=1e-6)
    at = ad.asarray(x, device=LEVEL)
    found = jax.grad(lambda x: f(x).native())(at)
    assert (found.device, found.shape) == (LEVEL, (2,))
    assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_tensors_of_other_leaves_are_refused() -> None:
    with pytest.raises(errors.DeviceError, match="to_device"):
        jax.jit(lambda x: x)(ad.ones(2))


def test_trees_of_anything() -> None:
    """JAX puts shapes, numbers, None and bare objects where arrays were."""
    x, w = ad.ones(2, device=LEVEL), ad.ones(2, device=LEVEL).require_grad()
    for tensor in (x, w):
        leaves, structure = jax.tree.flatten(tensor)
        assert [type(leaf) for leaf in leaves] == [type(x.native())]
        for anything in (object(), None, 3, jax.ShapeDtypeStruct((2,), "float32"), jnp.ones((2,), jnp.bfloat16)):
            again = structure.unflatten([anything])
            assert again.native() is anything
            assert jax.tree.structure(again) == structure or anything is None
        assert structure.unflatten(leaves).tolist() == [1.0, 1.0]
    assert hash(jax.tree.structure(x)) == hash(jax.tree.structure(ad.zeros(2, device=LEVEL)))
    assert jax.tree.structure(x) != jax.tree.structure(w)
    shape = jax.eval_shape(lambda x: x @ x, x)
    assert (shape.shape, shape.dtype) == ((), ad.float32)
    grads = (w * w).sum().backward()
    assert jax.tree.map(lambda g: g * 2, grads)[w].tolist() == [4.0, 4.0]


def test_values_that_are_not_there_are_not_read() -> None:
    x = ad.ones(2, device=LEVEL)
    for read in (lambda x: x.numpy(), lambda x: x[0].item(), lambda x: bool(x[0] > 0), lambda x: np.asarray(x)):
        with pytest.raises(errors.TrackedError, match="JAX traces the tensor"):
            jax.jit(read)(x)
    seen = []
    jax.jit(lambda x: seen.append(repr(x)) or x)(x)
    assert "float32[2]" in seen[0]


def test_traced_arrays_are_of_jax_s_leaf_alone() -> None:
    x = jnp.ones(2)
    for read in (ad.asarray, ad.tensor, ad.from_dlpack):
        with pytest.raises(errors.TrackedError, match="device='jax'"):
            jax.jit(lambda x, read=read: read(x))(x)
        assert jax.jit(lambda x, read=read: read(x, device="jax"))(x).tolist() == [1, 1]


def test_shapes_that_depend_on_values_are_refused() -> None:
    x = ad.ones(2, device=LEVEL)

    def assigned(x: Any, value: Any) -> Any:
        y = x * 1
        y[x > 0] = value
        return y

    for read in (lambda x: x[x > 0], lambda x: assigned(x, x)):
        with pytest.raises(errors.UnsupportedPrimitiveError, match="jax cannot run the primitive 'nonzero'"):
            jax.jit(read)(x)
    assert x[x > 0].tolist() == [1.0, 1.0]
    assert jax.jit(lambda x: assigned(x, 3))(x).tolist() == [3.0, 3.0]
    assert jax.jit(lambda x: ad.grad(lambda x: assigned(x, x[0]).sum())(x))(x).tolist() == [2.0, 0.0]


@pytest.mark.parametrize("wrap", [jax.jit, lambda f: lambda x: jax.lax.scan(lambda c, _: (c, f(c)), x, length=1)[1][0]])
def test_constants_have_values_while_jax_traces(wrap: Any) -> None:
    """What a compiled function closes over, or makes of Python's and NumPy's numbers."""
    x = ad.tensor([[1.0, 2.0], [3.0, 5.0]], device=LEVEL)
    places, mask = ad.tensor([1, 0], device=LEVEL), ad.tensor([True, False], device=LEVEL)
    matrix = ad.tensor([[2.0, 0.0], [1.0, 3.0]], device=LEVEL)

    def assigned(x: Any) -> Any:
        y = x * 1
        y[places] = x
        return y

    for f in (
        lambda x: x[places], lambda x: x[-places], lambda x: x[mask], lambda x: x[np.array([False, True])],
        lambda x: ad.take(x, places, axis=1), assigned, lambda x: ad.nn.cross_entropy(x, places),
        lambda x: ad.nn.embedding(places, x), lambda x: x @ ad.linalg.inv(matrix), lambda x: ad.bincount(places) * x,
        lambda x: x @ ad.linalg.cholesky(matrix), lambda x: ad.cond(np.bool_(True), ad.sin, ad.cos, x),
        lambda x: ad.grad(lambda x: (x[places] @ ad.linalg.inv(matrix)).sum())(x),
    ):  # fmt: skip
        assert_allclose(wrap(f)(x).numpy(), f(x).numpy(), rtol=1e-6)
    for wrong in (lambda x: x[[0, 7]], lambda x: ad.nn.cross_entropy(x, np.array([0, 7]))):
        with pytest.raises(errors.OutOfRangeError, match="7"):
            wrap(wrong)(x)


def test_what_is_outside_is_an_error_where_values_are_there_and_nan_where_not() -> None:
    x, places = ad.ones(3, device=LEVEL), ad.tensor([0, 7], device=LEVEL)
    with pytest.raises(errors.OutOfRangeError):
        x[places]
    with pytest.raises(IndexError, match="index 7"):
        ad.JAX().index(x.native(), places.native(), key=(ad.primitives.indexing.ARRAY,))
    assert np.isnan(jax.jit(lambda x, i: x[i])(x, places).numpy()).tolist() == [False, True]


def safe(x: Any) -> Any:
    return ad.cond(x > 0, ad.sqrt, ad.zeros_like, x)


def chosen(w: Any, x: Any, k: Any) -> Any:
    branches = [lambda w, x: (w * x).sum(), lambda w, x: (ad.sin(w) * x * w.sum()).sum(), lambda w, x: (w**3).sum()]
    return ad.switch(k, branches, w, x) ** 2


@pytest.mark.parametrize(
    "of",
    [
        lambda f: f,
        ad.grad,
        lambda f: ad.grad(ad.grad(f)) if f is safe else ad.hessian(f),
        lambda f: ad.jacobian(f, mode="forward"),
        lambda f: lambda v, *rest: ad.hvp(lambda v: f(v, *rest), (v,), (v,)),
        lambda f: lambda v, *rest: ad.linearize(lambda v: f(v, *rest), v)[1](v),
        lambda f: ad.grad(lambda *xs: ad.checkpoint(f)(*xs)),
        lambda f: lambda v, *rest: ad.jet(lambda v: f(v, *rest), (v,), ((v, v),))[1][1],
    ],
    ids="value grad hessian forward hvp linearize checkpoint jet".split(),
)
def test_the_compiled_function_chooses(of: Any) -> None:
    """As Python does where there are values: no nan of the other branch either."""
    for v in (4.0, -1.0):
        assert_allclose(jax.jit(of(safe))(jnp.float32(v)), of(safe)(jnp.float32(v)), rtol=1e-6)
    w, x = jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray([0.5, -1.0, 2.0])
    for k in (-1, 1, 7):
        assert_allclose(jax.jit(of(chosen))(w, x, k), of(chosen)(w, x, k), rtol=1e-5, atol=1e-6)


def test_the_compiled_function_chooses_for_batches_loops_and_closures() -> None:
    w = jnp.asarray([1.0, 2.0, 3.0])
    shared = lambda w, k: ad.vmap(ad.grad(lambda x: ad.cond(k > 0, ad.sin, ad.cos, x)))(w)
    assert_allclose(jax.jit(shared)(w, 1), jnp.cos(w))
    assert_allclose(jax.vmap(ad.grad(safe))(w - 2), [0, 0, 0.5])
    power = lambda c, r: (ad.cond(r > 1.5, lambda c: c * r, ad.sin, c), None)
    for every in (None, 2):
        g = ad.grad(lambda w, every=every: ad.scan(power, jnp.float32(0.5), w, checkpoint_every=every)[0])
        assert_allclose(jax.jit(g)(w), g(w), rtol=1e-6)

    def closed(w: Any, k: Any) -> Any:
        total = w.sum()
        inner = lambda: ad.cond(total > 100, lambda: total, lambda: (w * total).sum())
        return ad.cond(k > 0, inner, lambda: (w**3).sum()).backward()[w]

    at = ad.asarray(w, device=LEVEL).require_grad()
    for k in (1, -1):
        k = ad.tensor(k, device=LEVEL)
        assert_allclose(jax.jit(closed)(at, k).numpy(), closed(at, k).numpy())
    drawn = ad.grad(lambda x: ad.cond(x > 0, lambda x: x * ad.random.normal(device=ad.JAX()), lambda x: x, x))
    ad.JAX().seed(1)
    found = jax.jit(drawn)(w[0])
    ad.JAX().seed(1)
    assert found == drawn(w[0])


def test_examples_that_choose_differently() -> None:
    w = jnp.asarray([1.0, -2.0, 0.0])
    for f in (ad.vmap(safe), ad.vmap(ad.grad(safe)), ad.grad(lambda w: ad.vmap(safe)(w).sum())):
        np.testing.assert_allclose(jax.jit(f)(w), f(w), rtol=1e-6)


def test_choices_that_the_compiled_function_cannot_make() -> None:
    w = jnp.asarray([1.0, 2.0, 3.0])
    for wrong, error, message in (
        (lambda x: ad.cond(x.sum() > 0, lambda x: x, lambda x: x[:1], x), errors.ShapeError, "of one branch"),
        (lambda x: ad.cond(x.sum() > 0, lambda x: (x,), lambda x: x, x), errors.ArgumentError, "structure"),
        (lambda x: ad.cond(x.sum(), ad.sin, ad.cos, x), errors.DtypeError, "boolean"),
        (lambda x: ad.odeint(lambda y, t: -y, x, [0.0, 1.0]), errors.TrackedError, "odeint asks for the values"),
    ):
        with pytest.raises(error, match=message):
            jax.jit(wrong)(w)

    class Held:
        w = ad.ones(3, device=LEVEL).require_grad()

    with pytest.raises(errors.TrackedError, match="has to be an operand"):
        jax.jit(lambda x: ad.cond(x.sum() > 0, lambda: Held.w.sum(), lambda: Held.w.max()).backward()[Held.w])(w)
    strong = ad.ones(3, device=ad.Autodiff(ad.JAX(), strong_zero=True)).require_grad()
    with pytest.raises(errors.TrackedError, match="strong zeros"):
        jax.jit(lambda x: ad.cond(x.sum() > 0, ad.sum, ad.max, x).detach())(strong)


def test_choices_and_loops_are_as_without_a_compiler() -> None:
    x, k, ones = jnp.asarray([0.3, 1.7, 2.2]), jnp.arange(3), jnp.ones(3)

    def masked(x: Any) -> Any:
        mask = x > 1
        return ad.cond(x.sum() > 1, lambda x: ad.where(mask, x * x, x), lambda x: x, x).sum()

    def twice(x: Any) -> Any:
        x = ad.cond(x.sum() > 1, ad.sin, ad.cos, x)
        return ad.cond(x.sum() > 1, ad.exp, ad.tanh, x).sum()

    def steps(n: Any, x: Any) -> Any:
        return ad.vmap(lambda x: ad.fori_loop(0, n, lambda i, c: ad.cond(i < 2, ad.sin, ad.cos, c), x))(x)

    def counted(a: Any) -> Any:
        return ad.while_loop(lambda c: c * c < a, lambda c: c + 1.0, a.detach() * 0) * a

    double = ad.vmap(lambda k, x: ad.while_loop(lambda c: c < 100.0, lambda c: c * (k + 2), x))
    for f, *args in (
        (ad.grad(masked), x),
        (ad.grad(twice), x),
        (ad.hessian(twice), x),
        (ad.jacobian(twice, mode="forward"), x),
        (steps, 3, x),
        (ad.grad(counted), jnp.float32(9.0)),
        (double, k, ones),
        (lambda p, k, x: ad.vmap(lambda k, x: ad.cond(p > 0, lambda x: x * k, lambda x: x, x))(k, x), 2.0, k, ones),
        (lambda x: ad.cond(x[0] > 0, lambda x: 2 * x, lambda x: 0, x[1]), x),
        (lambda x: ad.cond(x[0] > 0, lambda x: x, lambda x: x > 0, x), x),
        (lambda x: ad.cond(x[0] > 0, lambda x: 2 * x, lambda x: 0, x[1].astype(ad.float16)), x),
    ):
        found, expected = jax.jit(f)(*args), f(*args)
        assert found.dtype == expected.dtype
        assert_allclose(found, expected, rtol=1e-6)


def test_labels_of_any_width_are_looked_at_where_they_are_constants() -> None:
    logits = jnp.asarray([[0.1, 0.7, -0.3], [1.0, 0.2, 0.4], [0.3, -0.5, 0.6], [0.2, 0.9, 0.1]])
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        g = ad.grad(lambda x, dtype=dtype: ad.nn.cross_entropy(x, np.array([0, -100, 1, 1], dtype)))
        assert_allclose(jax.jit(g)(logits), g(logits), rtol=1e-6)
        with pytest.raises(errors.OutOfRangeError):
            jax.jit(lambda x, dtype=dtype: ad.asarray(x, device="jax")[np.array([0, 7], dtype)])(logits)


def test_donated_arrays_were_copied() -> None:
    array = jnp.ones(3)
    copied = ad.tensor(array, device="jax")
    jax.jit(lambda x: x + 1, donate_argnums=0)(array)
    assert copied.tolist() == [1.0, 1.0, 1.0]


def square_root(a: Any, *, of: Any = ad, loop: Any = ad.while_loop) -> Any:
    """Newton's way, and the number of steps."""
    step = lambda c: (0.5 * (c[0] + a / c[0]), c[1] + 1)
    return loop(lambda c: of.abs(c[0] * c[0] - a) > 1e-6 * a, step, (a, 0))


def horner(n: Any, x: Any, *, loop: Any = ad.fori_loop) -> Any:
    return loop(0, n, lambda i, c: c * x + i, 1.0)


def test_the_compiled_function_loops_as_long_as_it_has_to() -> None:
    theirs = lambda a: square_root(a, of=jnp, loop=jax.lax.while_loop)
    ours, first = lambda a: square_root(a)[0], lambda a: theirs(a)[0]
    a, many = jnp.asarray(7.0), jnp.asarray([1.0, 7.0, 1e6])
    for mine, expected, at in (
        (square_root, theirs, a),
        (lambda a: ad.jvp(ours, (a,), (a,)), lambda a: jax.jvp(first, (a,), (a,)), a),
        (ad.jacobian(ours), jax.jacfwd(first), a),
        (ad.jacobian(ad.jacobian(ours)), jax.jacfwd(jax.jacfwd(first)), a),
        (ad.vmap(square_root), jax.vmap(theirs), many),
        (ad.vmap(ad.jacobian(ours)), jax.vmap(jax.jacfwd(first)), many),
        (lambda a: ad.jvp(ad.vmap(ours), (a,), (a,)), lambda a: jax.jvp(jax.vmap(first), (a,), (a,)), many),
    ):
        jax.tree.map(lambda x, y: assert_allclose(x, y, rtol=1e-6), jax.jit(mine)(at), expected(at))
    loop = lambda n, x: horner(n, x, loop=jax.lax.fori_loop)
    counts, xs = jnp.asarray([0, 3, 5, -2]), jnp.asarray([1.0, 2.0, 3.0, 4.0])
    assert_allclose(jax.jit(horner)(5, a), loop(5, a))
    assert_allclose(
        jax.jit(lambda n, x: ad.jvp(lambda x: horner(n, x), (x,), (x,)))(5, a)[1], (5 * a**4 + 3 * a**2 + 4 * a + 3) * a
    )
    assert_allclose(jax.jit(ad.vmap(horner))(counts, xs), jax.vmap(loop)(counts, xs))
    tracked = jax.jit(lambda x: ad.while_loop(lambda c: c.sum() < 100, lambda c: 2 * c, x))
    assert tracked(ad.ones(3, device=LEVEL)).tolist() == [64, 64, 64]


def _writing(outside: Any, x: Any) -> Any:
    def step(c: Any) -> Any:
        outside[0] = c
        return c * 2

    return ad.while_loop(lambda c: c < x, step, x * 0 + 1)


def test_loops_that_the_compiled_function_cannot_run() -> None:
    draw = lambda c: c + ad.random.uniform(device=ad.JAX())
    for wrong, error, message in (
        (ad.grad(lambda x: square_root(x)[0]), errors.ForwardOnlyError, "while_loop"),
        (lambda x: ad.grad(lambda y: horner(x.astype(int), y))(x), errors.ForwardOnlyError, "fori_loop"),
        (lambda x: ad.while_loop(lambda c: c < x, draw, x), errors.TrackedError, "draws random numbers"),
        (lambda x: ad.while_loop(lambda c: c < x, lambda c: c > 0, x), errors.DtypeError, "dtypes stay"),
        (lambda x: ad.while_loop(lambda c: c < x, lambda c: ad.stack([c, c]), x), errors.ShapeError, "shapes stay"),
        (lambda x: ad.while_loop(lambda c: c, lambda c: c, x), errors.DtypeError, "boolean scalar"),
        (lambda x: _writing(ad.zeros(2, device=ad.JAX()), x), errors.TrackedError, "would be lost"),
    ):
        with pytest.raises(error, match=message):
            jax.jit(wrong)(jnp.asarray(2.0))


def test_random_numbers_are_constants_of_a_compiled_function() -> None:
    B = ad.JAX()
    B.seed(3)
    drawn = jax.jit(lambda x: x + ad.random.normal(2, device=B))
    x = ad.zeros(2, device=B)
    first, again = drawn(x), drawn(x)
    assert first.tolist() == again.tolist()
    ad.NumPy().seed(3)
    assert first.tolist() == ad.random.normal(2, device=ad.NumPy()).tolist()
    rates = ad.tensor([1.0, 50.0], device=B)
    counts = jax.jit(lambda r: ad.random.poisson(r))(rates)  # by a parameter that is traced: when it runs
    B.seed(3)
    ad.NumPy().seed(3)
    key = (3, 1)
    assert counts.tolist() == ad.NumPy().random_poisson(rates.numpy(), key=key, shape=(2,), dtype=ad.int32).tolist()


def test_examples_of_a_compiled_choice_draw_their_own_numbers() -> None:
    def drawn(go: Any, a: Any) -> Any:
        ad.JAX().seed(3)
        noisy = lambda a, b: a * b * ad.random.normal()
        return ad.vmap(lambda b: ad.cond(go, noisy, ad.add, a, b), randomness="split")(jnp.ones(3))

    go, a = jnp.asarray(True), jnp.asarray(0.5)
    found = jax.jit(drawn)(go, a)
    assert_allclose(found, drawn(go, a), rtol=1e-6)
    assert len(set(found.tolist())) == 3
    slope = ad.grad(lambda a: drawn(go, a).sum())
    assert_allclose(jax.jit(slope)(a), found.sum() / 0.5, rtol=1e-6)
    assert_allclose(jax.jit(lambda go: ad.grad(lambda a: drawn(go, a).sum())(a))(go), found.sum() / 0.5, rtol=1e-6)


def test_exponents_of_subnormal_numbers() -> None:
    with jax.enable_x64(True):
        for kind in "efd":
            facts = np.finfo(kind)
            x = np.asarray([1, 0.75, -3, 0, np.inf, np.nan, facts.smallest_subnormal, facts.tiny / 3, facts.max], kind)
            found = jax.jit(ad.JAX().binary_exponent)(jnp.asarray(x))
            np.testing.assert_array_equal(found, ad.NumPy().binary_exponent(x))


# --- arrays of other libraries ---


@pytest.fixture(params=["jax", "torch"])
def array(request: pytest.FixtureRequest) -> Any:
    return jnp.asarray if request.param == "jax" else torch.tensor


def test_transforms_give_the_arrays_that_they_are_given(array: Any) -> None:
    x, kind = array([1.0, 2.0, 3.0]), type(array([1.0]))
    cube = lambda x: x**3
    own = ad.custom_jvp(cube)
    own.defjvp(lambda primals, tangents: (cube(primals[0]), 0 * tangents[0]))
    results = [
        (ad.grad(lambda x: cube(x).sum())(x), [3, 12, 27]),
        (ad.grad(lambda p: cube(p["w"]).sum())({"w": x})["w"], [3, 12, 27]),
        (ad.value_and_grad(lambda x: cube(x).sum())(x)[0], 36),
        (ad.jacobian(cube)(x), np.diag([3, 12, 27])),
        (ad.vmap(cube)(x), [1, 8, 27]),
        (ad.hvp(lambda x: cube(x).sum(), (x,), (x,)), [6, 24, 54]),
        (ad.jvp(cube, (x,), (x,))[1], [3, 24, 81]),
        (ad.vjp(cube, x)[1](x)[0], [3, 24, 81]),
        (ad.linearize(cube, x)[1](x), [3, 24, 81]),
        (ad.linear_transpose(lambda x: 2 * x, x)(x)[0], [2, 4, 6]),
        (ad.scan(lambda c, v: (c + v, c), x[0], x)[1], [1, 2, 4]),
        (ad.checkpoint(cube)(x), [1, 8, 27]),
        (own(x), [1, 8, 27]),
        (ad.implicit.root(lambda z, a: z * z - a, x, x * x), [1, 2, 3]),
        (ad.odeint(lambda y, t: 0 * y, x, [0.0, 1.0])[1], [1, 2, 3]),
        (ad.grad(lambda x, y: (x * y).sum())(x, np.ones(3, "f4")), [1, 1, 1]),
        (ad.grad(lambda y: (x * y * ad.sin(x * 0) + x @ y + y[array([0, 1])].sum()).sum())(x), [6, 9, 9]),
    ]
    for found, expected in results:
        assert isinstance(found, kind)
        assert_allclose(np.asarray(found), expected, rtol=1e-6)


def test_beside_tensors_they_are_constants(array: Any) -> None:
    x = array([1.0, 2.0])
    device = ad.Autodiff(ad.devices.leaf_of(x))
    w = ad.ones(2, device=device).require_grad()
    g = ad.grad(lambda w, x: (w * x).sum())(w, x)
    assert isinstance(g, ad.Tensor)
    assert g.tolist() == [1.0, 2.0]
    for product in (w * x, x * w, w @ x, x @ w):
        assert product.is_tracked()
    assert (ad.exp(x) * 0).device.leaf is device.leaf


def test_what_is_kept_is_not_written_to_by_the_caller() -> None:
    x = torch.tensor([1.0, 2.0])
    _, pullback = ad.vjp(lambda x: x * x, x)
    x.zero_()
    assert pullback(torch.ones(2))[0].tolist() == [2.0, 4.0]


def test_native_arrays_and_dlpack() -> None:
    x = ad.tensor([1.0, 2.0], device=LEVEL).require_grad()
    assert isinstance(x.native(), jax.Array)
    assert isinstance(ad.ones(2, device="torch").native(), torch.Tensor)
    view = ad.ones(2).native()
    assert type(view) is np.ndarray
    assert not view.flags.writeable
    with pytest.raises(errors.TrackedError):
        torch.from_dlpack(x)
    for given in (x.detach(), ad.tensor([1.0, 2.0], device="torch"), ad.tensor([1.0, 2.0])):
        for take in (torch.from_dlpack, np.from_dlpack, jnp.from_dlpack):
            assert take(given).tolist() == [1.0, 2.0]
        assert given.__dlpack_device__() == (1, 0)
    source = ad.tensor([1.0, 2.0], device="torch")
    torch.from_dlpack(source).zero_()  # a copy
    assert source.tolist() == [1.0, 2.0]
    with pytest.raises(errors.TrackedError, match="vmap"):
        ad.vmap(lambda x: x.native() and x)(np.ones(2))
