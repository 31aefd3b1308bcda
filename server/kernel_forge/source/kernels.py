"""Finding the kernels of a file."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from kernel_forge.domain.text import Position
from kernel_forge.source.comments import docs_above
from kernel_forge.source.lines import LineIndex
from kernel_forge.source.model import Kernel, Macro
from kernel_forge.source.parameters import read_param
from kernel_forge.source.scalar_types import canonical
from kernel_forge.source.signatures import Signature, read_signature
from kernel_forge.source.tokens import lex
from kernel_forge.source.tree import SyntaxTree, node_text

_WRAPPERS = frozenset(
    [
        "function_definition",
        "declaration",
        "template_declaration",
        "template_instantiation",
        "field_declaration",
        "linkage_specification",
    ]
)
_SPECIFIERS = frozenset(
    [
        "type_qualifier",
        "storage_class_specifier",
        "template",
        "template_parameter_list",
        "extern",
        "static",
        "inline",
        "string_literal",
        "primitive_type",
        "__global__",
        "__device__",
        "__host__",
        "type_identifier",
        "attribute_specifier",
        "attribute_declaration",
        "placeholder_type_specifier",
        "__forceinline__",
    ]
)
_ATTRIBUTE_BEFORE = re.compile(
    r"__(?:launch_bounds|cluster_dims|maxnreg|block_size)__\s*(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?\s*\Z"
)
_BOUNDARY = re.compile(r"[{;]")


@dataclass
class KernelMemo:
    """Kernels read from the previous version of a file, by all they were read from.

    Each version fills a memo of its own and reads its predecessor's, so old entries go with old versions.
    """

    aliases: Mapping[str, str]
    kernels: dict[tuple[object, ...], Kernel] = field(default_factory=dict)


def read_kernels(
    text: str, lines: LineIndex, tree: SyntaxTree, macros: Sequence[Macro], memo: KernelMemo, old: KernelMemo
) -> tuple[Kernel, ...]:
    """Every kernel in file order; a definition replaces its declarations."""
    known = old.kernels if old.aliases == memo.aliases else {}
    markers = list(_markers(text, lines, tree, macros))
    c_macros = {macro.name for macro in macros if 'extern "C"' in macro.value}
    found: list[tuple[Kernel, bool]] = []
    for index, marker in enumerate(markers):
        limit = markers[index + 1] if index + 1 < len(markers) else len(text)
        chain = tree.around(lines.byte(marker))
        floor = markers[index - 1] + 1 if index else 0
        start = _header_start(text, lines, tree, chain, marker, floor)
        read = _signature(text, start, marker, limit)
        if read is None:
            continue
        signature, header = read
        end, body = _extent(text, lines, tree, start, signature, limit)
        spaces = tuple(_namespaces(chain))
        extern_c = (
            signature.has_linkage
            or next(lex(text, marker)).text in c_macros
            or any(_is_c_linkage(node) for node in chain)
        )
        docs = docs_above(lines, start)
        key = (
            header,
            marker - start,
            lines.position(start),
            lines.position(end),
            body and body - start,
            spaces,
            extern_c,
            docs,
        )
        kernel = known.get(key)
        if kernel is None:
            kernel = _build(lines, memo.aliases, start, end, body, signature, spaces, extern_c, docs)
        memo.kernels[key] = kernel
        found.append((kernel, signature.is_special))
    return tuple(_once(found))


def _markers(text: str, lines: LineIndex, tree: SyntaxTree, macros: Sequence[Macro]) -> Iterator[int]:
    """Offsets of ``__global__``, or of a macro that stands for it, in code."""
    names = ["__global__", *(m.name for m in macros if "__global__" in m.value)]
    pattern = "__global__" if len(names) == 1 else r"\b(?:" + "|".join(map(re.escape, names)) + r")\b"
    for match in re.finditer(pattern, text):
        byte = lines.byte(match.start())
        leaf = tree.leaf(byte)
        parent = leaf.parent
        is_directive = parent is not None and parent.type.startswith("preproc_def")
        if not is_directive and tree.is_code(byte):
            yield match.start()


def _header_start(text: str, lines: LineIndex, tree: SyntaxTree, chain: Sequence[Node], marker: int, floor: int) -> int:
    """Where the declaration around ``marker`` begins, with template headers; ``floor`` or later."""
    start: int | None = None
    for node in chain:
        if node.type in ("type_qualifier", "storage_class_specifier") or node.child_count == 0:
            continue
        if node.type not in _WRAPPERS or any(child.type == "declaration_list" for child in node.children):
            break
        start = lines.code_point(node.start_byte)
    if not chain:  # skipped by the parser, with the broken code around it
        return marker
    if start is None:
        node = chain[0]
        if len(chain) > 1 and chain[1].type == "type_qualifier":
            node = chain[1]
        for sibling in tree.before(node):
            if sibling.type not in _SPECIFIERS or lines.code_point(sibling.start_byte) < floor:
                break
            node = sibling
        start = lines.code_point(node.start_byte)
    start = max(floor, min(start, marker))
    # The parser may have taken the rest of an unfinished declaration into this one.
    first: int | None = None
    for token in lex(text, start, marker):
        if token.text in (";", "}"):
            first = None
        elif first is None:
            first = token.start
    start = marker if first is None else first
    # Attributes that the parser does not see may stand before the first specifier it sees.
    before = _ATTRIBUTE_BEFORE.search(text, max(0, start - 300), start)
    return before.start() if before else start


def _signature(text: str, start: int, marker: int, limit: int) -> tuple[Signature, str] | None:
    """The signature and the text it was read from, the ``{`` or ``;`` after it included."""
    end = marker
    while True:
        match = _BOUNDARY.search(text, end, limit)
        end = match.end() if match else limit
        header = text[start:end]
        signature = read_signature(header, marker - start)
        if signature is not None and (signature.terminator is not None or end >= limit):
            return signature, header
        if end >= limit:
            return None
        # A boundary inside a comment or a default argument: look further, in growing steps.
        end = min(limit, end + (end - start) // 2)


def _extent(
    text: str, lines: LineIndex, tree: SyntaxTree, start: int, signature: Signature, limit: int
) -> tuple[int, int | None]:
    """Offsets of the kernel's end and of its body's ``{``."""
    if signature.terminator is None:
        return start + signature.end, None
    opening = start + signature.terminator
    if not signature.has_body:
        return opening + 1, None
    byte = lines.byte(opening)
    body = tree.leaf(byte).parent
    if body is not None and body.type == "compound_statement" and body.start_byte == byte:
        last = body.child(body.child_count - 1) if body.child_count else None
        if last is not None and last.type == "}" and not last.is_missing:
            return lines.code_point(body.end_byte), opening
    depth = 0
    end = opening + 1
    for token in lex(text, opening, limit):
        end = token.end
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0:
            break
    return end, opening


def _namespaces(chain: Sequence[Node]) -> Iterator[str]:
    for node in reversed(chain):
        if node.type == "namespace_definition":
            name = node.child_by_field_name("name")
            if name is not None:
                yield from (part.strip() for part in node_text(name).split("::"))


def _is_c_linkage(node: Node) -> bool:
    if node.type != "linkage_specification":
        return False
    value = node.child_by_field_name("value")
    return value is not None and node_text(value) == '"C"'


def _build(
    lines: LineIndex,
    aliases: Mapping[str, str],
    start: int,
    end: int,
    body: int | None,
    signature: Signature,
    spaces: tuple[str, ...],
    extern_c: bool,
    docs: str,
) -> Kernel:
    type_names = frozenset(p.name for p in signature.template_params if p.kind == "type" and p.name)
    return Kernel(
        name=signature.name,
        qualified_name="::".join((*spaces, *signature.scope, signature.name)),
        range=lines.range(start, end),
        name_range=lines.range(start + signature.name_start, start + signature.name_end),
        signature_range=lines.range(start, start + signature.end),
        body_range=None if body is None else lines.range(body, end),
        params=tuple(
            read_param(shape.declarator, lines.range(start + shape.start, start + shape.end), aliases, type_names)
            for shape in signature.params
        ),
        template_params=signature.template_params,
        launch_bounds=signature.launch_bounds,
        cluster_dims=signature.cluster_dims,
        extern_c=extern_c,
        docs=docs,
    )


def _once(found: Sequence[tuple[Kernel, bool]]) -> Iterator[Kernel]:
    """Each kernel once: its first definition, else its first declaration.

    Overloads stay apart. Specialisations and instantiations of a template in the file are left out.
    """
    chosen: dict[tuple[str, ...], Kernel] = {}
    primary = {kernel.qualified_name for kernel, is_special in found if not is_special}
    uses = Counter(kernel.qualified_name for kernel, _ in found)
    for kernel, is_special in found:
        if is_special and kernel.qualified_name in primary:
            continue
        key: tuple[str, ...] = (kernel.qualified_name,)
        if uses[kernel.qualified_name] > 1:
            key += tuple(canonical(param.type_text) for param in kernel.params)
        other = chosen.get(key)
        if other is None:
            chosen[key] = kernel
            continue
        best = kernel if other.body_range is None and kernel.body_range is not None else other
        # A definition has C linkage when an earlier declaration has.
        if best.extern_c != (kernel.extern_c or other.extern_c):
            best = replace(best, extern_c=True)
        chosen[key] = best
    yield from sorted(chosen.values(), key=_start)


def _start(kernel: Kernel) -> Position:
    return kernel.range.start
