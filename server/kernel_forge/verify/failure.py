"""What one case came to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_forge.domain.launch import Watch
from kernel_forge.domain.outcome import CaseId, Outcome
from kernel_forge.spec import BoundCase
from kernel_forge.verify.runs import Options


@dataclass(frozen=True)
class CaseFailure:
    """What went wrong at one case, with what is needed to do it again."""

    outcome: Outcome
    case: CaseId
    bound: BoundCase
    kind: str
    options: Options = field(default_factory=Options)
    other: Options | None = None  # the second of two runs that disagree
    watch: Watch | None = None  # the bytes whose writer explains the failure
    about_reference: bool = False


@dataclass(frozen=True)
class CaseHeld:
    """The case holds. ``worst`` as in :class:`~kernel_forge.domain.outcome.Passed`."""

    worst: Mapping[str, float]
    seconds: float
    checks: tuple[str, ...]
    notes: tuple[str, ...]
