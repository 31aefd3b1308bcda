"""How fast a kernel could be: traffic, arithmetic, occupancy.

Invariant: numbers and arrays in, numbers out. No device, no file, no text for people.
"""

from kernel_forge.perf.occupancy import MultiprocessorLimits, occupancy
from kernel_forge.perf.roofline import attained, compulsory_bytes
from kernel_forge.perf.work import Counting, Work

__all__ = [
    "Counting",
    "MultiprocessorLimits",
    "Work",
    "attained",
    "compulsory_bytes",
    "occupancy",
]
