"""Every page of kb/patterns is complete, leads somewhere, and names evidence that exists."""

import re
from pathlib import Path

import pytest

from kernel_forge.knowledge import OPERATORS, known_capabilities, patterns, read_patterns
from kernel_forge.knowledge.patterns import Pattern

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "kb" / "patterns"
PAGES = read_patterns(FOLDER)
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


def test_the_pages_that_ship_are_those_of_the_clone() -> None:
    assert patterns() == PAGES
    assert len(PAGES) >= 24


def test_every_operator_has_a_page_of_its_own() -> None:
    named = {name for page in PAGES.values() if not page.is_general for name in page.operators}
    assert named == set(OPERATORS)


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda p: p.id)
class TestPage:
    def test_links_lead_to_pages(self, page: Pattern) -> None:
        for target in LINK.findall(page.text):
            assert (FOLDER / target).is_file(), target
            assert (FOLDER / target).resolve() != (FOLDER / f"{page.id}.md").resolve()

    def test_architectures_are_known_ones(self, page: Pattern) -> None:
        assert page.first in known_capabilities()
        assert page.last is None or page.last in known_capabilities()
        assert page.last is None or page.first <= page.last

    def test_evidence_of_ours_is_a_kernel_that_tests_verify(self, page: Pattern) -> None:
        for line in page.evidence:
            if line.startswith("tests/"):
                assert re.fullmatch(r"tests/kernels/\w+\.cu", line)
                assert (ROOT / line).is_file()
            else:
                assert re.search(r"Guide, \S|PTX ISA|Math API|\d{4}$", line), (
                    "a guide and its section, or a paper's year"
                )

    def test_it_has_something_to_say(self, page: Pattern) -> None:
        sections = re.split(r"^## .*$", page.text, flags=re.MULTILINE)[1:]
        assert all(len(section.split()) >= 12 for section in sections)
        assert page.text.count("```") % 2 == 0

    def test_lines_can_be_read_in_a_terminal(self, page: Pattern) -> None:
        assert [line for line in page.text.split("\n") if len(line) > 120] == []
