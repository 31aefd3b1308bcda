"""The models against closed forms and against data whose law is known."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from kernel_forge.search.acquisition import log_expected_improvement
from kernel_forge.search.forest import Forest
from kernel_forge.search.gaussian_process import GaussianProcess
from kernel_forge.search.parameters import Parameter
from kernel_forge.search.targets import targets_of

NOTHING = np.zeros((0, 2))


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (2.0, 0.5), (-1.0, 0.2), (1.0, 0.25)])
def test_expected_improvement_is_the_integral(mean: float, deviation: float) -> None:
    integral, _ = quad(lambda y: (0.5 - y) * norm.pdf(y, mean, deviation), mean - 9 * deviation, 0.5, epsabs=1e-14)
    found = log_expected_improvement(np.array([mean]), np.array([deviation]), 0.5)[0]
    assert found == pytest.approx(math.log(integral), rel=1e-6)


def test_expected_improvement_keeps_an_order_where_it_underflows() -> None:
    values = log_expected_improvement(np.array([5.0, 50.0, 500.0]), np.ones(3), 0.0)
    assert np.isfinite(values).all() and (np.diff(values) < 0).all()
    # log EI(u) -> -u^2/2 - log(sqrt(2 pi) u^2) for u -> -inf
    assert values[1] == pytest.approx(-1250 - math.log(math.sqrt(2 * math.pi) * 2500), abs=0.01)


def test_targets_keep_the_order_and_put_failures_among_the_poor() -> None:
    targets = targets_of(np.array([4.0, 1.0, np.nan, 2.0, 100.0]))
    assert targets.succeeded.tolist() == [True, True, False, True, True]
    assert np.argsort(targets.values[[1, 3, 0, 4]]).tolist() == [0, 1, 2, 3]
    assert targets.values[0] < targets.values[2] < targets.values[4]
    assert targets.values.mean() == pytest.approx(0) and targets.values.std() == pytest.approx(1)


def test_coordinates_by_hand() -> None:
    # ranks 0, 1/3, 2/3, 1; logarithms base 2 of 1, 2, 4, 16 are 0, 1/4, 1/2, 1 of the whole
    assert Parameter("a", (1, 2, 4, 16)).coordinates() == pytest.approx([0, 7 / 24, 7 / 12, 1])
    assert Parameter("a", (4, 1, 2)).coordinates() == pytest.approx([1, 0, 0.5])
    assert Parameter("a", ("row", "column", "none")).coordinates() == pytest.approx([0, 0.5, 1])


def test_the_process_interpolates_and_is_unsure_far_away() -> None:
    rng = np.random.default_rng(0)
    candidates = rng.random((400, 2))
    truth = np.exp(np.sin(4 * candidates[:, 0]) + candidates[:, 1])
    process = GaussianProcess(candidates)
    process.observe(candidates[:40], targets_of(truth[:40]))
    belief = process.beliefs(NOTHING)
    assert np.corrcoef(belief.mean[40:], np.log(truth[40:]))[0, 1] > 0.98
    assert belief.deviation[:40].max() < np.median(belief.deviation[40:])
    assert (belief.works == 1).all()


def test_one_observation_more_gives_what_all_at_once_give() -> None:
    rng = np.random.default_rng(1)
    candidates, values = rng.random((50, 2)), rng.random(50) + 1
    process = GaussianProcess(candidates)
    process.observe(candidates[:20], targets_of(values[:20]))
    assert not process.wants_fit(21)
    process.observe(candidates[:21], targets_of(values[:21]))
    grown, asked = process.beliefs(NOTHING), process.beliefs_at(candidates, NOTHING)
    # The textbook's formula with the same covariance (GPML 2.25, 2.26).
    theta = process._theta
    assert theta is not None
    cross = process._covariance(candidates[:21], candidates, theta)
    inner = process._covariance(candidates[:21], candidates[:21], theta)
    inner += np.eye(21) * (math.exp(theta[-1]) + 1e-6)
    mean = cross.T @ np.linalg.solve(inner, targets_of(values[:21]).values)
    variance = math.exp(theta[-2]) - (cross * np.linalg.solve(inner, cross)).sum(0)
    for belief in (grown, asked):
        assert belief.mean == pytest.approx(mean, abs=1e-3)
        assert belief.deviation**2 == pytest.approx(variance, abs=1e-3)


def test_the_process_learns_where_configurations_fail() -> None:
    rng = np.random.default_rng(2)
    candidates = rng.random((300, 2))
    values = np.where(candidates[:, 0] > 0.5, np.nan, 1 + candidates[:, 1])
    process = GaussianProcess(candidates)
    process.observe(candidates[:60], targets_of(values[:60]))
    works = process.beliefs(NOTHING).works[60:]
    fails = np.isnan(values[60:])
    assert works[~fails].mean() > 0.8 and works[fails].mean() < 0.25


def test_what_is_pending_is_no_longer_uncertain() -> None:
    rng = np.random.default_rng(3)
    candidates = rng.random((100, 2))
    process = GaussianProcess(candidates)
    process.observe(candidates[:10], targets_of(rng.random(10) + 1))
    before, after = process.beliefs(NOTHING), process.beliefs(candidates[50:51])
    assert after.deviation[50] < 0.01 * before.deviation[50] and (after.deviation <= before.deviation).all()
    assert (after.mean == before.mean).all()


def test_trees_learn_a_step_and_an_interaction() -> None:
    rng = np.random.default_rng(4)
    features = rng.integers(0, 8, (600, 6)).astype(np.float32)
    values = np.where(features[:, 0] > 3, 5.0, 0.0) + features[:, 1] * (features[:, 2] > 2)
    forest = Forest(features[:300], values[:300], rng)
    said = forest.predict(features[300:])
    assert said.shape == (16, 300)
    assert np.corrcoef(said.mean(0), values[300:])[0, 1] > 0.9


def test_trees_of_one_value_say_that_value() -> None:
    features = np.arange(10, dtype=np.float32)[:, None]
    assert (Forest(features, np.full(10, 3.0), np.random.default_rng(0)).predict(features) == 3.0).all()
    assert (Forest(features[:1], np.array([2.0]), np.random.default_rng(0)).predict(features) == 2.0).all()
