"""Names of HIPS autograd that are not here, with the reason: for the errors that say so."""

from __future__ import annotations

_GRAPH = "graphs are adjoint's own; primitive, defvjp and defjvp of adjoint.autograd.extend add functions to them"
_CONTAINERS = "lists, tuples and dictionaries are Python's own, with boxes in them"
_REASONS = {
    **dict.fromkeys(
        "ConstGraphNode FullGraphNode JVPNode Node TraceStack VJPNode add_outgrads backward_pass box_type_mappings "
        "box_types find_top_boxed_args full_graph new_box notrace_primitives sum_outgrads toposort trace "
        "trace_primitives_map trace_stack".split(),
        _GRAPH,
    ),
    **dict.fromkeys(
        "DictMeta ListMeta TupleMeta container_take container_untake make_sequence sequence_extend_left "
        "sequence_extend_right".split(),
        _CONTAINERS,
    ),
    **dict.fromkeys(
        "DictVSpace ListVSpace NamedTupleVSpace SequenceVSpace TupleVSpace".split(),
        "vspace of adjoint.autograd.extend gives one kind of space for all containers",
    ),
    **dict.fromkeys(("SparseBox", "SparseObject", "sparse_add"), "gradients are arrays, and so is what a rule gives"),
}


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module has not.

    >>> missing("adjoint.autograd.extend", "SparseObject")
    AttributeError("adjoint.autograd.extend has no 'SparseObject': gradients are arrays, and so is what a rule gives")
    """
    reason = _REASONS.get(name)
    return AttributeError(f"{module} has no {name!r}" + (f": {reason}" if reason else ""))
