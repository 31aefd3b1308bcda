"""From the facts of a worker to the outcome of a run; error numbers are those of CUresult in cuda.h."""

from typing import Any

import numpy as np
import pytest

from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.devices.cuda.outcomes import run_outcome
from kernel_forge.devices.cuda.protocol import Frame
from kernel_forge.devices.cuda.supervisor import Lost
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, RunRequest
from kernel_forge.domain.outcome import LaunchFailed, MemoryFault, Ran, RunOutcome, Thread, TimedOut, Unavailable

X = Buffer("x", DType.FLOAT32, 16, np.ones(4, np.float32), writable=False)
REQUEST = RunRequest((X, Buffer("y", DType.FLOAT32, 16)), (), time_limit=2.0, output_limit=10)
SOURCES = {"k.cu": UserFile("/user/k.cu", "__global__ void k() {\n  assert(0);\n}\n")}


def outcome(payload: bytes = b"", **header: Any) -> RunOutcome:
    return run_outcome(Frame({"type": "result", "text": "", **header}, payload), REQUEST, SOURCES)


def failed(code: int, stage: str = "run", text: str = "") -> RunOutcome:
    return outcome(status="error", stage=stage, call="cuCall", code=code, name="CUDA_ERROR", text=text)


def test_a_run_gives_its_arrays_back() -> None:
    y = np.arange(4, dtype=np.float32)
    made = outcome(y.tobytes(), status="ran", seconds=0.5, text="hello", outputs=[{"name": "y", "nbytes": 16}])
    assert isinstance(made, Ran)
    assert np.array_equal(made.contents["y"], y)
    assert (made.text, made.seconds) == ("hello", 0.5)


@pytest.mark.parametrize(
    ("offset", "words"), [(16, "right past the end of y"), (20, "4 bytes past the end of y"), (-8, "8 bytes before y")]
)
def test_a_damaged_guard_says_where(offset: int, words: str) -> None:
    made = outcome(status="ran", seconds=0, outputs=[], guard={"buffer": "y", "offset": offset})
    assert isinstance(made, MemoryFault)
    assert (made.kind, made.offset, made.is_write) == ("guard-band", offset, True)
    assert words in made.message


def test_a_changed_input_is_a_fault() -> None:
    made = outcome(status="ran", seconds=0, outputs=[], changed={"buffer": "x", "offset": 4})
    assert isinstance(made, MemoryFault)
    assert (made.kind, made.buffer) == ("read-only", "x")


def test_the_limit_of_the_output_is_in_bytes() -> None:
    for text, ended in (("0123456789", Ran), ("01234567890", LaunchFailed), ("ää" * 3, LaunchFailed)):
        assert isinstance(outcome(status="ran", seconds=0, outputs=[], text=text), ended)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (700, "out-of-bounds"),
        (716, "misaligned"),
        (714, "stack-overflow"),
        (717, "out-of-bounds"),
        (719, "out-of-bounds"),
    ],
)
def test_faults_of_the_hardware(code: int, kind: str) -> None:
    made = failed(code)
    assert isinstance(made, MemoryFault)
    assert made.kind == kind
    assert made.location is None
    assert "does not say where" in made.message


@pytest.mark.parametrize(
    ("code", "stage", "kind"),
    [
        (1, "launch 0", "configuration"),
        (701, "launch 1", "configuration"),
        (1, "load", "configuration"),
        (1, "allocate", "configuration"),  # a symbol of another size, say
        (715, "run", "trap"),
    ],
)
def test_launches_that_fail(code: int, stage: str, kind: str) -> None:
    made = failed(code, stage)
    assert isinstance(made, LaunchFailed)
    assert made.kind == kind


@pytest.mark.parametrize(
    ("code", "stage"),
    # Unknown; damaged memory; no code for this GPU; a driver too old; a GPU that is gone; a wrong value of ours.
    [(999, "run"), (214, "run"), (209, "load"), (222, "load"), (802, "allocate"), (1, "run")],
)
def test_what_no_kernel_does_is_no_verdict(code: int, stage: str) -> None:
    made = failed(code, stage)
    assert isinstance(made, Unavailable)
    assert "the GPU or its driver failed" in made.reason


def test_the_watchdog_of_a_display_is_a_time_limit() -> None:
    assert isinstance(failed(702), TimedOut)


@pytest.mark.parametrize("stage", ["allocate", "launch 0"])
def test_memory_that_is_not_there_is_no_verdict(stage: str) -> None:
    made = failed(2, stage)
    assert isinstance(made, Unavailable)
    assert "no memory" in made.reason


def test_an_assertion_has_its_line_and_thread() -> None:
    text = "k.cu:2: void k(): block: [1,0,0], thread: [3,0,0] Assertion `0` failed.\n"
    made = failed(710, text=text)
    assert isinstance(made, LaunchFailed)
    assert made.kind == "assert"
    assert made.thread == Thread((1, 0, 0), (3, 0, 0))
    assert made.location is not None
    assert (made.location.path, made.location.range.start.line) == ("/user/k.cu", 1)


def test_ends_of_the_worker() -> None:
    assert isinstance(outcome(status="timeout"), TimedOut)
    assert isinstance(run_outcome(Lost("late", timed_out=True), REQUEST, {}), TimedOut)
    lost = run_outcome(Lost("the worker ended (signal 9)"), REQUEST, {})
    assert isinstance(lost, Unavailable)
    assert "signal 9" in lost.reason
    broken = outcome(status="broken", trace="Traceback\nValueError: no")
    assert isinstance(broken, Unavailable)
    assert "ValueError: no" in broken.reason
