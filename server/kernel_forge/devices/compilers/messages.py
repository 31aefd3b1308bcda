"""What a compiler prints, as messages at ranges of the user's files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernel_forge.domain.outcome import CompilerMessage
from kernel_forge.domain.text import Location, Position, Range

_LINE = re.compile(
    r"^(?P<file>[^\n]+?)[:(](?P<line>\d+)(?:[:,](?P<column>\d+))?\)?"
    r"(?::?\s*(?:\{[^}\n]*\})*):?\s*(?P<severity>fatal error|catastrophic error|[Ee]rror|warning|note)"
    r"(?:\s*#?[\w-]*)?\s*:\s*(?P<message>.+)$"
)
# GNU ld names no severity.
_LINKER = re.compile(
    r"^(?:\S*ld: )?(?P<file>[^\n]+?):(?P<line>\d+):(?P<column>)\s*(?P<message>undefined reference to .+)$"
)
# gcc tells before an error where the template came from, clang and NVIDIA's compilers after it.
_NEW_CONTEXT = re.compile(r"^[^\n]+: (?:In |At global scope)")
_REQUIRED = re.compile(r"^(?P<file>[^\n]+?):(?P<line>\d+):(?:(?P<column>\d+):)?\s+required (?:from|by)")
_NOTE_OF_ORIGIN = re.compile(r"\brequested here$|^expanded from |^in expansion of ")
_INSTANTIATED = re.compile(r"^\s+instantiation of .+ at line (?P<line>\d+)(?: of (?P<file>[^\n]+))?(?P<column>)$")
_CALLEE = re.compile(r"[^\W\d]\w*$")
_NAME = re.compile(r"\"(?:[^\"\\]|\\.)*\"|[^\W\d]\w*|\d[\w.']*|::|->|<<|>>|[-+*/=!<>&|]=|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class UserFile:
    """A file of the user as it was compiled; ``path`` is how the user knows it."""

    path: str
    text: str


def parse_messages(text: str, files: Mapping[str, UserFile], origin: str) -> tuple[CompilerMessage, ...]:
    """Messages of gcc, clang, nvcc, NVRTC or the linker in ``text``, in order, notes included.

    ``files`` maps names that the compiler was given to the user's files. An error inside anything else (a system
    header, our headers) is moved to the innermost line of the user that the compiler says it came from, or has no
    location.
    """
    reader = _Reader(files, origin)
    lines = text.splitlines()
    for number, line in enumerate(lines):
        reader.read(line, lines[number + 1 : number + 9])
    reader.settle(None)
    return tuple(reader.messages)


class _Reader:
    """The state between the lines: where the errors to come, or the last one, came from."""

    def __init__(self, files: Mapping[str, UserFile], origin: str) -> None:
        self.messages: list[CompilerMessage] = []
        self._files = files
        self._origin = origin
        self._required: Location | None = None
        self._pending: int | None = None  # index of an error that still has no place
        self._settled: Location | None = None  # clang names the origin of a row of errors once
        self._last_file = ""

    def read(self, line: str, after: list[str]) -> None:
        if _NEW_CONTEXT.match(line):
            self._required = None
        elif (match := _REQUIRED.match(line)) is not None:
            self._required = self._required or self._location(match)
        elif (match := _INSTANTIATED.match(line)) is not None:
            self._last_file = match["file"] or self._last_file
            if (place := self._location(match, self._last_file)) is not None:
                self.settle(place)
        elif (match := _LINE.match(line) or _LINKER.match(line)) is not None:
            self._message(match, after)

    def settle(self, place: Location | None) -> None:
        """Give the error that waits for a place this one, or that of the error before it."""
        if self._pending is None:
            return
        self._settled = place or self._settled
        self.messages[self._pending] = replace(self.messages[self._pending], location=self._settled)
        self._pending = None

    def _message(self, match: re.Match[str], after: list[str]) -> None:
        word = match.groupdict().get("severity", "error").lower()
        severity = "error" if word.endswith("error") else word
        message = match["message"].strip()
        self._last_file = match["file"]
        location = self._location(match)
        if location is not None and not match["column"]:
            location = _at_caret(location, after, self._files[match["file"]].text)
        if severity == "note":
            if location is not None and _NOTE_OF_ORIGIN.search(message):
                self.settle(location)
        else:
            self.settle(None)
            if location is not None:
                self._settled = None
            elif severity == "error":
                location = self._required
                self._pending = len(self.messages) if location is None else None
        self.messages.append(CompilerMessage(severity, message, location, self._origin))

    def _location(self, match: re.Match[str], name: str | None = None) -> Location | None:
        file = self._files.get(name or match["file"])
        if file is None:
            return None
        column = match["column"]
        return Location(file.path, token_range(file.text, int(match["line"]) - 1, int(column) - 1 if column else None))


def _at_caret(location: Location, after: list[str], text: str) -> Location:
    """The token at the caret that NVIDIA's compilers print under the line, whose indentation they change.

    nvcc shows the line without comments and with macros expanded: its token is then looked up by name.
    """
    caret = next((i for i, line in enumerate(after) if line.strip() in ("^", "")), 0)
    if caret == 0 or after[caret].strip() != "^":
        return location
    number = location.range.start.line
    lines = text.split("\n")
    content = lines[number] if number < len(lines) else ""
    indent = len(after[caret - 1]) - len(after[caret - 1].lstrip())
    shown, column = after[caret - 1].strip(), after[caret].index("^") - indent
    begin = content.find(shown)
    if begin >= 0 and 0 <= column < len(shown):
        return _at(location, text, begin + column)
    shown_names, names = (list(_NAME.finditer(part)) for part in (shown, content))
    token = next((t for t in shown_names if t.start() == column), None)
    if token is None or not (token.group()[0].isalnum() or token.group()[0] == "_"):
        return location
    same = [t.start() for t in shown_names if t.group() == token.group()]
    places = [t.start() for t in names if t.group() == token.group()]
    return _at(location, text, places[same.index(column)]) if len(same) == len(places) else location


def _at(location: Location, text: str, column: int) -> Location:
    line = location.range.start.line
    content = text.split("\n")[line]
    return Location(location.path, token_range(text, line, len(content[:column].encode())))


def token_range(text: str, line: int, byte_column: int | None) -> Range:
    """The token at ``byte_column`` (UTF-8) of the zero-based ``line``; the line's code where it is None."""
    lines = text.split("\n")
    content = lines[line].rstrip("\r") if 0 <= line < len(lines) else ""
    if byte_column is None:
        indent = len(content) - len(content.lstrip())
        return Range(Position(line, indent), Position(line, max(len(content.rstrip()), indent + 1)))
    column = len(content.encode("utf-8")[:byte_column].decode("utf-8", "ignore"))
    token = _NAME.match(content, column) if column < len(content) else None
    callee = _CALLEE.search(content, 0, column)
    if token is not None and token.group() == "(" and callee is not None:  # gcc's place of a call
        return Range(Position(line, callee.start()), Position(line, callee.end()))
    return Range(Position(line, column), Position(line, token.end() if token else column + 1))
