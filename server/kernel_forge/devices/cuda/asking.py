"""Asking the worker for something other than a run: an answer, or in one sentence why there is none."""

from collections.abc import Mapping, Sequence
from typing import Any

from kernel_forge.devices.cuda.outcomes import broken
from kernel_forge.devices.cuda.pool import WorkerPool
from kernel_forge.devices.cuda.protocol import Frame
from kernel_forge.devices.cuda.supervisor import Lost, WorkerUnavailable
from kernel_forge.domain.outcome import Unavailable


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
            return broken(answer.header)
        case "missing":
            return Unavailable(missing)
        case "unfinished":
            return Unavailable(f"{doing}: {answer.header.get('reason')}")
        case _:
            return answer
