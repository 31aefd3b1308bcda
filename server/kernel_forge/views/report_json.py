"""The JSON report of the command line: stable, versioned by ``schema``.

Within one ``schema`` number keys are added, never removed or given another meaning.
"""

from dataclasses import asdict
from typing import Any

from kernel_forge.domain.finding import Finding
from kernel_forge.domain.outcome import BarrierDivergence, CaseId, Outcome, Passed, RaceFound, Thread, Verdict
from kernel_forge.domain.text import Location, Range
from kernel_forge.views.words import sentence

SCHEMA = 1


def report_json(
    files: list[tuple[str, tuple[Finding, ...], list[tuple[Verdict, tuple[Finding, ...]]]]], version: str
) -> dict[str, Any]:
    """The report of one command: per file its problems and verdicts. Lines and columns start at 1."""
    return {
        "schema": SCHEMA,
        "tool": {"name": "kernel-forge", "version": version},
        "files": [
            {
                "path": path,
                "problems": [finding_json(f) for f in problems],
                "verdicts": [verdict_json(v, f) for v, f in verdicts],
            }
            for path, problems, verdicts in files
        ],
    }


def _range(path: str, place: Range) -> dict[str, Any]:
    return {
        "path": path,
        "start": {"line": place.start.line + 1, "column": place.start.column + 1},
        "end": {"line": place.end.line + 1, "column": place.end.column + 1},
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding as JSON data. Lines and columns start at 1."""
    return {
        "code": finding.code,
        "severity": finding.severity.name.lower(),
        "message": finding.message,
        "location": _range(finding.path, finding.range),
        "related": [
            {"message": r.message, "location": _range(r.location.path, r.location.range)} for r in finding.related
        ],
    }


def verdict_json(verdict: Verdict, findings: tuple[Finding, ...]) -> dict[str, Any]:
    """One verdict with its findings as JSON data."""
    return {
        "kernel": verdict.kernel,
        "passed": isinstance(verdict.outcome, Passed),
        "outcome": _outcome(verdict.outcome),
        "device": verdict.device,
        "basis": verdict.basis,
        "configuration": dict(verdict.configuration),
        "seed": verdict.seed,
        "case": _case(verdict.case),
        "launches": [asdict(launch) for launch in verdict.launches],
        "checks": list(verdict.checks),
        "skipped": dict(verdict.skipped),
        "notes": list(verdict.notes),
        "seconds": round(verdict.seconds, 3),
        "findings": [finding_json(f) for f in findings],
    }


def _case(case: CaseId | None) -> dict[str, Any] | None:
    if case is None:
        return None
    return {"sizes": dict(case.sizes), "inputs": case.inputs, "seed": case.seed, "origin": case.origin}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    data: dict[str, Any] = {"type": type(outcome).__name__, "message": sentence(outcome)}
    for name in (
        "kind",
        "output",
        "count",
        "total",
        "index",
        "expected",
        "got",
        "tolerance",
        "max_absolute",
        "max_relative",
        "max_ulp",
        "buffer",
        "offset",
        "cases",
        "runs",
    ):
        value = getattr(outcome, name, None)
        if value is not None:
            data[name] = plain(value)
    thread = getattr(outcome, "owner", None) or getattr(outcome, "thread", None)
    if isinstance(thread, Thread):
        data["thread"] = {"block": list(thread.block), "thread": list(thread.thread)}
    location = getattr(outcome, "location", None)
    if isinstance(location, Location):
        data["location"] = _range(location.path, location.range)
    if isinstance(outcome, RaceFound | BarrierDivergence):
        data["locations"] = [_range(place.path, place.range) for place in outcome.locations]
    if isinstance(outcome, Passed):
        data["worst"] = {k: plain(v) for k, v in outcome.worst.items()}
    return data


def plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become strings."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    return getattr(value, "value", value)
