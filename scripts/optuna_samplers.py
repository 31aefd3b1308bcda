"""Optuna's own samplers on a recorded space, for ``measure_search.py``: what somebody gets who wires Optuna up plainly.

Mappings, each the better one of those that ``shared/notes/search.md`` measured:

- ``tpe``, ``tpe-univariate``, ``random``: every parameter categorical; what restrictions rule out is told as pruned.
- ``nsga2``: categorical, a population of 20 (the default of 50 is a whole budget); what does not work has a huge time.
- ``qmc``: ordinal, since its sequence is one of numbers; the nearest untried valid configuration serves.

As in Kernel Tuner's simulation a failed launch costs budget; what is not valid, and a configuration proposed again, do
not. ``tpe-univariate`` proposes the same ones over and over, which is slow: it runs only when asked for. The GP sampler
needs PyTorch and CMA-ES the package cmaes, which this measurement does without.
"""

import warnings

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import Trial, TrialState

from kernel_forge.domain.recorded_space import RecordedSpace

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)

NAMES = ("tpe", "nsga2", "qmc", "random")
_ASKS_PER_EVALUATION = 20
_PENALTY = 1e9


class OptunaOnRecorded:
    """One recorded space, to be searched by Optuna's samplers."""

    def __init__(self, recorded: RecordedSpace) -> None:
        values = [listed for _, listed in recorded.parameters]
        place = [{v: k for k, v in enumerate(listed)} for listed in values]
        self._names = [name for name, listed in recorded.parameters if len(listed) > 1]
        varied = [k for k, listed in enumerate(values) if len(listed) > 1]
        self._lengths = np.array([len(values[k]) for k in varied])
        self._times = {tuple(place[k][t.configuration[k]] for k in varied): t.time for t in recorded.trials}
        self._valid = np.array(list(self._times))

    def best(self, name: str, budgets: list[int], seed: int) -> dict[int, float | None]:
        """The best time within each budget; None where nothing worked."""
        study = optuna.create_study(sampler=_sampler(name, seed))
        distributions: dict[str, BaseDistribution] = {
            p: IntDistribution(0, int(n) - 1) if name == "qmc" else CategoricalDistribution(range(int(n)))
            for p, n in zip(self._names, self._lengths, strict=True)
        }
        seen: dict[tuple[int, ...], float | None] = {}
        free = np.ones(len(self._valid), bool)
        most = min(max(budgets), len(self._valid))
        for _ in range(_ASKS_PER_EVALUATION * max(budgets)):
            if len(seen) >= most:
                break
            trial = study.ask(distributions)
            key = tuple(trial.params[p] for p in self._names)
            if name == "qmc":
                key = self._nearest(key, free)
            if key in self._times:
                seen[key] = self._times[key]
            _tell(study, trial, self._times.get(key), penalise=name == "nsga2")
        times = list(seen.values())
        return {b: min((t for t in times[:b] if t is not None), default=None) for b in budgets}

    def _nearest(self, key: tuple[int, ...], free: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> tuple[int, ...]:
        distance = (np.abs(self._valid - np.array(key)) / (self._lengths - 1)).sum(1)
        nearest = int(np.argmin(np.where(free, distance, np.inf)))
        free[nearest] = False
        return tuple(self._valid[nearest].tolist())


def _tell(study: optuna.Study, trial: Trial, time: float | None, penalise: bool) -> None:
    if time is not None:
        study.tell(trial, time)
    elif penalise:
        study.tell(trial, _PENALTY)
    else:
        study.tell(trial, state=TrialState.PRUNED)


def _sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    match name:
        case "tpe":
            return optuna.samplers.TPESampler(seed=seed)
        case "tpe-univariate":
            return optuna.samplers.TPESampler(seed=seed, multivariate=False)
        case "nsga2":
            return optuna.samplers.NSGAIISampler(seed=seed, population_size=20)
        case "qmc":
            return optuna.samplers.QMCSampler(seed=seed, scramble=True)
        case "random":
            return optuna.samplers.RandomSampler(seed=seed)
    raise SystemExit(f"unknown Optuna sampler {name}")
