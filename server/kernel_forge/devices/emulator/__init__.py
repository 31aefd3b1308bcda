"""CUDA kernels on the CPU.

The unmodified source is rewritten token by token (``rewrite/``), compiled by the host's C++ compiler against
``native/include`` and linked with ``native/runtime``. Invariant: nothing of the user's runs in this process.
"""

from kernel_forge.devices.emulator.device import EmulatorDevice

__all__ = ["EmulatorDevice"]
