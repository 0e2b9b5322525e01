"""`ad.compile`: a function becomes a graph of equations once, and the graph is what runs from then on.

`traced.py` is the leaf that records, `graph.py` what it records, `passes.py` what makes it smaller, `replay.py` the
graph as a Python function, `native` parts of it as machine code, `programs.py` a recorded function and its results,
`rules.py` its derivatives and batches, `environment.py` what it reads beside its arguments, `numbers.py` when Python's
integers can be traced, `turns.py` has threads wait for each other, and `compiled.py` is what users call.
"""
