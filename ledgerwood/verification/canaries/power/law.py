"""The distribution of a canary's log-likelihood ratio, from a plan and the rows alone, without a fit.

docs/explanation/canaries.md#worst-rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ledgerwood.ensemble import TreeStructure
from ledgerwood.verification.auditing.one_run import one_run
from ledgerwood.verification.canaries.recorder import Released
from ledgerwood.verification.canaries.scores import Choice, Evidence, log_choices, moved_sums

Floats = NDArray[np.float64]
SHARES = (0.01, 0.02, 0.03, 0.045, 0.065, 0.09, 0.11, 0.125, 0.145, 0.17, 0.22, 0.28, 0.35, 0.42, 0.5)
"""Of the canaries: numbers of guesses of one kind that are compared."""
_GRID = 4096
_RARE = math.log(1e-2)
"""Paths of smaller probability, with the canary and without it, are left out."""
_FIXED = 20_301


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatioLaw:
    """Equally probable values of a canary's log-likelihood ratio.

    Args:
        included, left_out: (n,), sorted, where the canary is in, and where it is not.
    """

    included: Floats
    left_out: Floats

    @classmethod
    def of(cls, releases: Sequence[Released], evidence: Evidence) -> "RatioLaw":
        """The sum of the ratios of all releases of a fit, as if they were made of these rows.

        The choices of a tree's levels count along all paths that the canary may take. Sums count as if the recorded
        splits above them were fixed.

        Args:
            releases: of one fit, on any rows: their queries and mechanisms.
            evidence: of one canary.
        """
        # The same points in every call: rows are compared, and nothing that a test draws depends on them.
        generator = np.random.default_rng(_FIXED)
        included, left_out = np.zeros(_GRID), np.zeros(_GRID)
        for part in _parts(releases):
            if isinstance(part[0].query, Choice):
                with_it, without = _path_ratios(part, evidence, generator)
            else:
                with_it, without = _sum_ratios(part[0], evidence, generator)
            included += with_it
            left_out += without
        return cls(included=np.sort(included), left_out=np.sort(left_out))

    def accuracies(self, shares: Sequence[float]) -> tuple[Floats, Floats]:
        """Expected shares of right guesses among the canaries with the highest scores, and with the lowest.

        Args:
            shares: of all canaries, half of which are in.
        """
        both = np.sort(np.concatenate([self.included, self.left_out]))
        # Given the score, a canary is in with this probability: its coin was fair.
        inside = special.expit(both)
        ends = np.maximum((np.array(shares) * len(both)).astype(np.int64), 1)
        highest = np.cumsum(inside[::-1])[ends - 1] / ends
        lowest = np.cumsum(1.0 - inside)[ends - 1] / ends
        return highest, lowest

    def guesses(self, canaries: int, *, delta: float, alpha: float) -> tuple[int, int, float]:
        """The best numbers of guesses of each kind, (included, left out), and the bound expected of them.

        Args:
            canaries: fits with one canary each.
            delta, alpha: those of the bound.
        """
        highest, lowest = self.accuracies(SHARES)
        best = (max(1, canaries // 8), 0, -1.0)
        sizes = [max(1, round(share * canaries)) for share in SHARES]
        for up, first in zip([0, *sizes], [0.0, *highest.tolist()], strict=True):
            for down, second in zip([0, *sizes], [0.0, *lowest.tolist()], strict=True):
                if 0 < up + down <= canaries:
                    rough = _rough(up * first + down * second, up + down, alpha)
                    if rough > best[2]:
                        best = (up, down, rough)
        up, down, _ = best
        right = self._right(up, down, canaries)
        spread = math.sqrt(max(right * (1.0 - right / (up + down)), 0.0))
        found = [
            one_run(min(max(round(right + each * spread), 0), up + down), up + down, canaries, delta=delta, alpha=alpha)
            for each in (-1.22, 0.0, 1.22)  # three points of the bound's spread
        ]
        return up, down, float(np.dot(found, (1 / 3, 1 / 3, 1 / 3)))

    def _right(self, up: int, down: int, canaries: int) -> float:
        highest, lowest = self.accuracies((up / canaries, down / canaries))
        return up * float(highest[0]) + down * float(lowest[1])


def _rough(right: float, guesses: int, alpha: float) -> float:
    """About the bound that this number of right guesses shows at delta 0."""
    wrong = float(special.betaincinv(guesses - right + 1.0, max(right, 0.5), 1.0 - alpha))
    return float(special.logit(1.0 - wrong))


def _parts(releases: Sequence[Released]) -> list[list[Released]]:
    """The releases, the choices of one tree's levels together."""
    parts: list[list[Released]] = []
    for released in releases:
        query = released.query
        deeper = isinstance(query, Choice) and query.structure.depth > 0
        if deeper and parts and isinstance(parts[-1][-1].query, Choice):
            parts[-1].append(released)
        else:
            parts.append([released])
    return parts


def _path_ratios(levels: list[Released], evidence: Evidence, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Values of the ratio of a tree's choices with the canary and without it, (n,) each, in random order."""
    paths = _paths(levels, levels[0].query.structure, evidence, 0.0, 0.0)
    logs = np.array(paths)
    ratio = logs[:, 0] - logs[:, 1]
    return _drawn(ratio, logs[:, 0], generator), _drawn(ratio, logs[:, 1], generator)


def _paths(
    levels: list[Released], structure: TreeStructure, evidence: Evidence, with_it: float, without: float
) -> list[tuple[float, float]]:
    """Log probabilities of the canary's paths with it and without it, below a node that these lead to."""
    if not levels:
        return [(with_it, without)]
    released = levels[0]
    query = replace(released.query, structure=structure)
    node = structure.route(evidence.cells).astype(np.int64)
    tables = (evidence.with_side[int(evidence.side[0])], evidence.with_none)
    logs = np.array([log_choices(query, released.mechanism, table, node)[0] for table in tables])
    found: list[tuple[float, float]] = []
    for place in np.flatnonzero(np.isfinite(logs).all(axis=0)).tolist():
        first, second = with_it + float(logs[0, place]), without + float(logs[1, place])
        if len(levels) == 1:
            found.append((first, second))
        elif max(first, second) > _RARE:
            tests = query.tests.taken(np.full(structure.n_leaves, place))
            found += _paths(levels[1:], structure.deeper(tests), evidence, first, second)
    return found or [(with_it, without)]


def _sum_ratios(released: Released, evidence: Evidence, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Values of one release's ratio with the canary and without it, (n,) each, in random order."""
    moved = moved_sums(released, evidence)
    included, left_out = np.zeros(_GRID), np.zeros(_GRID)
    if moved is None:
        return included, left_out
    change, scale, law = moved
    for shift, unit in zip(change.tolist(), scale.tolist(), strict=True):
        step = abs(shift) / unit
        points = generator.permutation((np.arange(_GRID) + 0.5) / _GRID)
        if law == "laplace":
            noise = np.sign(points - 0.5) * -np.log1p(-2.0 * np.abs(points - 0.5))
            included += np.abs(noise + step) - np.abs(noise)
            left_out += np.abs(noise) - np.abs(noise - step)
        else:
            noise = special.ndtri(points)
            included += step * (noise + 0.5 * step)
            left_out += step * (noise - 0.5 * step)
    return included, left_out


def _drawn(ratio: Floats, log_law: Floats, generator: np.random.Generator) -> Floats:
    ends = np.cumsum(np.exp(log_law))
    points = generator.permutation((np.arange(_GRID) + 0.5) / _GRID)
    return ratio[np.minimum(np.searchsorted(ends / ends[-1], points), len(ratio) - 1)]
