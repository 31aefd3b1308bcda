"""The launch of a drafted block: the file's own, or one that covers what the kernel was seen to compute, or gaps."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kernel_forge.domain.errors import ExpressionError
from kernel_forge.domain.expression import Expression, Number
from kernel_forge.source import Kernel, Macro, SourceFile
from kernel_forge.spec import gaps
from kernel_forge.spec.brackets import split_arguments
from kernel_forge.spec.draft_cover import MAX_THREADS, Cover, read_cover
from kernel_forge.spec.draft_guards import Guards
from kernel_forge.spec.index_polynomial import Polynomial, polynomial
from kernel_forge.spec.intent import Reading
from kernel_forge.spec.kernel_code import KernelCode, accesses
from kernel_forge.spec.launches import SiteLaunch, read_site

_TRIED = (1000, 77, 130)
_BYTES = {"char": 1, "short": 2, "half": 2, "__half": 2, "__nv_bfloat16": 2, "double": 8, "long": 8}


@dataclass(frozen=True)
class LaunchDraft:
    """Drafts ``[launch]`` of one kernel; ``macros`` are its tunables, ``kernel_text`` names its drafted instance.

    ``code`` is the body with constants put in, ``names`` what an extent may be made of. ``given`` is a launch to take
    for the file's own.
    """

    source: SourceFile
    kernel: Kernel
    code: KernelCode
    guards: Guards
    sizes: list[str]
    macros: list[Macro]
    kernel_text: str
    constants: Mapping[str, str]
    given: SiteLaunch | None = None

    @cached_property
    def names(self) -> frozenset[str]:
        """Sizes and tunables."""
        return frozenset((*self.sizes, *(m.name for m in self.macros)))

    @cached_property
    def site(self) -> SiteLaunch | None:
        """The file's own launch, where it can be read and covers what the body's indices ask for."""
        arguments = tuple(split_arguments(self.kernel_text.partition("<")[2].rpartition(">")[0]))
        site = self.given or read_site(self.source, self.kernel, arguments, self.names)
        return site if site is not None and (self.cover is None or self._covers(site, self.cover)) else None

    @cached_property
    def cover(self) -> Cover | None:
        """What the body's own indices ask for."""
        unused = [s for s in self.sizes if not re.search(rf"\b{s}\b", self.code.text)]
        rows = unused[0] if len(unused) == 1 else None
        return read_cover(self.code, self.guards, self.names, rows, self._bound())

    def lines(self, reading: Reading | None) -> list[str]:
        """Nothing where the file's own launch is taken; else a launch that is sure to be right, or gaps."""
        if self.site is not None:
            return []
        if reading is not None and "block" in reading.axes:
            return ["grid = 1", f"block = {_written(self.number(reading.axes['block'][0]))}"]
        if reading is not None and self.cover is None:
            return self._over(reading, self._width() or "256")
        if self.cover is None:
            return [f'grid = "{gaps.GRID}"', f'block = "{gaps.BLOCK}"', *self._shared(None)]
        block = self.block
        return [f"grid = {_list(self.cover.grid(block))}", f"block = {_list(block)}", *self._shared(block)]

    def _over(self, reading: Reading, free: str) -> list[str]:
        """A grid that covers what was read, by blocks of the width that the code has, or of ``free`` threads."""
        last = max("xyz".index(axis) for axis in reading.axes)
        grid, block = [], []
        for axis in "xyz"[: last + 1]:
            extent, width = reading.axes.get(axis, ("1", "1"))
            threads = self.number(width) if width is not None else free if last == 0 else "16"
            block.append(threads)
            grid.append(f"cdiv({extent}, {threads})" if threads != "1" else extent)
        if block == ["1"]:
            block = [free]  # a block for each
        return [f"grid = {_list(grid)}", f"block = {_list(block)}", *self._shared(block)]

    def _width(self) -> str | None:
        """Threads per block that the code itself counts on: a stride, or the extent of a shared array."""
        text = self.code.text
        steps = re.findall(r"\bfor\s*\([^;]*=\s*(?:threadIdx\.x|(\w+))\s*;[^;]*;\s*\w+\s*\+=\s*(\w+)\s*\)", text)
        strides = [s for name, s in steps if not name or self.code.expand(name).strip("()") == "threadIdx.x"]
        for name in (*strides, *re.findall(r"__shared__\s+\w+\s+\w+\s*\[\s*(\w+)\s*\]\s*[;,]", text)):
            width = self.number(name)
            if width in self.names or (width.isdigit() and int(width) <= MAX_THREADS):
                return width
        return None

    @cached_property
    def block(self) -> list[str]:
        """Threads by axis of the derived launch."""
        assert self.cover is not None
        named = next((m.name for m in self.macros if re.search(r"block|threads", m.name, re.I)), None)
        threads = max(256, -(-self.cover.least // 32) * 32)
        bound = self._bound()
        free = str(threads if bound is None else min(bound, MAX_THREADS))
        return self.cover.block(named or free)

    def _bound(self) -> int | None:
        text = self.number(self.kernel.launch_bounds[0]) if self.kernel.launch_bounds else ""
        return int(text) if text.isdigit() else None

    @cached_property
    def extents(self) -> tuple[dict[str, Polynomial], dict[str, Polynomial]]:
        """(grid, block) by axis, as far as they are known."""
        if self.site is not None:
            grid, block = ([e.text for e in part] for part in self.site[1:3])
        elif self.cover is not None:
            grid = self.cover.grid(self.block)
            block = [t if self.cover.threads.get(a) else "" for a, t in zip("xyz", self.block, strict=False)]
        else:
            return {}, {}
        known = []
        for part in (grid, block):
            found = dict(zip("xyz", part, strict=False))
            known.append({a: p for a, t in found.items() if (p := polynomial(t)) is not None})
        return known[0], known[1]

    def where(self) -> list[str]:
        """What the file's launch asks of sizes: widths within CUDA's limit, and to be divided without a rest."""
        if self.site is None:
            return []
        texts = [e.text for e in self.site[2]]
        named = [t for t in texts if set(re.findall(r"[A-Za-z_]\w*", t)) & set(self.sizes)]
        found = [f"{' * '.join(f'({t})' if ' ' in t else t for t in texts)} <= {MAX_THREADS}"] if named else []
        if self.cover is None:
            values = [polynomial(e.text) for e in self.site[1]]
            atoms = sorted({a for v in values if v is not None for a in v.atoms})
            parts = [re.fullmatch(r"quotient\(1 (\w+), (?:1 )?(\w+)\)", a) for a in atoms]
            found += [f"{m[1]} % {m[2]} == 0" for m in parts if m is not None and m[1] in self.sizes]
        return found

    def _covers(self, site: SiteLaunch, cover: Cover) -> bool:
        """Whether the file's launch reaches every element at sizes that no author chose."""
        _, grid, block, _ = site
        tunables: dict[str, Number] = {m.name: int(m.value) for m in self.macros}
        for base in _TRIED:
            scope = tunables | {s: base + 3 * i for i, s in enumerate(self.sizes)}
            try:
                widths = [str(e.evaluate_int(scope)) for e in block]
                blocks = [e.evaluate_int(scope) for e in grid] + [1, 1]
                for axis, count in zip("xyz", blocks, strict=False):
                    if axis in cover.axes and f"gridDim.{axis}" not in self.code.text:
                        width = Expression.parse(cover.width(axis, widths)).evaluate_int(scope)
                        if count * width < Expression.parse(cover.axes[axis].extent).evaluate_int(scope):
                            return False
            except ExpressionError:
                continue
        return True

    def constraint(self, text: str) -> str:
        """A constraint with the constants in it as the block can say them."""
        return re.sub(r"\b[A-Za-z_]\w*", lambda m: self.number(m.group()), text)

    def number(self, name: str) -> str:
        """A width as the block can say it: tunables by their name, other constants by their value."""
        if name in (m.name for m in self.macros):
            return name
        local = {n: v for n, v in self.code.locals.items() if v.isdigit()}
        return (local | dict(self.constants)).get(name, name).strip()

    def _shared(self, block: list[str] | None) -> list[str]:
        """Dynamic shared memory, where the kernel has any: an element for each thread where it is indexed so."""
        dynamic = re.search(
            r"\bextern\s+__shared__\s+(?:__align__\s*\(\d+\)\s*)?((?:unsigned\s+)?\w+)\s+(\w+)\s*\[\s*\]",
            self.code.text,
        )
        if dynamic is None:
            return [f'shared = "{gaps.SHARED}"'] if "extern" in self.code.text else []
        if block is None or not self._is_by_thread(dynamic[2]):
            return [f'shared = "{gaps.SHARED}"']
        return [f'shared = "{" * ".join(block)} * {_BYTES.get(dynamic[1].split()[-1], 4)}"']

    def _is_by_thread(self, array: str) -> bool:
        found = [a for a in accesses(self.code.text, array) if a.indices[0]]
        uses = len(re.findall(rf"\b{array}\b", self.code.text)) - 1
        own = r"1 threadIdx\.x(?: \+ 1 \w+)?|1 \w+ \+ 1 threadIdx\.x|0|1 quotient\(1 threadIdx\.x, 32\)"
        indices = [str(self.code.index(a.indices[0])) for a in found]
        return bool(found) and uses == len(found) and all(re.fullmatch(own, i) for i in indices)


def _list(extents: list[str]) -> str:
    return _written(extents[0]) if len(extents) == 1 else f"[{', '.join(map(_written, extents))}]"


def _written(extent: str) -> str:
    return extent if extent.isdigit() else f'"{extent}"'
