"""The public functions over `Tensor`, by topic; the topics are the modules.

Importing this package gives the methods of `Tensor` their bodies.
"""

from adjoint.functions import (
    conversion,
    creation,
    elementwise,
    gradients,
    indexing,
    inspection,
    manipulation,
    products,
    pytrees,
    reductions,
    sets,
)
from adjoint.tensor import bind

_TOPICS = (
    creation, elementwise, reductions, manipulation, indexing, products, conversion, gradients, inspection, sets,
    pytrees,
)  # fmt: skip
bind(
    {
        name: function
        for topic in _TOPICS
        for name, function in vars(topic).items()
        if getattr(function, "__module__", None) == topic.__name__
    }
)
