"""Drafting a spec block from the signature, the launch sites and the naming habits of the file.

What the code does not say is left as a gap that the reader marks (KF111), never guessed. A reference is only
drafted where the body is plain enough to read it off; the draft then says that it was read from the code, because
a reference that only repeats the code finds no mistake in it.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.spec import BLOCK_MARKER
from kernel_forge.domain.text import Position, Range, TextEdit, line_end
from kernel_forge.source import Kernel, Param, SourceFile
from kernel_forge.spec import gaps
from kernel_forge.spec.draft_arguments import (
    ArgumentDraft,
    counted,
    fitting,
    in_order,
    refuse_structures,
    texture_entry,
    unfilled_symbols,
)
from kernel_forge.spec.draft_constants import constants_in, kernel_text, known_constants, plain_body
from kernel_forge.spec.draft_guards import Guards
from kernel_forge.spec.draft_launch import LaunchDraft
from kernel_forge.spec.draft_reference import ReferenceDraft
from kernel_forge.spec.draft_shapes import ShapeReader
from kernel_forge.spec.draft_tunables import Parts, macro_line, offered
from kernel_forge.spec.intent import Reading
from kernel_forge.spec.kernel_code import KernelCode
from kernel_forge.spec.launches import SiteLaunch
from kernel_forge.spec.numpy_expression import python_name

_SIZE_NAMES = re.compile(
    r"^(n|m|k|N|M|K|len|length|size|count|num\w*|n_?\w+|rows?|cols?|columns?|width|height|depth|batch|w|h|d|B|T|C|H|W|"
    r"nx|ny|nz|dim\w*|stride|channels?|\w+_(?:size|len|count|dim|rows|cols))$"
)


@dataclass(frozen=True, slots=True)
class Draft:
    """The edit that inserts the block; ``has_gaps`` where the person must fill something in."""

    edit: TextEdit
    has_gaps: bool


def draft_block(source: SourceFile, kernel_name: str) -> Draft:
    """A spec block above the kernel of that name.

    Raises:
        UsageError: the file has no such kernel, or it takes what no argument can be made for.
    """
    kernel = next((k for k in source.kernels if k.name == kernel_name and k.body_range is not None), None)
    if kernel is None:
        known = ", ".join(k.name for k in source.kernels) or "none"
        raise UsageError(f"the file has no kernel {kernel_name} with a body (it has: {known})")
    refuse_structures(source, kernel)
    instance = kernel_text(source, kernel)
    drafter = _Drafter(source, kernel, instance)
    parts = drafter.parts()

    def variant(other: str, launch: SiteLaunch) -> Parts:
        return _Drafter(source, kernel, other, launch).parts()

    is_covered = drafter.launch.cover is not None
    offer = offered(source, kernel, parts, drafter.launch.names, variant, is_covered=is_covered)
    if offer is not None:
        parts = replace(parts, kernel=offer.kernel, launch=offer.launch, tune=(*parts.tune, *offer.tune))
    return drafter.draft(parts)


class _Drafter:
    """Drafts one instance of a kernel; ``launch`` is taken in place of the file's own where it is given."""

    def __init__(self, source: SourceFile, kernel: Kernel, instance: str, launch: SiteLaunch | None = None) -> None:
        self.source, self.kernel = source, kernel
        self.pointers = [p for p in kernel.params if p.is_pointer]
        self.macros = [m for m in source.macros if m.guarded and m.value.strip().isdigit() and self._uses(m.name)]
        self.text = instance
        constants = known_constants(source, kernel, self.text, self.macros)
        names = [p.name for p in self.pointers]
        self.code = KernelCode(plain_body(constants_in(self.body, constants), names), names)
        guards = Guards(self.code)
        scalars = [p for p in kernel.params if not p.is_pointer and not p.is_texture]
        integers = [p.name for p in scalars if p.dtype not in (None, DType.BOOL) and not _is_float(p)]
        self.sizes = [n for n in integers if _SIZE_NAMES.match(n) or n in counted(self.code, guards)]
        self.values = [p for p in scalars if p.name not in self.sizes]
        outputs = [p for p in self.pointers if not p.is_const] or self.pointers[-1:]
        self.reference = ReferenceDraft(kernel, self.body, self.sizes, self.values, outputs)
        self.launch = LaunchDraft(
            source, kernel, self.code, guards, self.sizes, self.macros, self.text, constants, launch
        )

    @cached_property
    def arguments(self) -> ArgumentDraft:
        """What is read off the code of each argument; after the launch and the reference are."""
        grid, block = self.launch.extents
        reader = ShapeReader(self.code, self.launch.guards, self.launch.names, grid, block)
        return ArgumentDraft(self.kernel, self.code, reader, self.reference.outputs, self.reference.said)

    def _uses(self, name: str) -> bool:
        assert self.kernel.body_range is not None
        start, end = self.source.offset(self.kernel.range.start), self.source.offset(self.kernel.body_range.end)
        sites = " ".join(f"{s.grid} {s.block} {s.shared}" for s in self.source.launches if s.kernel == self.kernel.name)
        return re.search(rf"\b{re.escape(name)}\b", self.source.text[start:end] + sites) is not None

    @property
    def body(self) -> str:
        """The text between the kernel's braces."""
        assert self.kernel.body_range is not None
        start, end = self.source.offset(self.kernel.body_range.start), self.source.offset(self.kernel.body_range.end)
        return self.source.text[start + 1 : end - 1]

    def parts(self) -> Parts:
        """What the block says."""
        reference, is_read = self.reference.read()
        args = self._args()
        launch = self.launch.lines(self.reference.reading)
        where = self._where()
        return Parts(
            kernel=self.text,
            reference=reference,
            is_read=is_read,
            cases=tuple(self._cases(where)),
            where=tuple(where),
            args=tuple(args),
            launch=tuple(launch),
            tune=tuple(map(macro_line, self.macros)),
        )

    def draft(self, parts: Parts) -> Draft:
        """The block as an edit."""
        lines = [f'kernel = "{parts.kernel}"']
        if parts.is_read:
            lines.append("# Read off the code: check that this is what you want, not only what the code does.")
        lines.append(f"reference = {parts.reference}")
        lines.append(f"cases = [{', '.join(parts.cases)}]")
        if parts.where:
            lines.append("where = [" + ", ".join(f'"{w}"' for w in parts.where) + "]")
        lines += ["", "[args]", *(in_order(line, self.sizes) for line in parts.args)]
        if parts.launch:
            lines += ["", "[launch]", *(in_order(line, self.sizes) for line in parts.launch)]
        if parts.tune:
            lines += ["", "[tune]", *parts.tune]
        at = Position(self._line_above(), 0)
        indent = re.match(r"[ \t]*", self._line_text(at.line))
        lead = indent.group() if indent is not None else ""
        newline = line_end(self.source.text)
        text = "".join(f"{lead}// {line}".rstrip() + newline for line in [BLOCK_MARKER, *lines, "///"])
        return Draft(TextEdit(Range(at, at), text), gaps.MARK in text)

    def _where(self) -> list[str]:
        if self.reference.reading is not None:
            return [*(self.launch.constraint(w) for w in self.reference.reading.where), *self.launch.where()]
        return sorted({*self.launch.where(), *self.arguments.where})

    def _line_text(self, line: int) -> str:
        start, end = self.source.offset(Position(line, 0)), self.source.offset(Position(line + 1, 0))
        return self.source.text[start:end]

    def _line_above(self) -> int:
        """The kernel's first line, or that of a ``#ifndef`` run of tunables right above it."""
        line = self.kernel.range.start.line
        while line > 0 and re.match(r"\s*#\s*(ifndef|define|endif)\b", self._line_text(line - 1)):
            line -= 1
        return line

    def _cases(self, where: list[str]) -> list[str]:
        if not self.sizes:
            return ["{}"]
        big = {1: 100_000, 2: 300, 3: 96}.get(len(self.sizes), 12)
        odd = {1: 1000, 2: 77, 3: 33}.get(len(self.sizes), 7)
        shapes = (
            self.reference.reading.shapes.values() if self.reference.reading is not None else self.arguments.extents
        )
        if any(s.count(self.sizes[0]) > 1 for s in shapes):
            big, odd = 96, 33
        if (
            self.reference.reading is not None
            and len(self.sizes) == 1
            and self.sizes[0] in self.reference.reading.largest
        ):
            most = self.launch.number(self.reference.reading.largest[self.sizes[0]])
            value = next((m.value for m in self.macros if m.name == most), most)
            big, odd = (int(value), int(value) * 3 // 8) if value.strip().isdigit() else (32, 7)
        tunables = {m.name: int(m.value) for m in self.macros}
        made = [fitting({s: base + 3 * i for i, s in enumerate(self.sizes)}, where, tunables) for base in (big, odd)]
        return ["{ " + ", ".join(f"{s} = {v}" for s, v in case.items()) + " }" for case in made]

    def _args(self) -> list[str]:
        lines = [self._pointer(p) for p in self.pointers]
        lines += [texture_entry(p.name, self.body) for p in self.kernel.params if p.is_texture]
        for param in self.values:
            if param.unsupported is None:
                is_known = _is_float(param) or (param.dtype is None and "int" not in self.text.partition("<")[2])
                lines.append(f"{param.name} = {'1.5' if is_known else chr(34) + gaps.VALUE + chr(34)}")
        return [*lines, *(f'{name} = {{ role = "in" }}' for name in unfilled_symbols(self.source, self.code))]

    def _pointer(self, param: Param) -> str:
        shape: tuple[str, ...]
        if self.reference.reading is not None:
            return self._as_read(param, self.reference.reading)
        if self.reference.grid is not None and param.name in self.reference.grid.shapes:
            shape = self.reference.grid.shapes[param.name]
        else:
            shape = self.arguments.shape(param)
        parts = [f"shape = {_toml(shape)}"]
        if param.unsupported is not None:
            parts.append(f'dtype = "{gaps.TYPE}"')
        contents = self.arguments.contents(param)
        if contents is not None:
            parts.append(f"init = {contents}")
        if param in self.reference.outputs and not param.is_const:
            parts.append(f'role = "{self.arguments.role(param)}"')
        return f"{param.name} = {{ {', '.join(parts)} }}"

    def _as_read(self, param: Param, reading: Reading) -> str:
        parts = [f"shape = {_toml(reading.shapes.get(param.name, ('1',)))}"]
        if param in self.reference.outputs and reading.roles.get(param.name) == "inout":
            return f'{param.name} = {{ {parts[0]}, role = "inout" }}'
        if param.name in reading.inits:
            parts.append(f"init = {reading.inits[param.name]}")
        if param in self.reference.outputs:
            said = any(re.search(rf"\b{python_name(param.name)}\b", text) for text in self.reference.said.values())
            parts.append(f'role = "{"inout" if said else "out"}"')
        return f"{param.name} = {{ {', '.join(parts)} }}"


def _is_float(param: Param) -> bool:
    return param.dtype is not None and param.dtype.is_float


def _toml(extents: tuple[str, ...]) -> str:
    return f"[{', '.join(e if e.isdigit() else chr(34) + e + chr(34) for e in extents)}]"
