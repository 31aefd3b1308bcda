"""Ask and tell, and what Optuna's study keeps of it."""

import optuna
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from kernel_forge.domain.errors import UsageError
from kernel_forge.search import SAMPLERS, Search, SearchSpace, parameters_of


def space() -> SearchSpace:
    return SearchSpace.of(parameters_of({"BLOCK": (32, 64, 128), "VEC": (1, 2)}.items()))


def search(study: optuna.Study | None = None, **more: object) -> Search:
    return Search(space(), SAMPLERS["random"](space(), 0), study, **more)  # type: ignore[arg-type]


def test_the_study_records_configurations_times_and_failures() -> None:
    one = search()
    first, second = one.ask(), one.ask()
    assert first is not None and second is not None
    one.tell(second, 2.5)
    one.tell_failed(first, "does not compile")
    trials = one.study.trials
    assert [t.params for t in trials] == [dict(first.configuration), dict(second.configuration)]
    assert [t.state for t in trials] == [TrialState.FAIL, TrialState.COMPLETE]
    assert trials[0].user_attrs == {"failure": "does not compile"} and trials[1].value == 2.5
    assert one.best == (dict(second.configuration), 2.5)


def test_the_first_configurations_come_first_and_once() -> None:
    default, better = {"BLOCK": 64, "VEC": 1}, {"BLOCK": 128, "VEC": 2}
    one = search(first=[default, {"BLOCK": 96, "VEC": 1}, better, default])
    asked = []
    while (proposal := one.ask()) is not None:
        asked.append(dict(proposal.configuration))
        one.tell(proposal, 1.0)
    assert asked[:2] == [default, better]
    assert len(asked) == 6 and len({tuple(a.values()) for a in asked}) == 6


def test_a_search_goes_on_where_another_process_left_the_study() -> None:
    storage = InMemoryStorage()
    one = search(optuna.create_study(storage=storage, study_name="s"))
    done = one.ask()
    running = one.ask()
    assert done is not None and running is not None
    one.tell(done, 3.0)
    other = search(optuna.load_study(storage=storage, study_name="s"))
    asked = []
    while (proposal := other.ask()) is not None:
        asked.append(proposal.configuration)
        other.tell(proposal, 4.0)
    assert len(asked) == 4 and done.configuration not in asked and running.configuration not in asked
    assert other.best == (dict(done.configuration), 3.0)


def test_a_trial_that_was_stopped_early_counts_with_the_time_it_had_come_to() -> None:
    one = search()
    distributions = {p.name: optuna.distributions.CategoricalDistribution(p.values) for p in space().parameters}
    one.study.add_trial(
        optuna.create_trial(
            params={"BLOCK": 32, "VEC": 1},
            distributions=distributions,
            state=TrialState.PRUNED,
            intermediate_values={1: 9.0},
        )
    )
    proposal = one.ask()
    assert proposal is not None and proposal.configuration != {"BLOCK": 32, "VEC": 1}
    assert one._history.values.tolist() == [9.0]
    assert one.best is None  # it was not measured in full, so it cannot win


def test_trials_of_another_space_are_passed_over() -> None:
    one = search()
    one.study.add_trial(
        optuna.create_trial(
            params={"TILE": 8}, distributions={"TILE": optuna.distributions.CategoricalDistribution([8])}, value=0.1
        )
    )
    assert one.ask() is not None and one.best is None


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_what_is_no_time_is_refused(value: float) -> None:
    one = search()
    proposal = one.ask()
    assert proposal is not None
    with pytest.raises(UsageError, match="positive and finite"):
        one.tell(proposal, value)
    one.tell(proposal, 1.0)
