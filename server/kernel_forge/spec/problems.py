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
    table in the document (empty for a comment block). ``newline`` and ``indent`` are those of the user's file: how
    its lines end, and what stands before the ``//`` of the block.
    """

    path: str
    toml: str
    block: CommentBlock | None
    document: TomlDocument
    prefix: Path = ()
    newline: str = "\n"
    indent: str = ""
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

    def is_written(self, path: Path) -> bool:
        """Whether the block gives a value at exactly ``path``."""
        return (*self.prefix, *path) in self.document.values

    def holds(self, place: Location) -> bool:
        """Whether ``place`` is inside the block (or the sidecar)."""
        return place.path == self.path and (self.block is None or self.block.range.contains(place.range.start))

    def launch_path(self, number: int) -> Path:
        """Where the launch of that number stands: ``launch`` may be one table or an array of them."""
        first = (*self.prefix, "launch", 0)
        is_array = first in self.document.keys or first in self.document.values
        return ("launch", number) if is_array else ("launch",)

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
        return Fix(f"Rename to {new}", (TextEdit(self.range_of(path, key=True), _toml_key(new)),), preferred=True)

    def replace_value_fix(self, path: Path, new: str, title: str) -> Fix:
        """Replace the value at ``path``."""
        return Fix(title, (TextEdit(self.range_of(path), new),), preferred=True)

    def insert_lines_fix(self, table: Path, entries: list[str], title: str) -> Fix:
        """Put ``entries`` at the end of ``table``, which is made where there is none, in the form the block has it."""
        path = (*self.prefix, *table)
        inline = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self.document.values), None)
        if inline is not None:  # args = { ... }; what lies deeper has to be made inside it
            entry = ", ".join(entries)
            for name in reversed(path[len(inline) :]):
                entry = f"{_toml_key(str(name))} = {{ {entry} }}"
            return self._into_inline(inline, entry, title)
        lines = self.toml.split("\n")
        heads = sorted({r.start.line for r in self.document.keys.values() if _is_header(lines[r.start.line])})
        head = self.document.keys.get(path)
        if not path:
            first, new = -1, entries
        elif head is None:
            last = max((i for i, text in enumerate(lines) if text.strip()), default=0)
            return self._after(last, ["", f"[{'.'.join(_toml_key(str(p)) for p in path)}]", *entries], title)
        elif _is_header(lines[head.start.line]):
            first, new = head.start.line, entries
        else:  # dotted keys: launch.grid = ...
            first = max((h for h in heads if h < head.start.line), default=-1)
            dotted = ".".join(_toml_key(str(name)) for name in path[len(self._owner(first)) :])
            new = [f"{dotted}.{entry}" for entry in entries]
        stop = next((h for h in heads if h > first), len(lines))
        written = [r.end.line for r in self.document.values.values() if first <= r.start.line < stop]
        return self._after(max(written, default=first), new, title)

    def _owner(self, head: int) -> Path:
        """The table whose header stands in line ``head`` (-1: the document itself)."""
        return max((p for p, r in self.document.keys.items() if r.start.line == head), key=len, default=())

    def _into_inline(self, path: Path, entry: str, title: str) -> Fix:
        lines = self.toml.split("\n")
        inside = self.document.values[path]
        before = lines[inside.end.line][: inside.end.column - 1].rstrip()
        place = Position(inside.end.line, len(before))
        text = f" {entry}" if before.endswith("{") else f", {entry}"
        return Fix(title, (TextEdit(self.to_source(Range(place, place)), text),))

    def _after(self, line: int, new: list[str], title: str) -> Fix:
        """Put ``new`` lines below ``line`` of the TOML (-1: above the first), indented like that line."""
        lines = [text.rstrip("\r") for text in self.toml.split("\n")]
        above = lines[line] if line >= 0 else ""
        inner = above[: len(above) - len(above.lstrip())] if not _is_header(above) else ""
        lead = f"{self.indent}// " if self.block is not None else ""
        made = [f"{lead}{inner if part else ''}{part}".rstrip() for part in new]
        if line < 0:
            start = self.to_source(Range(Position(0, 0), Position(0, 0))).start
            place = Position(start.line, 0)
            text = "".join(part + self.newline for part in made)
        else:
            place = self.to_source(Range(Position(line, len(above)), Position(line, len(above)))).start
            text = "".join(self.newline + part for part in made)
        return Fix(title, (TextEdit(Range(place, place), text),))


def _is_header(line: str) -> bool:
    return line.lstrip().startswith("[")


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def kernel_fix(block: BlockText, path: Path, text: str, name: str) -> Fix:
    """Name the kernel ``name`` where ``text`` names another; template arguments stay."""
    head, angle, arguments = text.partition("<")
    scope, colons, _ = head.rpartition("::")
    new = json.dumps(f"{scope}{colons}{name}{angle}{arguments}", ensure_ascii=False)
    if block.is_written(path):
        return block.replace_value_fix(path, new, f"Use {name}")
    return block.insert_lines_fix(path[:-1], [f"kernel = {new}"], f"Use {name}")  # named by its table's header alone


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` was probably meant to be."""
    found = difflib.get_close_matches(name, list(known), 1, 0.6)
    return found[0] if found else None


def listing(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(names) or "none"
