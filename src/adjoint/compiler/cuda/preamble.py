"""The text before all kernels: arrays, functions that CUDA's library has not, and what reductions carry along.

Nothing in it needs a header, which CuPy's compiler would have to find.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.compiler.cuda.elements import c_type, literal
from adjoint.primitives import DType

PREAMBLE = """#ifndef ADJOINT_ARRAY
template <class T> using Array = T* __restrict__;
#endif

__device__ inline float adjoint_exp(float x) { return expf(x); }
__device__ inline double adjoint_exp(double x) { return exp(x); }
__device__ inline float adjoint_log1p(float x) { return log1pf(x); }
__device__ inline double adjoint_log1p(double x) { return log1p(x); }
__device__ inline float adjoint_fmod(float x, float y) { return fmodf(x, y); }
__device__ inline double adjoint_fmod(double x, double y) { return fmod(x, y); }
__device__ inline float adjoint_rint(float x) { return rintf(x); }
__device__ inline double adjoint_rint(double x) { return rint(x); }
__device__ inline float adjoint_copysign(float x, float y) { return copysignf(x, y); }
__device__ inline double adjoint_copysign(double x, double y) { return copysign(x, y); }

// or a nan; of two zeros the second
template <class T> __device__ T adjoint_maximum(T x, T y) { return x != x ? x : x > y ? x : y; }
template <class T> __device__ T adjoint_minimum(T x, T y) { return x != x ? x : x < y ? x : y; }
template <class T> __device__ T adjoint_sign(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x; }
template <class T> __device__ T adjoint_size(T x) { return x < T(0) ? -x : x; }
template <class T> __device__ T adjoint_relu(T x) { return adjoint_maximum<T>(x, T(0)); }
template <class T> __device__ T adjoint_relu_pullback(T g, T x) { return x <= T(0) ? T(0) : g; }
template <class T> __device__ T adjoint_tanh_pullback(T g, T y) { return (T(1) - y * y) * g; }
template <class T> __device__ T adjoint_absorbing_multiply(T x, T y) {
  return x == T(0) || y == T(0) ? T(0) : x * y;
}
template <class T> __device__ T adjoint_expit(T x) {
  if (x < T(0)) {
    const T t = adjoint_exp(x);
    return t / (T(1) + t);
  }
  return T(1) / (T(1) + adjoint_exp(-x));
}
template <class T> __device__ T adjoint_expit_pullback(T g, T x) {
  const T t = adjoint_exp(-adjoint_size<T>(x)), below = t / (T(1) + t);
  return g * (below * (T(1) - below));
}
template <class T> __device__ T adjoint_softplus(T x) {
  return adjoint_maximum<T>(x, T(0)) + adjoint_log1p(adjoint_exp(-adjoint_size<T>(x)));
}
template <class T> __device__ T adjoint_logaddexp(T x, T y) {
  if (x == y) return x + T(0.693147180559945309417232121458);
  return adjoint_maximum<T>(x, y) + adjoint_log1p(adjoint_exp(-adjoint_size<T>(x - y)));
}
template <class T> __device__ T adjoint_remainder(T x, T y) {
  const T left = adjoint_fmod(x, y);
  return left == T(0) ? adjoint_copysign(T(0), y) : (left < T(0)) != (y < T(0)) ? left + y : left;
}
template <class T> __device__ T adjoint_floor_divide(T x, T y) {
  const T quotient = x / y, whole = adjoint_rint((x - adjoint_remainder<T>(x, y)) / y);
  return whole - whole == T(0) ? adjoint_copysign(whole, quotient) : quotient;
}
// by zero all are 0, and the least number by -1 is itself
template <class T> __device__ T adjoint_integer_fmod(T x, T y) {
  return y == T(0) || (T(-1) < T(0) && y == T(-1)) ? T(0) : T(x % y);
}
template <class T> __device__ T adjoint_integer_remainder(T x, T y) {
  const T left = adjoint_integer_fmod<T>(x, y);
  return left != T(0) && (left < T(0)) != (y < T(0)) ? T(left + y) : left;
}
template <class T> __device__ T adjoint_integer_floor_divide(T x, T y) {
  if (y == T(0)) return T(0);
  if (T(-1) < T(0) && y == T(-1)) return T(0ULL - (unsigned long long)x);
  return T(x / y - (x % y != T(0) && (x % y < T(0)) != (y < T(0))));
}

// What a reduction carries along: `add` takes one element, `join` what another thread has.
// Of a sum also what was rounded away (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B).
template <class T> struct ExactSum {
  T total, lost;
  __device__ void add(T x) {
    const T sum = total + x, part = sum - total;
    lost += (total - (sum - part)) + (x - part);
    total = sum;
  }
  __device__ void join(ExactSum other) { add(other.total); lost += other.lost; }
  __device__ T value() const { return lost == lost ? total + lost : total; }  // a nan beside an infinite sum
};
#define ADJOINT_REDUCTION(Name, joined)                     \\
  template <class T> struct Name {                          \\
    T total, lost;                                          \\
    __device__ void add(T x) { total = joined; }            \\
    __device__ void join(Name other) { add(other.total); }  \\
    __device__ T value() const { return total; }            \\
  };
ADJOINT_REDUCTION(Sum, T((unsigned long long)total + (unsigned long long)x))
ADJOINT_REDUCTION(Product, total * x)
ADJOINT_REDUCTION(IntegerProduct, T((unsigned long long)total * (unsigned long long)x))
ADJOINT_REDUCTION(Maximum, adjoint_maximum<T>(total, x))
ADJOINT_REDUCTION(Minimum, adjoint_minimum<T>(total, x))
ADJOINT_REDUCTION(Any, total || x)
ADJOINT_REDUCTION(All, total && x)

// What so many threads have as one, known to all of them: halves are joined in an order that is always the same.
template <int COUNT, class S> __device__ S adjoint_joined(S own, S* shared, int place, int lane, int distance) {
  shared[place] = own;
  for (int half = COUNT / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) shared[place].join(shared[place + half * distance]);
  }
  __syncthreads();
  const S all = shared[place - lane * distance];
  __syncthreads();
  return all;
}
"""

_NAMES = {"max": "Maximum", "min": "Minimum", "any": "Any", "all": "All"}


def state_type(name: str, dtype: DType) -> str:
    """The type of what a reduction carries along."""
    if name in ("sum", "prod"):
        kinds = {"sum": ("ExactSum", "Sum"), "prod": ("Product", "IntegerProduct")}[name]
        return f"{kinds[dtype.kind != 'f']}<{c_type(dtype)}>"
    return f"{_NAMES[name]}<{c_type(dtype)}>"


def start(name: str, dtype: DType) -> str:
    """What it begins with."""
    first: Any
    if name in ("sum", "any"):
        first = 0
    elif name in ("prod", "all"):
        first = 1
    elif dtype.kind == "f":
        first = float("-inf") if name == "max" else float("inf")
    else:
        limits = np.iinfo(dtype)
        first = limits.min if name == "max" else limits.max
    return f"{{{literal(first, dtype)}, {literal(0, dtype)}}}"
