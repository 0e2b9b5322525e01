"""`torch.special`: adjoint's special functions under PyTorch's names; those of `torch` itself, and powers."""

from __future__ import annotations

from typing import Any

import numpy as np

import adjoint as ad
from adjoint.torch import return_types
from adjoint.torch.arguments import public, with_out
from adjoint.torch.calls import call, write
from adjoint.torch.dtypes import default_float, result_dtype
from adjoint.torch.functions import check_tensors, composed, floating_of, to
from adjoint.torch.missing import missing as _missing
from adjoint.torch.operators import FUNCTIONS, METHODS
from adjoint.torch.tensor import Tensor

# names that torch has, too
_SHARED = {
    "digamma": "digamma", "psi": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2",
    "expit": "sigmoid", "expm1": "expm1", "gammaln": "lgamma", "i0": "i0", "log1p": "log1p", "logit": "logit",
    "logsumexp": "logsumexp", "round": "round", "sinc": "sinc", "softmax": "softmax", "log_softmax": "log_softmax",
    "xlogy": "xlogy",
}  # fmt: skip
# names of adjoint's, of one operand
_UNARY = {
    "bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1", "entr": "entr", "erfcx": "erfcx",
    "i0e": "i0e", "i1": "i1", "i1e": "i1e", "log_ndtr": "log_ndtr", "modified_bessel_i0": "i0",
    "modified_bessel_i1": "i1", "modified_bessel_k0": "k0", "modified_bessel_k1": "k1", "ndtr": "ndtr",
    "ndtri": "ndtri", "scaled_modified_bessel_k0": "k0e", "scaled_modified_bessel_k1": "k1e",
}  # fmt: skip
# of two, which meet in one type
_MADE = {"i0e": "SpecialI0E", "i1e": "SpecialI1E", "ndtr": "MulBackward1"}
_BINARY = {"gammainc": "Igamma", "gammaincc": "Igammac", "xlog1py": "SpecialXlog1Py", "zeta": "SpecialZeta"}


def _unary(name: str, function: str) -> Any:
    made = _MADE.get(name, "Special" + "".join([part.capitalize() for part in name.split("_")]))

    def spelled(input: Tensor) -> Any:
        return call(f"special.{function}", made, floating_of(input))

    spelled.__name__ = spelled.__qualname__ = f"special_{name}"
    return with_out(spelled)


FUNCTIONS_HERE: dict[str, Any] = {
    **{name: FUNCTIONS[shared] for name, shared in _SHARED.items()},
    **{name: _unary(name, function) for name, function in _UNARY.items()},
    **{name: with_out(composed(name, f"special.{name}", made, "input, other")) for name, made in _BINARY.items()},
}
globals().update(FUNCTIONS_HERE)


# names of torch

_TWO = "input: Tensor, other: Tensor"
public("igamma", in_place=True, out=True)(composed("igamma", "special.gammainc", "Igamma", _TWO))
public("igammac", in_place=True, out=True)(composed("igammac", "special.gammaincc", "Igammac", _TWO))


@public("mvlgamma", in_place=True, out=True)
def mvlgamma(input: Tensor, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p."""
    x = floating_of(input)
    return call(lambda a: ad.special.multigammaln(a, p), "Mvlgamma", x)


@public("polygamma", method=False, out=True)
def polygamma(n: int, input: Tensor) -> Any:
    """The n-th derivative of digamma.

    >>> import adjoint.torch as torch
    >>> torch.polygamma(1, torch.tensor(1.0))
    tensor(1.6449)
    """
    return _polygamma(n, input, "Polygamma")


def _polygamma(n: int, input: Tensor, made: str) -> Any:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if input._dtype.kind == "c":
        raise NotImplementedError(f"\"polygamma\" not implemented for '{input.dtype.class_name}'")
    x = floating_of(input)
    return call(lambda a: ad.special.polygamma(n, a), made, x)


METHODS["polygamma"] = lambda self, n: polygamma(n, self)
METHODS["polygamma_"] = lambda self, n: write(self, lambda x: _polygamma(n, x, "PolygammaBackward1"))

FUNCTIONS_HERE |= {"polygamma": polygamma, "multigammaln": mvlgamma}
multigammaln = mvlgamma


# --- powers --------------------------------------------------------------------------------------------


def _wide(x: Any) -> Any:
    if isinstance(x, Tensor):
        return to(x, dtype=np.dtype("complex128" if x._dtype.kind == "c" else "float64"))
    return x


@public("float_power", in_place=True, out=True)
def float_power(input: Any, exponent: Any) -> Any:
    """The power in double precision."""
    check_tensors("float_power", input, exponent)
    return _wide(input) ** _wide(exponent)


@public("frexp", out=True)
def frexp(input: Tensor) -> Any:
    """Numbers between a half and one, and powers of two."""
    if input._dtype.kind != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = call("frexp", "Frexp", input)
    return return_types.frexp(mantissa, to(exponent, dtype=np.dtype("int32")))


@public("ldexp", in_place=True, out=True)
def ldexp(input: Tensor, other: Tensor) -> Any:
    """input * 2**other."""
    check_tensors("ldexp", input)
    kind = result_dtype((input, other))
    kind = kind if kind.kind in "fc" else default_float()
    wide = np.dtype("float32") if kind.itemsize == 2 else kind  # 2**other may be too large for the result
    found = call(lambda x, n: x * 2.0**n, "Ldexp", to(input, dtype=wide), to(floating_of(other), dtype=wide))
    return to(found, dtype=kind)


def __getattr__(name: str) -> Any:
    raise _missing(name, "adjoint.torch.special")
