"""Reading pages: what a page says, and that a wrong one is one error that names its file."""

import re
from pathlib import Path

import pytest

from kernel_forge.domain.errors import UsageError
from kernel_forge.knowledge import OPERATORS, pattern, read_architecture, read_patterns

PAGE = """+++
id = "a"
title = "A way"
operators = ["scan", "gemm"]
architectures = { from = "8.0", to = "8.9" }
when = "Sometimes."
keywords = ["way"]
evidence = ["A Guide, Section"]
+++

# A way

## Why

Because.

## How

So.

## When not

Else.
"""


def folder(tmp_path: Path, text: str = PAGE) -> Path:
    (tmp_path / "a.md").write_text(text)
    return tmp_path


def test_a_whole_page(tmp_path: Path) -> None:
    page = read_patterns(folder(tmp_path))["a"]
    assert (page.title, page.operators, page.first, page.last) == ("A way", ("gemm", "scan"), (8, 0), (8, 9))
    assert (page.when, page.keywords, page.evidence) == ("Sometimes.", ("way",), ("A Guide, Section",))
    assert page.text.startswith("## Why\n")
    assert page.text.endswith("Else.")


def test_a_page_of_general_use(tmp_path: Path) -> None:
    page = read_patterns(folder(tmp_path, PAGE.replace('["scan", "gemm"]', '["any"]').replace(', to = "8.9"', "")))["a"]
    assert page.operators == OPERATORS
    assert page.is_general
    assert page.last is None


@pytest.mark.parametrize(
    ("architecture", "operator", "holds"),
    [
        (None, None, True),
        ((8, 0), None, True),
        ((8, 9), "scan", True),
        ((7, 5), None, False),
        ((9, 0), None, False),
        ((10, 0), None, False),  # 10.0 is later than 8.9
        (None, "map", False),
        ((8, 6), "map", False),
    ],
)
def test_where_it_holds(
    tmp_path: Path, architecture: tuple[int, int] | None, operator: str | None, holds: bool
) -> None:
    assert read_patterns(folder(tmp_path))["a"].holds_for(architecture, operator) is holds


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("+++\nid", "id", "does not begin with TOML"),
        ('id = "a"', "id = a", "is no TOML"),
        ('id = "a"', 'id = "b"', "its id is 'b'"),
        ('when = "Sometimes."\n', "", "lacks when"),
        ('when = "Sometimes."', 'when = ""', "when is one line"),
        ("when =", "why = 1\nwhen =", "why is no key of a page"),
        ("# A way", "# Another way", "its heading is not its title"),
        ("## Why", "## What for", "its sections are Why, How, When not"),
        ('"scan"', '"sort"', "sort is none of the operators activation, "),
        ('["scan", "gemm"]', "[]", "operators is a list"),
        ('["scan", "gemm"]', '["any", "gemm"]', "any is none of the operators"),
        ('from = "8.0", ', "", "architectures has from"),
        ('"8.9"', '"sm_89"', "a compute capability such as"),
        ('"8.9"', "8.9", "a compute capability such as"),
        ('["way"]', "[]", "keywords is a list"),
        ('["A Guide, Section"]', "[]", "evidence is a list"),
    ],
)
def test_a_wrong_page_is_one_error_that_names_it(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in PAGE
    with pytest.raises(UsageError, match=f"a\\.md: .*{re.escape(message)}"):
        read_patterns(folder(tmp_path, PAGE.replace(old, new)))


def test_a_page_that_is_not_there_names_those_nearby() -> None:
    with pytest.raises(UsageError, match=r"there is no page online-softmx; did you mean online-softmax"):
        pattern("online-softmx")
    with pytest.raises(UsageError, match=r"there is no page qqq; kernel-forge kb search"):
        pattern("qqq")


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("sm_90", (9, 0)),
        ("SM_90a", (9, 0)),
        ("90", (9, 0)),
        ("9.0", (9, 0)),
        ("sm_120", (12, 0)),
        ("compute_75", (7, 5)),
    ],
)
def test_architectures_as_they_are_written(text: str, capability: tuple[int, int]) -> None:
    assert read_architecture(text) == capability


@pytest.mark.parametrize("text", ["", "hopper", "9", "sm_", "sm_1234", "9.0.1", "sm_9.0"])
def test_what_is_no_architecture(text: str) -> None:
    with pytest.raises(UsageError, match="is no architecture; write sm_90"):
        read_architecture(text)
