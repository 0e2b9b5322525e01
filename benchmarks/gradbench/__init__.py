"""The twelve problems of GradBench, the public benchmark of tools for automatic differentiation, in one process.

`python -m benchmarks.gradbench` runs them with adjoint, as it is and compiled, JAX compiled, and PyTorch. The problems
are those of https://github.com/gradbench/gradbench, written here from their definitions; eight come from ADBench
(F. Srajer, Z. Kukelova, A. Fitzgibbon, 2018), particle and saddle from J. Siskind and B. Pearlmutter (2008). Numbers
are double, as there, and drawn from a seed: the files of ADBench's data are not needed.
"""
