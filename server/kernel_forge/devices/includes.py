"""The include directives of a C++ text: asked about one by one, and replaced on their lines."""

import re
from collections.abc import Callable

from kernel_forge.devices.lexer import breaks, lex

IncludeHook = Callable[[str, bool, int], str | None]
"""``(name, quoted, zero-based line)`` of an include -> replacement of the directive, or None to leave it."""

BLANK = r"(?:\s|/\*(?:[^*]|\*(?!/))*\*/)*"
"""What may stand between the words of a directive."""

_INCLUDE = re.compile(rf'^{BLANK}#{BLANK}include{BLANK}(?:"(?P<quoted>[^"\n]+)"|<(?P<angle>[^>\n]+)>)')

_COMPUTED = re.compile(rf'^{BLANK}#{BLANK}include(?:_next\b|\b(?!{BLANK}["<]))')
_MAY_BE_COMPUTED = re.compile(r'\binclude(?:_next\b|\b(?!\s*["<]))')


def has_computed_includes(text: str) -> bool:
    """Whether only the preprocessor knows what some include of ``text`` reads: ``#include NAME``, ``#include_next``."""
    if _MAY_BE_COMPUTED.search(text) is None:
        return False
    return any(token.kind == "directive" and _COMPUTED.match(token.text) for token in lex(text))


def replace_includes(text: str, on_include: IncludeHook) -> str:
    """``text`` with its includes as ``on_include`` wants them; every line stays on its line."""
    pieces = []
    line = 0
    for token in lex(text):
        replacement = replaced_include(token.text, line, on_include) if token.kind == "directive" else None
        pieces.append(token.text if replacement is None else replacement)
        line += token.text.count("\n")
    return "".join(pieces)


def replaced_include(directive: str, line: int, on_include: IncludeHook) -> str | None:
    """What stands for ``directive``, which begins on ``line``; None where it is no include, or is left as it is."""
    include = _INCLUDE.match(directive)
    if include is None:
        return None
    header, quoted = include["quoted"] or include["angle"], include["quoted"] is not None
    lines_before = include.group()[: include.start(include.lastgroup or 0)].count("\n")
    replacement = on_include(header, quoted, line + lines_before)
    return None if replacement is None else replacement + breaks(directive)
