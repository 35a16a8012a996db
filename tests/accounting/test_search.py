"""The searches end on a point that was tried and fits, next to one that does not."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import _search
from ledgerwood.errors import PrivacyError


@settings(deadline=None)
@given(st.floats(1e-11, 1e11))
def test_least_fitting_finds_the_threshold_to_the_last_ulps(threshold):
    misfit, fit = _search.least_fitting(lambda x: x >= threshold, math.inf)
    assert misfit < threshold <= fit
    assert fit - misfit <= 4 * math.ulp(fit)


def test_least_fitting_at_the_ends():
    assert _search.least_fitting(lambda x: x >= 0.0, math.inf) == (0.0, 0.0)
    assert _search.least_fitting(lambda x: x < 0.0, math.inf) is None
    misfit, fit = _search.least_fitting(lambda x: x < 0.0, 0.7)  # the cap is known to fit and is not tried
    assert fit == 0.7
    assert misfit == pytest.approx(0.7, rel=1e-15)


@settings(deadline=None)
@given(st.floats(-12.0, 12.0), st.sampled_from([1.0, 3.0, 0.2]))
def test_root_from_above_brackets_the_root(log_root, power):
    root = math.exp(log_root)

    def excess(x):
        return math.log(root / x) ** 3 + power * math.log(root / x)

    misfit, fit = _search.bracket_outward(excess, 1e-9, 1e9)
    assert misfit < fit <= 2.0 * misfit
    misfit, fit = _search.root_from_above(excess, misfit, fit, tolerance=1e-12)
    assert excess(misfit) > 0.0 >= excess(fit)
    assert fit <= root * (1 + 3e-12)


def test_bracket_outward_says_on_which_side_nothing_was_found():
    assert _search.bracket_outward(lambda x: 1.0, 1e-3, 1e3) == (1e3, None)
    assert _search.bracket_outward(lambda x: -1.0, 1e-3, 1e3) == (None, 1e-3)


def test_what_is_not_a_number_is_refused():
    with pytest.raises(PrivacyError):
        _search.root_from_above(lambda x: {1.0: 1.0, 2.0: -1.0}.get(x, math.nan), 1.0, 2.0, tolerance=1e-9)
