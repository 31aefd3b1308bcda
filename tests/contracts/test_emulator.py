from pathlib import Path

import pytest

from kernel_forge.devices.emulator import EmulatorDevice
from kernel_forge.ports import Device
from tests.contracts.device_suite import DeviceSuite


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Device:
    folder: Path = tmp_path_factory.mktemp("cache")
    return EmulatorDevice(folder)


class TestEmulator(DeviceSuite):
    pass
