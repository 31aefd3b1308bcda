"""Domain values to protocol values and back: the only place that builds protocol ranges."""

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lsprotocol import types as lsp

from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.text import Position, Range, TextEdit
from kernel_forge.lsp.encoding import Encoding, from_units, to_units
from kernel_forge.resources import rule_page

LineOf = Callable[[int], str]
"""Line number -> its text without line break ("" past the end)."""

SOURCE = "kernel-forge"
_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFORMATION: lsp.DiagnosticSeverity.Information,
    Severity.HINT: lsp.DiagnosticSeverity.Hint,
}


def path_of(uri: str) -> str:
    """The path of the local file that a ``file:`` URI names; any other URI (``untitled:``) is its own name."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # such as "http://["
        return uri
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return uri
    path = unquote(parts.path, errors="surrogateescape")  # a file's name need not be UTF-8
    if not path.startswith("/") or path.endswith("/") or not _can_be_a_name(path):
        return uri
    if len(path) > 2 and path[0] == "/" and path[2] == ":":  # /C:/x on Windows
        path = path[1:]
    return path


def is_file_path(path: str) -> bool:
    """Whether :func:`path_of` gave the path of a file (and not a URI back)."""
    return Path(path).is_absolute()


def unverifiable(path: str) -> str | None:
    """Why a document of that path (see :func:`path_of`) cannot be verified whatever its text, or None."""
    if not is_file_path(path):
        return "only a file on this machine can be verified; save the document as one first"
    if any(ord(c) < 32 or ord(c) == 127 for c in path):
        return "the file's path has a line break or another control character; rename it"
    try:
        os.lstat(path)
    except FileNotFoundError:
        return None  # a new buffer: its text is all that is needed
    except OSError as error:  # such as a name that is too long
        return f"the file's path cannot be used ({error.strerror})"
    return None


def _can_be_a_name(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # a lone surrogate
        return False


def uri_of(path: str) -> str:
    """The ``file:`` URI of an absolute path; a URI stays as it is."""
    return Path(path).as_uri() if Path(path).is_absolute() else path


def to_position(position: Position, line_of: LineOf, encoding: Encoding) -> lsp.Position:
    """A position in the client's units, clipped to its line."""
    line = line_of(position.line)
    return lsp.Position(line=position.line, character=to_units(line, position.column, encoding))


def to_range(place: Range, line_of: LineOf, encoding: Encoding) -> lsp.Range:
    """A range in the client's units."""
    return lsp.Range(start=to_position(place.start, line_of, encoding), end=to_position(place.end, line_of, encoding))


def from_position(position: lsp.Position, line_of: LineOf, encoding: Encoding) -> Position:
    """A position of the client in code points."""
    line = line_of(position.line)
    return Position(position.line, from_units(line, position.character, encoding))


def from_range(place: lsp.Range, line_of: LineOf, encoding: Encoding) -> Range:
    """A range of the client in code points; one given from its end to its start is turned round."""
    ends = from_position(place.start, line_of, encoding), from_position(place.end, line_of, encoding)
    return Range(min(ends), max(ends))


def to_text_edit(edit: TextEdit, line_of: LineOf, encoding: Encoding) -> lsp.TextEdit:
    """An edit in the client's units."""
    return lsp.TextEdit(range=to_range(edit.range, line_of, encoding), new_text=edit.new_text)


def to_diagnostic(finding: Finding, lines_of: Callable[[str], LineOf], encoding: Encoding) -> lsp.Diagnostic:
    """A finding as a diagnostic with a link to its rule page; ``lines_of`` gives the lines of a path."""
    related = [
        lsp.DiagnosticRelatedInformation(
            location=lsp.Location(
                uri=uri_of(place.location.path),
                range=to_range(place.location.range, lines_of(place.location.path), encoding),
            ),
            message=place.message,
        )
        for place in finding.related
    ]
    return lsp.Diagnostic(
        range=to_range(finding.range, lines_of(finding.path), encoding),
        message=finding.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=lsp.CodeDescription(href=rule_page(finding.code).as_uri()),
        source=SOURCE,
        related_information=related or None,
    )
