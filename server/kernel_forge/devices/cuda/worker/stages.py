"""Where in an execution the driver refused something, and which refusals the process does not survive."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pycuda.driver as cuda

from kernel_forge.devices.cuda.worker.driver_library import CudaError

# After these the context is of no use any more (CUresult, "sticky" errors): the process must end.
STICKY = frozenset({700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999})


class StillRunning(Exception):
    """The launches did not end within their limit: nothing but the end of the process stops them."""


@contextlib.contextmanager
def staged(stage: str) -> Iterator[None]:
    """Mark errors of the driver with where they happened; PyCUDA's become :class:`CudaError`."""
    try:
        yield
    except CudaError as error:
        if not hasattr(error, "stage"):  # else it happened in a stage within this one
            error.stage = stage  # type: ignore[attr-defined]
        raise
    except cuda.Error as error:
        made = _from_pycuda(error)
        made.stage = stage  # type: ignore[attr-defined]
        raise made from None


def error_facts(error: CudaError, text: str) -> dict[str, Any]:
    """What the owner is told of an error; ``text`` is what the device had printed."""
    stage = getattr(error, "stage", "run")
    facts = {"status": "error", "stage": stage, "call": error.call, "code": error.code, "name": error.name}
    return {**facts, "text": text}


def _from_pycuda(error: cuda.Error) -> CudaError:
    """PyCUDA says ``cuMemAlloc failed: out of memory``; its class tells memory errors, the rest goes by the text."""
    text = str(error)
    code = 2 if isinstance(error, cuda.MemoryError) else _CODES.get(text.partition("failed: ")[2].split(" - ")[0], 999)
    return CudaError(text, code, text.partition("failed: ")[2] or text)


_CODES = {
    "an illegal memory access was encountered": 700,
    "invalid argument": 1,
    "invalid value": 1,
    "too many resources requested for launch": 701,
    "the launch timed out and was terminated": 702,
    "device-side assert triggered": 710,
    "hardware stack error": 714,
    "an illegal instruction was encountered": 715,
    "misaligned address": 716,
    "operation not supported on global/shared address space": 717,
    "invalid program counter": 718,
    "unspecified launch failure": 719,
    "launch failed": 719,
    "out of memory": 2,
}
