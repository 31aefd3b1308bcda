"""Time of executions: cold caches, graph replay, interleaved trials, an interval instead of a single number.

How a sample is taken. Each trial gets several *sets* of its buffers, together at least ``CACHE_FACTOR`` times the
level-2 cache, and one execution after the other goes through them in turn, so that every execution finds its data
in memory and not in the cache (buffers too small for that are timed one execution at a time, after writing over the
cache). A batch of executions is recorded as a CUDA graph, so that the host's launch overhead does not show, and
one sample is the time between two events around the replay, divided by the batch. Buffers that are both read and
written are restored before each sample, outside the timed interval.

The samples of all trials are taken in rounds, in random order within a round, so that a clock that drifts hits all
alike. A measurement ends when the 95 % interval of every median but the controls' is narrow enough, or the budget is
used up.

A *brief* plan (see :class:`~kernel_forge.domain.measurement.TimingPlan`) tells many configurations apart at a fraction
of the cost: the clocks are brought up once, before the trials, each is warmed up with two samples in place of twenty,
and one whose interval is narrow drops out of the rounds. Trials that need no outputs share equal buffers
(:mod:`.buffer_sets`), so that a group of configurations of one kernel takes the memory and the filling of one.
"""

import contextlib
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pycuda.driver as cuda

from kernel_forge.devices.cuda.wire import WireRun
from kernel_forge.devices.cuda.worker.buffer_sets import BufferPool
from kernel_forge.devices.cuda.worker.driver_library import CudaError
from kernel_forge.devices.cuda.worker.energy import measure_energies
from kernel_forge.devices.cuda.worker.gpu import Gpu
from kernel_forge.devices.cuda.worker.result import Result
from kernel_forge.devices.cuda.worker.stages import STICKY, StillRunning, error_facts, staged
from kernel_forge.devices.cuda.worker.timed_trial import TimedTrial
from kernel_forge.domain.measurement import TimingPlan, is_narrow

MAX_SAMPLES = 2000
SETTLE_SECONDS = 2.0
STEADY_SECONDS = 0.3
BRIEF_STEADY_SECONDS = 0.1
STAYS_WARM_SECONDS = 0.5
# Of the time to be steady, where the GPU has just measured something.
WARM_SHARE = 0.1
BRIEF_WARM_SHARE = 0.03


def measure(gpu: Gpu, runs: list[WireRun], plan: TimingPlan, text: Callable[[], str], controls: int = 1) -> Result:
    """Time ``runs`` against each other. The first is the control kernel: it takes part in every round, and its
    medians over the first and the last third tell how steady the clocks were. The first ``controls`` are never given up
    as hopeless.

    ``header["trials"]`` has one entry per run: ``status`` ``timed`` with ``samples`` (seconds, in the order
    they were taken), ``batch``, ``method``, ``early`` and, where asked, ``joules``, or ``status`` as from
    :func:`~kernel_forge.devices.cuda.worker.running.execute`. A fault loses the context: then the trials that
    were not timed yet have the status ``lost``. ``header["no_energy"]`` says why a trial that was timed has no energy.
    """
    entries: list[dict[str, Any]] = [{"status": "lost"} for _ in runs]
    header: dict[str, Any] = {"status": "measured", "trials": entries}
    timed: dict[int, TimedTrial] = {}
    buffers: BufferPool | None = None
    arrays: list[Any] = []
    current = 0
    try:
        buffers = BufferPool(gpu, runs, plan)
        for current, run in enumerate(runs):
            try:
                own_plan = plan if current >= controls else replace(plan, hopeless=None)
                timed[current] = TimedTrial(gpu, run, own_plan, buffers)
                timed[current].prepare()
                if not current and (plan.is_brief or plan.hopeless is not None):
                    _settle(gpu, timed[0], plan)  # with low clocks everything would look hopeless
            except CudaError as error:
                entries[current] = error_facts(error, text())
                failed = timed.pop(current, None)
                if failed is not None and error.code not in STICKY:
                    failed.close()
                if error.code in STICKY:
                    return Result(header, spent=True)
        current = 0
        if 0 in timed and not plan.is_brief:
            _settle(gpu, timed[0], plan)
        for current in _rounds(timed, plan, controls):
            timed[current].sample()
        for current, trial in timed.items():
            entries[current] = {
                "status": "timed",
                "samples": trial.samples,
                "batch": trial.batch,
                "method": trial.method,
                "early": trial.early,
                "outputs": [],
            }
            outputs = trial.seen
            if plan.outputs:
                with staged("read"):
                    outputs = trial.outputs()
            elif not plan.sample:
                continue
            named = [b.name for b in trial.run.buffers if b.writable]
            entries[current]["outputs"] = [{"name": n, "nbytes": a.nbytes} for n, a in zip(named, outputs, strict=True)]
            arrays.extend(outputs)
        spent = plan.energy and measure_energies({n: t for n, t in timed.items() if n >= controls}, header, gpu.pci_bus)
        return Result(header, arrays, spent)
    except StillRunning:
        entries[current] = {"status": "timeout", "text": text()}
        return Result(header, arrays, spent=True)
    except CudaError as error:
        entries[current] = error_facts(error, text())
        return Result(header, arrays, spent=True)
    finally:
        _busy_until[gpu.ordinal] = time.perf_counter()
        with contextlib.suppress(CudaError, cuda.Error):
            for trial in timed.values():
                trial.close()
            if buffers is not None:
                buffers.close()


def _settle(gpu: Gpu, control: TimedTrial, plan: TimingPlan) -> None:
    """Keep the GPU busy with the control kernel until its clocks have risen: until it has not become faster for a
    while. A GPU that has just measured something needs no second time."""
    begin = risen = time.perf_counter()
    warm = begin - _busy_until.get(gpu.ordinal, -math.inf) < STAYS_WARM_SECONDS
    steady = BRIEF_STEADY_SECONDS if plan.is_brief else STEADY_SECONDS
    if warm:
        steady *= BRIEF_WARM_SHARE if plan.is_brief else WARM_SHARE
    best = math.inf
    while (now := time.perf_counter()) - risen < steady and now - begin < SETTLE_SECONDS:
        control.sample()
        if control.samples[-1] < 0.99 * best:
            best, risen = control.samples[-1], now
    control.samples.clear()


_busy_until: dict[int, float] = {}


def _rounds(timed: Mapping[int, TimedTrial], plan: TimingPlan, controls: int) -> Iterator[int]:
    """Which trial gives the next sample, until the measurement ends. Whether the intervals of the ``controls`` are
    narrow does not matter: an empty kernel takes little more than the clock can tell apart.
    """
    order = [number for number, trial in timed.items() if not trial.early]
    deadline = time.perf_counter() + plan.budget
    for number in range(MAX_SAMPLES):
        random.shuffle(order)
        yield from order
        if time.perf_counter() > deadline:
            return
        if number + 1 < plan.min_samples:
            continue
        wide = {n for n in order if n >= controls and not is_narrow(timed[n].samples, plan.interval)}
        if plan.is_brief:
            order = [n for n in order if n in wide or n < controls]
        if not wide:
            return
