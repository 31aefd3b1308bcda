"""Owning worker processes: starting them in advance, giving them jobs, killing them with all they started."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import overload

from kernel_forge.domain.errors import InternalError
from kernel_forge.domain.event import Progress
from kernel_forge.jobs.messages import Done, Entered, Failed, Finish, Job, Left, Prepared, Stepped, Told
from kernel_forge.jobs.process import Worker
from kernel_forge.jobs.recording import EndedJob, Recorder
from kernel_forge.jobs.requests import (
    FileReport,
    JobFailed,
    JobReport,
    Request,
    TimeReport,
    TimeRequest,
    TuneReport,
    TuneRequest,
    VerifyRequest,
)

__all__ = ["JobCancelled", "JobClient", "JobEnd", "JobFailed", "TimeEnd", "TuneEnd"]

# Seconds for what a device makes once per machine: the emulator's runtime, with zig a C++ library.
PREPARE_LIMIT = 900.0
# Not -m alone: that would let a numpy.py of the current folder take the place of NumPy.
COMMAND = (sys.executable, "-P", "-m", "kernel_forge", "job-worker")


@dataclass(frozen=True)
class JobCancelled:
    """A job that was cancelled, or replaced by a newer one."""


JobEnd = FileReport | JobFailed | JobCancelled
TimeEnd = TimeReport | JobFailed | JobCancelled
TuneEnd = TuneReport | JobFailed | JobCancelled


class JobClient:
    """Runs one job at a time per call of :meth:`run`, each in a worker of its own; one spare waits warm.

    Use from one event loop. :meth:`close` leaves no process behind. What ends of itself goes to ``recorder``; a job
    that failed before it could tell what it runs, by wrong use, or was cancelled, is no run.
    """

    def __init__(self, command: tuple[str, ...] = COMMAND, recorder: Recorder | None = None) -> None:
        self._command = command
        self._recorder = recorder
        self._spare: asyncio.Future[Worker] | None = None
        self._starting: set[asyncio.Future[Worker]] = set()
        self._busy: set[Worker] = set()
        self._numbers = 0
        self._closed = False

    def warm_up(self) -> None:
        """Start a worker in advance, so that the next job begins at once."""
        if self._spare is None and not self._closed:
            self._spare = asyncio.get_running_loop().create_task(Worker.start(self._command))
            # A start that fails is reported by the job that needs the worker.
            self._spare.add_done_callback(lambda task: task.cancelled() or task.exception())

    @overload
    async def run(self, request: VerifyRequest, report: Callable[[Progress], None], time_limit: float) -> JobEnd: ...

    @overload
    async def run(self, request: TimeRequest, report: Callable[[Progress], None], time_limit: float) -> TimeEnd: ...

    @overload
    async def run(
        self,
        request: TuneRequest,
        report: Callable[[Progress], None],
        time_limit: float,
        finish: asyncio.Event | None = None,
    ) -> TuneEnd: ...

    async def run(
        self,
        request: Request,
        report: Callable[[Progress], None],
        time_limit: float,
        finish: asyncio.Event | None = None,
    ) -> JobEnd | TimeEnd | TuneEnd:
        """Do one job; ``time_limit`` is in seconds of wall time, from when the device is prepared.

        Setting ``finish`` has a search end with what it has found by then.
        Cancelling the awaiting task kills the worker with everything it started before the cancellation returns.
        """
        started, clock = datetime.now(UTC), time.monotonic()
        try:
            worker = await self._take()
        except InternalError as error:
            return JobFailed("crashed", str(error))
        asking = asyncio.create_task(self._ask_to_finish(worker, finish)) if finish is not None else None
        try:
            end = await self._run_on(worker, request, report, time_limit)
        finally:
            if asking is not None:
                asking.cancel()
        wrong_use = isinstance(end, JobFailed) and end.kind == "usage"
        if self._recorder is not None and worker.told is not None and not wrong_use:
            self._recorder.record(EndedJob(request, worker.told, end, started, time.monotonic() - clock))
        return end

    async def _run_on(
        self,
        worker: Worker,
        request: Request,
        report: Callable[[Progress], None],
        time_limit: float,
    ) -> JobReport | JobFailed:
        reusable = False
        try:
            number = self._begin(worker, request)
            unprepared = await self._prepared(worker, number, report)
            if unprepared is not None:
                return unprepared
            end = await asyncio.wait_for(self._follow(worker, number, report), time_limit)
            # Python of the user's may leave anything behind in its process: modules, threads, limits.
            reusable = worker.ran == 0 and isinstance(end, FileReport) and not end.ran_python
            return end
        except TimeoutError:
            if worker.inside is not None:
                message = f"{worker.inside.what} did not end within {time_limit:g} s"
                return JobFailed("reference", message, location=worker.inside.location)
            return JobFailed("time-limit", f"the job did not end within {time_limit:g} s and was stopped")
        except InternalError as error:
            how = await worker.ending()
            await worker.kill()  # the log is whole only when the worker is gone
            if worker.inside is not None:
                message = f"{worker.inside.what} {how}"
                return JobFailed("reference", message, worker.log_text(), worker.inside.location)
            return JobFailed("crashed", str(error), worker.log_text())
        finally:
            self._busy.discard(worker)
            if reusable and self._spare is None and not self._closed:
                self._spare = asyncio.get_running_loop().create_future()
                self._spare.set_result(worker)
            else:
                await asyncio.shield(worker.kill())
            self.warm_up()

    async def _ask_to_finish(self, worker: Worker, finish: asyncio.Event) -> None:
        await finish.wait()
        if worker.number is not None:
            worker.write(Finish(worker.number))

    async def _take(self) -> Worker:
        self.warm_up()
        spare = self._spare
        if spare is None:
            raise InternalError("the job client is closed")
        self._spare = None
        self._starting.add(spare)
        try:
            worker = await spare
        except asyncio.CancelledError:
            if spare.done() and not spare.cancelled() and spare.exception() is None:
                await spare.result().kill()  # it became ready in the very moment of the cancel
            if self._closed:
                raise InternalError("the job client is closed") from None
            raise
        finally:
            self._starting.discard(spare)
        if self._closed:
            await worker.kill()
            raise InternalError("the job client is closed")
        if worker.process.returncode is not None:
            worker = await Worker.start(self._command)
        self._busy.add(worker)
        return worker

    def _begin(self, worker: Worker, request: Request) -> int:
        self._numbers += 1
        worker.told, worker.number = None, self._numbers
        worker.write(Job(self._numbers, request))
        return self._numbers

    async def _prepared(self, worker: Worker, number: int, report: Callable[[Progress], None]) -> JobFailed | None:
        """Wait until the device has made what is made once per machine; how the job ended where that is before it."""
        try:
            return await asyncio.wait_for(self._until_prepared(worker, number, report), PREPARE_LIMIT)
        except TimeoutError:
            return JobFailed("time-limit", f"the device was not ready within {PREPARE_LIMIT:g} s")

    async def _until_prepared(
        self, worker: Worker, number: int, report: Callable[[Progress], None]
    ) -> JobFailed | None:
        while True:
            match await worker.read():
                case Prepared(number=n) if n == number:
                    return None
                case Stepped(number=n, progress=progress) if n == number:
                    report(progress)
                case Failed(number=n, kind=kind, message=text) if n == number:
                    return JobFailed(kind, text, worker.log_text())
                case message:
                    raise InternalError(f"unexpected {type(message).__name__} from the worker")

    async def _follow(self, worker: Worker, number: int, report: Callable[[Progress], None]) -> JobReport | JobFailed:
        while True:
            message = await worker.read()
            match message:
                case Stepped(number=n, progress=progress) if n == number:
                    report(progress)
                case Told(number=n, circumstances=circumstances) if n == number:
                    worker.told = circumstances
                case Entered(number=n) if n == number:
                    worker.inside = message
                    worker.ran += 1
                case Left(number=n) if n == number:
                    worker.inside = None
                case Done(number=n, report=result) if n == number:
                    return result
                case Failed(number=n, kind=kind, message=text) if n == number:
                    return JobFailed(kind, text, worker.log_text())
                case _:
                    raise InternalError(f"unexpected {type(message).__name__} from the worker")

    async def close(self) -> None:
        """Kill every worker, and have written down what has ended."""
        self._closed = True
        tasks = {*self._starting, *((self._spare,) if self._spare is not None else ())}
        self._spare = None
        for spare in tasks:
            with contextlib.suppress(asyncio.CancelledError, InternalError):
                if spare.done():
                    await spare.result().kill()
                else:
                    spare.cancel()
                    await spare
        for worker in tuple(self._busy):
            await worker.kill()
        if self._recorder is not None:
            await self._recorder.settle()
