"""What a process of ours asks of Linux about its relatives, so that none of them is left over.

Does nothing on other systems. Linux takes the *thread* that started a process for its parent: who starts one does so
from a thread that lives as long as the process shall, or waits for its end in that thread.
"""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_NICENESS = 10
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_KEPT, _MOST_KEPT = 1 << 30, (1 << 31) - 1
_USUAL = 128 << 10
"""Both thresholds where nobody sets them (bytes)."""


def end_with_parent() -> None:
    """Have this process killed when its parent ends, however that happens."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def give_way() -> None:
    """Let the processes that measure and answer have the CPUs first: this one compiles ahead of them."""
    os.nice(_NICENESS)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that our owner can find it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_after(seconds: float) -> None:
    """Have this process killed when ``seconds`` have passed, even where it never comes back from a library; 0 never.

    The signal keeps its default action, so it needs neither the interpreter nor its lock.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


@contextlib.contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Let the C library keep the memory of freed arrays for the next ones, and give it back at the end.

    It gives large blocks back at once otherwise, and the system clears each page of the next anew: with arrays of tens
    of megabytes this takes as long as the arithmetic. See mallopt(3).
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "mallopt"):  # another C library than GNU's
        yield
        return
    library.mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
    library.mallopt(_M_TRIM_THRESHOLD, _MOST_KEPT)
    try:
        yield
    finally:
        library.mallopt(_M_MMAP_THRESHOLD, _USUAL)
        library.mallopt(_M_TRIM_THRESHOLD, _USUAL)
        library.malloc_trim(0)


def descendants(pid: int) -> list[int]:
    """The processes below ``pid``, those in sessions of their own included (workers adopt orphans)."""
    if sys.platform != "linux":
        return []
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int(
                    (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
                )
                children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.extend(below)
        waiting.extend(below)
    return found
