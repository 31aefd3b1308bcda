"""Drafting a spec block from the signature, the launch sites and the naming habits of the file.

What the code does not say is left as a gap that the reader marks (KF111), never guessed. A reference is only
drafted where the body is plain enough to read it off; the draft then says that it was read from the code, because
a reference that only repeats the code finds no mistake in it.
"""

import re
from dataclasses import dataclass

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.text import Position, Range, TextEdit
from kernel_forge.source import Kernel, Param, SourceFile
from kernel_forge.spec.body_reading import GridReading, read_elementwise, read_grid, read_row_reduction
from kernel_forge.spec.launches import read_site
from kernel_forge.spec.references import GAP

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
        lines += ["", "[args]", *self._args(layout)]
        launch = self._launch(layout)
        if launch:
            lines += ["", "[launch]", *launch]
        tune = [f"{m.name} = [{', '.join(map(str, _around(int(m.value))))}]" for m in self.macros]
        if tune:
            lines += ["", "[tune]", *tune]
        at = Position(self._line_above(), 0)
        indent = re.match(r"[ \t]*", self._line_text(at.line))
        lead = indent.group() if indent is not None else ""
        newline = "\r\n" if "\r\n" in self.source.text[:4096] else "\n"
        text = "".join(f"{lead}// {line}".rstrip() + newline for line in ["/// kernel-forge", *lines, "///"])
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
        if len(self.outputs) == 1:
            output = self.outputs[0].name
            elementwise = read_elementwise(self.body, output, names)
            if elementwise is not None and self._can_say(elementwise):
                return f'{{ {output} = "{elementwise}" }}', True, "flat"
            self.grid = read_grid(self.body, output, names)
            if self.grid is not None and self._can_say(self.grid.expression):
                return f'{{ {output} = "{self.grid.expression}" }}', True, "grid"
            rows = read_row_reduction(self.body, output, names)
            if rows is not None:
                return f'{{ {output} = "{rows.expression}" }}', True, rows.layout
        self.has_gaps = True
        gaps = ", ".join(f'{p.name} = "{GAP}"' for p in self.outputs) or f'y = "{GAP}"'
        return f"{{ {gaps} }}", False, "flat" if len(self.sizes) <= 1 else "grid"

    def _can_say(self, expression: str) -> bool:
        """Whether C and NumPy agree on it: integer division and remainders they see differently."""
        return not (self.is_integer and re.search(r"[/%]|np\.(?!where|abs|maximum|minimum)", expression))

    def _cases(self) -> list[str]:
        if not self.sizes:
            return ["{}"]
        big = {1: 100_000, 2: 300, 3: 96}.get(len(self.sizes), 12)
        odd = {1: 1000, 2: 77, 3: 33}.get(len(self.sizes), 7)
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
        if param in self.outputs:
            read = re.search(rf"(?<![\w.]){re.escape(param.name)}\s*\[[^\]]*\]\s*(?:[-+*/]=|\+\+|--)", self.body)
            parts.append(f'role = "{"inout" if read else "out"}"')
        return f"{param.name} = {{ {', '.join(parts)} }}"

    def _shape(self, param: Param, layout: str) -> list[str]:
        quoted = [f'"{s}"' for s in self.sizes]
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

    def _launch(self, layout: str) -> list[str]:
        """Nothing where the file's own launch can be read; else what the body's indexing suggests."""
        known = frozenset((*self.sizes, *(m.name for m in self.macros)))
        if read_site(self.source, self.kernel, (), known) is not None:
            return []
        block = next((m.name for m in self.macros if re.search(r"block|threads", m.name, re.I)), None)
        size = block or "256"
        quoted = f'"{block}"' if block else "256"
        if not self.sizes:
            self.has_gaps = True
            return ["grid = 1", f"block = {quoted}"]
        two_d = re.search(r"(?:blockIdx|threadIdx)\.y", self.body) is not None and len(self.sizes) >= 2
        if "blockIdx" not in self.body:  # one block does it all
            shared = re.search(r"__shared__\s+\w+\s+\w+\s*\[\s*(\d+)\s*\]", self.body)
            return ["grid = 1", f"block = {shared[1] if shared is not None and block is None else quoted}"]
        if two_d and self.grid is not None:
            return [f'grid = ["cdiv({self.grid.cols}, 16)", "cdiv({self.grid.rows}, 16)"]', "block = [16, 16]"]
        if two_d:
            return [f'grid = ["cdiv({self.sizes[1]}, 16)", "cdiv({self.sizes[0]}, 16)"]', "block = [16, 16]"]
        per_row = re.search(r"=\s*blockIdx\.x\s*;", self.body) is not None
        total = self.sizes[0] if per_row or len(self.sizes) == 1 else " * ".join(self.sizes)
        return [f'grid = "{total}"' if per_row else f'grid = "cdiv({total}, {size})"', f"block = {quoted}"]


def _around(value: int) -> list[int]:
    """Power-of-two neighbours of a default."""
    if value < 4 or value & (value - 1):
        return sorted({max(1, value // 2), value, value * 2})
    top = 1024 if value <= 1024 else value * 2
    return [v for v in (value // 2, value, value * 2) if v <= top]
