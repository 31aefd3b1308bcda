"""What came of a trial that has no time, in a few words."""

from kernel_forge.domain.outcome import (
    BarrierDivergence,
    CompileFailed,
    LaunchFailed,
    MemoryFault,
    Mismatch,
    Outcome,
    Passed,
    RaceFound,
    TimedOut,
    Unavailable,
)

MOST_TEXT = 200
NOT_ANSWERED = "not answered"


def reason_of(outcome: Outcome) -> str:
    """``does not compile: ...``, ``wrong: y[0]``: a kind that counts can be made of, then the reason."""
    return _words(outcome)[:MOST_TEXT]


def _words(outcome: Outcome) -> str:
    match outcome:
        case Passed():
            return "right"
        case Mismatch(output=output, index=index):
            place = f"[{', '.join(map(str, index))}]" if index else ""
            return f"wrong: {output}{place} {outcome.kind.value}"
        case CompileFailed(messages=messages):
            return f"does not compile: {messages[0].message if messages else ''}"
        case LaunchFailed(kind="assert" | "trap" | "crash", message=message):
            return f"ends itself: {message}"
        case LaunchFailed(message=message):
            return f"does not launch: {message}"
        case MemoryFault(message=message):
            return f"memory fault: {message}"
        case RaceFound(message=message):
            return f"race: {message}"
        case BarrierDivergence(message=message):
            return f"barrier: {message}"
        case TimedOut(message=message):
            return f"too slow: {message}"
        case Unavailable(reason=reason):
            return f"{NOT_ANSWERED}: {reason}"
