"""Doing jobs with progress on the terminal, and their ends as reports or errors."""

import asyncio
import signal
from collections.abc import Sequence
from typing import Any, assert_never, overload

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from kernel_forge.cli.output import warn
from kernel_forge.cli.targets import Target
from kernel_forge.domain import event
from kernel_forge.domain.errors import DeviceUnavailable, InternalError, UsageError
from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.text import Location, Range
from kernel_forge.jobs.client import JobCancelled, JobClient, JobEnd, JobFailed, TimeEnd
from kernel_forge.jobs.recording import Recorder
from kernel_forge.jobs.requests import FileReport, TimeReport, TimeRequest, VerifyRequest
from kernel_forge.ports import FindLedger


@overload
def run_jobs(requests: Sequence[VerifyRequest], find_ledger: FindLedger, *, hidden: bool) -> list[JobEnd]: ...


@overload
def run_jobs(requests: Sequence[TimeRequest], find_ledger: FindLedger, *, hidden: bool) -> list[TimeEnd]: ...


def run_jobs(
    requests: Sequence[VerifyRequest] | Sequence[TimeRequest], find_ledger: FindLedger, *, hidden: bool
) -> list[JobEnd] | list[TimeEnd]:
    """Do one job after the other, and record them; ``hidden`` shows no progress.

    Raises:
        KeyboardInterrupt: interrupted or terminated; no process is left.
    """
    ends: list[JobEnd] | list[TimeEnd] = asyncio.run(_run_all(requests, find_ledger, hidden=hidden))
    return ends


async def _run_all(requests: Sequence[VerifyRequest | TimeRequest], find_ledger: FindLedger, *, hidden: bool) -> Any:
    client = JobClient(recorder=Recorder(find_ledger, warn))
    client.warm_up()
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()
    if main is not None:
        loop.add_signal_handler(signal.SIGTERM, main.cancel)
    ends: list[Any] = []
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=20))
    try:
        with Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal) as bar:
            task = bar.add_task("starting", total=None)

            def report(step: event.Progress) -> None:
                bar.update(task, description=step.message, completed=step.done, total=step.total or None)

            for request in requests:
                ends.append(await client.run(request, report, request.wall_limit))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        await client.close()
    return ends


def file_report(end: JobEnd, target: Target) -> FileReport:
    """The report of a verify job.

    Raises:
        KernelForgeError: the job ended without one, of the kind that the exit code tells.
    """
    return end if isinstance(end, FileReport) else FileReport(_problems(end, target), ())


def time_report(end: TimeEnd, target: Target) -> TimeReport:
    """The report of a time job; raises as :func:`file_report`."""
    return end if isinstance(end, TimeReport) else TimeReport(_problems(end, target), ())


def _problems(end: JobFailed | JobCancelled, target: Target) -> tuple[Finding, ...]:
    match end:
        case JobFailed(kind="reference", message=message, location=location):
            place = location or Location(str(target.path), Range.of_line(0))
            return (Finding("KF203", Severity.ERROR, message, place.path, place.range),)
        case JobFailed(kind="unavailable", message=message):
            raise DeviceUnavailable(message)
        case JobFailed(kind="usage", message=message):
            raise UsageError(message)
        case JobFailed(kind="time-limit", message=message):
            raise UsageError(f"{message}; give more with --time-limit")
        case JobFailed(message=message, log=log):
            raise InternalError(f"the verification crashed: {message}\n{log}".rstrip())
        case JobCancelled():
            raise KeyboardInterrupt
        case _:
            assert_never(end)
