"""A device on which every configuration takes a time, and does right or wrong, as a test says."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kernel_forge.domain.launch import CompileRequest, RunRequest
from kernel_forge.domain.measurement import Measurement, Peaks, Timed, TimingPlan, Timings
from kernel_forge.domain.outcome import CompileFailed, CompilerMessage, Outcome, Ran, RunOutcome, Unavailable
from kernel_forge.domain.tuning import Budget, KernelTuning
from kernel_forge.jobs.requests import TuneRequest
from kernel_forge.jobs.tune import tune_file
from kernel_forge.ports import Artifact, Trial
from tests.verify.fake_device import FakeDevice

BLOCK = """// /// kernel-forge
// kernel = "twice"
// reference = {{ y = "2 * x" }}
// cases = [{{ n = 4096 }}, {{ n = 1000 }}]
// [args]
// x = {{ shape = ["n"] }}
// y = {{ shape = ["n"], role = "out" }}
// [launch]
// grid = "cdiv(n, BLOCK)"
// block = "BLOCK"
// [tune]
// BLOCK = {blocks}
// ITEMS = {items}
// where = {where}
// ///
#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef ITEMS
#define ITEMS 1
#endif
__global__ void twice(const float* x, float* y, int n) {{}}
"""
Values = Mapping[str, int]


def text(blocks: str = "[64, 128, 256]", items: str = "[1, 2, 4]", where: str = "[]") -> str:
    return BLOCK.format(blocks=blocks, items=items, where=where)


def nothing_wrong(_values: Values, _n: int) -> bool:
    return False


class PlayedDevice(FakeDevice):
    """Times and results as a test says.

    ``seconds(values, n)`` is the time of a configuration, or what it does instead; ``wrong`` whether a run of it spoils
    its result, ``wrong_timed`` whether a timed one does, ``wrong_finals`` whether one does of which all outputs are
    asked for (or a sample of ``final_sample``), ``finals`` what that does in place of taking time. Each time is of so
    many ``samples`` and has an interval of ``spread`` about it.
    """

    def __init__(
        self,
        seconds: Callable[[Values, int], float | Outcome],
        *,
        wrong: Callable[[Values, int], bool] = nothing_wrong,
        wrong_timed: Callable[[Values, int], bool] = nothing_wrong,
        wrong_finals: Callable[[Values, int], bool] = nothing_wrong,
        refused: Callable[[Values], bool] = lambda _: False,
        spread: float = 0.001,
        samples: int = 20,
        finals: Callable[[Values], Outcome | None] = lambda _: None,
        final_sample: int = -1,
    ) -> None:
        super().__init__(lambda *_: None)
        self.times, self.wrong, self.refused = seconds, wrong, refused
        self.wrong_timed, self.wrong_finals = wrong_timed, wrong_finals
        self.spread, self.samples, self.finals = spread, samples, finals
        self.final_sample = final_sample
        self.timed: list[dict[str, int]] = []
        self.plans: list[TimingPlan] = []

    def compile(self, request: CompileRequest) -> Artifact | CompileFailed | Unavailable:
        values = {name: int(value) for name, value in request.defines.items()}
        if self.refused(values):
            return CompileFailed((CompilerMessage("error", "too much", None, "played"),))
        return Artifact(json.dumps(values), request.kernels)

    def run(self, artifact: Artifact, request: RunRequest) -> RunOutcome:
        self.requests.append(request)
        return self._ran(artifact, request, self.wrong)

    def _ran(self, artifact: Artifact, request: RunRequest, wrong: Callable[[Values, int], bool]) -> Ran:
        x = next(b.data for b in request.buffers if b.name == "x")
        assert x is not None
        y = (2 * x).astype(np.float32)
        if wrong(json.loads(artifact.handle), len(y)) and len(y):
            y[0] += 1
            y[-1] += 1
        return Ran({"y": y}, seconds=1e-3)

    def time(self, trials: Sequence[Trial], plan: TimingPlan) -> Timings | Unavailable:
        self.plans.append(plan)
        results: list[Any] = []
        for trial in trials:
            values = json.loads(trial.artifact.handle)
            self.timed.append(values)
            n = next(b.nbytes for b in trial.request.buffers if b.name == "y") // 4
            seconds = (self.finals(values) if plan.outputs else None) or self.times(values, n)
            if not isinstance(seconds, float):
                results.append(seconds)
                continue
            low, high = seconds * (1 - self.spread), seconds * (1 + self.spread)
            made = Measurement(
                seconds, low, high, self.samples, 1, "events", False, "played", early=plan.is_hopeless(seconds)
            )
            is_final = plan.outputs or plan.sample == self.final_sample
            is_wrong = self.wrong_timed(values, n) or (is_final and self.wrong_finals(values, n))
            contents = self._ran(trial.artifact, trial.request, lambda *_, spoils=is_wrong: spoils).contents
            results.append(Timed(made, plan.part_of(contents)))
        return Timings(tuple(results), 1.0)

    def peaks(self) -> Peaks | Unavailable:
        return Peaks(1e12, {"float32": 1e12}, "played")


def request(source: str | None = None, *, trials: int | None = 100, path: str = "/w.cu", **more: Any) -> TuneRequest:
    budget = more.pop("budget", Budget(trials, 60.0))
    return TuneRequest(path, source or text(), seed=more.pop("seed", 1), budget=budget, **more)


def tuned(device: PlayedDevice, source: str | None = None, **more: Any) -> KernelTuning:
    """The tuning of the one kernel of ``source``."""
    (result,) = tune_file(request(source, **more), device, lambda _: None).results
    assert isinstance(result, KernelTuning), result
    return result
