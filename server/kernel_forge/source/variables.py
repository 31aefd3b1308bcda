"""Variables in device memory: ``__shared__`` ones, and globals that a host can fill."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from tree_sitter import Node

from kernel_forge.source.declarators import Declarator, read_declarator
from kernel_forge.source.lines import LineIndex
from kernel_forge.source.model import SharedArray, Symbol
from kernel_forge.source.scalar_types import element_type
from kernel_forge.source.tokens import Token, closing, lex, split_commas
from kernel_forge.source.tree import SyntaxTree

_SHARED = re.compile(r"__shared__\b")
_GLOBAL = re.compile(r"__(?:constant|device|managed)__\b")
_MAX_DECLARATION = 2_000


def read_shared(
    text: str, lines: LineIndex, tree: SyntaxTree, function_at: Callable[[int], str | None]
) -> Iterator[SharedArray]:
    """Every ``__shared__`` variable in file order."""
    for match in _SHARED.finditer(text):
        byte = lines.byte(match.start())
        if not tree.is_code(byte):
            continue
        tokens = _declaration(text, _start(lines, tree.around(byte), match.start()))
        is_extern = any(token.text == "extern" for token in tokens)
        for declarator in _declarators(tokens):
            yield SharedArray(
                name=declarator.name,
                kernel=function_at(match.start()),
                dynamic=is_extern,
                range=lines.range(declarator.name_start, declarator.name_end),
            )


def read_symbols(text: str, lines: LineIndex, tree: SyntaxTree, aliases: Mapping[str, str]) -> Iterator[Symbol]:
    """Every ``__constant__``, ``__device__`` or ``__managed__`` global in file order."""
    seen: set[int] = set()
    for match in _GLOBAL.finditer(text):
        byte = lines.byte(match.start())
        if not tree.is_code(byte):
            continue
        chain = tree.around(byte)
        if any(node.type in ("compound_statement", "field_declaration_list", "preproc_def") for node in chain):
            continue
        start = _start(lines, chain, match.start())
        if start in seen:
            continue
        seen.add(start)
        tokens = _declaration(text, start)
        texts = {token.text for token in tokens}
        space = next((s for s in ("constant", "managed", "device") if f"__{s}__" in texts), None)
        if space is None:  # no ``;`` follows
            continue
        for declarator in _declarators(tokens):
            element = element_type(declarator.base, aliases)
            has_pointer = bool(declarator.pointers or element.pointers)
            yield Symbol(
                name=declarator.name,
                dtype=None if has_pointer else element.dtype,
                lanes=element.lanes,
                shape_texts=declarator.extents,
                space=space,
                range=lines.range(declarator.name_start, declarator.name_end),
            )


def _start(lines: LineIndex, chain: Sequence[Node], marker: int) -> int:
    for node in chain:
        if node.type == "declaration":
            return min(marker, lines.code_point(node.start_byte))
    return marker


def _declaration(text: str, start: int) -> tuple[Token, ...]:
    """The tokens up to the ``;``."""
    limit = min(len(text), start + _MAX_DECLARATION)
    end = text.find(";", start, limit)
    while end != -1:
        tokens, is_whole = _lex_declaration(text[start : end + 1])
        if is_whole:
            return tuple(Token(t.text, t.start + start, t.end + start, t.kind) for t in tokens)
        end = text.find(";", end + 1, limit)  # that one was in a comment or a literal
    return ()


@lru_cache(maxsize=4096)
def _lex_declaration(text: str) -> tuple[tuple[Token, ...], bool]:
    """The tokens before the ``;``, and whether there is one."""
    tokens = tuple(lex(text))
    semicolon = next((i for i, token in enumerate(tokens) if token.text == ";"), None)
    return tokens[:semicolon], semicolon is not None


def _declarators(tokens: Sequence[Token]) -> Iterator[Declarator]:
    """The declared variables; nothing where the declaration is a function's or a type's."""
    parts = split_commas(tokens)
    if not parts:
        return
    first = read_declarator(parts[0])
    if first is None or not first.name or first.is_nested or not first.base or "template" in first.base:
        return
    yield first
    head = _specifiers(parts[0])
    for part in parts[1:]:
        declarator = read_declarator([*head, *part])
        if declarator is not None and declarator.name and not declarator.is_nested:
            yield declarator


def _specifiers(part: Sequence[Token]) -> list[Token]:
    """The tokens that a declaration's further declarators share: all before the first one's own."""
    declarator = read_declarator(part)
    name_start = declarator.name_start if declarator else 0
    head: list[Token] = []
    index = 0
    while index < len(part) and part[index].start < name_start and part[index].text not in ("*", "&"):
        head.append(part[index])
        if part[index].text == "<":
            last = closing(part, index) or index
            head += part[index + 1 : last + 1]
            index = last
        index += 1
    return head
