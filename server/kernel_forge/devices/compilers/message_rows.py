"""Compiler messages as JSON rows, to be kept beside what was compiled."""

from typing import Any

from kernel_forge.domain.outcome import CompilerMessage
from kernel_forge.domain.text import Location, Position, Range


def message_row(message: CompilerMessage) -> list[Any]:
    """``[severity, text, origin, place]``; the place is the path and four numbers, or None."""
    return [message.severity, message.message, message.origin, _flat(message.location)]


def message_of(row: list[Any]) -> CompilerMessage:
    """Inverse of :func:`message_row`.

    Raises:
        ValueError, TypeError, IndexError: this is no such row.
    """
    return CompilerMessage(row[0], row[1], _location(row[3]), row[2])


def _flat(location: Location | None) -> list[str | int] | None:
    if location is None:
        return None
    start, end = location.range.start, location.range.end
    return [location.path, start.line, start.column, end.line, end.column]


def _location(flat: list[str | int] | None) -> Location | None:
    if flat is None:
        return None
    path, *numbers = flat
    first, column, last, end = (int(n) for n in numbers)
    return Location(str(path), Range(Position(first, column), Position(last, end)))
