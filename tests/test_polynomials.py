"""Roots, quotients and characteristic polynomials, against NumPy and formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors

POLYNOMIALS = {
    "quadratic": [1.0, -3.0, 2.0],
    "complex roots": [2.0, 0.0, 0.0, 1.0],
    "leading zeros": [0.0, 0.0, 1.0, -1.0, 3.0],
    "a root at zero": [1.0, 1.0, 0.0],
    "two roots at zero": [1.0, 1.0, 0.0, 0.0],
    "a constant": [5.0],
    "zeros": [0.0, 0.0],
    "linear": [3.0, 4.0],
    "complex": [1j, 2.0, 3.0],
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_roots_are_numpys(name: str) -> None:
    p = np.array(POLYNOMIALS[name])
    found, wanted = np.roots(ad.asarray(p)), np.roots(p)
    assert isinstance(found, ad.Tensor)
    assert found.dtype is ad.complex128
    np.testing.assert_allclose(np.sort_complex(found.numpy()), np.sort_complex(wanted), rtol=1e-12, atol=1e-12)
    if p[0]:
        np.testing.assert_array_equal(ad.roots(p).numpy(), found.numpy())


@pytest.mark.parametrize("factor", [1.0, 1.0 + 0.5j])
def test_derivatives_of_roots_are_those_of_the_implicit_equation(factor: Any) -> None:
    """dr = -r^k dp_k / p'(r)."""
    p = np.poly(np.array([0.5, -1.2, 2.0, 3.1]) * factor) * 2
    x = ad.asarray(p).require_grad()
    found = ad.roots(x)
    for i, r in enumerate(found.numpy()):
        slopes = -(r ** np.arange(4, -1, -1)) / np.polyval(np.polyder(p), r)
        for part, turn in ((found[i].real, 1), (found[i].imag, -1j)):
            gradient = np.conj(part.backward(retain_graph=True)[x].numpy())
            wanted = slopes * turn
            np.testing.assert_allclose(gradient, wanted if np.iscomplexobj(p) else wanted.real, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("u", "v"),
    [
        ([3.0, 5.0, 2.0], [2.0, 1.0]), ([1.0, 2.0], [1.0, 2.0, 3.0]), ([1.0, 2.0, 3.0], [2.0]), ([1.0], [4.0]),
        ([1.0, 0.0, -1.0], [1.0, 1.0]), ([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 2.0, 1j]), ([0.0, 0.0, 3.0], [2.0, 1.0]),
    ],
)  # fmt: skip
def test_quotients_are_numpys(u: list[Any], v: list[Any]) -> None:
    for found, wanted in zip(np.polydiv(ad.asarray(u), ad.asarray(v)), np.polydiv(u, v), strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-13, atol=1e-14)
    quotient, rest = ad.polydiv(u, v)
    assert (quotient.shape, rest.shape) == ((max(len(u) - len(v) + 1, 1),), (min(max(len(v) - 1, 1), len(u)),))
    whole = ad.polyadd(ad.polymul(quotient, v), rest).numpy()
    np.testing.assert_allclose(whole[whole.size - len(u) :], u, atol=1e-6)


@pytest.mark.parametrize(
    "x", [[3.0], [0.5, -2.0, 1.0], [1 + 1j, 1 - 1j, 2.0], [1j, 2.0], [[1.0, 2.0], [-3.0, 1.0]], [[1j, 2.0], [0.0, 1.0]]]
)
def test_polynomials_of_roots_and_of_matrices_are_numpys(x: Any) -> None:
    found, wanted = np.poly(ad.asarray(np.array(x))), np.poly(x)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)
    assert ad.poly(ad.zeros(0)).tolist() == [1.0]


def test_polynomials_of_examples_together() -> None:
    p, v = np.array([[1.0, 2.0, 1.5], [0.5, -3.0, 1.0]]), np.array([[1.0, 2.0], [2.0, -1.0]])
    for f in (np.roots, np.poly, lambda x: np.roots(x).real.sum()):
        np.testing.assert_allclose(ad.vmap(f)(p), [np.asarray(f(x)) for x in p], rtol=1e-12)
    for k in (0, 1):
        found = ad.vmap(lambda a, b: tuple(np.polydiv(a, b)))(p, v)[k]
        np.testing.assert_allclose(found, [np.polydiv(a, b)[k] for a, b in zip(p, v, strict=True)], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ad.roots([0.0, 1.0, 2.0]), errors.SingularError, "first coefficient is zero"),
        (lambda: ad.roots([1.0, ad.nan]), errors.SingularError, "nan"),
        (lambda: ad.roots(ad.ones((2, 2))), errors.ShapeError, "vector"),
        (lambda: ad.poly(ad.ones((2, 3))), errors.NotSquareError, "square"),
        (lambda: ad.poly(ad.ones((2, 2, 2))), errors.NotSquareError, "square"),
        (lambda: ad.polydiv([1.0], ad.ones(0)), errors.ShapeError, "one coefficient"),
        (lambda: ad.polydiv([1.0, 2.0], [0.0, 1.0]), errors.SingularError, "singular"),
    ],
)
def test_what_is_no_polynomial_is_refused(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text), np.errstate(all="ignore"):
        call()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_small_integers_grow_as_numpys_do(dtype: str) -> None:
    v = np.asarray([100, 5, 7]).astype(dtype)
    for f in (
        np.vander,
        np.polyder,
        lambda p: np.polyder(p, 0),
        lambda p: np.polyder(p, 5),
        lambda p: np.polyval(p, 3),
        lambda p: np.polyval(p, p),
    ):
        found, expected = f(ad.asarray(v)), f(v)
        assert found.numpy().dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected)
