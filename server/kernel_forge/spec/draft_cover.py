"""How many blocks of how many threads cover what a body's indexing asks for, where its author's plan can be told.

The plan is ``index = width * blockIdx.x + ...`` with ``index < extent``: that takes ``cdiv(extent, width)`` blocks.
What does not follow such a plan gives None, and the draft a gap.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernel_forge.spec.draft_guards import Guards
from kernel_forge.spec.draft_shapes import text_of
from kernel_forge.spec.index_polynomial import Polynomial
from kernel_forge.spec.kernel_code import KernelCode, accesses

WARP = 32
MAX_THREADS = 1024


@dataclass(frozen=True)
class Axis:
    """Blocks along one axis of the grid: as many as ``extent`` needs at ``width`` elements a block.

    ``width`` is in the format's arithmetic, with ``blockDim.x`` and the like for the threads of a block.
    """

    extent: str
    width: str


@dataclass
class Cover:
    """``axes`` of the grid; ``threads`` by axis of the block, where the code fixes them; ``least`` that it needs."""

    axes: dict[str, Axis] = field(default_factory=dict)
    threads: dict[str, str] = field(default_factory=dict)
    least: int = 1

    def block(self, free: str) -> list[str]:
        """Threads by axis; ``free`` is the choice where one axis alone is open."""
        if not self.threads:
            return ["1"]  # nothing tells its threads apart
        used = max("xyz".index(a) for a in self.threads)
        open_axes = [a for a in "xyz"[: used + 1] if not self.threads.get(a)]
        choices = {1: [free], 2: ["16", "16"], 3: ["8", "8", "4"]}.get(len(open_axes), [])
        if len(open_axes) == 1 and used > 0:
            choices = ["8" if any(self.threads.get(a) == str(WARP) for a in "xyz") else "4"]
        chosen = dict(zip(open_axes, choices, strict=False))
        return [self.threads.get(a) or chosen.get(a, "1") for a in "xyz"[: used + 1]]

    def grid(self, block: list[str]) -> list[str]:
        """Blocks by axis for those threads."""
        last = max(("xyz".index(a) for a in self.axes), default=0)
        return [self._blocks(a, block) for a in "xyz"[: last + 1]]

    def _blocks(self, name: str, block: list[str]) -> str:
        axis = self.axes.get(name)
        if axis is None:
            return "1"
        width = self.width(name, block)
        blocks = axis.extent if width == "1" else f"cdiv({axis.extent}, {width})"
        return f"max(1, {blocks})" if "/" in axis.extent else blocks  # a quotient can be zero where no size is

    def width(self, name: str, block: list[str]) -> str:
        """Elements that a block of those threads does along an axis of the grid."""
        text = self.axes[name].width
        for a, threads in zip("xyz", [*block, "1", "1"][:3], strict=True):
            text = text.replace(f"blockDim.{a}", threads)
        parts = re.fullmatch(r"(\d+) ([*/]) (\d+)", text)
        if parts is None:
            return text
        one, two = int(parts[1]), int(parts[3])
        return str(one * two if parts[2] == "*" else one // two)


def read_cover(
    code: KernelCode, guards: Guards, names: frozenset[str], rows: str | None, launch_bound: int | None
) -> Cover | None:
    """The plan of a body; ``rows`` is the extent of a ``blockIdx.x`` that no condition limits, if that is known."""
    return _CoverReader(code, guards, names, rows, launch_bound).read()


@dataclass
class _CoverReader:
    code: KernelCode
    guards: Guards
    names: frozenset[str]
    rows: str | None
    launch_bound: int | None

    def read(self) -> Cover | None:
        text = self.code.text
        if not self.code.is_readable or re.search(r"\bthis_(?:thread_block|grid)\b|\bgrid\.sync", text):
            return None
        cover = Cover()
        for axis in "xyz":
            if re.search(rf"\b(?:threadIdx|blockDim)\.{axis}\b", text):
                cover.threads[axis] = ""
        for axis in "xyz":
            if f"blockIdx.{axis}" in text and not self._cover_axis(axis, cover):
                return None
        if not self._threads_step(cover) or not self._threads_share(cover) or not self._threads_are_enough(cover):
            return None
        return cover

    def _cover_axis(self, axis: str, cover: Cover) -> bool:
        atom = f"blockIdx.{axis}"
        extents: list[Polynomial] = []
        widths = set()
        for index, limit in self._limits(atom):
            width, inside = index.split(atom)
            if any("Idx" in a for a in limit.atoms):
                continue  # compared with another index: no extent
            if text_of(limit) is None or not self._is_known(limit):
                return False
            wide = self._width(width, inside, cover)
            if wide is None:
                return False
            widths.add(wide)
            _add_extent(extents, limit)
        texts = [t for e in extents if (t := text_of(e)) is not None]
        if not texts and self.rows is not None and axis == "x" and self._stands_alone(atom):
            widths.add("1")
            texts = [self.rows]
        if len(widths) != 1 or not 1 <= len(texts) <= 2:
            return False
        extent = texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"
        cover.axes[axis] = Axis(extent, widths.pop())
        return True

    def _limits(self, atom: str) -> Iterator[tuple[Polynomial, Polynomial]]:
        """(index, limit) for every limited index made of that block number, and loop that begins at one."""
        for guard in self.guards.all:
            is_counter = len(guard.index.terms) == 1 and len(guard.index.terms[0][0]) == 1
            index = guard.begin if guard.begin is not None and is_counter else guard.index
            blocks = {a for a in index.atoms if a.startswith("blockIdx.")}
            if blocks == {atom}:
                yield index, guard.limit

    def _is_known(self, limit: Polynomial) -> bool:
        return {n for a in limit.atoms for n in re.findall(r"[A-Za-z_]\w*", a)} - {"quotient"} <= self.names

    def _stands_alone(self, atom: str) -> bool:
        """Whether a block's number is only used as it is: ``row = blockIdx.x``."""
        uses = re.findall(rf"[^;=(\[]*{re.escape(atom)}[^;)\]]*", self.code.text)
        return all(not re.search(rf"{re.escape(atom)}\s*\*\s*(?:blockDim|\d|[A-Z_]+\b)", use) for use in uses)

    def _width(self, width: Polynomial, inside: Polynomial, cover: Cover) -> str | None:
        """Elements a block does, by what its number is multiplied with; notes the threads that this takes."""
        threads = sorted(a for a in inside.atoms if "threadIdx" in a)
        if width.constant == 1:
            return "1" if not threads else None
        text = str(width)
        whole = re.fullmatch(r"(\d+) blockDim\.([xyz])", text)
        if whole is not None:
            if not threads:
                return None
            return f"blockDim.{whole[2]}" if whole[1] == "1" else f"{whole[1]} * blockDim.{whole[2]}"
        if re.fullmatch(rf"1 quotient\(1 blockDim\.x, {WARP}\)", text):
            return f"blockDim.x / {WARP}"
        fixed = text_of(width)
        if fixed is None or not self._is_known(width) or not (fixed.isdigit() or fixed.isidentifier()):
            return None
        if threads == [f"quotient(1 threadIdx.x, {WARP})"]:  # a row for each warp
            warps = str(WARP * int(fixed)) if fixed.isdigit() else f"{WARP} * {fixed}"
            if cover.threads.get("x") not in ("", None, warps):
                return None
            cover.threads["x"] = warps
            return fixed
        plain = [a for a in threads if re.fullmatch(r"threadIdx\.[xyz]", a)]
        if len(threads) != 1 or plain != threads:
            return fixed if not threads else None
        factor = next((f for m, f in inside.terms if m == (threads[0],)), None)
        if factor is None:
            return None
        steps = [loop for loop in self.code.loops if loop.name in inside.atoms]
        if steps:
            wanted = _step(self.code, steps[0].step)
        elif fixed.isdigit() and int(fixed) % factor == 0:
            wanted = str(int(fixed) // factor)
        else:
            wanted = fixed if factor == 1 else None
        if wanted is None:
            return None
        return fixed if self._fix(cover, threads[0][-1], wanted) else None

    def _fix(self, cover: Cover, axis: str, threads: str) -> bool:
        """Note that an axis of the block has that many threads; False where it has another number already."""
        if threads == f"blockDim.{axis}":
            return True
        if not (threads.isdigit() or threads in self.names):
            return False
        if cover.threads.get(axis) not in ("", None, threads):
            return False
        cover.threads[axis] = threads
        return True

    def _threads_step(self, cover: Cover) -> bool:
        """Loops over ``threadIdx.x, threadIdx.x + step, ...`` need blocks of that many threads."""
        for loop in self.code.loops:
            start = str(self.code.index(loop.start) or "")
            match = re.fullmatch(r"(\d+) threadIdx\.([xyz])", start)
            step = _step(self.code, loop.step)
            if match is None:
                continue
            if step is None or not (step.startswith("blockDim") or match[1] == "1"):
                return False
            if not step.startswith("blockDim") and not self._fix(cover, match[2], step):
                return False
        return True

    def _threads_share(self, cover: Cover) -> bool:
        """Shared arrays with an element for each thread say how many threads there are."""
        for name, extents in shared_arrays(self.code.text):
            for access in accesses(self.code.text, name):
                for index, extent in zip(access.indices, extents, strict=False):
                    match = re.fullmatch(r"1 threadIdx\.([xyz])", str(self.code.index(index) or ""))
                    is_open = match is not None and not cover.threads.get(match[1])
                    if is_open and match is not None and not self._is_limited(match[1], access.start):
                        wide = extent.isdigit() and int(extent) <= MAX_THREADS
                        if not (wide or extent in self.names) or not self._fix(cover, match[1], extent):
                            return False
        return True

    def _is_limited(self, axis: str, at: int) -> bool:
        return any(str(g.index) == f"1 threadIdx.{axis}" for g in self.guards.at(at))

    def _threads_are_enough(self, cover: Cover) -> bool:
        """``threadIdx.x < limit`` outside of loops needs that many threads."""
        for guard in self.guards.all:
            match = re.fullmatch(r"1 threadIdx\.([xyz])", str(guard.index))
            if match is None or guard.begin is not None:
                continue
            if guard.limit.constant is not None:
                cover.least = max(cover.least, guard.limit.constant if match[1] == "x" else 1)
            elif self._is_known(guard.limit) and not set(cover.threads.values()) & guard.limit.atoms:
                return False
        if cover.threads and not cover.axes and "blockIdx" in self.code.text:
            return False
        return cover.least <= MAX_THREADS


def _add_extent(extents: list[Polynomial], limit: Polynomial) -> None:
    """Add ``limit`` to the extents; of two that differ by a constant the larger stays."""
    for i, other in enumerate(extents):
        more = limit.plus(other, -1).constant
        if more is not None:
            extents[i] = limit if more > 0 else other
            return
    extents.append(limit)


def _step(code: KernelCode, text: str) -> str | None:
    """The step of a loop: a number, a name, or ``blockDim.x``."""
    match = re.fullmatch(r"\w+\s*\+=\s*(.+)", text.strip())
    step = code.index(match[1]) if match is not None else None
    if step is None:
        return None
    if re.fullmatch(r"1 blockDim\.[xyz]", str(step)):
        return str(step)[2:]
    return text_of(step)


def shared_arrays(text: str) -> Iterator[tuple[str, list[str]]]:
    """(name, extents) of every shared array of fixed extents."""
    for match in re.finditer(r"__shared__\s+(?:__align__\s*\(\d+\)\s*)?[\w\s]+?\b(\w+\s*\[[^;]*);", text):
        for name, extents in re.findall(r"(\w+)\s*((?:\[[^\]]+\]\s*)+)", match[1]):
            yield name, [e.strip() for e in re.findall(r"\[([^\]]*)\]", extents)]
