"""Recorded spaces: the two formats, as Kernel Tuner 1.x writes them, and files that are neither."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kernel_forge.devices.replay import read_recorded_space
from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.recorded_space import RecordedSpace


def cache(**times: object) -> dict[str, Any]:
    """A cache file with one record per ``b<BLOCK>_<PAD>`` of ``times``."""
    records = {}
    for name, time in times.items():
        block, pad = name[1:].split("_")
        records[f"{block},{pad}"] = {"BLOCK": int(block), "PAD": int(pad), "time": time, "times": [time]}
    return {
        "device_name": "NVIDIA A4000",
        "kernel_name": "convolution",
        "tune_params_keys": ["BLOCK", "PAD"],
        "tune_params": {"BLOCK": [32, 64, 128], "PAD": [0, 1]},
        "objective": "time",
        "cache": records,
    }


def space_with(value: object) -> dict[str, Any]:
    """A cache file with two records, whose parameter B is 1 and ``value``."""
    records = {"1": {"B": 1, "time": 1.0}, "2": {"B": value, "time": 2.0}}
    return {"tune_params_keys": ["B"], "tune_params": {"B": [1, value]}, "cache": records}


def t4(time: float, objectives: list[str]) -> dict[str, Any]:
    """T4 results with one configuration."""
    measured = [{"name": "time", "value": time, "unit": "ms"}]
    result = {"configuration": {"B": 1}, "invalidity": "correct", "measurements": measured, "objectives": objectives}
    return {"results": [result]}


def read(tmp_path: Path, data: object, name: str = "space.json") -> RecordedSpace:
    path = tmp_path / name
    text = data if isinstance(data, str) else json.dumps(data)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return read_recorded_space(path)


@pytest.mark.parametrize("name", ["space.json", "space.json.gz"])
def test_a_cache_file(tmp_path: Path, name: str) -> None:
    data = cache(b32_0=2.5, b64_0="RuntimeFailedConfig", b64_1=1e20, b32_1="InvalidConfig")
    found = read(tmp_path, data, name)
    assert (found.kernel, found.device) == ("convolution", "NVIDIA A4000")
    assert [(t.configuration, t.time, t.failure) for t in found.trials] == [
        ((32, 0), 2.5, ""),
        ((64, 0), None, "RuntimeFailedConfig"),
        ((64, 1), None, "failed"),
    ]
    assert found.parameters == (("BLOCK", (32, 64)), ("PAD", (0, 1)))  # 128 is in no valid configuration


def test_a_cache_file_of_a_run_that_was_interrupted(tmp_path: Path) -> None:
    whole = json.dumps(cache(b32_0=2.5, b64_0=3.5))
    assert whole.endswith("}}}")
    found = read(tmp_path, whole[:-2] + ",\n")
    assert [t.time for t in found.trials] == [2.5, 3.5]


def test_t4_results(tmp_path: Path) -> None:
    def result(block: int, invalidity: str, value: float = 0.0, unit: str = "ms") -> dict[str, Any]:
        measured = [{"name": "GFLOP/s", "value": 9.0}, {"name": "time", "value": value, "unit": unit}]
        return {
            "configuration": {"BLOCK": block, "LAYOUT": "row"},
            "invalidity": invalidity,
            "measurements": measured if invalidity == "correct" else [],
            "objectives": ["time"],
        }

    results = [
        result(128, "correct", 4.0),
        result(32, "correct", 0.002, "s"),
        result(64, "compile"),
        result(256, "constraints"),
        result(512, "correctness"),
    ]
    found = read(tmp_path, {"schema_version": "1.0.0", "results": results})
    assert [(t.configuration, t.time, t.failure) for t in found.trials] == [
        ((128, "row"), 4.0, ""),
        ((32, "row"), 2.0, ""),
        ((64, "row"), None, "compile"),
        ((512, "row"), None, "correctness"),
    ]
    assert found.parameters == (("BLOCK", (32, 64, 128, 512)), ("LAYOUT", ("row",)))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("no json", "is no JSON"),
        ("[1, 2]", "no object"),
        ({"cache": 3}, "neither"),
        ({"other": {}}, "neither"),
        ({"cache": {"1": {}}, "tune_params_keys": ["B"], "tune_params": {"B": [1]}}, "not as the format has it"),
        ({"results": []}, "`results` is empty"),
        (cache(b32_0="RuntimeFailedConfig"), "no configuration has a time"),
        (cache(b32_0=-1.0), "a time is -1"),
        (cache(b32_0=None), "a time is None"),
        (cache(b32_0=10**400), "not as the format has it"),
        (space_with(10**400), "not as the format has it"),
        (space_with(float("nan")), "a parameter has the value nan"),
        (space_with(float("inf")), "a parameter has the value inf"),
        (t4(10**400, ["time"]), "not as the format has it"),
        (t4(1.0, []), "not as the format has it"),
        (t4(1.0, ["energy"]), "not as the format has it"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, data: object, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        read(tmp_path, data)


def test_a_missing_and_a_broken_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_recorded_space(tmp_path / "none.json")
    (tmp_path / "broken.json.gz").write_bytes(gzip.compress(b'{"cache": {}}')[:-9])
    with pytest.raises(UsageError, match="cannot be read"):
        read_recorded_space(tmp_path / "broken.json.gz")


def objective(name: str, unit: str | None) -> dict[str, Any]:
    """T4 results with two configurations, whose objective is 1 and 2."""
    made = [{"name": name, "value": value} | ({} if unit is None else {"unit": unit}) for value in (1.0, 2.0)]
    results = [
        {"configuration": {"B": b}, "invalidity": "correct", "measurements": [m], "objectives": [name]}
        for b, m in enumerate(made)
    ]
    return {"results": results}


@pytest.mark.parametrize(
    ("name", "unit"),
    [("GFLOP/s", ""), ("GFLOP/s", None), ("energy", ""), ("timesteps/s", ""), ("throughput", None), ("time", "J")],
)
def test_an_objective_that_is_no_time_is_refused(tmp_path: Path, name: str, unit: str | None) -> None:
    """Of GFLOP/s more is better: to show it in ms and look for the least would be wrong twice."""
    with pytest.raises(UsageError, match=r"the objective .* (no unit of time|is not named as a time)"):
        read(tmp_path, objective(name, unit))


@pytest.mark.parametrize(
    ("name", "unit", "first"),
    [
        ("time", None, 1.0),
        ("runtime", "", 1.0),
        ("kernel_time", "", 1.0),
        ("Elapsed time", "", 1.0),
        ("benchmark", "us", 1e-3),
    ],
)
def test_an_objective_is_a_time_by_its_unit_or_its_name(
    tmp_path: Path, name: str, unit: str | None, first: float
) -> None:
    assert [t.time for t in read(tmp_path, objective(name, unit)).trials] == [first, 2 * first]
