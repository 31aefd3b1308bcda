"""The pages of ``kb/patterns``: ways to make kernels fast, each with why, how, and when not."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.front_matter import split_front_matter
from kernel_forge.resources import kb_folder

OPERATORS = (
    "activation",
    "attention",
    "batched-gemm",
    "convolution",
    "cross-entropy",
    "embedding",
    "gather",
    "gemm",
    "gemv",
    "histogram",
    "map",
    "normalisation",
    "pooling",
    "reduction",
    "scan",
    "scatter",
    "stencil",
    "top-k",
    "transpose",
)
"""The families of operators that pages, and templates, are about."""
ANY = "any"
SECTIONS = ("Why", "How", "When not")
_KEYS = {"id", "title", "operators", "architectures", "when", "keywords", "evidence"}

Capability = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One page.

    Attributes:
        id: its file's stem.
        title: its heading.
        operators: families of :data:`OPERATORS` that it is about; all of them for a page of general use.
        first, last: the compute capabilities that it holds for, both included; ``last`` None: all later ones.
        when: one line: where to consider it.
        keywords: other words that it is looked for by.
        evidence: where its claims come from: sections of NVIDIA's guides, papers, kernels of ours.
        text: its sections, in Markdown.
    """

    id: str
    title: str
    operators: tuple[str, ...]
    first: Capability
    last: Capability | None
    when: str
    keywords: tuple[str, ...]
    evidence: tuple[str, ...]
    text: str

    @property
    def is_general(self) -> bool:
        """Whether it is about every operator."""
        return self.operators == OPERATORS

    def holds_for(self, architecture: Capability | None, operator: str | None) -> bool:
        """Whether it is of use there; None asks nothing."""
        if operator is not None and operator not in self.operators:
            return False
        return architecture is None or (self.first <= architecture and (self.last is None or architecture <= self.last))


@cache
def patterns() -> Mapping[str, Pattern]:
    """The pages that ship with the package, by their id.

    Raises:
        UsageError: as :func:`read_patterns`.
    """
    return read_patterns(kb_folder() / "patterns")


def pattern(name: str) -> Pattern:
    """The page of that id.

    Raises:
        UsageError: there is none; the message names those with similar ids.
    """
    found = patterns().get(name)
    if found is None:
        near = difflib.get_close_matches(name, patterns(), 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "kernel-forge kb search finds pages by words"
        raise UsageError(f"there is no page {name}; {hint}")
    return found


def read_patterns(folder: Path) -> Mapping[str, Pattern]:
    """The pages in a folder, in the order of their ids.

    Raises:
        UsageError: one cannot be read, or is not as it must be; the message names the file.
    """
    read = {}
    for path in sorted(folder.glob("*.md")):
        try:
            read[path.stem] = _pattern(path.stem, path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: {error}") from None
    return read


def read_architecture(text: str) -> Capability:
    """The compute capability in ``sm_90``, ``sm_90a``, ``90`` or ``9.0``.

    Raises:
        UsageError: it is written in none of these ways.
    """
    found = re.fullmatch(r"(?:sm_|compute_)?(\d{1,2})(\d)[af]?|(\d{1,2})\.(\d)", text.lower())
    if found is None:
        raise UsageError(f"{text} is no architecture; write sm_90 or 9.0")
    major, minor = found.group(1, 2) if found[1] else found.group(3, 4)
    return int(major), int(minor)


def _pattern(stem: str, text: str) -> Pattern:
    table, body = split_front_matter(text)
    missing, unknown = sorted(_KEYS - table.keys()), sorted(table.keys() - _KEYS)
    if missing or unknown:
        raise ValueError(f"its front matter lacks {missing[0]}" if missing else f"{unknown[0]} is no key of a page")
    if table["id"] != stem:
        raise ValueError(f"its id is {table['id']!r}, and its file's name another")
    title, when = _line(table, "title"), _line(table, "when")
    heading, _, rest = body.strip().partition("\n")
    if heading != f"# {title}":
        raise ValueError("its heading is not its title")
    if tuple(re.findall(r"^## (.*)$", rest, re.MULTILINE)) != SECTIONS:
        raise ValueError(f"its sections are {', '.join(SECTIONS)}, in this order")
    first, last = _range(table["architectures"])
    operators, keywords, evidence = _operators(table["operators"]), _texts(table, "keywords"), _texts(table, "evidence")
    return Pattern(stem, title, operators, first, last, when, keywords, evidence, rest.strip())


def _line(table: Mapping[str, Any], key: str) -> str:
    value = table[key]
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise ValueError(f"{key} is one line of text")
    return value


def _operators(listed: object) -> tuple[str, ...]:
    if listed == [ANY]:
        return OPERATORS
    if not isinstance(listed, list) or not listed:
        raise ValueError(f'operators is a list of operators, or ["{ANY}"]')
    unknown = next((name for name in listed if name not in OPERATORS), None)
    if unknown is not None:
        raise ValueError(f"{unknown} is none of the operators {', '.join(OPERATORS)}")
    return tuple(sorted(set(listed)))


def _range(table: object) -> tuple[Capability, Capability | None]:
    if not isinstance(table, dict) or not {"from"} <= table.keys() <= {"from", "to"}:
        raise ValueError("architectures has from and, where it ends, to")
    ends = {key: re.fullmatch(r"(\d+)\.(\d)", value) for key, value in table.items() if isinstance(value, str)}
    first, last = ends.get("from"), ends.get("to")
    if first is None or (last is None and "to" in table):
        raise ValueError('an architecture is a compute capability such as "9.0"')
    return (int(first[1]), int(first[2])), None if last is None else (int(last[1]), int(last[2]))


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    listed = table[key]
    if not isinstance(listed, list) or not listed or not all(isinstance(e, str) and e.strip() for e in listed):
        raise ValueError(f"{key} is a list of lines, and not empty")
    return tuple(listed)
