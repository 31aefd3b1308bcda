"""Time of executions: cold caches, graph replay, interleaved trials, an interval instead of a single number.

How a sample is taken. Each trial gets several *sets* of its buffers, together at least ``CACHE_FACTOR`` times the
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
from kernel_forge.devices.cuda.worker.result import Result
from kernel_forge.devices.cuda.worker.stages import STICKY, StillRunning, error_facts, staged
from kernel_forge.devices.cuda.worker.timed_trial import TimedTrial
from kernel_forge.domain.measurement import TimingPlan, is_narrow

MAX_SAMPLES = 2000
SETTLE_SECONDS = 2.0
STEADY_SECONDS = 0.3
STAYS_WARM_SECONDS = 0.5


def measure(gpu: Gpu, runs: list[WireRun], plan: TimingPlan, text: Callable[[], str]) -> Result:
    """Time ``runs`` against each other. The first is the control kernel: it takes part in every round, and its
    medians over the first and the last third tell how steady the clocks were.

    ``header["trials"]`` has one entry per run: ``status`` ``timed`` with ``samples`` (seconds, in the order
    they were taken), ``batch`` and ``method``, or ``status`` as from
    :func:`~kernel_forge.devices.cuda.worker.running.execute`. A fault loses the context: then the trials that
    were not timed yet have the status ``lost``.
    """
    entries: list[dict[str, Any]] = [{"status": "lost"} for _ in runs]
    timed: dict[int, TimedTrial] = {}
    arrays: list[Any] = []
    current = 0
    try:
        with staged("allocate"):
            share = 0.6 * gpu.free_bytes() / len(runs)  # the same for all, whatever the first ones take
        for current, run in enumerate(runs):
            try:
                timed[current] = TimedTrial(gpu, run, plan, share)
                timed[current].prepare()
            except CudaError as error:
                entries[current] = error_facts(error, text())
                failed = timed.pop(current, None)
                if failed is not None and error.code not in STICKY:
                    failed.close()
                if error.code in STICKY:
                    return Result({"status": "measured", "trials": entries}, spent=True)
        current = 0
        _settle(gpu, timed)
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
            if not plan.outputs:
                continue
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
        entries[current] = error_facts(error, text())
        return Result({"status": "measured", "trials": entries}, spent=True)
    finally:
        _busy_until[gpu.ordinal] = time.perf_counter()
        with contextlib.suppress(CudaError, cuda.Error):
            for trial in timed.values():
                trial.close()


def _settle(gpu: Gpu, timed: Mapping[int, TimedTrial]) -> None:
    """Keep the GPU busy with the control kernel until its clocks have risen: until it has not become faster for a
    while. A GPU that has just measured something needs no second time."""
    control = timed.get(0)
    if control is None:
        return
    begin = risen = time.perf_counter()
    warm = begin - _busy_until.get(gpu.ordinal, -math.inf) < STAYS_WARM_SECONDS
    steady = 0.1 * STEADY_SECONDS if warm else STEADY_SECONDS
    best = math.inf
    while (now := time.perf_counter()) - risen < steady and now - begin < SETTLE_SECONDS:
        control.sample()
        if control.samples[-1] < 0.99 * best:
            best, risen = control.samples[-1], now
    control.samples.clear()


_busy_until: dict[int, float] = {}


def _rounds(timed: Mapping[int, TimedTrial], plan: TimingPlan) -> Iterator[int]:
    """Which trial gives the next sample, until the measurement ends."""
    order = list(timed)
    deadline = time.perf_counter() + plan.budget
    for number in range(MAX_SAMPLES):
        random.shuffle(order)
        yield from order
        if time.perf_counter() > deadline:
            return
        if number + 1 >= plan.min_samples and all(is_narrow(t.samples, plan.interval) for t in timed.values()):
            return
