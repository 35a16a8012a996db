"""Rounds under an individual filter: what is refused, and that the whole is priced as its limit."""

import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.costs.concentrated import rho
from ledgerwood.accounting.events import from_json, to_json
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, UnsupportedEvent

A, R = lw.Adjacency.ADD_REMOVE, lw.Adjacency.REPLACE_ONE
GAUSSIAN = lw.GaussianEvent(noise_multiplier=5.0, adjacency=A)
PAIR = lw.EllipticalGaussianEvent(sensitivities=(1.0, 0.25), stddevs=(20.0, 1.0), adjacency=A)
SAMPLED = lw.PoissonSampled(PAIR, sampling_rate=0.1)
MU = lw.GDPEvent(mu=0.7, adjacency=A)
CURVE = lw.RenyiEvent(orders=(8.0,), divergences=(0.4,), adjacency=A)
BUDGET = lw.Budget(epsilon=8.0, delta=1e-6, adjacency=A)


@pytest.mark.parametrize(("event", "limit"), [(GAUSSIAN, MU), (PAIR, MU), (PAIR, CURVE), (SAMPLED, CURVE)])
def test_the_price_is_the_limits_alone_and_with_others(event, limit):
    filtered = lw.FilteredEvent(event, limit=limit)
    first = lw.GaussianEvent(noise_multiplier=3.0, adjacency=A)
    for plan, same in ((filtered, limit), (lw.Composed((first, filtered)), lw.Composed((first, limit)))):
        found, stated = lw.price(plan), lw.price(same)
        assert found.epsilon(1e-6) == stated.epsilon(1e-6)
        assert found.certified
    orders = np.array([1.5, 8.0, 9.0])
    np.testing.assert_array_equal(filtered.renyi(orders), limit.renyi(orders))
    assert from_json(to_json(filtered)) == filtered


def test_mu_adds_up_with_a_release_before_it():
    plan = lw.Composed((lw.GaussianEvent(noise_multiplier=2.0, adjacency=A), lw.FilteredEvent(PAIR, limit=MU)))
    assert plan.mu() == pytest.approx(math.sqrt(0.25 + 0.49), rel=1e-12)
    assert rho(lw.FilteredEvent(PAIR, limit=MU)) == pytest.approx(0.245, rel=1e-12)


@pytest.mark.parametrize(
    ("filter_", "event"),
    [
        (lw.BasicFilter(), lw.FilteredEvent(SAMPLED, limit=CURVE)),
        (lw.GDPFilter(), lw.FilteredEvent(PAIR, limit=MU)),
        (lw.ZCDPFilter(), lw.FilteredEvent(PAIR, limit=MU)),
        (lw.RenyiFilter(order=8.0), lw.FilteredEvent(SAMPLED, limit=CURVE)),
    ],
)
def test_a_ledger_grants_it_under_every_filter_that_has_its_currency(tmp_path, filter_, event):
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW, filter=filter_)
    ledger.grant(event, purpose="rounds").draw(event, purpose="all rounds")
    ledger.save(tmp_path / "x.jsonl")
    assert lw.verification.verify_ledger(tmp_path / "x.jsonl").draws == 1


def test_a_renyi_limit_has_no_mu():
    with pytest.raises(UnsupportedEvent):
        lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW, filter=lw.GDPFilter()).grant(
            lw.FilteredEvent(SAMPLED, limit=CURVE), purpose="rounds"
        )


LAPLACE = lw.LaplaceEvent(noise_multiplier=2.0, adjacency=A)
REPLACED = lw.GaussianEvent(noise_multiplier=2.0, adjacency=R)


@pytest.mark.parametrize(
    ("event", "limit", "error", "says"),
    [
        (SAMPLED, MU, UnsupportedEvent, "RenyiEvent of one order"),
        (LAPLACE, CURVE, UnsupportedEvent, "one release of Gaussian noise"),
        (lw.Repeated(PAIR, count=2), MU, UnsupportedEvent, "one release of Gaussian noise"),
        (lw.PoissonSampled(SAMPLED, sampling_rate=0.5), CURVE, UnsupportedEvent, "one release"),
        (MU, MU, UnsupportedEvent, "one release"),
        (REPLACED, lw.GDPEvent(mu=1.0, adjacency=R), UnsupportedEvent, "the row that takes its place"),
        (PAIR, lw.GDPEvent(mu=1.0, adjacency=lw.Adjacency.ZERO_OUT), AdjacencyMismatch, "zero-out"),
        (PAIR, lw.RenyiEvent(orders=(2.0, 3.0), divergences=(1.0, 2.0), adjacency=A), InvalidParameter, "2 orders"),
        (PAIR, PAIR, InvalidParameter, "limit=.*GDPEvent or a RenyiEvent"),
        (3.0, MU, InvalidParameter, "not an event"),
    ],
)
def test_what_has_no_individual_price_is_refused(event, limit, error, says):
    with pytest.raises(error, match=says):
        lw.FilteredEvent(event, limit=limit)


def test_a_group_of_rows_is_refused():
    with pytest.raises(UnsupportedEvent, match="no group event"):
        lw.grouped(lw.FilteredEvent(PAIR, limit=MU), size=2)
