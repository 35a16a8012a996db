"""The strongest adversary there is, who picks each next mechanism after seeing all outputs, never exceeds a budget.

His gain is computed exactly, by backward induction over all that he could do within the filter.
"""

import functools
import math

import numpy as np
import pytest

from ledgerwood.accounting import (
    Adjacency,
    AdvancedCompositionFilter,
    ApproximateEvent,
    BasicFilter,
    Budget,
    Composed,
    GDPFilter,
    PureEvent,
    RenyiFilter,
    ZCDPFilter,
    price,
)
from ledgerwood.errors import BudgetExceeded, UnsupportedEvent

A = Adjacency.ADD_REMOVE
STEP = 0.125  # losses are whole multiples of it


def pure(steps):
    return PureEvent(epsilon=STEP * steps, adjacency=A)


def rough(steps, delta):
    return ApproximateEvent(epsilon=STEP * steps, delta=delta, adjacency=A)


def worst_delta(filter_, budget, menu):
    """sup over all adaptive strategies within the filter of delta at the budget's epsilon, and the longest run.

    `menu`: pairs (steps, delta) of the pair that reveals all with probability delta, else answers at random. The
    state is how often each was taken, and the loss so far: all that the future depends on.
    """
    events = [rough(steps, delta) if delta else pure(steps) for steps, delta in menu]
    asked = [delta or None for _, delta in menu]
    if not isinstance(filter_, BasicFilter | AdvancedCompositionFilter):
        asked = [None] * len(menu)
    charges = [filter_.charge(event, [], budget, delta) for event, delta in zip(events, asked, strict=True)]
    longest = 0

    @functools.cache
    def allowed(taken):
        spent = [charge for charge, count in zip(charges, taken, strict=True) for _ in range(count)]
        found = []
        for index, charge in enumerate(charges):
            try:
                filter_.admit(spent, charge, budget)
            except BudgetExceeded:
                continue
            found.append(index)
        return found

    @functools.cache
    def gain(taken, loss):
        """E_P of (1 - e^(epsilon - L))+ at the end, from here, for the best choices."""
        nonlocal longest
        longest = max(longest, sum(taken))
        best = max(0.0, -math.expm1(budget.epsilon - STEP * loss))
        for index in allowed(taken):
            steps, delta = menu[index]
            truth = 1.0 / (1.0 + math.exp(-STEP * steps))
            after = (*taken[:index], taken[index] + 1, *taken[index + 1 :])
            value = truth * gain(after, loss + steps) + (1.0 - truth) * gain(after, loss - steps)
            best = max(best, delta + (1.0 - delta) * value)
        return best

    return gain((0,) * len(menu), 0), longest


@pytest.mark.slow_after(3)  # many strategies against a filter
@pytest.mark.parametrize(
    ("filter_", "budget", "menu"),
    [
        (BasicFilter(), (1.5, 0.02), [(1, 0.0), (2, 0.0), (1, 0.01), (4, 0.005)]),
        (ZCDPFilter(), (2.0, 0.01), [(1, 0.0), (2, 0.0), (3, 0.0), (5, 0.0)]),
        (ZCDPFilter(), (0.75, 0.05), [(1, 0.0), (2, 0.0), (3, 0.0)]),
        (RenyiFilter(order=4.0), (2.0, 0.01), [(1, 0.0), (2, 0.0), (3, 0.0), (5, 0.0)]),
        (RenyiFilter(order=12.0), (2.0, 0.01), [(1, 0.0), (2, 0.0), (4, 0.0)]),
        (
            AdvancedCompositionFilter(delta_prime=0.01),
            (2.0, 0.03),
            [(1, 0.0), (2, 0.0), (3, 0.0), (1, 0.01), (2, 0.005)],
        ),
        (AdvancedCompositionFilter(delta_prime=0.04), (1.0, 0.05), [(1, 0.0), (2, 0.0), (1, 0.01)]),
    ],
)
def test_no_strategy_exceeds_the_budget(filter_, budget, menu):
    budget = Budget(epsilon=budget[0], delta=budget[1], adjacency=A)
    found, longest = worst_delta(filter_, budget, menu)
    assert found <= budget.delta
    assert found > 0.05 * budget.delta  # the adversary is no straw man
    assert longest >= 4


def test_a_filter_of_a_wrong_currency_would_be_found_out():
    """The same adversary breaks sums of squares without delta_prime's share, so the test above can fail."""
    budget = Budget(epsilon=0.375, delta=1e-3, adjacency=A)
    wide = Budget(epsilon=1.5, delta=1e-3, adjacency=A)
    menu = [(1, 0.0), (2, 0.0)]

    class Generous:
        charge = staticmethod(BasicFilter().charge)

        def admit(self, spent, new, _):
            BasicFilter().admit(spent, new, wide)

    found, _ = worst_delta(Generous(), budget, menu)
    assert found > 10 * budget.delta


FIRST, HARMLESS = PureEvent(epsilon=math.log(0.55 / 0.45), adjacency=A), 1e-9


def second_plan():
    """The randomised response with which FIRST composes to delta(1) = .01: only two truths matter."""
    rest = math.exp(1.0 - FIRST.epsilon)
    truth = (0.01 / 0.55 + rest) / (1.0 + rest)
    return PureEvent(epsilon=math.log(truth / (1.0 - truth)), adjacency=A)


def test_choosing_the_second_plan_after_the_first_output_breaks_what_each_pair_keeps():
    reveal, answer = ApproximateEvent(epsilon=HARMLESS, delta=0.01, adjacency=A), second_plan()
    for second in (reveal, answer):
        assert price(Composed((FIRST, second))).delta(1.0) == pytest.approx(0.01, rel=1e-3)
    # after the truth (.55 under P) the answer, worth .01 / .55 there; after the lie the reveal
    truth = 1.0 / (1.0 + math.exp(-answer.epsilon))
    gain = truth - math.exp(1.0 - FIRST.epsilon) * (1.0 - truth)
    adaptive = 0.55 * gain + 0.45 * 0.01
    assert adaptive == pytest.approx(0.0145, rel=1e-9)


@pytest.mark.parametrize(
    "filter_",
    [BasicFilter(), GDPFilter(), ZCDPFilter(), RenyiFilter(order=8.0), AdvancedCompositionFilter(delta_prime=1e-4)],
)
def test_no_filter_lets_both_second_plans_follow(filter_):
    """At (1, .01): a point, as of the reveal, is turned into no other currency, and the answer alone is too dear."""
    budget = Budget(epsilon=1.0, delta=0.01, adjacency=A)
    reveal, answer = ApproximateEvent(epsilon=HARMLESS, delta=0.01, adjacency=A), second_plan()
    points = isinstance(filter_, BasicFilter | AdvancedCompositionFilter)
    spent = [] if isinstance(filter_, GDPFilter) else [filter_.charge(FIRST, [], budget, None)]
    for charge in spent:
        filter_.admit([], charge, budget)
    refused = 0
    for second in (reveal, answer):
        for delta in (None, 0.01, 0.0099) if points else (None,):
            try:
                filter_.admit(spent, filter_.charge(second, spent, budget, delta), budget)
            except (BudgetExceeded, UnsupportedEvent):
                refused += second is answer or not points
    assert refused == (3 if points else 2)


@pytest.mark.parametrize("event", [rough(1, 1e-6), Composed((pure(1), rough(1, 1e-9)))])
def test_a_point_is_turned_into_no_other_currency(event):
    budget = Budget(epsilon=100.0, delta=0.5, adjacency=A)
    for filter_ in (GDPFilter(), ZCDPFilter(), RenyiFilter(order=2.0)):
        with pytest.raises(UnsupportedEvent):
            filter_.charge(event, [], budget, None)
    assert np.isinf(event.renyi(np.array([2.0]))).all()
