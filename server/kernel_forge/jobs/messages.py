"""What a worker and its owner say to each other: one JSON object a line.

Worker: ``Hello`` once, then for each job ``Prepared`` once, ``Told`` once unless it fails before, any number of
``Stepped``, ``Entered`` and ``Left``, and exactly one ``Done`` or ``Failed``.
Owner: ``Job``, the next one only after the last has ended, and during a job ``Finish`` any number of times. End of
input ends the worker.
"""

import json
from dataclasses import dataclass
from typing import Any

from kernel_forge.domain.errors import InternalError
from kernel_forge.domain.event import Progress
from kernel_forge.domain.text import Location
from kernel_forge.jobs.requests import Circumstances, JobReport, Request
from kernel_forge.jobs.wire import VERSION, decode, encode


@dataclass(frozen=True)
class Hello:
    """The worker is ready."""

    version: int


@dataclass(frozen=True)
class Job:
    """Do this."""

    number: int
    request: Request


@dataclass(frozen=True)
class Finish:
    """Come to an end with what you have: a search stops asking, and verifies its best."""

    number: int


@dataclass(frozen=True)
class Prepared:
    """The device is ready for the job, whose time begins now: it had things to make that are made once per machine."""

    number: int


@dataclass(frozen=True)
class Told:
    """Under which circumstances the job is about to run its kernels."""

    number: int
    circumstances: Circumstances


@dataclass(frozen=True)
class Stepped:
    """The job goes on."""

    number: int
    progress: Progress


@dataclass(frozen=True)
class Entered:
    """The job begins to run Python of the user's: should the worker end now, that has ended it.

    ``what`` names it (``f of ref.py``), ``location`` is the place that asks for it.
    """

    number: int
    what: str
    location: Location | None


@dataclass(frozen=True)
class Left:
    """The user's Python of the last ``Entered`` has returned."""

    number: int


@dataclass(frozen=True)
class Done:
    """The job ended with a report."""

    number: int
    report: JobReport


@dataclass(frozen=True)
class Failed:
    """The job could not be done: ``kind`` is usage, unavailable or internal."""

    number: int
    kind: str
    message: str


Message = Hello | Job | Finish | Prepared | Told | Stepped | Entered | Left | Done | Failed
_KINDS: dict[str, Any] = {
    k.__name__: k for k in (Hello, Job, Finish, Prepared, Told, Stepped, Entered, Left, Done, Failed)
}
HELLO = Hello(VERSION)


def to_line(message: Message) -> bytes:
    """One line of JSON, newline included."""
    return json.dumps(encode(message), separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes) -> Message:
    """The message of one line.

    Raises:
        InternalError: not one of ours.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise InternalError(f"not a message: {line[:200]!r}") from None
    kind = _KINDS.get(str(data.get("type"))) if isinstance(data, dict) else None
    if kind is None:
        raise InternalError(f"not a message: {line[:200]!r}")
    message: Message = decode(kind, data)
    return message
