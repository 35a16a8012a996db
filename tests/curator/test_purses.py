"""A selection over rows: one draw on the ledger, a purse a run that ends with it, and nothing of the runs that lost."""

import math
import os

import numpy as np
import pytest
from scipy.stats import chi2

from ledgerwood import (
    Adjacency,
    Budget,
    Composed,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    Numeric,
    PoissonSelection,
    PrivacyUnit,
    Repeated,
    RepeatedSelection,
    Schema,
)
from ledgerwood.accounting.events import Event, FilteredEvent, GDPEvent
from ledgerwood.curator import Curator, LabelCount, LabelSum, LeafMoments, Table
from ledgerwood.curator.filtered import RunPurse, require_within
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import (
    AdjacencyMismatch,
    DrawRefused,
    InvalidParameter,
    LedgerError,
    RoundViolation,
    RunFailed,
    UnsupportedEvent,
)
from ledgerwood.mechanisms import GaussianMechanism, SecureRandom, SeededRandom

A = Adjacency.ADD_REMOVE
SCHEMA = Schema.uniform(0.0, 1.0, n_features=2, target=Numeric("y", -1.0, 1.0))
RUN = GaussianEvent(noise_multiplier=2.0, adjacency=A)
SELECTION = RepeatedSelection(RUN, shape=1.0, stopping_rate=0.2)
NOISE = GaussianMechanism(stddev=3.0)
ONE = NOISE.event(LabelSum().sensitivity(A), A)
PLAN = Repeated(ONE, count=2)  # mu = sqrt(2) / 3 = .471 of .5


def opened(event=SELECTION, *, source=None, rows=30):
    table = Table(schema=SCHEMA, cells=np.zeros((2, rows), np.uint8), targets=np.full(rows, 0.5))
    ledger = Ledger(Budget(epsilon=1e6, delta=0.5, adjacency=A), unit=PrivacyUnit.ROW)
    return Curator(table, ledger.grant(event, purpose="test"), source or SeededRandom(1)), ledger


def noisy_sum(rows, event=ONE):
    with rows.open(event, purpose="sum") as round_:
        return round_.release(LabelSum(), NOISE, purpose="sum")


def test_the_ledger_has_one_draw_made_before_the_first_run_whatever_the_number_of_runs():
    lines = set()
    made = set()
    for seed in range(12):
        curator, ledger = opened(source=SeededRandom(seed))
        runs = []

        def run(index, rows, source, ledger=ledger, runs=runs):
            runs.append(len(ledger.entries))
            first, second = noisy_sum(rows), noisy_sum(rows)
            assert first.receipt.event == SELECTION
            return float(first.real[0]), (first.real, second.real)

        curator.select(SELECTION, [PLAN], run, purpose="search")
        assert set(runs) == {3}  # terms, grant, draw: no run finds another number of entries
        made.add(len(runs))
        lines.add(ledger.head)
    assert len(made) > 3
    assert len(lines) == 1  # and the entries are the same to the last bit


def test_the_best_run_is_what_the_runs_say():
    curator, _ = opened()
    seen = []

    def run(index, rows, source):
        release = noisy_sum(rows).real
        seen.append((float(release[0]), index))
        return seen[-1][0], index

    index, score, output = curator.select(SELECTION, [PLAN, PLAN, PLAN], run, purpose="search")
    assert (score, index) == max(seen)
    assert output == index
    assert abs(score - 15.0) < 60.0


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_a_run_takes_its_plan_uniformly():
    counts = np.zeros(3)
    for seed in range(400):
        curator, _ = opened(source=SeededRandom(seed))

        def run(index, rows, source):
            counts[index] += 1
            return 0.0, None

        curator.select(SELECTION, [PLAN] * 3, run, purpose="search")
    expected = counts.sum() / 3
    assert chi2.sf(float(((counts - expected) ** 2 / expected).sum()), 2) > 1e-4


def test_a_purse_holds_its_plan_once_and_ends_with_its_run():
    curator, _ = opened()
    kept = []

    def run(index, rows, source):
        kept.append(rows)
        noisy_sum(rows)
        with pytest.raises(DrawRefused, match="no LaplaceEvent"):
            rows.open(LaplaceEvent(noise_multiplier=1.0, adjacency=A), purpose="other")
        noisy_sum(rows)
        with pytest.raises(DrawRefused, match="has no GaussianEvent"):
            noisy_sum(rows)
        return 0.0, None

    curator.select(SELECTION, [PLAN], run, purpose="search")

    def stops(index, rows, source):
        kept.append(rows)
        return 0.0, None

    opened_again, _ = opened()
    opened_again.select(SELECTION, [PLAN], stops, purpose="search")
    for rows in kept:
        with pytest.raises(DrawRefused, match="the run has ended"):
            noisy_sum(rows)


def test_a_round_ends_with_the_run_that_opened_it():
    leaves = GaussianMechanism(stddev=9.0)
    query = LeafMoments(loss="squared", clip=1.0).of(TreeStructure.root(), Ensemble(initial_score=0.0))
    tree = leaves.event(query.sensitivity(A), A)
    filtered = FilteredEvent(tree, limit=GDPEvent(mu=0.1, adjacency=A))
    curator, _ = opened()
    kept = []

    def run(index, rows, source):
        kept.append((rows.open(ONE, purpose="sum"), LabelSum(), NOISE))
        kept.append((rows.open(filtered, purpose="trees"), query, leaves))
        for round_, asked, noise in kept[-2:]:
            round_.release(asked, noise, purpose="in time") if index else None
        return 0.0, None

    curator.select(SELECTION, [Composed((ONE, filtered))] * 2, run, purpose="search")
    assert kept
    for round_, asked, noise in kept:
        with pytest.raises(RoundViolation, match="closed"):
            round_.release(asked, noise, purpose="of a run that lost")


def test_a_forked_child_has_no_purse(monkeypatch):
    curator, _ = opened()

    def run(index, rows, source):
        with monkeypatch.context() as patch, pytest.raises(DrawRefused, match="another process"):
            patch.setattr(os, "getpid", lambda: -1)
            noisy_sum(rows)
        return 0.0, None

    curator.select(SELECTION, [PLAN], run, purpose="search")


def test_a_run_that_raises_loses_the_draw_and_shows_nothing():
    curator, ledger = opened()

    def run(index, rows, source):
        raise ValueError(f"the sum is {noisy_sum(rows).real}")

    with pytest.raises(RunFailed) as caught:
        curator.select(SELECTION, [PLAN], run, purpose="search")
    assert caught.value.__context__ is None
    assert len(ledger.entries) == 3
    with pytest.raises(DrawRefused, match="left"):
        curator.select(SELECTION, [PLAN], run, purpose="again")


DEAR = GaussianEvent(noise_multiplier=math.nextafter(2.0, 0.0), adjacency=A)
REFUSED = [
    ([], InvalidParameter, "plans"),
    ([PLAN, DEAR], InvalidParameter, "mu"),
    ([Repeated(ONE, count=3)], InvalidParameter, "mu"),
    ([LaplaceEvent(noise_multiplier=100.0, adjacency=A)], UnsupportedEvent, "not Gaussian"),
    ([GaussianEvent(noise_multiplier=9.0, adjacency=Adjacency.ZERO_OUT)], AdjacencyMismatch, "add-remove"),
    ([None], InvalidParameter, "not an event"),
]


@pytest.mark.parametrize(("plans", "error", "words"), REFUSED)
def test_a_plan_that_a_run_does_not_cover_is_refused_before_anything_is_drawn(plans, error, words):
    curator, ledger = opened()
    with pytest.raises(error, match=words):
        curator.select(SELECTION, plans, lambda *_: pytest.fail("a run was made"), purpose="search")
    assert len(ledger.entries) == 2


class Sly(Event):
    """Equal to another event, and nothing like it."""

    adjacency = A

    def __init__(self, likeness, held):
        self.likeness, self.held = likeness, held

    def __eq__(self, other):
        return other == self.likeness

    def __hash__(self):
        return hash(self.likeness)

    def log_profile(self, epsilons, *, direction):
        return np.full(np.shape(epsilons), -math.inf)

    def renyi(self, orders, *, direction=None):
        return np.zeros(np.shape(orders))

    def pure_epsilon(self):
        return 0.0

    def mu(self):
        return 0.0

    def draws(self):
        yield self.held, 1000


def test_an_event_of_a_foreign_class_pays_for_nothing_whatever_it_is_equal_to():
    curator, ledger = opened(Composed((SELECTION, ONE, ONE)))
    noisy_sum(curator)  # an event that is equal has been written down before
    with pytest.raises(LedgerError, match="Sly has no record"):
        curator.open(Sly(ONE, DEAR), purpose="sum")
    with pytest.raises(LedgerError, match="Sly has no record"):
        ledger.grant(Sly(ONE, DEAR), purpose="plan")
    for plan in (Sly(RUN, DEAR), Sly(DEAR, DEAR), Repeated(Sly(ONE, DEAR), count=1)):
        with pytest.raises(LedgerError, match="Sly has no record"):
            curator.select(SELECTION, [plan], lambda *_: pytest.fail("a run was made"), purpose="search")
    assert len(ledger.entries) == 3
    refused = []

    def run(index, rows, source):
        with pytest.raises(LedgerError, match="Sly has no record"):
            rows.open(Sly(ONE, DEAR), purpose="sum")
        refused.append(index)
        return 0.0, None

    curator.select(SELECTION, [PLAN], run, purpose="search")
    assert refused


def test_what_was_not_granted_is_not_selected():
    curator, ledger = opened(RUN)
    with pytest.raises(DrawRefused):
        curator.select(SELECTION, [PLAN], lambda *_: pytest.fail("a run was made"), purpose="search")
    with pytest.raises(InvalidParameter, match="a RepeatedSelection or a PoissonSelection"):
        curator.select(RUN, [PLAN], lambda *_: pytest.fail("a run was made"), purpose="search")
    assert len(ledger.entries) == 2


def test_a_run_of_any_event_may_be_its_own_plan():
    laplace = LaplaceEvent(noise_multiplier=3.0, adjacency=A)
    mixed = RepeatedSelection(Composed((laplace, RUN)), shape=0.0, stopping_rate=0.5)
    require_within([mixed.event], mixed)
    with pytest.raises(UnsupportedEvent, match="GaussianEvent"):
        require_within([RUN], mixed)
    require_within(
        [RUN, GaussianEvent(noise_multiplier=math.nextafter(2.0, 3.0) * (1 + 1e-15), adjacency=A)], SELECTION
    )


def test_a_selection_by_secure_randomness_says_so():
    curator, ledger = opened(source=SecureRandom())
    curator.select(SELECTION, [PLAN], lambda *_: (0.0, None), purpose="search")
    assert ledger.entries[-1].randomness == "secure"


def test_a_count_drawn_twice_by_two_purses_of_one_receipt_is_two_runs():
    """A purse knows its own plan only: that there are K of them is the selection's doing, and its price."""
    ledger = Ledger(Budget(epsilon=9.0, delta=0.5, adjacency=A), unit=PrivacyUnit.ROW)
    receipt = ledger.spend(ONE, purpose="stands for a selection")
    for _ in range(2):
        with RunPurse(ONE, receipt) as purse:
            assert purse.draw(ONE, purpose="sum") is receipt
            with pytest.raises(DrawRefused):
                purse.draw(NOISE.event(LabelCount().sensitivity(A), A), purpose="count")


def test_no_run_at_all_is_a_release_of_the_poisson_law():
    rare = PoissonSelection(RUN, mean=1e-9)
    curator, ledger = opened(rare)
    assert curator.select(rare, [PLAN], lambda *_: pytest.fail("a run was made"), purpose="search") is None
    assert len(ledger.entries) == 3
