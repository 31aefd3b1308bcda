"""What ``FILE[:KERNEL]`` means."""

import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernel_forge.domain.errors import SourceError, UsageError

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
        found.extend(_inside(path, warn) if path.is_dir() else [_read(path, kernel)])
    return found


def _inside(folder: Path, warn: Callable[[str], None]) -> list[Target]:
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        try:
            target = _read(path, None)
        except SourceError as error:
            warn(f"{error}; left out")
            continue
        if "/// kernel-forge" in target.text or target.sidecar is not None:
            found.append(target)
    if not found:
        raise UsageError(f"{folder}: no .cu or .cuh file with a spec block in this folder")
    return found


def _split(text: str) -> tuple[Path, str | None]:
    """The kernel follows the first colon after an existing path; ``C:`` of ``C:\\x.cu`` is a drive, not a path."""
    if Path(text).exists():
        return Path(text).resolve(), None
    at = text.find(":", 2)
    while at != -1:
        head, kernel = text[:at], text[at + 1 :]
        if kernel and Path(head).exists():
            if Path(head).is_dir():
                raise UsageError(f"{head} is a folder; name the kernel's file: FILE:{kernel}")
            return Path(head).resolve(), kernel
        at = text.find(":", at + 1)
    head, colon, kernel = text.partition(":")
    raise UsageError(f"{head if len(head) > 1 and colon else text}: no such file")


def _read(path: Path, kernel: str | None) -> Target:
    beside = path.with_suffix(".forge.toml")
    sidecar = (str(beside), read_text(beside)) if beside.is_file() else None
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
