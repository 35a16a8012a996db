"""The search for a background on which one canary decides most of what a model releases.

docs/explanation/canaries.md#worst-rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import Schema
from ledgerwood.curator.tables.trees import Table
from ledgerwood.ensemble import TreeStructure
from ledgerwood.verification.canaries.fitting import OwnFits
from ledgerwood.verification.canaries.power.law import RatioLaw
from ledgerwood.verification.canaries.recorder import Released
from ledgerwood.verification.canaries.rows import (
    AuditRows,
    CanaryCells,
    audit_rows,
    cell_value,
    extreme_labels,
    step_count,
)
from ledgerwood.verification.canaries.scores import Choice, Evidence, rate_of

Counts = NDArray[np.int64]
_LEVELS = (0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 30, 50, 100)
"""Numbers of rows of one kind in one corner."""
_Start = tuple[tuple[int, int], ...]
_STARTS: tuple[_Start, ...] = (
    # By gains, the canary joins rows like it on one side of the first test, and rows against it on that of the second.
    ((0, 0), (20, 0), (0, 20), (1, 0)),
    # By labels, the canary makes its class equal to the other one.
    ((0, 1), (0, 0), (0, 8), (0, 8)),
    ((0, 1), (0, 0), (0, 0), (0, 0)),
)
"""Of each corner, (rows like the canary, rows with the other label); the canary is in the first corner."""
_DEEP: tuple[_Start, ...] = (
    # The best of 66,000 random ones for three features.
    ((0, 0), (20, 0), (20, 0), (0, 5), (0, 8), (0, 0), (0, 0), (3, 0)),
    # For more features: by the first choice, the canary makes one test equal to the best; below it, all tests of other
    # features are equal without the canary, and with it one test leads (docs/explanation/canaries.md#worst-rows).
    ((0, 0), (0, 0), (0, 6), (0, 11), (0, 11), (11, 0), (1, 0), (0, 0)),
)
"""Starts for a tree of several choices, at the ends of three features."""
_PASSES = 3
MOST_CHOICES = 8
"""Choices of a fit that the search takes part in."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorstRows:
    """A background, the canary, and the guesses that are planned for it.

    Args:
        rows: of the fits.
        canaries: fits with one canary each.
        guesses: numbers of canaries to guess as included and as left out.
        expected: the bound that this attack is expected to show; NaN where a draw is of a part of the rows, since the
            search is of the canary's chances when it takes part in all of them.
        words: a description of the rows.
    """

    rows: AuditRows
    canaries: int
    guesses: tuple[int, int]
    expected: float
    words: str


def corners(schema: Schema, *, bins: int, both_ends: int = 2) -> NDArray[Any]:
    """The rows at the ends of the first features that can be split, the others at their lower ends, object (k, n).

    Args:
        schema: resolved.
        bins: even steps of a numeric feature's range.
        both_ends: how many features have rows at both ends.
    """
    features = schema.features
    split = [place for place, feature in enumerate(features) if step_count(feature, bins) > 1][:both_ends]
    found = np.empty((2 ** len(split), len(features)), dtype=object)
    for number, row in enumerate(found):
        for place, feature in enumerate(features):
            upper = place in split and bool(number >> (len(split) - 1 - split.index(place)) & 1)
            row[place] = cell_value(feature, step_count(feature, bins) - 1 if upper else 0, bins)
    return found


def worst_rows(
    fits: OwnFits, *, replaced: bool, canaries: int, delta: float, alpha: float, generator: np.random.Generator
) -> WorstRows:
    """Searches numbers of rows in the corners of the schema by the bound that a canary among them is expected to show.

    Only the plan's mechanisms and the rows are used; one fit says what is released.

    Args:
        fits: of the estimator.
        replaced: whether a canary that is out is replaced by the same row with the other label.
        canaries: fits with one canary each.
        delta, alpha: those of the bound.
        generator: seeds the one fit.
    """
    releases = _releases(fits, generator)
    choices = [released for released in releases if isinstance(released.query, Choice)]
    if len(choices) > MOST_CHOICES:
        # Each of them tells next to nothing of one row: sums alone decide.
        releases, choices = [released for released in releases if not isinstance(released.query, Choice)], []
    places = corners(fits.schema, bins=fits.plan.max_bins, both_ends=2 if len(choices) < 2 else 3)
    cells = CanaryCells(structure=TreeStructure.root(), rows=places[:1], schema=fits.schema)
    plain = audit_rows(*made_up_row(fits), cells, replaced=replaced)
    search = _Search(
        fits=fits, plain=plain, places=places, canaries=canaries, delta=delta, alpha=alpha, releases=tuple(releases),
        cells=fits.evidence(plain).cells,
    )  # fmt: skip
    counts = _start(_STARTS[0], len(places))
    if choices:
        starts = (*_STARTS, *(_DEEP if len(choices) > 1 else ()))
        climbed = [search.climbed(_start(start, len(places))) for start in starts]
        counts = max(climbed, key=lambda each: each[1])[0]
    included, left_out, expected = search.law(counts).guesses(canaries, delta=delta, alpha=alpha)
    if any(rate_of(released.event, released.group) < 1.0 for released in releases):
        expected = math.nan
    shown = "" if math.isnan(expected) else f"; this attack is expected to show {expected:.3g}"
    return WorstRows(
        rows=search.rows(counts), canaries=canaries, guesses=(included, left_out), expected=expected,
        words=f"{_words(counts, replaced)}; {canaries} fits{shown}",
    )  # fmt: skip


def made_up_row(fits: OwnFits) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns X and y of one row, at the lower ends of all features."""
    label = np.empty(1, dtype=object)
    label[0] = extreme_labels(fits.schema)[0]
    return corners(fits.schema, bins=fits.plan.max_bins)[:1], label


def _releases(fits: OwnFits, generator: np.random.Generator) -> list[Released]:
    """What a fit on one row releases: all queries and mechanisms that are wanted are public."""
    _, recording = fits.fitted(*made_up_row(fits), generator)
    return list(recording.releases)


def _start(start: Sequence[tuple[int, int]], corners: int) -> Counts:
    """These numbers of rows at the ends of the first two features, and none at the upper end of a third one."""
    counts = np.zeros((corners, 2), dtype=np.int64)
    stride = max(corners // len(start), 1)
    counts[::stride] = np.array(start[: len(counts[::stride])])
    return counts


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Search:
    fits: OwnFits
    plain: AuditRows
    places: NDArray[Any]
    canaries: int
    delta: float
    alpha: float
    releases: tuple[Released, ...]
    cells: NDArray[Any]

    def rows(self, counts: Counts) -> AuditRows:
        """The background of these numbers of rows; at least one, since a table of none has no label."""
        kinds = np.repeat(np.arange(counts.size), counts.ravel())
        own, other = self.plain.own[0], self.plain.other[0]
        labels = np.empty(max(len(kinds), 1), dtype=self.plain.labels.dtype)
        labels[:] = other
        labels[: len(kinds)][kinds % 2 == 0] = own
        places = self.places[kinds // 2] if len(kinds) else self.places[-1:]
        return replace(self.plain, background=places.astype(self.plain.background.dtype), labels=labels)

    def law(self, counts: Counts) -> RatioLaw:
        rows, plan = self.rows(counts), self.fits.plan
        with_it, without = (
            Table.from_data(*rows.data(np.array([inside])), self.fits.schema, loss=plan.loss, bins=plan.max_bins)
            for inside in (True, False)
        )
        own = Evidence(with_side=(with_it, with_it), side=rows.side, with_none=without, cells=self.cells)
        return RatioLaw.of(self.releases, own)

    def climbed(self, counts: Counts) -> tuple[Counts, float]:
        """The best numbers that single steps lead to."""
        best = self._merit(counts)
        # Of deep trees the distribution takes longer: one pass.
        for _ in range(_PASSES if len(self.releases) < 3 else 1):
            before = best
            for place in np.ndindex(*counts.shape):
                at = int(np.searchsorted(_LEVELS, counts[place]))
                for step in (1, -1, 3, -3):
                    level = min(max(at + step, 0), len(_LEVELS) - 1)
                    trial = counts.copy()
                    trial[place] = _LEVELS[level]
                    if trial[place] != counts[place] and (merit := self._merit(trial)) > best + 1e-4:
                        counts, best, at = trial, merit, level
            if best < before + 1e-2:
                break
        return counts, best

    def _merit(self, counts: Counts) -> float:
        return self.law(counts).guesses(self.canaries, delta=0.0, alpha=self.alpha)[2]


def _words(counts: Counts, replaced: bool) -> str:
    each = "; ".join(f"{like} like it and {against} against it" for like, against in counts.tolist())
    how = "replaced by the opposite label" if replaced else "in or out"
    return f"one canary in a corner of the schema, {how}, beside rows in the corners of the schema: {each}"
