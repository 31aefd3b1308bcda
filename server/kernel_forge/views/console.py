"""Reports for a terminal, as plain lines; colours are the command line's business."""

import math
from collections.abc import Callable

from kernel_forge.domain.finding import Finding, Severity
from kernel_forge.domain.outcome import CompileFailed, Mismatch, Passed, Unavailable, Verdict
from kernel_forge.domain.text import Location
from kernel_forge.views.words import case_text, launch_text, pairs, problem, sentence, set_options, title

SHOWN_SKIPPED = 10
LineOf = Callable[[str, int], str]
"""(path, zero-based line) -> its text."""


def finding_lines(finding: Finding, line_of: LineOf) -> list[str]:
    """One finding the way compilers print it: place, severity, code, message, the line and a caret."""
    severity = {
        Severity.ERROR: "error",
        Severity.WARNING: "warning",
        Severity.INFORMATION: "note",
        Severity.HINT: "hint",
    }[finding.severity]
    place = f"{finding.path}:{finding.range.start.line + 1}:{finding.range.start.column + 1}"
    lines = [f"{place}: {severity}: {finding.message} [{finding.code}]"]
    lines.extend(quote(Location(finding.path, finding.range), line_of))
    for related in finding.related:
        start = related.location.range.start
        lines.append(f"  {related.location.path}:{start.line + 1}: {related.message}")
    return lines


def quote(location: Location, line_of: LineOf) -> list[str]:
    """The source line and a caret under the range."""
    start, end = location.range.start, location.range.end
    text = line_of(location.path, start.line)
    if not text.strip():
        return []
    stop = min(end.column if end.line == start.line else len(text), len(text))
    width = max(1, stop - start.column)
    number = str(start.line + 1)
    pad = "".join("\t" if c == "\t" else " " for c in text[: start.column])
    return [f"  {number} | {text}", f"  {' ' * len(number)} | {pad}{'^' * width}"]


def verdict_lines(
    verdict: Verdict, findings: tuple[Finding, ...], line_of: LineOf, configurations: int | None = None
) -> list[str]:
    """One verdict: a headline, and for a failure everything needed to mend and to repeat it.

    ``configurations`` are those that the spec admits, of which the verdict is on one.
    """
    outcome = verdict.outcome
    if isinstance(outcome, Passed):
        lines = [f"✓ {verdict.kernel}: {title(verdict)}{_one_of(verdict, configurations)}"]
    elif isinstance(outcome, Unavailable):
        lines = [f"? {verdict.kernel}: {title(verdict)}"]
    else:
        lines = [f"✗ {verdict.kernel}: {problem(outcome)} ({verdict.basis})"]
        if not isinstance(outcome, CompileFailed):
            lines.append(f"  {sentence(outcome)}")
    for finding in findings:
        place = f"{finding.path}:{finding.range.start.line + 1}:{finding.range.start.column + 1}"
        if isinstance(outcome, CompileFailed):
            lines.append(f"  {place}: {finding.message} [{finding.code}]")
        elif finding.severity is Severity.WARNING:
            lines.append(f"  warning at {place}: {finding.message} [{finding.code}]")
        else:
            lines.append(f"  at {place} [{finding.code}]")
        lines.extend("  " + text for text in quote(Location(finding.path, finding.range), line_of))
    lines.extend(_details(verdict))
    lines.extend(f"  note: {note}" for note in verdict.notes)
    skipped = list(verdict.skipped.items())
    lines.extend(f"  skipped {what}: {why}" for what, why in skipped[:SHOWN_SKIPPED])
    if len(skipped) > SHOWN_SKIPPED:
        lines.append(f"  skipped {len(skipped) - SHOWN_SKIPPED} more (--json names all)")
    return lines


def _one_of(verdict: Verdict, configurations: int | None) -> str:
    """`` · BLOCK = 256 (1 of 12 configurations)``: the others may be wrong."""
    if not verdict.configuration:
        return ""
    count = "" if configurations is None else f" (1 of {configurations:,} configuration{'s' * (configurations != 1)})"
    return f" · {pairs(verdict.configuration)}{count}"


def _details(verdict: Verdict) -> list[str]:
    outcome = verdict.outcome
    lines = []
    thread = outcome.owner if isinstance(outcome, Mismatch) else getattr(outcome, "thread", None)
    if thread is not None:
        lines.append(f"  thread  {thread}")
    if verdict.case is not None:
        lines.append(f"  case    {case_text(verdict.case)} ({verdict.case.origin})")
    for launch in verdict.launches:
        of = f"{launch.kernel}: " if len(verdict.launches) > 1 else ""
        lines.append(f"  launch  {of}{launch_text(launch)}")
    if isinstance(outcome, Mismatch) and outcome.max_relative is not None and math.isfinite(outcome.max_absolute):
        relative = f", {outcome.max_relative:.3g} relative" if math.isfinite(outcome.max_relative) else ""
        ulp = f", {outcome.max_ulp:.3g} ulp" if math.isfinite(outcome.max_ulp or 0.0) and outcome.max_ulp else ""
        lines.append(f"  error   {outcome.max_absolute:.3g} absolute{relative}{ulp}")
    if not isinstance(outcome, Passed | Unavailable | CompileFailed):
        lines.append(f"  repeat  --seed {verdict.seed}{set_options(verdict.configuration)}")
    return lines
