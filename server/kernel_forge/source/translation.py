"""The tokens that a compiler sees: line continuations joined, comments gone, directives apart; all with their places.

Unlike :mod:`kernel_forge.source.tokens`, which reads stretches that the grammar found, this reads a whole
text as the first phases of translation do, so that nothing between or inside tokens can hide one.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

_SPLICE = re.compile(r"\\\r?\n")
_TOKEN = re.compile(
    r"""
    (?P<newline>\r?\n)
  | (?P<blank>[ \t]+ | //[^\n]*? (?=\r?(?:\n|\Z)) | /\*.*?\*/)
  | (?P<open>/\*.*)
  | (?P<raw>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)")
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\[^\n])*")
  | (?P<character>(?:u8|[uUL])?'(?:[^'\\\n]|\\[^\n])*')
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'(?=[A-Za-z0-9_])|[A-Za-z0-9_.])*)
  | (?P<mark><<<|>>>|<<=|>>=|->\*|\.\.\.|<=>|::|->|\.\*|\+\+|--|<<|>>|&&|\|\||[-+*/%&|^=!<>]=|\#\#
           |%:|<%|%>|<:(?!:[^:>])|:>|[-+*/%&|^=!<>~?:;,.(){}\[\]\#])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SourceToken:
    """A token: ``start`` and ``end`` are offsets in code points of the text, continuations inside it included.

    ``kind`` is ``word``, ``number``, ``string``, ``character``, ``mark``, ``raw`` (a raw string), ``open`` (a comment
    without an end) or ``other`` (no token of C++). ``spaced`` where anything stands between it and the one before.
    """

    kind: str
    text: str
    start: int
    end: int
    spaced: bool


@dataclass(frozen=True, slots=True)
class Directive:
    """A preprocessor line. ``name`` is empty for a lone ``#``; ``rest`` is what follows it, as written, joined."""

    name: str
    rest: str
    tokens: tuple[SourceToken, ...]
    """Those after the name."""
    start: int
    end: int
    at: int
    """How many tokens of code stand before it."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A text taken apart: the tokens of its code, both branches of an ``#if`` included, and its directives."""

    tokens: tuple[SourceToken, ...]
    directives: tuple[Directive, ...]


def translate(text: str) -> Translation:
    """Take ``text`` apart. Any text is read; what is no C++ becomes tokens of kind ``raw``, ``open`` or ``other``."""
    joined, removed = _join(text)
    tokens: list[SourceToken] = []
    directives: list[Directive] = []
    line: list[SourceToken] | None = None
    begins = True
    for token, is_newline in _lex(joined, removed):
        if is_newline:
            if line is not None:
                directives.append(_directive(line, text, len(tokens)))
            line, begins = None, True
        elif line is not None:
            line.append(token)
        elif begins and token.text in ("#", "%:"):
            line, begins = [token], False
        else:
            tokens.append(token)
            begins = False
    if line is not None:
        directives.append(_directive(line, text, len(tokens)))
    return Translation(tuple(tokens), tuple(directives))


def _join(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without line continuations, and from which offsets on how many code points are missing."""
    parts: list[str] = []
    removed: list[tuple[int, int]] = []
    last = gone = 0
    for match in _SPLICE.finditer(text):
        parts.append(text[last : match.start()])
        gone += match.end() - match.start()
        removed.append((match.end() - gone, gone))
        last = match.end()
    return "".join((*parts, text[last:])), removed


def _lex(joined: str, removed: list[tuple[int, int]]) -> Iterator[tuple[SourceToken, bool]]:
    places = [place for place, _ in removed]

    def original(offset: int) -> int:
        index = bisect_right(places, offset) - 1
        return offset + (removed[index][1] if index >= 0 else 0)

    spaced = True
    for match in _TOKEN.finditer(joined):
        kind = "raw" if match.lastgroup == "tag" else match.lastgroup or "other"
        if kind == "blank":
            spaced = True
            continue
        last = original(match.end() - 1) + 1
        yield SourceToken(kind, match.group(), original(match.start()), last, spaced), kind == "newline"
        spaced = kind == "newline"


def _directive(line: list[SourceToken], text: str, at: int) -> Directive:
    named = len(line) > 1 and line[1].kind == "word"
    after = line[2:] if named else line[1:]
    rest = _SPLICE.sub("", text[after[0].start : after[-1].end]) if after else ""
    return Directive(line[1].text if named else "", rest, tuple(after), line[0].start, line[-1].end, at)
