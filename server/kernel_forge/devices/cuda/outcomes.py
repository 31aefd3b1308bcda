"""From what a worker reports to the outcome of the run."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from kernel_forge.devices.compilers.messages import UserFile, token_range
from kernel_forge.devices.cuda.protocol import Frame, ProtocolError
from kernel_forge.devices.cuda.supervisor import Lost
from kernel_forge.domain.launch import Buffer, RunRequest
from kernel_forge.domain.outcome import (
    LaunchFailed,
    MemoryFault,
    Ran,
    RunFailure,
    RunOutcome,
    Thread,
    TimedOut,
    Unavailable,
)
from kernel_forge.domain.text import Location

T = TypeVar("T")
_ASSERT = re.compile(
    r"^(?P<file>.+?):(?P<line>\d+): .*?block: \[(?P<block>\d+,\d+,\d+)\], thread: \[(?P<thread>\d+,\d+,\d+)\] "
    r"Assertion `(?P<expression>.*)` failed\.",
    re.MULTILINE,
)
# CUresult -> kind and what to say. The hardware reports neither address nor line.
_FAULTS = {
    700: ("out-of-bounds", "access to memory that belongs to no buffer"),
    716: ("misaligned", "an address is not a multiple of what its access needs"),
    714: ("stack-overflow", "a thread used more stack than it has, or its stack was damaged"),
    717: ("out-of-bounds", "access in the wrong address space"),
    718: ("out-of-bounds", "jump to an address that is no code"),
}
# What a launch can be refused for, by its own fault: the shape, the resources, a cluster, cooperation.
_REFUSALS = frozenset({1, 701, 703, 720, 801, 912, 915})
_OUT_OF_MEMORY, _WATCHDOG = 2, 702
_NO_PLACE = "the GPU does not say where"


def run_outcome(answer: Frame | Lost, request: RunRequest, sources: Mapping[str, UserFile]) -> RunOutcome:
    """The outcome of one execution; ``sources`` are the user's files by compiled name."""
    if isinstance(answer, Lost):
        if answer.timed_out:
            return _timed_out(request)
        return Unavailable(f"the GPU worker was lost: {answer.reason}")
    return understood(lambda: _of_answer(answer, request, sources))


def understood(read: Callable[[], T], doing: str = "") -> T | Unavailable:
    """What ``read`` makes of an answer, or why it cannot: the worker is a program on another machine, perhaps.

    ``doing`` tells what was going on (*while timing*).
    """
    try:
        return read()
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError, ProtocolError) as error:
        where = f"{doing} " if doing else ""
        return Unavailable(f"{where}the GPU worker's answer is not understood: {error!r:.200}")


def broken(header: Mapping[str, Any]) -> Unavailable:
    """What a worker says that failed by itself: the last line of its traceback."""
    lines = str(header.get("trace")).strip().splitlines()
    return Unavailable(f"the GPU worker failed: {lines[-1] if lines else 'it does not say why'}")


def _of_answer(answer: Frame, request: RunRequest, sources: Mapping[str, UserFile]) -> RunOutcome:
    match answer.header["status"]:
        case "ran":
            return _ran(answer, request)
        case "timeout":
            return _timed_out(request)
        case "broken":
            return broken(answer.header)
        case _:
            return driver_failure(answer.header, request, sources)


def _timed_out(request: RunRequest) -> TimedOut:
    return TimedOut(request.time_limit, f"the kernel did not end within {request.time_limit:g} s")


def _ran(answer: Frame, request: RunRequest) -> RunOutcome:
    header = answer.header
    by_name = {b.name: b for b in request.buffers}
    if len(header["text"].encode("utf-8", "surrogatepass")) > request.output_limit:
        return LaunchFailed("output-limit", f"the kernel printed more than {request.output_limit} bytes")
    if "guard" in header:
        buffer = by_name[header["guard"]["buffer"]]
        offset = int(header["guard"]["offset"])
        message = f"write {where_in(offset, buffer)} ({buffer.nbytes} bytes), found after the run"
        return MemoryFault("guard-band", message, buffer=buffer.name, offset=offset, is_write=True)
    if "changed" in header:
        buffer = by_name[header["changed"]["buffer"]]
        offset = int(header["changed"]["offset"])
        message = f"write to {buffer.name}, which is an input, found after the run"
        return MemoryFault("read-only", message, buffer=buffer.name, offset=offset, is_write=True)
    expected = [(b.name, b.nbytes) for b in request.buffers if b.writable]
    if [(o["name"], o["nbytes"]) for o in header["outputs"]] != expected:
        raise ValueError("the outputs are not those that were asked for")
    parts = answer.arrays(o["nbytes"] for o in header["outputs"])
    return Ran(contents(parts, header["outputs"], by_name), header["text"], float(header["seconds"]))


def contents(
    parts: Sequence[memoryview], outputs: Sequence[Mapping[str, Any]], by_name: Mapping[str, Buffer]
) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """The arrays of a result by buffer."""
    return {
        o["name"]: np.frombuffer(part, dtype=by_name[o["name"]].dtype.numpy)
        for o, part in zip(outputs, parts, strict=True)
    }


def where_in(offset: int, buffer: Buffer) -> str:
    """Where a byte lies, ``offset`` bytes from the start of ``buffer``, in words."""
    if 0 <= offset < buffer.nbytes:
        return f"at byte {offset} of {buffer.name}"
    if offset < 0:
        return f"{-offset} bytes before {buffer.name}"
    past = offset - buffer.nbytes
    return f"{past} bytes past the end of {buffer.name}" if past else f"right past the end of {buffer.name}"


def driver_failure(header: Mapping[str, Any], request: RunRequest, sources: Mapping[str, UserFile]) -> RunFailure:
    """The outcome of an error of the driver."""
    code, name, stage = int(header["code"]), str(header["name"]), str(header["stage"])
    if code == _OUT_OF_MEMORY:
        needed = sum(b.nbytes for b in request.buffers) / 2**20
        return Unavailable(f"the GPU has no memory for the {needed:.0f} MiB of this case ({name})")
    if code in _FAULTS:
        kind, message = _FAULTS[code]
        return MemoryFault(kind, f"{message} ({name}); {_NO_PLACE}")
    if code == 710:
        return _assertion(str(header["text"]), sources)
    if code == 715:
        return LaunchFailed("trap", "the kernel trapped or executed an illegal instruction")
    if code == 719:
        message = f"the hardware ended the kernel ({name}), most often for an access to shared memory out of bounds"
        return MemoryFault("out-of-bounds", f"{message}; {_NO_PLACE}")
    if code == _WATCHDOG:
        return TimedOut(request.time_limit, f"the driver ended the kernel, which held up the display ({name})")
    if code in _REFUSALS and stage != "run":
        return LaunchFailed("configuration", f"the driver refuses the launch: {header['call']}: {name}")
    # Damaged memory, a driver too old, a GPU that fell off the bus: nothing that a kernel could be blamed for.
    return Unavailable(f"the GPU or its driver failed: {header['call']}: {name} ({code})")


def _assertion(text: str, sources: Mapping[str, UserFile]) -> LaunchFailed:
    match = _ASSERT.search(text)
    if match is None:
        return LaunchFailed("assert", "an assertion failed")
    path, line = match["file"], int(match["line"]) - 1
    place = Location(sources[path].path, token_range(sources[path].text, line, None)) if path in sources else None
    thread = Thread(_three(match["block"]), _three(match["thread"]))
    return LaunchFailed("assert", f"assertion failed: {match['expression']}", place, thread)


def _three(text: str) -> tuple[int, int, int]:
    x, y, z = (int(part) for part in text.split(","))
    return (x, y, z)
