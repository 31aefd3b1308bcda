"""Time and memory limits for what the user's Python does: a reference that asks for too much is its own error.

The limits hold in the main thread, where signals arrive, and for code that returns to Python now and then. A single
call into C that never returns is ended by whoever owns the job's process.
"""

import contextlib
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.text import Location

TIME_LIMIT = 30.0
MEMORY_LIMIT = 4 << 30
MESSAGE_LIMIT = 600
_PAGE = resource.getpagesize()
_AGAIN, _SOON = 0.5, 1e-3


class ReferenceFailed(UsageError):
    """The reference cannot be evaluated: its own fault, never a verdict about the kernel."""

    def __init__(self, message: str, location: Location | None) -> None:
        super().__init__(printable(message))
        self.location = location


class OutOfTime(ReferenceFailed):
    """The time of the whole verification is over: nobody's fault."""


class Expired(BaseException):
    """The time is over; no ``except Exception`` in the user's code stops it."""


@contextmanager
def limits(
    seconds: float, location: Location | None, what: str = "the reference", memory: int = MEMORY_LIMIT
) -> Iterator[None]:
    """Raise ReferenceFailed when the block takes longer, or asks for more than ``memory`` further bytes."""
    try:
        with _memory_limit(memory), _time_limit(seconds):
            yield
    except Expired:
        raise ReferenceFailed(f"{what} did not end within {seconds:g} s", location) from None
    except MemoryError:
        raise ReferenceFailed(too_much(what, memory), location) from None


def too_much(what: str, memory: int = MEMORY_LIMIT) -> str:
    """What to say of a block that asked for too much memory."""
    return f"{what} needs more than {memory / 2**30:.3g} GiB of memory"


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise Expired

    outer, _ = signal.getitimer(signal.ITIMER_REAL)  # seconds that a limit around this one has left, 0 without one
    began = time.monotonic()
    previous = signal.signal(signal.SIGALRM, expire)
    # Again and again: one exception may be lost in a destructor or caught by a bare ``except``.
    signal.setitimer(signal.ITIMER_REAL, min(seconds, outer) if outer else seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        if outer:
            signal.setitimer(signal.ITIMER_REAL, max(outer - (time.monotonic() - began), _SOON), _AGAIN)


@contextmanager
def _memory_limit(memory: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE
    except OSError:  # a system without this file
        yield
        return
    wanted = used + memory
    bounds = [b for b in (soft, hard) if b != resource.RLIM_INFINITY]
    with contextlib.suppress(OSError, ValueError):  # a system without this limit
        resource.setrlimit(resource.RLIMIT_AS, (min([wanted, *bounds]), hard))
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def printable(text: str) -> str:
    """``text`` without what a terminal or a stream would trip over, and cut where it is endless."""
    if len(text) > MESSAGE_LIMIT:
        text = f"{text[:MESSAGE_LIMIT]}..."
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
