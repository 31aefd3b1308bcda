"""The watch: who wrote some bytes last."""

import numpy as np
import pytest

from kernel_forge.domain.launch import Watch
from kernel_forge.domain.outcome import MemoryFault, Ran, WatchHit
from tests.devices.emulator.launches import Array, outcome


def hit(text: str, buffers: dict[str, Array], watch: Watch, **more: object) -> WatchHit | None:
    ended = outcome(text, buffers, watch=watch, **more)  # type: ignore[arg-type]
    assert isinstance(ended, Ran), ended
    return ended.watch_hit


def test_a_wide_range_is_watched_to_its_end() -> None:
    text = "__global__ void k(int* y) {\n  if (threadIdx.x >= 20)\n    y[threadIdx.x] = 1;\n}\n"
    found = hit(text, {"y": np.zeros(32, np.int32)}, Watch("y", 0, 4 * 21))
    # Of y[0] .. y[20], only y[20] is written.
    assert found is not None
    assert found.thread.thread[0] == 20
    assert found.location is not None and found.location.range.start.line == 2


def test_a_variable_of_the_device_is_watched() -> None:
    text = "__device__ int v[8];\n__global__ void k(int* y) {\n  y[0] = 1;\n  if (threadIdx.x == 5)\n    v[3] = 7;\n}\n"
    buffers = {"y": np.zeros(1, np.int32), "v": np.zeros(8, np.int32)}
    found = hit(text, buffers, Watch("v", 12, 4), symbols=("v",))
    assert found is not None
    assert found.thread.thread[0] == 5
    assert found.location is not None and found.location.range.start.line == 4
    assert hit(text, buffers, Watch("v", 16, 4), symbols=("v",)) is None


def test_an_input_stays_read_only() -> None:
    text = "__global__ void k(const int* x, int* y) { const_cast<int*>(x)[0] = y[0]; }"
    buffers = {"x": np.zeros(4, np.int32), "y": np.ones(4, np.int32)}
    ended = outcome(text, buffers, inputs=("x",), watch=Watch("x", 0, 4))
    assert isinstance(ended, MemoryFault)
    assert ended.kind == "read-only"


@pytest.mark.parametrize(("values", "writer"), [("7, 7, 7, 7", 1), ("1, 2, 3, 4", 1)])
def test_a_wide_store_that_begins_below(values: str, writer: int) -> None:
    # Thread 1 writes y[0..3] in one instruction, y[2] perhaps with the value it has already.
    text = (
        "__global__ void k(int* y) {\n  if (threadIdx.x == 0) y[2] = 7;\n  __syncthreads();\n"
        f"  if (threadIdx.x == 1)\n    *(int4*)y = make_int4({values});\n}}\n"
    )
    found = hit(text, {"y": np.zeros(4, np.int32)}, Watch("y", 8, 4))
    assert found is not None
    assert found.thread.thread[0] == writer


def test_a_store_to_the_element_before_is_not_blamed() -> None:
    text = (
        "__global__ void k(int* y) {\n  if (threadIdx.x == 0) y[2] = 7;\n  __syncthreads();\n"
        "  if (threadIdx.x == 1) { y[1] = 9; y[3] = 9; ((short*)y)[3] = 1; *(long long*)y = 5; }\n}\n"
    )
    ended = outcome(text, {"y": np.zeros(4, np.int32)}, watch=Watch("y", 8, 4))
    assert isinstance(ended, Ran)
    assert list(ended.contents["y"]) == [5, 0, 7, 9]
    assert ended.watch_hit is not None and ended.watch_hit.thread.thread[0] == 0
