"""From learning draws to the candidates worth choosing among.

Some are fitted: a logistic regression in numpy, and boosted trees of scikit-learn (the extra `trainers`).
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.verification.black_box import scores
from ledgerwood.verification.black_box import scores as bits
from ledgerwood.verification.black_box.choosing import (
    LUCK,
    Attack,
    Choice,
    Question,
    Tails,
    attacks,
    best_bound,
    best_point,
    tails,
    top,
)
from ledgerwood.verification.black_box.draws import OutputDraws
from ledgerwood.verification.black_box.encoding import Atoms, IntArray, atoms, keys
from ledgerwood.verification.black_box.encoding import bins as bins_of
from ledgerwood.verification.black_box.result import Numeric
from ledgerwood.verification.black_box.scores import Binned, DerivedScores, Score, ScoreCandidate, both_ways

Learners = Literal["all", "light"]
_STEPS, _SMALL = 12, 1e-3
_RIDGE = 1.0
_ATOMS = 8
_LINEAR_ROWS, _ROWS = 30_000, 30_000
_HUGE = 1e300


def _one_thread() -> AbstractContextManager[object]:
    """Threads that wait for each other on a busy machine take minutes for a second's work."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limited: AbstractContextManager[object] = threadpool_limits(1)
    return limited


@final
@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Columns as numbers in [-4, 4] (0 if they are not finite) and, for values that recur, as indicators."""

    centres: FloatArray
    scales: FloatArray
    marks: tuple[Atoms, ...]

    def number(self, column: FloatArray, j: int) -> FloatArray:
        """Column j as a number, shape (n,)."""
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = np.clip((column - self.centres[j]) / self.scales[j], -4.0, 4.0)
        finite = np.isfinite(column)
        return np.asarray(scaled if finite.all() else np.where(finite, scaled, 0.0))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Shape (n, features); the first one is constant."""
        rows, number = values.shape
        widths = [mark.codes_in_all - 1 for mark in self.marks]
        found = np.zeros((rows, 1 + number + sum(widths)), order="F")
        found[:, 0] = 1.0
        at = 1 + number
        for j, (mark, width) in enumerate(zip(self.marks, widths, strict=True)):
            column = values[:, j]
            found[:, 1 + j] = self.number(column, j)
            if mark.number or not np.isfinite(column).all():  # else no value recurs, and all indicators are 0
                codes = mark.codes(column)
                for place, code in enumerate(code for code in range(mark.codes_in_all) if code != mark.number):
                    found[:, at + place] = codes == code
            at += width
        return found


def features(both: FloatArray, known: tuple[Atoms, ...]) -> Features:
    """Scaled by medians and quartiles of these rows."""
    centres, scales, marks = [], [], []
    for column, cells in zip(both.T, known, strict=True):
        finite = column[np.isfinite(column)]
        # Halves: the difference of two of the largest numbers has no float64.
        quarters = np.quantile(0.5 * finite, [0.25, 0.5, 0.75]) if finite.size else np.zeros(3)
        low, middle, high = quarters.tolist()
        with np.errstate(over="ignore"):
            spread = 2.0 * (high - low) or (float(finite.std()) if finite.size else 0.0)
        middle *= 2.0
        centres.append(float(middle))
        scales.append(spread if 0.0 < spread < np.inf else 1.0)
        kept = cells.values
        marks.append(Atoms(kept if 2 < kept.size <= _ATOMS else kept[:0]))
    return Features(np.array(centres), np.array(scales), tuple(marks))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Linear(Score):
    """A linear function of the features."""

    features: Features
    weights: FloatArray

    def __call__(self, values: FloatArray) -> FloatArray:
        # Column by column: the matrix of all features would be several times as large as the outputs.
        total = np.full(values.shape[0], self.weights[0])
        at = 1 + values.shape[1]
        for j, mark in enumerate(self.features.marks):
            column, width = values[:, j], mark.codes_in_all - 1
            total += self.weights[1 + j] * self.features.number(column, j)
            if mark.number or not np.isfinite(column).all():
                total += np.insert(self.weights[at : at + width], mark.number, 0.0)[mark.codes(column)]
            at += width
        return total


@final
@dataclass(frozen=True, slots=True, eq=False)
class Boosted(Score):
    """The log odds of boosted trees."""

    model: Any
    columns: NDArray[np.int64]

    def __call__(self, values: FloatArray) -> FloatArray:
        numbers = np.clip(values[:, self.columns], -_HUGE, _HUGE)
        with _one_thread():
            return np.asarray(self.model.decision_function(numbers))


def _logistic(x: FloatArray, y: FloatArray) -> FloatArray:
    """Weights of a logistic regression of y, (n,) of 0 and 1, on x, (n, k); shape (k,)."""
    weights = np.zeros(x.shape[1])
    ridge = _RIDGE * np.eye(x.shape[1])
    with _one_thread():
        for _ in range(_STEPS):
            probability = 1.0 / (1.0 + np.exp(-np.clip(x @ weights, -30.0, 30.0)))
            slope = x.T @ (probability - y) + ridge @ weights
            curve = (x * (probability * (1.0 - probability))[:, None]).T @ x + ridge
            step = np.linalg.solve(curve, slope)
            weights = weights - step
            if np.abs(step).max() < _SMALL:
                break
    return weights


def of_regression(first: FloatArray, second: FloatArray, marks: tuple[Atoms, ...]) -> list[ScoreCandidate]:
    """A logistic regression by Newton's steps with a small ridge."""
    rows = min(_LINEAR_ROWS, first.shape[0], second.shape[0])
    both = np.concatenate([first[:rows], second[:rows]])
    encode = features(both, marks)
    x, y = encode(both), np.repeat([1.0, 0.0], rows)
    seen = x.any(axis=0)
    x = x[:, seen]
    fitted = np.zeros(seen.size)
    fitted[seen] = _logistic(x, y)
    words = "a linear function of the output"
    return both_ways(Linear(encode, fitted), words)


def of_weighted_columns(first: FloatArray, second: FloatArray, plain: Binned) -> list[ScoreCandidate]:
    """A sum of the columns' log ratios with learned weights, for columns that depend on each other.

    Where noise of one column is in others too, as in running sums, the plain sum counts what it tells several times.

    Args:
        first, second: outputs.
        plain: the sum of the log ratios, each with weight 1.
    """
    rows = min(_LINEAR_ROWS, first.shape[0], second.shape[0])
    both = np.concatenate([first[:rows], second[:rows]])
    x = np.column_stack(
        [
            np.ones(2 * rows),
            *(
                table[cut.cells(both[:, column])]
                for column, cut, table in zip(plain.columns, plain.cuts, plain.tables, strict=True)
            ),
        ]
    )
    weights = _logistic(x, np.repeat([1.0, 0.0], rows))[1:]
    tables = tuple(weight * table for weight, table in zip(weights.tolist(), plain.tables, strict=True))
    words = "a weighted sum of log ratios of the single numbers"
    return both_ways(Binned(plain.columns, plain.cuts, tables), words)


def _splits(column: FloatArray) -> bool:
    known = column[~np.isnan(column)]
    return bool(known.size) and (known.size < column.size or bool(known.min() < known.max()))


def of_boosting(first: FloatArray, second: FloatArray, columns: NDArray[np.int64]) -> list[ScoreCandidate]:
    """Boosted trees over these columns, on at most 30 000 rows a side.

    Raises:
        ImportError: the extra `trainers` is missing.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError as missing:
        raise ImportError(
            f"boosted trees over outputs of several numbers need {missing.name}: pip install 'ledgerwood[trainers]', "
            "or audit with learners='light'",
            name=missing.name,
        ) from missing
    rows = min(_ROWS, first.shape[0], second.shape[0])
    both = np.clip(np.concatenate([first[:rows, columns], second[:rows, columns]]), -_HUGE, _HUGE)
    # A column of one value, or of NaN alone, has nothing to split at.
    telling = np.array([_splits(column) for column in both.T], np.bool_)
    columns, both = columns[telling], both[:, telling]
    if not columns.size:
        return []
    model = HistGradientBoostingClassifier(
        max_iter=24, learning_rate=0.25, max_leaf_nodes=15, min_samples_leaf=30, early_stopping=False, random_state=0
    )
    with _one_thread():
        model.fit(both, np.repeat([1, 0], rows))
    words = "boosted trees over the output"
    return both_ways(Boosted(model, columns), words)


_SINGLE = 4
"""The largest number of columns with separate scores."""
_WIDE = 64
"""The largest number of columns for boosted trees."""
_FINALISTS, _LAST, _GROWTH, _HOPE = 4, 2, 4, 0.3
"""Candidates that are looked at again on more outputs, how many more, and how lucky they may have been until then."""


def candidates(
    first: FloatArray, second: FloatArray, *, names: tuple[str, ...], numeric: Numeric, learners: Learners
) -> list[ScoreCandidate]:
    """All scores, learned on these outputs of the two data sets, shape (n, k) each, k >= 1; each column varies.

    Args:
        first, second: outputs.
        names: the names of the columns.
        numeric, learners: as for `audit`.

    Raises:
        ImportError: boosted trees are wanted and scikit-learn is missing.
    """
    both = np.concatenate([first, second])
    telling = _telling(first, second)
    marks = tuple(atoms(column) for column in both.T)
    codes = [mark.codes(column) for mark, column in zip(marks, both.T, strict=True)]
    found = scores.of_numbers(first, second, tuple(telling[:_SINGLE]), names) + scores.of_patterns(
        first, second, marks, codes
    )
    if both.shape[1] > 1:
        plain = scores.of_columns(first, second)
        found += both_ways(plain, "a sum of log ratios of the single numbers")
        found += of_weighted_columns(first, second, plain) + of_regression(first, second, marks)
        if learners == "all" and _has_numbers(marks, codes):
            picked = np.array(sorted(telling[:_WIDE]))
            found += of_boosting(first, second, picked)
    if numeric == "bitwise":
        found += bits.of_bits(first, second, names)
    return found


def _telling(first: FloatArray, second: FloatArray) -> list[int]:
    """The columns, those whose distributions differ most first; in order where each of them is looked at anyway."""
    if first.shape[1] <= _SINGLE:
        return list(range(first.shape[1]))
    gaps = []
    for j in range(first.shape[1]):
        cut = bins_of(np.concatenate([first[:, j], second[:, j]]), most=16)
        a = np.bincount(cut.cells(first[:, j]), minlength=cut.number)
        b = np.bincount(cut.cells(second[:, j]), minlength=cut.number)
        gaps.append(float((np.abs(a - b) / np.sqrt(a + b + 1.0)).max()))
    return [int(j) for j in np.argsort(gaps)[::-1]]


def _has_numbers(marks: tuple[Atoms, ...], codes: list[IntArray]) -> bool:
    """Returns whether outputs are more than a few patterns of values that recur."""
    if any(np.mean(code == mark.number) > 1e-3 for mark, code in zip(marks, codes, strict=True)):
        return True
    return bool(np.unique(keys(codes)).size > 0.02 * codes[0].size)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The columns, scores and event that the test uses.

    Args:
        bound: the event for the bound on epsilon.
        point: the event for a point of the claim's curve; None if it has no points.
        attacks: the best attack at each point.
    """

    bound: Choice
    point: Choice | None
    attacks: tuple[Attack, ...]


def choose(draws: OutputDraws, found: list[ScoreCandidate], question: Question, *, n: int, rank: int) -> Chosen:
    """The events, on n fresh outputs a side.

    All candidates are ranked on the first `rank` of them; the best four see four times as many, the best two all.
    """
    left, seen = found, 0
    best: tuple[Attack, ...] | None = None
    parts: list[tuple[list[FloatArray], list[FloatArray]]] = [([], []) for _ in left]
    for size, most in _rounds(rank, n):
        for side in (0, 1):
            for values in draws.several(side, size - seen):
                for scored, part in zip(_scored(left, values), parts, strict=True):
                    part[side].append(scored)
        seen = size
        ranked = [
            tails(candidate, np.concatenate(part[0]), np.concatenate(part[1]))
            for candidate, part in zip(left, parts, strict=True)
        ]
        if best is None:  # all candidates are still there
            best = attacks(ranked, question)
        bound, point = _both(ranked, question, LUCK if size == n else _HOPE, most)
        finalists = dict.fromkeys(choice.candidate for choice in (*bound, *point))
        places = [place for place, candidate in enumerate(left) if candidate in finalists]
        left, parts = [left[place] for place in places], [parts[place] for place in places]
    return Chosen(bound=bound[0], point=point[0] if point else None, attacks=best or ())


def _scored(left: list[ScoreCandidate], values: FloatArray) -> Iterator[FloatArray]:
    """Scores of each candidate, shape (n,) each; a first step that several take is taken once."""
    known: dict[int, NDArray[Any]] = {}
    for candidate in left:
        score = candidate.score
        if isinstance(score, DerivedScores):
            step = score.first_step
            if id(step) not in known:
                known[id(step)] = step(values)
            yield score.finish(known[id(step)])
        else:
            yield score(values)


def _rounds(rank: int, n: int) -> list[tuple[int, int]]:
    """(outputs seen by then, candidates left after that): all, then four of each kind, then two."""
    rounds = [(rank, _FINALISTS), (_GROWTH * rank, _LAST)]
    return [(size, most) for size, most in rounds if size < n] + [(n, 1)]


def _both(seen: list[Tails], question: Question, luck: float, most: int) -> tuple[list[Choice], list[Choice]]:
    points = [choice for tail in seen if (choice := best_point(tail, question)) is not None]
    return top([best_bound(tail, question, luck) for tail in seen], most), top(points, most)
