"""One trial on the GPU, ready to give samples of its time; :mod:`.timing` says how a sample is taken."""

import math
import time
from typing import Any

import pycuda.driver as cuda

from kernel_forge.devices.cuda.wire import WireRun
from kernel_forge.devices.cuda.worker.buffer_sets import BufferPool
from kernel_forge.devices.cuda.worker.driver_library import CudaError
from kernel_forge.devices.cuda.worker.gpu import Gpu
from kernel_forge.devices.cuda.worker.launching import Launches, LoadedCode, wait
from kernel_forge.devices.cuda.worker.memory import PlainBuffer
from kernel_forge.devices.cuda.worker.running import SymbolBuffer
from kernel_forge.devices.cuda.worker.stages import STICKY, staged
from kernel_forge.domain.measurement import EARLY_SAMPLES, TimingPlan

SAMPLE_SECONDS = 0.001
MAX_BATCH = 512
WARM_UP_SECONDS = 0.1
WARM_UP_SAMPLES = 20
BRIEF_WARM_UP_SAMPLES = 2
# The first launch of a kernel may wait for its code to be loaded.
LOADING_SECONDS = 0.02


class TimedTrial:
    """One trial, ready to give samples (seconds per execution).

    Attributes:
        early: it is too slow to be of interest.
        seen: where the plan asks for a sample of the outputs, those elements of each writable buffer as the first
            execution left them.
    """

    def __init__(self, gpu: Gpu, run: WireRun, plan: TimingPlan, buffers: BufferPool) -> None:
        self.gpu = gpu
        self.run = run
        self.samples: list[float] = []
        self.early = False
        self.seen: list[Any] = []
        self.batch = 1
        self.method = "events"
        self._plan = plan
        self._pristine_symbols: dict[str, PlainBuffer] = {}
        self._graph: int | None = None
        self._fastest = math.inf  # seconds per execution
        self._last = 0  # the number of the last execution
        self.code = LoadedCode(gpu, run.code)
        try:
            self._launches = Launches(gpu, self.code)
            with staged("allocate"):
                self._begin, self._end = cuda.Event(), cuda.Event()
                self._fill_symbols()
            self._buffers = buffers.sets(run)
        except CudaError:
            self.close()
            raise

    def _fill_symbols(self) -> None:
        self._symbols = {b.name: SymbolBuffer(self.code, b) for b in self.run.buffers if b.symbol}
        for name, symbol in self._symbols.items():
            symbol.fill(symbol.buffer.initial(self.run.poison_seed))
            if symbol.buffer.writable and symbol.buffer.data is not None:
                self._pristine_symbols[name] = PlainBuffer(symbol.buffer)
                self._pristine_symbols[name].fill(symbol.buffer.initial(self.run.poison_seed))

    @property
    def restores(self) -> bool:
        """Whether something is both read and written, and given its contents back before every batch."""
        return self._buffers.restores or bool(self._pristine_symbols)

    @property
    def flushes(self) -> bool:
        """Whether the cache is written over before every execution."""
        return self._buffers.flushes

    def _queue(self, number: int) -> None:
        chosen = self._buffers.sets[number % len(self._buffers.sets)]
        addresses = {name: held.address for name, held in chosen.items()}
        addresses |= {name: held.address for name, held in self._symbols.items()}
        self._launches.queue(self.run.launches, addresses)

    def _restore(self, count: int) -> None:
        """Give what is read and written its contents back: no execution may begin from the result of another."""
        for name, held in self._pristine_symbols.items():
            address = self._symbols[name].address
            cuda.memcpy_dtod_async(address, held.address, held.buffer.nbytes, self.gpu.stream)
        self._buffers.restore(count)

    @property
    def _most_at_once(self) -> int:
        """Executions between two restorations."""
        if not self.restores:
            return MAX_BATCH
        return 1 if self._pristine_symbols else len(self._buffers.sets)

    def prepare(self) -> None:
        """Run until warm, choose the batch, and record it; a hopeless trial is given its few samples instead."""
        with staged("run"):
            one = self._first_executions()
            if self.early:
                return
            self.batch = self._batch(one)
            if not self.flushes:
                self._record()
                one = self._execute() / self.batch
                wanted = self._batch(one)
                if wanted > 2 * self.batch and self._graph is not None:
                    self.batch = wanted
                    self._record()
            until = time.perf_counter() + WARM_UP_SECONDS
            for _ in range(BRIEF_WARM_UP_SAMPLES if self._plan.is_brief else WARM_UP_SAMPLES):
                if time.perf_counter() > until:
                    break
                self.sample()
            self.samples.clear()

    def _first_executions(self) -> float:
        """Seconds of one; where that is hopeless, what it took are the samples."""
        first = self._seen_execution() if self._plan.sample and not self._plan.outputs else self._execute()
        if self._plan.is_hopeless(first - LOADING_SECONDS):
            self.early, self.samples = True, [first]
            return first
        self._fastest = math.inf  # that one may have waited
        self.batch = 1 if self.flushes else min(2, self._most_at_once)
        seen: list[float] = []
        while len(seen) < EARLY_SAMPLES:
            seen.append(self._execute(1 + self.batch * len(seen)) / self.batch)
            if not self._plan.is_hopeless(seen[-1]):
                break
        else:
            self.early, self.samples = True, seen
        return min(seen)

    def _seen_execution(self) -> float:
        """Seconds of one whose outputs are looked at: it must find nothing of what another trial left there."""
        self._buffers.clear()
        seconds = self._execute()
        held = {**self._buffers.sets[0], **self._symbols}
        with staged("read"):
            self.seen = [held[b.name].sample(self._plan.sample) for b in self.run.buffers if b.writable]
        return seconds

    def _batch(self, seconds: float) -> int:
        if self.flushes:
            return 1
        batch = max(1, min(MAX_BATCH, math.ceil(SAMPLE_SECONDS / max(seconds, 1e-7))))
        if self.restores:
            return min(batch, self._most_at_once)
        # Whole rounds through the sets, so that the first of a replay is as cold as the others.
        return -(-batch // len(self._buffers.sets)) * len(self._buffers.sets)

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

    def _queue_batch(self, start: int) -> None:
        if self._graph is not None:
            self.gpu.library.launch_graph(self._graph, self.gpu.stream.handle)
        else:
            for number in range(start, start + self.batch):
                self._queue(number)
        self._last = start + self.batch - 1

    def _wait(self, batches: int) -> None:
        count = batches * self.batch
        expected = 0.9 * self._fastest * count if math.isfinite(self._fastest) else 0.0
        wait(self.gpu, time.perf_counter() + self.run.time_limit * count, expected)

    def sample(self) -> None:
        """Take one sample."""
        with staged("run"):
            self.samples.append(self._execute() / self.batch)

    def _execute(self, start: int = 0) -> float:
        """Seconds of one batch, begun from the buffers as they were given and, where asked, from cold caches; ``start``
        is the set that it begins with, where it is not recorded yet."""
        self._restore(start + self.batch)
        if self.flushes or (self.restores and len(self._buffers.sets) > 1):
            flush(self.gpu)
        self._begin.record(self.gpu.stream)
        self._queue_batch(start)
        self._end.record(self.gpu.stream)
        self._wait(1)
        seconds = float(self._begin.time_till(self._end)) * 1e-3
        self._fastest = min(self._fastest, seconds / self.batch)
        return seconds

    def repeat(self, batches: int) -> None:
        """Execute so many batches back to back, and wait; nothing is restored and no cache made cold in between."""
        with staged("run"):
            for _ in range(batches):
                self._queue_batch(0)
            self._wait(batches)

    def outputs(self) -> list[Any]:
        """Contents of the writable buffers of the set that was executed last."""
        last = self._buffers.sets[self._last % len(self._buffers.sets)]
        held = {**last, **self._symbols}
        return [held[b.name].contents() for b in self.run.buffers if b.writable]

    def close(self) -> None:
        """Free what is its own."""
        if self._graph is not None:
            self.gpu.library.free_graph(self._graph)
        for held in self._pristine_symbols.values():
            held.free()
        self.code.close()


_scratch: dict[int, cuda.DeviceAllocation] = {}


def flush(gpu: Gpu) -> None:
    """Write over the level-2 cache."""
    size = 2 * gpu.l2_bytes
    if gpu.ordinal not in _scratch:
        _scratch[gpu.ordinal] = cuda.mem_alloc(size)
    cuda.memset_d8_async(_scratch[gpu.ordinal], 0, size, gpu.stream)
