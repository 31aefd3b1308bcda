"""Who runs next: one job at a time, newest wins per file, files in turn."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from kernel_forge.domain.event import Progress
from kernel_forge.jobs.client import JobCancelled, JobClient, JobEnd
from kernel_forge.jobs.requests import VerifyRequest

MARGIN_SECONDS = 30.0


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
        await self.cancel(key)
        self._waiting[key] = entry
        if self._pump is None or self._pump.done():
            self._pump = asyncio.get_running_loop().create_task(self._work())
        return await entry.done

    async def cancel(self, key: str) -> None:
        """Stop the job of ``key``, whether it waits or runs; its processes are gone on return."""
        waiting = self._waiting.pop(key, None)
        if waiting is not None and not waiting.done.done():
            waiting.done.set_result(JobCancelled())
        if self._running is not None and self._running[0] == key:
            task = self._running[1]
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
            limit = entry.request.time_limit + MARGIN_SECONDS
            task = asyncio.get_running_loop().create_task(self._client.run(entry.request, entry.report, limit))
            self._running = (key, task)
            await asyncio.wait({task})
            self._running = None
            if not entry.done.done():
                entry.done.set_result(JobCancelled() if task.cancelled() else task.result())
