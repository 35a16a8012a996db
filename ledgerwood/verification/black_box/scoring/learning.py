"""From learning draws to the candidates worth choosing among."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.verification.black_box.outputs import bits
from ledgerwood.verification.black_box.outputs.draws import OutputDraws
from ledgerwood.verification.black_box.outputs.encoding import Atoms, atoms, keys
from ledgerwood.verification.black_box.outputs.encoding import bins as bins_of
from ledgerwood.verification.black_box.result import Numeric
from ledgerwood.verification.black_box.scoring import fitting, scores
from ledgerwood.verification.black_box.scoring.choosing import (
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
from ledgerwood.verification.black_box.scoring.counting import IntArray
from ledgerwood.verification.black_box.scoring.fitting import Learners
from ledgerwood.verification.black_box.scoring.scores import DerivedScores, ScoreCandidate

_SINGLE = 4
"""So many columns have scores of their own."""
_WIDE = 64
"""Boosted trees see so many columns at most."""
_FINALISTS, _LAST, _GROWTH, _HOPE = 4, 2, 4, 0.3
"""Candidates that are looked at again on more outputs, how many more, and how lucky they may have been until then."""


def candidates(
    first: FloatArray, second: FloatArray, *, names: tuple[str, ...], numeric: Numeric, learners: Learners
) -> list[ScoreCandidate]:
    """All scores, learned on these outputs of the two data sets, shape (n, k) each, k >= 1; each column varies.

    Args:
        first, second: outputs.
        names: of the columns.
        numeric, learners: as for `audit`.

    Raises:
        ImportError: boosted trees are wanted and scikit-learn is missing.
    """
    both = np.concatenate([first, second])
    columns = _telling(first, second)
    marks = tuple(atoms(column) for column in both.T)
    codes = [mark.codes(column) for mark, column in zip(marks, both.T, strict=True)]
    found = scores.of_numbers(first, second, columns, names) + scores.of_patterns(first, second, marks, codes)
    if both.shape[1] > 1:
        found += scores.of_columns(first, second) + fitting.of_regression(first, second, marks)
        if learners == "all" and _has_numbers(marks, codes):
            picked = np.array(sorted(_telling(first, second, _WIDE)))
            found += fitting.of_boosting(first, second, picked)
    if numeric == "bitwise":
        found += bits.of_bits(first, second, names)
    return found


def _telling(first: FloatArray, second: FloatArray, most: int = _SINGLE) -> tuple[int, ...]:
    """The columns whose distributions differ most, at most `most` of them."""
    if first.shape[1] <= most:
        return tuple(range(first.shape[1]))
    gaps = []
    for j in range(first.shape[1]):
        cut = bins_of(np.concatenate([first[:, j], second[:, j]]), most=16)
        a = np.bincount(cut.cells(first[:, j]), minlength=cut.number)
        b = np.bincount(cut.cells(second[:, j]), minlength=cut.number)
        gaps.append(float((np.abs(a - b) / np.sqrt(a + b + 1.0)).max()))
    return tuple(int(j) for j in np.argsort(gaps)[::-1][:most])


def _has_numbers(marks: tuple[Atoms, ...], codes: list[IntArray]) -> bool:
    """Returns whether outputs are more than a few patterns of values that recur."""
    if any(np.mean(code == mark.number) > 1e-3 for mark, code in zip(marks, codes, strict=True)):
        return True
    return bool(np.unique(keys(codes)).size > 0.02 * codes[0].size)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the test will look at.

    Args:
        bound: the event for the bound on epsilon.
        point: the event for a point of the claim's curve; None where it has no points.
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
