"""Every code has a page and every page a code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "kb" / "rules").glob("*.md"))


def test_pages_are_the_codes_of_the_server() -> None:
    used = set()
    for path in (ROOT / "server").rglob("*.py"):
        used |= set(re.findall(r"[\"'](KF\d{3})[\"']", path.read_text(encoding="utf-8")))
    assert {p.stem for p in PAGES} == used


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_front_matter_is_complete(page: Path) -> None:
    match = re.match(r"---\n(.*?)\n---\n\n# ([^\n]+)\n\n(?=\S)", page.read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None
    fields = dict(line.split(": ", 1) for line in match[1].split("\n"))
    assert set(fields) >= {"code", "title", "severity"}
    assert fields["code"] == page.stem
    assert fields["severity"] in ("error", "warning", "information", "hint")
    assert match[2] == f"{page.stem}: {fields['title']}"
