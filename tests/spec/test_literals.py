"""Literals of C++ (the C++17 standard, [lex.icon], [lex.fcon], [lex.bool]) and new values in their style."""

import pytest

from kernel_forge.spec.literals import spelled, value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("128", 128),
        ("(128)", 128),
        ("128u", 128),
        ("4ULL", 4),
        ("0x80", 128),
        ("0xFFu", 255),
        ("0b101", 5),
        ("010", 8),
        ("1'024", 1024),
        ("-1", -1),
        ("(-1)", -1),
        ("- 3", -3),
        ("0.5f", 0.5),
        ("1.f", 1.0),
        (".25F", 0.25),
        ("1e-3", 0.001),
        ("2.5L", 2.5),
        ("true", True),
        ("(false)", False),
        ("4 * 32", 128),
        ("7 / 2", 3),
        ("WARPS * 32", None),
        ("(128", None),
        ("089", None),
        ("-true", None),
        ("128x", None),
        ("int(4)", 4),
        ("", None),
    ],
)
def test_what_a_text_means(text: str, value: object) -> None:
    found = value_of(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [
        (256, "128", "256"),
        (256, "128u", "256u"),
        (256, "(128)", "(256)"),
        (256, "( 128 )", "( 256 )"),
        (256, "0x80u", "0x100u"),
        (256, "4 * 32", "256"),
        (-1, "1u", "-1"),
        (-1, "1ul", "-1l"),
        (2, "(-1)", "(2)"),
        (0.25, "0.5f", "0.25f"),
        (1, "0.5f", "1.0f"),
        (1, "1.5", "1.0"),
        (0.5, "1u", "0.5"),
        (1e20, "1.f", "1e+20f"),
        (False, "true", "false"),
        (0, "true", "false"),
        (2, "true", "2"),
        (True, "0", "1"),
        (True, "(1 == 1)", "true"),
        (float("inf"), "1.0", None),
        (float("nan"), "1.0", None),
        (2**63, "1", None),
    ],
)
def test_another_value_in_the_same_style(value: int | float, like: str, text: str | None) -> None:
    assert spelled(value, like) == text
