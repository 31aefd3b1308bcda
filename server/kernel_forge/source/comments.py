"""Comments: the text above a kernel, and the ``// /// kernel-forge`` blocks.

A block is delimited the way PEP 723 delimits script metadata, with ``//`` for ``#``: it opens with a line
``// /// kernel-forge`` and closes with a line ``// ///``; every line between is ``//`` alone or ``// `` and
text. Where the run of such lines holds several ``// ///``, the last one closes, unless another block opens
before it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_forge.domain.spec import BLOCK_MARKER
from kernel_forge.domain.text import Position, Range
from kernel_forge.source.lines import LineIndex
from kernel_forge.source.tree import SyntaxTree

_OPENING = f"// {BLOCK_MARKER}"
_IS_OPENING = re.compile(rf"^[ \t\ufeff]*{_OPENING}[ \t]*$")
_COMMENT_LINE = re.compile(r"^([ \t]*)//(?: (.*)|)$", re.DOTALL)
_ANY_OPENING = re.compile(r"^[ \t]*// /// [a-zA-Z0-9-]+[ \t]*$")
_CLOSING = re.compile(r"^[ \t]*// ///[ \t]*$")


@dataclass(frozen=True)
class CommentBlock:
    """One block. ``range`` has both delimiters (or ends with the last comment line, where not closed).

    ``kernel_below`` is the name of the next kernel, when only blank lines, macros, comments and
    declarations of other kinds are between.
    """

    range: Range
    toml: str
    closed: bool
    kernel_below: str | None
    columns: tuple[int, ...]
    """For each line of ``toml``, the column in the source where its text begins."""

    def to_source(self, position: Position) -> Position:
        """Where a position in ``toml`` is in the source."""
        first = self.range.start.line + 1
        if not self.columns:
            return self.range.end
        if position.line >= len(self.columns):
            last = len(self.columns) - 1
            width = len(self.toml.split("\n")[last])
            return Position(first + last, self.columns[last] + width)
        return Position(first + position.line, self.columns[position.line] + position.column)


@dataclass(frozen=True, slots=True)
class BlockText:
    """A block before it is known which kernel it stands above; lines are zero-based, ``last`` included."""

    first: int
    last: int
    toml: str
    closed: bool
    columns: tuple[int, ...]


def read_blocks(text: str, lines: LineIndex, tree: SyntaxTree) -> Iterator[BlockText]:
    """The blocks of a file, first to last."""
    done = -1
    offset = text.find(_OPENING)
    while offset != -1:
        first = lines.position(offset).line
        byte = lines.byte(offset)
        leaf = tree.leaf(byte)
        is_comment = leaf.type == "comment" and leaf.start_byte == byte
        if first > done and is_comment and _IS_OPENING.match(lines.line_text(first)):
            block = _read_block(lines, first)
            done = block.last
            yield block
        offset = text.find(_OPENING, offset + 1)


def _read_block(lines: LineIndex, first: int) -> BlockText:
    contents: list[str] = []
    columns: list[int] = []
    close: int | None = None
    line = first + 1
    while line < lines.line_count:
        text = lines.line_text(line)
        match = _COMMENT_LINE.match(text)
        if match is None or _ANY_OPENING.match(text):
            break
        if _CLOSING.match(text):
            close = line
        content = match.group(2)
        contents.append(content or "")
        columns.append(len(match.group(1)) + (2 if content is None else 3))
        line += 1
    last = close if close is not None else line - 1
    count = last - first if close is None else last - first - 1
    return BlockText(first, last, "\n".join(contents[:count]), close is not None, tuple(columns[:count]))


def docs_above(lines: LineIndex, offset: int) -> str:
    """The text of the comments that end on the line above ``offset``'s line; spec blocks are left out."""
    line = lines.position(offset).line - 1
    found: list[str] = []
    inside = False
    while line >= 0:
        text = lines.line_text(line).strip()
        if not inside and _CLOSING.match(text):
            line = _opening_above(lines, line)
        elif not inside and text.startswith("//"):
            found.append(text.lstrip("/").strip())
        elif inside or text.endswith("*/"):
            inside = "/*" not in text
            before, _, after = text.rpartition("/*")
            if not inside and before.strip():
                break
            found.append((after if not inside else text).removesuffix("*/").strip("*! \t"))
        else:
            break
        line -= 1
    return "" if inside else "\n".join(reversed(found)).strip()


def _opening_above(lines: LineIndex, line: int) -> int:
    """The line that opens the block which ``line`` closes; -1 where none does."""
    for above in range(line - 1, -1, -1):
        text = lines.line_text(above)
        if _ANY_OPENING.match(text):
            return above
        if not _COMMENT_LINE.match(text):
            break
    return -1
