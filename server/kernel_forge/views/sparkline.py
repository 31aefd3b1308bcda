"""A search's convergence in a few characters."""

import math
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.-~=+*#"
WIDTH = 24
_NEAR = 1e-3


def sparkline(convergence: Sequence[float], width: int = WIDTH, *, ascii_only: bool = False) -> str:
    """The best time after each trial, at most ``width`` characters: how far it lies above the last, on a log scale.

    The lowest level is within 0.1 % of the last value, the highest the farthest from it. Where there are more trials
    than characters, each stands for the best after its share of them; the first and the last trial are always shown.
    """
    if not convergence:
        return ""
    count = min(width, len(convergence))
    step = (len(convergence) - 1) / (count - 1) if count > 1 else 0.0
    shown = [convergence[round(i * step)] for i in range(count)] if count > 1 else [convergence[-1]]
    above = [value / convergence[-1] - 1 for value in shown]
    levels = ASCII if ascii_only else BLOCKS
    highest = max(above)
    return "".join(levels[_level(a, highest, len(levels))] for a in above)


def _level(above: float, highest: float, levels: int) -> int:
    """0 within 0.1 % of the best, else 1 to ``levels - 1`` by the logarithm."""
    if above <= _NEAR:
        return 0
    share = 1.0 if highest <= _NEAR * 1.001 else math.log(above / _NEAR) / math.log(highest / _NEAR)
    return max(1, round(share * (levels - 1)))
