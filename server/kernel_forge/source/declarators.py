"""One declarator: a parameter or a variable, from its tokens to type, name and array extents."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_forge.source.tokens import Token, closing, join

_QUALIFIERS = frozenset(
    (
        "const",
        "volatile",
        "restrict",
        "__restrict__",
        "__restrict",
        "__grid_constant__",
        "__shared__",
        "__device__",
        "__constant__",
        "__managed__",
        "__host__",
        "static",
        "extern",
        "inline",
        "constexpr",
        "constinit",
        "thread_local",
        "mutable",
        "register",
        "alignas",
    )
)
_TYPE_WORDS = frozenset(
    (
        "void",
        "bool",
        "char",
        "short",
        "int",
        "long",
        "float",
        "double",
        "signed",
        "unsigned",
        "auto",
        "size_t",
    )
)
_PREFIXES = frozenset(("struct", "class", "union", "enum", "typename"))
_WITH_ARGUMENTS = frozenset(("__align__", "__attribute__", "alignas", "__declspec"))


@dataclass(frozen=True, slots=True)
class Declarator:
    """A declared name and its type; offsets count in the lexed text.

    Attributes:
        base: the type without qualifiers and declarator symbols: ``unsigned int``, ``foo::bar<T>``.
        name: empty where there is none; ``name_start``/``name_end`` then span the whole declarator.
        type_text: everything but the name, as written.
        pointers: number of ``*``.
        extents: array extents, outermost first; ``""`` for ``[]``.
        is_const: whether ``const`` applies to the base type.
        is_reference, is_pack, is_nested: ``&``; ``...``; a parenthesised or function declarator.
    """

    base: str
    name: str
    name_start: int
    name_end: int
    type_text: str
    pointers: int
    extents: tuple[str, ...]
    is_const: bool
    is_reference: bool
    is_pack: bool
    is_nested: bool


def read_declarator(tokens: Sequence[Token]) -> Declarator | None:
    """Read one declarator with its specifiers; an initialiser is ignored. None without any token."""
    tokens = _without_attributes(_before_initialiser(tokens))
    if not tokens:
        return None
    head, extents = _split_extents(tokens)
    name_at = _name_index(head)
    marks = _outer(head)
    first_mark = next((i for i in marks if head[i].text in ("*", "&", "&&", "...")), len(head))
    stop = min(first_mark, name_at if name_at is not None else len(head))
    nested = next((i for i in marks if head[i].text == "("), None)
    if nested is not None:
        stop = min(stop, nested)
    base = [token for token in head[:stop] if token.text not in _QUALIFIERS and token.text not in _PREFIXES]
    cut = name_at if name_at is not None else len(tokens)
    texts = [head[i].text for i in marks]
    name = head[name_at] if name_at is not None else None
    return Declarator(
        base=join(base),
        name=name.text if name else "",
        name_start=name.start if name else tokens[0].start,
        name_end=name.end if name else tokens[-1].end,
        type_text=join(tokens[:cut]) + join(tokens[cut + 1 :]),
        pointers=texts.count("*"),
        extents=extents,
        is_const=any(token.text == "const" for token in head[:stop]),
        is_reference="&" in texts or "&&" in texts,
        is_pack="..." in texts,
        is_nested=nested is not None,
    )


def _before_initialiser(tokens: Sequence[Token]) -> Sequence[Token]:
    index = 0
    while index < len(tokens):
        text = tokens[index].text
        if text in ("=", "{"):
            return tokens[:index]
        if text in ("(", "[") or (text == "<" and index):
            index = closing(tokens, index) or index
        index += 1
    return tokens


def _without_attributes(tokens: Sequence[Token]) -> list[Token]:
    kept: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if token.text in _WITH_ARGUMENTS and following == "(":
            index = closing(tokens, index + 1) or index + 1
        elif token.text == "[" and following == "[":
            index = closing(tokens, index) or index
        else:
            kept.append(token)
        index += 1
    return kept


def _split_extents(tokens: list[Token]) -> tuple[list[Token], tuple[str, ...]]:
    """Cut ``[a][b]`` off the end."""
    extents: list[str] = []
    begin = next((i for i in _outer(tokens) if tokens[i].text == "["), len(tokens))
    index = begin
    while index < len(tokens) and tokens[index].text == "[":
        end = closing(tokens, index)
        if end is None:
            break
        extents.append(join(tokens[index + 1 : end]))
        index = end + 1
    return tokens[:begin], tuple(extents)


def _outer(tokens: Sequence[Token]) -> list[int]:
    """Indices of the tokens outside brackets and template arguments (opening brackets included)."""
    found: list[int] = []
    index = 0
    while index < len(tokens):
        found.append(index)
        if tokens[index].text in ("(", "[", "{", "<"):
            index = closing(tokens, index) or index
        index += 1
    return found


def _name_index(head: Sequence[Token]) -> int | None:
    nested = next((i for i in _outer(head) if head[i].text == "("), None)
    if nested is not None:  # ``float (&r)[3]``, ``void (*f)(int)``: the last word in the first brackets
        end = closing(head, nested) or len(head)
        words = [i for i in range(nested, end) if head[i].kind == "word" and head[i].text not in _QUALIFIERS]
        return words[-1] if words else None
    last = len(head) - 1
    if last < 1 or head[last].kind != "word" or head[last].text in (_QUALIFIERS | _TYPE_WORDS):
        return None
    before = head[last - 1]
    if before.text == "::" or before.text in _PREFIXES:
        return None
    if before.kind == "word" and all(token.text in _QUALIFIERS for token in head[:last]):
        return None
    return last
