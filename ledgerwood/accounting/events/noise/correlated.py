"""Correlated Gaussian noise: matrix mechanisms and tree aggregation, each as one Gaussian event.

A strategy C turns the steps' contributions G (n_steps, d) into C G, to which noise N(0, s^2) is added; everything that
is computed from it afterwards (C^{-1} applied, prefix sums) is post-processing. One row moves C G by C D, and the whole
release is the Gaussian pair of the largest norm of C D. docs/explanation/events.md#matrix; for a row in several steps,
docs/explanation/participation.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent, noise_multiplier_in_range
from ledgerwood.errors import InvalidParameter

Pattern = Literal["separated", "cyclic"]
"""How a row's steps may lie: any two at least `separation` apart, or consecutive ones exactly that far apart."""

_ULP = 2.0**-52
_MOST_STEPS = 4096
_MOST_STATES = 200_000  # of the exact dynamic program over patterns
_MOST_LEAVES = 1 << 16  # of a tree with several participations


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PatternSensitivity:
    """The L2 sensitivity of a strategy over all participation patterns, between two proven numbers.

    Args:
        lower: norm that some pattern and some contributions of norm 1 reach, rounded down.
        upper: norm that none exceeds, rounded up; what an event is priced with.
    """

    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        """True if both ends are the same but for rounding (1e-9, relative)."""
        return self.upper <= self.lower * (1.0 + 1e-9)


def matrix_sensitivity(
    strategy: ArrayLike, *, participations: int = 1, separation: int = 1, pattern: Pattern = "separated"
) -> PatternSensitivity:
    """Bounds the L2 sensitivity of a strategy, per unit of one step's largest change.

    Exact for one participation; if no product of two columns is negative, also for "cyclic" patterns, for "separated"
    ones of a banded matrix (by a dynamic program, while it has few enough states) and of a lower triangular Toeplitz
    matrix whose entries are not negative and do not rise. Otherwise the upper end is a proven bound, and the lower
    end the norm of the best cyclic pattern. docs/explanation/participation.md#patterns.

    Args:
        strategy: C, shape (n_outputs, n_steps), finite; at most 4096 steps.
        participations: most steps that one row is in, >= 1; public.
        separation: distance of two steps that one row is in, >= 1; public. The least one if `pattern` is
            "separated", that of consecutive ones if it is "cyclic".
        pattern: "separated" or "cyclic".

    Raises:
        InvalidParameter: a value outside its bound, or a strategy of zeros.
    """
    matrix = _strategy(strategy)
    most, apart = _participations(matrix.shape[1], participations, separation, pattern)
    scale = float(np.abs(matrix).max())
    if scale == 0.0:
        raise InvalidParameter(
            "strategy must have an entry that is not 0, otherwise nothing is released (unit: number)"
        )
    if most == 1:
        square = max(sum((Fraction(x) ** 2 for x in column.tolist() if x), Fraction()) for column in matrix.T)
        return PatternSensitivity(lower=_directed.root_down(square), upper=_directed.root_up(square))
    scaled = matrix / scale
    low, high = _cyclic(scaled, most, apart)
    if pattern == "separated":
        low, high = _separated(scaled, most, apart, low, high)
    unit = Fraction(scale) ** 2 * (1 + Fraction(_ULP)) ** 2  # each quotient by the scale is rounded once
    less = Fraction(scale) ** 2 * (1 - Fraction(_ULP)) ** 2
    return PatternSensitivity(
        lower=_directed.root_down(Fraction(max(low, 0.0)) * less), upper=_directed.root_up(Fraction(high) * unit)
    )


def matrix_gaussian(
    strategy: ArrayLike,
    *,
    noise_multiplier: float,
    participations: int = 1,
    separation: int = 1,
    pattern: Pattern = "separated",
    adjacency: Adjacency,
) -> GaussianEvent:
    """Returns the event of a whole matrix mechanism, whose rows take part in several steps.

    Its sensitivity is the upper end of `matrix_sensitivity`. Steps may be chosen adaptively if the strategy is lower
    triangular (Denisov et al. 2022, Theorem 2.1; docs/explanation/events.md#matrix).

    Args:
        strategy: C, shape (n_outputs, n_steps), finite; at most 4096 steps.
        noise_multiplier: standard deviation of the noise / largest L2 change of one step's contribution under
            `adjacency` (a clipped contribution of norm c moves by c, and by 2 c under replace-one).
        participations: most steps that one row is in, >= 1; public.
        separation: distance of two steps that one row is in, >= 1; public.
        pattern: "separated" if `separation` is the least distance, "cyclic" if it is that of consecutive steps.
        adjacency: the relation; a row is added, removed or replaced in all of its steps at once.

    Raises:
        InvalidParameter: a value outside its bound, or a strategy of zeros.
    """
    multiplier = noise_multiplier_in_range("noise_multiplier", noise_multiplier)
    found = matrix_sensitivity(strategy, participations=participations, separation=separation, pattern=pattern)
    return _event(multiplier, found, adjacency)


def tree_sensitivity(
    *,
    leaves: int,
    participations: int = 1,
    separation: int = 1,
    pattern: Pattern = "separated",
    restart: int | None = None,
) -> PatternSensitivity:
    """Bounds the L2 sensitivity of tree aggregation: the norm of a row's numbers of steps in each block.

    Exact for one participation and for cyclic patterns; for separated ones while the dynamic program is small enough,
    otherwise each level of blocks is bounded separately. docs/explanation/participation.md#trees.

    Args:
        leaves: number of steps, >= 1; public. At most 65536 if a row is in several.
        participations: most steps that one row is in, >= 1; public.
        separation: distance of two steps that one row is in, >= 1; public.
        pattern: "separated" if `separation` is the least distance, "cyclic" if it is that of consecutive steps.
        restart: steps after which a new tree is begun; None for one tree over all steps.

    Raises:
        InvalidParameter: a value outside its bound.
    """
    n = _validate.count("leaves", leaves, "steps")
    length = n if restart is None else min(_validate.count("restart", restart, "steps"), n)
    most, apart = _participations(n, participations, separation, pattern)
    if most == 1:
        low = high = length.bit_length()
    elif n > _MOST_LEAVES:
        raise _validate.fail("leaves", n, f"at most {_MOST_LEAVES} for several participations", "steps")
    else:
        low = high = _cyclic_tree(n, length, most, apart)
        if pattern == "separated":
            best = _separated_tree(n, length, most, apart)
            low, high = (low, _levels(length, most, apart)) if best is None else (best, best)
    return PatternSensitivity(lower=_directed.root_down(Fraction(low)), upper=_directed.root_up(Fraction(high)))


def tree_gaussian(
    *,
    leaves: int,
    noise_multiplier: float,
    participations: int = 1,
    separation: int = 1,
    pattern: Pattern = "separated",
    restart: int | None = None,
    adjacency: Adjacency,
) -> GaussianEvent:
    """Returns the event of tree aggregation over `leaves` steps: each full dyadic block of steps is released once.

    For one participation a step is in one block of each size 1, 2, 4, ... up to `leaves`, and the first step is in all:
    the squared sensitivity is the number of these sizes, ceil(log2(leaves + 1)). docs/explanation/events.md#tree.
    With several it is that of `tree_sensitivity`. What is computed from the blocks (Honaker's estimators) is
    post-processing.

    Args:
        leaves: number of steps, >= 1; public.
        noise_multiplier: standard deviation of each block's noise / largest L2 change of one step under `adjacency`.
        participations: most steps that one row is in, >= 1; public.
        separation: distance of two steps that one row is in, >= 1; public.
        pattern: "separated" if `separation` is the least distance, "cyclic" if it is that of consecutive steps.
        restart: steps after which a new tree is begun; None for one tree over all steps.
        adjacency: the relation.

    Raises:
        InvalidParameter: a value outside its bound.
    """
    found = tree_sensitivity(
        leaves=leaves, participations=participations, separation=separation, pattern=pattern, restart=restart
    )
    return _event(noise_multiplier_in_range("noise_multiplier", noise_multiplier), found, adjacency)


def _event(multiplier: float, found: PatternSensitivity, adjacency: Adjacency) -> GaussianEvent:
    effective = Fraction(multiplier) / Fraction(found.upper)
    return GaussianEvent(noise_multiplier=_directed.float_down(effective), adjacency=adjacency)


def _participations(steps: int, participations: int, separation: int, pattern: Pattern) -> tuple[int, int]:
    """The largest possible number of participations and their distance."""
    if pattern not in get_args(Pattern):
        raise _validate.fail("pattern", pattern, f"one of {', '.join(get_args(Pattern))}", "name")
    apart = _validate.count("separation", separation, "steps")
    return min(_validate.count("participations", participations, "steps"), -(-steps // apart)), apart


def _strategy(value: ArrayLike) -> FloatArray:
    matrix = np.asarray(value)
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.kind not in "iuf":
        raise InvalidParameter(
            f"strategy has shape {matrix.shape} and dtype {matrix.dtype}; it must be a matrix of numbers, "
            "one column a step"
        )
    if matrix.shape[1] > _MOST_STEPS:
        raise InvalidParameter(f"strategy has {matrix.shape[1]} columns; at most {_MOST_STEPS} (unit: steps)")
    matrix = matrix.astype(np.float64)
    if not np.isfinite(matrix).all():
        raise InvalidParameter("strategy must be finite (unit: per unit of a step's contribution)")
    return matrix


def _cyclic(matrix: FloatArray, most: int, apart: int) -> tuple[float, float]:
    """Squared norms over cyclic patterns: one that is reached, rounded down, and a bound on all, rounded up."""
    rows, steps = matrix.shape
    error = 4.0 * (rows + steps + 8) * _ULP
    low = high = 0.0
    for first in range(max(steps - (most - 1) * apart, min(apart, steps))):
        columns = matrix[:, first : first + (most - 1) * apart + 1 : apart]
        gram = columns.T @ columns
        norms = np.sqrt(np.diag(gram))
        slack = error * float(norms.sum()) ** 2
        low = max(low, float(gram.sum()) - slack, float(np.diag(gram).sum()) - slack)
        high = max(high, float(np.abs(gram).sum()) + slack)
    return low, high


def _separated(matrix: FloatArray, most: int, apart: int, low: float, high: float) -> tuple[float, float]:
    """Squared norms over separated patterns: one that is reached, rounded down, and a bound on all, rounded up.

    Args:
        matrix: entries of size at most 1.
        most, apart: participations of a row, and their least distance.
        low, high: of cyclic patterns, which are separated ones.
    """
    if _falls(matrix):  # the pattern 0, s, 2s, ... is the best, and a cyclic one: participation.md#toeplitz
        return low, high
    rows, steps = matrix.shape
    unit = 8.0 * (rows + steps + 8) * _ULP
    gram = matrix.T @ matrix
    norms = np.sqrt(np.diag(gram))
    touching = (matrix != 0.0).astype(np.float64)
    overlap = (touching.T @ touching) > 0.0
    last = steps - 1 - overlap[:, ::-1].argmax(axis=1)
    reach = int((last - np.arange(steps)).max())  # of two columns with a common row
    positive = bool((gram[overlap] >= 0.0).all())
    gram = np.where(overlap, np.abs(gram) + unit * np.outer(norms, norms), 0.0)
    best = _over_pairs(gram, most, apart, reach) if reach < 2 * apart else _over_patterns(gram, most, apart, reach)
    if best is not None:
        slack = 4.0 * unit * most * (2 * (reach // apart) + 1) * float(norms.max()) ** 2
        return (max(low, best - slack) if positive else low), best * (1.0 + unit)
    weights = np.array([_best_pattern_with(gram[i], i, most, apart) for i in range(steps)])
    return low, float(_best_pattern(weights, most, apart)[most, -1]) * (1.0 + unit)


def _falls(matrix: FloatArray) -> bool:
    """Returns whether the matrix is lower triangular Toeplitz with entries >= 0 that do not rise."""
    rows, steps = matrix.shape
    column = matrix[:, 0]
    if rows != steps or (column < 0.0).any() or (np.diff(column) > 0.0).any():
        return False
    return all(np.array_equal(matrix[i:, i], column[: rows - i]) and not matrix[:i, i].any() for i in range(steps))


def _over_pairs(gram: FloatArray, most: int, apart: int, reach: int) -> float:
    """The largest sum of gram entries over a pattern, where a step shares rows with its two neighbours at most."""
    steps = gram.shape[0]
    own = np.diag(gram)
    best = own.copy()  # over patterns that end in each step
    far = max(reach + 1, apart)
    shared = [(gap, 2.0 * np.diag(gram, gap)) for gap in range(apart, min(reach, steps - 1) + 1)]
    for _ in range(most - 1):
        more = np.zeros(steps)
        more[far:] = np.maximum.accumulate(best)[: max(steps - far, 0)]
        for gap, product in shared:
            np.maximum(more[gap:], best[: steps - gap] + product, out=more[gap:])
        best = own + more
    return float(best.max())


def _over_patterns(gram: FloatArray, most: int, apart: int, reach: int) -> float | None:
    """The largest sum of gram entries over a pattern, exactly; None if there are too many states.

    Steps from left to right. A state is the number of participations so far, and those of them that share a row of the
    matrix with a later step (at most reach // apart) or forbid one.
    """
    steps = gram.shape[0]
    horizon, kept = max(reach, apart - 1), max(1, reach // apart)
    best: dict[tuple[int, tuple[int, ...]], float] = {(0, ()): 0.0}
    visited = 0
    for step in range(steps):
        visited += len(best)
        if visited > _MOST_STATES:
            return None
        following: dict[tuple[int, tuple[int, ...]], float] = {}
        for (count, recent), value in best.items():
            near = recent if not recent or step + 1 - recent[0] <= horizon else recent[1:]
            following[count, near] = max(following.get((count, near), 0.0), value)
            if count < most and (not recent or recent[-1] + apart <= step):
                more = value + gram[step, step] + 2.0 * sum(gram[step, i] for i in recent)
                after = (*near, step)[-kept:]
                following[count + 1, after] = max(following.get((count + 1, after), 0.0), more)
        best = following
    return max(best.values())


def _best_pattern_with(weights: FloatArray, step: int, most: int, separation: int) -> float:
    """The largest sum of weights over a pattern of at most `most` steps that holds `step`."""
    left = _best_pattern(weights[: max(step - separation + 1, 0)], most - 1, separation)[:, -1]
    right = _best_pattern(weights[step + separation :], most - 1, separation)[:, -1]
    return float(weights[step] + max(left[k] + right[most - 1 - k] for k in range(most)))


def _best_pattern(weights: FloatArray, most: int, separation: int) -> FloatArray:
    """best[k, i]: the largest sum of weights >= 0 over at most k of the first i steps, `separation` apart."""
    steps = weights.size
    best = np.zeros((most + 1, steps + 1))
    for k in range(1, most + 1):
        earlier = np.zeros(steps)
        if steps > separation:
            earlier[separation:] = best[k - 1, 1 : steps - separation + 1]
        best[k, 1:] = np.maximum.accumulate(weights + earlier)
    return best


def _cyclic_tree(leaves: int, length: int, most: int, apart: int) -> int:
    """The largest sum of squared numbers of steps in a block, over patterns of steps exactly `apart`."""
    first = np.arange(max(leaves - (most - 1) * apart, min(apart, leaves)))
    total = np.zeros(len(first), dtype=np.int64)
    for level in range(length.bit_length()):
        previous = np.full(len(first), -1)
        run = np.zeros(len(first), dtype=np.int64)
        for k in range(most):
            step = first + k * apart
            tree, place = np.divmod(step, length)
            size = np.minimum(length, leaves - tree * length)  # of this tree: the last one may be smaller
            whole = (step < leaves) & ((place >> level) < (size >> level))
            block = np.where(whole, tree * length + (place >> level), -1)
            run = np.where(block == previous, run + 1, 1)
            total += np.where(block >= 0, 2 * run - 1, 0)
            previous = block
    return int(total.max())


Reached = dict[int, list[tuple[int, int]]]
"""For each number of steps in a block: (leaves after it that stay forbidden, sum of squares), none worse in both."""


def _separated_tree(leaves: int, length: int, most: int, apart: int) -> int | None:
    """The largest sum over separated patterns, by a dynamic program over blocks; None if it would take too long.

    Small blocks hold one step at most, and the earliest place is the best one: all leaves of a block have the same
    number of blocks above them within it, and an early step forbids less of what follows.
    """
    inside = min(most, -(-length // apart))
    trees = -(-leaves // length)
    if inside * inside * min(apart, length) + trees * most * inside > _MOST_STATES:
        return None
    known: dict[tuple[int, int], Reached] = {}

    def block(level: int, forbidden: int) -> Reached:
        size = 1 << level
        if forbidden >= size:
            return {0: [(forbidden - size, 0)]}
        if size <= apart:
            return {0: [(0, 0)], 1: [(apart - size + forbidden, level + 1)]}
        if (level, forbidden) not in known:
            halves = _after(block(level - 1, forbidden), level - 1, block, most)
            known[level, forbidden] = {n: [(out, value + n * n) for out, value in ends] for n, ends in halves.items()}
        return known[level, forbidden]

    reached: Reached = {0: [(0, 0)]}
    for tree in range(trees):
        size = min(length, leaves - tree * length)
        for level in reversed(range(size.bit_length())):
            if size >> level & 1:
                reached = _after(reached, level, block, most)
    return max(value for ends in reached.values() for _, value in ends)


def _after(reached: Reached, level: int, block: Callable[[int, int], Reached], most: int) -> Reached:
    """What is reached after one more block of this level."""
    found: Reached = {}
    for count, ends in reached.items():
        for forbidden, value in ends:
            for more, others in block(level, forbidden).items():
                if count + more <= most:
                    found.setdefault(count + more, []).extend((out, value + other) for out, other in others)
    for count, ends in found.items():
        best, kept = -1, []
        for out, value in sorted(ends, key=lambda end: (end[0], -end[1])):
            if value > best:
                kept.append((out, value))
                best = value
        found[count] = kept
    return found


def _levels(length: int, most: int, apart: int) -> int:
    """A bound on the sum: each level of blocks by itself, its blocks as full as they can be."""
    full = [min(most, -(-(1 << level) // apart)) for level in range(length.bit_length())]
    return sum((most // n) * n * n + (most % n) ** 2 for n in full)
