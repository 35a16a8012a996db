"""Plans beside what audits then show, and the numbers that are too few."""

import math

import numpy as np
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import (
    canaries_for,
    clopper_pearson,
    expected_canaries,
    expected_epsilon,
    expected_mu,
    expected_one_run,
    least_samples,
    one_run_scores,
    planned_pair,
    randomised_labels,
    require_samples,
    samples_for,
    score,
)

LAPLACE = {"with_row": 0.5, "without": 0.5 / math.e, "delta": 0.0, "alpha": 0.05}
EVERY = ("clopper_pearson", "randomised_labels", "score", "anytime")


@pytest.mark.parametrize("statistic", EVERY)
def test_the_planned_number_shows_it_and_a_few_less_do_not(statistic):
    runs = samples_for(0.95, **LAPLACE, statistic=statistic)
    assert expected_epsilon(runs, **LAPLACE, statistic=statistic) > 0.95
    assert expected_epsilon(int(0.97 * runs), **LAPLACE, statistic=statistic) < 0.95


def test_the_rule_of_thumb_for_the_score_test():
    """n a side = (z / g)^2 [(1 - p) / p + (1 - q) / q]; within a tenth for a small gap."""
    p, q, gap = LAPLACE["with_row"], LAPLACE["without"], 0.02
    wanted = 2 * (1.6448536 / gap) ** 2 * ((1 - p) / p + (1 - q) / q)
    assert samples_for(1.0 - gap, **LAPLACE, statistic="score") == pytest.approx(wanted, rel=0.1)


@pytest.mark.slow_after(2)  # a rate of error, by enumeration or many audits
@pytest.mark.parametrize(
    ("power", "statistic"), [(0.5, "randomised_labels"), (0.9, "randomised_labels"), (0.9, "score")]
)
def test_so_many_audits_show_it(power, statistic):
    """300 audits, seed fixed beforehand; three standard errors, and .03 for the normal law of the forecast."""
    rng = np.random.default_rng(20_260_751)
    runs = samples_for(0.9, **LAPLACE, statistic=statistic, power=power)
    a, b = (rng.binomial(runs // 2, LAPLACE[name], 300) for name in ("with_row", "without"))
    if statistic == "score":
        found = [score(int(i), runs // 2, int(j), runs // 2, delta=0.0, alpha=0.05) for i, j in zip(a, b, strict=True)]
    else:
        found = [randomised_labels(int(i), int(j), runs, delta=0.0, alpha=0.05) for i, j in zip(a, b, strict=True)]
    assert abs(np.mean(np.array(found) > 0.9) - power) <= 3 * math.sqrt(power * (1 - power) / 300) + 0.03


def test_what_no_number_shows_is_refused():
    with pytest.raises(InvalidParameter, match="below 1"):
        samples_for(1.0, **LAPLACE)
    with pytest.raises(InvalidParameter, match="below 0"):
        samples_for(0.1, with_row=0.01, without=0.001, delta=0.01, alpha=0.05)
    with pytest.raises(InvalidParameter, match="statistic"):
        samples_for(0.5, **LAPLACE, statistic="bayes")
    with pytest.raises(InvalidParameter, match="power"):
        samples_for(0.5, **LAPLACE, power=1.0)


def test_the_least_number_for_any_bound():
    assert least_samples(delta=0.0, alpha=0.05) == 10  # half of them inside: 5 events, 2^-5 < .05 < 2^-4
    assert clopper_pearson(6, 6, 0, 6, delta=0.0, alpha=0.05) > 0.0
    assert least_samples(delta=0.0, alpha=0.05, statistic="clopper_pearson") == 12
    assert clopper_pearson(5, 5, 0, 5, delta=0.0, alpha=0.05) == 0.0
    require_samples(10, delta=0.0, alpha=0.05)
    with pytest.raises(InvalidParameter, match="9 runs are too few .* at least 10 are needed"):
        require_samples(9, delta=0.0, alpha=0.05)


def test_means_show_what_the_closed_form_says():
    for canaries in (100, 1000, 10_000):
        gap = 1.6448536 * 2.0 / math.sqrt(canaries)
        expected = expected_mu(0.925 + gap, canaries, 1e-5, 0.05)
        assert expected == pytest.approx(expected_mu(0.925, 10**12, 1e-5, 0.05), rel=1e-3)


def test_canaries_for_a_bound():
    for statistic in ("mean", "median", "one_run"):
        needed = canaries_for(1.0, mu=0.925, delta=1e-5, alpha=0.05, statistic=statistic)
        shown = expected_canaries(0.925, needed, delta=1e-5, alpha=0.05, statistic=statistic)
        assert 1.0 < shown < 1.3
    with pytest.raises(InvalidParameter, match="must be below"):
        canaries_for(4.2, mu=0.925, delta=1e-5, alpha=0.05, statistic="mean")
    with pytest.raises(InvalidParameter, match="statistic"):
        expected_canaries(0.925, 100, delta=1e-5, alpha=0.05, statistic="score")


def test_the_planned_pair_shows_what_is_expected():
    """40 runs of 1000 canaries with Gaussian scores of mu .925 (epsilon 4 at 1e-5), seed fixed beforehand. The standard
    deviation of one bound is about .3; the floor of the expected count is its median."""
    rng = np.random.default_rng(20_260_752)
    pair = planned_pair(0.925, 1000, 1e-5, 0.05)
    expected = expected_one_run(0.925, 1000, 1e-5, 0.05)
    found = []
    for _ in range(40):
        coins = rng.integers(0, 2, 1000).astype(bool)
        scores = 0.925 * coins + rng.normal(0.0, 1.0, 1000)
        found.append(one_run_scores(scores, coins, delta=1e-5, alpha=0.05, grid=[pair]).value)
    assert np.mean(found) == pytest.approx(expected, abs=3 * 0.3 / math.sqrt(40))
    assert expected > 1.4
