"""Writing down what came of jobs, where nobody waits for it."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from kernel_forge import __version__
from kernel_forge.domain.errors import KernelForgeError
from kernel_forge.domain.outcome import Verdict
from kernel_forge.domain.performance import KernelTiming
from kernel_forge.domain.record import Json, Kind, Record
from kernel_forge.jobs.requests import (
    Circumstances,
    FileReport,
    JobFailed,
    JobReport,
    Request,
    TimeReport,
    TimeRequest,
    TuneReport,
    TuneRequest,
    Undertaking,
    VerifyRequest,
)
from kernel_forge.jobs.wire import encode
from kernel_forge.ports import FindLedger, Ledger

SETTLE_SECONDS = 15.0
MOST_TEXT = 2000
MOST_ITEMS = 100
_ELSEWHERE = ("kernel", "path", "sizes", "configuration", "measurement", "device")
"""Of a KernelTiming: what a record has a place of its own for."""


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that came to an end of its own; ``seconds`` is the wall time of the whole."""

    request: Request
    circumstances: Circumstances
    end: JobReport | JobFailed
    started: datetime
    seconds: float


class Recorder:
    """Writes ended jobs into the ledgers of their projects, in a thread of its own.

    What cannot be written is told to ``tell``, each reason once, and changes nothing else. Use from one event loop.
    """

    def __init__(self, find_ledger: FindLedger, tell: Callable[[str], None]) -> None:
        self._find_ledger = find_ledger
        self._tell = tell
        self._told: set[str] = set()
        self._used: dict[str, Ledger] = {}
        self._thread: ThreadPoolExecutor | None = None
        self._writing: set[asyncio.Future[str | None]] = set()

    def record(self, job: EndedJob) -> None:
        """Have ``job`` written down; returns at once."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "ledger")
        writing = asyncio.get_running_loop().run_in_executor(self._thread, self._write, job)
        self._writing.add(writing)
        writing.add_done_callback(self._written)

    async def settle(self) -> None:
        """Wait until everything is written, and end the thread; gives up where the disk does not answer."""
        if self._thread is None:
            return
        closing = asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        _, late = await asyncio.wait({*self._writing, closing}, timeout=SETTLE_SECONDS)
        if late:
            self._say("the disk does not answer")
        self._thread.shutdown(wait=False)
        self._thread = None

    def _close(self) -> str | None:
        for ledger in self._used.values():
            ledger.close()
        return None

    def _write(self, job: EndedJob) -> str | None:
        """Write ``job`` down, or return why that could not be done."""
        try:
            ledger = self._find_ledger(job.request.path)
            if ledger is not None:
                self._used[ledger.place] = ledger
                for record in records_of(job):
                    ledger.append(record)
        except KernelForgeError as error:
            return str(error)
        return None

    def _written(self, writing: "asyncio.Future[str | None]") -> None:
        self._writing.discard(writing)
        if writing.cancelled():
            return
        error = writing.exception()
        problem = writing.result() if error is None else f"{type(error).__name__}: {error}"
        if problem is not None:
            self._say(problem)

    def _say(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            with contextlib.suppress(OSError):
                self._tell(f"runs are not recorded: {problem} (KERNEL_FORGE_LEDGER=off turns recording off)")


def records_of(job: EndedJob) -> list[Record]:
    """One record per kernel of the job; none of a search, which writes its own while it runs."""
    undertakings = job.circumstances.undertakings
    if isinstance(job.request, TuneRequest):
        return []
    match job.end:
        case TuneReport():
            return []
        case JobFailed():
            return [_failed(job, undertaking, job.end) for undertaking in undertakings]
        case FileReport(verdicts=verdicts):
            return [_of_verdict(job, *pair) for pair in zip(undertakings, verdicts, strict=True)]
        case TimeReport(results=results):
            return [
                _of_timing(job, undertaking, result)
                if isinstance(result, KernelTiming)
                else _of_verdict(job, undertaking, result)
                for undertaking, result in zip(undertakings, results, strict=True)
            ]


def _of_verdict(job: EndedJob, undertaking: Undertaking, verdict: Verdict) -> Record:
    details = {
        "case": verdict.case,
        "checks": verdict.checks,
        "skipped": verdict.skipped,
        "notes": verdict.notes,
        "warnings": verdict.warnings,
    }
    return _record(
        job,
        undertaking,
        _outcome(verdict.outcome),
        basis=verdict.basis,
        configuration=verdict.configuration,
        seed=verdict.seed,
        seconds=verdict.seconds,
        details={**_asked(job.request), **_bounded(encode(details))},
    )


def _of_timing(job: EndedJob, undertaking: Undertaking, timing: KernelTiming) -> Record:
    details = {f.name: getattr(timing, f.name) for f in fields(timing) if f.name not in _ELSEWHERE}
    return _record(
        job,
        undertaking,
        {"type": "Timed"},
        configuration=timing.configuration,
        sizes=timing.sizes,
        measurement=encode(timing.measurement),
        details={**_asked(job.request), **_bounded(encode(details))},
    )


def _failed(job: EndedJob, undertaking: Undertaking, failed: JobFailed) -> Record:
    outcome = {"type": "JobFailed", "kind": failed.kind, "message": _bounded(failed.message)}
    return _record(job, undertaking, outcome, seconds=job.seconds, details=_asked(job.request))


def _record(job: EndedJob, undertaking: Undertaking, outcome: Mapping[str, Json], **more: Any) -> Record:
    platform = job.circumstances.platform
    own: dict[str, Any] = {
        "basis": platform.basis,
        "configuration": undertaking.configuration,
        "seed": undertaking.seed,
        **more,
    }
    return Record(
        kind=Kind.TIME if isinstance(job.request, TimeRequest) else Kind.VERIFY,
        tool=__version__,
        started=job.started,
        outcome=outcome,
        subject=undertaking.subject,
        platform=platform,
        **own,
    )


def _asked(request: Request) -> dict[str, Json]:
    match request:
        case TimeRequest():
            plan: dict[str, Json] = encode(request.plan)
            return {"time_limit": request.time_limit, "plan": plan, "profile": request.profile}
        case VerifyRequest():
            return {"time_limit": request.time_limit, "sanitize": request.sanitize}
        case TuneRequest():
            return {"time_limit": request.time_limit}


def _outcome(outcome: object) -> dict[str, Json]:
    bounded: dict[str, Json] = _bounded(encode(outcome))
    return bounded


def _bounded(value: Any) -> Any:
    """``value`` with long texts and lists cut: a compiler may have megabytes to say."""
    if isinstance(value, str) and len(value) > MOST_TEXT:
        return f"{value[:MOST_TEXT]}... ({len(value)} characters)"
    if isinstance(value, Mapping):
        kept = {k: _bounded(v) for k, v in list(value.items())[:MOST_ITEMS]}
        return kept if len(value) <= MOST_ITEMS else {**kept, "...": f"{len(value)} in all"}
    if isinstance(value, Sequence) and not isinstance(value, str):
        kept_items = [_bounded(v) for v in value[:MOST_ITEMS]]
        return kept_items if len(value) <= MOST_ITEMS else [*kept_items, f"... ({len(value)} in all)"]
    return value
