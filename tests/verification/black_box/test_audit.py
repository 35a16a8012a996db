"""What must be caught and what must not be accused, small; the tables of benchmarks/auditing are larger."""

import json
import math

import numpy as np
import pytest

from ledgerwood import Adjacency, Budget, GaussianEvent, LaplaceEvent
from ledgerwood.accounting.costs import gdp
from ledgerwood.verification import audit

A = Adjacency.ADD_REMOVE
ONE = Budget(epsilon=1.0, delta=0.0, adjacency=A)
SIGMA = 3.7306
"""Normal noise for epsilon 1 at delta 1e-5."""


def laplace(scale):
    return lambda dataset, n, rng: dataset + rng.laplace(scale=scale, size=n)


def normal(stddev):
    return lambda dataset, n, rng: dataset + rng.normal(scale=stddev, size=n)


def run(sampler, claim=ONE, pair=(0.0, 1.0), seed=0, n=20_000, **named):
    return audit(sampler, pair, claim=claim, n=n, rng=np.random.default_rng([6, seed]), **named)


def test_half_the_noise_is_caught_and_bounded():
    found = run(laplace(0.5))
    assert found.rejected
    assert 1.85 < found.epsilon_lower < 2.05
    assert found.assumption == "none"
    assert found.claimed_epsilon == 1.0
    assert found.needed == 10  # (e / (1 + e))^10 = .0437
    assert json.loads(json.dumps(found.to_dict()))["rejected"] is True


@pytest.mark.slow_after(1)  # many audits
@pytest.mark.parametrize(
    "claim", [LaplaceEvent(noise_multiplier=1.0, adjacency=A), lambda e: max(0.0, -math.expm1((e - 1) / 2))]
)
def test_an_event_or_a_curve_is_tested_at_one_of_its_points(claim):
    assert run(laplace(0.7), claim).rejected
    found = run(laplace(1.0), claim)
    assert not found.rejected
    assert found.delta == 0.0
    assert 0.85 < found.epsilon_lower < 1.05


@pytest.mark.slow  # many audits
def test_normal_noise_is_bounded_by_its_whole_curve_and_says_on_what_that_rests():
    claim = GaussianEvent(noise_multiplier=SIGMA, adjacency=A)
    found = run(normal(SIGMA), claim)
    assert not found.rejected
    assert found.assumption == "the claim's family"
    assert 0.8 < found.epsilon_lower < 1.08
    plain = found.bounds[1]
    assert plain.assumption == "none"
    assert plain.value < 0.9
    broken = run(normal(SIGMA / 1.3), claim)
    assert broken.rejected
    assert 1.15 < broken.epsilon_lower < gdp.epsilon(1.3 / SIGMA, 1e-5) + 0.1


@pytest.mark.slow  # many audits
def test_bits_are_seen_only_if_asked_for():
    assert not run(laplace(1.0)).rejected
    found = run(laplace(1.0), numeric="bitwise")
    assert found.rejected
    assert found.epsilon_lower > 6.0
    rounded = run(lambda d, n, rng: np.round((d + rng.laplace(size=n)) * 2.0**30) / 2.0**30, numeric="bitwise")
    assert not rounded.rejected


def test_not_a_number_is_an_outcome():
    found = run(lambda d, n, rng: np.where(np.isnan(d), math.nan, d) + rng.laplace(size=n), pair=(0.0, math.nan))
    assert found.rejected
    assert found.epsilon_lower > 7.0


@pytest.mark.slow  # many audits
def test_patterns_and_a_number_that_is_released_with_them():
    """Sparse vector that releases the answer it compared (Lyu et al. 2017, Algorithm 3), at ten queries."""

    def sparse(dataset, n, rng):
        answers = dataset + rng.laplace(scale=2.0, size=(n, 10))
        above = answers >= rng.laplace(scale=2.0, size=(n, 1))
        first = np.where(above.any(axis=1), above.argmax(axis=1), 10)
        outputs = np.full((n, 10), math.nan)
        outputs[np.arange(10) < first[:, None]] = -1000.0
        rows = np.flatnonzero(first < 10)
        outputs[rows, first[rows]] = answers[rows, first[rows]]
        return outputs

    pair = (np.array([0.0] * 9 + [1.0]), np.array([1.0] * 9 + [0.0]))
    found = run(sparse, pair=pair)
    assert found.rejected
    assert found.epsilon_lower > 1.2


@pytest.mark.slow  # many audits
def test_light_learners_need_no_trees():
    found = run(lambda d, n, rng: d + rng.laplace(size=(n, 2)), learners="light")
    assert found.rejected
    assert 1.7 < found.epsilon_lower < 2.1


def test_the_best_of_some_pairs_is_found():
    found = audit(
        laplace(1.0), pairs=[(0.0, 0.1), (0.0, 1.0), (0.0, 0.5)], claim=ONE, n=5000, rng=np.random.default_rng(8)
    )
    assert found.pair == (0.0, 1.0)


@pytest.mark.slow  # many audits
def test_patterns_of_answers_are_searched_where_no_pair_is_given():
    """Noisy maximum that returns its value: one length only, others raise on both data sets."""

    def largest(dataset, n, rng):
        if dataset.size != 5:
            raise ValueError("five answers")
        return (dataset + rng.laplace(scale=2.0, size=(n, 5))).max(axis=1)

    found = audit(largest, claim=ONE, n=20_000, rng=np.random.default_rng(8))
    assert found.rejected
    assert np.abs(found.pair[0] - found.pair[1]).max() == 1.0


def test_a_breach_is_found_early_and_a_right_mechanism_is_heard_to_the_end():
    found = run(laplace(0.4), stop="rejected")
    assert found.rejected
    assert found.bounds[0].samples < 2000
    assert found.scores is None  # bands of a ROC need a number of scores that is fixed
    right = run(laplace(1.0), stop="rejected")
    assert not right.rejected
    assert right.bounds[0].samples == 100_000  # five times n
    assert right.scores is not None
    event = run(normal(SIGMA / 3), GaussianEvent(noise_multiplier=SIGMA, adjacency=A), stop="rejected")
    assert event.rejected
    assert event.assumption == "the claim's family"


def test_a_delta_other_than_the_budget_s_still_tests_the_budget():
    found = run(laplace(0.4), delta=1e-3)
    assert found.rejected
    assert found.delta == 1e-3


def _accused(claim, sampler, runs, **named):
    return sum(run(sampler, claim, seed=seed, n=300, alpha=0.05, **named).rejected for seed in range(runs))


@pytest.mark.slow  # a rate of error needs many audits
@pytest.mark.parametrize(
    ("claim", "sampler"),
    [
        (ONE, laplace(1.0)),
        (LaplaceEvent(noise_multiplier=1.0, adjacency=A), laplace(1.0)),
        (GaussianEvent(noise_multiplier=1.0, adjacency=A), normal(1.0)),
        (Budget(epsilon=1.0, delta=0.1269, adjacency=A), normal(1.0)),  # delta(1) of mu 1: .12694
    ],
)
def test_a_mechanism_that_just_keeps_its_claim_is_rarely_accused(claim, sampler):
    """At most 5 % of 50 small audits, and four standard deviations: 2.5 + 4 sqrt(50 * .05 * .95) = 8.7."""
    assert _accused(claim, sampler, 50) <= 8


@pytest.mark.slow  # a rate of error needs many audits
def test_early_stopping_keeps_its_level():
    assert _accused(ONE, laplace(1.0), 50, stop="rejected") <= 8  # as above
