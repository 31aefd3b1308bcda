"""Queueing the launches of a run on their streams, and waiting for them."""

import time
from collections.abc import Mapping, Sequence

import numpy as np
import pycuda.driver as cuda

from kernel_forge.devices.cuda.wire import POISON_KERNEL, Code, WireLaunch
from kernel_forge.devices.cuda.worker.gpu import Gpu
from kernel_forge.devices.cuda.worker.stages import StillRunning, staged
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import poison

_POLL_SECONDS = 0.0002
_POISON_THREADS = 1024


class LoadedCode:
    """A module with the kernels of a run; :meth:`close` unloads it."""

    def __init__(self, gpu: Gpu, code: Code) -> None:
        self._library = gpu.library
        self._entries = code.entries
        with staged("load"):
            self._module = gpu.library.load_module(bytes(code.image))
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


class Launches:
    """Queues launches of one :class:`LoadedCode`, each on its stream."""

    def __init__(self, gpu: Gpu, code: LoadedCode, poison_code: LoadedCode | None = None, seed: int = 0) -> None:
        """``poison_code`` has the kernel that fills shared memory before launches, as ``seed`` says."""
        self._gpu = gpu
        self._code = code
        self._poison_code = poison_code
        self._word = int(poison(DType.FLOAT32, 1, seed).view(np.uint32)[0])
        self._beside: dict[str, cuda.Stream] = {}

    def queue(self, launches: Sequence[WireLaunch], addresses: Mapping[str, int]) -> None:
        """Queue ``launches``; the GPU's own stream is behind all of them afterwards."""
        for number, launch in enumerate(launches):
            with staged(f"launch {number}"):
                launch_on(self._gpu, self._code, launch, addresses, self._stream(launch.stream))
        self._join()

    def _stream(self, name: str | None) -> cuda.Stream:
        """Where to queue, after what must come before: see :class:`~kernel_forge.domain.launch.Launch`."""
        if name is None:
            self._join()
            self._poison()
            return self._gpu.stream
        if name not in self._beside:
            if not self._beside:
                self._poison()
            self._beside[name] = self._gpu.named_stream(name)
            _follow(self._beside[name], self._gpu.stream)
        return self._beside[name]

    def _join(self) -> None:
        for stream in self._beside.values():
            _follow(self._gpu.stream, stream)
        self._beside.clear()

    def _poison(self) -> None:
        """Fill the shared memory of every multiprocessor: a kernel finds there what the last one left."""
        if self._poison_code is None:
            return
        size = self._gpu.most_shared_bytes
        function = self._poison_code.function(POISON_KERNEL)
        self._gpu.library.allow(function, size, None)
        args = [self._word.to_bytes(4, "little"), (size // 4).to_bytes(4, "little")]
        # A block takes all that one multiprocessor has, so that no two of them share one.
        grid, block = (self._gpu.multiprocessors, 1, 1), (_POISON_THREADS, 1, 1)
        self._gpu.library.launch(function, grid, block, size, self._gpu.stream.handle, args, None, False)


def _follow(later: cuda.Stream, earlier: cuda.Stream) -> None:
    """Let what is queued on ``later`` from now on wait for what is queued on ``earlier`` now."""
    reached = cuda.Event(cuda.event_flags.DISABLE_TIMING)
    reached.record(earlier)
    later.wait_for_event(reached)


def launch_on(
    gpu: Gpu, code: LoadedCode, launch: WireLaunch, addresses: Mapping[str, int], stream: cuda.Stream
) -> None:
    """Queue one launch on ``stream``."""
    function = code.function(launch.kernel)
    gpu.library.allow(function, launch.shared_bytes, launch.cluster)
    args = [addresses[a].to_bytes(8, "little") if isinstance(a, str) else a for a in launch.args]
    gpu.library.launch(
        function,
        launch.grid,
        launch.block,
        launch.shared_bytes,
        stream.handle,
        args,
        launch.cluster,
        launch.cooperative,
    )


def wait(gpu: Gpu, deadline: float, expected: float = 0.0) -> None:
    """Wait for everything queued on the stream, without being stuck in the driver.

    ``expected``: seconds that it will take at least, slept through before the first look.

    Raises:
        StillRunning: it has not ended at ``deadline`` (of ``time.perf_counter``).
    """
    end = cuda.Event()
    end.record(gpu.stream)
    if expected > _POLL_SECONDS:
        time.sleep(expected - _POLL_SECONDS)
    pause = _POLL_SECONDS / 4
    while not end.query():
        if time.perf_counter() > deadline:
            raise StillRunning
        time.sleep(pause)
        pause = min(pause * 2, 0.01)
