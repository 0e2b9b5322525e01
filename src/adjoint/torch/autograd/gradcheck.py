"""`gradcheck` and `gradgradcheck`: gradients against central differences, as PyTorch's users call them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.torch import engine
from adjoint.torch.memory import place_of
from adjoint.torch.state import grad_mode
from adjoint.torch.tensor import Tensor, beside, constant, looked


class GradcheckError(RuntimeError):
    """Gradients that are not those of the function."""


def gradcheck(
    func: Any,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether gradients of a function agree with central differences, for all inputs that require one.

    Raises GradcheckError, which names the result and the input, or answers False without `raise_exception`.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.sin, (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    for asked, needed, name, by in (
        (check_batched_grad, check_backward_ad, "check_batched_grad", "check_backward_ad"),
        (check_batched_forward_grad, check_forward_ad, "check_batched_forward_grad", "check_forward_ad"),
    ):
        if asked and not needed:
            raise AssertionError(f"Setting {name}=True requires {by} to be True")
    try:
        given = _checked_inputs(inputs)
        check = _Check(func, given, eps, atol, rtol, fast_mode)
        if check_backward_ad:
            check.backward(nondet_tol, check_grad_dtypes)
            check.linear()
            if check_batched_grad:
                check.batched()
            if check_undefined_grad:
                check.undefined()
        if check_forward_ad:
            check.forward(check_batched_forward_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _checked_inputs(inputs: Any) -> tuple[Any, ...]:
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    tracked = False
    for i, x in enumerate(given):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        tracked = True
        if x._dtype.itemsize < (8 if x._dtype.kind == "f" else 16):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if any([s == 0 and n > 1 for s, n in zip(place_of(x)[0], x.shape, strict=True)]):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )
    if not tracked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    return given


def _results(out: Any) -> tuple[Any, ...]:
    found = (out,) if isinstance(out, Tensor) else tuple(out)
    if any([isinstance(x, Tensor) and x._dtype.kind == "b" for x in found]):
        raise RuntimeError("gradcheck: a result of truths has no differences; return numbers, or leave it out")
    return tuple([x for x in found if isinstance(x, Tensor) and x._dtype.kind in "fc"])


def _parts(x: Any) -> Any:
    """An array as real numbers: real and imaginary parts side by side."""
    flat: Any = np.array(x).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _whole(parts: Any, like: Any) -> Any:
    return np.array(parts).astype(like.real.dtype).view(like.dtype).reshape(like.shape)


class _Check:
    """One function at one point."""

    def __init__(self, func: Any, inputs: Any, eps: float, atol: float, rtol: float, fast: bool) -> None:
        self.func, self.inputs, self.eps, self.atol, self.rtol, self.fast = func, inputs, eps, atol, rtol, fast
        self.tracked = [(i, x) for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
        self.outputs = self.run()
        self.random = np.random.default_rng(0)

    def run(self) -> tuple[Any, ...]:
        with grad_mode(True):
            return _results(self.func(*self.inputs))

    def at(self, x: Tensor, value: Any) -> list[Any]:
        """The values of all results where an input has another value."""
        with grad_mode(False):
            x.data.copy_(constant(value))
        found = self.run()
        for out, known in zip(found, self.outputs, strict=True):
            for what, one, other in (("shape", out.shape, known.shape), ("dtype", out.dtype, known.dtype)):
                if one != other:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {what} when inputs are perturbed by "
                        f"{self.eps}, but got {one} and {other}"
                    )
        return [_parts(looked(o)) for o in found]

    def slopes(self, x: Tensor, directions: Any) -> list[Any]:
        """Of each result, its central differences along directions: one column each."""
        here = np.array(looked(x))
        columns: list[list[Any]] = [[] for _ in self.outputs]
        try:
            for direction in directions:
                step = _whole(direction, here) * self.eps
                above, below = self.at(x, here + step), self.at(x, here - step)
                for column, a, b in zip(columns, above, below, strict=True):
                    column.append((a - b) / (2 * self.eps))
        finally:
            with grad_mode(False):
                x.data.copy_(constant(here))
        return [
            np.stack(column, 1) if column else np.zeros((_parts(looked(o)).size, 0))
            for column, o in zip(columns, self.outputs, strict=True)
        ]

    def directions(self, like: Any) -> Any:
        """All unit vectors, or one at random."""
        size = _parts(like).size
        if not self.fast or not size:
            return np.eye(size)
        drawn = self.random.standard_normal((1, size))
        return drawn / np.linalg.norm(drawn)

    def pulled(self, output: Any, x: Any, rows: Any) -> Any:
        """The products of rows with the Jacobian, by backward passes."""
        like = looked(output)
        out = []
        for row in rows:
            g = beside(output, _whole(row, like))
            (found,) = engine.grad(output, x, g, retain_graph=True, allow_unused=True)
            out.append(np.zeros(_parts(looked(x)).size) if found is None else _parts(looked(found)))
        return np.array(out).reshape(len(rows), _parts(looked(x)).size)

    def backward(self, nondet_tol: float, check_dtypes: bool) -> None:
        for number, (_, x) in enumerate(self.tracked):
            along = self.directions(looked(x))
            numerical = self.slopes(x, along)
            for k, output in enumerate(self.outputs):
                rows = self.directions(looked(output))
                if not output.requires_grad:
                    if np.abs(numerical[k]).max(initial=0.0) > self.atol:
                        raise GradcheckError("Numerical gradient for function expected to be zero")
                    continue
                analytical = self.pulled(output, x, rows)
                self._compare(rows @ numerical[k], analytical @ along.T, k, number)
                again = self.pulled(output, x, rows)
                if np.abs(again - analytical).max(initial=0.0) > nondet_tol:
                    raise GradcheckError(
                        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                        "times gives different values, although analytical gradient matches numerical gradient. The "
                        f"tolerance for nondeterminism was {nondet_tol}."
                    )
                if check_dtypes:
                    self._dtypes(output, x, k, number)

    def _dtypes(self, output: Any, x: Any, k: int, number: int) -> None:
        (found,) = engine.grad(output, x, _ones(output), retain_graph=True, allow_unused=True)
        if found is not None and found._dtype is not x._dtype:
            raise GradcheckError(
                f"gradient of output {k} with respect to input {number} has dtype {found.dtype}, the input {x.dtype}"
            )

    def _compare(self, numerical: Any, analytical: Any, k: int, number: int, mode: str = "") -> None:
        bound = self.atol * (max(1.0, float(np.sqrt(max(numerical.shape)))) if self.fast else 1.0)
        if np.allclose(analytical, numerical, self.rtol, bound):
            return
        part = ""
        if self.outputs[k]._dtype.kind == "c" and not self.fast:  # rows take turns, real parts first
            imaginary = not np.allclose(analytical[1::2], numerical[1::2], self.rtol, bound)
            part = f"While considering the {'imaginary' if imaginary else 'real'} part of complex outputs only, "
        raise GradcheckError(
            f"{part}Jacobian {mode}mismatch for output {k} with respect to input {number},\nnumerical:{numerical}\n"
            f"analytical:{analytical}\n"
        )

    def linear(self) -> None:
        """Gradients are products with those of the results: zeros for zeros."""
        outputs = [o for o in self.outputs if o.requires_grad]
        if not outputs:
            return
        zeros = [beside(o, np.zeros(tuple(o.shape), o._dtype)) for o in outputs]
        found = engine.grad(outputs, [x for _, x in self.tracked], zeros, retain_graph=True, allow_unused=True)
        if any([g is not None and looked(g).any() for g in found]):
            raise GradcheckError("backward not multiplied by grad_output")

    def batched(self) -> None:
        """Gradients of a batch of cotangents against those of each."""
        for k, output in enumerate(self.outputs):
            if not output.requires_grad or not output.numel():
                continue
            like = looked(output)
            rows = self.random.standard_normal((2, _parts(like).size))
            for number, (_, x) in enumerate(self.tracked):
                stack = beside(output, np.stack([_whole(row, like) for row in rows]))
                (found,) = engine.grad(output, x, stack, retain_graph=True, allow_unused=True, is_grads_batched=True)
                if found is None:
                    continue
                each = self.pulled(output, x, rows)
                if not np.allclose(_parts(looked(found)).reshape(each.shape), each, 1e-7, 1e-7):
                    raise GradcheckError(
                        f"For output {k} and input {number}: the gradients of a batch are not those of its examples"
                    )

    def undefined(self) -> None:
        """Results of one function, of which only one is asked for: its gradients need no other's."""
        with_graph = [o for o in self.outputs if o.requires_grad]
        if len(with_graph) < 2:
            return
        xs = [x for _, x in self.tracked]
        for output in with_graph:
            try:
                engine.grad(output, xs, _ones(output), retain_graph=True, allow_unused=True)
            except (TypeError, AttributeError) as error:
                raise GradcheckError(
                    "Expected backward function to handle undefined output grads. Please look at 'Notes about "
                    "undefined output gradients' in 'tools/autograd/derivatives.yaml'"
                ) from error

    def forward(self, check_batched: bool) -> None:
        """Tangents against differences."""
        from adjoint.torch.autograd import forward_ad

        for number, (i, x) in enumerate(self.tracked):
            along = self.directions(looked(x))
            numerical = self.slopes(x, along)
            columns: list[list[Any]] = [[] for _ in self.outputs]
            for direction in along:
                with forward_ad.dual_level():
                    dual = forward_ad.make_dual(x, beside(x, _whole(direction, looked(x))))
                    given = [dual if j == i else a for j, a in enumerate(self.inputs)]
                    for column, o in zip(columns, _results(self.func(*given)), strict=True):
                        tangent = forward_ad.unpack_dual(o).tangent
                        column.append(_parts(np.zeros(o.shape, o._dtype) if tangent is None else looked(tangent)))
            for k, column in enumerate(columns):
                found = np.stack(column, 1) if column else numerical[k]
                self._compare(numerical[k], found, k, number, "computed with forward mode ")


def _ones(output: Any) -> Tensor:
    return beside(output, np.ones(tuple(output.shape), output._dtype))


def gradgradcheck(
    func: Any,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether gradients of gradients agree with central differences of gradients.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(torch.sin, (x,))
    True
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    count = len(given)
    if grad_outputs is None:
        outputs = [o for o in _results(func(*given)) if o.requires_grad]
        random = np.random.default_rng(1)
        draw: Callable[[Any], Any] = lambda size: random.standard_normal(size)
        cotangents = tuple(
            [beside(o, _whole(draw(_parts(looked(o)).size), looked(o))).requires_grad_() for o in outputs]
        )
    else:
        cotangents = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)

    def gradients(*args: Any) -> Any:
        xs = [x for x in args[:count] if isinstance(x, Tensor) and x.requires_grad]
        outputs = [o for o in _results(func(*args[:count])) if o.requires_grad]
        found = engine.grad(outputs, xs, args[count:], create_graph=True, allow_unused=True)
        return tuple([g for g in found if g is not None])

    return gradcheck(
        gradients,
        given + cotangents,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )
