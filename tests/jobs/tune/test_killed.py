"""A worker that is killed with SIGKILL in the middle of a search, for real, on the emulator."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from kernel_forge.domain.record import Entry, Kind, Selection
from kernel_forge.domain.tuning import Budget, KernelTuning
from kernel_forge.jobs.client import JobClient
from kernel_forge.jobs.requests import JobFailed, TuneReport, TuneRequest
from kernel_forge.ledger import SqliteLedger

SOURCE = """// /// kernel-forge
// kernel = "twice"
// reference = { y = "2 * x" }
// cases = [{ n = 2048 }]
// [args]
// x = { shape = ["n"] }
// y = { shape = ["n"], role = "out" }
// [launch]
// grid = "cdiv(n, BLOCK)"
// block = "BLOCK"
// [tune]
// BLOCK = [32, 64, 128, 256, 512]
// ///
#ifndef BLOCK
#define BLOCK 128
#endif
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
"""


def trials(ledger: SqliteLedger) -> tuple[Entry, ...]:
    return ledger.entries(Selection(kinds=(Kind.TRIAL,)))


async def test_killed_in_the_middle_it_goes_on_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_FORGE_LEDGER", "on")
    (tmp_path / ".git").mkdir()  # what makes the folder a project
    file = tmp_path / "twice.cu"
    file.write_text(SOURCE)
    ledger = SqliteLedger(tmp_path.resolve())
    request = TuneRequest(str(file), SOURCE, device="emulator", budget=Budget(None, None))
    client = JobClient()
    try:
        first = asyncio.create_task(client.run(request, lambda _: None, 120.0))
        while len(trials(ledger)) < 2:
            await asyncio.sleep(0.01)
            assert not first.done(), first.result()
        (worker,) = client._busy
        os.killpg(worker.process.pid, signal.SIGKILL)
        assert isinstance(await first, JobFailed)
        acknowledged = trials(ledger)
        second = await client.run(request, lambda _: None, 120.0)
    finally:
        await client.close()
    assert isinstance(second, TuneReport)
    (tuning,) = second.results
    assert isinstance(tuning, KernelTuning)
    assert tuning.resumed == len(acknowledged) >= 2
    assert sorted(t.configuration["BLOCK"] for t in tuning.trials) == [32, 64, 128, 256, 512]
    kept = trials(ledger)
    assert all(entry in kept for entry in acknowledged)
    assert len(kept) == 5
    assert ledger.audit().is_sound
