"""What is known beforehand: hardware tables.

Invariant: reads ``kb/`` and nothing else; no device is asked.
"""

from kernel_forge.knowledge.hardware import known_capabilities, limits_of

__all__ = ["known_capabilities", "limits_of"]
