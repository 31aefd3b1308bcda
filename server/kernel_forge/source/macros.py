"""Object-like macros, and the type aliases that macros, ``typedef`` and ``using`` make."""

import re
from collections.abc import Iterator, Sequence

from kernel_forge.source.declarators import read_declarator
from kernel_forge.source.lines import LineIndex
from kernel_forge.source.model import Macro
from kernel_forge.source.tokens import lex
from kernel_forge.source.tree import SyntaxTree

_DIRECTIVE = re.compile(r"#[ \t]*(?P<kind>ifdef|ifndef|if|elif\w*|else|endif|define)\b(?P<rest>(?:\\\r?\n|[^\r\n])*)")
_INDENT = re.compile(r"(?:^|[\r\n])[ \t\ufeff]*\Z")
_DEFINE = re.compile(r"\s*(?P<name>[^\W\d]\w*)(?P<value>(?![\w(]).*)", re.DOTALL)
_NOT_DEFINED = re.compile(r"\s*!\s*defined\s*\(?\s*(\w+)\s*\)?\s*(?://.*|/\*.*)?$", re.DOTALL)
# Each pattern starts with a plain word, which is what makes the search fast.
_TYPEDEF = re.compile(r"typedef\b(?P<old>[^;{}]*);")
_USING = re.compile(r"using\s+(?P<name>\w+)\s*=(?P<new>[^;{}]*);")
_MAX_INDENT = 200
_NAME = re.compile(r"\s*(\w+)")


def read_macros(text: str, lines: LineIndex, tree: SyntaxTree) -> tuple[Macro, ...]:
    """Every ``#define NAME VALUE`` with a value, in file order; function-like ones are left out."""
    macros: list[Macro] = []
    guards: list[str | None] = []
    for match in _DIRECTIVE.finditer(text):
        hash_at = match.start()
        is_first = _INDENT.search(text, max(0, hash_at - _MAX_INDENT), hash_at)
        if not is_first or not tree.is_code(lines.byte(hash_at)):
            continue
        kind, rest = match.group("kind"), match.group("rest")
        if kind in ("if", "ifdef", "ifndef"):
            guards.append(_guard(kind, rest))
        elif kind == "define":
            macro = _macro(text, lines, hash_at, match.start("rest"), match.end("rest"), guards)
            if macro is not None:
                macros.append(macro)
        elif kind == "endif":
            if guards:
                guards.pop()
        elif guards:
            guards[-1] = None
    return tuple(macros)


def read_aliases(text: str, lines: LineIndex, tree: SyntaxTree, macros: Sequence[Macro]) -> dict[str, str]:
    """Alias name -> the type's spelling; the first of several wins (branches of an ``#if``)."""
    aliases: dict[str, str] = {}
    matches = [*_TYPEDEF.finditer(text), *_USING.finditer(text)]
    for match in sorted(matches, key=lambda match: match.start()):
        if tree.is_code(lines.byte(match.start())):
            for name, target in _alias(match):
                aliases.setdefault(name, target)
    for macro in macros:
        aliases.setdefault(macro.name, macro.value)
    return aliases


def _guard(kind: str, rest: str) -> str | None:
    if kind == "ifndef":
        name = _NAME.match(rest)
        return name.group(1) if name else None
    negated = _NOT_DEFINED.match(rest) if kind == "if" else None
    return negated.group(1) if negated else None


def _macro(
    text: str, lines: LineIndex, hash_at: int, start: int, end: int, guards: Sequence[str | None]
) -> Macro | None:
    match = _DEFINE.fullmatch(text, start, end)
    if match is None:
        return None
    tokens = list(lex(text, match.start("value"), match.end("value")))
    if not tokens:
        return None
    name = match.group("name")
    first, last = tokens[0].start, tokens[-1].end
    return Macro(name, text[first:last], name in guards, lines.range(hash_at, last), lines.range(first, last))


def _alias(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    if match.re is _USING:
        yield match.group("name"), match.group("new").strip()
        return
    declarator = read_declarator(list(lex(match.group("old"))))
    if declarator is None or not declarator.name or declarator.is_nested or declarator.extents:
        return
    const = "const " if declarator.is_const else ""
    yield declarator.name, const + declarator.base + "*" * declarator.pointers
