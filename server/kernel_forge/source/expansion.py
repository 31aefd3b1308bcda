"""Macro expansion, so that what a macro makes is seen where it is used.

Every definition counts from its line to the end of the text, in both branches of an ``#if``. Stringizing, pasting and
definitions of the same name that differ have no one meaning here; :func:`definitions` leaves them to its caller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernel_forge.source.translation import Directive, SourceToken, Translation

MAX_TOKENS = 200_000
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class MacroDefinition:
    """A ``#define``. ``params`` is None for an object-like macro; a variadic one ends with ``__VA_ARGS__``."""

    name: str
    params: tuple[str, ...] | None
    body: tuple[SourceToken, ...]
    directive: Directive


class ExpansionTooLarge(Exception):
    """The expansion exceeds 200,000 tokens or a depth of 64."""


def definitions(translation: Translation) -> tuple[MacroDefinition, ...]:
    """Every ``#define`` that can be read, in file order."""
    found = (_definition(line) for line in translation.directives if line.name == "define")
    return tuple(macro for macro in found if macro is not None)


def _definition(line: Directive) -> MacroDefinition | None:
    if not line.tokens or line.tokens[0].kind != "word":
        return None
    name, rest = line.tokens[0], line.tokens[1:]
    if not rest or rest[0].text != "(" or rest[0].spaced:
        return MacroDefinition(name.text, None, tuple(rest), line)
    params: list[str] = []
    for index, token in enumerate(rest[1:], 1):
        if token.text == ")":
            return MacroDefinition(name.text, tuple(params), tuple(rest[index + 1 :]), line)
        if token.text == "...":
            params.append("__VA_ARGS__")
        elif token.kind == "word":
            params.append(token.text)
        elif token.text != ",":
            return None
    return None


def expand(tokens: Sequence[SourceToken], macros: Mapping[str, MacroDefinition]) -> list[SourceToken]:
    """The tokens with every use of ``macros`` replaced; what comes from a macro's body has the place of its use.

    Raises:
        ExpansionTooLarge: more than 200,000 tokens, or macros nested deeper than 64.
    """
    return _Expander(macros).run(tokens, frozenset(), 0)


class _Expander:
    def __init__(self, macros: Mapping[str, MacroDefinition]) -> None:
        self._macros = macros
        self._made = 0

    def run(self, tokens: Sequence[SourceToken], hidden: frozenset[str], depth: int) -> list[SourceToken]:
        if depth > _MAX_DEPTH:
            raise ExpansionTooLarge
        out: list[SourceToken] = []
        index = 0
        while index < len(tokens):
            token = tokens[index]
            macro = self._macros.get(token.text) if token.kind == "word" and token.text not in hidden else None
            arguments, stop = None, index + 1
            if macro is not None and macro.params is not None:
                arguments, stop = _arguments(tokens, index + 1)
            if macro is None or (macro.params is not None and arguments is None):
                self._count(1)
                out.append(token)
                index += 1
                continue
            body = self._substitute(macro, arguments or [], token, hidden, depth)
            # What follows may be the arguments of a macro that the body ends with.
            inner = self.run(body, hidden | {macro.name}, depth + 1)
            last = self._macros.get(inner[-1].text) if inner else None
            if last is not None and last.params is not None and last.name not in hidden | {macro.name}:
                more, end = _arguments(tokens, stop)
                if more is not None:
                    inner = inner[:-1] + self.run([inner[-1], *tokens[stop:end]], hidden | {macro.name}, depth + 1)
                    stop = end
            out.extend(inner)
            index = stop
        return out

    def _substitute(
        self,
        macro: MacroDefinition,
        arguments: list[list[SourceToken]],
        use: SourceToken,
        hidden: frozenset[str],
        depth: int,
    ) -> list[SourceToken]:
        values: dict[str, list[SourceToken]] = {}
        for number, name in enumerate(macro.params or ()):
            given = arguments[number] if number < len(arguments) else []
            if name == "__VA_ARGS__":
                given = _with_commas(arguments[number:])
            values[name] = self.run(given, hidden, depth + 1)
        body: list[SourceToken] = []
        for token in macro.body:
            made = values.get(token.text) if token.kind == "word" else None
            if made is None:
                made = [replace(token, start=use.start, end=use.end)]
            self._count(len(made))
            body.extend(
                replace(t, spaced=True) if n == 0 and (t.spaced or token.spaced) else t for n, t in enumerate(made)
            )
        return body

    def _count(self, more: int) -> None:
        self._made += more
        if self._made > MAX_TOKENS:
            raise ExpansionTooLarge


def _arguments(tokens: Sequence[SourceToken], at: int) -> tuple[list[list[SourceToken]] | None, int]:
    if at >= len(tokens) or tokens[at].text != "(":
        return None, at
    depth = 0
    parts: list[list[SourceToken]] = [[]]
    for index in range(at, len(tokens)):
        text = tokens[index].text
        depth += (text == "(") - (text == ")")
        if depth == 0:
            return parts, index + 1
        if text == "," and depth == 1:
            parts.append([])
        elif index > at:
            parts[-1].append(tokens[index])
    return None, at


def _with_commas(parts: Sequence[list[SourceToken]]) -> list[SourceToken]:
    out: list[SourceToken] = []
    for number, part in enumerate(parts):
        if number and part:
            out.append(SourceToken("mark", ",", part[0].start, part[0].end, False))
        out.extend(part)
    return out
