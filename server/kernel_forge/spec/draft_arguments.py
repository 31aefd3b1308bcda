"""Shapes, roles and contents of a drafted block's arguments, as the body treats them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.errors import ExpressionError, UsageError
from kernel_forge.domain.expression import Expression
from kernel_forge.source import Kernel, Param, SourceFile
from kernel_forge.spec import gaps
from kernel_forge.spec.draft_cover import shared_arrays
from kernel_forge.spec.draft_guards import Guards
from kernel_forge.spec.draft_shapes import Shape, ShapeReader, text_of
from kernel_forge.spec.index_polynomial import polynomial
from kernel_forge.spec.kernel_code import KernelCode, accesses
from kernel_forge.spec.numpy_expression import python_name

_ATOMIC = r"\batomic\w+\s*\(\s*&?\s*"


@dataclass(frozen=True)
class ArgumentDraft:
    """What the draft says of pointers; ``said`` are the references that were read off the code."""

    kernel: Kernel
    code: KernelCode
    reader: ShapeReader
    outputs: list[Param]
    said: dict[str, str]

    def shape(self, param: Param) -> tuple[str, ...]:
        """Extents in scalars, or a gap."""
        shape = self._shapes.get(param.name)
        texts = [text_of(e) for e in shape.extents] if shape is not None else [None]
        if shape is None or None in texts:
            return (gaps.SHAPE,)
        last = shape.extents[-1].times(polynomial(str(param.lanes)) or shape.extents[-1])
        found = [t for t in (*texts[:-1], text_of(last)) if t is not None]
        return tuple(found)

    @cached_property
    def _shapes(self) -> dict[str, Shape]:
        pointers = [p.name for p in self.kernel.params if p.is_pointer]
        return {name: s for name in pointers if (s := self.reader.shape(name)) is not None}

    @property
    def extents(self) -> list[list[str]]:
        """For each shape, the names in it, as often as each multiplies."""
        return [[a for e in s.extents for m, _ in e.terms[:1] for a in m] for s in self._shapes.values()]

    def _divisors(self) -> Iterator[str]:
        """Sizes that indices are divided by."""
        for name, value in self.code.locals.items():
            is_index = re.search(
                rf"\b(?:int|unsigned|size_t|long|u?int\d+_t)\s+(?:[^;()]*,\s*)?{name}\s*=", self.code.text
            )
            index = self.code.index(value) if is_index is not None else None
            for atom in index.atoms if index is not None else ():
                by = re.fullmatch(r"(?:quotient|remainder)\(.*, 1 (\w+)\)", atom)
                if by is not None and by[1] in self.reader.names:
                    yield f"{by[1]} != 0"

    @property
    def where(self) -> list[str]:
        """What the sizes must satisfy for the shapes to be right."""
        room = {f"{wide} <= {extent}" for _, wide, extent in self._room()}
        drawn = [c for p in self.kernel.params if p.is_pointer and (c := self.contents(p)) is not None]
        filled = {f"{name[1]} > 0" for c in drawn if (name := re.search(r'high = "(\w+)"', c)) is not None}
        return sorted({w for s in self._shapes.values() for w in s.where} | room | filled | set(self._divisors()))

    def _room(self) -> Iterator[tuple[str, str, str]]:
        """(array, limit, extent) where a size limits an index of a shared array of fixed extents."""
        for name, extents in shared_arrays(self.code.text):
            for access in accesses(self.code.text, name):
                for text, extent in zip(access.indices, extents, strict=False):
                    index = self.code.index(text)
                    limit = self.reader.limit(index, access.start) if index is not None else None
                    wide = text_of(limit.value) if limit is not None and limit.value.constant is None else None
                    if wide is not None and wide != extent and re.fullmatch(r"\w+", extent):
                        yield name, wide, extent

    def role(self, param: Param) -> str:
        """``out`` where the kernel plainly writes every element and reads none; else its old contents matter."""
        name = re.escape(param.name)
        if any(re.search(rf"\b{python_name(param.name)}\b", text) for text in self.said.values()):
            return "inout"
        if self.said:
            return "out"
        stores = [s for s in self.code.stores if s.place.array == param.name]
        is_counted = re.search(rf"{_ATOMIC}{name}\b", self.code.text) is not None
        derefs = re.findall(rf"\*\s*{name}\s*=(?!=)", self.code.text)
        if not stores and not is_counted and not derefs:
            return "in" if self._is_only_read(param) else "inout"
        is_read = bool(self.code.loads(param.name)) or re.search(rf"\*\s*{name}\s*[-+*/]=", self.code.text)
        shape = self._shapes.get(param.name)
        is_whole = shape is not None and not any(">" in w for w in shape.where)
        everywhere = self.code.is_readable and self.code.goes_everywhere(tuple(self.reader.names))
        return "out" if is_whole and everywhere and not is_read and not is_counted else "inout"

    def _is_only_read(self, param: Param) -> bool:
        uses = len(re.findall(rf"(?<![\w.]){re.escape(param.name)}\b", self.code.text))
        return self.code.is_readable and uses == len(list(accesses(self.code.text, param.name)))

    def contents(self, param: Param) -> str | None:
        """TOML of ``init`` for integers that other arrays are indexed by; None where any contents do."""
        if param.dtype is None or param.dtype.is_float:
            return None
        targets = list(self._indexed_by(param.name))
        if not targets:
            return None
        limits = {self._extent(t) for t in targets}
        limit = limits.pop() if len(limits) == 1 else None
        if limit is None:
            return f'"{gaps.CONTENTS}"'
        if param.dtype is DType.UINT8 and limit == "256":
            return None
        high = limit if limit.isdigit() else f'"{limit}"'
        return f'{{ kind = "integers", low = 0, high = {high} }}'

    def _indexed_by(self, pointer: str) -> Iterator[str | None]:
        """Arrays with an index that is an element of ``pointer``; None for any other use of one as an index."""
        inside = rf"(?<![\w.]){re.escape(pointer)}\s*\["
        for name in dict.fromkeys(re.findall(r"\b([A-Za-z_]\w*)\s*\[", self.code.text)):
            for access in accesses(self.code.text, name):
                index = self.code.expand(access.indices[0]) if access.indices else ""
                if name != pointer and re.search(inside, index):
                    is_it = re.fullmatch(rf"[\s(]*{re.escape(pointer)}\s*\[[^\]]*\][\s)]*", _uncast(index))
                    yield name if is_it and len(access.indices) == 1 else None
        if any(
            re.search(inside, self.code.expand(part))
            for loop in self.code.loops
            for part in (loop.start, loop.condition)
        ):
            yield None

    def _extent(self, array: str | None) -> str | None:
        if array is None:
            return None
        declared = re.search(rf"__shared__\s+[\w\s]+?\b{re.escape(array)}\s*\[\s*(\w+)\s*\]\s*[;,]", self.code.text)
        if declared is not None:  # of a table for at most so many, no more than are used
            used = {wide for name, wide, _ in self._room() if name == array}
            return declared[1] if not used else used.pop() if len(used) == 1 else None
        shape = self._shapes.get(array)
        return text_of(shape.extents[0]) if shape is not None and len(shape.extents) == 1 else None


def _uncast(text: str) -> str:
    return re.sub(r"\(\s*(?:int|unsigned|unsigned int|size_t|long)\s*\)", "", text)


def counted(code: KernelCode, guards: Guards) -> frozenset[str]:
    """Names that indices are compared with or multiplied by: sizes, whatever they are called."""
    found = {a for g in guards.all for a in g.limit.atoms}
    for name in code.pointers:
        for access in accesses(code.text, name):
            index = code.index(access.indices[0])
            found |= {a for m, _ in (index.terms if index is not None else ()) if len(m) > 1 for a in m}
    return frozenset(n for a in found for n in re.findall(r"[A-Za-z_]\w*", a))


def unfilled_symbols(source: SourceFile, code: KernelCode) -> list[str]:
    """Variables in constant or device memory that a kernel only reads and the file gives no contents."""
    stored = {s.place.array for s in code.stores} | set(re.findall(rf"{_ATOMIC}(\w+)", code.text))
    return [
        s.name
        for s in source.symbols
        if s.dtype is not None
        and s.name not in stored
        and re.search(rf"(?<![\w.]){s.name}\b", code.text)
        and re.search(rf"__(?:constant|device|managed)__[^;={{}}]*\b{s.name}\s*(?:\[[^\]]*\]\s*)*[;,]", source.text)
    ]


def texture_entry(name: str, body: str) -> str:
    """TOML of a texture: its texels as the fetches of ``body`` name them, its extents left as a gap."""
    fetch = re.search(rf"\btex(1Dfetch|[123]D)\s*<\s*([\w ]+?)\s*>\s*\(\s*{re.escape(name)}\b", body)
    dtype = fetch[2] if fetch is not None else gaps.TYPE
    linear = ', texture = { memory = "linear" }' if fetch is not None and fetch[1] == "1Dfetch" else ""
    return f'{name} = {{ shape = ["{gaps.SHAPE}"], dtype = "{dtype}"{linear} }}'


def in_order(text: str, sizes: list[str]) -> str:
    """``text`` with its products of sizes in the order of the parameters: ``rows * cols``."""

    def ordered(match: re.Match[str]) -> str:
        names = match[0].split(" * ")
        return " * ".join(sorted(names, key=sizes.index)) if set(names) <= set(sizes) else match[0]

    return re.sub(r"\b[A-Za-z_]\w*(?: \* [A-Za-z_]\w*)+", ordered, text)


def fitting(case: dict[str, int], where: list[str], tunables: dict[str, int]) -> dict[str, int]:
    """``case`` with its sizes changed so that they satisfy constraints of the forms that drafts have."""
    wanted, case = case, dict(case)
    for text in (*where, *where):
        multiple = re.fullmatch(r"(\w+) % (\d+) == 0", text)
        least = re.fullmatch(r"(\w+) >= (\w+)", text)
        if multiple is not None and multiple[1] in case:
            case[multiple[1]] = -(-case[multiple[1]] // int(multiple[2])) * int(multiple[2])
        elif least is not None and {least[1], least[2]} <= set(case) and case[least[1]] < case[least[2]]:
            case[least[1]] = case[least[2]] + 5
        limit = re.match(r"(.*) <= (\w+)$", text)
        for name in re.findall(r"[A-Za-z_]\w*", limit[1]) if limit is not None else ():
            while name in case and case[name] > 1 and not _holds(text, case | tunables):
                case[name] = case[name] // 2
    return case if all(_holds(text, case | tunables) for text in where) else wanted


def _holds(text: str, values: dict[str, int]) -> bool:
    try:
        return bool(Expression.parse(text).evaluate(values))
    except ExpressionError:
        return True  # of what else it speaks is not known here


def refuse_structures(source: SourceFile, kernel: Kernel) -> None:
    """Refuse a kernel that the format has no arguments for.

    Raises:
        UsageError: a parameter is a structure, a pointer to one or to a pointer, or a vector.
    """
    for param in kernel.params:
        if param.unsupported is not None and not _may_be_named(source, param):
            place = f"{source.path}:{param.range.start.line + 1}:{param.range.start.column + 1}"
            raise UsageError(
                f"{place}: no block can be drafted for {kernel.name}: parameter {param.name} cannot be made: "
                f"{param.unsupported}"
            )


def _may_be_named(source: SourceFile, param: Param) -> bool:
    """Whether a parameter may point to numbers of a type that a header defines: the block can say of which."""
    words = re.findall(r"[A-Za-z_]\w*", param.type_text)
    is_structure = any(re.search(rf"\b(?:struct|class|union|enum)\s+{w}\b|\}}\s*{w}\s*;", source.text) for w in words)
    return param.is_pointer and param.type_text.count("*") == 1 and not is_structure
