"""Asking the worker to run under compute-sanitizer, and reading its reports.

The tool's XML is the interface: one ``record`` per thread that did something wrong, or per pair of accesses that race.
Records of the same kind at the same line are one failure: the first thread stands for all.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from xml.etree import ElementTree

from kernel_forge.devices.compilers.messages import UserFile, token_range
from kernel_forge.devices.cuda.artifacts import load_code
from kernel_forge.devices.cuda.asking import ask
from kernel_forge.devices.cuda.outcomes import understood, where_in
from kernel_forge.devices.cuda.pool import WorkerPool
from kernel_forge.devices.cuda.wire import encode_runs
from kernel_forge.domain.launch import RunRequest
from kernel_forge.domain.outcome import (
    BarrierDivergence,
    LaunchFailed,
    MemoryFault,
    RaceFound,
    SanitizerFailure,
    Thread,
    Unavailable,
)
from kernel_forge.domain.text import Location
from kernel_forge.ports import Artifact

# Beside the execution: a second process with its own context, and the tool's report. More than the worker allows itself
# for that (worker/tools.py), so that it is the worker that says what took so long.
SETUP_SECONDS = 120.0
MISSING = (
    "compute-sanitizer was not found on the GPU's machine: install the CUDA toolkit's, or "
    "pip install nvidia-cuda-sanitizer-api, or name it in KERNEL_FORGE_COMPUTE_SANITIZER"
)
# A wrong access further away than this from every buffer is said to be near none.
_NEAR = 1 << 16
_PAGE = 4096


def sanitize(
    pool: WorkerPool, artifact: Artifact, request: RunRequest, tools: Sequence[str]
) -> tuple[SanitizerFailure, ...] | Unavailable:
    """What each of ``tools`` finds in one execution, in the order of ``tools``."""
    loaded = load_code(artifact)
    if isinstance(loaded, Unavailable):
        return loaded
    code, sources = loaded
    header, payload = encode_runs([(code, request)])
    found: list[SanitizerFailure] = []
    for tool in tools:
        job = {"task": "sanitize", "tool": tool, **header}
        limit = request.time_limit + SETUP_SECONDS
        answer = ask(pool, job, payload, limit, doing=f"under {tool}", missing=MISSING)
        if isinstance(answer, Unavailable):
            return answer
        seen = understood(partial(_seen, answer.header, request, sources, tool), f"under {tool}")
        if isinstance(seen, Unavailable):
            return seen
        found.extend(seen)
    return tuple(found)


def _seen(
    header: Mapping[str, Any], request: RunRequest, sources: Mapping[str, UserFile], tool: str
) -> list[SanitizerFailure] | Unavailable:
    addresses = {str(k): int(v) for k, v in header["addresses"].items()}
    try:
        seen = read_report(str(header["report"]), request, sources, addresses)
    except ValueError as error:
        return Unavailable(f"{tool}: {error}")
    if header["run"] == "timeout":
        return Unavailable(f"the kernel did not end within {request.time_limit:g} s under {tool}")
    if header["run"] != "ran" and not seen:
        return Unavailable(f"the kernel could not be run under {tool}: {header['why']}")
    return seen


def read_report(
    xml: str, request: RunRequest, sources: Mapping[str, UserFile], addresses: Mapping[str, int]
) -> list[SanitizerFailure]:
    """The failures in a report; ``sources`` are the user's files by compiled name, ``addresses`` those of the buffers.

    Records about the driver's calls that fail after a fault, and warnings, are left out.

    Raises:
        ValueError: this is no report, or has an error of a kind that is not known here.
    """
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise ValueError(f"compute-sanitizer's report cannot be read: {error}") from None
    found: dict[object, SanitizerFailure] = {}
    for record in root.iter("record"):
        if record.findtext("level", "Error") != "Error":
            continue
        failure = _failure(record, request, sources, addresses)
        if failure is not None:
            found.setdefault(_key(failure), failure)
    return list(found.values())


def _key(failure: SanitizerFailure) -> object:
    if isinstance(failure, RaceFound):
        return (RaceFound, failure.locations)
    if isinstance(failure, BarrierDivergence):
        return (BarrierDivergence, failure.kind, failure.locations)
    return (type(failure), failure.kind, failure.location)


def _failure(
    record: ElementTree.Element, request: RunRequest, sources: Mapping[str, UserFile], addresses: Mapping[str, int]
) -> SanitizerFailure | None:
    what, place = record.find("what"), _place(record.find("where"), sources)
    if what is None:
        raise ValueError("compute-sanitizer reports an error and does not say what")
    match record.findtext("kind"):
        case "Precise":
            return _memory_fault(what, place, _thread(record), request, addresses)
        case "Initcheck" | "Uninitialized":
            return _unwritten(what, place, _thread(record), request, addresses)
        case "Synccheck":
            message = f"{what.findtext('text', 'Barrier error')}: {what.findtext('type', 'misused')}".lower()
            return BarrierDivergence("barrier", message, () if place is None else (place,), _thread(record))
        case "Analysis" | "Hazard":
            return _race(what, sources)
        case "Imprecise":
            message = what.findtext("exception") or what.findtext("text") or "the hardware ended the kernel"
            kind = "trap" if "trap" in message.lower() else "crash"
            return LaunchFailed(kind, message.lower(), place, _thread(record))
        case "Api":
            return None
        case kind:
            raise ValueError(f"compute-sanitizer reports an error of a kind that is not known here: {kind}")


def _memory_fault(
    what: ElementTree.Element,
    place: Location | None,
    thread: Thread | None,
    request: RunRequest,
    addresses: Mapping[str, int],
) -> MemoryFault:
    space, size = what.findtext("space", "").strip("_"), what.findtext("size", "?")
    direction, error = what.findtext("direction", "access"), what.findtext("error", "invalid")
    address = int(what.findtext("address", "0"), 16)
    access = f"{direction} of {size} bytes"
    is_write = {"write": True, "read": False}.get(direction)
    near = _near(address, request, addresses) if space in ("global", "") else None
    if address < _PAGE and space == "global":
        kind, message, near = "null", f"{access} through a null pointer", None
    elif error == "misaligned":
        kind, message = "misaligned", f"{access} of {space} memory at an address that is no multiple of its size"
    elif near is not None:
        kind, message = "out-of-bounds", f"{access} {near[2]}"
    else:
        kind, message = "out-of-bounds", f"{access} of {space} memory: {error}"
    name, offset = (None, None) if near is None else near[:2]
    return MemoryFault(kind, message, place, thread, name, offset, is_write)


def _unwritten(
    what: ElementTree.Element,
    place: Location | None,
    thread: Thread | None,
    request: RunRequest,
    addresses: Mapping[str, int],
) -> MemoryFault:
    near = _near(int(what.findtext("address", "0"), 16), request, addresses)
    name, offset = (None, None) if near is None else near[:2]
    of = f" of {name}" if name else ""
    message = f"read of {what.findtext('size', '?')} bytes{of} that were never written"
    return MemoryFault("unwritten", message, place, thread, name, offset, is_write=False)


def _race(what: ElementTree.Element, sources: Mapping[str, UserFile]) -> RaceFound:
    sides = [what.find("source"), what.find("destination")]
    places = [None if s is None else _place(s.find("where"), sources) for s in sides]
    accesses = [s.findtext("direction", "access").lower() for s in sides if s is not None]
    return RaceFound(
        f"{' and '.join(accesses) or 'accesses'} of the same shared memory without a barrier between them",
        tuple(dict.fromkeys(p for p in places if p is not None)),
    )


def _near(address: int, request: RunRequest, addresses: Mapping[str, int]) -> tuple[str, int, str] | None:
    """The buffer that ``address`` lies in or next to, the offset from its start, and that in words."""
    best: tuple[int, str, int, str] | None = None
    for buffer in request.buffers:
        if buffer.name in addresses:
            offset = address - addresses[buffer.name]
            distance = -offset if offset < 0 else max(0, offset - buffer.nbytes + 1)
            if distance < _NEAR and (best is None or distance < best[0]):
                best = (distance, buffer.name, offset, f"{where_in(offset, buffer)} ({buffer.nbytes} bytes)")
    return None if best is None else best[1:]


def _place(where: ElementTree.Element | None, sources: Mapping[str, UserFile]) -> Location | None:
    path, line = (None, None) if where is None else (where.findtext("path"), where.findtext("line"))
    if path is None or line is None or path not in sources:
        return None
    file = sources[path]
    return Location(file.path, token_range(file.text, int(line) - 1, None))


def _thread(record: ElementTree.Element) -> Thread | None:
    block, thread = record.find("who/blockIdx"), record.find("who/threadIdx")
    return None if block is None or thread is None else Thread(_three(block), _three(thread))


def _three(element: ElementTree.Element) -> tuple[int, int, int]:
    x, y, z = (int(element.findtext(axis, "0")) for axis in "xyz")
    return (x, y, z)
