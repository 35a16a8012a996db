"""The specimens of other libraries: their exact losses by independent means, and what the library does instead."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator import LeafLabels
from ledgerwood.ensemble import TreeStructure
from ledgerwood.mechanisms.choices.selection import PermuteAndFlipMechanism, UtilityRange
from ledgerwood.verification.errata.peers import (
    CategoryNames,
    ReplacedLabel,
    RowBlocks,
    SmoothLabel,
    TargetWeight,
    UnclippedResidual,
)

# row blocks ----------------------------------------------------------------------------------------------------------


def row_blocks_minority_chances(rows, trees, epsilon):
    """Permute-and-flip of rate epsilon in each block of the places i // (n / T)."""
    places = (np.arange(rows.size) // (rows.size / trees)).astype(int)
    found = []
    for tree in range(trees):
        ones = rows[places == tree].sum()
        found.append(0.5 * math.exp(-epsilon * abs(2 * ones - np.count_nonzero(places == tree))))
    return found


@pytest.mark.parametrize("trees", [2, 3, 6])
@pytest.mark.parametrize("at", [0.0, 0.1, 0.6])
def test_row_blocks_the_loss_by_enumeration_of_all_forests(trees, at):
    specimen = RowBlocks(trees=trees)
    laws = []
    for rows in specimen.pair:
        chances = row_blocks_minority_chances(rows, trees, 0.1)
        laws.append(
            np.array(
                [
                    math.prod(c if bit else 1 - c for c, bit in zip(chances, bits, strict=True))
                    for bits in itertools.product((0, 1), repeat=trees)
                ]
            )
        )
    sides = [np.maximum(p - math.exp(at) * q, 0).sum() for p, q in (laws, laws[::-1])]
    assert specimen.delta(at) == pytest.approx(max(sides), rel=1e-10, abs=1e-15)
    assert specimen.loss() == pytest.approx(np.abs(np.log(laws[0] / laws[1])).max())
    assert specimen.loss() == pytest.approx((2 * trees - 1) * 0.1)


def test_row_blocks_every_block_exchanges_a_row_and_keeps_its_majority():
    specimen = RowBlocks()
    with_row, without = specimen.pair
    assert with_row.size == without.size + 1 == 41
    blocks = [
        [rows[(np.arange(rows.size) // (rows.size / 10)).astype(int) == tree] for tree in range(10)]
        for rows in (with_row, without)
    ]
    assert [block.size for block in blocks[0]] == [5, *[4] * 9]
    assert all(abs(more.mean() - less.mean()) == 0.25 for more, less in zip(blocks[0][1:], blocks[1][1:], strict=True))
    assert all(set(block) != {0.0, 1.0} for block in blocks[0][1:])


# replaced label ------------------------------------------------------------------------------------------------------


def replaced_label_flip(counts, rate):
    """Permute-and-flip of two labels, over both orders."""
    p = [math.exp(-rate * (max(counts) - c)) for c in counts]
    first = 0.5 * p[0] + 0.5 * (1 - p[1]) * p[0] if p[0] < 1 else 0.5 + 0.5 * (1 - p[1])
    return first, 1 - first


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("at", [0.0, 0.1, 1.5])
def test_replaced_label_the_loss_by_enumeration(epsilon, at):
    p, q = replaced_label_flip((1, 3), epsilon), replaced_label_flip((0, 4), epsilon)
    sides = [sum(max(a - math.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p))]
    specimen = ReplacedLabel(epsilon=epsilon)
    assert specimen.delta(at) == pytest.approx(max(sides), rel=1e-9, abs=1e-15)
    assert specimen.pure_epsilon() == pytest.approx(2 * epsilon)


def test_replaced_label_one_row_more_keeps_the_price_and_the_library_halves_the_rate():
    p, q = replaced_label_flip((1, 3), 0.1), replaced_label_flip((1, 4), 0.1)
    assert max(abs(math.log(a / b)) for a, b in zip(p, q, strict=True)) <= 0.1 + 1e-12
    event = PermuteAndFlipMechanism(rate=0.05).event(UtilityRange(range=2.0), Adjacency.REPLACE_ONE)
    assert event.epsilon == pytest.approx(0.1)


# smooth label --------------------------------------------------------------------------------------------------------


def smooth_label_exponents(counts, epsilon):
    """epsilon u / (2 S), u = 1 for the commonest label and S = e^(-epsilon gap)."""
    second, first = sorted(counts)[-2:]
    smooth = mp.exp(-mp.mpf(epsilon) * (first - second))
    return [mp.mpf(epsilon) * (count == first) / (2 * smooth) for count in counts]


@pytest.mark.parametrize(("epsilon", "gap"), [(0.1, 40), (0.1, 60), (1.0, 3), (0.01, 700)])
@pytest.mark.parametrize("at", [0.0, 1.0])
def test_smooth_label_the_loss_by_enumeration(enumerated, epsilon, gap, at):
    delta, pure = enumerated(
        smooth_label_exponents((gap + 1, 0), epsilon), smooth_label_exponents((gap, 0), epsilon), at * epsilon
    )
    specimen = SmoothLabel(epsilon=epsilon, gap=gap)
    assert specimen.delta(at * epsilon) == pytest.approx(delta, rel=1e-9, abs=1e-15)
    assert specimen.pure_epsilon() == pytest.approx(pure, rel=1e-9)


def test_smooth_label_the_loss_is_within_the_claim_for_narrow_majorities_and_grows_beyond_any_bound():
    losses = [SmoothLabel(gap=gap).pure_epsilon() for gap in range(1, 91)]
    assert losses[30] < 0.1 < losses[31]  # 31 rows ahead, and 32
    assert all(b > a for a, b in itertools.pairwise(losses[20:]))
    # Of the rare label log-odds of -epsilon e^(epsilon gap) / 2 are all that is left.
    assert losses[-1] == pytest.approx(0.05 * (math.exp(9.1) - math.exp(9.0)), rel=1e-6)


def test_smooth_label_permute_and_flip_by_the_counts_keeps_the_price():
    query = LeafLabels(structure=TreeStructure.root(), classes=2)
    event = query.event(PermuteAndFlipMechanism(rate=0.1), Adjacency.ADD_REMOVE)
    assert event.epsilon == pytest.approx(0.1)
    rare = [0.5 * math.exp(-0.1 * gap) for gap in (40, 41)]
    assert math.log(rare[0] / rare[1]) <= 0.1 + 1e-12


# unclipped residual --------------------------------------------------------------------------------------------------


def unclipped_residual_normal(x, mean, sigma):
    return np.exp(-0.5 * ((x - mean) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))


@pytest.mark.slow_after(2)  # the exact loss of each specimen
@pytest.mark.parametrize("sigma", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("at", [0.0, 0.5, 2.0])
def test_unclipped_residual_the_loss_on_a_grid_of_both_outputs(sigma, at):
    # A plain sum of (p - e^eps q)_+ over the plane; no profile of either round.
    first = np.linspace(-9 * sigma - 1, 9 * sigma + 2, 1501)[:, None]
    second = np.linspace(-20 * sigma - 2, 20 * sigma + 2, 2501)[None, :]
    cell = (first[1, 0] - first[0, 0]) * (second[0, 1] - second[0, 0])
    p = unclipped_residual_normal(first, 1.0, sigma) * unclipped_residual_normal(second, 1.0 - first, sigma)
    q = unclipped_residual_normal(first, 0.0, sigma) * unclipped_residual_normal(second, 0.0, sigma)
    sides = [np.maximum(x - np.exp(at) * y, 0.0).sum() * cell for x, y in ((p, q), (q, p))]
    assert UnclippedResidual(noise_multiplier=sigma).delta(at) == pytest.approx(max(sides), abs=2e-5)


def test_unclipped_residual_a_clipped_residual_keeps_the_claim():
    # |residual| <= 1 in both rounds: shifts of at most 1 each, as claimed.
    sigma, at = 2.0, 1.0
    first = np.linspace(-19, 20, 1501)[:, None]
    second = np.linspace(-22, 22, 1501)[None, :]
    cell = (first[1, 0] - first[0, 0]) * (second[0, 1] - second[0, 0])
    p = unclipped_residual_normal(first, 1.0, sigma) * unclipped_residual_normal(
        second, np.clip(1.0 - first, -1.0, 1.0), sigma
    )
    q = unclipped_residual_normal(first, 0.0, sigma) * unclipped_residual_normal(second, 0.0, sigma)
    specimen = UnclippedResidual()
    for x, y in ((p, q), (q, p)):
        assert np.maximum(x - np.exp(at) * y, 0.0).sum() * cell <= specimen.claimed_delta(at) + 1e-6
    assert specimen.delta(at) > 4 * specimen.claimed_delta(at)


# target weight -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0.0, 1.0, 100.0])
def test_target_weight_the_loss_by_quadrature(at):
    # Weights above each target and the mass of no cut; q, of n rows, shows what p never does.
    low, high = mp.mpf(20), mp.mpf(641) / 32
    inside = mp.quad(lambda x: mp.npdf(x, 0, 32.5), [low, high])
    merged = mp.ncdf(high / 32.5), mp.ncdf(low / 32.5)
    sides = inside + max(merged[1] - mp.exp(at) * merged[0], 0), max(merged[0] - mp.exp(at) * merged[1], 0)
    assert TargetWeight().delta(at) == pytest.approx(float(max(sides)), rel=1e-9)


def test_target_weight_the_noise_is_that_of_the_library(gaussian_delta):
    # One feature: sigma = 1 / mu, mu for a tenth of epsilon 1 and half of delta 1e-5.
    assert gaussian_delta(1 / 32.5, 0.1) < 5e-6 < gaussian_delta(1 / 32.4, 0.1)
    assert math.isclose(TargetWeight().claimed_delta(0.1), 5e-6)


# category names ------------------------------------------------------------------------------------------------------


def category_names_names(weights, target):
    """Small ones go to the rest; a rest below the target takes the smallest other one."""
    kept = [name for name, weight in weights.items() if weight >= target]
    rest = [weight for weight in weights.values() if weight < target]
    if rest and sum(rest) < target and kept:
        kept.remove(min(kept, key=weights.__getitem__))
    return kept


def test_category_names_two_names_are_kept_together_or_not_at_all():
    for a in np.linspace(0.0, 3.0, 13):
        for b in np.linspace(0.0, 3.0, 13):
            assert category_names_names({"a": a, "b": b}, 1.3) == (["a", "b"] if min(a, b) >= 1.3 else [])


@pytest.mark.parametrize("count", [20, 40, 200])
@pytest.mark.parametrize("at", [0.0, 0.5, 100.0])
def test_category_names_the_loss_by_enumeration(count, at):
    rare = stats.norm(1, 32.5).sf((count + 1) / 32) * stats.norm(count, 32.5).sf((count + 1) / 32)
    common = stats.norm(count, 32.5).sf(count / 32)
    p, q = (rare, 0.0, 1 - rare), (0.0, common, stats.norm(count, 32.5).cdf(count / 32))
    sides = [sum(max(a - math.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p))]
    assert CategoryNames(count=count).delta(at) == pytest.approx(max(sides), rel=1e-9)
