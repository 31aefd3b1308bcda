"""A model's reply is data: the CUDA source and the tunables in it, or what keeps it from being read, and where.

A reply is text with one fenced block of CUDA and, where there is something to tune, one of JSON or TOML (name = list of
values); or a structured value with ``kernel`` and ``tunables``.
"""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from kernel_forge.domain.expression import Number
from kernel_forge.domain.text import Range
from kernel_forge.generate.allowed import KEYWORDS, NAMES_OF_CUDA, is_reserved
from kernel_forge.source.lines import LineIndex
from kernel_forge.source.structure import read_structure
from kernel_forge.source.translation import translate

MAX_CHARACTERS = 400_000
MAX_TUNABLES = 64
MAX_VALUES = 10_000
_OPENING = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\r\n]*?)[ \t]*$")
_CODE = frozenset(("cuda", "cu", "cuh", "c++", "cpp", "cc", "cxx", "c", ""))
_DATA = frozenset(("json", "toml"))
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPEC = re.compile(r"^[ \t]*// /// kernel-forge[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ReplyProblem:
    """Why a reply cannot be used; ``message`` is for the model. ``range`` is in the reply's text, None without one."""

    message: str
    range: Range | None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a reply proposes. ``kernel`` is CUDA source with LF line ends, which no rule has judged yet.

    ``tunables`` are the values of each name, first to last. ``first_line`` is the line of the reply's text where the
    kernel begins (0 in a structured value): line n of the kernel is line ``first_line + n`` of the reply.
    """

    kernel: str
    tunables: Mapping[str, tuple[Number, ...]]
    first_line: int = 0


@dataclass(frozen=True, slots=True)
class _Block:
    language: str
    text: str
    first: int
    """Line of the opening fence."""
    closed: bool


def read_reply(text: str, kernel: str | None = None) -> Reply | tuple[ReplyProblem, ...]:
    """Take a reply's text apart. ``kernel`` is the name asked for; without it there must be exactly one kernel."""
    lines = LineIndex(text)
    if len(text) > MAX_CHARACTERS:
        return (
            ReplyProblem(f"the reply has {len(text)} characters; {MAX_CHARACTERS} at most", lines.range(0, len(text))),
        )
    blocks = _blocks(lines)
    code = [block for block in blocks if block.language in _CODE]
    data = [block for block in blocks if block.language in _DATA]
    problems = [
        ReplyProblem("this block is not closed: the reply was cut off or its fence is missing", _place(lines, block))
        for block in blocks
        if not block.closed
    ]
    problems += [
        ReplyProblem("a second block of CUDA; write one block with all of the code", _place(lines, b)) for b in code[1:]
    ]
    problems += [ReplyProblem("a second block of tunables; write one", _place(lines, block)) for block in data[1:]]
    if problems:
        return tuple(problems)
    if code:
        source, first = code[0].text, code[0].first + 1
    elif blocks or not _is_code(text):
        return (ReplyProblem("no block of CUDA; write the kernel between ```cuda and ```", lines.range(0, len(text))),)
    else:
        source, first = _normal(text), 0
    place = _place(lines, code[0]) if code else lines.range(0, len(text))
    fault = _source_problem(source, kernel)
    if fault is not None:
        problems.append(ReplyProblem(fault, place))
    tunables: dict[str, tuple[Number, ...]] = {}
    for block in data:
        read = _read_data(block)
        if isinstance(read, str):
            problems.append(ReplyProblem(read, _place(lines, block)))
        else:
            tunables = read
    return tuple(problems) or Reply(source, tunables, first)


def read_structured(value: object, kernel: str | None = None) -> Reply | tuple[ReplyProblem, ...]:
    """Take a structured reply apart: an object with ``kernel`` (text) and, if any, ``tunables`` (name -> values)."""
    if not isinstance(value, Mapping):
        return (ReplyProblem("the reply must be an object with kernel and tunables", None),)
    problems: list[ReplyProblem] = []
    unknown = sorted(str(key) for key in value if key not in ("kernel", "tunables"))
    if unknown:
        problems.append(ReplyProblem(f"unknown keys: {', '.join(unknown)}; there are kernel and tunables", None))
    source = value.get("kernel")
    if not isinstance(source, str):
        return (*problems, ReplyProblem("kernel must be a text, the CUDA source", None))
    if len(source) > MAX_CHARACTERS:
        return (*problems, ReplyProblem(f"the kernel has {len(source)} characters; {MAX_CHARACTERS} at most", None))
    message = _source_problem(_normal(source), kernel)
    if message is not None:
        problems.append(ReplyProblem(message, None))
    read = _tunables(value.get("tunables", {}))
    if isinstance(read, str):
        problems.append(ReplyProblem(read, None))
        return tuple(problems)
    return tuple(problems) or Reply(_normal(source), read)


def _blocks(lines: LineIndex) -> list[_Block]:
    blocks: list[_Block] = []
    opening: re.Match[str] | None = None
    first = 0
    inside: list[str] = []
    for number in range(lines.line_count):
        line = lines.line_text(number)
        if opening is None:
            opening = _OPENING.match(line)
            first, inside = number, []
        elif re.fullmatch(rf" {{0,3}}{re.escape(opening['fence'][0])}{{{len(opening['fence'])},}}[ \t]*", line):
            blocks.append(_block(opening, inside, first, True))
            opening = None
        else:
            inside.append(line)
    if opening is not None:
        blocks.append(_block(opening, inside, first, False))
    return blocks


def _block(opening: re.Match[str], inside: list[str], first: int, closed: bool) -> _Block:
    words = opening["info"].lower().split()
    return _Block(words[0] if words else "", "".join(f"{line}\n" for line in inside), first, closed)


def _place(lines: LineIndex, block: _Block) -> Range:
    return Range.of_line(block.first, 0, len(lines.line_text(block.first)))


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n")


def _is_code(text: str) -> bool:
    """Whether a text without fences is CUDA from its first to its last line."""
    return "__global__" in text and not read_structure(translate(text).tokens).not_understood


def _source_problem(source: str, kernel: str | None) -> str | None:
    if _SPEC.search(source):
        return "a spec block; leave it out, what the kernel must do is not yours to change"
    facts = read_structure(translate(source).tokens).functions
    names = [fact.name for fact in facts if fact.has_body and "__global__" in fact.specifiers]
    if kernel is not None:
        return (
            None
            if names.count(kernel) == 1
            else f"kernel {kernel} must be defined once; found: {', '.join(names) or 'none'}"
        )
    if len(names) == 1:
        return None
    return (
        f"{len(names)} kernels ({', '.join(names)}); write exactly one"
        if names
        else "no kernel; write one __global__ function"
    )


def _read_data(block: _Block) -> dict[str, tuple[Number, ...]] | str:
    try:
        value = (
            json.loads(block.text, object_pairs_hook=_unique) if block.language == "json" else tomllib.loads(block.text)
        )
    except (ValueError, RecursionError) as error:
        return f"the tunables are no {block.language.upper()}: {error}"
    if isinstance(value, dict) and set(value) == {"tunables"}:
        value = value["tunables"]
    return _tunables(value)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is given twice")
    return found


def _tunables(value: object) -> dict[str, tuple[Number, ...]] | str:
    if not isinstance(value, Mapping) or len(value) > MAX_TUNABLES:
        return f"tunables must be at most {MAX_TUNABLES} names, each with a list of numbers"
    found: dict[str, tuple[Number, ...]] = {}
    for name, values in value.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or is_reserved(name):
            return f"{name!r} is no name for a tunable"
        if name in KEYWORDS or name in NAMES_OF_CUDA:
            return f"{name} has a meaning in C++ or CUDA; choose another name for the tunable"
        if (
            not isinstance(values, list | tuple)
            or not 0 < len(values) <= MAX_VALUES
            or not all(map(_is_number, values))
        ):
            return f"{name}: write a list of 1 to {MAX_VALUES} finite numbers"
        if len(set(values)) != len(values):
            return f"{name}: a value is given twice"
        found[name] = tuple(values)
    return found


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < 2**63
