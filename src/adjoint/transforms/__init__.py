"""Transformations of functions: derivatives and batches of any order, freely nested.

Each runs its function on fresh levels, decorators over the backend that the arguments live on, which
end when it returns.
"""
