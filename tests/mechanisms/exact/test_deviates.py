"""The sampler as a map from words to deviates: its geometry, its decisions at the edge, and its law."""

from collections import deque
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from ledgerwood.mechanisms import SeededRandom
from ledgerwood.mechanisms.exact.deviates import (
    BRICK_BITS,
    FRACTION_BITS,
    FREE_BITS,
    INDEX_BITS,
    STEP_BITS,
    exp_bounds,
    laplace_exponent,
    normal_exponent,
    standard_laplace,
    standard_normal,
)

DENSITIES = {
    "normal": (standard_normal, lambda x: mpmath.exp(-x * x / 2), 8),
    "laplace": (standard_laplace, lambda x: mpmath.exp(-abs(x)), 16),
}
UPPER_TAILS = {
    "normal": lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2,
    "laplace": lambda x: mpmath.exp(-x) / 2 if x > 0 else 1 - mpmath.exp(x) / 2,
}
both = pytest.mark.parametrize("name", DENSITIES)


class Script:
    """A source that plays given words, then those of a seed."""

    kind = "test"

    def __init__(self, words, seed=0):
        self.words = deque(words)
        self.rest = SeededRandom(seed)
        self.read = 0

    def uint64(self, shape):
        n = int(np.prod(shape))
        self.read += n
        words = [self.words.popleft() if self.words else int(self.rest.uint64(1)[0]) for _ in range(n)]
        return np.array(words, dtype=np.uint64).reshape(shape)


@given(st.integers(0, 2**130), st.integers(0, 200), st.integers(1, 300))
def test_exp_bounds_hold_the_truth_between_them(numerator, shift, precision):
    if numerator >> shift > 2**12:
        numerator >>= 130
    low, high = exp_bounds(numerator, shift, precision)
    with mpmath.workprec(precision + 400):
        truth = mpmath.exp(-mpmath.mpf(numerator) / mpmath.mpf(2) ** shift) * mpmath.mpf(2) ** precision
        assert low <= truth <= high
    assert high - low <= 3


@given(st.integers(-(2**70), 2**70), st.integers(0, 100))
def test_exponents_are_exact(x, bits):
    with mpmath.workprec(400):
        v = mpmath.mpf(x) / mpmath.mpf(2) ** bits
        for exponent, truth in ((normal_exponent, v * v / 2), (laplace_exponent, abs(v))):
            numerator, shift = exponent(x, bits)
            assert mpmath.mpf(numerator) / mpmath.mpf(2) ** shift == truth


def geometry(name):
    make, density, reach = DENSITIES[name]
    law = make()
    stairs = reach << STEP_BITS
    table = law._table >> FREE_BITS
    counts = np.bincount(table[0::2], minlength=stairs)
    wedges = np.diff(law._cumulative, prepend=0)
    return law, density, reach, stairs, counts.tolist(), wedges.tolist()


@both
def test_bricks_lie_below_the_density_and_the_staircase_above(name):
    law, density, reach, stairs, counts, wedges = geometry(name)
    with mpmath.workdps(50):
        heights = [law._height * density(mpmath.mpf(j) / 2**STEP_BITS) for j in range(stairs + 1)]
        for j in range(stairs):
            assert counts[j] << BRICK_BITS <= heights[j + 1]  # every point of a brick is accepted
            assert (counts[j] << BRICK_BITS) + wedges[j] >= heights[j]  # no point below the density is missed
            assert (counts[j] << BRICK_BITS) + wedges[j] <= heights[j] + 2
        # the tail's stairs are one unit wide, 2**(tail_bits - g) high: 2**6 * 2**tail_bits * (1 + 1/2 + ...) in all
        assert wedges[stairs] == 2 << (STEP_BITS + law._tail_bits)
        for g in range(60):
            assert mpmath.mpf(2) ** (law._tail_bits - g) >= law._height * density(mpmath.mpf(reach + g))


@both
def test_every_word_of_a_side_has_its_place(name):
    law, _, _, stairs, counts, wedges = geometry(name)
    assert sum(counts) * 2**BRICK_BITS + sum(wedges) <= 2 ** (INDEX_BITS + BRICK_BITS)
    for j in range(stairs):
        start = int(law._cumulative[j - 1]) if j else 0
        assert start + int(law._lift[j]) == counts[j] << BRICK_BITS  # a wedge starts where its bricks end


@both
def test_each_brick_is_chosen_by_exactly_one_index(name):
    law, _, _, stairs, counts, _ = geometry(name)
    indices = np.arange(2 ** (INDEX_BITS + 1), dtype=np.uint64)
    for free in (0, 2**FREE_BITS - 1, 0x1234567890ABC):
        words = indices | np.uint64(free << (INDEX_BITS + 1))
        cells, above, excess = law._throw(words.size, Script(words.tolist()))
        assert np.array_equal(above, np.arange(law._table.size, words.size))
        assert np.array_equal(excess, np.arange(words.size - law._table.size))
        placed = cells[: law._table.size]
        assert np.array_equal(placed & (2**FREE_BITS - 1), np.full(placed.size, free))
        seen = np.bincount((placed >> FREE_BITS) + stairs, minlength=2 * stairs)
        assert np.array_equal(seen, counts[::-1] + counts)  # stair j and its mirror image -j - 1


@both
def test_the_chord_decides_only_what_is_clear(name):
    law, density, _, stairs, _, _ = geometry(name)
    slack = law._slack
    rng = np.random.default_rng(5)
    with mpmath.workdps(40):
        for j in [*range(0, stairs, 7), stairs - 1]:
            for u in (0.0, 0.5, 1.0 - 2.0**-30, *rng.random(3)):
                chord = int(law._chord[j]) - (int(law._chord_drop[j]) * int(u * 2**20) >> 20)
                truth = law._height * density((j + mpmath.mpf(u)) / 2**STEP_BITS)
                assert chord - slack <= truth <= chord + slack - 1


@both
def test_single_draws_repeat_in_a_slow_reference(name):
    """The same words through a plain high-precision implementation of the same rejection give the same deviates."""
    make, density, reach = DENSITIES[name]
    law = make()
    _, _, _, stairs, counts, wedges = geometry(name)
    starts = np.cumsum([0, *wedges]).tolist()
    bricks = [j for j in range(stairs) for _ in range(counts[j])]

    def reference(source):
        while True:
            word = int(source.uint64(1)[0])
            index, free = word % 2 ** (INDEX_BITS + 1), word >> (INDEX_BITS + 1)
            side, number = index % 2, index // 2
            if number < len(bricks):
                return ((~bricks[number] if side else bricks[number]) << FREE_BITS) + free
            a, b = source.uint64(2).tolist()
            place = mpmath.mpf(((number - len(bricks)) << 64) + a) / 2 ** (64 - BRICK_BITS)
            if place >= starts[stairs]:
                assert place >= starts[stairs + 1]  # the tail is for another test
                continue
            j = next(j for j in range(stairs) if place < starts[j + 1])
            x = (j << FREE_BITS) + (b >> (INDEX_BITS + 1))
            height = (counts[j] << BRICK_BITS) + place - starts[j]
            if height < law._height * density(mpmath.mpf(x) / 2**FRACTION_BITS):
                return ~x if side else x

    wedge_words = [(len(bricks) * 2 + i) | (i * 0x9E3779B97F4A7C15 % 2**49 << 15) for i in range(300)]
    with mpmath.workdps(50):
        for seed in range(400):
            words = wedge_words[seed : seed + 1]
            fast = law.draw(1, Script(words, seed))
            assert not fast.refined
            assert fast.cells.tolist() == [reference(Script(words, seed))]


@both
def test_batches_hold_the_words_of_each_deviate(name):
    law = DENSITIES[name][0]()
    for n in (0, 1, 2, 1000):
        cells = law.draw(n, SeededRandom(n))
        assert cells.cells.shape == (n,)
        assert cells.cells.dtype == np.int64


def edge(law, density, x, x_bits, y_bits, offset):
    """An integer height next to the density at x, `offset` units of 2**-y_bits off."""
    with mpmath.workdps(120):
        truth = law._height * density(mpmath.mpf(x) / mpmath.mpf(2) ** x_bits)
        return int(mpmath.floor(truth * mpmath.mpf(2) ** y_bits)) + offset


@both
@given(x=st.integers(0, 2**58 - 1), offset=st.sampled_from([-(2**40), -5, -1, 0, 1, 5, 2**40]))
def test_a_point_at_the_edge_is_refined_until_it_is_decided(name, x, offset):
    make, density, _ = DENSITIES[name]
    law = make()
    y = max(0, edge(law, density, x, FRACTION_BITS, 24, offset))
    words = SeededRandom(x % 1000).uint64(20).tolist()
    source = Script(words)
    hit = law._below(x, FRACTION_BITS, y, 24, source)
    assert source.read % 2 == 0
    more = source.read // 2
    bits = FRACTION_BITS + 64 * more
    for word_x, word_y in zip(words[0 : 2 * more : 2], words[1 : 2 * more : 2], strict=True):
        x, y = (x << 64) + word_x, (y << 64) + word_y
    with mpmath.workdps(150):
        below = law._height * density(mpmath.mpf(x + 1) / mpmath.mpf(2) ** bits)  # the least of the cell
        above = law._height * density(mpmath.mpf(x) / mpmath.mpf(2) ** bits)
        unit = mpmath.mpf(2) ** -(24 + 64 * more)
        if hit is None:
            assert y * unit >= above
        else:
            assert hit == (x, bits)
            assert (y + 1) * unit <= below


@both
def test_a_point_on_the_density_is_refined_twice_and_remembers_its_bits(name):
    """Words that continue the height exactly along the density, for two extensions, leave the cell undecided."""
    make, density, _ = DENSITIES[name]
    law = make()
    x = int(1.3 * 2**FRACTION_BITS)
    long = (x << 128) + (0xDEADBEEF << 64) + 0x12345
    y = edge(law, density, long, FRACTION_BITS + 128, 24 + 128, 0)
    words = [long >> 64 & (2**64 - 1), y >> 64 & (2**64 - 1), long & (2**64 - 1), y & (2**64 - 1)]
    source = Script(words)
    hit = law._below(x, FRACTION_BITS, y >> 128, 24, source)
    assert source.read > 4
    if hit is not None:
        assert hit[0] >> (hit[1] - FRACTION_BITS) == x
        assert hit[1] == FRACTION_BITS + 64 * (source.read // 2)


@both
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("down", [0, 3])
def test_the_tail_keeps_its_bits_and_its_sign(name, side, down):
    make, density, reach = DENSITIES[name]
    law = make()
    bricks = law._table.size // 2
    place = int(law._cumulative[-2])
    index = ((bricks + (place >> BRICK_BITS)) << 1) + side
    a = (place & (2**BRICK_BITS - 1)) << (64 - BRICK_BITS)
    fraction = 0xABCDEF0123456789
    cells = law.draw(1, Script([index, a, 0, 1 << down, fraction, 0]))  # height 0 is below the density
    x = ((reach + down) << 64) + fraction
    assert cells.refined == {0: (~x if side else x, 64)}


@both
def test_a_tail_point_above_the_density_is_drawn_again(name):
    make, _, _ = DENSITIES[name]
    law = make()
    assert law._tail_point(Script([1, 2**63, 2**64 - 1])) is None


def test_64_zeros_go_64_stairs_down():
    law = standard_laplace()
    x, bits = law._tail_point(Script([0, 0, 0b100, 5, 0]))
    assert (x, bits) == (((16 + 130) << 64) + 5, 64)


@pytest.mark.slow_after(1)  # whole laws, by enumeration or many draws
@both
@pytest.mark.parametrize("bins", [40, 1024])
def test_deviates_have_their_law(name, bins):
    """Chi-squared against mpmath's probabilities of equal cells of [-4, 4] and of the two tails."""
    law = DENSITIES[name][0]()
    n = 2_000_000
    cells = law.draw(n, SeededRandom(20_260_101))
    assert all(bits > FRACTION_BITS for _, bits in cells.refined.values())
    edges = np.linspace(-4, 4, bins + 1)
    whole = cells.cells / 2.0**FRACTION_BITS
    for i, (x, bits) in cells.refined.items():
        whole[i] = x / 2**bits
    counts = np.bincount(np.searchsorted(edges, whole, side="right"), minlength=bins + 2)
    with mpmath.workdps(30):
        tails = [1, *(UPPER_TAILS[name](mpmath.mpf(edge)) for edge in edges), 0]
        expected = np.array([float(n * (a - b)) for a, b in pairwise(tails)])
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    assert chi2.sf(statistic, bins + 1) > 1e-4


@both
def test_the_lowest_bits_of_a_cell_are_fair(name):
    cells = DENSITIES[name][0]().draw(1 << 18, SeededRandom(20_260_102)).cells
    counts = np.bincount(cells & 255, minlength=256)
    statistic = float(np.sum((counts - 1024.0) ** 2 / 1024.0))
    assert chi2.sf(statistic, 255) > 1e-4
