"""ncu's CSV, in the form it was seen to have on an H200."""

from kernel_forge.devices.cuda.profiler import FORBIDDEN, METRICS, read_counters
from kernel_forge.domain.outcome import Unavailable

HEAD = '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
NOISE = [
    "==PROF== Connected to process 983 (/usr/bin/python3)",
    "==WARNING== Note: Running with unmodified GPU clocks.",
]


def rows(number: int, start: float = 1.0) -> list[str]:
    return [f'"{number}","983","k(float *)","{metric}","","{start + i:,.2f}"' for i, metric in enumerate(METRICS)]


def test_every_launch_has_its_counters() -> None:
    made = read_counters([*NOISE, HEAD, *rows(0), *rows(1, 67_116_800)], ["first", "second"])
    assert not isinstance(made, Unavailable)
    assert [c.kernel for c in made] == ["first", "second"]
    assert made[0].nanoseconds == 1.0
    assert made[0].active_lanes == len(METRICS)
    assert made[1].memory_read_bytes == 67_116_801


def test_without_permission_it_says_how_to_get_it() -> None:
    lines = ["==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"]
    assert read_counters(lines, ["k"]) == Unavailable(FORBIDDEN)


def test_other_errors_are_told() -> None:
    made = read_counters(["==ERROR== Failed to initialize the profiler: LibraryNotLoaded"], ["k"])
    assert isinstance(made, Unavailable)
    assert "LibraryNotLoaded" in made.reason


def test_a_counter_that_this_gpu_does_not_have_is_none() -> None:
    first, *rest = rows(0)
    for said in ("n/a", "", "nan"):
        made = read_counters([HEAD, first.rpartition(",")[0] + f',"{said}"', *rest], ["k"])
        assert not isinstance(made, Unavailable)
        assert made[0].nanoseconds is None and made[0].active_lanes == len(METRICS)


def test_a_launch_too_few_or_a_counter_too_few_is_no_answer() -> None:
    assert isinstance(read_counters([HEAD, *rows(0)], ["a", "b"]), Unavailable)
    assert isinstance(read_counters([HEAD, *rows(0)[:-1]], ["a"]), Unavailable)
    assert isinstance(read_counters([], ["a"]), Unavailable)
