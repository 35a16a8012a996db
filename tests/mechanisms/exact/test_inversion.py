"""Laws on the integers: enclosures against mpmath, draws against the law, and words that no table decides."""

import functools
import itertools

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from ledgerwood.mechanisms import RandomSource, SeededRandom
from ledgerwood.mechanisms.exact.integer_laws import Inversion, discrete_gaussian, poisson

LAWS = [
    *(pytest.param(discrete_gaussian, scale, id=f"gaussian-{scale}") for scale in (0.01, 0.1, 0.5, 1.0, 7.3, 41.5)),
    *(pytest.param(poisson, mean, id=f"poisson-{mean}") for mean in (1e-9, 0.3, 1.0, 3.7, 20.0, 400.25)),
]


def weight(law, parameter, z):
    if law is discrete_gaussian:
        return mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * mpmath.mpf(parameter) ** 2))
    return mpmath.exp(-mpmath.mpf(parameter)) * mpmath.mpf(parameter) ** z / mpmath.factorial(z) if z >= 0 else 0


def distribution(law, parameter, first, last):
    """F at first - 1, ..., last, to the working precision."""
    far = 25 * int(parameter if law is discrete_gaussian else 30 + parameter**0.5) + 60
    low, high = first - far if law is discrete_gaussian else 0, last + far
    weights = [weight(law, parameter, z) for z in range(low, high + 1)]
    total = mpmath.fsum(weights)
    sums, running = {low - 1: mpmath.mpf(0)}, mpmath.mpf(0)
    for z, value in zip(range(low, high + 1), weights, strict=True):
        running += value
        sums[z] = running / total
    return [sums.get(z, mpmath.mpf(0)) for z in range(first - 1, last + 1)]


@pytest.mark.slow_after(6)  # the truth to 60 digits
@pytest.mark.parametrize(("law", "parameter"), LAWS)
@pytest.mark.parametrize("bits", [64, 128])
def test_bounds_enclose_the_distribution_function_closely(law, parameter, bits):
    table = law(parameter, bits)
    with mpmath.workdps(110):
        truth = distribution(law, parameter, table.first, table.first + len(table.ends) - 1)
        scaled = [value * mpmath.mpf(2) ** bits for value in truth]
        assert all(start >= value for start, value in zip(table.starts, scaled[:-1], strict=True))
        assert all(start <= value + 2 for start, value in zip(table.starts, scaled[:-1], strict=True))
        assert all(end <= value for end, value in zip(table.ends, scaled[1:], strict=True))
        assert all(end >= value - 2 for end, value in zip(table.ends, scaled[1:], strict=True))
        assert scaled[0] < 2
        assert 2**bits - scaled[-1] < 2
    assert all(a <= b for a, b in itertools.pairwise(table.starts))
    assert all(0 <= end < 2**bits for end in table.ends)


@pytest.mark.slow_after(6)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize(("law", "parameter"), LAWS)
def test_draws_have_the_law(law, parameter):
    n = 400_000
    drawn = Inversion(functools.partial(law, parameter)).draw(n, SeededRandom(20_261_120))
    first, last = int(drawn.min()), int(drawn.max())
    with mpmath.workdps(40):
        truth = distribution(law, parameter, first, last)
        expected = np.array([float(n * (b - a)) for a, b in itertools.pairwise(truth)])
    counts = np.bincount(drawn - first, minlength=last - first + 1)
    often = expected >= 20
    counts = np.append(counts[often], counts[~often].sum())
    expected = np.append(expected[often], n - expected[often].sum())
    if expected[-1] < 20:
        counts, expected = np.append(counts[:-2], counts[-2:].sum()), np.append(expected[:-2], expected[-2:].sum())
    if len(counts) == 1:
        assert counts[0] == n
        return
    assert chi2.sf(float(((counts - expected) ** 2 / expected).sum()), len(counts) - 1) > 1e-4


def given_words(monkeypatch, *words):
    """A source whose stream is these words and no more."""
    stream = iter(words)
    monkeypatch.setattr(
        SeededRandom, "_fill", lambda self, n: np.array([next(stream) for _ in range(n)], dtype=np.uint64)
    )
    return SeededRandom(0)


@pytest.mark.parametrize(("law", "parameter"), [(discrete_gaussian, 0.5), (discrete_gaussian, 41.5), (poisson, 20.0)])
def test_a_word_on_a_boundary_is_decided_by_the_words_after_it(monkeypatch, law, parameter):
    """The first word is floor(2**64 F(z)): the answer is z or z + 1, as the later digits are below F's or above."""
    table = law(parameter, 64)
    place = len(table.ends) // 2
    z = table.first + place
    with mpmath.workdps(110):
        exact = distribution(law, parameter, z, z)[1] * mpmath.mpf(2) ** 192
        digits = int(mpmath.floor(exact))
    words = [digits >> 128, digits >> 64 & (2**64 - 1), digits & (2**64 - 1)]
    inversion = Inversion(functools.partial(law, parameter))
    below, above = [*words[:2], words[2] - 2**20], [*words[:2], words[2] + 2**20]
    assert inversion.draw(1, given_words(monkeypatch, *below))[0] == z
    assert inversion.draw(1, given_words(monkeypatch, *above))[0] == z + 1


def test_extreme_words_go_far_out(monkeypatch):
    inversion = Inversion(functools.partial(discrete_gaussian, 1.0))
    least = inversion.draw(1, given_words(monkeypatch, 0, 0, 1))[0]
    most = inversion.draw(1, given_words(monkeypatch, 2**64 - 1, 2**64 - 1, 2**64 - 2))[0]
    with mpmath.workdps(60):
        tail = [mpmath.nsum(lambda z: mpmath.exp(-(z**2) / 2), [k, mpmath.inf]) for k in (18, 19)]
        assert tail[1] < mpmath.sqrt(2 * mpmath.pi) * mpmath.mpf(2) ** -192 * 64
    assert most > 8
    assert least == -most


def test_the_source_is_read_a_word_a_draw():
    source, words = SeededRandom(3), SeededRandom(3)
    Inversion(functools.partial(poisson, 4.0)).draw(70_000, source)
    words.uint64(70_000)
    assert source.uint64(1)[0] == words.uint64(1)[0]
    assert isinstance(source, RandomSource)
