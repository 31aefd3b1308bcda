"""Launches that a GPU refuses. The limits are those of the CUDA C++ Programming Guide."""

from typing import Any

import pytest

from kernel_forge.domain.launch import Launch
from kernel_forge.domain.resources import Resources
from kernel_forge.knowledge import limits_of
from kernel_forge.perf import exceeded_limit


def launch(grid: tuple[int, int, int] = (1, 1, 1), block: tuple[int, int, int] = (32, 1, 1), **more: Any) -> Launch:
    return Launch("k", (), grid, block, **more)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (launch(), None),
        (launch(block=(32, 32, 1)), None),
        (launch(block=(1024, 1, 2)), "a block of 2048 threads, more than 1024"),
        (launch(block=(1, 1, 65)), "block.z is 65, more than 64"),
        (launch(grid=(1, 65536, 1)), "grid.y is 65536, more than 65535"),
        (launch(shared_bytes=232448), None),
        (launch(shared_bytes=232449), "232449 bytes of shared memory per block, more than 232448"),
        (launch(grid=(8, 1, 1), cluster=(8, 1, 1)), None),
        (launch(grid=(16, 1, 1), cluster=(16, 1, 1)), "a cluster of 16 blocks, more than 8"),
        (launch(grid=(9, 1, 1), cluster=(2, 1, 1)), "grid.x is 9, no multiple of the cluster's 2"),
    ],
)
def test_on_capability_9_0(made: Launch, words: str | None) -> None:
    assert exceeded_limit(limits_of((9, 0)), made) == words


def test_clusters_came_with_9_0() -> None:
    found = exceeded_limit(limits_of((8, 9)), launch(grid=(2, 1, 1), cluster=(2, 1, 1)))
    assert found == "clusters, which compute capability 8.9 does not have"


def test_what_was_compiled_counts() -> None:
    def resources(registers: int, shared: int) -> Resources:
        return Resources(registers, shared, 0, 0, 0, "sm_75")

    wide, turing = launch(block=(1024, 1, 1), shared_bytes=60000), limits_of((7, 5))
    assert exceeded_limit(turing, wide, resources(64, 5536)) is None  # 64 registers for 1024 threads: all 65536
    assert exceeded_limit(turing, wide, resources(65, 0)) == "73728 registers per block, more than 65536"
    assert (
        exceeded_limit(turing, wide, resources(32, 5537)) == "65537 bytes of shared memory per block, more than 65536"
    )
