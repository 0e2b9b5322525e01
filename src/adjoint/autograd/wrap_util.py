"""Operators of one argument as operators of functions with several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from adjoint import errors

Function = Callable[..., Any]


def subvals(x: Sequence[Any], replacements: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """The entries of x as a tuple, with others at some places."""
    entries = list(x)
    for i, value in replacements:
        entries[i] = value
    return tuple(entries)


def get_name(f: Any) -> str:
    """The name of a function."""
    return getattr(f, "__name__", "[unknown name]")


def get_doc(f: Any) -> str | None:
    """The docstring of a function."""
    return getattr(f, "__doc__", "")


def wraps(fun: Any, namestr: str = "{fun}", docstr: str = "{doc}", **names: Any) -> Callable[[Function], Function]:
    """A decorator that gives a function the name and docstring of another, as written by these patterns."""

    def name(f: Function) -> Function:
        f.__name__ = namestr.format(fun=get_name(fun), **names)
        f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **names)
        return f

    return name


def check_argnum(name: str, argnum: Any) -> None:
    """Raises ArgumentTypeError for what is no position and no tuple or list of positions."""
    several = argnum if isinstance(argnum, (tuple, list)) else [argnum]
    if not several or any(isinstance(i, bool) or not isinstance(i, int) for i in several):
        raise errors.ArgumentTypeError(
            f"{name}: argnum is a position, or a tuple or list of positions, received {errors.shown(argnum)}"
        )


def unary_to_nary(unary_operator: Function) -> Callable[..., Any]:
    """An operator on functions of one argument as one on functions of several, by the argument at `argnum`.

    For a tuple or list of positions the argument is the tuple of those arguments.
    """

    @wraps(unary_operator)
    def nary_operator(fun: Function, argnum: int | Sequence[int] = 0, *op_args: Any, **op_kwargs: Any) -> Function:
        name = get_name(unary_operator)
        check_argnum(name, argnum)
        if not callable(fun):
            raise errors.ArgumentTypeError(f"{name}: expected a function, received {errors.shown(fun)}")
        positions = [argnum] if isinstance(argnum, int) else list(argnum)

        @wraps(
            fun,
            "{op}_of_{fun}_wrt_argnum_{argnum}",
            "{op} of function {fun} with respect to argument number {argnum}. Takes the same arguments as {fun} but "
            "returns the {op}.",
            op=name,
            argnum=argnum,
        )
        def nary(*args: Any, **kwargs: Any) -> Any:
            if any(not -len(args) <= i < len(args) for i in positions):
                raise errors.OutOfRangeError(
                    f"{name}: argnum is {argnum}, but the call has {len(args)} positional arguments"
                )

            @wraps(fun)
            def unary(x: Any) -> Any:
                chosen = [x] if isinstance(argnum, int) else x
                return fun(*subvals(args, zip(positions, chosen, strict=True)), **kwargs)

            x = args[argnum] if isinstance(argnum, int) else tuple([args[i] for i in positions])
            return unary_operator(unary, x, *op_args, **op_kwargs)

        return nary

    return nary_operator
