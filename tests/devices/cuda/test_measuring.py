"""What the worker's samples mean."""

from pathlib import Path
from typing import Any

import pytest

from kernel_forge.devices.cuda.measuring import control_trials, time_trials
from kernel_forge.devices.cuda.protocol import Frame
from kernel_forge.domain.launch import Launch, RunRequest
from kernel_forge.domain.measurement import Timed, TimingPlan, Timings
from kernel_forge.domain.outcome import MemoryFault, TimedOut, Unavailable
from kernel_forge.ports import Artifact, Trial
from tests.devices.cuda.test_device import Scripted, compiled


class Pool:
    """Answers with the entries it was given."""

    def __init__(self, entries: list[dict[str, Any]], **more: Any) -> None:
        self.entries, self.more = entries, more
        self.jobs: list[Any] = []

    def ask(self, header: Any, payload: Any, limit: float) -> Frame:
        self.jobs.append((header, limit))
        return Frame({"type": "result", "status": "measured", "trials": self.entries, **self.more})


def entry(seconds: float, method: str = "graph", **more: Any) -> dict[str, Any]:
    samples = more.pop("samples", [seconds] * 12)
    return {"status": "timed", "samples": samples, "batch": 4, "method": method, "outputs": [], **more}


def timed(tmp_path: Path, *entries: dict[str, Any]) -> Timings:
    artifact = compiled(tmp_path, Scripted())
    assert isinstance(artifact, Artifact)
    controls = control_trials(artifact, 2)
    pool = Pool([entry(1e-4), entry(1e-6), entry(5e-6, "events"), *entries])
    launch = Launch("k", (), (1, 1, 1), (32, 1, 1))
    trials = [Trial(artifact, RunRequest((), (launch,), time_limit=2.0)) for _ in entries]
    made = time_trials(pool, controls, trials, TimingPlan(), "measured on a test")  # type: ignore[arg-type]
    assert isinstance(made, Timings)
    assert len(pool.jobs[0][0]["runs"]) == len(controls) + len(entries)
    return made


@pytest.mark.parametrize(
    ("seconds", "method", "bound"),
    # An empty kernel takes 1 us in a graph, 5 us by itself; up to three times that is the launch's time.
    [(2.9e-6, "graph", True), (3.1e-6, "graph", False), (14e-6, "events", True), (16e-6, "events", False)],
)
def test_launch_bound_goes_by_how_it_was_launched(tmp_path: Path, seconds: float, method: str, bound: bool) -> None:
    (result,) = timed(tmp_path, entry(seconds, method)).results
    assert isinstance(result, Timed)
    assert result.measurement.launch_bound is bound
    assert result.measurement.seconds == seconds
    assert result.measurement.basis == "measured on a test"


def test_failures_stand_in_their_places(tmp_path: Path) -> None:
    error = {"status": "error", "stage": "run", "call": "cuEventQuery", "code": 700, "name": "X", "text": ""}
    results = timed(tmp_path, error, {"status": "timeout"}, {"status": "lost"}, entry(1e-5)).results
    assert [type(r) for r in results] == [MemoryFault, TimedOut, Unavailable, Timed]


def test_drift_is_that_of_the_control_kernel(tmp_path: Path) -> None:
    artifact = compiled(tmp_path, Scripted())
    assert isinstance(artifact, Artifact)
    slowing = [1e-4] * 10 + [1.05e-4] * 10 + [1.1e-4] * 10
    pool = Pool([entry(0, samples=slowing), entry(1e-6), entry(5e-6, "events")])
    made = time_trials(pool, control_trials(artifact, 2), [], TimingPlan(), "")  # type: ignore[arg-type]
    assert isinstance(made, Timings)
    assert made.drift == pytest.approx(1.1)
    assert not made.is_steady


def test_without_its_controls_a_measurement_does_not_claim_to_be_steady(tmp_path: Path) -> None:
    artifact = compiled(tmp_path, Scripted())
    assert isinstance(artifact, Artifact)
    lost = {"status": "lost"}
    launch = Launch("k", (), (1, 1, 1), (32, 1, 1))
    pool, trials = Pool([lost, lost, lost, entry(1e-6)]), [Trial(artifact, RunRequest((), (launch,)))]
    made = time_trials(pool, control_trials(artifact, 2), trials, TimingPlan(), "")  # type: ignore[arg-type]
    assert isinstance(made, Timings)
    assert made.drift is None and not made.is_steady
    assert isinstance(made.results[0], Timed) and made.results[0].measurement.launch_bound is None


def test_a_brief_plan_takes_the_clock_as_its_only_control(tmp_path: Path) -> None:
    artifact = compiled(tmp_path, Scripted())
    assert isinstance(artifact, Artifact)
    trials = [Trial(artifact, RunRequest((), (Launch("k", (), (1, 1, 1), (32, 1, 1)),))) for _ in range(2)]
    quick = {**entry(1e-3, "events", samples=[1.1e-3, 1e-3], early=True), "joules": 0.5}
    pool = Pool([entry(1e-4), entry(1e-5), quick], no_energy="the first has none")
    plan = TimingPlan(min_samples=5, outputs=False, hopeless=2e-5, energy=True)
    made = time_trials(pool, control_trials(artifact, 2), trials, plan, "")  # type: ignore[arg-type]
    assert isinstance(made, Timings)
    ((job, _),) = pool.jobs
    assert len(job["runs"]) == 3 and job["controls"] == 1
    assert job["plan"]["hopeless"] == 2e-5
    first, second = made.results
    assert isinstance(first, Timed) and isinstance(second, Timed)
    assert (first.measurement.early, second.measurement.early) == (False, True)
    assert first.measurement.launch_bound is None
    assert (first.joules, second.joules, made.no_energy) == (None, 0.5, "the first has none")
    assert made.drift == 1.0
