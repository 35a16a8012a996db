"""Optimal scores of canaries from released values: how much each canary's presence explains them.

The auditor made the rows, so that it knows each statistic with a canary and without it; noise is all that it does not
know. docs/explanation/canaries.md#canary-scores.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ledgerwood.accounting.events import Event, FilteredEvent, Parallel, PoissonSampled, RandomAllocation
from ledgerwood.curator import (
    CorrectSplits,
    DeclaredStatistic,
    GiniSplits,
    LabelledSplits,
    LeafLabels,
    LeafQuery,
    SplitGains,
)
from ledgerwood.curator.queries.splits.tests import open_tests
from ledgerwood.curator.tables.trees import Table
from ledgerwood.ensemble import SplitTests, TreeStructure
from ledgerwood.mechanisms import (
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PermuteAndFlipMechanism,
    SkellamMechanism,
)
from ledgerwood.verification.canaries.power import ceilings
from ledgerwood.verification.canaries.power.shared import SeenSums, shared_scores
from ledgerwood.verification.canaries.recorder import Released

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
_STEADY = 0.02
"""How far apart the canaries' mu may be: where one depends on earlier noise, its score is no Gaussian any more."""
_EVERYBODY = np.empty(0, dtype=np.bool_)
Choice = LeafLabels | SplitGains | GiniSplits | CorrectSplits | LabelledSplits
"""Choices by node whose distribution is computed here."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """The rows with the canaries and without, and where the canaries are.

    Args:
        with_side: the background and the canaries of one side, for each of the two sides.
        side: (m,), 0 or 1: which label each canary has. Those of one leaf may have either.
        with_none: the background, and what stands in for the canaries where rows are replaced.
        cells: the cells of the canaries, (n_features, m).
        alone: the canaries and no other row; and, if rows are replaced, the rows in their place.
    """

    with_side: tuple[Table, Table]
    side: NDArray[np.int64]
    with_none: Table
    cells: NDArray[Any]
    alone: tuple[Table, ...] = ()

    def __len__(self) -> int:
        return int(self.cells.shape[1])


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanaryScores:
    """One score a canary; a higher one speaks for its presence.

    Args:
        values: (m,), the log-likelihood ratio of what was released; a linear estimate where canaries share leaves.
        gaussian: whether all noise of what was scored is Gaussian, and no draw is sampled or filtered.
        normal: (m,), N(0, 1) without the canary and N(mu, 1) with it; None if noise is not so, where
            canaries share leaves, or where what they contribute has changed with the noise, by more than 2 %.
        mu: (m,), of each canary, by its contributions to what was released; None with `normal`.
        alone: whether no two canaries shared a leaf of what was scored.
        scored: number of releases that took part.
        releases: their number.
        nats: a bound on what all releases tell of all coins; inf where one is of a kind that is not bounded here.
    """

    values: Floats
    gaussian: bool
    normal: Floats | None
    mu: Floats | None
    alone: bool
    scored: int
    releases: int
    nats: float = math.inf


def canary_scores(releases: list[Released], evidence: Evidence) -> CanaryScores:
    """The scores of all canaries.

    With several canaries, releases that are not by leaf (a histogram, an initial score) say nothing of one canary, and
    take no part, but for sums of a `DeclaredStatistic`, whose function says what each canary moves; with one canary
    every release takes part.
    """
    m = len(evidence)
    by_draw: dict[tuple[int, int], _Draw] = {}
    sums: list[tuple[SeenSums, float]] = []
    choices = np.zeros(m)
    nats = ceilings.NO_NATS
    alone, gaussian, scored = True, True, 0
    for number, released in enumerate(releases):
        found = _choice_ratio(released, evidence) if released.chosen else _sum_ratio(released, evidence)
        nats = nats + _nats(released, found, m)
        if found is None:
            continue
        scored += 1
        # The releases of one draw share its sample; of a filtered draw, each has its own.
        own = isinstance(released.event, FilteredEvent)
        draw = by_draw.setdefault((released.draw, number if own else -1), _Draw(released.event, m))
        draw.add(released.group, found.ratio)
        alone = alone and found.alone
        rate = draw.rate(released.group)
        # A filter ends a row's part at a time that depends on it.
        gaussian = gaussian and found.sums is not None and found.sums.gaussian and rate == 1.0 and not own
        if found.sums is not None:
            sums.append((found.sums, rate))
        else:
            choices += rate * found.ratio
    values = np.sum([draw.ratio() for draw in by_draw.values()], axis=0) if by_draw else np.zeros(m)
    gaussian = gaussian and scored > 0
    normal, mu = _normal([each for each, _ in sums], m) if gaussian and alone else (None, None)
    return CanaryScores(
        values=values if alone else shared_scores(sums, choices), gaussian=gaussian, normal=normal, mu=mu, alone=alone,
        scored=scored, releases=len(releases), nats=nats.least,
    )  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ratio:
    ratio: Floats
    alone: bool
    sums: SeenSums | None = None


def _nats(released: Released, found: _Ratio | None, canaries: int) -> ceilings.Nats:
    """Bounds on what a release tells of all coins; inf where none is known."""
    query = released.query
    if isinstance(query, Choice):
        candidates = query.classes if isinstance(query, LeafLabels) else len(query.tests)
        candidates *= query.classes**2 if isinstance(query, LabelledSplits) else 1
        epsilon = released.mechanism.rate * query.sensitivity(released.event.adjacency).range
        return ceilings.choice_nats(candidates, query.structure.n_leaves, canaries, epsilon)
    if found is None or found.sums is None:
        return ceilings.UNKNOWN_NATS
    sums = found.sums
    leaf = np.zeros(len(sums.change), dtype=np.int64) if sums.leaf is None else sums.leaf
    reach, squares = np.zeros((2, int(leaf.max()) + 1, sums.change.shape[1]))
    np.add.at(reach, leaf, np.abs(sums.change))
    np.add.at(squares, leaf, sums.change**2)
    return ceilings.sum_nats(reach, squares, np.broadcast_to(sums.variance, reach.shape), laplace=not sums.gaussian)


def rate_of(event: Event, group: int | None) -> float:
    """The probability that a row takes part in a draw, or in its group or step."""
    match event:
        case PoissonSampled() | FilteredEvent():
            return event.sampling_rate
        case RandomAllocation():
            return event.selected / event.steps
        case Parallel() if group is not None and event.probabilities is not None:
            return event.probabilities[group]
    return 1.0


@final
class _Draw:
    """The log-likelihood ratios of one draw: a mixture over whether the canary was sampled, or which group it is in, or
    which steps.
    """

    def __init__(self, event: Event, m: int) -> None:
        self._event = event
        self._groups: defaultdict[int | None, Floats] = defaultdict(lambda: np.zeros(m))

    def add(self, group: int | None, ratio: Floats) -> None:
        self._groups[group] = self._groups[group] + ratio

    def rate(self, group: int | None) -> float:
        return rate_of(self._event, group)

    def ratio(self) -> Floats:
        if isinstance(self._event, RandomAllocation):
            return _allocated_ratio(list(self._groups.values()), self._event.selected, self._event.steps)
        parts = [(self.rate(group), ratio) for group, ratio in self._groups.items()]
        if len(parts) == 1 and parts[0][0] == 1.0:
            return parts[0][1]
        rest = 1.0 - math.fsum(rate for rate, _ in parts)
        logs = [math.log(rate) + ratio for rate, ratio in parts]
        if rest > 0.0:
            logs.append(np.full_like(logs[0], math.log(rest)))
        return np.asarray(np.logaddexp.reduce(logs, axis=0))


def _allocated_ratio(ratios: list[Floats], selected: int, steps: int) -> Floats:
    """The mean over all choices of `selected` of `steps` of the product of their ratios, which are 1 in other steps.

    Args:
        ratios: logarithms, (m,) each, of the steps with a scored release.
        selected, steps: of the allocation.
    """
    rest = steps - len(ratios)
    sums = np.full((selected + 1, len(ratios[0])), -math.inf)  # of products of j of the ratios so far
    sums[0] = 0.0
    for ratio in ratios:
        sums[1:] = np.logaddexp(sums[1:], sums[:-1] + ratio)
    counts = np.arange(selected + 1)
    fits = selected - counts <= rest
    others = np.full(selected + 1, -math.inf)
    others[fits] = _log_choices(rest, selected - counts[fits])
    return np.asarray(np.logaddexp.reduce(sums + others[:, np.newaxis], axis=0) - _log_choices(steps, selected))


def _log_choices(n: int, k: Any) -> Any:
    return special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)


def _normal(found: list[SeenSums], m: int) -> tuple[Floats | None, Floats | None]:
    """Sums of residuals along a canary's changes, in units of their noise; and mu."""
    along, square = np.zeros(m), np.zeros(m)
    for sums in found:
        along += np.sum(sums.residual * sums.change / sums.variance, axis=1)
        square += np.sum(sums.change**2 / sums.variance, axis=1)
    if not np.all(square > 0.0):
        return None, None
    mu = np.sqrt(square)
    if mu.min() < (1.0 - _STEADY) * mu.max():
        return None, None
    return along / mu, mu


def moved_sums(released: Released, evidence: Evidence) -> tuple[Floats, Floats, str] | None:
    """Returns by what a single canary moves a release of sums, the noise's scale, and its distribution.

    None if the noise is not known here.
    """
    noise = _noise(released.mechanism, released.value.shape[-1])
    if noise is None:
        return None
    scale, _, law = noise
    query = released.query
    first, second = evidence.with_side[int(evidence.side[0])], evidence.with_none
    change = query.grid.to_real(first.reader(query)(_EVERYBODY)) - query.grid.to_real(second.reader(query)(_EVERYBODY))
    moved = np.flatnonzero(change.ravel())
    return change.ravel()[moved], np.broadcast_to(scale, change.shape).ravel()[moved], law


def _sum_ratio(released: Released, evidence: Evidence) -> _Ratio | None:
    query, m = released.query, len(evidence)
    structure = _leaves_of(query)
    if m > 1 and structure is None and not isinstance(query, DeclaredStatistic):
        return None
    noise = _noise(released.mechanism, released.value.shape[-1])
    if noise is None:
        return None
    scale, variance, law = noise
    with_none = query.grid.to_real(evidence.with_none.reader(query)(_EVERYBODY))
    changes = np.array([query.grid.to_real(t.reader(query)(_EVERYBODY)) for t in evidence.with_side]) - with_none
    residual = released.value - with_none
    if m == 1:
        # All entries are one canary's.
        change = changes[evidence.side[0]]
        flat = np.broadcast_to(scale, change.shape).reshape(1, -1)
        spread = np.broadcast_to(variance, change.shape).reshape(-1)
        whole = SeenSums(
            leaf=np.zeros(1, dtype=np.int64), change=change.reshape(1, -1), residual=residual.reshape(1, -1),
            variance=spread, gaussian=law != "laplace",
        )  # fmt: skip
        return _Ratio(ratio=_ratio(whole, flat, law), alone=True, sums=whole)
    if structure is None:
        moves = _moves(query, evidence)
        whole = SeenSums(
            leaf=None, change=moves, residual=np.broadcast_to(residual, moves.shape), variance=variance,
            gaussian=law != "laplace",
        )  # fmt: skip
        return _Ratio(ratio=_ratio(whole, scale, law), alone=False, sums=whole)
    leaf = structure.route(evidence.cells).astype(np.int64)
    held, side = np.bincount(leaf, minlength=structure.n_leaves), evidence.side
    own = np.array([np.bincount(leaf[side == each], minlength=structure.n_leaves) for each in (0, 1)])
    sums = SeenSums(
        leaf=leaf, change=changes[side, leaf] / own[side, leaf, np.newaxis], residual=residual[leaf], variance=variance,
        gaussian=law != "laplace",
    )  # fmt: skip
    return _Ratio(ratio=_ratio(sums, scale, law), alone=bool((held[leaf] == 1).all()), sums=sums)


def _moves(query: DeclaredStatistic, evidence: Evidence) -> Floats:
    """By what each canary moves the sum of a function of single rows, (m, k)."""
    m = len(evidence)
    one = np.eye(m, dtype=np.bool_)
    found = [[query.grid.to_real(table.reader(query)(one[i])) for i in range(m)] for table in evidence.alone]
    own = np.array(found[0])
    return own - np.array(found[1]) if len(found) > 1 else own


def _ratio(sums: SeenSums, scale: Floats, law: str) -> Floats:
    if law == "laplace":
        return np.asarray(np.sum((np.abs(sums.residual) - np.abs(sums.residual - sums.change)) / scale, axis=1))
    return np.asarray(np.sum((sums.residual - 0.5 * sums.change) * sums.change / sums.variance, axis=1))


def _noise(mechanism: object, columns: int) -> tuple[Floats, Floats, str] | None:
    """Scale and variance of each column, and the distribution; None for noise that is not known here."""
    match mechanism:
        case GaussianMechanism():
            stddevs = np.full(columns, mechanism.stddev)
        case EllipticalGaussianMechanism():
            stddevs = np.array(mechanism.stddevs)
        case SkellamMechanism():  # a Gaussian's ratio orders its outputs nearly as its own
            stddevs = np.full(columns, math.sqrt(mechanism.variance))
        case LaplaceMechanism():
            scales = np.array(mechanism.scales)
            return scales, 2.0 * scales**2, "laplace"
        case _:
            return None
    return stddevs, stddevs**2, "gaussian"


def _leaves_of(query: object) -> TreeStructure | None:
    """The tree by whose leaves a statistic is; None if it is by something else."""
    # Of classes by leaf, a row of the release is no leaf.
    if not isinstance(query, LeafQuery) or query.statistic.width != query.grid.columns:
        return None
    return query.structure


def _choice_ratio(released: Released, evidence: Evidence) -> _Ratio | None:
    query = released.query
    if not isinstance(query, Choice):
        return None
    node = query.structure.route(evidence.cells).astype(np.int64)
    alone = np.bincount(node, minlength=query.structure.n_leaves)[node] == 1
    if not alone.any():
        return _shared_choice(released, evidence, node)
    chosen = _chosen(query, released.value)[node]
    logs = [
        log_choices(query, released.mechanism, table, node)[np.arange(len(node)), chosen]
        for table in (*evidence.with_side, evidence.with_none)
    ]
    with_canary = np.where(evidence.side == 0, logs[0], logs[1])
    # A choice made by the rows of several canaries tells nothing of one of them; it shares no leaf of sums.
    return _Ratio(ratio=np.where(alone, with_canary - logs[2], 0.0), alone=True)


def _shared_choice(released: Released, evidence: Evidence, node: Places) -> _Ratio | None:
    """The slope of the choice's log-likelihood in each canary's coin, where several canaries are in each node.

    None where utilities are not sums over rows: what one canary moves depends on all others then.
    """
    query, m = released.query, len(node)
    if not isinstance(query, LeafLabels | LabelledSplits):
        return None
    one, nodes = np.eye(m, dtype=np.bool_), query.structure.n_leaves
    read = [table.evidence(query) for table in evidence.alone]
    moves = np.array([np.asarray(read[0](one[i])).reshape(nodes, -1)[node[i]] for i in range(m)], dtype=np.float64)
    if len(read) > 1:
        moves -= [np.asarray(read[1](one[i])).reshape(nodes, -1)[node[i]] for i in range(m)]
    # About the table that holds half of the canaries, as it is expected to.
    utilities = np.asarray(evidence.with_none.evidence(query)(_EVERYBODY)).reshape(nodes, -1).astype(np.float64)
    np.add.at(utilities, node, 0.5 * moves)
    log_law = _log_law(released.mechanism, _possible(query, utilities, np.arange(nodes)))[node]
    expected = np.sum(np.where(np.isfinite(log_law), np.exp(log_law), 0.0) * moves, axis=1)
    chosen = _chosen(query, released.value)[node]
    return _Ratio(ratio=released.mechanism.rate * (moves[np.arange(m), chosen] - expected), alone=False)


def log_choices(query: Choice, mechanism: object, table: Table, nodes: Places) -> Floats:
    """Returns log P of each candidate at these nodes, (len(nodes), candidates); -inf for tests that a path decided.

    Args:
        query: the choice. A node whose tests are all decided has 0 for the candidate that it takes without a draw.
        mechanism: as it was recorded.
        table: the rows.
        nodes: of the tree so far.
    """
    grid = query.counts.grid if isinstance(query, LeafLabels) else query.grid
    utilities = np.asarray(table.evidence(query)(_EVERYBODY)).reshape(query.structure.n_leaves, -1)[nodes]
    return _log_law(mechanism, _possible(query, utilities * grid.steps[0], nodes))


def _possible(query: Choice, utilities: Floats, nodes: Places) -> Floats:
    """The utilities of these nodes, -inf for tests that their paths have decided."""
    if isinstance(query, LeafLabels):
        return utilities
    possible = open_tests(query.tests, query.structure)[nodes]
    possible[~possible.any(axis=1), 0] = True  # the test that is taken where all are decided
    return np.where(np.repeat(possible, utilities.shape[1] // possible.shape[1], axis=1), utilities, -np.inf)


def _chosen(query: Choice, value: Any) -> Places:
    """The place of each node's or leaf's choice among its candidates."""
    if isinstance(query, LeafLabels):
        return np.asarray(value)
    if isinstance(query, LabelledSplits):
        return query.places(_places(query.tests, value.tests), value.labels)
    return _places(query.tests, value)


def _places(tests: SplitTests, taken: SplitTests) -> Places:
    """Which of the candidates each node took."""
    same = (tests.feature[:, np.newaxis] == taken.feature) & (tests.split[:, np.newaxis] == taken.split)
    same &= tests.equals[:, np.newaxis] == taken.equals
    if tests.besides is not None and taken.besides is not None:
        # A set is known by its cells: those that were taken number their own.
        sets = (tests.besides[:, np.newaxis] < -1) & (taken.besides < -1)
        same &= sets | (tests.besides[:, np.newaxis] == taken.besides)
        if tests.left_sets is not None and taken.left_sets is not None:
            own, found = (
                tests.left_sets[np.maximum(-2 - tests.besides, 0)],
                taken.left_sets[np.maximum(-2 - taken.besides, 0)],
            )
            same &= ~sets | (own[:, np.newaxis] == found).all(axis=-1)
    return np.asarray(np.argmax(same, axis=0), dtype=np.int64)


def _log_law(mechanism: object, utilities: Floats) -> Floats:
    """log P of each candidate at each node, shape of `utilities`."""
    if isinstance(mechanism, ExponentialMechanism):
        logs = mechanism.rate * utilities
        return np.asarray(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    assert isinstance(mechanism, PermuteAndFlipMechanism)  # no other answers these
    # Candidate i comes at a uniform time t, is taken with probability p_i, and nobody before it was.
    taken = np.exp(mechanism.rate * (utilities - utilities.max(axis=1, keepdims=True)))
    times = 0.5 * (_NODES + 1.0)
    log_none = np.log1p(-np.minimum(taken[..., np.newaxis] * times, 1.0 - 1e-15))
    others = log_none.sum(axis=1, keepdims=True) - log_none
    with np.errstate(divide="ignore"):  # a candidate that is never taken
        return np.asarray(np.log(taken) + np.log(np.exp(others) @ (0.5 * _WEIGHTS)))
