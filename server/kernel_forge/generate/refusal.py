"""Why a text is refused before it is compiled: the rules, what each is for, and where a text breaks one."""

from dataclasses import dataclass
from enum import Enum

from kernel_forge.domain.text import Range


class Rule(Enum):
    """A rule for what a model's kernel may contain; the value is what the rule is for."""

    TEXT = "What is compiled must be what a person reads: no look-alike characters, trigraphs, digraphs or raw strings."
    LIMIT = "No text may exhaust the parser, the compiler or the reader."
    SYNTAX = "What the rules cannot read they cannot judge."
    HOST_CODE = (
        "A reply is a kernel; its launch, its memory and the timing are ours, so nothing of it may run on the host."
    )
    LAUNCH = "A kernel that launches kernels hides work from the measurement."
    INCLUDE = "A header can hold anything; only those that are known to hold device code are read."
    DIRECTIVE = "Lines, files and errors that the compiler reports must be those of the text."
    PRAGMA = "Pragmas switch off checks of the compiler or change arithmetic; only loop unrolling is needed."
    MACRO = "A macro must not change what the language or CUDA means, and must not make names that nobody can read."
    CONDITION = "A kernel must be the same on every device that verifies or times it."
    RESERVED = "Names of the compiler reach registers, addresses and built-in functions that no rule here knows."
    LIBRARY = "The standard library of the host is not made for device code; cuda::std is."
    ASSEMBLY = "PTX reaches clocks, special registers and any address; only instructions on a list pass."
    OUTPUT = "Printing costs time, fills logs and can imitate our own messages."
    STOP = "A kernel that traps, asserts or exits ends the run instead of giving a result."
    TIME = "A kernel that can read the time can tell a measurement from a verification."
    ALLOCATION = "Memory of its own outlives a launch, so that work can be skipped after the first call."
    STATE = "State that survives a launch lets a kernel work once and be timed often."
    ADDRESS = "Addresses differ between runs, and one that is computed reads what was never given."
    CALL = "A call that cannot be followed can reach code that no rule has seen; one that calls itself may never end."
    ATTRIBUTE = "Attributes rename, alias and place code and data behind the text's back."
    LINKAGE = "Linkage other than a kernel's own C name hides or replaces what others define."


@dataclass(frozen=True, order=True, slots=True)
class Refusal:
    """A text breaks a rule at ``range``; ``message`` says what stands there and what to write instead."""

    range: Range
    rule_name: str
    message: str

    @property
    def rule(self) -> Rule:
        """The rule that is broken."""
        return Rule[self.rule_name]
