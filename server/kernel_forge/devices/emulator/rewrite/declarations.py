"""The rewriting of one file: shared memory, inline assembly, launches from device code, includes."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from kernel_forge.devices.emulator.rewrite.lexer import Token, breaks, lex

IncludeHook = Callable[[str, bool], str | None]
"""``(name, quoted)`` of an include -> replacement of the directive, or None to leave it."""

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"(?P<quoted>[^"\n]+)"|<(?P<angle>[^>\n]+)>)')
_ALIGNMENT = re.compile(r"\b(?:alignas|__align__|__builtin_align__)\s*\((?P<value>(?:[^()]|\([^()]*\))*)\)")
_DROPPED_WORDS = re.compile(r"\b(?:__shared__|static|extern|__device__)\b")
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")


@dataclass
class Rewritten:
    """The result. ``dynamic_arrays`` are (type, name) of namespace-scope ``extern __shared__`` arrays, which
    the entry code must set before a kernel runs."""

    text: str
    dynamic_arrays: list[tuple[str, str]] = field(default_factory=list)


def rewrite(text: str, on_include: IncludeHook) -> Rewritten:
    """``text`` with what a host compiler does not understand replaced; every line stays on its line."""
    tokens = lex(text)
    out: list[str] = []
    result = Rewritten("")
    scopes: list[bool] = []  # for each open brace, whether it is inside a function
    statement = 0  # index into `out` where the present statement began
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "directive":
            out.append(_directive(token.text, on_include))
            statement = len(out)
        elif token.text == "{":
            head = "".join(out[statement:])
            in_function = (scopes[-1] if scopes else False) or not re.search(
                r'\b(namespace|struct|class|union|enum)\b|extern\s*"C', _without_comments(head)
            )
            scopes.append(in_function)
            out.append(token.text)
            statement = len(out)
        elif token.text in ("}", ";"):
            if token.text == "}" and scopes:
                scopes.pop()
            out.append(token.text)
            statement = len(out)
        elif token.text == "__shared__":
            end = _statement_end(tokens, i)
            if end is None:
                out.append(token.text)
            else:
                while statement < len(out) and _is_blank(out[statement]):
                    statement += 1
                declaration = "".join(out[statement:]) + "".join(t.text for t in tokens[i:end])
                del out[statement:]
                out.append(_shared(declaration, bool(scopes) and scopes[-1], result))
                i = end + 1
                statement = len(out)
                continue
        elif token.text in ("asm", "__asm__", "__asm"):
            i, replacement = _asm(tokens, i)
            out.append(replacement)
            continue
        elif token.text == "<<<":
            i, start = _launch(tokens, i, out)
            out[start:] = [_unsupported("a kernel launch from device code") + breaks("".join(out[start:]))]
            continue
        elif token.text == "__noinline__":
            before = next((t for t in reversed(out) if t.strip()), "")
            out.append(token.text if before in ("(", ",") else "__attribute__((noinline))")
        else:
            out.append(token.text)
        i += 1
    result.text = "".join(out)
    return result


def _is_blank(piece: str) -> bool:
    return not piece.strip() or piece.startswith(("//", "/*"))


def _directive(text: str, on_include: IncludeHook) -> str:
    match = _INCLUDE.match(text)
    if match is None:
        return text
    replacement = on_include(match["quoted"] or match["angle"], match["quoted"] is not None)
    return text if replacement is None else replacement + breaks(text)


def _statement_end(tokens: list[Token], start: int) -> int | None:
    """Index of the ``;`` that ends the declaration at ``start``; None where it is not a declaration."""
    depth = 0
    for i in range(start, min(len(tokens), start + 2000)):
        text = tokens[i].text
        if tokens[i].kind == "directive":
            return None
        if text in _OPEN:
            depth += 1
        elif text in _CLOSE:
            depth -= 1
            if depth < 0:
                return None
        elif text == ";" and depth == 0:
            return i
    return None


def _without_comments(text: str) -> str:
    return "".join(" " if t.kind == "comment" else t.text for t in lex(text))


def _shared(declaration: str, in_function: bool, result: Rewritten) -> str:
    """The replacement of one ``__shared__`` declaration, with as many line breaks as it had."""
    lines = breaks(declaration)
    code = " ".join(_without_comments(declaration).split())
    alignments = [match["value"] for match in _ALIGNMENT.finditer(code)]
    is_extern = re.search(r"\bextern\b", code) is not None
    code = " ".join(_DROPPED_WORDS.sub(" ", _ALIGNMENT.sub(" ", code)).split())
    names = _declared_names(code)
    if not names:
        return declaration + ";"
    if is_extern:
        return _dynamic(code, names[0], in_function, result) + lines
    if not in_function:
        # Rare, and shared by every kernel of the file: one per thread that runs blocks.
        return f"static thread_local {code};{lines}"
    alias = code
    for start, end in reversed(names):
        alias = alias[:start] + "kf_shared_" + code[start:end] + alias[end:]
    parts = [f"typedef {alias};"]
    for start, end in names:
        name = code[start:end]
        align = " , ".join(["alignof(kf_shared_" + name + ")", *(f"size_t({a})" for a in alignments)])
        parts.append(
            f"static char kf_key_{name}; kf_shared_{name}& {name} = *reinterpret_cast<kf_shared_{name}*>("
            f'kf_shared_variable(&kf_key_{name}, "{name}", sizeof(kf_shared_{name}), kf::largest({align})));'
        )
    return " ".join(parts) + lines


def _dynamic(code: str, name_range: tuple[int, int], in_function: bool, result: Rewritten) -> str:
    start, end = name_range
    kind, name = code[:start].strip(), code[start:end]
    extents = re.sub(r"^\s*\[\s*\]", "", code[end:]).strip()
    if extents:  # extern __shared__ T s[][N]: a pointer to rows
        pointer = f"{kind} (*{name}){extents}"
        return f"{pointer} = reinterpret_cast<{kind} (*){extents}>(kf_dynamic_shared());"
    if in_function:
        return f"{kind}* {name} = reinterpret_cast<{kind}*>(kf_dynamic_shared());"
    result.dynamic_arrays.append((kind, name))
    return f"static thread_local {kind}* {name};"


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
        if text in _OPEN:
            if depth == 0 and angle == 0 and text == "[" and last is not None:
                settled = True
            depth += 1
        elif text in _CLOSE:
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


def _unsupported(what: str) -> str:
    return f'kf_unsupported("{what}", __builtin_LINE(), __builtin_FILE())'


def _asm(tokens: list[Token], i: int) -> tuple[int, str]:
    """Index after an ``asm (...)``, and the call that replaces it."""
    j = i + 1
    while j < len(tokens) and (tokens[j].is_blank or tokens[j].kind == "name"):
        j += 1
    if j >= len(tokens) or tokens[j].text != "(":
        return i + 1, tokens[i].text
    end = _closing(tokens, j)
    return end, _unsupported("inline PTX") + breaks("".join(t.text for t in tokens[i:end]))


def _closing(tokens: list[Token], i: int) -> int:
    """Index after the bracket that closes the one at ``i`` (or the end)."""
    depth = 0
    for j in range(i, len(tokens)):
        if tokens[j].text in _OPEN:
            depth += 1
        elif tokens[j].text in _CLOSE:
            depth -= 1
            if depth == 0:
                return j + 1
    return len(tokens)


def _launch(tokens: list[Token], i: int, out: list[str]) -> tuple[int, int]:
    """For the ``<<<`` at ``i``: index after the launch, and where its callee begins in ``out``."""
    start = len(out)
    depth = 0
    while start > 0:
        piece = out[start - 1]
        if piece == ">":
            depth += 1
        elif piece == "<":
            depth -= 1
        elif depth == 0 and piece.strip() and not re.fullmatch(r"[\w:]+", piece):
            break
        elif depth == 0 and re.fullmatch(r"\w+", piece) and start >= 2 and out[start - 2] != "::":
            start -= 1
            break
        start -= 1
    j = i + 1
    nested = 0
    while j < len(tokens) and not (tokens[j].text == ">>>" and nested == 0):
        nested += (tokens[j].text in _OPEN) - (tokens[j].text in _CLOSE)
        j += 1
    j += 1
    while j < len(tokens) and tokens[j].is_blank:
        j += 1
    end = _closing(tokens, j) if j < len(tokens) and tokens[j].text == "(" else j
    out.append(breaks("".join(t.text for t in tokens[i:end])))
    return end, start
