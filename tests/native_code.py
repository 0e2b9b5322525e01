"""Elementary functions of compiled code, called on NumPy's arrays, and their errors.

PYTHONPATH=tests python tests/native_code.py                # prints the table of docs/elementary.md, some minutes
PYTHONPATH=tests python tests/native_code.py exp sin --all  # of these, and of all numbers of single precision
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
import mpmath as mp
import numpy as np
import scipy.special

from adjoint.compiler.native.elementary import EXACT, FUNCTIONS, SLOPES, Library
from adjoint.compiler.native.machine import has_avx512


def _machine() -> Any:
    """The processor, which an engine owns."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2
    )


def built(text: str) -> Any:
    """An engine that holds the machine code of a module."""
    module = llvm.parse_assembly(text)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, _machine())
    engine.finalize_object()
    return engine


def arity(name: str) -> int:
    return {**FUNCTIONS, **EXACT, **SLOPES}[name][1]


def loop(library: Library, name: str, dtype: Any, lanes: int) -> tuple[str, str]:
    """A function of arrays of n times `lanes` numbers: pointers to operands and to the result, and n."""
    symbol = library.function(name, dtype, lanes)
    count = arity(name)
    scalar = "float" if np.dtype(dtype) == np.float32 else "double"
    vector = f"<{lanes} x {scalar}>"
    size = np.dtype(dtype).itemsize
    pointers = "".join(f"ptr %p{i}, " for i in range(count))
    loads = "\n".join(
        f"  %a{i} = getelementptr {vector}, ptr %p{i}, i64 %i\n  %v{i} = load {vector}, ptr %a{i}, align {size}"
        for i in range(count)
    )
    arguments = ", ".join(f"{vector} %v{i}" for i in range(count))
    text = f"""
define void @loop_{symbol}({pointers}ptr %out, i64 %n) {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
{loads}
  %r = call {vector} @{symbol}({arguments})
  %to = getelementptr {vector}, ptr %out, i64 %i
  store {vector} %r, ptr %to, align {size}
  %next = add i64 %i, 1
  br label %head
end:
  ret void
}}
"""
    return f"loop_{symbol}", text


@functools.cache
def functions(names: tuple[str, ...], dtype: Any, lanes: int, wide: bool = True) -> dict[str, Callable[..., Any]]:
    """Functions of arrays by the names of primitives, out of one module; not `wide`, as for other processors."""
    library = Library(has_avx512() and wide)
    loops = {name: loop(library, name, dtype, lanes) for name in names}
    engine = built(library.text + "".join(text for _, text in loops.values()))
    return {name: _called(engine, symbol, arity(name), dtype, lanes) for name, (symbol, _) in loops.items()}


def _called(engine: Any, symbol: str, count: int, dtype: Any, lanes: int) -> Callable[..., Any]:
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (count + 1), ctypes.c_int64)(
        engine.get_function_address(symbol)
    )

    def run(*arrays: Any) -> Any:
        _ = engine  # which owns the code
        inputs = np.broadcast_arrays(*[np.asarray(a, dtype) for a in arrays])
        size = inputs[0].size
        padded = -(-size // lanes) * lanes
        flat = [np.ascontiguousarray(np.resize(a.reshape(-1), padded) if size else a) for a in inputs]
        out = np.empty(padded, dtype)
        function(*[a.ctypes.data for a in flat], out.ctypes.data, padded // lanes)
        return out[:size].reshape(inputs[0].shape)

    return run


# --- errors --------------------------------------------------------------------------------------

WIDE = np.finfo(np.longdouble).nmant >= 63  # whether there is an oracle of arrays for double precision
_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}
_NAMES |= {"atanh": "arctanh", "atan2": "arctan2", "pow": "power"}


def _expit(x: Any) -> Any:
    t = np.exp(-np.abs(x))
    return np.where(x < 0, t, 1) / (1 + t)


_WIDER = {
    "expit": _expit,
    "expit_pullback": lambda g, x: g * (_expit(x) * _expit(-x)),
    "softplus": lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0),
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "gammaln": scipy.special.gammaln,
    "digamma": scipy.special.digamma,
}
NARROW = frozenset({"erf", "erfc", "gammaln", "digamma"})  # which no library has in a wider type than double


def _exact_gammaln(x: Any) -> Any:
    if x > 0:
        return mp.loggamma(x)
    sine = abs(mp.sinpi(x)) / mp.pi
    return -mp.log(sine) - mp.log(-x) - mp.loggamma(-x) if sine else mp.inf


_EXACT = {
    "gammaln": _exact_gammaln,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "expit": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": lambda x: mp.log1p(mp.exp(x)),
    "logaddexp": lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
    "erfc": lambda x: mp.erfc(x) if abs(x) < 100 else mp.mpf(2 if x < 0 else 0),
    "log2": lambda x: mp.log(x, 2),
    "pow": lambda x, y: mp.power(x, y),
}


def wider(name: str) -> Callable[..., Any]:
    """The function of arrays of a wider type."""
    return _WIDER.get(name) or getattr(np, _NAMES.get(name, name))


def exact(name: str) -> Callable[..., Any]:
    """The function of numbers of mpmath."""
    return _EXACT.get(name) or getattr(mp, name)


def points(name: str, dtype: Any, count: int, seed: int = 0) -> list[Any]:
    """Operands: numbers of all sizes and signs, and close to where something happens."""
    rng = np.random.default_rng(seed)
    bits = np.uint32 if dtype == np.float32 else np.uint64

    def some() -> Any:
        parts = [
            rng.integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True).view(dtype),
            rng.uniform(-2.0, 2.0, count),
            rng.uniform(-30.0, 30.0, count),
            rng.uniform(-800.0, 800.0, count),
            1.0 + rng.standard_normal(count) * 10.0 ** rng.integers(-16, 0, count),
            rng.standard_normal(count) * 10.0 ** rng.integers(-10, 10, count),
        ]
        if name in ("gammaln", "digamma"):  # zeros
            parts += [
                x + rng.standard_normal(count) * 10.0 ** rng.integers(-16, 0, count) for x in (2.0, 1.46163214496836)
            ]
        return np.concatenate([part.astype(dtype) for part in parts])

    with np.errstate(all="ignore"):
        xs = [some() for _ in range(arity(name))]
        if name == "pow":  # results of all sizes
            x = np.abs(xs[0])
            size = 700.0 if dtype == np.float64 else 85.0
            y = (rng.uniform(-1.05 * size, 1.05 * size, x.size) / np.log(x.astype(np.longdouble))).astype(dtype)
            xs = [np.concatenate([xs[0], x]), np.concatenate([np.round(xs[1]), y])]
        return [np.where(np.isfinite(x), x, dtype(1)) for x in xs]


def units(out: Any, want: Any, dtype: Any, term: Any = 0.0) -> Any:
    """|out - want| in units in the last place of what is wanted, or of a number that is larger."""
    info = np.finfo(dtype)
    size = np.maximum(np.abs(want), np.asarray(term, want.dtype))
    normal = np.maximum(size, want.dtype.type(info.tiny))
    _, exponent = np.frexp(normal)
    return np.abs(out.astype(want.dtype) - want) / np.ldexp(want.dtype.type(1), exponent - 1 - info.nmant)


def terms(name: str, xs: Sequence[Any]) -> Any:
    """Of results that cross zero the size of the largest term, whose last place is the unit where they are smaller."""
    xs = [x.astype(np.float64) for x in xs]
    if name == "logaddexp":
        return np.maximum(abs(xs[0]), abs(xs[1]))
    if name in ("gammaln", "digamma"):  # of negative numbers
        size = abs(xs[0])
        other = abs(np.log(size)) if name == "gammaln" else 1 / size
        return np.where(xs[0] < 0, np.maximum(abs(_WIDER[name](size)), other), 0.0)
    return np.zeros_like(xs[0])


def error(name: str, dtype: Any, xs: list[Any], lanes: int = 8, avx512: bool = True) -> tuple[float, list[Any]]:
    """The largest error in units in the last place, and where: by NumPy and SciPy in a wider type."""
    wide = np.longdouble if dtype == np.float64 or name == "pow" else np.float64
    with np.errstate(all="ignore"):
        want = wider(name)(*[x.astype(wide) for x in xs])
        out = functions((name,), dtype, lanes, avx512)[name](*xs)
        inside = np.isfinite(want.astype(dtype))
        assert np.array_equal(inside | np.isinf(want.astype(dtype)), ~np.isnan(out)), f"{name}: nan"
        errors = np.where(inside, units(out, np.where(inside, want, 0), dtype, terms(name, xs)), 0)
    errors = np.where(np.isfinite(errors), errors, np.inf)
    worst = int(np.argmax(errors))
    return float(errors[worst]), [x[worst] for x in xs]


def exact_error(name: str, dtype: Any, xs: list[Any], lanes: int = 8) -> tuple[float, list[Any]]:
    """The same by mpmath, number by number."""
    out = functions((name,), dtype, lanes)[name](*xs)
    info = np.finfo(dtype)
    worst, where = 0.0, []
    with mp.workprec(1300):
        tiny = mp.mpf(float(info.tiny))
    with np.errstate(all="ignore"):
        sizes = terms(name, xs)
    for *operands, y, term in zip(*xs, out, sizes, strict=True):
        if not np.isfinite(y):
            continue
        numbers = [mp.mpf(float(x)) for x in operands]
        with mp.workprec(160 + (1100 if name in ("sin", "cos", "tan") else 0)):
            want = exact(name)(*numbers)
            size = max(abs(want), tiny, *([mp.mpf(float(term))] if np.isfinite(term) else []))
            unit = mp.ldexp(1, int(mp.frexp(size)[1]) - 1 - info.nmant)
            units_off = float(abs(mp.mpf(float(y)) - want) / unit)
        if units_off > worst:
            worst, where = units_off, operands
    return worst, where


def _singles(name: str, step: int) -> float:
    """The largest error over every so many finite numbers of single precision."""
    worst = 0.0
    for start in range(0, 2**32, step * 2**20):
        x = np.arange(start, min(start + step * 2**20, 2**32), step, dtype=np.uint64).astype(np.uint32).view(np.float32)
        worst = max(worst, error(name, np.float32, [np.where(np.isfinite(x), x, np.float32(1))], 16)[0])
    return worst


def main(arguments: list[str]) -> None:
    names = [x for x in arguments if not x.startswith("-")] or list(FUNCTIONS)
    step = next((int(x.removeprefix("--every=")) for x in arguments if x.startswith("--every=")), 0)
    for name in names:
        cells = []
        for dtype in (np.float32, np.float64):
            if dtype == np.float32 and step and FUNCTIONS[name][1] == 1:
                worst = _singles(name, step)
            elif dtype == np.float64 and (name in NARROW or not WIDE):
                worst = exact_error(name, dtype, points(name, dtype, 3000))[0]
            else:
                worst = max(error(name, dtype, points(name, dtype, 200_000, seed))[0] for seed in range(4))
            cells.append(f"{worst:.2f}")
        print(f"| `{name}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
