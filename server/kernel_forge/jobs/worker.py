"""The worker process: does one job after the other and tells about it on its standard output."""

import contextlib
import os
import queue
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import BinaryIO

from kernel_forge.domain.errors import DeviceUnavailable, KernelForgeError, UsageError
from kernel_forge.domain.event import Progress
from kernel_forge.domain.text import Location
from kernel_forge.jobs.messages import (
    HELLO,
    Done,
    Entered,
    Failed,
    Finish,
    Job,
    Left,
    Message,
    Prepared,
    Stepped,
    Told,
    from_line,
    to_line,
)
from kernel_forge.jobs.requests import Circumstances, JobReport, Request, TimeRequest, TuneRequest, VerifyRequest
from kernel_forge.jobs.time import time_file
from kernel_forge.jobs.verify import verify_file
from kernel_forge.ports import Device, FindLedger
from kernel_forge.processes import adopt_orphans, end_with_parent
from kernel_forge.verify.user_code import announce

MEMORY_LIMIT = 8 << 30
PROGRESS_INTERVAL = 0.05


def serve(find_device: Callable[[str], Device], find_ledger: FindLedger) -> None:
    """Serve jobs from standard input until it ends.

    ``find_device`` gives a device by name and raises DeviceUnavailable for an unknown one. ``find_ledger`` has the
    record that a search is written into while it runs.
    """
    commands, output = _take_stdin(), _take_stdout()
    end_with_parent()
    adopt_orphans()
    _limit_memory()
    sys.dont_write_bytecode = True  # nothing of ours belongs into the folders of the user's files
    _send(output, HELLO)
    inbox = _Inbox(commands)
    while (job := inbox.next_job()) is not None:
        _do(job, find_device, find_ledger, inbox.is_finishing, output)


class _Inbox:
    """What the owner says, read while a job runs."""

    def __init__(self, commands: BinaryIO) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._finishing = 0
        threading.Thread(target=self._read, args=(commands,), daemon=True).start()

    def _read(self, commands: BinaryIO) -> None:
        for line in commands:
            match from_line(line):
                case Job() as job:
                    self._jobs.put(job)
                case Finish(number=number):
                    self._finishing = number
        self._jobs.put(None)

    def next_job(self) -> Job | None:
        """Wait for one; None when there will be no more."""
        return self._jobs.get()

    def is_finishing(self, number: int) -> bool:
        """Whether job ``number`` was asked to come to its end."""
        return self._finishing >= number


def _send(output: BinaryIO, message: Message) -> None:
    """Say ``message``, or end: without its owner, or once user code has closed the pipe, a worker serves nobody."""
    try:
        output.write(to_line(message))
        output.flush()
    except OSError:
        os._exit(1)


def _do(
    job: Job,
    find_device: Callable[[str], Device],
    find_ledger: FindLedger,
    is_finishing: Callable[[int], bool],
    output: BinaryIO,
) -> None:
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
        done: JobReport
        match request:
            case VerifyRequest():
                done = verify_file(request, device, report, emulator, tell)
            case TimeRequest():
                done = time_file(request, device, report, tell)
            case TuneRequest():
                from kernel_forge.jobs.tune import tune_file  # late: Optuna and SciPy take half a second to import

                finishing = partial(is_finishing, job.number)
                done = tune_file(request, device, report, find_ledger, tell, finishing)
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


def _emulator_beside(device: Device, request: Request, find_device: Callable[[str], Device]) -> Device | None:
    """The emulator, prepared, where ``request`` asks for sanitizers on a device that is not one itself."""
    if not isinstance(request, VerifyRequest) or not request.sanitize or device.info().has_misuse_checks:
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
