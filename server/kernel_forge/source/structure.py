"""Facts about the functions, variables and casts of a text whose tokens are given: macros expanded, comments gone."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from kernel_forge.source.pointers import ExpressionTooDeep, PointerDepths, hops, inner, target
from kernel_forge.source.translation import SourceToken
from kernel_forge.source.tree import SyntaxTree, node_text

Span = tuple[int, int]
_FUNCTIONS = ("function_definition",)
_INTEGER = re.compile(r"(?:const\s+)?(?:(?:unsigned|signed|long|int|short|size_t|u?int(?:16|32|64)_t)\s*)+")
_CLASSES = ("struct_specifier", "class_specifier", "union_specifier")
_DECLARATIONS = ("declaration", "field_declaration")


@dataclass(frozen=True, slots=True)
class FunctionFact:
    """A function's definition (``has_body``) or declaration; ``span`` is its name's place, ``calls`` name and place.

    ``specifiers`` are the words before its declarator. ``is_template`` where a template header stands before it.
    """

    name: str
    specifiers: frozenset[str]
    has_body: bool
    is_template: bool
    is_made: bool
    """``= default`` or ``= delete``."""
    calls: tuple[tuple[str, bool, Span], ...]
    is_member: bool
    span: Span


@dataclass(frozen=True, slots=True)
class VariableFact:
    """A variable; ``scope`` is ``namespace``, ``class`` or ``local``. ``is_code`` where it points to a function."""

    name: str
    specifiers: frozenset[str]
    scope: str
    depth: int
    is_code: bool
    is_pointer_in_union: bool
    span: Span


@dataclass(frozen=True, slots=True)
class CastFact:
    """A cast. ``to_depth`` and ``from_depth`` count pointers; None where the text does not tell what it is."""

    kind: str
    to_depth: int | None
    is_reference: bool
    from_depth: int | None
    may_hide_pointer: bool
    """From a template's parameter, which may be a pointer, to an integer."""
    span: Span


@dataclass(frozen=True, slots=True)
class Structure:
    """What :func:`read_structure` finds; every place is a pair of offsets in the text the tokens came from."""

    functions: tuple[FunctionFact, ...]
    variables: tuple[VariableFact, ...]
    casts: tuple[CastFact, ...]
    pointer_addresses: tuple[Span, ...]
    """Where the address of a variable that holds an address is taken."""
    function_values: tuple[tuple[str, Span], ...]
    """Where a function of the text is named without being called."""
    not_understood: tuple[Span, ...]
    operand_depths: dict[int, int | None]
    """Depth of an operand of inline PTX, by the offset of its first token."""


def read_structure(tokens: Sequence[SourceToken]) -> Structure:
    """Parse the tokens, which must be ASCII. Code that the grammar does not know is in ``not_understood``."""
    reader = _Reader(tokens)
    try:
        return reader.read()
    except ExpressionTooDeep:
        end = tokens[-1].end if tokens else 0
        return Structure((), (), (), (), (), ((0, end),), {})


class _Reader:
    def __init__(self, tokens: Sequence[SourceToken]) -> None:
        self._tokens = tokens
        self._starts: list[int] = []
        pieces: list[str] = []
        length = 0
        for index, token in enumerate(tokens):
            # The grammar knows ``operator()`` and ``operator+`` only without anything between their parts.
            joins = token.kind == "mark" and any(
                before.text == "operator" for before in tokens[max(0, index - 2) : index]
            )
            is_apart = token.spaced and length and not (joins and tokens[index - 1].text in ("operator", "(", "["))
            piece = ("\n" if is_apart else "") + token.text
            self._starts.append(length + len(piece) - len(token.text))
            pieces.append(piece)
            length += len(piece)
        self._tree = SyntaxTree.parse("".join(pieces))
        self._nodes = list(_walk(self._tree.root))
        self._depths = PointerDepths(self._tree.root)

    def read(self) -> Structure:
        functions = tuple(self._functions())
        names = {fact.name for fact in functions} - {"operator"}
        return Structure(
            functions,
            tuple(self._variables()),
            tuple(self._casts()),
            tuple(self._span(n) for n in self._nodes if self._takes_pointer(n)),
            tuple(self._values(names)),
            tuple(self._span(n) for n in self._nodes if n.type == "ERROR" or n.is_missing),
            {self._span(n)[0]: self._depths.of(n) for n in self._operands()},
        )

    def _span(self, node: Node) -> Span:
        if not self._tokens:
            return 0, 0
        first = max(0, bisect_right(self._starts, node.start_byte) - 1)
        last = max(first, bisect_right(self._starts, max(node.start_byte, node.end_byte - 1)) - 1)
        start, end = self._tokens[first].start, self._tokens[last].end
        return (start, end) if start < end else (start, self._tokens[first].end)

    def _functions(self) -> Iterator[FunctionFact]:
        for node in self._nodes:
            if node.type not in (*_FUNCTIONS, *_DECLARATIONS):
                continue
            declarator = next((f for d in node.children_by_field_name("declarator") if (f := _function(d))), None)
            if declarator is None:
                continue
            name = declarator.child_by_field_name("declarator")
            if name is None or name.type == "parenthesized_declarator":
                continue
            if node.type == "declaration" and _enclosing(node) == "local":
                continue  # a variable with an initialiser in parentheses, or a declaration
            text = node_text(name)
            short = "operator" if "operator" in text else text.split("<")[0].split("::")[-1].strip()
            body = node.child_by_field_name("body")
            yield FunctionFact(
                short,
                _specifiers(node),
                body is not None,
                _is_template(node),
                any(c.type in ("default_method_clause", "delete_method_clause") for c in node.children),
                tuple(self._calls(body)) if body is not None else (),
                _enclosing(node) == "class",
                self._span(name),
            )

    def _calls(self, body: Node) -> Iterator[tuple[str, bool, Span]]:
        for node in _walk(body):
            function = node.child_by_field_name("function") if node.type == "call_expression" else None
            if function is None:
                continue
            is_template = function.type == "template_function" or "<" in node_text(function)
            name = node_text(function).split("<")[0].split("::")[-1].split(".")[-1].split("->")[-1].strip()
            yield name, is_template, self._span(function)

    def _variables(self) -> Iterator[VariableFact]:
        for node in self._nodes:
            is_parameter = node.type in ("parameter_declaration", "optional_parameter_declaration")
            if node.type not in _DECLARATIONS and not is_parameter:
                continue
            for declarator in node.children_by_field_name("declarator"):
                function = _function(declarator)
                is_code = function is not None and _is_pointer_to_code(function)
                scope = "local" if is_parameter else _enclosing(node)
                if function is not None and not is_code and scope != "local":
                    continue
                name: Node = declarator
                while (following := inner(name)) is not None:
                    name = following
                yield VariableFact(
                    node_text(name),
                    _specifiers(node),
                    scope,
                    hops(declarator),
                    is_code,
                    _in_union(node) and "*" in node_text(declarator),
                    self._span(name),
                )

    def _casts(self) -> Iterator[CastFact]:
        for node in self._nodes:
            function: Node | None = None
            if node.type == "cast_expression":
                descriptor, value = node.child_by_field_name("type"), node.child_by_field_name("value")
                kind = "c"
            elif node.type == "call_expression":
                function = node.child_by_field_name("function")
                value = node.child_by_field_name("arguments")
                descriptor, kind = None, ""
                if function is not None and function.type == "primitive_type":
                    kind = "function"
                elif function is not None and (alias := self._depths.alias(function)) is not None:
                    yield CastFact("c", alias[0], False, self._depths.of(value), False, self._span(node))
                    continue
                elif function is not None and function.type == "template_function":
                    name, given = function.child_by_field_name("name"), function.child_by_field_name("arguments")
                    kind = node_text(name) if name is not None else ""
                    descriptor = given.named_children[0] if given is not None and given.named_children else None
            else:
                continue
            if kind not in ("c", "function", "reinterpret_cast", "static_cast"):
                continue
            to, is_reference = (0, False) if descriptor is None else target(descriptor)
            known = 0 if descriptor is None else self._depths.of_type(descriptor)
            if known is None and self._depths.is_type_parameter(descriptor):
                known = to
            name = function if descriptor is None else descriptor
            is_whole = name is not None and _INTEGER.fullmatch(node_text(name)) is not None
            hides = is_whole and self._depths.is_of_template(value)
            yield CastFact(kind, known, is_reference, self._depths.of(value), hides, self._span(node))

    def _takes_pointer(self, node: Node) -> bool:
        argument = node.child_by_field_name("argument")
        while argument is not None and argument.type == "parenthesized_expression" and argument.named_children:
            argument = argument.named_children[-1]
        is_address = node.type == "pointer_expression" and node_text(node).startswith("&")
        return is_address and argument is not None and self._depths.is_pointer_variable(argument)

    def _values(self, names: set[str]) -> Iterator[tuple[str, Span]]:
        local = {fact.name for fact in self._variables()}
        for node in self._nodes:
            parent = node.parent
            if node.type != "identifier" or parent is None or node_text(node) not in names - local:
                continue
            if parent.type.endswith("declarator") and node == parent.child_by_field_name("declarator"):
                continue
            if parent.type in (
                "template_function",
                "template_argument_list",
                "qualified_identifier",
                "type_descriptor",
            ):
                continue
            if parent.type == "call_expression" and node == parent.child_by_field_name("function"):
                continue
            yield node_text(node), self._span(node)

    def _operands(self) -> Iterator[Node]:
        for node in self._nodes:
            if node.type in ("gnu_asm_output_operand", "gnu_asm_input_operand"):
                value = node.child_by_field_name("value")
                if value is not None:
                    yield value


def _walk(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def _function(declarator: Node | None) -> Node | None:
    while declarator is not None and declarator.type != "function_declarator":
        declarator = inner(declarator)
    return declarator


def _is_pointer_to_code(function: Node) -> bool:
    name = function.child_by_field_name("declarator")
    return name is not None and name.type == "parenthesized_declarator" and "*" in node_text(name)


def _specifiers(node: Node) -> frozenset[str]:
    words: set[str] = set()
    for child in node.children:
        if child.type.endswith("declarator") or child.type in ("identifier", "compound_statement", "field_identifier"):
            break
        if child.type not in _CLASSES:
            words.update(node_text(child).split())
    return frozenset(words)


def _is_template(node: Node) -> bool:
    while node.parent is not None:
        node = node.parent
        if node.type == "template_declaration":
            return True
    return False


def _enclosing(node: Node) -> str:
    parent = node.parent
    while parent is not None:
        if parent.type in ("compound_statement", "for_statement", "lambda_expression", "parameter_list"):
            return "local"
        if parent.type == "field_declaration_list":
            return "class"
        parent = parent.parent
    return "namespace"


def _in_union(node: Node) -> bool:
    parent = node.parent.parent if node.parent is not None else None
    return parent is not None and parent.type == "union_specifier"
