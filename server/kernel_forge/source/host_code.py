"""Host-only code: what a device-only compile can do without.

On doubt code stays. A kernel, anything with a device specifier, types, macros, constants and whatever the
parser did not understand are never part of a host range.
"""

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from kernel_forge.source.lines import LineIndex
from kernel_forge.source.tree import SyntaxTree, node_text

_CONTAINERS = frozenset(
    [
        "namespace_definition",
        "linkage_specification",
        "declaration_list",
        "translation_unit",
        "preproc_if",
        "preproc_ifdef",
        "preproc_else",
        "preproc_elif",
        "preproc_elifdef",
    ]
)
_DEVICE = re.compile(r"\b(?:__global__|__device__|__constant__|__managed__|__shared__|constexpr|consteval)\b")
_CONST = re.compile(r"\b(?:const|constexpr|constinit)\b")
_HAS_TYPE = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")


def read_host_ranges(
    lines: LineIndex, tree: SyntaxTree, device_macros: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Half-open offset ranges in file order, none overlapping.

    Args:
        device_macros: object-like macros that stand for a device specifier.
    """
    marked = _DEVICE
    if device_macros:
        names = "|".join(map(re.escape, device_macros))
        marked = re.compile(rf"{_DEVICE.pattern}|\b(?:{names})\b")
    stack = [tree.root]
    found: list[tuple[int, int]] = []
    while stack:
        node = stack.pop()
        for child in node.children:
            if child.type in _CONTAINERS and not _is_single_linkage(child):
                stack.append(child)
            elif _is_host(child, marked):
                found.append((lines.code_point(child.start_byte), lines.code_point(child.end_byte)))
    return iter(sorted(found))


def _is_host(node: Node, marked: re.Pattern[str]) -> bool:
    if node.type == "template_declaration":
        inner = node.children[-1] if node.child_count else None
        return inner is not None and inner.type == "function_definition" and _is_host(inner, marked)
    if node.type == "linkage_specification":
        return _is_host(node.children[-1], marked)
    if node.type == "function_definition":
        return _is_host_function(node, marked)
    if node.type == "declaration":
        return _is_host_declaration(node, marked)
    return False


def _is_single_linkage(node: Node) -> bool:
    """``extern "C"`` before one declaration: it goes or stays together with it."""
    body = node.child_by_field_name("body")
    return node.type == "linkage_specification" and body is not None and body.type != "declaration_list"


def _is_host_function(node: Node, marked: re.Pattern[str]) -> bool:
    body = node.child_by_field_name("body")
    declarator = node.child_by_field_name("declarator")
    if body is None or declarator is None or body.type != "compound_statement":
        return False
    if body.children[-1].type != "}" or body.children[-1].is_missing:
        return False
    head = (node.text or b"")[: body.start_byte - node.start_byte].decode("utf-8", "replace")
    if marked.search(head):
        return False
    # ``MY_KERNEL(f) {``: without a type this is no function of C++, so a macro made it.
    if node.child_by_field_name("type") is None:
        return False
    return not (node.has_error and "__global__" in node_text(node))


def _is_host_declaration(node: Node, marked: re.Pattern[str]) -> bool:
    text = node_text(node)
    if node.has_error or marked.search(text) or not text.endswith(";"):
        return False
    kind = node.child_by_field_name("type")
    if kind is None or (kind.type in _HAS_TYPE and kind.child_by_field_name("body") is not None):
        return False
    declarators = node.children_by_field_name("declarator")
    if not declarators:
        return False
    if any(_is_function(d) for d in declarators):
        return True
    return not _CONST.search(text)


def _is_function(node: Node) -> bool:
    current: Node | None = node
    while current is not None:
        if current.type == "function_declarator":
            return True
        current = current.child_by_field_name("declarator")
    return False
