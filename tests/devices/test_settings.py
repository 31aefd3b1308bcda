"""The user's named GPUs."""

import sys
from pathlib import Path

import pytest

from kernel_forge import wiring
from kernel_forge.devices.settings import GpuSettings, read_gpu_settings
from kernel_forge.domain.errors import DeviceUnavailable, UsageError


def write(folder: Path, text: str) -> Path:
    file = folder / "config.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_no_file_names_nothing(tmp_path: Path) -> None:
    assert read_gpu_settings(tmp_path / "none.toml") == {}


def test_a_remote_one_and_a_second_one(tmp_path: Path) -> None:
    text = (
        '[devices.lab]\ncommand = ["ssh", "lab", "w"]\n[devices.second]\ngpu = 1\ncompiler = "nvcc"\n[other]\nx = 1\n'
    )
    assert read_gpu_settings(write(tmp_path, text)) == {
        "lab": GpuSettings(command=("ssh", "lab", "w")),
        "second": GpuSettings(gpu=1, compiler="nvcc"),
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[devices.lab", "config.toml"),
        ("devices = 3", "table of tables"),
        ("[device.lab]\ngpu = 1", r"has a table device; did you mean devices"),
        ('[devices.lab]\ncommand = ["a\\u0000b"]', "list of words"),
        ("a = " + "[" * 5000, "config.toml"),
        ("[devices.lab]\ngpu = " + "9" * 5000, "config.toml"),
        ("[devices]\nlab = 3", r"\[devices.lab\] must be a table"),
        ("[devices.lab]", "needs either command or gpu"),
        ('[devices.lab]\ncommand = ["a"]\ngpu = 0', "needs either command or gpu"),
        ('[devices.lab]\ncommand = "ssh lab"', "list of words"),
        ("[devices.lab]\ncommand = []", "list of words"),
        ("[devices.lab]\ngpu = -1", "from 0"),
        ("[devices.lab]\ngpu = true", "from 0"),
        ('[devices.lab]\ngpu = 0\ncompiler = "gcc"', "nvrtc, nvcc"),
        ("[devices.lab]\ngpus = 0", "unknown key gpus"),
        ("[devices.cuda]\ngpu = 0", "taken"),
        ('[devices."a:b"]\ngpu = 0', "taken"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        read_gpu_settings(write(tmp_path, text))
    assert str(tmp_path) in str(caught.value)


def test_a_file_that_is_named_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_FORGE_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match="which does not exist"):
        wiring.config_file()


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_gpu_settings(tmp_path)


def test_a_named_device_runs_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe in place of ssh: what the worker at its other end says comes back: no GPU 97, or no PyCUDA."""
    script = f"exec {sys.executable} -P -m kernel_forge worker --gpu 97"
    text = f"[devices.piped]\ncommand = ['sh', '-c', '{script}']\n"
    monkeypatch.setenv("KERNEL_FORGE_CONFIG", str(write(tmp_path, text)))
    assert wiring.device_names() == ("emulator", "cuda", "piped")
    wiring.device.cache_clear()
    info = wiring.device("piped").info()
    wiring.device.cache_clear()
    assert info.name == "piped"
    assert info.unavailable is not None
    assert "pycuda" in info.unavailable.lower() or "cu" in info.unavailable.lower()


def test_names_that_are_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_FORGE_CONFIG", str(write(tmp_path, "[devices.lab]\ngpu = 3\n")))
    with pytest.raises(DeviceUnavailable, match="emulator, cuda, lab"):
        wiring.device("labb")
    with pytest.raises(DeviceUnavailable):
        wiring.device("cuda:x")
