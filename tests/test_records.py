"""All that is known of a primitive stands in its declaration and its record: nowhere else, and users' ones alike."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint.primitives import ELEMENTWISE, TABLE
from adjoint.rules import RECORDS, Composed, Linear

ROOT = Path(ad.__file__).parent
WHERE_NAMES_ARE_NO_FACTS = [
    *sorted((ROOT / "decorators").glob("*.py")), *sorted((ROOT / "graph").glob("*.py")), ROOT / "operands.py",
]  # fmt: skip


# --- no other place knows primitives by name ---


def named(source: str) -> list[str]:
    """The string constants of a source, but for docstrings, that are names of primitives, or lists of such names."""
    tree = ast.parse(source)
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            words = re.findall(r"\w+", node.value)
            names = [word for word in words if word.removesuffix("_into") in TABLE]
            if names and 2 * len(names) >= len(words):  # else it is an error's sentence, which may say "where"
                found.append(node.value)
    return found


@pytest.mark.parametrize("path", WHERE_NAMES_ARE_NO_FACTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_primitive_is_known_by_name(path: Path) -> None:
    assert named(path.read_text()) == []


def test_the_test_sees_names() -> None:
    source = '''
"""add"""
def f(x):
    """multiply"""
    if x.name == "matmul" or x.name.startswith("solve"):
        return {"add": 1, **dict.fromkeys("index index_set other".split())}
    match x:
        case "conv":
            return getattr(x, "add_into")
    raise ValueError(f"{x} gave this, where the primitive promises {x}; write ad.where, or pass finite=False")
'''
    assert sorted(named(source)) == ["add", "add_into", "conv", "index index_set other", "matmul", "solve"]


# --- declarations: data types ---

KINDS = {"b": ad.bool, "i": ad.int32, "u": ad.uint8, "f": ad.float64, "c": ad.complex128}
PUBLIC = [
    name for name, primitive in TABLE.items()
    if primitive.kind is ELEMENTWISE and not primitive.parameters and callable(getattr(ad, name, None))
    and primitive.operands in (("x",), ("x", "y"))
]  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_functions_take_what_the_declaration_accepts(name: str) -> None:
    primitive, f = TABLE[name], getattr(ad, name)
    for kind, dtype in KINDS.items():
        x = ad.ones(2, dtype=dtype)
        promoted = dtype if primitive.promotes is None else primitive.promotes(dtype)
        operands = [x] * len(primitive.operands)
        more = ("imag", "logaddexp")  # which is zero of real numbers; of complex ones it is made of other functions
        if promoted.kind in primitive.accepts.kinds or name in more:
            with np.errstate(all="ignore"):
                found = f(*operands).dtype
            assert found in (promoted, np.dtype(bool), np.empty(0, promoted).real.dtype)
        else:
            with pytest.raises(ad.errors.DtypeError, match=f"^{name}: expected .*, received {promoted}; "):
                f(*operands)
        if kind in primitive.identity:
            assert np.shares_memory(f(*operands).numpy(), x.numpy())


def test_operators_are_the_primitives_that_say_so() -> None:
    operators = {primitive.operator: name for name, primitive in TABLE.items() if primitive.operator}
    assert len(operators) == 20
    for operator, name in operators.items():
        x = ad.tensor([True, False]) if operator in ("and", "or", "xor") else ad.tensor([5, 3])
        operands = [x, x[::-1]][: len(TABLE[name].operands)]
        ours, numpys = (getattr(v[0], f"__{operator}__")(*v[1:]) for v in (operands, [o.numpy() for o in operands]))
        np.testing.assert_allclose(ours.numpy(), numpys)


# --- records: what follows from rules ---


def test_a_buffer_is_reused_where_no_rule_needs_it() -> None:
    for name in "add subtract index_add index_set concat".split():
        assert RECORDS[name].reuses(TABLE[name]), name
    for name in "multiply exp sqrt where silu softmax matmul max logaddexp".split():
        assert not RECORDS[name].reuses(TABLE[name]), name


def test_strong_zeros_follow_from_the_class() -> None:
    assert {name for name, record in RECORDS.items() if TABLE[name].kind is ELEMENTWISE and record.strong_zero} == {
        *"negative add subtract where astype real imag conj relu_pullback sign absorbing_multiply".split()
    }


# --- users' primitives: every field ---


def test_batching_of_a_users_elementwise_primitive() -> None:
    asked = []

    def batching(B: Any, primitive: Any, values: Any, flags: Any, parameters: Any) -> Any:
        asked.append(flags)
        return B.sin(values[0])

    f = ad.primitive("users_sine", np.sin, derivative={"x": lambda B, g, x: B.multiply(g, B.cos(x))}, batching=batching)
    x = np.linspace(0, 1, 6).reshape(2, 3)
    np.testing.assert_array_equal(ad.vmap(f)(x), np.sin(x))
    np.testing.assert_allclose(ad.vmap(ad.grad(lambda v: f(v).sum()))(x), np.cos(x), rtol=1e-15)
    assert asked == [[True], [True]]


def test_sparsity_of_a_users_primitive() -> None:
    def add_up(x: Any) -> Any:
        return x + np.concatenate([x[:1], x[:-1]])

    rules = {
        "x": lambda B, g: B.add(g, B.concat(
            B.index_add(B.index(g, key=(slice(1, 4, 1),)), B.index(g, key=(slice(0, 1, 1),)), key=(slice(0, 1, 1),)),
            B.multiply(B.index(g, key=(slice(0, 1, 1),)), 0.0), axis=0)),
    }  # fmt: skip
    scipy_sparse = peer("scipy.sparse")

    def sparsity(call: Any) -> Any:
        assert (call.primitive.name, call.shape, call.parameters) == ("users_steps", (4,), {})
        return scipy_sparse.csr_array(np.eye(4, dtype=bool) | np.eye(4, k=-1, dtype=bool)) @ call.patterns[0]

    options: Any = {"kind": "structural", "shape": lambda shape: shape}
    plain = ad.primitive("users_plain_steps", add_up, derivative=Linear(**rules), **options)
    known = ad.primitive("users_steps", add_up, derivative=Linear(**rules), sparsity=sparsity, **options)
    x = np.arange(4.0)
    dense = ad.jacobian(known)(x)
    for f, entries in ((plain, 16), (known, 7)):
        found = ad.sparse_jacobian(f)(x)
        np.testing.assert_array_equal(found.toarray(), dense)
        assert found.nnz == entries


def test_taylor_rule_of_a_users_primitive() -> None:
    """y' = x' y: the recurrence of the exponential, Griewank and Walther (2008), table 13.2."""
    orders = []

    def taylor(B: Any, terms: Any, out: Any) -> Any:
        (x,), k = terms, len(out)
        orders.append(k)
        total = None
        for j in range(k):
            if x[k - j] is not None and out[j] is not None:
                part = B.multiply(B.multiply(x[k - j], out[j]), float(math.comb(k - 1, j)))
                total = part if total is None else B.add(total, part)
        return total

    rules = {"x": lambda B, g, out: B.multiply(g, out)}
    definition = lambda B, x: B.exp(x)
    for name, options in (("users_power", {"derivative": rules}), ("users_defined_power", {"definition": definition})):
        f = ad.primitive(name, np.exp, taylor=taylor, **options)
        orders.clear()
        found = ad.jet(lambda x, f=f: f(x * x), (0.5,), ([1.0, 0.0, 0.0, 0.0],))
        assert orders == [1, 2, 3, 4]
        wanted = ad.jet(lambda x: ad.exp(x * x), (0.5,), ([1.0, 0.0, 0.0, 0.0],))
        np.testing.assert_allclose([found[0], *found[1]], [wanted[0], *wanted[1]], rtol=1e-14)


def test_operations_of_a_users_primitive() -> None:
    def operations(operands: Any, result: Any, parameters: Any) -> int:
        assert (operands, result) == ([(3,)], (3,))
        return 7 * operands[0][0] * parameters["times"]

    f = ad.primitive("users_work", lambda x, *, times: x * times, operations=operations)
    p = ad.Profiled(ad.NumPy())
    f(ad.ones(3, device=p), times=2)
    assert {row.primitive: row.flops for row in p.profile().rows}["users_work"] == 42


def test_strong_zero_of_a_users_primitive() -> None:
    seen = []

    def slope(B: Any, g: Any, out: Any) -> Any:
        seen.append(np.asarray(B.concrete_values(g)).tolist())
        return B.where(B.equal(g, 0.0), 0.0, B.divide(B.multiply(g, 0.5), out))

    device = ad.Autodiff(ad.NumPy(), strong_zero=True)
    x = ad.tensor([0.0, 4.0], device=device).require_grad()
    plain = ad.primitive("users_root", np.sqrt, derivative={"x": lambda B, g, out: B.divide(B.multiply(g, 0.5), out)})
    careful = ad.primitive("users_careful_root", np.sqrt, derivative={"x": slope}, strong_zero=True)
    left = ad.primitive("users_watched_root", np.sqrt, derivative={"x": slope})
    for f in (plain, careful, left):
        assert ad.where(x > 0, f(x), 0.0).sum().backward()[x].tolist() == [0.0, 0.25]
    assert seen == [[0.0, 1.0], [1.0, 1.0]]  # the cotangent as it is; ones, whose slope absorbs


def test_buffers_that_a_users_primitive_reuses() -> None:
    written = []

    def into(x: Any, y: Any) -> Any:
        written.append(x)
        return np.add(x, y, out=x)

    plus = Linear(x=lambda B, g: g, y=lambda B, g: g)
    ad.primitive("users_plus", np.add, derivative=plus, into=into)
    # its rule makes a buffer of its own, and adds into that
    thrice = ad.primitive(
        "users_thrice", lambda x: 3 * x,
        derivative=Linear(x=lambda B, g: B.users_plus_into(B.multiply(g, 2.0), g)),
    )  # fmt: skip
    np.testing.assert_array_equal(ad.grad(lambda x: thrice(x).sum())(np.ones(3)), [3.0] * 3)
    assert len(written) == 1
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(
        ad.grad(lambda x: (ad.grad(lambda x: (thrice(x) ** 2).sum())(x) ** 2).sum())(x), 2 * 18**2 * x
    )
    assert len(written) > 1
    # where a rule needs the operand, reverse mode leaves it alone
    ad.primitive(
        "users_times", np.multiply, into=lambda x, y: np.multiply(x, y, out=x),
        derivative={"x": lambda B, g, y: B.multiply(g, y), "y": lambda B, g, x: B.multiply(g, x)},
    )  # fmt: skip
    level: Any = ad.Autodiff(ad.NumPy())
    buffer, factor = np.array([2.0]), ad.tensor(np.array([5.0]), device=level).require_grad()
    out = level.users_times_into(level.wrap(buffer), factor._array)
    assert (buffer.tolist(), out.value.tolist()) == ([2.0], [10.0])
    assert level.inner.users_times_into(buffer, 3.0) is buffer


def test_a_buffer_that_a_users_primitive_adds_into() -> None:
    added = []

    def accumulate(B: Any, sink: Any, g: Any, factor: Any) -> Any:
        added.append(sink.shape)
        return B.add_into(sink, B.multiply(g, factor))

    f = ad.primitive(
        "users_scaled", lambda x, *, factor: x * factor,
        derivative={"x": lambda B, g, factor: B.multiply(g, factor)}, accumulate=accumulate,
    )  # fmt: skip
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(ad.grad(lambda x: (f(x, factor=3.0) + f(x * x, factor=2.0)).sum())(x), 3 + 4 * x)
    assert added == [(3,), (3,)]
    g = ad.grad(lambda x: (ad.grad(lambda x: (f(x, factor=3.0) ** 2).sum())(x) ** 2).sum())
    np.testing.assert_array_equal(g(x), 2 * 18**2 * x)


def test_a_primitive_of_forward_mode_alone() -> None:
    f = ad.primitive("users_forward", np.sin, pushforward=lambda B, tangents, x: B.multiply(tangents[0], B.cos(x)))
    assert ad.jvp(f, (0.5,), (1.0,))[1] == np.cos(0.5)
    with pytest.raises(ad.errors.BackwardError, match="has no derivative"):
        ad.grad(f)(0.5)


def test_data_types_of_a_users_primitive() -> None:
    bits = ad.primitive("users_bits", np.bitwise_count, accepts="iu", dtype=lambda *_: np.dtype(np.uint8))
    assert bits(ad.tensor([7, 8])).tolist() == [3, 1]
    with pytest.raises(ad.errors.DtypeError, match="^users_bits: expected integers or unsigned integers, received fl"):
        bits(ad.tensor([1.0]))
    wide = ad.primitive("users_wide", np.sin, promotes=lambda dtype: ad.float64, derivative={})
    assert wide(ad.tensor([1])).dtype is ad.float64
    rules = {"x": lambda B, g: g}
    assert ad.primitive("users_floating", np.positive, derivative=rules)(ad.tensor([1])).dtype is ad.float32
    assert ad.primitive("users_as_it_is", np.positive)(ad.tensor([1])).dtype is ad.int64
    real = ad.primitive("users_real", np.positive, derivative=rules, accepts="f")
    assert real(ad.tensor([True])).dtype is ad.float32
    with pytest.raises(ad.errors.DtypeError, match="users_real: expected real numbers, received complex64"):
        real(ad.tensor([1j]))


def test_a_record_given_is_not_changed_and_operands_may_be_called_as_fields() -> None:
    f = ad.primitive("users_taylor", lambda taylor: 2 * taylor, derivative={"taylor": lambda B, g: B.multiply(g, 2.0)})
    assert ad.grad(f)(1.0) == 2.0
    shared = Linear(x=lambda B, g: g)
    other = ad.primitive("users_first", np.positive, derivative=shared, operations=lambda *_: 5)
    assert (shared.operations, other.primitive.record.operations is not None) == (None, True)


into: Any = lambda B, sink, g: B.add_into(sink, g)


@pytest.mark.parametrize(
    ("error", "match", "options"),
    [
        ("ArgumentTypeError", "sparsity is a function, received 3", {"sparsity": 3}),
        ("ArgumentTypeError", "taylor is a function, received 'x'", {"taylor": "x"}),
        ("ArgumentTypeError", "operations is a function, received 12", {"operations": 12}),
        ("ArgumentTypeError", "accumulate is a function, received 'x'", {"accumulate": "x"}),
        ("ArgumentTypeError", "operations is a function, received 12", {"derivative": Linear(operations=12)}),
        (
            "ArgumentError",
            "accumulate is for one operand with a rule, and there are rules for []",
            {"accumulate": into},
        ),
        (
            "ArgumentError",
            "accumulate is for what the rule is for: after B, sink and g its parameters are ('x',), too",
            {"accumulate": into, "derivative": {"x": lambda B, g, x: g}},
        ),
        (
            "ArgumentError",
            "accumulate is for operands that do not broadcast",
            {"accumulate": into, "derivative": {"x": lambda B, g: g}, "operands": "x y"},
        ),
        (
            "ArgumentError",
            "derivative is a record, which says its pushforward",
            {"derivative": Linear(x=lambda B, g: g), "pushforward": lambda B, tangents: tangents[0]},
        ),
        (
            "ArgumentError",
            "derivative is a record, which says its pushforward and its definition itself",
            {"derivative": Linear(x=lambda B, g: g), "definition": lambda B, x: B.sin(x)},
        ),
        ("ArgumentTypeError", "promotes is a function, received 'float32'", {"promotes": "float32"}),
        ("ArgumentTypeError", "implementations are functions by leaf backend", {"into": 3}),
        ("ArgumentError", "strong_zero is True or False, received 'yes'", {"strong_zero": "yes"}),
        ("ArgumentError", "accepts are letters of 'biufc', received 'fx'", {"accepts": "fx"}),
        ("ArgumentError", "accepts are letters of 'biufc', received ''", {"accepts": ""}),
        ("ArgumentError", "accepts are letters of 'biufc', received 3", {"accepts": 3}),
    ],
)
def test_wrong_fields(error: str, match: str, options: Any) -> None:
    with pytest.raises(getattr(ad.errors, error), match=re.escape(match)):
        ad.primitive("users_wrong", np.sin, **options)
    assert "users_wrong" not in TABLE


def test_definitions_say_what_their_records_do_not() -> None:
    """The kinds' rules are for our own primitives: a user's structural one need not move elements."""
    assert isinstance(RECORDS["softmax"], Composed)
    assert RECORDS["softmax"].batching is RECORDS["softmax"].sparsity is RECORDS["softmax"].taylor is None
