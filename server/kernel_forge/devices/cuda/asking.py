"""Asking the worker for something other than a run: an answer, or in one sentence why there is none."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kernel_forge.devices.cuda.outcomes import NOT_UNDERSTOOD, last_line
from kernel_forge.devices.cuda.pool import WorkerPool
from kernel_forge.devices.cuda.protocol import Frame
from kernel_forge.devices.cuda.supervisor import Lost, WorkerUnavailable
from kernel_forge.domain.outcome import Unavailable

T = TypeVar("T")


def understood(read: Callable[[], T], doing: str) -> T | Unavailable:
    """What ``read`` makes of an answer, or why it cannot: a worker of another machine may say anything."""
    try:
        return read()
    except NOT_UNDERSTOOD as error:
        return Unavailable(f"{doing} the GPU worker's answer is not understood: {error!r:.200}")


def ask(
    pool: WorkerPool,
    job: Mapping[str, Any],
    payload: Sequence[bytes | memoryview],
    limit: float,
    *,
    doing: str,
    missing: str = "",
) -> Frame | Unavailable:
    """The worker's answer to ``job`` within ``limit`` seconds.

    ``doing`` tells in a sentence what was going on (*while timing*), ``missing`` what to install where the worker's
    machine lacks a tool.
    """
    try:
        answer = pool.ask(job, payload, limit)
    except WorkerUnavailable as error:
        return Unavailable(str(error))
    if isinstance(answer, Lost):
        return Unavailable(f"the GPU worker was lost {doing}: {answer.reason}")
    match answer.header.get("status"):
        case "broken":
            return Unavailable(f"the GPU worker failed: {last_line(answer.header.get('trace'))}")
        case "missing":
            return Unavailable(missing)
        case "unfinished":
            return Unavailable(f"{doing}: {answer.header.get('reason')}")
        case _:
            return answer
