"""Fifty trials of which thirty go wrong in the ways a GPU knows: right verdicts, right outcomes, nothing left over."""

import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kernel_forge.devices.cuda import CudaDevice, local_worker
from kernel_forge.domain.dtypes import DType
from kernel_forge.domain.launch import Buffer, RunRequest, Scalar
from kernel_forge.domain.outcome import MemoryFault, Ran, TimedOut, Unavailable
from tests.contracts.device_suite import body, compiled, launch, ref

pytestmark = pytest.mark.gpu
RIGHT, FAULT, HANG = (
    body("if (i < n) y[i] = 3 * x[i];"),
    body("y[i + (1 << 28)] = x[i];"),
    body("while (true) y[0] = x[0];"),
)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[CudaDevice]:
    made = CudaDevice("cuda", tmp_path, local_worker(0))
    if made.info().unavailable:
        pytest.skip(f"no GPU: {made.info().unavailable}")
    yield made
    made.close()


def used_mebibytes() -> int:
    asked = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"]
    return int(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)


def workers_of_ours() -> set[int]:
    """The children of this process that are GPU workers."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            command = (status.parent / "cmdline").read_text().replace("\0", " ")
        except (OSError, ValueError):
            continue
        if parent == os.getpid() and " worker --gpu" in command:
            found.add(int(status.parent.name))
    return found


def test_a_storm(device: CudaDevice) -> None:
    x = np.arange(1000, dtype=np.float32)
    total = int(device.facts()["memory_bytes"])
    compiled_codes = {text: compiled(device, text) for text in (RIGHT, FAULT, HANG)}

    def request(extra: tuple[Buffer, ...] = ()) -> RunRequest:
        buffers = (Buffer("x", DType.FLOAT32, 4000, x, writable=False), Buffer("y", DType.FLOAT32, 4000), *extra)
        made = launch("k", ref("x"), ref("y"), Scalar(DType.INT32, 1000), grid=8, block=128)
        return RunRequest(
            buffers, (made,), time_limit=3.0
        )  # the driver takes its time over a fault beside a dying context

    trials = ["right"] * 20 + ["fault"] * 20 + ["hang"] * 5 + ["memory"] * 5
    random.Random(1).shuffle(trials)
    others = workers_of_ours() - {device.pool.worker_pid}  # of other tests, which keep theirs
    device.run(compiled_codes[RIGHT], request())
    before = used_mebibytes()
    for trial in trials:
        huge = (Buffer("huge", DType.UINT8, total),) if trial == "memory" else ()
        text = {"fault": FAULT, "hang": HANG}.get(trial, RIGHT)
        outcome = device.run(compiled_codes[text], request(huge))
        match trial:
            case "right":
                assert isinstance(outcome, Ran), outcome
                assert np.array_equal(outcome.contents["y"], 3 * x)
            case "fault":
                assert isinstance(outcome, MemoryFault), outcome
            case "hang":
                assert isinstance(outcome, TimedOut), outcome
            case _:
                assert isinstance(outcome, Unavailable), outcome
                assert "memory" in outcome.reason
    assert isinstance(device.run(compiled_codes[RIGHT], request()), Ran)
    time.sleep(1.0)
    # One worker and at most a spare one, each with a context.
    assert len(workers_of_ours() - others) <= 2
    assert used_mebibytes() < before + 1200
    device.close()
    deadline = time.monotonic() + 10
    while workers_of_ours() - others and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers_of_ours() - others == set()
