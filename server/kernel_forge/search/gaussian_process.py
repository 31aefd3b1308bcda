"""A Gaussian process over a fixed set of candidates, updated one observation at a time.

Matérn 5/2 with one length per coordinate. Besides the times, the same factor of the covariance gives the chance that a
candidate fails. Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006: 2.2 and 5.4.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from kernel_forge.search.parameters import Floats
from kernel_forge.search.targets import Targets

_ROOT5 = math.sqrt(5.0)
_JITTER = 1e-6
_NOISE = 3e-3
_LOG_NOISE_BOUNDS = (math.log(1e-5), math.log(0.3))
_LEAST_CHANCE = 0.02
_SPARE_ROWS = 16
_MOST_FOR_LENGTHS = 300


@dataclass(frozen=True, slots=True)
class Belief:
    """Mean and deviation of each candidate's target, chance that it works; each of shape ``(candidates,)``."""

    mean: Floats
    deviation: Floats
    works: Floats


class GaussianProcess:
    """Beliefs about the rows of ``candidates``, shape ``(candidates, coordinates)`` and in [0, 1]."""

    def __init__(self, candidates: Floats) -> None:
        self._candidates = candidates
        self._dimensions = candidates.shape[1]
        # A length for which neighbours along one coordinate are alike, the longer the more coordinates there are.
        self._log_length = math.log(0.6) + 0.25 * math.log(max(1, self._dimensions))
        self._theta: Floats | None = None
        self._next_fit = 0
        self._fits = 0
        self._observed = np.zeros((0, self._dimensions))
        self._targets = Targets(np.zeros(0), np.zeros(0, bool))
        self._factor = np.zeros((0, 0))
        self._solved: npt.NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._explained = np.zeros(0)

    def wants_fit(self, count: int) -> bool:
        """Whether ``count`` observations are enough more than at the last fit to fit anew."""
        return self._theta is None or count >= self._next_fit

    def look_at(self, candidates: Floats) -> None:
        """Exchange the candidates; the next beliefs are about these."""
        self._candidates = candidates
        self._next_fit = 0

    def observe(self, observed: Floats, targets: Targets) -> None:
        """Learn ``targets`` at ``observed``, shape ``(told, coordinates)``; what continues the last is quick."""
        known = len(self._observed)
        if self.wants_fit(len(observed)) or not np.array_equal(observed[:known], self._observed):
            self._fit(observed, targets)
        else:
            for row in range(known, len(observed)):
                self._append(observed[row])
        self._targets = targets

    def beliefs(self, pending: Floats) -> Belief:
        """About all candidates, while results at ``pending``, shape ``(n, coordinates)``, are on their way."""
        return self._belief(self._solved[: len(self._observed)], self._explained, self._candidates, pending)

    def beliefs_at(self, points: Floats, pending: Floats) -> Belief:
        """About any points of the unit cube, shape ``(n, coordinates)``."""
        assert self._theta is not None
        n = len(self._observed)
        cross = self._covariance(self._observed, points, self._theta)
        solved = solve_triangular(self._factor[:n, :n], cross, lower=True, check_finite=False)
        return self._belief(solved.astype(np.float32), (solved**2).sum(0), points, pending)

    def _belief(self, solved: npt.NDArray[np.float32], explained: Floats, points: Floats, pending: Floats) -> Belief:
        assert self._theta is not None
        n, targets = len(self._observed), self._targets
        factor, scale = self._factor[:n, :n], math.exp(self._theta[-2])
        weights = solve_triangular(factor, targets.values, lower=True, check_finite=False)
        mean = (weights.astype(np.float32) @ solved).astype(np.float64)
        variance = np.maximum(scale - explained, 1e-10)
        if len(pending):  # they will tell about what is like them, whatever they tell
            alike = self._covariance(pending, points, self._theta) / scale
            variance = np.maximum(variance * (1 - alike**2).prod(0), 1e-10)
        works = np.ones(len(mean))
        if not targets.succeeded.all():
            share = float(targets.succeeded.mean())
            deviations = solve_triangular(factor, targets.succeeded - share, lower=True, check_finite=False)
            works = np.clip(share + deviations.astype(np.float32) @ solved, _LEAST_CHANCE, 1.0).astype(np.float64)
        return Belief(mean, np.sqrt(variance), works)

    def _covariance(self, a: Floats, b: Floats, theta: Floats) -> Floats:
        scale = np.exp(-theta[: self._dimensions])
        a, b = a * scale, b * scale
        squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T
        r = _ROOT5 * np.sqrt(np.maximum(squared, 0.0))
        covariance: Floats = math.exp(theta[-2]) * (1 + r + r * r / 3) * np.exp(-r)
        return covariance

    def _fit(self, observed: Floats, targets: Targets) -> None:
        self._theta = self._most_likely(observed, targets.values)
        self._fits += 1
        count = len(observed)
        noise = math.exp(self._theta[-1]) + _JITTER
        lower = cholesky(self._covariance(observed, observed, self._theta) + np.eye(count) * noise, lower=True)
        cross = self._covariance(observed, self._candidates, self._theta).astype(np.float32)
        capacity = count + max(_SPARE_ROWS, count // 3)
        self._factor = np.zeros((capacity, capacity))
        self._factor[:count, :count] = lower
        self._solved = np.empty((capacity, len(self._candidates)), np.float32)
        self._solved[:count] = solve_triangular(lower.astype(np.float32), cross, lower=True, check_finite=False)
        self._explained = np.einsum("ij,ij->j", self._solved[:count], self._solved[:count]).astype(np.float64)
        self._observed = observed
        self._next_fit = max(count + 2, math.ceil(count * 1.15))

    def _append(self, row: Floats) -> None:
        """One more observation: a row of the factor and of its solution for all candidates."""
        assert self._theta is not None
        n = len(self._observed)
        own = self._covariance(row[None], self._observed, self._theta)[0]
        left = solve_triangular(self._factor[:n, :n], own, lower=True, check_finite=False)
        noise = math.exp(self._theta[-1]) + _JITTER
        pivot = math.sqrt(max(math.exp(self._theta[-2]) + noise - float(left @ left), 1e-8))
        cross = self._covariance(row[None], self._candidates, self._theta)[0]
        solved = (cross - left.astype(np.float32) @ self._solved[:n]) / pivot
        self._factor[n, :n], self._factor[n, n] = left, pivot
        self._solved[n] = solved
        self._explained = self._explained + solved * solved
        self._observed = np.vstack([self._observed, row])

    def _most_likely(self, observed: Floats, values: Floats) -> Floats:
        """Log lengths, log variance and log noise of the highest posterior density."""
        if len(observed) > _MOST_FOR_LENGTHS:
            kept = np.linspace(0, len(observed) - 1, _MOST_FOR_LENGTHS).astype(int)
            kept = np.argsort(values, kind="stable")[kept]
            observed, values = observed[kept], values[kept]
        d, count = self._dimensions, len(observed)
        squares = ((observed[:, None, :] - observed[None, :, :]) ** 2).reshape(-1, d)
        identity = np.eye(count)

        def loss(theta: Floats) -> tuple[float, Floats]:
            inverse = np.exp(-2 * theta[:d])
            r = _ROOT5 * np.sqrt(np.maximum(squares @ inverse, 1e-18)).reshape(count, count)
            decay = math.exp(theta[d]) * np.exp(-r)
            kernel, noise = (1 + r + r * r / 3) * decay, math.exp(theta[d + 1])
            try:
                lower = cholesky(kernel + identity * (noise + _JITTER), lower=True, check_finite=False)
            except np.linalg.LinAlgError:
                return 1e9, np.zeros(d + 2)
            precision = cho_solve((lower, True), identity, check_finite=False)
            alpha = precision @ values
            weight = 0.5 * (precision - np.outer(alpha, alpha))
            slope = (weight * (5 / 3) * (1 + r) * decay).ravel()
            off = np.concatenate([theta[:d] - self._log_length, [theta[d], theta[d + 1] - math.log(_NOISE)]])
            gradient = off.copy()
            gradient[:d] += (slope @ squares) * inverse
            gradient[d] += (weight * kernel).sum()
            gradient[d + 1] += noise * np.trace(weight)
            return float(0.5 * values @ alpha + np.log(np.diag(lower)).sum() + 0.5 * off @ off), gradient

        fresh = np.concatenate([np.full(d, self._log_length), [0.0, math.log(_NOISE)]])
        quick = self._theta is not None and count > 40 and self._fits % 3 != 0
        starts = [fresh] if self._theta is None else [self._theta] if quick else [self._theta, fresh]
        bounds = [(-3.0, 4.0)] * d + [(-3.0, 3.0), _LOG_NOISE_BOUNDS]
        options = {"maxiter": 12 if quick else 25}
        ends = [minimize(loss, s, jac=True, method="L-BFGS-B", bounds=bounds, options=options) for s in starts]
        return np.asarray(min(ends, key=lambda e: float(e.fun)).x, np.float64)
