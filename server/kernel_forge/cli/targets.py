"""What ``FILE[:KERNEL]`` means."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_forge.domain.errors import SourceError, UsageError
from kernel_forge.domain.spec import BLOCK_MARKER

SUFFIXES = (".cu", ".cuh")
MAX_BYTES = 8 << 20


@dataclass(frozen=True)
class Target:
    """A file with its text, and the one kernel asked for (None for all)."""

    path: Path
    text: str
    sidecar: tuple[str, str] | None
    kernel: str | None


def find_targets(texts: list[str], warn: Callable[[str], None]) -> list[Target]:
    """The files named by ``texts``; a folder stands for the CUDA files in it that have specs.

    A file of a folder that cannot be read is told to ``warn`` and left out.

    Raises:
        UsageError: no such file, nothing to verify in a folder, or a named file that cannot be read.
    """
    found: list[Target] = []
    for text in texts:
        path, kernel = _split(text)
        found.extend(_inside(path, warn) if os.path.isdir(path) else [_read(path, kernel)])  # noqa: PTH112
    return found


def _inside(folder: Path, warn: Callable[[str], None]) -> list[Target]:
    found = []
    for path in sorted(_files(folder)):
        try:
            target = _read(path, None)
        except SourceError as error:
            warn(f"{error}; left out")
            continue
        if BLOCK_MARKER in target.text or target.sidecar is not None:
            found.append(target)
    if not found:
        raise UsageError(f"{folder}: no .cu or .cuh file with a spec block in this folder")
    return found


def _files(folder: Path) -> Iterator[Path]:
    """The CUDA files below ``folder``; what cannot be listed, or goes while we look, is passed over."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if path.suffix in SUFFIXES and os.path.isfile(path):  # noqa: PTH113 (it answers where Path raises)
                yield path


def _split(text: str) -> tuple[Path, str | None]:
    """The kernel follows the first colon after an existing path; ``C:`` of ``C:\\x.cu`` is a drive, not a path."""
    if not text:
        raise UsageError("an empty name: write FILE[:KERNEL], or a folder")
    if os.path.exists(text):  # noqa: PTH110 (False for a name too long, where Path raises)
        return Path(text).resolve(), None
    at = text.find(":", 2)
    while at != -1:
        head, kernel = text[:at], text[at + 1 :]
        if kernel and os.path.exists(head):  # noqa: PTH110
            if Path(head).is_dir():
                raise UsageError(f"{head} is a folder; name the kernel's file: FILE:{kernel}")
            return Path(head).resolve(), kernel
        at = text.find(":", at + 1)
    head, colon, kernel = text.partition(":")
    raise UsageError(f"{_short(head if len(head) > 1 and colon else text)}: no such file")


def _short(name: str) -> str:
    return name if len(name) <= 300 else f"{name[:300]}..."


def _read(path: Path, kernel: str | None) -> Target:
    beside = path.with_suffix(".forge.toml")
    sidecar = (str(beside), read_text(beside)) if os.path.isfile(beside) else None  # noqa: PTH113
    return Target(path, read_text(path), sidecar, kernel)


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        SourceError: it is not readable, no regular file, too large, or no text.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(f"{path}: not a regular file; open a CUDA C++ source instead")
        size = status.st_size
        if size > MAX_BYTES:
            raise SourceError(f"{path}: {size} bytes exceed the limit of {MAX_BYTES >> 20} MiB for one source file")
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8 text (byte {error.start}); open a CUDA C++ source instead") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
