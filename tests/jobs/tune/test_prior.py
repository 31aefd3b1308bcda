"""The first configurations of a search: default, ledger, promise; and what is remembered of a ledger."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_forge.domain.hardware import GpuFacts
from kernel_forge.domain.record import Kind
from kernel_forge.domain.spec import Configuration, KernelSpec
from kernel_forge.jobs.tune.prior import Suggestion, first_configurations, remembered
from kernel_forge.jobs.tune.prospects import Prospects
from kernel_forge.knowledge import limits_of
from kernel_forge.ledger import SqliteLedger
from kernel_forge.search import SearchSpace, parameters_of
from kernel_forge.source import parse
from kernel_forge.spec import read_specs
from tests.ledger.records import record

A4000 = GpuFacts(limits_of((8, 6)), 48, 448e9)
SCALE = """// /// kernel-forge
// kernel = "scale"
// reference = {{ y = "2 * x" }}
// cases = [{{ n = {n} }}]
//
// [args]
// x = {{ shape = ["n"] }}
// y = {{ shape = ["n"], role = "out" }}
//
// [launch]
// grid = "{grid}"
// block = "BLOCK"
// shared = "{shared}"
//
// [tune]
// BLOCK = {blocks}
// ITEMS = {items}
// {more}
// ///
#define MORE 1
__global__ void scale(const float* x, float* y, int n) {{
  int SIZE = BLOCK * ITEMS * VEC * UNROLL * A * B * C * D;
}}
"""


def scale(
    n: int = 1 << 24,
    blocks: list[int] | None = None,
    items: list[int] | None = None,
    more: str = "",
    grid: str = "cdiv(n, BLOCK * ITEMS)",
    shared: str = "0",
) -> KernelSpec:
    listed = [32, 64, 128, 256, 512, 1024] if blocks is None else blocks
    text = SCALE.format(
        n=n, blocks=listed, items=[1, 2, 4, 8] if items is None else items, grid=grid, shared=shared, more=more
    )
    reading = read_specs(parse(text, "/project/scale.cu"), None)
    assert not reading.problems, reading.problems
    return reading.specs[0]


def space_of(spec: KernelSpec) -> SearchSpace:
    return SearchSpace.of(parameters_of((t.name, t.values) for t in spec.tunables), spec.tune_where)


def first(
    spec: KernelSpec,
    gpu: GpuFacts | None = A4000,
    known: list[Suggestion] | None = None,
    count: int = 3,
    seed: int = 0,
) -> list[Suggestion]:
    return first_configurations(space_of(spec), spec, spec.cases[0], gpu, known or [], count, seed)


def test_the_default_comes_first_then_what_is_remembered_then_what_is_promising() -> None:
    known: list[Suggestion] = [({"BLOCK": 512, "ITEMS": 2}, "the best of this kernel at n = 4096")]
    found = first(scale(), known=known)
    assert found[0] == ({"BLOCK": 32, "ITEMS": 1}, "the default of the source")
    assert found[1] == known[0]
    assert len(found) == 5
    # One wave has 48 multiprocessors x 1536 / 256 blocks; 2^24 elements are many waves, so that the block and the
    # results of a thread decide: six blocks of 256 threads with eight results each are the fullest multiprocessor.
    assert found[2][0]["ITEMS"] == 8
    assert found[2][1].startswith(f"promising: {2**24 // (int(found[2][0]['BLOCK']) * 8)} blocks of ")
    assert len({tuple(c.items()) for c, _ in found}) == 5


def test_a_default_that_is_no_configuration_of_the_space_is_left_out() -> None:
    spec = scale()
    space = SearchSpace.of(parameters_of({"BLOCK": (64, 128), "ITEMS": (1, 2)}.items()))
    found = first_configurations(space, spec, spec.cases[0], A4000, [({"BLOCK": 7, "ITEMS": 1}, "old")], 2, 0)
    assert len(found) == 2
    assert all(c["BLOCK"] in (64, 128) for c, _ in found)


def test_fixed_values_are_those_of_the_default() -> None:
    spec = scale()
    space = SearchSpace.of(parameters_of({"BLOCK": (256,), "ITEMS": (1, 2)}.items()))
    found = first_configurations(space, spec, spec.cases[0], A4000, [], 0, 0)
    assert found == [({"BLOCK": 256, "ITEMS": 1}, "the default of the source")]


def test_nothing_is_promising_where_nothing_is_known() -> None:
    assert first(scale(), gpu=None) == [({"BLOCK": 32, "ITEMS": 1}, "the default of the source")]


def test_without_a_gpu_the_rules_speak() -> None:
    spec = scale(more="VEC = [1, 2, 4]", grid="cdiv(n, BLOCK * ITEMS * VEC)")
    found = first(spec, gpu=None)
    assert [c["VEC"] for c, _ in found[1:]] == [4, 4, 4]
    assert found[1][1] == "promising: VEC: 16-byte accesses take a quarter of the instructions of 4-byte ones"


def test_a_loop_over_the_grid_is_no_unrolling() -> None:
    """The grid grows with ITEMS, so a thread does less by it; nothing is said of registers."""
    found = first(scale(items=[48, 96], blocks=[256], grid="ITEMS"), count=1)
    # 96 blocks fill 48 multiprocessors better: two blocks each instead of one.
    assert found[-1][0]["ITEMS"] == 96
    assert "results per thread" not in found[-1][1]


def test_what_cannot_be_launched_is_not_promising() -> None:
    spec = scale(blocks=[128, 2048, 4096], items=[1])
    assert [c["BLOCK"] for c, _ in first(spec)] == [128]
    # A division by zero in the launch: no grid, no promise.
    spec = scale(blocks=[128, 256], items=[2, 1], grid="cdiv(n, BLOCK) / (ITEMS - 1)")
    assert {c["ITEMS"] for c, _ in first(spec)[1:]} == {2}


def test_a_kernel_that_waits_for_memory_gains_nothing_from_many_results() -> None:
    """One operation for eight bytes: full multiprocessors are as good as many results; not so right of the ridge."""
    spec = scale(blocks=[32, 256], items=[1, 64])
    space, sizes = space_of(spec), spec.cases[0]
    many, full = (space.index_of({"BLOCK": b, "ITEMS": i}) for b, i in ((32, 64), (256, 1)))
    share = {}
    for intensity in (0.125, 100.0):
        weights = Prospects.of(space, spec, sizes, A4000, np.arange(space.size), intensity).weights
        share[intensity] = weights[full] / weights[many]
    assert share[0.125] == pytest.approx(1.0, abs=0.05)
    assert share[100.0] < 0.2


def test_the_promising_ones_differ() -> None:
    """A and B do not matter, so that the most promising are sixteen alike: of those, corners are chosen."""
    spec = scale(more="A = [0, 1, 2, 3]\n// B = [0, 1, 2, 3]")
    found = [c for c, _ in first(spec, count=4)[1:]]
    for k, one in enumerate(found):
        assert all(abs(one["A"] - other["A"]) + abs(one["B"] - other["B"]) >= 3 for other in found[:k])


def test_the_same_seed_gives_the_same_list() -> None:
    spec = scale(more="UNROLL = [1, 2, 4, 8]\n// A = [0, 1, 2, 3, 4, 5, 6, 7]\n// B = [0, 1, 2, 3, 4, 5, 6, 7]")
    assert space_of(spec).size > 2048  # more than are looked at
    assert first(spec, seed=3) == first(spec, seed=3)


def test_another_gpu_shifts_what_is_promising() -> None:
    """Eight results and 64 KiB of shared memory, or two and 16, per block of 256 threads.

    64 KiB are all that a multiprocessor of an RTX 2080 Ti has, so that one block runs there alone; an H200 has room for
    three, and its bandwidth wants the more in flight.
    """
    spec = scale(blocks=[256], items=[2, 8], shared="8192 * ITEMS")
    rtx_2080_ti, h200 = GpuFacts(limits_of((7, 5)), 68, 616e9), GpuFacts(limits_of((9, 0)), 132, 4.8e12)
    space, sizes = space_of(spec), spec.cases[0]
    best = {}
    for name, gpu in (("rtx", rtx_2080_ti), ("h200", h200)):
        weights = Prospects.of(space, spec, sizes, gpu, np.arange(space.size)).weights
        best[name] = space.configuration(int(np.argmax(weights)))["ITEMS"]
    assert best == {"rtx": 2, "h200": 8}


def test_it_is_quick_on_ten_million_configurations() -> None:
    lists = "\n".join(f"// {name} = {list(range(1, 33))}" for name in "BCD")
    spec = scale(more=f"A = {list(range(1, 17))}\n{lists}", grid="cdiv(n, BLOCK * ITEMS * A)")
    space = space_of(spec)
    assert space.size > 10**7
    began = time.process_time()
    first_configurations(space, spec, spec.cases[0], A4000, [], 5, 0)
    assert time.process_time() - began < 0.5  # measured 0.05 s; tests share their machine


def ended(name: str, device: str, n: int, best: Configuration, **more: Any) -> Any:
    details: dict[str, Any] = {
        "kernel": name,
        "parameters": ["BLOCK", "ITEMS"],
        "device_name": device,
        "cases": [{"n": n}],
    }
    fields: dict[str, Any] = {"basis": f"measured on {device}", "subject": None, "platform": None, "run": 1}
    return record(
        kind=Kind.TUNE_END, configuration=best, details={**details, **more.pop("details", {})}, **{**fields, **more}
    )


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return with_a_search(tmp_path)


def with_a_search(project: Path) -> SqliteLedger:
    """A ledger in which run 1 is a search: all ends here are of it."""
    made = SqliteLedger(project.resolve())
    made.append(record(kind=Kind.TUNE))
    return made


def told(ledger: SqliteLedger, most: int = 9, basis: str = "measured on A4000") -> list[Suggestion]:
    return remembered(ledger, scale(n=4096), {"n": 4096}, basis, "A4000", most)


def test_this_kernel_comes_before_others_this_device_before_others_near_sizes_before_far_ones(
    ledger: SqliteLedger,
) -> None:
    for block, (name, device, n) in enumerate(
        [
            ("scale", "A4000", 1 << 24),
            ("shift", "A4000", 4096),
            ("scale", "A6000", 4096),
            ("scale", "A4000", 8192),
        ]
    ):
        ledger.append(ended(name, device, n, {"BLOCK": 32 << block, "ITEMS": 1}))
    assert [(c["BLOCK"], reason) for c, reason in told(ledger)] == [
        (256, "the best of this kernel at n = 8192"),
        (32, "the best of this kernel at n = 16777216"),
        (128, "the best of this kernel at n = 4096 on A6000"),
        (64, "the best of shift, which has the same parameters"),
    ]
    assert [c["BLOCK"] for c, _ in told(ledger, most=2)] == [256, 32]


def test_the_newest_is_first_and_each_configuration_is_there_once(ledger: SqliteLedger) -> None:
    for block in (64, 128, 64):
        ledger.append(ended("scale", "A4000", 4096, {"BLOCK": block, "ITEMS": 1}))
    assert [c["BLOCK"] for c, _ in told(ledger)] == [64, 128]


@pytest.mark.parametrize(
    "changed",
    [
        {"basis": "emulated"},
        {"configuration": {}},
        {"details": {"parameters": ["BLOCK", "VEC"]}},
        {"details": {"parameters": None}},
        {"kind": Kind.TUNE},
    ],
)
def test_what_says_nothing_of_this_search_is_not_remembered(
    ledger: SqliteLedger, tmp_path: Path, changed: Mapping[str, Any]
) -> None:
    one = ended("scale", "A4000", 4096, {"BLOCK": 64, "ITEMS": 1})
    ledger.append(one)
    assert len(told(ledger)) == 1
    assert told(ledger, basis="emulated") == []
    details = {**one.details, **changed.get("details", {})}
    fields = {f: getattr(one, f) for f in ("kind", "basis", "configuration")} | dict(changed) | {"details": details}
    (tmp_path / "other").mkdir()
    other = with_a_search(tmp_path / "other")
    other.append(record(subject=None, platform=None, run=1, **fields))
    assert told(other) == []
