"""Running a compiler so that none of its passes can outlive the caller or the time limit."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_CHILD = str(Path(__file__).with_name("supervisor.py"))


@dataclass(frozen=True, slots=True)
class Ended:
    """``status`` is the exit status, negative for a signal, None where the time was up; ``errors`` is its stderr."""

    status: int | None
    errors: str


class Supervised:
    """Commands under way, one after the other until one fails; a context manager that kills what still runs.

    A compiler driver starts further processes, which live on when only the driver is killed. These share a process
    group that is killed at the end, at the time limit (seconds, for all commands together), and when this process
    dies in whatever way.
    """

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        *,
        time_limit: float,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        words = [word for command in commands for word in (str(len(command)), *command)]
        self._deadline = time.monotonic() + time_limit
        # Our end of this pipe stays open as long as we live; the supervisor kills the group when it closes.
        theirs, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", _CHILD, *words],
                cwd=folder,
                env=None if environment is None else dict(environment),
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(theirs)

    def __enter__(self) -> "Supervised":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._process.communicate()
        os.close(self._lifeline)

    def wait(self) -> Ended:
        """Wait for the end, at most until the time limit."""
        try:
            status, errors = self._process.communicate(timeout=max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            return Ended(None, "")
        # Without a status the group was killed from outside: for lack of memory, say.
        return Ended(int(status) if status else -signal.SIGKILL, errors.decode("utf-8", "replace"))

    def kill(self) -> None:
        """Kill the whole group, if it still runs."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
