"""The score test where it may be used, and its certified form everywhere: errors added up over all outcomes."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import clopper_pearson, score, score_certified
from ledgerwood.verification.auditing.score_test import _restricted, _statistic


def edge(epsilon, delta):
    """Probabilities (p1, p2) with p1 = e^epsilon p2 + delta, over the whole range of p2."""
    return [
        (min(1.0, math.exp(epsilon) * p2 + delta), p2) for p2 in np.linspace(0.0, (1 - delta) / math.exp(epsilon), 40)
    ]


@pytest.mark.slow  # every outcome is enumerated
@pytest.mark.parametrize(
    ("runs_with", "runs_without", "alpha", "delta"), [(7, 7, 0.05, 0.0), (8, 6, 0.1, 0.05), (6, 7, 0.4, 0.0)]
)
def test_the_certified_form_errs_at_most_so_often_by_enumeration(runs_with, runs_without, alpha, delta):
    bounds = np.array(
        [
            [
                score_certified(k1, runs_with, k2, runs_without, delta=delta, alpha=alpha)
                for k2 in range(runs_without + 1)
            ]
            for k1 in range(runs_with + 1)
        ]
    )
    assert bounds.max() > 0.0
    worst = 0.0
    for epsilon in (0.0, 0.3, 1.0, 2.0, 3.5):
        for p1, p2 in edge(epsilon, delta):
            chances = np.outer(
                stats.binom.pmf(range(runs_with + 1), runs_with, p1),
                stats.binom.pmf(range(runs_without + 1), runs_without, p2),
            )
            worst = max(worst, chances[bounds > epsilon].sum())
    assert worst <= alpha
    assert worst > 0.3 * alpha  # and it uses its level up


@pytest.mark.slow  # a rate of error needs many audits
@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize(("epsilon", "p2"), [(0.5, 0.25), (1.0, 0.1), (2.0, 0.05)])
def test_both_err_at_most_so_often_by_simulation_at_the_truth(epsilon, p2, delta):
    """500 audits of 1500 runs a side, seed fixed beforehand. Three standard errors of .05 in 500 are .0292; the
    normal law itself may miss by a tenth of alpha (.005) at these counts."""
    rng = np.random.default_rng(20_260_703)
    runs, alpha = 1500, 0.05
    k1 = rng.binomial(runs, math.exp(epsilon) * p2 + delta, 500)
    k2 = rng.binomial(runs, p2, 500)
    found = np.array([score(int(a), runs, int(b), runs, delta=delta, alpha=alpha) for a, b in zip(k1, k2, strict=True)])
    rate = np.mean(found > epsilon)
    assert rate <= alpha + 0.0292 + 0.005
    assert rate >= alpha - 0.0292 - 0.005
    certified = [
        score_certified(int(a), runs, int(b), runs, delta=delta, alpha=alpha)
        for a, b in zip(k1[:4], k2[:4], strict=True)
    ]
    # The certified form costs little: at most a tenth of the score test's distance to the estimate.
    estimate = np.log((k1[:4] / runs - delta) / (k2[:4] / runs))
    lost = found[:4] - np.array(certified)
    assert np.all(lost <= 0.1 * (estimate - found[:4]) + 1e-6)


@pytest.mark.slow  # a rate of error, by enumeration or many audits
def test_the_score_test_is_exact_for_counts_that_it_takes_by_enumeration():
    """Nominal .05 with 30 expected events without the row, every outcome added up: the margin of the switch at 30."""
    runs, epsilon, alpha = 300, 1.0, 0.05
    quantile = stats.norm.isf(alpha)

    def refused(a, b):
        """Whether the bound is above epsilon: by Clopper and Pearson below 30, else by the statistic at epsilon."""
        if b < 30 or runs - a < 30:
            return clopper_pearson(a, runs, b, runs, delta=0.0, alpha=alpha) > epsilon
        return _statistic(a, runs, b, runs, math.exp(epsilon), 0.0) > quantile

    for a, b in ((110, 30), (130, 35), (120, 33), (90, 20), (140, 45)):
        assert refused(a, b) == (score(a, runs, b, runs, delta=0.0, alpha=alpha) > epsilon)
    for p2 in (0.1, 0.13, 0.2):
        p1 = math.exp(epsilon) * p2
        k1s = np.arange(int(runs * p1) - 55, int(runs * p1) + 56)
        k2s = np.arange(max(0, int(runs * p2) - 40), int(runs * p2) + 41)
        wrong = np.array([[refused(int(a), int(b)) for b in k2s] for a in k1s])
        chances = np.outer(stats.binom.pmf(k1s, runs, p1), stats.binom.pmf(k2s, runs, p2))
        assert chances.sum() > 1 - 1e-6
        assert chances[wrong].sum() <= alpha * 1.1


def test_the_restricted_likelihood_has_its_maximum_where_it_is_said():
    k1, n1, k2, n2, factor, delta = 400, 1000, 90, 800, 2.5, 0.01

    def minus(p2):
        p1 = factor * p2 + delta
        return -(k1 * math.log(p1) + (n1 - k1) * math.log(1 - p1) + k2 * math.log(p2) + (n2 - k2) * math.log(1 - p2))

    found = optimize.minimize_scalar(minus, bounds=(1e-9, (1 - delta) / factor - 1e-9), options={"xatol": 1e-12})
    assert _restricted(k1, n1, k2, n2, factor, delta) == pytest.approx(found.x, rel=1e-6)


def test_few_events_are_left_to_clopper_and_pearson():
    for counts in ((500, 1000, 29, 1000), (990, 1000, 300, 1000), (50, 100, 0, 100)):
        assert score(*counts, delta=1e-5, alpha=0.05) == clopper_pearson(*counts, delta=1e-5, alpha=0.05)


@pytest.mark.slow  # a rate of error, by enumeration or many audits
def test_a_tenth_of_the_samples_is_a_tenth_of_the_square():
    """Both tighten like the square root of the number of runs, and pass Clopper and Pearson's bound."""
    for statistic in (score, score_certified):
        gaps = []
        for runs in (2_000, 20_000, 200_000):
            counts = (runs // 2, runs, round(runs / 2 / math.e), runs)
            found = statistic(*counts, delta=0.0, alpha=0.05)
            assert found > clopper_pearson(*counts, delta=0.0, alpha=0.05)
            gaps.append((1.0 - found) * math.sqrt(runs))
        assert max(gaps) / min(gaps) < 1.1


@pytest.mark.slow  # a rate of error, by enumeration or many audits
def test_laws_of_both():
    base = {"delta": 1e-4, "alpha": 0.05}
    for statistic, room in ((score, 1e-9), (score_certified, 0.02)):
        found = statistic(300, 1000, 100, 1000, **base)
        assert statistic(320, 1000, 100, 1000, **base) > found
        assert statistic(300, 1000, 90, 1000, **base) > found
        assert statistic(300, 1000, 100, 1000, delta=0.05, alpha=0.05) < found
        assert statistic(300, 1000, 100, 1000, delta=1e-4, alpha=0.01) < found
        assert statistic(100, 1000, 300, 1000, **base) == 0.0
        assert statistic(100, 1000, 100, 1000, **base) == 0.0
        assert found <= math.log((0.3 - 1e-4) / 0.1) + room
        with pytest.raises(InvalidParameter, match="at most 10"):
            statistic(11, 10, 1, 10, **base)


def test_certified_at_the_corners():
    assert score_certified(0, 10, 0, 10, delta=0.0, alpha=0.05) == 0.0
    assert score_certified(10, 10, 10, 10, delta=0.0, alpha=0.05) == 0.0
    assert score_certified(1, 1, 0, 1, delta=0.0, alpha=0.05) == 0.0
    assert 0.0 < score_certified(5, 5, 0, 5, delta=0.0, alpha=0.05) < 1.0
    # p1 = 1 and p2 = .03 e^-epsilon-ish: five of five and none of five are as likely as alpha at the bound or below
    found = score_certified(5, 5, 0, 5, delta=0.0, alpha=0.05)
    p2 = np.linspace(0.0, math.exp(-found), 1000)
    assert ((math.exp(found) * p2) ** 5 * (1 - p2) ** 5).max() <= 0.05


@pytest.mark.slow  # a rate of error needs many audits
@pytest.mark.parametrize("alpha", [0.5, 0.5 - 1e-9])
def test_a_level_of_one_half_leaves_a_bound(alpha):
    """The likelihood ratio then need not fall at all, so that the order of outcomes has no end of its own."""
    n, p = 6, 0.6
    for delta in (0.0, 0.05):
        refused = [
            (k1, k2)
            for k1 in range(n + 1)
            for k2 in range(n + 1)
            if score_certified(k1, n, k2, n, delta=delta, alpha=alpha) > 0.0
        ]
        q = p - delta
        error = sum(float(stats.binom.pmf(k1, n, p) * stats.binom.pmf(k2, n, q)) for k1, k2 in refused)
        assert refused
        assert error <= alpha
