"""The calls of a model that are under way, so that another thread can end them."""

import asyncio
from collections.abc import Coroutine
from threading import Lock

from kernel_forge.domain.model import FailureKind, ModelFailure, ModelReply

Answered = ModelReply | ModelFailure


class Calls:
    """Runs calls as tasks; :meth:`cancel` ends all of them from any thread."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[Answered], asyncio.AbstractEventLoop] = {}
        self._over = False
        self._lock = Lock()

    @property
    def over(self) -> bool:
        """Whether :meth:`cancel` was called."""
        return self._over

    async def run(self, call: Coroutine[None, None, Answered]) -> Answered:
        """What ``call`` gives, or a failure CANCELLED. Where the waiting task itself is cancelled, so is the call."""
        task = asyncio.ensure_future(call)
        with self._lock:
            if not self._over:
                self._running[task] = asyncio.get_running_loop()
        if task not in self._running:
            task.cancel()
        try:
            answer = await task
        except asyncio.CancelledError:
            waiting = asyncio.current_task()
            if self._over and not (waiting is not None and waiting.cancelling()):
                return ModelFailure(FailureKind.CANCELLED, "the call was cancelled")
            raise
        else:
            waiting = asyncio.current_task()
            if waiting is not None and waiting.cancelling():
                raise asyncio.CancelledError
            return answer
        finally:
            with self._lock:
                self._running.pop(task, None)

    def cancel(self) -> None:
        """End every call, and refuse later ones."""
        with self._lock:
            self._over = True
            running = dict(self._running)
        for task, loop in running.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
