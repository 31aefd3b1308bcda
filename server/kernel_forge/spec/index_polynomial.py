"""Index arithmetic as polynomials, so that ``row * n + col`` is recognised however it is spelt.

The atoms are names (``n``, ``blockIdx.x``) and whatever is no ring operation (a quotient, a remainder, a call), the
latter by a canonical text of what they are made of.
"""

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_CAST = re.compile(
    r"\(\s*(?:const\s+)?(?:unsigned\s+int|unsigned\s+long|long\s+long|unsigned|int|long|size_t|u?int\d+_t)\s*\)"
    r"|\bstatic_cast\s*<[^<>]*>|\b(?:size_t|int|unsigned|int64_t|uint32_t)\s*(?=\()"
)
_SUFFIX = re.compile(r"\b(\d+)[uUlL]+\b")
Monomial = tuple[str, ...]


@dataclass(frozen=True)
class Polynomial:
    """Integer coefficients by monomial; a monomial is its atoms, sorted, each as often as its power."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(terms: Iterable[tuple[Monomial, int]]) -> "Polynomial":
        """The sum of ``terms``."""
        total: dict[Monomial, int] = {}
        for monomial, factor in terms:
            total[monomial] = total.get(monomial, 0) + factor
        return Polynomial(tuple(sorted((m, f) for m, f in total.items() if f)))

    @property
    def atoms(self) -> frozenset[str]:
        """Every atom that occurs."""
        return frozenset(a for m, _ in self.terms for a in m)

    @property
    def constant(self) -> int | None:
        """The value where nothing else is left."""
        return 0 if not self.terms else self.terms[0][1] if [m for m, _ in self.terms] == [()] else None

    def part(self, test: Callable[[str], bool]) -> "Polynomial":
        """The terms that have an atom for which ``test`` holds."""
        return Polynomial(tuple((m, f) for m, f in self.terms if any(test(a) for a in m)))

    def split(self, atom: str) -> tuple["Polynomial", "Polynomial"]:
        """(q, r) with self = q * atom + r, r free of the atom."""
        quotient, rest = [], []
        for monomial, factor in self.terms:
            if atom in monomial:
                i = monomial.index(atom)
                quotient.append((monomial[:i] + monomial[i + 1 :], factor))
            else:
                rest.append((monomial, factor))
        return Polynomial.of(quotient), Polynomial.of(rest)

    def plus(self, other: "Polynomial", sign: int = 1) -> "Polynomial":
        """self + sign * other."""
        return Polynomial.of([*self.terms, *((m, sign * f) for m, f in other.terms)])

    def times(self, other: "Polynomial") -> "Polynomial":
        """self * other."""
        return Polynomial.of((tuple(sorted(a + b)), f * g) for a, f in self.terms for b, g in other.terms)

    def __str__(self) -> str:
        return " + ".join(f"{f} {' '.join(m)}".strip() for m, f in self.terms) or "0"


def polynomial(text: str) -> Polynomial | None:
    """The polynomial of a C expression; None where it is no arithmetic."""
    code = _SUFFIX.sub(r"\1", _CAST.sub("", text)).strip()
    if not code or len(code) > 1000 or re.search(r"[?&|!<>=\[\"']", code.replace("<<", "").replace(">>", "")):
        return None
    try:
        return _read(ast.parse(code.replace("::", "."), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_thread_index(place: Polynomial | None, axis: str) -> bool:
    """Whether a place is the thread's own number along an axis of the grid, no step and no offset added."""
    if place is None:
        return False
    blocks = place.part(lambda atom: atom == f"blockIdx.{axis}")
    if str(place.plus(blocks, -1)) != f"1 threadIdx.{axis}" or len(blocks.terms) != 1:
        return False
    monomial, factor = blocks.terms[0]
    return (len(monomial) == 2 and factor == 1) or (len(monomial) == 1 and factor > 1)


def _read(node: ast.expr) -> Polynomial:
    match node:
        case ast.Constant(value=int() as value):
            return Polynomial.of([((), value)])
        case ast.Name(id=name):
            return Polynomial.of([((name,), 1)])
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return Polynomial.of([((f"{name}.{attribute}",), 1)])
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            return _read(left).plus(_read(right), 1 if isinstance(op, ast.Add) else -1)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _read(left).times(_read(right))
        case ast.BinOp(left=left, op=ast.LShift(), right=ast.Constant(value=int() as shift)) if shift < 32:
            return _read(left).times(Polynomial.of([((), 1 << shift)]))
        case ast.BinOp(left=left, op=ast.Div() | ast.Mod() as op, right=right):
            name = "quotient" if isinstance(op, ast.Div) else "remainder"
            return Polynomial.of([((f"{name}({_read(left)}, {_read(right)})",), 1)])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Polynomial.of([]).plus(_read(operand), -1)
        case _:
            return Polynomial.of([((ast.unparse(node),), 1)])
