"""CPU times of an emulation: for trying the machinery, never for comparing kernels on a GPU."""

import statistics
import time
from collections.abc import Callable, Sequence

from kernel_forge.domain.launch import RunRequest
from kernel_forge.domain.measurement import Measurement, Timed, TimingPlan, Timings, is_narrow, median_interval
from kernel_forge.domain.outcome import Ran, RunFailure, RunOutcome
from kernel_forge.ports import Artifact, Trial

BASIS = "CPU time of an emulation"


def time_on_cpu(
    run: Callable[[Artifact, RunRequest], RunOutcome], trials: Sequence[Trial], plan: TimingPlan
) -> Timings:
    """Run the trials in turn until the intervals are narrow or the budget ends."""
    samples: list[list[float]] = [[] for _ in trials]
    last: list[RunOutcome | None] = [None for _ in trials]
    deadline = time.monotonic() + plan.budget
    while True:
        for number, trial in enumerate(trials):
            if last[number] is None or isinstance(last[number], Ran):
                outcome = last[number] = run(trial.artifact, trial.request)
                if isinstance(outcome, Ran):
                    samples[number].append(outcome.seconds)
        done = all(len(s) >= plan.min_samples and is_narrow(s, plan.interval) for s in samples if s)
        if done or time.monotonic() > deadline:
            break
    return Timings(tuple(_result(o, s) for o, s in zip(last, samples, strict=True) if o is not None), None)


def _result(outcome: RunOutcome, samples: list[float]) -> Timed | RunFailure:
    if not isinstance(outcome, Ran):
        return outcome
    low, high = median_interval(samples)
    median = statistics.median(samples)
    return Timed(Measurement(median, low, high, len(samples), 1, "process", None, BASIS), outcome.contents)
