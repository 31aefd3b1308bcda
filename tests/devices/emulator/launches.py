"""Single launches on the emulator, for tests of its runtime."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from kernel_forge import wiring
from kernel_forge.devices.emulator import EmulatorDevice
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, BufferRef, CompileRequest, Launch, RunRequest
from kernel_forge.domain.outcome import Ran, RunOutcome
from kernel_forge.ports import Artifact

Array = np.ndarray[Any, np.dtype[Any]]
PATH = "/tests/runtime.cu"
GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"


@cache
def _compiled(text: str, symbols: tuple[str, ...]) -> Artifact:
    made = wiring.device("emulator").compile(CompileRequest(PATH, text, ("k",), symbols))
    assert isinstance(made, Artifact), made
    return made


def outcome(
    text: str,
    buffers: Mapping[str, Array],
    *,
    grid: int = 1,
    block: int = 32,
    workers: int = 1,
    inputs: tuple[str, ...] = (),
    symbols: tuple[str, ...] = (),
    cooperative: bool = False,
    **request: Any,
) -> RunOutcome:
    """How kernel ``k`` of ``text`` ends; its parameters are pointers to ``buffers``, in order, but for ``symbols``.

    ``inputs`` are read-only; ``request`` goes to :class:`RunRequest`.
    """
    device = wiring.device("emulator")
    if device.info().unavailable is not None:
        pytest.skip(str(device.info().unavailable))
    assert isinstance(device, EmulatorDevice)
    device = EmulatorDevice(device.cache_dir, device.host_code, workers)
    memory = tuple(
        Buffer(name, next(d for d in DType if d.numpy == a.dtype), a.nbytes, a, name not in inputs, name in symbols)
        for name, a in buffers.items()
    )
    arguments = tuple(BufferRef(name) for name in buffers if name not in symbols)
    one = Launch("k", arguments, (grid, 1, 1), (block, 1, 1), cooperative=cooperative)
    return device.run(_compiled(text, symbols), RunRequest(memory, (one,), **request))


def contents(text: str, buffers: Mapping[str, Array], **more: Any) -> Mapping[str, Array]:
    """The writable buffers after kernel ``k`` of ``text`` ran on them."""
    ended = outcome(text, buffers, **more)
    assert isinstance(ended, Ran), ended
    return ended.contents
