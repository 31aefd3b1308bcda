"""The emulator keeps the contract of a device."""

import os
from pathlib import Path

import pytest

from kernel_forge.devices.artifact_cache import sweep
from kernel_forge.devices.compilers.judge import Judge
from kernel_forge.devices.emulator import EmulatorDevice
from kernel_forge.domain.launch import CompileRequest
from kernel_forge.domain.outcome import CompileFailed
from kernel_forge.ports import Device
from kernel_forge.source import parse
from tests.contracts.device_suite import DeviceSuite, body, run
from tests.contracts.texture_suite import TextureSuite


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Device:
    return EmulatorDevice(tmp_path_factory.mktemp("cache"), lambda text: parse(text, "").host_ranges)


class TestEmulator(DeviceSuite):
    """See :class:`DeviceSuite`."""

    def test_nothing_is_left_behind(self, device: Device) -> None:
        run(device, body("while (true) y[0] = x[0];"), time_limit=0.3)
        left = [p.name for p in Path("/dev/shm").glob(f"kernel-forge-run-{os.getpid()}-*")]
        assert left == []


class TestEmulatedTextures(TextureSuite):
    """See :class:`TextureSuite`."""


def test_folders_of_killed_processes_are_swept(tmp_path: Path) -> None:
    gone = 2**22 + 1  # above the largest process id of Linux
    (tmp_path / f"run-{gone}-x").mkdir()
    (tmp_path / f"run-{os.getpid()}-x").mkdir()
    sweep(tmp_path, "run-")
    assert [p.name for p in tmp_path.iterdir()] == [f"run-{os.getpid()}-x"]


def test_host_calls_are_refused_without_a_front_end(tmp_path: Path) -> None:
    device = EmulatorDevice(tmp_path)
    device.judge = Judge("g++", ())
    text = "#include <cstdio>\n" + body('fopen("/tmp/x", "w"); y[i] = x[i];')
    failed = device.compile(CompileRequest("/tests/w.cu", text, ("k",)))
    assert isinstance(failed, CompileFailed)
    assert failed.messages[0].message == "fopen cannot be called in device code"
