"""CUDA source of what a graph computes, for the CuPy leaf: the second writer beside `native`, of the same plan.

`plan` says which steps there are; `elements` has primitives as expressions of C, `source` makes functions of kernels,
`products` calls cuBLAS, and a `Segment` runs what lies between two steps of Python's, as a CUDA graph where that pays.
"""
