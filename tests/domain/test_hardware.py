"""What a GPU tells of itself."""

import pytest

from kernel_forge.domain.hardware import GpuFacts

TOLD = {
    "capability": "9.0",
    "multiprocessors": "132",
    "l2_bytes": "62914560",
    "max_threads_per_block": "1024",
    "max_threads_per_multiprocessor": "2048",
    "max_blocks_per_multiprocessor": "32",
    "registers_per_multiprocessor": "65536",
    "registers_per_block": "65536",
    "shared_bytes_per_block_opt_in": "232448",
    "shared_bytes_per_multiprocessor": "233472",
    "memory_clock_khz": "3201000",
    "memory_bus_bits": "6144",
}


def test_the_bandwidth_of_an_h200_is_that_of_its_data_sheet() -> None:
    facts = GpuFacts.from_facts(TOLD)
    # 3.201 GHz, two transfers in a cycle, 768 bytes wide: NVIDIA writes 4.8 TB/s (and 4.9 comes out of the clock).
    assert facts.bytes_per_second == pytest.approx(4.917e12, rel=1e-3)
    assert (facts.multiprocessors, facts.l2_bytes, facts.operations_per_second) == (132, 60 << 20, None)
    assert facts.limits.capability == (9, 0)


def test_what_a_driver_does_not_tell_is_not_known() -> None:
    facts = GpuFacts.from_facts({**TOLD, "memory_clock_khz": "0", "l2_bytes": "0"}, operations_per_second=6e13)
    assert (facts.bytes_per_second, facts.l2_bytes, facts.operations_per_second) == (None, None, 6e13)
    with pytest.raises(KeyError):
        GpuFacts.from_facts({k: v for k, v in TOLD.items() if k != "multiprocessors"})
