"""The law of the number of runs: enclosures against mpmath, every short word against the distribution function."""

import itertools

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from ledgerwood.mechanisms import SeededRandom
from ledgerwood.mechanisms.exact.integer_laws import RunCounts

LAWS = list(itertools.product((-0.999, -0.5, -1e-17, 0.0, 1e-12, 0.3, 1.0, 2.5, 100.0), (1e-9, 0.04, 0.5, 0.999)))
SMALL = [(shape, rate) for shape, rate in LAWS if rate > 0.01 and (shape, rate) != (100.0, 0.04)]  # that: 2400 runs


def total(shape, rate):
    """The sum of the weights Gamma(k + eta) / (Gamma(1 + eta) k!) (1 - gamma)^(k - 1), in closed form."""
    shape, rate = mpmath.mpf(shape), mpmath.mpf(rate)
    if shape == 0:
        return -mpmath.log(rate) / (1 - rate)
    return (rate**-shape - 1) / (shape * (1 - rate))


def probability(shape, rate, k):
    """By the definition, with gamma functions; logarithmic at 0."""
    shape, rate = mpmath.mpf(shape), mpmath.mpf(rate)
    if shape == 0:
        return (1 - rate) ** k / (-k * mpmath.log(rate))
    weight = (1 - rate) ** k * mpmath.gamma(k + shape) / mpmath.gamma(shape) / mpmath.factorial(k)
    return weight / (rate**-shape - 1)


def distribution(shape, rate, last):
    """F at 0, ..., last."""
    return [mpmath.mpf(0), *itertools.accumulate(probability(shape, rate, k) for k in range(1, last + 1))]


@pytest.mark.parametrize(("shape", "rate"), [*LAWS, (0.7, 1 - 2.0**-53), (-0.3, 1 - 2.0**-53)])
@pytest.mark.parametrize("precision", [192, 320])
def test_the_sum_of_the_weights_is_enclosed_closely(shape, rate, precision):
    with mpmath.workdps(2000 if shape == 100.0 else 160):
        low, high = RunCounts(shape, rate).total(precision)
        exact = total(shape, rate) * mpmath.mpf(2) ** precision
        assert low <= exact <= high
        assert (high - low) / exact < mpmath.mpf(2) ** (60 - precision)


@pytest.mark.slow_after(6)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize(("shape", "rate"), SMALL)
def test_every_short_word_is_decided_as_the_distribution_function_says(shape, rate):
    """All words of 9 bits: a decided one lies between F(k - 1) and F(k), an undecided one holds a value of F."""
    law, bits = RunCounts(shape, rate), 9
    decided = [law.decide(word, bits) for word in range(2**bits)]
    last = max(k for k in decided if k is not None) + 2
    with mpmath.workdps(60):
        truth = distribution(shape, rate, last)
        share = dict.fromkeys(range(1, last + 1), 0)
        for word, k in enumerate(decided):
            start, end = mpmath.mpf(word) / 2**bits, mpmath.mpf(word + 1) / 2**bits
            if k is not None:
                assert truth[k - 1] <= start
                assert end <= truth[k]
                share[k] += 1
            else:
                assert any(start <= value <= end for value in truth) or end > truth[-1]
        for k, words in share.items():  # what is missing to a probability lies in the two cells at its ends
            assert 0 <= truth[k] - truth[k - 1] - mpmath.mpf(words) / 2**bits <= mpmath.mpf(2) / 2**bits


@pytest.mark.parametrize(("shape", "rate"), [(-0.5, 0.04), (0.0, 0.04), (2.5, 0.5), (100.0, 0.999)])
def test_a_word_on_a_boundary_waits_for_the_words_after_it(shape, rate):
    law = RunCounts(shape, rate)
    with mpmath.workdps(80):
        digits = int(mpmath.floor(distribution(shape, rate, 3)[3] * mpmath.mpf(2) ** 192))
    assert law.decide(digits >> 128, 64) is None
    assert law.decide(digits >> 64, 128) is None
    assert law.decide(digits - 2**20, 192) == 3
    assert law.decide(digits + 2**20, 192) == 4


@pytest.mark.slow  # a law from many draws
@pytest.mark.parametrize(("shape", "rate"), [(-0.5, 0.04), (0.0, 0.04), (1.0, 0.5), (2.5, 0.5), (100.0, 0.999)])
def test_draws_have_the_law(shape, rate):
    n, source, law = 10_000, SeededRandom(20_261_120), RunCounts(shape, rate)
    drawn = np.array([law.draw(source) for _ in range(n)])
    with mpmath.workdps(40):
        expected = np.array([n * float(probability(shape, rate, k)) for k in range(1, int(drawn.max()) + 1)])
    often = expected >= 20
    counts = np.bincount(drawn - 1, minlength=len(expected))
    counts = np.append(counts[often], n - counts[often].sum())
    expected = np.append(expected[often], n - expected[often].sum())
    if expected[-1] < 20:
        counts, expected = np.append(counts[:-2], counts[-2:].sum()), np.append(expected[:-2], expected[-2:].sum())
    assert chi2.sf(float(((counts - expected) ** 2 / expected).sum()), len(counts) - 1) > 1e-4


def test_the_last_word_of_all_goes_far_out_and_ends():
    assert RunCounts(0.0, 0.5).decide(2**64 - 1, 64) is None
    k = RunCounts(0.0, 0.5).decide(2**128 - 2**32, 128)
    with mpmath.workdps(80):
        truth = distribution(0.0, 0.5, k)
        assert 1 - truth[k] <= mpmath.mpf(2) ** -96 - mpmath.mpf(2) ** -128
        assert mpmath.mpf(2) ** -96 <= 1 - truth[k - 1]
