"""One trial on the GPU, ready to give samples of its time; :mod:`.timing` says how a sample is taken."""

import math
import time
from typing import Any

import pycuda.driver as cuda

from kernel_forge.devices.cuda.wire import WireRun
from kernel_forge.devices.cuda.worker.driver_library import CudaError
from kernel_forge.devices.cuda.worker.gpu import Gpu
from kernel_forge.devices.cuda.worker.launching import Launches, LoadedCode, wait
from kernel_forge.devices.cuda.worker.memory import Memory, PlainBuffer
from kernel_forge.devices.cuda.worker.running import SymbolBuffer
from kernel_forge.devices.cuda.worker.stages import STICKY, staged
from kernel_forge.devices.cuda.worker.textures import make_texture
from kernel_forge.domain.measurement import TimingPlan

CACHE_FACTOR = 2.5
MAX_SETS = 256
SAMPLE_SECONDS = 0.001
MAX_BATCH = 512
WARM_UP_SECONDS = 0.1


class TimedTrial:
    """One trial, ready to give samples (seconds per execution)."""

    def __init__(self, gpu: Gpu, run: WireRun, plan: TimingPlan, memory: float) -> None:
        """``memory``: bytes of the device that its buffers may take."""
        self.gpu = gpu
        self.run = run
        self.samples: list[float] = []
        self.pristine: dict[str, PlainBuffer] = {}
        self.sets: list[dict[str, Memory]] = []
        self._graph: int | None = None
        self._next = 0
        self.batch = 1
        self.method = "events"
        self.code = LoadedCode(gpu, run.code)
        try:
            self._launches = Launches(gpu, self.code)
            with staged("allocate"):
                self._begin, self._end = cuda.Event(), cuda.Event()
                self._allocate(plan, memory)
        except CudaError:
            self.close()
            raise

    def _allocate(self, plan: TimingPlan, memory: float) -> None:
        gpu, run = self.gpu, self.run
        size = sum(b.nbytes for b in run.buffers if not b.symbol)
        wanted = math.ceil(CACHE_FACTOR * gpu.l2_bytes / size) if plan.cold and size else 1
        affordable = int(memory / max(1, size))
        self.flushes = plan.cold and (wanted > MAX_SETS or affordable < 2)
        count = 1 if self.flushes else max(2 if plan.cold else 1, min(wanted, affordable, MAX_SETS))
        self.restores = [b.name for b in run.buffers if b.writable and b.data is not None]
        self._symbols = {b.name: SymbolBuffer(self.code, b) for b in run.buffers if b.symbol}
        for symbol in self._symbols.values():
            symbol.fill(symbol.buffer.initial(run.poison_seed))
        for _ in range(count):
            self.sets.append({})
            self._fill_set(self.sets[-1])
        for buffer in run.buffers:
            if buffer.name in self.restores:
                self.pristine[buffer.name] = PlainBuffer(buffer)
                self.pristine[buffer.name].fill(buffer.initial(run.poison_seed))

    def _fill_set(self, made: dict[str, Memory]) -> None:
        for buffer in self.run.buffers:
            if buffer.symbol:
                continue
            if buffer.texture is not None:
                made[buffer.name] = make_texture(self.gpu, buffer, buffer.texture)
                made[buffer.name].fill(buffer.initial(self.run.poison_seed))
                continue
            made[buffer.name] = PlainBuffer(buffer)
            if len(self.sets) > 1:  # device to device: the host's copy would travel once per set
                first = self.sets[0][buffer.name]
                if buffer.nbytes:
                    cuda.memcpy_dtod(made[buffer.name].address, first.address, buffer.nbytes)
            else:
                made[buffer.name].fill(buffer.initial(self.run.poison_seed))

    def _queue(self, number: int) -> None:
        chosen = self.sets[number % len(self.sets)]
        addresses = {name: held.address for name, held in chosen.items()}
        addresses |= {name: held.address for name, held in self._symbols.items()}
        self._launches.queue(self.run.launches, addresses)

    def _restore(self) -> None:
        """Give what is read and written its contents back: no execution may begin from the result of another."""
        for name, held in self.pristine.items():
            places = [self._symbols[name]] if name in self._symbols else [chosen[name] for chosen in self.sets]
            for place in places:
                cuda.memcpy_dtod_async(place.address, held.address, held.buffer.nbytes, self.gpu.stream)

    @property
    def _most_at_once(self) -> int:
        """Executions between two restorations."""
        if not self.restores:
            return MAX_BATCH
        return 1 if any(name in self._symbols for name in self.restores) else len(self.sets)

    def prepare(self) -> None:
        """Run until warm, choose the batch, and record it."""
        with staged("run"):
            self._restore()
            self._queue(0)
            wait(self.gpu, time.perf_counter() + self.run.time_limit)
            self._restore()
            one = self._time_queue(min(2, self._most_at_once))
            self.batch = self._batch(one)
            if not self.flushes:
                self._record()
                one = self._execute() / self.batch
                wanted = self._batch(one)
                if wanted > 2 * self.batch and self._graph is not None:
                    self.batch = wanted
                    self._record()
            until = time.perf_counter() + WARM_UP_SECONDS
            for _ in range(20):
                if time.perf_counter() > until:
                    break
                self.sample()
            self.samples.clear()

    def _batch(self, seconds: float) -> int:
        if self.flushes:
            return 1
        batch = max(1, min(MAX_BATCH, math.ceil(SAMPLE_SECONDS / max(seconds, 1e-7))))
        if self.restores:
            return min(batch, self._most_at_once)
        # Whole rounds through the sets, so that the first of a replay is as cold as the others.
        return -(-batch // len(self.sets)) * len(self.sets)

    def _record(self) -> None:
        if self._graph is not None:
            self.gpu.library.free_graph(self._graph)
            self._graph = None
        try:
            self.gpu.library.begin_capture(self.gpu.stream.handle)
            try:
                for number in range(self.batch):
                    self._queue(number)
            finally:
                graph = self.gpu.library.end_capture(self.gpu.stream.handle)
        except CudaError as error:
            if error.code in STICKY:
                raise
            self.method = "events"  # what cannot be captured is launched one by one, and said so
            return
        self._graph, self.method = graph, "graph"

    def _time_queue(self, count: int) -> float:
        self._begin.record(self.gpu.stream)
        for _ in range(count):
            self._queue(self._next)
            self._next += 1
        return self._elapsed() / count

    def _replay(self) -> float:
        self._begin.record(self.gpu.stream)
        if self._graph is None:
            for _ in range(self.batch):
                self._queue(self._next)
                self._next += 1
        else:
            self.gpu.library.launch_graph(self._graph, self.gpu.stream.handle)
        return self._elapsed()

    def _elapsed(self) -> float:
        self._end.record(self.gpu.stream)
        wait(self.gpu, time.perf_counter() + self.run.time_limit * max(1, self.batch))
        return float(self._begin.time_till(self._end)) * 1e-3

    def sample(self) -> None:
        """Take one sample."""
        with staged("run"):
            self.samples.append(self._execute() / self.batch)

    def _execute(self) -> float:
        """Seconds of one batch, begun from the buffers as they were given and, where asked, from cold caches."""
        self._restore()
        if self.flushes or (self.restores and len(self.sets) > 1):
            flush(self.gpu)
        return self._replay()

    def outputs(self) -> list[Any]:
        """Contents of the writable buffers of the set that was executed last."""
        last = self.sets[(self.batch - 1 if self._graph is not None else self._next - 1) % len(self.sets)]
        held = {**last, **self._symbols}
        return [held[b.name].contents() for b in self.run.buffers if b.writable]

    def close(self) -> None:
        """Free everything."""
        if self._graph is not None:
            self.gpu.library.free_graph(self._graph)
        for held in (*self.pristine.values(), *(h for s in self.sets for h in s.values())):
            held.free()
        self.code.close()


_scratch: dict[int, cuda.DeviceAllocation] = {}


def flush(gpu: Gpu) -> None:
    """Write over the level-2 cache."""
    size = 2 * gpu.l2_bytes
    if gpu.ordinal not in _scratch:
        _scratch[gpu.ordinal] = cuda.mem_alloc(size)
    cuda.memset_d8_async(_scratch[gpu.ordinal], 0, size, gpu.stream)
