"""What ``FILE[:KERNEL]`` means."""

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


def find_targets(texts: list[str]) -> list[Target]:
    """The files named by ``texts``; a folder stands for the CUDA files in it that have specs.

    Raises:
        UsageError: no such file, nothing to verify in a folder, or a text that cannot be read.
    """
    found: list[Target] = []
    for text in texts:
        path, kernel = _split(text)
        if path.is_dir():
            inside = [_read(p, None) for p in sorted(path.rglob("*")) if p.suffix in SUFFIXES and p.is_file()]
            with_specs = [t for t in inside if "/// kernel-forge" in t.text or t.sidecar is not None]
            if not with_specs:
                raise UsageError(f"{path}: no .cu or .cuh file with a spec block in this folder")
            found.extend(with_specs)
        else:
            found.append(_read(path, kernel))
    return found


def _split(text: str) -> tuple[Path, str | None]:
    """``C:\\x.cu:k`` has its kernel after the last colon; a drive letter is no file."""
    if Path(text).exists():
        return Path(text).resolve(), None
    head, colon, kernel = text.rpartition(":")
    if colon and len(head) > 1 and kernel and "/" not in kernel and "\\" not in kernel:
        if Path(head).exists():
            return Path(head).resolve(), kernel
        raise UsageError(f"{head}: no such file")
    raise UsageError(f"{text}: no such file")


def _read(path: Path, kernel: str | None) -> Target:
    beside = path.with_suffix(".forge.toml")
    sidecar = (str(beside), read_text(beside)) if beside.is_file() else None
    return Target(path, read_text(path), sidecar, kernel)


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        SourceError: it is not readable, too large, or no text.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise SourceError(f"{path}: {size} bytes exceed the limit of {MAX_BYTES >> 20} MiB for one source file")
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8 text (byte {error.start}); open a CUDA C++ source instead") from None
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from None
