"""Asking the worker for times, and reading them."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.devices.cuda.artifacts import load_code
from kernel_forge.devices.cuda.asking import ask
from kernel_forge.devices.cuda.outcomes import contents, driver_failure, understood
from kernel_forge.devices.cuda.pool import WorkerPool
from kernel_forge.devices.cuda.protocol import Frame
from kernel_forge.devices.cuda.wire import Code, encode_plan, encode_runs
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, Launch, RunRequest, Scalar
from kernel_forge.domain.measurement import Measurement, Timed, TimingPlan, Timings, median_interval
from kernel_forge.domain.outcome import RunFailure, TimedOut, Unavailable
from kernel_forge.ports import Artifact, Trial

CONTROL_KERNELS = ("kf_control", "kf_empty")
CONTROL_ROUNDS = 2000
LAUNCH_BOUND = 3.0
# Beside the budget: making buffers, and up to so many executions of a slow kernel: warming up, one sample at the end.
SETUP_SECONDS = 60.0
EXECUTIONS = 8
ENERGY_SECONDS = 5.0


def control_trials(artifact: Artifact, multiprocessors: int) -> list[Trial]:
    """The trials that go along with every measurement: the clock's control kernel, and the empty kernel twice.

    What the empty kernel takes is what a launch takes: replayed from a graph, and launched by itself behind a flush, as
    are kernels whose buffers are too small to be kept out of the cache otherwise.
    """
    out = Buffer("out", DType.FLOAT32, 4)
    args = (BufferRef("out"), Scalar(DType.FLOAT32, 0.999), Scalar(DType.INT32, CONTROL_ROUNDS))
    control = Launch("kf_control", args, (multiprocessors, 1, 1), (256, 1, 1))
    empty = Launch("kf_empty", (), (1, 1, 1), (1, 1, 1))
    alone = RunRequest((Buffer("unused", DType.FLOAT32, 16),), (empty,))
    return [
        Trial(artifact, RunRequest((out,), (control,))),
        Trial(artifact, RunRequest((), (empty,))),
        Trial(artifact, alone),
    ]


def time_trials(
    pool: WorkerPool, controls: Sequence[Trial], trials: Sequence[Trial], plan: TimingPlan, basis: str
) -> Timings | Unavailable:
    """One job for all trials; ``controls`` are those of :func:`control_trials`."""
    if plan.is_brief:
        controls = controls[:1]  # the clock's
    runs: list[tuple[Code, RunRequest]] = []
    sources: list[Mapping[str, UserFile]] = []
    for trial in (*controls, *trials):
        loaded = load_code(trial.artifact)
        if isinstance(loaded, Unavailable):
            return loaded
        runs.append((loaded[0], trial.request))
        sources.append(loaded[1])
    limit = plan.budget + SETUP_SECONDS + EXECUTIONS * sum(t.request.time_limit for t in trials)
    if plan.energy:
        limit += ENERGY_SECONDS * len(trials)
    header, payload = encode_runs(runs, keeping=True)
    job = {"task": "time", **header, "plan": encode_plan(plan), "controls": len(controls)}
    answer = ask(pool, job, payload, limit, doing="while timing")
    if isinstance(answer, Unavailable):
        return answer
    return understood(lambda: _read(answer, len(controls), (*controls, *trials), sources, basis), "while timing")


def _read(
    answer: Frame, controls: int, trials: Sequence[Trial], sources: Sequence[Mapping[str, UserFile]], basis: str
) -> Timings:
    """``controls`` of the trials come first."""
    entries = answer.header["trials"]
    control = entries[0]
    drift = None
    if control["status"] == "timed":
        samples = control["samples"]
        third = max(1, len(samples) // 3)
        drift = statistics.median(samples[-third:]) / statistics.median(samples[:third])
    floors = {e["method"]: statistics.median(e["samples"]) for e in entries[1:controls] if e["status"] == "timed"}
    results: list[Timed | RunFailure] = []
    outputs = iter(answer.arrays(o["nbytes"] for e in entries for o in e.get("outputs", ())))
    for number, (entry, trial) in enumerate(zip(entries, trials, strict=True)):
        arrays = [next(outputs) for _ in entry.get("outputs", ())]
        if number < controls:
            continue
        if entry["status"] == "timed":
            floor = floors.get(entry["method"])
            measurement = _measurement(entry, floor and LAUNCH_BOUND * floor * len(trial.request.launches), basis)
            by_name = {b.name: b for b in trial.request.buffers}
            results.append(Timed(measurement, contents(arrays, entry["outputs"], by_name), entry.get("joules")))
        else:
            results.append(_failure(entry, trial.request, sources[number]))
    return Timings(tuple(results), drift, answer.header.get("no_energy"))


def _measurement(entry: Mapping[str, Any], bound: float | None, basis: str) -> Measurement:
    """``bound``: seconds below which it is the launch that takes the time; None where that is not known."""
    samples = [float(s) for s in entry["samples"]]
    low, high = median_interval(samples)
    median = statistics.median(samples)
    launch_bound = None if bound is None else median < bound
    batch, method, early = int(entry["batch"]), str(entry["method"]), bool(entry.get("early"))
    return Measurement(median, low, high, len(samples), batch, method, launch_bound, basis, early)


def _failure(entry: Mapping[str, Any], request: RunRequest, sources: Mapping[str, UserFile]) -> RunFailure:
    match entry["status"]:
        case "timeout":
            return TimedOut(request.time_limit, f"the kernel did not end within {request.time_limit:g} s")
        case "error":
            return driver_failure(entry, request, sources)
        case _:
            return Unavailable("another trial of the same measurement lost the GPU's context")
