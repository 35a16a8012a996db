import itertools
import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

from ledgerwood.accounting import price
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteLaplaceEvent,
    Event,
    FixedSizeSampled,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PureEvent,
    RandomizedResponseEvent,
    Repeated,
    ReplaceOneSampled,
)
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A, R, Z = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT
EPSILONS = np.array([0.0, 0.01, 0.05, 0.1, 0.3, 0.7, 1.0, 1.5])
ORDERS = np.array([1.01, 1.5, 2.0, 3.0, 8.0, 30.0])
GAUSSIAN = GaussianEvent(noise_multiplier=0.55, adjacency=R)


def fixed(event: Event, size: int, population: int) -> FixedSizeSampled:
    return FixedSizeSampled(event, sample_size=size, population=population)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return float(np.log(np.sum(np.exp(order * np.log(p) + (1.0 - order) * np.log(q)))) / (order - 1.0))


def response(row: int, epsilon: float, categories: int) -> np.ndarray:
    odds = np.ones(categories)
    odds[row] = math.exp(epsilon)
    return odds / odds.sum()


def noisy_sum(total: int, scale: float) -> np.ndarray:
    z = np.arange(-60, 61)
    law = np.exp(-np.abs(z - total) / scale)
    return law / (1.0 + 2.0 * np.exp(-np.arange(1, 400) / scale).sum())


def sample_law(rows: tuple[int, ...], size: int, release: Callable[[tuple[int, ...]], np.ndarray]) -> np.ndarray:
    """The law of a release from a sample of `size` rows without replacement, by enumeration."""
    return np.mean([release(sample) for sample in itertools.combinations(rows, size)], axis=0)


def poisson_law(rows: tuple[int, ...], rate: float, release: Callable[[tuple[int, ...]], np.ndarray]) -> np.ndarray:
    """The law of a release from a Poisson sample, by enumeration."""
    total = 0.0
    for size in range(len(rows) + 1):
        weight = rate**size * (1.0 - rate) ** (len(rows) - size)
        total = total + weight * sum(release(sample) for sample in itertools.combinations(rows, size))
    return np.asarray(total)


def assert_bounds(event: Event, one: np.ndarray, other: np.ndarray) -> None:
    """The event's curves are at least the truth of this pair of data sets, either way."""
    for p, q in ((one, other), (other, one)):
        for direction in Direction:
            bound = np.exp(event.log_profile(EPSILONS, direction=direction))
            assert np.all(bound >= [hockey_stick(p, q, t) - 1e-14 for t in EPSILONS])
        assert np.all(event.renyi(ORDERS) >= [divergence(p, q, a) * (1.0 - 1e-9) for a in ORDERS])


@pytest.mark.slow_after(3)  # every table is enumerated
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize(("size", "population"), [(1, 2), (1, 5), (2, 3), (3, 3)])
def test_a_sampled_response_by_enumeration(size: int, population: int, epsilon: float) -> None:
    """Each sample answers with one row's category; rows of three categories, so that all three laws differ."""
    event = fixed(RandomizedResponseEvent(epsilon=epsilon, categories=3, adjacency=R), size, population)

    def first(sample: tuple[int, ...]) -> np.ndarray:
        return response(sample[-1], epsilon, 3)

    for rest in itertools.product(range(3), repeat=population - 1):
        one, other = (sample_law((*rest, row), size, first) for row in (0, 1))
        assert_bounds(event, one, other)


@pytest.mark.parametrize(("size", "rows"), [(1, (0, 2, 1)), (2, (0, 0, 2, 1)), (3, (1, 1, 0, 2, 0)), (2, (2, 2))])
def test_a_sampled_sum_by_enumeration(size: int, rows: tuple[int, ...]) -> None:
    event = fixed(DiscreteLaplaceEvent(scale=2.5, sensitivity=2, adjacency=R), size, len(rows) + 1)

    def release(sample: tuple[int, ...]) -> np.ndarray:
        return noisy_sum(sum(sample), 2.5)

    assert_bounds(event, *(sample_law((*rows, row), size, release) for row in (0, 2)))


def test_the_profile_is_attained() -> None:
    """By a population whose other rows are the new row: then a row that is not drawn is as good as replaced."""
    event = fixed(RandomizedResponseEvent(epsilon=1.0, categories=3, adjacency=R), 1, 4)
    one, other = (sample_law((1, 1, 1, row), 1, lambda s: response(s[0], 1.0, 3)) for row in (0, 1))
    truth = [hockey_stick(one, other, t) for t in EPSILONS[:5]]
    np.testing.assert_allclose(np.exp(event.log_profile(EPSILONS[:5], direction=Direction.REMOVE)), truth, rtol=1e-12)


def test_no_single_sampled_pair_bounds_the_divergence() -> None:
    """Three rows that are all different are dearer than (1 - q) Q + q P against Q, in both directions of that pair."""
    q, order = 0.1, 2.0
    p, r = response(0, 1.0, 3), response(1, 1.0, 3)
    single = max(divergence((1 - q) * r + q * p, r, order), divergence(r, (1 - q) * r + q * p, order))
    truth = divergence(*((1 - q) * response(2, 1.0, 3) + q * law for law in (p, r)), order)
    bound = fixed(RandomizedResponseEvent(epsilon=1.0, categories=3, adjacency=R), 1, 10).renyi([order])[0]
    assert single < 0.95 * truth
    assert truth <= bound <= 1.7 * truth


def exact_divergence(mu: float, q: mp.mpf, order: float, present: float | None) -> mp.mpf:
    """The integral of the bounding profile of normal noise, in mpmath."""

    def profile(x: float, t: mp.mpf) -> mp.mpf:
        return mp.ncdf(x / 2 - t / x) - mp.exp(t) * mp.ncdf(-x / 2 - t / x)

    def integrand(t: mp.mpf) -> mp.mpf:
        inner = mp.log1p(mp.expm1(t) / q)
        value = profile(mp.mpf(mu), inner)
        if present is not None:
            share = mp.exp(t - inner)
            value = share * value + (1 - share) * profile(mp.mpf(present), inner)
        return (mp.exp((order - 1) * t) + mp.exp(-order * t)) * q * value

    with mp.workdps(20):
        ends = [0, 0.001, 0.01, 0.03, 0.1, 0.3, 0.6, 1, 2, 4, 8, 16, 32]
        total = mp.quad(integrand, [mp.mpf(end) for end in ends])
        return mp.log1p(order * (order - 1) * total) / (order - 1)


@pytest.mark.slow  # the truth by integrals or enumeration
@pytest.mark.parametrize(("mu", "size"), [(1 / 0.55, 256), (0.05, 18_000), (0.5, 54_000)])
def test_divergences_of_normal_noise_against_their_integral(mu: float, size: int) -> None:
    q = mp.mpf(size) / 60_000
    event = fixed(GaussianEvent(noise_multiplier=1.0 / mu, adjacency=R), size, 60_000)
    joint = ReplaceOneSampled(
        GaussianEvent(noise_multiplier=1.0 / mu, adjacency=R),
        add_remove=GaussianEvent(noise_multiplier=2.0 / mu, adjacency=A),
        sampling_rate=size / 60_000,
    )
    for order in (2.5,):
        found, truth = event.renyi([order])[0], exact_divergence(mu, q, order, None)
        assert truth * (1 - mp.mpf(10) ** -12) <= found <= truth * (1 + mp.mpf(2) * 10**-5)
        found, truth = joint.renyi([order])[0], exact_divergence(mu, q, order, mu / 2)
        assert truth * (1 - mp.mpf(10) ** -12) <= found <= truth * (1 + mp.mpf(10) ** -3)


def test_divergences_of_a_bounded_range_against_their_integral() -> None:
    """The supremum is taken in the profile: the row that is not drawn and the new row may have shifts of their own."""
    epsilon, q = 1.0, 0.3
    event = fixed(BoundedRangeEvent(epsilon=epsilon, adjacency=R), 3, 10)
    for order in (1.5, 7.5):

        def integrand(t: float, order: float = order) -> float:
            inner = math.log1p(math.expm1(t) / q)
            profile = q * (1.0 - math.exp((inner - epsilon) / 2.0)) ** 2 / (1.0 - math.exp(-epsilon))
            return (math.exp((order - 1.0) * t) + math.exp(-order * t)) * profile

        total = order * (order - 1.0) * quad(integrand, 0.0, math.log1p(q * math.expm1(epsilon)), epsabs=1e-14)[0]
        truth = math.log1p(total) / (order - 1.0)
        assert truth <= event.renyi([order])[0] <= truth * (1.0 + 1e-4)


def test_a_batch_of_sixty_thousand_rows() -> None:
    """A peer has 5.24 for 14 040 steps of 256 rows, multiplier 1.1 per clip norm; but a replaced row moves by 2."""
    plan = Repeated(fixed(GAUSSIAN, 256, 60_000), count=14_040)
    by_renyi, by_losses = price(plan, method="renyi"), price(plan)
    assert by_losses.method == "pld"
    assert by_losses.certified
    # 14.71 is the price of (1 - q) Q + q P against Q, which is not dearer than every pair of data sets; 24.06 that of
    # an older bound on the divergences
    assert 14.71 < by_losses.epsilon(1e-5) < by_renyi.epsilon(1e-5) < 24.06
    assert by_losses.epsilon_interval(1e-5)[0] > 14.71


@pytest.mark.parametrize("adjacency", [A, Z])
def test_a_private_number_of_rows_is_refused(adjacency: Adjacency) -> None:
    with pytest.raises(UnsupportedEvent, match="public here"):
        fixed(GaussianEvent(noise_multiplier=1.0, adjacency=adjacency), 1, 2)


def test_bad_sizes_are_refused() -> None:
    for size, population in ((0, 5), (6, 5), (1, 2**53 + 1), (True, 5), (1.0, 5)):
        with pytest.raises(InvalidParameter):
            fixed(GAUSSIAN, size, population)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedEvent, match="one sample"):
        fixed(fixed(GAUSSIAN, 2, 5), 5, 10)
    with pytest.raises(InvalidParameter, match="not an event"):
        fixed(1.0, 1, 2)  # type: ignore[arg-type]


def test_what_is_not_one_pair_is_not_sampled_again() -> None:
    event = fixed(GAUSSIAN, 1, 10)
    for power in (2.0, -1.0):
        moment = event.log_excess_moments([power], sampling_rate=1.0)[0]
        assert moment == pytest.approx(math.log(math.expm1(event.renyi([2.0])[0])), rel=1e-12)
    with pytest.raises(UnsupportedEvent, match="sampled again"):
        event.log_excess_moments([2.0], sampling_rate=0.5)
    with pytest.raises(UnsupportedEvent, match="third output distribution"):
        PoissonSampled(event, sampling_rate=0.5)
    with pytest.raises(UnsupportedEvent):
        fixed(Composed((GAUSSIAN, LaplaceEvent(noise_multiplier=1.0, adjacency=R))), 1, 2).renyi([2.0])
    with pytest.raises(UnsupportedEvent):
        event.mu()


def test_the_whole_population_is_the_event() -> None:
    event = fixed(GAUSSIAN, 7, 7)
    joint = ReplaceOneSampled(GAUSSIAN, add_remove=GaussianEvent(noise_multiplier=1.1, adjacency=A), sampling_rate=1.0)
    for whole in (event, joint):
        assert whole.mu() == GAUSSIAN.mu()
        np.testing.assert_array_equal(whole.renyi(ORDERS), GAUSSIAN.renyi(ORDERS))
        for direction in Direction:
            left, right = (e.log_profile(EPSILONS, direction=direction) for e in (whole, GAUSSIAN))
            np.testing.assert_array_equal(left, right)
        moments = whole.log_excess_moments([2.0], sampling_rate=0.1)
        np.testing.assert_array_equal(moments, GAUSSIAN.log_excess_moments([2.0], sampling_rate=0.1))


@pytest.mark.parametrize("multiplier", [1e-3, 0.05, 1.0, 1e4])
@pytest.mark.parametrize("population", [2, 10**3, 2**53])
def test_far_orders_and_small_rates_are_numbers(multiplier: float, population: int) -> None:
    orders = np.array([1.0 + 1e-6, 1.1, 10.0, 1e3, 1e6])
    event = fixed(GaussianEvent(noise_multiplier=multiplier, adjacency=R), 1, population)
    joint = ReplaceOneSampled(
        event.event,
        add_remove=GaussianEvent(noise_multiplier=2 * multiplier, adjacency=A),
        sampling_rate=event.sampling_rate,
    )
    dear, cheap = event.renyi(orders), joint.renyi(orders)
    for values in (dear, cheap):
        assert np.all(values > 0.0)
        assert np.all(np.isfinite(values))
        assert np.all(np.diff(values) >= -1e-9 * values[1:])
        assert np.all(values <= event.event.renyi(orders))
    assert np.all(cheap <= dear * 1.001)


def test_what_may_be_revealed_stays_revealed() -> None:
    rough = fixed(ApproximateEvent(epsilon=0.5, delta=1e-6, adjacency=R), 1, 10)
    assert np.all(np.isposinf(rough.renyi(ORDERS)))
    assert math.exp(rough.log_profile([50.0], direction=Direction.ADD)[0]) == pytest.approx(1e-7)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("rest", [(), (0,), (1, -1), (1, 1, 0)])
def test_a_poisson_sample_with_a_replaced_row_by_enumeration(rest: tuple[int, ...], rate: float) -> None:
    """Rows of -1, 0 or 1 are summed: replacing moves the sum by 2, presence by 1."""
    event = ReplaceOneSampled(
        DiscreteLaplaceEvent(scale=1.5, sensitivity=2, adjacency=R),
        add_remove=DiscreteLaplaceEvent(scale=1.5, sensitivity=1, adjacency=A),
        sampling_rate=rate,
    )

    def release(sample: tuple[int, ...]) -> np.ndarray:
        return noisy_sum(sum(sample), 1.5)

    for one, other in ((1, -1), (1, 0)):
        assert_bounds(event, *(poisson_law((*rest, row), rate, release) for row in (one, other)))


def test_presence_may_cost_more_than_replacement() -> None:
    """A release that counts rows: the bound holds where it is not convex, too."""
    event = ReplaceOneSampled(
        PureEvent(epsilon=0.1, adjacency=R), add_remove=PureEvent(epsilon=1.0, adjacency=Z), sampling_rate=0.3
    )
    absent, drawn, replaced = (np.array(law) for law in ((0.5, 0.3, 0.2), (0.6, 0.15, 0.25), (0.57, 0.16, 0.27)))
    assert np.abs(np.log(drawn / absent)).max() <= 1.0
    assert np.abs(np.log(drawn / replaced)).max() <= 0.1
    assert_bounds(event, *(0.7 * absent + 0.3 * law for law in (drawn, replaced)))


def test_a_presence_by_the_dearest_group_is_bounded() -> None:
    """A supremum over groups has no tail of its own: the bound is that without sampling where none is known."""
    groups = Parallel.worst((GaussianEvent(noise_multiplier=1.0, adjacency=A), PureEvent(epsilon=0.1, adjacency=A)))
    event = ReplaceOneSampled(GAUSSIAN, add_remove=groups, sampling_rate=0.1)
    np.testing.assert_array_equal(event.renyi(ORDERS), GAUSSIAN.renyi(ORDERS))


def test_the_two_relations_are_not_mixed_up() -> None:
    present = GaussianEvent(noise_multiplier=1.1, adjacency=A)
    with pytest.raises(UnsupportedEvent, match="PoissonSampled"):
        ReplaceOneSampled(present, add_remove=present, sampling_rate=0.1)
    with pytest.raises(UnsupportedEvent, match="row's presence"):
        ReplaceOneSampled(GAUSSIAN, add_remove=GAUSSIAN, sampling_rate=0.1)
    with pytest.raises(InvalidParameter):
        ReplaceOneSampled(GAUSSIAN, add_remove=present, sampling_rate=0.0)
    event = ReplaceOneSampled(GAUSSIAN, add_remove=present, sampling_rate=0.1)
    assert event.adjacency is R
    assert event.unsampled() == GAUSSIAN
    with pytest.raises(UnsupportedEvent, match="Gaussian-DP"):
        event.mu()
    with pytest.raises(UnsupportedEvent, match="sampled again"):
        event.log_excess_moments([2.0], sampling_rate=0.5)


@pytest.mark.slow  # the truth by integrals or enumeration
def test_presence_makes_a_poisson_sample_cheaper_than_a_fixed_size() -> None:
    poisson = ReplaceOneSampled(
        GAUSSIAN, add_remove=GaussianEvent(noise_multiplier=1.1, adjacency=A), sampling_rate=256 / 60_000
    )
    cheap, dear = (Repeated(event, count=1000) for event in (poisson, fixed(GAUSSIAN, 256, 60_000)))
    assert price(cheap).epsilon(1e-5) < 0.6 * price(dear).epsilon(1e-5)
    assert price(cheap, method="pld").epsilon(1e-5) < 0.6 * price(dear, method="pld").epsilon(1e-5)


def test_all_rows_but_one_of_the_largest_population() -> None:
    """The rate rounds up to 1: the price is that of all rows."""
    event = fixed(GAUSSIAN, 2**53 - 1, 2**53)
    np.testing.assert_array_equal(event.renyi(ORDERS), GAUSSIAN.renyi(ORDERS))
    for direction in Direction:
        expected = GAUSSIAN.log_profile(EPSILONS, direction=direction)
        np.testing.assert_array_equal(event.log_profile(EPSILONS, direction=direction), expected)
    assert event.mu() == GAUSSIAN.mu()


def test_no_divergence_is_above_the_pure_epsilon() -> None:
    for event in (
        fixed(BoundedRangeEvent(epsilon=1.0, adjacency=R), 1, 2),
        fixed(PureEvent(epsilon=0.5, adjacency=R), 3, 10),
    ):
        assert np.all(event.renyi(np.array([1.5, 300.0, 1e5, 1e9])) <= event.pure_epsilon())


def test_a_replacement_that_costs_less_than_a_presence() -> None:
    """Rows 0 and 1 move a response among three categories by little, the absence of a row by much: by enumeration."""
    q, near, far = 0.3, 0.2, 3.0
    event = ReplaceOneSampled(
        PureEvent(epsilon=near, adjacency=R), add_remove=PureEvent(epsilon=far, adjacency=A), sampling_rate=q
    )
    one, other = response(0, near, 2), response(1, near, 2)
    present = [
        np.array([*(law * math.exp(far) / (1.0 + math.exp(far))), 1.0 / (1.0 + math.exp(far))]) for law in (one, other)
    ]
    absent = np.array([*(np.ones(2) * 0.5 / (1.0 + math.exp(far))), math.exp(far) / (1.0 + math.exp(far))])
    assert_bounds(event, *((1.0 - q) * absent + q * law for law in present))
    assert event.pure_epsilon() == near
    normal = GaussianEvent(noise_multiplier=1.0, adjacency=A)
    assert price(ReplaceOneSampled(event.event, add_remove=normal, sampling_rate=q)).epsilon(0.0) == near
    for t in (0.0, 0.1, 0.19):  # q times the replacement's own profile
        whole = PureEvent(epsilon=near, adjacency=R).log_profile(np.array([t]), direction=Direction.ADD)[0]
        assert event.log_profile(np.array([t]), direction=Direction.ADD)[0] <= math.log(q) + whole + 1e-13


@pytest.mark.slow  # the truth by integrals or enumeration
def test_no_lower_end_above_a_certified_price() -> None:
    """The bound of a replaced row is not the profile of a pair: its lower end is that of a mechanism."""
    event = ReplaceOneSampled(
        GaussianEvent(noise_multiplier=50.0, adjacency=R),
        add_remove=GaussianEvent(noise_multiplier=2.0, adjacency=A),
        sampling_rate=0.3,
    )
    upper = price(event, method="renyi").epsilon(1e-5)
    assert price(event).epsilon(1e-5) <= upper  # was .903, the replacement alone costs .0587
    for method in ("tightest", "pld", "renyi"):
        low, high = price(event, method=method).epsilon_interval(1e-5)
        assert 0.0 < low <= min(high, upper)
    repeated = Repeated(event, count=3)
    low, high = price(repeated, method="pld").epsilon_interval(1e-5)
    assert 0.0 < low <= min(high, price(repeated, method="renyi").epsilon(1e-5))


def test_a_fixed_size_sample_of_a_poisson_sample_is_refused() -> None:
    """Ten of about ten rows that a Poisson sample of a thousand holds are not ten of a thousand."""
    inner = fixed(GAUSSIAN, 10, 1000)
    presence = GaussianEvent(noise_multiplier=1.0, adjacency=A)
    for event in (inner, Repeated(inner, count=1), Composed((inner, GAUSSIAN))):
        with pytest.raises(UnsupportedEvent, match="random and private"):
            ReplaceOneSampled(event, add_remove=presence, sampling_rate=0.01)


def test_a_random_group_has_no_public_size() -> None:
    batch = fixed(GAUSSIAN, 5, 100)
    with pytest.raises(UnsupportedEvent, match="no public number of rows"):
        Parallel((batch, Repeated(GAUSSIAN, count=2)), probabilities=(0.5, 0.5))
    with pytest.raises(UnsupportedEvent, match="no public number of rows"):
        Parallel((GAUSSIAN, Repeated(batch, count=2)), probabilities=(0.5, 0.5))
