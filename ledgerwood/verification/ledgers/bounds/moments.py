"""Moments K(p) = log E_Q r^p of an event from both sides, at p > 1 or p < 0 (docs/explanation/ledger.md).

Exact in mpmath where the node has a formula or a quadrature; else from pairs in floats, whose far tails are bounded by
Hoelder's inequality and a higher moment of what was sampled.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf, settles
from ledgerwood.verification.ledgers.bounds.events import Unheld, Work, name, pair_of
from ledgerwood.verification.ledgers.bounds.leaves import MOST_ENUMERATED, skellam_log_law
from ledgerwood.verification.ledgers.bounds.pair import Floats, LossPair, Side
from ledgerwood.verification.ledgers.effort import spend
from ledgerwood.verification.ledgers.pairs import Node
from ledgerwood.verification.ledgers.pairs.combined import GroupsNode, Replaced, Sampled, Several
from ledgerwood.verification.ledgers.pairs.continuous import Gaussian, Mixture, Pure, TruncatedLaplace
from ledgerwood.verification.ledgers.pairs.continuous import Range as BoundedRange
from ledgerwood.verification.ledgers.pairs.integers import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    SelectedPoisson,
    SelectionNode,
    Skellam,
    SkellamVector,
    StatedTable,
)

_LOG_NEGLIGIBLE = -700.0
_MOST_INTEGRALS = 24  # in mpmath; beyond, floats
_FEW = 64  # atoms that are enumerated in mpmath
_UNDERFLOW = 1e-300  # more than all masses together that floats took for 0 on the way to a pair
_INVERSES = (1e-4, 1e-3, 0.01, *(i / 24 for i in range(1, 24)), 0.99)  # of orders
_SIDES: tuple[Side, Side] = ("lower", "upper")

Range = tuple[float, float]
"""A bound from below and one from above."""


@dataclass(slots=True)
class Moments:
    """The known moments of one plan's events."""

    work: Work = field(default_factory=Work)
    integrals: int = _MOST_INTEGRALS
    known: dict[tuple[Node, float], Range] = field(default_factory=dict)
    missing: str = ""

    def divergence(self, node: Node, order: float) -> Range:
        """The Renyi divergence of the larger direction."""
        both = [self.log_moment(node, p) for p in (order, 1.0 - order)]
        low, high = (max(pair[side] for pair in both) / (order - 1.0) for side in (0, 1))
        pure = float(node.pure_epsilon())
        return min(low, pure), min(high, pure)

    def log_moment(self, node: Node, p: float) -> Range:
        """Bounds of K(p)."""
        key = (node, p)
        if key not in self.known:
            self.known[key] = self._log_moment(node, p)
        return self.known[key]

    def _log_moment(self, node: Node, p: float) -> Range:
        match node:
            case Several():
                counts: dict[Node, int] = {}
                for part, count in node.parts:
                    counts[part] = counts.get(part, 0) + count
                terms = [(self.log_moment(part, p), count) for part, count in counts.items()]
                return (
                    math.fsum(low * count for (low, _), count in terms),
                    math.fsum(high * count for (_, high), count in terms),
                )
            case GroupsNode():
                return self._groups(node, p)
            case Sampled():
                return self._sampled(node, p)
            case Mixture():  # the largest shift alone has larger moments
                return self._by_pairs(node, p, Gaussian(node.shifts[-1][0] ** 2))
            case Replaced():
                return self._by_pairs(node, max(p, 1.0 - p), node.replaced)
            case TruncatedLaplace() | Approximate():
                return math.inf, math.inf
            case SelectionNode() | SelectedPoisson() if self.integrals <= 0 or not _quick(node.inner):
                return self._selected(node, max(p, 1.0 - p))
            case Skellam():
                return _skellam_moment(float(node.variance), node.sensitivity, p)
            case DiscreteLaplace() if node.sensitivity > _FEW:
                return self._enumerated(node, p)
            case BoundedRange():
                value = _largest_range_moment(node.epsilon, mpf(p))
                return value, value
            case _:
                return self._exact(node, p)

    def _exact(self, node: Node, p: float) -> Range:
        try:
            excess = node.excess(mpf(1), mpf(0), mpf(p))
        except ValueError as error:  # a quadrature that does not settle
            self.missing = f"{name(node)}: {error}"
            return 0.0, math.inf
        value = math.inf if mp.isinf(excess) else float(mp.log1p(excess))
        return value, value

    def _enumerated(self, node: Node, p: float) -> Range:
        """Pure, so that no tail is cut: from its pairs."""
        low, high = (pair_moment(pair_of(node, _LOG_NEGLIGIBLE, side, self.work), p) for side in _SIDES)
        return low, high

    def _selected(self, node: SelectionNode | SelectedPoisson, a: float) -> Range:
        """The stated bound: from above with the best inner order of a grid, from below without its rank."""
        pure = node.pure_epsilon()
        cap = math.inf if mp.isinf(pure) else float(mp.log1p(Pure(pure).excess(mpf(1), mpf(0), mpf(a))))
        inner = self.divergence(node.inner, a)
        if isinstance(node, SelectedPoisson):
            mean = float(node.mean)  # the hockey-stick divergence of a run is at most 1
            high = (a - 1.0) * (inner[1] + mean)
            return 0.0, min(float(np.logaddexp(-mean, math.log(mean) + high)), cap)
        log_runs, log_mean = -math.log(float(node.stopping_rate)), float(mp.log(node.mean_runs()))
        ranks = [(1.0 - u) * self.divergence(node.inner, 1.0 / u)[1] + u * log_runs for u in _INVERSES]
        rank = min(*ranks, float(node.inner.pure_epsilon()))
        low = (a - 1.0) * inner[0] + log_mean
        high = (a - 1.0) * (inner[1] + (1.0 + float(node.shape)) * rank) + log_mean
        return max(min(low, cap), 0.0), min(high, cap)

    def _groups(self, node: GroupsNode, p: float) -> Range:
        weights = [1.0] * len(node.members) if node.probabilities is None else [float(w) for w in node.probabilities]
        members = [(self.log_moment(m, p), w) for m, w in zip(node.members, weights, strict=True) if w > 0.0]
        if node.probabilities is None:
            return max(low for (low, _), _ in members), max(high for (_, high), _ in members)
        absent = max(1.0 - math.fsum(w for _, w in members), 0.0)
        found = [math.log(absent) if absent > 0.0 else -math.inf]

        def total(side: int) -> float:
            excess = math.fsum(w * math.expm1(min(k[side], 700.0)) for k, w in members)
            if excess < 1.0 and all(k[side] <= 700.0 for k, _ in members):
                return math.log1p(excess)
            return float(np.logaddexp.reduce(found + [k[side] + math.log(w) for k, w in members]))

        return total(0), total(1)

    def _sampled(self, node: Sampled, p: float) -> Range:
        rate, inner = node.rate, node.inner
        while isinstance(inner, Sampled):
            rate, inner = rate * inner.rate, inner.inner
        if isinstance(inner, BoundedRange):
            return _range_moment(float(inner.epsilon), float(rate), p)
        if (
            not isinstance(inner, Several | Replaced | GroupsNode | Skellam | Mixture)
            and _light(inner)
            and self.integrals > 0
        ):
            if not isinstance(inner, Gaussian) or settles(mp.sqrt(inner.square), p):
                self.integrals -= 1
                try:
                    excess = inner.excess(rate, 1 - rate, mpf(p))
                    value = math.inf if mp.isinf(excess) else float(mp.log1p(excess))
                    return value, value
                except ValueError as error:
                    self.missing = str(error)
            else:
                low = float(mp.log1p(inner.excess(rate, 1 - rate, mpf(p))))
                return low, self._sampled_above(inner, float(rate), p)
        low, high = self._by_pairs(node, p, inner)
        return low, min(high, self._sampled_above(inner, float(rate), p))

    def _sampled_above(self, inner: Node, rate: float, p: float) -> float:
        """The triangle inequality of the norm of order p; s is at least 1 - q; and sampling lowers every moment."""
        _, whole = self.log_moment(inner, p)
        if p < 0.0:
            return min(whole, p * math.log1p(-rate)) if rate < 1.0 else whole
        return min(whole, p * float(np.logaddexp(math.log1p(-rate), math.log(rate) + whole / p)))

    def _by_pairs(self, node: Node, p: float, inner: Node) -> Range:
        found: list[float] = [0.0, math.inf]
        for place, side in enumerate(_SIDES):
            try:
                with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                    pair = pair_of(node, _LOG_NEGLIGIBLE, side, self.work)
                    found[place] = pair_moment(pair, p)
                    if side == "upper" and p > 1.0:
                        cut = pair.lost_p + _UNDERFLOW
                        found[1] = float(np.logaddexp(pair_moment(_finite(pair), p), self._tail(inner, cut, p)))
                    elif side == "upper":
                        found[1] = float(np.logaddexp(found[1], _far_below(node, p)))
            except (Unheld, ValueError) as error:
                self.missing = f"{name(node)}: {error}"
        whole = self.log_moment(inner, p)[1] if found[1] == math.inf else math.inf
        return max(found[0], 0.0), min(found[1], whole)

    def _tail(self, inner: Node, cut: float, p: float) -> float:
        """log of E_P[s^{p-1}; a set of P-mass `cut`], s the ratio of a sample or of what was sampled.

        Hoelder: at most E_P[s^{(p-1) c}]^{1/c} cut^{1 - 1/c} for c > 1, where E_P[s^{(p-1) c}] = E_Q[s^{(p-1) c + 1}],
        which sampling lowers (Jensen: s = 1 - q + q r, and the power is convex). The room is for floats' rounding.
        """
        best = math.inf
        for s in (1.1, 1.25, 1.5, 2.0, 4.0):
            _, high = self.log_moment(inner, (p - 1.0) * s + 1.0)
            best = min(best, (max(high, 0.0) * (1.0 + 1e-12) + 1e-12) / s + math.log(cut) * (1.0 - 1.0 / s))
        return best


def _far_below(node: Node, p: float) -> float:
    """log of the most that Q-masses which floats took for 0 add to a sample's moment at p < 0: s is at least 1 - q."""
    if isinstance(node, Mixture) and node.rest() > 0:
        return math.log(_UNDERFLOW) + p * float(mp.log(node.rest()))
    if not isinstance(node, Sampled) or node.rate >= 1:
        return math.inf
    return math.log(_UNDERFLOW) + p * math.log1p(-float(node.rate))


def _light(node: Node) -> bool:
    """Returns whether mpmath need not enumerate many atoms."""
    match node:
        case DiscreteLaplace():
            return node.sensitivity <= _FEW
        case DiscreteGaussian():
            return bool(node.scale <= 4 * _FEW)
        case StatedTable():
            return len(node.points) <= _FEW
    return True


def _quick(node: Node) -> bool:
    """Returns whether a moment is a formula or a short integral, so that a search over its orders takes little time."""
    match node:
        case Sampled():
            return _quick(node.inner)
        case Several():
            return len(node.parts) <= 4 and all(_quick(part) for part, _ in node.parts)
        case GroupsNode():
            return len(node.members) <= 4 and all(map(_quick, node.members))
        case Skellam() | SelectionNode() | SelectedPoisson() | Replaced() | DiscreteGaussian():
            return False
    return _light(node)


def _skellam_moment(variance: float, shift: int, p: float) -> Range:
    """Enumerated over the integers that matter: beyond, terms fall faster than a geometric series, below e^-100."""
    order = max(abs(p), abs(1.0 - p), 2.0)
    peak = order * shift
    while math.hypot(variance, peak / 2.0) * math.asinh(peak / 2.0 / variance) > order * shift:
        peak /= 2.0
    level = 100.0 / 3.0
    near = math.ceil(level + math.sqrt(level**2 + 200.0 * variance)) + shift
    wide = math.hypot(variance, peak)
    far = math.ceil(peak + level + math.sqrt(level**2 + 200.0 * wide)) + shift
    if near + far > MOST_ENUMERATED:
        value = float(mp.log1p(SkellamVector(mpf(variance), mpf(shift)).excess(mpf(1), mpf(0), mpf(p))))
        return 0.0, value
    log_law = skellam_log_law(variance, max(near, far) + shift)
    z = np.arange(-max(near, far), max(near, far) + 1)
    log_q = log_law[np.abs(z)]
    value = pair_moment(LossPair(log_law[np.abs(z - shift)] - log_q, log_q, log_q), p)
    return value * (1.0 - 1e-9), value * (1.0 + 1e-9)


def _largest_range_moment(epsilon: Number, p: Number) -> float:
    """log E_Q r^p of the worst of a bounded range's pairs, in closed form.

    (1 - e^{-epsilon}) E_Q r^p at the ratios e^t and e^{t - epsilon} is A e^{(p-1) t} - B e^{p t} with
    A = 1 - e^{-p epsilon} and B = e^{-epsilon} - e^{-p epsilon}.
    Its derivative changes sign once, at e^t = A (p - 1) / (B p), from + to -.
    """
    with mp.workdps(120):  # near order 1, or for tiny ranges, A, B and the sum cancel
        a, b = -mp.expm1(-p * epsilon), mp.exp(-epsilon) * -mp.expm1(-(p - 1) * epsilon)
        t = min(max(mp.log(a * (p - 1) / (b * p)), mpf(0)), epsilon)
        return float(mp.log((a * mp.exp((p - 1) * t) - b * mp.exp(p * t)) / -mp.expm1(-epsilon)))


def _range_moment(epsilon: float, rate: float, p: float) -> Range:
    """log E_Q s^p of the worst of a bounded range's pairs, s = 1 - q + q r, from both sides.

    A pair has the ratios e^t and e^{t - epsilon}, of Q-masses that fall and rise with t. f(s) = s^p - 1 - p (s - 1) is
    convex and least at s = 1, so that it rises with t at the first ratio and falls at the second.
    So in a cell of t each factor is at most its value at one end: from above the largest such product over all cells,
    halved around the largest until it is within 1e-4 of what is reached.
    """
    log_rate, log_rest = math.log(rate), (math.log1p(-rate) if rate < 1.0 else -math.inf)

    def log_sampled(loss: Floats) -> Floats:  # log s
        small = np.log1p(rate * np.expm1(np.minimum(loss, 1.0))) if rate < 1.0 else loss
        return np.where(loss < 1.0, small, np.logaddexp(log_rest, log_rate + loss))

    def log_height(loss: Floats) -> Floats:  # log f(s)
        return np.asarray(log_excess(log_sampled(loss), p))

    def log_powers(left: Floats, light: Floats, heavy: Floats) -> Floats:
        """Another bound of a cell at p < 0, by E s = 1: log of E s^p - 1, of which the first part is below 0."""
        gain = np.exp(heavy) * np.expm1(np.minimum(p * log_sampled(left - epsilon), 700.0))
        loss = -np.exp(light) * np.expm1(p * log_sampled(left))
        bound = gain * (1.0 + 1e-14) - loss * (1.0 - 1e-14)
        return np.where(gain < 1e300, np.log(np.maximum(bound, 1e-300)), math.inf)

    log_whole = math.log(-math.expm1(-epsilon))
    edges = np.unique(np.concatenate((np.linspace(0.0, epsilon, 513), epsilon * np.geomspace(1e-12, 0.5, 256))))
    edges = np.unique(np.concatenate((edges, epsilon - edges)))
    left, right = edges[:-1], edges[1:]
    floor, reached = -math.inf, -math.inf
    for _ in range(12):
        spend(6_000 * left.size)
        with np.errstate(divide="ignore"):
            light = np.log(np.maximum(-np.expm1(left - epsilon), 0.0)) - left - log_whole
            heavy, heavy_left = (np.log(-np.expm1(-t)) - log_whole for t in (right, left))
        up, down, up_left = log_height(right), log_height(left - epsilon), log_height(left)
        reached = max(reached, float(np.max(np.logaddexp(light + up_left, heavy_left + down))))
        cells = np.logaddexp(light + up, heavy + down)
        if p < 0.0:  # where s^p hardly moves, the linear part of f alone would have to be halved
            with np.errstate(divide="ignore"):
                light_right = np.log(np.maximum(-np.expm1(right - epsilon), 0.0)) - right - log_whole
            cells = np.minimum(cells, log_powers(left, light_right, heavy))
        fine = cells > reached + 1e-4
        floor = max(floor, float(np.max(cells[~fine], initial=-math.inf)))
        if not fine.any() or np.count_nonzero(fine) > 1 << 14:
            break
        ends = left[fine, None] + (right - left)[fine, None] * np.linspace(0.0, 1.0, 9)
        ends[:, -1] = right[fine]
        left, right, cells = ends[:, :-1].ravel(), ends[:, 1:].ravel(), cells[fine]
    above = max(float(cells[fine].max(initial=-math.inf)) if cells.size == fine.size else float(cells.max()), floor)
    low, high = (float(np.logaddexp(0.0, value + sign * 1e-10)) for value, sign in ((reached, -1.0), (above, 1.0)))
    low, high = low * (1.0 - 1e-12), high * (1.0 + 1e-12)
    return min(low, high), high


def _finite(pair: LossPair) -> LossPair:
    return LossPair(pair.loss, pair.log_p, pair.log_q, 0.0, 0.0)


def pair_moment(pair: LossPair, p: float) -> float:
    """log E_Q r^p of a pair in floats; mass that is missing counts as if it were at loss 0."""
    if (pair.lost_p > 0.0 and p > 1.0) or (pair.lost_q > 0.0 and p < 0.0):
        return math.inf
    loss, log_q = pair.loss, pair.log_q
    grown = p * loss
    if float(np.max(log_q + np.maximum(grown, np.abs(loss)))) < 300.0:
        excess = float(np.exp(log_q) @ _excess(loss, p)) if float(np.max(np.abs(grown))) < 600.0 else math.inf
        if excess < 1e3:
            return math.log1p(excess)
    top = float(np.max(log_q + grown))
    return top + math.log(float(np.exp(log_q + grown - top).sum()))


def _excess(loss: np.ndarray, p: float) -> np.ndarray:
    """r^p - 1 - p (r - 1), which cancels where p times the loss is small."""
    small = np.abs(loss) * (1.0 + abs(p)) < 0.02
    return np.where(small, _series(np.where(small, loss, 0.0), p), np.expm1(p * loss) - p * np.expm1(loss))


def _series(x: Floats, p: float) -> Floats:
    """Its Taylor series, where (1 + |p|) |x| < .02: all terms after the eighth are below 1e-17 of the first."""
    series, power, factorial = np.zeros_like(x), x.copy(), 1.0
    for k in range(2, 11):
        power = power * x
        factorial *= k
        series += (p**k - p) * power / factorial
    return series


def log_excess(log_s: Floats, p: float) -> Floats:
    """log(s^p - 1 - p (s - 1)) for p > 1 or p < 0, whatever the size."""
    small = np.abs(log_s) * (1.0 + abs(p)) < 0.02
    x = np.where(small, 0.0, log_s)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        near = np.log(np.maximum(_series(np.where(small, log_s, 0.0), p), 0.0))
        plain = np.expm1(np.minimum(p * x, 600.0)) - p * np.expm1(np.minimum(x, 600.0))
        # beyond what floats hold one of the two powers is all that counts, but for a factor of 1 + 1e-200
        far = np.maximum(p * x, np.log(max(-p, 1e-300)) + x if p < 0.0 else -math.inf)
        return np.where(small, near, np.where((p * x > 500.0) | (x > 500.0), far, np.log(np.maximum(plain, 1e-320))))
