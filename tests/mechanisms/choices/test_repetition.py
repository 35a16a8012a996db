"""The best of many runs: the exact law of the release by enumeration, its price, and what must not escape."""

import math
import traceback

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import chi2, norm, poisson

import ledgerwood as lw
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import (
    GaussianEvent,
    PoissonSelection,
    PureEvent,
    RandomizedResponseEvent,
    RepeatedSelection,
)
from ledgerwood.errors import InvalidParameter, RunFailed
from ledgerwood.mechanisms import PoissonSelectionMechanism, RepeatedSelectionMechanism, SeededRandom

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
ORDERS = np.array([1.2, 2.0, 5.0, 20.0])
REPEATED = [(1.0, 0.1), (0.0, 0.05), (-0.5, 0.02), (2.5, 0.5)]
SCORES = [0.0, 1.0, 1.0, 2.0]  # of the four answers; two of them tie


def counts_of(mechanism):
    """P(K = k), k = 0, 1, ..., by the definitions."""
    k = np.arange(1, 3000)
    if isinstance(mechanism, PoissonSelectionMechanism):
        return poisson.pmf(np.arange(200), mechanism.mean)
    if mechanism.shape == 0.0:
        weights = np.exp(k * math.log1p(-mechanism.stopping_rate)) / k
    else:
        weights = np.exp(k * math.log1p(-mechanism.stopping_rate) + gammaln(k + mechanism.shape) - gammaln(k + 1.0))
    return np.append(0.0, weights / weights.sum())


def law_of_the_best(run, scores, counts):
    """By the run that wins: i runs of lower scores, the winner, then runs that are no better; the last is "no run"."""
    best = []
    for answer, score in enumerate(scores):
        below = sum(p for p, s in zip(run, scores, strict=True) if s < score)
        upto = sum(p for p, s in zip(run, scores, strict=True) if s <= score)
        k = np.arange(1, len(counts))  # below**i upto**(k - 1 - i), summed over i < k
        chances = (upto**k - below**k) / (upto - below)
        best.append(run[answer] * float(counts[1:] @ chances))
    return np.array([*best, counts[0]])


def randomised_response(epsilon, truth, n=4):
    law = np.ones(n)
    law[truth] = math.exp(epsilon)
    return law / law.sum()


def answering(law, scores=SCORES):
    cumulated = np.cumsum(law)

    def run(source):
        u = int(source.uint64(1)[0]) / 2.0**64
        answer = min(int(np.searchsorted(cumulated, u, side="right")), len(law) - 1)
        return scores[answer], answer

    return run


MECHANISMS = [RepeatedSelectionMechanism(shape=s, stopping_rate=g) for s, g in REPEATED] + [
    PoissonSelectionMechanism(mean=m) for m in (0.5, 6.0)
]


@pytest.mark.slow  # a law from many draws
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_release_has_the_law_of_the_best_run(mechanism):
    law, n, source = randomised_response(1.0, 0), 4000, SeededRandom(20_261_120)
    expected = n * law_of_the_best(law, SCORES, counts_of(mechanism))
    assert expected.sum() == pytest.approx(n, rel=1e-6)
    seen = np.zeros(5)
    for _ in range(n):
        best = mechanism.select(answering(law), source)
        if best is None:
            seen[4] += 1
        else:
            assert best[0] == SCORES[best[1]]
            seen[best[1]] += 1
    often = expected > 0
    statistic = ((seen - expected)[often] ** 2 / expected[often]).sum()
    assert seen[~often].sum() == 0
    assert chi2.sf(float(statistic), int(often.sum()) - 1) > 1e-4


@pytest.mark.slow_after(5)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_price_is_never_below_the_exact_divergences(mechanism, epsilon):
    """All pairs of true answers, ties included."""
    event = mechanism.event(RandomizedResponseEvent(epsilon=epsilon, categories=4, adjacency=R))
    claimed, priced = event.renyi(ORDERS), lw.price(event)
    assert priced.epsilon(0.0) <= event.pure_epsilon()
    laws = [law_of_the_best(randomised_response(epsilon, t), SCORES, counts_of(mechanism)) for t in range(4)]
    largest = np.zeros(ORDERS.size)
    for p in laws:
        for q in laws:
            p_, q_ = p[p > 0], q[q > 0]
            found = [math.log(float(np.sum(p_**a * q_ ** (1.0 - a)))) / (a - 1.0) for a in ORDERS]
            largest = np.maximum(largest, found)
            assert float(np.max(np.log(p_ / q_))) <= event.pure_epsilon() * (1 + 1e-9)
            for e in (0.05, 0.5, 2.0):
                assert np.maximum(p - math.exp(e) * q, 0.0).sum() <= priced.delta(e) + 1e-12
    assert (largest <= claimed * (1 + 1e-9) + 1e-9).all()


def test_the_exact_law_is_that_of_all_sequences_of_runs():
    """The enumeration above against brute force: every sequence of at most 6 answers of 4."""
    run, counts = randomised_response(0.7, 2), np.array([0.1, 0.2, 0.3, 0.15, 0.1, 0.1, 0.05])
    best = np.zeros(5)
    best[4] = counts[0]
    chances = {(): 1.0}
    for k in range(1, 7):
        chances = {(*seq, a): p * run[a] for seq, p in chances.items() for a in range(4)}
        for seq, p in chances.items():
            best[max(seq, key=lambda a: SCORES[a])] += counts[k] * p  # max takes the earliest of equal ones
    np.testing.assert_allclose(law_of_the_best(run, SCORES, counts), best, rtol=1e-12)


def scripted(monkeypatch, count):
    """A selection of exactly `count` runs."""
    monkeypatch.setattr("ledgerwood.mechanisms.choices.repetition.RunCounts.draw", lambda self, source: count)
    return RepeatedSelectionMechanism(shape=0.0, stopping_rate=0.5)


def test_of_equal_scores_the_earliest_run_wins_and_not_a_number_loses(monkeypatch):
    results = iter([(math.nan, "a"), (-math.inf, "b"), (-1.0, "c"), (np.float32(3), "d"), (3, "e"), (math.nan, "f")])
    best = scripted(monkeypatch, 6).select(lambda _: next(results), SeededRandom(0))
    assert best == (3.0, "d")
    results = iter([(math.nan, "a"), (-math.inf, "b")])
    assert scripted(monkeypatch, 2).select(lambda _: next(results), SeededRandom(0)) == (-math.inf, "a")


class Boom(ValueError):
    """What a run says when it fails."""


@pytest.mark.parametrize("bad", ["raises", "no pair", "no number", None])
def test_a_run_that_fails_says_that_it_failed_and_nothing_else(monkeypatch, bad):
    calls = []

    def run(_source):
        secret = f"secret-{len(calls)}"
        calls.append(secret)
        if len(calls) < 3:
            return float(len(calls)), secret
        if bad == "raises":
            raise Boom(secret)
        return {"no pair": (1.0,), "no number": (secret, secret), None: None}[bad]

    with pytest.raises(RunFailed, match="nothing is released, and its budget is spent") as caught:
        scripted(monkeypatch, 5).select(run, SeededRandom(0))
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][1:]
    assert frames
    values = [value for frame in frames for value in frame.f_locals.values()]
    assert all("secret" not in repr(value) and value not in (3, 5) for value in values)


def test_an_interrupt_is_the_operators_and_passes(monkeypatch):
    def run(_source):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scripted(monkeypatch, 1).select(run, SeededRandom(0))


def test_no_run_is_a_release_of_its_own_under_the_poisson_law(monkeypatch):
    mechanism, source = PoissonSelectionMechanism(mean=1e-9), SeededRandom(1)
    assert [mechanism.select(lambda _: (0.0, 1), source) for _ in range(20)] == [None] * 20


def test_the_number_of_runs_is_drawn_before_the_first_run():
    """And takes no words that depend on what the runs read."""
    mechanism, made = RepeatedSelectionMechanism(shape=1.0, stopping_rate=0.2), []
    for words in (0, 1, 50):
        source = SeededRandom(5)
        made.append(0)

        def run(source, words=words):
            made[-1] += 1
            source.uint64(words)
            return 0.0, None

        mechanism.select(run, source)
    assert len(set(made)) == 1


@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("mean", [1.001, 4.0, 60.0])
def test_the_stopping_rate_of_a_mean(shape, mean):
    mechanism = RepeatedSelectionMechanism.of_mean(mean, shape=shape)
    counts = counts_of(mechanism)
    if mechanism.stopping_rate > 0.02:  # else the sum above is cut short
        assert float(counts @ np.arange(len(counts))) == pytest.approx(mean, rel=1e-6)
    assert mechanism.mean_runs == pytest.approx(mean, rel=1e-8)


def test_values_outside_their_bounds_are_refused():
    for mean in (1.0, 0.5, -1.0, 1e12, math.nan):
        with pytest.raises(InvalidParameter, match="mean"):
            RepeatedSelectionMechanism.of_mean(mean)
    for bad in ({"shape": -1.0, "stopping_rate": 0.5}, {"shape": 0.0, "stopping_rate": 1.0}):
        with pytest.raises(InvalidParameter):
            RepeatedSelectionMechanism(**bad)
    with pytest.raises(InvalidParameter, match="mean"):
        PoissonSelectionMechanism(mean=0.0)


def test_event_and_sampler_read_the_same_fields():
    one = GaussianEvent(noise_multiplier=3.0, adjacency=A)
    repeated = RepeatedSelectionMechanism(shape=-0.5, stopping_rate=0.01)
    assert repeated.event(one) == RepeatedSelection(one, shape=-0.5, stopping_rate=0.01)
    pure = PureEvent(epsilon=0.1, adjacency=A)
    assert PoissonSelectionMechanism(mean=3.0).event(pure) == PoissonSelection(pure, mean=3.0)


@pytest.mark.slow  # the truth is an integral in mpmath
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_price_of_gaussian_runs_is_between_the_truth_and_twice_it(mechanism):
    """The best of many N(0, 1) or N(.2, 1), in cells of 1/125: epsilon at delta 1e-6 by the exact law of the best."""
    counts, edges = counts_of(mechanism), np.linspace(-8.0, 8.0, 2001)
    k = np.arange(len(counts))

    def best(mean):
        upto = np.append(norm.cdf(edges - mean), 1.0)
        below = np.array([float(counts @ value**k) for value in upto])  # "no run" is below all, and in the first cell
        return np.diff(below, prepend=0.0)

    p, q = best(0.2), best(0.0)

    def excess(epsilon):
        factor = math.exp(epsilon)
        return max(np.maximum(p - factor * q, 0.0).sum(), np.maximum(q - factor * p, 0.0).sum()) - 1e-6

    truth = float(brentq(excess, 0.0, 20.0))
    claimed = lw.price(mechanism.event(GaussianEvent(noise_multiplier=5.0, adjacency=A))).epsilon(1e-6)
    assert truth <= claimed <= 2.0 * truth
