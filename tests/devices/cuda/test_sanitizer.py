"""What compute-sanitizer's records mean. The form of the records was seen on an H200 (see the contract's GPU tests)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_forge.devices.compilers.messages import UserFile
from kernel_forge.devices.cuda.protocol import Frame
from kernel_forge.devices.cuda.sanitizer import read_report, sanitize
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, RunRequest
from kernel_forge.domain.outcome import BarrierDivergence, LaunchFailed, MemoryFault, RaceFound, Thread, Unavailable
from kernel_forge.ports import Artifact
from tests.devices.cuda.test_device import Scripted, compiled

TEXT = "__global__ void k(float* y) {\n  y[threadIdx.x] = 1;\n  y[2] = y[3];\n}\n"
SOURCES = {"k.cu": UserFile("/user/k.cu", TEXT)}
REQUEST = RunRequest((Buffer("x", DType.FLOAT32, 64, np.zeros(16, np.float32)), Buffer("y", DType.FLOAT32, 256)), ())
ADDRESSES = {"x": 0x10000, "y": 0x20000}
WHO = "<who><threadIdx><x>{thread}</x><y>0</y><z>0</z></threadIdx><blockIdx><x>3</x><y>0</y><z>0</z></blockIdx></who>"
WHERE = "<where><func>k</func><path>k.cu</path><line>{line}</line><pc>0x70</pc></where>"


def access(
    address: int, *, thread: int = 5, line: int = 2, error: str = "out of bounds", space: str = "__global__"
) -> str:
    what = f"<space>{space}</space><size>4</size><direction>write</direction><error>{error}</error>"
    what += f"<address>{address:#x}</address>"
    who, where = WHO.format(thread=thread), WHERE.format(line=line)
    return f"<record><kind>Precise</kind><level>Error</level>{who}<what>{what}</what>{where}</record>"


def report(*records: str) -> str:
    return f'<?xml version="1.0"?><ComputeSanitizerOutput>{"".join(records)}</ComputeSanitizerOutput>'


def read(*records: str):  # type: ignore[no-untyped-def]
    return read_report(report(*records), REQUEST, SOURCES, ADDRESSES)


def test_an_empty_report_is_good() -> None:
    assert read() == []


@pytest.mark.parametrize(
    "record",
    [
        "<record><kind>Newest</kind><level>Error</level><what><text>?</text></what></record>",
        "<record><kind>Precise</kind></record>",
    ],
)
def test_an_error_that_is_not_understood_is_not_passed_over(record: str) -> None:
    with pytest.raises(ValueError, match="compute-sanitizer reports an error"):
        read(record)


class Answering:
    """A pool whose worker ran the kernel under a tool, with this end."""

    def __init__(self, run: str) -> None:
        self.run = run

    def ask(self, *_: Any) -> Frame:
        facts = {"report": report(), "addresses": ADDRESSES, "run": self.run, "why": "cuMemAlloc: out of memory"}
        return Frame({"type": "result", "status": "sanitized", **facts})


def test_what_did_not_run_under_a_tool_is_not_clean(tmp_path: Path) -> None:
    artifact = compiled(tmp_path, Scripted())
    assert isinstance(artifact, Artifact)
    for run, words in (("error", "could not be run under memcheck: cuMemAlloc"), ("timeout", "did not end within")):
        made = sanitize(Answering(run), artifact, REQUEST, ("memcheck",))  # type: ignore[arg-type]
        assert isinstance(made, Unavailable)
        assert words in made.reason
    assert sanitize(Answering("ran"), artifact, REQUEST, ("memcheck",)) == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "buffer", "offset", "words"),
    [
        (0x20100, "y", 256, "right past the end of y (256 bytes)"),
        (0x20104, "y", 260, "4 bytes past the end of y"),
        (0x1FFFC, "y", -4, "4 bytes before y"),
        (0x10044, "x", 68, "4 bytes past the end of x"),
        (0x900000, None, None, "global memory"),
    ],
)
def test_an_access_out_of_bounds_names_the_nearest_buffer(
    address: int, buffer: str | None, offset: int | None, words: str
) -> None:
    (found,) = read(access(address))
    assert isinstance(found, MemoryFault)
    assert (found.kind, found.buffer, found.offset, found.is_write) == ("out-of-bounds", buffer, offset, True)
    assert words in found.message
    assert found.thread == Thread((3, 0, 0), (5, 0, 0))
    assert found.location is not None
    assert (found.location.path, found.location.range.start.line) == ("/user/k.cu", 1)


def test_null_misaligned_and_shared() -> None:
    null, odd, shared = read(
        access(0x10, line=2), access(0x20001, line=3, error="misaligned"), access(0x500, line=4, space="__shared__")
    )
    assert [f.kind for f in (null, odd, shared)] == ["null", "misaligned", "out-of-bounds"]
    assert "shared memory" in shared.message
    assert shared.buffer is None


def test_threads_that_do_the_same_at_one_line_are_one_failure() -> None:
    found = read(*(access(0x20100 + 4 * i, thread=i) for i in range(20)), access(0x20100, line=3))
    assert [f.location.range.start.line for f in found] == [1, 2]
    assert found[0].thread == Thread((3, 0, 0), (0, 0, 0))


def test_a_race_has_both_places() -> None:
    sides = "".join(
        f"<{side}><direction>{direction}</direction>{WHERE.format(line=line)}</{side}>"
        for side, direction, line in (("source", "Write", 2), ("destination", "Read", 3))
    )
    record = "<record><kind>Analysis</kind><level>{}</level><what><text>Race</text>" + sides + "</what></record>"
    (found,) = read(record.format("Error"))
    assert isinstance(found, RaceFound)
    assert [p.range.start.line for p in found.locations] == [1, 2]
    assert found.message.startswith("write and read of the same shared memory")
    assert read(record.format("Warning")) == []


def test_a_barrier_and_a_trap() -> None:
    barrier, trap = read(
        f"<record><kind>Synccheck</kind>{WHO.format(thread=1)}<what><text>Barrier error</text>"
        f"<type>Divergent thread(s) in warp</type></what>{WHERE.format(line=2)}</record>",
        f"<record><kind>Imprecise</kind><level>Error</level>{WHO.format(thread=2)}<what>"
        f"<exception>Trace/breakpoint trap</exception></what>{WHERE.format(line=3)}</record>",
    )
    assert isinstance(barrier, BarrierDivergence)
    assert barrier.message == "barrier error: divergent thread(s) in warp"
    assert isinstance(trap, LaunchFailed)
    assert trap.kind == "trap"
    assert trap.location is not None


def test_what_the_driver_says_afterwards_is_no_failure_of_its_own() -> None:
    api = "<record><kind>Api</kind><what><api>cuEventQuery</api><result>719</result></what></record>"
    assert len(read(access(0x20100), api)) == 1
    assert read(api) == []


def test_a_place_outside_the_users_files_is_no_place() -> None:
    (found,) = read(access(0x20100).replace("k.cu", "/usr/include/cuda.h"))
    assert found.location is None


def test_what_is_no_report_is_said_to_be_none() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read_report("Error: no device", REQUEST, SOURCES, ADDRESSES)
