"""Ask and tell over an Optuna study, which is what records trials: in memory, or in a storage that others share."""

import contextlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import optuna
import threadpoolctl
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from kernel_forge.domain.errors import UsageError
from kernel_forge.search.history import History
from kernel_forge.search.parameters import Value
from kernel_forge.search.sampler import Sampler
from kernel_forge.search.samplers import SAMPLERS
from kernel_forge.search.space import SearchSpace

optuna.logging.set_verbosity(optuna.logging.WARNING)

FAILURE = "failure"
"""The user attribute of a failed trial that says why."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A configuration to try; ``number`` is the trial's in the study."""

    number: int
    configuration: Mapping[str, Value]


class Search:
    """One search of one space for the smallest time.

    ``first`` are configurations to try before the sampler is asked (prior knowledge, the defaults of the source), in
    order; those that are not valid, or were tried, are passed over. ``study`` may have trials already, of this or of
    other processes: they are part of the history, running ones as pending. Two processes that ask in the same instant
    may get the same configuration.
    """

    def __init__(
        self,
        space: SearchSpace,
        sampler: Sampler,
        study: Study | None = None,
        first: Iterable[Mapping[str, Value]] = (),
    ) -> None:
        self.space = space
        self._sampler = sampler
        self._relay = _Relay()
        self.study = study if study is not None else optuna.create_study(direction="minimize")
        self.study.sampler = self._relay
        self._distributions: dict[str, BaseDistribution] = {
            p.name: CategoricalDistribution(p.values) for p in space.parameters
        }
        self._first = [index for index in map(space.index_of, first) if index is not None]
        self._history = History()
        self._finished = 0
        self._told: set[int] = set()
        self._open: dict[int, Trial] = {}

    def ask(self) -> Proposal | None:
        """The next configuration; None when every valid one was tried or is being tried."""
        self._read_study()
        index = next((i for i in self._first if i not in self._history), None)
        if index is None:
            with _one_thread():
                index = self._sampler.propose(self._history)
        if index is None:
            return None
        configuration = self.space.configuration(index)
        self._relay.configuration = configuration
        trial = self.study.ask(self._distributions)
        self._open[trial.number] = trial
        self._history.ask(index)
        return Proposal(trial.number, configuration)

    def tell(self, proposal: Proposal, value: float) -> None:
        """The time of a proposal (any unit, the same for all; an energy serves as well).

        Raises:
            UsageError: not a positive finite number.
            KeyError: not a proposal of this search, or told before.
        """
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"a time is positive and finite, not {value!r}")
        self.study.tell(self._open.pop(proposal.number), value)

    def tell_failed(self, proposal: Proposal, reason: str) -> None:
        """A proposal that does not compile, does not run or computes something wrong. It never wins."""
        trial = self._open.pop(proposal.number)
        trial.set_user_attr(FAILURE, reason)
        self.study.tell(trial, state=TrialState.FAIL)

    def recall(self, configuration: Mapping[str, Value], value: float | None) -> None:
        """Take over a trial that was made before, with its time, or None where it failed.

        One of a configuration that is not valid here is passed over.
        """
        if self.space.index_of(configuration) is None:
            return
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        trial = optuna.trial.create_trial(
            params=dict(configuration), distributions=self._distributions, value=value, state=state
        )
        self.study.add_trial(trial)

    @property
    def best(self) -> tuple[Mapping[str, Value], float] | None:
        """The configuration with the smallest time and that time; None before there is one."""
        complete = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        valued = [t for t in complete if t.value is not None and self.space.index_of(t.params) is not None]
        if not valued:
            return None
        trial = min(valued, key=lambda t: (t.value, t.number))
        assert trial.value is not None
        return trial.params, trial.value

    def _read_study(self) -> None:
        """Bring the history up to date, in the order of the trials' numbers."""
        trials = self.study.get_trials(deepcopy=False)
        for trial in trials[self._finished :]:
            if trial.number in self._told:
                continue
            index = self.space.index_of(trial.params)
            if trial.state.is_finished():
                self._told.add(trial.number)
                if index is not None:
                    self._history.tell(index, _value(trial))
            elif index is not None and index not in self._history:
                self._history.ask(index)
        while self._finished in self._told:
            self._told.remove(self._finished)
            self._finished += 1


def begin_search(space: SearchSpace, sampler: str, seed: int, first: Iterable[Mapping[str, Value]] = ()) -> Search:
    """A search of a space by the sampler of a name.

    Raises:
        UsageError: there is no such sampler.
    """
    if sampler not in SAMPLERS:
        raise UsageError(f"there is no sampler {sampler} (samplers: {', '.join(SAMPLERS)})")
    return Search(space, SAMPLERS[sampler](space, seed), first=first)


@cache
def _libraries() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()


def _one_thread() -> contextlib.AbstractContextManager[object]:
    """Linear algebra of some hundred rows gains nothing from threads, and waits for all of them where compilers hold
    the CPUs."""
    limited: contextlib.AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


def _value(trial: FrozenTrial) -> float | None:
    """A trial's time; of one that was stopped early, the time it had come to; None where it failed."""
    value = None if trial.state is TrialState.FAIL else trial.value
    if value is None and trial.state is TrialState.PRUNED and trial.last_step is not None:
        value = trial.intermediate_values[trial.last_step]
    return value if value is not None and math.isfinite(value) and value > 0 else None


class _Relay(BaseSampler):
    """Hands the chosen configuration to Optuna."""

    def __init__(self) -> None:
        self.configuration: Mapping[str, Value] = {}

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Everything is decided in :meth:`sample_independent`."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Nothing."""
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Value:
        """The value of one parameter."""
        return self.configuration[param_name]
