"""Shapes of pointers as the body indexes them: ``row * cols + col`` with ``col < cols`` spans ``[rows, cols]``.

Nothing is guessed: an index whose limits the conditions around it do not give has no shape.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from kernel_forge.spec.draft_guards import ONE, Guards
from kernel_forge.spec.index_polynomial import Polynomial, polynomial
from kernel_forge.spec.kernel_code import KernelCode, accesses

_ATOMIC = r"\batomic\w+\s*\(\s*"
ZERO = Polynomial.of([])
MAX_DIMENSIONS = 4


@dataclass(frozen=True)
class Shape:
    """Extents, outermost first, and what the sizes must satisfy for them to be right."""

    extents: tuple[Polynomial, ...]
    where: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Limit:
    value: Polynomial
    where: frozenset[str] = frozenset()


def text_of(value: Polynomial) -> str | None:
    """A polynomial in the format's arithmetic; None where it has an atom that the format cannot say."""
    parts = []
    for monomial, factor in sorted(value.terms, key=lambda term: (-len(term[0]), term)):
        names = [_atom_text(a) for a in monomial]
        if None in names:
            return None
        size = " * ".join([str(abs(factor))] * (abs(factor) != 1 or not names) + [n for n in names if n is not None])
        parts.append((" - " if factor < 0 else " + ", size))
    return "".join(sign + size for sign, size in parts).removeprefix(" + ").strip() or "0"


def _atom_text(atom: str) -> str | None:
    quotient = re.fullmatch(r"quotient\(1 (\w+), (?:1 )?(\w+)\)", atom)
    if quotient is not None:
        return f"({quotient[1]} / {quotient[2]})"
    raised = re.fullmatch(r"quotient\((\d+) \+ 1 (\w+), (\d+)\)", atom)
    if raised is not None and int(raised[1]) == int(raised[3]) - 1:
        return f"cdiv({raised[2]}, {raised[3]})"
    return atom if re.fullmatch(r"\w+|cdiv\(\w+, \w+\)", atom) else None


@dataclass(frozen=True)
class ShapeReader:
    """Reads shapes off one body.

    ``names`` are sizes and tunables that an extent may be made of; ``grid`` and ``block`` are the launch's extents by
    axis, where they are known.
    """

    code: KernelCode
    guards: Guards
    names: frozenset[str]
    grid: Mapping[str, Polynomial]
    block: Mapping[str, Polynomial]

    def shape(self, pointer: str) -> Shape | None:
        """What ``pointer``, indexed as it is in the body, must span."""
        if not self.code.is_readable:
            return None
        found = []
        for index, at in self._places(pointer):
            value = self.code.index(index) if index is not None else None
            shape = self.span(value, at) if value is not None else None
            if shape is None:
                return None
            found.append((shape, value))
        varying = [s for s, v in found if v is not None and v.constant is None]
        joined = _joined(varying or [s for s, _ in found])
        fixed = max((v.constant for _, v in found if v is not None and v.constant is not None), default=None)
        if joined is None or not varying or fixed is None:
            return joined
        texts = [t for e in joined.extents if (t := text_of(e)) is not None]
        count = " * ".join(f"({t})" if " " in t else t for t in texts)
        return Shape(joined.extents, joined.where | {f"{count} > {fixed}"})

    def _places(self, pointer: str) -> Iterator[tuple[str | None, int]]:
        """(index, place in the text) of every use; an index of None where a use is no access."""
        text, name = self.code.text, re.escape(pointer)
        indexed = {a.start: a for a in accesses(text, pointer)}
        for match in re.finditer(rf"(?<![\w.]){name}\b", text):
            at, before, after = match.start(), text[: match.start()].rstrip(), text[match.end() :].lstrip()
            if at in indexed:
                yield (indexed[at].indices[0] if len(indexed[at].indices) == 1 else None), at
            elif before.endswith("*") or (re.search(_ATOMIC + "$", before) and after.startswith(",")):
                yield "0", at
            else:
                offset = re.compile(rf"{name}\s*\+\s*([^;,]+?)\s*,").match(text, at)
                is_atomic = re.search(_ATOMIC + "$", before) is not None
                yield (offset[1] if offset is not None and is_atomic else None), at

    def span(self, index: Polynomial, at: int, depth: int = 0) -> Shape | None:
        """What an index at a place of the text ranges over."""
        whole = self.limit(index, at)
        if whole is not None:
            return Shape((whole.value,), whole.where)
        if depth >= MAX_DIMENSIONS:
            return None
        loose = None
        for stride, outer, inner in self._splits(index):
            fit = self._fits(inner, stride, at, depth)
            if fit is None:
                continue
            rest = self.span(outer, at, depth + 1)
            if rest is None:
                continue
            shape = _whole(rest, stride) or Shape((*rest.extents, stride), rest.where | fit)
            if not any(">" in w for w in fit):
                return shape
            loose = loose or shape
        return loose

    def _splits(self, index: Polynomial) -> Iterator[tuple[Polynomial, Polynomial, Polynomial]]:
        """(stride, q, r) with index = q * stride + r."""
        atoms = sorted(index.atoms & self.names)
        for group in (*((a,) for a in atoms), *combinations(atoms, 2)):
            outer, inner = index, ZERO
            for atom in group:
                outer, rest = outer.split(atom)
                for other in group[: group.index(atom)]:
                    rest = rest.times(Polynomial.of([((other,), 1)]))
                inner = inner.plus(rest)
            if outer.terms:
                yield Polynomial.of([(group, 1)]), outer, inner
        for factor in sorted({abs(f) for m, f in index.terms if m and abs(f) > 1}, reverse=True):
            outer = Polynomial.of([(m, f // factor) for m, f in index.terms if f % factor == 0])
            inner = Polynomial.of([(m, f) for m, f in index.terms if f % factor])
            if outer.terms and any(m for m, _ in outer.terms):
                yield Polynomial.of([((), factor)]), outer, inner

    def _fits(self, inner: Polynomial, stride: Polynomial, at: int, depth: int) -> frozenset[str] | None:
        """Whether an inner index stays below its stride: what that takes, or None where it is not known to."""
        if inner.constant is not None:
            room = stride.constant
            if room is not None:
                return frozenset() if 0 <= inner.constant < room else None
            return frozenset({f"{text_of(stride)} > {inner.constant}"}) if inner.constant >= 0 else None
        limit = self.limit(inner, at)
        if limit is None:
            shape = self.span(inner, at, depth + 1)
            product = ONE
            for extent in shape.extents if shape is not None else ():
                product = product.times(extent)
            return shape.where if shape is not None and product == stride else None
        difference = limit.value.plus(stride, -1).constant
        if difference is not None:
            return limit.where if difference <= 1 else None
        text, wide = text_of(limit.value), text_of(stride)
        return limit.where | {f"{wide} >= {text}"} if text is not None and wide is not None else None

    def limit(self, index: Polynomial, at: int) -> _Limit | None:
        """The smallest value that ``index`` never reaches."""
        if index.constant is not None:
            return _Limit(Polynomial.of([((), index.constant + 1)])) if index.constant >= 0 else None
        found = self._guarded(index, at)
        if found:
            least = found[0]
            for other in found[1:]:
                more = other.value.plus(least.value, -1).constant
                if more is None:
                    return None
                least = other if more < 0 or (more == 0 and len(other.where) < len(least.where)) else least
            return least
        return self._of_atom(index, at)

    def _guarded(self, index: Polynomial, at: int) -> list[_Limit]:
        found = []
        for guard in self.guards.at(at):
            more = index.plus(guard.index, -1).constant
            if more is None or not self._is_sayable(guard.limit):
                continue
            step = min((abs(f) for _, f in guard.index.terms), default=1)
            if 0 < more < step and all(f % step == 0 for m, f in guard.index.terms):
                found.append(_Limit(guard.limit, frozenset({f"{text_of(guard.limit)} % {step} == 0"})))
            else:
                found.append(_Limit(guard.limit.plus(Polynomial.of([((), more)]))))
        return found

    def _of_atom(self, index: Polynomial, at: int) -> _Limit | None:
        """Limits that an index has by itself: of a remainder, a clamped value, a block's or thread's number."""
        if len(index.terms) != 1 or len(index.terms[0][0]) != 1 or index.terms[0][1] != 1:
            return None
        atom = index.terms[0][0][0]
        by_axis = self.grid if atom.startswith("blockIdx.") else self.block if atom.startswith("threadIdx.") else {}
        if atom[-1] in by_axis:
            return _Limit(by_axis[atom[-1]])
        remainder = re.fullmatch(r"remainder\(.*, (?:1 )?(\w+)\)", atom)
        value = polynomial(remainder[1]) if remainder is not None else self._clamped(atom, at)
        quotient = re.fullmatch(r"quotient\((.*), (?:1 )?(\w+)\)", atom)
        if quotient is not None:
            value = self._divided(quotient[1], quotient[2], at)
        if value is None or not self._is_sayable(value):
            return None
        by = remainder or quotient
        divides = by is not None and by[by.lastindex or 1] in self.names
        return _Limit(
            value, frozenset({f"{by[by.lastindex or 1]} != 0"}) if by is not None and divides else frozenset()
        )

    def _divided(self, inside: str, by: str, at: int) -> Polynomial | None:
        for guard in self.guards.at(at):
            if str(guard.index) == inside:
                parts, rest = guard.limit.split(by)
                if parts.terms and not rest.terms:
                    return parts
        return None

    def _clamped(self, atom: str, at: int) -> Polynomial | None:
        """The limit of ``min(..., limit - 1)``, itself or as what a variable was last given."""
        text = atom
        if atom.isidentifier():
            given = re.findall(rf"(?<![\w.]){atom}\s*=(?!=)\s*([^;]*);", self.code.text[:at])
            text = self.code.expand(given[-1]) if given else ""
        match = re.fullmatch(r"\(*\s*min\((.*)\)\s*\)*", text.strip())
        if match is None:
            return None
        for part in match[1].rsplit(",", 1):
            value = self.code.index(part.strip("() ")) if "(" not in part.strip("() ") else None
            if value is not None and self._is_sayable(value):
                return value.plus(ONE)
        return None

    def _is_sayable(self, value: Polynomial) -> bool:
        names = {n for a in value.atoms for n in re.findall(r"[A-Za-z_]\w*", a)} - {"quotient", "cdiv"}
        return names <= self.names and text_of(value) is not None


def _whole(outer: Shape, stride: Polynomial) -> Shape | None:
    """``n / 4`` vectors of 4 as the n scalars that they are where 4 divides n."""
    by = stride.constant
    quotient = re.fullmatch(rf"1 quotient\(1 (\w+), {by}\)", str(outer.extents[-1]))
    if by is None or quotient is None:
        return None
    value = Polynomial.of([((quotient[1],), 1)])
    return Shape((*outer.extents[:-1], value), outer.where | {f"{quotient[1]} % {by} == 0"})


def _joined(shapes: list[Shape]) -> Shape | None:
    """One shape for all accesses: extents that differ by a constant give the larger."""
    if not shapes or len({len(s.extents) for s in shapes}) != 1:
        return None
    extents = []
    for values in zip(*(s.extents for s in shapes), strict=True):
        largest = values[0]
        for value in values[1:]:
            more = value.plus(largest, -1).constant
            if more is None:
                return None
            largest = value if more > 0 else largest
        extents.append(largest)
    same = [s.where for s in shapes]
    divisible = frozenset.intersection(*same)
    return Shape(tuple(extents), divisible | {w for where in same for w in where if "%" not in w})
