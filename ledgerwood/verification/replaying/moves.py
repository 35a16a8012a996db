"""The change of a mechanism's exact input by one row, compared with the release's stated sensitivity and event.

In exact fractions, by the definitions of the shift sets and of the events: none of their own arithmetic is used again.
docs/explanation/replay.md#replay-how.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import (
    BoundedRangeEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    Repeated,
    SkellamVectorEvent,
)
from ledgerwood.errors import ReplayFailed
from ledgerwood.mechanisms import (
    BallShifts,
    BlockShifts,
    BoxShifts,
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    Grid,
    GridlessMechanism,
    JointQuantilesMechanism,
    LaplaceMechanism,
    PermuteAndFlipMechanism,
    SkellamMechanism,
    UtilityRange,
)
from ledgerwood.verification.sensitivity.distances import block_norms, root_below

Integers = NDArray[np.int64]
Columns = tuple[Fraction, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What one call's exact value did between the two data sets.

    Args:
        share: how much of what was paid for it moved by: 0 for nothing, 1 for all of it.
        norm: in the noise's own units, of a Gaussian release; 0 for another.
        faults: (what was stated, what was found) of each bound that it broke.
    """

    share: float
    norm: Fraction = Fraction(0)
    faults: tuple[tuple[str, str], ...] = ()


def sum_move(
    first: Integers,
    second: Integers,
    *,
    grid: Grid,
    sensitivity: object,
    mechanism: object,
    event: Event,
    adjacency: Adjacency,
    changed: bool,
) -> Move:
    """The move of a statistic with noise.

    Args:
        first, second: int64 (..., k), the exact values in steps of `grid`; they may have wrapped around.
        grid: of the query.
        sensitivity: what the query states.
        mechanism: the noise.
        event: what was paid.
        adjacency: the relation.
        changed: whether the row in which the data sets differ is one of the rows that were asked.

    Raises:
        ReplayFailed: a shift set, noise or event whose bound is not known here.
    """
    if first.shape != second.shape:
        return Move(share=math.inf, faults=((f"shape {first.shape}", f"shape {second.shape}"),))
    columns = first.shape[-1]
    # Modulo 2**64, as the sums are.
    shifts = np.subtract(second, first).reshape(-1, columns)
    moved = shifts[np.any(shifts != 0, axis=1)]
    steps = [Fraction(2) ** exponent for exponent in grid.exponents]
    rows = [tuple(step * int(d) for step, d in zip(steps, row, strict=True)) for row in moved.tolist()]
    if not rows:
        return Move(share=0.0)
    if not changed:
        return Move(share=math.inf, faults=(("no change: the changed row is not in it", _rows_shown(rows)),))
    faults = _set_faults(rows, sensitivity, adjacency)
    paid, norm = _paid(rows, mechanism, event)
    if paid > 1:
        found = f"{_decimal(paid)} times what it pays for: {_rows_shown(rows)}"
        faults.append((f"{event!r} by {mechanism!r}", found))
    return Move(share=float(paid), norm=norm, faults=tuple(faults))


def _set_faults(rows: list[Columns], sensitivity: object, adjacency: Adjacency) -> list[tuple[str, str]]:
    l1 = [sum((abs(row[i]) for row in rows), Fraction(0)) for i in range(len(rows[0]))]
    squares = [sum((row[i] ** 2 for row in rows), Fraction(0)) for i in range(len(rows[0]))]
    faults = []
    match sensitivity:
        case BoxShifts():
            # Where n rows move alike, the box of the L1 norm is sqrt(n) times that of the L2 norm.
            most = max(_rows_of(sensitivity))
            if not _within(l1, sensitivity.l1_boxes, 1):
                faults.append((f"in a box of {sensitivity.l1_boxes} (L1, by column)", _rows_shown(rows)))
            if not _within(squares, sensitivity.l2_boxes, 2):
                faults.append((f"in a box of {sensitivity.l2_boxes} (L2, by column)", _rows_shown(rows)))
        case BallShifts(radius=radius, l1_radius=wide):
            # Of several histograms at once, the ball of the L1 norm is root(number) times that of the L2 norm.
            most = (2 if adjacency is Adjacency.REPLACE_ONE else 1) * round(
                (Fraction(wide or radius) / Fraction(radius)) ** 2
            )
            if sum(squares) > Fraction(radius) ** 2:
                faults.append((f"a norm of at most {radius!r}", _rows_shown(rows)))
        case BlockShifts(norms=norms):
            most = max(_rows_of(norms))
            lengths, together = block_norms(rows, sensitivity)
            if not _within(lengths, norms.l1_boxes, 1):
                faults.append((f"blocks' norms in a box of {norms.l1_boxes} (added up)", _rows_shown(rows)))
            if not _within(together, norms.l2_boxes, 2):
                faults.append((f"blocks' norms in a box of {norms.l2_boxes} (L2)", _rows_shown(rows)))
        case _:
            raise ReplayFailed(f"{type(sensitivity).__name__} is a shift set that a replay does not know")
    if len(rows) > most:
        faults.append((f"at most {most} rows of the statistic move", f"{len(rows)} do: {_rows_shown(rows)}"))
    return faults


def _within(columns: list[Fraction], boxes: tuple[tuple[float, ...], ...], power: int) -> bool:
    """Returns whether a box, or a mixture of two, bounds every column; then every norm of a mechanism is bounded.

    A row of weight w adds w times what a row of weight 1 does, so that a replaced row may come to lie between two boxes
    (docs/explanation/replay.md#replay-boxes).
    """
    ends = [[Fraction(b) ** power for b in box] for box in boxes]
    return any(_mixed(columns, first, second) for first, second in itertools.combinations_with_replacement(ends, 2))


def _mixed(columns: list[Fraction], first: list[Fraction], second: list[Fraction]) -> bool:
    """Returns whether some t in [0, 1] has every column at most t first + (1 - t) second."""
    least, most = Fraction(0), Fraction(1)
    for d, a, b in zip(columns, first, second, strict=True):
        if a > b:
            least = max(least, (d - b) / (a - b))
        elif a < b:
            most = min(most, (b - d) / (b - a))
        elif d > a:
            return False
    return least <= most


def _rows_of(sensitivity: BoxShifts) -> list[int]:
    """How many rows of the statistic each pair of boxes lets move by the same."""
    if len(sensitivity.l1_boxes) != len(sensitivity.l2_boxes):
        raise ReplayFailed(f"{sensitivity!r} has boxes of the L1 norm that are not those of the L2 norm, one by one")
    counts = []
    for wide, narrow in zip(sensitivity.l1_boxes, sensitivity.l2_boxes, strict=True):
        ratios = [Fraction(a) / Fraction(b) for a, b in zip(wide, narrow, strict=True) if b]
        counts.append(max(1, *(round(ratio**2) for ratio in ratios)))
    return counts


def _paid(rows: list[Columns], mechanism: object, event: Event) -> tuple[Fraction, Fraction]:
    """(the shift over the largest one that the event pays for, the shift's L2 norm in units of Gaussian noise)."""
    columns = len(rows[0])
    match mechanism, event:
        case GaussianMechanism(stddev=stddev), GaussianEvent(noise_multiplier=multiplier):
            norm = root_below(_total(rows, (stddev,) * columns, 2))
            return norm * Fraction(multiplier), norm
        case EllipticalGaussianMechanism(stddevs=stddevs), GaussianEvent(noise_multiplier=multiplier):
            norm = root_below(_total(rows, stddevs, 2))
            return norm * Fraction(multiplier), norm
        case EllipticalGaussianMechanism(stddevs=stddevs), EllipticalGaussianEvent():
            square = _total(rows, stddevs, 2)
            # The event's own deviations: where they are not the mechanism's, noise was priced that is not added.
            most = _scaled(tuple(map(Fraction, event.sensitivities)), event.stddevs, 2)
            return root_below(square / most), root_below(square)
        case LaplaceMechanism(scales=scales), LaplaceEvent(noise_multiplier=multiplier):
            return _total(rows, scales, 1) * Fraction(multiplier), Fraction(0)
        case DiscreteLaplaceMechanism(scale=scale), PureEvent(epsilon=epsilon):
            # Whole numbers with whole noise lose |d| / scale each (docs/explanation/shift-sets.md#integer-shifts).
            return _total(rows, (scale,) * columns, 1) / Fraction(epsilon), Fraction(0)
        case DiscreteLaplaceMechanism(scale=scale), DiscreteLaplaceEvent() if scale == event.scale:
            return _total(rows, (scale,) * columns, 1) * Fraction(scale) / event.sensitivity, Fraction(0)
        case SkellamMechanism(variance=variance), SkellamVectorEvent() if variance == event.variance:
            norm = root_below(_total(rows, (1.0,) * columns, 2))
            return norm / Fraction(event.l2_sensitivity), Fraction(0)
    raise ReplayFailed(f"{mechanism!r}, paid by {event!r}, is noise that a replay does not know")


def _total(rows: list[Columns], scales: Sequence[float], power: int) -> Fraction:
    """The sum over all rows and columns of |shift / scale|^power."""
    return sum((_scaled(row, scales, power) for row in rows), Fraction(0))


def _scaled(row: Columns, scales: Sequence[float], power: int) -> Fraction:
    return sum(((abs(d) / Fraction(s)) ** power for d, s in zip(row, scales, strict=True)), Fraction(0))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """What a mechanism was handed for one choice.

    Args:
        evidence: utilities, cells of candidates, or counts.
        grid: of the utilities, if any.
    """

    evidence: Any
    grid: Grid | None


def choice_move(
    first: Sequence[Handed],
    second: Sequence[Handed],
    *,
    sensitivity: UtilityRange | None,
    mechanism: object,
    event: Event,
    adjacency: Adjacency,
    changed: bool,
) -> Move:
    """The move of a selection: one choice, or one for each node of a tree's level.

    Args:
        first, second: what each choice was made from.
        sensitivity: of the query's utilities; None where it has none.
        mechanism: what chooses.
        event, adjacency, changed: as in `sum_move`.

    Raises:
        ReplayFailed: a mechanism or event whose bound is not known here.
    """
    if len(first) != len(second):
        return Move(share=math.inf, faults=((f"{len(first)} choices", f"{len(second)} choices"),))
    if sensitivity is None:
        return _counts_move(first, second, adjacency=adjacency, changed=changed)
    if not isinstance(mechanism, ExponentialMechanism | PermuteAndFlipMechanism | GridlessMechanism):
        raise ReplayFailed(f"{type(mechanism).__name__} chooses in a way that a replay does not know")
    if not isinstance(event, BoundedRangeEvent | PureEvent):
        raise ReplayFailed(f"{event!r} pays for a choice in a way that a replay does not know")
    ranges = []
    for one, other in zip(first, second, strict=True):
        changes = _utility_changes(one, other)
        if changes is None:
            return Move(share=math.inf, faults=(("the same candidates", "others, or on another grid"),))
        assert one.grid is not None
        ranges.append((max(changes) - min(changes)) * Fraction(2) ** one.grid.exponents[0])
        if not changed and (max(changes) or min(changes)):
            found = f"a choice's utilities move by {min(changes)} to {max(changes)} steps"
            return Move(share=math.inf, faults=(("no change: the changed row is not in it", found),))
    total, places = sum(ranges, Fraction(0)), [place for place, d in enumerate(ranges) if d]
    faults = []
    if total > Fraction(sensitivity.range):
        found = f"{_decimal(total)}, of choices {places}"
        faults.append((f"utilities move apart by at most {sensitivity.range!r}", found))
    most = 2 if adjacency is Adjacency.REPLACE_ONE else 1
    if len(places) > most:
        faults.append((f"at most {most} choices move", f"{len(places)} do: {places}"))
    share = total * Fraction(mechanism.rate) / Fraction(event.epsilon)
    if share > 1:
        faults.append((f"{event!r} by {mechanism!r}", f"{_decimal(share)} times what it pays for"))
    return Move(share=float(share), faults=tuple(faults))


def _utility_changes(first: Handed, second: Handed) -> list[int] | None:
    """The change of every candidate's utility, those alike once; None where the candidates are not the same."""
    if first.grid != second.grid or first.grid is None:
        return None
    if isinstance(first.evidence, np.ndarray):
        if first.evidence.shape != second.evidence.shape:
            return None
        # As whole numbers: a difference of two utilities need not fit 64 bits.
        pairs = zip(first.evidence.tolist(), second.evidence.tolist(), strict=True)
        return [b - a for a, b in pairs]
    changes: list[int] = []
    if len(first.evidence) != len(second.evidence):
        return None
    for one, other in zip(first.evidence, second.evidence, strict=True):
        if type(one) is not type(other) or one.weight != other.weight:
            return None
        starts, widths, utilities = one.cells()
        other_starts, other_widths, other_utilities = other.cells()
        if starts[-1] + widths[-1] != other_starts[-1] + other_widths[-1] or starts[0] != other_starts[0]:
            return None
        # A row cuts a cell of thresholds in two: the utilities are compared at every point, each piece once.
        points = np.union1d(starts, other_starts)
        before = utilities[np.searchsorted(starts, points, side="right") - 1].tolist()
        after = other_utilities[np.searchsorted(other_starts, points, side="right") - 1].tolist()
        changes += [b - a for a, b in zip(before, after, strict=True)]
    return changes


def _counts_move(first: Sequence[Handed], second: Sequence[Handed], *, adjacency: Adjacency, changed: bool) -> Move:
    """Of choices from numbers of rows by key: a row is in one of them."""
    moved = 0
    for one, other in zip(first, second, strict=True):
        if not isinstance(one.evidence, Mapping) or not isinstance(other.evidence, Mapping):
            raise ReplayFailed(f"a choice from {type(one.evidence).__name__}, which a replay does not know")
        change = Counter(dict(other.evidence))
        change.subtract(dict(one.evidence))
        moved += sum(abs(count) for count in change.values())
    most = (2 if adjacency is Adjacency.REPLACE_ONE else 1) if changed else 0
    faults = ((f"the counts move by {most} in all", f"by {moved}"),) if moved > most else ()
    return Move(share=moved / most if most else math.inf if moved else 0.0, faults=faults)


def quantiles_move(
    first: Sequence[Handed],
    second: Sequence[Handed],
    *,
    mechanism: object,
    event: Event,
    adjacency: Adjacency,
    changed: bool,
) -> Move:
    """Of a joint choice of quantiles for each of several features, from numbers of rows: a row may be in all of them.

    Args and errors: as of `choice_move`.
    """
    if not isinstance(mechanism, JointQuantilesMechanism):
        raise ReplayFailed(f"{type(mechanism).__name__} chooses in a way that a replay does not know")
    if not isinstance(event, Repeated) or not isinstance(event.event, BoundedRangeEvent):
        raise ReplayFailed(f"{event!r} pays for a choice in a way that a replay does not know")
    if len(first) != len(second):
        return Move(share=math.inf, faults=((f"{len(first)} choices", f"{len(second)} choices"),))
    most = (2 if adjacency is Adjacency.REPLACE_ONE else 1) if changed else 0
    faults, moving = [], 0
    for place, (one, other) in enumerate(zip(first, second, strict=True)):
        if one.evidence.shape != other.evidence.shape:
            return Move(share=math.inf, faults=(("counts of the same cells", "of others"),))
        moved = sum(abs(b - a) for a, b in zip(one.evidence.tolist(), other.evidence.tolist(), strict=True))
        moving += moved > 0
        if moved > most:
            faults.append((f"the counts of a choice move by {most} in all", f"those of choice {place} by {moved}"))
    marks = (Fraction(0), *map(Fraction, mechanism.quantiles), Fraction(1))
    least = min(b - a for a, b in itertools.pairwise(marks))
    widest = 2 if adjacency is Adjacency.REPLACE_ONE else 2 * (1 - least)
    share = moving * widest * Fraction(mechanism.rate) / (event.count * Fraction(event.event.epsilon))
    if share > 1:
        faults.append((f"{event!r} by {mechanism!r}", f"{_decimal(share)} times what it pays for"))
    return Move(share=float(share), faults=tuple(faults))


def _rows_shown(rows: list[Columns]) -> str:
    shown = ", ".join("(" + ", ".join(_decimal(d) for d in row) + ")" for row in rows[:3])
    return f"a shift of {shown}{' and more' if len(rows) > 3 else ''}"


def _decimal(number: Fraction) -> str:
    return f"{float(number):.9g}"
