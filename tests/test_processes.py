import sys
from pathlib import Path

import numpy as np
import pytest

from kernel_forge.processes import freed_memory_kept

PAGE = 4096
ARRAY = 32 << 20
"""Bytes, and less than the 64 MiB that the C library gives threads other than the first."""


def made(arrays: int) -> None:
    """Make and free arrays, one after the other."""
    for _ in range(arrays):
        np.ones(ARRAY // 8)


def faults() -> int:
    """Pages that the system has given to this process so far, each with zeros in it."""
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[7])


def resident() -> int:
    """Bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@pytest.mark.skipif(sys.platform != "linux", reason="asks the GNU C library")
def test_freed_memory_is_used_again_and_given_back_at_the_end() -> None:
    with freed_memory_kept():
        made(1)
        before = faults()
        made(8)
        assert faults() - before < ARRAY // PAGE  # instead of eight times as many, in pages of 4 KiB
        kept = resident()
    assert resident() <= kept - ARRAY // 2
