"""Owning one GPU worker: start, handshake, heartbeat, one job at a time, and its end."""

import contextlib
import math
import os
import queue
import reprlib
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from kernel_forge.devices.cuda.keeping import Sent
from kernel_forge.devices.cuda.protocol import (
    BEAT_SECONDS,
    SILENCE_LIMIT,
    VERSION,
    Frame,
    ProtocolError,
    read_frame,
    write_frame,
)
from kernel_forge.processes import descendants, end_with_parent

START_LIMIT = 60.0
LOG_TAIL = 8 << 10
LINGER_SECONDS = 1.0


class WorkerUnavailable(Exception):
    """No worker can be started: no driver, no GPU, no PyCUDA, or a command that is not a worker."""


# Linux ends a child that asked for it when the *thread* that started it ends: one thread that lives as long as we do
# starts them all.
_starter = ThreadPoolExecutor(1, thread_name_prefix="gpu-worker-starter")


def _start(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    # Same process group as ours: whoever cancels us by killing the group ends the worker too.
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=-1,
        preexec_fn=end_with_parent,  # any command, not only our own worker, which asks for it by itself
    )


@dataclass(frozen=True, slots=True)
class Lost:
    """The worker ended, fell silent or was killed during a job. ``timed_out``: we killed it at the job's limit."""

    reason: str
    timed_out: bool = False


class Worker:
    """One worker process. Not for several threads at once, except :meth:`kill`.

    ``farewell``: seconds that it has to end by itself where we end it, for a tool around it that reports then. Such a
    tool can hold up all of the worker's threads, so its silence means nothing: the time limit of a job alone counts.

    Raises:
        WorkerUnavailable: see there; no process is left.
    """

    def __init__(self, command: Sequence[str], farewell: float = 0.0) -> None:
        self._command = command
        self._farewell = farewell
        self._silence_limit = math.inf if farewell else SILENCE_LIMIT
        try:
            self._process = _starter.submit(_start, command).result()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise WorkerUnavailable(f"the worker cannot be started: {command[0]}: {reason}") from None
        self._lock = threading.Lock()
        self._frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._heard = time.monotonic()
        self._log = bytearray()
        self._numbers = 0
        self._taken_by = math.inf  # when the job that is being written must have been taken
        self._sent = Sent()
        self._ended = threading.Event()
        self._log_reader = threading.Thread(target=self._read_log, daemon=True)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        for thread in (self._log_reader, self._listener, threading.Thread(target=self._ping, daemon=True)):
            thread.start()
        self.facts = self._handshake()

    def _handshake(self) -> Mapping[str, Any]:
        hello = self._next(START_LIMIT, time.monotonic())
        if isinstance(hello, Lost):
            self.kill()
            raise WorkerUnavailable(f"the worker did not start: {hello.reason}")
        if hello.kind != "hello" or hello.header.get("version") != VERSION:
            self.kill()
            said = reprlib.repr(dict(hello.header))
            raise WorkerUnavailable(f"the worker speaks another version than {VERSION}: {said}")
        if "error" in hello.header:
            self.kill()
            raise WorkerUnavailable(str(hello.header["error"]))
        facts = hello.header.get("facts")
        if not isinstance(facts, dict) or not {"name", "capability", "multiprocessors"} <= facts.keys():
            self.kill()
            raise WorkerUnavailable(f"the worker does not tell what its GPU is: {reprlib.repr(facts)}")
        return facts

    @property
    def pid(self) -> int:
        """Process id of the local process (of the ``ssh`` for a remote worker)."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether jobs can be given to it."""
        return not self._ended.is_set() and self._process.poll() is None

    def ask(self, header: Mapping[str, Any], payload: Sequence[bytes | memoryview], time_limit: float) -> Frame | Lost:
        """Give it one job and wait for the result, at most ``time_limit`` seconds; after :class:`Lost` it is gone."""
        self._numbers += 1
        begun = time.monotonic()
        reduced, parts = self._sent.reduced(header, payload)
        try:
            self._write({**reduced, "type": "job", "number": self._numbers}, parts, time_limit)
        except OSError:
            if time.monotonic() >= begun + time_limit:  # no limit of the kernel's: it has not even begun
                return self._lost(f"it did not take the job within {time_limit:g} s")
            return self._lost("it ended, or fell silent, before it had the job")
        answer = self._next(time_limit, begun)
        if isinstance(answer, Lost):
            self.kill()
            return answer
        if answer.kind != "result" or answer.header.get("number") != self._numbers:
            return self._lost(f"the worker answered with {answer.kind}")
        if answer.header.get("spent"):
            self.end()
        return answer

    def _write(self, header: Mapping[str, Any], payload: Sequence[bytes | memoryview], time_limit: float) -> None:
        """Write a frame; a worker that does not read is killed at the limit, which ends the writing with OSError."""
        self._taken_by = time.monotonic() + time_limit
        try:
            with self._lock:
                assert self._process.stdin is not None
                write_frame(self._process.stdin, header, payload)
        finally:
            self._taken_by = math.inf

    def _lost(self, reason: str) -> Lost:
        self.kill()
        return Lost(reason + self._log_text())

    def _next(self, time_limit: float, begun: float) -> Frame | Lost:
        """The next frame within ``time_limit`` seconds from ``begun`` on (of ``time.monotonic``)."""
        deadline = begun + time_limit
        while True:
            try:
                frame = self._frames.get(timeout=min(1.0, max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                now = time.monotonic()
                if self._process.poll() is not None and now - self._heard > LINGER_SECONDS:
                    # Its output is still open: a process that it left behind holds it, and will never speak for it.
                    return self._has_ended()
                if now >= deadline:
                    return Lost(f"no answer within {time_limit:g} s", timed_out=True)
                if now - self._heard > self._silence_limit:
                    return Lost(f"nothing heard from the worker for {SILENCE_LIMIT:g} s")
                continue
            return self._has_ended() if frame is None else frame

    def _has_ended(self) -> Lost:
        try:
            code = self._process.wait(5)
            status = f"signal {-code}" if code < 0 else f"status {code}"
        except subprocess.TimeoutExpired:
            status = "its output was closed"
        return Lost(f"the worker ended ({status}){self._log_text()}")

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            while (frame := read_frame(self._process.stdout, self._note_life)) is not None:
                self._note_life()
                if frame.kind != "alive":
                    self._frames.put(frame)
        except (ProtocolError, OSError, ValueError) as error:
            self._log += str(error).encode()
        self._ended.set()
        self._frames.put(None)
        self._process.stdout.close()

    def _note_life(self) -> None:
        self._heard = time.monotonic()

    def _ping(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            now = time.monotonic()
            if now > self._taken_by or now - self._heard > self._silence_limit:
                self._process.kill()  # whoever writes a job to it would wait for ever
                return
            # A job that is being written keeps the worker informed by itself: it hears every part.
            if self._lock.acquire(blocking=False):
                try:
                    assert self._process.stdin is not None
                    write_frame(self._process.stdin, {"type": "ping"})
                except (OSError, ValueError):
                    return
                finally:
                    self._lock.release()

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._process.stderr.fileno(), 4096):
                self._log += chunk
                del self._log[:-LOG_TAIL]
        self._process.stderr.close()

    def _log_text(self) -> str:
        if self._process.poll() is not None:
            self._log_reader.join(1.0)  # its last words may still be on their way
        text = self._log.decode("utf-8", "replace").strip()
        return f": {text.splitlines()[-1][:300]}" if text else ""

    def end(self) -> None:
        """Close its input, which ends it, and kill it where it takes longer than its farewell."""
        if self._farewell and self._process.stdin is not None:
            with self._lock, contextlib.suppress(OSError, ValueError):
                self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(self._farewell)
        self.kill()

    def kill(self) -> None:
        """End the process with all that it has started, and wait until it is gone."""
        self._ended.set()
        if self._process.poll() is None:
            below = descendants(self._process.pid)
            self._process.kill()
            for pid in below:  # a tool around the worker is not the worker's life
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait()
        # Each reader closes its pipe. One that a process left behind still holds would be waited for in vain.
        for reader in (self._listener, self._log_reader):
            reader.join(LINGER_SECONDS)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.close()
