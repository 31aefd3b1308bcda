"""Who decides whether code is valid CUDA: NVIDIA's compilers where there is one, else the host compiler.

The host compiler knows C++, not CUDA: what it refuses may be a CUDA feature that the emulator lacks, and what
it accepts may not be CUDA. NVRTC runs beside it, in a process of its own, and has the last word; where NVRTC is not
installed or cannot judge, nvcc has it.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from functools import cache
from types import TracebackType

from kernel_forge.devices.compilers.host_calls import host_calls
from kernel_forge.devices.compilers.nvcc import find_nvcc
from kernel_forge.devices.compilers.nvrtc import Nvrtc
from kernel_forge.devices.compilers.nvrtc_library import find_nvrtc
from kernel_forge.devices.compilers.opinion import DeviceCode, FrontEnd, Opinion, Running
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, Unavailable
from kernel_forge.domain.text import Location, Range

# Names a CUDA file can use that the emulator does not have. With no front end to ask, a message about one of
# these is taken as "not emulated" rather than "not valid".
_CUDA_FEATURE = re.compile(
    r"\b(wmma|nvcuda|thrust|cub|cuda|curand\w*|cublas\w*|cudnn\w*|cute|cutlass|tex\w*|surf\w*|__nv_fp8\w*|cuda\w+|"
    r"__\w+|barrier|pipeline|atomic\w+|experimental)\b"
)
Dropped = Sequence[tuple[str, int, str]]
_RULES = "1"  # raise it when the same compiler output is to be judged otherwise


@cache
def find_front_ends() -> tuple[FrontEnd, ...]:
    """NVRTC and nvcc, where installed, in the order they are asked; ``KERNEL_FORGE_NVRTC=0`` turns both off."""
    if os.environ.get("KERNEL_FORGE_NVRTC") == "0":
        return ()
    paths, nvcc = find_nvrtc(), find_nvcc()
    return (*(() if paths is None else (Nvrtc(paths),)), *(() if nvcc is None else (nvcc,)))


class Judge:
    """Asks the front ends, by default those that are installed. ``host_compiler`` names what judges without them."""

    def __init__(self, host_compiler: str, front_ends: tuple[FrontEnd, ...] | None = None) -> None:
        self.front_ends = find_front_ends() if front_ends is None else front_ends
        self.host_compiler = host_compiler
        parts = [_RULES, host_compiler, *(f.identity for f in self.front_ends)]
        self.identity = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]

    @property
    def description(self) -> str:
        """What judges, for a person."""
        names = " or ".join(f.name for f in self.front_ends)
        return names or "none (the host compiler's word counts)"

    def consider(self, request: CompileRequest, code: DeviceCode) -> "Consideration":
        """Start to compile with the front end; use as a context manager around the host's compilation."""
        return Consideration(self, request, code)


class Consideration:
    """A front end's compilation under way.

    Attributes:
        repeatable: whether the same code will be judged the same again; known after the verdict.
    """

    def __init__(self, judge: Judge, request: CompileRequest, code: DeviceCode) -> None:
        self.repeatable = True
        self._judge = judge
        self._request = request
        self._code = code
        self._running: Running | None = None
        self._waiting = list(judge.front_ends)
        self._notes: list[CompilerMessage] = []

    def __enter__(self) -> "Consideration":
        self._start_next()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is not None:
            self._running.close()

    def _start_next(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None
        if self._waiting:
            self._running = self._waiting[0].start(self._request, self._code)

    def _opinion(self, asked: int) -> Opinion | None:
        """The opinion of the first front end that has one, of at most ``asked``."""
        while self._running is not None and asked > 0:
            asked -= 1
            opinion = self._running.result()
            if opinion.inconclusive is None:
                return opinion
            self.repeatable = self.repeatable and opinion.repeatable
            name = self._waiting.pop(0).name
            next_judge = self._waiting[0].name if self._waiting else self._judge.host_compiler
            text = f"{name} could not judge this code, so {next_judge} did: {opinion.inconclusive}"
            self._notes.append(CompilerMessage("note", text, None, name))
            if asked > 0:
                self._start_next()
        return None

    def on_success(self) -> tuple[CompilerMessage, ...] | CompileFailed:
        """The host compiler accepted: the front end may still refuse; else its warnings, and notes on who judged.

        Without the front end's word, calls that only a host has are refused here: on a GPU they do not exist, and in
        the emulator they would really be made.
        """
        opinion = self._opinion(asked=len(self._waiting))
        if opinion is None:
            calls = host_calls(self._code.sources)
            return CompileFailed(calls) if calls else tuple(self._notes)
        if not opinion.accepted:
            return CompileFailed((*opinion.messages, *self._notes))
        return (*opinion.messages, *self._notes)

    def on_refusal(
        self, messages: tuple[CompilerMessage, ...], dropped: Dropped, lacking: Unavailable | None = None
    ) -> CompileFailed | Unavailable:
        """The host compiler refused: is it the user's mistake, or something the emulator lacks?

        ``lacking`` is what the emulator is known to lack, whatever the messages say.
        """
        # A library that is left out keeps NVRTC from judging; nvcc would need long to read it, for the same end.
        opinion = self._opinion(asked=1 if dropped else len(self._waiting))
        if opinion is not None and not opinion.accepted:
            return CompileFailed((*opinion.messages, *self._notes))
        if lacking is not None:
            return lacking
        first = next((m for m in messages if m.severity == "error"), messages[0])
        if opinion is not None:
            return Unavailable(f"valid CUDA, but not emulated: {first.message}", first.location)
        if dropped and _CUDA_FEATURE.search(first.message):
            path, line, header = dropped[0]
            where = first.location or Location(path, Range.of_line(line))
            return Unavailable(f"<{header}> is not emulated: {first.message}", where)
        if first.location is None or _CUDA_FEATURE.search(first.message):
            return Unavailable(f"not emulated: {first.message}", first.location)
        return CompileFailed((*messages, *self._notes))
