"""Which host code the rest of a file may use.

A structure's member functions, a constant's initialiser or a ``__host__ __device__`` function stay in a
device-only compile, and so must every host function that they name, directly, through a macro, or through
another host function that stays. Functions for the device only cannot call host code, so they do not count.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from kernel_forge.source.lines import LineIndex
from kernel_forge.source.tokens import lex
from kernel_forge.source.tree import SyntaxTree, node_text

_WORD = re.compile(r"[^\W\d]\w*")
_DEFINITIONS = ("preproc_def", "preproc_function_def")
_DIRECTIVES = (*_DEFINITIONS, "preproc_ifdef", "preproc_call", "preproc_defined")


@dataclass(frozen=True, slots=True)
class Piece:
    """Host code at ``start``..``end`` that declares ``names``."""

    start: int
    end: int
    names: tuple[str, ...]


def unused(
    text: str,
    lines: LineIndex,
    tree: SyntaxTree,
    host: Sequence[Piece],
    device: Sequence[tuple[int, int]],
) -> Iterator[tuple[int, int]]:
    """The pieces of ``host`` that nothing needs outside ``host`` and ``device`` (functions, as offsets)."""
    users: dict[str, list[str]] = {}
    for piece in host:
        for name in piece.names:
            users.setdefault(name, []).append(text[piece.start : piece.end])
    for name, body in _macro_bodies(tree.root):
        users.setdefault(name, []).append(body)
    gone = sorted([(piece.start, piece.end) for piece in host] + list(device))
    waiting = list(_live_words(text, lines, tree, gone, users))
    needed: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        for body in users[name]:
            words = {token.text for token in lex(body) if token.kind == "word"}
            waiting += [word for word in words if word in users and word not in needed]
    for piece in host:
        if needed.isdisjoint(piece.names):
            yield piece.start, piece.end


def _macro_bodies(root: Node) -> Iterator[tuple[str, str]]:
    """Name and body of every macro outside functions."""
    stack = [root]
    while stack:
        for child in stack.pop().children:
            if child.type in _DEFINITIONS:
                name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
                if name is not None and value is not None:
                    yield node_text(name), node_text(value)
            elif child.type.startswith(("preproc_", "namespace_", "linkage_", "declaration_list")):
                stack.append(child)


def _live_words(
    text: str,
    lines: LineIndex,
    tree: SyntaxTree,
    gone: Sequence[tuple[int, int]],
    wanted: dict[str, list[str]],
) -> Iterator[str]:
    """Those of ``wanted`` that occur in code outside ``gone``."""
    at = 0
    found: set[str] = set()
    for start, end in [*gone, (len(text), len(text))]:
        for match in _WORD.finditer(text, at, max(at, start)):
            word = match.group()
            if word in wanted and word not in found and _is_use(tree, lines.byte(match.start())):
                found.add(word)
                yield word
        at = max(at, end)


def _is_use(tree: SyntaxTree, byte: int) -> bool:
    """Whether a name in code is more than the operand of a directive."""
    if not tree.is_code(byte):
        return False
    parent = tree.leaf(byte).parent
    return parent is None or parent.type not in _DIRECTIVES
