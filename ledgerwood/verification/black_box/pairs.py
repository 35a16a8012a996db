"""The choice of a pair of data sets to audit: candidates, and a race among them on small samples."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import AuditFailed, InvalidParameter
from ledgerwood.verification.black_box.budget import Sizes
from ledgerwood.verification.black_box.outputs.draws import OutputDraws
from ledgerwood.verification.black_box.outputs.reading import varying
from ledgerwood.verification.black_box.result import Numeric
from ledgerwood.verification.black_box.scoring.choosing import Question
from ledgerwood.verification.black_box.scoring.fitting import Learners
from ledgerwood.verification.black_box.scoring.learning import candidates, choose

_LENGTHS = (1, 5, 10)
Pair = tuple[Any, Any]


def patterns(lengths: Iterable[int] = _LENGTHS) -> list[Pair]:
    """Vectors of answers to queries, each of which one row changes by 1 at most: shape (length,) each.

    Source: Ding et al. 2018 (StatDP), section 5; Bichsel et al. 2021 (DP-Sniper), section 6.
    """
    found: dict[tuple[bytes, bytes], Pair] = {}
    for size in lengths:
        ones, zeros = np.ones(size), np.zeros(size)
        one, half = zeros.copy(), zeros.copy()
        one[0], half[: size // 2] = 1.0, 1.0
        last = one[::-1].copy()
        cross = np.where(half > 0.0, 1.0, -1.0)
        for a, b in (
            (zeros, one), (zeros, last), (zeros, -one), (zeros, ones), (one, ones - one), (last, ones - last),
            (half, ones - half), (zeros, cross), (ones, half),
        ):  # fmt: skip
            if not np.array_equal(a, b):
                found.setdefault((a.tobytes(), b.tobytes()), (a, b))
    return list(found.values())


def best_pair(
    draws: OutputDraws,
    pairs: list[Any],
    asked: Question,
    *,
    sizes: Sizes,
    numeric: Numeric,
    learners: Learners,
    skip: bool,
) -> Pair:
    """The pair whose event promises most, by halving: all on 2000 outputs a side, the better half on twice as many.

    Where no pair has outputs that differ at all, the first one that can be drawn from.

    With `skip`, for patterns of our own, one on which the mechanism raises for both data sets is left out: it takes no
    vectors of that length.

    Raises:
        AuditFailed: the mechanism raised on one data set of a pair, or on every pair.
        InvalidParameter: no pairs.
    """
    left = [two(pair) for pair in pairs]
    if not left:
        raise InvalidParameter("pairs=() must be at least one pair of data sets (unit: pairs)")
    n = sizes.n
    size, number = sizes.search_first(len(left)), len(left)
    while True:
        ranked: list[tuple[float, int]] = []
        for index, pair in enumerate(left):
            draws.use(pair)
            fit = _outputs(draws, min(size, n), skip=skip)
            if fit is None:
                continue
            columns = varying(*fit, bits=numeric == "bitwise")
            merit = -math.inf
            if columns.size:
                merit = _merit(draws, draws.keep(columns.tolist(), fit), asked, numeric=numeric, learners=learners)
            ranked.append((merit, index))
        if not ranked:
            raise AuditFailed(f"none of {number} pairs can be audited: the sampler raised on both data sets of each")
        ranked.sort(key=lambda found: -found[0])
        left = [left[index] for _, index in ranked[: (len(ranked) + 1) // 2]]
        if len(left) == 1 or size >= n or ranked[0][0] == -math.inf:
            draws.use(left[0])
            return left[0]
        size *= 2


def _outputs(draws: OutputDraws, n: int, *, skip: bool) -> list[FloatArray] | None:
    """Outputs on both data sets; None where the mechanism raises on both and that may be skipped."""
    try:
        return draws.first(n)
    except AuditFailed:
        if skip and draws.fails(1, n):
            return None
        raise


def two(pair: Any) -> Pair:
    """A pair of data sets.

    Raises:
        InvalidParameter: not two of them.
    """
    try:
        first, second = pair
    except (TypeError, ValueError):
        raise _validate.fail("pair", pair, "two data sets", "data sets") from None
    return first, second


def _merit(
    draws: OutputDraws, fit: list[FloatArray], asked: Question, *, numeric: Numeric, learners: Learners
) -> float:
    n = fit[0].shape[0]
    found = candidates(fit[0], fit[1], names=draws.encoding.names, numeric=numeric, learners=learners)
    chosen = choose(draws, found, asked, n=n, rank=n)
    bound, point = chosen.bound, chosen.point
    if point is None or point.point is None:
        return bound.merit
    return point.merit if point.point.family else max(bound.power, point.power)
