import math

import numpy as np
import pytest
from scipy import special, stats

from ledgerwood import Adjacency, Budget, GaussianEvent, PureEvent
from ledgerwood.verification.auditing.claims import epsilon_of
from ledgerwood.verification.auditing.one_run import one_run
from ledgerwood.verification.canaries import theory

ADD = Adjacency.ADD_REMOVE
GAUSSIAN = GaussianEvent(noise_multiplier=1.0 / 0.925, adjacency=ADD)


@pytest.mark.parametrize(("value", "wanted"), [(-1.0, 0.4714), (0.0, 1.0 / 3.0), (1.0, 0.0)])
def test_the_value_of_a_leaf_tells_what_its_background_lets_it(value: float, wanted: float) -> None:
    """sigma 3 for both sums, clip 1, 200 known rows: 400 000 leaves with the canary, and as many without it.

    The means' difference over the spread has a standard error of sqrt(2 / 400 000) = .0022; the linearisation is off by
    about 1 / 200 of it besides.
    """
    rng = np.random.default_rng(20_261)
    n, runs = 200, 400_000
    means, spreads = [], []
    for canary in (1.0, 0.0):
        count = n + canary + 3.0 * rng.standard_normal(runs)
        total = n * value + canary + 3.0 * rng.standard_normal(runs)
        ratio = total / count
        means.append(ratio.mean())
        spreads.append(ratio.std())
    assert abs(means[0] - means[1]) / spreads[1] == pytest.approx(wanted, abs=4 * 0.0022)
    assert theory.black_box_mu(clip=1.0, count_stddev=3.0, sum_stddev=3.0, value=value) == pytest.approx(
        wanted, abs=1e-4
    )


@pytest.mark.parametrize(("count", "total", "clip"), [(3.0, 3.0, 1.0), (5.0, 1.0, 0.5), (2.0, 0.1, 0.25)])
def test_the_best_background_tells_as_much_as_both_sums(count: float, total: float, clip: float) -> None:
    value = theory.best_background(clip=clip, count_stddev=count, sum_stddev=total)
    both = math.hypot(1.0 / count, clip / total)
    assert theory.black_box_mu(clip=clip, count_stddev=count, sum_stddev=total, value=value) == pytest.approx(both)
    for other in np.linspace(-clip, clip, 21):
        found = theory.black_box_mu(clip=clip, count_stddev=count, sum_stddev=total, value=float(other))
        assert found <= both * (1.0 + 1e-12)


def test_a_background_beyond_the_clip_is_not_to_be_had() -> None:
    assert theory.best_background(clip=1.0, count_stddev=1.0, sum_stddev=3.0) == -1.0


def test_the_trade_off_of_a_gaussian_claim_is_above_the_truth_and_close() -> None:
    curve = theory.trade_off(GAUSSIAN, 1e-5)
    alarms = np.linspace(0.001, 0.999, 200)
    truth = special.ndtr(special.ndtri(alarms) + 0.925)
    assert (curve.hits(alarms) >= truth - 1e-12).all()
    assert np.abs(curve.hits(alarms) - truth).max() < 0.005
    assert curve.errors(alarms) == pytest.approx(1.0 - curve.hits(alarms))


def test_the_trade_off_of_a_pure_claim_is_randomised_response() -> None:
    curve = theory.trade_off(PureEvent(epsilon=1.0, adjacency=ADD), 0.0)
    rate = 1.0 / (1.0 + math.e)
    assert curve.hits(np.array([rate]))[0] == pytest.approx(1.0 - rate, abs=1e-6)
    assert curve.accuracy(0.1) == pytest.approx(math.e / (1.0 + math.e), abs=1e-3)


def test_a_budget_is_a_claim_too() -> None:
    curve = theory.trade_off(Budget(epsilon=1.0, delta=0.01, adjacency=ADD), 0.01)
    assert curve.hits(np.array([0.1]))[0] == pytest.approx(0.1 * math.e + 0.01, rel=1e-6)


@pytest.mark.slow  # many fits
def test_what_guesses_show_of_a_gaussian_is_as_simulated() -> None:
    """1000 canaries, 400 runs; sd of one bound .34, so .017 of the mean; the plan's own grid is off by .04 at most."""
    included, left_out, expected = theory.guesses_for(GAUSSIAN, 1000, 1e-5, 0.05, "both")
    rng = np.random.default_rng(20_262)
    found = []
    for _ in range(400):
        coins = rng.random(1000) < 0.5
        order = np.argsort(rng.standard_normal(1000) + 0.925 * coins)
        right = int(coins[order[-included:]].sum() + (~coins[order[:left_out]]).sum())
        found.append(one_run(right, included + left_out, 1000, delta=1e-5, alpha=0.05))
    assert float(np.mean(found)) == pytest.approx(expected, abs=3 * 0.017 + 0.04)
    assert float(np.mean(found)) > 1.45


def test_what_means_show_is_as_simulated() -> None:
    """Standard error of the mean bound on mu: sqrt((4 + mu^2 / 2) / 1000) / sqrt(2000) = .0015."""
    rng = np.random.default_rng(20_263)
    with_canary = 0.925 + rng.standard_normal((2000, 500))
    without = rng.standard_normal((2000, 500))
    spread = np.sqrt((with_canary.var(axis=1, ddof=1) + without.var(axis=1, ddof=1)) / 2.0)
    statistic = (with_canary.mean(axis=1) - without.mean(axis=1)) / spread
    bound = statistic - stats.norm.isf(0.05) * np.sqrt((4.0 + 0.5 * statistic**2) / 1000)
    assert bound.mean() == pytest.approx(theory.expected_mu(0.925, 1000, 0.05), abs=4 * 0.0015)


@pytest.mark.slow  # many fits
def test_needed_canaries_are_just_enough() -> None:
    needed = theory.canaries_for_mu(0.925, 3.5, 1e-5, 0.05)
    assert needed is not None
    shown = [epsilon_of(theory.expected_mu(0.925, n, 0.05), 1e-5) for n in (needed - 2, needed)]
    assert shown[0] < 3.5 <= shown[1]
    assert theory.canaries_for_mu(0.925, 4.5, 1e-5, 0.05) is None
    # The best guesses of 65536 canaries at epsilon 4 show 2.5 or so.
    assert theory.canaries_for_guesses(GAUSSIAN, 3.5, 1e-5, 0.05, "both") is None


@pytest.mark.parametrize(("alpha", "wanted"), [(0.05, 6), (0.5, 2), (1e-3, 10), (0.0625, 6)])
def test_fewer_canaries_show_nothing(alpha: float, wanted: int) -> None:
    assert theory.least_canaries(alpha) == wanted
    assert one_run(wanted, wanted, wanted, delta=0.0, alpha=alpha) > 0.0
    fewer = max(wanted - 2, 1)
    assert one_run(fewer, fewer, fewer, delta=0.0, alpha=alpha) == 0.0
