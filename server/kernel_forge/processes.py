"""What a process of ours asks of Linux about its relatives, so that none of them is left over.

Does nothing on other systems. Linux takes the *thread* that started a process for its parent: who starts one does so
from a thread that lives as long as the process shall, or waits for its end in that thread.
"""

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_NICENESS = 10


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
