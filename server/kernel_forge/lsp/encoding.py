"""Columns: code points inside, whatever unit the client negotiated outside.

pygls has a codec too, but it splits lines at form feeds and Unicode separators, which neither the
protocol nor an editor does; a CUDA file with a form feed would then be off by a line.
"""

from enum import Enum


class Encoding(Enum):
    """A position encoding of the protocol; ``value`` is its wire name."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


def to_units(line: str, column: int, encoding: Encoding) -> int:
    """Code point ``column`` of ``line`` (no line break) in the client's units, clipped to the line."""
    column = max(0, min(column, len(line)))
    if encoding is Encoding.UTF32 or line.isascii():
        return column
    head = line[:column]
    if encoding is Encoding.UTF8:
        return len(head.encode("utf-8", "surrogatepass"))
    return len(head.encode("utf-16-le", "surrogatepass")) // 2


def from_units(line: str, units: int, encoding: Encoding) -> int:
    """The code point column that ``units`` of the client's encoding point at.

    A position inside a character (which a client must not send) counts as the character's start; one
    past the end of the line counts as the end, as the protocol says.
    """
    if units <= 0:
        return 0
    if encoding is Encoding.UTF32 or line.isascii():
        return min(units, len(line))
    seen = 0
    for index, character in enumerate(line):
        width = _width(character, encoding)
        if seen + width > units:
            return index
        seen += width
    return len(line)


def as_written(text: str) -> str:
    """``text`` as an editor writes it to a file: both halves of a surrogate pair are one character, a lone half
    is U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _width(character: str, encoding: Encoding) -> int:
    code = ord(character)
    if encoding is Encoding.UTF16:
        return 2 if code > 0xFFFF else 1
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
