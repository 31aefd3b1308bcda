"""Asks for compilations by forks of a process that has NVRTC loaded (``nvrtc_forks``)."""

import json
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel_forge.devices.compilers.gpu.nvrtc_forks import BEGUN

_COMMAND = (sys.executable, "-P", "-m", "kernel_forge.devices.compilers.gpu.nvrtc_forks")
_ATTEMPTS = 3
_GRACE = 5.0
"""Seconds that a fork has to end after its time limit, which it keeps itself, and the server to end."""
_MOST_ERRORS = 1 << 16


class ForkServerGone(Exception):
    """The process that forks does not start, or ends again and again; the text says what it wrote last."""


class ForkServer:
    """The process, started when it is needed and again where it has ended. Thread-safe; Linux only.

    It ends with this process and with this object.
    """

    def __init__(self, library: Path, includes: Sequence[Path]) -> None:
        self._arguments = (str(library), *map(str, includes))
        self._lock = threading.Lock()
        self._jobs: socket.socket | None = None
        self._end: weakref.finalize[..., ForkServer] | None = None

    def ask(self, job: Mapping[str, Any], time_limit: float) -> tuple[bytes, bytes]:
        """The answer to a job, and what was written to standard error.

        The answer is empty where the fork crashed, or was killed because ``time_limit`` (seconds) had passed.

        Raises:
            ForkServerGone: no fork began.
            TimeoutError: one did not end long after its time.
        """
        message = json.dumps({**job, "time_limit": time_limit}).encode()
        errors = b""
        for _ in range(_ATTEMPTS):
            jobs = self._started()
            answer, errors = _ask(jobs, message, time_limit)
            if answer.startswith(BEGUN):
                return answer.removeprefix(BEGUN), errors
            self._close(jobs)
        raise ForkServerGone(errors.decode("utf-8", "replace").strip().rpartition("\n")[2] or "it ends at once")

    def _started(self) -> socket.socket:
        with self._lock:
            if self._jobs is None:
                self._jobs, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    process = subprocess.Popen(
                        [*_COMMAND, str(theirs.fileno()), *self._arguments],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        pass_fds=[theirs.fileno()],
                        process_group=0,
                    )
                self._end = weakref.finalize(self, _end, self._jobs, process)
            return self._jobs

    def _close(self, jobs: socket.socket) -> None:
        with self._lock:
            if self._jobs is jobs and self._end is not None:
                self._end()
                self._jobs = self._end = None


def _end(jobs: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    jobs.close()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ask(jobs: socket.socket, message: bytes, time_limit: float) -> tuple[bytes, bytes]:
    """What comes back from a fork and its standard error; nothing where none could be asked for."""
    ours, theirs = socket.socketpair()
    errors, their_errors = os.pipe()
    pieces = []
    try:
        try:
            socket.send_fds(jobs, [b"j"], [theirs.fileno(), their_errors])
        finally:
            theirs.close()
            os.close(their_errors)
        ours.settimeout(time_limit + _GRACE)
        ours.sendall(message)
        ours.shutdown(socket.SHUT_WR)
        while piece := ours.recv(1 << 16):
            pieces.append(piece)
        return b"".join(pieces), os.read(errors, _MOST_ERRORS)
    except TimeoutError:
        raise
    except OSError:  # it ended; what came until then tells whether the job had begun
        return b"".join(pieces), b""
    finally:
        ours.close()
        os.close(errors)
