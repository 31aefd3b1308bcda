"""Tunings made by hand."""

from dataclasses import replace
from typing import Any

from kernel_forge.domain.measurement import Measurement
from kernel_forge.domain.outcome import CaseId, Mismatch, MismatchKind, Passed, Verdict
from kernel_forge.domain.performance import Attained, Occupancy
from kernel_forge.domain.spec import Configuration
from kernel_forge.domain.tuning import (
    Budget,
    CaseChoice,
    Contender,
    KernelTuning,
    Ratio,
    SearchProgress,
    SpaceFacts,
    TunedTrial,
)

GPU = "measured on NVIDIA H200"


def time_of(seconds: float, basis: str = GPU) -> Measurement:
    """A time with an interval of 1 % to either side."""
    return Measurement(seconds, 0.99 * seconds, 1.01 * seconds, 40, 80, "graph", False, basis)


def verdict_of(configuration: Configuration, outcome: Any = None, basis: str = GPU) -> Verdict:
    return Verdict("scale", "/work/scale.cu", outcome or Passed(22, 66, {"y": 0.1}), configuration, 7, "cuda", basis)


def wrong() -> Mismatch:
    return Mismatch(
        kind=MismatchKind.WRONG_VALUE,
        output="y",
        count=1,
        total=1000,
        index=(3,),
        expected=1.0,
        got=2.0,
        tolerance=1e-6,
        max_absolute=1.0,
        message="y[3] is 2, expected 1",
    )


TRIALS = (
    TunedTrial({"BLOCK": 128, "VECTOR": False}, (2e-5,)),
    TunedTrial({"BLOCK": 64, "VECTOR": False}, (3e-5,), early=True),
    TunedTrial({"BLOCK": 512, "VECTOR": True}, None, "does not compile: too many registers"),
    TunedTrial({"BLOCK": 32, "VECTOR": True}, None, "wrong: y[3] wrong value"),
    TunedTrial({"BLOCK": 1024, "VECTOR": True}, None, "does not compile: too much shared memory"),
    TunedTrial({"BLOCK": 256, "VECTOR": True}, (1e-5,)),
)
DEFAULT = Contender({"BLOCK": 128, "VECTOR": False}, (time_of(2e-5),), Ratio(1.0, 1.0, 1.0))
BEST = Contender({"BLOCK": 256, "VECTOR": True}, (time_of(1e-5),), Ratio(2.0, 1.9, 2.1))
TUNING = KernelTuning(
    kernel="scale",
    path="/work/scale.cu",
    device="cuda",
    basis=GPU,
    cases=({"n": 1000},),
    space=SpaceFacts(5000, 1234, {"BLOCK": (32, 64, 128, 256, 512, 1024), "VECTOR": (False, True)}),
    sampler="portfolio",
    seed=7,
    budget=Budget(trials=6, seconds=None),
    ended="trials",
    trials=TRIALS,
    baseline=DEFAULT,
    winner=BEST,
    verdict=verdict_of(BEST.configuration),
    finalists=(BEST, DEFAULT),
    run=12,
    seconds=42.0,
)
UNCHANGED = replace(TUNING, winner=DEFAULT, verdict=verdict_of(DEFAULT.configuration), finalists=(DEFAULT,))
EMULATED = replace(
    TUNING,
    device="emulator",
    basis="emulated",
    winner=replace(BEST, times=(time_of(1e-5, "CPU time of an emulation"),)),
    verdict=verdict_of(BEST.configuration, basis="emulated"),
)
LARGE = Contender({"BLOCK": 256, "VECTOR": True}, (time_of(1e-5), time_of(8e-4)), Ratio(1.5, 1.4, 1.6))
SEVERAL = replace(
    TUNING,
    cases=({"n": 1000}, {"n": 1000000}),
    trials=tuple(replace(t, seconds=None if t.seconds is None else (*t.seconds, 1e-3)) for t in TRIALS),
    baseline=replace(DEFAULT, times=(time_of(2e-5), time_of(9e-4))),
    winner=LARGE,
    choices=(
        CaseChoice({"n": 1000}, {"BLOCK": 64, "VECTOR": False}, 0.9e-5, Ratio(2.2, 2.1, 2.3)),
        CaseChoice({"n": 1000000}, {"BLOCK": 256, "VECTOR": True}, 8e-4, Ratio(1.125, 1.1, 1.15)),
    ),
)
FULL = replace(
    TUNING,
    attained=Attained(2e12, 0.5, 6e12, 0.1, "float32", "memory", 0.83),
    occupancy=Occupancy(6, 48, 0.75, "registers"),
    finalists=(
        replace(BEST, joules=(1.2e-3,)),
        Contender({"BLOCK": 512, "VECTOR": False}, (time_of(1.2e-5),), Ratio(1.67, 1.6, 1.7), (2.5e-3,)),
        replace(DEFAULT, joules=(2e-3,)),
    ),
    rejected=(
        replace(verdict_of({"BLOCK": 32, "VECTOR": True}, wrong()), case=CaseId({"n": 7}, "spikes", 3, "n = 7")),
    ),
    resumed=2,
    notes=("as compiled by nvcc",),
)
PROGRESS = SearchProgress(42, 3, 100, 2e-5, 1e-5, {"BLOCK": 64}, (2e-5, 1e-5), 40.0)
