"""Who decides whether code is valid CUDA: NVIDIA's front end where there is one, else the host compiler.

The host compiler knows C++, not CUDA: what it refuses may be a CUDA feature that the emulator lacks, and what
it accepts may not be CUDA. NVRTC runs beside it, in a process of its own, and has the last word.
"""

import re
from collections.abc import Mapping, Sequence
from types import TracebackType

from kernel_forge.devices.compilers.front_end import Opinion, Running, find_front_end
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, Unavailable
from kernel_forge.domain.text import Location, Position, Range

# Names a CUDA file can use that the emulator does not have. With no front end to ask, a message about one of
# these is taken as "not emulated" rather than "not valid".
_CUDA_FEATURE = re.compile(
    r"\b(wmma|nvcuda|thrust|cub|cuda|curand\w*|cublas\w*|cudnn\w*|cute|cutlass|tex\w*|surf\w*|__nv_fp8\w*|cuda\w+|"
    r"__\w+|barrier|pipeline|atomic\w+|experimental)\b"
)
Dropped = Sequence[tuple[str, int, str]]


class Judge:
    """Asks the front end found once, at construction."""

    def __init__(self) -> None:
        self._front_end = find_front_end()

    @property
    def description(self) -> str:
        """What judges, for a person."""
        return self._front_end.name if self._front_end else "none (the host compiler's word counts)"

    def consider(
        self, request: CompileRequest, texts: Mapping[str, str], headers: Mapping[str, str], dropped: tuple[str, ...]
    ) -> "Consideration":
        """Start to compile with the front end; use as a context manager around the host's compilation.

        ``texts`` are the user's files by path with host-only code blanked, the main one first; ``headers`` maps
        names as included to paths among them; ``dropped`` are headers to take as empty.
        """
        running = None if self._front_end is None else self._front_end.start(request, texts, headers, dropped)
        return Consideration(running, texts)


_HOST_CALL = re.compile(
    r"(?<![\w.>])(?:::|std::)?(fopen|freopen|fdopen|open|creat|system|popen|fork|vfork|exec[lv]p?e?|socket|unlink|remove|"
    r"rename|kill|dlopen|mmap|syscall|signal|raise|abort|exit|_exit|getenv|setenv|pthread_create)\s*\("
)


def _host_calls(texts: Mapping[str, str]) -> tuple[CompilerMessage, ...]:
    found = []
    for path, text in texts.items():
        code = re.sub(
            r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S
        )
        for match in _HOST_CALL.finditer(code):
            line = code.count("\n", 0, match.start())
            column = match.start() - (code.rfind("\n", 0, match.start()) + 1)
            place = Range(Position(line, column), Position(line, column + len(match.group(1))))
            message = f"{match.group(1)} cannot be called in device code"
            found.append(CompilerMessage("error", message, Location(path, place), "Kernel Forge"))
    return tuple(found)


class Consideration:
    """A front end's compilation under way."""

    def __init__(self, running: Running | None, texts: Mapping[str, str]) -> None:
        self._running = running
        self._texts = texts

    def __enter__(self) -> "Consideration":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is not None:
            self._running.close()

    def _opinion(self) -> Opinion | None:
        return None if self._running is None else self._running.result()

    def on_success(self) -> tuple[CompilerMessage, ...] | CompileFailed:
        """The host compiler accepted: the front end may still refuse; else its warnings.

        Without the front end's word, calls that only a host has are refused here: on a GPU they do not exist, and in
        the emulator they would really be made.
        """
        opinion = self._opinion()
        if opinion is None or not opinion.conclusive:
            return CompileFailed(calls) if (calls := _host_calls(self._texts)) else ()
        if not opinion.accepted:
            return CompileFailed(opinion.messages)
        return opinion.messages

    def on_refusal(self, messages: tuple[CompilerMessage, ...], dropped: Dropped) -> CompileFailed | Unavailable:
        """The host compiler refused: is it the user's mistake, or something the emulator lacks?"""
        opinion = self._opinion()
        if opinion is not None and opinion.conclusive and not opinion.accepted:
            return CompileFailed(opinion.messages)
        first = next((m for m in messages if m.severity == "error"), messages[0])
        if opinion is not None and opinion.conclusive:
            return Unavailable(f"valid CUDA, but not emulated: {first.message}", first.location)
        if dropped and _CUDA_FEATURE.search(first.message):
            path, line, header = dropped[0]
            where = first.location or Location(path, Range.of_line(line))
            return Unavailable(f"<{header}> is not emulated: {first.message}", where)
        if first.location is None or _CUDA_FEATURE.search(first.message):
            return Unavailable(f"not emulated: {first.message}", first.location)
        return CompileFailed(messages)
