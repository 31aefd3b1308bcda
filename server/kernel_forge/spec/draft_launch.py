"""The launch of a drafted block: how many blocks of how many threads cover what the kernel was seen to compute."""

import re
from dataclasses import dataclass

from kernel_forge.source import Kernel, Macro, SourceFile
from kernel_forge.spec.body_reading import GridReading
from kernel_forge.spec.brackets import split_arguments
from kernel_forge.spec.intent import Reading
from kernel_forge.spec.kernel_code import KernelCode
from kernel_forge.spec.launches import read_site


@dataclass(frozen=True)
class LaunchDraft:
    """Drafts ``[launch]`` of one kernel; ``macros`` are its tunables, ``kernel_text`` names its drafted instance."""

    source: SourceFile
    kernel: Kernel
    body: str
    sizes: list[str]
    macros: list[Macro]
    kernel_text: str

    def lines(self, reading: Reading | None, grid: GridReading | None) -> list[str]:
        """Nothing where the file's own launch can be read; else what the body's indexing suggests."""
        known = frozenset((*self.sizes, *(m.name for m in self.macros)))
        if read_site(self.source, self.kernel, (), known) is not None:
            return []
        block = next((m.name for m in self.macros if re.search(r"block|threads", m.name, re.I)), None) or self._width()
        size = block or "256"
        if reading is not None:
            return self._over(reading, size)
        quoted = _written(block) if block else "256"
        if not self.sizes:
            return ["grid = 1", f"block = {quoted}"]
        two_d = re.search(r"(?:blockIdx|threadIdx)\.y", self.body) is not None and len(self.sizes) >= 2
        if "blockIdx" not in self.body:  # one block does it all
            shared = re.search(r"__shared__\s+\w+\s+\w+\s*\[\s*(\d+)\s*\]", self.body)
            return ["grid = 1", f"block = {shared[1] if shared is not None and block is None else quoted}"]
        if two_d and grid is not None:
            return [f'grid = ["cdiv({grid.cols}, 16)", "cdiv({grid.rows}, 16)"]', "block = [16, 16]"]
        if two_d:
            return [f'grid = ["cdiv({self.sizes[1]}, 16)", "cdiv({self.sizes[0]}, 16)"]', "block = [16, 16]"]
        per_row = re.search(r"=\s*blockIdx\.x\s*;", self.body) is not None
        total = self.sizes[0] if per_row or len(self.sizes) == 1 else " * ".join(self.sizes)
        return [f'grid = "{total}"' if per_row else f'grid = "cdiv({total}, {size})"', f"block = {quoted}"]

    def _over(self, reading: Reading, free: str) -> list[str]:
        """A grid that covers what was read, by blocks of the width that the code has, or of ``free`` threads."""
        if "block" in reading.axes:
            return ["grid = 1", f"block = {_written(self.number(reading.axes['block'][0]))}"]
        last = max("xyz".index(axis) for axis in reading.axes)
        grid, block = [], []
        for axis in "xyz"[: last + 1]:
            extent, width = reading.axes.get(axis, ("1", "1"))
            threads = self.number(width) if width is not None else free if last == 0 else "16"
            per_block = threads != "1"
            block.append(threads)
            grid.append(f"cdiv({extent}, {threads})" if per_block else extent)
        if block == ["1"]:
            block = [free]  # a block for each
        if len(grid) == 1:
            return [f"grid = {_written(grid[0])}", f"block = {_written(block[0])}", *self._shared(block[0])]
        return [f"{n} = [{', '.join(map(_written, e))}]" for n, e in (("grid", grid), ("block", block))]

    def _template_values(self) -> dict[str, str]:
        """Template parameter -> the argument that the drafted instance gives it."""
        _, _, inside = self.kernel_text.partition("<")
        names = [p.name for p in self.kernel.template_params]
        return dict(zip(names, split_arguments(inside.rpartition(">")[0]), strict=False))

    def _width(self) -> str | None:
        """Threads per block that the code itself counts on: a stride, or the extent of a shared array."""
        code = KernelCode(self.body, [])
        steps = re.findall(r"\bfor\s*\([^;]*=\s*(?:threadIdx\.x|(\w+))\s*;[^;]*;\s*\w+\s*\+=\s*(\w+)\s*\)", code.text)
        strides = [s for name, s in steps if not name or code.expand(name).strip("()") == "threadIdx.x"]
        arrays = re.findall(r"__shared__\s+\w+\s+\w+\s*\[\s*(\w+)\s*\]\s*[;,]", code.text)
        for name in (*strides, *arrays):
            width = self.number(name)
            if width in (m.name for m in self.macros) or (width.isdigit() and int(width) <= 1024):
                return width
        return None

    def constraint(self, text: str) -> str:
        """A constraint with the constants in it as the block can say them."""
        return re.sub(r"\b[A-Za-z_]\w*", lambda m: self.number(m.group()), text)

    def number(self, name: str) -> str:
        """A width as the block can say it: tunables by their name, other constants by their value."""
        if name in (m.name for m in self.macros):
            return name
        constants = {c.name: c.value for c in self.source.macros} | {c.name: c.value for c in self.source.constants}
        constants |= self._template_values()
        constants |= {n: v for n, v in KernelCode(self.body, []).locals.items() if v.isdigit()}
        return constants.get(name, name).strip()

    def _shared(self, threads: str) -> list[str]:
        """Dynamic shared memory, where the kernel has any: an element for each thread, as reductions need it."""
        dynamic = re.search(
            r"\bextern\s+__shared__\s+(?:__align__\(\d+\)\s+)?(?:unsigned\s+)?(\w+)\s+\w+\s*\[\s*\]", self.body
        )
        return [f'shared = "{threads} * {8 if dynamic[1] in ("double", "long") else 4}"'] if dynamic is not None else []


def _written(extent: str) -> str:
    return extent if extent.isdigit() else f'"{extent}"'
