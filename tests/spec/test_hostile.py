"""Files as they come: other line ends, marks, tabs, very long, very deep, cut off."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.reading import GOOD, KERNEL, at, block, only, read, source, spec_of


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends(end: str) -> None:
    spec_of(source(GOOD).replace("\n", end))
    text = source(GOOD.replace("cases", "csaes")).replace("\n", end)
    found = next(p for p in read(text).problems if p.code == "KF103")
    assert at(text, found.range) == "csaes"
    assert (found.range.start.line, found.range.start.column) == (4, 3)


def test_characters_before_and_inside_the_block() -> None:
    toml = 'baseline = "größer 😀"\n' + GOOD.replace("a * x", "a * ä")
    text = "// 😀 überall é\n" + source(toml)
    found = only(text)
    assert (found.code, at(text, found.range)) == ("KF111", "ä")


def test_a_byte_order_mark() -> None:
    spec_of("\ufeff" + block(GOOD) + KERNEL)


def test_indentation_by_tabs() -> None:
    text = "".join(f"\t{line}\n" for line in source(GOOD.replace("cases", "csaes")).splitlines())
    found = next(p for p in read(text).problems if p.code == "KF103")
    assert at(text, found.range) == "csaes"


def test_a_block_of_a_hundred_thousand_lines_takes_seconds_not_minutes() -> None:
    cases = "cases = [\n" + "  { n = 7 },\n" * 100 + "]\n" + "# nothing\n" * 100_000
    text = source(GOOD.replace("cases = [{ n = 100 }]\n", cases))
    begin = time.monotonic()
    spec = spec_of(text)
    assert len(spec.cases) == 100
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize("depth", [10, 500, 5000])
def test_deep_nesting(depth: int) -> None:
    found = read(source(GOOD + "baseline = " + "[" * depth + "]" * depth + "\n"))
    assert {p.code for p in found.problems} <= {"KF102", "KF104"}
    assert found.problems


def test_numbers_beyond_all_limits() -> None:
    for text in ("9" * 400, "-" + "9" * 400, "9" * 5000, "inf", "nan", "1e400"):
        for old in ("100", "2.0", "32 }"):
            new = text + (" }" if old.endswith("}") else "")
            for problem in read(source(GOOD.replace(old, new))).problems:
                assert problem.code.startswith("KF1")


@given(st.integers(0, len(GOOD)), st.integers(0, 30), st.text('{}[]"=., \n1nx_:', max_size=6))
def test_any_edit_of_a_good_block_gives_problems_not_exceptions(start: int, length: int, new: str) -> None:
    text = source(GOOD[:start] + new + GOOD[start + length :])
    lines = text.count("\n") + 1
    for problem in read(text).problems:
        assert 0 <= problem.range.start.line < lines
        assert problem.range.start <= problem.range.end
        assert problem.message
    read(KERNEL, GOOD[:start] + new + GOOD[start + length :])


@given(st.text(st.characters(exclude_characters="\0"), max_size=60))
def test_any_text_as_block_and_as_sidecar(toml: str) -> None:
    read(block(toml) + KERNEL)
    read(KERNEL, toml)
