"""Machine code for graphs on NumPy, by LLVM: elementwise functions, broadcasts, reductions and small loops.

`lowering.py` takes larger primitives apart, `hoisting.py` moves sums behind loops, `plan.py` finds what can be one
loop, `kernels.py` has what it finds, and `views.py` says where elements of views lie. `loops.py` writes a kernel,
`parallel.py` one that several threads share, `products.py` a product, `blocks.py` several of them and loops around
them, with lines by `text.py`; `elements.py` is what is done with one vector, and `elementary` has functions such as
exp. `entry.py` is what Python calls, `steps.py` puts calls in the place of equations, `machine.py` has llvmlite make
machine code, and `pool.py` has the threads. What has no machine code stays a call of NumPy's.
"""
