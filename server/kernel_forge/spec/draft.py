"""Drafting a spec block from the signature, the launch sites and the naming habits of the file.

What the code does not say is left as a gap that the reader marks (KF111), never guessed. A reference is only
drafted where the body is plain enough to read it off; the draft then says that it was read from the code, because
a reference that only repeats the code finds no mistake in it.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.spec import BLOCK_MARKER
from kernel_forge.domain.text import Position, Range, TextEdit, line_end
from kernel_forge.source import Kernel, Param, SourceFile
from kernel_forge.spec import gaps
from kernel_forge.spec.body_reading import GridReading, read_elementwise, read_grid, read_row_reduction
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
from kernel_forge.spec.draft_shapes import ShapeReader
from kernel_forge.spec.intent import Reading, Signature, read_product, read_transpose
from kernel_forge.spec.kernel_code import KernelCode
from kernel_forge.spec.numpy_expression import python_name
from kernel_forge.spec.row_intent import read_row_reduction as read_rows
from kernel_forge.spec.row_intent import read_softmax
from kernel_forge.spec.scatter_intent import read_atomic_sum, read_histogram, read_serial_scan
from kernel_forge.spec.stencil_intent import read_stencil

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
    return _Drafter(source, kernel).draft()


_READERS = (
    read_product,
    read_transpose,
    read_softmax,
    read_rows,
    read_atomic_sum,
    read_histogram,
    read_serial_scan,
)


class _Drafter:
    def __init__(self, source: SourceFile, kernel: Kernel) -> None:
        self.source, self.kernel = source, kernel
        self.pointers = [p for p in kernel.params if p.is_pointer]
        self.macros = [m for m in source.macros if m.guarded and m.value.strip().isdigit() and self._uses(m.name)]
        self.text = kernel_text(source, kernel)
        constants = known_constants(source, kernel, self.text, self.macros)
        names = [p.name for p in self.pointers]
        self.code = KernelCode(plain_body(constants_in(self.body, constants), names), names)
        guards = Guards(self.code)
        scalars = [p for p in kernel.params if not p.is_pointer and not p.is_texture]
        integers = [p.name for p in scalars if p.dtype not in (None, DType.BOOL) and not _is_float(p)]
        self.sizes = [n for n in integers if _SIZE_NAMES.match(n) or n in counted(self.code, guards)]
        self.values = [p for p in scalars if p.name not in self.sizes]
        self.has_textures = any(p.is_texture for p in kernel.params)
        self.outputs = [p for p in self.pointers if not p.is_const] or self.pointers[-1:]
        self.grid: GridReading | None = None
        self.launch = LaunchDraft(source, kernel, self.code, guards, self.sizes, self.macros, self.text, constants)
        self.reading: Reading | None = None
        self.said: dict[str, str] = {}
        self.is_integer = any(p.dtype is not None and not p.dtype.is_float for p in self.pointers)

    @cached_property
    def arguments(self) -> ArgumentDraft:
        """What is read off the code of each argument; after the launch and the reference are."""
        grid, block = self.launch.extents
        reader = ShapeReader(self.code, self.launch.guards, self.launch.names, grid, block)
        return ArgumentDraft(self.kernel, self.code, reader, self.outputs, self.said)

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

    def draft(self) -> Draft:
        reference, is_read = self._reference()
        args = self._args()
        launch = self.launch.lines(self.reading)
        where = self._where()
        lines = [f'kernel = "{self.text}"']
        if is_read:
            lines.append("# Read off the code: check that this is what you want, not only what the code does.")
        lines.append(f"reference = {reference}")
        lines.append(f"cases = [{', '.join(self._cases(where))}]")
        if where:
            lines.append("where = [" + ", ".join(f'"{w}"' for w in where) + "]")
        lines += ["", "[args]", *(in_order(line, self.sizes) for line in args)]
        if launch:
            lines += ["", "[launch]", *(in_order(line, self.sizes) for line in launch)]
        tune = [f"{m.name} = [{', '.join(map(str, _around(int(m.value))))}]" for m in self.macros]
        if tune:
            lines += ["", "[tune]", *tune]
        at = Position(self._line_above(), 0)
        indent = re.match(r"[ \t]*", self._line_text(at.line))
        lead = indent.group() if indent is not None else ""
        newline = line_end(self.source.text)
        text = "".join(f"{lead}// {line}".rstrip() + newline for line in [BLOCK_MARKER, *lines, "///"])
        return Draft(TextEdit(Range(at, at), text), gaps.MARK in text)

    def _where(self) -> list[str]:
        if self.reading is not None:
            return [*(self.launch.constraint(w) for w in self.reading.where), *self.launch.where()]
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

    def _reference(self) -> tuple[str, bool]:
        """TOML of the reference, and whether it was read off the code."""
        self.reading = self._intent()
        if self.reading is not None:
            self.said = dict(self.reading.references)
            told = ", ".join(f'{o} = "{e}"' for o, e in self.reading.references.items())
            return f"{{ {told} }}", True
        if len(self.outputs) == 1 and all(p.lanes == 1 for p in self.pointers) and not self.has_textures:
            output = self.outputs[0].name
            expression = self._plain(output, [p.name for p in self.pointers])
            if expression is not None:
                self.said[output] = self._spelt(expression)
                return f'{{ {output} = "{self.said[output]}" }}', True
        told = ", ".join(f'{p.name} = "{gaps.REFERENCE}"' for p in self.outputs) or f'y = "{gaps.REFERENCE}"'
        return f"{{ {told} }}", False

    def _plain(self, output: str, names: list[str]) -> str | None:
        """An elementwise computation over one or two dimensions, or a sum."""
        elementwise = read_elementwise(self.body, output, names)
        if elementwise is not None and self._can_say(elementwise):
            return elementwise
        self.grid = read_grid(self.body, output, names)
        if self.grid is not None and self._can_say(self.grid.expression):
            return self.grid.expression
        self.grid = None
        rows = read_row_reduction(self.body, output, names)
        if rows is not None and rows.layout == "total" and self._plain_code.goes_everywhere(tuple(self.sizes)):
            return rows.expression
        return None

    @cached_property
    def _plain_code(self) -> KernelCode:
        return KernelCode(self.body, [p.name for p in self.pointers])

    def _intent(self) -> Reading | None:
        """A well-known computation, where the body plainly is one."""
        code = self._plain_code
        is_odd = self.has_textures or any(p.lanes != 1 or p.unsupported is not None for p in self.pointers)
        if is_odd or not code.is_readable:
            return None
        outputs = [p for p in self.pointers if not p.is_const]
        written = {s.place.array for s in code.stores} | set(re.findall(r"\batomicAdd\s*\(\s*&?\s*(\w+)", code.text))
        outputs = [p for p in outputs if p.name in written] if len(outputs) > 1 else outputs
        signature = Signature(
            outputs=tuple(p.name for p in outputs),
            inputs=tuple(p.name for p in self.pointers if p not in outputs),
            sizes=tuple(self.sizes),
            floats=frozenset(p.name for p in self.pointers if p.dtype is None or p.dtype.is_float),
            unsigned_bytes=frozenset(p.name for p in self.pointers if p.dtype is DType.UINT8),
            values=tuple(p.name for p in self.values if p.dtype is not None and p.dtype.is_float),
        )
        readers = _READERS if code.goes_everywhere(signature.sizes) else (read_stencil,)
        found = [r for reader in readers if (r := reader(code, signature)) is not None]
        if len(found) != 1:
            return None
        self.outputs = outputs
        return found[0]

    def _spelt(self, expression: str) -> str:
        """Arguments that are Python's keywords spelt as an expression can have them."""
        for param in self.kernel.params:
            if param.name and python_name(param.name) != param.name:
                expression = re.sub(rf"(?<![\w.]){param.name}\b", python_name(param.name), expression)
        return expression

    def _can_say(self, expression: str) -> bool:
        """Whether C and NumPy agree on it: integer division and remainders they see differently."""
        return not (self.is_integer and re.search(r"[/%]|np\.(?!where|abs|maximum|minimum)", expression))

    def _cases(self, where: list[str]) -> list[str]:
        if not self.sizes:
            return ["{}"]
        big = {1: 100_000, 2: 300, 3: 96}.get(len(self.sizes), 12)
        odd = {1: 1000, 2: 77, 3: 33}.get(len(self.sizes), 7)
        shapes = self.reading.shapes.values() if self.reading is not None else self.arguments.extents
        if any(s.count(self.sizes[0]) > 1 for s in shapes):
            big, odd = 96, 33
        if self.reading is not None and len(self.sizes) == 1 and self.sizes[0] in self.reading.largest:
            most = self.launch.number(self.reading.largest[self.sizes[0]])
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
        if self.reading is not None:
            return self._as_read(param, self.reading)
        if self.grid is not None and param.name in self.grid.shapes:
            shape = self.grid.shapes[param.name]
        else:
            shape = self.arguments.shape(param)
        parts = [f"shape = {_toml(shape)}"]
        if param.unsupported is not None:
            parts.append(f'dtype = "{gaps.TYPE}"')
        contents = self.arguments.contents(param)
        if contents is not None:
            parts.append(f"init = {contents}")
        if param in self.outputs and not param.is_const:
            parts.append(f'role = "{self.arguments.role(param)}"')
        return f"{param.name} = {{ {', '.join(parts)} }}"

    def _as_read(self, param: Param, reading: Reading) -> str:
        parts = [f"shape = {_toml(reading.shapes.get(param.name, ('1',)))}"]
        if param in self.outputs and reading.roles.get(param.name) == "inout":
            return f'{param.name} = {{ {parts[0]}, role = "inout" }}'
        if param.name in reading.inits:
            parts.append(f"init = {reading.inits[param.name]}")
        if param in self.outputs:
            said = any(re.search(rf"\b{python_name(param.name)}\b", text) for text in self.said.values())
            parts.append(f'role = "{"inout" if said else "out"}"')
        return f"{param.name} = {{ {', '.join(parts)} }}"


def _is_float(param: Param) -> bool:
    return param.dtype is not None and param.dtype.is_float


def _toml(extents: tuple[str, ...]) -> str:
    return f"[{', '.join(e if e.isdigit() else chr(34) + e + chr(34) for e in extents)}]"


def _around(value: int) -> list[int]:
    """Power-of-two neighbours of a default."""
    if value < 4 or value & (value - 1):
        return sorted({max(1, value // 2), value, value * 2})
    top = 1024 if value <= 1024 else value * 2
    return [v for v in (value // 2, value, value * 2) if v <= top]
