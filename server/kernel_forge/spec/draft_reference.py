"""The reference of a drafted block: what the body plainly computes, or a marked gap."""

import re
from dataclasses import dataclass, field
from functools import cached_property

from kernel_forge.domain.dtypes import DType
from kernel_forge.source import Kernel, Param
from kernel_forge.spec import gaps
from kernel_forge.spec.body_reading import GridReading, read_elementwise, read_grid, read_row_reduction
from kernel_forge.spec.intent import Reading, Signature, read_product, read_transpose
from kernel_forge.spec.kernel_code import KernelCode
from kernel_forge.spec.numpy_expression import python_name
from kernel_forge.spec.row_intent import read_row_reduction as read_rows
from kernel_forge.spec.row_intent import read_softmax
from kernel_forge.spec.scatter_intent import read_atomic_sum, read_histogram, read_serial_scan
from kernel_forge.spec.stencil_intent import read_stencil

_READERS = (
    read_product,
    read_transpose,
    read_softmax,
    read_rows,
    read_atomic_sum,
    read_histogram,
    read_serial_scan,
)


@dataclass
class ReferenceDraft:
    """Reads the reference off a kernel whose body, between its braces, is ``body``.

    Attributes:
        sizes: the parameters that are sizes; ``values`` are the other scalars.
        outputs: the pointers that are written; fewer once the computation is known.
        reading: the well-known computation that the body is, once read; None where it is none.
        grid: the elementwise computation over two dimensions that it is.
        said: the expression of each output that was read.
    """

    kernel: Kernel
    body: str
    sizes: list[str]
    values: list[Param]
    outputs: list[Param]
    reading: Reading | None = None
    grid: GridReading | None = None
    said: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pointers = [p for p in self.kernel.params if p.is_pointer]
        self._has_textures = any(p.is_texture for p in self.kernel.params)
        self._is_integer = any(p.dtype is not None and not p.dtype.is_float for p in self.pointers)

    def read(self) -> tuple[str, bool]:
        """TOML of the reference, and whether it was read off the code; to be called once, before the rest is used."""
        self.reading = self._intent()
        if self.reading is not None:
            self.said = dict(self.reading.references)
            told = ", ".join(f'{o} = "{e}"' for o, e in self.reading.references.items())
            return f"{{ {told} }}", True
        if len(self.outputs) == 1 and all(p.lanes == 1 for p in self.pointers) and not self._has_textures:
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
        is_odd = self._has_textures or any(p.lanes != 1 or p.unsupported is not None for p in self.pointers)
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
        return not (self._is_integer and re.search(r"[/%]|np\.(?!where|abs|maximum|minimum)", expression))
