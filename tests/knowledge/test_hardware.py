"""The hardware table against NVIDIA's own headers."""

import re
from importlib.util import find_spec
from math import prod
from pathlib import Path

import pytest

from kernel_forge.domain.errors import UsageError
from kernel_forge.domain.hardware import HardwareLimits
from kernel_forge.knowledge import known_capabilities, limits_of

HEADER = "cu13/include/cccl/cuda/__device/arch_traits.h"
NUMBERS = {
    "max_shared_memory_per_multiprocessor": "shared_bytes",
    "max_blocks_per_multiprocessor": "blocks",
    "max_threads_per_multiprocessor": "threads",
}


def header() -> str:
    found = find_spec("nvidia")
    for folder in () if found is None else found.submodule_search_locations or ():
        if (Path(folder) / HEADER).is_file():
            return (Path(folder) / HEADER).read_text()
    pytest.skip("the header of CCCL is not installed (pip install nvidia-cuda-cccl)")


def traits(text: str, number: str) -> dict[str, int]:
    """What the header says of ``sm_number``, the capability that it starts from included."""
    at = re.search(rf"arch_traits<arch_id::sm_{number}>\(\) noexcept\n\{{(.*?)\n\}};", text, re.DOTALL)
    if at is None:
        return {}
    base = re.search(r"::cuda::arch_traits<arch_id::sm_(\d+)>", at[1])
    found = traits(text, base[1]) if base else {}
    for name in NUMBERS:
        value = re.search(rf"__traits\.{name}\s*= ([\d* ]+);", at[1])
        if value:
            found[name] = prod(int(n) for n in value[1].split("*"))
    return found


def test_it_covers_every_capability_from_7_0_to_12() -> None:
    assert {major for major, _ in known_capabilities()} == {7, 8, 9, 10, 11, 12}


@pytest.mark.parametrize("capability", known_capabilities())
def test_it_is_what_the_toolkits_header_says(capability: tuple[int, int]) -> None:
    said = traits(header(), f"{capability[0]}{capability[1]}")
    if not said:
        pytest.skip("not in this header")
    limits = limits_of(capability)
    assert {name: getattr(limits, field) for name, field in NUMBERS.items()} == said
    # The system keeps one KiB of every block's shared memory from 8.0 on.
    assert limits.shared_bytes_per_block == limits.shared_bytes - (1024 if capability >= (8, 0) else 0)


def test_what_is_not_in_the_table_is_not_guessed() -> None:
    with pytest.raises(UsageError, match=r"nothing is known of compute capability 9\.9 \(known: 7\.0, "):
        limits_of((9, 9))


def test_limits_are_numbers_of_the_guide() -> None:
    assert limits_of((8, 6)) == HardwareLimits((8, 6), 1536, 16, 65536, 102400, 1024, 65536, 101376, 1)
