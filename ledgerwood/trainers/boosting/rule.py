"""The public rule of the recommended trees: what is chosen by the budget and the expected rows, and why.

Its constants were found on public tables: docs/explanation/boosting.md#boosting-rule.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.costs import gdp
from ledgerwood.curator import Loss
from ledgerwood.trainers.boosting.candidates import EVEN_BINS

GUESSED_ROWS = 10_000
"""Expected rows where none are given."""
FINE_STEPS = 4096
"""Even steps of a numeric feature's range, of which thresholds are borders."""
MOST_EVIDENCE = 1e12
"""More is counted as that much: the rule's choices end long before."""
DEPTHS, DEPTH_FROM, DEPTH_FACTOR = (3, 6), 250.0, 2.8
"""Least and most levels; the evidence at which trees have the least, and its factor for one level more."""
TREES, TREES_FROM = (256, 1024), 500.0
"""Least and most trees; the evidence of the least. Classes have 512 at least."""
SPREAD_FROM, SPREAD = 5_000.0, 63
"""The evidence from which candidates between even steps and quantiles are worth their number, and that number."""
NOISE_OF_ALL = 0.07
"""The noise of a candidate histogram's total that its number of bins aims at, as a share of all rows."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RuledValue:
    """The rule's value of one field of the plan.

    Args:
        value: of the field.
        why: in words.
    """

    value: Any
    why: str


def evidence(budget: Budget, expected_rows: int | None) -> float:
    """How far the number of all rows stands out of its noise, if the budget were spent on it alone: mu * rows.

    mu is that of the Gaussian noise which costs the budget; 0 at delta 0. Public: no row is read.
    """
    if budget.delta == 0.0:
        return 0.0
    rows = GUESSED_ROWS if expected_rows is None else expected_rows
    return min(gdp.mu(budget.epsilon, budget.delta) * rows, MOST_EVIDENCE)


def ruled_depth(found: float, first: float = DEPTH_FROM, factor: float = DEPTH_FACTOR) -> int:
    """Levels of the trees for this evidence."""
    levels = round(math.log(max(found, 1.0) / first) / math.log(factor))
    return min(max(DEPTHS[0] + levels, DEPTHS[0]), DEPTHS[1])


def ruled_trees(found: float, loss: Loss, first: float = TREES_FROM) -> int:
    """Number of trees for this evidence, a power of two."""
    doublings = round(math.log2(max(found, 1.0) / first))
    least = TREES[0] if loss == "squared" else 2 * TREES[0]
    return min(max(TREES[0] << max(doublings, 0), least), TREES[1])


def ruled_histogram_bins(found: float, *, n_numeric: int, candidate_share: float) -> int:
    """Even bins of each candidate histogram, a power of two: as many as leave its total within `NOISE_OF_ALL`.

    The noise of one count is sqrt(n_numeric / candidate_share) / found of all rows, that of a total of B counts is
    sqrt(B) times as large. More bins cost no privacy: a row is in one of them.

    Args:
        found: the evidence.
        n_numeric: features that have a histogram.
        candidate_share: their share of mu**2.
    """
    most = (NOISE_OF_ALL * found) ** 2 * candidate_share / max(n_numeric, 1)
    return 1 << round(math.log2(min(max(most, EVEN_BINS), FINE_STEPS)))


def rule(loss: Loss, found: float, *, n_features: int, n_numeric: int) -> Mapping[str, RuledValue]:
    """What the rule chooses of a plan's fields.

    Args:
        loss: squared for numbers, logistic for classes.
        found: the evidence, see `evidence`.
        n_features: of the schema.
        n_numeric: those of them that have thresholds.
    """
    logistic = loss == "logistic"
    numbers = 2 * n_numeric >= n_features
    together = "effects of several features together" if numbers else "pairs: one category splits off few rows"
    return {
        "n_estimators": RuledValue(
            value=ruled_trees(found, loss), why="more and smaller steps where the noise of each can be averaged out"
        ),
        "max_depth": RuledValue(
            value=ruled_depth(found), why=f"the rows of a leaf must stand out: one level for each {DEPTH_FACTOR} times"
        ),
        "learning_rate": RuledValue(value=0.3, why="with the number of trees it sets how much noise adds up"),
        "features_per_tree": RuledValue(value=min(4 if numbers else 2, n_features), why=together),
        "feature_choice": RuledValue(value="signal", why="trees follow the features that have shown something; free"),
        "even_share": RuledValue(value=0.3, why="of the turns go to all features, so that none is lost by bad luck"),
        "signal_memory": RuledValue(value=4.0, why="cycles: what has been learned of a feature shows no more"),
        "candidates": RuledValue(value="bought", why="even steps miss the rows of skewed columns"),
        "n_candidates": RuledValue(value=31, why="even thresholds a feature, and as many where the rows are"),
        "n_spread_candidates": RuledValue(
            value=SPREAD if found >= SPREAD_FROM else 0, why="between both, where the noise leaves rare values to see"
        ),
        "candidate_share": RuledValue(value=0.05, why="of mu**2 for the histograms that these are read from"),
        "max_bins": RuledValue(value=FINE_STEPS, why="steps fine enough for skewed columns; they cost no privacy"),
        "clip": RuledValue(
            value=0.5 if logistic else 0.25, why="largest gradient that counts: less of it is less noise"
        ),
        "reg_lambda": RuledValue(value=None, why="leaves are shrunk by their known noise"),
        "pooling": RuledValue(value=0.5 if logistic else 0.75, why="a leaf's weight is drawn to its tree's mean"),
    }
