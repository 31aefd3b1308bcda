"""Stage 1: from a spec block to the contract of a kernel.

Invariant: pure. Nothing is read from disk or run; every problem is a finding with an exact range, and all of
them are reported, not the first.
"""

from kernel_forge.spec.binding import MAX_CASE_BYTES, BoundCase, bind, is_legal
from kernel_forge.spec.block_model import json_schema
from kernel_forge.spec.defaults import NewDefault, edited, make_default
from kernel_forge.spec.draft import Draft, draft_block
from kernel_forge.spec.edge_cases import edge_cases
from kernel_forge.spec.reading import SpecReading, read_specs
from kernel_forge.spec.vocabulary import Completion, complete, describe

__all__ = [
    "MAX_CASE_BYTES",
    "BoundCase",
    "Completion",
    "Draft",
    "NewDefault",
    "SpecReading",
    "bind",
    "complete",
    "describe",
    "draft_block",
    "edge_cases",
    "edited",
    "is_legal",
    "json_schema",
    "make_default",
    "read_specs",
]
