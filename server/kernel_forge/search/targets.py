"""What the models learn: results on a scale where small differences near the best count."""

from dataclasses import dataclass

import numpy as np

from kernel_forge.search.parameters import Floats, Mask


@dataclass(frozen=True, slots=True)
class Targets:
    """Standardised results, small is good; ``succeeded`` says which are real. Both of shape ``(told,)``."""

    values: Floats
    succeeded: Mask

    @property
    def best(self) -> float:
        """The best of the real ones, 0 (the mean) where there is none."""
        return float(self.values[self.succeeded].min()) if self.succeeded.any() else 0.0


def targets_of(values: Floats) -> Targets:
    """Targets from positive values, NaN where failed.

    Logarithms, so that ratios count; what is worse than the median is compressed, since it matters little how bad a bad
    configuration is. A failed one takes the place of a poor result (the upper quartile): models of time are
    to avoid it mildly, and :mod:`kernel_forge.search.gaussian_process` models failure itself.
    """
    succeeded = np.isfinite(values)
    if not succeeded.any():
        return Targets(np.zeros(len(values)), succeeded)
    logs = np.log(values[succeeded])
    best = logs.min()
    scale = max(float(np.median(logs)) - best, 1e-3)
    excess = (logs - best) / scale
    real = np.where(excess <= 1, excess, 1 + np.log1p(np.maximum(excess - 1, 0)))
    found = np.full(len(values), np.quantile(real, 0.75))
    found[succeeded] = real
    return Targets((found - found.mean()) / (found.std() + 1e-9), succeeded)
