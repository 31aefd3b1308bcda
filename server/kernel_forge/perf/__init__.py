"""How fast a kernel could be: traffic, arithmetic, occupancy.

Invariant: numbers and arrays in, numbers out. No device, no file, no text for people.
"""

from kernel_forge.perf.launch_limits import exceeded_limit
from kernel_forge.perf.occupancy import occupancy
from kernel_forge.perf.promise import LaunchShapes, promise
from kernel_forge.perf.roofline import attained, compulsory_bytes
from kernel_forge.perf.work import Counting, Work

__all__ = [
    "Counting",
    "LaunchShapes",
    "Work",
    "attained",
    "compulsory_bytes",
    "exceeded_limit",
    "occupancy",
    "promise",
]
