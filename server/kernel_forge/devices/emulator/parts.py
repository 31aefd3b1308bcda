"""Prebuilt files on disk with a record of what they must be, so that damage (a full disk, a crash) is noticed."""

import contextlib
import hashlib
from pathlib import Path


def is_intact(part: Path) -> bool:
    """Whether ``part`` is there, with the size that it had when it was built: cheap, to be asked before each use."""
    try:
        return part.stat().st_size == int(_record(part).read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return False


def publish(private: Path, part: Path) -> None:
    """Rename a file just built to ``part``; its record comes first, so that nobody sees one without the other.

    Raises:
        OSError: the disk is full, say.
    """
    record = private.with_name(private.name + ".record")
    try:
        record.write_text(f"{private.stat().st_size} {_digest(private)}\n", encoding="ascii")
        record.rename(_record(part))
        private.rename(part)
    finally:
        with contextlib.suppress(OSError):
            record.unlink(missing_ok=True)


def remove_damaged(folder: Path) -> bool:
    """Read all parts below ``folder`` and remove those that have changed; whether there was one. Takes a while."""
    found = False
    for record in folder.rglob("*.record"):
        part = record.with_suffix("")
        with contextlib.suppress(OSError):
            if part.exists() and record.read_text(encoding="ascii").split()[1:] != [_digest(part)]:
                part.unlink()
                found = True
    return found


def _record(part: Path) -> Path:
    return part.with_name(part.name + ".record")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
