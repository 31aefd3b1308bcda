"""One execution of a request on fresh memory, and what came of it as plain facts."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pycuda.driver as cuda

from kernel_forge.devices.cuda.wire import WireBuffer, WireRun
from kernel_forge.devices.cuda.worker.driver_library import CudaError
from kernel_forge.devices.cuda.worker.gpu import Gpu
from kernel_forge.devices.cuda.worker.launching import Launches, LoadedCode, wait
from kernel_forge.devices.cuda.worker.memory import GuardedBuffer, Memory, PlainBuffer
from kernel_forge.devices.cuda.worker.result import Result
from kernel_forge.devices.cuda.worker.stages import STICKY, StillRunning, error_facts, staged
from kernel_forge.devices.cuda.worker.textures import make_texture


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
    loaded: list[LoadedCode] = []
    try:
        loaded.append(code := LoadedCode(gpu, run.code))
        if run.poison is not None:
            loaded.append(LoadedCode(gpu, run.poison))
        with staged("allocate"):
            for buffer in run.buffers:
                memory[buffer.name] = _allocate(gpu, code, buffer, run.poison_seed, plain_memory)
                if not plain_memory or buffer.data is not None:
                    memory[buffer.name].fill(buffer.initial(run.poison_seed))
        begin = time.perf_counter()
        launches = Launches(gpu, code, loaded[1] if run.poison is not None else None, run.poison_seed)
        launches.queue(run.launches, {name: m.address for name, m in memory.items()})
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
        header = error_facts(error, text())
        return Result({**header, **_told(memory)} if plain_memory else header, spent=spent)
    except StillRunning:
        return Result({"status": "timeout", "text": text()}, spent=True)
    finally:
        # Where the context is lost all of these fail, and the process that ends next frees everything.
        with contextlib.suppress(CudaError, cuda.Error):
            for held in memory.values():
                held.free()
            for code in loaded:
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
