"""What is known beforehand: hardware tables, and what the names of tunables suggest.

Invariant: reads ``kb/`` and nothing else; no device is asked.
"""

from kernel_forge.knowledge.hardware import known_capabilities, limits_of
from kernel_forge.knowledge.rules import Rule, read_rules, tunable_rules

__all__ = ["Rule", "known_capabilities", "limits_of", "read_rules", "tunable_rules"]
