"""Running small pieces of CUDA on the emulator, for tests that compare them with Python."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from kernel_forge import wiring
from kernel_forge.devices.compilers.judge import Judge
from kernel_forge.devices.emulator import EmulatorDevice
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, CompileRequest, Launch, RunRequest, Schedule
from kernel_forge.domain.outcome import CompileFailed, Ran, RunOutcome, Unavailable
from kernel_forge.ports import Artifact

Array = np.ndarray[Any, np.dtype[Any]]
PATH = "/tests/shim.cu"
_C_NAMES = {
    DType.INT8: "signed char", DType.UINT8: "unsigned char", DType.INT16: "short", DType.UINT16: "unsigned short",
    DType.INT32: "int", DType.UINT32: "unsigned", DType.INT64: "long long", DType.UINT64: "unsigned long long",
    DType.FLOAT16: "__half", DType.BFLOAT16: "__nv_bfloat16", DType.FLOAT32: "float", DType.FLOAT64: "double",
}  # fmt: skip
INCLUDES = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"


def dtype_of(array: Array) -> DType:
    return next(d for d in DType if d.numpy == array.dtype)


@cache
def device() -> EmulatorDevice:
    """The emulator, without NVIDIA's front end: it takes seconds for cooperative groups and cub, and judges code, not
    results. Leave ``judge`` as it is to have it check that these texts are valid CUDA."""
    shared = wiring.device("emulator")
    assert isinstance(shared, EmulatorDevice)
    made = EmulatorDevice(shared.cache_dir, shared.host_code)
    made.judge = Judge("the host's compiler", ())
    return made


@cache
def compiled(text: str, *kernels: str) -> Artifact | CompileFailed | Unavailable:
    if device().info().unavailable is not None:
        pytest.skip(str(device().info().unavailable))
    return device().compile(CompileRequest(PATH, text, kernels or ("k",)))


def outcome(
    text: str,
    buffers: Mapping[str, Array],
    *,
    grid: int = 1,
    block: int = 32,
    schedule: Schedule = Schedule.FORWARD,
    time_limit: float = 60,
    **launch: Any,
) -> RunOutcome | CompileFailed:
    """What running kernel ``k`` of ``text`` ends with; its parameters are pointers to ``buffers``, in order."""
    made = compiled(text)
    if not isinstance(made, Artifact):
        return made
    memory = tuple(Buffer(name, dtype_of(a), a.nbytes, np.ascontiguousarray(a)) for name, a in buffers.items())
    one = Launch("k", tuple(BufferRef(name) for name in buffers), (grid, 1, 1), (block, 1, 1), **launch)
    return device().run(made, RunRequest(memory, (one,), schedule=schedule, schedule_seed=5, time_limit=time_limit))


def run(text: str, buffers: Mapping[str, Array], **more: Any) -> Mapping[str, Array]:
    """The buffers after kernel ``k`` of ``text`` ran on them."""
    ended = outcome(text, buffers, **more)
    assert isinstance(ended, Ran), ended
    return ended.contents


def table(arguments: Mapping[str, Array], rows: Sequence[tuple[str, DType]], preamble: str = "") -> list[Array]:
    """Every expression of ``rows`` at every index of the arguments, as arrays of the given types.

    An expression speaks of the arguments by name, and of the index as ``at``; all arguments have the same length. It
    makes one translation unit.
    """
    n = len(next(iter(arguments.values())))
    inputs = ", ".join(f"const {_C_NAMES[dtype_of(a)]}* {name}_" for name, a in arguments.items())
    outputs = ", ".join(f"{_C_NAMES[kind]}* out{i}" for i, (_, kind) in enumerate(rows))
    load = " ".join(f"{_C_NAMES[dtype_of(a)]} {name} = {name}_[at];" for name, a in arguments.items())
    store = "\n".join(f"  out{i}[at] = {expression};" for i, (expression, _) in enumerate(rows))
    text = (
        f"{INCLUDES}{preamble}\n__global__ void k({inputs}, {outputs}) {{\n"
        f"  int at = blockIdx.x * 256 + threadIdx.x; if (at >= {n}) return;\n  {load}\n{store}\n}}\n"
    )
    buffers = dict(arguments) | {f"out{i}": np.zeros(n, kind.numpy) for i, (_, kind) in enumerate(rows)}
    contents = run(text, buffers, grid=(n + 255) // 256, block=256)
    return [contents[f"out{i}"] for i in range(len(rows))]


def same(got: Array, expected: Array) -> None:
    """Equal bit by bit, except that any NaN equals any other; the first difference is shown."""
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    bits = f"u{got.dtype.itemsize}"
    different = got.view(bits) != expected.view(bits)
    if got.dtype.kind in "fV":
        different &= ~(np.isnan(got) & np.isnan(expected))
    if different.any():
        at = int(np.flatnonzero(different)[0])
        raise AssertionError(f"{different.sum()} differ; at {at}: {got[at]!r}, expected {expected[at]!r}")
