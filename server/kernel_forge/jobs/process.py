"""A worker process: its pipes, its end, and what its jobs have started."""

import asyncio
import contextlib
import os
import signal
from typing import IO

from kernel_forge.domain.errors import InternalError
from kernel_forge.jobs.messages import Entered, Finish, Hello, Job, Message, from_line, to_line
from kernel_forge.jobs.requests import Circumstances
from kernel_forge.jobs.wire import VERSION
from kernel_forge.processes import descendants

START_TIMEOUT = 30.0
END_TIMEOUT = 5.0
LOG_GRACE = 0.3
LINE_LIMIT = 64 << 20
LOG_TAIL = 16 << 10


class Worker:
    """One worker process in a session, and so a process group, of its own.

    ``inside`` tells which Python of the user's it runs now, ``ran`` how often it has run some, ``told`` what it said of
    its present job, ``number`` which job that is. The pipes are ours, not the Process's: that would count as running
    until everything that inherited one of them has ended as well.
    """

    def __init__(self, process: asyncio.subprocess.Process, pipes: "_Pipes") -> None:
        self.process = process
        self.log = bytearray()
        self.inside: Entered | None = None
        self.ran = 0
        self.told: Circumstances | None = None
        self.number: int | None = None
        self._gone = False
        self._pipes = pipes
        self._log_task = asyncio.create_task(self._read_log())

    @staticmethod
    async def start(command: tuple[str, ...]) -> "Worker":
        """Start one and wait until it is ready.

        Raises:
            InternalError: it does not start, or is of another version.
        """
        pipes = await _Pipes.open()
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipes.theirs[0], stdout=pipes.theirs[1], stderr=pipes.theirs[2], start_new_session=True
            )
        except OSError as error:
            pipes.close()
            raise InternalError(f"the job worker cannot be started: {command[0]}: {error.strerror or error}") from error
        except BaseException:
            pipes.close()
            raise
        finally:
            pipes.close_theirs()
        worker = Worker(process, pipes)
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
        while chunk := await self._pipes.errors.read(4096):
            self.log += chunk
            del self.log[:-LOG_TAIL]

    def log_text(self) -> str:
        """The end of what it wrote to its standard error."""
        return self.log.decode("utf-8", "replace")

    def write(self, message: Job | Finish) -> None:
        """Give it a job, or ask it to end the one it has."""
        self._pipes.commands.write(to_line(message))

    async def read(self) -> Message:
        """Its next message.

        Raises:
            InternalError: it ended, or said something else.
        """
        try:
            line = await self._pipes.messages.readline()
        except ValueError as error:
            raise InternalError(f"a message of the worker is too long: {error}") from None
        except ConnectionError:
            line = b""
        if not line:
            raise InternalError("the worker ended")
        return from_line(line)

    async def ending(self) -> str:
        """How it has ended, in words that follow the name of what did it."""
        try:
            status = await asyncio.wait_for(self.process.wait(), 0.5)
        except TimeoutError:
            return "wrote to, or closed, a pipe that is not its own"
        if status < 0:
            return f"ended the process it runs in by {_signal_name(-status)}"
        return f"ended the process it runs in with exit status {status}"

    async def kill(self) -> None:
        """Kill the worker with every process its jobs started, and wait until it is gone."""
        if self._gone:
            return
        if self.process.returncode is None:
            others = descendants(self.process.pid)
            _kill(self.process.pid, others)
        else:
            _kill(self.process.pid, [])  # the rest of its group
        with contextlib.suppress(TimeoutError):  # a process that the kernel itself holds up is left to it
            await asyncio.wait_for(self.process.wait(), END_TIMEOUT)
        # Who has left the group, and has no parent any more that we know, may hold the pipe open for ever.
        await asyncio.wait({self._log_task}, timeout=LOG_GRACE)
        self._log_task.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await self._log_task
        self._pipes.close()
        self._gone = True


class _Pipes:
    """Pipes to a worker's standard streams; ``theirs`` are its ends."""

    def __init__(self) -> None:
        self.theirs: tuple[int, ...] = ()
        self._transports: list[asyncio.BaseTransport] = []
        self.commands: asyncio.WriteTransport
        self.messages: asyncio.StreamReader
        self.errors: asyncio.StreamReader

    @staticmethod
    async def open() -> "_Pipes":
        made = _Pipes()
        (from_us, commands), (messages, to_us), (errors, log) = os.pipe(), os.pipe(), os.pipe()
        made.theirs = (from_us, to_us, log)
        loop = asyncio.get_running_loop()
        made.commands, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(commands, "wb", 0))
        made._transports.append(made.commands)
        made.messages = await made._reader(os.fdopen(messages, "rb", 0), LINE_LIMIT)
        made.errors = await made._reader(os.fdopen(errors, "rb", 0), LOG_TAIL)
        return made

    async def _reader(self, file: IO[bytes], limit: int) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, file)
        self._transports.append(transport)
        return reader

    def close_theirs(self) -> None:
        for end in self.theirs:
            os.close(end)
        self.theirs = ()

    def close(self) -> None:
        for transport in self._transports:
            transport.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _kill(leader: int, others: list[int]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for pid in others:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
