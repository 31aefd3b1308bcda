"""CPU times of an emulation: for trying the machinery, never for comparing kernels on a GPU."""

import statistics
import time
from collections.abc import Callable, Sequence

from kernel_forge.domain.launch import RunRequest
from kernel_forge.domain.measurement import (
    EARLY_SAMPLES,
    Measurement,
    Timed,
    TimingPlan,
    Timings,
    is_narrow,
    median_interval,
)
from kernel_forge.domain.outcome import Ran, RunFailure, RunOutcome
from kernel_forge.ports import Artifact, Trial

BASIS = "CPU time of an emulation"
NO_ENERGY = "an emulation has no energy of its own"


def time_on_cpu(
    run: Callable[[Artifact, RunRequest], RunOutcome], trials: Sequence[Trial], plan: TimingPlan
) -> Timings:
    """Run the trials in turn until the intervals are narrow or the budget ends."""
    samples: list[list[float]] = [[] for _ in trials]
    last: list[RunOutcome | None] = [None for _ in trials]
    early: set[int] = set()
    deadline = time.monotonic() + plan.budget
    while True:
        for number, trial in enumerate(trials):
            if number not in early and (last[number] is None or isinstance(last[number], Ran)):
                outcome = last[number] = run(trial.artifact, trial.request)
                if isinstance(outcome, Ran):
                    samples[number].append(outcome.seconds)
                    # The first execution may have waited for the disk; the second decides.
                    if len(samples[number]) == EARLY_SAMPLES and plan.is_hopeless(min(samples[number])):
                        early.add(number)
        going = [s for number, s in enumerate(samples) if s and number not in early]
        done = all(len(s) >= plan.min_samples and is_narrow(s, plan.interval) for s in going)
        if done or time.monotonic() > deadline:
            break
    made = enumerate(zip(last, samples, strict=True))
    results = tuple(_result(o, s, plan, early=n in early) for n, (o, s) in made if o is not None)
    return Timings(results, None, NO_ENERGY if plan.energy else None)


def _result(outcome: RunOutcome, samples: list[float], plan: TimingPlan, *, early: bool) -> Timed | RunFailure:
    if not isinstance(outcome, Ran):
        return outcome
    low, high = median_interval(samples)
    median = statistics.median(samples)
    measurement = Measurement(median, low, high, len(samples), 1, "process", None, BASIS, early)
    return Timed(measurement, plan.part_of(outcome.contents))
