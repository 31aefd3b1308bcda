"""Arithmetic of shapes and launches. Values by hand, from C (division) or from Python itself (the rest)."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import FUNCTIONS, MAX_LENGTH, Expression


def value(text: str, **bindings: Any) -> Any:
    return Expression.parse(text).evaluate(bindings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -3),  # C17 6.5.5: towards zero; Python's // gives -4
        ("7 / -2", -3),
        ("-7 // 2", -4),
        ("7.0 / 2", 3.5),
        ("cdiv(10, 4)", 3),
        ("cdiv(8, 4)", 2),
        ("cdiv(0, 4)", 0),
        ("round_up(10, 4)", 12),
        ("round_up(8, 4)", 8),
        ("min(3, 1, 2)", 1),
        ("max(3, 1, 2)", 3),
        ("abs(-3)", 3),
        ("log2(8)", 3.0),
        ("sqrt(9)", 3.0),
        ("ceil(2.1)", 3),
        ("floor(-2.1)", -3),
        ("int(2.9)", 2),
        ("1 << 10", 1024),
        ("~0 & 7", 7),
        ("2 if 1 > 2 else 3", 3),
        ("1 < 2 < 3", True),
        ("1 < 2 and 3 < 2", False),
        ("0 and 1 / 0", False),  # and stops at the first false, as in Python and C
        ("not 0", True),
        ("  2 * 3 ", 6),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


def test_names_leave_out_functions() -> None:
    assert Expression.parse("cdiv(n, BLOCK) + min(m, 3)").names == {"n", "BLOCK", "m"}


@pytest.mark.parametrize(
    ("text", "offset", "length"),
    [
        ("n + foo(3)", 4, 6),
        ("  n + foo(3)", 6, 6),
        ("é + foo(3)", 4, 6),  # the parser counts bytes, we count characters
        ("(n +\n foo(3))", 6, 6),
        ("'a'", 0, 3),
        ("n.shape", 0, 7),
        ("[n]", 0, 3),
        ("lambda: 0", 0, 9),
        ("min(key=n)", 0, 10),
        ("min()", 0, 5),
        ("(1).__class__", 0, 13),
        ("n @ m", 0, 5),
        ("1j", 0, 2),
        ("(n := 3)", 1, 6),
    ],
)
def test_what_is_no_arithmetic_is_refused_at_its_place(text: str, offset: int, length: int) -> None:
    with pytest.raises(ExpressionError, match="only numbers, names, arithmetic") as caught:
        Expression.parse(text)
    assert (caught.value.offset, caught.value.length) == (offset, length)


@pytest.mark.parametrize("text", ["", " ", "1 +", "n n", "\0", "\ud800", "0x", "(" * 300, "n = 3", "import os"])
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "division by zero"),
        ("1 // 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("cdiv(1, 0)", "division by zero"),
        ("0.0 ** -1", "division by zero"),
        ("9 ** 9 ** 9 ** 9", "exponent"),
        ("2 ** -1", "exponent"),
        ("(-8) ** 0.5", "root of a negative number"),
        ("1 << 129", "shift"),
        ("1 << -1", "shift"),
        ("(1 << 127) * 4", "128 bits"),
        ("1e308 * 10 if 0 else floor(1e999)", "cannot evaluate"),
        ("log2(0)", "cannot evaluate"),
        ("~1.5", "cannot evaluate"),
        ("min(3)", "cannot evaluate"),
        ("missing + 1", "'missing' has no value"),
    ],
)
def test_what_has_no_value(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        value(text)


def test_the_place_of_an_unbound_name_is_a_whole_word() -> None:
    with pytest.raises(ExpressionError) as caught:
        value("min(n, 3)")
    assert (caught.value.offset, caught.value.length) == (4, 1)  # not the n of min


@pytest.mark.parametrize(("text", "expected"), [("4.0", 4), ("8 / 2", 4), ("True", 1), ("sqrt(16)", 4)])
def test_integers(text: str, expected: int) -> None:
    found = Expression.parse(text).evaluate_int({})
    assert found == expected
    assert type(found) is int


@pytest.mark.parametrize("text", ["2.5", "1e999", "1e999 - 1e999", "1e300", "(-8) ** 0.5"])
def test_no_integers(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression.parse(text).evaluate_int({})


def test_limits() -> None:
    Expression.parse("1" + " " * (MAX_LENGTH - 1))
    with pytest.raises(ExpressionError, match="longer than"):
        Expression.parse("1" * (MAX_LENGTH + 1))
    with pytest.raises(ExpressionError):
        Expression.parse(10**5000).evaluate({})  # Python refuses to print integers beyond 4300 digits
    deep = "-" * 1900 + "1"
    with pytest.raises(ExpressionError, match="deeply"):
        Expression.parse(deep).evaluate({})


small = st.integers(-1000, 1000)
terms = st.recursive(
    st.one_of(small.map(lambda i: f"({i})"), st.sampled_from(["n", "m"])),
    lambda inner: st.tuples(inner, st.sampled_from("+ - * // < <= > >= == != %".split()), inner).map(
        lambda t: f"({t[0]} {t[1]} {t[2]})"
    ),
    max_leaves=8,
)


@given(terms, small, small)
def test_agrees_with_python(text: str, n: int, m: int) -> None:
    try:
        expected = eval(text, {"n": n, "m": m})
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="division by zero"):
            value(text, n=n, m=m)
        return
    assert value(text, n=n, m=m) == expected


@given(small, small.filter(bool))
def test_division_is_that_of_c(a: int, b: int) -> None:
    quotient = value("a / b", a=a, b=b)
    remainder = a - quotient * b  # C17 6.5.5: the remainder has the sign of the dividend
    assert abs(remainder) < abs(b)
    assert remainder == 0 or (remainder > 0) == (a > 0)


words = st.sampled_from(
    [
        *FUNCTIONS,
        "n",
        "1",
        "2.5",
        "1e308",
        "(",
        ")",
        ",",
        "+",
        "-",
        "**",
        "/",
        "%",
        "<<",
        ">>",
        "~",
        "not",
        "if",
        "else",
    ]
)


@given(st.one_of(st.text(max_size=40), st.lists(words, max_size=14).map(" ".join)))
def test_nothing_but_expression_errors(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        Expression.parse(text).evaluate_int({"n": 3})
