"""The public functions over `Tensor`, by topic; the topics are the modules.

Importing this package gives the methods of `Tensor` their bodies.
"""

from adjoint.functions import (
    conversion,
    creation,
    elementwise,
    gradients,
    indexing,
    manipulation,
    products,
    reductions,
)
from adjoint.tensor import bind

bind(
    {
        name: function
        for topic in (creation, elementwise, reductions, manipulation, indexing, products, conversion, gradients)
        for name, function in vars(topic).items()
        if getattr(function, "__module__", None) == topic.__name__
    }
)
