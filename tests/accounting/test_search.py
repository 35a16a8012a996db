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


def everywhere(x):
    return True


@settings(deadline=None)
@given(st.floats(-18.0, 24.0), st.floats(-5.0, 5.0), st.booleans())
def test_bracket_finds_the_threshold_in_either_direction(log_root, log_start, falling):
    root, sign = math.exp(log_root), 1.0 if falling else -1.0
    tried = []

    def excess(x):
        tried.append(x)
        return sign * 0.3 * math.log(root / x)

    start = math.exp(log_start)
    found = _search.bracket(excess, everywhere, start, (1e-9, 1e12))
    assert found.falling is falling
    assert excess(found.misfit) > 0.0 >= excess(found.fit)
    assert max(found.misfit, found.fit) <= 256.0 * min(found.misfit, found.fit) * (1 + 1e-12)
    assert min(tried) >= min(start, root) / 257.0  # no far end is tried on the way
    assert max(tried) <= max(start, root) * 257.0


def test_bracket_sees_over_a_plateau_and_stays_in_the_domain():
    def excess(x):
        assert 0.5 <= x <= 700.0
        return 60.0 if x < 90.0 else math.log(500.0 / x)

    found = _search.bracket(excess, lambda x: 0.5 <= x <= 700.0, 1.0, (1e-9, 1e12))
    assert found.falling
    assert found.misfit < 500.0 <= found.fit
    found = _search.bracket(lambda x: math.log(500.0 / x), lambda x: x <= 400.0, 1.0, (1e-9, 1e12))
    assert found.fit is None
    assert found.misfit == found.last == pytest.approx(400.0, rel=1e-11)


def test_a_constant_has_no_direction():
    assert _search.bracket(lambda x: 1.0, everywhere, 1.0, (1e-3, 1e3)) == _search.Bracket(1.0, None, None, 1.0)
    assert _search.bracket(lambda x: 0.0, everywhere, 1.0, (1e-3, 1e3)) == _search.Bracket(None, 1.0, None, 1.0)


@settings(deadline=None)
@given(st.integers(2, 10**15), st.booleans())
def test_whole_numbers_end_next_to_each_other(root, falling):
    tried = []

    def excess(x):
        assert x == int(x)
        tried.append(x)
        return math.log(root / x) if falling else math.log(x / root) or -1e-20

    found = _search.bracket(excess, everywhere, 1.0, (1.0, 2.0**53), whole=True)
    misfit, fit = _search.whole_root(excess, found.misfit, found.fit)
    assert (misfit, fit) == ((root - 1, root) if falling else (root + 1, root))
    assert len(set(tried)) <= 60


@settings(deadline=None)
@given(st.floats(-10.0, 10.0), st.floats(0.2, 5.0), st.floats(0.2, 5.0), st.floats(-0.3, 0.3), st.booleans())
def test_a_close_fit_is_close_in_spite_of_roughness(log_root, slope, guess, off, falling):
    tried = []

    def excess(x):
        tried.append(x)
        z = math.log(x) - log_root
        return -slope * (z if falling else -z) * (1.0 + 0.1 * z) + 2e-6 * slope * math.sin(1e7 * z)

    near = math.exp(log_root + off)
    found = _search.close_fit(excess, everywhere, near, falling=falling, slope=guess, close=1e-5)
    beyond = math.log(found) - log_root
    assert -3e-6 <= (beyond if falling else -beyond) <= 5e-5
    assert excess(found) <= 0.0
    assert len(tried) <= 20


def test_a_close_fit_keeps_within_the_domain_or_says_that_there_is_none():
    def excess(x):
        assert x <= 1.0
        return math.log(x / 0.99)

    assert _search.close_fit(excess, lambda x: x <= 1.0, 0.5, falling=False, slope=0.3, close=1e-5) == pytest.approx(
        0.99, rel=2e-5
    )
    assert _search.close_fit(lambda x: 1.0, everywhere, 1.0, falling=True, slope=1.0, close=1e-5) is None
    ended = _search.close_fit(lambda x: 1.0, lambda x: 0.5 < x < 2.0, 1.0, falling=True, slope=1.0, close=1e-5)
    assert ended is None


@pytest.mark.parametrize(("near", "far", "end"), [(1, 100, 37), (100, 1, 37), (1, 2, 1), (7, 1000, 7)])
def test_the_end_of_a_domain(near, far, end):
    def inside(x):
        return x <= end if far > near else x >= end

    assert _search.last_inside(inside, near, far, whole=True) == end
    found = _search.last_inside(inside, float(near), float(far), whole=False)
    assert inside(found)
    assert found == pytest.approx(end, rel=1e-11)


def test_what_is_not_a_number_is_refused():
    with pytest.raises(PrivacyError):
        _search.root_from_above(lambda x: {1.0: 1.0, 2.0: -1.0}.get(x, math.nan), 1.0, 2.0, tolerance=1e-9)
