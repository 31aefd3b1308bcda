"""The worker's loop: frames in, results out, heartbeat beside."""

import ctypes
import os
import queue
import resource
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from kernel_forge.devices.cuda.keeping import Kept
from kernel_forge.devices.cuda.protocol import (
    BEAT_SECONDS,
    SILENCE_LIMIT,
    VERSION,
    Frame,
    ProtocolError,
    read_frame,
    write_frame,
)
from kernel_forge.devices.cuda.wire import as_bytes, decode_plan, decode_runs
from kernel_forge.processes import end_after, end_with_parent

SANITIZER_GRACE = 5.0
NO_DRIVER = "there is no NVIDIA driver on this machine (libcuda.so.1 cannot be loaded)"


class _Channel:
    """The streams to the owner, and what the owner was last heard of."""

    def __init__(self) -> None:
        self._input = sys.stdin.buffer
        self._output: BinaryIO = os.fdopen(os.dup(1), "wb")
        self._lock = threading.Lock()
        self._heard = time.monotonic()
        self.jobs: queue.SimpleQueue[Frame] = queue.SimpleQueue()

    def start(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()

    def send(self, header: Mapping[str, Any], payload: Sequence[bytes | memoryview] = ()) -> None:
        try:
            with self._lock:
                write_frame(self._output, header, payload)
        except OSError:
            os._exit(0)  # the owner is gone, and with it the reason to be

    def _listen(self) -> None:
        """The end of the input ends the process at once, also in the middle of a kernel."""
        status = 0
        try:
            while (frame := read_frame(self._input, self._note_life)) is not None:
                self._note_life()
                if frame.kind == "job":
                    self.jobs.put(frame)
        except ProtocolError as error:
            print(f"kernel-forge worker: {error}", file=sys.stderr, flush=True)
            status = 2
        os._exit(status)

    def _note_life(self) -> None:
        self._heard = time.monotonic()

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            self.send({"type": "alive"})
            if time.monotonic() - self._heard > SILENCE_LIMIT:
                os._exit(3)  # half-open connection: nobody will ever read the results


class _DeviceText:
    """What the device prints: ``printf`` and failed assertions end up in the process's own stdout and stderr."""

    def __init__(self) -> None:
        self._file = os.memfd_create("kernel-forge-device-text")
        self._stderr = os.dup(2)
        sys.stderr = os.fdopen(self._stderr, "w", buffering=1)
        os.dup2(self._file, 1)
        os.dup2(self._file, 2)

    def clear(self) -> None:
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)

    def read(self, limit: int) -> str:
        return os.pread(self._file, limit, 0).decode("utf-8", "replace")


def serve(ordinal: int, *, plain_memory: bool = False) -> None:
    """Serve jobs for GPU ``ordinal`` on stdin and stdout until the input ends.

    ``plain_memory`` takes buffers from the ordinary allocator, as a sanitizer needs it.
    """
    end_with_parent()
    _lift_memory_limit()
    channel = _Channel()
    device_text = _DeviceText()
    channel.start()
    try:
        from kernel_forge.devices.cuda.worker.gpu import Gpu
        from kernel_forge.devices.cuda.worker.memory import page_locked_copy
        from kernel_forge.devices.cuda.worker.sanitizing import find_sanitizer

        gpu = Gpu(ordinal)
        sanitizer = find_sanitizer()
        facts = {**gpu.facts(), **({"compute_sanitizer": sanitizer} if sanitizer else {})}
    except ModuleNotFoundError as error:
        install = 'pip install "kernel-forge-lsp[gpu]", or in a clone pip install -e ".[gpu]"'
        hint = f"{error.name} is not installed: {install} (it builds against a CUDA toolkit)"
        hint = hint if _has_driver() else NO_DRIVER
        channel.send({"type": "hello", "version": VERSION, "error": hint})
        return
    except Exception as error:  # no driver, no device: the owner says so to the user
        channel.send({"type": "hello", "version": VERSION, "error": f"{type(error).__name__}: {error}"})
        return
    channel.send({"type": "hello", "version": VERSION, "pid": os.getpid(), "facts": facts})
    kept = Kept(page_locked_copy)
    while True:
        frame = channel.jobs.get()
        spent = _do(gpu, frame, kept, channel, device_text, plain_memory)
        if spent:
            os._exit(0)  # a lost context is not cleaned up; the driver does it when the process ends


def _do(gpu: Any, frame: Frame, kept: Kept, channel: _Channel, device_text: _DeviceText, plain_memory: bool) -> bool:
    from kernel_forge.devices.cuda.worker.profiling import profile
    from kernel_forge.devices.cuda.worker.running import execute
    from kernel_forge.devices.cuda.worker.sanitizing import sanitize
    from kernel_forge.devices.cuda.worker.timing import measure

    number = frame.header.get("number")
    device_text.clear()
    try:
        runs = decode_runs(frame, kept)
        limit = max(r.output_limit for r in runs)
        if plain_memory:
            # Under a sanitizer waiting for a kernel without end holds the interpreter's lock: no thread of ours would
            # see the limit, or that the owner has gone.
            end_after(runs[0].time_limit + SANITIZER_GRACE)

        def text() -> str:
            return device_text.read(limit + 1)

        match frame.header["task"]:
            case "time":
                result = measure(gpu, runs, decode_plan(frame.header["plan"]), text, int(frame.header["controls"]))
            case "profile":
                result = profile(gpu.ordinal, frame, runs[0].time_limit)
            case "sanitize":
                result = sanitize(gpu.ordinal, frame, runs[0].time_limit)
            case _:
                result = execute(gpu, runs[0], text, plain_memory=plain_memory)
    except Exception:  # our bug: the owner gets the trace
        channel.send({"type": "result", "number": number, "status": "broken", "trace": traceback.format_exc()})
        return True
    end_after(0)
    payload = [as_bytes(a) for a in result.arrays]
    channel.send({"type": "result", "number": number, "spent": result.spent, **result.header}, payload)
    return result.spent


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _lift_memory_limit() -> None:
    """The driver reserves address space for all memory of the machine and of its GPUs: a limit of our owner's on that
    would stop it at the door."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
