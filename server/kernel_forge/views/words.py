"""Short texts for verdicts: titles and sentences used by every surface."""

from collections.abc import Mapping
from typing import assert_never

from kernel_forge.domain.outcome import (
    BarrierDivergence,
    CaseId,
    CompileFailed,
    Launched,
    LaunchFailed,
    MemoryFault,
    Mismatch,
    MismatchKind,
    Outcome,
    Passed,
    RaceFound,
    TimedOut,
    Unavailable,
    Verdict,
)

EMULATION = "CPU times of an emulation: good for trying the machinery, not for ranking GPU configurations"


def caveat(basis: str) -> str | None:
    """What must stand beside times of this basis; None where they are what they seem."""
    return EMULATION if "emulat" in basis else None


def printable(text: str) -> str:
    """``text`` without what a terminal would act on, for what may have come from anywhere."""
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def pairs(values: Mapping[str, int | float | bool]) -> str:
    """``BLOCK = 64, VECTOR = true``."""
    return ", ".join(f"{k} = {str(v).lower() if isinstance(v, bool) else v}" for k, v in values.items())


def set_options(values: Mapping[str, int | float | bool]) -> str:
    """`` --set BLOCK=64 --set VECTOR=true``: what chooses a configuration on the command line; with a space before."""
    return "".join(f" --set {k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in values.items())


def case_text(case: CaseId) -> str:
    """``n = 77, inputs spikes``."""
    sizes = ", ".join(f"{k} = {v}" for k, v in case.sizes.items())
    return f"{sizes}, inputs {case.inputs}" if sizes else f"inputs {case.inputs}"


def launch_text(launch: Launched) -> str:
    """``grid (4,1,1), block (128,1,1), 512 bytes of dynamic shared memory``."""
    grid, block = (f"({','.join(map(str, extents))})" for extents in (launch.grid, launch.block))
    shared = f", {launch.shared_bytes:,} bytes of dynamic shared memory" if launch.shared_bytes else ""
    return f"grid {grid}, block {block}{shared}"


def seconds_text(seconds: float) -> str:
    """Two significant digits with a unit."""
    return f"{seconds:.1f} s" if seconds >= 0.1 else f"{seconds * 1000:.0f} ms"


def title(verdict: Verdict) -> str:
    """A few words for a lens: what is known, how, at what cost."""
    outcome = verdict.outcome
    match outcome:
        case Passed():
            cases = f"{outcome.cases} case{'s' if outcome.cases != 1 else ''}"
            skipped = f" · {len(verdict.skipped)} skipped" if verdict.skipped else ""
            return f"verified ({verdict.basis}) · {cases}{skipped} · {seconds_text(verdict.seconds)}"
        case Unavailable():
            return f"not verified: {outcome.reason}"
        case _:
            return f"{problem(outcome)} ({verdict.basis})"


def problem(outcome: Outcome) -> str:
    """A failed outcome in a few words."""
    match outcome:
        case Mismatch(kind=MismatchKind.NOT_WRITTEN):
            return f"not written: {_element(outcome)}"
        case Mismatch(kind=MismatchKind.WRONG_VALUE):
            return f"wrong: {_element(outcome)}"
        case Mismatch():
            return f"{outcome.output} {outcome.kind.value}"
        case CompileFailed():
            return "does not compile"
        case LaunchFailed():
            return f"launch failed: {outcome.kind}"
        case MemoryFault():
            return f"memory fault: {outcome.kind}"
        case RaceFound():
            return "race"
        case BarrierDivergence():
            return {"barrier": "barrier divergence", "warp-mask": "wrong warp mask"}.get(outcome.kind, "deadlock")
        case TimedOut():
            return f"did not end in {outcome.seconds:g} s"
        case Unavailable():
            return "not verified"
        case Passed():
            return "passed"
        case _:
            assert_never(outcome)


def _element(mismatch: Mismatch) -> str:
    return f"{mismatch.output}[{', '.join(map(str, mismatch.index))}]"


def sentence(outcome: Outcome) -> str:
    """What happened, in full."""
    match outcome:
        case Passed():
            return f"{outcome.cases} cases, {outcome.runs} runs"
        case CompileFailed():
            first = next((m for m in outcome.messages if m.severity == "error"), None)
            return first.message if first is not None else "the compiler gave no message"
        case Unavailable():
            return outcome.reason
        case _:
            return outcome.message
