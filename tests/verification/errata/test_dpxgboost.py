"""The specimens of DP-XGBoost: their exact losses by independent means, and what the library does instead."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.choices.selection import ExponentialMechanism, UtilityRange
from ledgerwood.mechanisms.exact.randomness import SecureRandom
from ledgerwood.mechanisms.laplace import LaplaceMechanism
from ledgerwood.trainers.parts.leaves import newton_leaves
from ledgerwood.verification.errata.dpxgboost import (
    ChosenGain,
    ExponentialScale,
    NewtonGain,
    NoisyAverage,
    PublicSample,
    ReplacedGain,
    ReplacedSample,
    RoundTrees,
    SharedSeed,
    SketchNoise,
    SmallRoot,
    UnfilteredStatistics,
)

# noisy average -------------------------------------------------------------------------------------------------------


def noisy_average_laws(specimen):
    n, lam, scale = specimen.count, specimen.regularization, 2 / specimen.epsilon
    return tuple((mp.mpf(-total) / (rows + lam), scale / (rows + lam)) for total, rows in ((n - 1, n + 1), (n, n)))


def noisy_average_log_density(law):
    centre, scale = law
    return lambda x: -abs(x - centre) / scale - mp.log(2 * scale)


def noisy_average_below(x, law):
    z = (x - law[0]) / law[1]
    return mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2


@pytest.mark.slow_after(2)  # the exact loss of each specimen
@pytest.mark.parametrize("count", [0, 1, 5, 50])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("at", [0.0, 0.08, 0.5])
def test_noisy_average_the_loss_by_quadrature_and_the_two_ends(count, epsilon, at, hockey_stick):
    specimen = NoisyAverage(count=count, epsilon=epsilon)
    found = []
    for p, q in (noisy_average_laws(specimen), noisy_average_laws(specimen)[::-1]):
        edges = sorted({-1, 1, *(x for x in (p[0], q[0]) if abs(x) < 1)})
        ends = [
            noisy_average_below(-1, p) - mp.exp(at) * noisy_average_below(-1, q),
            (1 - noisy_average_below(1, p)) - mp.exp(at) * (1 - noisy_average_below(1, q)),
        ]
        found.append(
            hockey_stick(noisy_average_log_density(p), noisy_average_log_density(q), at, edges)
            + float(sum(max(end, 0) for end in ends))
        )
    assert specimen.delta(at) == pytest.approx(max(found), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(
    ("count", "epsilon", "figure"), [(0, 0.1, 2.402), (1, 0.1, 0.697), (5, 0.1, 0.262), (50, 0.1, 0.117), (1, 1, 1.147)]
)
def test_noisy_average_the_pure_loss_is_that_of_the_densest_grid(count, epsilon, figure):
    specimen = NoisyAverage(count=count, epsilon=epsilon)
    first, second = (noisy_average_log_density(law) for law in noisy_average_laws(specimen))
    points = [mp.mpf(k) / 500 for k in range(-500, 501)] + [law[0] for law in noisy_average_laws(specimen)]
    ratios = [float(abs(first(x) - second(x))) for x in points]
    assert max(ratios) <= specimen.pure_epsilon() * (1 + 1e-12)
    assert max(ratios) == pytest.approx(specimen.pure_epsilon(), rel=1e-9)
    assert specimen.pure_epsilon() == pytest.approx(figure, abs=1e-3)


def test_noisy_average_a_noisy_sum_over_a_noisy_count_keeps_the_claim():
    half = lw.LaplaceEvent(noise_multiplier=2 / 0.1, adjacency=lw.Adjacency.ADD_REMOVE)
    price = lw.price(lw.Composed((half, half)))
    assert price.epsilon(0.0) == pytest.approx(0.1, rel=1e-12)
    value = newton_leaves(np.array([3.2, -0.4]), np.array([1.1, 0.3]), reg_lambda=0.1, rule="add")
    assert value == pytest.approx([-1.1 / 3.3, -3.0])


# small root ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(2)  # the exact loss of each specimen
@pytest.mark.parametrize("weight", [1.0, 50.0])
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.95])
def test_small_root_the_loss_by_quadrature(weight, fraction, laplace_delta):
    specimen, scale = SmallRoot(min_child_weight=weight, epsilon=0.1), 2 / (weight + 1.1) / 0.1
    at = fraction / 1.1 / scale
    assert specimen.delta(at) == pytest.approx(laplace_delta((1 / 1.1, scale), (0.0, scale), at), rel=1e-9)
    assert specimen.pure_epsilon() == pytest.approx(1 / 1.1 / scale, rel=1e-12)


@pytest.mark.parametrize("least", [1, 20, 50])
@pytest.mark.parametrize("lam", [Fraction(0), Fraction(1, 10), Fraction(3)])
def test_small_root_equation_7_holds_where_both_leaves_have_the_least_number_of_rows(least, lam):
    changes = [(2 * n + lam) / ((n + lam) * (n + 1 + lam)) for n in range(least, 10 * least + 1)]
    assert max(changes) <= Fraction(2) / (least + 1 + lam)


def test_small_root_the_librarys_price_of_the_sensitivity_of_any_leaf_keeps_the_claim():
    # 1 / (1 + lambda) whatever the number of rows: at the specimen's noise the price is what the specimen loses.
    specimen = SmallRoot()
    noise = 2 / 51.1 / specimen.epsilon / (1 / 1.1)
    price = lw.price(lw.LaplaceEvent(noise_multiplier=noise, adjacency=lw.Adjacency.ADD_REMOVE))
    assert price.epsilon(0.0) == pytest.approx(specimen.pure_epsilon(), rel=1e-12)
    for at in (0.0, 10.0, 23.0):
        assert price.delta(at) >= specimen.delta(at) * (1 - 1e-9)


# unfiltered statistics -----------------------------------------------------------------------------------------------


@pytest.mark.slow  # the exact loss of each specimen
@pytest.mark.parametrize("label", [10.0, 1e5])
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.95])
def test_unfiltered_statistics_the_loss_by_quadrature(label, fraction, laplace_delta):
    specimen, scale = UnfilteredStatistics(label=label, epsilon=0.1), 2 / 51.1 / 0.1
    with_row, without = min((label - 50) / 101.1, 1.0), -50 / 100.1
    at = fraction * (with_row - without) / scale
    assert specimen.delta(at) == pytest.approx(laplace_delta((with_row, scale), (without, scale), at), rel=1e-8)
    assert specimen.pure_epsilon() == pytest.approx((with_row - without) / scale, rel=1e-12)


def test_unfiltered_statistics_a_row_that_is_clipped_before_the_sum_keeps_the_claim():
    # One gradient of -1 more among 100 of 1/2 moves the leaf by less than equation 7.
    assert abs((1 - 50) / 101.1 + 50 / 100.1) < 2 / 51.1
    price = lw.price(lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE))
    assert price.epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    assert UnfilteredStatistics(label=1.0).pure_epsilon() < 1.0 < UnfilteredStatistics().pure_epsilon()


# replaced gain -------------------------------------------------------------------------------------------------------


def replaced_gain_exponents(rate, count, alike):
    """The first candidate's gain less the others', 4 n / (n + 1 + lambda), on either side."""
    gap = rate * mp.mpf(4) * count / (count + mp.mpf("1.1"))
    return [gap, *[0] * alike], [0, *[gap] * alike]


@pytest.mark.slow_after(5)  # the exact loss of each specimen
@pytest.mark.parametrize("count", [1, 1000])
@pytest.mark.parametrize("alike", [1, 20, 500])
@pytest.mark.parametrize("at", [0.0, 1.0, 1.2])
def test_replaced_gain_the_loss_by_enumeration(count, alike, at, enumerated):
    specimen = ReplacedGain(count=count, alike=alike)
    delta, pure = enumerated(*replaced_gain_exponents(mp.mpf(1) / 6, count, alike), at)
    assert specimen.delta(at) == pytest.approx(delta, rel=1e-9, abs=1e-14)
    assert specimen.pure_epsilon() == pytest.approx(pure, rel=1e-9)


def test_replaced_gain_the_loss_tends_to_8_sixths():
    assert ReplacedGain(count=10**5, alike=10**5).pure_epsilon() == pytest.approx(4 / 3, rel=1e-3)


def test_replaced_gain_the_librarys_choice_at_the_range_of_8_keeps_its_price(enumerated):
    mechanism = ExponentialMechanism(rate=1 / 8)
    price = lw.price(mechanism.event(UtilityRange(range=8.0), lw.Adjacency.REPLACE_ONE))
    assert price.epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    for at in (0.0, 0.5, 0.9):
        delta, pure = enumerated(*replaced_gain_exponents(mp.mpf(1) / 8, 1000, 20), at)
        assert delta <= price.delta(at)
        assert pure <= 1.0


# newton gain ---------------------------------------------------------------------------------------------------------


def newton_gain_gains(count):
    """Of both candidates with the row: it joins its like, or its opposite."""
    g, h, lam = mp.mpf("0.99"), mp.mpf("0.99") * mp.mpf("0.01"), mp.mpf("0.1")
    alone = (count * g) ** 2 / (count * h + lam)
    return [((count + sign) * g) ** 2 / ((count + 1) * h + lam) + alone for sign in (1, -1)]


@pytest.mark.parametrize("count", [102, 200, 5000])
@pytest.mark.parametrize("at", [0.0, 0.05, 1.0])
def test_newton_gain_the_loss_by_enumeration(count, at, enumerated):
    specimen = NewtonGain(count=count)
    delta, pure = enumerated([g * specimen.epsilon / 6 for g in newton_gain_gains(count)], [0, 0], at)
    assert specimen.delta(at) == pytest.approx(delta, rel=1e-9, abs=1e-14)
    assert specimen.pure_epsilon() == pytest.approx(pure, rel=1e-9)


def test_newton_gain_the_change_of_the_gain_is_no_constant():
    changes = [newton_gain_gains(count)[0] - newton_gain_gains(count)[1] for count in (200, 2000)]
    assert changes[0] > 100 * 3
    # For gradients of 1 - t with hessians t (1 - t) it is about 4 / t: without a bound as t falls.
    for t in (1e-2, 1e-4, 1e-6):
        count = 100 / t
        heavy = ((count + 1) ** 2 - (count - 1) ** 2) * (1 - t) ** 2 / ((count + 1) * t * (1 - t) + 0.1)
        assert heavy > 3.5 / t


def test_newton_gain_unit_hessians_keep_the_librarys_price(enumerated):
    # The same rows with the hessian of squared loss, at the range of 4.
    price = lw.price(lw.BoundedRangeEvent(epsilon=0.05, adjacency=lw.Adjacency.ADD_REMOVE))
    with_row = [(198 + sign * 0.99) ** 2 / 201.1 * 0.05 / 4 for sign in (1, -1)]
    for at in (0.0, 0.02, 0.04):
        delta, pure = enumerated(with_row, [0, 0], at)
        assert delta <= price.delta(at)
        assert pure <= 0.05


# chosen gain ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("at", [0.0, 0.3, 100.0])
def test_chosen_gain_the_loss_by_enumeration(epsilon, at):
    node = 1 / mp.mpf("5.1")
    weights = [mp.exp(epsilon * (g - node) / 6) for g in (9 / mp.mpf("3.1") + 4 / mp.mpf("2.1"), 1 / mp.mpf("3.1"))]
    p = [mp.mpf(0), *(w / mp.fsum(weights) for w in weights)]
    first = mp.exp(epsilon * 8 / mp.mpf("2.1") / 6)
    q = [1 / (1 + first), first / (1 + first), mp.mpf(0)]
    sides = (mp.fsum(max(a - mp.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p)))
    specimen = ChosenGain(epsilon=epsilon)
    assert specimen.delta(at) == pytest.approx(float(max(sides)), rel=1e-12)
    assert specimen.pure_epsilon() == math.inf


def test_chosen_gain_a_choice_that_is_kept_keeps_its_price(enumerated):
    price = lw.price(lw.BoundedRangeEvent(epsilon=1.0, adjacency=lw.Adjacency.ADD_REMOVE))
    for at in (0.0, 0.1, 0.5):
        delta, pure = enumerated([(9 / 3.1 + 4 / 2.1) / 4, 1 / 3.1 / 4], [8 / 2.1 / 4, 0.0], at)
        assert delta <= price.delta(at)
        assert pure <= 1.0


# sketch noise --------------------------------------------------------------------------------------------------------


def test_sketch_noise_the_second_histogram_less_the_first_is_exact():
    specimen = SketchNoise()
    for rows in specimen.pair:
        first, second = specimen.sampler(rows, 1000, np.random.default_rng(6)).T
        assert second - first == pytest.approx(rows[:, 1].sum())
    assert [rows[:, 1].sum() for rows in specimen.pair] == [2.0, 1.0]


def test_sketch_noise_two_draws_are_paid_for_as_two():
    # One row is in one bin of each feature's histogram: two Laplace releases, epsilon / 2 each.
    one = lw.LaplaceEvent(noise_multiplier=2.0, adjacency=lw.Adjacency.ADD_REMOVE)
    assert lw.price(lw.Composed((one, one))).epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    mechanism, grid = LaplaceMechanism(scales=(2.0, 2.0)), Grid(exponents=(-20, -20))
    drawn = mechanism.randomise(np.zeros((200, 2), dtype=np.int64), grid, SecureRandom())
    assert np.unique(drawn[:, 1] - drawn[:, 0]).size > 150


# shared seed ---------------------------------------------------------------------------------------------------------


def test_shared_seed_the_difference_of_the_leaves_is_exact():
    specimen = SharedSeed()
    gaps = [-1.5 / -2.1 + 0.5 / 1.1, 0.5 / 1.1 + 0.5 / 1.1]
    for rows, gap in zip(specimen.pair, gaps, strict=True):
        first, second = specimen.sampler(rows, 1000, np.random.default_rng(6)).T
        assert first - second == pytest.approx(gap)


def test_shared_seed_fresh_noise_keeps_the_price():
    one = lw.LaplaceEvent(noise_multiplier=2.0, adjacency=lw.Adjacency.ADD_REMOVE)
    assert lw.price(lw.Repeated(one, count=2)).epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    mechanism, grid = LaplaceMechanism(scales=(2 / 1.1,)), Grid(exponents=(-30,))
    trees = [mechanism.randomise(np.zeros((8, 1), dtype=np.int64), grid, SecureRandom()) for _ in range(2)]
    assert not np.array_equal(*trees)


# public sample -------------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(2)  # the exact loss of each specimen
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.9])
@pytest.mark.parametrize("at", [0.0, 0.1586, 0.9])
def test_public_sample_the_loss_is_that_without_sampling(rate, at, laplace_delta):
    specimen = PublicSample(sampling_rate=rate)
    with_row, without = (int(rows.sum()) for rows in specimen.pair)
    mask = np.random.default_rng(0).random(with_row) < rate
    assert mask[-1]
    assert with_row - without == 1
    counts = [float(mask.sum()), float(mask[:-1].sum())]
    assert specimen.delta(at) == pytest.approx(laplace_delta((counts[0], 1.0), (counts[1], 1.0), at), rel=1e-9)


def test_public_sample_the_formula_holds_for_a_secret_poisson_sample():
    specimen = PublicSample()
    event = lw.PoissonSampled(
        lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE), sampling_rate=0.1
    )
    price = lw.price(event)
    assert price.epsilon(0.0) == pytest.approx(math.log1p(0.1 * math.expm1(1.0)), rel=1e-12)
    assert price.epsilon(0.0) == pytest.approx(specimen.claim.epsilon, rel=1e-12)
    assert price.delta(0.1) < specimen.delta(0.1) / 10
    # n trees, each of one fresh sample: n times as much.
    twenty = lw.price(lw.Repeated(event, count=20))
    assert twenty.epsilon(0.0) == pytest.approx(20 * specimen.claim.epsilon, rel=1e-9)


# replaced sample -----------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(2)  # the exact loss of each specimen
@pytest.mark.parametrize(("sample", "count"), [(1, 10), (1, 2), (9, 10)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.99])
def test_replaced_sample_the_loss_by_quadrature(sample, count, epsilon, fraction, hockey_stick):
    specimen, rate = ReplacedSample(sample=sample, count=count, epsilon=epsilon), mp.mpf(sample) / count

    def law(sign):
        return lambda x: mp.log(
            epsilon / 2 * ((1 - rate) * mp.exp(-epsilon * abs(x)) + rate * mp.exp(-epsilon * abs(x - sign)))
        )

    pure = float(mp.log((1 - rate + rate * mp.exp(epsilon)) / (1 - rate + rate * mp.exp(-epsilon))))
    at, far = fraction * pure, 45 / epsilon
    edges = [-far, -1, 0, 1, far]
    assert specimen.delta(at) == pytest.approx(hockey_stick(law(1), law(-1), at, edges), rel=1e-8)
    assert specimen.rows()[-1].exact == pytest.approx(pure, rel=1e-12)
    assert specimen.delta(pure * 1.0001) == 0.0


def test_replaced_sample_the_librarys_sample_of_a_fixed_size_takes_the_replaced_rows_price():
    # The sum moves by 2 where its row is replaced: multiplier 1/2 at the specimen's noise.
    inner = lw.LaplaceEvent(noise_multiplier=0.5, adjacency=lw.Adjacency.REPLACE_ONE)
    price = lw.price(lw.FixedSizeSampled(inner, sample_size=1, population=10))
    specimen = ReplacedSample()
    assert price.epsilon(0.0) >= specimen.rows()[-1].exact
    for at in (0.0, 0.1586, 0.2):
        assert price.delta(at) >= specimen.delta(at) * (1 - 1e-12)


# round trees ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 1.9])
def test_round_trees_the_loss_is_that_of_two_leaves(at):
    leaf = lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE)
    price = lw.price(lw.Composed((leaf, leaf)))
    assert price.epsilon(0.0) == pytest.approx(2.0, rel=1e-12)
    assert RoundTrees().delta(at) <= price.delta(at) * (1 + 1e-12)
    assert RoundTrees().delta(at) == pytest.approx(price.delta(at), rel=1e-3)


def test_round_trees_ten_classes_are_ten_leaves():
    leaf = lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE)
    assert RoundTrees().rows()[-1].exact == pytest.approx(lw.price(lw.Repeated(leaf, count=10)).epsilon(0.0))


# exponential scale ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [1, 20, 200])
@pytest.mark.parametrize("at", [0.0, 1.0, 1.5])
def test_exponential_scale_the_loss_by_enumeration(others, at, enumerated):
    specimen = ExponentialScale(others=others)
    delta, pure = enumerated([1, *[-1] * others], [0] * (others + 1), at)
    assert specimen.delta(at) == pytest.approx(delta, rel=1e-10, abs=1e-14)
    assert specimen.pure_epsilon() == pytest.approx(pure, rel=1e-10)


def test_exponential_scale_the_loss_tends_to_twice_the_claim():
    assert ExponentialScale(others=10**5).pure_epsilon() == pytest.approx(2.0, rel=1e-3)


def test_exponential_scale_the_librarys_choice_at_this_range_keeps_its_price(enumerated):
    mechanism = ExponentialMechanism(rate=0.5)
    price = lw.price(mechanism.event(UtilityRange(range=2.0), lw.Adjacency.ADD_REMOVE))
    for at in (0.0, 0.5, 0.9):
        delta, pure = enumerated([0.5, *[-0.5] * 20], [0] * 21, at)
        assert delta <= price.delta(at)
        assert pure <= price.epsilon(0.0) <= 1.0 + 1e-12
