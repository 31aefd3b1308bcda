"""Drafting a spec block from the signature, the launch sites and the naming habits of the file.

What the code does not say is left as a gap that the reader marks (KF111), never guessed. A reference is only
drafted where the body is plain enough to read it off; the draft then says that it was read from the code, because
a reference that only repeats the code finds no mistake in it.
"""

import re
from dataclasses import dataclass

from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.spec import BLOCK_MARKER
from kernel_forge.domain.text import Position, Range, TextEdit, line_end
from kernel_forge.source import Kernel, Param, SourceFile
from kernel_forge.spec.body_reading import GridReading, read_elementwise, read_grid, read_row_reduction
from kernel_forge.spec.draft_launch import LaunchDraft
from kernel_forge.spec.intent import Reading, Signature, read_product, read_transpose
from kernel_forge.spec.kernel_code import KernelCode
from kernel_forge.spec.numpy_expression import python_name
from kernel_forge.spec.references import GAP
from kernel_forge.spec.row_intent import read_row_reduction as read_rows
from kernel_forge.spec.row_intent import read_softmax
from kernel_forge.spec.scatter_intent import read_atomic_sum, read_histogram, read_serial_scan
from kernel_forge.spec.stencil_intent import read_stencil

_SIZE_NAMES = re.compile(
    r"^(n|m|k|N|M|K|len|length|size|count|num\w*|n_?\w+|rows?|cols?|columns?|width|height|depth|batch|w|h|d|B|T|C|H|W|"
    r"nx|ny|nz|dim\w*|stride|channels?|\w+_(?:size|len|count|dim|rows|cols))$"
)
_ROW_PAIRS = (
    ("rows", "cols"), ("height", "width"), ("h", "w"), ("H", "W"), ("M", "N"), ("m", "n"), ("N", "C"), ("B", "C"),
)  # fmt: skip
_MATMUL = (("M", "N", "K"), ("m", "n", "k"))


@dataclass(frozen=True, slots=True)
class Draft:
    """The edit that inserts the block; ``has_gaps`` where the person must fill something in."""

    edit: TextEdit
    has_gaps: bool


def draft_block(source: SourceFile, kernel_name: str) -> Draft:
    """A spec block above the kernel of that name.

    Raises:
        UsageError: the file has no such kernel.
    """
    kernel = next((k for k in source.kernels if k.name == kernel_name and k.body_range is not None), None)
    if kernel is None:
        known = ", ".join(k.name for k in source.kernels) or "none"
        raise UsageError(f"the file has no kernel {kernel_name} with a body (it has: {known})")
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
        scalars = [p for p in kernel.params if not p.is_pointer]
        self.sizes = [
            p.name for p in scalars if p.dtype is not None and not p.dtype.is_float and _SIZE_NAMES.match(p.name)
        ]
        self.values = [p for p in scalars if p.name not in self.sizes]
        self.outputs = [p for p in self.pointers if not p.is_const] or self.pointers[-1:]
        self.macros = [m for m in source.macros if m.guarded and m.value.strip().isdigit() and self._uses(m.name)]
        self.has_gaps = False
        self.grid: GridReading | None = None
        self.launch = LaunchDraft(source, kernel, self.body, self.sizes, self.macros, self._kernel_text())
        self.reading: Reading | None = None
        self.said: dict[str, str] = {}
        self.is_integer = any(p.dtype is not None and not p.dtype.is_float for p in self.pointers)

    def _uses(self, name: str) -> bool:
        assert self.kernel.body_range is not None
        start = self.source.offset(self.kernel.range.start)
        end = self.source.offset(self.kernel.body_range.end)
        sites = " ".join(f"{s.grid} {s.block} {s.shared}" for s in self.source.launches if s.kernel == self.kernel.name)
        return re.search(rf"\b{re.escape(name)}\b", self.source.text[start:end] + sites) is not None

    @property
    def body(self) -> str:
        """The text between the kernel's braces."""
        assert self.kernel.body_range is not None
        start, end = self.source.offset(self.kernel.body_range.start), self.source.offset(self.kernel.body_range.end)
        return self.source.text[start + 1 : end - 1]

    def draft(self) -> Draft:
        reference, note, layout = self._reference()
        lines = [f'kernel = "{self._kernel_text()}"']
        if note:
            lines.append("# Read off the code: check that this is what you want, not only what the code does.")
        lines.append(f"reference = {reference}")
        lines.append(f"cases = [{', '.join(self._cases())}]")
        if self.reading is not None and self.reading.where:
            lines.append("where = [" + ", ".join(f'"{self.launch.constraint(w)}"' for w in self.reading.where) + "]")
        lines += ["", "[args]", *self._args(layout)]
        launch = self.launch.lines(self.reading, self.grid)
        self.has_gaps = self.has_gaps or (bool(launch) and not self.sizes)
        if launch:
            lines += ["", "[launch]", *launch]
        tune = [f"{m.name} = [{', '.join(map(str, _around(int(m.value))))}]" for m in self.macros]
        if tune:
            lines += ["", "[tune]", *tune]
        at = Position(self._line_above(), 0)
        indent = re.match(r"[ \t]*", self._line_text(at.line))
        lead = indent.group() if indent is not None else ""
        newline = line_end(self.source.text)
        text = "".join(f"{lead}// {line}".rstrip() + newline for line in [BLOCK_MARKER, *lines, "///"])
        return Draft(TextEdit(Range(at, at), text), self.has_gaps)

    def _line_text(self, line: int) -> str:
        start, end = self.source.offset(Position(line, 0)), self.source.offset(Position(line + 1, 0))
        return self.source.text[start:end]

    def _line_above(self) -> int:
        """The kernel's first line, or that of a ``#ifndef`` run of tunables right above it."""
        line = self.kernel.range.start.line
        while line > 0 and re.match(r"\s*#\s*(ifndef|define|endif)\b", self._line_text(line - 1)):
            line -= 1
        return line

    def _kernel_text(self) -> str:
        params = self.kernel.template_params
        if not params:
            return self.kernel.name
        site = next((s for s in self.source.launches if s.kernel == self.kernel.name and s.template_args), None)
        if site is not None:
            return f"{self.kernel.name}<{', '.join(site.template_args)}>"
        return f"{self.kernel.name}<{', '.join(p.default or ('float' if p.kind == 'type' else '1') for p in params)}>"

    def _reference(self) -> tuple[str, bool, str]:
        """TOML of the reference, whether it was read off the code, and the layout it implies."""
        names = [p.name for p in self.pointers]
        self.reading = self._intent()
        if self.reading is not None:
            self.said = dict(self.reading.references)
            told = ", ".join(f'{o} = "{e}"' for o, e in self.reading.references.items())
            return f"{{ {told} }}", True, "read"
        if len(self.outputs) == 1:
            output = self.outputs[0].name
            elementwise = read_elementwise(self.body, output, names)
            if elementwise is not None and self._can_say(elementwise):
                elementwise = self.said[output] = self._spelt(elementwise)
                return f'{{ {output} = "{elementwise}" }}', True, "flat"
            self.grid = read_grid(self.body, output, names)
            if self.grid is not None and self._can_say(self.grid.expression):
                self.said[output] = self._spelt(self.grid.expression)
                return f'{{ {output} = "{self.said[output]}" }}', True, "grid"
            rows = read_row_reduction(self.body, output, names)
            code = KernelCode(self.body, names)
            if rows is not None and rows.layout == "total" and code.goes_everywhere(tuple(self.sizes)):
                self.said[output] = self._spelt(rows.expression)
                return f'{{ {output} = "{self.said[output]}" }}', True, rows.layout
        self.has_gaps = True
        gaps = ", ".join(f'{p.name} = "{GAP}"' for p in self.outputs) or f'y = "{GAP}"'
        return f"{{ {gaps} }}", False, "flat" if len(self.sizes) <= 1 else "grid"

    def _intent(self) -> Reading | None:
        """A well-known computation, where the body plainly is one."""
        code = KernelCode(self.body, [p.name for p in self.pointers])
        if not code.is_readable or any(p.lanes != 1 or p.unsupported is not None for p in self.pointers):
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

    def _cases(self) -> list[str]:
        if not self.sizes:
            return ["{}"]
        big = {1: 100_000, 2: 300, 3: 96}.get(len(self.sizes), 12)
        odd = {1: 1000, 2: 77, 3: 33}.get(len(self.sizes), 7)
        if self.reading is not None and any(s.count(self.sizes[0]) > 1 for s in self.reading.shapes.values()):
            big, odd = 96, 33
        if self.reading is not None and len(self.sizes) == 1 and self.sizes[0] in self.reading.largest:
            most = self.launch.number(self.reading.largest[self.sizes[0]])
            value = next((m.value for m in self.macros if m.name == most), most)
            big, odd = (int(value), int(value) * 3 // 8) if value.strip().isdigit() else (32, 7)
        return [
            "{ " + ", ".join(f"{s} = {base + 3 * i}" for i, s in enumerate(self.sizes)) + " }" for base in (big, odd)
        ]

    def _args(self, layout: str) -> list[str]:
        lines = [self._pointer(p, layout) for p in self.pointers]
        for param in self.values:
            is_float = param.dtype is not None and param.dtype.is_float
            if param.unsupported is None:
                lines.append(f"{param.name} = {'1.5' if is_float else '1'}")
        return lines

    def _pointer(self, param: Param, layout: str) -> str:
        shape = self._shape(param, layout)
        parts = [f"shape = [{', '.join(shape)}]"]
        if self.reading is not None and param in self.outputs and self.reading.roles.get(param.name) == "inout":
            return f'{param.name} = {{ {parts[0]}, role = "inout" }}'
        if self.reading is not None and param.name in self.reading.inits:
            parts.append(f"init = {self.reading.inits[param.name]}")
        if param in self.outputs:
            read = re.search(rf"(?<![\w.]){re.escape(param.name)}\s*\[[^\]]*\]\s*(?:[-+*/]=|\+\+|--)", self.body)
            said = any(re.search(rf"\b{python_name(param.name)}\b", text) for text in self.said.values())
            is_read = said or (read is not None and not self.said)
            parts.append(f'role = "{"inout" if is_read else "out"}"')
        return f"{param.name} = {{ {', '.join(parts)} }}"

    def _shape(self, param: Param, layout: str) -> list[str]:
        quoted = [f'"{s}"' for s in self.sizes]
        if self.reading is not None:
            extents = self.reading.shapes.get(param.name, ("1",))
            return [e if e.isdigit() else f'"{e}"' for e in extents]
        if self.grid is not None and param.name in self.grid.shapes:
            return [f'"{s}"' for s in self.grid.shapes[param.name]]
        if layout == "total" and param in self.outputs:
            return ["1"]
        if layout == "rows" and len(quoted) >= 2:
            return quoted[:1] if param in self.outputs else quoted[:2]
        if len(quoted) == 3 and tuple(self.sizes) in _MATMUL and len(self.pointers) == 3:
            m, n, k = quoted
            return [[m, k], [k, n], [m, n]][self._matmul_place(param)]
        if len(quoted) == 2 and tuple(self.sizes) in _ROW_PAIRS:
            return quoted
        if len(quoted) <= 1:
            return quoted or ["1"]
        if layout == "flat":
            return [f'"{" * ".join(self.sizes)}"']
        return quoted

    def _matmul_place(self, param: Param) -> int:
        if param in self.outputs:
            return 2
        return [p for p in self.pointers if p not in self.outputs].index(param)


def _around(value: int) -> list[int]:
    """Power-of-two neighbours of a default."""
    if value < 4 or value & (value - 1):
        return sorted({max(1, value // 2), value, value * 2})
    top = 1024 if value <= 1024 else value * 2
    return [v for v in (value // 2, value, value * 2) if v <= top]
