"""What a search tries before its sampler is asked: gathers what :mod:`~kernel_forge.jobs.tune.prior` goes by."""

import contextlib
from dataclasses import replace

from kernel_forge.domain.errors import LedgerUnavailable
from kernel_forge.domain.finding import Finding
from kernel_forge.domain.hardware import GpuFacts
from kernel_forge.domain.measurement import Peaks
from kernel_forge.domain.outcome import Unavailable
from kernel_forge.domain.spec import Configuration, Sizes
from kernel_forge.jobs.rates import gpu_of, rates, work_of
from kernel_forge.jobs.tune.prior import Suggestion, first_configurations, remembered
from kernel_forge.jobs.tune.workbench import Workbench
from kernel_forge.ports import Ledger
from kernel_forge.search import SearchSpace

PROMISING = 5
"""Configurations tried because of what is known of the device; more helped no more (scripts/measure_prior.py)."""


def opening(
    bench: Workbench,
    space: SearchSpace,
    ledger: Ledger | None,
    sizes: Sizes,
    default: Configuration,
    gate: Sizes | None,
    seed: int,
) -> list[Suggestion]:
    """The default, the winners that ``ledger`` knows, and what the device promises at ``sizes``; each with its reason.

    The arithmetic intensity of the kernel is counted at the case ``gate``. In the main thread: it may run Python of
    the user's.
    """
    info = bench.device.info()
    known: list[Suggestion] = []
    if ledger is not None:
        with contextlib.suppress(LedgerUnavailable):  # the record of the search says so
            known = remembered(ledger, bench.spec, sizes, info.basis, info.description)
    gpu, intensity = gpu_of(info), None
    if gpu is not None and gate is not None:
        gpu, intensity = _roofline(bench, gpu, gate, default)
    return first_configurations(space, bench.spec, sizes, gpu, known, PROMISING, seed, intensity, bench.source)


def _roofline(
    bench: Workbench, gpu: GpuFacts, sizes: Sizes, configuration: Configuration
) -> tuple[GpuFacts, float | None]:
    """The GPU with its arithmetic peak, and the kernel's operations per byte, as far as they are known."""
    peaks, bound = bench.device.peaks(), bench.bind(sizes, configuration)
    if not isinstance(peaks, Peaks) or isinstance(bound, Finding):
        return gpu, None
    inputs = bench.gate.inputs(bound)
    if isinstance(inputs, Unavailable):
        return gpu, None
    found = rates(bench.spec, bound, work_of(bound, bench.gate.evaluator, inputs), 1.0, peaks)
    if found.operations_per_second is None or found.arithmetic is None or not found.bytes_per_second:
        return gpu, None
    peak = peaks.operations_per_second.get(found.arithmetic)
    return replace(gpu, operations_per_second=peak), found.operations_per_second / found.bytes_per_second
