"""What a compiler prints, as messages at ranges of the user's files."""

import re
from collections.abc import Mapping

from kernel_forge.domain.outcome import CompilerMessage
from kernel_forge.domain.text import Location, Position, Range

_LINE = re.compile(
    r"^(?P<file>[^\n:]+?)[:(](?P<line>\d+)(?:[:,](?P<column>\d+))?\)?"
    r"(?::?\s*(?:\{[^}\n]*\})*):?\s*(?P<severity>fatal error|catastrophic error|error|warning|note)"
    r"(?:\s*#?[\w-]*)?\s*:\s*(?P<message>.+)$"
)
_CONTEXT = re.compile(r"^(?P<file>[^\n:]+?):(?P<line>\d+):(?:(?P<column>\d+):)?\s+required (?:from|by)")
_NAME = re.compile(r"[^\W\d]\w*|\d[\w.']*|::|->|<<|>>|[-+*/=!<>&|]=|.", re.DOTALL)


def parse_messages(text: str, originals: Mapping[str, str], origin: str) -> tuple[CompilerMessage, ...]:
    """Messages of gcc, clang, nvcc or NVRTC in ``text``, in order, notes included.

    ``originals`` maps the paths of the user's files to their texts. A message inside anything else (a system
    header, our headers) is moved to the user's line that the compiler says it was required from, or has no
    location.
    """
    messages = []
    context: Location | None = None
    lines = text.splitlines()
    for number, line in enumerate(lines):
        required = _CONTEXT.match(line)
        if required is not None:
            context = _location(required, originals) or context
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        severity = "error" if match["severity"].endswith("error") else match["severity"]
        location = _location(match, originals)
        if location is not None and not match["column"]:
            location = _at_caret(location, lines[number + 1 : number + 3], originals)
        if location is None and severity == "error":
            location = context
        if severity != "note":
            context = None
        messages.append(CompilerMessage(severity, match["message"].strip(), location, origin))
    return tuple(messages)


def _location(match: re.Match[str], originals: Mapping[str, str]) -> Location | None:
    path = match["file"]
    if path not in originals:
        return None
    number = int(match["line"]) - 1
    column = match["column"]
    return Location(path, token_range(originals[path], number, int(column) - 1 if column else None))


def _at_caret(location: Location, after: list[str], originals: Mapping[str, str]) -> Location:
    """The token at the caret that NVIDIA's compilers print under the line, whose indentation they change."""
    if len(after) < 2 or after[1].strip() != "^":
        return location
    shown = after[0].strip()
    number = location.range.start.line
    lines = originals[location.path].split("\n")
    content = lines[number] if number < len(lines) else ""
    begin = content.find(shown)
    column = begin + after[1].index("^") - (len(after[0]) - len(after[0].lstrip()))
    if begin < 0 or not 0 <= column < len(content):
        return location
    return Location(location.path, token_range(originals[location.path], number, len(content[:column].encode())))


def token_range(text: str, line: int, byte_column: int | None) -> Range:
    """The token at ``byte_column`` (UTF-8) of the zero-based ``line``; the line's code where it is None."""
    lines = text.split("\n")
    content = lines[line].rstrip("\r") if 0 <= line < len(lines) else ""
    if byte_column is None:
        indent = len(content) - len(content.lstrip())
        return Range(Position(line, indent), Position(line, max(len(content.rstrip()), indent + 1)))
    column = len(content.encode("utf-8")[:byte_column].decode("utf-8", "ignore"))
    token = _NAME.match(content, column) if column < len(content) else None
    return Range(Position(line, column), Position(line, token.end() if token else column + 1))
