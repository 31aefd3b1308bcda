"""What the commands tell with their exit codes; see :mod:`kernel_forge.cli`."""

from collections.abc import Iterable

from kernel_forge.domain.errors import DeviceUnavailable, KernelForgeError, UsageError

GOOD, FAILED, WRONG_USE, UNAVAILABLE, FAULT, INTERRUPTED = 0, 1, 2, 3, 70, 130
_WORST_FIRST = (INTERRUPTED, FAULT, WRONG_USE, FAILED, UNAVAILABLE)


def code_of(error: KernelForgeError) -> int:
    """The code of a command that ends with ``error``."""
    if isinstance(error, UsageError):
        return WRONG_USE
    return UNAVAILABLE if isinstance(error, DeviceUnavailable) else FAULT


def worst(codes: Iterable[int]) -> int:
    """One code for several: a fault of ours, wrong use, a failure, a device that is missing; else good."""
    found = set(codes)
    return next((code for code in _WORST_FIRST if code in found), GOOD)
