"""What one case came to."""

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
class CaseOpen:
    """The case was not decided: not everything planned could be done. It counts neither for nor against."""

    reason: str


@dataclass
class Tally:
    """Per output what comparisons came to: largest error as a share of the tolerance, and how many elements were
    compared or left out."""

    worst: dict[str, float] = field(default_factory=dict)
    compared: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, worst: float, compared: int, left_out: int) -> None:
        """One more comparison of the output ``name``."""
        self.worst[name] = max(self.worst.get(name, 0.0), worst)
        self.compared[name] = self.compared.get(name, 0) + compared
        self.left_out[name] = self.left_out.get(name, 0) + left_out

    def merge(self, other: "Tally") -> None:
        """All comparisons of another tally."""
        for name, worst in other.worst.items():
            self.add(name, worst, other.compared[name], other.left_out[name])

    @property
    def never_compared(self) -> str | None:
        """An output that has elements of which none was compared."""
        return next((n for n, out in self.left_out.items() if out and not self.compared[n]), None)


@dataclass(frozen=True)
class CaseHeld:
    """The case holds."""

    tally: Tally
    seconds: float
    checks: tuple[str, ...]
    notes: tuple[str, ...]
