"""The worker process: does one job after the other and tells about it on its standard output."""

import contextlib
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from typing import BinaryIO

from kernel_forge.domain.errors import DeviceUnavailable, KernelForgeError, UsageError
from kernel_forge.domain.event import Progress
from kernel_forge.domain.text import Location
from kernel_forge.jobs.messages import (
    HELLO,
    Done,
    Entered,
    Failed,
    Job,
    Left,
    Message,
    Prepared,
    Stepped,
    Told,
    from_line,
    to_line,
)
from kernel_forge.jobs.requests import Circumstances, TimeRequest, VerifyRequest
from kernel_forge.jobs.time import time_file
from kernel_forge.jobs.verify import verify_file
from kernel_forge.ports import Device
from kernel_forge.processes import adopt_orphans, end_with_parent
from kernel_forge.verify.user_code import announce

MEMORY_LIMIT = 8 << 30
PROGRESS_INTERVAL = 0.05


def serve(find_device: Callable[[str], Device]) -> None:
    """Serve jobs from standard input until it ends.

    ``find_device`` gives a device by name and raises DeviceUnavailable for an unknown one.
    """
    commands, output = _take_stdin(), _take_stdout()
    end_with_parent()
    adopt_orphans()
    _limit_memory()
    sys.dont_write_bytecode = True  # nothing of ours belongs into the folders of the user's files
    _send(output, HELLO)
    for line in commands:
        message = from_line(line)
        if isinstance(message, Job):
            _do(message, find_device, output)


def _send(output: BinaryIO, message: Message) -> None:
    """Say ``message``, or end: without its owner, or once user code has closed the pipe, a worker serves nobody."""
    try:
        output.write(to_line(message))
        output.flush()
    except OSError:
        os._exit(1)


def _do(job: Job, find_device: Callable[[str], Device], output: BinaryIO) -> None:
    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_INTERVAL:
            last = now
            _send(output, Stepped(job.number, progress))

    def entered(what: str, location: Location | None) -> Callable[[], None]:
        _send(output, Entered(job.number, what, location))
        return lambda: _send(output, Left(job.number))

    def tell(circumstances: Circumstances) -> None:
        _send(output, Told(job.number, circumstances))

    announce.set(entered)
    end: Message
    try:
        device = find_device(job.request.device)
        request = job.request
        report(Progress(f"preparing {request.device}"))
        device.prepare()  # why it could not, the job says
        emulator = _emulator_beside(device, request, find_device)
        _send(output, Prepared(job.number))
        done = (
            time_file(request, device, report, tell)
            if isinstance(request, TimeRequest)
            else verify_file(request, device, report, emulator, tell)
        )
        end = Done(job.number, done)
    except DeviceUnavailable as error:
        end = Failed(job.number, "unavailable", str(error))
    except UsageError as error:
        end = Failed(job.number, "usage", str(error))
    except MemoryError:
        message = f"the job needs more than {MEMORY_LIMIT >> 30} GiB; use smaller cases"
        end = Failed(job.number, "usage", message)
    except KernelForgeError as error:
        end = Failed(job.number, "internal", str(error))
    except Exception:  # our bug: the owner gets the trace and the worker goes on
        end = Failed(job.number, "internal", traceback.format_exc())
    _send(output, end)


def _emulator_beside(
    device: Device, request: VerifyRequest | TimeRequest, find_device: Callable[[str], Device]
) -> Device | None:
    """The emulator, prepared, where ``request`` asks for sanitizers on a device that is not one itself."""
    if isinstance(request, TimeRequest) or not request.sanitize or device.info().has_misuse_checks:
        return None
    emulator = find_device("emulator")
    emulator.prepare()
    return emulator


def _limit_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(hard, MEMORY_LIMIT)
    with contextlib.suppress(OSError, ValueError):  # a system without this limit
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _take_stdin() -> BinaryIO:
    """The real standard input, and an empty one in its place: a user's reference must not read our commands."""
    real = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return real


def _take_stdout() -> BinaryIO:
    """The real standard output, and stderr in its place: a print in a user's reference must not end up between
    our messages."""
    real = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return real
