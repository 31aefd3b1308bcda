"""Doing jobs with progress on the terminal, and their ends as reports or errors."""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, assert_never, overload

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from kernel_forge.cli.output import can_show_blocks, warn
from kernel_forge.cli.targets import Target
from kernel_forge.domain import event
from kernel_forge.domain.errors import DeviceUnavailable, InternalError, KernelForgeError, UsageError
from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.text import Location, Range
from kernel_forge.jobs.client import JobCancelled, JobClient, JobEnd, JobFailed, TimeEnd, TuneEnd
from kernel_forge.jobs.recording import Recorder
from kernel_forge.jobs.requests import FileReport, TimeReport, TimeRequest, TuneReport, TuneRequest, VerifyRequest
from kernel_forge.ports import FindLedger
from kernel_forge.views.findings import failure_finding
from kernel_forge.views.tuning import progress_lines

_BESIDE_TEXT = 28
"""Columns of the spinner, the bar and what is between."""


@overload
def run_jobs(requests: Sequence[VerifyRequest], find_ledger: FindLedger, *, hidden: bool) -> list[JobEnd]: ...


@overload
def run_jobs(requests: Sequence[TimeRequest], find_ledger: FindLedger, *, hidden: bool) -> list[TimeEnd]: ...


@overload
def run_jobs(requests: Sequence[TuneRequest], find_ledger: FindLedger, *, hidden: bool) -> list[TuneEnd]: ...


def run_jobs(
    requests: Sequence[VerifyRequest] | Sequence[TimeRequest] | Sequence[TuneRequest],
    find_ledger: FindLedger,
    *,
    hidden: bool,
) -> list[JobEnd] | list[TimeEnd] | list[TuneEnd]:
    """Do one job after the other, and record them; ``hidden`` shows no progress.

    The first interrupt during a search has it end with its best so far; no further one is begun, and the list is
    shorter than that of the requests.

    Raises:
        KeyboardInterrupt: interrupted (in a search: twice) or terminated; no process is left.
    """
    ends: list[JobEnd] | list[TimeEnd] | list[TuneEnd] = asyncio.run(_run_all(requests, find_ledger, hidden=hidden))
    return ends


async def _run_all(
    requests: Sequence[VerifyRequest | TimeRequest | TuneRequest], find_ledger: FindLedger, *, hidden: bool
) -> Any:
    client = JobClient(recorder=Recorder(find_ledger, warn))
    client.warm_up()
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()
    assert main is not None  # a coroutine that runs is in a task
    loop.add_signal_handler(signal.SIGTERM, main.cancel)
    finish = asyncio.Event()
    ends: list[Any] = []
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(bar_width=20))
    try:
        with Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal) as bar:
            task = bar.add_task("starting", total=None)

            def report(step: event.Progress) -> None:
                done, total = (
                    (step.done, step.total) if step.search is None else (step.search.trials, step.search.limit)
                )
                bar.update(task, description=_step_text(step, console), completed=done, total=total or None)

            for request in requests:
                if not isinstance(request, TuneRequest):
                    ends.append(await client.run(request, report, request.wall_limit))
                elif not finish.is_set():
                    loop.add_signal_handler(signal.SIGINT, _interrupted, finish, main, request, find_ledger)
                    end = await client.run(request, report, request.wall_limit, finish)
                    ends.append(_with_record(end, request, find_ledger))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        await client.close()
    return ends


def _step_text(step: event.Progress, console: Console) -> str:
    if step.search is None:
        return step.message
    room, ascii_only = console.width - _BESIDE_TEXT, not can_show_blocks(console.encoding)
    return "\n".join(progress_lines(step.search, room, message=step.message, ascii_only=ascii_only))


def _interrupted(
    finish: asyncio.Event, main: "asyncio.Task[Any]", request: TuneRequest, find_ledger: FindLedger
) -> None:
    if finish.is_set():
        then = _how_to_go_on(request, find_ledger) or "the search is not recorded, and is lost"
        warn(f"stopped at once; {then}")
        main.cancel()
        return
    finish.set()
    then = _how_to_go_on(request, find_ledger) or "the search is lost, as it is not recorded"
    warn(
        "finishing with the best so far, which ends this search: the same command would begin anew. "
        f"Ctrl-C again stops at once; then {then}"
    )


def _with_record(end: TuneEnd, request: TuneRequest, find_ledger: FindLedger) -> TuneEnd:
    """``end``; where the search crashed, its message says what is left of it."""
    if not isinstance(end, JobFailed) or end.kind != "crashed":
        return end
    then = _how_to_go_on(request, find_ledger) or "the search is not recorded, and is lost"
    return replace(end, message=f"{end.message}; {then}")


def _how_to_go_on(request: TuneRequest, find_ledger: FindLedger) -> str | None:
    """What continues a search that was stopped in between; None where it is not recorded."""
    if not _is_recorded(request, find_ledger):
        return None
    command = f"the same command{' without --fresh' if request.fresh else ''}"
    return f"the search is recorded, and {command} goes on with it while the file stays as it is"


def _is_recorded(request: TuneRequest, find_ledger: FindLedger) -> bool:
    try:
        ledger = find_ledger(request.path)
        if ledger is not None:
            ledger.close()
    except KernelForgeError:
        return False
    return ledger is not None


def file_report(end: JobEnd, target: Target) -> FileReport:
    """The report of a verify job.

    Raises:
        KernelForgeError: the job ended without one, of the kind that the exit code tells.
    """
    return end if isinstance(end, FileReport) else FileReport(_problems(end, target), ())


def time_report(end: TimeEnd, target: Target) -> TimeReport:
    """The report of a time job; raises as :func:`file_report`."""
    return end if isinstance(end, TimeReport) else TimeReport(_problems(end, target), ())


def tune_report(end: TuneEnd, target: Target) -> TuneReport:
    """The report of a tune job; raises as :func:`file_report`."""
    return end if isinstance(end, TuneReport) else TuneReport(_problems(end, target), ())


def job_failure(error: KernelForgeError, what: str, target: Target) -> Finding:
    """The error of one job of several, as a problem of its file; ``what`` did not come of it."""
    kind = "unavailable" if isinstance(error, DeviceUnavailable) else "internal"
    whose = "; this is a fault of Kernel Forge, not of your kernel" if isinstance(error, InternalError) else ""
    return failure_finding(kind, f"{what}: {error}{whose}", str(target.path), Severity.ERROR)


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
            raise InternalError(f"the job crashed: {message}\n{log}".rstrip())
        case JobCancelled():
            raise KeyboardInterrupt
        case _:
            assert_never(end)
