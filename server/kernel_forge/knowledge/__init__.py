"""What is known beforehand: hardware tables, what the names of tunables suggest, and patterns of fast kernels.

Invariant: reads ``kb/`` and nothing else; no device is asked.
"""

from kernel_forge.knowledge.hardware import known_capabilities, limits_of
from kernel_forge.knowledge.patterns import OPERATORS, Pattern, pattern, patterns, read_architecture, read_patterns
from kernel_forge.knowledge.retrieval import Match, search_patterns
from kernel_forge.knowledge.rules import Rule, read_rules, tunable_rules

__all__ = [
    "OPERATORS",
    "Match",
    "Pattern",
    "Rule",
    "known_capabilities",
    "limits_of",
    "pattern",
    "patterns",
    "read_architecture",
    "read_patterns",
    "read_rules",
    "search_patterns",
    "tunable_rules",
]
