"""The specimens of DPBoost: their exact losses by independent means, and what the library does instead."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.choices.gridless import NumericCandidates
from ledgerwood.mechanisms.choices.selection import ExponentialMechanism, UtilityRange
from ledgerwood.mechanisms.exact.randomness import SecureRandom
from ledgerwood.mechanisms.laplace import LaplaceMechanism
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.trainers.parts.initial_scores import InitialScore
from ledgerwood.verification.errata.dpboost import (
    BoostFromAverage,
    FixedSeeds,
    GainSensitivity,
    GeometricIndex,
    HardwiredLambda,
    PositiveGain,
    QuantileBins,
    SinglePrecisionNoise,
    SubsetSizes,
)

# gain sensitivity ----------------------------------------------------------------------------------------------------


def gain_sensitivity_exponents(specimen, rate):
    """rate times the gains of all candidates, with the row and without it, in mpmath."""
    n, lam = mp.mpf(specimen.count), mp.mpf(specimen.regularization)
    alone = n**2 / (n + lam)
    with_row = [(n - 1) ** 2 / (n + 1 + lam)] * specimen.alike + [alone + 1 / (1 + lam)]
    return [rate * g for g in with_row], [rate * alone] * (specimen.alike + 1)


@pytest.mark.parametrize("lam", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_gain_sensitivity_the_loss_by_enumeration(lam, epsilon, enumerated):
    specimen = GainSensitivity(regularization=lam, epsilon=epsilon, alike=30)
    assert specimen.sensitivity() == pytest.approx(1 - lam**2 / ((lam + 1) * (lam + 2)), rel=1e-14)
    both = gain_sensitivity_exponents(specimen, epsilon / (2 * mp.mpf(specimen.sensitivity())))
    for at in (0.0, epsilon, 1.5 * epsilon):
        delta, pure = enumerated(*both, at)
        assert specimen.delta(at) == pytest.approx(delta, rel=1e-9, abs=1e-15)
    assert specimen.pure_epsilon() == pytest.approx(pure, rel=1e-10)


@pytest.mark.parametrize("lam", [Fraction(1, 10), Fraction(1), Fraction(10)])
def test_gain_sensitivity_lemma_1_is_below_the_change_of_one_candidate_in_either_sign(lam):
    lemma, n = (3 * lam + 2) / ((lam + 1) * (lam + 2)), 10_000
    against = abs(Fraction(n - 1) ** 2 / (n + 1 + lam) - Fraction(n) ** 2 / (n + lam))
    along = Fraction(n + 1) ** 2 / (n + 1 + lam) - Fraction(n) ** 2 / (n + lam)
    assert against > Fraction(299, 100) > 3 * lemma * Fraction(99, 100)
    # The proof's own case grows with n; its bound is the value at n = 1.
    assert along == 1 - lam**2 / ((n + lam + 1) * (n + lam))
    assert along > lemma == Fraction(4) / (2 + lam) - 1 / (1 + lam)


def test_gain_sensitivity_the_librarys_choice_at_the_range_of_4_keeps_its_price(enumerated):
    specimen = GainSensitivity()
    mechanism = ExponentialMechanism(rate=specimen.epsilon / 4.0)
    price = lw.price(mechanism.event(UtilityRange(range=4.0), lw.Adjacency.ADD_REMOVE))
    assert price.epsilon(0.0) == pytest.approx(specimen.epsilon, rel=1e-12)
    for at in (0.0, 0.3, 0.6, 0.9):
        delta, pure = enumerated(*gain_sensitivity_exponents(specimen, mp.mpf(mechanism.rate)), at)
        assert delta <= price.delta(at)
        assert pure <= specimen.epsilon < specimen.pure_epsilon()
    assert specimen.delta(0.9) > 10 * price.delta(0.9)


# geometric index -----------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(3)  # the exact loss of each specimen
@pytest.mark.parametrize("tree", [51, 55, 101])
@pytest.mark.parametrize("fraction", [0.0, 0.4, 0.9])
def test_geometric_index_the_loss_by_quadrature(tree, fraction, laplace_delta):
    specimen = GeometricIndex(epsilon=0.02 * 0.9 ** (tree - 51), tree=tree)
    scale = 2 * 0.9 ** (tree - 1) / specimen.epsilon
    value = min(1 / 1.1, 0.9 ** ((tree - 1) % 50))
    at = fraction * value / scale
    assert specimen.delta(at) == pytest.approx(laplace_delta((value, scale), (0.0, scale), at), rel=1e-9)
    assert specimen.pure_epsilon() == pytest.approx(value / scale, rel=1e-12)


def geometric_index_leaf(total, count, bound):
    value = -total / (count + 0.1) if count else 0.0
    return min(max(value, -bound), bound)


@pytest.mark.parametrize("place", [1, 5, 8, 9, 20, 50])
def test_geometric_index_the_place_inside_the_ensemble_is_the_right_index(place):
    # All leaves of at most 12 rows with gradients of -1, 0 and 1, and one row more.
    bound = 0.9 ** (place - 1)
    most = max(
        abs(geometric_index_leaf(total + g, count + 1, bound) - geometric_index_leaf(total, count, bound))
        for count, g in itertools.product(range(13), (-1, 0, 1))
        for total in range(-count, count + 1)
    )
    assert most <= min(1 / 1.1, 2 * bound) * (1 + 1e-12)


def test_geometric_index_the_librarys_price_of_the_right_scale_keeps_the_claim(laplace_delta):
    # The first tree of any ensemble: scale 1 / (1 + lambda) / epsilon.
    price = lw.price(lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE))
    assert price.epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    for at in (0.0, 0.5, 0.9):
        assert laplace_delta((1 / 1.1, 1 / 1.1), (0.0, 1 / 1.1), at) <= price.delta(at) * (1 + 1e-9)
    assert GeometricIndex(tree=1).pure_epsilon() == pytest.approx(1.0, rel=1e-12)


# hardwired lambda ----------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(2)  # the exact loss of each specimen
@pytest.mark.parametrize("lam", [0.0, 0.05])
@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 1.04])
def test_hardwired_lambda_the_loss_by_quadrature(lam, at, laplace_delta):
    specimen, scale = HardwiredLambda(regularization=lam), 1 / 1.1
    assert specimen.delta(at) == pytest.approx(laplace_delta((1 / (1 + lam), scale), (0.0, scale), at), rel=1e-9)
    assert specimen.pure_epsilon() == pytest.approx(1.1 / (1 + lam), rel=1e-12)


def test_hardwired_lambda_lambda_of_a_tenth_is_what_the_scale_is_for():
    specimen = HardwiredLambda(regularization=0.1)
    assert specimen.pure_epsilon() == pytest.approx(1.0, rel=1e-12)
    price = lw.price(lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE))
    for at in (0.0, 0.5, 0.9):
        assert specimen.delta(at) <= price.delta(at) * (1 + 1e-12) < HardwiredLambda().delta(at)


@pytest.mark.parametrize("lam", [0.001, 0.1, 1.0, 10.0])
def test_hardwired_lambda_lemma_2_is_right(lam):
    # (2 n + lambda) / ((n + lambda) (n + 1 + lambda)), the largest change of a leaf of n rows, is largest at n = 0.
    changes = [(2 * n + lam) / ((n + lam) * (n + 1 + lam)) for n in range(2000)]
    assert max(changes) == changes[0] == pytest.approx(1 / (1 + lam), rel=1e-12)


# subset sizes --------------------------------------------------------------------------------------------------------


SUBSET_SIZES_LAPLACE = lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE)


@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 1.5, 1.9])
def test_subset_sizes_the_loss_is_that_of_both_leaves(at):
    price = lw.price(lw.Composed((SUBSET_SIZES_LAPLACE, SUBSET_SIZES_LAPLACE)))
    assert SubsetSizes().delta(at) == pytest.approx(price.delta(at), rel=1e-3)
    assert SubsetSizes().delta(at) <= price.delta(at) * (1 + 1e-12)


def test_subset_sizes_one_row_more_fills_every_subset():
    # Shares of 50 trees, in whole rows: of 49 rows none has one, of 50 all have.
    assert [[rows // 50 for _ in range(50)] for rows in (49, 50)] == [[0] * 50, [1] * 50]
    specimen = SubsetSizes()
    means = [specimen.sampler(rows, 40_000, np.random.default_rng(5)).mean(axis=0) for rows in specimen.pair]
    assert means[0] == pytest.approx([1 / 1.1] * 2, abs=0.03)
    assert means[1] == pytest.approx([0.0] * 2, abs=0.03)


def test_subset_sizes_the_librarys_assignment_row_by_row_costs_one_tree():
    # Each row goes to tree 1 or 2 by a coin of its own: on the same pair, the law with the row is a mean over coins.
    groups = lw.Parallel((SUBSET_SIZES_LAPLACE, SUBSET_SIZES_LAPLACE), probabilities=(0.5, 0.5))
    price = lw.price(groups)
    assert price.epsilon(0.0) <= 1.0
    grid = np.linspace(-14, 15, 1161)
    near, cell = np.exp(-1.1 * np.abs(grid)) * 0.55, (grid[1] - grid[0]) ** 2
    far, both = (np.exp(-1.1 * np.abs(grid - rows / (rows + 0.1))) * 0.55 for rows in (1.0, 2.0))
    # With one row: it is in tree 1 or 2. With two: both in one tree, or one in each.
    one = 0.5 * (np.outer(far, near) + np.outer(near, far))
    two = 0.25 * (np.outer(both, near) + np.outer(near, both)) + 0.5 * np.outer(far, far)
    for at in (0.0, 0.2, 0.5, 0.8):
        for p, q in ((two, one), (one, two)):
            assert np.maximum(p - np.exp(at) * q, 0.0).sum() * cell <= price.delta(at) + 1e-3


# positive gain -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("at", [0.0, 0.3, 100.0])
def test_positive_gain_the_loss_by_enumeration(epsilon, at):
    node = 1 / mp.mpf("5.1")
    good, useless = 9 / mp.mpf("3.1") + 4 / mp.mpf("2.1") - node, 1 / mp.mpf("3.1") - node
    weights = [mp.exp(epsilon * g / 6) for g in (good, good, useless)]
    p = [w / mp.fsum(weights) for w in weights]
    q = [mp.mpf("0.5"), mp.mpf("0.5"), mp.mpf(0)]  # without the row the last gain is 0
    sides = (mp.fsum(max(a - mp.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p)))
    specimen = PositiveGain(epsilon=epsilon)
    assert specimen.delta(at) == pytest.approx(float(max(sides)), rel=1e-12)
    assert specimen.pure_epsilon() == math.inf


def test_positive_gain_a_choice_among_all_candidates_keeps_its_price(enumerated):
    # The node's term is common to all candidates and cancels; the useless one keeps its weight. Range 4.
    with_row = [0.25 * g for g in (9 / 3.1 + 4 / 2.1, 9 / 3.1 + 4 / 2.1, 1 / 3.1)]
    without = [0.25 * g for g in (8 / 2.1, 8 / 2.1, 0.0)]
    price = lw.price(lw.BoundedRangeEvent(epsilon=1.0, adjacency=lw.Adjacency.ADD_REMOVE))
    for at in (0.0, 0.1, 0.5):
        delta, pure = enumerated(with_row, without, at)
        assert delta <= price.delta(at)
        assert pure <= 1.0


# quantile bins -------------------------------------------------------------------------------------------------------


def test_quantile_bins_a_choice_between_all_points_has_the_same_points_on_both_data_sets():
    held = []
    for rows in QuantileBins().pair:
        candidates = NumericCandidates(
            positions=np.sort(rows.astype(np.int64)), points=10, utilities=np.zeros(rows.size + 1, dtype=np.int64)
        )
        starts, sizes, _ = candidates.cells()
        held.append(np.concatenate([np.arange(s, s + k) for s, k in zip(starts, sizes, strict=True)]).tolist())
    assert held[0] == held[1] == list(range(10))


# boost from average --------------------------------------------------------------------------------------------------


def test_boost_from_average_the_librarys_initial_score_is_released_with_noise_and_paid_for():
    score = InitialScore(kind="moments", adjacency=lw.Adjacency.ADD_REMOVE, multiplier=4.0, expected_rows=None)
    assert all(lw.price(event).delta(0.1) > 0.0 for event in score.events)
    schema = lw.Schema.uniform(-1.0, 1.0, target=lw.Numeric("y", -1.0, 1.0))
    rows = BoostFromAverage().pair[0]
    found = {
        float(
            SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=2).fit(rows[:, None], rows).ensemble_.initial_score
        )
        for _ in range(3)
    }
    assert len(found) == 3


# fixed seeds ---------------------------------------------------------------------------------------------------------


def test_fixed_seeds_the_noise_is_the_same_in_every_run_and_on_every_data_set():
    specimen = FixedSeeds()
    runs = [specimen.sampler(rows, 2, np.random.default_rng(seed)) for rows in specimen.pair for seed in (1, 2)]
    assert len({float(value) for value in runs[0][:, 0]} | {float(value) for value in runs[1][:, 0]}) == 1
    # Whoever has the source code takes it away, and reads the leaf itself.
    noise = np.random.default_rng(42).laplace(0.0, 1 / 1.1)
    leaves = [specimen.output(rows)[0] - noise for rows in specimen.pair]
    assert leaves == pytest.approx([1 / 1.1, 0.0])


def test_fixed_seeds_the_librarys_noise_is_fresh():
    mechanism, grid = LaplaceMechanism(scales=(1 / 1.1,)), Grid(exponents=(-30,))
    draws = [mechanism.randomise(np.zeros((4, 1), dtype=np.int64), grid, SecureRandom()) for _ in range(2)]
    assert not np.array_equal(*draws)


# single precision noise ----------------------------------------------------------------------------------------------


def single_precision_noise_is_single(x):
    return x == x.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_single_precision_noise_the_outputs_of_the_two_data_sets_are_disjoint(epsilon):
    specimen = SinglePrecisionNoise(epsilon=epsilon)
    with_row, without = (specimen.sampler(rows, 500_000, np.random.default_rng(9)) for rows in specimen.pair)
    assert single_precision_noise_is_single(without).all()
    assert not single_precision_noise_is_single(with_row).any()


def test_single_precision_noise_no_noise_of_single_precision_takes_the_last_bits_away():
    # 100,000 float32 around every power of 2 up to 64, both signs, and around the one that nearly cancels 1 / 1.1.
    steps = np.arange(-50_000, 50_000)
    centres = [sign * 2.0**k for k in range(-40, 7) for sign in (1, -1)] + [-1 / 1.1]
    for centre in centres:
        bits = np.float32(centre).view(np.int32)
        noise = (bits + steps).astype(np.int32).view(np.float32).astype(np.float64)
        assert not single_precision_noise_is_single(1 / 1.1 + noise).any()


def test_single_precision_noise_the_facts_of_the_proof():
    leaf, units = Fraction(1 / 1.1), 2**53 * Fraction(1 / 1.1)
    assert units.denominator == 1
    assert units.numerator % 2 == 1
    assert abs(leaf - Fraction(10, 11)) <= Fraction(1, 2**54)
    for j in range(34):
        rest = leaf * 2**j % 1
        assert Fraction(1, 12) < rest < Fraction(11, 12)
    assert Fraction(1, 12 * 2**33) > Fraction(1, 2**47)
    for epsilon in (0.25, 1.0, 4.0):
        specimen = SinglePrecisionNoise(epsilon=epsilon)
        noise = specimen.sampler(specimen.pair[1], 500_000, np.random.default_rng(10))
        assert (np.abs(noise) < 64).all()
        assert (noise * 2.0**50 % 1.0 == 0.0).all()
    # The largest deviate, and the finest: the smallest one that is not 0, and the scale at epsilon 4.
    assert 24 * np.log(2) / 1.1 / 0.25 < 64
    assert np.spacing(np.float32(2.0**-24 / 1.1 / 4)) >= 2.0**-50


def test_single_precision_noise_the_librarys_outputs_are_steps_of_one_grid():
    # Noise is a whole number of the statistic's steps, so both data sets have the same possible outputs.
    grid = Grid(exponents=(-30,))
    mechanism = LaplaceMechanism(scales=(1 / 1.1,))
    seen = [
        mechanism.randomise(np.full((1000, 1), round(value * 2**30), dtype=np.int64), grid, SecureRandom())
        for value in (1 / 1.1, 0.0)
    ]
    assert all(values.dtype == np.int64 for values in seen)
    assert {int(value) % 2 for value in seen[0][:, 0]} == {int(value) % 2 for value in seen[1][:, 0]} == {0, 1}
