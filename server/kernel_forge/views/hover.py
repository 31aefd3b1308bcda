"""Hovers in Markdown."""

from kernel_forge.domain.outcome import Mismatch, Passed, Unavailable, Verdict
from kernel_forge.domain.spec import (
    BufferArg,
    ExpressionReference,
    FunctionReference,
    KernelReference,
    KernelSpec,
    Reference,
)
from kernel_forge.views.words import case_text, launch_text, problem, seconds_text, sentence


def hover_text(
    spec: KernelSpec, verdict: Verdict | None, *, stale: bool, running: str | None, tuning: str | None = None
) -> str:
    """What a person wants to know about a kernel with a spec: verdict first, then what tuning found, then the contract.

    ``tuning`` is Markdown, see :mod:`kernel_forge.views.tuning_hover`.
    """
    parts = [f"**{spec.kernel}**"]
    if running is not None:
        parts.append(f"_{running}…_")
    parts.append(_verdict(verdict, stale=stale))
    if tuning is not None:
        parts.append(tuning)
    parts.append(_contract(spec))
    return "\n\n".join(p for p in parts if p)


def _verdict(verdict: Verdict | None, *, stale: bool) -> str:
    if verdict is None:
        return "Not verified yet: save the file, or run *Verify*."
    outcome = verdict.outcome
    lines = []
    if isinstance(outcome, Passed):
        worst = max(outcome.worst.values(), default=0.0)
        lines.append(
            f"✓ Verified, **{verdict.basis}**: {outcome.cases} cases, {outcome.runs} runs, "
            f"{seconds_text(verdict.seconds)}; worst error {worst:.0%} of the tolerance."
        )
    elif isinstance(outcome, Unavailable):
        lines.append(f"? **{problem(outcome)}**: {sentence(outcome)}")
    else:
        lines.append(f"✗ **{problem(outcome)}** ({verdict.basis}): {sentence(outcome)}")
        if verdict.case is not None:
            lines.append(f"Smallest failing case: {case_text(verdict.case)}; repeat with `--seed {verdict.seed}`.")
        lines.extend(f"Launched there: `{each.kernel}`, {launch_text(each)}." for each in verdict.launches)
        if isinstance(outcome, Mismatch) and outcome.owner is not None:
            lines.append(f"Written by {outcome.owner}.")
    if stale:
        lines.insert(0, "_The file has changed since; this speaks of an older text._")
    if verdict.configuration:
        lines.append("Configuration: " + ", ".join(f"{k} = {v}" for k, v in verdict.configuration.items()))
    lines.extend(f"Note: {note}." for note in verdict.notes)
    if verdict.skipped:
        lines.append("Skipped: " + "; ".join(f"{what}: {why}" for what, why in verdict.skipped.items()))
    if verdict.checks:
        lines.append("Checks: " + "; ".join(verdict.checks) + ".")
    return "  \n".join(lines)


def _contract(spec: KernelSpec) -> str:
    rows = ["| argument | type | shape | role |", "|---|---|---|---|"]
    for arg in spec.args:
        if isinstance(arg, BufferArg):
            shape = " × ".join(e.text for e in arg.shape)
            kind = arg.dtype.value if arg.texture is None else f"texture of {arg.dtype.value}"
            rows.append(f"| `{arg.name}` | {kind} | {shape} | {arg.role.value} |")
        else:
            rows.append(f"| `{arg.name}` | {arg.dtype.value} | = {arg.value.text} | value |")
    references = [f"`{o}` must be {reference_text(r)}" for o, r in spec.references.items()]
    tunables = [f"`{t.name}` in {', '.join(map(str, t.values))}" for t in spec.tunables]
    return "\n".join(rows) + "\n\n" + "  \n".join([*references, *tunables])


def reference_text(reference: Reference) -> str:
    """Where an expected value comes from."""
    match reference:
        case ExpressionReference(text=text):
            return f"`{text}`"
        case FunctionReference(path=path, function=function):
            return f"`{function}` of {path}"
        case KernelReference(kernel=kernel):
            return f"what kernel `{kernel}` gives"
