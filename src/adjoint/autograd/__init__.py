"""HIPS autograd's names over adjoint: change the import, and the program runs, on arrays of any library with a leaf.

    import adjoint.autograd.numpy as np
    from adjoint.autograd import grad

Functions are called with boxes where they are differentiated, and with arrays otherwise. No derivative is defined here:
those of NumPy's and SciPy's functions are adjoint's. docs/autograd.md has what is there, and what is different.

>>> import adjoint.autograd.numpy as np
>>> from adjoint.autograd import grad
>>> grad(lambda x: np.tanh(x) * x[0])(np.array([0.5]))
array([0.85534102])
"""

from adjoint.autograd import extend, numpy, tracer  # noqa: F401  # which programs find here without an import
from adjoint.autograd.builtins import dict, isinstance, list, tuple, type
from adjoint.autograd.differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_jvp_reversemode,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from adjoint.autograd.primitives import primitive

__all__ = [
    "checkpoint", "deriv", "dict", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian",
    "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "isinstance", "jacobian", "list",
    "make_ggnvp", "make_hvp", "make_jvp", "make_jvp_reversemode", "make_vjp", "multigrad_dict", "primitive",
    "tensor_jacobian_product", "tuple", "type", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip
