"""The worker process: does one job after the other and tells about it on its standard output."""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import BinaryIO

from kernel_forge.domain.errors import DeviceUnavailable, KernelForgeError, UsageError
from kernel_forge.domain.event import Progress
from kernel_forge.jobs.messages import HELLO, Done, Failed, Job, Stepped, from_line, to_line
from kernel_forge.jobs.verify import verify_file
from kernel_forge.ports import Device

MEMORY_LIMIT = 8 << 30
PROGRESS_INTERVAL = 0.05
_PR_SET_PDEATHSIG = 1


def serve(find_device: Callable[[str], Device]) -> None:
    """Serve jobs from standard input until it ends.

    ``find_device`` gives a device by name and raises DeviceUnavailable for an unknown one.
    """
    output = _take_stdout()
    _die_with_parent()
    _limit_memory()
    output.write(to_line(HELLO))
    output.flush()
    for line in sys.stdin.buffer:
        message = from_line(line)
        if isinstance(message, Job):
            _do(message, find_device, output)


def _do(job: Job, find_device: Callable[[str], Device], output: BinaryIO) -> None:
    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_INTERVAL:
            last = now
            output.write(to_line(Stepped(job.number, progress)))
            output.flush()

    try:
        device = find_device(job.request.device)
        line = to_line(Done(job.number, verify_file(job.request, device, report)))
    except DeviceUnavailable as error:
        line = to_line(Failed(job.number, "unavailable", str(error)))
    except UsageError as error:
        line = to_line(Failed(job.number, "usage", str(error)))
    except MemoryError:
        message = f"the job needs more than {MEMORY_LIMIT >> 30} GiB; use smaller cases"
        line = to_line(Failed(job.number, "usage", message))
    except KernelForgeError as error:
        line = to_line(Failed(job.number, "internal", str(error)))
    except Exception:  # our bug: the owner gets the trace and the worker goes on
        line = to_line(Failed(job.number, "internal", traceback.format_exc()))
    output.write(line)
    output.flush()


def _limit_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(hard, MEMORY_LIMIT)
    with contextlib.suppress(OSError, ValueError):  # a system without this limit
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _take_stdout() -> BinaryIO:
    """The real standard output, and stderr in its place: a print in a user's reference must not end up between
    our messages."""
    real = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return real


def _die_with_parent() -> None:
    """Ask Linux to kill this process when its parent ends, however that happens."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
