"""How many times an expression could be dereferenced, as far as the text tells: pointers against plain values."""

from tree_sitter import Node

from kernel_forge.source.tree import node_text

_NAMES = ("identifier", "field_identifier", "type_identifier")
_HOPS = ("pointer_declarator", "array_declarator", "abstract_pointer_declarator", "abstract_array_declarator")
_WRAPPING = (
    *_HOPS,
    "init_declarator",
    "reference_declarator",
    "parenthesized_declarator",
    "abstract_reference_declarator",
)
_CASTS = ("reinterpret_cast", "static_cast", "const_cast")
_MAX_LEVEL = 150
_ALIASES = ("type_definition", "alias_declaration")
_DECLARING = (
    *_ALIASES,
    "parameter_declaration",
    "optional_parameter_declaration",
    "declaration",
    "field_declaration",
    "for_range_loop",
)
_TYPE_PARAMETERS = ("type_parameter_declaration", "optional_type_parameter_declaration")
_SCOPES = (
    "function_definition",
    "compound_statement",
    "for_statement",
    "for_range_loop",
    "lambda_expression",
    "field_declaration_list",
    "template_declaration",
)
_ZERO = ("number_literal", "char_literal", "true", "false", "sizeof_expression", "string_literal")


def inner(node: Node) -> Node | None:
    """The declarator inside a declarator."""
    following = node.child_by_field_name("declarator")
    if following is None and node.type in ("reference_declarator", "parenthesized_declarator"):
        following = node.named_children[-1] if node.named_children else None
    return following


def hops(declarator: Node | None) -> int:
    """Pointers and array extents of a declarator."""
    count = 0
    while declarator is not None and declarator.type in _WRAPPING:
        count += declarator.type in _HOPS
        declarator = inner(declarator)
    return count


def target(descriptor: Node) -> tuple[int, bool]:
    """Pointers of the type a cast names, and whether it is a reference."""
    declarator = descriptor.child_by_field_name("declarator")
    is_reference = declarator is not None and "&" in node_text(declarator)
    return hops(declarator), is_reference


class ExpressionTooDeep(Exception):
    """An expression is nested too deeply to tell what it is."""


class PointerDepths:
    """Depths of the names that a text declares, by the scope that declares them.

    A name that one scope declares with different depths has none.
    """

    def __init__(self, root: Node) -> None:
        self._outer: dict[int, int] = {}
        self._scope: dict[int, int] = {}
        self._known: dict[tuple[int, str], set[int | None]] = {}
        self._autos: dict[tuple[int, str], list[Node]] = {}
        self._arrays: set[tuple[int, str]] = set()
        self._asking: set[tuple[int, str]] = set()
        self._found: dict[int, int | None] = {}
        self._level = 0
        declared: list[Node] = []
        stack = [(root, root.id)]
        while stack:
            node, scope = stack.pop()
            self._scope[node.id] = scope
            if node.type in _SCOPES and node.id != scope:
                self._outer[node.id] = scope
                scope = node.id
            if node.type in _DECLARING:
                declared.append(node)
            if node.type in _TYPE_PARAMETERS and node.named_children:
                name = node.child_by_field_name("name") or node.named_children[0]
                self._known[(scope, f"type {node_text(name)}")] = {None}
            stack.extend((child, scope) for child in node.children)
        for node in sorted(declared, key=lambda node: (node.type not in _ALIASES, node.start_byte)):
            self._declare(node)

    def is_type_parameter(self, descriptor: Node | None) -> bool:
        """Whether a cast's type is a template's parameter."""
        kind = descriptor.child_by_field_name("type") if descriptor is not None else None
        key = (
            self._key(kind, f"type {node_text(kind)}") if kind is not None and kind.type == "type_identifier" else None
        )
        return key is not None and self._known[key] == {None}

    def alias(self, function: Node) -> tuple[int | None] | None:
        """The depth of the type that ``function`` names in ``function(x)``; None where it names no such type."""
        if function.type != "identifier":
            return None
        key = self._key(function, f"type {node_text(function)}")
        if key is None or self._known[key] == {None}:
            return None
        known = self._known[key]
        return (next(iter(known)) if len(known) == 1 else None,)

    def is_of_template(self, node: Node | None) -> bool:
        """Whether an expression is a variable whose type is a template's parameter."""
        while node is not None and node.type in ("parenthesized_expression", "argument_list") and node.named_children:
            node = node.named_children[-1]
        key = self._key(node, node_text(node)) if node is not None and node.type == "identifier" else None
        return key is not None and self._known.get(key) == {None}

    def is_pointer_variable(self, node: Node) -> bool:
        """Whether a name is that of a variable that holds an address (an array does not)."""
        key = self._key(node, node_text(node))
        return node.type in _NAMES and (self.of(node) or 0) > 0 and key is not None and key not in self._arrays

    def of(self, node: Node | None) -> int | None:
        """The depth of an expression: 0 for a value that is no address, None where the text does not tell.

        Raises:
            ExpressionTooDeep: it is nested deeper than 150.
        """
        if node is None:
            return None
        if node.id not in self._found:
            self._level += 1
            if self._level > _MAX_LEVEL:
                raise ExpressionTooDeep
            self._found[node.id] = self._of(node)
            self._level -= 1
        return self._found[node.id]

    def _of(self, node: Node) -> int | None:
        if node.type in _ZERO:
            return 0
        if node.type in _NAMES:
            return self._of_name(node)
        if node.type == "this":
            return 1
        if node.type in ("parenthesized_expression", "assignment_expression", "update_expression", "argument_list"):
            part = node.child_by_field_name("left") or node.child_by_field_name("argument")
            return self.of(part or (node.named_children[-1] if node.named_children else None))
        if node.type == "comma_expression":
            return self.of(node.child_by_field_name("right"))
        if node.type == "unary_expression":
            return 0
        if node.type == "pointer_expression":
            return self._shift(node.child_by_field_name("argument"), 1 if node_text(node)[0] == "&" else -1)
        if node.type == "subscript_expression":
            return self._shift(node.child_by_field_name("argument"), -1)
        if node.type == "field_expression":
            field = node.child_by_field_name("field")
            return 0 if field is not None and node_text(field) in ("x", "y", "z", "w") else self.of(field)
        if node.type == "cast_expression":
            return self.of_type(node.child_by_field_name("type"))
        if node.type == "conditional_expression":
            return self._either(node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))
        if node.type == "binary_expression":
            return self._of_binary(node)
        return self._of_call(node) if node.type == "call_expression" else None

    def _of_binary(self, node: Node) -> int | None:
        operator = node.child_by_field_name("operator")
        left, right = self.of(node.child_by_field_name("left")), self.of(node.child_by_field_name("right"))
        if operator is None or node_text(operator) not in "+-":
            return 0
        if node_text(operator) == "-" and left and right:
            return 0
        if left or right:
            return left or right
        return 0 if left == 0 and right == 0 else None

    def _of_call(self, node: Node) -> int | None:
        function = node.child_by_field_name("function")
        if function is None:
            return None
        if function.type in ("primitive_type", "sized_type_specifier"):
            return 0
        if function.type == "identifier" and (key := self._key(function, f"type {node_text(function)}")) is not None:
            known = self._known[key]
            return next(iter(known)) if len(known) == 1 else None
        text = node_text(function)
        if function.type == "template_function" and text.startswith(_CASTS):
            arguments = function.child_by_field_name("arguments")
            return self.of_type(arguments.named_children[0] if arguments and arguments.named_children else None)
        return 0 if text == "__cvta_generic_to_shared" else None

    def of_type(self, descriptor: Node | None) -> int | None:
        """The depth of a value of the type that a cast or an alias names."""
        if descriptor is None:
            return None
        kind = descriptor.child_by_field_name("type")
        base, count = self._base(kind), target(descriptor)[0]
        return (count or None) if base is None else base + count

    def _base(self, kind: Node | None) -> int | None:
        """Pointers inside a named type: an alias may have some."""
        if kind is None or kind.type == "placeholder_type_specifier":
            return None
        if kind.type in ("decltype", "template_type", "qualified_identifier", "dependent_type"):
            return None if kind.type == "decltype" or "*" in node_text(kind) or "std" in node_text(kind) else 0
        if kind.type != "type_identifier":
            return 0
        key = self._key(kind, f"type {node_text(kind)}")
        known = self._known.get(key, {0}) if key is not None else {0}
        return next(iter(known)) if len(known) == 1 else None

    def _shift(self, node: Node | None, by: int) -> int | None:
        depth = self.of(node)
        return None if depth is None else max(0, depth + by)

    def _either(self, left: Node | None, right: Node | None) -> int | None:
        one, other = self.of(left), self.of(right)
        return one if one == other else (one or other)

    def _key(self, node: Node, name: str) -> tuple[int, str] | None:
        """The nearest scope around ``node`` that declares ``name``."""
        if node.type == "field_identifier":
            scopes = {scope for scope, known in (*self._known, *self._autos) if known == name}
            return (next(iter(scopes)), name) if len(scopes) == 1 else None
        scope: int | None = self._scope.get(node.id)
        while scope is not None:
            if (scope, name) in self._known or (scope, name) in self._autos:
                return scope, name
            scope = self._outer.get(scope)
        return None

    def _of_name(self, node: Node) -> int | None:
        key = self._key(node, node_text(node))
        if key is None or key in self._asking:
            return None
        self._asking.add(key)
        depths = set(self._known.get(key, ()))
        depths |= {self.of(value) for value in self._autos.get(key, ())}
        self._asking.discard(key)
        return next(iter(depths)) if len(depths) == 1 else None

    def _declare(self, node: Node) -> None:
        kind = node.child_by_field_name("type")
        if node.type == "alias_declaration":
            name, made = node.child_by_field_name("name"), kind
            if name is not None and made is not None:
                self._note(node, f"type {node_text(name)}", self.of_type(made))
            return
        prefix = "type " if node.type == "type_definition" else ""
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value") or node.child_by_field_name("default_value")
            is_array, current = False, declarator
            while (following := inner(current)) is not None:
                if current.type == "function_declarator":
                    break
                is_array = is_array or current.type == "array_declarator"
                current = following
            if current.type not in _NAMES:
                continue
            named, count = node_text(current), hops(declarator)
            is_auto = kind is not None and kind.type == "placeholder_type_specifier"
            if is_auto and count == 0:
                if value is not None:
                    self._autos.setdefault((self._inside(node), named), []).append(value)
                continue
            base = 0 if is_auto else self._base(kind)
            self._note(node, prefix + named, (count or None) if base is None else base + count)
            if is_array and node.type not in ("parameter_declaration", "optional_parameter_declaration"):
                self._arrays.add((self._inside(node), named))

    def _inside(self, node: Node) -> int:
        return node.id if node.type in _SCOPES else self._scope[node.id]

    def _note(self, node: Node, name: str, depth: int | None) -> None:
        self._known.setdefault((self._inside(node), name), set()).add(depth)
