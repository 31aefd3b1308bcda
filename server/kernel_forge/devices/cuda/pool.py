"""The workers of one GPU: one at work, and a fresh one after every loss."""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from kernel_forge.devices.cuda.protocol import Frame
from kernel_forge.devices.cuda.supervisor import Lost, Worker, WorkerUnavailable


class WorkerPool:
    """The worker of one GPU and a spare one that starts meanwhile; safe for several threads, which take turns."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)
        self._turn = threading.Lock()
        self._state = threading.Lock()
        self._worker: Worker | None = None
        self._spare: Worker | None = None
        self._starting: threading.Thread | None = None
        self.started = 0

    @property
    def worker_pid(self) -> int | None:
        """Process id of the worker that is there now."""
        return None if self._worker is None else self._worker.pid

    def facts(self) -> Mapping[str, Any]:
        """What the worker says of its GPU.

        Raises:
            WorkerUnavailable: no worker can be started.
        """
        with self._turn:
            return self._current().facts

    def ask(self, header: Mapping[str, Any], payload: Sequence[bytes | memoryview], time_limit: float) -> Frame | Lost:
        """One job on a worker that is fit for it, see :meth:`Worker.ask`.

        Raises:
            WorkerUnavailable: no worker can be started.
        """
        with self._turn:
            answer = self._current().ask(header, payload, time_limit)
            if not self._current_is_alive():
                self._start_spare()
            return answer

    def _current_is_alive(self) -> bool:
        return self._worker is not None and self._worker.is_alive

    def _current(self) -> Worker:
        if self._worker is not None and self._worker.is_alive:
            return self._worker
        if self._worker is not None:
            self._worker.kill()
        if self._starting is not None:
            self._starting.join()
            self._starting = None
        with self._state:
            spare, self._spare = self._spare, None
        if spare is not None and not spare.is_alive:
            spare.kill()
            spare = None
        if spare is None:
            spare = Worker(self.command)
            self.started += 1
        self._worker = spare
        return spare

    def _start_spare(self) -> None:
        """A context takes a third of a second: the next one is made while the caller thinks about the loss."""

        def start() -> None:
            with contextlib.suppress(WorkerUnavailable):  # the next job says so
                made = Worker(self.command)
                self.started += 1
                with self._state:
                    self._spare = made

        if self._starting is None:
            self._starting = threading.Thread(target=start, daemon=True)
            self._starting.start()

    def close(self) -> None:
        """End every worker."""
        with self._turn:
            if self._starting is not None:
                self._starting.join()
            for worker in (self._worker, self._spare):
                if worker is not None:
                    worker.kill()
            self._worker = self._spare = None
