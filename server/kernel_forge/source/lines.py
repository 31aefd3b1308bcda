"""Where things are in a text: offsets in code points, positions by line, and the parser's bytes."""

import re
from bisect import bisect_right
from itertools import accumulate

from kernel_forge.domain.text import Position, Range

_LINE_END = re.compile(r"\r\n|\r|\n")
_CHUNK = 4096


class LineIndex:
    """Converts between code-point offsets, positions and byte offsets of one text.

    A line ends at LF, CRLF or a lone CR, as the Language Server Protocol defines it (form feeds and
    Unicode separators do not end one).
    """

    def __init__(self, text: str) -> None:
        self._text = text
        if "\r" in text:
            self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        else:
            # No step of Python's for each line: this runs on every keystroke.
            self._starts = [0, *accumulate(map((1).__add__, map(len, text.split("\n"))))][:-1]
        # For ASCII the byte offset is the offset. Otherwise byte offsets of every _CHUNK-th code point.
        self._marks: list[int] | None = None
        if not text.isascii():
            chunks = (text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK))
            self._marks = [0, *accumulate(len(encode(chunk)) for chunk in chunks)]

    @property
    def line_count(self) -> int:
        """Number of lines; an empty text has one."""
        return len(self._starts)

    def line_text(self, line: int) -> str:
        """The text of ``line`` without its line end."""
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self._text)
        return self._text[self._starts[line] : end].rstrip("\r\n")

    def position(self, offset: int) -> Position:
        """The position of ``offset``, clipped into the text."""
        if not 0 <= offset <= len(self._text):
            offset = min(max(offset, 0), len(self._text))
        line = bisect_right(self._starts, offset) - 1
        return Position(line, offset - self._starts[line])

    def offset(self, position: Position) -> int:
        """The offset of ``position``; a column past its line's end means the line's end."""
        if position.line < 0:
            return 0
        if position.line >= len(self._starts):
            return len(self._text)
        start = self._starts[position.line]
        return start + min(max(position.column, 0), len(self.line_text(position.line)))

    def range(self, start: int, end: int) -> Range:
        """The range between two offsets."""
        return Range(self.position(start), self.position(end))

    def byte(self, offset: int) -> int:
        """Byte offset (in :func:`encode`'s output) of a code-point offset."""
        if self._marks is None:
            return offset
        chunk = offset // _CHUNK
        return self._marks[chunk] + len(encode(self._text[chunk * _CHUNK : offset]))

    def code_point(self, byte: int) -> int:
        """Code-point offset of a byte offset; inside a character, that character's offset."""
        if self._marks is None:
            return byte
        chunk = max(0, min(bisect_right(self._marks, byte), len(self._marks) - 1) - 1)
        text = self._text[chunk * _CHUNK : (chunk + 1) * _CHUNK]
        head = encode(text)[: byte - self._marks[chunk]].decode("utf-8", "ignore")
        return chunk * _CHUNK + len(head)


def encode(text: str) -> bytes:
    """UTF-8 for the parser; a lone surrogate, which has no UTF-8 form, becomes ``?``."""
    return text.encode("utf-8", "replace")
