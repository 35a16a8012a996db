"""Curator and round: what was not granted is not read, what was not drawn is not released, and randomness shows."""

import math
import os
import threading

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Composed, GaussianEvent, Ledger, Numeric, PoissonSampled, PrivacyUnit, Schema
from ledgerwood.curator import Curator, LabelCount, LabelMoments, LabelSum, LeafMoments, Table
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import DrawRefused, RoundViolation, UnsupportedEvent
from ledgerwood.mechanisms import (
    EllipticalGaussianMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    SecureRandom,
    SeededRandom,
)

A = Adjacency.ADD_REMOVE
SCHEMA = Schema.uniform(0.0, 1.0, n_features=2, target=Numeric("y", -1.0, 1.0))
PAIR = EllipticalGaussianMechanism(stddevs=(2.0, 2.0))
PAIR_EVENT = PAIR.event(LabelMoments().sensitivity(A), A)
COUNT = LaplaceMechanism(scales=(3.0,))
COUNT_EVENT = COUNT.event(LabelCount().sensitivity(A), A)
ONE_LEAF = TreeStructure(feature=np.zeros(0, np.int32), split=np.zeros(0, np.uint16), equals=np.zeros(0, np.bool_))


class Unread:
    """Stands where the rows are, and fails the test when anyone looks at it."""

    def __len__(self):
        raise AssertionError("the rows were read")


def table_of(n_rows=50, label=0.5):
    return Table(schema=SCHEMA, cells=np.zeros((2, n_rows), np.uint8), targets=np.full(n_rows, label))


def opened(event, *, table=None, source=None, adjacency=A):
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=adjacency), unit=PrivacyUnit.ROW)
    grant = ledger.grant(event, purpose="test")
    return Curator(table or table_of(), grant, source or SeededRandom(1)), ledger


def test_a_release_is_the_statistic_plus_the_noise_that_was_priced():
    curator, ledger = opened(PAIR_EVENT, table=table_of(100, 0.25))
    with curator.open(PAIR_EVENT, purpose="pair") as round_:
        release = round_.release(LabelMoments(), PAIR, purpose="pair")
    # Ten standard deviations; the mechanism's own law is tested elsewhere.
    np.testing.assert_allclose(release.real, [100, 25], atol=20)
    assert release.value.dtype == np.int64
    assert release.grid == LabelMoments().grid
    assert (release.receipt.event, release.receipt.index) == (PAIR_EVENT, 2)
    assert release.receipt.hash == ledger.head


def test_a_release_that_the_draw_does_not_hold_is_refused():
    curator, _ = opened(Composed((PAIR_EVENT, COUNT_EVENT)))
    with (
        curator.open(PAIR_EVENT, purpose="pair") as round_,
        pytest.raises(RoundViolation, match="does not hold; it holds .*EllipticalGaussianEvent"),
    ):
        round_.release(LabelCount(), COUNT, purpose="count")


def test_the_same_draw_is_not_released_twice():
    curator, _ = opened(lw.Repeated(PAIR_EVENT, count=2))
    with curator.open(PAIR_EVENT, purpose="pair") as round_:
        round_.release(LabelMoments(), PAIR, purpose="once")
        with pytest.raises(RoundViolation, match="nothing more"):
            round_.release(LabelMoments(), PAIR, purpose="twice")
    # A fresh draw of the second event is a round of its own.
    with curator.open(PAIR_EVENT, purpose="pair") as round_:
        round_.release(LabelMoments(), PAIR, purpose="once")
    with pytest.raises(DrawRefused, match="left"):
        curator.open(PAIR_EVENT, purpose="a third")


def test_two_threads_share_one_draw():
    curator, _ = opened(PAIR_EVENT)
    round_ = curator.open(PAIR_EVENT, purpose="pair")
    outcomes = []

    def release():
        try:
            round_.release(LabelMoments(), PAIR, purpose="race")
            outcomes.append("released")
        except RoundViolation:
            outcomes.append("refused")

    threads = [threading.Thread(target=release) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused"] * 7 + ["released"]


def test_a_closed_round_releases_nothing():
    curator, _ = opened(PAIR_EVENT)
    with curator.open(PAIR_EVENT, purpose="pair") as round_:
        pass
    with pytest.raises(RoundViolation, match="closed"):
        round_.release(LabelMoments(), PAIR, purpose="late")


@pytest.mark.parametrize("stddevs", [(1.0, 2.0), (2.0, math.nextafter(2.0, 0.0)), (4.0, 4.0)])
def test_noise_that_differs_from_the_noise_that_was_priced_is_refused(stddevs):
    curator, _ = opened(PAIR_EVENT)
    with (
        curator.open(PAIR_EVENT, purpose="pair") as round_,
        pytest.raises(RoundViolation, match="does not hold"),
    ):
        round_.release(LabelMoments(), EllipticalGaussianMechanism(stddevs=stddevs), purpose="pair")


def test_a_clip_that_differs_from_the_clip_that_was_priced_is_refused():
    def query(clip):
        return LeafMoments(loss="squared", clip=clip).of(ONE_LEAF, Ensemble(initial_score=0.0))

    event = PAIR.event(query(0.5).sensitivity(A), A)
    curator, _ = opened(event)
    with (
        curator.open(event, purpose="leaves") as round_,
        pytest.raises(RoundViolation, match="does not hold"),
    ):
        round_.release(query(0.6), PAIR, purpose="leaves")


def test_a_query_that_states_its_own_sensitivity_is_refused():
    class Flattering(LabelMoments):
        def sensitivity(self, adjacency):
            return LabelCount().sensitivity(adjacency)

    curator, _ = opened(PAIR_EVENT)
    with (
        curator.open(PAIR_EVENT, purpose="pair") as round_,
        pytest.raises(RoundViolation, match="Flattering is not a query"),
    ):
        round_.release(Flattering(), PAIR, purpose="pair")


def test_an_event_that_was_not_granted_leaves_the_rows_unread():
    table = table_of()
    table._parts = Unread()
    curator, ledger = opened(PAIR_EVENT, table=table)
    before = ledger.entries
    for event in (
        COUNT_EVENT,
        GaussianEvent(noise_multiplier=1.0, adjacency=A),
        PoissonSampled(PAIR_EVENT, sampling_rate=0.5),
    ):
        with pytest.raises(DrawRefused):
            curator.open(event, purpose="not granted")
    assert ledger.entries == before


def test_a_sample_inside_a_draw_is_refused_before_anything_is_drawn():
    sampled = PoissonSampled(PAIR_EVENT, sampling_rate=0.5)
    nested = PoissonSampled(Composed((sampled, COUNT_EVENT)), sampling_rate=0.5)
    groups = lw.Composed((lw.Parallel((PAIR_EVENT, COUNT_EVENT), probabilities=(0.5, 0.5)),))
    curator, ledger = opened(PAIR_EVENT)
    before = ledger.entries
    for event in (nested, PoissonSampled(sampled, sampling_rate=0.5), groups):
        with pytest.raises(UnsupportedEvent, match="one sample per draw"):
            curator.open(event, purpose="nested")
    assert ledger.entries == before


def exact_count(round_):
    """The number of rows that the round sees, to the nearest whole one: noise of stddev 0.01."""
    release = round_.release(LabelCount(), GaussianMechanism(stddev=0.01), purpose="count")
    return float(release.real[0])


def sampled_rounds(rate, n_rounds, n_rows=5_000, source=None):
    count = GaussianMechanism(stddev=0.01).event(LabelCount().sensitivity(A), A)
    event = PoissonSampled(count, sampling_rate=rate)
    curator, _ = opened(lw.Repeated(event, count=n_rounds), table=table_of(n_rows), source=source)
    for _ in range(n_rounds):
        with curator.open(event, purpose="sample") as round_:
            yield exact_count(round_)


@pytest.mark.parametrize("source", [SeededRandom(4), SecureRandom()])
def test_each_round_samples_afresh_at_the_rate_of_its_event(source):
    counts = np.array(list(sampled_rounds(0.2, 40, source=source)))
    # Binomial(5000, 0.2): mean 1000, stddev 28; the mean of 40 has 4.5. Seven standard deviations each.
    assert abs(counts.mean() - 1000) < 32
    assert 10 < counts.std() < 60
    assert len({round(count) for count in counts}) > 10


def test_a_rate_of_one_sees_every_row():
    np.testing.assert_allclose(list(sampled_rounds(1.0, 3)), 5_000, atol=0.2)


def test_everything_in_one_round_sees_the_same_rows():
    first = GaussianMechanism(stddev=0.01)
    count = first.event(LabelCount().sensitivity(A), A)
    event = PoissonSampled(lw.Repeated(count, count=2), sampling_rate=0.3)
    curator, _ = opened(event, table=table_of(5_000, 1.0))
    with curator.open(event, purpose="sample") as round_:
        rows = exact_count(round_)
        labels = round_.release(LabelSum(), first, purpose="labels").real[0]
    assert abs(rows - labels) < 0.2
    assert 1_200 < rows < 1_800


@pytest.mark.parametrize(("source", "kind"), [(SeededRandom(1), "test"), (SecureRandom(), "secure")])
def test_the_kind_of_randomness_is_on_release_receipt_and_ledger(source, kind):
    curator, ledger = opened(PAIR_EVENT, source=source)
    with curator.open(PAIR_EVENT, purpose="pair") as round_:
        release = round_.release(LabelMoments(), PAIR, purpose="pair")
    assert (release.randomness, release.receipt.randomness) == (kind, kind)
    assert ledger.entries[-1].randomness == kind
    assert ledger.record().randomness == kind


def test_a_foreign_mechanism_is_refused_before_anything_is_taken():
    class Quiet:
        """States the priced event and adds no noise."""

        def event(self, sensitivity, adjacency):
            return PAIR.event(sensitivity, adjacency)

        def randomise(self, statistic, grid, source):
            return statistic

    class Quieter(Quiet):
        pass

    curator, _ = opened(PAIR_EVENT)
    with curator.open(PAIR_EVENT, purpose="pair") as round_:
        for foreign in (Quiet(), Quieter()):
            with pytest.raises(RoundViolation, match="Quiet.* is not a mechanism of this library"):
                round_.release(LabelMoments(), foreign, purpose="pair")
        round_.release(LabelMoments(), PAIR, purpose="pair")


def test_an_error_after_the_draw_loses_it(monkeypatch):
    mechanism = GaussianMechanism(stddev=1.0)

    def failing(self, statistic, grid, source):
        raise RuntimeError("out of memory, say")

    event = mechanism.event(LabelCount().sensitivity(A), A)
    curator, _ = opened(event)
    with curator.open(event, purpose="count") as round_:
        with monkeypatch.context() as patch:
            patch.setattr(GaussianMechanism, "randomise", failing)
            with pytest.raises(RuntimeError, match="out of memory"):
                round_.release(LabelCount(), mechanism, purpose="count")
        with pytest.raises(RoundViolation, match="nothing more"):
            round_.release(LabelCount(), mechanism, purpose="again")


def test_the_curator_shows_the_schema_only():
    curator, _ = opened(PAIR_EVENT)
    assert curator.schema is SCHEMA
    shown = [name for name in dir(curator) if not name.startswith("_")]
    assert shown == ["open", "open_allocation", "open_groups", "schema", "select"]
    with curator.open(PAIR_EVENT, purpose="pair") as round_:
        assert [name for name in dir(round_) if not name.startswith("_")] == ["release", "select"]


def test_a_forked_child_may_not_release_what_its_parent_drew(monkeypatch):
    curator, _ = opened(PAIR_EVENT)
    round_ = curator.open(PAIR_EVENT, purpose="pair")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RoundViolation, match="belongs to another process"):
        round_.release(LabelMoments(), PAIR, purpose="pair")
    monkeypatch.undo()
    round_.release(LabelMoments(), PAIR, purpose="pair")
