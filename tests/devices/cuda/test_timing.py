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
        self.allocated: list[int] = []
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
        "mem_alloc": lambda size: made.allocated.append(size) or Allocation(4096),
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
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # the GPU's time is not ours
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
        library=Library(clock, CudaError),
        l2_bytes=L2,
        ordinal=0,
        stream=stream,
        free_bytes=lambda: 1 << 34,
        pci_bus="0000:01:00.0",
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


BRIEF = {"outputs": False, "min_samples": 5, "interval": 0.05}


def test_a_hopeless_trial_is_given_up_and_the_others_are_not(clock: Clock) -> None:
    """At most: its first execution, and twice two more."""
    clock.seconds = {"control": 1e-4, "good": 3e-5, "bad": 9e-5}
    for plan in (BRIEF, {}):
        runs = [run("control"), run("good"), run("bad")]
        _, good, bad = measure(clock, runs, **plan, hopeless=6e-5).header["trials"]
        assert (good["early"], bad["early"]) == (False, True)
        assert 1 <= len(bad["samples"]) <= 2
        assert median(bad) == pytest.approx(9e-5 + EVENT_SECONDS)
        assert median(good) == pytest.approx(3e-5)
        assert len(good["samples"]) >= 6


def test_an_endless_seeming_trial_is_executed_once(clock: Clock) -> None:
    clock.seconds = {"control": 1e-4, "k": 1e-5, "bad": 0.5}
    launched: list[str] = []
    run_on = clock.run
    clock.run = lambda kernel, overhead: (launched.append(kernel), run_on(kernel, overhead))[1]  # type: ignore[method-assign,assignment]
    _, _, bad = measure(clock, [run("control"), run("k"), run("bad")], **BRIEF, hopeless=1e-4).header["trials"]
    assert bad["early"] and launched.count("bad") == 1


def test_a_control_is_never_hopeless(clock: Clock) -> None:
    clock.seconds = {"control": 1e-4, "k": 1e-6}
    control, k = measure(clock, [run("control"), run("k")], **BRIEF, hopeless=5e-5).header["trials"]
    assert not control["early"] and len(control["samples"]) >= 6 and not k["early"]


def test_low_clocks_make_nothing_hopeless(clock: Clock) -> None:
    """At half the speed, which the control kernel waits for to pass, the trial would be beyond the limit."""
    clock.seconds, clock.ramp = {"control": 1e-4, "k": 1e-5}, 40
    _, k = measure(clock, [run("control"), run("k")], **BRIEF, hopeless=1.5e-5).header["trials"]
    assert not k["early"]


def test_a_brief_plan_takes_few_executions(clock: Clock) -> None:
    """One trial of 1 ms beside the control: 1 + 2 executions first, two recorded batches, two of warm-up, 6 samples."""
    counts: dict[str, int] = {}
    run_on = clock.run
    clock.run = lambda kernel, overhead: (counts.update({kernel: counts.get(kernel, 0) + 1}), run_on(kernel, overhead))[
        1
    ]  # type: ignore[method-assign,assignment]
    clock.seconds = {"control": 1e-3, "k": 1e-3}
    size = 4 * L2  # two sets, so batches of two
    measure(clock, [run("control"), run("k", size)], **BRIEF)
    assert counts["k"] <= 3 + 2 * (1 + 2 + 6)
    counts.clear()
    measure(clock, [run("control"), run("k", size)])
    assert counts["k"] >= 2 * (20 + 10)  # the full plan is as it was


DATA = memoryview(bytes(4 * L2))


def in_place(kernel: str, data: memoryview = DATA, seed: int = 0) -> WireRun:
    """Works on a buffer that is read and written."""
    buffers = (WireBuffer("y", DType.FLOAT32, len(data), True, False, data),)
    launch = WireLaunch(kernel, ("y",), (1, 1, 1), (32, 1, 1), 0, None, False)
    return WireRun(Code(b"", {kernel: kernel}), None, buffers, (launch,), seed, 5.0, 1000)


def test_trials_with_equal_buffers_share_them(clock: Clock) -> None:
    clock.seconds = {"control": 1e-4, **{f"k{n}": 1e-5 for n in range(8)}}

    def taken(runs: list[WireRun], **plan: Any) -> int:
        clock.allocated.clear()
        measure(clock, [run("control", nbytes=0), *runs], **{**BRIEF, **plan})
        return sum(size for size in clock.allocated if size != 2 * L2)  # without what flushes the cache

    eight = [in_place(f"k{n}") for n in range(8)]
    one = taken(eight[:1])
    assert one == 3 * len(DATA)  # two sets and the pristine contents
    assert taken(eight) == one
    assert taken(eight, outputs=True) == 8 * one
    # Other contents, another poison: another buffer.
    assert taken([eight[0], in_place("k1", memoryview(bytes(4 * L2)))]) == 2 * one
    assert taken([eight[0], in_place("k1", seed=1)]) == 2 * one


def test_shared_buffers_are_restored_before_every_execution(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trials in turn on the same two sets: no execution on a set that was executed on since it was restored."""
    dirty: set[int] = set()
    found: list[str] = []
    addresses = itertools.count(4096, 4096)
    driver = sys.modules["pycuda.driver"]
    monkeypatch.setattr(driver, "mem_alloc", lambda size: driver.DeviceAllocation(next(addresses)))  # type: ignore[attr-defined]
    monkeypatch.setattr(driver, "memcpy_dtod_async", lambda to, *rest: dirty.discard(int(to)))
    clock.seconds = {"control": 1e-4, "a": 1e-5, "b": 2e-5}

    class Watching(Library):
        def launch(self, function: str, grid: Any, block: Any, shared: int, stream: int, args: Any, *rest: Any) -> None:
            at = int.from_bytes(args[0], "little") if args else 0
            if clock.recording is not None:
                clock.recording.append((function, at))  # type: ignore[arg-type]
            else:
                self.execute(function, at)

        def launch_graph(self, graph: Any, stream: int) -> None:
            for function, at in graph:
                self.execute(function, at)

        def execute(self, function: str, at: int) -> None:
            if at:
                found.append(f"{function} {'dirty' if at in dirty else 'clean'}")
                dirty.add(at)
            clock.run(function, 0.0)

    monkeypatch.setitem(globals(), "Library", Watching)
    header = measure(clock, [run("control", nbytes=0), in_place("a"), in_place("b")], **BRIEF).header
    assert [t["status"] for t in header["trials"]] == ["timed"] * 3
    assert set(found) == {"a clean", "b clean"}


class Nvml(types.ModuleType):
    """Plays ``pynvml``: the board takes so many watts; the counter moves every 50 ms."""

    def __init__(self, clock: Clock, watts: float) -> None:
        super().__init__("pynvml")
        self.NVMLError = type("NVMLError", (Exception,), {})
        self.nvmlInit = lambda: None
        self.nvmlDeviceGetHandleByPciBusId = lambda bus: bus
        self.nvmlDeviceGetTotalEnergyConsumption = lambda bus: int(1000 * watts * (clock.now // 0.05 * 0.05))


def test_energy_is_power_by_time(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(clock, 400.0))
    clock.seconds = {"control": 1e-4, "k": 1e-3}
    header = measure(clock, [run("control"), run("k")], **BRIEF, energy=True).header
    assert "joules" not in header["trials"][0]
    # 400 W for 1 ms; the counter's step of 50 ms in half a second may be off by a burst of 20 ms at each end.
    assert header["trials"][1]["joules"] == pytest.approx(0.4, rel=0.08)
    assert "no_energy" not in header


def test_energy_that_cannot_be_told_has_a_reason(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    clock.seconds = {"control": 1e-4, "k": 1e-3, "tiny": 1e-6}
    monkeypatch.setitem(sys.modules, "pynvml", None)
    header = measure(clock, [run("control"), run("k")], **BRIEF, energy=True).header
    assert header["trials"][1]["status"] == "timed" and "joules" not in header["trials"][1]
    assert "pip install" in header["no_energy"]
    nvml = Nvml(clock, 400.0)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    header = measure(clock, [run("control"), run("k"), run("tiny", nbytes=64)], **BRIEF, energy=True).header
    assert "joules" in header["trials"][1] and "joules" not in header["trials"][2]
    assert "before it" in header["no_energy"]

    def refuse(bus: str) -> int:
        raise nvml.NVMLError("Not Supported")

    nvml.nvmlDeviceGetTotalEnergyConsumption = refuse
    header = measure(clock, [run("control"), run("k")], **BRIEF, energy=True).header
    assert header["trials"][1]["status"] == "timed"
    assert "Not Supported" in header["no_energy"]


def test_a_fault_while_energy_is_measured_leaves_the_time(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_forge.devices.cuda.worker import timed_trial
    from kernel_forge.devices.cuda.worker.driver_library import CudaError

    def fail(self: Any, batches: int) -> None:
        raise CudaError("cuGraphLaunch", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(timed_trial.TimedTrial, "repeat", fail)
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(clock, 400.0))
    clock.seconds = {"control": 1e-4, "k": 1e-3}
    result = measure(clock, [run("control"), run("k")], **BRIEF, energy=True)
    assert result.header["trials"][1]["status"] == "timed" and result.spent
    assert "ILLEGAL_ADDRESS" in result.header["no_energy"]
