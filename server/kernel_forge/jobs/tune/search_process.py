"""A search in a process of its own.

Where many trials are compiled, run and judged at a time, the arithmetic of a sampler would wait most of the time for
the interpreter's lock, and hold it against the threads that keep the GPU busy. The other side is
:mod:`kernel_forge.search.serving`.
"""

import contextlib
import os
import pickle
import select
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from kernel_forge.domain.errors import InternalError
from kernel_forge.search import Proposal, SearchSpace, Value, begin_search
from kernel_forge.search.serving import LENGTH

_COMMAND = (sys.executable, "-P", "-m", "kernel_forge.search.serving")


class AskAndTell(Protocol):
    """What a search does for the one who tries, as :class:`~kernel_forge.search.Search` has it."""

    @property
    def space(self) -> SearchSpace:
        """What is searched."""
        ...

    def ask(self) -> Proposal | None:
        """The next configuration to try; None where none is left."""
        ...

    def tell(self, proposal: Proposal, value: float) -> None:
        """The time of a proposal."""
        ...

    def tell_failed(self, proposal: Proposal, reason: str) -> None:
        """A proposal that has none."""
        ...

    def recall(self, configuration: Mapping[str, Value], value: float | None) -> None:
        """A trial that was made before."""
        ...


SearchOf = Callable[[SearchSpace, str, int, Sequence[Mapping[str, Value]]], AskAndTell]
"""A search of a space by the sampler of a name with a seed, which tries the configurations of the list first."""


class SearchProcess:
    """A process that will search. To be started early: it takes a second or so until it can.

    Until then this process searches as well. Both do the same: what a search proposes depends on its seed and on the
    order in which it is asked and told, and on nothing else.

    For one thread. It ends with this process, whose end of its input is then closed.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        self._answers = self._process.stdout.fileno()
        self._here: AskAndTell | None = None
        self._asked = self._due = 0

    @property
    def pid(self) -> int:
        """Its number among the system's processes."""
        return self._process.pid

    @property
    def searches(self) -> bool:
        """Whether it is this process alone that searches."""
        return self._here is None and self._asked > 0

    def search(
        self, space: SearchSpace, sampler: str, seed: int, first: Sequence[Mapping[str, Value]] = ()
    ) -> AskAndTell:
        """Begin to search, once."""
        self._here = begin_search(space, sampler, seed, first)
        self._send(space, sampler, seed, tuple(first))
        return _RemoteSearch(space, self)

    def close(self) -> None:
        """End it, whatever it does: it has nothing that is not here."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # what was not sent
            self._process.stdin.close()
        self._process.stdout.close()

    def tell(self, method: str, *arguments: object) -> None:
        """Have a method of the search called; what it raises may be raised by the next :meth:`ask` only."""
        self._send(method, *arguments)
        if self._here is not None:
            getattr(self._here, method)(*arguments)

    def ask(self) -> Proposal | None:
        """The search's next proposal.

        Raises:
            InternalError: the process has ended.
        """
        self._send("ask")
        self._due += 1
        if self._here is not None and not self._is_level():
            return self._here.ask()
        self._here = None
        return self._read()

    def _is_level(self) -> bool:
        """Whether the process has answered all but the last question, and so can search from now on."""
        before = self._asked
        self._asked += 1
        while self._due > 1 and select.select([self._answers], [], [], 0)[0]:
            self._read()  # what was proposed here
        return before > 0 and self._due == 1

    def _read(self) -> Proposal | None:
        size = int.from_bytes(self._exactly(LENGTH), "little")
        answer: Proposal | Exception | None = pickle.loads(self._exactly(size))
        self._due -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _exactly(self, count: int) -> bytes:
        pieces = b""
        while len(pieces) < count:
            piece = os.read(self._answers, count - len(pieces))
            if not piece:
                raise self._ended()
            pieces += piece
        return pieces

    def _send(self, *message: object) -> None:
        assert self._process.stdin is not None
        try:
            pickle.dump(message, self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except OSError as error:
            raise self._ended() from error

    def _ended(self) -> InternalError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)  # its pipes have ended
        return InternalError(f"the process that chooses configurations ended (exit code {self._process.returncode})")


class _RemoteSearch:
    def __init__(self, space: SearchSpace, process: SearchProcess) -> None:
        self.space = space
        self._process = process

    def ask(self) -> Proposal | None:
        return self._process.ask()

    def tell(self, proposal: Proposal, value: float) -> None:
        self._process.tell("tell", proposal, value)

    def tell_failed(self, proposal: Proposal, reason: str) -> None:
        self._process.tell("tell_failed", proposal, reason)

    def recall(self, configuration: Mapping[str, Value], value: float | None) -> None:
        self._process.tell("recall", dict(configuration), value)


@contextlib.contextmanager
def searches(*, apart: bool) -> Iterator[SearchOf]:
    """What makes searches: ``apart`` in a process that is started at once, else in this one."""
    if not apart:
        yield begin_search
        return
    process = SearchProcess()
    try:
        yield process.search
    finally:
        process.close()
