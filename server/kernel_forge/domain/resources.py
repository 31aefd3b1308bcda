"""What a compiled kernel takes of a multiprocessor."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resources:
    """As the assembler reports them, for one kernel and one architecture.

    Attributes:
        registers: per thread.
        shared_bytes: static shared memory per block.
        stack_bytes: local memory per thread.
        spill_store_bytes, spill_load_bytes: registers that did not fit, per thread.
        architecture: e.g. ``sm_90a``.
    """

    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    architecture: str
