"""Problems of a block, at exact places in the user's file."""

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.finding import Finding, Fix, Related, Severity
from kernel_forge.domain.text import Location, Position, Range, TextEdit
from kernel_forge.source import CommentBlock
from kernel_forge.spec.toml_document import Path, TomlDocument


@dataclass
class BlockText:
    """The TOML of one spec and the way from its positions to the user's file.

    ``block`` is None for a sidecar, whose positions need no translation. ``prefix`` is the path of the spec's
    table in the document (empty for a comment block).
    """

    path: str
    toml: str
    block: CommentBlock | None
    document: TomlDocument
    prefix: Path = ()
    findings: list[Finding] = field(default_factory=list)

    def range_of(self, path: Path, *, key: bool = False) -> Range:
        """Where ``path`` stands in the user's file."""
        return self.to_source(self.document.range_of((*self.prefix, *path), key=key))

    def location_of(self, path: Path, *, key: bool = False) -> Location:
        """The same with the file."""
        return Location(self.path, self.range_of(path, key=key))

    def to_source(self, place: Range) -> Range:
        """A range of the TOML in the user's file."""
        if self.block is None:
            return place
        return Range(self.block.to_source(place.start), self.block.to_source(place.end))

    def add(
        self,
        code: str,
        message: str,
        path: Path,
        *,
        key: bool = False,
        fixes: tuple[Fix, ...] = (),
        related: tuple[Related, ...] = (),
        severity: Severity = Severity.ERROR,
        within: tuple[int, int] | None = None,
    ) -> None:
        """Note a problem at ``path``; ``within`` is (offset, length) inside a string value."""
        place = self.document.range_of((*self.prefix, *path), key=key)
        if within is not None:
            place = self._inside(place, *within)
        self.findings.append(Finding(code, severity, message, self.path, self.to_source(place), related, fixes))

    def add_expression(self, code: str, error: ExpressionError, path: Path) -> None:
        """Note an expression's problem at the part of the string it is about."""
        self.add(code, str(error), path, within=(error.offset, error.length))

    def _inside(self, place: Range, offset: int, length: int) -> Range:
        """The part of a one-line string literal; the whole value where it is anything else."""
        lines = self.toml.split("\n")
        if place.start.line != place.end.line or place.start.line >= len(lines):
            return place
        literal = lines[place.start.line][place.start.column : place.end.column]
        if not literal.startswith(('"', "'")) or "\\" in literal or literal.startswith(('"""', "'''")):
            return place
        start = place.start.column + 1 + max(0, min(offset, max(0, len(literal) - 3)))
        end = min(place.end.column - 1, start + max(1, length))
        return Range(Position(place.start.line, start), Position(place.start.line, max(end, start + 1)))

    @property
    def has_errors(self) -> bool:
        """Whether something must be mended before the spec can be used."""
        return any(f.severity is Severity.ERROR for f in self.findings)

    def rename_fix(self, path: Path, new: str) -> Fix:
        """Replace the key at ``path``."""
        return Fix(f"Rename to {new}", (TextEdit(self.range_of(path, key=True), new),), preferred=True)

    def replace_value_fix(self, path: Path, new: str, title: str) -> Fix:
        """Replace the value at ``path``."""
        return Fix(title, (TextEdit(self.range_of(path), new),), preferred=True)

    def insert_line_fix(self, table: str, line: str, title: str) -> Fix:
        """Put ``line`` at the end of ``[table]`` (made at the end of the block where there is none)."""
        lines = self.toml.split("\n")
        header = f"[{'.'.join(_toml_key(str(part)) for part in (*self.prefix, table))}]"
        inline = self.document.values.get((*self.prefix, table))
        if inline is not None:  # args = { ... }
            inside = self.document.range_of((*self.prefix, table))
            before = lines[inside.end.line][: inside.end.column - 1].rstrip()
            place = Position(inside.end.line, len(before))
            text = f" {line}" if before.endswith("{") else f", {line}"
            return Fix(title, (TextEdit(self.to_source(Range(place, place)), text),))
        at = next((i for i, text in enumerate(lines) if text.strip() == header), None)
        new = [line]
        if at is None:
            new = ["", header, line]
            at = max((i for i, text in enumerate(lines) if text.strip()), default=0)
        else:
            while at + 1 < len(lines) and lines[at + 1].strip() and not lines[at + 1].lstrip().startswith("["):
                at += 1
        end = self.to_source(Range(Position(at, len(lines[at])), Position(at, len(lines[at]))))
        lead = "// " if self.block is not None else ""
        text = "".join(f"\n{lead}{part}".rstrip() if part == "" else f"\n{lead}{part}" for part in new)
        return Fix(title, (TextEdit(end, text),))


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` was probably meant to be."""
    found = difflib.get_close_matches(name, list(known), 1, 0.6)
    return found[0] if found else None


def listing(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(names) or "none"
