"""Machine code for graphs on NumPy, by LLVM: elementwise functions, broadcasts and reductions as loops.

`plan.py` finds what can be one loop, `views.py` says where elements of views lie, `loops.py` writes a loop, `elements.py`
what is done with one vector in it, `lowering.py` takes larger primitives apart, `entry.py` is what Python calls, and
`machine.py` has llvmlite make machine code of the text. What has no machine code stays a call of NumPy's.
"""
