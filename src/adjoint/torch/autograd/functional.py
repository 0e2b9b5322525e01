"""`torch.autograd.functional`: products with Jacobians and Hessians, and these themselves, of functions of tensors."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

from adjoint.torch import engine
from adjoint.torch.creation import eye, zeros
from adjoint.torch.func import jacfwd, jacrev
from adjoint.torch.missing import missing as _missing
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.reductions import stack
from adjoint.torch.state import grad_mode, modes
from adjoint.torch.tensor import Tensor

_zeros_like, _ones_like = FUNCTIONS["zeros_like"], FUNCTIONS["ones_like"]
_NOT_IN_STRICT = "This is not allowed in strict mode"


def _tuple_of(given: Any, what: str, function: str) -> tuple[bool, tuple[Any, ...]]:
    """What a caller gave as a tuple, and whether it was one."""
    several = isinstance(given, tuple)
    for i, x in enumerate(given if several else (given,)):
        if not isinstance(x, Tensor):
            where = f"value at index {i}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the {where} has "
                f"type {type(x)}."
            )
    return several, given if several else (given,)


def _inputs(given: Any, create: bool, function: str) -> tuple[bool, tuple[Any, ...]]:
    """The points to differentiate at: with `create` they stay connected with what they were computed from."""
    several, xs = _tuple_of(given, "inputs", function)
    if bool(create) if isinstance(create, Tensor) else operator.index(create):
        return several, tuple([x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in xs])
    return several, tuple([x.detach().requires_grad_() for x in xs])


def _vector(v: Any, like: Any, several: bool, function: str) -> tuple[Any, ...]:
    _, vs = _tuple_of(v, "v", function)
    vs = tuple([x if modes.enabled and x.requires_grad else x.detach() for x in vs])
    if len(vs) != len(like):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(vs, like, strict=True)):
        if a.shape != b.shape:
            where = f"Entry {i} in " if several else ""
            raise RuntimeError(f"{where}v has invalid size: should be {b.shape} but got {a.shape}.")
    return vs


def _single(outputs: Any, several: bool, function: str) -> None:
    """Of a Hessian's function the value is one number."""
    if several:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].ndim and outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")


def _tracked(found: Any, strict: bool, what: str) -> None:
    """In strict mode, refuse what does not depend on the inputs."""
    if not strict:
        return
    for i, x in enumerate(found):
        if x is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. {_NOT_IN_STRICT}."
            )
        if not x.requires_grad:
            raise RuntimeError(_INDEPENDENT[what].format(i=i))


_INDEPENDENT = {
    "outputs": "Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {i} is independent of the inputs of the user-provided function. "
    + _NOT_IN_STRICT
    + ".",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to "
    "input {i} is independent of the input. This is not allowed in strict mode. You should ensure that your function "
    "is twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear function "
    "for example).",
    "hessian": "The hessian of the user-provided function with respect to input {i} is independent of the input. "
    "This is not allowed in strict mode. You should ensure that your function is thrice differentiable and that the "
    "hessian depends on the inputs.",
}
_ZERO = {
    "back": "The output of the user-provided function is independent of input {i}. " + _NOT_IN_STRICT + ".",
    "back_trick": "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using "
    "the double backward trick to compute forward mode gradients. " + _NOT_IN_STRICT + ".",
    "double_back": "The jacobian of the user-provided function is independent of input {i}. " + _NOT_IN_STRICT + ".",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {i} in the grad_jacobian. "
    "This is not allowed in strict mode as it prevents from using the double backward trick to replace forward mode "
    "AD.",
}


def _gradients(outputs: Any, inputs: Any, vs: Any = None, *, create: bool = False, keep: Any = None) -> Any:
    """`autograd.grad` that leaves out results which nothing depends on."""
    given = (None,) * len(outputs) if vs is None else vs
    pairs = [(o, v) for o, v in zip(outputs, given, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outs, grads = zip(*pairs, strict=True)
    return engine.grad(outs, inputs, grads, allow_unused=True, create_graph=create, retain_graph=keep)


def _filled(found: Any, like: Any, strict: bool, create: bool, stage: str) -> tuple[Any, ...]:
    """Gradients with zeros for None, which strict mode refuses."""
    out = []
    for i, (g, x) in enumerate(zip(found, like, strict=True)):
        if g is None and strict:
            raise RuntimeError(_ZERO[stage].format(i=i))
        if g is not None and strict and create and not g.requires_grad:
            what = "jacobian" if "double" not in stage else "hessian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. {_NOT_IN_STRICT} when "
                "create_graph=True."
            )
        out.append(_zeros_like(x) if g is None else g)
    return tuple(out)


def _answer(found: Any, create: bool, *several: bool) -> Any:
    """Results as they were asked for: without a graph, and alone where the caller gave or returned one tensor."""
    if several and len(several) == 2:
        rows = [_answer(row, create, several[1]) for row in found]
        return tuple(rows) if several[0] else rows[0]
    done = tuple([x if create else x.detach() for x in found])
    return done if several[0] else done[0]


def _recording(create: bool) -> grad_mode:
    return grad_mode(True if create else modes.enabled)


def vjp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The value of a function, and the product of a vector with its Jacobian.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.vjp(lambda x: x**2, x, torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with grad_mode(True):
        several, xs = _inputs(inputs, create_graph, "vjp")
        more, outputs = _tuple_of(func(*xs), "outputs of the user-provided function", "vjp")
        _tracked(outputs, strict, "outputs")
        if v is not None:
            vs: Any = _vector(v, outputs, more, "vjp")
        elif len(outputs) != 1 or outputs[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a single "
                "element."
            )
        else:
            vs = None
    with _recording(create_graph):
        found = _gradients(outputs, xs, vs, create=create_graph)
        filled = _filled(found, xs, strict, create_graph, "back")
    return _answer(outputs, create_graph, more), _answer(filled, create_graph, several)


def jvp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The value of a function, and the product of its Jacobian with a vector, by two backward passes.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.jvp(lambda x: x**2, x, torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with grad_mode(True):
        several, xs = _inputs(inputs, create_graph, "jvp")
        if v is not None:
            vs: Any = _vector(v, xs, several, "jvp")
        elif len(xs) != 1 or xs[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a single Tensor with a "
                "single element."
            )
        else:
            vs = tuple([_ones_like(x) for x in xs])
        more, outputs = _tuple_of(func(*xs), "outputs of the user-provided function", "jvp")
        _tracked(outputs, strict, "outputs")
        probes = tuple([_zeros_like(o).requires_grad_() for o in outputs])
        pulled = _gradients(outputs, xs, probes, create=True)
        _tracked(pulled, strict, "grad_inputs")
    with _recording(create_graph):
        found = _gradients(pulled, probes, vs, create=create_graph)
        filled = _filled(found, outputs, strict, create_graph, "back_trick")
    return _answer(outputs, create_graph, more), _answer(filled, create_graph, more)


def _rows(output: Any, xs: Any, i: int, create: bool, strict: bool, vectorize: bool) -> list[Any]:
    """The Jacobian of one result by all inputs, a row for each of its elements."""
    shape, count = tuple(output.shape), output.numel()
    if vectorize:
        basis = eye(count, dtype=output.dtype).reshape(count, *shape)
        found: Any = (None,) * len(xs)
        if output.requires_grad and count:
            found = engine.grad(
                output, xs, basis, retain_graph=True, create_graph=create, allow_unused=True, is_grads_batched=True
            )
        return [
            zeros((*shape, *x.shape), dtype=x.dtype) if g is None else g.reshape(*shape, *x.shape)
            for g, x in zip(found, xs, strict=True)
        ]
    columns: list[list[Any]] = [[] for _ in xs]
    flat = output.reshape(-1)
    for j in range(count):
        found = _gradients((flat[j],), xs, create=create, keep=True)
        for k, (g, x) in enumerate(zip(found, xs, strict=True)):
            if g is None and strict:
                raise RuntimeError(
                    f"Output {i} of the user-provided function is independent of input {k}. {_NOT_IN_STRICT}."
                )
            if g is not None and strict and create and not g.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {k}. {_NOT_IN_STRICT} when "
                    "create_graph=True."
                )
            columns[k].append(_zeros_like(x) if g is None else g)
    return [
        stack(rows).reshape(*shape, *x.shape) if rows else zeros((*shape, *x.shape), dtype=x.dtype)
        for rows, x in zip(columns, xs, strict=True)
    ]


def _by_columns(func: Any, inputs: Any, function: str) -> Any:
    """The Jacobian in forward mode."""
    several, xs = _tuple_of(inputs, "inputs", function)
    found = jacfwd(func, argnums=tuple(range(len(xs))))(*[x.detach() for x in xs])
    more = isinstance(found[0], tuple)
    return _answer(found if more else (found,), False, more, several)


def jacobian(
    func: Any,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivative of each element of a function's results by each element of its inputs.

    >>> import adjoint.torch as torch
    >>> torch.autograd.functional.jacobian(lambda x: x**2, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not '
                'supported together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        if strict:
            raise RuntimeError(
                'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
                'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
                "`vectorize=True`."
            )
        return _by_columns(func, inputs, "jacobian")
    elif strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    with grad_mode(True):
        several, xs = _inputs(inputs, create_graph, "jacobian")
        more, outputs = _tuple_of(func(*xs), "outputs of the user-provided function", "jacobian")
        _tracked(outputs, strict, "outputs")
        rows = [_rows(o, xs, i, create_graph, strict, vectorize) for i, o in enumerate(outputs)]
    return _answer(rows, create_graph, more, several)


def hessian(
    func: Any,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function whose value is one number.

    >>> import adjoint.torch as torch
    >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    several, _ = _tuple_of(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def value(*xs: Any) -> Any:
        out = func(*xs)
        more, outputs = _tuple_of(out, "outputs of the user-provided function", "hessian")
        _tracked(outputs, strict, "outputs")
        _single(outputs, more, "hessian")
        return out.squeeze()

    if outer_jacobian_strategy == "forward-mode":
        if not vectorize or create_graph or strict:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
                "`vectorize=True`, without `create_graph` and `strict`."
            )
        of = tuple(range(len(inputs))) if several else 0
        return _by_columns(jacrev(value, argnums=of), inputs, "hessian")

    def gradient(*xs: Any) -> Any:
        found = jacobian(value, xs, create_graph=True)
        _tracked(found, strict, "jacobian")
        return found

    found = jacobian(gradient, inputs if several else (inputs,), create_graph, strict, vectorize)
    return found if several else found[0][0]


def vhp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The value of a function, which is one number, and the product of a vector with its Hessian.

    >>> import adjoint.torch as torch
    >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with grad_mode(True):
        several, xs, vs, outputs, first = _with_gradient(func, inputs, v, create_graph, strict, "vhp")
    with _recording(create_graph):
        found = _gradients(first, xs, vs, create=create_graph)
        filled = _filled(found, xs, strict, create_graph, "double_back")
    return _answer(outputs, create_graph, False), _answer(filled, create_graph, several)


def hvp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The value of a function, which is one number, and the product of its Hessian with a vector.

    >>> import adjoint.torch as torch
    >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with grad_mode(True):
        several, xs, vs, outputs, first = _with_gradient(func, inputs, v, create_graph, strict, "hvp")
        probes = tuple([_zeros_like(x).requires_grad_() for x in xs])
        second = _gradients(first, xs, probes, create=True)
        _tracked(second, strict, "hessian")
    with _recording(create_graph):
        found = _gradients(second, probes, vs, create=create_graph)
        filled = _filled(found, xs, strict, create_graph, "double_back_trick")
    return _answer(outputs, create_graph, False), _answer(filled, create_graph, several)


def _with_gradient(func: Any, inputs: Any, v: Any, create: bool, strict: bool, function: str) -> tuple[Any, ...]:
    """Whether there are several inputs; these and the vectors; what a function gives, one number, and its gradient."""
    several, xs = _inputs(inputs, create, function)
    vs = _of_single(v, xs, several, function)
    more, outputs = _tuple_of(func(*xs), "outputs of the user-provided function", function)
    _tracked(outputs, strict, "outputs")
    _single(outputs, more, function)
    first = _gradients(outputs, xs, create=True)
    _tracked(first, strict, "jacobian")
    return several, xs, vs, outputs, first


def _of_single(v: Any, xs: Any, several: bool, function: str) -> Any:
    if v is not None:
        return _vector(v, xs, several, function)
    if len(xs) != 1 or xs[0].numel() != 1:
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor with a single "
            "element."
        )
    return None


def __getattr__(name: str) -> NoReturn:
    raise _missing(name, "adjoint.torch.autograd.functional")
