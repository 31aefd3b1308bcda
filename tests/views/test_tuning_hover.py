"""What an editor says of a tuning run. Expected numbers follow from the times given here."""

from dataclasses import replace

import pytest

from kernel_forge.domain.measurement import Measurement
from kernel_forge.domain.outcome import LaunchFailed, Passed, Unavailable, Verdict
from kernel_forge.domain.performance import Attained, Occupancy
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
from kernel_forge.views.tuning_hover import hint_label, running_text, running_title, tuned_title, tuning_text

GPU = "measured on NVIDIA H200"


def time(seconds: float, samples: int = 15, basis: str = GPU) -> Measurement:
    return Measurement(seconds, 0.99 * seconds, 1.01 * seconds, samples, 1, "graph", False, basis)


def verdict(block: int, outcome: object = Passed(3, 9)) -> Verdict:
    return Verdict("k", "/a.cu", outcome, {"BLOCK": block}, 1, "cuda", GPU)  # type: ignore[arg-type]


BASE = Contender({"BLOCK": 128}, (time(3e-6),), Ratio(1.0, 1.0, 1.0))
BEST = Contender({"BLOCK": 256}, (time(2e-6),), Ratio(1.5, 1.47, 1.53))
TUNING = KernelTuning(
    kernel="k",
    path="/a.cu",
    device="cuda",
    basis=GPU,
    cases=({"n": 1000},),
    space=SpaceFacts(4, 3, {"BLOCK": (64, 128, 256, 512)}),
    sampler="portfolio",
    seed=5,
    budget=Budget(),
    ended="exhausted",
    trials=(TunedTrial({"BLOCK": 128}, (3e-6,)), TunedTrial({"BLOCK": 64}, None, "no"), TunedTrial({}, (2e-6,))),
    baseline=BASE,
    winner=BEST,
    verdict=verdict(256),
)


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        (None, "tuning: preparing"),
        (SearchProgress(37, 2, 100, 3.3e-6, 2.5e-6, {"BLOCK": 64}, (3e-6, 2.5e-6), 60.0), "tuning 37/100, best 1.32x"),
        (SearchProgress(1, 1, None, None, None, {}, (), None), "tuning 1"),
        (SearchProgress(2, 1, 9, None, 2e-6, {"B": 1}, (2e-6,), None), "tuning 2/9"),  # no default to compare with
    ],
)
def test_a_run_in_progress_as_a_lens(search: SearchProgress | None, expected: str) -> None:
    assert running_title("preparing", search) == expected


def test_a_run_in_progress_as_a_hover() -> None:
    search = SearchProgress(37, 2, 100, 3.3e-6, 2.5e-6, {"BLOCK": 64}, (3e-6, 2.5e-6), 60.0)
    text = running_text("searching", search)
    assert "37/100 tried" in text and "2 failed" in text and "2.5 us" in text and "BLOCK = 64" in text
    assert running_text("checking the default", None) == "_Tuning: checking the default…_"


def test_titles() -> None:
    assert tuned_title(TUNING, stale=False, applied=False) == f"tuned: 1.50x ({GPU})"
    assert tuned_title(TUNING, stale=False, applied=True) == f"tuned: 1.50x, applied ({GPU})"
    assert tuned_title(TUNING, stale=True, applied=False) == f"changed since: tuned: 1.50x ({GPU})"
    assert (
        tuned_title(replace(TUNING, winner=BASE), stale=False, applied=True)
        == f"default stays, nothing is faster for sure ({GPU})"
    )
    emulated = replace(TUNING, basis="emulated")
    assert tuned_title(emulated, stale=False, applied=False) == "tuned: 1.50x (emulated, CPU times)"


def test_without_a_default_there_is_no_ratio() -> None:
    alone = replace(TUNING, baseline=None, winner=replace(BEST, speedup=None))
    assert tuned_title(alone, stale=False, applied=False) == f"tuned: BLOCK = 256 ({GPU})"
    assert hint_label(alone, applied=False) == "2 us ± 1 % (measured)"
    noted = tuning_text(replace(alone, notes=("the default fails the verification",)))
    assert "there is no default to compare with" in noted and "does not run" not in noted
    assert "Note: the default fails the verification." in noted


def test_a_ratio_of_few_samples_has_no_interval() -> None:
    few = replace(TUNING, winner=replace(BEST, speedup=Ratio(1.5, 1.47, 1.53, samples=5)))
    said = "too few samples for an interval"
    assert tuned_title(few, stale=False, applied=False) == f"tuned: 1.50x, {said} ({GPU})"
    assert hint_label(few, applied=True) == f"2 us ± 1 %, 1.50x, {said} (measured)"
    assert f"1.5 times as fast as the default ({said})" in tuning_text(few) and "1.47" not in tuning_text(few)


def test_a_tie_is_no_win_of_the_default() -> None:
    text = tuning_text(replace(TUNING, winner=BASE))
    assert "**the default stays**, BLOCK = 128 (verified); nothing is faster for sure." in text
    assert "best" not in text.splitlines()[0]


def test_why_there_is_no_result() -> None:
    wrong = verdict(128, LaunchFailed("trap", "the kernel trapped"))
    assert tuned_title(wrong, stale=False, applied=False) == f"not tuned: launch failed: trap ({GPU})"
    assert tuned_title(verdict(128, Unavailable("no GPU")), stale=False, applied=False) == "not tuned: no GPU"
    assert tuning_text(wrong) == f"? **not tuned** ({GPU}): launch failed: trap: the kernel trapped"


def test_hints() -> None:
    assert hint_label(TUNING, applied=False) == "3 us → 2 us ± 1 %, 1.50x (measured)"
    assert hint_label(TUNING, applied=True) == "2 us ± 1 %, 1.50x (measured)"
    assert hint_label(replace(TUNING, winner=BASE), applied=True) == "3 us ± 1 %, nothing is faster for sure (measured)"
    few = replace(TUNING, winner=replace(BEST, times=(time(2e-6, samples=3),)))
    assert hint_label(few, applied=True) == "2 us, 1.50x, too few samples for an interval (measured)"


def test_an_interval_wider_than_the_time_is_a_plain_number() -> None:
    wide = replace(BEST, times=(Measurement(2e-6, 1e-6, 9e-6, 15, 1, "events", None, "emulated"),))
    assert hint_label(replace(TUNING, winner=wide), applied=True) == "2 us ± 200 %, 1.50x (measured)"


def test_the_result_in_full() -> None:
    full = replace(
        TUNING,
        attained=Attained(1e12, 0.5, 1e9, 0.01, "float32", "memory", 0.5),
        occupancy=Occupancy(6, 48, 0.75, "registers"),
        winner=replace(BEST, joules=(0.00125,)),
        choices=(CaseChoice({"n": 7}, {"BLOCK": 64}, 1e-6, None),),
        notes=("the clocks moved",),
    )
    text = tuning_text(full)
    for part in (
        f"**{GPU}**",
        "best is **BLOCK = 256** (verified)",
        "1.5 times as fast as the default (95 % interval 1.47 to 1.53)",
        "Time at n = 1000: 2 us ± 1 %, default 3 us ± 1 %.",
        "Roofline: 50 % of the memory roof.",
        "Occupancy: 75 % (6 blocks per multiprocessor, limited by registers).",
        "Energy: 1.25 mJ per execution.",
        "3 trials, 1 failed",
        "3 valid configurations of 4 combinations",
        "Best at n = 7: BLOCK = 64, 1 us.",
        "Note: the clocks moved.",
    ):
        assert part in text
    assert "emulation" not in text
    assert "older text" in tuning_text(full, stale=True)
    assert "**BLOCK = 256**, now the default" in tuning_text(full, applied=True)


def test_times_of_an_emulation_say_so() -> None:
    assert "CPU times of an emulation" in tuning_text(replace(TUNING, basis="emulated"))


def test_what_was_faster_and_wrong_is_named_and_what_could_not_be_verified_is_not_called_wrong() -> None:
    wrong = verdict(64, LaunchFailed("trap", "the kernel trapped"))
    unknown = verdict(32, Unavailable("no reference"))
    text = tuning_text(replace(TUNING, rejected=(wrong, unknown, wrong, wrong)))
    assert "✗ Faster in the search, but rejected: BLOCK = 64: **launch failed: trap**: the kernel trapped" in text
    assert "? Faster in the search, but rejected: BLOCK = 32: **not verified**: no reference" in text
    assert "1 more were rejected." in text
