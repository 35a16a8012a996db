"""Filtered rounds: against an adversary who picks each query by what came before, no row goes beyond its limit.

What a row changes is measured, not recomputed: the same rounds over the table with the row and without it; the
difference of their exact statistics is the row's whole influence, and its exact cost is summed in fractions.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import ledgerwood as lw
from ledgerwood.accounting.individuals import FULL, LIMIT_SLACK, row_costs
from ledgerwood.curator import (
    Curator,
    LabelMoments,
    LeafCurvatures,
    LeafMoments,
    LeafRatios,
    RowVault,
    StreamCurator,
    StreamRows,
)
from ledgerwood.curator.filtered import FilteredRounds, _stddevs, charge_weights
from ledgerwood.curator.inputs.values import read_keys
from ledgerwood.curator.tables.trees import Table
from ledgerwood.curator.views.tree_rows import RowBudgets
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation
from ledgerwood.mechanisms import EllipticalGaussianMechanism, GaussianMechanism, LaplaceMechanism, SeededRandom

A = lw.Adjacency.ADD_REMOVE
STEP = Fraction(1, 2**20)
STUMP = TreeStructure(feature=np.array([0], np.int32), split=np.array([4], np.uint16), equals=np.array([False]))
ROOT = TreeStructure(feature=np.zeros(0, np.int32), split=np.zeros(0, np.uint16), equals=np.zeros(0, np.bool_))
START = Ensemble(initial_score=0.0)
EVERYONE = np.empty(0, np.bool_)
SCHEMA = lw.Schema.uniform(0.0, 1.0, n_features=1, target=lw.Numeric("y", -1.0, 1.0))


def table_of(cells, targets, weights=()):
    return Table(
        schema=SCHEMA,
        cells=np.array([cells], np.uint8),
        targets=np.array(targets, float),
        weights=np.array(weights, np.int32),
    )


def moments(structure=STUMP, ensemble=START, clip=0.5, loss="squared", large="clip"):
    return LeafMoments(loss=loss, clip=clip, large_gradients=large).of(structure, ensemble)


def rounds_of(mechanism, query, rounds, rate=1.0, order=6.0):
    """The event of a filter whose limit is so many rounds of the dearest row."""
    one = mechanism.event(query.sensitivity(A), A)
    if rate == 1.0:
        mu = one.mu() * rounds**0.5 * (1.0 + LIMIT_SLACK)
        return lw.FilteredEvent(one, limit=lw.GDPEvent(mu=mu, adjacency=A))
    one = lw.PoissonSampled(one, sampling_rate=rate)
    lost = float(one.renyi([order])[0]) * rounds * (1.0 + LIMIT_SLACK)
    return lw.FilteredEvent(one, limit=lw.RenyiEvent(orders=(order,), divergences=(lost,), adjacency=A))


def budgets_of(event, mechanism, query, n_rows):
    left = np.full(n_rows, FULL, np.int64)
    return RowBudgets(left, row_costs(event), charge_weights(mechanism, query.grid, event.release))


def opened(event, table, seed=1):
    ledger = lw.Ledger(lw.Budget(epsilon=1e8, delta=1e-3, adjacency=A), unit=lw.PrivacyUnit.ROW)
    return Curator(table, ledger.grant(event, purpose="test"), SeededRandom(seed)).open(event, purpose="rounds"), ledger


class Adversary(RuleBasedStateMachine):
    """Picks trees and ensembles freely between rounds, to make the watched row lose more than its limit."""

    @initialize(
        label=st.floats(-1.0, 1.0),
        cell=st.integers(0, 7),
        clip=st.sampled_from([0.25, 0.5, 1.0]),
        count_share=st.floats(0.02, 0.9),
        rounds=st.integers(1, 6),
        logistic=st.booleans(),
        large=st.sampled_from(["clip", "drop"]),
        weight=st.none() | st.sampled_from([0, 2**19, 2**20]) | st.integers(0, 2**20),
    )
    def start(self, label, cell, clip, count_share, rounds, logistic, large, weight):
        self.logistic, self.clip, self.large = logistic, clip, large
        others = [(0, 0.5), (7, -1.0), (3, 1.0)]
        label = (1.0 if label > 0 else -1.0) if logistic else label
        with_row = [*others, (cell, label)]
        if weight is not None:
            weights = (2**20, 77, 2**18, weight)
            others, with_row = ([(*row, w) for row, w in zip(rows, weights)] for rows in (others, with_row))  # noqa: B905
        self.tables = [table_of(*zip(*rows, strict=True)) for rows in (with_row, others)]
        noise = 3.0 * clip
        if logistic:
            self.mechanism = GaussianMechanism(stddev=noise)
        else:
            self.mechanism = EllipticalGaussianMechanism(
                stddevs=(3.0 / count_share**0.5, noise / (1.0 - count_share) ** 0.5)
            )
        self.event = rounds_of(self.mechanism, self.query(ROOT, START), rounds)
        self.budgets = [
            budgets_of(self.event, self.mechanism, self.query(ROOT, START), len(r)) for r in (with_row, others)
        ]
        self.ensemble = START
        self.lost = Fraction(0)

    def query(self, structure, ensemble):
        if self.logistic:
            return LeafCurvatures(clip=self.clip, large_gradients=self.large).of(structure, ensemble)
        return moments(structure, ensemble, self.clip, large=self.large)

    @rule(structure=st.sampled_from([ROOT, STUMP]))
    def a_round(self, structure):
        query = self.query(structure, self.ensemble)
        pairs = zip(self.tables, self.budgets, strict=True)
        with_row, without = (table.statistic(query, EVERYONE, budgets) for table, budgets in pairs)
        squares = ((with_row - without).astype(object) ** 2).sum(axis=0)  # the row is in one leaf
        stddevs = _stddevs(self.mechanism, query.grid)
        self.lost += sum(
            Fraction(int(square)) * (STEP / Fraction(s)) ** 2 for square, s in zip(squares, stddevs, strict=True)
        )
        np.testing.assert_array_equal(self.budgets[0].left[:3], self.budgets[1].left)

    @rule(value=st.floats(-2.0, 2.0), left=st.booleans())
    def a_tree(self, value, left):
        values = np.array([value, 0.0] if left else [0.0, value])
        self.ensemble = self.ensemble.extended(Tree(structure=STUMP, values=values))

    @rule()
    def start_over(self):
        self.ensemble = START

    @invariant()
    def nobody_loses_more_than_the_limit(self):
        if hasattr(self, "lost"):
            assert self.lost <= Fraction(self.event.limit.mu()) ** 2
            assert all((budgets.left >= 0).all() for budgets in self.budgets)


TestAdversary = pytest.mark.slow(Adversary.TestCase)  # any sequence of rounds


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_under_sampling_the_divergences_of_the_rows_own_events_stay_within_the_limit(rate):
    """Every row is charged the sampled curve, drawn or not, and takes part while its own costs allow it."""
    generator = np.random.default_rng(7)
    mechanism, order, few = EllipticalGaussianMechanism(stddevs=(30.0, 4.0)), 6.0, 5
    event = rounds_of(mechanism, moments(), few, rate, order)
    targets = np.array([0.0, 0.1, 0.3, 0.5, -1.0])
    table, budgets = table_of([0] * 5, targets), budgets_of(event, mechanism, moments(), 5)
    lost = np.zeros(5)
    for _ in range(60):
        ensemble = Ensemble(initial_score=float(generator.uniform(-0.3, 0.3)))
        before = budgets.left.copy()
        table.statistic(moments(ensemble=ensemble), generator.random(5) < rate, budgets)
        paid = budgets.left < before
        gradient = np.minimum(np.abs(ensemble.initial_score - targets), 0.5)
        for row in np.flatnonzero(paid):
            own = lw.EllipticalGaussianEvent(
                sensitivities=(1.0, float(gradient[row])), stddevs=mechanism.stddevs, adjacency=A
            )
            lost[row] += lw.PoissonSampled(own, sampling_rate=rate).renyi([order])[0]
    limit = event.limit.divergences[0]
    assert (lost <= limit * (1 + 1e-12)).all()
    assert (lost >= limit * 0.75).all()  # all ran out: the next round of each would not have fitted


def test_a_row_at_the_clip_takes_part_in_as_many_rounds_as_the_limit_was_made_for():
    mechanism = EllipticalGaussianMechanism(stddevs=(10.0, 1.0))
    event = rounds_of(mechanism, moments(), 9)
    table, budgets = table_of([0, 0], [1.0, 0.0]), budgets_of(event, mechanism, moments(), 2)
    rows = [int(table.statistic(moments(), EVERYONE, budgets)[0, 0]) // 2**20 for _ in range(40)]
    # The second row has gradient 0 and pays for its count alone: 1/100 beside 1/100 + 1/4, 234 rounds.
    assert rows == [2] * 9 + [1] * 31
    assert budgets.left[0] < FULL // 9


def test_a_row_that_does_not_fit_now_may_fit_later():
    mechanism = EllipticalGaussianMechanism(stddevs=(10.0, 1.0))
    event = rounds_of(mechanism, moments(), 1)
    table, budgets = table_of([0], [0.4]), budgets_of(event, mechanism, moments(), 1)

    def takes_part(score):
        return bool(table.statistic(moments(ensemble=Ensemble(initial_score=score)), EVERYONE, budgets).any())

    assert takes_part(0.0)  # gradient -.4: costs .17 of .26
    assert not takes_part(0.0)
    assert takes_part(0.35)  # gradient -.05


def test_a_row_that_is_invalid_or_dropped_contributes_and_pays_nothing():
    mechanism = EllipticalGaussianMechanism(stddevs=(10.0, 1.0))
    event = rounds_of(mechanism, moments(), 3)
    table, budgets = table_of([0, 0, 0], [np.nan, 0.9, 0.3]), budgets_of(event, mechanism, moments(), 3)
    assert table.statistic(moments(large="drop"), EVERYONE, budgets)[0, 0] == 2**20
    assert (budgets.left == FULL).tolist() == [True, True, False]


def test_the_released_sums_are_those_of_the_rows_that_can_pay():
    mechanism = EllipticalGaussianMechanism(stddevs=(0.5, 0.05))
    event = rounds_of(mechanism, moments(), 2)
    rounds, ledger = opened(event, table_of([0] * 100 + [7] * 100, [1.0] * 100 + [0.0] * 100))
    with rounds:
        found = [rounds.release(moments(), mechanism, purpose="round").real for _ in range(3)]
    np.testing.assert_allclose(found[1], [[100, -50], [100, 0]], atol=4)
    np.testing.assert_allclose(found[2], [[0, 0], [100, 0]], atol=4)
    assert [type(entry).__name__ for entry in ledger.entries] == ["OpenEntry", "GrantEntry", "DrawEntry"]
    with pytest.raises(RoundViolation, match="closed"):
        rounds.release(moments(), mechanism, purpose="late")


def test_each_release_draws_a_sample_of_its_own():
    mechanism = EllipticalGaussianMechanism(stddevs=(0.01, 0.01))
    event = rounds_of(mechanism, moments(), 50, rate=0.5)
    rounds, _ = opened(event, table_of([0] * 400, [0.0] * 400))
    counts = [rounds.release(moments(), mechanism, purpose="round").real[0, 0] for _ in range(10)]
    assert len({round(count) for count in counts}) > 3
    assert all(140 < count < 260 for count in counts)


@pytest.mark.parametrize(
    ("query", "mechanism", "says"),
    [
        (LabelMoments(), EllipticalGaussianMechanism(stddevs=(10.0, 1.0)), "not a sum over rows"),
        (
            LeafRatios(loss="squared", clip=0.5, damping=5.0).of(STUMP, START),
            GaussianMechanism(stddev=1.0),
            "depends on the other rows",
        ),
        (moments(), LaplaceMechanism(scales=(1.0, 1.0)), "not Gaussian noise"),
        (moments(), EllipticalGaussianMechanism(stddevs=(10.0, 1.1)), "this draw filters"),
        (moments(clip=0.6), EllipticalGaussianMechanism(stddevs=(10.0, 1.0)), "this draw filters"),
    ],
)
def test_a_release_of_another_kind_is_refused_and_charges_nobody(query, mechanism, says):
    event = rounds_of(EllipticalGaussianMechanism(stddevs=(10.0, 1.0)), moments(), 3)
    rounds, _ = opened(event, table_of([0], [1.0]))
    with pytest.raises(RoundViolation, match=says):
        rounds.release(query, mechanism, purpose="other")
    assert (rounds._left == FULL).all()


def test_a_foreign_mechanism_is_refused_and_charges_nobody():
    class Quiet(EllipticalGaussianMechanism):
        """States the filtered event and adds no noise."""

        def randomise(self, statistic, grid, source):
            return statistic

    event = rounds_of(EllipticalGaussianMechanism(stddevs=(10.0, 1.0)), moments(), 3)
    rounds, _ = opened(event, table_of([0], [1.0]))
    with pytest.raises(RoundViolation, match="Quiet is not Gaussian noise"):
        rounds.release(moments(), Quiet(stddevs=(10.0, 1.0)), purpose="quiet")
    assert (rounds._left == FULL).all()


def test_an_order_without_a_table_of_costs_is_refused_before_the_draw():
    one = lw.PoissonSampled(lw.GaussianEvent(noise_multiplier=10.0, adjacency=A), sampling_rate=0.1)
    limit = lw.RenyiEvent(orders=(2.0**21,), divergences=(1.0,), adjacency=A)
    event = lw.FilteredEvent(one, limit=limit)
    ledger = lw.Ledger(lw.Budget(epsilon=9.0, delta=1e-3, adjacency=A), unit=lw.PrivacyUnit.ROW)
    grant, table = ledger.grant(event, purpose="test"), table_of([0], [1.0])
    rows = StreamRows(table, read_keys([1], 1), RowVault())
    for curator in (Curator(table, grant, SeededRandom(1)), StreamCurator(rows, grant, SeededRandom(1))):
        with pytest.raises(InvalidParameter, match=r"2\^20"):
            curator.open(event, purpose="rounds")
    assert grant.remaining[event] == 1


def test_rounds_go_on_from_what_rows_have_left():
    mechanism = EllipticalGaussianMechanism(stddevs=(0.5, 0.05))
    event = rounds_of(mechanism, moments(), 4)
    table, left = table_of([0] * 10, [1.0] * 10), np.array([0] * 5 + [FULL] * 5, np.int64)
    ledger = lw.Ledger(lw.Budget(epsilon=1e8, delta=1e-3, adjacency=A), unit=lw.PrivacyUnit.ROW)
    receipt = ledger.grant(event, purpose="test").draw(event, purpose="test", randomness="test")
    rounds = FilteredRounds(table, event, row_costs(event), receipt, SeededRandom(3), left)
    assert rounds.release(moments(), mechanism, purpose="round").real[0, 0] == pytest.approx(5, abs=3)
    assert (left[:5] == 0).all()
    assert (left[5:] < FULL).all()
