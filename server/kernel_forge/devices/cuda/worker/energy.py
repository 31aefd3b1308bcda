"""Energy of executions, from the counter of the whole board that NVML reads. Nothing of the card is changed."""

import math
import statistics
from collections.abc import Callable, Mapping
from typing import Any

from kernel_forge.devices.cuda.worker.driver_library import CudaError
from kernel_forge.devices.cuda.worker.stages import StillRunning
from kernel_forge.devices.cuda.worker.timed_trial import TimedTrial

REPEAT_SECONDS = 0.5
# The counter is read between bursts; it moves once in some 20 to 100 ms.
BURST_SECONDS = 0.02
TICK_SECONDS = 1.0
MISSING = 'the energy of a GPU is read with nvidia-ml-py: pip install "kernel-forge-lsp[energy]"'
OURS = "each execution needs a write of ours before it, whose energy cannot be told from its own"
STUCK = "the GPU's energy counter does not move"
HOPELESS = "a trial that was given up early has no energy"


class NoEnergy(Exception):
    """Why energy cannot be measured, in one sentence."""


def energy_counter(pci_bus: str) -> Callable[[], float]:
    """Reads the joules that the GPU there has taken so far.

    Raises:
        NoEnergy: the library is missing, or NVML refuses.
    """
    try:
        import pynvml
    except ModuleNotFoundError:
        raise NoEnergy(MISSING) from None

    def read() -> float:
        try:
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) * 1e-3
        except pynvml.NVMLError as error:
            raise NoEnergy(f"NVML does not tell this GPU's energy: {error}") from None

    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus)
    except pynvml.NVMLError as error:
        raise NoEnergy(f"NVML cannot be used: {error}") from None
    read()
    return read


def measure_energies(trials: Mapping[int, TimedTrial], header: dict[str, Any], pci_bus: str) -> bool:
    """Add ``joules`` per execution to the entries of ``header["trials"]`` and, where some trial has none, the first
    reason as ``no_energy``. Returns whether the context is lost."""
    number = None
    try:
        read = energy_counter(pci_bus)
        for number, trial in trials.items():
            try:
                header["trials"][number]["joules"] = _joules(trial, read)
            except NoEnergy as error:
                header.setdefault("no_energy", str(error))
    except NoEnergy as error:
        header["no_energy"] = str(error)
    except (StillRunning, CudaError) as error:  # the times stand
        header["no_energy"] = f"a trial failed while it was repeated for its energy: {error or 'it did not end'}"
        return True
    return False


def _joules(trial: TimedTrial, read: Callable[[], float]) -> float:
    """Joules of one execution. The counter is read where it has just moved, at the beginning and at the end.

    Raises:
        NoEnergy: this trial has none that could be told.
    """
    if trial.early:
        raise NoEnergy(HOPELESS)
    if trial.flushes or trial.restores:
        raise NoEnergy(OURS)
    batch_seconds = trial.batch * statistics.median(trial.samples)
    burst = max(1, math.ceil(BURST_SECONDS / batch_seconds))

    def until_it_moves() -> tuple[float, int]:
        before, batches = read(), 0
        while batches * batch_seconds < TICK_SECONDS:
            trial.repeat(burst)
            batches += burst
            if (now := read()) != before:
                return now, batches
        raise NoEnergy(STUCK)

    begin, _ = until_it_moves()
    batches = 0
    while batches * batch_seconds < REPEAT_SECONDS:
        trial.repeat(burst)
        batches += burst
    end, more = until_it_moves()
    return (end - begin) / ((batches + more) * trial.batch)
