"""Machine code for graphs on NumPy, by LLVM: elementwise functions, broadcasts, reductions, products and small loops.

`lowering.py` takes larger primitives apart, with `lines.py` what goes along lines and `matrices.py` small matrices,
`hoisting.py` moves sums behind loops, `keeping.py` hands on what a loop would make again, `plan.py` finds what can be
one loop, `images.py` what convolutions and windows are, and `kernels.py` has what they find; `views.py` and
`patches.py` say where elements of views, and what kernels of convolutions meet, lie. `loops.py` writes a kernel, whose
arrays `memory.py` reads and writes, `parallel.py` one that several threads share, `products.py` a product and
`convolutions.py` a convolution, by `gemm.py`, `blocks.py` several of them and loops around them, with lines by
`text.py`; `elements.py` is what is done with one vector, and `elementary` has functions such as exp. `entry.py` is what
Python calls, `steps.py` puts calls in the place of equations, `machine.py` has llvmlite make machine code,
`linked.py` keeps it, and `pool.py` has the threads. What has no machine code stays a call of NumPy's. `symbolic.py` has
sizes that code takes as arguments, so that it serves for any.

`code.py` is where a program begins: `remembered.py` looks first for what an earlier process made of its graph, in the
files of `stored.py`. Then none of the above is imported but `calls.py`, `machine.py` and `linked.py`.
"""
