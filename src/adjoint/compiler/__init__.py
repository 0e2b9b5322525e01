"""`ad.compile`: a function becomes a graph of equations once, and the graph is what runs from then on.

`traced.py` is the leaf that records, `graph.py` what it records, `passes.py` what makes it smaller, `replay.py` the graph
as a Python function, `programs.py` a traced function and its results, `rules.py` its derivatives and batches, and
`compiled.py` what users call.
"""
