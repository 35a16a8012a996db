"""round(s x) on the grid: against exact fractions, against the law, and against attacks on low-order bits."""

from collections import deque
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import chi2

from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import (
    EllipticalGaussianMechanism,
    GaussianMechanism,
    Grid,
    LaplaceMechanism,
    SecureRandom,
    SeededRandom,
)
from ledgerwood.mechanisms.exact import deviates
from ledgerwood.mechanisms.exact.deviates import FRACTION_BITS, Cells, standard_laplace, standard_normal

LAWS = {"normal": standard_normal, "laplace": standard_laplace}
RATIOS = [0.3, 1.0, 7.3, 1e3, 1e6]
both = pytest.mark.parametrize("name", LAWS)


def upper_tail(name, x):
    x = mpmath.mpf(x)
    if name == "normal":
        return mpmath.erfc(x / mpmath.sqrt(2)) / 2
    return mpmath.exp(-x) / 2 if x > 0 else 1 - mpmath.exp(x) / 2


def noise(name, stddev, n, seed, exponent=0, value=0):
    statistic = np.full((n, 1), value, dtype=np.int64)
    return deviates.add_noise(statistic, Grid(exponents=(exponent,)), (stddev,), LAWS[name](), SeededRandom(seed))[:, 0]


def chi_squared(counts, expected):
    """The p-value; bins that expect fewer than 20 are taken together, and join their neighbour if still too few."""
    rare = expected < 20
    if rare.any():
        counts, expected = (np.append(a[~rare], a[rare].sum()) for a in (counts, expected))
        if expected[-1] < 20:
            counts, expected = (np.append(a[:-2], a[-2:].sum()) for a in (counts, expected))
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    return chi2.sf(statistic, len(expected) - 1)


def law_of_bins(name, stddev, edges, n):
    """Expected counts of integers in [edges[i], edges[i + 1]), and below and above all edges."""
    with mpmath.workdps(30):
        tails = [mpmath.mpf(1), *(upper_tail(name, (mpmath.mpf(int(e)) - 0.5) / stddev) for e in edges), mpmath.mpf(0)]
        return np.array([float(n * (a - b)) for a, b in pairwise(tails)])


@pytest.mark.slow_after(4)  # whole laws, by enumeration or many draws
@both
@pytest.mark.parametrize("stddev", RATIOS)
@pytest.mark.parametrize("value", [0, 1])
def test_outputs_have_the_law_of_a_rounded_deviate(name, stddev, value):
    n = 1_000_000
    out = noise(name, stddev, n, 20_260_201 + value, value=value)
    reach = max(1, round(3.5 * stddev))
    width = max(1, reach // 40)
    edges = np.arange(-reach, reach + 1, width)
    counts = np.bincount(np.searchsorted(edges + value, out, side="right"), minlength=len(edges) + 1)
    assert chi_squared(counts, law_of_bins(name, stddev, edges, n)) > 1e-4


@pytest.mark.slow_after(3)  # whole laws, by enumeration or many draws
@both
@pytest.mark.parametrize("stddev", RATIOS)
def test_moments_and_symmetry(name, stddev):
    n = 1_000_000
    out = noise(name, stddev, n, 20_260_203).astype(np.float64)
    with mpmath.workdps(30):
        top = int(40 * stddev) + 2
        if top < 1000:
            tails = [upper_tail(name, (k - mpmath.mpf("0.5")) / stddev) for k in range(1, top)]
            variance = float(2 * sum((2 * k - 1) * tail for k, tail in enumerate(tails, 1)))
        else:
            variance = stddev**2 * (1 if name == "normal" else 2) + 1 / 12  # Sheppard, exact to e**-1e6 here
    fourth = np.mean(out**4)
    assert abs(out.mean()) < 5 * np.sqrt(variance / n)
    assert abs(np.mean(out**2) - variance) < 5 * np.sqrt((fourth - variance**2) / n)
    positive, negative = np.count_nonzero(out > 0), np.count_nonzero(out < 0)
    assert abs(positive - negative) < 5 * np.sqrt(positive + negative)


@pytest.mark.slow_after(2)  # a rare leak shows in many draws only
@both
@pytest.mark.parametrize("stddev", [7.3, 2.0**20, 2.0**40])
@pytest.mark.parametrize("bits", [1, 4, 8])
def test_low_order_bits_do_not_tell_the_inputs_apart(name, stddev, bits):
    """The residues of outputs for 0, 1 and a clip norm: each has the law of the rounded deviate, shifted."""
    n, modulus = 400_000, 1 << bits
    clip = 1 << 10
    with mpmath.workdps(30):
        if stddev > 100:
            residues = np.full(modulus, n / modulus)  # uniform to e**-1000
        else:
            reach = 60 * modulus
            tails = [upper_tail(name, (k - mpmath.mpf("0.5")) / stddev) for k in range(-reach, reach + 1)]
            cells = [float(n * (a - b)) for a, b in pairwise(tails)]
            residues = np.array(cells).reshape(-1, modulus).sum(axis=0)
    for seed, value in enumerate((0, 1, clip)):
        out = noise(name, stddev, n, 20_260_210 + seed, value=value)
        counts = np.bincount((out - value) % modulus, minlength=modulus)
        assert chi_squared(counts, residues) > 1e-4
        counts = np.bincount(out % modulus, minlength=modulus)
        assert chi_squared(counts, np.roll(residues, value % modulus)) > 1e-4


@both
def test_every_integer_is_reachable_from_either_input(name):
    """Mironov's attack (2012) looks for outputs that one input cannot produce: there are none."""
    near, far = (set(noise(name, 3.0, 400_000, 20_260_220 + value, value=value).tolist()) for value in (0, 1))
    everything = set(range(-9, 11))
    assert everything <= near
    assert everything <= far


@pytest.mark.slow_after(1)  # whole laws, by enumeration or many draws
@both
@given(
    values=arrays.arrays(np.int64, (3, 2)),
    seed=st.integers(0, 2**32),
    exponents=st.tuples(st.integers(-60, 60), st.integers(-60, 60)),
)
def test_noise_is_added_modulo_two_to_the_64_and_does_not_look_at_the_statistic(name, values, seed, exponents):
    grid, scales = Grid(exponents=exponents), tuple(40.0 * 2.0**e for e in exponents)
    law = LAWS[name]()
    before = values.copy()
    out = deviates.add_noise(values, grid, scales, law, SeededRandom(seed))
    pure = deviates.add_noise(np.zeros_like(values), grid, scales, law, SeededRandom(seed))
    assert np.array_equal(values, before)
    for a, b, c in zip(out.ravel().tolist(), values.ravel().tolist(), pure.ravel().tolist(), strict=True):
        assert (a - b - c) % 2**64 == 0


@both
def test_a_step_changes_the_unit_and_nothing_else(name):
    fine = noise(name, 5.0, 1000, 9, exponent=0)
    assert np.array_equal(noise(name, 5.0 * 2.0**-30, 1000, 9, exponent=-30), fine)
    assert np.array_equal(noise(name, 5.0 * 2.0**900, 1000, 9, exponent=900), fine)


@both
def test_columns_have_scales_of_their_own(name):
    zeros = np.zeros((200_000, 3), dtype=np.int64)
    out = deviates.add_noise(zeros, Grid(exponents=(0, -4, 2)), (3.0, 3.0, 40.0), LAWS[name](), SeededRandom(5))
    spread = out.astype(np.float64).std(axis=0) / (1.0 if name == "normal" else np.sqrt(2.0))
    assert spread == pytest.approx([np.sqrt(9 + 1 / 12), 48.0, 10.0], rel=0.01)


@both
@pytest.mark.parametrize("shape", [(1,), (0, 1), (5, 1), (2, 3, 1), (70_000, 1)])
def test_shapes_are_kept(name, shape):
    out = deviates.add_noise(
        np.zeros(shape, dtype=np.int64), Grid(exponents=(0,)), (9.0,), LAWS[name](), SecureRandom()
    )
    assert out.shape == shape
    assert out.dtype == np.int64


class Script:
    kind = "test"

    def __init__(self, words):
        self.words = deque(words)

    def uint64(self, shape):
        return np.array([self.words.popleft() for _ in range(int(np.prod(shape)))], dtype=np.uint64).reshape(shape)


def rounded(x, bits, m, shift, words):
    """round(m 2**-shift x) by fractions: the cell (x, bits), refined by `words` until one integer is left."""
    words = iter(words)
    while True:
        scale = Fraction(m) / Fraction(2) ** (shift + bits)
        low, high = x * scale + Fraction(1, 2), (x + 1) * scale + Fraction(1, 2)
        first, last = low.__floor__(), -(-high).__floor__() - 1  # integers of the half-open interval [low, high)
        if first == last:
            return first
        x, bits = (x << 64) + next(words), bits + 64


def run(cells, refined, scales, words):
    out = np.empty(len(cells), dtype=np.int64)
    deviates._round(Cells(cells=np.array(cells, dtype=np.int64), refined=refined), scales, Script(words), out)
    return out.tolist()


words64 = st.integers(0, 2**64 - 1)


@given(
    x=st.integers(-(2**59), 2**59 - 1),
    m=st.integers(2**52, 2**53 - 1),
    shift=st.integers(-2, 130),
    words=st.lists(words64, min_size=20, max_size=20),
)
def test_any_cell_rounds_as_by_fractions(x, m, shift, words):
    assert run([x], {}, [(m, shift)], words) == [rounded(x, FRACTION_BITS, m, shift, words)]


@given(
    tie=st.integers(-50, 50),
    off=st.integers(-3, 3),
    m=st.integers(2**52, 2**53 - 1),
    shift=st.integers(48, 56),
    words=st.lists(st.sampled_from([0, 1, 2**63, 2**64 - 1]), min_size=20, max_size=20),
)
def test_cells_at_a_tie_round_as_by_fractions(tie, off, m, shift, words):
    """Cells that contain, or touch, the point that is rounded either way."""
    x = int((tie + Fraction(1, 2)) * 2 ** (FRACTION_BITS + shift) / m) + off
    if abs(x) < 2**59:
        assert run([x], {}, [(m, shift)], words) == [rounded(x, FRACTION_BITS, m, shift, words)]


@given(tie=st.integers(1, 50), m=st.integers(2**52, 2**53 - 1).map(lambda m: m | 1), turns=st.integers(1, 4))
def test_a_tie_is_refined_for_as_long_as_the_words_sit_on_it(tie, m, turns):
    shift, bits = 50, FRACTION_BITS + 64 * turns
    long = int((tie + Fraction(1, 2)) * 2 ** (bits + shift) / m)
    words = [long >> 64 * (turns - 1 - i) & (2**64 - 1) for i in range(turns)]
    below, above = words + [0] * 3, words + [2**64 - 1] * 3
    cell = long >> 64 * turns
    for script in (below, above):
        assert run([cell], {}, [(m, shift)], script) == [rounded(cell, FRACTION_BITS, m, shift, script)]
    assert run([cell], {}, [(m, shift)], below) == [tie]
    assert run([cell], {}, [(m, shift)], above) == [tie + 1]


def test_refined_deviates_use_the_bits_that_they_have():
    m, shift = 2**52, 52 - 3  # a scale of 8
    x = (3 << 64) + 12345
    out = run([0, 7 << FRACTION_BITS, 0], {0: (x, 64), 2: (~x, 64)}, [(m, shift)], [])
    assert out == [24, 56, -24]


def test_columns_take_turns():
    one = 1 << FRACTION_BITS
    scales = [(2**52, 52), (2**52, 51), (2**52, 62)]
    assert run([one, one, one, 3 * one, 3 * one, 3 * one], {}, scales, []) == [1, 2, 0, 3, 6, 0]


def test_a_deviate_beyond_int64_wraps():
    out = run([0], {0: (300 << 64, 64)}, [(2**52, 52 - 55)], [])
    assert out == [(300 * 2**55 + 2**63) % 2**64 - 2**63]


@both
def test_the_coarsest_noise_is_exact_too(name):
    n = 20_000
    out = noise(name, 2.0**55, n, 20_260_230)
    edges = np.linspace(-3, 3, 31)
    counts = np.bincount(np.searchsorted(edges * 2.0**55, out, side="right"), minlength=32)
    with mpmath.workdps(30):
        tails = [1, *(upper_tail(name, e) for e in edges), 0]
        expected = np.array([float(n * (a - b)) for a, b in pairwise(tails)])
    assert chi_squared(counts, expected) > 1e-4
    assert chi_squared(np.bincount(out & 15, minlength=16), np.full(16, n / 16)) > 1e-4


@both
@pytest.mark.parametrize("stddev", [5e-324, 1e-300, 2.0**-6])
def test_noise_far_below_a_step_rounds_to_nothing(name, stddev):
    assert not noise(name, stddev, 10_000, 3).any()


def test_scales_beyond_the_contract_are_refused():
    zeros, source = np.zeros((1, 2), dtype=np.int64), SeededRandom(0)
    grid = Grid(exponents=(0, -3))
    law = standard_normal()
    deviates.add_noise(zeros, grid, (2.0**55, 2.0**52), law, source)
    for scales in ((np.nextafter(2.0**55, np.inf), 1.0), (1.0, 2.0**52 * 1.0001), (1.0, 1e308)):
        with pytest.raises(InvalidParameter, match=r"scale=.*2\*\*55 grid steps.*unit"):
            deviates.add_noise(zeros, grid, scales, law, source)
    with pytest.raises(InvalidParameter, match="columns"):
        deviates.add_noise(zeros, grid, (1.0,), law, source)
    with pytest.raises(InvalidParameter, match="int64"):
        deviates.add_noise(zeros.astype(np.float64), grid, (1.0, 1.0), law, source)


@pytest.mark.parametrize(
    "mechanism",
    [
        GaussianMechanism(stddev=2.0**30),
        EllipticalGaussianMechanism(stddevs=(1.0, 2.0**30)),
        LaplaceMechanism(scales=(1.0, 2.0**30)),
    ],
)
def test_noise_too_coarse_for_a_grid_is_refused_before_it_is_drawn(mechanism):
    mechanism.require_fit(Grid(exponents=(-25, -25)))
    with pytest.raises(InvalidParameter, match=r"scale=1073741824\.0 must be <= 2\*\*55 grid steps"):
        mechanism.require_fit(Grid(exponents=(-26, -26)))
