"""Laws of every event under every adjacency: a pair is refused, or it is right."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    Event,
    FixedSizeSampled,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    ProfileEvent,
    PureEvent,
    RandomAllocation,
    Repeated,
    RepeatedSelection,
    ReplaceOneSampled,
    SkellamEvent,
    TruncatedLaplaceEvent,
    from_json,
    to_json,
)
from ledgerwood.accounting.events.base import holds
from ledgerwood.errors import UnsupportedEvent

ORDERS = np.array([1.0 + 1e-6, 1.25, 2.0, 7.5, 64.0, 500.0])
EPSILONS = np.array([0.0, 1e-9, 0.01, 0.3, 1.0, 2.0, 5.0, 20.0, 500.0])
DIRECTIONS = st.sampled_from(list(Direction))
SAMPLES = (PoissonSampled, FixedSizeSampled, ReplaceOneSampled)
SELECTIONS = (RepeatedSelection, PoissonSelection)


def or_refusal(functional: Callable[[], Any]) -> Any:
    try:
        return functional()
    except UnsupportedEvent:
        return UnsupportedEvent


def same(left: object, right: object) -> None:
    """Both refuse, or both agree to 1e-12 relative (one is summed in another order)."""
    if left is UnsupportedEvent or right is UnsupportedEvent:
        assert left is right
    else:
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)


@given(event=st.from_type(Event), count=st.integers(1, 5), direction=DIRECTIONS)
def test_repeating_is_composing(event: Event, count: int, direction: Direction) -> None:
    repeated, composed = Repeated(event, count=count), Composed((event,) * count)
    for functional in (
        lambda e: e.renyi(ORDERS),
        lambda e: e.renyi(ORDERS, direction=direction),
        lambda e: e.log_profile(EPSILONS, direction=direction),
        lambda e: e.pure_epsilon(),
        lambda e: e.mu(),
        lambda e: e.log_excess_moments(np.array([1.5, 3.0, -2.0]), sampling_rate=1.0),
        lambda e: e.log_excess_moments(np.array([1.5, 3.0, -2.0]), sampling_rate=0.1),
    ):
        same(or_refusal(lambda f=functional: f(repeated)), or_refusal(lambda f=functional: f(composed)))
    assert sum(n for _, n in repeated.draws()) == sum(n for _, n in composed.draws())


def reveals(event: Event) -> bool:
    """Whether something may be revealed for certain: a mass of P where Q has none."""
    if isinstance(event, (ApproximateEvent, TruncatedLaplaceEvent)):
        return True
    if isinstance(event, ProfileEvent):
        return min(event.deltas) > 0.0
    if isinstance(event, Parallel):
        weights = event.probabilities or (1.0,) * len(event.events)
        return any(reveals(member) for member, p in zip(event.events, weights, strict=True) if p > 0.0)
    if isinstance(event, Composed):
        return any(map(reveals, event.events))
    return isinstance(event, (Repeated, *SAMPLES, *SELECTIONS)) and reveals(event.event)


def has_selection(event: Event) -> bool:
    """Whether a best of many runs is in it: its bound may fall in the order where the number of runs weighs most."""
    if isinstance(event, (Parallel, Composed)):
        return any(map(has_selection, event.events))
    return isinstance(event, SELECTIONS) or (isinstance(event, (Repeated, *SAMPLES)) and has_selection(event.event))


@given(event=st.from_type(Event))
def test_every_value_is_a_number_above_zero(event: Event) -> None:
    for direction in (Direction.REMOVE, Direction.ADD, None):
        values = or_refusal(lambda d=direction: event.renyi(ORDERS, direction=d))
        if values is not UnsupportedEvent:
            assert values.shape == ORDERS.shape
            assert np.all(values > 0.0)
            if reveals(event):
                assert np.all(np.isposinf(values))
                continue
            assert np.all(np.isfinite(values))
            # the order may only raise it, up to the guard
            assert has_selection(event) or np.all(np.diff(values) >= -1e-11 * values[1:])
    assert event.pure_epsilon() > 0.0


@given(event=st.from_type(Event))
def test_the_larger_direction_is_taken(event: Event) -> None:
    larger = or_refusal(lambda: event.renyi(ORDERS))
    if larger is UnsupportedEvent:
        return
    both = [event.renyi(ORDERS, direction=d) for d in Direction]
    assert np.all(larger >= np.max(both, axis=0) * (1.0 - 1e-11))
    assert np.all(larger <= np.max(both, axis=0) * (1.0 + 1e-11))


@given(event=st.from_type(Event))
def test_renyi_never_exceeds_the_pure_epsilon(event: Event) -> None:
    values = or_refusal(lambda: event.renyi(ORDERS))
    if values is not UnsupportedEvent:
        assert np.all(values <= event.pure_epsilon() * (1.0 + 1e-11))


@given(event=st.from_type(Event))
def test_a_record_comes_back_equal(event: Event) -> None:
    assert from_json(to_json(event)) == event


@given(event=st.from_type(Event))
def test_the_profile_keeps_its_contract(event: Event) -> None:
    """On x = e^eps: convex, continuous at 1, at least (1 - x)+, decreasing, 0 from the pure epsilon on."""
    x = np.exp(np.linspace(0.0, 6.0, 181))
    remove = or_refusal(lambda: np.exp(event.log_profile(np.log(x), direction=Direction.REMOVE)))
    if remove is UnsupportedEvent:
        return
    add = np.exp(event.log_profile(np.log(x), direction=Direction.ADD))
    assert remove[0] == pytest.approx(add[0], rel=1e-12)
    below = 1.0 - 1.0 / x + add / x  # H_REMOVE at 1/x
    line_x = np.concatenate((1.0 / x[:0:-1], x))
    line_h = np.concatenate((below[:0:-1], remove))
    assert np.all(line_h >= np.maximum(1.0 - line_x, 0.0) - 1e-14)
    slopes = np.diff(line_h) / np.diff(line_x)
    rounding = 4e-14 / np.diff(line_x)
    assert np.all(np.diff(slopes) >= -(rounding[1:] + rounding[:-1]))
    assert np.all(slopes <= rounding)
    assert np.all(slopes >= -1.0 - rounding)
    limit = event.pure_epsilon()
    if np.isfinite(limit):
        beyond = np.array([limit, 2.0 * limit + 1.0, np.inf])
        for direction in Direction:
            assert np.all(event.log_profile(beyond[1:], direction=direction) == -np.inf)
            assert event.log_profile(beyond[:1], direction=direction)[0] <= np.log(1e-12)


def integral(function: Callable[[np.ndarray], np.ndarray], ends: np.ndarray) -> float:
    """The integral over [ends[0], ends[-1]], split at the ends and then wherever 6 nodes and 12 disagree."""
    x, w = np.polynomial.legendre.leggauss(6)

    def panels(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        half = 0.5 * (right - left)
        return half * (function(left[:, None] + half[:, None] * (1.0 + x)) @ w)

    left, right = ends[:-1], ends[1:]
    values, total = panels(left, right), 0.0
    scale = float(values.sum())
    for _ in range(60):
        middle = 0.5 * (left + right)
        first, second = panels(left, middle), panels(middle, right)
        done = np.abs(first + second - values) <= 1e-13 * scale
        total += float((first + second)[done].sum())
        left = np.concatenate((left[~done], middle[~done]))
        right = np.concatenate((middle[~done], right[~done]))
        values = np.concatenate((first[~done], second[~done]))
        if done.all():
            return total
    raise AssertionError("the integral does not settle")


def kinks(event: Event) -> list[float]:
    """Where a profile made of pure parts has corners, in either direction (no node may miss one)."""
    if isinstance(event, PoissonSampled):
        q = event.sampling_rate
        inner = kinks(event.event)
        if q == 1.0:
            return inner
        corners = [float(np.log1p(q * np.expm1(k))) for k in inner]
        return [*corners, *(float(-np.log1p(q * np.expm1(-k))) for k in inner), float(-np.log1p(-q))]
    if isinstance(event, (FixedSizeSampled, ReplaceOneSampled)):
        q = event.sampling_rate
        return [float(np.log1p(q * np.expm1(k))) for k in kinks(event.event)] if q < 1.0 else kinks(event.event)
    if isinstance(event, (Parallel, Composed)):
        return [k for member in event.events for k in kinks(member)]
    if isinstance(event, Repeated):
        return kinks(event.event)
    if isinstance(event, ProfileEvent):
        return list(event.epsilons)
    if isinstance(event, DiscreteLaplaceEvent):
        levels = (2.0 * np.arange(event.sensitivity + 1.0) - event.sensitivity) / event.scale
        return levels[levels > 0.0].tolist()
    if isinstance(event, DiscreteGaussianEvent):
        z = np.arange(event.sensitivity // 2, 45.0 * event.scale + 8.0 * event.sensitivity)
        levels = event.sensitivity * (z - 0.5 * event.sensitivity) / event.scale**2
        return levels[levels > 0.0].tolist()
    if isinstance(event, SkellamEvent):
        z = np.arange(1.0, 60.0 * event.variance**0.5 + 300.0)
        steps, ratio = np.zeros(z.size), 1.0 + 2.0 * z[-1] / event.variance
        for index in range(z.size - 1, -1, -1):  # I_{k-1} / I_k, backwards
            ratio = 2.0 * z[index] / event.variance + 1.0 / ratio
            steps[index] = np.log(ratio)
        steps = np.concatenate((-steps[::-1], steps))
        levels = np.convolve(steps, np.ones(event.sensitivity), mode="valid")
        return levels[levels > 0.0].tolist()
    return [event.pure_epsilon()] if np.isfinite(event.pure_epsilon()) else []


def excess_from_profile(event: Event, order: float, direction: Direction) -> float:
    """a (a-1) [int e^{(a-1)t} H(t) dt + int e^{-a t} H'(t) dt], H' the other direction."""
    other = Direction.ADD if direction is Direction.REMOVE else Direction.REMOVE
    total = 0.0
    for which, rate in ((direction, order - 1.0), (other, -order)):
        grid = np.concatenate((np.linspace(0.0, 8.0, 400), np.geomspace(8.0, 4000.0, 300)[1:]))
        values = rate * grid + event.log_profile(grid, direction=which)
        inside = np.flatnonzero(values > values.max() - 45.0)
        top = float(grid[min(inside[-1] + 1, grid.size - 1)])
        ends = np.sort([*np.linspace(0.0, top, 101), *(k for k in kinks(event) if k < top)])
        total += integral(
            lambda t, rate=rate, which=which: np.exp(rate * t + event.log_profile(t, direction=which)), ends
        )
    return order * (order - 1.0) * total


ADD_REMOVE = Adjacency.ADD_REMOVE
GAUSSIAN = GaussianEvent(noise_multiplier=1.3, adjacency=ADD_REMOVE)
LAPLACE = LaplaceEvent(noise_multiplier=0.7, adjacency=ADD_REMOVE)
PURE = PureEvent(epsilon=0.8, adjacency=ADD_REMOVE)
RANGE = BoundedRangeEvent(epsilon=0.8, adjacency=ADD_REMOVE)
GROUPS = Parallel((GAUSSIAN, LAPLACE), probabilities=(0.3, 0.5))


@pytest.mark.parametrize(
    "event",
    [
        GAUSSIAN,
        LAPLACE,
        PURE,
        Repeated(GAUSSIAN, count=4),
        Composed((GAUSSIAN, Repeated(GAUSSIAN, count=2))),
        PoissonSampled(GAUSSIAN, sampling_rate=0.2),
        PoissonSampled(LAPLACE, sampling_rate=0.2),
        PoissonSampled(PURE, sampling_rate=0.6),
        PoissonSampled(PoissonSampled(LAPLACE, sampling_rate=0.5), sampling_rate=0.5),
        PoissonSampled(Composed((GAUSSIAN, GAUSSIAN)), sampling_rate=0.05),
        GROUPS,
        PoissonSampled(GROUPS, sampling_rate=0.3),
        Parallel((PoissonSampled(GAUSSIAN, sampling_rate=0.5), PURE), probabilities=(0.5, 0.5)),
        GaussianEvent(noise_multiplier=1.3, adjacency=Adjacency.REPLACE_ONE),
        Parallel((GaussianEvent(noise_multiplier=2, adjacency=Adjacency.ZERO_OUT),), probabilities=(0.4,)),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("direction", list(Direction), ids=lambda d: d.value)
def test_renyi_is_the_integral_of_the_profile(event: Event, direction: Direction) -> None:
    for order in (1.2, 2.0, 5.5):
        exact = float(np.expm1((order - 1.0) * event.renyi([order], direction=direction)[0]))
        assert excess_from_profile(event, order, direction) == pytest.approx(exact, rel=1e-10)


def has_worst(event: Event) -> bool:
    """Whether the profile is a supremum that no single pair attains."""
    if isinstance(event, BoundedRangeEvent):
        return True
    if isinstance(event, Parallel):
        return event.probabilities is None or any(map(has_worst, event.events))
    if isinstance(event, Composed):
        return any(map(has_worst, event.events))
    return isinstance(event, (Repeated, *SAMPLES)) and has_worst(event.event)


def is_bounded(event: Event) -> bool:
    """Whether its divergence is a bound of the profile's integral: a replaced row on a secret sample."""
    if isinstance(event, (Parallel, Composed)):
        return any(map(is_bounded, event.events))
    if isinstance(event, (FixedSizeSampled, ReplaceOneSampled)):
        return event.sampling_rate < 1.0
    return isinstance(event, (Repeated, PoissonSampled)) and is_bounded(event.event)


@given(event=st.from_type(Event), order=st.floats(1.05, 4.0), direction=DIRECTIONS)
@settings(max_examples=60)
def test_any_renyi_is_the_integral_of_its_profile(event: Event, order: float, direction: Direction) -> None:
    values = or_refusal(lambda: event.log_profile(EPSILONS, direction=direction))
    if values is UnsupportedEvent:
        return
    log_moment = (order - 1.0) * float(event.renyi([order], direction=direction)[0])
    if log_moment > 200.0:
        return
    moment, integrated = float(np.expm1(log_moment)), excess_from_profile(event, order, direction)
    if holds(event, RandomAllocation):
        # both are bounds on one number, on a coarse grid, and none is known to be the lesser one
        assert moment >= 0.0
        assert integrated >= 0.0
    elif is_bounded(event):
        # unsampled, a supremum is dearer by its profile than by its divergences, and the lesser bound counts
        assert moment >= integrated * (1.0 - 1e-8) or has_worst(event)
    elif has_worst(event):
        # the maximum of the profiles dominates each group; the divergence is that of the dearest group alone
        assert integrated >= moment * (1.0 - 1e-8)
    else:
        assert integrated == pytest.approx(moment, rel=1e-8)


@given(
    small=st.floats(0.3, 30.0),
    factor=st.floats(1.0, 3.0),
    rate=st.floats(1e-6, 1.0),
    count=st.integers(1, 50),
    leaf=st.sampled_from([GaussianEvent, LaplaceEvent]),
    direction=DIRECTIONS,
)
@settings(max_examples=60)
def test_less_noise_more_rows_more_releases_cost_more(
    small: float, factor: float, rate: float, count: int, leaf: type, direction: Direction
) -> None:
    def event(multiplier: float, q: float, n: int) -> Event:
        inner = leaf(noise_multiplier=multiplier, adjacency=ADD_REMOVE)
        return Repeated(PoissonSampled(inner, sampling_rate=q), count=n)

    cheap = event(small * factor, rate, count)
    slack = 1.0 + 1e-11
    for dear in (event(small, rate, count), event(small * factor, min(1.0, rate * factor), count)):
        assert np.all(cheap.renyi(ORDERS, direction=direction) <= slack * dear.renyi(ORDERS, direction=direction))
        assert cheap.pure_epsilon() <= dear.pure_epsilon() * slack
        one, other = cheap.event, dear.event
        h, g = (e.log_profile(EPSILONS, direction=direction) for e in (one, other))
        assert np.all((h <= g + 1e-11 * (1.0 + np.abs(np.nan_to_num(g, neginf=0.0)))) | (h == -np.inf))
    more = event(small * factor, rate, count + 1)
    assert np.all(cheap.renyi(ORDERS) < more.renyi(ORDERS))


@pytest.mark.parametrize("leaf", [PureEvent, BoundedRangeEvent])
@given(epsilon=st.floats(1e-3, 20.0), factor=st.floats(1.0, 3.0), rate=st.floats(1e-6, 1.0), direction=DIRECTIONS)
def test_a_larger_pure_epsilon_costs_more(
    leaf: type, epsilon: float, factor: float, rate: float, direction: Direction
) -> None:
    cheap, dear = (
        PoissonSampled(leaf(epsilon=e, adjacency=ADD_REMOVE), sampling_rate=rate) for e in (epsilon, epsilon * factor)
    )
    a, b = (e.renyi(ORDERS, direction=direction) for e in (cheap, dear))
    assert np.all(a <= b * (1.0 + 1e-11))


@given(event=st.sampled_from([GAUSSIAN, LAPLACE, PURE, RANGE, GROUPS]), one=st.floats(1e-3, 1), two=st.floats(1e-3, 1))
def test_a_sample_of_a_sample_is_a_sample(event: Event, one: float, two: float) -> None:
    nested = PoissonSampled(PoissonSampled(event, sampling_rate=one), sampling_rate=two)
    flat = PoissonSampled(event, sampling_rate=one * two)
    for direction in Direction:
        np.testing.assert_allclose(
            nested.renyi(ORDERS, direction=direction), flat.renyi(ORDERS, direction=direction), rtol=1e-10
        )
        deep, plain = (np.exp(e.log_profile(EPSILONS, direction=direction)) for e in (nested, flat))
        np.testing.assert_allclose(deep, plain, rtol=1e-8, atol=1e-14)


@given(
    sensitivities=st.tuples(st.floats(0.01, 5.0), st.floats(0.01, 5.0)),
    stddevs=st.tuples(st.floats(0.5, 50.0), st.floats(0.5, 50.0)),
    column=st.integers(0, 1),
    factor=st.floats(1.0, 3.0),
    rate=st.floats(1e-6, 1.0),
    direction=DIRECTIONS,
)
def test_an_elliptical_pair_costs_more_with_less_noise_or_more_sensitivity(
    sensitivities: tuple[float, float],
    stddevs: tuple[float, float],
    column: int,
    factor: float,
    rate: float,
    direction: Direction,
) -> None:
    def scaled(pair: tuple[float, float], by: float) -> tuple[float, ...]:
        return tuple(value * by if i == column else value for i, value in enumerate(pair))

    def curve(shifts: tuple[float, ...], noise: tuple[float, ...]) -> np.ndarray:
        event = EllipticalGaussianEvent(sensitivities=shifts, stddevs=noise, adjacency=ADD_REMOVE)
        return PoissonSampled(event, sampling_rate=rate).renyi(ORDERS, direction=direction)

    here = curve(sensitivities, stddevs)
    assert np.all(curve(sensitivities, scaled(stddevs, factor)) <= here * (1 + 1e-11))
    assert np.all(curve(scaled(sensitivities, factor), stddevs) >= here * (1 - 1e-11))


@given(
    first=st.floats(0.3, 20.0),
    second=st.floats(0.3, 20.0),
    share=st.floats(0.01, 0.25),
    more=st.floats(1.0, 2.0),
    direction=DIRECTIONS,
)
def test_a_unit_that_is_in_a_group_more_often_costs_more(
    first: float, second: float, share: float, more: float, direction: Direction
) -> None:
    groups = (
        GaussianEvent(noise_multiplier=first, adjacency=ADD_REMOVE),
        LaplaceEvent(noise_multiplier=second, adjacency=ADD_REMOVE),
    )
    epsilons = np.linspace(0.0, 3.0, 7)
    here, often = (Parallel(groups, probabilities=(p, 0.5)) for p in (share, share * more))
    assert np.all(often.renyi(ORDERS, direction=direction) >= here.renyi(ORDERS, direction=direction) * (1 - 1e-11))
    assert np.all(
        often.log_profile(epsilons, direction=direction) >= here.log_profile(epsilons, direction=direction) - 1e-11
    )
