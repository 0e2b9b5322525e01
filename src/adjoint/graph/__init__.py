"""The graph that reverse mode records: nodes, what they keep, and where they come from."""
