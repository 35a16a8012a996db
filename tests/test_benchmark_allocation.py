"""The benchmark of random allocations: its cases are what they say, and it finds a contradiction."""

import ledgerwood as lw
from benchmarks import allocation


def test_cases_hold_the_goals_extremes():
    assert max(case.steps for case in allocation.CASES) == 1_000_000
    assert max(case.epochs for case in allocation.CASES) == 1000
    assert max(case.selected for case in allocation.CASES) == 100
    case = allocation.Case(multiplier=2.0, steps=8, selected=2, epochs=3)
    assert case.plan().count == 3
    assert case.plan().event.selected == 2
    assert case.sampled().count == 24
    assert case.sampled().event.sampling_rate == 0.25


def test_an_interval_outside_the_other_is_a_contradiction():
    own = allocation.ours(allocation.Case(multiplier=2.0, steps=4))
    assert own["low"] <= lw.price(allocation.Case(multiplier=2.0, steps=4).plan()).epsilon(1e-5)
    near, above = {"low": own["low"], "high": own["high"] + 0.1}, {"low": own["high"] + 0.1, "high": own["high"] + 1.0}
    found = [{"ours": own, "peer": peer} for peer in (near, above, {"why": "no answer"}, None)]
    assert allocation.contradictions(found) == 1
