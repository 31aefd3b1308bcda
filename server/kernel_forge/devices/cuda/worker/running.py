"""One execution of a request on fresh memory, and what came of it as plain facts."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pycuda.driver as cuda

from kernel_forge.devices.cuda.wire import WireBuffer, WireLaunch, WireRun
from kernel_forge.devices.cuda.worker.driver_library import CudaError
from kernel_forge.devices.cuda.worker.gpu import Gpu
from kernel_forge.devices.cuda.worker.memory import GuardedBuffer, Memory, PlainBuffer
from kernel_forge.devices.cuda.worker.result import Result
from kernel_forge.devices.cuda.worker.textures import make_texture

_POLL_SECONDS = 0.0002
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


class LoadedCode:
    """A module with the kernels of a run; :meth:`close` unloads it."""

    def __init__(self, gpu: Gpu, run: WireRun) -> None:
        self._library = gpu.library
        self._entries = run.code.entries
        with staged("load"):
            self._module = gpu.library.load_module(bytes(run.code.image))
        self._functions: dict[str, int] = {}

    def function(self, kernel: str) -> int:
        """The handle of a kernel, as the request names it."""
        if kernel not in self._functions:
            with staged("load"):
                self._functions[kernel] = self._library.function(self._module, self._entries[kernel])
        return self._functions[kernel]

    def symbol(self, name: str) -> tuple[int, int]:
        """Address and size of a variable, as the request names it."""
        with staged("load"):
            return self._library.symbol(self._module, self._entries[name])

    def close(self) -> None:
        """Unload."""
        self._library.unload_module(self._module)


class SymbolBuffer(Memory):
    """A ``__constant__`` or ``__device__`` variable as a buffer."""

    def __init__(self, code: LoadedCode, buffer: WireBuffer) -> None:
        address, size = code.symbol(buffer.name)
        if size < buffer.nbytes:
            message = f"{buffer.name} has {size} bytes, the spec says {buffer.nbytes}"
            raise CudaError(message, 1, "CUDA_ERROR_INVALID_VALUE")
        super().__init__(buffer, address)


def execute(gpu: Gpu, run: WireRun, text: Callable[[], str], *, plain_memory: bool = False) -> Result:
    """Load, allocate, launch, wait, and look at the memory; never raises for what the kernel does.

    ``text`` gives what the device has printed since the run began. ``plain_memory`` is for a sanitizer, which
    watches ordinary allocations: they are not poisoned, since it must see what nobody writes, and their addresses are
    told, since its report has them.
    """
    memory: dict[str, Memory] = {}
    code: LoadedCode | None = None
    try:
        code = LoadedCode(gpu, run)
        with staged("allocate"):
            for buffer in run.buffers:
                memory[buffer.name] = _allocate(gpu, code, buffer, run.poison_seed, plain_memory)
                if not plain_memory or buffer.data is not None:
                    memory[buffer.name].fill(buffer.initial(run.poison_seed))
        begin = time.perf_counter()
        for number, launch in enumerate(run.launches):
            with staged(f"launch {number}"):
                launch_on(gpu, code, launch, {name: m.address for name, m in memory.items()})
        with staged("run"):
            wait(gpu, begin + run.time_limit)
            gpu.context.synchronize()
        seconds = time.perf_counter() - begin
        with staged("read"):
            if plain_memory:
                return Result({"status": "ran", "seconds": seconds, "text": text(), "outputs": [], **_told(memory)})
            return _look(run, memory, seconds, text())
    except CudaError as error:
        spent = error.code in STICKY
        header = {
            "status": "error",
            "stage": getattr(error, "stage", "run"),
            "call": error.call,
            "code": error.code,
            "name": error.name,
            "text": text(),
        }
        return Result({**header, **_told(memory)} if plain_memory else header, spent=spent)
    except StillRunning:
        return Result({"status": "timeout", "text": text()}, spent=True)
    finally:
        # Where the context is lost all of these fail, and the process that ends next frees everything.
        with contextlib.suppress(CudaError, cuda.Error):
            for held in memory.values():
                held.free()
            if code is not None:
                code.close()


def _told(memory: dict[str, Memory]) -> dict[str, Any]:
    # A texture's is no address of memory.
    buffers = {name: held.address for name, held in memory.items() if held.buffer.texture is None}
    return {"addresses": buffers}


def _allocate(gpu: Gpu, code: LoadedCode, buffer: WireBuffer, seed: int, plain_memory: bool) -> Memory:
    if buffer.symbol:
        return SymbolBuffer(code, buffer)
    if buffer.texture is not None:
        return make_texture(gpu, buffer, buffer.texture)
    return PlainBuffer(buffer) if plain_memory else GuardedBuffer(gpu, buffer, seed)


def launch_on(gpu: Gpu, code: LoadedCode, launch: WireLaunch, addresses: dict[str, int]) -> None:
    """Queue one launch on the GPU's stream."""
    function = code.function(launch.kernel)
    gpu.library.allow(function, launch.shared_bytes, launch.cluster)
    args = [addresses[a].to_bytes(8, "little") if isinstance(a, str) else a for a in launch.args]
    gpu.library.launch(
        function,
        launch.grid,
        launch.block,
        launch.shared_bytes,
        gpu.stream.handle,
        args,
        launch.cluster,
        launch.cooperative,
    )


def wait(gpu: Gpu, deadline: float) -> None:
    """Wait for everything queued on the stream, without being stuck in the driver.

    Raises:
        StillRunning: it has not ended at ``deadline`` (of ``time.perf_counter``).
    """
    end = cuda.Event()
    end.record(gpu.stream)
    pause = _POLL_SECONDS / 4
    while not end.query():
        if time.perf_counter() > deadline:
            raise StillRunning
        time.sleep(pause)
        pause = min(pause * 2, 0.01)


def _look(run: WireRun, memory: dict[str, Memory], seconds: float, text: str) -> Result:
    header: dict[str, Any] = {"status": "ran", "seconds": seconds, "text": text, "outputs": []}
    arrays = []
    for buffer in run.buffers:
        held = memory[buffer.name]
        damage = held.damage()
        if damage is not None and "guard" not in header:
            header["guard"] = {"buffer": buffer.name, "offset": damage}
        contents = held.contents()
        if buffer.writable:
            header["outputs"].append({"name": buffer.name, "nbytes": contents.nbytes})
            arrays.append(contents)
        elif "changed" not in header:
            before = buffer.initial(run.poison_seed).view(np.uint8)
            changed = np.flatnonzero(before != contents.view(np.uint8))
            if len(changed):
                header["changed"] = {"buffer": buffer.name, "offset": int(changed[0])}
    return Result(header, arrays)
