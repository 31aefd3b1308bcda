"""A kernel's signature from its text alone: pure and cached, so that an edit re-reads one signature."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kernel_forge.source.declarators import Declarator, read_declarator
from kernel_forge.source.model import TemplateParam
from kernel_forge.source.tokens import Token, closing, join, lex, split_commas

_BOUNDS = "__launch_bounds__"
_CLUSTER = "__cluster_dims__"
_ATTRIBUTES = frozenset(
    (
        _BOUNDS,
        _CLUSTER,
        "__maxnreg__",
        "__block_size__",
        "__attribute__",
        "__align__",
        "__declspec",
        "alignas",
    )
)
_AFTER_PARAMETERS = frozenset(("noexcept", "requires", "const", "__attribute__", "__restrict__"))
_STARTS_DECLARATION = frozenset(
    [
        "__global__",
        "__device__",
        "__host__",
        "template",
        "static",
        "extern",
        "inline",
        "void",
        "namespace",
        "int",
        "float",
        "struct",
        "class",
        "typedef",
        "using",
        "constexpr",
        "const",
    ]
)

_STARTS_ANOTHER = frozenset(("__global__", "template", "namespace", "typedef", "using", "extern", "static"))


@dataclass(frozen=True, slots=True)
class ParamShape:
    """A parameter's declarator and where it stands; offsets from the signature's start."""

    declarator: Declarator
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Signature:
    """What a kernel's header says; offsets from its start.

    Attributes:
        scope: qualifiers written before the name (``ns::`` gives ``("ns",)``).
        end: just after the parameter list's ``)``.
        terminator: offset of the ``{`` or ``;`` after it; None where neither follows.
        has_body: whether the terminator is ``{``.
        is_special: an explicit specialisation or instantiation.
    """

    name: str
    name_start: int
    name_end: int
    scope: tuple[str, ...]
    params: tuple[ParamShape, ...]
    template_params: tuple[TemplateParam, ...]
    launch_bounds: tuple[str, ...]
    cluster_dims: tuple[str, ...]
    end: int
    terminator: int | None
    has_body: bool
    is_special: bool
    has_linkage: bool


@lru_cache(maxsize=8192)
def read_signature(text: str, marker: int) -> Signature | None:
    """Read the header that starts ``text`` and has its ``__global__`` at offset ``marker``.

    None where ``text`` ends before the parameter list does, or where it is no function.
    """
    tokens = list(lex(text))
    at = next((i for i, token in enumerate(tokens) if token.start >= marker), None)
    if at is None:
        return None
    found = _find_parameters(tokens, at)
    if found is None:
        return None
    name_at, opening, last = found
    templates, is_special = _template_params(tokens[:at])
    terminator = _terminator(tokens, last + 1)
    scope: list[str] = []
    index = name_at
    while index >= 2 and tokens[index - 1].text == "::" and tokens[index - 2].kind == "word":
        index -= 2
        scope.insert(0, tokens[index].text)
    return Signature(
        name=tokens[name_at].text,
        name_start=tokens[name_at].start,
        name_end=tokens[name_at].end,
        scope=tuple(scope),
        params=_params(tokens[opening + 1 : last]),
        template_params=templates,
        launch_bounds=_arguments(tokens, _BOUNDS),
        cluster_dims=_arguments(tokens, _CLUSTER),
        end=tokens[last].end,
        terminator=terminator.start if terminator else None,
        has_body=terminator is not None and terminator.text == "{",
        is_special=is_special or opening != name_at + 1,
        has_linkage=any(
            token.text == "extern" and tokens[i + 1].text == '"C"' for i, token in enumerate(tokens[: len(tokens) - 1])
        ),
    )


def _find_parameters(tokens: Sequence[Token], at: int) -> tuple[int, int, int] | None:
    """Indices of the name, of ``(`` and of ``)``."""
    index = at
    while index < len(tokens):
        token = tokens[index]
        if token.text in (";", "{", "}", "="):
            return None
        if token.kind == "word" and index + 1 < len(tokens):
            opening: int | None = index + 1
            if tokens[index + 1].text == "<":
                angle = closing(tokens, index + 1)
                opening = angle + 1 if angle is not None else None
            if opening is not None and opening < len(tokens) and tokens[opening].text == "(":
                last = closing(tokens, opening)
                if last is None:
                    return None
                following = tokens[last + 1] if last + 1 < len(tokens) else None
                if token.text not in _ATTRIBUTES and _can_follow(following):
                    return index, opening, last
                index = last
        index += 1
    return None


def _can_follow(token: Token | None) -> bool:
    """Whether ``f(...)`` before this token can be the declared function, not a macro in its header."""
    if token is None or token.kind != "word":
        return token is None or token.text not in ("*", "&", "::")
    return token.text in _AFTER_PARAMETERS or token.text in _ATTRIBUTES or token.text in _STARTS_DECLARATION


def _terminator(tokens: Sequence[Token], index: int) -> Token | None:
    while index < len(tokens):
        token = tokens[index]
        if token.text in ("{", ";"):
            return token
        if token.text in ("(", "["):
            index = closing(tokens, index) or index
        elif token.text in _STARTS_ANOTHER:
            return None
        index += 1
    return None


def _arguments(tokens: Sequence[Token], attribute: str) -> tuple[str, ...]:
    for index in range(len(tokens) - 1):
        if tokens[index].text == attribute and tokens[index + 1].text == "(":
            last = closing(tokens, index + 1)
            if last is not None:
                return tuple(join(part) for part in split_commas(tokens[index + 2 : last]))
    return ()


def _params(tokens: Sequence[Token]) -> tuple[ParamShape, ...]:
    shapes: list[ParamShape] = []
    for part in split_commas(tokens):
        declarator = read_declarator(part)
        if declarator is None or (declarator.base == "void" and len(part) == 1):
            continue
        shapes.append(ParamShape(declarator, part[0].start, part[-1].end))
    return tuple(shapes)


def _template_params(tokens: Sequence[Token]) -> tuple[tuple[TemplateParam, ...], bool]:
    """The parameters of every template header, and whether this is a specialisation or instantiation."""
    found: list[TemplateParam] = []
    is_special = False
    for index, token in enumerate(tokens):
        if token.text != "template":
            continue
        if index and tokens[index - 1].text in ("<", ","):  # a template template parameter
            continue
        last = closing(tokens, index + 1) if index + 1 < len(tokens) and tokens[index + 1].text == "<" else None
        if last is None or last == index + 2:
            is_special = True
            continue
        found += [_template_param(part) for part in split_commas(tokens[index + 2 : last]) if part]
    return tuple(found), is_special


def _template_param(part: Sequence[Token]) -> TemplateParam:
    texts = [token.text for token in part]
    equals = texts.index("=") if "=" in texts else None
    default = join(part[equals + 1 :]) if equals is not None else None
    head = part[:equals]
    is_named = len(head) > 1 and head[-1].kind == "word"
    name = head[-1].text if is_named else ""
    type_text = join(head[:-1] if is_named else head)
    kind = "type" if head and head[0].text in ("typename", "class", "template") else "value"
    return TemplateParam(name, kind, type_text, default)
