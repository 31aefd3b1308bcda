"""Verdicts as findings on source ranges."""

from typing import assert_never

from kernel_forge.domain.finding import Finding, Related, Severity
from kernel_forge.domain.outcome import (
    BarrierDivergence,
    CompileFailed,
    CompilerMessage,
    LaunchFailed,
    MemoryFault,
    Mismatch,
    MismatchKind,
    Passed,
    RaceFound,
    TimedOut,
    Unavailable,
    Verdict,
)
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.domain.text import Location, Range
from kernel_forge.views.words import case_text

_MEMORY_CODES = {
    "out-of-bounds": "KF401",
    "null": "KF402",
    "misaligned": "KF403",
    "read-only": "KF404",
    "guard-band": "KF405",
    "stack-overflow": "KF406",
    "unwritten": "KF305",
}
_BARRIER_CODES = {"barrier": "KF421", "warp-mask": "KF422", "deadlock": "KF423"}
_MISMATCH_CODES = {
    MismatchKind.WRONG_VALUE: "KF301",
    MismatchKind.NOT_WRITTEN: "KF302",
    MismatchKind.INSENSITIVE: "KF303",
    MismatchKind.UNWRITTEN_READ: "KF305",
}


def findings_of(verdict: Verdict, spec: KernelSpec | None, name_range: Range) -> tuple[Finding, ...]:
    """What to show for ``verdict``; ``name_range`` is that of the kernel's name, used where no line is known.

    A passed verdict shows what the compiler warned of at most: its place is the lens and the hover.
    """
    outcome = verdict.outcome
    here = Location(verdict.path, name_range)
    place: Location | None
    match outcome:
        case Passed():
            return _messages(verdict.warnings, here)
        case CompileFailed():
            return _messages(outcome.messages, here)
        case Unavailable():
            where = outcome.location or here
            message = f"{verdict.kernel} was not verified: {outcome.reason}"
            severity = Severity.ERROR if outcome.of_spec else Severity.INFORMATION
            return (Finding("KF203", severity, message, where.path, where.range),)
        case Mismatch():
            code, place = _MISMATCH_CODES[outcome.kind], outcome.location
        case MemoryFault():
            code, place = _MEMORY_CODES[outcome.kind], outcome.location
        case RaceFound():
            code, place = "KF411", outcome.locations[0] if outcome.locations else None
        case BarrierDivergence():
            code, place = _BARRIER_CODES[outcome.kind], outcome.locations[0] if outcome.locations else None
        case LaunchFailed():
            code, place = "KF306", outcome.location
        case TimedOut():
            code, place = "KF307", outcome.location
        case _:
            assert_never(outcome)
    return (_finding(code, verdict, outcome, place, here, spec), *_messages(verdict.warnings, here))


def failure_finding(kind: str, message: str, path: str, severity: Severity) -> Finding:
    """A job that gave no report, at the top of its file; ``kind`` is that of the failed job."""
    return Finding("KF902" if kind == "unavailable" else "KF901", severity, message, path, Range.of_line(0))


def _finding(
    code: str,
    verdict: Verdict,
    outcome: Mismatch | MemoryFault | RaceFound | BarrierDivergence | LaunchFailed | TimedOut,
    place: Location | None,
    here: Location,
    spec: KernelSpec | None,
) -> Finding:
    where = place or here
    parts = [f"{verdict.kernel}: {outcome.message}"]
    thread = outcome.owner if isinstance(outcome, Mismatch) else outcome.thread
    if thread is not None:
        parts.append(f"by {thread}")
    if verdict.case is not None:
        parts.append(f"with {case_text(verdict.case)}")
    parts.append(verdict.basis)
    related = []
    if place is not None:
        related.append(Related(here, f"kernel {verdict.kernel}"))
    if isinstance(outcome, RaceFound | BarrierDivergence):
        related.extend(Related(other, "the other place") for other in outcome.locations[1:])
    if isinstance(outcome, Mismatch) and spec is not None:
        reference = spec.references.get(outcome.output)
        if reference is not None and reference.location is not None:
            related.append(Related(reference.location, f"the reference of {outcome.output}"))
    return Finding(code, Severity.ERROR, "; ".join(parts), where.path, where.range, tuple(related))


def _messages(messages: tuple[CompilerMessage, ...], here: Location) -> tuple[Finding, ...]:
    found = []
    for message in messages:
        if message.severity == "note":
            continue
        place = message.location or here
        severity = Severity.ERROR if message.severity == "error" else Severity.WARNING
        code = "KF201" if message.severity == "error" else "KF202"
        found.append(Finding(code, severity, f"{message.message} ({message.origin})", place.path, place.range))
    return tuple(found)
