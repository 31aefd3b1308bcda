"""From the report of one run to its outcome."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernel_forge.devices.compilers.messages import UserFile, token_range
from kernel_forge.devices.emulator.symbols import source_line
from kernel_forge.domain.launch import RunRequest
from kernel_forge.domain.outcome import (
    BarrierDivergence,
    LaunchFailed,
    MemoryFault,
    RunFailure,
    Thread,
    TimedOut,
    Unavailable,
    WatchHit,
)
from kernel_forge.domain.text import Location

Event = Mapping[str, Any]


class ReportReader:
    """Reads events of one executable; ``sources`` are the user's files by their names in it, for exact ranges."""

    def __init__(self, executable: Path, sources: Mapping[str, UserFile], request: RunRequest) -> None:
        self.executable = executable
        self.sources = sources
        self.request = request

    def failure(self, event: Event) -> RunFailure | None:
        """The outcome a last event stands for; None for ``done``."""
        thread = self._thread(event)
        here = self._place(event)
        match event["event"]:
            case "done":
                return None
            case "fault":
                return self._fault(event, thread, here)
            case "guard":
                return self._guard(event)
            case "misaligned":
                need = event["alignment"]
                message = f"the address {event['address']} is not a multiple of {need}, as this access needs"
                return MemoryFault("misaligned", message, here, thread)
            case "conversion" | "shift" as kind:
                return Unavailable(_undefined(kind, event["value"], event["type"]), here)
            case "barrier-divergence":
                return self._divergence(event, "barrier", "threads of one block wait at different barriers")
            case "deadlock":
                return self._divergence(event, "deadlock", "no thread of the block can go on")
            case "warp-mask":
                message = f"{event['message']}: mask {event['mask']}, lanes {event['lanes']}"
                return self._divergence(event, "warp-mask", message, thread)
            case "unsupported":
                return Unavailable(f"the emulator does not have {event['what']}", here)
            case "assert":
                return LaunchFailed("assert", f"assertion failed: {event['expression']}", here, thread)
            case "trap":
                return LaunchFailed("trap", "the kernel trapped", here, thread)
            case "output-limit" | "memory-limit" as kind:
                return LaunchFailed(kind, event["message"], here, thread)
            case "configuration":
                return LaunchFailed("configuration", event["message"])
            case "timeout":
                return self._timeout(event, thread, here)
            case other:
                return LaunchFailed("crash", f"the emulated run ended with {other}: {event.get('message', '')}")

    def watch_hit(self, event: Event) -> WatchHit:
        """Who wrote the watched element last."""
        thread = self._thread(event)
        return WatchHit(thread or Thread((0, 0, 0), (0, 0, 0)), self._address(event.get("pc")))

    def _fault(self, event: Event, thread: Thread | None, here: Location | None) -> RunFailure:
        kind = event["kind"]
        if kind == "crash":
            return LaunchFailed("crash", event.get("message", "the kernel crashed"), here, thread)
        is_write = bool(event["write"]) if "write" in event else None
        verb = "access" if is_write is None else "write" if is_write else "read"
        buffer = self._buffer(event)
        if kind == "stack-overflow":
            return MemoryFault(kind, "a thread used more local memory than CUDA allows (512 KiB)", here, thread)
        if kind == "null":
            return MemoryFault(kind, f"{verb} through a null pointer", here, thread, is_write=is_write)
        if kind == "read-only":
            message = f"write to {buffer}, which is an input"
            return MemoryFault(kind, message, here, thread, buffer, event.get("offset"), True)
        if buffer is None:
            message = f"{verb} at {event.get('address')}, which belongs to no buffer"
            return MemoryFault(kind, message, here, thread, is_write=is_write)
        offset, size = event["offset"], event["bytes"]
        message = f"{verb} {_where(offset, size)} {buffer} ({size} bytes)"
        if event.get("message"):
            message += f"; {event['message']}"
        return MemoryFault(kind, message, here, thread, buffer, offset, is_write)

    def _guard(self, event: Event) -> MemoryFault:
        buffer = self.request.buffers[event["buffer"]]
        offset = event["offset"]
        message = f"write {_where(offset, buffer.nbytes)} {buffer.name} ({buffer.nbytes} bytes), found after the run"
        return MemoryFault("guard-band", message, None, None, buffer.name, offset, True)

    def _divergence(self, event: Event, kind: str, message: str, thread: Thread | None = None) -> BarrierDivergence:
        sites = event["sites"]
        places = tuple(p for site in sites if (p := self._place(site)) is not None)
        block = tuple(event.get("block", (0, 0, 0)))
        parts = [f"{site['count']} at line {site['line']}" for site in sites]
        if thread is None and sites:
            thread = Thread(block, tuple(sites[0]["thread"]))
        detail = f" ({', '.join(parts)})" if parts and kind != "warp-mask" else ""
        return BarrierDivergence(kind, message + detail, places, thread)

    def _timeout(self, event: Event, thread: Thread | None, here: Location | None) -> TimedOut:
        where = here or self._address(event.get("pc"))
        if where is None and event["sites"]:
            where = self._place(event["sites"][0])
        limit = self.request.time_limit
        return TimedOut(limit, f"the kernel did not end within {limit:g} s", where, thread)

    def _buffer(self, event: Event) -> str | None:
        if "shared" in event:
            return f"shared {event['shared']}" if "memory" not in event["shared"] else event["shared"]
        if "buffer" in event and event["buffer"] >= 0:
            return self.request.buffers[event["buffer"]].name
        return None

    def _thread(self, event: Event) -> Thread | None:
        if "thread" not in event or "block" not in event:
            return None
        return Thread(tuple(event["block"]), tuple(event["thread"]))

    def _place(self, event: Event) -> Location | None:
        if "file" in event and (file := self.sources.get(event["file"])) is not None:
            column = event["column"] - 1 if event.get("column") else None
            return Location(file.path, token_range(file.text, event["line"] - 1, column))
        return self._address(event.get("pc"))

    def _address(self, pc: str | None) -> Location | None:
        if pc is None:
            return None
        found = source_line(self.executable, int(pc, 16))
        file = None if found is None else self.sources.get(found[0])
        if found is None or file is None:
            return None
        return Location(file.path, token_range(file.text, found[1] - 1, None))


def _undefined(operation: str, value: str, integer: str) -> str:
    """Why the result of an operation is not a GPU's, and how to write one that has the same result everywhere."""
    if operation == "shift":
        return (
            f"a shift of {integer} by {value}: C++ leaves the result open, a GPU shifts every bit out, the emulator "
            "does not; test the count first"
        )
    return (
        f"the value {value} is out of the range of {integer}: C++ leaves the result open, a GPU saturates to 32 or 64 "
        "bits, the emulator does not; clamp the value first, or say what is meant by __float2int_rz or its like"
    )


def _where(offset: int, size: int) -> str:
    if offset < 0:
        return f"{-offset} bytes before"
    if offset == size:
        return "right past the end of"
    return f"{offset - size} bytes past the end of" if offset > size else f"at byte {offset} of"


def read_events(path: Path) -> list[Event]:
    """The events of a report, without a last line that was cut off."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    events = []
    for line in lines:
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return events
