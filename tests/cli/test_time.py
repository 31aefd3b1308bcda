"""``kernel-forge time`` on the emulator, whose times are said to be those of a CPU."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel_forge.cli import time as time_module
from kernel_forge.cli.main import Adapters
from kernel_forge.cli.main import run as forge
from kernel_forge.jobs.client import JobFailed
from kernel_forge.jobs.requests import TimeReport
from tests.views.test_timing import TIMING

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


def test_a_failed_job_loses_no_result_of_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = [TimeReport((), (TIMING,)), JobFailed("crashed", "the worker is gone")]
    monkeypatch.setattr(time_module, "run_jobs", lambda *_, **__: ends)
    unused: Any = None
    adapters = Adapters(unused, unused, unused, unused, lambda _: None, unused)
    words = ["time", str(KERNELS / "saxpy.cu"), str(KERNELS / "rotate.cu")]
    assert forge(words, adapters) == 1
    out = capsys.readouterr().out
    assert "k: 12.5 us" in out
    assert "rotate.cu was not timed: the job crashed: the worker is gone" in out
    assert forge([*words, "--json"], adapters) == 1
    timed, failed = json.loads(capsys.readouterr().out)["files"]
    assert (len(timed["timings"]), timed["problems"]) == (1, [])
    assert "the worker is gone" in failed["problems"][0]["message"]


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
