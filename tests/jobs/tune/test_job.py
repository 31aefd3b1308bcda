"""The tune job on a played device: who wins, who never does, and when it ends."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.event import Progress
from kernel_forge.domain.launch import RunRequest
from kernel_forge.domain.outcome import LaunchFailed, MemoryFault, Mismatch, Passed, Ran, Unavailable, Verdict
from kernel_forge.domain.tuning import Budget, KernelTuning
from kernel_forge.jobs.tune import default as default_module
from kernel_forge.jobs.tune import finals, tune_file
from kernel_forge.jobs.tune import kernel as kernel_module
from kernel_forge.jobs.tune.local import HOPELESS, MOST_LOST
from kernel_forge.ports import Artifact
from kernel_forge.verify import gate as gate_module
from tests.jobs.tune.played_device import PlayedDevice, Values, request, text, tuned

DEFAULT = {"BLOCK": 128, "ITEMS": 1}
BEST = {"BLOCK": 256, "ITEMS": 4}


def product(values: Values, _n: int) -> float:
    """The larger both are the faster: 8 times from the default to the best."""
    return 1.0 / (values["BLOCK"] * values["ITEMS"])


def test_the_fastest_wins_with_its_speedup() -> None:
    found = tuned(PlayedDevice(product))
    assert found.winner.configuration == BEST
    assert found.baseline is not None
    assert found.baseline.configuration == DEFAULT
    assert found.winner.speedup is not None
    assert found.winner.speedup.value == pytest.approx(8.0)
    assert found.winner.speedup.low == pytest.approx(8.0 * 0.999 / 1.001)
    assert isinstance(found.verdict.outcome, Passed)
    assert found.verdict.configuration == BEST
    assert found.is_improved
    assert (found.ended, len(found.trials), found.space.valid) == ("exhausted", 9, 9)


def test_the_default_is_tried_first_and_no_configuration_twice() -> None:
    found = tuned(PlayedDevice(product))
    assert found.trials[0].configuration == DEFAULT
    assert len({tuple(t.configuration.items()) for t in found.trials}) == 9


@pytest.mark.parametrize(
    ("spread", "gain", "improved"),
    [
        (0.02, 1.03, False),  # 3 % faster, but the intervals of 2 % overlap
        (0.002, 1.03, True),
        (0.001, 1.0, False),
    ],
)
def test_a_statistical_tie_keeps_the_default(spread: float, gain: float, improved: bool) -> None:
    device = PlayedDevice(lambda v, _: 1.0 if v == DEFAULT else 1.0 / gain, spread=spread)
    found = tuned(device)
    assert found.is_improved is improved
    assert isinstance(found.verdict.outcome, Passed)


def test_what_is_wrong_at_the_gate_has_no_time() -> None:
    device = PlayedDevice(product, wrong=lambda v, _: v["ITEMS"] == 4)
    found = tuned(device)
    assert found.winner.configuration == {"BLOCK": 256, "ITEMS": 2}
    failures = [t.failure for t in found.trials if t.configuration["ITEMS"] == 4]
    assert failures == ["wrong: y[0] wrong value"] * 3
    assert not any(v["ITEMS"] == 4 for v in device.timed)


def test_what_is_wrong_at_other_sizes_only_is_found_by_the_full_verification() -> None:
    """The gate is at n = 4096, a multiple of every block."""
    device = PlayedDevice(product, wrong=lambda v, n: v["ITEMS"] == 4 and n % v["BLOCK"] != 0)
    found = tuned(device)
    assert found.winner.configuration == {"BLOCK": 256, "ITEMS": 2}
    assert {tuple(v.configuration.values()) for v in found.rejected} == {(256, 4)}
    assert isinstance(found.rejected[0].outcome, Mismatch)


def test_what_is_wrong_in_the_timed_buffers_is_rejected() -> None:
    device = PlayedDevice(product, wrong_finals=lambda v, _: v["BLOCK"] == 256)
    found = tuned(device)
    assert found.winner.configuration == {"BLOCK": 128, "ITEMS": 4}
    assert all(v.configuration["BLOCK"] == 256 for v in found.rejected)
    assert found.rejected


@pytest.mark.parametrize(("samples", "improved"), [(1, False), (5, False), (6, True)])
def test_fewer_than_six_samples_are_no_interval(samples: int, improved: bool) -> None:
    """Of six samples two hold the median between them with 97 %; a single one would be an interval of no width."""
    found = tuned(PlayedDevice(product, samples=samples, spread=0.0))
    assert found.is_improved is improved


def test_a_default_that_faults_in_the_finals_ends_the_tuning() -> None:
    fault = MemoryFault("out-of-bounds", "oh")
    device = PlayedDevice(product, finals=lambda v: fault if v == DEFAULT else None)
    (result,) = tune_file(request(), device, lambda _: None).results
    assert isinstance(result, Verdict)
    assert (result.outcome, result.configuration) == (fault, DEFAULT)


def test_a_finalist_that_faults_costs_the_others_nothing() -> None:
    fault = MemoryFault("out-of-bounds", "oh")
    found = tuned(PlayedDevice(product, finals=lambda v: fault if v == BEST else None))
    assert found.winner.configuration == {"BLOCK": 128, "ITEMS": 4} or found.winner.seconds == 1 / 512
    assert [(v.outcome, v.configuration) for v in found.rejected] == [(fault, BEST)]


def test_where_all_finalists_are_wrong_the_next_best_have_their_turn() -> None:
    """Five finalists at a time; seven are faster than the one that is right."""
    device = PlayedDevice(
        lambda v, _: 0.5 if v == {"BLOCK": 64, "ITEMS": 1} else 0.9 if v == DEFAULT else 0.45,
        wrong_finals=lambda v, _: v not in (DEFAULT, {"BLOCK": 64, "ITEMS": 1}),
    )
    found = tuned(device)
    assert found.winner.configuration == {"BLOCK": 64, "ITEMS": 1}
    assert len(found.rejected) == 7


def test_a_default_that_fails_elsewhere_is_nothing_to_be_faster_than() -> None:
    device = PlayedDevice(product, wrong=lambda v, n: v == DEFAULT and n == 1000)
    found = tuned(device)
    assert (found.baseline, found.winner.speedup, found.winner.configuration) == (None, None, BEST)
    assert any("the default fails the full verification (wrong: y[0]" in note for note in found.notes)
    assert found.default_verdict is not None
    assert isinstance(found.default_verdict.outcome, Mismatch)
    assert found.rejected == ()


def test_a_default_that_could_not_be_verified_is_no_wrong_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody answered says nothing about it: speed is still compared with it."""

    def verify(*_: Any, configuration: Any, **more: Any) -> Verdict:
        found = verified(*_, configuration=configuration, **more)
        return replace(found, outcome=Unavailable("oh")) if configuration == DEFAULT else found

    verified = kernel_module.verify
    monkeypatch.setattr(kernel_module, "verify", verify)
    found = tuned(PlayedDevice(product))
    assert found.baseline is not None
    assert (found.baseline.configuration, found.winner.configuration) == (DEFAULT, BEST)
    assert found.winner.speedup is not None
    assert "the default could not be verified in full (oh)" in found.notes


def test_wrong_finalists_make_room_for_the_next_best() -> None:
    """Eight are faster than the one that is right and twice as fast as the default, and wrong at n = 1000 only."""
    right = {"BLOCK": 64, "ITEMS": 2}
    source = text("[64, 128, 256]", "[1, 2, 3, 4]")
    device = PlayedDevice(
        lambda v, _: 1.0 if v == DEFAULT else 0.5 if v == right else 0.4 + v["BLOCK"] * 1e-4,
        wrong=lambda v, n: n == 1000 and v not in (DEFAULT, right),
    )
    found = tuned(device, source, sampler="exhaustive")
    assert found.winner.configuration == right
    assert len(found.rejected) == 10


def test_what_was_given_up_beside_one_that_is_wrong_has_its_turn() -> None:
    right, wrong = {"BLOCK": 64, "ITEMS": 1}, {"BLOCK": 256, "ITEMS": 1}
    times = {64: 0.3, 128: 1.0, 256: 0.1}
    device = PlayedDevice(lambda v, _: times[v["BLOCK"]], wrong=lambda v, n: v == wrong and n == 1000)
    found = tuned(device, text("[64, 128, 256]", "[1]"), sampler="exhaustive")
    assert found.winner.configuration == right


def test_inputs_that_depend_on_tunables_are_compared_with_their_own_results() -> None:
    source = text(items="[1, 2, 4]").replace('["n"]', '["n", "ITEMS"]')
    found = tuned(PlayedDevice(product), source, sampler="exhaustive")
    assert found.winner.configuration == BEST
    assert not any(t.failure for t in found.trials)


def test_sizes_at_which_nothing_can_be_compared_are_refused_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_module, "COMPARED_BYTES", 100)
    device = PlayedDevice(product)
    with pytest.raises(UsageError, match="too much to be compared with the reference"):
        tune_file(request(), device, lambda _: None)
    assert device.timed == []


def test_a_right_kernel_is_not_wrong_where_results_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding to integers: in float32 some land on the other side of a half, which only the exact tolerance knows."""

    class Rounding(PlayedDevice):
        def _ran(self, artifact: Artifact, request: RunRequest, wrong: Any) -> Ran:
            x = next(b.data for b in request.buffers if b.name == "x")
            assert x is not None
            return Ran({"y": np.rint(x * np.float32(3170.1)).astype(np.int32)}, seconds=1e-3)

    monkeypatch.setattr(gate_module, "A_MOMENT", 0.0)  # as where the reference is slow
    source = text().replace('"2 * x"', '"np.rint(x * 3170.1)"').replace("float* y", "int* y")
    size = 1 << 18
    x = np.random.default_rng(1).standard_normal(size).astype(np.float32)
    off = np.rint(x * np.float32(3170.1)) != np.rint(x.astype(np.float64) * 3170.1)
    assert 0 < np.count_nonzero(off) < 0.01 * size
    found = tuned(Rounding(product), source, cases=({"n": size},))
    assert found.winner.configuration == BEST
    assert (found.failed, found.rejected) == (0, ())


def test_outputs_too_large_to_read_are_compared_in_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finals, "READ_BYTES", 100)
    monkeypatch.setattr(finals, "SAMPLE", 1000)
    found = tuned(PlayedDevice(product, wrong_finals=lambda v, _: v["BLOCK"] == 256, final_sample=1000))
    assert found.winner.configuration == {"BLOCK": 128, "ITEMS": 4}
    assert any("1000 elements of each were compared" in note for note in found.notes)


def test_what_is_wrong_at_the_tuned_size_only_sets_no_measure_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tuned case, 8 MiB, is too large for a gate, but a sample of what every timed launch left is looked at."""
    monkeypatch.setattr(gate_module, "A_MOMENT", math.inf)  # exactly, however busy this machine is: few are wrong
    size = 1 << 20
    device = PlayedDevice(product, wrong_timed=lambda v, n: n == size and v["ITEMS"] == 4)
    found = tuned(device, cases=({"n": size},))
    assert found.winner.configuration == {"BLOCK": 256, "ITEMS": 2}
    assert {t.failure for t in found.trials if t.configuration == BEST} == {f"wrong: y[{size - 1}] wrong value"}


def test_configurations_that_a_device_cannot_do_are_failures_of_their_own() -> None:
    source = text("[64, 128]", str([*range(1, 13)]))
    device = PlayedDevice(lambda v, n: Unavailable("not emulated") if v["BLOCK"] == 64 else product(v, n))
    found = tuned(device, source, sampler="exhaustive")
    assert found.failed == 12
    assert found.winner.configuration == {"BLOCK": 128, "ITEMS": 12}


def test_a_wrong_default_is_told_at_once() -> None:
    device = PlayedDevice(product, wrong=lambda *_: True)
    (result,) = tune_file(request(), device, lambda _: None).results
    assert isinstance(result, Verdict)
    assert isinstance(result.outcome, Mismatch)
    assert not device.timed


def test_a_default_that_is_wrong_at_other_sizes_is_told_when_nothing_else_is_right() -> None:
    device = PlayedDevice(product, wrong=lambda _v, n: n == 1000)
    (result,) = tune_file(request(), device, lambda _: None).results
    assert isinstance(result, Verdict)
    assert isinstance(result.outcome, Mismatch)
    assert (result.configuration, result.case is not None) == (DEFAULT, True)


def test_what_does_not_compile_or_launch_is_a_failed_trial() -> None:
    device = PlayedDevice(
        lambda v, n: LaunchFailed("crash", "boom") if v["BLOCK"] == 64 else product(v, n),
        refused=lambda v: v["ITEMS"] == 4,
    )
    found = tuned(device)
    assert found.winner.configuration == {"BLOCK": 256, "ITEMS": 2}
    assert found.failed == 5
    assert {t.failure for t in found.trials if t.failure} == {"does not compile: too much", "ends itself: boom"}


def test_without_a_default_that_fits_any_verified_configuration_wins() -> None:
    source = text("[128, 256, 2048]").replace("define BLOCK 128", "define BLOCK 2048")
    found = tuned(PlayedDevice(product), source)
    assert found.baseline is None
    assert found.winner.configuration == BEST
    assert found.winner.speedup is None
    assert any("the default does not run here" in note for note in found.notes)


def test_a_space_of_one_point_keeps_the_default() -> None:
    found = tuned(PlayedDevice(product), text("[128]", "[1]"))
    assert (found.winner.configuration, found.ended, len(found.trials)) == (DEFAULT, "exhausted", 1)
    assert not found.is_improved


def test_an_empty_space_names_the_constraint() -> None:
    with pytest.raises(UsageError, match=r"twice: no configuration is valid: none satisfies BLOCK > 64"):
        tuned(PlayedDevice(product), text(where='["BLOCK > 64"]'), configuration={"BLOCK": 64})


def test_a_limit_of_the_hardware_is_named() -> None:
    message = r"none satisfies 1 <= \(BLOCK\) <= 1024 \(threads per block of the kernel, on fake\)"
    with pytest.raises(UsageError, match=message):
        tuned(PlayedDevice(product), text("[2048, 4096]"))


def test_a_division_by_zero_rules_out_and_is_noted() -> None:
    found = tuned(PlayedDevice(product), text(items="[0, 1, 2]", where='["4 // ITEMS > 1"]'))
    assert found.space.valid == 6
    assert any("4 // ITEMS > 1 has no value for 1 combinations" in note for note in found.notes)


def test_ten_million_combinations() -> None:
    """3 blocks, 3 items and 10 values each of T0 to T5, with a constraint across all of the latter."""
    more = [f"T{k}" for k in range(6)]
    lists = "".join(f"// {name} = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n" for name in more)
    macros = "".join(f"#ifndef {name}\n#define {name} 1\n#endif\n" for name in more)
    source = text(where=f'["{" + ".join(more)} <= 12"]').replace("// [tune]\n", f"// [tune]\n{lists}")
    found = tuned(PlayedDevice(product), source.replace("#ifndef BLOCK", f"{macros}#ifndef BLOCK"), trials=12)
    assert found.space.combinations == 9 * 10**6
    assert found.space.valid == 9 * math.comb(12, 6)  # of six positive numbers whose sum is 12 at most
    assert len(found.trials) == 12


@pytest.mark.parametrize(
    ("budget", "ended", "most"),
    [
        (Budget(4, None), "trials", 4),
        (Budget(None, None, patience=2), "patience", 9),
        (Budget(None, 1e-6), "seconds", 0),
        (Budget(None, None), "exhausted", 9),
    ],
)
def test_the_budget_ends_the_search(budget: Budget, ended: str, most: int) -> None:
    slower = PlayedDevice(lambda v, _: 1.0 if v == DEFAULT else 2.0)
    found = tuned(slower, budget=budget)
    assert found.ended == ended
    assert len(found.trials) <= most
    assert found.winner.configuration == DEFAULT


def test_asked_to_finish_it_ends_with_what_it_has() -> None:
    told: list[Progress] = []
    asked = tune_file(
        request(trials=None), PlayedDevice(product), told.append, is_finishing=lambda: any(p.search for p in told)
    )
    (result,) = asked.results
    assert isinstance(result, KernelTuning)
    assert result.ended == "stopped"
    assert 1 <= len(result.trials) < 9  # with those that had ended by then
    assert isinstance(result.verdict.outcome, Passed)


def test_progress_tells_best_and_default() -> None:
    told: list[Progress] = []
    tune_file(request(), PlayedDevice(product), told.append)
    searches = [p.search for p in told if p.search is not None]
    assert [s.trials for s in searches] == [*range(1, 10)]
    assert all(s.baseline == pytest.approx(1 / 128) for s in searches)
    assert searches[-1].best == pytest.approx(1 / 1024)
    assert searches[-1].configuration == BEST
    assert searches[-1].remaining == 0.0
    assert list(searches[-1].convergence) == sorted(searches[-1].convergence, reverse=True)


def test_the_same_seed_repeats_the_same_trials() -> None:
    source = text("[32, 64, 128, 256]", "[1, 2, 3, 4, 5]")
    runs = [tuned(PlayedDevice(product), source, trials=14) for _ in range(2)]
    assert [t.configuration for t in runs[0].trials] == [t.configuration for t in runs[1].trials]


def test_hopeless_trials_are_told_apart_by_the_best_so_far() -> None:
    """The first are timed before anything is known to be right; of the last, nearly all of the others are."""
    device = PlayedDevice(product)
    tuned(device, text("[64, 128, 256]", str([*range(1, 13)])), sampler="exhaustive")
    trial_plans = [p for p in device.plans if not p.outputs]
    assert trial_plans[0].hopeless is None
    last = trial_plans[-1].hopeless
    assert last is not None
    assert HOPELESS / (256 * 12) <= last < HOPELESS / 128


def test_several_cases_give_one_robust_configuration_and_a_choice_for_each() -> None:
    """Small sizes want small blocks, large ones large blocks; the middle is best on the whole."""

    def seconds(v: Values, n: int) -> float:
        if v["BLOCK"] == 128:
            return 1.0 if v["ITEMS"] == 2 else 1.5
        return 0.9 if (v["BLOCK"] == 64) == (n == 256) else 2.0

    found = tuned(PlayedDevice(seconds), cases=({"n": 256}, {"n": 65536}))
    assert found.cases == ({"n": 256}, {"n": 65536})
    assert found.winner.configuration == {"BLOCK": 128, "ITEMS": 2}
    assert [c.configuration["BLOCK"] for c in found.choices] == [64, 256]
    assert [c.speedup and round(c.speedup.value, 6) for c in found.choices] == [round(1.5 / 0.9, 6)] * 2
    default = found.trials[0]
    assert default.seconds == (1.5, 1.5)
    assert default.value == pytest.approx(1.5)
    mixed = next(t for t in found.trials if t.configuration == {"BLOCK": 64, "ITEMS": 1})
    assert mixed.value == pytest.approx(math.sqrt(0.9 * 2.0))


def test_a_device_that_answers_nothing_any_more_ends_the_search() -> None:
    device = PlayedDevice(lambda *_: Unavailable("the GPU has fallen off the bus"))
    source = text("[32, 64, 96, 128, 160, 192, 224, 256]", "[1, 2, 3, 4, 5, 6, 7, 8]")
    (result,) = tune_file(request(source), device, lambda _: None).results
    assert isinstance(result, Verdict)
    assert isinstance(result.outcome, Unavailable)
    assert "fallen off the bus" in result.outcome.reason
    assert len(device.timed) < 3 * MOST_LOST


def test_fixed_tunables_are_not_searched() -> None:
    found = tuned(PlayedDevice(product), configuration={"BLOCK": 64})
    assert {t.configuration["BLOCK"] for t in found.trials} == {64}
    assert found.winner.configuration == {"BLOCK": 64, "ITEMS": 4}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"configuration": {"BLOCK": 65}}, "BLOCK = 65 is none of its values"),
        ({"cases": ({"m": 3},)}, "twice has no size m"),
        ({"sampler": "oracle"}, "there is no sampler oracle"),
        ({"cases": ({"n": 0},)}, "launches nothing at n = 0"),
    ],
)
def test_wrong_use(more: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tuned(PlayedDevice(product), **more)


def test_a_kernel_without_tunables_is_wrong_use() -> None:
    with pytest.raises(UsageError, match=r"no \[tune\] table"):
        tuned(PlayedDevice(product), BARE)


BARE = """// /// kernel-forge
// kernel = "twice"
// reference = { y = "2 * x" }
// cases = [{ n = 4096 }]
// [args]
// x = { shape = ["n"] }
// y = { shape = ["n"], role = "out" }
// [launch]
// grid = "cdiv(n, 128)"
// block = 128
// ///
__global__ void twice(const float* x, float* y, int n) {}
"""
