"""Stand-in until the command line's module lands."""

from collections.abc import Sequence


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """Bars."""
    if not values:
        return ""
    step = max(1, -(-len(values) // width))
    chosen = [values[min(i + step, len(values)) - 1] for i in range(0, len(values), step)]
    low, high = min(chosen), max(chosen)
    span = (high - low) or 1.0
    return "".join("▁▂▃▄▅▆▇█"[int(7 * (v - low) / span)] for v in chosen)
