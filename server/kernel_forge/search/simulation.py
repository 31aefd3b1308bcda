"""Replayed searches: a sampler on a recorded space, where a trial costs nothing and the optimum is known."""

import time
from dataclasses import dataclass

import numpy as np

from kernel_forge.domain.recorded_space import RecordedSpace
from kernel_forge.search.parameters import parameters_of
from kernel_forge.search.samplers import SAMPLERS
from kernel_forge.search.space import SearchSpace
from kernel_forge.search.study import Search


@dataclass(frozen=True, slots=True)
class Replay:
    """One search.

    Attributes:
        times: what each evaluation gave in ms, None where it failed (which costs budget as well).
        overheads: ms that the search itself took for each evaluation, asking and telling.
    """

    times: tuple[float | None, ...]
    overheads: tuple[float, ...]

    def best_after(self, evaluations: int) -> float | None:
        """The best time of the first ``evaluations``; None where all of them failed."""
        return min((t for t in self.times[:evaluations] if t is not None), default=None)


@dataclass(frozen=True, slots=True)
class Simulation:
    """Several searches of one space by one sampler; fractions are optimum / best found, 0 where nothing worked."""

    optimum: float
    replays: tuple[Replay, ...]

    def fractions_after(self, evaluations: int) -> list[float]:
        """One per replay."""
        best = [r.best_after(evaluations) for r in self.replays]
        return [0.0 if b is None else self.optimum / b for b in best]

    @property
    def overhead(self) -> float:
        """The median overhead per evaluation in ms, over all replays."""
        return float(np.median(np.concatenate([r.overheads for r in self.replays])))


class ReplayedSpace:
    """A recorded space, ready to be searched many times."""

    def __init__(self, recorded: RecordedSpace) -> None:
        self.space = SearchSpace.listed(parameters_of(recorded.parameters), [t.configuration for t in recorded.trials])
        self._trials = {t.configuration: t for t in recorded.trials}
        self.optimum = min(t.time for t in recorded.trials if t.time is not None)
        self.failing = sum(t.time is None for t in recorded.trials)

    def simulate(self, sampler: str, budget: int, repeats: int, seed: int) -> Simulation:
        """``repeats`` searches, seeded ``seed``, ``seed + 1``, ...; each ends at ``budget`` or when all is tried."""
        return Simulation(self.optimum, tuple(self._replay(sampler, budget, seed + k) for k in range(repeats)))

    def _replay(self, sampler: str, budget: int, seed: int) -> Replay:
        times: list[float | None] = []
        overheads = []
        began = time.perf_counter()
        search = Search(self.space, SAMPLERS[sampler](self.space, seed))
        while len(times) < budget and (proposal := search.ask()) is not None:
            trial = self._trials[tuple(proposal.configuration.values())]
            if trial.time is None:
                search.tell_failed(proposal, trial.failure)
            else:
                search.tell(proposal, trial.time)
            times.append(trial.time)
            ended = time.perf_counter()
            overheads.append(1e3 * (ended - began))
            began = ended
        return Replay(tuple(times), tuple(overheads))
