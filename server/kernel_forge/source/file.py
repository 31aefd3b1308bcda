"""A CUDA source file as a value: its text, and what is in it, found on demand."""

from bisect import bisect_right
from functools import cached_property

from kernel_forge.domain.errors import SourceError
from kernel_forge.domain.text import Position, Range
from kernel_forge.source.comments import CommentBlock, read_blocks
from kernel_forge.source.constants import read_constants
from kernel_forge.source.host_code import read_host_ranges
from kernel_forge.source.kernels import KernelMemo, read_kernels
from kernel_forge.source.launches import read_launches
from kernel_forge.source.lines import LineIndex, encode
from kernel_forge.source.macros import read_aliases, read_macros
from kernel_forge.source.model import Constant, Kernel, LaunchSite, Macro, SharedArray, Symbol
from kernel_forge.source.tree import SyntaxTree, node_text
from kernel_forge.source.variables import read_shared, read_symbols

MAX_BYTES = 8 * 1024 * 1024


def parse(text: str, path: str) -> "SourceFile":
    """Read ``text`` as CUDA C++; broken code gives what can be made out.

    Raises:
        SourceError: the text has a NUL character (a binary file) or exceeds 8 MiB as UTF-8.
    """
    _check(text, path)
    return SourceFile(text, path, None, None)


class SourceFile:
    """One version of one file. Immutable: :meth:`edit` gives a new value.

    Every property is found when first asked for and then kept. A value can be handed from thread to thread.
    Two threads that ask for the same property at once may both compute it, with equal results.
    """

    def __init__(self, text: str, path: str, base: SyntaxTree | None, previous: KernelMemo | None) -> None:
        """Internal: use :func:`parse` or :meth:`edit`."""
        self._text = text
        self._path = path
        self._base = base
        self._previous = previous

    @property
    def path(self) -> str:
        """The path as given to :func:`parse`."""
        return self._path

    @property
    def text(self) -> str:
        """The whole text, line ends as they are."""
        return self._text

    def edit(self, range: Range, new_text: str) -> "SourceFile":  # noqa: A002
        """Replace ``range`` (clipped into the text). Parsing waits until something is asked for.

        Then only what changed since the last parsed version is parsed again, unless the code is broken.

        Raises:
            SourceError: as :func:`parse`, for the resulting text.
        """
        start, end = sorted((self.offset(range.start), self.offset(range.end)))
        text = self._text[:start] + new_text + self._text[end:]
        _check(text, self._path)
        memo = self.__dict__.get("_memo", self._previous)
        return SourceFile(text, self._path, self.__dict__.get("_tree", self._base), memo)

    def offset(self, position: Position) -> int:
        """Code points before ``position``; a column past its line's end means the line's end."""
        return self._lines.offset(position)

    def position(self, offset: int) -> Position:
        """The position ``offset`` code points into the text, clipped into the text."""
        return self._lines.position(offset)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """Every kernel, once, in file order."""
        memo = KernelMemo(self.aliases)
        kernels = read_kernels(self._text, self._lines, self._tree, self.macros, memo, self._previous or KernelMemo({}))
        self.__dict__["_memo"] = memo
        return kernels

    @cached_property
    def launches(self) -> tuple[LaunchSite, ...]:
        """Every place that launches a kernel, in file order."""
        return tuple(read_launches(self._text, self._lines, self._tree, self._function_at))

    @cached_property
    def macros(self) -> tuple[Macro, ...]:
        """Every object-like macro with a value, in file order."""
        return read_macros(self._text, self._lines, self._tree)

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """Every named constant at file or namespace scope, in file order."""
        return tuple(read_constants(self._lines, self._tree))

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Type alias (or macro) -> what it stands for, as written. Do not change it."""
        return read_aliases(self._text, self._lines, self._tree, self.macros)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """Every global in device memory, in file order."""
        return tuple(read_symbols(self._text, self._lines, self._tree, self.aliases))

    @cached_property
    def shared(self) -> tuple[SharedArray, ...]:
        """Every ``__shared__`` variable, in file order."""
        return tuple(read_shared(self._text, self._lines, self._tree, self._function_at))

    @cached_property
    def blocks(self) -> tuple[CommentBlock, ...]:
        """Every ``// /// kernel-forge`` block, in file order."""
        names = [kernel.name_range.start for kernel in self.kernels]
        blocks: list[CommentBlock] = []
        for block in read_blocks(self._text, self._lines, self._tree):
            start = Position(block.first, len(self._lines.line_text(block.first).split("//", 1)[0]))
            end = Position(block.last, len(self._lines.line_text(block.last)))
            index = bisect_right(names, end)
            below = self.kernels[index].name if index < len(names) else None
            blocks.append(CommentBlock(Range(start, end), block.toml, block.closed, below, block.columns))
        return tuple(blocks)

    @cached_property
    def host_ranges(self) -> tuple[tuple[int, int], ...]:
        """Offsets (start, end) of host-only code that a device-only compile can do without."""
        return tuple(read_host_ranges(self._text, self._lines, self._tree, self.macros, self.kernels))

    @cached_property
    def _tree(self) -> SyntaxTree:
        return SyntaxTree.parse(self._text) if self._base is None else self._base.edited(self._text)

    @cached_property
    def _lines(self) -> LineIndex:
        return LineIndex(self._text)

    def _function_at(self, offset: int) -> str | None:
        """Name of the function around ``offset``."""
        for node in self._tree.around(self._lines.byte(offset)):
            if node.type != "function_definition":
                continue
            inner = node.child_by_field_name("declarator")
            while inner is not None and inner.type != "function_declarator":
                inner = inner.child_by_field_name("declarator")
            name = inner.child_by_field_name("declarator") if inner is not None else None
            if name is not None:
                return node_text(name).split("::")[-1].partition("<")[0].strip()
        position = self.position(offset)
        return next((k.name for k in self.kernels if k.body_range and k.body_range.contains(position)), None)


def _check(text: str, path: str) -> None:
    if "\0" in text:
        at = text.index("\0")
        raise SourceError(f"{path}: not a text file (NUL at character {at}); open a CUDA C++ source instead")
    if len(text) * 4 > MAX_BYTES and len(encode(text)) > MAX_BYTES:
        raise SourceError(
            f"{path}: {len(encode(text))} bytes exceed the limit of 8 MiB ({MAX_BYTES} bytes) "
            "for one source file; split the file"
        )
