"""The rewriting of one file: shared memory, inline assembly, launches from device code, includes."""

import re
from dataclasses import dataclass, field

from kernel_forge.devices.emulator.rewrite.shared_memory import (
    CLOSE,
    OPEN,
    Place,
    declaration_end,
    shared_declaration,
    without_comments,
)
from kernel_forge.devices.includes import BLANK, IncludeHook, replaced_include
from kernel_forge.devices.lexer import Token, breaks, lex

NOT_EMULATED = "kf_not_emulated_"
"""Begins a name that nobody declares: it makes the compiler name the place where something is used that is not
emulated. The rest of the name says what."""

_DEFINE = re.compile(
    rf"^(?P<head>{BLANK}#{BLANK}define\s{BLANK}(?P<name>\w+)(?:\((?P<parameters>[^)]*)\))?)(?P<body>.*)$", re.DOTALL
)
_CONTINUED = re.compile(r"\\\r?\n")
_ASM = frozenset(("asm", "__asm__", "__asm"))
_CONCERNED = re.compile(r"\b(?:__shared__|asm|__asm__|__asm)\b|<<<")
_QUALIFIERS = re.compile(
    r"(?:\s|\b(?:extern|static|const|volatile|__device__|__shared__)\b|\b(?:__align__|alignas)\s*\([^()]*\))*"
)
_LONGEST_LABEL = 60  # tokens
_ATTRIBUTE = re.compile(r"\b(?:alignas|__\w+__)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")


@dataclass
class Rewritten:
    """The result. ``settings`` are statements that must run before a kernel does (arrays at namespace scope)."""

    text: str
    settings: list[str] = field(default_factory=list)


def rewrite(text: str, on_include: IncludeHook, aliases: dict[str, str] | None = None) -> Rewritten:
    """``text`` with what a host compiler does not understand replaced; every line stays on its line.

    ``aliases`` are object-like macros that stand for ``__shared__`` and other qualifiers; those of ``text`` are added,
    so that the files of one translation unit can share it.
    """
    rewriter = _Rewriter(lex(text), on_include, {} if aliases is None else aliases, None)
    return Rewritten(rewriter.run(), rewriter.settings)


class _Rewriter:
    """One pass over the tokens of a file, or of a macro's body (``macro_parameters`` not None)."""

    def __init__(
        self,
        tokens: list[Token],
        on_include: IncludeHook,
        aliases: dict[str, str],
        macro_parameters: frozenset[str] | None,
    ) -> None:
        self.settings: list[str] = []
        self._tokens = tokens
        self._on_include = on_include
        self._aliases = aliases
        self._macro_parameters = macro_parameters
        self._out: list[str] = []
        self._scopes: list[bool] = []  # for each open brace, whether it is inside a function
        self._statement = 0  # index into `_out` where the present statement began
        self._line = 0

    @property
    def _in_function(self) -> bool:
        return self._macro_parameters is not None or (bool(self._scopes) and self._scopes[-1])

    def run(self) -> str:
        i = 0
        while i < len(self._tokens):
            end = self._step(i)
            self._line += sum(t.text.count("\n") for t in self._tokens[i:end])
            i = end
        return "".join(self._out)

    def _step(self, i: int) -> int:
        """Rewrite what begins at token ``i``; the index after it."""
        token = self._tokens[i]
        out = self._out
        if token.kind == "directive":
            out.append(self._directive(token.text))
            self._statement = len(out)
        elif token.kind == "name" and self._aliases.get(token.text):
            self._tokens[i : i + 1] = lex(self._aliases[token.text])
            return i
        elif token.text == "{":
            self._scopes.append(self._in_function or _opens_function(without_comments("".join(out[self._statement :]))))
            out.append(token.text)
            self._statement = len(out)
        elif token.text in ("}", ";", ":"):
            if token.text == "}" and self._scopes:
                self._scopes.pop()
            out.append(token.text)
            if token.text != ":" or self._after_label():
                self._statement = len(out)
        elif token.text == "__shared__":
            return self._shared(i)
        elif token.text in _ASM:
            return self._asm(i)
        elif token.text == "<<<":
            return self._launch(i)
        elif token.text == "__noinline__":
            before = next((t for t in reversed(out) if t.strip()), "")
            out.append(token.text if before in ("(", ",") else "__attribute__((noinline))")
        else:
            out.append(token.text)
        return i + 1

    def _after_label(self) -> bool:
        """Whether the ``:`` just written ends ``case x:`` or ``name:``, and not a ``?`` or a list of bases."""
        if len(self._out) - self._statement > _LONGEST_LABEL:
            return False  # looked at again and again, a long statement of many `?:` would take for ever
        statement = without_comments("".join(self._out[self._statement :])).strip()
        return re.fullmatch(r"(?:case\b[^?]*|\w+)\s*:", statement, re.DOTALL) is not None

    def _shared(self, i: int) -> int:
        out = self._out
        start = self._statement
        while start < len(out) and (not out[start].strip() or out[start].startswith(("//", "/*"))):
            start += 1
        place = Place(self._in_function, self._macro_parameters)
        end = declaration_end(self._tokens, i, self._macro_parameters is not None)
        if end is not None:
            declaration = "".join(out[start:]) + "".join(t.text for t in self._tokens[i:end])
            replacement = shared_declaration(declaration, place, self.settings)
            if replacement is not None:
                out[start:] = [replacement]
                self._statement = len(out)
                return min(end + 1, len(self._tokens))
        out.append(f"{NOT_EMULATED}shared_memory_declared_in_this_way")
        return i + 1

    def _asm(self, i: int) -> int:
        tokens = self._tokens
        j = i + 1
        while j < len(tokens) and (tokens[j].is_blank or tokens[j].kind == "name"):
            j += 1
        if j >= len(tokens) or tokens[j].text != "(":
            self._out.append(f"{NOT_EMULATED}inline_PTX_in_this_place")
            return i + 1
        end = _closing(tokens, j)
        outside = f"{NOT_EMULATED}inline_PTX_in_this_place kf_none"  # a call is no declaration: it would not be named
        call = _unsupported("inline PTX") if self._in_function else outside
        self._out.append(call + breaks("".join(t.text for t in tokens[i:end])))
        return end

    def _launch(self, i: int) -> int:
        """Replace the launch whose ``<<<`` is at ``i``, its callee in ``_out`` included."""
        tokens, out = self._tokens, self._out
        start = _callee(out)
        j = i + 1
        nested = 0
        while j < len(tokens) and not (tokens[j].text == ">>>" and nested == 0):
            nested += (tokens[j].text in OPEN) - (tokens[j].text in CLOSE)
            j += 1
        j += 1
        while j < len(tokens) and tokens[j].is_blank:
            j += 1
        end = _closing(tokens, j) if j < len(tokens) and tokens[j].text == "(" else min(j, len(tokens))
        lines = breaks("".join(out[start:]) + "".join(t.text for t in tokens[i:end]))
        out[start:] = [_unsupported("a kernel launch from device code") + lines]
        return end

    def _directive(self, text: str) -> str:
        include = replaced_include(text, self._line, self._on_include)
        if include is not None:
            return include
        define = _DEFINE.match(text)
        return text if define is None else self._define(define)

    def _define(self, define: re.Match[str]) -> str:
        """A macro whose body has what is rewritten, on as many lines as before."""
        name = define["name"]
        body = without_comments(_CONTINUED.sub(" ", define["body"])).strip()
        plain = " ".join(body.split())
        is_alias = define["parameters"] is None and "__shared__" in plain and _QUALIFIERS.fullmatch(plain) is not None
        if name in self._aliases and self._aliases[name] != plain:
            self._aliases[name] = ""  # two meanings: the preprocessor knows which, we do not
        elif is_alias:
            self._aliases[name] = plain
        if not (_CONCERNED.search(body) or any(t.text in self._aliases for t in lex(body))):
            return define.group()
        parameters = frozenset(re.findall(r"\w+", _CONTINUED.sub(" ", define["parameters"] or "")))
        # A first statement, taken off again, keeps a `#` at the beginning from being read as a directive.
        inner = _Rewriter(lex("; " + body), self._on_include, self._aliases, parameters)
        return define["head"] + " " + inner.run()[2:] + "\\\n" * define["body"].count("\n")


def _opens_function(head: str) -> bool:
    """Whether the ``{`` after ``head`` is a function's, and not a namespace's or a class's."""
    head = _without_template(_ATTRIBUTE.sub(" ", head))
    return "(" in head or not re.search(r'\b(namespace|struct|class|union|enum)\b|\bextern\s*"C', head)


def _without_template(head: str) -> str:
    """``head`` after its ``template <...>``, whose ``class`` is not a class."""
    match = re.match(r"\s*template\s*<", head)
    if match is None:
        return head
    depth = 1
    for i in range(match.end(), len(head)):
        depth += (head[i] == "<") - (head[i] == ">")
        if depth == 0:
            return _without_template(head[i + 1 :])
    return head


def _callee(out: list[str]) -> int:
    """Index in ``out`` where the qualified name, with template arguments, begins that ends ``out``."""
    start = len(out)
    angles = brackets = 0
    while start > 0:
        piece = out[start - 1]
        if piece in CLOSE:
            brackets += 1
        elif piece in OPEN:
            brackets -= 1
        elif brackets == 0 and piece in (">", ">>>"):
            angles += len(piece)
        elif brackets == 0 and piece == "<":
            angles -= 1
        elif angles == brackets == 0 and re.fullmatch(r"\w+", piece) and (start < 2 or out[start - 2] != "::"):
            return start - 1
        elif angles == brackets == 0 and piece.strip() and not re.fullmatch(r"[\w:]+", piece):
            return start
        if angles < 0 or brackets < 0 or piece in (";", "}"):
            return start
        start -= 1
    return start


def _unsupported(what: str) -> str:
    return f'kf_unsupported("{what}", __builtin_LINE(), __builtin_FILE())'


def _closing(tokens: list[Token], i: int) -> int:
    """Index after the bracket that closes the one at ``i`` (or the end)."""
    depth = 0
    for j in range(i, len(tokens)):
        if tokens[j].text in OPEN:
            depth += 1
        elif tokens[j].text in CLOSE:
            depth -= 1
            if depth == 0:
                return j + 1
    return len(tokens)
