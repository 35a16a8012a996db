"""Plans, filters and what is left, in words: every event and every filter has some."""

from typing import get_args

import pytest

import ledgerwood as lw
from ledgerwood.accounting import filters
from ledgerwood.accounting.events import serial
from ledgerwood.report.ledgers.words import charge_in_words, filter_in_words, left_in_words, plan_in_words

A = lw.Adjacency.ADD_REMOVE
GAUSS = lw.GaussianEvent(noise_multiplier=2.0, adjacency=A)
PURE = lw.PureEvent(epsilon=0.5, adjacency=A)
SAMPLED = lw.PoissonSampled(GAUSS, sampling_rate=0.25)
REPLACED = lw.GaussianEvent(noise_multiplier=2.0, adjacency=lw.Adjacency.REPLACE_ONE)
EVENTS = [
    (GAUSS, "a result with Gaussian noise of 2 times the sensitivity"),
    (lw.LaplaceEvent(noise_multiplier=3.0, adjacency=A), "a result with Laplace noise of 3 times the sensitivity"),
    (lw.TruncatedLaplaceEvent(noise_multiplier=3.0, bound=9.0, adjacency=A), "truncated Laplace noise of 3 times"),
    (lw.EllipticalGaussianEvent(sensitivities=(1.0, 2.0), stddevs=(3.0, 4.0), adjacency=A), "2 results with Gaussian"),
    (lw.DiscreteGaussianEvent(scale=6.0, sensitivity=2, adjacency=A), "Gaussian noise of 3 times the sensitivity"),
    (lw.DiscreteLaplaceEvent(scale=6.0, sensitivity=2, adjacency=A), "Laplace noise of 3 times the sensitivity"),
    (lw.SkellamEvent(variance=36.0, sensitivity=2, adjacency=A), "Skellam noise of 3 times the sensitivity"),
    (lw.SkellamVectorEvent(variance=36.0, l2_sensitivity=2.0, adjacency=A), "a vector of whole numbers"),
    (
        lw.GaussianMixtureEvent(shifts=(1.0, 2.0), probabilities=(0.2, 0.05), noise_multiplier=2.0, adjacency=A),
        "which each unit moves by a random amount",
    ),
    (lw.StaircaseEvent(epsilon=1.5, inner_width=0.4, adjacency=A), "staircase noise of epsilon 1.5"),
    (PURE, "a release of epsilon 0.5"),
    (lw.BoundedRangeEvent(epsilon=0.5, adjacency=A), "a private choice of epsilon 0.5"),
    (lw.RandomizedResponseEvent(epsilon=0.5, categories=4, adjacency=lw.Adjacency.REPLACE_ONE), "4 categories"),
    (lw.ApproximateEvent(epsilon=0.5, delta=1e-6, adjacency=A), "declared to cost epsilon 0.5 and delta 1e-06"),
    (lw.GDPEvent(mu=0.5, adjacency=A), "declared to cost mu 0.5"),
    (lw.ZeroConcentratedEvent(rho=0.5, adjacency=A), "declared to cost rho 0.5"),
    (lw.RenyiEvent(orders=(2.0,), divergences=(0.5,), adjacency=A), "by its Renyi divergences at 1 point"),
    (lw.ProfileEvent(epsilons=(0.5, 1.0), deltas=(1e-3, 1e-5), adjacency=A), "by its privacy profile at 2 points"),
    (SAMPLED, "of 2 times the sensitivity, on a fresh sample of 25 % of the units"),
    (lw.RandomAllocation(GAUSS, selected=2, steps=1_000), "1,000 releases, of which each unit takes part in 2"),
    (lw.FixedSizeSampled(REPLACED, sample_size=10, population=1_000), "on a fresh sample of 10 of 1,000 units"),
    (lw.ReplaceOneSampled(REPLACED, add_remove=GAUSS, sampling_rate=0.25), "on a fresh sample of 25 % of the units"),
    (lw.Repeated(SAMPLED, count=1_000), "1,000 times a result with Gaussian noise"),
    (lw.Repeated(GAUSS, count=1), "a result with Gaussian noise of 2 times the sensitivity"),
    (lw.Composed((GAUSS, PURE)), "of 2 times the sensitivity; and a release of epsilon 0.5"),
    (lw.Composed((GAUSS,) * 9), "5 further parts"),
    (lw.Parallel((GAUSS, PURE), probabilities=None), "each unit takes part in one of 2: a result"),
    (
        lw.RepeatedSelection(PURE, shape=1.0, stopping_rate=0.1),
        "number of runs (stopping rate 0.1)",
    ),
    (lw.PoissonSelection(PURE, mean=7.0), "the best of a random number of runs (mean 7), each a release"),
    (lw.FilteredEvent(GAUSS, limit=lw.GDPEvent(mu=1.0, adjacency=A)), "until its own share is used up"),
]


@pytest.mark.parametrize(("event", "words"), EVENTS, ids=lambda value: type(value).__name__)
def test_a_plan_in_words(event, words):
    assert words in plan_in_words(event)


def test_every_event_has_words():
    assert {type(event).__name__ for event, _ in EVENTS} == set(serial._CLASSES)
    assert not any("of the kind" in plan_in_words(event) for event, _ in EVENTS)


def test_a_deep_plan_ends():
    event = GAUSS
    for _ in range(30):
        event = lw.Repeated(lw.Composed((event, PURE)), count=2)
    assert "a further plan inside it" in plan_in_words(event)
    assert len(plan_in_words(event)) < 2_000


@pytest.mark.parametrize("kind", get_args(filters.Filter), ids=lambda kind: kind.__name__)
def test_every_filter_says_how_it_adds_and_what_is_left(kind):
    filter_ = {
        "RenyiFilter": lambda: lw.RenyiFilter(order=32.0),
        "AdvancedCompositionFilter": lambda: lw.AdvancedCompositionFilter(delta_prime=1e-7),
    }.get(kind.__name__, kind)()
    ledger = lw.Ledger(lw.Budget(epsilon=1.0, delta=1e-6, adjacency=A), unit=lw.PrivacyUnit.ROW, filter=filter_)
    assert filter_in_words(filter_).endswith(("add up", "less, for a delta of 1e-07"))
    left = left_in_words(ledger.remaining(), filter_)
    assert "-" not in left.replace("e-0", "")
    spend = lw.GaussianEvent(noise_multiplier=50.0, adjacency=A)
    delta = 1e-7 if kind.__name__ in ("BasicFilter", "AdvancedCompositionFilter") else None
    ledger.spend(spend, purpose="x", delta=delta)
    assert left_in_words(ledger.remaining(), filter_) != left
    assert charge_in_words(ledger.entries[1].charge).partition(" ")[0] in ("epsilon", "mu", "rho", "divergence")


def test_a_budget_that_is_used_up_has_no_noise_that_fits():
    for filter_ in (lw.GDPFilter(), lw.ZCDPFilter()):
        none = filters.Remaining(mu=0.0, rho=0.0)
        assert left_in_words(none, filter_) in ("mu 0", "rho 0")
