"""Ten million draws of every exact sampler against mpmath's probabilities, and wrong samplers that this finds out.

Each check has level 1e-6 and a fixed seed: the same words give the same verdict for ever.
"""

import math
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from scipy.special import ive, ndtri
from scipy.stats import binom, chi2

from ledgerwood.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    Grid,
    LaplaceMechanism,
    RandomizedResponseMechanism,
    SeededRandom,
    SkellamMechanism,
)

N, LEVEL = 10_000_000, 1e-6
CHUNK = 1 << 15  # of the samplers: what a buffer that is used twice would repeat


@dataclass(frozen=True)
class Law:
    """Integers symmetric around 0; sf(k) = Pr(X >= k) for k >= 1 by mpmath; about normal or Laplace of `spread`."""

    sf: object
    spread: float
    laplace: bool = False

    @property
    def deviation(self):
        return self.spread * (math.sqrt(2.0) if self.laplace else 1.0)

    def quantile(self, p):
        q = math.copysign(math.log(2.0 * min(p, 1.0 - p)), p - 0.5) if self.laplace else float(ndtri(p))
        return round(self.spread * q)

    def cells(self, edges):
        """Probabilities of ..edges[0], edges[0]..edges[1], ..., edges[-1].., ends excluded, without cancellation."""
        known = {k: self.sf(k) for k in {*(int(e) for e in edges if e > 0), *(1 - int(e) for e in edges if e <= 0)}}
        found = []
        for low, high in zip([None, *edges], [*edges, None], strict=True):
            if high is not None and high <= 0:
                found.append(known[1 - high] - (0 if low is None else known[1 - low]))
            elif low is not None and low > 0:
                found.append(known[low] - (0 if high is None else known[high]))
            else:
                below, above = (0 if low is None else known[1 - low]), (0 if high is None else known[high])
                found.append(1 - below - above)
        return np.array([float(p) for p in found])

    def variance(self):
        if self.spread > 100:
            return self.deviation**2  # a rounded one has 1 / 12 more: relative 1e-7
        return 2.0 * math.fsum((2 * k - 1) * float(self.sf(k)) for k in range(1, int(50 * self.spread) + 10))

    def edges(self, groups):
        wanted = {self.quantile(i / groups) for i in range(1, groups)}
        wanted |= {k for k in range(-40, 41) if self.spread < 12}
        wanted = {k if k > 0 else 1 - k for k in wanted}
        kept = sorted(k for k in wanted if k >= 1 and N * self.sf(k) >= 20)
        return [1 - k for k in reversed(kept)] + kept


def rounded(name, scale):
    def sf(k):
        x = (mpmath.mpf(int(k)) - 0.5) / scale
        return mpmath.erfc(x / mpmath.sqrt(2)) / 2 if name == "normal" else mpmath.exp(-x) / 2

    return Law(sf, scale, laplace=name == "laplace")


def discrete_laplace(scale):
    alpha = mpmath.exp(-1 / mpmath.mpf(scale))
    return Law(lambda k: alpha ** int(k) / (1 + alpha), scale, laplace=True)


def discrete_gaussian(scale):
    s = mpmath.mpf(scale)
    total = 1 + 2 * mpmath.nsum(lambda z: mpmath.exp(-z * z / (2 * s * s)), [1, mpmath.inf])
    if scale > 20:  # Poisson's summation: what is left out is e^{-2 pi^2 scale^2}
        total = s * mpmath.sqrt(2 * mpmath.pi)

    def sf(k):
        if scale <= 20:
            return (
                mpmath.fsum(mpmath.exp(-mpmath.mpf(z * z) / (2 * s * s)) for z in range(k, k + 60 + 12 * int(s)))
                / total
            )
        x = (mpmath.mpf(int(k)) - 0.5) / s  # Euler and Maclaurin around the middles, two corrections
        f = mpmath.exp(-x * x / 2)
        first, third = -x * f / s, (3 * x - x**3) * f / s**3
        return (
            s * mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(x / mpmath.sqrt(2)) + first / 24 - third * 7 / 5760
        ) / total

    return Law(sf, scale)


def bessel(k, v):
    """e^-v I_k(v), v large: the integral of e^{v (cos t - 1)} cos(k t) / pi over 0..pi, where it is above e^-98."""
    ends = mpmath.linspace(0, 14 / mpmath.sqrt(v), 29)
    return mpmath.quad(lambda t: mpmath.exp(-2 * v * mpmath.sin(t / 2) ** 2) * mpmath.cos(k * t), ends) / mpmath.pi


def skellam(variance):
    deviation = math.sqrt(variance)
    if variance > 1e3:
        table = ive(np.arange(int(13 * deviation) + 2), variance)  # e^-v I_k(v)
        for k in (0, int(deviation), int(6 * deviation)):
            assert table[k] == pytest.approx(float(bessel(k, variance)), rel=1e-9)
    else:
        terms = (mpmath.exp(-variance) * mpmath.besseli(k, variance) for k in range(int(13 * deviation) + 30))
        table = np.array([float(term) for term in terms])
    upper = np.cumsum(table[::-1])[::-1]
    return Law(lambda k: upper[int(k)] if k < upper.size else 0.0, deviation)


def p_of_counts(counts, probabilities):
    """Chi-squared; cells that expect fewer than 20 are taken together."""
    expected = counts.sum() * probabilities
    rare = expected < 20
    if rare.any():
        counts, expected = (np.append(a[~rare], a[rare].sum()) for a in (counts, expected))
    kept = expected > 0
    assert counts[~kept].sum() == 0
    counts, expected = counts[kept], expected[kept]
    return float(chi2.sf(float(np.sum((counts - expected) ** 2 / expected)), max(counts.size - 1, 1)))


def coarser(probabilities, groups):
    """A map of cells to at most `groups` neighbouring cells of about equal probability."""
    middle = np.cumsum(probabilities) - 0.5 * probabilities
    return np.unique(np.minimum((middle * groups).astype(int), groups - 1), return_inverse=True)[1].astype(np.int16)


def p_in_sequence(groups, probabilities):
    """{check: p}: neighbouring draws, and draws a chunk apart, are pairs of independent ones; runs are as long."""
    k, n, found = probabilities.size, groups.size, {}
    both = np.outer(probabilities, probabilities).ravel()
    for lag in (1, CHUNK):
        whole = groups[: n - n % (2 * lag)].reshape(-1, 2, lag)  # disjoint pairs
        codes = whole[:, 0].astype(np.int32) * k + whole[:, 1]
        found[f"pairs {lag} apart"] = p_of_counts(np.bincount(codes.ravel(), minlength=k * k), both)
    split = int(np.argmin(np.abs(np.cumsum(probabilities) - 0.5)))
    p = float(probabilities[: split + 1].sum())
    low, m = groups <= split, 2.0 * p * (1.0 - p)
    variance = (n - 1) * m * (1 - m) + 2 * (n - 2) * (0.5 * m - m * m)
    if n * m > 1e5:
        runs = np.count_nonzero(low[1:] != low[:-1])
        found["runs"] = math.erfc(abs(runs - (n - 1) * m) / math.sqrt(2.0 * variance))
    return found


def p_of_mean(values, truth):
    return math.erfc(abs(float(values.mean()) - truth) / float(values.std()) * math.sqrt(0.5 * values.size))


def p_values(draws, law):
    """{check: p} of int64 draws that should be independent with this law."""
    with mpmath.workdps(30):
        edges = law.edges(400)
        probabilities = law.cells(edges)
        tails = {t: math.ceil(t * law.deviation) for t in (3, 4, 5, 6)}
        variance = law.variance()
        beyond = {t: float(2 * law.sf(max(k, 1))) for t, k in tails.items()}
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    cells = np.searchsorted(edges, draws, side="right")
    counts = np.bincount(cells, minlength=len(edges) + 1)
    found = {"cells": p_of_counts(counts, probabilities)}
    for groups in (24, 4):
        merge = coarser(probabilities, groups)
        found[f"{groups} groups"] = p_of_counts(np.bincount(merge, counts), np.bincount(merge, probabilities))
    found |= p_in_sequence(merge[cells], np.bincount(merge, probabilities))
    for t, k in tails.items():
        seen = int(np.count_nonzero(draws >= max(k, 1)) + np.count_nonzero(draws <= -max(k, 1)))
        one_side = min(binom.cdf(seen, draws.size, beyond[t]), binom.sf(seen - 1, draws.size, beyond[t]))
        found[f"beyond {t} sigma"] = min(1.0, 2.0 * float(one_side))
    if counts.size > 3 and N * law.sf(1) > 1e4:
        x = draws.astype(np.float64)
        squares = x * x
        found["mean"] = p_of_mean(x, 0.0)
        found["variance"] = p_of_mean(squares, variance)
    if law.spread > 1000:
        found["last bits"] = p_of_counts(np.bincount(draws & 15, minlength=16), np.full(16, 1 / 16))
    return found


def drawn(mechanism, seed):
    return mechanism.randomise(np.zeros((N, 1), dtype=np.int64), Grid(exponents=(0,)), SeededRandom(seed))[:, 0]


SAMPLERS = [
    *((DiscreteLaplaceMechanism(scale=s), discrete_laplace, s) for s in (0.1, 0.7, 30.0, 1e6)),
    *((DiscreteGaussianMechanism(scale=s), discrete_gaussian, s) for s in (0.2, 1.3, 100.0, 1e5)),
    *((SkellamMechanism(variance=s), skellam, s) for s in (0.0025, 1.7, 1e4, 1e9)),
    *((GaussianMechanism(stddev=s), lambda s: rounded("normal", s), s) for s in (0.15, 1.3, 1e3, 1e6, 2.0**40)),
    *((LaplaceMechanism(scales=(s,)), lambda s: rounded("laplace", s), s) for s in (0.05, 1.3, 1e3, 1e6, 2.0**40)),
]


@pytest.mark.slow  # a law from many draws of each sampler
@pytest.mark.parametrize("place", range(len(SAMPLERS)), ids=lambda i: repr(SAMPLERS[i][0]))
def test_samplers_have_their_laws(place):
    mechanism, law, scale = SAMPLERS[place]
    found = p_values(drawn(mechanism, 20_261_200 + place), law(scale))
    assert len(found) >= 9
    assert min(found.values()) > LEVEL, found


def test_scales_at_which_nothing_but_zero_is_drawn():
    """Another value has probability 4e-9 at most: all of a million are 0, but for a chance of 1 in 240."""
    for mechanism in (
        DiscreteLaplaceMechanism(scale=0.05),
        DiscreteGaussianMechanism(scale=0.05),
        GaussianMechanism(stddev=0.05),
    ):
        assert not mechanism.randomise(
            np.zeros((10**6, 1), dtype=np.int64), Grid(exponents=(0,)), SeededRandom(3)
        ).any()


@pytest.mark.slow  # a law from many draws
@pytest.mark.parametrize(("epsilon", "categories", "truth"), [(0.05, 2, 0), (1.0, 5, 3), (3.0, 100, 99)])
def test_randomised_answers_have_their_law(epsilon, categories, truth):
    mechanism = RandomizedResponseMechanism(epsilon=epsilon, categories=categories)
    answers = mechanism.randomise(np.full(N, truth, dtype=np.int64), SeededRandom(20_261_250 + categories))
    law = np.full(categories, float(1 / (mpmath.exp(mpmath.mpf(epsilon)) + categories - 1)))
    law[truth] = float(mpmath.exp(mpmath.mpf(epsilon)) * law[truth])
    found = {"categories": p_of_counts(np.bincount(answers, minlength=categories), law)}
    merge = coarser(law, 4)
    found |= p_in_sequence(merge[answers], np.bincount(merge, law))
    assert len(found) == 4
    assert min(found.values()) > LEVEL, found


def wrong(fault, rng):
    """(draws, the law that they claim)."""
    x = rng.standard_normal(N)
    if fault == "a scale 0.2 % too small":
        return np.rint(1000.0 * 0.998 * x).astype(np.int64), rounded("normal", 1000.0)
    if fault == "a float32 normal, rounded":
        return np.rint(2.0**40 * x.astype(np.float32).astype(np.float64)).astype(np.int64), rounded("normal", 2.0**40)
    out = np.rint(30.0 * x).astype(np.int64)
    if fault == "a tail that begins one too late":
        out = np.rint(1.3 * x).astype(np.int64)
        return out + (out >= 5) - (out <= -5), rounded("normal", 1.3)
    if fault == "no tail beyond 4.2 sigma":
        out[np.abs(out) > 126] = 0
    elif fault == "truncated, not rounded":
        out = (30.0 * x).astype(np.int64)
    elif fault == "one draw in 50 repeats the one before":
        again = np.flatnonzero(rng.random(N - 1) < 0.02) + 1
        out[again] = out[again - 1]
    elif fault == "a buffer used twice":
        for start in range(0, N - 2 * CHUNK, 40 * CHUNK):
            out[start + CHUNK : start + 2 * CHUNK] = out[start : start + CHUNK]
    elif fault == "a tilt of 4 in 1000":
        flip = (rng.random(N) < 4e-3) & (out < 0)
        out[flip] *= -1
    else:
        assert fault == "none"
    return out, rounded("normal", 30.0)


FAULTS = {
    "a scale 0.2 % too small": "variance",
    "a float32 normal, rounded": "last bits",
    "a tail that begins one too late": "cells",
    "no tail beyond 4.2 sigma": "beyond",
    "truncated, not rounded": "cells",
    "one draw in 50 repeats the one before": "pairs 1 apart",
    "a buffer used twice": f"pairs {CHUNK}",
    "a tilt of 4 in 1000": "mean",
}


@pytest.mark.slow  # the power of these checks, on wrong samplers
@pytest.mark.parametrize("fault", [*FAULTS, "none"])
def test_wrong_samplers_are_found_out(fault):
    draws, law = wrong(fault, np.random.default_rng(20_261_260))
    found = p_values(draws, law)
    low = {check for check, p in found.items() if p <= LEVEL}
    if fault == "none":  # at this size a rounded float64 normal of 30 steps does not differ
        assert not low
    else:
        assert any(check.startswith(FAULTS[fault]) for check in low), found
