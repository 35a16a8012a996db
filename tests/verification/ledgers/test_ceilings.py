"""Totals against a limit: what a few looks decide of a million of them is what each look alone would say."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.verification.ledgers.filters import Ceiling, Rule

LIMIT = (Fraction(1.0), Fraction(1e-5))
RULES = {
    "zcdp": Rule("zcdp"), "gdp": Rule("gdp"), "renyi": Rule("renyi", 20.0), "whitehouse": Rule("whitehouse", 2e-6),
    "basic": Rule("basic"),
}  # fmt: skip
NEAR = {"zcdp": 0.030556, "gdp": 0.0711, "renyi": 0.603, "whitehouse": 0.0350, "basic": 1.0}  # about the limit


@pytest.mark.slow_after(4)  # as below
@pytest.mark.parametrize("name", ["gdp", "renyi", "whitehouse", "basic", "zcdp"])
@settings(max_examples=8, deadline=None)
@given(steps=st.lists(st.floats(0.0, 0.3) | st.sampled_from([0.0, 1e-9, 0.5, 2.0]), min_size=1, max_size=8))
def test_each_total_is_judged_as_alone(name, steps):
    rule, total = RULES[name], Fraction()
    ceiling = Ceiling(rule, *LIMIT)
    for step in steps:
        total += Fraction(step * NEAR[name])
        assert ceiling.holds((total, Fraction())) == rule.fits((total, Fraction()), *LIMIT)


@pytest.mark.slow_after(3)  # rho's limit is a search over orders in 60 digits
@pytest.mark.parametrize("name", ["renyi", "whitehouse", "gdp", "zcdp"])
def test_thousands_of_totals_take_a_few_looks(name, monkeypatch):
    looks = []
    fits = Rule.fits
    monkeypatch.setattr(Rule, "fits", lambda rule, *rest: (looks.append(1), fits(rule, *rest))[1])
    ceiling, step = Ceiling(RULES[name], *LIMIT), Fraction(NEAR[name] / 3000)
    found = [ceiling.holds((place * step, Fraction())) for place in range(1, 3300)]
    last = found.index(False)
    assert 2900 < last < 3200
    assert not any(found[last:])
    assert len(looks) < 80
    assert RULES[name].fits((last * step, Fraction()), *LIMIT)
    assert not RULES[name].fits(((last + 1) * step, Fraction()), *LIMIT)


def test_deltas_have_a_separate_limit():
    ceiling, small = Ceiling(RULES["whitehouse"], *LIMIT), Fraction(1, 10**6)
    assert ceiling.holds((small, Fraction(8e-6)))
    assert not ceiling.holds((small, Fraction(9e-6)))
    assert ceiling.holds((small, Fraction()))
