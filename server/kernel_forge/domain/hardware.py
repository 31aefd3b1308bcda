"""What a GPU can hold, the limits of its compute capability, and how large and fast one model of it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class HardwareLimits:
    """Limits of one compute capability; sizes in bytes, registers of 32 bits.

    Attributes:
        capability: (major, minor).
        threads, blocks, registers, shared_bytes: what one multiprocessor holds at once.
        threads_per_block, registers_per_block, shared_bytes_per_block: what one block may take at most; shared
            memory static and dynamic together, where a kernel opts in to more than 48 KiB.
        cluster_blocks: blocks in a cluster on every GPU of this capability; 1 where there are no clusters.
    """

    capability: tuple[int, int]
    threads: int
    blocks: int
    registers: int
    shared_bytes: int
    threads_per_block: int
    registers_per_block: int
    shared_bytes_per_block: int
    cluster_blocks: int

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> "HardwareLimits":
        """From the facts that a GPU's worker tells.

        Raises:
            KeyError: a fact is missing.
        """
        major, _, minor = str(facts["capability"]).partition(".")
        capability = (int(major), int(minor))
        return cls(
            capability,
            int(facts["max_threads_per_multiprocessor"]),
            int(facts["max_blocks_per_multiprocessor"]),
            int(facts["registers_per_multiprocessor"]),
            int(facts["shared_bytes_per_multiprocessor"]),
            int(facts["max_threads_per_block"]),
            int(facts["registers_per_block"]),
            int(facts["shared_bytes_per_block_opt_in"]),
            PORTABLE_CLUSTER if capability >= FIRST_WITH_CLUSTERS else 1,
        )


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One GPU, as far as the prior of a search follows it.

    Attributes:
        limits: of its compute capability.
        multiprocessors: how many there are.
        bytes_per_second: of its memory at best (clock times width of the bus); None where the driver does not tell.
        l2_bytes: size of the level-2 cache; None where it is not known.
        operations_per_second: peak of the arithmetic that a kernel does; None where it was not measured.
    """

    limits: HardwareLimits
    multiprocessors: int
    bytes_per_second: float | None = None
    l2_bytes: int | None = None
    operations_per_second: float | None = None

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], operations_per_second: float | None = None) -> "GpuFacts":
        """From the facts that a GPU's worker tells.

        Raises:
            KeyError: a fact is missing that every driver tells.
        """
        clock, bits = int(facts.get("memory_clock_khz") or 0), int(facts.get("memory_bus_bits") or 0)
        return cls(
            HardwareLimits.from_facts(facts),
            int(facts["multiprocessors"]),
            # Two transfers in every cycle of the clock that the driver tells: CUDA C++ Best Practices Guide,
            # "Theoretical Bandwidth Calculation". GPUs that share the host's memory tell 0.
            2e3 * clock * bits / 8 or None,
            int(facts.get("l2_bytes") or 0) or None,
            operations_per_second,
        )


FIRST_WITH_CLUSTERS = (9, 0)
PORTABLE_CLUSTER = 8
"""CUDA C++ Programming Guide, *Thread Block Clusters*: eight blocks work on every GPU that has clusters."""
