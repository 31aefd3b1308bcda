"""Tokens of C++ text, white space and comments included: joined again they give the text back."""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<directive>(?:(?<=\n)|(?<=\A))(?:[ \t]|/\*(?:[^*]|\*(?!/))*\*/)*\#
          (?:"(?:[^"\\\n]|\\(?:\r\n|.|\n))*"|[^\n\\/]|\\(?:\r\n|.|\n)|/(?![/*])|/\*(?:[^*]|\*(?!/))*\*/)*)
    | (?P<comment>//(?:[^\n\\]|\\(?:\r\n|.|\n))*|/\*.*?(?:\*/|\Z))
    | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z))
    | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\(?:\r\n|.|\n))*"?)
    | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*'?)
    | (?P<name>[^\W\d]\w*)
    | (?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
    | (?P<space>\s+?(?=\n[ \t]*\#)|\n|[^\S\n]+)
    | (?P<operator><<<|>>>|::|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text; ``kind`` is a group name of the lexer, blanks are ``space`` and ``comment``."""

    kind: str
    text: str

    @property
    def is_blank(self) -> bool:
        """Whether the compiler does not see it."""
        return self.kind in ("space", "comment")


def lex(text: str) -> list[Token]:
    """All tokens of ``text``; never fails, unfinished literals end where the line or text ends."""
    tokens = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "operator"
        if kind == "delimiter":
            kind = "raw"
        tokens.append(Token(kind, match.group()))
    return tokens


def breaks(text: str) -> str:
    """The line breaks of ``text`` alone: what must stay where ``text`` is taken out."""
    return "\n" * text.count("\n")
