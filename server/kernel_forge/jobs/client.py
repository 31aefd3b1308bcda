"""Owning worker processes: starting them in advance, giving them jobs, killing them with all they started."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

from kernel_forge.domain.errors import InternalError
from kernel_forge.domain.event import Progress
from kernel_forge.jobs.messages import Done, Failed, Hello, Job, Stepped, from_line, to_line
from kernel_forge.jobs.requests import FileReport, VerifyRequest
from kernel_forge.jobs.wire import VERSION

START_TIMEOUT = 30.0
LINE_LIMIT = 64 << 20
LOG_TAIL = 16 << 10
COMMAND = (sys.executable, "-m", "kernel_forge", "job-worker")


@dataclass(frozen=True)
class JobFailed:
    """A job that gave no report. ``kind`` is usage, unavailable, internal, crashed, or time-limit."""

    kind: str
    message: str
    log: str = ""


@dataclass(frozen=True)
class JobCancelled:
    """A job that was cancelled, or replaced by a newer one."""


JobEnd = FileReport | JobFailed | JobCancelled


class _Worker:
    """One worker process in a session, and so a process group, of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.log = bytearray()
        self._log_task = asyncio.create_task(self._read_log())

    @staticmethod
    async def start(command: tuple[str, ...]) -> "_Worker":
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=LINE_LIMIT,
            )
        except OSError as error:
            raise InternalError(f"the job worker cannot be started: {command[0]}: {error.strerror or error}") from error
        worker = _Worker(process)
        try:
            hello = await asyncio.wait_for(worker.read(), START_TIMEOUT)
        except (TimeoutError, InternalError) as error:
            await worker.kill()
            raise InternalError(f"the job worker does not start: {error}\n{worker.log_text()}") from error
        except asyncio.CancelledError:
            await worker.kill()
            raise
        if not isinstance(hello, Hello) or hello.version != VERSION:
            await worker.kill()
            raise InternalError("the job worker is of another version; restart the server")
        return worker

    async def _read_log(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(4096):
            self.log += chunk
            del self.log[:-LOG_TAIL]

    def log_text(self) -> str:
        return self.log.decode("utf-8", "replace")

    def write(self, job: Job) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(to_line(job))

    async def read(self) -> Hello | Job | Stepped | Done | Failed:
        assert self.process.stdout is not None
        try:
            line = await self.process.stdout.readline()
        except ValueError as error:
            raise InternalError(f"a message of the worker is too long: {error}") from None
        if not line:
            raise InternalError("the worker ended")
        return from_line(line)

    async def kill(self) -> None:
        """Kill the worker with every compiler and kernel it started, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await self._log_task


class JobClient:
    """Runs one job at a time per call of :meth:`run`, each in a worker of its own; one spare waits warm.

    Use from one event loop. :meth:`close` leaves no process behind.
    """

    def __init__(self, command: tuple[str, ...] = COMMAND) -> None:
        self._command = command
        self._spare: asyncio.Future[_Worker] | None = None
        self._starting: set[asyncio.Future[_Worker]] = set()
        self._busy: set[_Worker] = set()
        self._numbers = 0
        self._closed = False

    def warm_up(self) -> None:
        """Start a worker in advance, so that the next job begins at once."""
        if self._spare is None and not self._closed:
            self._spare = asyncio.get_running_loop().create_task(_Worker.start(self._command))
            # A start that fails is reported by the job that needs the worker.
            self._spare.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def run(self, request: VerifyRequest, report: Callable[[Progress], None], time_limit: float) -> JobEnd:
        """Do one job; ``time_limit`` is in seconds of wall time.

        Cancelling the awaiting task kills the worker with everything it started before the cancellation returns.
        """
        try:
            worker = await self._take()
        except InternalError as error:
            return JobFailed("crashed", str(error))
        reusable = False
        try:
            end = await asyncio.wait_for(self._follow(worker, request, report), time_limit)
            # Python of the user's may have left modules, threads, another folder or a changed NumPy behind.
            reusable = isinstance(end, FileReport) and not end.ran_python
            return end
        except TimeoutError:
            return JobFailed("time-limit", f"the job did not end within {time_limit:g} s and was stopped")
        except InternalError as error:
            await worker.kill()  # the log is whole only when the worker is gone
            return JobFailed("crashed", str(error), worker.log_text())
        finally:
            self._busy.discard(worker)
            if reusable and self._spare is None and not self._closed:
                self._spare = asyncio.get_running_loop().create_future()
                self._spare.set_result(worker)
            else:
                await asyncio.shield(worker.kill())
            self.warm_up()

    async def _take(self) -> _Worker:
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
            worker = await _Worker.start(self._command)
        self._busy.add(worker)
        return worker

    async def _follow(self, worker: _Worker, request: VerifyRequest, report: Callable[[Progress], None]) -> JobEnd:
        self._numbers += 1
        number = self._numbers
        worker.write(Job(number, request))
        while True:
            message = await worker.read()
            match message:
                case Stepped(number=n, progress=progress) if n == number:
                    report(progress)
                case Done(number=n, report=result) if n == number:
                    return result
                case Failed(number=n, kind=kind, message=text) if n == number:
                    return JobFailed(kind, text, worker.log_text())
                case _:
                    raise InternalError(f"unexpected {type(message).__name__} from the worker")

    async def close(self) -> None:
        """Kill every worker."""
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
