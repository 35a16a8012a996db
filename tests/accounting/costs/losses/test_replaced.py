"""Replaced rows in secret Poisson samples from below: real mechanisms, by enumeration and by quadrature."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy import signal, stats

import ledgerwood as lw
from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses.replaced import ReplacedRowPair, pair_of

A, R = lw.Adjacency.ADD_REMOVE, lw.Adjacency.REPLACE_ONE
DELTA = 1e-4


def clipped(multiplier, rate, kind=lw.GaussianEvent):
    """A clipped sum: a replaced row moves it by twice the norm bound."""
    whole, half = (kind(noise_multiplier=m, adjacency=a) for m, a in ((multiplier / 2, R), (multiplier, A)))
    return lw.ReplaceOneSampled(whole, add_remove=half, sampling_rate=rate)


def responses(epsilon, rate):
    """A pure event whose presence costs half of its replacement."""
    whole, half = (lw.PureEvent(epsilon=e, adjacency=a) for e, a in ((epsilon, R), (epsilon / 2, A)))
    return lw.ReplaceOneSampled(whole, add_remove=half, sampling_rate=rate)


def outcomes(epsilon, rate):
    """Probabilities of three outcomes, the old row in the data and the new one in its place."""
    h = epsilon / 2
    a = 1 / (1 + math.exp(-h))
    b, n = a * math.exp(-2 * h), a * math.exp(-h)
    none, old = np.array([n, 1 - 2 * n, n]), np.array([a, 1 - a - b, b])
    new = old[::-1]
    for first, second, most in ((old, none, h), (new, none, h), (old, new, epsilon)):
        assert np.abs(np.log(first / second)).max() <= most * (1 + 1e-12)  # what the two statements allow
    return (1 - rate) * none + rate * old, (1 - rate) * none + rate * new


def exact_delta(p, q, count, epsilon):
    """The divergence of `count` draws by enumeration of all outcomes."""
    return sum(
        max(np.prod(p[list(each)]) - math.exp(epsilon) * np.prod(q[list(each)]), 0.0)
        for each in itertools.product(range(3), repeat=count)
    )


@pytest.mark.parametrize(("epsilon", "rate"), [(1.0, 0.1), (4.0, 0.5), (0.2, 0.01)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_pure_events_by_enumeration(epsilon, rate, count):
    event = responses(epsilon, rate)
    low, high = lw.price(lw.Repeated(event, count=count) if count > 1 else event).epsilon_interval(DELTA)
    p, q = outcomes(epsilon, rate)
    assert exact_delta(p, q, count, high) <= DELTA * (1 + 1e-9)
    assert exact_delta(p, q, count, low) >= DELTA * (1 - 1e-9)
    assert exact_delta(p, q, count, low * 1.002) <= DELTA  # and that mechanism costs no more


def quadrature(multiplier, rate, t):
    """The divergence at t by integration over the output, of which the sign changes once."""
    with mp.workdps(30):
        q, s = mp.mpf(rate), mp.mpf(multiplier)

        def density(x, m):
            return mp.npdf(x, m, s)

        def gain(x):
            none = (1 - q) * density(x, 0)
            return none + q * density(x, 1) - mp.e**t * (none + q * density(x, -1))

        low, high = mp.mpf(0), mp.mpf(200) * s
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if gain(middle) < 0 else (low, middle)
        width = s / max(high / s, 1)  # on which a normal tail falls by a factor e
        return mp.quad(gain, [high + n * width for n in (0, 1, 3, 8, 20, 60, 200)])


@pytest.mark.parametrize(("multiplier", "rate"), [(1.0, 0.01), (0.5, 0.3), (4.0, 1e-3)])
def test_the_profile_of_gaussian_noise_is_that_of_the_pair(multiplier, rate):
    pair = pair_of(clipped(multiplier, rate))
    assert isinstance(pair, ReplacedRowPair)
    t = np.array([0.0, 0.1, 2.0])
    truth = np.array([float(mp.log(quadrature(multiplier, rate, float(each)))) for each in t])
    above, below = pair.log_profile(t, direction=Direction.ADD), pair.log_profile_below(t, Direction.REMOVE)
    assert (below <= truth + 1e-14 * np.abs(truth)).all()
    assert (truth <= above + 1e-14 * np.abs(truth)).all()
    assert above == pytest.approx(below, abs=1e-6)
    bound = pair.event.log_profile(t, direction=Direction.REMOVE)
    assert (below <= bound + 1e-12).all()


def laplace_delta(multiplier, rate, t):
    """The divergence at t of Laplace noise, from the tails of each of many sets of outputs."""
    c = np.linspace(-3.0, 3.0, 60_001)
    none, old, new = (stats.laplace.sf(c, loc=m, scale=multiplier) for m in (0.0, 1.0, -1.0))
    first, second = (1 - rate) * none + rate * old, (1 - rate) * none + rate * new
    return float((first - math.exp(t) * second).max())


@pytest.mark.parametrize(("multiplier", "rate"), [(1.0, 0.01), (0.5, 0.3), (4.0, 0.1)])
def test_the_profile_of_laplace_noise_is_that_of_the_pair(multiplier, rate):
    pair = pair_of(clipped(multiplier, rate, lw.LaplaceEvent))
    t = np.array([0.0, 0.2, 0.5, 0.9]) * pair.pure_epsilon()
    truth = np.array([laplace_delta(multiplier, rate, float(each)) for each in t])
    above, below = (
        np.exp(pair.log_profile(t, direction=Direction.ADD)),
        np.exp(pair.log_profile_below(t, Direction.ADD)),
    )
    assert below == pytest.approx(truth, rel=1e-6)
    assert above == pytest.approx(truth, rel=1e-6)
    assert (below <= above).all()
    assert (above >= truth * (1 - 1e-12)).all()
    assert np.isneginf(pair.log_profile_below(np.array([1.01 * pair.pure_epsilon()]), Direction.ADD)).all()


def lattice_delta(multiplier, rate, count, epsilon):
    """The divergence of `count` draws of the mechanism, by convolution of its losses rounded down: from below."""
    x = np.linspace(-14.0, 14.0, 200_001) * max(multiplier, 1.0)
    edges = np.concatenate(([-np.inf], 0.5 * (x[1:] + x[:-1]), [np.inf]))
    none, old, new = (np.diff(stats.norm.cdf(edges, loc=m, scale=multiplier)) for m in (0.0, 1.0, -1.0))
    p, q = (1 - rate) * none + rate * old, (1 - rate) * none + rate * new
    kept = (p > 0) & (q > 0)
    step = 2e-4
    loss = np.floor(np.log(p[kept] / q[kept]) / step).astype(int)
    mass = np.bincount(loss - loss.min(), p[kept])
    total, first = mass, int(loss.min())
    for _ in range(count - 1):
        total, first = signal.fftconvolve(total, mass), first + int(loss.min())
    at = step * (first + np.arange(len(total)))
    return float((total * np.maximum(-np.expm1(epsilon - at), 0.0)).sum())


def test_a_composition_of_gaussian_noise_by_convolution():
    low, high = lw.price(lw.Repeated(clipped(2.0, 0.2), count=3)).epsilon_interval(DELTA)
    assert lattice_delta(2.0, 0.2, 3, low * 0.995) >= DELTA  # rounded down by up to 6e-4 nats
    assert lattice_delta(2.0, 0.2, 3, low * 1.01) <= DELTA
    assert low <= high


def test_much_noise_has_a_narrow_interval():
    low, high = lw.price(lw.Repeated(clipped(20.0, 0.05), count=1000)).epsilon_interval(1e-5)
    assert 0.97 * high <= low <= high


def test_statements_of_other_kinds_have_no_pair_and_stay_at_zero():
    inner = lw.Composed((lw.GaussianEvent(noise_multiplier=1.0, adjacency=R), lw.PureEvent(epsilon=0.5, adjacency=R)))
    half = lw.Composed((lw.GaussianEvent(noise_multiplier=2.0, adjacency=A), lw.PureEvent(epsilon=0.25, adjacency=A)))
    event = lw.ReplaceOneSampled(inner, add_remove=half, sampling_rate=0.1)
    assert pair_of(event) is event
    low, high = lw.price(event).epsilon_interval(DELTA)
    assert low == 0.0
    assert high > 0.0


def test_a_presence_that_costs_less_than_half_is_obeyed():
    whole = lw.GaussianEvent(noise_multiplier=1.0, adjacency=R)
    half = lw.GaussianEvent(noise_multiplier=2.0, adjacency=A)
    pair = pair_of(lw.ReplaceOneSampled(whole, add_remove=half, sampling_rate=0.1))
    assert pair.size <= 0.5
    more = lw.GaussianEvent(noise_multiplier=0.5, adjacency=A)
    assert pair_of(lw.ReplaceOneSampled(whole, add_remove=more, sampling_rate=0.1)).size <= 0.5
    everything = lw.ReplaceOneSampled(whole, add_remove=half, sampling_rate=1.0)
    assert pair_of(everything) is everything


@pytest.mark.parametrize(
    ("size", "rate"),
    [(40.0, 1e-50), (57.0, 1.8e-74), (25.0, 1.0 - 7.4e-15), (0.5, 1.0 - 1e-12), (600.0, 1e-90), (2.0, 0.3)],
)
def test_the_largest_loss_is_never_below_the_exact_one(size, rate):
    """The bound from above tells an end of the losses from a density: too low, it would raise the lower end."""
    pair = pair_of(responses(2.0 * size, rate))
    with mp.workdps(150):
        q, h = mp.mpf(rate), mp.mpf(pair.size)
        exact = mp.log((1 - q + q * mp.exp(h)) / (1 - q + q * mp.exp(-h)))
        assert exact <= pair.pure_epsilon() <= exact * (1 + mp.mpf(1e-12))
