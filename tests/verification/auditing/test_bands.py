"""Bands that hold at every threshold: coverage by simulation, order statistics by their definition."""

import math

import numpy as np
import pytest
from scipy import stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import Scores, roc_band


@pytest.mark.slow  # a rate of error, by enumeration or many audits
@pytest.mark.parametrize("band", ["berk_jones", "relative", "dkw"])
@pytest.mark.parametrize("discrete", [False, True])
def test_all_thresholds_are_covered_at_once(band, discrete):
    """400 draws of 300 and 200 scores, seed fixed beforehand; misses at most alpha and three standard errors (.045)."""
    rng = np.random.default_rng(20_260_721)
    alpha, missed = 0.1, 0
    for _ in range(400):
        one, other = rng.normal(1.0, 1.0, 300), rng.normal(0.0, 1.0, 200)
        if discrete:
            one, other = np.floor(one), np.floor(other)
        found = roc_band(Scores(one, other), alpha=alpha, band=band)
        ends = found.thresholds + 1.0 if discrete else found.thresholds  # floor(X) > t is X >= t + 1
        right, false = stats.norm.sf(ends - 1.0), stats.norm.sf(ends)
        missed += not (
            (found.right_lower <= right).all()
            and (right <= found.right_upper).all()
            and (found.false_lower <= false).all()
            and (false <= found.false_upper).all()
        )
    assert missed / 400 <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / 400)


def test_relative_errors_stay_bounded_in_the_tail():
    rng = np.random.default_rng(20_260_722)
    scores = Scores(rng.normal(2.0, 1.0, 100_000), rng.normal(0.0, 1.0, 100_000))
    assert repr(scores) == "Scores(<100000 with the row>, <100000 without>)"
    relative, absolute = (roc_band(scores, alpha=0.05, band=band) for band in ("relative", "dkw"))
    at = np.searchsorted(relative.thresholds, stats.norm.isf(1e-4))  # ten false alarms are to be expected
    assert relative.false_upper[at] < 5e-4 < absolute.false_upper[at]
    assert relative.epsilon(1e-5) > absolute.epsilon(1e-5) > 0.0


def test_the_exact_band_shows_most_and_its_profile_agrees_with_its_epsilon():
    rng = np.random.default_rng(20_261_132)
    scores = Scores(rng.laplace(1.0, 1.0, 20_000), rng.laplace(0.0, 1.0, 20_000))
    exact, relative = (roc_band(scores, alpha=0.05, band=band) for band in ("berk_jones", "relative"))
    assert 1.0 > exact.epsilon(0.0) > relative.epsilon(0.0)
    assert exact.delta(0.0) <= 1.0 - math.exp(-0.5)  # the total variation of the pair
    for epsilon in (0.0, 0.3, 0.7):
        least = exact.delta(epsilon)
        assert least > 0.0
        assert exact.epsilon(least) == pytest.approx(epsilon, abs=1e-4)
    assert exact.delta(1.0) == 0.0


def test_the_best_threshold_is_read_off_validly():
    """The truth is 1 at every threshold of Laplace scores above both centres: 200 draws, nominal .05."""
    rng = np.random.default_rng(20_260_723)
    wrong = [
        roc_band(Scores(rng.laplace(1.0, 1.0, 500), rng.laplace(0.0, 1.0, 500)), alpha=0.05).epsilon(0.0) > 1.0
        for _ in range(200)
    ]
    assert np.mean(wrong) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_scores_that_are_none_are_refused():
    for wrong in (np.array([]), np.array([math.nan]), np.zeros((2, 2))):
        with pytest.raises(InvalidParameter, match="scores"):
            roc_band(Scores(wrong, np.array([0.0])), alpha=0.05)
    with pytest.raises(InvalidParameter, match="band"):
        roc_band(Scores(np.array([1.0]), np.array([0.0])), alpha=0.05, band="both")
