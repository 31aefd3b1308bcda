"""Time of executions: cold caches, graph replay, interleaved trials, an interval instead of a single number.

How a sample is taken. Each trial gets several *sets* of its buffers, together at least :data:`CACHE_FACTOR` times the
level-2 cache, and one execution after the other goes through them in turn, so that every execution finds its data
in memory and not in the cache (buffers too small for that are timed one execution at a time, after writing over the
cache). A batch of executions is recorded as a CUDA graph, so that the host's launch overhead does not show, and
one sample is the time between two events around the replay, divided by the batch. Buffers that are both read and
written are restored before each sample, outside the timed interval.

The samples of all trials are taken in rounds, in random order within a round, so that a clock that drifts hits all
alike. A measurement ends when the 95 % interval of every median is narrow enough, or the budget is used up.
"""

import contextlib
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pycuda.driver as cuda

from kernel_forge.devices.cuda.wire import WireRun
from kernel_forge.devices.cuda.worker.driver_library import CudaError
from kernel_forge.devices.cuda.worker.gpu import Gpu
from kernel_forge.devices.cuda.worker.memory import PlainBuffer
from kernel_forge.devices.cuda.worker.result import Result
from kernel_forge.devices.cuda.worker.running import (
    STICKY,
    LoadedCode,
    StillRunning,
    SymbolBuffer,
    launch_on,
    staged,
    wait,
)
from kernel_forge.domain.measurement import TimingPlan, is_narrow

CACHE_FACTOR = 2.5
MAX_SETS = 256
SAMPLE_SECONDS = 0.001
MAX_BATCH = 512
MAX_SAMPLES = 2000
WARM_UP_SECONDS = 0.1
SETTLE_SECONDS = 1.0
SETTLED_SAMPLES = 20


class _Timed:
    """One trial, ready to give samples (seconds per execution)."""

    def __init__(self, gpu: Gpu, run: WireRun, plan: TimingPlan, memory: float) -> None:
        """``memory``: bytes of the device that its buffers may take."""
        self.gpu = gpu
        self.run = run
        self.samples: list[float] = []
        self.code = LoadedCode(gpu, run)
        self._graph: int | None = None
        with staged("allocate"):
            self._begin, self._end = cuda.Event(), cuda.Event()
        size = sum(b.nbytes for b in run.buffers if not b.symbol)
        wanted = math.ceil(CACHE_FACTOR * gpu.l2_bytes / size) if plan.cold and size else 1
        affordable = int(memory / max(1, size))
        self.flushes = plan.cold and (wanted > MAX_SETS or affordable < 2)
        count = 1 if self.flushes else max(2 if plan.cold else 1, min(wanted, affordable, MAX_SETS))
        self.restores = [b.name for b in run.buffers if b.writable and b.data is not None and not b.symbol]
        self.sets: list[dict[str, PlainBuffer]] = []
        self.pristine: dict[str, PlainBuffer] = {}
        self._next = 0
        with staged("allocate"):
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
        self.batch = 1
        self.method = "events"

    def _fill_set(self, made: dict[str, PlainBuffer]) -> None:
        for buffer in self.run.buffers:
            if buffer.symbol:
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
        for launch in self.run.launches:
            launch_on(self.gpu, self.code, launch, addresses)

    def prepare(self) -> None:
        """Run until warm, choose the batch, and record it."""
        with staged("run"):
            self._queue(0)
            wait(self.gpu, time.perf_counter() + self.run.time_limit)
            one = self._time_queue(2)
            self.batch = self._batch(one)
            if not self.flushes:
                self._record()
                one = self._replay() / self.batch
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
            return min(batch, len(self.sets))
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
            for name in self.restores:
                for chosen in self.sets:
                    cuda.memcpy_dtod_async(
                        chosen[name].address, self.pristine[name].address, chosen[name].buffer.nbytes, self.gpu.stream
                    )
            if self.flushes or (self.restores and len(self.sets) > 1):
                flush(self.gpu)
            self.samples.append(self._replay() / self.batch)

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


def measure(gpu: Gpu, runs: list[WireRun], plan: TimingPlan, text: Callable[[], str]) -> Result:
    """Time ``runs`` against each other. The first is the control kernel: it takes part in every round, and its
    medians over the first and the last third tell how steady the clocks were.

    ``header["trials"]`` has one entry per run: ``status`` ``timed`` with ``samples`` (seconds, in the order
    they were taken), ``batch`` and ``method``, or ``status`` as from
    :func:`~kernel_forge.devices.cuda.worker.running.execute`. A fault loses the context: then the trials that
    were not timed yet have the status ``lost``.
    """
    entries: list[dict[str, Any]] = [{"status": "lost"} for _ in runs]
    timed: dict[int, _Timed] = {}
    arrays: list[Any] = []
    current = 0
    try:
        with staged("allocate"):
            share = 0.6 * gpu.free_bytes() / len(runs)  # the same for all, whatever the first ones take
        for current, run in enumerate(runs):
            try:
                timed[current] = _Timed(gpu, run, plan, share)
                timed[current].prepare()
            except CudaError as error:
                entries[current] = _error(error, text())
                failed = timed.pop(current, None)
                if failed is not None and error.code not in STICKY:
                    failed.close()
                if error.code in STICKY:
                    return Result({"status": "measured", "trials": entries}, spent=True)
        current = 0
        _settle(timed)
        for current in _rounds(timed, plan):
            timed[current].sample()
        for number, trial in timed.items():
            entries[number] = {
                "status": "timed",
                "samples": trial.samples,
                "batch": trial.batch,
                "method": trial.method,
                "outputs": [],
            }
            with staged("read"):
                outputs = trial.outputs()
            named = [b.name for b in trial.run.buffers if b.writable]
            entries[number]["outputs"] = [{"name": n, "nbytes": a.nbytes} for n, a in zip(named, outputs, strict=True)]
            arrays.extend(outputs)
        return Result({"status": "measured", "trials": entries}, arrays)
    except StillRunning:
        entries[current] = {"status": "timeout", "text": text()}
        return Result({"status": "measured", "trials": entries}, spent=True)
    except CudaError as error:
        entries[current] = _error(error, text())
        return Result({"status": "measured", "trials": entries}, spent=True)
    finally:
        with contextlib.suppress(CudaError, cuda.Error):
            for trial in timed.values():
                trial.close()


def _settle(timed: Mapping[int, _Timed]) -> None:
    """Keep the GPU busy with the control kernel until its clocks have risen: until its time no longer falls."""
    control = timed.get(0)
    if control is None:
        return
    deadline = time.perf_counter() + SETTLE_SECONDS
    while time.perf_counter() < deadline:
        control.sample()
        recent = control.samples[-SETTLED_SAMPLES:]
        if len(recent) == SETTLED_SAMPLES and max(recent) < 1.005 * min(recent):
            break
    control.samples.clear()


def _rounds(timed: Mapping[int, _Timed], plan: TimingPlan) -> Iterator[int]:
    """Which trial gives the next sample, until the measurement ends."""
    order = list(timed)
    deadline = time.perf_counter() + plan.budget
    for number in range(MAX_SAMPLES):
        random.shuffle(order)
        yield from order
        if number + 1 < plan.min_samples:
            continue
        if time.perf_counter() > deadline or all(is_narrow(t.samples, plan.interval) for t in timed.values()):
            return


def _error(error: CudaError, text: str) -> dict[str, Any]:
    return {
        "status": "error",
        "stage": getattr(error, "stage", "run"),
        "call": error.call,
        "code": error.code,
        "name": error.name,
        "text": text,
    }
