"""``kernel-forge time`` on the emulator, whose times are said to be those of a CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parent.parent / "kernels"


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "kernel_forge", "time", "--device", "emulator", "--budget", "0.2", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_time_has_its_basis() -> None:
    done = run(str(KERNELS / "saxpy.cu"), "--size", "n=5000", "--set", "BLOCK=256")
    assert done.returncode == 0, done.stderr
    assert "CPU time of an emulation" in done.stdout
    assert "n = 5000" in done.stdout
    assert "BLOCK = 256" in done.stdout


def test_json(tmp_path: Path) -> None:
    made = json.loads(run(str(KERNELS / "saxpy.cu"), "--json", "--profile").stdout)["files"][0]
    (timing,) = made["timings"]
    assert made["verdicts"] == []
    assert timing["measurement"]["basis"] == "CPU time of an emulation"
    assert timing["peaks"] is None
    assert timing["counters"] == []
    assert "no hardware" in timing["no_counters"]


def test_a_wrong_kernel_has_no_time(tmp_path: Path) -> None:
    text = (KERNELS / "saxpy.cu").read_text(encoding="utf-8")
    (tmp_path / "saxpy.cu").write_text(text.replace("if (i < n % 4) {", "if (i <= n % 4) {"), encoding="utf-8")
    done = run(str(tmp_path / "saxpy.cu"), "--size", "n=1000")
    assert done.returncode == 1
    assert "✗ saxpy" in done.stdout
    assert " us" not in done.stdout


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--size", "m=3"], "no size m"),
        (["--size", "n=-3"], "integer from 0"),
        (["--size", "n"], "NAME=VALUE"),
        (["--set", "WARP=3"], "a tunable WARP"),
        (["--device", "nonesuch"], "no device nonesuch"),
    ],
)
def test_wrong_use(words: list[str], text: str) -> None:
    done = run(str(KERNELS / "saxpy.cu"), *words)
    assert done.returncode in (2, 3)
    assert text in done.stderr
    assert "Traceback" not in done.stderr
