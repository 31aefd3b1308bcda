"""``kernel-forge kb``: what the knowledge base says."""

import argparse
import json
import re
from typing import Any

from kernel_forge.cli.output import may_be_closed
from kernel_forge.domain.errors import UsageError
from kernel_forge.knowledge import Match, Pattern, pattern, read_architecture, search_patterns
from kernel_forge.resources import rule_page


def kb_command(options: argparse.Namespace) -> int:
    """Search the pages, or show one; 0 also where nothing fits.

    Raises:
        UsageError: there is no such page, architecture or operator.
    """
    return _show(options.page, as_json=options.json) if options.action == "show" else _search(options)


def _search(options: argparse.Namespace) -> int:
    architecture = None if options.architecture is None else read_architecture(options.architecture)
    words = " ".join(options.words)
    found = search_patterns(words, architecture, options.operator, options.limit or None)
    with may_be_closed():
        if options.json:
            pages = [{**_fields(match.pattern), "score": round(match.score, 4)} for match in found]
            print(json.dumps({"schema": 1, "query": words, "pages": pages}, indent=2))
        elif found:
            print("\n".join(_lines(found)))
        else:
            print("no page fits; fewer or other words may find one")
    return 0


def _lines(found: tuple[Match, ...]) -> list[str]:
    width = max(len(match.pattern.id) for match in found)
    return [f"{match.pattern.id:{width}}  {match.pattern.title}. {match.pattern.when}" for match in found]


def _show(name: str, *, as_json: bool) -> int:
    if re.fullmatch(r"KF\d{3}", name):
        title, text = _rule(name)
        page: dict[str, Any] = {"id": name, "title": title, "text": text}
    else:
        known = pattern(name)
        page = {**_fields(known), "evidence": list(known.evidence), "text": known.text}
        text = "\n".join(_page(known))
    with may_be_closed():
        print(json.dumps({"schema": 1, "page": page}, indent=2) if as_json else text)
    return 0


def _page(page: Pattern) -> list[str]:
    evidence = [f"- {line}" for line in page.evidence]
    about = "every operator" if page.is_general else ", ".join(page.operators)
    return [
        f"# {page.title}",
        "",
        f"When: {page.when}",
        f"Operators: {about}",
        f"Architectures: {_architectures(page)}",
        "",
        page.text,
        "",
        "## Evidence",
        "",
        *evidence,
    ]


def _architectures(page: Pattern) -> str:
    first = f"sm_{page.first[0]}{page.first[1]}"
    return f"{first} and later" if page.last is None else f"{first} to sm_{page.last[0]}{page.last[1]}"


def _rule(code: str) -> tuple[str, str]:
    """Title and text of the page of a code."""
    try:
        page = rule_page(code).read_text(encoding="utf-8")
    except OSError:
        raise UsageError(f"there is no page {code}") from None
    text = page.split("---\n", 2)[2].strip()
    return text.partition("\n")[0].removeprefix(f"# {code}: "), text


def _fields(page: Pattern) -> dict[str, Any]:
    ends = {"from": page.first, "to": page.last}
    return {
        "id": page.id,
        "title": page.title,
        "when": page.when,
        "operators": list(page.operators),
        "architectures": {key: None if end is None else f"{end[0]}.{end[1]}" for key, end in ends.items()},
    }
