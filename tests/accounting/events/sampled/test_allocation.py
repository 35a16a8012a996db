"""Random allocation beside quadrature, exact binomial sums, enumeration and a Monte Carlo estimate with a bound."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import ledgerwood as lw
from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses import averages, joint
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A, Z, R = lw.Adjacency.ADD_REMOVE, lw.Adjacency.ZERO_OUT, lw.Adjacency.REPLACE_ONE
EPSILONS = np.array([0.0, 0.02, 0.3, 1.0, 2.5])
DEEP = -30.0  # of a log delta, beyond which the grids are coarse


def gaussian(multiplier: float, adjacency: lw.Adjacency = A) -> lw.GaussianEvent:
    return lw.GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)


def two_steps(multiplier: float, epsilon: float, direction: Direction) -> float:
    """log H of one of two Gaussian steps: one output by quadrature, the other in closed form."""
    with mp.workdps(30):
        s, k = mp.mpf(multiplier), mp.exp(epsilon)

        def ratio(z):
            return mp.exp(z / s - 1 / (2 * s * s))

        def tail(x, sign):  # E (r - x)+ and E (x - r)+
            if x <= 0:
                return 1 - x if sign > 0 else mp.mpf(0)
            u = s * mp.log(x)
            return sign * (mp.ncdf(-sign * (u - 1 / (2 * s))) - x * mp.ncdf(-sign * (u + 1 / (2 * s))))

        strike, sign, scale = (2 * k, 1, 1) if direction is Direction.REMOVE else (2 / k, -1, k)
        kink = s * mp.log(strike) + 1 / (2 * s)
        ends = sorted({-30, -15, -8, -4, -2, 0, 2, 4, 8, 30, kink})
        return float(mp.log(scale * mp.quad(lambda z: mp.npdf(z) * tail(strike - ratio(z), sign) / 2, ends)))


@pytest.mark.parametrize("multiplier", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("direction", Direction)
def test_one_of_two_gaussian_steps_by_quadrature(multiplier, direction):
    event = lw.RandomAllocation(gaussian(multiplier), steps=2)
    above = event.log_profile(EPSILONS, direction=direction)
    below = joint.log_profile(event, EPSILONS, direction)
    for place, epsilon in enumerate(EPSILONS.tolist()):
        truth = two_steps(multiplier, epsilon, direction)
        assert below[place] <= truth <= above[place]
        if truth > DEEP:
            assert above[place] - below[place] <= 2e-3


def coin(epsilon: float, steps: int, threshold: float, direction: Direction) -> float:
    """log H of one of many randomised responses: the average ratio is that of a binomial number of ones."""
    with mp.workdps(40):
        e, k = mp.mpf(epsilon), mp.exp(threshold)
        no, total = 1 / (1 + mp.exp(e)), mp.mpf(0)
        for ones in range(steps + 1):
            chance = mp.binomial(steps, ones) * no**ones * (1 - no) ** (steps - ones)
            average = (ones * mp.exp(e) + (steps - ones) * mp.exp(-e)) / steps
            total += chance * max(average - k if direction is Direction.REMOVE else 1 - k * average, 0)
        return float(mp.log(total)) if total > 0 else -math.inf


@pytest.mark.parametrize(("epsilon", "steps"), [(0.1, 7), (1.0, 100), (2.5, 1000), (4.0, 33)])
@pytest.mark.parametrize("direction", Direction)
def test_one_of_many_pure_steps_by_exact_sums(epsilon, steps, direction):
    event = lw.RandomAllocation(lw.PureEvent(epsilon=epsilon, adjacency=A), steps=steps)
    tried = np.array([0.0, 0.05 * epsilon, 0.3 * epsilon, 0.8 * epsilon])
    above = event.log_profile(tried, direction=direction)
    below = joint.log_profile(event, tried, direction)
    for place, threshold in enumerate(tried.tolist()):
        truth = coin(epsilon, steps, threshold, direction)
        assert below[place] <= truth <= above[place]
        if truth > DEEP:
            assert above[place] - below[place] <= 2e-3 * (1.0 - truth)


def shifted(x: np.ndarray, multiplier: float) -> np.ndarray:
    return special.logsumexp(x / multiplier - 0.5 / multiplier**2, axis=1) - math.log(x.shape[1])


@pytest.mark.slow  # 2 to 7 s each
@pytest.mark.parametrize(("multiplier", "steps"), [(0.5, 100), (1.0, 30), (2.0, 400)])
def test_a_confidence_bound_on_samples_contains_what_lies_between_the_bounds(multiplier, steps):
    """H in direction remove is E_P (1 - e^eps / M)+, in [0, 1]: Hoeffding's inequality; in direction add of Q alike."""
    rng, n = np.random.default_rng(7), 40_000
    noise = rng.normal(size=(n, steps))
    with_unit = noise.copy()
    with_unit[:, 0] += 1.0 / multiplier  # the steps are alike
    event = lw.RandomAllocation(gaussian(multiplier), steps=steps)
    room = math.sqrt(math.log(2.0 / 1e-6) / (2.0 * n))
    for direction, losses in (
        (Direction.REMOVE, shifted(with_unit, multiplier)),
        (Direction.ADD, -shifted(noise, multiplier)),
    ):
        for epsilon in (0.0, 0.1, 0.5):
            mean = float(-np.expm1(np.minimum(epsilon - losses, 0.0)).mean())
            above = math.exp(event.log_profile([epsilon], direction=direction)[0])
            below = math.exp(joint.log_profile(event, np.array([epsilon]), direction)[0])
            assert mean - room <= above
            assert below <= mean + room


@pytest.mark.parametrize("multiplier", [0.7, 2.0])
@pytest.mark.parametrize("order", [1.2, 2.0, 2.5, 6.0, 14.3])
@pytest.mark.parametrize("direction", Direction)
def test_divergences_of_few_steps_by_a_product_rule(multiplier, order, direction):
    z, w = np.polynomial.hermite_e.hermegauss(120)
    w /= w.sum()
    ratios = np.exp(z / multiplier - 0.5 / multiplier**2)
    power = order if direction is Direction.REMOVE else 1.0 - order
    average = (ratios[:, None] + ratios[None, :]) / 2.0
    truth = math.log(float((w[:, None] * w[None, :] * average**power).sum())) / (order - 1.0)
    found = float(lw.RandomAllocation(gaussian(multiplier), steps=2).renyi([order], direction=direction)[0])
    assert truth * (1.0 - 1e-9) <= found <= truth * 1.03


@pytest.mark.parametrize("steps", [5, 300, 4000])
def test_divergences_of_whole_orders_by_the_multinomial_theorem(steps):
    """E M^3 = (t m3 + 3 t (t - 1) m2 + t (t - 1) (t - 2)) / t^3."""
    with mp.workdps(40):
        t = mp.mpf(steps)
        m2, m3 = mp.exp(1 / mp.mpf(1.3) ** 2), mp.exp(3 / mp.mpf(1.3) ** 2)
        truth = float(mp.log((t * m3 + 3 * t * (t - 1) * m2 + t * (t - 1) * (t - 2)) / t**3) / 2)
    found = float(lw.RandomAllocation(gaussian(1.3), steps=steps).renyi([3.0], direction=Direction.REMOVE)[0])
    assert truth <= found <= truth * (1.0 + 1e-5)


@pytest.mark.parametrize(("selected", "steps"), [(2, 4), (2, 5), (3, 5)])
@pytest.mark.parametrize("direction", Direction)
def test_blocks_cost_at_least_as_much_as_the_allocation_by_enumeration(selected, steps, direction):
    epsilon = 0.8
    event = lw.RandomAllocation(lw.PureEvent(epsilon=epsilon, adjacency=A), selected=selected, steps=steps)
    ratio = np.array([math.exp(-epsilon), math.exp(epsilon)])
    chance = np.array([math.exp(epsilon), 1.0]) / (1.0 + math.exp(epsilon))  # without the unit
    found = {0.0: 0.0, 0.2: 0.0, 0.7: 0.0}
    for bits in itertools.product((0, 1), repeat=steps):
        q = math.prod(chance[bit] for bit in bits)
        m = np.mean(
            [math.prod(ratio[bits[i]] for i in chosen) for chosen in itertools.combinations(range(steps), selected)]
        )
        for t in found:
            found[t] += q * max(m - math.exp(t) if direction is Direction.REMOVE else 1.0 - math.exp(t) * m, 0.0)
    price = lw.price(event)
    for t, truth in found.items():
        assert truth <= price.delta(t)


def test_a_unit_in_every_step_costs_what_all_steps_cost():
    every = lw.RandomAllocation(gaussian(4.0), selected=20, steps=20)
    assert lw.price(every).epsilon(1e-6) == pytest.approx(
        lw.price(lw.Repeated(gaussian(4.0), count=20)).epsilon(1e-6), rel=1e-3
    )
    assert list(every.blocks()) == [(gaussian(4.0), 20)]
    assert lw.RandomAllocation(gaussian(4.0), steps=1).log_profile([0.5], direction=Direction.ADD) == gaussian(
        4.0
    ).log_profile([0.5], direction=Direction.ADD)


def test_several_steps_are_divided_as_evenly_as_they_can_be():
    blocks = list(lw.RandomAllocation(gaussian(1.0), selected=3, steps=11).blocks())
    assert blocks == [
        (lw.RandomAllocation(gaussian(1.0), steps=4), 2),
        (lw.RandomAllocation(gaussian(1.0), steps=3), 1),
    ]
    low, high = lw.price(lw.RandomAllocation(gaussian(1.0), selected=3, steps=300)).epsilon_interval(1e-5)
    sum_of = lw.price(gaussian(math.sqrt(300.0) / 3.0)).epsilon(1e-5)
    assert 0.99 * sum_of <= low <= high


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "event",
    [gaussian(1.0), gaussian(0.3, Z), lw.LaplaceEvent(noise_multiplier=0.7, adjacency=A),
     lw.Composed((gaussian(2.0), lw.LaplaceEvent(noise_multiplier=2.0, adjacency=A))),
     lw.PoissonSampled(gaussian(1.0), sampling_rate=0.3)],
    ids=lambda event: type(event).__name__,
)  # fmt: skip
def test_the_interval_is_narrow_for_any_event_and_several_passes(event):
    for plan in (lw.RandomAllocation(event, steps=200), lw.Repeated(lw.RandomAllocation(event, steps=200), count=10)):
        price = lw.price(plan)
        low, high = price.epsilon_interval(1e-6)
        assert price.certified
        assert 0.0 < low <= high <= price.epsilon(1e-6)
        assert high <= 1.004 * low
        assert price.delta(high) >= 1e-6 * (1.0 - 1e-3)


@pytest.mark.slow  # 6 s
def test_it_composes_and_calibrates():
    budget = lw.Budget(epsilon=2.0, delta=1e-6, adjacency=A)

    def plan(multiplier):
        passes = lw.Repeated(lw.RandomAllocation(gaussian(multiplier), steps=100), count=5)
        return lw.Composed((passes, lw.LaplaceEvent(noise_multiplier=10.0, adjacency=A)))

    multiplier = lw.calibrate(plan, budget)
    assert 1.98 <= lw.price(plan(multiplier)).epsilon(1e-6) <= 2.0
    assert "pld" in lw.price(plan(multiplier)).explain(1e-6)


@pytest.mark.slow  # 9 s
@settings(max_examples=25, deadline=None)
@given(st.floats(0.3, 8.0), st.integers(2, 4000), st.integers(0, 2000), st.sampled_from([120, 250]))
def test_bounds_hold_on_any_grid_and_more_steps_cost_less(multiplier, steps, more, cells):
    event = gaussian(multiplier)
    for direction in Direction:
        fine, rough = (averages.average(event, steps, direction, above=True, most=n) for n in (500, cells))
        below = averages.average(event, steps, direction, above=False, below=joint.BELOW, most=cells)
        many = averages.average(event, steps + more, direction, above=False, below=joint.BELOW, most=cells)
        above, least = rough.log_profile(EPSILONS), below.log_profile(EPSILONS)
        assert (least <= above).all()
        assert (least <= fine.log_profile(EPSILONS)).all()
        assert (many.log_profile(EPSILONS) <= above).all()
        assert (least <= event.log_profile(EPSILONS, direction=direction)).all()


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([0.01, 1.0, 12.0, 80.0]), st.sampled_from([8, 60, 400]),
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_a_grid_moves_mass_apart_above_and_together_below(seed, spread, cells, square, right, above):
    """Both orders at once, against the sums over all pairs, in extended precision: calls, puts and the whole mass."""
    rng = np.random.default_rng(seed)

    def drawn(count):
        place = np.unique(np.exp(np.clip(spread * rng.standard_normal(count), -100.0, 100.0)))
        return averages.Ratios(place, rng.random(len(place)) ** rng.integers(1, 40) + 1e-240)

    one = drawn(190)
    other = one if square else drawn(230)
    found = averages._projected(one, other, right, above, cells)
    places = np.add.outer(one.place.astype(np.longdouble), other.place).ravel()
    masses = np.multiply.outer(one.mass.astype(np.longdouble), other.mass).ravel()
    assert (np.diff(found.place) > 0.0).all()
    assert len(found.place) <= max(cells + 1, 1 if above else cells)
    error, sign = 1e-12, 1.0 if above else -1.0
    assert math.isclose(found.mass.sum(), masses.sum(), rel_tol=error)
    assert math.isclose(found.mass @ found.place, masses @ places, rel_tol=error)
    for strike in np.quantile(places.astype(float), [0.0, 0.001, 0.2, 0.5, 0.77, 0.99, 0.9999, 1.0]):
        for flank in (1.0, -1.0):  # the threshold is moved to the side on which the bound errs rightly
            moved = strike * (1.0 - flank * sign * error)
            bound = np.maximum(flank * (found.place.astype(np.longdouble) - moved), 0.0) @ found.mass
            truth = np.maximum(flank * (places - strike), 0.0) @ masses
            assert sign * bound * (1.0 + sign * error) >= sign * truth - 1e-300


@pytest.mark.parametrize("right", [True, False])
def test_no_cell_is_so_narrow_that_its_shares_overflow(right, monkeypatch):
    """A place may be moved to an atom below 1e-100; cells of 1e-305 would have a scale beyond 2^1000."""
    moved = np.array([3e-308, 5e-307, 2e-305])
    monkeypatch.setattr(averages, "_aligned", lambda inner, *_: np.append(moved, inner[3:]))
    one = averages.Ratios(np.geomspace(1e-308, 1.0, 200), np.full(200, 0.005))
    grid = averages._grid(one, one, right, 60, True)
    assert len(grid) > 20
    assert (grid[1:] > 1e-100).all()
    found = averages._projected(one, one, right, True, 60)
    assert math.isclose(found.mass.sum(), 1.0, rel_tol=1e-12)
    assert math.isclose(found.mass @ found.place, 2.0 * (one.mass @ one.place), rel_tol=1e-12)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("multiplier", "steps", "epsilon", "width"), [(0.5, 4096, 1.5, 5e-3), (0.3, 10_000, 19.26, 1.6e-2)]
)
def test_bounds_are_narrow_where_one_ratio_makes_the_average(multiplier, steps, epsilon, width):
    """Little noise and many steps: on grids that ignore the atoms the gaps are 5.5e-3 and 2.3e-2."""
    event, tried = gaussian(multiplier), epsilon * np.linspace(0.98, 1.02, 9)
    above, below = (
        averages.average(event, steps, Direction.REMOVE, above=side, below=joint.BELOW).log_profile(tried)
        for side in (True, False)
    )
    assert (below <= above).all()
    assert float((above - below).mean()) <= width


def test_bounds_of_arguments():
    for wrong in (
        {"steps": 0},
        {"steps": 2**31},
        {"steps": 3, "selected": 4},
        {"steps": 3, "selected": 0},
        {"steps": 2.5},
    ):
        with pytest.raises(InvalidParameter):
            lw.RandomAllocation(gaussian(1.0), **wrong)
    with pytest.raises(InvalidParameter):
        lw.RandomAllocation("noise", steps=3)
    with pytest.raises(UnsupportedEvent, match="replace-one"):
        lw.RandomAllocation(gaussian(1.0, R), steps=3)
    with pytest.raises(UnsupportedEvent, match="blocks"):
        lw.RandomAllocation(gaussian(1.0), selected=2, steps=30).log_profile([0.0], direction=Direction.ADD)
    with pytest.raises(UnsupportedEvent):
        lw.RandomAllocation(gaussian(1.0), steps=3).mu()


@pytest.mark.slow  # 2 s
@pytest.mark.parametrize("steps", [2, 37])
def test_samples_follow_the_same_law_as_the_pair(steps):
    """The drawn transcripts' ratios, with the unit and without it: E_Q M = 1, and M is dP/dQ."""
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(200_000, steps))
    ratios = np.exp(shifted(noise, 1.5))
    assert abs(ratios.mean() - 1.0) <= 5.0 * ratios.std() / math.sqrt(len(ratios))
    noise[np.arange(len(noise)), rng.integers(steps, size=len(noise))] += 1.0 / 1.5
    inverse = 1.0 / np.exp(shifted(noise, 1.5))
    assert abs(inverse.mean() - 1.0) <= 5.0 * inverse.std() / math.sqrt(len(inverse))


@pytest.mark.parametrize(
    "event",
    [gaussian(0.02), gaussian(0.04), gaussian(0.06), lw.LaplaceEvent(noise_multiplier=0.0014, adjacency=A),
     lw.PureEvent(epsilon=760.0, adjacency=A), lw.Repeated(gaussian(1.0), count=700)],
    ids=lambda event: f"{type(event).__name__}",
)  # fmt: skip
def test_ratios_that_no_float_holds_never_make_it_cheaper(event):
    """With hardly any noise one step tells all: a sample of 1 % reveals a unit with probability .01."""
    allocation = lw.RandomAllocation(event, steps=10)
    for direction in Direction:
        assert allocation.log_profile([0.0, 5.0, 50.0], direction=direction)[1] > -1e-3
    price = lw.price(lw.PoissonSampled(allocation, sampling_rate=0.01))
    assert price.delta(5.0) >= 0.00999
    assert price.epsilon(1e-6) > 50.0
