"""The text of a kernel's body, taken apart as far as reading its intent needs: locals, loops, accesses."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kernel_forge.spec.brackets import closing, split_arguments
from kernel_forge.spec.index_polynomial import Polynomial, polynomial

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[^\n]*$", re.MULTILINE)
_TYPE = (
    r"(?:(?:static|const|constexpr|register|volatile)\s+)*"
    r"(?:unsigned\s+(?:int|long|char|short)|long\s+long|float|double|half|__half|int|unsigned|long|short|char|auto|bool"
    r"|size_t|uint|\w+_t|T)"
)
_DECLARATION = re.compile(rf"\b{_TYPE}\s+(?!const\b)(\w+\s*(?:=|\()[^;]*);")
_POINTER = re.compile(
    r"\b(?:const\s+)?\w+(?:\s+const)?\s*\*\s*(?:(?:const|__restrict__|__restrict|restrict)\s+)*(\w+)\s*=\s*([^;]+);"
)
_FOR = re.compile(rf"\bfor\s*\(\s*(?:{_TYPE}\s+)?(\w+)\s*=\s*([^;]*);([^;]*);((?:[^();]|\([^()]*\))*)\)")
_ROLE = r"(?:threadIdx|lane|warp|tid|thread)"
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
MAX_LENGTH = 20_000


@dataclass(frozen=True)
class Loop:
    """``for (name = start; condition; step)``."""

    name: str
    start: str
    condition: str
    step: str


@dataclass(frozen=True)
class Access:
    """``array[index]...`` at ``start``..``end`` of the text; several indices for ``a[i][j]``."""

    array: str
    indices: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Store:
    """``place operator= value;``"""

    place: Access
    operator: str
    value: str


class KernelCode:
    """One body. ``pointers`` are the parameters that point to memory."""

    def __init__(self, body: str, pointers: list[str]) -> None:
        text = _PRAGMA.sub("", _COMMENT.sub(" ", body))
        self.is_readable = "#" not in text and len(text) <= MAX_LENGTH and "asm" not in text
        self.pointers = pointers
        self.text = self._without_aliases(
            self._renamed(re.sub(r"__ldg\s*\(\s*&\s*(\w+\s*\[[^\]]*\])\s*\)", r"\1", text))
        )

    def _without_aliases(self, text: str) -> str:
        """``const float* row = x + r * n;`` put in where ``row`` is used."""
        for _ in range(8):
            match = next((m for m in _POINTER.finditer(text) if m[1] not in self.pointers), None)
            if match is None:
                return text
            name, value = match[1], match[2].strip()
            base = re.fullmatch(r"&?\s*\(?\s*(\w+)\s*(?:\+(.*)|\[(.*)\])?\)?", value, re.DOTALL)
            rest = text[: match.start()] + text[match.end() :]
            if base is None or base[1] not in self.pointers:
                self.is_readable = False
                return text
            offset = (base[2] or base[3] or "0").strip()
            while (access := next(accesses(rest, name), None)) is not None:
                rest = f"{rest[: access.start]}{base[1]}[({offset}) + ({access.indices[0]})]{rest[access.end :]}"
            if re.search(rf"(?<![\w.]){name}\b", rest):
                self.is_readable = False
            text = rest
        return text

    def _renamed(self, text: str) -> str:
        """Indices that are given a second value at the top of the body under a name of their own from there on."""
        for match in reversed(list(re.finditer(r"(?<=[;}])\s*(\w+)\s*=(?!=)\s*([^;]*);", text))):
            name, before = match[1], text[: match.start(1)]
            declared = re.search(rf"\b(?:int|unsigned|uint|size_t|unsigned int)\s+(?:[^;]*,\s*)?{name}\s*=", before)
            if declared is None or before.count("{") != before.count("}") or before.count("(") != before.count(")"):
                continue
            new = f"{name}_again"
            rest = re.sub(rf"(?<![\w.]){name}\b", new, text[match.end() :])
            text = f"{before}int {new} = {match[2]};{rest}"
        return text

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Every counting loop."""
        return tuple(Loop(*(m[i].strip() for i in range(1, 5))) for m in _FOR.finditer(self.text))

    @cached_property
    def locals(self) -> dict[str, str]:
        """Variables that are given a value once, where they are declared, with that value."""
        found: dict[str, str] = {}
        for match in _DECLARATION.finditer(self.text):
            for part in split_arguments(match[1]):
                name, _, value = part.partition("=")
                if value and name.strip().isidentifier():
                    found[name.strip()] = value.strip()
        counters = {loop.name for loop in self.loops}
        return {n: v for n, v in found.items() if n not in counters and len(self.assignments(n)) == 1}

    def assignments(self, name: str) -> list[str]:
        """The statements that give ``name`` a value: ``= v``, ``+= v``, ``++``."""
        n = re.escape(name)
        found = re.findall(rf"(?<![\w.\]]){n}\s*((?:[-+*/%&|^]|<<|>>)?=(?!=)[^;]*)", self.text)
        return (
            found + re.findall(rf"(?<![\w.]){n}\s*(\+\+|--)", self.text) + re.findall(rf"(\+\+|--)\s*{n}\b", self.text)
        )

    def expand(self, text: str) -> str:
        """``text`` with the values of locals put in."""
        for _ in range(12):
            new = _WORD.sub(self._value, text)
            if new == text or len(new) > 4000:
                break
            text = new
        return text

    def _value(self, match: re.Match[str]) -> str:
        name = match.group()
        is_call = match.string[match.end() :].lstrip().startswith("(")
        return f"({self.locals[name]})" if name in self.locals and not is_call else name

    def index(self, text: str) -> Polynomial | None:
        """An index as a polynomial."""
        return polynomial(self.expand(text))

    def loads(self, array: str) -> list[Access]:
        """Every access to ``array`` that is not stored to."""
        stored = {s.place.start for s in self.stores if s.operator == "" and s.place.array == array}
        return [a for a in accesses(self.text, array) if a.start not in stored]

    @cached_property
    def stores(self) -> tuple[Store, ...]:
        """Every assignment to an element of an array."""
        found = []
        for name in dict.fromkeys(re.findall(r"\b([A-Za-z_]\w*)\s*\[", self.text)):
            for access in accesses(self.text, name):
                after = re.match(r"\s*([-+*/]?)=(?!=)\s*([^;]*);", self.text[access.end :])
                before = self.text[: access.start].rstrip()
                if after is not None and not re.search(rf"(?:__shared__\s+)?{_TYPE}$", before):
                    found.append(Store(access, after[1], after[2].strip()))
        return tuple(sorted(found, key=lambda s: s.place.start))

    def goes_everywhere(self, sizes: tuple[str, ...]) -> bool:
        """Whether nothing but bounds and the roles of threads decides what is done, and no loop leaves anything out."""
        if re.search(r"\b(?:while|do|switch|goto|continue|break)\b", self.text):
            return False
        conditions = [c for match in re.finditer(r"\bif\s*(?=\()", self.text) for c in self._condition(match.end())]
        conditions += re.findall(
            r"(?:=|,|\()([^;=?,]*)\?", self.text.replace(">=", "GE").replace("<=", "LE").replace("==", "EQ")
        )
        parts = [
            p
            for c in conditions
            for p in re.split(r"&&|\|\|", c.replace("GE", ">=").replace("LE", "<=").replace("EQ", "=="))
        ]
        if not all(self._is_bound(part.strip(), sizes) for part in parts):
            return False
        return all(self._steps_over_all(loop) for loop in self.loops) and self.text.count("for") == len(self.loops)

    def _condition(self, at: int) -> list[str]:
        end = closing(self.text, at)
        return [self.text[at + 1 : end]] if end is not None else ["["]

    def _is_bound(self, part: str, sizes: tuple[str, ...]) -> bool:
        text = part.strip("() \n")
        if "[" in text:
            return False
        role = re.fullmatch(r"([^<>=!]+)==\s*0|!\s*([^<>=!]+)", text) or re.fullmatch(r"([^<>=!]+)(?:!=|>)\s*0()", text)
        if role is not None:
            own = self.expand(role[1] or role[2])
            is_one_block = re.fullmatch(r"\s*blockIdx\.x\s*", own) is not None
            return is_one_block or ("threadIdx" in own and "blockIdx" not in own)
        sides = re.fullmatch(r"([^<>=!]+)(?:<=|>=|<|>)([^<>=!]+)", text)
        if sides is None:
            return False
        one, two = (self.expand(s).strip("() ") for s in sides.groups())
        if any("threadIdx" in s and "blockIdx" not in s for s in (one, two)):
            return True
        return one in sizes or two in sizes or any(re.fullmatch(r"\w+(?:\s*\*\s*\w+)+", s) for s in (one, two))

    def _steps_over_all(self, loop: Loop) -> bool:
        start, step = self.expand(loop.start), self.expand(loop.step)
        if re.fullmatch(rf"{loop.name}\s*\+\+|\+\+\s*{loop.name}", step):
            return "threadIdx" not in start
        if "blockIdx" in start:
            return "gridDim" in step
        if "threadIdx" in start:
            return re.search(r"\+=\s*\(*\s*(?:blockDim\.x|[A-Z_]\w*|\d+)\s*\)*$", step) is not None
        halves = re.search(r">>=\s*1|/=\s*2|<<=\s*1|\*=\s*2", step) is not None
        return halves or re.search(r"\+=\s*\(*\s*(?:[A-Z_]\w*)\s*\)*$", step) is not None

    def is_outer(self, atom: str) -> bool:
        """Whether an atom differs from block to block (or from one pass of a loop over blocks to the next)."""
        if "blockIdx" in atom:
            return True
        loop = next((loop for loop in self.loops if loop.name == atom), None)
        return loop is not None and "blockIdx" in self.expand(loop.start)

    def calls(self) -> frozenset[str]:
        """Names of the functions that are called."""
        words = re.findall(r"\b([A-Za-z_]\w*)\s*\(", self.text)
        return frozenset(words) - {"if", "for", "while", "return", "sizeof", "switch"}


def accesses(text: str, array: str) -> Iterator[Access]:
    """``array[...]``, with every further ``[...]`` behind it."""
    for match in re.finditer(rf"(?<![\w.]){re.escape(array)}\s*(?=\[)", text):
        at, indices = match.end(), []
        while at < len(text) and text[at] == "[":
            end = closing(text, at)
            if end is None:
                break
            indices.append(text[at + 1 : end].strip())
            at = end + 1
            at += len(text[at:]) - len(text[at:].lstrip()) if text[at:].lstrip()[:1] == "[" else 0
        if indices:
            yield Access(array, tuple(indices), match.start(), at)
