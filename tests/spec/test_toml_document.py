"""Places of keys and values in TOML 1.0; columns counted by hand."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_forge.domain.text import Position, Range
from kernel_forge.spec.toml_document import Path, TomlDocument, TomlProblem, parse_toml


def read(text: str) -> TomlDocument:
    found = parse_toml(text)
    assert isinstance(found, TomlDocument), found
    return found


def problem(text: str) -> TomlProblem:
    found = parse_toml(text)
    assert isinstance(found, TomlProblem)
    return found


def at(text: str, place: Range) -> str:
    """The text of a range on one line."""
    assert place.start.line == place.end.line
    return text.split("\n")[place.start.line][place.start.column : place.end.column]


@pytest.mark.parametrize(
    ("text", "path", "key", "value"),
    [
        ("a = 1", ("a",), "a", "1"),
        ('é = "ü"', ("é",), None, None),
        ('"é" = "ü"', ("é",), '"é"', '"ü"'),
        ('"q r" = 2', ("q r",), '"q r"', "2"),
        ("a.b = 1", ("a", "b"), "a.b", "1"),
        ("a.b = 1", ("a",), "a.b", "a.b"),  # a has no value of its own: its key stands for it
        ("a = { b = 1, c = [2, 3] }", ("a", "c", 1), "3", "3"),
        ("a = { b = 1, c = [2, 3] }", ("a", "c"), "c", "[2, 3]"),
        ("a = { b.d = 1 }", ("a", "b", "d"), "b.d", "1"),
        ("a = [{ n = 1 }, { n = 22 }]", ("a", 1, "n"), "n", "22"),
        ("a = [{ n = 1 }, { n = 22 }]", ("a", 1), "{ n = 22 }", "{ n = 22 }"),
        ("[t]\nk = 5", ("t", "k"), "k", "5"),
        ("[t]\nk = 5", ("t",), "t", "t"),
        ("[t.u]\nk = 5", ("t", "u", "k"), "k", "5"),
        ("[[l]]\nk = 1\n[[l]]\nk = 2", ("l", 1, "k"), "k", "2"),
        ("[[l]]\nk = 1\n[[l]]\nkk = 2", ("l", 1), "l", "l"),
        ("[[l]]\n[l.s]\nk = 7", ("l", 0, "s", "k"), "k", "7"),
        ("[[l]]\n[[l]]\n[[l.m]]\nk = 7", ("l", 1, "m", 0, "k"), "k", "7"),
        ("a = [\n  1, # one\n  22,\n]", ("a", 1), "22", "22"),
        ("t = 1979-05-27", ("t",), "t", "1979-05-27"),
        ("a = '''x'''\nb = 3", ("b",), "b", "3"),
    ],
)
def test_ranges(text: str, path: Path, key: str | None, value: str | None) -> None:
    if key is None or value is None:
        assert "Invalid" in problem(text).message  # bare keys are ASCII
        return
    document = read(text)
    assert at(text, document.range_of(path, key=True)) == key
    assert at(text, document.range_of(path)) == value


def test_a_path_that_is_not_there_is_the_nearest_around_it() -> None:
    document = read("[t]\nkey = 5")
    assert document.range_of(("t", "key", "deep", 3)) == Range(Position(1, 6), Position(1, 7))
    assert document.range_of(("u",)) == Range(Position(0, 0), Position(0, 0))


def test_values() -> None:
    data = read('a = 1\nb = "x"\n[c]\nd = 1979-05-27').data
    assert data == {"a": 1, "b": "x", "c": {"d": datetime.date(1979, 5, 27)}}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a = ", 0, 3),
        ("a = 1\nb = = 2", 1, 4),
        ("a = 1\na = 2", 1, 4),
        ("ok = 1\nx = [1, 2\n\n", 1, 8),  # the end of the text, at the last line with text
        ("[t", 0, 1),
        ('a = "x', 0, 5),
        ("a = { b = 1,\n c = 2 }", 0, 11),
    ],
)
def test_syntax_errors_have_a_place(text: str, line: int, column: int) -> None:
    found = problem(text)
    assert found.range.start.line == line
    assert abs(found.range.start.column - column) <= 1
    assert found.range.end > found.range.start


@pytest.mark.parametrize("text", ["a = " + "[" * 5000 + "]" * 5000, "a = " + "{b=" * 3000 + "1" + "}" * 3000])
def test_deep_nesting_is_a_problem_not_a_crash(text: str) -> None:
    assert "deep" in problem(text).message


def test_an_integer_with_thousands_of_digits_is_a_problem() -> None:
    found = problem("\na = " + "9" * 5000)  # Python refuses to convert more than 4300 digits
    assert "out of range" in found.message
    assert found.range.start.line == 1


def test_a_byte_order_mark_moves_nothing() -> None:
    assert read("\ufeffa = 1").range_of(("a",)) == Range(Position(0, 5), Position(0, 6))


def test_a_comment_behind_a_value_is_not_the_value() -> None:
    text = "a = [1, 2] # three\nb = { c = 4 } # five"
    document = read(text)
    places = {path: at(text, place) for path, place in document.values.items()}
    assert places == {("a",): "[1, 2]", ("a", 0): "1", ("a", 1): "2", ("b",): "{ c = 4 }", ("b", "c"): "4"}


def test_carriage_returns() -> None:
    text = "a = 1\r\n[t]\r\nb = 22\r\n"
    assert at(text, read(text).range_of(("t", "b"))) == "22"


keys = st.text("abé. \"'", min_size=1, max_size=3).map(lambda k: '"' + k.replace('"', '\\"') + '"')
values = st.recursive(
    st.one_of(st.integers(-9, 9).map(str), st.just('"é"'), st.just("1979-05-27T00:32:00")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda v: "[" + ", ".join(v) + "]"),
        st.dictionaries(keys, inner, max_size=3).map(
            lambda d: "{" + ", ".join(f"{k} = {v}" for k, v in d.items()) + "}"
        ),
    ),
    max_leaves=6,
)


def paths(data: object, base: Path = ()) -> list[Path]:
    if isinstance(data, dict):
        return [p for k, v in data.items() for p in ((*base, k), *paths(v, (*base, k)))]
    if isinstance(data, list):
        return [p for i, v in enumerate(data) for p in ((*base, i), *paths(v, (*base, i)))]
    return []


@given(st.dictionaries(keys, values, max_size=4))
def test_every_path_has_a_value_range(entries: dict[str, str]) -> None:
    text = "\n".join(f"{k} = {v}" for k, v in entries.items())
    document = read(text)
    assert set(paths(document.data)) == set(document.values)


@given(st.text('abc=[]{}".\n #1é', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    parse_toml(text)
