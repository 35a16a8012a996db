"""e-processes: their mean under the null by enumeration, the chance that they ever cross by dynamic programming."""

import bisect
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import (
    anytime,
    anytime_combined,
    anytime_guesses,
    anytime_mu,
    combine_dependent,
    combine_independent,
    log_e_value,
    one_run,
    randomised_labels,
)

TRUTHS = [(0.0, 0.0, 0.4), (1.0, 0.0, 0.3), (1.0, 0.05, 0.3), (2.5, 0.01, 0.05), (0.0, 0.2, 0.4)]
"""epsilon, delta, and the event's probability without the row."""


def law(epsilon, delta, p2):
    p1 = math.exp(epsilon) * p2 + delta
    return [p1 / 2, p2 / 2, 1 - p1 / 2 - p2 / 2]


@pytest.mark.parametrize(("epsilon", "delta", "p2"), TRUTHS)
def test_the_mean_is_one_at_the_truth_and_less_inside(epsilon, delta, p2):
    runs = 12
    outcomes = [(a, b, runs - a - b) for a in range(runs + 1) for b in range(runs + 1 - a)]
    values = np.exp([log_e_value(a, b, runs, epsilon=epsilon, delta=delta) for a, b, _ in outcomes])
    at_truth = stats.multinomial.pmf(outcomes, runs, law(epsilon, delta, p2)) @ values
    assert at_truth == pytest.approx(1.0, abs=1e-9)
    assert at_truth <= 1.0
    inside = stats.multinomial.pmf(outcomes, runs, law(max(epsilon - 0.3, 0.0), 0.0, p2)) @ values
    assert inside <= 1.0


def test_it_is_the_mixture_of_products_by_mpmath():
    epsilon, delta = 0.7, 1e-3
    stakes = [mpmath.mpf(float(stake)) for stake in np.geomspace(1.0, 1e-5, 97)]
    with mpmath.workdps(40):
        for a, b, runs in ((30, 4, 60), (300, 200, 1000), (0, 0, 5), (7, 0, 7)):
            losing = mpmath.exp(mpmath.mpf(epsilon)) + mpmath.mpf(delta) / 2
            total = mpmath.fsum(
                (1 + s * (1 - mpmath.mpf(delta) / 2) / losing) ** a
                * (1 - s) ** b
                * (1 - s * mpmath.mpf(delta) / 2 / losing) ** (runs - a - b)
                for s in stakes
            ) / len(stakes)
            found = log_e_value(a, b, runs, epsilon=epsilon, delta=delta)
            assert found <= mpmath.log(total)
            assert found == pytest.approx(float(mpmath.log(total)), abs=1e-9)


@pytest.mark.slow  # a rate of error needs many audits
@pytest.mark.parametrize("alpha", [0.3, 0.05])
@pytest.mark.parametrize(("epsilon", "delta", "p2"), TRUTHS)
def test_the_bound_is_ever_above_the_truth_at_most_so_often(epsilon, delta, p2, alpha):
    """All paths of up to 30 runs: mass that has crossed once stays out, so that what is left has never crossed."""
    with_row, without, nothing = law(epsilon, delta, p2)
    horizon = 30
    # A bound above the truth has refused it, or with delta > 0 the first point of the grid above it.
    refused_at = epsilon if delta == 0.0 else epsilon + 1e-3
    for a, b in ((9, 1), (14, 0), (20, 5), (3, 3), (29, 1)):
        crossed = log_e_value(a, b, 30, epsilon=refused_at, delta=delta) >= -math.log(alpha)
        assert (anytime(a, b, 30, delta=delta, alpha=alpha) > epsilon + 1e-9) == crossed
    alive = np.zeros((horizon + 1, horizon + 1))
    alive[0, 0] = 1.0
    for runs in range(1, horizon + 1):
        nxt = nothing * alive
        nxt[1:] += with_row * alive[:-1]
        nxt[:, 1:] += without * alive[:, :-1]
        a, b = np.nonzero(nxt)
        crossed = [
            log_e_value(int(i), int(j), runs, epsilon=refused_at, delta=delta) >= -math.log(alpha)
            for i, j in zip(a, b, strict=True)
        ]
        nxt[a[crossed], b[crossed]] = 0.0
        alive = nxt
    assert 1.0 - alive.sum() <= alpha


def test_it_costs_little_beside_one_look():
    for runs in (2_000, 20_000, 200_000):
        a, b = runs // 4, round(runs / 4 / math.e)
        once, ever = (f(a, b, runs, delta=0.0, alpha=0.05) for f in (randomised_labels, anytime))
        assert 1.0 - ever < 2.2 * (1.0 - once)
        assert ever < once


def test_bounds_at_a_delta_are_on_the_grid_and_below_those_without():
    found = anytime(5000, 1500, 20_000, delta=1e-4, alpha=0.05)
    assert found == pytest.approx(round(found, 3), abs=1e-9)
    assert anytime(5000, 1500, 20_000, delta=0.0, alpha=0.05) >= found > 1.0
    assert anytime(5000, 1500, 20_000, delta=0.3, alpha=0.05) < found
    assert anytime(5000, 0, 10_000, delta=1e-4, alpha=0.05) > 5.0
    assert anytime(10**8, 0, 2 * 10**8, delta=1e-9, alpha=0.05) > 15.0
    assert anytime(0, 10, 20, delta=1e-4, alpha=0.05) == 0.0


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_more_evidence_never_lowers_it(delta):
    rng = np.random.default_rng(20_260_704)
    for _ in range(20):
        a, b, rest = (int(n) for n in rng.integers(0, 400, 3))
        runs = a + b + rest + 1
        found = anytime(a, b, runs, delta=delta, alpha=0.05)
        assert anytime(a + 1, b, runs, delta=delta, alpha=0.05) >= found - 1e-9
        assert anytime(a, b, runs, delta=delta, alpha=0.1) >= found - 1e-9
        assert anytime(a, b, runs, delta=delta + 0.01, alpha=0.05) <= found + 1e-9
        if b:
            assert anytime(a, b - 1, runs, delta=delta, alpha=0.05) >= found - 1e-9


def test_independent_audits_multiply_and_dependent_ones_average():
    assert combine_independent([1.0, 2.0]) == 3.0
    assert combine_dependent([1.0, 2.0]) == pytest.approx(math.log((math.e + math.e**2) / 2))
    assert combine_dependent([-math.inf, 0.0]) == pytest.approx(-math.log(2))
    for rule in (combine_independent, combine_dependent):
        for wrong in ([], [math.nan], [math.inf]):
            with pytest.raises(InvalidParameter, match="log_values"):
                rule(wrong)
    one = (500, 200, 2000)
    alone = anytime_combined([one], delta=1e-5, alpha=0.05, how="independent")
    assert alone == anytime(*one, delta=1e-5, alpha=0.05)
    twice = anytime_combined([one, one], delta=1e-5, alpha=0.05, how="independent")
    assert twice > alone
    assert anytime_combined([one, one], delta=1e-5, alpha=0.05, how="dependent") == alone
    with pytest.raises(InvalidParameter, match="how"):
        anytime_combined([one], delta=0.0, alpha=0.05, how="both")


@pytest.mark.slow  # a rate of error, by enumeration or many audits
def test_dependent_audits_err_at_most_so_often():
    """Two events that are complements of each other, on the same runs, at the truth: 200 audits, 8 looks each."""
    rng = np.random.default_rng(20_260_705)
    wrong = 0
    for _ in range(200):
        labels, inside = rng.integers(0, 2, 400), rng.random(400)
        event = inside < np.where(labels == 1, 0.6, 0.4)
        for runs in range(50, 401, 50):
            part, of = event[:runs], labels[:runs]
            first = (int((part & (of == 1)).sum()), int((part & (of == 0)).sum()), runs)
            second = (int((~part & (of == 0)).sum()), int((~part & (of == 1)).sum()), runs)
            values = [log_e_value(*counts, epsilon=math.log(0.6 / 0.4), delta=0.0) for counts in (first, second)]
            if combine_dependent(values) >= -math.log(0.1):
                wrong += 1
                break
    assert wrong / 200 <= 0.1


@pytest.mark.slow  # a rate of error, by enumeration or many audits
@pytest.mark.parametrize("delta", [0.0, 2e-4])
def test_guesses_one_after_the_other_may_stop_at_their_best(delta):
    """Pure randomised response, delta more often right: all paths of 40 guesses, by dynamic programming."""
    epsilon, alpha, canaries = 1.0, 0.1, 80
    q = 1.0 / (1.0 + math.exp(-epsilon))
    right = delta + (1.0 - delta) * q
    alive = np.zeros(canaries + 1)
    alive[0] = 1.0
    for guesses in range(1, 41):
        nxt = (1.0 - right) * alive
        nxt[1:] += right * alive[:-1]
        # The least number of right guesses that is refused: more of them are refused, too.
        least = bisect.bisect_left(
            range(guesses + 1),
            True,
            key=lambda k, g=guesses: anytime_guesses(k, g, canaries, delta=delta, alpha=alpha) > epsilon,
        )
        nxt[least:] = 0.0
        alive = nxt
    assert 1.0 - alive.sum() <= alpha
    assert anytime_guesses(75, 80, canaries, delta=delta, alpha=alpha) > epsilon
    assert anytime_guesses(75, 80, canaries, delta=delta, alpha=alpha) < one_run(75, 80, 80, delta=0.0, alpha=alpha)
    assert anytime_guesses(80, 80, 80, delta=0.01, alpha=0.05) == 0.0  # 80 canaries x .01 leave nothing of alpha


def test_mu_is_ever_above_the_truth_at_most_so_often():
    """2000 sequences of 400 scores a side, looked at 25 times each. Seed fixed beforehand; the rate is bounded by
    alpha, with three standard errors (.02). The bound is the difference of means less a margin that knows no scores."""
    rng = np.random.default_rng(20_260_706)
    mu, alpha, looks = 0.5, 0.1, np.arange(4, 401, 16)
    margins = np.array([9.0 - anytime_mu(9.0, int(n), 0.0, int(n), alpha=alpha) for n in looks])
    assert anytime_mu(2.0, 100, 0.0, 100, alpha=alpha) == pytest.approx(2.0 - margins[looks == 100][0], abs=1e-9)
    sums = [np.cumsum(rng.normal(mean, 1.0, (2000, 400)), axis=1)[:, looks - 1] for mean in (mu, 0.0)]
    wrong = ((sums[0] - sums[1]) / looks - margins > mu).any(axis=1)
    assert wrong.mean() <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / 2000)


@pytest.mark.slow  # a rate of error, by enumeration or many audits
def test_the_mixture_for_mu_is_the_integral():
    """One half-normal width by mpmath: E exp(theta y - theta^2 I / 2), theta half-normal."""
    found = anytime_mu(3.0, 50, 0.0, 40, alpha=0.05)
    information = 1 / (1 / 50 + 1 / 40)
    with mpmath.workdps(30):
        y, total = mpmath.mpf(information) * (3.0 - mpmath.mpf(found)), mpmath.mpf(0)
        widths = np.geomspace(1e-4, 10.0, 31)
        for width in widths:
            total += mpmath.quad(
                lambda t, w=width: 2 * mpmath.npdf(t, 0, w) * mpmath.exp(t * y - t * t * information / 2),
                [0, width / 4, width, 4 * width, 12 * width],
            )
        assert float(total / len(widths)) == pytest.approx(20.0, rel=1e-6)


def test_mu_moves_with_the_means_only_by_their_difference():
    assert anytime_mu(1.5, 100, 0.5, 120, alpha=0.05) == pytest.approx(anytime_mu(1.0, 100, 0.0, 120, alpha=0.05))
    assert anytime_mu(0.0, 10, 1.0, 10, alpha=0.05) == 0.0
    assert 0.9 < anytime_mu(1.0, 10**6, 0.0, 10**6, alpha=0.05) < 1.0
    with pytest.raises(InvalidParameter, match="mean_with"):
        anytime_mu(math.nan, 10, 0.0, 10, alpha=0.05)


def test_epsilons_beyond_all_doubles_show_nothing():
    assert log_e_value(10, 0, 10, epsilon=1000.0, delta=0.0) <= 0.0
