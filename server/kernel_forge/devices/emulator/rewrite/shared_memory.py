"""Declarations of shared memory as C++ declarations."""

import re
from dataclasses import dataclass

from kernel_forge.devices.lexer import Token, breaks, lex

_ALIGNMENT = re.compile(r"\b(?:alignas|__align__|__builtin_align__)\s*\((?P<value>(?:[^()]|\([^()]*\))*)\)")
_DROPPED_WORDS = re.compile(r"\b(?:__shared__|static|extern|__device__)\b")
# What cannot be the name that a declaration declares, so that the declaration is not whole.
_TYPE_WORDS = frozenset(
    "auto bool char class const double float int long short signed struct typename union unsigned void volatile".split()
)
OPEN, CLOSE = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a declaration stands.

    Attributes:
        in_function: whether at block scope.
        macro_parameters: None outside a macro's body; else the macro's parameters, which must be pasted, not joined.
    """

    in_function: bool
    macro_parameters: frozenset[str] | None = None


def declaration_end(tokens: list[Token], start: int, in_macro: bool) -> int | None:
    """Index of the ``;`` (or the end of a macro's body) after the declaration at ``start``, or None."""
    depth = 0
    for i in range(start, min(len(tokens), start + 2000)):
        text = tokens[i].text
        if tokens[i].kind == "directive":
            return None
        if text in OPEN:
            depth += 1
        elif text in CLOSE:
            depth -= 1
            if depth < 0:
                return None
        elif text == ";" and depth == 0:
            return i
    return len(tokens) if in_macro and depth == 0 else None


def without_comments(text: str) -> str:
    """``text`` with a space for each comment."""
    return "".join(" " if t.kind == "comment" else t.text for t in lex(text))


def shared_declaration(declaration: str, place: Place, settings: list[str]) -> str | None:
    """The replacement of one ``__shared__`` declaration (without its ``;``), with as many line breaks as it had.

    An array at namespace scope becomes a pointer, and ``settings`` gets the statement that sets it, which must run
    before a kernel does. None where the declaration is not whole, as in a macro that stands for its first words, or
    is not emulated, as a single variable at namespace scope.
    """
    lines = breaks(declaration) if place.macro_parameters is None else ""
    code = " ".join(re.sub(r"\\\r?\n", "", without_comments(declaration)).split())
    alignments = [match["value"] for match in _ALIGNMENT.finditer(code)]
    is_extern = re.search(r"\bextern\b", code) is not None
    code = " ".join(_DROPPED_WORDS.sub(" ", _ALIGNMENT.sub(" ", code)).split())
    names = _declared_names(code)
    if not names or code[slice(*names[0])] in _TYPE_WORDS:
        return None
    kind = code[: names[0][0]].strip(" *&")
    if kind.endswith("::") or not set(kind.split()) - {"const", "volatile", "typename"}:
        return None
    if is_extern:
        return _dynamic(code, names[0], place, settings) + lines
    if not place.in_function:
        if len(names) > 1 or not code[names[0][1] :].lstrip().startswith("["):
            return None
        return _at_namespace_scope(code, names[0], alignments, settings) + lines
    return _static(code, names, alignments, place) + lines


def _static(code: str, names: list[tuple[int, int]], alignments: list[str], place: Place) -> str:
    parameters = place.macro_parameters
    alias = code
    for start, end in reversed(names):
        alias = alias[:start] + _joined("kf_shared_", code[start:end], parameters) + alias[end:]
    parts = [f"typedef {alias};"]
    for start, end in names:
        name = code[start:end]
        kind = _joined("kf_shared_", name, parameters)
        memory = _here(_variable(name, alignments, parameters), place)
        parts.append(f"static char {_joined('kf_key_', name, parameters)};")
        parts.append(f"{kind}& {name} = *reinterpret_cast<{kind}*>({memory});")
    return " ".join(parts)


def _variable(name: str, alignments: list[str], parameters: frozenset[str] | None = None) -> str:
    """The call that gives the running block's copy of the variable ``name``."""
    kind, key = _joined("kf_shared_", name, parameters), _joined("kf_key_", name, parameters)
    shown = f"#{name}" if name in (parameters or ()) else f'"{name}"'
    align = " , ".join([f"alignof({kind})", *(f"size_t({a})" for a in alignments)])
    return f"kf_shared_variable(&{key}, {shown}, sizeof({kind}), kf::largest({align}))"


def _at_namespace_scope(code: str, name_range: tuple[int, int], alignments: list[str], settings: list[str]) -> str:
    start, end = name_range
    name = code[start:end]
    element = f"std::remove_extent_t<kf_shared_{name}>"
    settings.append(f"{name} = *reinterpret_cast<kf_shared_{name}*>({_variable(name, alignments)});")
    return (
        f"typedef {code[:start]}kf_shared_{name}{code[end:]}; static char kf_key_{name}; "
        f"static thread_local {element}* {name};"
    )


def _dynamic(code: str, name_range: tuple[int, int], place: Place, settings: list[str]) -> str:
    start, end = name_range
    kind, name = code[:start].strip(), code[start:end]
    extents = re.sub(r"^\s*\[\s*\]", "", code[end:]).strip()
    pointer = f"{kind} (*{name}){extents}" if extents else f"{kind}* {name}"  # s[][N]: a pointer to rows
    target = f"{kind} (*){extents}" if extents else f"{kind}*"
    memory = f"reinterpret_cast<{target}>({_here('kf_dynamic_shared()', place)})"
    if place.in_function:
        return f"{pointer} = {memory};"
    settings.append(f"{name} = {memory};")
    return f"static thread_local {pointer};"


def _joined(prefix: str, name: str, parameters: frozenset[str] | None) -> str:
    return f"{prefix}##{name}" if name in (parameters or ()) else prefix + name


def _here(call: str, place: Place) -> str:
    """``call``, in a macro such that it does not compile outside a function, where it would run too early."""
    return call if place.macro_parameters is None else f"[&] {{ return {call}; }}()"


def _declared_names(code: str) -> list[tuple[int, int]]:
    """Offsets of the names that a declaration (without qualifiers of ours) declares."""
    tokens = lex(code)
    offsets = [0]
    for token in tokens:
        offsets.append(offsets[-1] + len(token.text))
    names: list[tuple[int, int]] = []
    depth = angle = 0
    last: int | None = None
    settled = False
    for i, token in enumerate(tokens):
        text = token.text
        if text in OPEN:
            if depth == 0 and angle == 0 and text == "[" and last is not None:
                settled = True
            depth += 1
        elif text in CLOSE:
            depth -= 1
        elif depth == 0 and text == "<" and not settled:
            angle += 1
        elif depth == 0 and angle and text in (">", ">>>"):
            angle -= min(angle, len(text))
        elif depth == 0 and angle == 0:
            if text == ",":
                if last is not None:
                    names.append((offsets[last], offsets[last + 1]))
                last, settled = None, False
            elif text == "=":
                settled = True
            elif token.kind == "name" and not settled:
                last = i
    if last is not None:
        names.append((offsets[last], offsets[last + 1]))
    return names
