"""The directives of a C++ text that depend on which files there are: asked about, and replaced on their lines."""

import re
from collections.abc import Callable
from functools import lru_cache

from kernel_forge.devices.lexer import breaks, lex

IncludeHook = Callable[[str, bool, int], str | None]
"""``(name, quoted, zero-based line)`` of an include -> replacement of the directive, or None to leave it."""

Exists = Callable[[str, bool], bool]
"""``(name, quoted)`` of a header -> whether it is a file of the project."""

BLANK = r"(?:\s|/\*(?:[^*]|\*(?!/))*\*/)*"
"""What may stand between the words of a directive."""

_INCLUDE = re.compile(rf'^{BLANK}#{BLANK}include{BLANK}(?:"(?P<quoted>[^"\n]+)"|<(?P<angle>[^>\n]+)>)')

_COMPUTED = re.compile(rf'^{BLANK}#{BLANK}include(?:_next\b|\b(?!{BLANK}["<]))')
_HAS_INCLUDE = re.compile(r'\b__has_include[ \t]*\([ \t]*(?:"(?P<quoted>[^"\n]+)"|<(?P<angle>[^>\n]+)>)[ \t]*\)')
_ASKS_OTHERWISE = re.compile(r"\b__has_include_next\b|\b__has_include(?:\s|\\\r?\n)*\(")
_MAY_BE_COMPUTED = re.compile(r'\binclude(?:_next\b|\b(?!\s*["<]))')


def has_computed_includes(text: str) -> bool:
    """Whether only the preprocessor knows what some include of ``text`` reads: ``#include NAME``, ``#include_next``."""
    if _MAY_BE_COMPUTED.search(text) is None:
        return False
    return any(line is not None and _COMPUTED.match(piece) for piece, line in _split(text))


def answer_has_include(text: str, exists: Exists) -> tuple[str, bool]:
    """``text`` with 1 for each ``__has_include`` of a file of the project, and whether that answers all of them.

    Every character stays in its place. What does not exist stays for the compiler, which also knows its own headers.
    """
    if "__has_include" not in text:
        return text, True
    answered = True

    def answer(question: re.Match[str]) -> str:
        found = exists(question["quoted"] or question["angle"], question["quoted"] is not None)
        return "1".ljust(len(question.group())) if found else question.group()

    pieces = []
    for piece, line in _split(text):
        if line is None:
            pieces.append(piece)
        else:
            answered = answered and _ASKS_OTHERWISE.search(_HAS_INCLUDE.sub("", piece)) is None
            pieces.append(_HAS_INCLUDE.sub(answer, piece))
    return "".join(pieces), answered


def replace_includes(text: str, on_include: IncludeHook) -> str:
    """``text`` with its includes as ``on_include`` wants them; every line stays on its line."""
    pieces = []
    for piece, line in _split(text):
        replacement = None if line is None else replaced_include(piece, line, on_include)
        pieces.append(piece if replacement is None else replacement)
    return "".join(pieces)


@lru_cache(maxsize=64)
def _split(text: str) -> tuple[tuple[str, int | None], ...]:
    """``text`` in pieces: each directive with its line, and what is between them.

    Kept, because a search compiles the same text with other macros hundreds of times.
    """
    pieces: list[tuple[str, int | None]] = []
    between: list[str] = []
    line = 0
    for token in lex(text):
        if token.kind == "directive":
            pieces += [("".join(between), None), (token.text, line)]
            between = []
        else:
            between.append(token.text)
        line += token.text.count("\n")
    return (*pieces, ("".join(between), None))


def replaced_include(directive: str, line: int, on_include: IncludeHook) -> str | None:
    """What stands for ``directive``, which begins on ``line``; None where it is no include, or is left as it is."""
    include = _INCLUDE.match(directive)
    if include is None:
        return None
    header, quoted = include["quoted"] or include["angle"], include["quoted"] is not None
    lines_before = include.group()[: include.start(include.lastgroup or 0)].count("\n")
    replacement = on_include(header, quoted, line + lines_before)
    return None if replacement is None else replacement + breaks(directive)
