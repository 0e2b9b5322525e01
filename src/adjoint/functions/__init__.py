"""The public functions over `Tensor`, by topic; the topics are the modules.

Importing this package gives the methods of `Tensor` their bodies, by the table below.
"""

from adjoint import operands
from adjoint.functions import (
    conversion,
    creation,
    elementwise,
    gradients,
    indexing,
    inspection,
    manipulation,
    products,
    pytrees,  # noqa: F401  # registers tensors with JAX
    reductions,
)
from adjoint.tensor import Tensor, bind

# Methods are functions of the same name: where each is.
_METHODS = {
    creation: "astype to_device",
    elementwise: "abs ceil clip conj cos exp floor imag log real round sign sin sqrt square tanh",
    reductions: "all any argmax argmin cumulative_prod cumulative_sum max mean min prod std sum var",
    manipulation: "broadcast_to expand_dims flip permute_dims reshape squeeze",
    indexing: "__getitem__ __setitem__ argsort sort take",
    products: "__imatmul__ __matmul__ __rmatmul__ matmul",
    conversion: "__array__ __array_function__ __array_ufunc__ __copy__ __deepcopy__ __dlpack__ __dlpack_device__ "
    "__format__ __reduce__ __repr__ _repr_html_ compute item native numpy persist tolist",
    gradients: "backward detach grad grad_remove grad_replace inner is_require_grad is_tracked require_grad "
    "set_require_grad with_value",
    inspection: "__array_namespace__",
}
bind(
    Tensor,
    [
        *operands.OPERATORS.items(),
        *elementwise.OPERATORS.items(),
        *[(name, vars(topic)[name]) for topic, names in _METHODS.items() for name in names.split()],
    ],
)
