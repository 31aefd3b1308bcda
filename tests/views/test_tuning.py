"""Tunings in words; the numbers are those of the tunings made by hand."""

from dataclasses import replace

import pytest

from kernel_forge.domain.outcome import Unavailable
from kernel_forge.domain.tuning import Budget, Contender, KernelTuning, Ratio, SearchProgress
from kernel_forge.views.finalists import joules_text, passed_over
from kernel_forge.views.tuning import (
    ended_text,
    left_text,
    progress_lines,
    search_text,
    tuning_lines,
)
from kernel_forge.views.words import EMULATION, caveat
from tests.views.tunings import (
    BEST,
    DEFAULT,
    EMULATED,
    FULL,
    GPU,
    PROGRESS,
    SEVERAL,
    TUNING,
    UNCHANGED,
    time_of,
    verdict_of,
    wrong,
)


def text(tuning: KernelTuning) -> str:
    return "\n".join(tuning_lines(tuning))


def test_a_faster_configuration() -> None:
    assert tuning_lines(TUNING) == [
        "✓ scale: 10 us ± 1 % with BLOCK = 256, VECTOR = true (measured on NVIDIA H200)",
        "  faster     2 times as fast as the default (95 % interval 1.9 to 2.1); "
        "the default takes 20 us ± 1 % with BLOCK = 128, VECTOR = false",
        "  case       n = 1000",
        "  found      in trial 6",
        "  verified   22 cases, 66 runs",
        "  space      1,234 valid configurations of 5,000 combinations",
        "  search     6 trials, 3 failed, 1 given up early; the trials of the budget are used up; "
        "42.0 s with final timing and verification (--sampler portfolio --seed 7, which on a GPU repeats inputs and "
        "first choices only; run 12 in the history)",
        "  failed     2 × does not compile: too many registers (and other reasons)",
        "  converged  █████▁  (how far from the best after each trial, log scale)",
        "  warning: 1 configuration that was tried is wrong: with it the kernel does not compute what its spec says",
        "    1 × wrong: y[3] wrong value",
        "      kernel-forge verify /work/scale.cu:scale --device cuda --set BLOCK=32 --set VECTOR=true",
    ]


def test_the_search_has_its_own_time() -> None:
    """A budget of 10 s is one of searching: 42 s beside it would look as if it had been overrun."""
    said = search_text(replace(TUNING, search_seconds=10.04))
    assert "; searched for 10.0 s, 42.0 s with final timing and verification (" in said


def test_a_seed_repeats_less_on_a_gpu() -> None:
    """There results are told as they come, which decides what is asked for next; in an emulation in their order."""
    assert "--seed 7, which on a GPU repeats inputs and first choices only;" in search_text(TUNING)
    assert "--seed 7; run" in search_text(EMULATED)


UNSURE = Contender({"BLOCK": 512, "VECTOR": True}, (time_of(8e-6),), Ratio(2.5, 0.9, 4.1))
WRONG = Contender({"BLOCK": 64, "VECTOR": True}, (time_of(9e-6),), Ratio(2.2, 2.1, 2.3))
FEW = replace(UNSURE, speedup=Ratio(2.5, 2.4, 2.6, samples=3))
INTERVAL = "not for sure: the interval of the ratio does not lie above 1.01"


@pytest.mark.parametrize(
    ("tuning", "why"),
    [
        (TUNING, None),
        (UNCHANGED, None),
        (
            replace(TUNING, finalists=(UNSURE, BEST, DEFAULT)),
            f"BLOCK = 512, VECTOR = true took less time, but {INTERVAL}",
        ),
        (
            replace(UNCHANGED, finalists=(UNSURE, DEFAULT)),
            f"BLOCK = 512, VECTOR = true took less time, but {INTERVAL}",
        ),
        (replace(TUNING, finalists=(UNSURE,) * 4 + (BEST,)), f"4 finalists took less time, but {INTERVAL}"),
        (
            replace(TUNING, finalists=(FEW, BEST)),
            "BLOCK = 512, VECTOR = true took less time, but not for sure: too few samples for an interval",
        ),
        (
            replace(TUNING, finalists=(WRONG, BEST, UNSURE), rejected=(verdict_of(WRONG.configuration, wrong()),)),
            "BLOCK = 64, VECTOR = true took less time, but the full verification found: wrong: y[3]",
        ),
        (
            replace(TUNING, finalists=(WRONG, BEST), rejected=(verdict_of(WRONG.configuration, Unavailable("no")),)),
            "BLOCK = 64, VECTOR = true took less time, but could not be verified",
        ),
    ],
)
def test_why_the_winner_is_not_the_first_of_the_finalists(tuning: KernelTuning, why: str | None) -> None:
    assert passed_over(tuning) == why
    assert (f"  not first  {why}" in tuning_lines(tuning)) == (why is not None)


def test_nothing_faster() -> None:
    lines = tuning_lines(UNCHANGED)
    assert lines[0] == (
        "✓ scale: no configuration is faster for sure; the default stays: "
        "20 us ± 1 % with BLOCK = 128, VECTOR = false (measured on NVIDIA H200)"
    )
    assert not any("faster" in line for line in lines[1:])


def test_the_times_of_an_emulation_say_so_once() -> None:
    lines = tuning_lines(replace(EMULATED, notes=(EMULATION, "another")))
    assert lines[0].endswith("(emulated)")
    assert lines[1] == f"  note: {EMULATION}"
    assert sum(EMULATION in line for line in lines) == 1
    assert "  note: another" in lines


@pytest.mark.parametrize(
    ("basis", "said"), [("emulated", True), ("CPU time of an emulation", True), (GPU, False), ("replayed", False)]
)
def test_what_needs_a_caveat(basis: str, said: bool) -> None:
    assert caveat(basis) == (EMULATION if said else None)


@pytest.mark.parametrize("tuning", [TUNING, UNCHANGED, EMULATED, SEVERAL, FULL])
def test_the_basis_is_in_the_first_line(tuning: KernelTuning) -> None:
    assert tuning_lines(tuning)[0].endswith(f"({tuning.basis})")


def test_several_cases() -> None:
    """Geometric means: sqrt(10 us * 800 us) = 89.44 us, sqrt(20 us * 900 us) = 134.2 us."""
    lines = tuning_lines(SEVERAL)
    assert lines[0].startswith("✓ scale: 89.44 us (geometric mean of 2 cases) with")
    assert "the default takes 134.2 us (geometric mean of 2 cases)" in lines[1]
    at = lines.index("  case          winner         default        ratio")
    assert lines[at + 1 : at + 3] == [
        "  n = 1000      10 us ± 1 %    20 us ± 1 %    2",
        "  n = 1000000   800 us ± 1 %   900 us ± 1 %   1.12",
    ]
    assert lines[at + 3] == (
        "  best for   n = 1000: BLOCK = 64, VECTOR = false, 9 us, "
        "2.2 times as fast as the default (95 % interval 2.1 to 2.3)"
    )
    kept = replace(SEVERAL.choices[0], configuration=DEFAULT.configuration)
    assert "  best for   n = 1000: BLOCK = 128, VECTOR = false, 9 us, the default" in tuning_lines(
        replace(SEVERAL, choices=(kept,))
    )
    few = replace(SEVERAL.winner, times=(replace(SEVERAL.winner.times[0], samples=5), SEVERAL.winner.times[1]))
    assert "10 us with too few samples for an interval" in text(replace(SEVERAL, winner=few))
    unchanged = replace(SEVERAL, winner=SEVERAL.baseline or DEFAULT, choices=())
    assert "  n = 1000      20 us ± 1 %" in tuning_lines(unchanged)


def test_what_else_is_known_of_it() -> None:
    found = text(FULL)
    assert "roofline   83 % of the memory roof" in found
    assert "occupancy  75 % (6 blocks per multiprocessor, limited by registers)" in found
    assert "finalists  10 us  2x (1.9 to 2.1)     1.2 mJ  BLOCK = 256, VECTOR = true" in found
    assert "12 us  1.67x (1.6 to 1.7)  2.5 mJ  BLOCK = 512, VECTOR = false" in found
    assert "rejected   BLOCK = 32, VECTOR = true: faster in the search, but wrong: y[3] (n = 7, inputs spikes)" in found
    assert "6 trials, 2 of them from an earlier run, 3 failed" in found
    assert "\n  note: as compiled by nvcc\n" in found


def test_a_ratio_of_few_samples_has_no_interval() -> None:
    few = replace(TUNING.winner, speedup=Ratio(2.0, 1.9, 2.1, samples=5))
    found = text(replace(FULL, winner=few, finalists=(few, *FULL.finalists[1:])))
    assert "  faster     2 times as fast as the default (too few samples for an interval); " in found
    assert "finalists  10 us  2x (too few samples for an interval)" in found
    assert "1.9" not in found


def test_why_the_winner_was_tried() -> None:
    trials = (*TUNING.trials[:5], replace(TUNING.trials[5], reason="the best of this kernel at n = 500"))
    found = text(replace(TUNING, trials=trials))
    assert "  found      in trial 6, tried early: the best of this kernel at n = 500" in found
    assert "  found" not in text(UNCHANGED)


def test_a_roof_needs_operations() -> None:
    assert FULL.attained is not None
    without = replace(FULL, attained=replace(FULL.attained, share=None, bound=None))
    assert "50 % of the copy bandwidth" in text(without)


def test_without_a_default_the_notes_say_why() -> None:
    """The default may run here, and have failed the full verification."""
    why = "the default fails the verification"
    found = text(replace(TUNING, baseline=None, winner=replace(TUNING.winner, speedup=None), notes=(why,)))
    assert "faster     than nothing: there is no default to compare with" in found
    assert "does not run" not in found
    assert f"\n  note: {why}\n" in found
    assert "as fast as" not in found


def test_a_winner_that_is_not_verified_is_not_said_to_be() -> None:
    assert text(replace(TUNING, verdict=verdict_of({}, wrong()))).startswith("✗ scale")
    assert "verified   not: not verified: no time left" in text(
        replace(TUNING, verdict=verdict_of({}, Unavailable("no time left")))
    )
    rejected = replace(TUNING, rejected=(verdict_of({"BLOCK": 32}, Unavailable("no time left")),))
    assert "rejected   BLOCK = 32: not verified: no time left" in text(rejected)


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ("trials", "the trials of the budget are used up"),
        ("seconds", "the time of the budget is used up"),
        ("patience", "no new best in 30 trials"),
        ("exhausted", "every valid configuration was tried"),
        ("stopped", "stopped on request"),
    ],
)
def test_how_it_ended(ended: str, words: str) -> None:
    assert ended_text(ended, Budget(patience=30)) == words


def test_progress() -> None:
    assert progress_lines(PROGRESS) == [
        "42/100 tried, 3 failed · about 40 s left",
        "best 10 us, 2x the default · █▁ · BLOCK = 64",
    ]
    assert progress_lines(PROGRESS, 30)[0] == "42/100 tried, 3 failed · abou…"
    assert all(line.isascii() for line in progress_lines(PROGRESS, 30, ascii_only=True))


def test_progress_while_little_is_known() -> None:
    begun = SearchProgress(1, 1, None, None, None, {}, (), None)
    assert progress_lines(begun) == ["1 tried, 1 failed · no time yet"]
    assert progress_lines(replace(PROGRESS, baseline=None, remaining=None, failed=0)) == [
        "42/100 tried",
        "best 10 us · █▁ · BLOCK = 64",
    ]


@pytest.mark.parametrize(
    ("width", "line"), [(44, "best 10 us, 2x the default · █▁ · BLOCK = 64"), (30, "best 10 us, 2x the default · …")]
)
def test_progress_fits_a_narrow_terminal(width: int, line: str) -> None:
    lines = progress_lines(PROGRESS, width, message="a_kernel_of_some_length: searching")
    assert lines[0].startswith("a_kernel_of_some")
    assert lines[1] == line
    assert all(len(text) <= width for text in lines)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "about 1 s left"), (89, "about 89 s left"), (100, "about 2 min left"), (7200, "about 2.0 h left")],
)
def test_time_left(seconds: float, words: str) -> None:
    assert left_text(seconds) == words


@pytest.mark.parametrize(("joules", "words"), [(2.5, "2.5 J"), (0.0012, "1.2 mJ"), (3e-6, "3 uJ"), (4e-9, "4 nJ")])
def test_energy(joules: float, words: str) -> None:
    assert joules_text(joules) == words
