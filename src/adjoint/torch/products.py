"""Products of vectors, matrices and stacks of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import adjoint as ad
from adjoint.torch.arguments import public, same_types, spelled_as
from adjoint.torch.calls import call, check_factor, factor, misfit, named, off
from adjoint.torch.dtypes import result_dtype
from adjoint.torch.functions import numbers_first
from adjoint.torch.operators import FUNCTIONS, METHODS
from adjoint.torch.overriding import operated
from adjoint.torch.reductions import axes_of
from adjoint.torch.tensor import LEVEL, Tensor, axis_of, is_elsewhere, of


def _product_name(x: Tensor, y: Tensor) -> str:
    """The last step that PyTorch makes: products of stacks are products of matrices, in another shape."""
    if x.ndim == 2 and y.ndim > 2 and x.requires_grad:
        return "Clone"
    known = {(2, 2): "Mm", (2, 1): "Mv", (1, 1): "Dot", (1, 2): "SqueezeBackward4"}
    return known.get((x.ndim, y.ndim), "UnsafeView")


_matmul = LEVEL["matmul"]


@public("matmul", out=True)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of matrices, of stacks of them, or with vectors."""
    if not isinstance(other, Tensor) or not isinstance(input, Tensor):
        raise TypeError(f"matmul(): argument 'other' must be Tensor, not {type(other).__name__}")
    if input._dtype is not other._dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {input.dtype.name} != {other.dtype.name}"
        )
    if input._dtype.kind == "b":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    if not input.ndim or not other.ndim:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {input.ndim}D and {other.ndim}D"
        )
    if input.ndim == 2 == other.ndim:
        if input.shape[1] != other.shape[0]:
            raise RuntimeError(_misfit(input, other))
        if not off() and not is_elsewhere(input) and not is_elsewhere(other):
            return of(_matmul(input._here, other._here))
    return _multiplied(input, other, _product_name(input, other))


def _multiplied(input: Tensor, other: Tensor, made: str) -> Tensor:
    try:
        return call("matmul", made, input, other)  # type: ignore[no-any-return]
    except RuntimeError as error:
        x, y = tuple(input.shape), tuple(other.shape)
        if x[-1] == y[max(len(y) - 2, 0)] and misfit(x[:-2], y[:-2]) is None:  # which is not what is wrong
            raise
        raise RuntimeError(_misfit(input, other)) from error


def _misfit(x: Tensor, y: Tensor) -> str:
    if x.ndim == 1 == y.ndim:
        n, m = x.shape[0], y.shape[0]
        return (
            f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but "
            f"got {n} and {m} elements respectively"
        )
    if y.ndim == 1:
        rows = math.prod(x.shape[:-1])
        return f"size mismatch, got input ({rows}), mat ({rows}x{x.shape[-1]}), vec ({y.shape[0]})"
    if y.ndim > 2 and x.ndim != 2:
        if (error := misfit(tuple(x.shape[:-2]), tuple(y.shape[:-2]))) is not None:
            return str(error)
        count = math.prod(np.broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2])))
        return (
            f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {x.shape[-1]}] but got: "
            f"[{count}, {y.shape[-2]}]."
        )
    return (
        f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, x.shape))} and {'x'.join(map(str, y.shape))})"
    )


METHODS["__matmul__"] = lambda x, y: matmul(x, y) if isinstance(y, Tensor) else operated("matmul", x, y)
METHODS["__rmatmul__"] = lambda x, y: matmul(y, x) if isinstance(y, Tensor) else operated("matmul", y, x)


def _product(name: str, other: str, ranks: tuple[int, int]) -> None:
    def apply(input: Tensor, other: Tensor) -> Any:
        if (input.ndim, other.ndim) != ranks:
            raise RuntimeError(_wrong_ranks(name, input.ndim, other.ndim))
        if name == "bmm" and (input.shape[0], input.shape[2]) != tuple(other.shape[:2]):
            raise RuntimeError(
                "Expected size for first two dimensions of batch2 tensor to be: "
                f"[{input.shape[0]}, {input.shape[2]}] but got: [{other.shape[0]}, {other.shape[1]}]."
            )
        if name == "dot" and input._dtype is not other._dtype:
            kinds = f"{input.dtype.class_name} and {other.dtype.class_name}"
            raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {kinds}")
        if name == "bmm" and input._dtype is other._dtype:
            return _multiplied(input, other, "Bmm")
        return matmul(input, other)

    public(name, out=True)(spelled_as(name, f"input: Tensor, {other}: Tensor", apply))


def _wrong_ranks(name: str, one: int, other: int) -> str:
    """PyTorch's words for operands of wrong numbers of dimensions."""
    if name == "mm":
        return f"{'self' if one != 2 else 'mat2'} must be a matrix"
    if name == "bmm":
        return f"batch{1 if one != 3 else 2} must be a 3D tensor"
    if name == "mv":
        return f"vector + matrix @ vector expected, got 1, {one}, {other}"
    return f"1D tensors expected, but got {one}D and {other}D tensors"


_product("mm", "mat2", (2, 2))
_product("mv", "vec", (2, 1))
_product("bmm", "mat2", (3, 3))
_product("dot", "tensor", (1, 1))


@public("vdot", out=True)
def vdot(input: Tensor, other: Tensor) -> Any:
    same_types("vdot", input, other)
    if (input.ndim, other.ndim) != (1, 1):
        raise RuntimeError(_wrong_ranks("vdot", input.ndim, other.ndim))
    if input.shape != other.shape:
        raise RuntimeError(_misfit(input, other))
    return call("vdot", "Vdot", input, other)


@public("outer", "ger", out=True)
def outer(input: Tensor, vec2: Tensor) -> Any:
    for place, x in (("self", input), ("vec2", vec2)):
        if x.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {place}, but got {x.ndim}-D")
    return _in_type(call("outer", "Mul", input, vec2), input, vec2)


def _in_type(out: Any, *operands: Tensor) -> Any:
    """A product of truths is one."""
    return out.bool() if all([x._dtype.kind == "b" for x in operands]) else out


def _of_sublists(*given: Any) -> tuple[str, tuple[Any, ...]]:
    """The equation and the operands of operands that are each followed by the numbers of their axes."""
    pairs = len(given) // 2
    operands = given[0 : 2 * pairs : 2]
    if not pairs or not all([isinstance(x, Tensor) for x in operands]):
        kind = type(given[0]).__name__
        raise TypeError(
            f"einsum(): argument 'equation' (position 1) must be str, not {kind}, unless tensors and lists of their "
            "axes take turns"
        )

    def letters(axes: Any) -> str:
        if any([axis is not ... and not 0 <= axis < 52 for axis in axes]):
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        return "".join(["..." if a is ... else chr(a + 65 if a < 26 else a + 71) for a in axes])

    equation = ",".join([letters(axes) for axes in given[1 : 2 * pairs : 2]])
    return equation + ("->" + letters(given[-1]) if len(given) % 2 else ""), operands


@public("einsum", method=False)
def einsum(equation: Any, *operands: Any) -> Any:
    if not isinstance(equation, str):
        equation, operands = _of_sublists(equation, *operands)
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    _check_operands(equation, operands)
    try:
        return _contracted(equation, operands)
    except NotImplementedError:  # of a type
        raise
    except RuntimeError as error:
        raise RuntimeError(_misread(equation, operands) or str(error)) from None


def _check_operands(equation: str, operands: Any) -> None:
    """Raise PyTorch's errors for operands that are no tensors, or of several types, and for what it does not read."""
    for i, x in enumerate(operands):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type(x).__name__}")
    if not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if len({x._dtype for x in operands}) > 1 and len(operands) > 1:
        other = next(x for x in operands if x._dtype is not operands[0]._dtype)
        raise RuntimeError(f"expected scalar type {operands[0].dtype.class_name} but found {other.dtype.class_name}")
    if not equation.isascii() or any([t.count("...") > 1 for t in equation.partition("->")[0].split(",")]):
        raise RuntimeError(_misread(equation, operands))


def _misread(equation: str, operands: Any) -> str | None:
    """What is wrong with an equation, in PyTorch's words; None for nothing that it is known to refuse."""
    factors, arrow, kept = equation.partition("->")
    terms = factors.split(",")
    at = 0
    for i, term in enumerate(terms):
        bare = term.replace("...", "   ")
        if term.count("...") > 1:
            return f"einsum(): found '.' for operand {i} for which an ellipsis was already found"
        for j, c in enumerate(bare):
            if c == ".":
                return f"einsum(): found '.' for operand {i} that is not part of any ellipsis"
            if c != " " and not (c.isascii() and c.isalpha()):
                return _no_subscript(at + j)
        at += len(term) + 1
    for j, c in enumerate(kept.replace("...", "   ")):
        if c != " " and not (c.isascii() and c.isalpha()):
            return _no_subscript(len(factors) + len(arrow) + j)
    if len(terms) != len(operands):
        how = "fewer" if len(operands) < len(terms) else "more"
        return f"einsum(): {how} operands were provided than specified in the equation"
    return _misfitting(terms, operands) or _wrong_output(terms, kept.replace(" ", "").replace("...", ""))


def _no_subscript(at: int) -> str:
    return f"einsum(): invalid subscript given at index {at} in the equation string, subscripts must be in [a-zA-Z]"


def _misfitting(terms: list[str], operands: Any) -> str | None:
    """Which sizes of operands do not go with their subscripts."""
    sizes: dict[str, int] = {}
    for i, (term, x) in enumerate(zip(terms, operands, strict=True)):
        before, dots, behind = (part.replace(" ", "") for part in term.partition("..."))
        count = len(before) + len(behind)
        if count != x.ndim and not (dots and count < x.ndim):
            if dots:
                return (
                    f"einsum(): the number of subscripts in the equation ({count}) is more than the number of "
                    f"dimensions ({x.ndim}) for operand {i}"
                )
            return (
                f"einsum(): the number of subscripts in the equation ({count}) does not match the number of "
                f"dimensions ({x.ndim}) for operand {i} and no ellipsis was given"
            )
        shape = [*x.shape[: len(before)], *x.shape[x.ndim - len(behind) :]]
        own: dict[str, int] = {}
        for c, n in zip(before + behind, shape, strict=True):
            if own.setdefault(c, n) != n:
                return f"einsum(): subscript {c} is repeated for operand {i} but the sizes don't match, {n} != {own[c]}"
        for c, n in own.items():
            known = sizes.get(c, 1)
            if n not in (1, known) and known != 1:
                return (
                    f"einsum(): subscript {c} has size {n} for operand {i} which does not broadcast with previously "
                    f"seen size {known}"
                )
            sizes[c] = max(n, known)
    return None


def _wrong_output(terms: list[str], kept: str) -> str | None:
    for i, c in enumerate(kept):
        if c in kept[:i]:
            return f"einsum(): output subscript {c} appears more than once in the output"
        if not any([c in term for term in terms]):
            return f"einsum(): output subscript {c} does not appear in the equation for any input operand"
    return None


def _contracted(equation: str, operands: Any) -> Any:
    made = "View" if off() else _einsum_name(equation, operands)
    kinds = {x._dtype for x in operands if isinstance(x, Tensor)}
    if len(kinds) == 1 and (dtype := next(iter(kinds))).kind in "biu":  # sums of them have their type
        if dtype.kind == "b" and _is_contraction(equation):
            raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
        if len(operands) == 1 and "Sum" in _einsum_name(equation, operands):  # as `sum` has it
            dtype = np.dtype("int64")
        return call(lambda *xs: ad.astype(ad.einsum(equation, *xs), dtype), made, *operands)
    return call(lambda *xs: ad.einsum(equation, *xs), made, *operands)


def _is_contraction(equation: str) -> bool:
    """Whether products of several operands are summed."""
    factors, arrow, kept = equation.replace(" ", "").partition("->")
    several = [c for c in {*factors} - {",", "."} if sum([c in factor for factor in factors.split(",")]) > 1]
    return any([c not in kept for c in several])


def _einsum_name(equation: str, operands: tuple[Any, ...]) -> str:
    """The last step that PyTorch makes, which goes through the operands from left to right."""
    factors, arrow, kept = equation.replace(" ", "").partition("->")
    *earlier, last = [factor.replace("...", ".") for factor in factors.split(",")]
    if not arrow:  # what stands once
        kept = "." + "".join([c for c in factors if factors.count(c) == 1])
    dropped = {*last} - {*kept}
    if not earlier:
        return "SumBackward1" if dropped else "Permute"
    return "View" if dropped & {*"".join(earlier)} else "Mul"


@public("tensordot", method=False, out=True)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Any:
    same_types("tensordot", a, b)
    if not isinstance(dims, (int, list, tuple, Tensor)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, "
            f"but got dims={dims!r}"
        )
    if isinstance(dims, int):
        dims = tuple(range(a.ndim - dims, a.ndim)), tuple(range(dims))
    ours, theirs = ([*axes_of(tuple(d), x.ndim)] for d, x in zip(dims, (a, b), strict=True))
    for i, j in zip(ours, theirs, strict=False):  # an axis of one entry goes with any other
        if a.shape[i] == 1 != b.shape[j]:
            b = FUNCTIONS["sum"](b, j, True)
        elif b.shape[j] == 1 != a.shape[i]:
            a = FUNCTIONS["sum"](a, i, True)
        elif a.shape[i] != b.shape[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i - a.ndim} and second "
                f"has size {b.shape[j]} in dim {j}"
            )
    return call(lambda x, y: ad.tensordot(x, y, axes=(ours, theirs)), "View", a, b)


@public("kron", out=True)
def kron(input: Tensor, other: Tensor) -> Any:
    return _in_type(call("linalg.kron", "View", input, other), input, other)


def _affine(name: str, factors: str, ranks: tuple[int, int], product: Any) -> None:
    one, other = factors.split()

    def apply(input: Tensor, x: Tensor, y: Tensor, *, beta: Any, alpha: Any) -> Any:
        if ranks == (3, 3):
            axis_of(2, y.ndim)
        if (x.ndim, y.ndim) != ranks:
            wrong, rank = (one, x.ndim) if x.ndim != ranks[0] else (other, y.ndim)
            if name == "addmm":
                raise RuntimeError(f"{wrong} must be a matrix, got {rank}-D tensor")
            if name == "addmv":
                raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {x.ndim}, {y.ndim}")
            if name == "addr":
                raise RuntimeError(f"addr: Expected 1-D argument {wrong}, but got {rank}-D")
            raise RuntimeError(f"{wrong} must be a 3D tensor")
        if name != "addr" and x.shape[-1] != y.shape[ranks[1] - 2 if ranks[1] > 1 else 0]:
            raise RuntimeError(_misfit(x, y))
        if name == "addr":
            for what, value in (("beta", beta), ("alpha", alpha)):
                if value.__class__ is not int:
                    check_factor(what, value, (input, x, y))
        else:
            same_types(name, input, x, y)
        dtype = input._dtype if name != "addr" else result_dtype((input, x, y))
        beta, alpha = factor(beta, dtype), factor(alpha, dtype)

        def function(c: Any, a: Any, b: Any) -> Any:
            part = named(product)(a, b) if isinstance(product, str) else product(a, b)
            part = part if alpha == 1 else part * alpha
            if len(c.shape) > len(part.shape) or misfit(tuple(c.shape), tuple(part.shape)) is not None:
                input.expand(part.shape)  # which says what is wrong
            c = ad.broadcast_to(c, part.shape)  # as in PyTorch, the result has the shape of the product
            return c + part if beta == 1 else c * beta + part if beta else part

        return _in_type(call(function, name.capitalize(), input, x, y), input, x, y)

    spelled = spelled_as(
        name, f"input: Tensor, {one}: Tensor, {other}: Tensor, *, beta: Number=1, alpha: Number=1", apply
    )
    public(name, in_place=True, out=True)(numbers_first(spelled, "beta", "alpha"))


_affine("addmm", "mat1 mat2", (2, 2), "matmul")
_affine("addmv", "mat vec", (2, 1), "matmul")
_affine("addr", "vec1 vec2", (1, 1), "outer")
_affine("baddbmm", "batch1 batch2", (3, 3), "matmul")
_affine("addbmm", "batch1 batch2", (3, 3), lambda a, b: ad.sum(ad.matmul(a, b), axis=0, dtype=a.dtype))
