"""Which code a kernel can reach: its body and, through what it names, functions and macros, of local headers too."""

import re
from collections.abc import Callable, Iterable, Sequence

from kernel_forge.source.tokens import Token, closing, lex

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)\n]*\))?((?:\\\r?\n|[^\r\n])*)", re.MULTILINE)
_BETWEEN = frozenset({"const", "noexcept", "override", "final", "&", "&&", "->", "::", ":", ",", "<", ">", "*"})
_NO_FUNCTION = frozenset({"if", "for", "while", "switch", "catch", "return", "sizeof", "decltype", "alignas"})
MAX_HEADERS = 200
Body = Sequence[Token]
ReadHeader = Callable[[str, str], tuple[str, str] | None]
"""(included name, path of the file that includes it) -> path and text, or None where there is no such local file."""


def reachable(text: str, path: str, kernels: Iterable[str], read_header: ReadHeader) -> list[Body]:
    """The bodies, as tokens without comments and preprocessor lines, that ``kernels`` can run.

    Names decide, not types: every function of a name counts, operators always. So more may be found than is run,
    never less, apart from what ``<...>`` headers hold.
    """
    bodies: dict[str, list[Body]] = {}
    for part in _with_headers(text, path, read_header):
        _collect(part, bodies)
    found: list[Body] = []
    seen: set[str] = set()
    waiting = [k.split("<")[0].split("::")[-1].strip() for k in kernels] + ["operator"]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for body in bodies.get(name, ()):
            found.append(body)
            waiting.extend(t.text for t in body if t.kind == "word" and t.text in bodies)
    return found


def _with_headers(text: str, path: str, read_header: ReadHeader) -> list[str]:
    texts = [text]
    seen = {path}
    waiting = [(text, path)]
    while waiting and len(texts) < MAX_HEADERS:
        inside, place = waiting.pop()
        for name in _INCLUDE.findall(inside):
            header = read_header(name, place)
            if header is not None and header[0] not in seen:
                seen.add(header[0])
                texts.append(header[1])
                waiting.append((header[1], header[0]))
    return texts


def _collect(text: str, bodies: dict[str, list[Body]]) -> None:
    for macro in _MACRO.finditer(text):
        bodies.setdefault(macro[1], []).append(tuple(lex(macro[2].replace("\\\n", " ").replace("\\\r\n", " "))))
    tokens = list(lex(text))
    for at, token in enumerate(tokens):
        if token.text != "(" or at == 0:
            continue
        name = _name_before(tokens, at)
        end = closing(tokens, at) if name is not None else None
        opening = _body_after(tokens, end) if end is not None else None
        last = closing(tokens, opening) if opening is not None else None
        if name is not None and opening is not None:
            stop = len(tokens) if last is None else last + 1
            bodies.setdefault(name, []).append(tuple(tokens[at:stop]))


def _name_before(tokens: Sequence[Token], at: int) -> str | None:
    before = tokens[at - 1]
    if any(t.text == "operator" for t in tokens[max(0, at - 4) : at]):
        return "operator"
    if before.kind == "word" and before.text not in _NO_FUNCTION:
        return before.text
    return "operator" if before.text == "]" else None  # a lambda runs where its text stands, or where it is passed


def _body_after(tokens: Sequence[Token], end: int) -> int | None:
    """Index of the ``{`` that makes this a definition: after qualifiers, a trailing type or initialisers."""
    index = end + 1
    for _ in range(64):
        if index >= len(tokens):
            return None
        token = tokens[index]
        if token.text == "{":
            return index
        if token.text == "(":
            inner = closing(tokens, index)
            if inner is None:
                return None
            index = inner + 1
        elif token.kind in ("word", "number") or token.text in _BETWEEN:
            index += 1
        else:
            return None
    return None
