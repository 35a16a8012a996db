"""Bounds, from both sides, of a plan's epsilon at a delta (docs/explanation/ledger.md#verification-bounds)."""

import functools
import math

import numpy as np

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf
from ledgerwood.verification.ledgers.bounds import composed, leaves
from ledgerwood.verification.ledgers.bounds.divergences import CostBounds, gaussian_epsilon
from ledgerwood.verification.ledgers.bounds.events import FACTOR, Unheld, Work, pair_of, power_product
from ledgerwood.verification.ledgers.bounds.leaves import BINS
from ledgerwood.verification.ledgers.bounds.pair import Floats, LossPair, Side, compressed
from ledgerwood.verification.ledgers.pairs import Gaussian, Node, hockey_stick, mu_squared, pure_epsilon
from ledgerwood.verification.ledgers.pairs.combined import GroupsNode, Replaced, Sampled, Several
from ledgerwood.verification.ledgers.pairs.continuous import Laplace, Pure, Range, Staircase, TruncatedLaplace
from ledgerwood.verification.ledgers.pairs.integers import Approximate, StatedTable

_OUTPUTS = 1 << 17  # of all kinds together, from each side
_FEWEST = 64  # of a kind
_MOST_DIGITS = 500
_LOG_ERROR = 1e-12  # nats, of the logarithm of a ratio of two sums of masses
_RANGE_ORDERS = (1.2, 4.0, 10.0, 30.0)
_MOST_DRAWS = 10**10  # of a kind, in a spectrum
_CLOSED = (Gaussian, Laplace, TruncatedLaplace, Pure, Range, Staircase, Approximate, StatedTable)


def point_bounds(node: Node, delta: float) -> CostBounds:
    """Bounds of the least epsilon at which the node's delta is at most `delta` in both directions, nats.

    At delta 0 that is the pure epsilon, exactly.
    """
    pure = pure_epsilon(node)
    if delta == 0.0:
        value = _above(pure)
        return CostBounds(value, value, "it is not pure" if math.isinf(value) else "")
    if isinstance(node, Gaussian):
        value = _above(gaussian_epsilon(node.square, mpf(delta)))
        return CostBounds(value, value, "")
    if _is_closed(node):
        with mp.workdps(mp.dps + min(_zeros(node), _MOST_DIGITS)):
            return _closed_bounds(node, delta)
    found = _composed_bounds(node, delta)
    limit = pure_bound(node, delta).upper
    return CostBounds(min(found.lower, limit), min(found.upper, limit), found.missing if limit > found.upper else "")


def pure_bound(node: Node, delta: float) -> CostBounds:
    """An upper bound, in a few operations: the epsilon at delta of the randomised response of the pure epsilon."""
    pure = pure_epsilon(node)
    limit = math.inf if mp.isinf(pure) else _above(response_epsilon(pure, mpf(delta)))
    return CostBounds(0.0, limit, "")


def _above(value: Number) -> float:
    found = float(value)
    return found if mpf(found) >= value else math.nextafter(found, math.inf)


def _beneath(value: Number) -> float:
    found = float(value)
    return found if mpf(found) <= value else math.nextafter(found, -math.inf)


def response_epsilon(pure: Number, delta: Number) -> Number:
    """The epsilon at delta of the randomised response, which dominates all that is pure."""
    left = 1 - delta * (1 + mp.exp(-pure))
    return pure + mp.log(left) if left > 0 else mpf(0)


def _is_closed(node: Node) -> bool:
    """Returns whether the profile is a formula that is quickly evaluated to all digits."""
    match node:
        case Sampled():
            return _is_closed(node.inner)
        case Replaced():
            return _is_closed(node.replaced) and (node.present is None or _is_closed(node.present))
        case GroupsNode():
            return len(node.members) <= 8 and all(map(_is_closed, node.members))
        case StatedTable():
            return len(node.points) <= 32
        case _:
            return isinstance(node, _CLOSED)


def _zeros(node: Node) -> int:
    """How many digits a difference from 1 loses: rates and losses of 1e-100 leave none of 60."""
    match node:
        case Sampled():
            return _zeros(node.inner) + _zeros_of(node.rate)
        case Replaced():
            inner = [node.replaced] if node.present is None else [node.replaced, node.present]
            return max(map(_zeros, inner)) + _zeros_of(node.rate)
        case GroupsNode():
            weights = [p for p in node.probabilities or () if p > 0]
            return max(map(_zeros, node.members)) + max(map(_zeros_of, weights), default=0)
        case Gaussian():
            return _zeros_of(mp.sqrt(node.square))
        case Laplace() | TruncatedLaplace():
            return _zeros_of(1 / node.scale)
        case Pure() | Range() | Staircase() | Approximate():
            return _zeros_of(node.epsilon)
    return 0


def _zeros_of(number: Number) -> int:
    return int(mp.ceil(-mp.log10(number))) if 0 < number < 1 else 0


def _closed_bounds(node: Node, delta: float) -> CostBounds:
    """Bisection of the exact profile: both ends of what is left, which is less than 1e-17 of it unless it stalls."""
    limit = mpf(delta)
    low, high = mpf(0), mpf(1)
    if hockey_stick(node, low) <= limit:
        return CostBounds(0.0, 0.0, "")
    while hockey_stick(node, high) > limit:
        low, high = high, 2 * high
        if high > mpf(10) ** 300:
            return CostBounds(math.inf, math.inf, "")
    while low == 0 and high > mpf(10) ** -320:  # an epsilon may be of any size
        if hockey_stick(node, high / 1024) > limit:
            low = high / 1024
        else:
            high /= 1024
    # regula falsi on the logarithm, which is nearly a line; the end that stays counts half (the Illinois rule)
    g_low, g_high = (
        mp.log(hockey_stick(node, x) / limit) if hockey_stick(node, x) > 0 else mpf(-50) for x in (low, high)
    )
    for turn in range(200):
        if high - low <= mpf(10) ** -17 * high:
            break
        x = (low * g_high - high * g_low) / (g_high - g_low) if turn % 4 < 3 else (low + high) / 2
        x = min(max(x, low + mpf(10) ** -18 * high), high - mpf(10) ** -18 * high)
        value = hockey_stick(node, x)
        g = mp.log(value / limit) if value > 0 else mpf(-50)
        if g > 0:
            low, g_low, g_high = x, g, g_high / 2
        else:
            high, g_high, g_low = x, g, g_low / 2
    return CostBounds(_beneath(low), _above(high), "")


@functools.lru_cache(maxsize=64)
def _composed_bounds(node: Node, delta: float) -> CostBounds:
    counts = _counted(node)
    total = sum(counts.values())
    log_negligible = max(math.log(delta) - math.log(total) - 14.0, -740.0)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        upper, missing = _side(counts, delta, log_negligible, "upper")
        lower = _side(counts, delta, log_negligible, "lower")[0]
        if any(_holds_range(part) for part in counts):  # another of its pairs may cost more
            for order in _RANGE_ORDERS:
                lower = max(lower, _side(counts, delta, log_negligible, "lower", order)[0])
        return CostBounds(lower, upper, missing)


def _holds_range(node: Node) -> bool:
    match node:
        case Range():
            return True
        case Sampled():
            return _holds_range(node.inner)
        case GroupsNode():
            return any(map(_holds_range, node.members))
        case Several():
            return any(_holds_range(part) for part, _ in node.parts)
        case Replaced():
            return _holds_range(node.replaced)
    return False


def forget() -> None:
    """Start anew, so that what one ledger may take does not depend on those that were verified before it."""
    for remembered in (_composed_bounds, leaves.skellam_log_law):
        remembered.cache_clear()


def _counted(node: Node) -> dict[Node, int]:
    """Kinds of draws with their counts; all Gaussian ones are one."""
    parts = node.parts if isinstance(node, Several) else ((node, 1),)
    counts: dict[Node, int] = {}
    square = mpf(0)
    for part, count in parts:
        own = mu_squared(part)
        if own is None:
            counts[part] = counts.get(part, 0) + count
        else:
            square += own * count
    if square > 0:
        counts[Gaussian(square)] = 1
    return counts


def _side(
    counts: dict[Node, int], delta: float, log_negligible: float, side: Side, order: float = 2.0
) -> tuple[float, str]:
    """Epsilon from one side, in words what is missing."""
    work = Work(bins=min(BINS, max(_OUTPUTS // max(len(counts), 1), _FEWEST)), factor=FACTOR, order=order)
    # the work of a lattice grows with the number of kinds: coarser where there are many
    target = composed.TARGET * min(1.0 + len(counts) / 16.0, 50.0)
    try:
        pairs = [
            (compressed(pair_of(part, log_negligible, side, work), 2 * work.bins, side), count)
            for part, count in counts.items()
        ]
        pairs = _few(pairs, log_negligible, side, work)
    except Unheld as error:
        return math.inf, str(error)
    best = 0.0
    for remove in (True, False):
        value = _direction(pairs, delta, log_negligible, side, remove, target)
        if side == "upper" and math.isinf(value):
            return math.inf, "the sum of its losses needs a finer lattice than is laid"
        best = max(best, value)
    return best, ""


def _few(
    pairs: list[tuple[LossPair, int]], log_negligible: float, side: Side, work: Work
) -> list[tuple[LossPair, int]]:
    """Kinds with counts that a spectrum holds: what is repeated more often is multiplied out."""
    rest: list[tuple[LossPair, int]] = []
    few: list[tuple[LossPair, int]] = []
    for pair, count in pairs:
        power, left = pair, count
        while left > _MOST_DRAWS:
            if left % 2:
                rest.append((power, 1))
            power, left = power_product([(power, 2)], log_negligible, side, work), left // 2
        few.append((power, left))
    if rest:
        few.append((power_product(rest, log_negligible, side, work), 1))
    return few


def _single(pair: LossPair, delta: float, side: Side) -> float:
    """Where the profile of one pair's outputs falls to delta: between two of them it is A - e^epsilon B."""
    room = delta * (1.0 + (1e-12 if side == "lower" else -1e-12)) - pair.lost_p
    if room <= 0.0:
        return math.inf
    tail_p, tail_q = (np.cumsum(np.exp(log_mass)[::-1])[::-1] for log_mass in (pair.log_p, pair.log_q))
    own = np.append(_heights_by_mass(pair), 0.0)  # delta less what is lost at each loss, ascending
    place = int(np.searchsorted(-own, -room, side="left"))  # the first loss at which delta is no more than the room
    if place >= pair.loss.size:
        return max(float(pair.loss[-1]), 0.0)
    # on the way down to this loss the tail from it on counts
    log_q = math.log(float(tail_q[place]))
    rest = float(tail_p[place]) - room
    found = max(math.log(rest) - log_q, 0.0) if rest > 0.0 else 0.0
    # A logarithm near 0 has lost its digits; the two losses around it have theirs.
    if side == "upper":
        return min(found + _LOG_ERROR, max(float(pair.loss[place]), 0.0))
    return max(found - _LOG_ERROR, float(pair.loss[place - 1]) if place else 0.0, 0.0)


def _heights_by_mass(pair: LossPair) -> Floats:
    """sum of P (1 - e^{epsilon - loss})+ at each of the losses as epsilon, shape (n,); positive terms from the top.

    From one loss down to the next, d below, what lies above keeps e^-d of its height and gains 1 - e^-d of its P.
    """
    tail = np.cumsum(np.exp(pair.log_p)[::-1])[::-1].tolist()
    gaps, found = np.diff(pair.loss).tolist(), [0.0] * pair.loss.size
    for k in range(pair.loss.size - 2, -1, -1):
        kept = math.exp(-gaps[k])
        found[k] = kept * found[k + 1] - math.expm1(-gaps[k]) * tail[k + 1]
    return np.array(found)


def _direction(
    pairs: list[tuple[LossPair, int]], delta: float, log_negligible: float, side: Side, remove: bool, target: float
) -> float:
    if len(pairs) == 1 and pairs[0][1] == 1:
        return _single(pairs[0][0] if remove else pairs[0][0].mirrored(), delta, side)
    total, draws, revealed = composed.added_up(pairs, math.log(delta), log_negligible, side, remove, target)
    if revealed > delta:
        return math.inf
    if total is None:
        return 0.0 if side == "lower" else math.inf

    def log_excess(epsilon: float) -> float:
        return math.log(max(total.delta(epsilon), 1e-320)) - math.log(delta)

    if side == "upper" and log_excess(0.0) <= 0.0:
        return 0.0
    # From Chernoff's bound, which is above the root: where errors are small, delta falls by e^{-tilt} a nat.
    low, high = 0.0, max(draws.top() * (1.0 + 1e-9), 1e-300)
    x = composed.saddle(draws, math.log(delta))[1]
    for turn in range(60):
        if not low < x < high:
            x = 0.5 * (low + high)
        value = log_excess(x)
        low, high = (x, high) if value > 0.0 else (low, x)
        if high - low <= (1e-9 if turn < 25 else 1e-7) * high:
            break
        shift = value / total.tilt
        x += shift + math.copysign(max(2e-10 * x, 0.02 * abs(shift)), shift)  # so that both ends close in
    room = composed.LOSS_ERROR * draws.largest()  # what rounding may have moved all losses together
    return max(low - room, 0.0) if side == "lower" else high + room
