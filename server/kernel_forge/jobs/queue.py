"""Who runs next: one job at a time, newest wins per key, keys in turn."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from kernel_forge.jobs.client import JobCancelled, JobFailed

End = TypeVar("End")
Work = Callable[[], Coroutine[Any, Any, End]]
"""What runs when the turn has come, such as a call of ``JobClient.run``; cancelled when it is to stop."""


@dataclass
class _Entry:
    work: Work[Any]
    done: "asyncio.Future[Any]"


class JobQueue:
    """Jobs by key (a file, a kernel of it). A newer job for a key stops the running one and replaces the waiting one.

    Knows nothing of what it runs: verifications have a queue and tuning runs another, so that neither waits for the
    other.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, _Entry] = OrderedDict()
        self._running: tuple[str, asyncio.Task[Any]] | None = None
        self._pump: asyncio.Task[None] | None = None

    async def submit(self, key: str, work: Work[End]) -> End | JobFailed | JobCancelled:
        """Wait for the turn of ``key``, run, and return the end (JobCancelled where a newer job came).

        What ``work`` raises is the failure *crashed*.
        """
        entry = _Entry(work, asyncio.get_running_loop().create_future())
        # Registered before anything is awaited: whoever comes next for this key must find it here to settle it.
        self._drop_waiting(key)
        self._waiting[key] = entry
        await self._stop_running(key)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.get_running_loop().create_task(self._work())
        end: End | JobFailed | JobCancelled = await entry.done
        return end

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

    async def _work(self) -> None:
        while self._waiting:
            key, entry = self._waiting.popitem(last=False)
            if entry.done.done():  # its caller is gone
                continue
            task = asyncio.get_running_loop().create_task(entry.work())
            self._running = (key, task)
            await asyncio.wait({task})
            self._running = None
            if not entry.done.done():
                entry.done.set_result(_end_of(task))


def _end_of(task: "asyncio.Task[End]") -> End | JobFailed | JobCancelled:
    if task.cancelled():
        return JobCancelled()
    error = task.exception()
    return task.result() if error is None else JobFailed("crashed", f"{type(error).__name__}: {error}")
