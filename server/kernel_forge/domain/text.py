"""Places in source text.

One unit everywhere: zero-based lines, and columns in *code points* (indices into a Python ``str``
line). Only ``source/`` converts from the parser's bytes and only ``lsp/`` converts to the encoding a
client negotiated.
"""

import re
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")


def line_end(text: str) -> str:
    """How ``text`` ends its lines: as its first line does; LF where it has only one."""
    match = _LINE_END.search(text)
    return match.group() if match is not None else "\n"


@dataclass(frozen=True, order=True, slots=True)
class Position:
    """A point between two characters: ``line`` and ``column`` start at 0, columns count code points."""

    line: int
    column: int


@dataclass(frozen=True, order=True, slots=True)
class Range:
    """A half-open stretch of text, ``start`` included and ``end`` excluded."""

    start: Position
    end: Position

    def contains(self, position: Position) -> bool:
        """Whether ``position`` lies inside, both ends included (a cursor at the end counts)."""
        return self.start <= position <= self.end

    @staticmethod
    def of_line(line: int, start: int = 0, end: int = 10**6) -> "Range":
        """The range of one line (or of ``start:end`` on it); clients clip an end past the line's length."""
        return Range(Position(line, start), Position(line, end))


@dataclass(frozen=True, order=True, slots=True)
class Location:
    """A range in a named file. ``path`` is absolute, as the user knows the file (never a shadow copy)."""

    path: str
    range: Range


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace ``range`` by ``new_text``."""

    range: Range
    new_text: str
