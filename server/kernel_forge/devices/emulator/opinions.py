"""The opinion of a CUDA compiler beside the artifact it is about, so that the next verification need not ask again."""

import json
import os
import tempfile
from pathlib import Path

from kernel_forge.devices.compilers.message_rows import message_of, message_row
from kernel_forge.domain.outcome import CompilerMessage


def remember(folder: Path, judge: str, messages: tuple[CompilerMessage, ...]) -> None:
    """Store what ``judge`` (its identity) said about code that it accepted."""
    rows = [message_row(m) for m in messages]
    try:
        descriptor, private = tempfile.mkstemp(prefix=".opinion-", dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(rows, file)
        Path(private).rename(_path(folder, judge))
    except OSError:
        return  # evicted meanwhile, or the disk is full: the judge is asked again next time


def recall(folder: Path, judge: str) -> tuple[CompilerMessage, ...] | None:
    """What ``judge`` said when it accepted; None where it has not been asked."""
    try:
        rows = json.loads(_path(folder, judge).read_text(encoding="utf-8"))
        return tuple(message_of(row) for row in rows)
    except (OSError, ValueError, IndexError, TypeError):
        return None


def _path(folder: Path, judge: str) -> Path:
    return folder / f"opinion-{judge}.json"
