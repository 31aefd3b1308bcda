"""Tunings for programs: the keys of schema 1, and values that JSON has."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from kernel_forge.domain.tuning import KernelTuning, Ratio
from kernel_forge.views.tuning_json import tuning_json
from kernel_forge.views.words import EMULATION
from tests.views.tunings import BEST, EMULATED, FULL, SEVERAL, TUNING, UNCHANGED

KEYS = """attained baseline basis budget cases caveat choices convergence device ended failed finalists improved kernel
notes occupancy path rejected resumed run sampler search_seconds seconds seed space trials verdict winner""".split()


def made(tuning: KernelTuning) -> dict[str, Any]:
    """As a program reads it."""
    found: dict[str, Any] = json.loads(json.dumps(tuning_json(tuning), allow_nan=False))
    return found


@pytest.mark.parametrize("tuning", [TUNING, UNCHANGED, EMULATED, SEVERAL, FULL])
def test_keys_of_schema_1(tuning: KernelTuning) -> None:
    assert sorted(made(tuning)) == KEYS


def test_values() -> None:
    data = made(TUNING)
    assert data["winner"]["configuration"] == {"BLOCK": 256, "VECTOR": True}
    assert data["winner"]["speedup"] == {"value": 2.0, "interval": [1.9, 2.1]}
    assert data["winner"]["seconds"] == pytest.approx(1e-5)
    assert data["winner"]["times"][0]["interval"] == pytest.approx([0.99e-5, 1.01e-5])
    assert data["winner"]["times"][0]["basis"] == "measured on NVIDIA H200"
    assert data["baseline"]["seconds"] == pytest.approx(2e-5)
    assert data["improved"] is True
    assert data["caveat"] is None
    assert data["space"] == {
        "combinations": 5000,
        "valid": 1234,
        "parameters": {"BLOCK": [32, 64, 128, 256, 512, 1024], "VECTOR": [False, True]},
    }
    assert data["budget"] == {"trials": 6, "seconds": None, "patience": None}
    assert (data["ended"], data["failed"], data["run"], data["seed"]) == ("trials", 3, 12, 7)
    assert data["trials"][2] == {
        "configuration": {"BLOCK": 512, "VECTOR": True},
        "seconds": None,
        "value": None,
        "failure": "does not compile: too many registers",
        "early": False,
        "reason": None,
        "wrong": False,
        "place": None,
        "case": None,
    }
    assert [t["wrong"] for t in data["trials"]] == [False, False, False, True, False, False]
    assert data["convergence"] == pytest.approx([2e-5, 2e-5, 2e-5, 2e-5, 2e-5, 1e-5])
    assert data["verdict"]["passed"] is True


def test_unchanged_emulated_and_several() -> None:
    assert made(UNCHANGED)["improved"] is False
    assert made(EMULATED)["caveat"] == EMULATION
    data = made(SEVERAL)
    assert data["cases"] == [{"n": 1000}, {"n": 1000000}]
    assert [c["configuration"]["BLOCK"] for c in data["choices"]] == [64, 256]
    assert data["choices"][0]["speedup"]["interval"] == [2.1, 2.3]
    assert made(replace(TUNING, baseline=None))["baseline"] is None


def test_the_rest_when_it_is_there() -> None:
    data = made(FULL)
    assert data["attained"]["share"] == 0.83
    assert data["occupancy"]["limited_by"] == "registers"
    assert [c["joules"] for c in data["finalists"]] == [[1.2e-3], [2.5e-3], [2e-3]]
    assert data["rejected"][0]["outcome"]["kind"] == "wrong value"
    assert data["resumed"] == 2


def test_of_few_samples_the_interval_is_null() -> None:
    few = replace(BEST, times=(replace(BEST.times[0], samples=5),), speedup=Ratio(2.0, 1.9, 2.1, samples=5))
    winner = made(replace(TUNING, winner=few))["winner"]
    assert winner["speedup"] == {"value": 2.0, "interval": None}
    assert (winner["times"][0]["interval"], winner["times"][0]["samples"]) == (None, 5)


def test_an_interval_without_an_end_is_no_broken_json() -> None:
    data = made(replace(TUNING, winner=replace(BEST, speedup=Ratio(2.0, 0.0, math.inf))))
    assert data["winner"]["speedup"]["interval"] == [0.0, "inf"]
