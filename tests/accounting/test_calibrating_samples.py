"""Samples of compositions: the search composes few of them, and what guides it does not change where it ends."""

import pytest

from ledgerwood.accounting import (
    Adjacency,
    BoundedRangeEvent,
    Budget,
    Composed,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    Repeated,
    calibrate,
    plan_costs,
    price,
)
from ledgerwood.accounting.costs.losses import plans, quick
from ledgerwood.errors import CalibrationFailed, UnsupportedEvent

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-6, adjacency=A)


def sampled(*parts, count=20):
    return Repeated(PoissonSampled(Composed(parts), sampling_rate=0.1), count=count)


def pure_trees(epsilon):
    """Their cost rises with the value, and no Renyi divergence of them is known."""
    third = LaplaceEvent(noise_multiplier=3.0 / epsilon, adjacency=A)
    return sampled(third, Repeated(BoundedRangeEvent(epsilon=epsilon / 18.0, adjacency=A), count=6), third)


def noisy_trees(noise):
    """Their cost falls with the value."""
    return sampled(
        GaussianEvent(noise_multiplier=2.0 * noise, adjacency=A),
        LaplaceEvent(noise_multiplier=3.0 * noise, adjacency=A),
    )


def spent(event):
    return price(event).epsilon(BUDGET.delta)


@pytest.fixture
def composed(monkeypatch):
    """The numbers of compositions inside samples that were asked for in turn."""
    seen = []
    own = plans._joint_sums

    def counted(found, direction, above):
        seen.append(direction)
        return own(found, direction, above)

    monkeypatch.setattr(plans, "_joint_sums", counted)
    return seen


@pytest.mark.parametrize(("make", "less"), [(pure_trees, 1.0 + 3e-5), (noisy_trees, 1.0 - 3e-5)])
def test_it_fits_hardly_less_would_and_few_compositions_were_needed(make, less, composed):
    assert quick.composes_inside(make(1.0))
    budget = Budget(epsilon=1.0, delta=1.1e-6, adjacency=A)  # of no other test: nothing is remembered
    found = calibrate(make, budget)
    assert 2 <= len(composed) <= 2 * 6
    cost = [price(make(value)).epsilon(budget.delta) for value in (found, found * less)]
    assert cost[0] <= 1.0 < cost[1]


@pytest.mark.slow  # searches that are led astray
@pytest.mark.parametrize(
    "wrong",
    [
        lambda own, value: 3.0 * own(value) + 1.5,
        lambda own, value: 0.3 * own(value) - 0.4,
        lambda own, value: -own(value),
        lambda own, value: float("nan"),
        lambda own, value: 0.0,
    ],
)
def test_a_wrong_guide_costs_time_and_changes_nothing(wrong, monkeypatch):
    wanted = calibrate(pure_trees, BUDGET)
    own = plan_costs.PlanCost._quick
    monkeypatch.setattr(plan_costs.PlanCost, "_quick", lambda cost, value: wrong(lambda x: own(cost, x), value))
    found = calibrate(pure_trees, BUDGET)
    assert found == pytest.approx(wanted, rel=3e-5)
    assert spent(pure_trees(found)) <= BUDGET.epsilon


@pytest.mark.slow  # a search without a guide
def test_without_a_guide_the_search_is_as_good(monkeypatch):
    def none(cost, value):
        raise UnsupportedEvent("no quick cost")

    wanted = calibrate(noisy_trees, BUDGET)
    monkeypatch.setattr(plan_costs.PlanCost, "_quick", none)
    assert calibrate(noisy_trees, BUDGET) == pytest.approx(wanted, rel=3e-5)


def test_refusals_stay():
    apart = pure_trees(2.0)
    with pytest.raises(CalibrationFailed, match="the rest alone does not fit"):
        calibrate(lambda epsilon: Composed((apart, pure_trees(epsilon))), BUDGET)
    with pytest.raises(CalibrationFailed, match="as at every other value"):
        calibrate(lambda _: apart, BUDGET)
    capped = calibrate(pure_trees, BUDGET, bounds=(1e-3, 0.5))
    assert capped == 0.5
