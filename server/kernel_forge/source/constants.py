"""Named constants at file or namespace scope: ``constexpr int TILE = 16;`` and enumerators.

They hold what a person may want to tune, but nothing from outside can set them, as ``-D`` sets a macro.
"""

from collections.abc import Iterator

from tree_sitter import Node

from kernel_forge.source.lines import LineIndex
from kernel_forge.source.model import Constant
from kernel_forge.source.tree import SyntaxTree, node_text

_SCOPES = ("namespace_definition", "declaration_list", "linkage_specification")


def read_constants(lines: LineIndex, tree: SyntaxTree) -> Iterator[Constant]:
    """Every constant with a value, in file order."""
    yield from _in_scope(tree.root, lines)


def _in_scope(scope: Node, lines: LineIndex) -> Iterator[Constant]:
    waiting = list(reversed(scope.children))
    while waiting:
        node = waiting.pop()
        if node.type in _SCOPES or node.type.startswith("preproc_"):
            waiting.extend(reversed(node.children))
        elif node.type == "declaration":
            yield from _declared(node, lines)
        elif node.type == "enum_specifier":
            yield from _enumerators(node, node, lines)


def _declared(node: Node, lines: LineIndex) -> Iterator[Constant]:
    enumeration = next((c for c in node.children if c.type == "enum_specifier"), None)
    if enumeration is not None:
        yield from _enumerators(enumeration, node, lines)
        return
    words = [node_text(child) for child in node.children if child.type == "type_qualifier"]
    if "const" not in words and "constexpr" not in words:
        return
    made = [child for child in node.children if child.type == "init_declarator"]
    for declarator in made:
        name = declarator.child_by_field_name("declarator")
        value = declarator.child_by_field_name("value")
        if name is not None and name.type == "identifier" and value is not None:
            word = "constexpr" if "constexpr" in words else "const"
            yield _constant(name, node_text(value), word, node, lines, is_alone=len(made) == 1)


def _enumerators(node: Node, whole: Node, lines: LineIndex) -> Iterator[Constant]:
    body = node.child_by_field_name("body")
    items = [child for child in body.children if child.type == "enumerator"] if body is not None else []
    is_alone = len(items) == 1 and node.child_by_field_name("name") is None
    for item in items:
        name, value = item.child_by_field_name("name"), item.child_by_field_name("value")
        if name is not None and value is not None:
            yield _constant(name, node_text(value), "enum", whole, lines, is_alone=is_alone)


def _constant(name: Node, value: str, kind: str, whole: Node, lines: LineIndex, *, is_alone: bool) -> Constant:
    end = whole.end_byte
    following = whole.next_sibling
    if following is not None and following.type == ";":  # an enumeration that declares nothing
        end = following.end_byte
    place = lines.range(lines.code_point(whole.start_byte), lines.code_point(end))
    named = lines.range(lines.code_point(name.start_byte), lines.code_point(name.end_byte))
    return Constant(node_text(name), value.strip("{} "), kind, is_alone, place, named)
