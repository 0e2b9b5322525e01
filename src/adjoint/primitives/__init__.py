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
    attention,
    contraction,
    convolution,
    creation,
    elementwise,
    fft,
    indexing,
    linalg,
    masks,
    normalization,
    pooling,
    random,
    recurrence,
    reduction,
    scatter,
    shape,
    sorting,
    special,
)
from adjoint.primitives.convolution import conv_shape, conv_size
from adjoint.primitives.elementwise import CAST
from adjoint.primitives.indexing import ARRAY, Key, adjacent, index_shape, slices
from adjoint.primitives.pooling import window_shape
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
    "attention",
    "broadcast_shapes",
    "contraction",
    "conv_shape",
    "conv_size",
    "convolution",
    "creation",
    "elementwise",
    "fft",
    "function_named",
    "index_shape",
    "indexing",
    "linalg",
    "masks",
    "normalization",
    "pooling",
    "random",
    "real_dtype",
    "recurrence",
    "reduction",
    "result_spec",
    "same_dtype",
    "scatter",
    "shape",
    "slices",
    "sorting",
    "special",
    "window_shape",
]
