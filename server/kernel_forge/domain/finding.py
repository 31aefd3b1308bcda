"""Something to show on a source range."""

from dataclasses import dataclass, field
from enum import Enum

from kernel_forge.domain.text import Location, Range, TextEdit


class Severity(Enum):
    """How loudly a finding is shown; the order is that of the Language Server Protocol."""

    ERROR = 1
    WARNING = 2
    INFORMATION = 3
    HINT = 4


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit that mends a finding. ``preferred`` only where it is the one obvious mending.

    ``path`` is the file to edit where it is not the finding's own: a sidecar can ask for a change of its source.
    """

    title: str
    edits: tuple[TextEdit, ...]
    preferred: bool = False
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that explains a finding: the reference, the other access, the declaration."""

    location: Location
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic, free of any editor's types.

    ``code`` is ``KF`` and three digits: 1xx spec, 2xx compile, 3xx verification, 4xx memory and
    synchronisation, 5xx performance, 9xx the tool itself. Each has a page in ``kb/rules/``.
    """

    code: str
    severity: Severity
    message: str
    path: str
    range: Range
    related: tuple[Related, ...] = ()
    fixes: tuple[Fix, ...] = field(default=())
