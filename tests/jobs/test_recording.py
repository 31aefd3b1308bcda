"""Ended jobs become records, in the background; no trouble of the ledger is one of the job."""

import asyncio
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.measurement import Measurement
from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, Passed, Verdict
from kernel_forge.domain.performance import KernelTiming
from kernel_forge.domain.record import Kind, Platform, Record, Selection, Subject
from kernel_forge.jobs.client import JobClient
from kernel_forge.jobs.messages import Told, to_line
from kernel_forge.jobs.recording import MOST_ITEMS, EndedJob, Recorder, records_of
from kernel_forge.jobs.requests import (
    Circumstances,
    FileReport,
    JobFailed,
    TimeReport,
    TimeRequest,
    Undertaking,
    VerifyRequest,
)
from kernel_forge.ledger import SqliteLedger
from tests.jobs.test_client import HELLO, worker

STARTED = datetime(2026, 12, 2, tzinfo=UTC)
PLATFORM = Platform("cuda", "measured on NVIDIA H200", "NVIDIA H200", {"driver cuda": "13.0"}, "NVRTC 13", "13.0")
REQUEST = VerifyRequest("/p/k.cu", "text", time_limit=60.0)
CIRCUMSTANCES = Circumstances(
    PLATFORM, tuple(Undertaking(Subject("/p/k.cu", kernel, "00", "spec"), {"BLOCK": 64}) for kernel in ("k", "j"))
)
VERDICTS = tuple(
    Verdict(kernel, "/p/k.cu", Passed(3, 9), {"BLOCK": 64}, 7, "cuda", PLATFORM.basis, seconds=0.5)
    for kernel in ("k", "j")
)
JOB = EndedJob(REQUEST, CIRCUMSTANCES, FileReport((), VERDICTS), STARTED, 2.0)


def test_a_record_per_verdict() -> None:
    first, second = records_of(JOB)
    assert [r.subject.kernel for r in (first, second) if r.subject is not None] == ["k", "j"]
    assert first.kind is Kind.VERIFY
    assert first.basis == "measured on NVIDIA H200"
    assert first.outcome == {"type": "Passed", "cases": 3, "runs": 9, "worst": {}}
    assert (first.seed, first.seconds, first.configuration) == (7, 0.5, {"BLOCK": 64})
    assert first.platform == PLATFORM
    assert first.details["time_limit"] == 60.0


def test_a_time_has_its_measurement_and_a_wrong_kernel_its_verdict() -> None:
    made = Measurement(1.25e-5, 1.2e-5, 1.3e-5, 40, 80, "graph", False, PLATFORM.basis)
    timing = KernelTiming("k", "/p/k.cu", {"n": 100}, {"n": 100}, {"BLOCK": 128}, made, 1.0, "cuda")
    circumstances = replace(CIRCUMSTANCES, undertakings=tuple(replace(u, seed=11) for u in CIRCUMSTANCES.undertakings))
    request = TimeRequest("/p/k.cu", "text")
    timed, wrong = records_of(EndedJob(request, circumstances, TimeReport((), (timing, VERDICTS[1])), STARTED, 2.0))
    assert (timed.kind, wrong.kind) == (Kind.TIME, Kind.TIME)
    assert timed.measurement is not None
    assert (timed.measurement["seconds"], timed.measurement["basis"]) == (1.25e-5, "measured on NVIDIA H200")
    assert (timed.sizes, timed.configuration, timed.seed) == ({"n": 100}, {"BLOCK": 128}, 11)
    assert wrong.measurement is None
    assert wrong.outcome["type"] == "Passed"


def test_a_job_that_crashed_leaves_what_it_was_about() -> None:
    failed = JobFailed("crashed", "the worker ended", "log")
    first, _ = records_of(replace(JOB, end=failed))
    assert first.outcome == {"type": "JobFailed", "kind": "crashed", "message": "the worker ended"}
    assert (first.seconds, first.basis) == (2.0, "measured on NVIDIA H200")


def test_what_a_compiler_says_without_end_is_cut() -> None:
    messages = tuple(CompilerMessage("error", "x" * 10_000, None, "nvcc") for _ in range(500))
    verdict = replace(VERDICTS[0], outcome=CompileFailed(messages))
    first, _ = records_of(replace(JOB, end=FileReport((), (verdict, VERDICTS[1]))))
    kept = first.outcome["messages"]
    assert isinstance(kept, list)
    assert len(kept) == MOST_ITEMS + 1
    assert kept[-1] == "... (500 in all)"
    assert len(kept[0]["message"]) < 2100


class FakeLedger(SqliteLedger):
    """Waits until it may write, or refuses to."""

    def __init__(self, project: Path, problem: str | None = None) -> None:
        super().__init__(project)
        self.may = threading.Event()
        self.problem = problem
        self.written: list[Record] = []

    def append(self, record: Record) -> None:  # type: ignore[override]
        if self.problem is not None:
            raise LedgerUnavailable(self.problem)
        assert self.may.wait(10)
        self.written.append(record)


async def test_nobody_waits_for_the_disk(tmp_path: Path) -> None:
    ledger = FakeLedger(tmp_path)
    recorder = Recorder(lambda _: ledger, print)
    begun = time.monotonic()
    recorder.record(JOB)
    assert time.monotonic() - begun < 0.1
    await asyncio.sleep(0.01)
    assert ledger.written == []
    ledger.may.set()
    await recorder.settle()
    assert [r.subject and r.subject.kernel for r in ledger.written] == ["k", "j"]


async def test_trouble_is_told_once() -> None:
    told: list[str] = []
    ledger = FakeLedger(Path("/p"), "/p/ledger.sqlite cannot be written: disk full")
    recorder = Recorder(lambda _: ledger, told.append)
    for _ in range(3):
        recorder.record(JOB)
    await recorder.settle()
    assert told == [
        "runs are not recorded: /p/ledger.sqlite cannot be written: disk full (KERNEL_FORGE_LEDGER=off turns "
        "recording off)"
    ]


async def test_a_fault_of_ours_in_recording_is_told_and_goes_no_further() -> None:
    told: list[str] = []

    def broken(_: str) -> None:
        raise ZeroDivisionError("oh")

    recorder = Recorder(broken, told.append)
    recorder.record(JOB)
    await recorder.settle()
    assert len(told) == 1
    assert "ZeroDivisionError" in told[0]


async def test_no_ledger_no_record_and_no_word() -> None:
    told: list[str] = []
    recorder = Recorder(lambda _: None, told.append)
    recorder.record(JOB)
    await recorder.settle()
    await recorder.settle()
    assert told == []


def telling(then: str) -> str:
    """A worker that tells its circumstances, then does as it is told to."""
    circumstances = replace(CIRCUMSTANCES, undertakings=CIRCUMSTANCES.undertakings[:1])
    line = to_line(Told(0, circumstances)).decode().strip()
    return (
        HELLO
        + f"""
import json, sys, os
for line in sys.stdin:
    number = json.loads(line)["number"]
    print(json.dumps({{"type": "Prepared", "number": number}}))
    print(json.dumps({{**json.loads({line!r}), "number": number}}), flush=True)
    {then}
"""
    )


async def recorded(tmp_path: Path, then: str, limit: float = 10.0, cancel: bool = False) -> list[Record]:
    ledger = SqliteLedger((tmp_path / "project").resolve())
    ledger.project.mkdir()
    client = JobClient(worker(tmp_path, telling(then)), Recorder(lambda _: ledger, print))
    task = asyncio.create_task(client.run(REQUEST, lambda _: None, limit))
    if cancel:
        await asyncio.sleep(0.7)
        task.cancel()
    await asyncio.wait({task})
    await client.close()
    return [entry.record for entry in ledger.entries(Selection())]


async def test_a_crash_is_a_run(tmp_path: Path) -> None:
    (record,) = await recorded(tmp_path, "os._exit(3)")
    assert record.outcome["kind"] == "crashed"


async def test_a_time_limit_is_a_run(tmp_path: Path) -> None:
    (record,) = await recorded(tmp_path, "sys.stdin.read()", limit=0.3)
    assert record.outcome["kind"] == "time-limit"


async def test_what_was_cancelled_is_no_run(tmp_path: Path) -> None:
    assert await recorded(tmp_path, "sys.stdin.read()", cancel=True) == []


async def test_wrong_use_is_no_run(tmp_path: Path) -> None:
    failed = '{"type": "Failed", "number": number, "kind": "usage", "message": "no size m"}'
    assert await recorded(tmp_path, f"print(json.dumps({failed}), flush=True)") == []


async def test_what_fails_before_it_is_known_what_to_run_is_none(tmp_path: Path) -> None:
    failed = '{"type": "Failed", "number": number, "kind": "usage", "message": "no"}'
    ledger = SqliteLedger(tmp_path.resolve())
    body = (
        HELLO + f"import json, sys\nnumber = json.loads(sys.stdin.readline())['number']\nprint(json.dumps({failed}))\n"
    )
    client = JobClient(worker(tmp_path, body), Recorder(lambda _: ledger, print))
    assert isinstance(await client.run(REQUEST, lambda _: None, 10), JobFailed)
    await client.close()
    assert ledger.entries(Selection()) == ()
