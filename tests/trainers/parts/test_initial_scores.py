"""The private first guess: what it asks for, what that costs, and what it comes to."""

import math

import numpy as np
import pytest

from ledgerwood import Adjacency, Budget, Composed, EllipticalGaussianEvent, LaplaceEvent, Ledger, PrivacyUnit, Schema
from ledgerwood.curator import Curator, Numeric, Table
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter
from ledgerwood.mechanisms import SeededRandom
from ledgerwood.trainers.parts.initial_scores import COUNT_SHARE, InitialScore, mean_label

SCHEMA = Schema.uniform(0, 1, n_features=1, target=Numeric("y", -1, 1))


def score_of(kind, *, multiplier=2.0, adjacency=Adjacency.ADD_REMOVE, expected_rows=None):
    return InitialScore(kind=kind, adjacency=adjacency, multiplier=multiplier, expected_rows=expected_rows)


def guess(score, labels):
    table = Table.from_data(np.zeros((len(labels), 1)), labels, SCHEMA, loss="squared", bins=2)
    ledger = Ledger(Budget(epsilon=1e30, delta=0.1, adjacency=score.adjacency), unit=PrivacyUnit.ROW)
    grant = ledger.grant(Composed(score.events), purpose="test") if score.events else None
    return mean_label(score, Curator(table, grant, SeededRandom(2)))


def test_what_each_kind_releases():
    assert score_of("zero").events == ()
    (pair,) = score_of("moments").events
    assert isinstance(pair, EllipticalGaussianEvent)
    # The two shares of mu squared add up, so that the multiplier is the pair's.
    assert pair.noise_multiplier == pytest.approx(2.0, rel=1e-12)
    assert (1 / pair.stddevs[0]) ** 2 * 4 == pytest.approx(COUNT_SHARE, rel=1e-12)
    for event in score_of("laplace").events:
        assert event == LaplaceEvent(noise_multiplier=2.0, adjacency=Adjacency.ADD_REMOVE)
    assert len(score_of("laplace").events) == 2


def test_under_replace_one_a_label_moves_the_sum_by_two():
    one = {"adjacency": Adjacency.REPLACE_ONE}
    count, total = score_of("laplace", **one).events
    assert total == LaplaceEvent(noise_multiplier=2.0, adjacency=Adjacency.REPLACE_ONE)
    assert count.noise_multiplier == pytest.approx(4.0, rel=1e-12)
    (public,) = score_of("public_count", expected_rows=10, **one).events
    assert public == total
    (pair,) = score_of("moments", **one).events
    # The count may stand and the sum move by 2: its share of mu squared counts four times.
    assert pair.noise_multiplier == pytest.approx(2.0 / math.sqrt(4 * (1 - COUNT_SHARE)), rel=1e-12)


@pytest.mark.parametrize("kind", ["moments", "laplace", "public_count"])
def test_without_noise_it_is_the_mean_label(kind):
    adjacency = Adjacency.REPLACE_ONE if kind == "public_count" else Adjacency.ADD_REMOVE
    labels = np.random.default_rng(0).uniform(-0.2, 1, 500)
    score = score_of(kind, multiplier=1e-6, adjacency=adjacency, expected_rows=500)
    assert guess(score, labels) == pytest.approx(labels.mean(), abs=1e-5)


def test_where_noise_outweighs_the_rows_it_stays_within_the_range():
    for kind in ("moments", "laplace"):
        assert -1.0 <= guess(score_of(kind, multiplier=1e4), np.ones(3)) <= 1.0
    assert guess(score_of("zero"), np.ones(3)) == 0.0


def test_a_public_count_is_declared_and_needs_replace_one():
    with pytest.raises(AdjacencyMismatch, match="number of rows is private under zero-out"):
        score_of("public_count", adjacency=Adjacency.ZERO_OUT, expected_rows=10)
    with pytest.raises(InvalidParameter, match="expected_rows"):
        score_of("public_count", adjacency=Adjacency.REPLACE_ONE)
    with pytest.raises(InvalidParameter, match=r"initial_multiplier=0"):
        score_of("moments", multiplier=0.0)
