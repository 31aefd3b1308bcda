"""``kernel-forge simulate`` on a small recorded space."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """Time grows with the distance from BLOCK = 128, VEC = 2; BLOCK = 1024 fails."""
    records = {}
    for b in (32, 64, 128, 256, 512, 1024):
        for v in (1, 2, 4):
            time = 1 + abs(b - 128) / 64 + abs(v - 2)
            records[f"{b},{v}"] = {"BLOCK": b, "VEC": v, "time": "RuntimeFailedConfig" if b == 1024 else time}
    data = {
        "device_name": "NVIDIA TITAN RTX",
        "kernel_name": "axpy",
        "tune_params_keys": ["BLOCK", "VEC"],
        "tune_params": {"BLOCK": [32, 64, 128, 256, 512, 1024], "VEC": [1, 2, 4]},
        "cache": records,
    }
    path = tmp_path / "space.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def run(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "kernel_forge", "simulate", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_json(space: Path) -> None:
    done = run(space, "--sampler", "exhaustive", "--budget", 5, "--repeats", 2, "--seed", 1, "--json")
    assert done.returncode == 0 and done.stderr == ""
    report = json.loads(done.stdout)
    # In order: BLOCK = 32 with VEC 1, 2, 4, then 64 with 1 and 2: the best is 1 + 1 + 0; the optimum is 1.
    assert report["mean_fraction_of_optimum"] == report["p10_fraction_of_optimum"] == 0.5
    assert report["best_ms"] == [2.0, 2.0]
    assert report["basis"] == "replayed" and report["schema"] == 1
    assert (report["configurations"], report["failing_configurations"]) == (18, 3)
    assert report["optimum_configuration"] == {"BLOCK": 128, "VEC": 2}
    assert report["best_configuration"] == {"BLOCK": 32 + 32, "VEC": 2}
    assert report["overhead_ms_per_evaluation"] > 0


def test_text_says_replayed_and_the_default_finds_the_optimum(space: Path) -> None:
    done = run(space, "--budget", 18, "--repeats", 1)
    assert done.returncode == 0, done.stderr
    assert "axpy on NVIDIA TITAN RTX, replayed: 18 valid configurations (3 fail)" in done.stdout
    assert "portfolio, 18 evaluations, 1 searches: optimum/found 1.000 on average" in done.stdout
    assert done.stdout.splitlines()[-1] == "the best found: BLOCK = 128, VEC = 2, 1 ms, the optimum"
    short = run(space, "--sampler", "exhaustive", "--budget", 5, "--repeats", 1).stdout.splitlines()[-1]
    assert short == "the best found: BLOCK = 64, VEC = 2, 2 ms"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--sampler", "portfollio"], "did you mean portfolio?"),
        (["--budget", "0"], "no integer from 1"),
        (["--budget", "90s"], "'90s': a replayed search has a number of evaluations; nothing runs, so no time passes"),
        (["--budget", "patience=5"], "a replayed search has a number of evaluations"),
        (["--repeats", "x"], "no integer from 1"),
        (["--sampler", "tpe", "--seed", "4294967296"], "the last seed is above 4294967295"),
        (["--sampler", "tpe", "--seed", "4294967290", "--repeats", "7"], "the last seed is above 4294967295"),
    ],
)
def test_wrong_use(space: Path, words: list[str], text: str) -> None:
    done = run(space, *words)
    assert done.returncode == 2
    assert text in done.stderr and "Traceback" not in done.stderr


def test_names_from_the_file_control_no_terminal(space: Path) -> None:
    data = json.loads(space.read_text(encoding="utf-8"))
    data |= {"kernel_name": "k\x1b[2J", "device_name": "d\r\n"}
    space.write_text(json.dumps(data), encoding="utf-8")
    done = run(space, "--sampler", "exhaustive", "--budget", 5, "--repeats", 1)
    assert done.returncode == 0, done.stderr
    assert "k\\x1b[2J on d\\r\\n, replayed" in done.stdout
    assert "\x1b" not in done.stdout


def test_the_largest_seed(space: Path) -> None:
    done = run(space, "--sampler", "tpe", "--budget", 5, "--seed", 2**32 - 2, "--repeats", 2)
    assert done.returncode == 0, done.stderr


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = run(tmp_path / "none.json")
    assert done.returncode == 2 and "cannot be read" in done.stderr


@pytest.mark.parametrize(
    ("names", "values", "text"),
    [
        (["a"], range(10_001), "a has 10,001 values, a tunable can have 10,000"),
        ([f"p{k}" for k in range(70)], range(2), "too many combinations of p0, p1, "),
    ],
)
def test_a_space_that_cannot_be_numbered_is_one_clear_error(
    tmp_path: Path, names: list[str], values: range, text: str
) -> None:
    records = {str(v): {**dict.fromkeys(names, v), "time": 1.0 + v} for v in values}
    listed = {name: list(values) for name in names}
    path = tmp_path / "space.json"
    path.write_text(json.dumps({"tune_params_keys": names, "tune_params": listed, "cache": records}), encoding="utf-8")
    done = run(path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert text in line
