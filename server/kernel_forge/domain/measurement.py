"""How long launches take, as measured on a device."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from kernel_forge.domain.outcome import RunFailure

Contents = Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]
"""Flat arrays by buffer."""
FULL_SAMPLES = 10
"""The fewest samples of a measurement that is taken with all care."""
EARLY_SAMPLES = 2
"""Samples of a trial that is hopeless."""
STEADY = 0.02
"""A clock that moves by less than this fraction is steady."""
FEWEST_FOR_INTERVAL = 6
"""The fewest samples of which two hold the median between them with 95 %: 1 - 2 / 2^6 = 97 %."""


@dataclass(frozen=True, slots=True)
class TimingPlan:
    """How carefully to measure.

    A plan that asks for no outputs and for fewer than :data:`FULL_SAMPLES` samples is *brief*: many configurations are
    to be told apart, none is to be published. Warm-up is then kept to what that needs, a trial takes no more samples
    once its own interval is narrow, and what a launch by itself takes is not measured.

    Attributes:
        budget: seconds for the whole measurement, all trials together, warm-up excluded.
        interval: stop when the 95 % interval of each median is narrower than this fraction of it.
        min_samples: samples per trial at least, however narrow the interval, where the budget is enough for them.
        cold: data come from memory: the caches hold nothing of the buffers when a launch begins.
        outputs: give back what the timed launches left in the writable buffers.
        sample: where ``outputs`` are not wanted, give back so many elements of each writable buffer at most, those of
            :func:`sampled`, as the first execution left them; 0 for none.
        hopeless: seconds per execution: a trial that is slower than this at its first executions is given up with
            :data:`EARLY_SAMPLES` samples at most and no warm-up.
        energy: measure what an execution takes of energy too, where the device can; takes about a second more per
            trial, beside the budget.
    """

    budget: float = 2.0
    interval: float = 0.01
    min_samples: int = 10
    cold: bool = True
    outputs: bool = True
    hopeless: float | None = None
    energy: bool = False
    sample: int = 0

    @property
    def is_brief(self) -> bool:
        """Whether accuracy gives way to haste, see the class."""
        return not self.outputs and self.min_samples < FULL_SAMPLES

    def part_of(self, contents: Contents) -> Contents:
        """What is to be given back of the contents of the writable buffers."""
        if self.outputs:
            return contents
        if not self.sample:
            return {}
        return {name: array[sampled(len(array), self.sample)] for name, array in contents.items()}

    def is_hopeless(self, seconds: float) -> bool:
        """Whether an execution of so many seconds is slower than is of interest."""
        return self.hopeless is not None and seconds > self.hopeless


@dataclass(frozen=True, slots=True)
class Measurement:
    """Time of one execution.

    Attributes:
        seconds: median over the samples.
        low, high: 95 % confidence interval of the median (order statistics, distribution-free); with fewer than
            :data:`FEWEST_FOR_INTERVAL` samples no more than their range.
        samples: how many; each is the mean over ``batch`` executions that ran back to back.
        batch: executions per sample.
        method: ``events`` (launched one by one) or ``graph`` (replayed as a CUDA graph).
        launch_bound: the time is that of launching rather than of computing: less than three times what an empty
            kernel takes per launch; None where that was not or could not be measured.
        basis: what the number is, e.g. ``measured on NVIDIA H200``.
        early: given up as hopeless: a rough time, good for ruling the trial out.
    """

    seconds: float
    low: float
    high: float
    samples: int
    batch: int
    method: str
    launch_bound: bool | None
    basis: str
    early: bool = False


@dataclass(frozen=True, slots=True)
class Timed:
    """One trial, timed.

    Attributes:
        measurement: its time.
        contents: what the last execution left in the writable buffers, as flat arrays: of one execution, begun from
            the buffers as given. Where the plan asks for a sample, that of the first execution; empty where it asks for
            neither.
        joules: of one execution, the whole board's; None where it was not or could not be measured.
    """

    measurement: Measurement
    contents: Contents
    joules: float | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Trials timed against each other, in the order they were given.

    Attributes:
        results: per trial its time, or why it has none.
        drift: time of a control kernel in the last third of the measurement over that in the first third; 1 is a
            steady clock, None not known.
        no_energy: why some trial that was timed has no energy although the plan asks for it; None where all have.
    """

    results: tuple[Timed | RunFailure, ...]
    drift: float | None
    no_energy: str | None = None

    @property
    def is_steady(self) -> bool:
        """Whether the clocks are known to have moved by less than :data:`STEADY` during the measurement."""
        return self.drift is not None and abs(self.drift - 1) < STEADY


@dataclass(frozen=True, slots=True)
class Peaks:
    """What a device was measured to do at best.

    Attributes:
        copy_bytes_per_second: bytes read plus bytes written by a large copy kernel.
        operations_per_second: by kind of arithmetic (``float32``, ``float64``, ``float16 tensor``), a fused
            multiply-add counted as two.
        basis: e.g. ``measured on NVIDIA H200``.
    """

    copy_bytes_per_second: float
    operations_per_second: Mapping[str, float]
    basis: str


def sampled(count: int, most: int) -> slice:
    """Which of ``count`` elements are looked at where ``most`` can be: every k-th, up to the last one.

    k has no divisor in common with ``count``: in an array of any shape the places then fall on every row and column
    alike, and no tile of a regular size hides between them.
    """
    step = max(1, -(-count // most))
    while math.gcd(step, count) > 1:
        step += 1
    return slice((count - 1) % step if count else 0, None, step)


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """95 % confidence interval of the median from order statistics, without assuming a distribution.

    The narrowest pair of symmetric ranks r and n + 1 - r that holds the median with at least 95 %: the number of
    samples below it is binomial with p = 1/2 (Conover, *Practical Nonparametric Statistics*, section 3.2). For fewer
    than 6 samples no such pair exists; the range is given. An interval that was narrow enough to stop at is a little
    less sure than that, as it was looked at more than once.
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    n = len(ordered)
    rank = _lower_rank(n)
    return float(ordered[rank - 1]), float(ordered[n - rank])


@cache
def _lower_rank(n: int) -> int:
    """The largest r >= 1 with P(fewer than r of n samples lie below the median) <= 2.5 %; 1 where there is none."""
    rank, below, term = 1, 0.0, 0.5**n if n < 1000 else 0.0
    if n >= 1000:  # the normal approximation, rounded outwards
        return max(1, math.floor(n / 2 - 1.959964 * math.sqrt(n) / 2))
    for k in range(n):
        below += term
        if below > 0.025:
            break
        rank = k + 1
        term *= (n - k) / (k + 1)
    return rank


def is_narrow(samples: Sequence[float], interval: float) -> bool:
    """Whether there is a 95 % interval of the median, and it is narrower than the fraction ``interval`` of it."""
    if len(samples) < FEWEST_FOR_INTERVAL:
        return False
    low, high = median_interval(samples)
    return high - low <= interval * float(np.median(samples))
