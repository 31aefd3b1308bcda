"""From cases to a verdict: order, budget, schedules, shrinking, repeatability."""

import time
from dataclasses import replace

import numpy as np
import pytest

from kernel_forge.domain.expression import Expression
from kernel_forge.domain.launch import RunRequest, Schedule
from kernel_forge.domain.outcome import Mismatch, MismatchKind, Passed, RaceFound, TimedOut, Unavailable, Verdict
from kernel_forge.domain.spec import KernelReference
from kernel_forge.verify import verify
from tests.verify import kernels
from tests.verify.fake_device import FakeDevice, check, read
from tests.verify.kernels import Flat


def scale(x: Flat, y: Flat, n: int) -> None:
    y[:] = np.float32(2.5) * x


def breaks_from(first: int):  # type: ignore[no-untyped-def]
    def kernel(x: Flat, y: Flat, n: int) -> None:
        scale(x, y, n)
        y[first:] += 1

    return kernel


def test_shrinking_ends_at_the_smallest_failing_case() -> None:
    for first in (0, 1, 5, 36, 90):
        verdict = check(*kernels.SCALE, breaks_from(first))
        assert isinstance(verdict.outcome, Mismatch)
        assert verdict.case is not None
        assert verdict.case.sizes == {"n": first + 1}
        assert verdict.outcome.index == (first,)


def test_shrinking_keeps_the_kind_of_failure() -> None:
    def two_faults(x: Flat, y: Flat, n: int) -> None:
        if n > 40:
            scale(x, y, n)
            y[-1] += 1
        elif n > 10:
            pass  # another fault: nothing is written
        else:
            scale(x, y, n)

    block = kernels.SCALE[1].replace("\n\n[args]", '\nwhere = ["n > 40 or n < 10"]\n\n[args]')
    verdict = check(kernels.SCALE[0], block, two_faults)
    assert verdict.case is not None
    assert verdict.case.sizes == {"n": 41}


def test_a_race_shows_in_another_order() -> None:
    def kernel(x: Flat, y: Flat, n: int, *, request: RunRequest) -> None:
        scale(x, y, n)
        if request.schedule is Schedule.REVERSE and n > 3:
            y[3] = np.nextafter(y[3], np.float32(9))  # within every tolerance

    verdict = check(*kernels.SCALE, kernel, device=FakeDevice(kernel, wants_request=True))
    assert isinstance(verdict.outcome, RaceFound)
    assert "y[3]" in verdict.outcome.message
    assert "reverse order" in verdict.outcome.message


@pytest.mark.parametrize("grid", [1024, 10_000])
@pytest.mark.parametrize("order", [Schedule.REVERSE, Schedule.RANDOM])
def test_other_orders_are_tried_where_every_case_has_a_large_grid(grid: int, order: Schedule) -> None:
    """A fixed grid with a grid-stride loop: 32768 threads and more at every size."""

    def kernel(x: Flat, y: Flat, n: int, *, request: RunRequest) -> None:
        scale(x, y, n)
        if request.schedule is order and n > 3:
            y[3] = np.nextafter(y[3], np.float32(9))

    verdict = check(*kernels.SCALE, kernel, device=FakeDevice(kernel, wants_request=True), grid=grid)
    assert isinstance(verdict.outcome, RaceFound)


def test_an_own_case_has_a_run_in_random_order_however_large_it_is() -> None:
    def kernel(x: Flat, y: Flat, n: int, *, request: RunRequest) -> None:
        scale(x, y, n)
        if request.schedule is Schedule.RANDOM and n == 100:
            y[3] = np.nextafter(y[3], np.float32(9))

    verdict = check(*kernels.SCALE, kernel, device=FakeDevice(kernel, wants_request=True), grid=1 << 20)
    assert isinstance(verdict.outcome, RaceFound)


def test_an_own_case_too_large_to_emulate_is_no_pass() -> None:
    block = kernels.SCALE[1].replace("{ n = 100 }", "{ n = 100 }, { n = 40000000 }")
    verdict = check(kernels.SCALE[0], block, scale, device=FakeDevice(scale, basis="emulated"))
    assert isinstance(verdict.outcome, Unavailable)
    assert "only 1 of 2 cases" in verdict.outcome.reason
    assert any("n = 40000000" in label and "MiB" in reason for label, reason in verdict.skipped.items())


def slow(seconds: float):  # type: ignore[no-untyped-def]
    def kernel(x: Flat, y: Flat, n: int) -> None:
        time.sleep(seconds)
        scale(x, y, n)

    return kernel


def test_own_cases_that_do_not_fit_the_time_limit_are_no_pass() -> None:
    """4 and more kinds of inputs, each run at least twice: more than 10 runs of 0.05 s do not fit into 0.3 s."""
    start = time.monotonic()
    verdict = check(*kernels.SCALE, slow(0.05), time_limit=0.3)
    assert time.monotonic() - start < 2
    assert isinstance(verdict.outcome, Unavailable)
    assert "only 0 of 1 cases could be run within the limit of 0.3 s" in verdict.outcome.reason


def test_generated_cases_that_do_not_fit_the_time_limit_are_named() -> None:
    verdict = check(*kernels.SCALE, slow(0.1), time_limit=3.0)
    assert isinstance(verdict.outcome, Passed), verdict.outcome
    assert any("time limit" in reason for reason in verdict.skipped.values())


def test_a_wrong_kernel_is_not_verified_by_the_case_of_nothing() -> None:
    """All that fits into the limit is the cheapest case; with a spec whose only other case is dear, n = 0."""

    def wrong(x: Flat, y: Flat, n: int) -> None:
        time.sleep(0.0 if n == 0 else 0.3)
        y[:] = 3 * x

    block = kernels.SCALE[1].replace("\n\n[args]", '\nwhere = ["n == 0 or n == 100"]\n\n[args]')
    assert not isinstance(check(kernels.SCALE[0], block, wrong, time_limit=0.2).outcome, Passed)


def test_own_cases_come_first_once_half_the_time_is_over() -> None:
    """The second own case is the dearest but still decided, though not all generated ones are."""
    block = kernels.SCALE[1].replace("{ n = 100 }", "{ n = 100 }, { n = 3000 }")
    verdict = check(kernels.SCALE[0], block, slow(0.1), time_limit=4.5)
    assert isinstance(verdict.outcome, Passed), verdict.outcome
    assert verdict.skipped


def test_the_reference_counts_against_the_time_limit(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "ref.py").write_text("import time\ndef f(x):\n    time.sleep(0.2)\n    return 2.5 * x\n")
    block = kernels.SCALE[1].replace("2.5 * x", "ref.py:f")
    start = time.monotonic()
    outcome = check(kernels.SCALE[0], block, scale, path=tmp_path / "k.cu", time_limit=1.0).outcome
    assert time.monotonic() - start < 2.0
    assert isinstance(outcome, Unavailable)
    assert "time limit" in outcome.reason


def test_compiling_counts_against_the_time_limit() -> None:
    limits = []

    class Slow(FakeDevice):
        def compile(self, request):  # type: ignore[no-untyped-def]
            limits.append(request.time_limit)
            return super().compile(request)

    check(*kernels.SCALE, scale, device=Slow(scale), time_limit=7.0)
    assert 6.0 < limits[0] <= 7.0


def test_memory_that_was_never_written_is_no_race() -> None:
    """The result depends on the poison alone, within the tolerance."""

    def reads(x: Flat, y: Flat, n: int, *, request: RunRequest) -> None:
        scale(x, y, n)
        if request.poison_seed % 2 and n > 3:
            y[3] = np.nextafter(y[3], np.float32(9))

    outcome = check(*kernels.SCALE, reads, device=FakeDevice(reads, wants_request=True)).outcome
    assert isinstance(outcome, Mismatch), outcome
    assert outcome.kind is MismatchKind.UNWRITTEN_READ
    assert "y[3] is computed from memory that was never written" in outcome.message


def test_a_reference_kernel_that_cannot_be_launched_leaves_generated_cases_out() -> None:
    """Its grid n - 2 is no grid at n = 0, 1 and 2."""
    spec, source = read(*kernels.SCALE)
    launch = replace(spec.launches[0], grid=(Expression.parse("n - 2"),))
    spec = replace(spec, references={"y": KernelReference((launch,), "k", None)})
    assert isinstance(verify(spec, source, FakeDevice(scale), seed=1).outcome, Passed)
    outcome = verify(replace(spec, cases=({"n": 1},)), source, FakeDevice(scale), seed=1).outcome
    assert isinstance(outcome, Unavailable)
    assert "reference kernel k cannot be launched" in outcome.reason


def test_a_reference_kernel_that_fails_at_moved_inputs_is_told() -> None:
    runs = 0

    def fails_later(x: Flat, y: Flat, n: int):  # type: ignore[no-untyped-def]
        nonlocal runs
        runs += 1
        scale(x, y, n)
        return TimedOut(1.0, "did not end") if runs == 3 else None

    spec, source = read(*kernels.SCALE)
    spec = replace(spec, references={"y": KernelReference(spec.launches, "k", None)})
    outcome = verify(spec, source, FakeDevice(fails_later), seed=1).outcome
    assert outcome == Unavailable("the reference kernel k failed: did not end", of_spec=True)


def test_no_time_at_all_is_no_pass() -> None:
    verdict = check(*kernels.SCALE, scale, time_limit=0.0)
    assert isinstance(verdict.outcome, Unavailable)


def test_a_time_out_at_the_first_case_fails() -> None:
    def hangs(x: Flat, y: Flat, n: int):  # type: ignore[no-untyped-def]
        return TimedOut(5.0, "did not end")

    assert isinstance(check(*kernels.SCALE, hangs).outcome, TimedOut)


def test_the_seed_repeats_bit_for_bit() -> None:
    def traces(seed: int) -> tuple[list[tuple[object, ...]], Verdict]:
        device = FakeDevice(scale)
        verdict = check(*kernels.SCALE, scale, device=device, seed=seed)
        return [
            (
                r.schedule,
                r.schedule_seed,
                r.poison_seed,
                *(None if b.data is None else b.data.tobytes() for b in r.buffers),
            )
            for r in device.requests
        ], replace(verdict, seconds=0.0)

    assert traces(5) == traces(5)
    assert traces(5)[0] != traces(6)[0]


def test_a_fresh_seed_is_drawn_and_told() -> None:
    a, b = (check(*kernels.SCALE, scale, seed=None).seed for _ in range(2))
    assert a != b


def test_a_pass_says_what_was_checked() -> None:
    verdict = check(*kernels.SCALE, scale)
    assert isinstance(verdict.outcome, Passed)
    assert verdict.outcome.cases > 3
    assert verdict.outcome.worst["y"] <= 1
    assert "outputs move with the inputs" in verdict.checks
    assert "same result in forward, reverse and random order of threads" in verdict.checks


def test_tiny_results_that_round_to_zero_are_not_called_insensitive() -> None:
    def product(x: Flat, y: Flat, n: int) -> None:
        y[:] = x * np.float32(1e-30) * np.float32(1e-30)

    block = kernels.SCALE[1].replace("2.5 * x", "x * 1e-30 * 1e-30")
    assert isinstance(check(kernels.SCALE[0], block, product).outcome, Passed)


def test_outputs_that_the_inputs_do_not_move_may_stay() -> None:
    def ones(x: Flat, y: Flat, n: int) -> None:
        y[:] = 1

    block = kernels.SCALE[1].replace("2.5 * x", "np.ones(n)")
    assert isinstance(check(kernels.SCALE[0], block, ones).outcome, Passed)


def test_any_integer_is_a_seed() -> None:
    for seed in (-1, 0, 2**80):
        assert isinstance(check(*kernels.SCALE, scale, seed=seed).outcome, Passed)


def test_a_reference_kernel_is_run_and_compared() -> None:
    """Both launches are served by the same function here, so the outputs agree."""
    spec, source = read(*kernels.SCALE)
    other = KernelReference(spec.launches, "k", None)
    spec = replace(spec, references={"y": other})
    device = FakeDevice(scale)
    assert isinstance(verify(spec, source, device, seed=1).outcome, Passed)
