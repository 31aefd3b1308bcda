"""Who runs next: one job at a time, newest wins per file, files in turn."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from kernel_forge.domain.event import Progress
from kernel_forge.jobs.client import JobCancelled, JobClient, JobEnd, JobFailed
from kernel_forge.jobs.requests import VerifyRequest


@dataclass
class _Entry:
    request: VerifyRequest
    report: Callable[[Progress], None]
    done: "asyncio.Future[JobEnd]" = field(repr=False)


class JobQueue:
    """Jobs by key (a file). A newer job for a key stops the running one and replaces the waiting one."""

    def __init__(self, client: JobClient) -> None:
        self._client = client
        self._waiting: OrderedDict[str, _Entry] = OrderedDict()
        self._running: tuple[str, asyncio.Task[JobEnd]] | None = None
        self._pump: asyncio.Task[None] | None = None

    async def submit(self, key: str, request: VerifyRequest, report: Callable[[Progress], None]) -> JobEnd:
        """Wait for the turn of ``key``, run, and return the end (JobCancelled where a newer job came)."""
        entry = _Entry(request, report, asyncio.get_running_loop().create_future())
        # Registered before anything is awaited: whoever comes next for this key must find it here to settle it.
        self._drop_waiting(key)
        self._waiting[key] = entry
        await self._stop_running(key)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.get_running_loop().create_task(self._work())
        return await entry.done

    async def cancel(self, key: str) -> None:
        """Stop the job of ``key``, whether it waits or runs; its processes are gone on return."""
        self._drop_waiting(key)
        await self._stop_running(key)

    def _drop_waiting(self, key: str) -> None:
        waiting = self._waiting.pop(key, None)
        if waiting is not None and not waiting.done.done():
            waiting.done.set_result(JobCancelled())

    async def _stop_running(self, key: str) -> None:
        if self._running is not None and self._running[0] == key:
            task = self._running[1]
            if not task.cancelling():  # a second cancel would interrupt the killing
                task.cancel()
            await asyncio.wait({task})

    async def close(self) -> None:
        """Stop everything."""
        for key in (*self._waiting, *((self._running[0],) if self._running is not None else ())):
            await self.cancel(key)
        await self._client.close()

    async def _work(self) -> None:
        while self._waiting:
            key, entry = self._waiting.popitem(last=False)
            if entry.done.done():  # its caller is gone
                continue
            run = self._client.run(entry.request, entry.report, entry.request.wall_limit)
            task = asyncio.get_running_loop().create_task(run)
            self._running = (key, task)
            await asyncio.wait({task})
            self._running = None
            if not entry.done.done():
                entry.done.set_result(_end_of(task))


def _end_of(task: "asyncio.Task[JobEnd]") -> JobEnd:
    if task.cancelled():
        return JobCancelled()
    error = task.exception()
    return task.result() if error is None else JobFailed("crashed", f"{type(error).__name__}: {error}")
