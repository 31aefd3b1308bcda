"""The syntax tree of one text, and its incremental update.

The parser sees the text's UTF-8 bytes with a few stretches blanked, byte for byte, which the grammar does
not know: launch attributes in unusual places, a byte order mark, and lone carriage returns (as line ends).
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Tree

from kernel_forge.source.lines import encode

_LANGUAGE = Language(tree_sitter_cuda.language())
_PARENTHESES = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_UNKNOWN = re.compile(
    rf"__(?:launch_bounds|cluster_dims|maxnreg|block_size|align|builtin_align)__\s*(?:{_PARENTHESES})?"
    r"|__(?:grid_constant|no_sanitize|nv_pure)__"
)
_LONE_RETURN = re.compile(r"\r(?!\n)")
# Leaves that are no code. ``preproc_arg`` is the body of a macro.
_NOT_CODE = frozenset(
    (
        "comment",
        "string_content",
        "raw_string_content",
        "raw_string_delimiter",
        "character",
        "escape_sequence",
        "system_lib_string",
        "preproc_arg",
    )
)


def parser_bytes(text: str) -> bytes:
    """What the parser reads for ``text``: as many bytes as :func:`encode` gives."""
    if "__" in text:
        text = _UNKNOWN.sub(_blank, text)
    if text.startswith("\ufeff"):
        text = "   " + text[1:]
    if "\r" in text:
        text = _LONE_RETURN.sub("\n", text)
    return encode(text)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group()) if match.group().isascii() else _blank_wide(match.group())


def _blank_wide(text: str) -> str:
    return "".join(c if c == "\n" else " " * len(encode(c)) for c in text)


class SyntaxTree:
    """An immutable parse of one text. ``data`` are the bytes that node offsets count in."""

    def __init__(self, data: bytes, tree: Tree) -> None:
        self.data = data
        self._tree = tree

    @staticmethod
    def parse(text: str) -> "SyntaxTree":
        """Parse from scratch."""
        data = parser_bytes(text)
        return SyntaxTree(data, Parser(_LANGUAGE).parse(data))

    def edited(self, text: str) -> "SyntaxTree":
        """The tree of ``text``; this tree stays as it is.

        What did not change is reused. Where the code is broken, reuse could recover differently from a
        parse from scratch, so that the result would depend on the way there: then it is parsed anew.
        """
        new = parser_bytes(text)
        old = self.data
        if new == old:
            return self
        start = _common_prefix(old, new)
        tail = _common_suffix(old, new, min(len(old), len(new)) - start)
        old_end, new_end = len(old) - tail, len(new) - tail
        tree = self._tree.copy()
        tree.edit(start, old_end, new_end, _point(old, start), _point(old, old_end), _point(new, new_end))
        parsed = Parser(_LANGUAGE).parse(new, tree)
        if parsed.root_node.has_error:
            parsed = Parser(_LANGUAGE).parse(new)
        return SyntaxTree(new, parsed)

    @property
    def root(self) -> Node:
        """The translation unit."""
        return self._tree.root_node

    def leaf(self, byte: int) -> Node:
        """The smallest node at a byte offset."""
        outer = self._item(byte) or self.root
        return outer.descendant_for_byte_range(byte, byte + 1) or outer

    def is_code(self, byte: int) -> bool:
        """Whether the byte is outside comments, literals and macro bodies."""
        return self.leaf(byte).type not in _NOT_CODE

    def around(self, byte: int) -> list[Node]:
        """The nodes around a byte offset, innermost first, without the root."""
        node = self._item(byte)
        if node is None:
            return []
        leaf = node.descendant_for_byte_range(byte, byte + 1)
        chain = [node]
        while node is not None and leaf is not None and node.id != leaf.id:
            node = node.child_with_descendant(leaf)
            if node is not None:
                chain.append(node)
        chain.reverse()
        return chain

    def before(self, node: Node) -> Iterator[Node]:
        """The siblings before ``node``, nearest first."""
        parent = node.parent
        if parent is None:
            return
        if parent.id not in self._children:
            children = parent.children
            self._children[parent.id] = (children, [child.start_byte for child in children])
        children, starts = self._children[parent.id]
        for index in range(bisect_right(starts, node.start_byte) - 1, -1, -1):
            if children[index].end_byte <= node.start_byte:
                yield children[index]

    @cached_property
    def _children(self) -> dict[int, tuple[list[Node], list[int]]]:
        """Children by their parent's id: broken code can put thousands under one node."""
        return {}

    @cached_property
    def _items(self) -> tuple[list[Node], list[int]]:
        """The root's children and where they start: the parser itself searches them one by one."""
        children = self.root.children
        return children, [child.start_byte for child in children]

    def _item(self, byte: int) -> Node | None:
        children, starts = self._items
        index = bisect_right(starts, byte) - 1
        # Items of no length (missing tokens) can share their start with the one that has the byte.
        while index > 0 and children[index].end_byte <= byte and starts[index] == byte:
            index -= 1
        if index < 0 or not children[index].start_byte <= byte < children[index].end_byte:
            return None
        return children[index]


def node_text(node: Node) -> str:
    """The node's own text (as the parser saw it)."""
    return (node.text or b"").decode("utf-8", "replace")


def _common_prefix(a: bytes, b: bytes) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(a: bytes, b: bytes, limit: int) -> int:
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _point(data: bytes, at: int) -> tuple[int, int]:
    return data.count(b"\n", 0, at), at - (data.rfind(b"\n", 0, at) + 1)
