"""The worker's timing on a GPU that is played: time passes by the launches, so that every result is known."""

import itertools
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from kernel_forge.devices.cuda.wire import Code, WireBuffer, WireLaunch, WireRun
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.measurement import TimingPlan

L2 = 1 << 20
EVENT_SECONDS = 2e-6  # what a launch by itself costs beside the kernel
MODULES = "kernel_forge.devices.cuda.worker"


class Clock:
    """Seconds on the GPU; ``speed`` scales every kernel."""

    def __init__(self) -> None:
        self.now, self.launches = 0.0, 0
        self.seconds: dict[str, float] = {}
        self.recording: list[str] | None = None
        self.fail_at: int | None = None
        self.ramp = 0  # so many launches run at half the speed

    def run(self, kernel: str, overhead: float) -> None:
        self.launches += 1
        slow = 2.0 if self.launches <= self.ramp else 1.0
        self.now += slow * self.seconds[kernel] + overhead


class Library:
    """Plays :class:`DriverLibrary`: a function's handle is the kernel's name."""

    def __init__(self, clock: Clock, error: type[Exception]) -> None:
        self.clock, self.error = clock, error

    def load_module(self, image: bytes) -> int:
        return 1

    def unload_module(self, module: int) -> None: ...

    def function(self, module: int, name: str) -> str:
        return name

    def allow(self, function: str, shared: int, cluster: Any) -> None: ...

    def launch(self, function: str, *rest: Any) -> None:
        if self.clock.recording is not None:
            self.clock.recording.append(function)
            return
        if self.clock.fail_at is not None and self.clock.launches >= self.clock.fail_at and function == "faulty":
            raise self.error("cuLaunchKernel", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
        self.clock.run(function, EVENT_SECONDS)

    def begin_capture(self, stream: int) -> None:
        self.clock.recording = []

    def end_capture(self, stream: int) -> Any:
        made, self.clock.recording = self.clock.recording, None
        return tuple(made or ())

    def launch_graph(self, graph: Any, stream: int) -> None:
        for kernel in graph:
            self.clock.run(kernel, 0.0)

    def free_graph(self, graph: Any) -> None: ...


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()

    class Event:
        def record(self, stream: Any) -> None:
            self.at = made.now

        def query(self) -> bool:
            return True

        def time_till(self, other: "Event") -> float:
            return 1e3 * (other.at - self.at)

    class Allocation(int):
        def free(self) -> None: ...

    driver = types.ModuleType("pycuda.driver")
    names: dict[str, Any] = {
        "Event": Event,
        "Error": type("Error", (Exception,), {}),
        "MemoryError": type("MemoryError", (Exception,), {}),
        "mem_alloc": lambda size: Allocation(4096),
        "device_attribute": types.SimpleNamespace(),
        "DeviceAllocation": Allocation,
        "Stream": object,
    }
    for name in ("memcpy_htod", "memcpy_dtoh", "memcpy_dtod", "memcpy_dtod_async", "memset_d8_async", "memset_d8"):
        names[name] = lambda *rest: None
    for name, value in names.items():
        setattr(driver, name, value)
    package = types.ModuleType("pycuda")
    package.driver = driver  # type: ignore[attr-defined]
    package.VERSION_TEXT = "played"  # type: ignore[attr-defined]
    played = [m for m in sys.modules if m.startswith(MODULES)]
    for module in played:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    yield made
    for module in [m for m in sys.modules if m.startswith(MODULES)]:
        del sys.modules[module]


def run(kernel: str, nbytes: int = 4 * L2) -> WireRun:
    buffers = (WireBuffer("y", DType.FLOAT32, nbytes, True, False, None),) if nbytes else ()
    launch = WireLaunch(kernel, ("y",) if nbytes else (), (1, 1, 1), (32, 1, 1), 0, None, False)
    return WireRun(Code(b"", {kernel: kernel}), None, buffers, (launch,), 0, 5.0, 1000)


def measure(clock: Clock, runs: list[WireRun], **plan: Any) -> Any:
    from kernel_forge.devices.cuda.worker.driver_library import CudaError
    from kernel_forge.devices.cuda.worker.timing import measure as measured

    stream = types.SimpleNamespace(handle=0)
    gpu: Any = types.SimpleNamespace(
        library=Library(clock, CudaError), l2_bytes=L2, ordinal=0, stream=stream, free_bytes=lambda: 1 << 34
    )
    return measured(gpu, runs, TimingPlan(**{"budget": 0.2, **plan}), lambda: "")


def median(entry: Any) -> float:
    samples = sorted(entry["samples"])
    return float(samples[len(samples) // 2])


def test_a_kernels_time_is_its_own_and_a_graph_hides_the_launch(clock: Clock) -> None:
    clock.seconds = {"control": 1e-4, "k": 3e-5}
    header = measure(clock, [run("control"), run("k")]).header
    assert header["status"] == "measured"
    assert header["trials"][1]["method"] == "graph"
    assert median(header["trials"][1]) == pytest.approx(3e-5)


def test_small_buffers_are_launched_one_by_one_behind_a_flush(clock: Clock) -> None:
    clock.seconds = {"control": 1e-4, "k": 1e-6}
    entry = measure(clock, [run("control"), run("k", nbytes=64)]).header["trials"][1]
    assert (entry["method"], entry["batch"]) == ("events", 1)
    assert median(entry) == pytest.approx(1e-6 + EVENT_SECONDS)


def test_samples_begin_when_the_clocks_have_risen(clock: Clock) -> None:
    clock.seconds, clock.ramp = {"control": 1e-3, "k": 1e-4}, 400
    trials = measure(clock, [run("control"), run("k")]).header["trials"]
    assert max(trials[0]["samples"]) == pytest.approx(min(trials[0]["samples"]))
    assert median(trials[1]) == pytest.approx(1e-4)


def test_a_fault_while_sampling_is_that_trials_own(clock: Clock) -> None:
    clock.seconds = {"control": 1e-4, "faulty": 1e-6, "k": 1e-5}
    clock.fail_at = 3000
    result = measure(clock, [run("control"), run("faulty", nbytes=64), run("k")], budget=2.0, interval=0.0)
    statuses = [t["status"] for t in result.header["trials"]]
    assert statuses[1] == "error"
    assert result.header["trials"][1]["code"] == 700
    assert result.spent
    assert "error" not in (statuses[0], statuses[2])


def test_what_is_read_and_written_is_restored_before_every_execution(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the pristine contents goes before each launch of a kernel that works in place, warm-up included."""
    done: list[str] = []
    driver = sys.modules["pycuda.driver"]
    monkeypatch.setattr(driver, "memcpy_dtod_async", lambda *rest: done.append("restored"))
    run_on = clock.run
    monkeypatch.setattr(clock, "run", lambda kernel, overhead: (done.append(kernel), run_on(kernel, overhead))[1])
    clock.seconds = {"control": 1e-4, "in_place": 1e-5}
    data = memoryview(bytes(64))
    buffers = (WireBuffer("y", DType.FLOAT32, 64, True, False, data),)
    launch = WireLaunch("in_place", ("y",), (1, 1, 1), (32, 1, 1), 0, None, False)
    in_place = WireRun(Code(b"", {"in_place": "in_place"}), None, buffers, (launch,), 0, 5.0, 1000)
    entry = measure(clock, [run("control"), in_place], budget=0.05).header["trials"][1]
    assert entry["status"] == "timed"
    ours = [what for what in done if what != "control"]
    assert ours.count("in_place") > 5
    assert all(before == "restored" for before, what in itertools.pairwise(ours) if what == "in_place")
