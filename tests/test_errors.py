"""Bad input: typed errors that are also NumPy's, that say what was asked, what was received, and the way out."""

from __future__ import annotations

import collections
import math
import operator
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors
from adjoint.operands import run

A = np.ones((2, 3))
V = np.ones(3)
N = np.array([1, 2, 3])
Z = np.ones(2, dtype=np.complex128)
IMAGE = np.ones((1, 1, 3, 3))
MASKED = np.ma.array(V, mask=[False, True, False])


def t(values: Any) -> Any:
    """A tensor, a leaf where it can be."""
    tensor = ad.tensor(values)
    return tensor.require_grad() if tensor.dtype.kind in "fc" else tensor


# what goes wrong, in adjoint and (where it has the function) in NumPy; the error; parts of the message
Row = tuple[Callable[[], Any], Callable[[], Any] | None, type[Exception], list[str]]
ROWS: dict[str, Row] = {
    # shapes
    "operands do not broadcast": (lambda: t(A) + t(A[0, :2]), lambda: A + A[0, :2], errors.ShapeError,
        ["add", "(2, 3)", "(2,)", "equal or 1"]),
    "a comparison does not broadcast": (lambda: t(A) < t(np.ones((4, 3))), lambda: np.less(A, np.ones((4, 3))),
        errors.ShapeError, ["less", "(2, 3)", "(4, 3)"]),
    "where does not broadcast": (lambda: ad.where(t(V) > 0, t(V), t(np.ones(2))),
        lambda: np.where(V > 0, V, np.ones(2)), errors.ShapeError, ["where", "(3,)", "(2,)"]),
    "reshape": (lambda: t(A).reshape((4, 2)), lambda: A.reshape((4, 2)), errors.ShapeError,
        ["reshape", "6 elements", "(2, 3)", "(4, 2)"]),
    "reshape with -1": (lambda: t(A).reshape((4, -1)), lambda: A.reshape((4, -1)), errors.ShapeError,
        ["reshape", "(2, 3)", "(4, -1)"]),
    "reshape with -1 twice": (lambda: t(A).reshape((-1, -1)), lambda: A.reshape((-1, -1)), errors.ShapeError,
        ["reshape", "one size may be -1", "(-1, -1)"]),
    "reshape to floats": (lambda: t(A).reshape((2.0, 3)), lambda: A.reshape((2.0, 3)), errors.ArgumentTypeError,
        ["reshape", "integers", "(2.0, 3)"]),
    "broadcast_to": (lambda: t(A).broadcast_to((4, 3)), lambda: np.broadcast_to(A, (4, 3)), errors.ShapeError,
        ["broadcast_to", "(2, 3)", "(4, 3)"]),
    "broadcast_arrays": (lambda: ad.broadcast_arrays(t(A), t(A[0, :2])), lambda: np.broadcast_arrays(A, A[0, :2]),
        errors.ShapeError, ["broadcast_arrays", "(2, 3)", "(2,)"]),
    "squeeze": (lambda: t(A).squeeze(0), lambda: A.squeeze(0), errors.ShapeError, ["squeeze", "axis 0", "(2, 3)"]),
    "concat, other axes": (lambda: ad.concat([t(A), t(A.T)]), lambda: np.concatenate([A, A.T]), errors.ShapeError,
        ["concat", "(2, 3)", "(3, 2)"]),
    "concat, numbers of axes": (lambda: ad.concat([t(A), t(V)]), lambda: np.concatenate([A, V]), errors.ShapeError,
        ["concat", "(2, 3)", "(3,)"]),
    "concat of nothing": (lambda: ad.concat([]), lambda: np.concatenate([]), errors.ArgumentError,
        ["concat", "at least one"]),
    "concat of a number": (lambda: ad.concat(3), lambda: np.concatenate(3), errors.ArgumentTypeError,
        ["concat", "list", "int"]),
    "stack": (lambda: ad.stack([t(A), t(V)]), lambda: np.stack([A, V]), errors.ShapeError, ["stack", "(2, 3)", "(3,)"]),
    "matmul": (lambda: t(A) @ t(A), lambda: A @ A, errors.ShapeError, ["matmul", "(2, 3)", "last axis"]),
    "matmul of a vector": (lambda: t(A) @ t(np.ones(2)), lambda: A @ np.ones(2), errors.ShapeError,
        ["matmul", "(2, 3)", "(2,)"]),
    "matmul of a scalar": (lambda: t(A) @ t(1.0), lambda: A @ np.array(1.0), errors.ShapeError, ["matmul", "()", "*"]),
    "matmul of stacks": (lambda: t(np.ones((2, 2, 3))) @ t(np.ones((3, 3, 2))),
        lambda: np.ones((2, 2, 3)) @ np.ones((3, 3, 2)), errors.ShapeError, ["matmul", "(2,)", "(3,)"]),
    "tensordot": (lambda: ad.tensordot(t(A), t(A), axes=1), lambda: np.tensordot(A, A, 1), errors.ShapeError,
        ["tensordot", "(2, 3)", "[3]", "[2]"]),
    "vecdot": (lambda: ad.vecdot(t(A), t(np.ones(2))), lambda: np.vecdot(A, np.ones(2)), errors.ShapeError,
        ["vecdot", "(2, 3)", "(2,)"]),
    "einsum, sizes": (lambda: ad.einsum("ij,jk", t(A), t(A)), lambda: np.einsum("ij,jk", A, A), errors.ShapeError,
        ["einsum 'ij,jk'", "'j'", "3 and 2", "(2, 3)"]),
    "einsum, operands": (lambda: ad.einsum("ij", t(A), t(A)), lambda: np.einsum("ij", A, A), errors.ArgumentError,
        ["einsum", "1 terms for 2 operands"]),
    "einsum, axes": (lambda: ad.einsum("i", t(A)), lambda: np.einsum("i", A), errors.ArgumentError,
        ["einsum", "'i'", "2 axes"]),
    "einsum, output": (lambda: ad.einsum("ij->k", t(A)), lambda: np.einsum("ij->k", A), errors.ArgumentError,
        ["einsum", "'k'"]),
    "einsum, letters": (lambda: ad.einsum("i1->i", t(A)), lambda: np.einsum("i1->i", A), errors.ArgumentError,
        ["einsum", "letters", "'i1'"]),
    "einsum, type": (lambda: ad.einsum(5, t(A)), None, errors.ArgumentTypeError, ["einsum", "string", "5"]),
    "inv of a rectangle": (lambda: ad.linalg.inv(t(A)), lambda: np.linalg.inv(A), errors.NotSquareError,
        ["inv", "square", "(2, 3)"]),
    "det of a vector": (lambda: ad.linalg.det(t(V)), lambda: np.linalg.det(V), errors.NotSquareError,
        ["det", "square", "(3,)"]),
    "cholesky of a rectangle": (lambda: ad.linalg.cholesky(t(A)), lambda: np.linalg.cholesky(A), errors.NotSquareError,
        ["cholesky", "square", "(2, 3)"]),
    "solve with a rectangle": (lambda: ad.linalg.solve(t(A), t(V[:2])), lambda: np.linalg.solve(A, V[:2]),
        errors.NotSquareError, ["solve", "square", "(2, 3)"]),
    "a solution of a number": (lambda: ad.linalg.solve(t(np.eye(2)), t(1.0)), lambda: np.linalg.solve(np.eye(2), 1.0),
        errors.ShapeError, ["solve", "vector"]),
    "solve": (lambda: ad.linalg.solve(t(np.eye(2)), t(V)), lambda: np.linalg.solve(np.eye(2), V), errors.ShapeError,
        ["solve", "shape (3,)", "(2, 2)"]),
    "T of three axes": (lambda: t(A[None]).T, None, errors.ShapeError, ["T:", "(1, 2, 3)", "mT", "permute_dims"]),
    "mT of a vector": (lambda: t(V).mT, lambda: V.mT, errors.ShapeError, ["mT", "(3,)"]),
    "tril of a vector": (lambda: ad.tril(t(V)), None, errors.ShapeError, ["tril", "(3,)"]),
    "negative sizes": (lambda: ad.zeros((2, -1)), lambda: np.zeros((2, -1)), errors.ShapeError, ["zeros", "(2, -1)"]),
    "sizes of floats": (lambda: ad.ones(1.5), lambda: np.ones(1.5), errors.ArgumentTypeError,
        ["ones", "integers", "1.5"]),
    "ragged lists": (lambda: ad.tensor([[1.0], [1.0, 2.0]]), lambda: np.array([[1.0], [1.0, 2.0]]), errors.ShapeError,
        ["tensor", "nested lists"]),
    "a ragged operand": (lambda: t(V) * [[1.0], [1.0, 2.0]], lambda: V * [[1.0], [1.0, 2.0]], errors.ShapeError,
        ["multiply", "nested lists"]),
    "max of nothing": (lambda: ad.zeros((0, 2)).max(axis=0), lambda: np.zeros((0, 2)).max(axis=0), errors.ShapeError,
        ["max", "(0, 2)", "at least one"]),
    "argmin of nothing": (lambda: ad.zeros(0).argmin(), lambda: np.zeros(0).argmin(), errors.ShapeError,
        ["argmin", "(0,)", "at least one"]),
    "linear": (lambda: ad.nn.linear(t(A), t(np.ones((4, 2)))), None, errors.ShapeError,
        ["linear", "(2, 3)", "(4, 2)", "(outputs, inputs)"]),
    "linear, bias": (lambda: ad.nn.linear(t(A), t(np.ones((4, 3))), t(V)), None, errors.ShapeError,
        ["linear", "(4, 3)", "(3,)"]),
    "layer_norm": (lambda: ad.nn.layer_norm(t(A), 4), None, errors.ShapeError, ["layer_norm", "(4,)", "(3,)"]),
    "layer_norm, weight": (lambda: ad.nn.layer_norm(t(A), 3, t(np.ones(2))), None, errors.ShapeError,
        ["layer_norm", "weight", "(2,)"]),
    "cross_entropy": (lambda: ad.nn.cross_entropy(t(A), [0]), None, errors.ShapeError,
        ["cross_entropy", "(2, 3)", "(2,)", "(1,)"]),
    "binary cross entropy": (lambda: ad.nn.binary_cross_entropy_with_logits(t(A), [1.0]), None, errors.ShapeError,
        ["binary_cross_entropy_with_logits", "(2, 3)", "(1,)"]),
    "mse_loss": (lambda: ad.nn.mse_loss(t(A), t(V)), None, errors.ShapeError,
        ["mse_loss", "(2, 3)", "(3,)", "broadcast"]),
    "conv2d, axes": (lambda: ad.nn.conv2d(t(A), t(A)), None, errors.ShapeError,
        ["conv2d", "(2, 3)", "(batch, channels, height, width)"]),
    "conv2d, channels": (lambda: ad.nn.conv2d(t(IMAGE), t(np.ones((1, 2, 2, 2)))), None, errors.ShapeError,
        ["conv2d", "channels", "(1, 2, 2, 2)"]),
    "conv2d, kernel": (lambda: ad.nn.conv2d(t(IMAGE), t(np.ones((1, 1, 4, 4)))), None, errors.ShapeError,
        ["conv2d", "(4, 4)", "(3, 3)"]),
    "conv2d, bias": (lambda: ad.nn.conv2d(t(IMAGE), t(np.ones((2, 1, 2, 2))), t(V)), None, errors.ShapeError,
        ["conv2d", "2 outputs", "(3,)"]),
    "max_pool2d": (lambda: ad.nn.max_pool2d(t(A), 2), None, errors.ShapeError, ["max_pool2d", "(2, 3)"]),
    "max_pool2d, window": (lambda: ad.nn.max_pool2d(t(IMAGE), 4), None, errors.ShapeError,
        ["max_pool2d", "(4, 4)", "(3, 3)"]),
    "take_along_axis": (lambda: ad.take_along_axis(t(A), [0]), lambda: np.take_along_axis(A, np.array([0]), 1),
        errors.ShapeError, ["take_along_axis", "(1,)", "(2, 3)"]),
    "permutation of a scalar": (lambda: ad.random.permutation(t(1.0)), None, errors.ShapeError, ["permutation", "0-d"]),
    # axes
    "sum, axis": (lambda: t(A).sum(2), lambda: A.sum(2), errors.AxisError, ["sum", "axis 2", "2 axes"]),
    "sum, negative axis": (lambda: t(A).sum(-3), lambda: A.sum(-3), errors.AxisError, ["sum", "axis -3"]),
    "sum, an axis twice": (lambda: t(A).sum((0, -2)), lambda: A.sum((0, -2)), errors.AxisError,
        ["sum", "(0, -2)", "twice"]),
    "sum, a float": (lambda: t(A).sum(1.0), lambda: A.sum(1.0), errors.ArgumentTypeError, ["sum", "1.0", "integer"]),
    "sum, a string": (lambda: t(A).sum("a"), lambda: A.sum("a"), errors.ArgumentTypeError, ["sum", "'a'", "integer"]),
    "argmax, several axes": (lambda: t(A).argmax((0, 1)), lambda: A.argmax((0, 1)), errors.ArgumentTypeError,
        ["argmax", "(0, 1)", "integer"]),
    "cumulative_sum, no axis": (lambda: t(A).cumulative_sum(), None, errors.AxisError,
        ["cumulative_sum", "2 axes", "axis="]),
    "cumulative_prod, axis": (lambda: t(A).cumulative_prod(5), lambda: A.cumprod(5), errors.AxisError,
        ["cumulative_prod", "axis 5"]),
    "softmax of a scalar": (lambda: ad.special.softmax(t(1.0), axis=-1), None, errors.AxisError, ["softmax", "0-d"]),
    "sort of a scalar": (lambda: ad.sort(t(1.0)), lambda: np.sort(1.0), errors.AxisError, ["sort", "0-d"]),
    "permute_dims, too few": (lambda: t(A).permute_dims((0,)), lambda: A.transpose((0,)), errors.AxisError,
        ["permute_dims", "(0,)", "2 axes"]),
    "permute_dims, twice": (lambda: t(A).permute_dims((0, 0)), lambda: A.transpose((0, 0)), errors.AxisError,
        ["permute_dims", "(0, 0)"]),
    "permute_dims, too large": (lambda: t(A).permute_dims((0, 2)), lambda: A.transpose((0, 2)), errors.AxisError,
        ["permute_dims", "axis 2"]),
    "expand_dims": (lambda: t(A).expand_dims(4), lambda: np.expand_dims(A, 4), errors.AxisError,
        ["expand_dims", "axis 4"]),
    "squeeze, axis": (lambda: t(A).squeeze(5), lambda: A.squeeze(5), errors.AxisError, ["squeeze", "axis 5"]),
    "flip": (lambda: t(A).flip(axis=2), lambda: np.flip(A, 2), errors.AxisError, ["flip", "axis 2"]),
    "concat, axis": (lambda: ad.concat([t(A), t(A)], axis=2), lambda: np.concatenate([A, A], axis=2), errors.AxisError,
        ["concat", "axis 2"]),
    "stack, axis": (lambda: ad.stack([t(A), t(A)], axis=4), lambda: np.stack([A, A], axis=4), errors.AxisError,
        ["stack", "axis 4"]),
    "unstack": (lambda: ad.unstack(t(A), axis=2), None, errors.AxisError, ["unstack", "axis 2"]),
    "moveaxis": (lambda: ad.moveaxis(t(A), 0, 5), lambda: np.moveaxis(A, 0, 5), errors.AxisError,
        ["moveaxis", "axis 5"]),
    "moveaxis, pairs": (lambda: ad.moveaxis(t(A), (0, 1), 0), lambda: np.moveaxis(A, (0, 1), 0), errors.AxisError,
        ["moveaxis", "(0, 1)"]),
    "take, axis": (lambda: ad.take(t(A), [0], axis=2), lambda: np.take(A, [0], axis=2), errors.AxisError,
        ["take", "axis 2"]),
    "vector_norm": (lambda: ad.linalg.vector_norm(t(A), axis=2), lambda: np.linalg.vector_norm(A, axis=2),
        errors.AxisError, ["vector_norm", "axis 2"]),
    # indices
    "index": (lambda: t(A)[2], lambda: A[2], errors.OutOfRangeError, ["index 2", "axis 0 of size 2", "(2, 3)"]),
    "negative index": (lambda: t(A)[:, -4], lambda: A[:, -4], errors.OutOfRangeError, ["index -4", "axis 1 of size 3"]),
    "too many indices": (lambda: t(A)[0, 0, 0], lambda: A[0, 0, 0], errors.OutOfRangeError, ["3 indices", "(2, 3)"]),
    "a float index": (lambda: t(A)[1.0], lambda: A[1.0], errors.OutOfRangeError, ["integers", "1.0"]),
    "a string index": (lambda: t(A)["a"], lambda: A["a"], errors.OutOfRangeError, ["integers", "'a'"]),
    "an index in an array": (lambda: t(A)[[0, 5]], lambda: A[[0, 5]], errors.OutOfRangeError,
        ["index 5", "axis 0 of size 2"]),
    "a negative one": (lambda: t(A)[:, [-4, 0]], lambda: A[:, [-4, 0]], errors.OutOfRangeError, ["index -4", "axis 1"]),
    "an array of floats": (lambda: t(A)[np.array([0.5])], lambda: A[np.array([0.5])], errors.OutOfRangeError,
        ["float64", "integer or boolean"]),
    "a mask of another size": (lambda: t(A)[np.array([True])], lambda: A[np.array([True])], errors.OutOfRangeError,
        ["mask of size 1", "axis 0", "(2, 3)"]),
    "index arrays that do not broadcast": (lambda: t(A)[[0, 1], [0, 1, 2]], lambda: A[[0, 1], [0, 1, 2]],
        errors.OutOfRangeError, ["index", "(2,)", "(3,)"]),
    "two ellipses": (lambda: t(A)[..., ...], lambda: A[..., ...], errors.OutOfRangeError, ["only one ..."]),
    "an index into a scalar": (lambda: t(1.0)[0], lambda: np.array(1.0)[0], errors.OutOfRangeError,
        ["1 indices", "()"]),
    "take": (lambda: ad.take(t(A), [0, 3], axis=1), lambda: np.take(A, [0, 3], axis=1), errors.OutOfRangeError,
        ["index 3", "axis 1 of size 3"]),
    "take_along_axis, place": (lambda: ad.take_along_axis(t(A), [[5], [0]], axis=1),
        lambda: np.take_along_axis(A, np.array([[5], [0]]), 1), errors.OutOfRangeError, ["index 5"]),
    "a class": (lambda: ad.nn.cross_entropy(t(A), [0, 3]), None, errors.OutOfRangeError,
        ["cross entropy", "3", "3 classes"]),
    "a negative class": (lambda: ad.nn.cross_entropy(t(A), [0, -1]), None, errors.OutOfRangeError,
        ["cross entropy", "-1"]),
    # operands
    "times a string": (lambda: t(V) * "a", lambda: V * "a", errors.DtypeError, ["multiply", "number", "str", "'a'"]),
    "a string times": (lambda: "ab" * ad.tensor(2), lambda: "ab" * np.array(2), errors.DtypeError,
        ["multiply", "number", "str", "'ab'"]),
    "times bytes": (lambda: t(V) * b"a", lambda: V * b"a", errors.DtypeError, ["multiply", "bytes", "b'a'"]),
    "plus None": (lambda: t(V) + None, lambda: V + None, errors.DtypeError, ["add", "number", "None"]),
    "None plus": (lambda: None + t(V), lambda: None + V, errors.DtypeError, ["add", "number", "None"]),
    "plus a function": (lambda: t(V) + len, lambda: V + len, errors.DtypeError, ["add", "len"]),
    "plus a set": (lambda: operator.iadd(ad.ones(3), {1}), lambda: V + {1}, errors.DtypeError, ["add", "set"]),
    "to the power of a string": (lambda: t(V) ** "a", lambda: V ** "a", errors.DtypeError, ["pow", "'a'"]),
    "bits of a string": (lambda: ad.tensor(N) & "a", lambda: N & "a", errors.DtypeError, ["bitwise_and", "'a'"]),
    "less than a string": (lambda: t(V) < "a", lambda: V < "a", errors.DtypeError, ["less", "number", "'a'"]),
    "a long string": (lambda: t(V) + 1000 * "a", lambda: V + 1000 * "a", errors.DtypeError, ["add", "'aaa", "..."]),
    "times a deque": (lambda: t(V) * collections.deque([1.0]), None, errors.DtypeError, ["multiply", "deque"]),
    "matmul of a number": (lambda: t(V) @ 3, lambda: V @ 3, errors.ShapeError, ["matmul", "(3,)", "()", "*"]),
    "a number in matmul": (lambda: 3.5 @ t(V), lambda: 3.5 @ V, errors.ShapeError, ["matmul", "(3,)", "()", "*"]),
    "matmul of a NumPy number": (lambda: t(V) @ np.float64(3), lambda: V @ np.float64(3), errors.ShapeError,
        ["matmul", "*"]),
    "matmul of a string": (lambda: t(V) @ "a", lambda: V @ "a", errors.DtypeError, ["matmul", "str", "'a'"]),
    "matmul of None": (lambda: None @ t(V), None, errors.DtypeError, ["matmul", "None"]),
    "matmul in place": (lambda: operator.imatmul(ad.ones(3), None), None, errors.DtypeError, ["matmul", "None"]),
    # dtypes
    "adding a string": (lambda: ad.add(t(V), "a"), lambda: np.add(V, "a"), errors.DtypeError,
        ["add", "numbers", "'a'"]),
    "sine of a string": (lambda: ad.sin("a"), lambda: np.sin("a"), errors.DtypeError, ["sin", "numbers", "str"]),
    "sine of None": (lambda: ad.sin(None), lambda: np.sin(None), errors.DtypeError, ["sin", "NoneType"]),
    "sine of objects": (lambda: ad.sin(np.array([None])), lambda: np.sin(np.array([None])), errors.DtypeError,
        ["sin", "object"]),
    "a list of strings": (lambda: ad.concat(["a"]), None, errors.DtypeError, ["concat", "str"]),
    "bits of floats": (lambda: t(V) & t(V), lambda: V & V, errors.DtypeError,
        ["bitwise_and", "integers or booleans", "float64", "astype"]),
    "inversion of floats": (lambda: ~t(V), lambda: ~V, errors.DtypeError,
        ["bitwise_invert", "integers or booleans", "float64"]),
    "shift of floats": (lambda: t(V) << 1, lambda: V << 1, errors.DtypeError,
        ["bitwise_left_shift", "integers", "float64"]),
    "minus a boolean": (lambda: -ad.tensor([True]), lambda: -np.array([True]), errors.DtypeError,
        ["negative", "bool", "~"]),
    "order of complex numbers": (lambda: t(Z) < t(Z), None, errors.DtypeError, ["less", "real", "complex128", "abs"]),
    "maximum of complex numbers": (lambda: ad.maximum(t(Z), 1.0), None, errors.DtypeError,
        ["maximum", "real", "complex128"]),
    "order of complex and scalar": (lambda: t(Z) >= 1.0, None, errors.DtypeError,
        ["greater_equal", "real", "complex128"]),
    "floor division of complex numbers": (lambda: t(Z) // t(Z), lambda: Z // Z, errors.DtypeError,
        ["floor_divide", "real", "complex128"]),
    "remainder of complex numbers": (lambda: t(Z) % 2.0, lambda: Z % 2.0, errors.DtypeError,
        ["remainder", "real", "complex128"]),
    "atan2 of complex numbers": (lambda: ad.atan2(t(Z), t(Z)), lambda: np.atan2(Z, Z), errors.DtypeError,
        ["atan2", "real", "complex128"]),
    "floor of complex numbers": (lambda: ad.floor(t(Z)), lambda: np.floor(Z), errors.DtypeError,
        ["floor", "real", "complex128"]),
    "max of complex numbers": (lambda: t(Z).max(), None, errors.DtypeError, ["max", "order", "complex128"]),
    "sort of complex numbers": (lambda: ad.sort(t(Z)), None, errors.DtypeError, ["sort", "order", "complex128"]),
    "clip of complex numbers": (lambda: ad.clip(t(Z), 0, 1), None, errors.DtypeError, ["clip", "real", "complex128"]),
    "erfcx of complex numbers": (
        lambda: ad.special.erfcx(t(Z)), None, errors.DtypeError, ["erfcx", "real", "complex128"]),
    "a Bessel function by its order": (
        lambda: ad.grad(lambda v: ad.special.jv(v, 2.0))(0.5), None, errors.TrackedError, ["jv", "order", "detach"]),
    "a fractional order": (lambda: ad.special.kn(0.5, t(V)), None, errors.ArgumentError, ["kn", "whole", "0.5"]),
    "a branch that is not real": (
        lambda: ad.special.lambertw(t(V), 1), None, errors.ArgumentError, ["lambertw", "k=1"]),
    "relu of complex numbers": (lambda: ad.nn.relu(t(Z)), None, errors.DtypeError, ["relu", "real", "complex128"]),
    "wider bounds": (lambda: ad.clip(ad.ones(3), V, None), None, errors.DtypeError,
        ["clip", "float64", "float32", "astype"]),
    "a condition of floats": (lambda: ad.where(t(V), t(V), t(V)), None, errors.DtypeError,
        ["where", "boolean", "float64", "x != 0"]),
    "uint64 and int8": (lambda: ad.ones(1, dtype=ad.uint64) + ad.ones(1, dtype=ad.int8), None, errors.DtypeError,
        ["add", "uint64", "int8", "astype"]),
    "targets of floats": (lambda: ad.nn.cross_entropy(t(A), [0.0, 1.0]), None, errors.DtypeError,
        ["cross_entropy", "integers", "float64"]),
    "a masked array": (lambda: ad.asarray(MASKED), None, errors.DtypeError, ["asarray", "masked", "filled"]),
    "masked operands": (lambda: t(V) * MASKED, None, errors.DtypeError, ["multiply", "masked"]),
    "masked operands on the left": (lambda: MASKED + t(V), None, errors.TrackedError, ["NumPy array", "detach()"]),
    "a list of masked arrays": (lambda: ad.tensor([V, MASKED]), None, errors.DtypeError, ["tensor", "masked"]),
    "a masked index": (lambda: t(V)[np.ma.array([0, 1], mask=[0, 1])], None, errors.DtypeError, ["index", "masked"]),
    "a masked argument": (lambda: ad.grad(ad.sum)(MASKED), None, errors.DtypeError, ["masked"]),
    "a masked tangent": (lambda: ad.jvp(ad.sin, (V,), (MASKED,)), None, errors.DtypeError, ["masked"]),
    "a masked batch": (lambda: ad.vmap(ad.sin)(MASKED), None, errors.DtypeError, ["masked"]),
    "a masked point": (lambda: ad.testing.check_grads(ad.sin, (MASKED,)), None, errors.DtypeError, ["masked"]),
    "a tensor of text": (lambda: ad.tensor("a"), None, errors.DtypeError, ["tensor", "numbers", "str"]),
    "a tensor of nothing": (lambda: ad.tensor(None), None, errors.DtypeError, ["tensor", "NoneType"]),
    "a tensor of dates": (lambda: ad.tensor(np.array(["2020"], "M8")), None, errors.DtypeError,
        ["tensor", "datetime64"]),
    "an unknown dtype": (lambda: ad.tensor([1.0], dtype="abc"), lambda: np.array([1.0], dtype="abc"), errors.DtypeError,
        ["'abc'", "float32"]),
    "a dtype that no backend has": (lambda: t(V).astype("S3"), None, errors.DtypeError, ["'S3'", "float32"]),
    "complex values as real": (lambda: ad.tensor([1j], dtype=ad.float32), lambda: np.array([1j], dtype="f4"),
        errors.DtypeError, ["complex", "float32", ".real"]),
    "random integers of floats": (lambda: ad.random.uniform(2, dtype=ad.int64), None, errors.DtypeError,
        ["uniform", "floating", "int64"]),
    # integers that do not fit
    "a scalar too large": (lambda: ad.ones(1, dtype=ad.uint8) + 300, lambda: np.ones(1, "u1") + 300, errors.RangeError,
        ["add", "300", "uint8", "astype"]),
    "a scalar too small": (lambda: ad.ones(1, dtype=ad.uint8) * -1, lambda: np.ones(1, "u1") * -1, errors.RangeError,
        ["multiply", "-1", "uint8"]),
    "a list too large": (lambda: ad.tensor([1, 300], dtype=ad.uint8), lambda: np.array([1, 300], dtype="u1"),
        errors.RangeError, ["tensor", "300", "uint8"]),
    "full": (lambda: ad.full(2, 300, dtype=ad.int8), lambda: np.full(2, 300, dtype="i1"), errors.RangeError,
        ["full", "300", "int8"]),
    # other arguments
    "negative powers of integers": (lambda: ad.tensor(N) ** -1, lambda: N**-1, errors.ArgumentError,
        ["pow", "int64", "-1"]),
    "pad": (lambda: ad.pad(t(A), (1, 2, 3)), lambda: np.pad(A, (1, 2, 3)), errors.ArgumentError, ["pad", "(1, 2, 3)"]),
    "pad by less than nothing": (lambda: ad.pad(t(A), -1), lambda: np.pad(A, -1), errors.ArgumentError,
        ["pad", "-1", "non-negative"]),
    "roll": (lambda: ad.roll(t(A), (1, 2), axis=0), None, errors.ArgumentError, ["roll", "2 shifts for 1 axes"]),
    "roll by a float": (lambda: ad.roll(t(A), 1.5, axis=0), None, errors.ArgumentTypeError,
        ["roll", "integers", "1.5"]),
    "repeat by too few": (lambda: ad.repeat(t(A), [1, 2]), None, errors.ShapeError, ["repeat", "[1, 2]"]),
    "repeat by fractions": (lambda: ad.repeat(t(A), [1.5]), None, errors.ArgumentTypeError, ["repeat", "[1.5]"]),
    "topk": (lambda: ad.topk(t(V), 4), None, errors.ArgumentError, ["topk", "size 3", "4"]),
    "arange, step": (lambda: ad.arange(0, 5, 0), None, errors.ArgumentError, ["arange", "zero"]),
    "arange, text": (lambda: ad.arange("a"), None, errors.ArgumentTypeError, ["arange", "'a'"]),
    "a reduction": (lambda: ad.nn.mse_loss(t(V), t(V), reduction="max"), None, errors.ArgumentError,
        ["mse_loss", "'mean', 'sum' or 'none'", "'max'"]),
    "a stride of zero": (lambda: ad.nn.conv2d(t(IMAGE), t(IMAGE), stride=0), None, errors.ArgumentError,
        ["conv2d: stride", "at least 1", "0"]),
    "padding by name": (lambda: ad.nn.conv2d(t(IMAGE), t(IMAGE), padding="full"), None, errors.ArgumentError,
        ["conv2d: padding", "'full'"]),
    "no groups": (lambda: ad.nn.conv2d(t(IMAGE), t(IMAGE), groups=0), None, errors.ArgumentError,
        ["conv2d: groups", "0"]),
    "padding wider than the window": (lambda: ad.nn.max_pool2d(t(IMAGE), 2, padding=2), None, errors.ArgumentError,
        ["max_pool2d", "(2, 2)"]),
    "a norm": (lambda: ad.linalg.norm(t(A), 7), lambda: np.linalg.norm(A, 7), errors.ArgumentError,
        ["matrix_norm", "7", "'fro'"]),
    "a matrix norm of vectors": (lambda: ad.linalg.norm(t(V), "fro"), lambda: np.linalg.norm(V, "fro"),
        errors.ArgumentError, ["norm", "'fro'", "matrices"]),
    "a norm of three axes": (lambda: ad.linalg.norm(t(IMAGE[0]), 1), lambda: np.linalg.norm(IMAGE[0], 1),
        errors.ArgumentError, ["norm", "ord=1", "3"]),
    "no norm of matrices": (lambda: ad.linalg.matrix_norm(t(A), ord=3), lambda: np.linalg.norm(A, 3),
        errors.ArgumentError, ["matrix_norm", "'nuc'", "received 3"]),
    "factors of a nan": (lambda: ad.linalg.svd(t([[math.nan, 1.0], [1.0, 1.0]])),
        lambda: np.linalg.svd([[math.nan, 1.0], [1.0, 1.0]]), errors.SingularError, ["svd", "nan or inf", "isfinite"]),
    "eigenvectors of a rectangle": (lambda: ad.linalg.eigh(t(np.ones((2, 3)))),
        lambda: np.linalg.eigh(np.ones((2, 3))), errors.NotSquareError, ["eigh", "square", "(2, 3)"]),
    "a transform of nothing": (lambda: ad.fft.fft(t(V), n=0), lambda: np.fft.fft(V, 0), errors.ShapeError,
        ["fft", "0 elements", "one or more"]),
    "meshgrid": (lambda: ad.meshgrid(t(V), indexing="a"), lambda: np.meshgrid(V, indexing="a"), errors.ArgumentError,
        ["meshgrid", "'a'", "'xy' or 'ij'"]),
    "a seed": (lambda: ad.random.seed(-1), lambda: np.random.seed(-1), errors.ArgumentError,
        ["seed", "non-negative", "-1"]),
    "a negative deviation": (lambda: ad.random.normal(2, std=-1), lambda: np.random.normal(0, -1), errors.ArgumentError,
        ["normal", "-1"]),
    "a probability": (lambda: ad.random.bernoulli(2.0), lambda: np.random.binomial(1, 2.0), errors.ArgumentError,
        ["bernoulli", "between 0 and 1", "2.0"]),
    "an empty range": (lambda: ad.random.integers(5, 5), lambda: np.random.default_rng().integers(5, 5),
        errors.ArgumentError, ["integers", "[5, 5)", "empty"]),
    "a range of floats": (lambda: ad.random.integers(0.5, 2), None, errors.ArgumentTypeError, ["integers", "0.5"]),
    "a list of tensors": (lambda: ad.tensor([t(1.0), t(2.0)]), None, errors.ArgumentError, ["tensor", "ad.stack"]),
    "truth of several": (lambda: bool(t(V)), lambda: bool(V), errors.ArgumentError, ["ambiguous", "(3,)", ".any()"]),
    "item of several": (lambda: t(V).item(), lambda: V.item(), errors.ArgumentError, ["item", "(3,)", "tolist()"]),
    "length of a scalar": (lambda: len(t(1.0)), lambda: len(np.array(1.0)), errors.ArgumentTypeError,
        ["0-d", "item()"]),
    "iteration over a scalar": (lambda: list(t(1.0)), lambda: list(np.array(1.0)), errors.ArgumentTypeError,
        ["0-d", "item()"]),
    "a float as index": (lambda: [1][t(V)], lambda: [1][V], errors.ArgumentTypeError, ["integer", "float64", "(3,)"]),
    "the correction of var": (lambda: t(V).var(correction="a"), lambda: np.var(V, correction="a"),
        errors.ArgumentTypeError, ["var: correction", "'a'"]),
    "the correction of std": (lambda: t(V).std(correction=None), lambda: np.std(V, correction=None),
        errors.ArgumentTypeError, ["std: correction", "None"]),
    "bounds that are no numbers": (lambda: ad.linspace(0, "a", 3), lambda: np.linspace(0, "a", 3),
        errors.ArgumentTypeError, ["linspace", "number", "'a'"]),
    "an endless range": (lambda: ad.arange(0, np.inf), lambda: np.arange(0, np.inf), errors.ArgumentError,
        ["arange", "finite", "inf"]),
    "full of a list": (lambda: ad.full(2, [1, 2]), None, errors.ArgumentTypeError, ["full", "one number", "[1, 2]"]),
    "full_like of nothing": (lambda: ad.full_like(t(V), None), None, errors.ArgumentTypeError,
        ["full_like", "one number", "None"]),
    "complex borders": (lambda: ad.pad(t(V), 1, value=1j), None, errors.DtypeError, ["pad", "1j", "float64", ".real"]),
    "a diagonal": (lambda: ad.tril(t(A), k="a"), lambda: np.tril(A, "a"), errors.ArgumentTypeError,
        ["tril: k", "integer", "'a'"]),
    "the diagonal of eye": (lambda: ad.eye(2, k="a"), lambda: np.eye(2, k="a"), errors.ArgumentTypeError,
        ["eye: k", "integer", "'a'"]),
    "axes of tensordot": (lambda: ad.tensordot(t(V), t(V), axes=1.5), lambda: np.tensordot(V, V, 1.5),
        errors.ArgumentTypeError, ["tensordot", "axes", "1.5"]),
    "a probability that is no number": (lambda: ad.random.bernoulli("a"), None, errors.ArgumentTypeError,
        ["bernoulli: p", "'a'"]),
    "a bound that is no number": (lambda: ad.random.uniform(2, low=None), None, errors.ArgumentTypeError,
        ["uniform: low", "None"]),
    "a deviation that is no number": (lambda: ad.random.normal(2, std="a"), None, errors.ArgumentTypeError,
        ["normal: std", "'a'"]),
    "meshgrid of text": (lambda: ad.meshgrid("a"), None, errors.DtypeError, ["meshgrid", "str"]),
    "float of several": (lambda: float(t(V)), lambda: float(V), errors.ArgumentTypeError,
        ["float", "(3,)", "tolist()"]),
    "int of several": (lambda: int(t(V)), lambda: int(V), errors.ArgumentTypeError, ["int", "(3,)", "tolist()"]),
    "complex of several": (lambda: complex(t(V)), lambda: complex(V), errors.ArgumentTypeError,
        ["complex", "(3,)", "tolist()"]),
    "float of nothing": (lambda: float(t([])), lambda: float(np.array([])), errors.ArgumentTypeError,
        ["float", "(0,)"]),
    "float of a complex number": (lambda: float(t(1j)), lambda: float(1j), errors.DtypeError,
        ["float", "real", "complex64", ".real"]),
    "int of a complex number": (lambda: int(t([1j])), lambda: int(1j), errors.DtypeError, ["int", "real", "complex64"]),
    "int of nan": (lambda: int(ad.tensor(np.nan)), lambda: int(np.array(np.nan)), errors.ArgumentError, ["int", "nan"]),
    "int of infinity": (lambda: int(ad.tensor(-np.inf)), lambda: int(np.array(-np.inf)), errors.RangeError,
        ["int", "-inf"]),
    "float of what is tracked": (lambda: float(t(1.0)), None, errors.TrackedError,
        [".item() is the plain value; float(x)", "ad.stack", "ad.sin"]),
    "zeros_like of text": (lambda: ad.zeros_like("a"), None, errors.DtypeError, ["zeros_like", "str"]),
    "keepdims of text": (lambda: t(A).sum(keepdims="a"), lambda: A.sum(keepdims="a"), errors.ArgumentTypeError,
        ["sum: keepdims", "True or False", "'a'"]),
    "keepdims of the mean": (lambda: t(A).mean(keepdims=None), lambda: A.mean(keepdims=None), errors.ArgumentTypeError,
        ["mean: keepdims", "None"]),
    "keepdims of a norm": (lambda: ad.linalg.norm(t(A), keepdims=t(A)), None, errors.ArgumentTypeError,
        ["norm: keepdims", "<Tensor of float64 and shape (2, 3)>"]),
    "sizes one by one": (lambda: t(A).reshape(-1, 2.0), lambda: A.reshape(-1, 2.0), errors.ArgumentTypeError,
        ["reshape", "sizes are integers", "(-1, 2.0)"]),
    "axes one by one": (lambda: t(A).permute_dims(1, 0), None, errors.ArgumentTypeError, ["x.permute_dims((1, 0))"]),
    "a shape one by one": (lambda: t(V).broadcast_to(2, 3), None, errors.ArgumentTypeError, ["x.broadcast_to((2, 3))"]),
    "a deleted element": (lambda: t(A).__delitem__(0), lambda: A.copy().__delitem__(0), errors.ArgumentTypeError,
        ["del", "(2, 3)", "ad.concat"]),
    "layer_norm by its weight": (lambda: ad.nn.layer_norm(t(A), t(np.ones(300))), None, errors.ArgumentTypeError,
        ["layer_norm", "normalized_shape", "<Tensor of float64 and shape (300,)>"]),
    "layer_norm by a float": (lambda: ad.nn.layer_norm(t(A), 3.0), None, errors.ArgumentTypeError,
        ["layer_norm", "normalized_shape", "3.0"]),
    "layer_norm, a small tensor": (lambda: ad.nn.layer_norm(t(A), 3, eps=t(V)), None, errors.ArgumentTypeError,
        ["layer_norm: eps", "(3,)"]),
    "arange of a tensor": (lambda: ad.arange(t(np.ones(300))), None, errors.ArgumentTypeError,
        ["arange", "number", "<Tensor of float64 and shape (300,)>"]),
    "a shape of floats": (lambda: ad.zeros(t(np.ones(300))), None, errors.ArgumentTypeError,
        ["zeros", "<Tensor of float64 and shape (300,)>"]),
    "an integer too large for all": (lambda: ad.tensor(2**70), None, errors.RangeError,
        ["tensor", str(2**70), "overflows int64"]),
    "one among others": (lambda: t(V) * [1, 2, -(10**400)], None, errors.RangeError, ["multiply", "overflows int64"]),
    "an integer too large for floats": (lambda: ad.tensor(10**400, dtype=ad.float64), None, errors.RangeError,
        ["overflows float64"]),
    "from_dlpack of a number": (lambda: ad.from_dlpack(5), None, errors.ArgumentTypeError,
        ["from_dlpack", "__dlpack__", "int"]),
    # singular matrices
    "inv": (lambda: ad.linalg.inv(t(np.ones((2, 2)))), lambda: np.linalg.inv(np.ones((2, 2))), errors.SingularError,
        ["inv", "singular", "(2, 2)"]),
    "solve, singular": (lambda: ad.linalg.solve(t(np.ones((2, 2))), t([1.0, 2.0])),
        lambda: np.linalg.solve(np.ones((2, 2)), np.ones(2)), errors.SingularError, ["solve", "singular"]),
    "cholesky": (lambda: ad.linalg.cholesky(t(-np.eye(2))), lambda: np.linalg.cholesky(-np.eye(2)),
        errors.SingularError, ["cholesky", "not positive definite", "(2, 2)"]),
    # backends
    "an unknown device": (lambda: ad.zeros(2, device="gpu"), lambda: np.zeros(2, device="gpu"), errors.DeviceError,
        ["'gpu'", "numpy"]),
    "a device of another type": (lambda: ad.zeros(2, device=5), None, errors.DeviceError, ["ad.NumPy()", "5"]),
    "an unknown inner device": (lambda: ad.device("autodiff<x>"), None, errors.DeviceError, ["'x'"]),
    "an unknown option": (lambda: ad.device("autodiff[foo]<numpy>"), None, errors.DeviceError, ["foo"]),
    "use_device": (lambda: ad.use_device("x"), None, errors.DeviceError, ["'x'"]),
    "set_default_device": (lambda: ad.set_default_device("x"), None, errors.DeviceError, ["'x'"]),
    "Autodiff over a number": (lambda: ad.Autodiff(5), None, errors.DeviceError, ["ad.NumPy()", "5"]),
    "mixed backends": (lambda: t(V) + ad.ones(3, device="reference"), None, errors.DeviceError,
        ["autodiff<numpy>", "reference", "to_device"]),
    "mixed backends in concat": (lambda: ad.concat([t(V), ad.ones(3, dtype=ad.float64, device="autodiff<reference>")]),
        None, errors.DeviceError, ["do not meet"]),
    # gradients
    "the gradient by a number": (lambda: (t(V) * 2).backward(wrt=[3]), None, errors.ArgumentTypeError,
        ["backward", "wrt", "3"]),
    "the gradient by no sequence": (lambda: (t(V) * 2).backward(wrt=3), None, errors.ArgumentTypeError,
        ["backward: wrt", "3"]),
    "the gradient by an array": (lambda: (t(V) * 2).backward(wrt=V), None, errors.ArgumentTypeError,
        ["backward", "wrt", "1.0"]),
    "a tracked cotangent": (lambda: (t(V) * 2).backward(t(V)), None, errors.DeviceError,
        ["backward", "cotangent", "autodiff<numpy>", "inner()"]),
    "a tracked bound": (lambda: ad.linspace(t(1.0), 2, 3), None, errors.TrackedError, ["linspace", "detach()"]),
    "a tracked border": (lambda: ad.pad(t(V), 1, value=t(1.0)), None, errors.TrackedError, ["pad", "detach()"]),
    "full of a tensor": (lambda: ad.full(2, t(V)), None, errors.ArgumentTypeError, ["full", "one number", "(3,)"]),
    "full of a tracked tensor, elsewhere": (lambda: ad.full(2, t(1.0), device="numpy"), None, errors.TrackedError,
        ["numpy", "detach()"]),
    "a complex fill": (lambda: ad.full(2, t(1j), dtype=ad.float32), None, errors.DtypeError, ["full", "complex"]),
    "a cotangent": (lambda: (t(V) * 2).backward([1.0, 2.0]), None, errors.ShapeError, ["backward", "(3,)", "(2,)"]),
    "backward without autodiff": (lambda: ad.ones(2, device="numpy").backward(), None, errors.NoAutodiffError,
        ["backward", "numpy", "autodiff<numpy>"]),
    "backward of a constant": (lambda: ad.ones(2).backward(), None, errors.GraphError,
        ["backward", "(2,)", "require_grad()"]),
    "gradients of integers": (lambda: ad.tensor(N).require_grad(), None, errors.DtypeError,
        ["require_grad", "int64", "astype"]),
    "a tracked tensor as array": (lambda: np.asarray(t(V)), None, errors.TrackedError, ["NumPy", "detach()"]),
}  # fmt: skip


def builtin_of(f: Callable[[], Any]) -> type[BaseException]:
    """The exception that NumPy raises: a built-in one, LinAlgError, or what another of its own derives from."""
    try:
        f()
    except Exception as error:
        return next(kind for kind in type(error).__mro__ if kind.__module__ in ("builtins", "numpy.linalg"))
    raise AssertionError("NumPy takes this")


@pytest.mark.parametrize("name", ROWS)
def test_bad_input(name: str) -> None:
    ours, theirs, expected, parts = ROWS[name]
    with pytest.raises(errors.AdjointError) as caught:
        ours()
    assert type(caught.value) is expected
    message = str(caught.value)
    for part in parts:
        assert part in message, message
    assert len(message) < 400
    if theirs is not None:
        builtin = builtin_of(theirs)
        assert isinstance(caught.value, builtin), (builtin, message)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row[2] is not errors.NoAutodiffError])
def test_bad_input_changes_nothing(name: str) -> None:
    """Neither the default device nor the random state nor the tracing mode of a program is touched."""
    device = ad.default_device()
    device.seed(5)
    with pytest.raises(errors.AdjointError):
        ROWS[name][0]()
    assert ad.default_device() is device
    if "seed" not in name:
        draw = ad.random.uniform(2).tolist()
        device.seed(5)
        assert ad.random.uniform(2).tolist() == draw


def test_the_same_errors_come_from_every_leaf() -> None:
    """What a leaf's library says differs; what the user reads does not."""
    for device in ("numpy", "reference", "autodiff<numpy>", "autodiff<reference>"):
        x, y = ad.ones((2, 3), device=device), ad.ones(2, device=device)
        for f, error, part in [
            (lambda x, y: x + y, errors.ShapeError, "add: shapes (2, 3) and (2,)"),
            (lambda x, y: x @ x, errors.ShapeError, "matmul: shapes (2, 3) and (2, 3)"),
            (lambda x, y: ad.concat([x, y]), errors.ShapeError, "concat"),
            (lambda x, y: x[2], errors.OutOfRangeError, "index 2"),
            (lambda x, y: x[[0, 3]], errors.OutOfRangeError, "index 3"),
            (lambda x, y: ad.linalg.det(x), errors.NotSquareError, "det: expected square matrices"),
            (lambda x, y: run("inv", (x,)), errors.NotSquareError, "inv: expected square matrices"),
            (lambda x, y: ad.linalg.inv(x[:, :2] * 0), errors.SingularError, "inv: a matrix is singular"),
            (lambda x, y: ad.linalg.cholesky(x[:, :2] * -1), errors.SingularError, "not positive definite"),
            (
                lambda x, y: ad.nn.cross_entropy(x, ad.tensor([0, 3], device=x.device)),
                errors.OutOfRangeError,
                "3 classes",
            ),
            (lambda x, y: x & x, errors.DtypeError, "bitwise_and"),
        ]:
            with pytest.raises(error, match=re.escape(part)):
                f(x, y)


# --- the tree ---


def tree(kind: type[Exception]) -> list[type[Exception]]:
    return [
        kind,
        *[leaf for child in kind.__subclasses__() for leaf in tree(child) if leaf.__module__ == errors.__name__],
    ]


def test_every_error_is_a_builtin_one_too() -> None:
    for kind in tree(errors.AdjointError)[1:]:
        builtins = [base for base in kind.__mro__ if base.__module__ in ("builtins", "numpy.linalg")]
        assert builtins[0] is not Exception, kind
        assert kind.__doc__
        assert kind.__name__ in (errors.__doc__ or "")


def test_the_docstring_draws_the_tree() -> None:
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    assert sorted(drawn) == sorted(kind.__name__ for kind in tree(errors.AdjointError)[1:])


def test_errors_pickle() -> None:
    for kind in tree(errors.AdjointError):
        again = pickle.loads(pickle.dumps(kind("what happened")))
        assert type(again) is kind
        assert str(again) == "what happened"


def test_key_errors_show_their_message_without_quotes() -> None:
    assert str(errors.NoGradientError("no gradient")) == "no gradient"


# --- nothing is half changed ---


def test_a_failed_use_device_changes_nothing() -> None:
    before = ad.default_device()
    with pytest.raises(errors.DeviceError):
        ad.use_device("nothing")
    assert ad.default_device() is before


def test_the_default_device_is_restored_after_an_exception() -> None:
    before = ad.default_device()

    def fail() -> None:
        with ad.use_device("numpy"):
            assert ad.default_device() is ad.NumPy()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert ad.default_device() is before


def test_a_failed_operation_leaves_the_graph_usable(device: Any) -> None:
    x = t(V)
    y = x * 2
    for wrong in (lambda: y + t(np.ones(2)), lambda: y @ t(A), lambda: y[5], lambda: y.reshape((2, 2)), lambda: y & y):
        with pytest.raises(errors.AdjointError):
            wrong()
    assert y.sum().backward()[x].tolist() == [2.0, 2.0, 2.0]


def test_a_failed_with_value_and_grad_replace_change_nothing(device: Any) -> None:
    x = t(V)
    grads = (x * 2).sum().backward()
    for wrong in (lambda: x.with_value([1.0]), lambda: x.grad_replace(grads, [1.0]), lambda: grads.__setitem__(x, "a")):
        with pytest.raises(errors.AdjointError):
            wrong()
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert grads[x].tolist() == [2.0, 2.0, 2.0]


def test_errors_chain_their_cause() -> None:
    with pytest.raises(errors.SingularError) as caught:
        ad.linalg.inv(t(np.ones((2, 2))))
    assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)


def test_no_error_is_its_own_cause() -> None:
    """Who follows causes would not come to an end, as Dask's workers do not."""
    x = ad.tensor([np.inf, 1.0], device="checked<numpy>")
    for f in (lambda: x - x, lambda: ad.subtract(x, x), lambda: ad.ones(2) + ad.ones(3), lambda: ad.ones(2)[5]):
        with pytest.raises(errors.AdjointError) as found:
            f()
        assert found.value.__cause__ is not found.value
