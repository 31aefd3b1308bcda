"""Host-only code: what a device-only compile can do without.

On doubt code stays. A kernel, anything with a device specifier, types, macros, constants and whatever the
parser did not understand are never part of a host range; neither is a host function or variable that code
which stays may use (see :mod:`kernel_forge.source.host_uses`).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from kernel_forge.source.host_uses import Piece, unused
from kernel_forge.source.lines import LineIndex
from kernel_forge.source.model import Kernel, Macro
from kernel_forge.source.tree import SyntaxTree, node_text

_CONTAINERS = frozenset(
    (
        "namespace_definition",
        "linkage_specification",
        "declaration_list",
        "translation_unit",
        "preproc_if",
        "preproc_ifdef",
        "preproc_else",
        "preproc_elif",
        "preproc_elifdef",
    )
)
_DEVICE = r"\b(?:__global__|__device__|__constant__|__managed__|__shared__|constexpr|consteval)\b"
_DEVICE_WORD = re.compile(r"__(?:global|device|constant|managed|shared)__")
_CONST = re.compile(r"\b(?:const|constexpr|constinit)\b")
_DEFINES_TYPE = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")
_SPECIFIERS = re.compile(r"\s*(?:template\s*<[^\n]*>\s*)?(?:[\w\"]+\s+)*")
_QUOTED_INCLUDE = re.compile(r"#[ \t]*include[ \t]*\"")


@dataclass(frozen=True, slots=True)
class _Item:
    """A declaration at namespace scope. ``is_device`` marks functions that run on the device only."""

    node: Node
    names: tuple[str, ...]
    is_host: bool
    is_device: bool


def read_host_ranges(
    text: str,
    lines: LineIndex,
    tree: SyntaxTree,
    macros: Sequence[Macro],
    kernels: Sequence[Kernel],
) -> Iterator[tuple[int, int]]:
    """Half-open offset ranges in file order, none overlapping."""
    names = [re.escape(macro.name) for macro in macros if _DEVICE_WORD.search(macro.value)]
    marked = re.compile(rf"{_DEVICE}|\b(?:{'|'.join(names)})\b" if names else _DEVICE)
    items = list(_items(tree.root, marked))
    # A file included further down may use what stands above.
    includes = [m.start() for m in _QUOTED_INCLUDE.finditer(text) if tree.is_code(lines.byte(m.start()))]
    first = includes[-1] if includes else 0
    # Kernels are found in broken code too, where the tree may take one for host code.
    starts = sorted(lines.offset(kernel.range.start) for kernel in kernels)
    ends = sorted(lines.offset(kernel.range.end) for kernel in kernels)
    host: list[Piece] = []
    device: list[tuple[int, int]] = []
    for item in items:
        start, end = lines.code_point(item.node.start_byte), lines.code_point(item.node.end_byte)
        if item.is_host and bisect_left(starts, end) != bisect_right(ends, start):
            continue
        if item.is_host and start >= first:
            host.append(Piece(start, end, item.names))
        elif item.is_device:
            device.append((start, end))
    yield from unused(text, lines, tree, host, device)


def _items(root: Node, marked: re.Pattern[str]) -> list[_Item]:
    items: list[_Item] = []
    instances: list[_Item] = []
    stack = [root]
    while stack:
        before: Node | None = None
        for child in stack.pop().children:
            previous = before
            before = before if child.type == "comment" else child
            if child.type in _CONTAINERS and not _is_single_linkage(child):
                stack.append(child)
                continue
            if _is_instance(child) and not marked.search(node_text(child)):
                instances.append(_Item(child, _names(child), True, False))
                continue
            is_host = _is_host(child, marked) and not _continues(previous, marked)
            is_device = not is_host and _is_device_only(child, marked)
            if is_host or is_device:
                items.append(_Item(child, _names(child), is_host, is_device))
    # An explicit instantiation goes with the template it instantiates.
    host_names = {name for item in items if item.is_host for name in item.names}
    items += [item for item in instances if host_names.issuperset(item.names) and item.names]
    return sorted(items, key=lambda item: item.node.start_byte)


def _continues(previous: Node | None, marked: re.Pattern[str]) -> bool:
    """Whether a broken piece before a declaration has its specifiers or its template header."""
    if previous is None or previous.type.startswith("preproc"):
        return False
    text = node_text(previous)
    return text[-1:] not in ("", ";", "{", "}") and bool(marked.search(text) or "template" in text)


def _inner(node: Node) -> Node:
    """The declaration inside template headers and ``extern "C"``."""
    while node.type in ("template_declaration", "linkage_specification") and node.child_count:
        node = node.children[-1]
    return node


def _is_single_linkage(node: Node) -> bool:
    """``extern "C"`` before one declaration: it goes or stays together with it."""
    body = node.child_by_field_name("body")
    return node.type == "linkage_specification" and body is not None and body.type != "declaration_list"


def _is_instance(node: Node) -> bool:
    """``template void f<int>(int);`` or the declaration of a specialisation."""
    if node.type == "template_instantiation":
        return True
    if node.type != "template_declaration" or node.children[-1].type != "declaration":
        return False
    parameters = node.child_by_field_name("parameters")
    return parameters is not None and parameters.named_child_count == 0


def _names(node: Node) -> tuple[str, ...]:
    """The last part of every declared name."""
    names: list[str] = []
    for declarator in _inner(node).children_by_field_name("declarator"):
        current: Node | None = declarator
        while current is not None:
            following = current.child_by_field_name("declarator") or current.child_by_field_name("name")
            if following is None and current.type == "reference_declarator":
                following = current.children[-1]
            if following is None:
                names.append(node_text(current))
            current = following
    return tuple(names)


def _head(node: Node) -> str:
    """A function definition's text before its body."""
    body = node.child_by_field_name("body")
    end = body.start_byte - node.start_byte if body is not None else None
    return (node.text or b"")[:end].decode("utf-8", "replace")


def _is_device_only(node: Node, marked: re.Pattern[str]) -> bool:
    inner = _inner(node)
    if inner.type != "function_definition":
        return False
    head = _head(inner)
    return marked.search(head) is not None and "__host__" not in head and "constexpr" not in head


def _is_host(node: Node, marked: re.Pattern[str]) -> bool:
    inner = _inner(node)
    if inner.type == "function_definition":
        return _is_host_function(inner, marked)
    return inner.type == "declaration" and _is_host_declaration(node, marked)


def _is_host_function(node: Node, marked: re.Pattern[str]) -> bool:
    body = node.child_by_field_name("body")
    declarator = node.child_by_field_name("declarator")
    if body is None or body.type != "compound_statement" or declarator is None:
        return False
    if not _is_function(declarator):  # ``amespace a {``
        return False
    if body.children[-1].type != "}" or body.children[-1].is_missing:
        return False
    if marked.search(_head(node)):
        return False
    # ``MY_KERNEL(f) {``: without a type this is no function of C++ (or a constructor); a macro made it.
    if node.child_by_field_name("type") is None:
        return False
    # A stray brace can make the parser take the kernels below for a part of this function.
    return not (node.has_error and _starts_device_line(node_text(node), marked))


def _starts_device_line(text: str, marked: re.Pattern[str]) -> bool:
    """Whether a line starts as a device function or variable does (a lambda's ``__device__`` does not)."""
    return any(
        _SPECIFIERS.fullmatch(text, text.rfind("\n", 0, m.start()) + 1, m.start()) for m in marked.finditer(text)
    )


def _is_host_declaration(node: Node, marked: re.Pattern[str]) -> bool:
    text = node_text(node)
    inner = _inner(node)
    if node.type == "template_declaration" or node.has_error or marked.search(text) or text[-1:] != ";":
        return False
    kind = inner.child_by_field_name("type")
    if kind is None or (kind.type in _DEFINES_TYPE and kind.child_by_field_name("body") is not None):
        return False
    declarators = inner.children_by_field_name("declarator")
    if not declarators:
        return False
    return any(_is_function(d) for d in declarators) or not _CONST.search(text)


def _is_function(node: Node) -> bool:
    current: Node | None = node
    while current is not None:
        if current.type == "function_declarator":
            return True
        following = current.child_by_field_name("declarator")
        if following is None and current.type == "reference_declarator":  # it has no field for it
            following = current.children[-1]
        current = following
    return False
