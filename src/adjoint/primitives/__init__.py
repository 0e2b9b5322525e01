"""The table of primitives: what a backend can be asked to do.

A primitive is a name with a kind, the names of its operands (arrays, positional), the names of its
parameters (static, by keyword), the number of its results, and two rules that say what shape and
dtype come out. Nothing here computes: leaf backends implement primitives, `rules` says how they
are differentiated, and functions on tensors validate and normalise what users pass.

What a call may rely on: axes are non-negative and in range, `axis` of a reduction is a tuple, all
floating operands of a call share one dtype or are Python scalars.
Each module declares the primitives of a kind.
"""

from adjoint.primitives import (
    arrays,
    attention,
    contraction,
    creation,
    elementwise,
    fourier,
    linalg,
    masks,
    normalization,
    reduction,
    special,
    structural,
    windows,
)
from adjoint.primitives.contraction import conv_shape, conv_size
from adjoint.primitives.elementwise import CAST
from adjoint.primitives.indexing import ARRAY, Key, adjacent, index_shape, slices
from adjoint.primitives.table import (
    ANY,
    CONTRACTION,
    CREATION,
    ELEMENTWISE,
    INDEX,
    INDEXING,
    KINDS,
    LINALG,
    RANDOM,
    REDUCTION,
    STRUCTURAL,
    TABLE,
    Accepted,
    DType,
    Kind,
    Primitive,
    Shape,
    Spec,
    broadcast_shapes,
    function_named,
    real_dtype,
    result_spec,
    same_dtype,
)
from adjoint.primitives.windows import window_shape

__all__ = [
    "ANY",
    "ARRAY",
    "CAST",
    "CONTRACTION",
    "CREATION",
    "ELEMENTWISE",
    "INDEX",
    "INDEXING",
    "KINDS",
    "LINALG",
    "RANDOM",
    "REDUCTION",
    "STRUCTURAL",
    "TABLE",
    "Accepted",
    "DType",
    "Key",
    "Kind",
    "Primitive",
    "Shape",
    "Spec",
    "adjacent",
    "arrays",
    "attention",
    "broadcast_shapes",
    "contraction",
    "conv_shape",
    "conv_size",
    "creation",
    "elementwise",
    "fourier",
    "function_named",
    "index_shape",
    "linalg",
    "masks",
    "normalization",
    "real_dtype",
    "reduction",
    "result_spec",
    "same_dtype",
    "slices",
    "special",
    "structural",
    "window_shape",
    "windows",
]
