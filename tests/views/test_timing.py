"""Times in words and in JSON."""

import json
from dataclasses import replace

import pytest

from kernel_forge.domain.measurement import Measurement, Peaks
from kernel_forge.domain.performance import Attained, Counters, KernelTiming, Occupancy
from kernel_forge.views.timing import duration, rate, timing_json, timing_lines

MADE = Measurement(1.25e-5, 1.24e-5, 1.27e-5, 40, 80, "graph", False, "measured on a test")
TIMING = KernelTiming("k", "/k.cu", {"n": 1000}, {"n": 1000}, {"BLOCK": 128}, MADE, 1.001, "cuda", result_checked=True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.5 s"), (0.01234567, "12.35 ms"), (1.25e-5, "12.5 us"), (9e-7, "900 ns"), (0.0, "0 ns")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(4.34e12, "4.34 TB/s"), (6.7e8, "670 MB/s"), (12.0, "12 B/s"), (3.2e15, "3.2 PB/s")]
)
def test_rates(value: float, text: str) -> None:
    assert rate(value, "B/s") == text


def test_the_basis_and_the_interval_stand_in_the_first_line() -> None:
    lines = timing_lines(TIMING)
    assert lines[0] == "k: 12.5 us ± 1.2 % (measured on a test)"
    assert "  case       n = 1000" in lines
    assert not any("note" in line or "checked" in line for line in lines)


def test_a_few_samples_have_no_interval() -> None:
    lines = timing_lines(replace(TIMING, measurement=replace(MADE, samples=5)))
    assert lines[0] == "k: 12.5 us with too few samples for an interval (measured on a test)"
    assert not any("95 %" in line for line in lines)
    assert timing_json(replace(TIMING, measurement=replace(MADE, samples=5)))["measurement"]["interval"] is None
    assert timing_json(TIMING)["measurement"]["interval"] == [1.24e-5, 1.27e-5]


def test_what_is_not_known_is_said() -> None:
    text = "\n".join(timing_lines(replace(TIMING, drift=None, result_checked=False, notes=("as compiled",))))
    assert "whether the clocks were steady is not known" in text
    assert "the result of the timed launches was not compared" in text
    assert "note: as compiled" in text


def test_without_operations_there_is_no_roof() -> None:
    rates = Attained(2e12, 0.5, None, None, None, None, None)
    timing = replace(TIMING, attained=rates, peaks=Peaks(4e12, {}, "measured on a test"))
    assert not any("roof" in line for line in timing_lines(timing))


def test_what_a_reader_must_know_is_noted() -> None:
    odd = replace(
        TIMING,
        measurement=replace(MADE, launch_bound=True),
        drift=1.05,
        checked_at={"n": 10},
        no_counters="no ncu here",
    )
    text = "\n".join(timing_lines(odd))
    assert "checked    at n = 10, not at the timed case" in text
    assert "launch-bound" in text
    assert "clocks moved by +5.0 %" in text
    assert "no hardware counters: no ncu here" in text


def test_rates_occupancy_and_counters() -> None:
    full = replace(
        TIMING,
        occupancy=Occupancy(6, 48, 0.75, "registers"),
        peaks=Peaks(4e12, {"float32": 60e12}, "measured on a test"),
        attained=Attained(2e12, 0.5, 6e12, 0.1, "float32", "memory", 0.5),
        counters=(Counters("k", 12500, 2**20, 2**21, 50, 10, 70, 33, 4, None, 31.5),),
    )
    text = "\n".join(timing_lines(full))
    assert "2 TB/s of what must move, 50 % of the copy bandwidth (4 TB/s, measured on a test)" in text
    assert "6 TFLOP/s as the reference counts it, 10.0 % of the float32 peak (60 TFLOP/s)" in text
    assert "50 % of the memory roof" in text
    assert "75 % (6 blocks per multiprocessor, limited by registers)" in text
    assert "1 MiB read, 2 MiB written" in text
    assert "loads use ? % of their sectors" in text
    assert "31.5 of 32 lanes active" in text
    data = json.loads(json.dumps(timing_json(full)))
    assert data["measurement"]["basis"] == "measured on a test"
    assert data["counters"][0]["l2_hit_percent"] == 33
    assert data["attained"]["bound"] == "memory"
