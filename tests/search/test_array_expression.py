"""Columns against the scalar evaluator, which says what an expression means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression
from kernel_forge.search.array_expression import NotVectorizable, evaluate_columns

LEAVES = st.sampled_from(["a", "b", "c", "0", "1", "2", "7", "48 * 1024"])


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.builds(
        lambda x, op, y: f"({x} {op} {y})",
        inner,
        st.sampled_from(["+", "-", "*", "/", "//", "%", "&", "|", "^", "==", "<", ">=", "and", "or"]),
        inner,
    )
    call = st.builds(
        lambda f, x, y: f"{f}({x}, {y})", st.sampled_from(["min", "max", "cdiv", "round_up"]), inner, inner
    )
    unary = st.builds(lambda f, x: f"({f}({x}))", st.sampled_from(["abs", "int", "-", "+", "not "]), inner)
    chosen = st.builds(lambda x, y, z: f"({x} if {y} else {z})", inner, inner, inner)
    return binary | call | unary | chosen


@given(
    st.recursive(LEAVES, _composed, max_leaves=8),
    st.lists(st.tuples(*[st.integers(-5, 70) | st.integers(-(2**40), 2**40)] * 3), min_size=1, max_size=6),
)
def test_a_row_that_is_not_doubtful_has_the_scalar_value(text: str, rows: list[tuple[int, int, int]]) -> None:
    expression = Expression.parse(text)
    columns = {name: np.array(column) for name, column in zip("abc", zip(*rows, strict=True), strict=True)}
    column = evaluate_columns(expression, columns)
    for k, row in enumerate(rows):
        if not column.doubtful[k]:
            assert column.values[k] == expression.evaluate(dict(zip("abc", row, strict=True)))


def test_a_division_by_zero_is_left_to_the_scalar_evaluator() -> None:
    column = evaluate_columns(Expression.parse("a % b == 0"), {"a": np.array([4, 4]), "b": np.array([2, 0])})
    assert column.doubtful.tolist() == [False, True]
    with pytest.raises(ExpressionError):
        Expression.parse("a % b == 0").evaluate({"a": 4, "b": 0})


def test_a_product_that_wraps_in_64_bits_is_doubtful() -> None:
    column = evaluate_columns(Expression.parse("a * a > 0"), {"a": np.array([2**32, 3])})
    assert column.doubtful.tolist() == [True, False]


@pytest.mark.parametrize("text", ["sqrt(a) > 1", "a * 0.5 > 1", "2 ** a > 1", "a << 2"])
def test_what_integers_cannot_do_is_refused(text: str) -> None:
    with pytest.raises(NotVectorizable):
        evaluate_columns(Expression.parse(text), {"a": np.array([1, 2])})
