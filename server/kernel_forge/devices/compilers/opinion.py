"""What a CUDA compiler is asked, and what it answers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernel_forge.devices.compilers.messages import UserFile, parse_messages
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompilerMessage

_NO_HEADER = re.compile(r"cannot open source file|No such file or directory")


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The user's files without host-only code.

    Attributes:
        files: file name -> text, the main file first; they include each other by these names.
        sources: name of a file in messages -> the user's file.
        dropped: names of headers that need not exist and are then empty.
    """

    files: Mapping[str, str]
    sources: Mapping[str, UserFile]
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Opinion:
    """``inconclusive`` says why the compiler could not judge, None where it could.

    ``repeatable`` is False where another attempt may end otherwise.
    """

    accepted: bool
    messages: tuple[CompilerMessage, ...]
    inconclusive: str | None = None
    repeatable: bool = True


class Running(Protocol):
    """A compilation under way."""

    def result(self) -> Opinion:
        """Wait for the end, at most until the time limit."""
        ...

    def close(self) -> None:
        """End the compilation if it still runs."""
        ...


class FrontEnd(Protocol):
    """A CUDA compiler. ``identity`` changes whenever its opinion may."""

    name: str
    identity: str

    def start(self, request: CompileRequest, code: DeviceCode) -> Running:
        """Begin to compile ``code``, which comes from ``request``."""
        ...


def parent_folder(path: str) -> str:
    """The absolute folder of a file: for includes whose names only the preprocessor can tell."""
    return str(Path(path).absolute().parent)


def opinion_of(log: str, accepted: bool, sources: Mapping[str, UserFile], name: str) -> Opinion:
    """The opinion that a compiler's output stands for."""
    messages = tuple(m for m in parse_messages(log, sources, name) if m.location is not None)
    errors = [m for m in messages if m.severity == "error"]
    if accepted:
        return Opinion(True, messages)
    missing = next((m for m in errors if _NO_HEADER.search(m.message)), None)
    if missing is not None:
        return Opinion(False, messages, missing.message)
    if not errors:  # it is about NVIDIA's or the C library's headers, not about the kernel
        reason = next(
            (line for line in log.splitlines() if re.search(r"\berror\b", line)), "it failed without a message"
        )
        return Opinion(False, (), reason.strip()[:300])
    return Opinion(False, messages)
