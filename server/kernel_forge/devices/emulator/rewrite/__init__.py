"""Turning CUDA text into C++ text for the host's compiler, token by token and line by line.

Invariant: line N of the result is line N of the source, so that every message and address leads back.
"""

from kernel_forge.devices.emulator.rewrite.declarations import Rewritten, rewrite
from kernel_forge.devices.emulator.rewrite.shadow import HostCode, ShadowTree, shadow_sources

__all__ = ["HostCode", "Rewritten", "ShadowTree", "rewrite", "shadow_sources"]
