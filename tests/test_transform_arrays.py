"""Arrays that go into transforms and come out: dtypes, devices, memory; signatures, and options of levels."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import numpy as np
import pytest
from with_jax import XS, X, agree, cplx, expected, flat, jax, jnp, real

import adjoint as ad


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_derivatives_have_the_dtype_of_what_they_are_taken_by(dtype: str) -> None:
    for shape in ((), (3,), (0, 2), (2, 1)):
        x = (cplx(*shape) if "c" in dtype else real(*shape)).astype(dtype)
        kind = np.ndarray if shape else np.generic
        f: Any = lambda x: (x * x.conj()).real.sum() if "c" in dtype else (x * x).sum()
        value, gradient = ad.value_and_grad(f)(x)
        assert isinstance(gradient, kind)
        assert (gradient.dtype, gradient.shape) == (dtype, shape)
        assert value.dtype == np.abs(x).dtype
        np.testing.assert_allclose(gradient, 2 * x, rtol=1e-3 if dtype == "float16" else 1e-6)
        moved = ad.jvp(ad.exp, (x,), (x,))[1]
        assert isinstance(moved, kind)
        assert (moved.dtype, moved.shape) == (dtype, shape)
        (pulled,) = ad.vjp(ad.exp, x)[1](x)
        assert (pulled.dtype, pulled.shape) == (dtype, shape)
        assert ad.linearize(ad.exp, x)[1](x).dtype == dtype
        hessian = ad.hessian(f)(x) if "f" in dtype else None
        assert hessian is None or (hessian.dtype, hessian.shape) == (dtype, shape * 2)


def test_python_numbers_are_64_bits_wide() -> None:
    for found in (
        ad.grad(lambda x: x**2)(0.1),
        ad.value_and_grad(lambda x: 0.1)(0.1)[0],
        ad.jvp(lambda x: 0.1, (1.0,), (1.0,))[0],
        ad.vjp(lambda x: 0.1, 1.0)[0],
        ad.linearize(lambda x: 0.1, 1.0)[0],
        ad.vmap(lambda x: 0.1)(np.zeros(1))[0],
        ad.jvp(lambda x: ad.vjp(lambda y: 0.1, x)[0] * x, (1.0,), (1.0,))[1],
    ):
        assert isinstance(found, np.float64)
        assert found in (0.2, 0.1)
    assert isinstance(ad.grad(lambda z: (z * z).real)(1 + 2j), np.complex128)


def test_tensors_give_tensors_of_their_device() -> None:
    for name in ("numpy", "reference", "autodiff<numpy>", "autodiff<autodiff<numpy>>"):
        device = ad.device(name)
        x = ad.asarray(X, device=device)
        for out in (
            ad.grad(lambda x: (x**2).sum())(x),
            ad.value_and_grad(lambda x: (1.5, x), has_aux=True)(x),
            ad.jvp(lambda x: (x, 2.5), (x,), (X,)),
            ad.jvp(lambda x: x, (X,), (x,)),
            ad.vjp(lambda x: (x * x, 2.5), x)[0],
            ad.vjp(lambda x: x * x, x)[1](X),
            ad.linearize(lambda x: x * x, x)[1](X),
            ad.jacobian(lambda x: x)(x),
            ad.hessian(lambda x: (x**3).sum())(x),
            ad.hvp(lambda x: (x**3).sum(), (X,), (x,)),
            ad.vmap(lambda x: (x, 2.5))(x),
            ad.vmap(lambda x, y: x * y, (0, None))(X, x),
            ad.grad(lambda x, y: (x * y).sum())(X, x),
            ad.grad(lambda x, *, y: (x * y).sum(), "y")(X, y=x),
        ):
            for leaf in flat(out):
                assert isinstance(leaf, ad.Tensor)
                assert leaf.device is device


def test_numpy_arguments_are_computed_on_the_leaf_of_the_default_device() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(x.device.leaf)
        return x.sum() + ad.ones(2).sum()

    for name in ("numpy", "reference", "autodiff<reference>"):
        with ad.use_device(name):
            agree(ad.grad(f)(X), np.ones(3))
        assert seen[-1] is ad.device(name).leaf


def test_answers_are_the_callers_own() -> None:
    """Writable, and of memory that neither arguments nor other answers have."""
    x, y, t = real(2, 3), real(2, 3), real(2, 3)
    constant = real(2, 3)

    def same(x: Any, y: Any) -> Any:
        return x, y, x + 0 * y, constant

    def total(x: Any, y: Any) -> Any:
        return (x + y).sum(), (x, y, constant)

    answers = {
        "grad": lambda: ad.grad(total, (0, 1), has_aux=True)(x, y)[0],
        "aux": lambda: ad.value_and_grad(total, (0, 1), has_aux=True)(x, y)[0][1][:2],
        "vjp": lambda: ad.vjp(same, x, y)[0],
        "pullback": lambda: ad.vjp(same, x, y)[1]((t, t, t, t)),
        "jvp": lambda: ad.jvp(same, (x, y), (t, t)),
        "linearize": lambda: ad.linearize(same, x, y)[0],
        "derivative": lambda: ad.linearize(same, x, y)[1](t, t),
        "transpose": lambda: ad.linear_transpose(lambda x: x, x)(t),
        "jacobian": lambda: ad.jacobian(same, (0, 1), "reverse")(x, y),
        "columns": lambda: ad.jacobian(same, (0, 1), "forward")(x, y),
        "hvp": lambda: ad.hvp(lambda x, y: (x * y).sum(), (x, y), (t, t)),
        "hessian": lambda: ad.hessian(lambda x, y: (x * y).sum(), (0, 1))(x, y),
        "vmap": lambda: ad.vmap(same)(x, y),
        "shared": lambda: ad.vmap(lambda x, y: (x, y, y), (0, None), (0, None, None))(x, y),
    }
    for name, answer in answers.items():
        given = [x, y, t, constant]
        for leaf in flat(answer()):
            if isinstance(leaf, np.ndarray):
                assert leaf.flags.writeable, name
                assert not any(np.shares_memory(leaf, other) for other in given), name
                given.append(leaf)


def test_later_writes_to_the_arguments_change_nothing() -> None:
    x, y, c = real(3), real(3), real(3)
    _, pullback = ad.vjp(lambda x, y: x * x * y * c, x, y)
    _, along = ad.linearize(lambda x, y: x * x * y * c, x, y)
    ones = np.ones(3)
    before = pullback(ones), along(ones, ones)
    x[:], y[:], c[:] = 100, 100, 100
    agree((pullback(ones), along(ones, ones)), before)


def test_a_function_may_assign_to_its_argument() -> None:
    def f(x: Any) -> Any:
        x += 1.0
        x[0] = 2.0 * x[1]
        return (x * x).sum()

    def theirs(x: Any) -> Any:
        x = x + 1.0
        x = x.at[0].set(2.0 * x[1])
        return (x * x).sum()

    gradient = expected(jax.grad, theirs, (X,))
    agree(ad.grad(f)(X), gradient)
    agree(ad.hessian(f)(X), expected(jax.hessian, theirs, (X,)))
    agree(ad.jvp(f, (X,), (X,)), (np.asarray(theirs(jnp.asarray(X))), np.asarray(gradient @ X)))
    agree(ad.vmap(ad.grad(f))(XS), expected(lambda f: jax.vmap(jax.grad(f)), theirs, (XS,)))
    agree(ad.vmap(f)(XS), expected(jax.vmap, theirs, (XS,)))
    for mode in ("reverse", "forward"):
        agree(ad.jacobian(f, mode=mode)(X), gradient)
    x = ad.asarray(X, copy=True)
    ad.grad(f)(x)
    agree(x.numpy(), X)


def test_arrays_of_another_byte_order() -> None:
    x = np.array([1.0, 2.0], ">f8")
    for found in (
        ad.grad(lambda x: (x**2).sum())(x),
        ad.vmap(lambda x: 2 * x)(x),
        ad.jvp(lambda x: x * x, (x,), (x,))[0],
    ):
        assert found.dtype == np.dtype("<f8")
        assert found.dtype.isnative
    doubled = ad.custom_vjp(lambda x: 2 * x)
    doubled.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))
    np.testing.assert_array_equal(ad.grad(lambda x: doubled(x).sum())(x), [2.0, 2.0])
    assert ad.cond(True, lambda x: x, ad.sin, x).dtype.isnative


def test_signatures_are_those_of_jax() -> None:
    """Positions of parameters, and the names of those that are given by name; the function itself is f here."""
    for name in ("grad", "value_and_grad", "hessian", "jvp", "vjp", "linearize", "linear_transpose", "vmap"):
        _same_parameters(getattr(ad, name), getattr(jax, name), skip=1)
    for name in ("cond", "switch", "while_loop", "fori_loop", "map"):
        _same_parameters(getattr(ad, name), getattr(jax.lax, name))
    for name in ("custom_vjp", "custom_jvp"):
        _same_parameters(getattr(ad, name), getattr(jax, name), skip=1)


def _same_parameters(mine: Any, theirs: Any, skip: int = 0) -> None:
    ours, jaxs = (list(inspect.signature(f).parameters.values())[skip:] for f in (mine, theirs))
    for p in ours:
        if p.name in ("randomness", "max_steps"):
            continue
        (twin,) = [q for q in jaxs if q.name == p.name]
        if p.kind is not p.KEYWORD_ONLY:
            assert (p.kind, ours.index(p)) == (twin.kind, jaxs.index(twin)), (mine.__name__, p.name)


def test_levels_have_the_options_of_the_device() -> None:
    """Strong zeros and checkpointing are the user's choice, and a transform's own level makes it too."""

    def f(x: Any) -> Any:
        return ad.where(x > 0, ad.sqrt(x), 0.0).sum()

    x = np.array([0.0, 4.0])
    assert np.isnan(ad.grad(f)(x)[0])
    strong = ad.Autodiff(ad.NumPy(), strong_zero=True)
    with ad.use_device(strong):
        np.testing.assert_array_equal(ad.grad(f)(x), [0, 0.25])
        np.testing.assert_array_equal(ad.vjp(f, x)[1](1.0)[0], [0, 0.25])
        np.testing.assert_array_equal(ad.jacobian(f, mode="reverse")(x), [0, 0.25])
        np.testing.assert_array_equal(ad.vmap(ad.grad(f))(x[None]), [[0, 0.25]])
    given = ad.tensor(x, device=strong)
    np.testing.assert_array_equal(ad.grad(f)(given).numpy(), [0, 0.25])

    def levels(x: Any) -> Any:
        seen.append(x.device.checkpointing)
        return (x * x).sum()

    seen: list[Any] = []
    ad.grad(levels)(x)
    with ad.use_device(ad.Autodiff(ad.NumPy(), checkpointing="balanced")):
        ad.grad(levels)(x)
        ad.hessian(levels)(x)
    assert seen[:2] == [None, "balanced"]
    assert set(seen[1:]) == {"balanced"}


@pytest.mark.parametrize("convert", [math.sin, float, int, complex, lambda x: x * float(x)])
def test_numbers_of_python_are_not_made_of_what_is_tracked(convert: Any) -> None:
    """They would be constants, and the derivative zero: nobody would see."""
    for derive in (
        ad.grad(convert),
        ad.jacobian(convert),
        ad.hessian(convert),
        lambda x: ad.jvp(convert, (x,), (1.0,)),
        lambda x: convert(ad.tensor(x).require_grad()),
        lambda x: convert(ad.tensor(x).require_grad() * 2),
        lambda x: ad.vmap(ad.grad(convert))(np.full(2, x)),
    ):
        with pytest.raises(ad.errors.TrackedError, match=r"^\.item\(\) .* \w+\(x\) would take .* ad.stack .* ad.sin"):
            derive(0.5)
    assert ad.grad(lambda x: x * float(ad.stop_gradient(x)))(2.0) == 2.0
    assert ad.grad(lambda x: x * ad.stop_gradient(x).item())(2.0) == 2.0
    w = ad.tensor(0.5).require_grad()
    assert (w * 2).item() == 1.0
    assert w < 1
    assert bool(w)
    assert f"{w:.2f} {w * 2:.1e}" == "0.50 1.0e+00"
    n = np.zeros(2)
    with pytest.raises(ValueError, match="setting an array element") as caught:  # NumPy's words, ours are the cause
        n[0] = w
    assert isinstance(caught.value.__cause__, ad.errors.TrackedError)


READERS: dict[str, Any] = {
    "item()": lambda x: x.item(),
    "numpy()": lambda x: x.numpy(),
    "tolist()": lambda x: x.tolist(),
    "native()": lambda x: x.native(),
    "compute()": lambda x: x.compute(),
    "compute() ": lambda x: ad.compute([x])[0],
}


@pytest.mark.parametrize("read", READERS)
def test_values_are_read_but_of_what_a_running_transform_follows(read: str) -> None:
    take = READERS[read]
    w = ad.tensor(3.0).require_grad()
    assert take(w) == 3
    assert take(w * 2) == 6
    assert ad.grad(lambda x: x * float(take(w)))(2.0) == 3  # the transform follows x alone
    follows = {
        "grad": lambda f: ad.grad(f)(2.0),
        "jvp": lambda f: ad.jvp(f, (2.0,), (1.0,)),
        "jacobian": lambda f: ad.jacobian(f, mode="forward")(2.0),
        "jet": lambda f: ad.jet(f, (2.0,), ((1.0,),)),
        "of a leaf": lambda f: ad.grad(lambda x: f(x) * w)(w),
        "within": lambda f: ad.grad(lambda x: ad.vmap(lambda y: f(x) * y)(np.ones(2)).sum())(2.0),
    }
    for name, run in follows.items():
        with pytest.raises(ad.errors.TrackedError, match=r"ad.stop_gradient\(x\)." + re.escape(read.strip())):
            run(lambda x: x * float(take(x)))
        run(lambda x: x * float(take(ad.stop_gradient(x)))), name
    for run in (ad.vmap, lambda f: ad.vmap(ad.grad(f)), lambda f: ad.grad(lambda x: ad.vmap(f)(x).sum())):
        with pytest.raises(ad.errors.TrackedError, match=r"differ between them; ad.debug.print"):
            run(lambda x: x * float(take(x)))(np.ones(2))
    kept: list[Any] = []
    ad.grad(lambda x: (kept.append(x), x * x)[1])(2.0)
    if read != "native()":
        assert take(kept[0]) == 2  # the transform has returned: there is nothing left to lose


def test_text_of_a_tensor_never_raises() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.extend([f"{x:.2f}", f"{x}", str(x), repr(x)])
        return (x * x).sum()

    ad.grad(f)(2.0)
    assert seen[0] == "2.00"
    ad.grad(f)(np.array([1.0, 2.0]))
    assert seen[4] == "[1.00, 2.00]"
    ad.vmap(f)(np.ones(2))
    assert "shape=() of each example" in seen[8] == seen[9]
    ad.vmap(ad.hessian(f))(np.ones((2, 2)))
    ad.jvp(f, (2.0,), (1.0,))
    ad.jet(f, (2.0,), ((1.0,),))
    assert f"{ad.tensor([[1.0, 2.5]]):.1f}" == "[[1.0, 2.5]]"
    with pytest.raises(ValueError, match="format code"):
        f"{ad.tensor(1.0):d}"
