"""What a process of ours asks of Linux about its relatives, so that none of them is left over.

Does nothing on other systems. Linux takes the *thread* that started a process for its parent: who starts one does so
from a thread that lives as long as the process shall, or waits for its end in that thread.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def end_with_parent() -> None:
    """Have this process killed when its parent ends, however that happens."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that our owner can find it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
