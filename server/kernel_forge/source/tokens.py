"""A lexer for stretches of CUDA text, and what is needed to walk balanced brackets.

The grammar decides *what* a stretch is. Signatures and launches are then read from tokens, since the
grammar does not know every attribute and gives up on half-typed code.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<skip>\s+ | \#[ \t]*(?:if|ifdef|ifndef|elif|else|endif|define|undef|include|pragma|line|error)\b
                    (?:\\\r?\n|[^\r\n])*
            | //(?:[^\n\\]|\\.)* | /\*.*?(?:\*/|\Z) | \\\r?\n)
  | (?P<string>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"
             | (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*" | (?:u8|[uUL])?'(?:[^'\\\n]|\\.)*')
  | (?P<word>[^\W\d]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
  | (?P<mark><<<|->|::|\.\.\.|&&|\|\||==|!=|<=|>=(?!>)|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """A token; ``start`` and ``end`` are offsets in the lexed text, ``kind`` word/number/string/mark."""

    text: str
    start: int
    end: int
    kind: str


def lex(text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """The tokens of ``text[start:end]``; white space, comments and preprocessor lines are left out.

    Both branches of an ``#if`` are read. ``>`` always stands alone, so that template brackets can be matched.
    """
    for match in _TOKEN.finditer(text, start, len(text) if end is None else end):
        kind = match.lastgroup
        if kind == "tag":
            kind = "string"
        if kind != "skip":
            yield Token(match.group(), match.start(), match.end(), kind or "mark")


def closing(tokens: Sequence[Token], at: int) -> int | None:
    """Index of the bracket that closes the one at index ``at`` (round, square, curly or ``<``).

    None where it stays open. For ``<`` the count of angles is only kept outside other brackets.
    """
    if tokens[at].text == "<":
        return _closing_angle(tokens, at)
    stack: list[str] = []
    for index in range(at, len(tokens)):
        text = tokens[index].text
        if text in _CLOSING:
            stack.append(_CLOSING[text])
        elif text in (")", "]", "}"):
            if not stack or stack.pop() != text:
                return None
            if not stack:
                return index
    return None


def _closing_angle(tokens: Sequence[Token], at: int) -> int | None:
    depth = 0
    index = at
    while index < len(tokens):
        text = tokens[index].text
        if text in _CLOSING:
            inner = closing(tokens, index)
            if inner is None:
                return None
            index = inner
        elif text == "<":
            depth += 1
        elif text == ">":
            depth -= 1
            if depth == 0:
                return index
        elif text in (";", ")", "]", "}"):
            return None
        index += 1
    return None


def split_commas(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Split at the commas outside every bracket; ``<`` is a bracket where a ``>`` closes it."""
    parts: list[Sequence[Token]] = []
    begin = index = 0
    while index < len(tokens):
        text = tokens[index].text
        if text in _CLOSING or (text == "<" and index and tokens[index - 1].kind == "word"):
            index = closing(tokens, index) or index
        elif text == ",":
            parts.append(tokens[begin:index])
            begin = index + 1
        index += 1
    if begin < len(tokens) or parts:
        parts.append(tokens[begin:])
    return parts


def join(tokens: Sequence[Token]) -> str:
    """The tokens as text: one blank where the source had any space between two tokens, else none."""
    pieces: list[str] = []
    for index, token in enumerate(tokens):
        if index and tokens[index - 1].end < token.start:
            pieces.append(" ")
        pieces.append(token.text)
    return "".join(pieces)
