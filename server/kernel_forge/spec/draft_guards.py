"""What the conditions around a place in a kernel's body say about indices there: ``index < limit``."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kernel_forge.spec.brackets import closing, split_outside
from kernel_forge.spec.index_polynomial import Polynomial
from kernel_forge.spec.kernel_code import KernelCode

ONE = Polynomial.of([((), 1)])
_LEAVES = re.compile(r"\s*\{?\s*(?:return|continue)\s*;")
_COMPARISON = re.compile(r"([^<>=!]+)(<=|>=|<|>)([^<>=!]+)")


@dataclass(frozen=True)
class Guard:
    """``index < limit`` holds from ``start`` to ``end`` of the text; ``begin`` is where a loop's counter begins."""

    start: int
    end: int
    index: Polynomial
    limit: Polynomial
    begin: Polynomial | None = None


class Guards:
    """All upper limits that the conditions of one body set."""

    def __init__(self, code: KernelCode) -> None:
        self.code = code

    @cached_property
    def all(self) -> tuple[Guard, ...]:
        """In the order of the text."""
        said = [*self._of_statements(), *self._of_choices()]
        implied = [made for guard in said if (made := _undivided(guard)) is not None]
        return tuple(sorted((*said, *implied), key=lambda g: g.start))

    def at(self, place: int) -> list[Guard]:
        """Those that hold at ``place``, innermost last."""
        return [g for g in self.all if g.start <= place < g.end and not self._is_changed(g, place)]

    def _is_changed(self, guard: Guard, place: int) -> bool:
        """Whether a variable of the condition gets another value between it and ``place``."""
        names = "|".join(re.escape(a) for a in guard.index.atoms if a.isidentifier())
        change = rf"(?<![\w.])(?:{names})\s*(?:[-+*/]?=(?!=)|\+\+|--|>>=|<<=)|(?:\+\+|--)(?:{names})\b"
        return bool(names) and re.search(change, self.code.text[guard.start : place]) is not None

    def _of_statements(self) -> Iterator[Guard]:
        text = self.code.text
        for match in re.finditer(r"\b(if|while|for)\s*(?=\()", text):
            end = closing(text, match.end())
            if end is None:
                continue
            condition, at = text[match.end() + 1 : end], match.end() + 1
            if match[1] == "for":
                parts = split_outside(condition, ";", "()[]{}")
                if len(parts) == 3:
                    begin = re.search(r"=\s*(.*)", parts[0])
                    value = self.code.index(begin[1]) if begin is not None else None
                    yield from self._all_of(parts[1], end + 1, statement_end(text, end + 1), value)
            elif match[1] == "if" and _LEAVES.match(text, end + 1):
                yield from self._none_of(condition, statement_end(text, end + 1), _scope_end(text, match.start()))
            else:
                yield from self._all_of(condition, at, statement_end(text, end + 1))

    def _of_choices(self) -> Iterator[Guard]:
        """``condition ? here : not here``"""
        text = self.code.text
        for match in re.finditer(r"\?", text):
            start, end = _choice_start(text, match.start()), _choice_end(text, match.end())
            yield from self._all_of(text[start : match.start()], match.end(), end)
        for match in re.finditer(r"&&", text):  # the right side is only looked at where the left holds
            start, end = _choice_start(text, match.start()), _choice_end(text, match.end())
            yield from self._all_of(text[start : match.start()], match.end(), end)

    def _all_of(self, condition: str, start: int, end: int, begin: Polynomial | None = None) -> Iterator[Guard]:
        for part in self._named_parts(condition, "&&"):
            guard = self._guard(part, start, end, negated=False, begin=begin)
            if guard is not None:
                yield guard

    def _none_of(self, condition: str, start: int, end: int) -> Iterator[Guard]:
        for part in self._named_parts(condition, "||"):
            guard = self._guard(part, start, end, negated=True)
            if guard is not None:
                yield guard

    def _named_parts(self, condition: str, operator: str) -> Iterator[str]:
        """The parts of a condition, that of a local variable in place of its name."""
        for part in _parts(condition, operator):
            said = self.code.locals.get(part)
            yield from _parts(said, operator) if said is not None else [part]

    def _guard(
        self, part: str, start: int, end: int, *, negated: bool, begin: Polynomial | None = None
    ) -> Guard | None:
        sides = _COMPARISON.fullmatch(part)
        if sides is None:
            return None
        one, two = self.code.index(sides[1]), self.code.index(sides[3])
        if one is None or two is None:
            return None
        low, high = (one, two) if "<" in sides[2] else (two, one)
        is_strict = "=" not in sides[2]
        if negated:
            low, high, is_strict = high, low, not is_strict
        return Guard(start, end, low, high if is_strict else high.plus(ONE), begin)


def _undivided(guard: Guard) -> Guard | None:
    """``i < rows * cols`` where ``i / cols < rows``."""
    match = re.fullmatch(r"1 quotient\((.*), (?:(\d+)|1 (\w+))\)", str(guard.index))
    index = from_text(match[1]) if match is not None else None
    if match is None or index is None:
        return None
    by = Polynomial.of([((), int(match[2]))]) if match[2] else Polynomial.of([((match[3],), 1)])
    return Guard(guard.start, guard.end, index, guard.limit.times(by), guard.begin)


def from_text(text: str) -> Polynomial | None:
    """The polynomial that is written so as an atom's part: ``1 blockDim.x blockIdx.x + 1 threadIdx.x``."""
    terms = []
    for part in split_outside(text.replace(" + ", "\0"), "\0", "()"):
        factor, *atoms = split_outside(part, " ", "()")
        if not re.fullmatch(r"-?\d+", factor):
            return None
        terms.append((tuple(a.replace("\0", " + ") for a in atoms), int(factor)))
    return Polynomial.of(terms)


def statement_end(text: str, at: int) -> int:
    """Behind the statement that begins at ``at``."""
    at += len(text[at:]) - len(text[at:].lstrip())
    if text[at : at + 1] == "{":
        return brace_end(text, at)
    head = re.compile(r"(?:if|for|while)\s*(?=\()").match(text, at)
    if head is not None:
        end = closing(text, head.end())
        return len(text) if end is None else statement_end(text, end + 1)
    end = text.find(";", at)
    return len(text) if end < 0 else end + 1


def brace_end(text: str, at: int) -> int:
    """Behind the brace that closes the one at ``at``."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i + 1
    return len(text)


def _scope_end(text: str, at: int) -> int:
    """Where the braces around ``at`` close."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth < 0:
            return i
    return len(text)


def _choice_start(text: str, at: int) -> int:
    depth = 0
    for i in range(at - 1, -1, -1):
        depth += (text[i] in ")]") - (text[i] in "([")
        is_assignment = text[i] == "=" and text[i - 1 : i] not in tuple("<>=!") and text[i + 1 : i + 2] != "="
        if depth < 0 or (depth == 0 and (text[i] in ",;{}?:" or is_assignment)):
            return i + 1
    return 0


def _choice_end(text: str, at: int) -> int:
    depth = inner = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([") - (text[i] in ")]")
        inner += text[i] == "?"
        if depth < 0 or text[i] == ";" or (text[i] == ":" and depth == 0 and text[i - 1] != ":" != text[i + 1 : i + 2]):
            if text[i] == ":" and inner:
                inner -= 1
                continue
            return i
    return len(text)


def _parts(condition: str, operator: str) -> list[str]:
    """The parts of a condition joined by ``operator``; nothing where another one joins some of them."""
    text = condition.strip()
    while text.startswith("(") and closing(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    parts = split_outside(text.replace(operator, "\0"), "\0", "()[]")
    other = "||" if operator == "&&" else "&&"
    found: list[str] = []
    for part in parts:
        if other in part and len(parts) == 1:
            return []
        if part.startswith("(") and closing(part, 0) == len(part) - 1:
            found += _parts(part, operator)
        elif other not in part:
            found.append(part)
    return found
