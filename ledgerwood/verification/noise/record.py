"""All noise and all private choices that a fit draws, recorded as scores, and exact tests of them.

A choice's score is its rank in its distribution, from the best utility on: uniform if the choice is correct. None of
the samplers' arithmetic is used again. docs/explanation/noise-law.md#noise-law-choices and #noise-law-tests.
"""

import functools
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from ledgerwood import _validate
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.curator.queries.registry import name_of
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    Grid,
    GridlessMechanism,
    LaplaceMechanism,
    PermuteAndFlipMechanism,
    SkellamMechanism,
)
from ledgerwood.recording.opening import Hook, Point, recording
from ledgerwood.verification.noise.tails import tails_of

_TIMES, _WEIGHTS = (0.5 * array for array in np.polynomial.legendre.leggauss(192) + np.array([[1.0], [0.0]]))
"""Of the quadrature over arrival times: exact for 384 candidates, and within 1e-12 for any number of them."""


def choice_uniform(
    mechanism: object, given: Any, grid: Grid, counts: Any, chosen: Any, coins: np.random.Generator
) -> float:
    """Pr(better) + V Pr(the chosen one), V uniform in (0, 1]; of equal utilities the first one is better.

    Args:
        mechanism: the exponential one, grid-less or not, or permute-and-flip.
        given: utilities int64 (n,); of the grid-less one its candidates.
        grid: the grid of the utilities.
        counts: the counts of points a candidate, or None for 1 each.
        chosen: the chosen candidate.
        coins: draws V.

    Raises:
        InvalidParameter: a mechanism without a known distribution.
    """
    step = grid.steps[0]
    match mechanism:
        case ExponentialMechanism(rate=rate):
            utilities, place = given, int(chosen)
            probabilities = _exponential(given, rate * step, counts)
        case PermuteAndFlipMechanism(rate=rate):
            utilities, place = given, int(chosen)
            probabilities = _permute_and_flip(given, rate * step)
        case GridlessMechanism(rate=rate):
            cells = [feature.cells() for feature in given]
            utilities = np.concatenate([cell[2] for cell in cells])
            widths = [cell[1] * feature.weight for feature, cell in zip(given, cells, strict=True)]
            probabilities = _exponential(utilities, rate * step, np.concatenate(widths))
            before = sum(len(cell[0]) for cell in cells[: chosen.feature])
            place = before + int(np.searchsorted(cells[chosen.feature][0], chosen.point, side="right")) - 1
        case _:
            raise InvalidParameter(f"mechanism={mechanism!r} is a choice whose distribution is not known here")
    better = (utilities > utilities[place]) | ((utilities == utilities[place]) & (np.arange(len(utilities)) < place))
    tail = float(probabilities[better].sum()) + (1.0 - coins.random()) * float(probabilities[place])
    return min(max(tail, 1e-300), 1.0)


def _gaps(utilities: Any) -> FloatArray:
    gaps: FloatArray = (utilities.max().view(np.uint64) - utilities.view(np.uint64)).astype(np.float64)
    return gaps


def _exponential(utilities: Any, rate: float, counts: Any) -> FloatArray:
    weights = np.exp(-rate * _gaps(utilities)) * (1.0 if counts is None else counts)
    return np.asarray(weights / weights.sum())


def _permute_and_flip(utilities: Any, rate: float) -> FloatArray:
    """Give each candidate a uniform arrival time: i is taken at t if no other one's coin fell before.

    So p_i times the integral over t in (0, 1) of the product of 1 - p_j t over all others: a polynomial.
    """
    coins = np.exp(-rate * _gaps(utilities))
    left = np.log1p(-np.outer(coins, _TIMES))  # of a coin that is 1 too: no node is at the end
    others = np.exp(left.sum(axis=0) - left)
    found = coins * (others @ _WEIGHTS)
    return np.asarray(found / found.sum())


Family = Literal["Gaussian", "Laplace", "choices"]
Pairing = Literal["neighbours", "columns", "releases"]
Scale = tuple[float, float, float]
"""An estimate and its confidence interval."""
Additive = (
    GaussianMechanism
    | EllipticalGaussianMechanism
    | LaplaceMechanism
    | DiscreteGaussianMechanism
    | DiscreteLaplaceMechanism
    | SkellamMechanism
)
ADDITIVE = (
    GaussianMechanism,
    EllipticalGaussianMechanism,
    LaplaceMechanism,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    SkellamMechanism,
)
_CHOOSING = (ExponentialMechanism, PermuteAndFlipMechanism, GridlessMechanism)
_FAR = 2.0**-8
"""The tail whose numbers are counted: 2.9 standard deviations, or 5.5 scales of a Laplace law."""
_LEAST_REPEATED = 50
"""Numbers of one call in which a repetition is looked for."""
_UNMARKED = "words outside of a mechanism"


@final
@dataclass(slots=True)
class _Frame:
    """A call that is going on, and whether it drew words by itself."""

    what: str
    drew: bool = False


@final
class _Frames(threading.local):
    """The calls that are going on in one thread."""

    def __init__(self) -> None:
        self.stack: list[_Frame] = []


@final
@dataclass(slots=True)
class NoiseRecord:
    """Scores of all that was drawn, by family.

    Args:
        coins: the coins of the randomised tails.
        untested: draws without a test: kinds of choices, or words that no mechanism accounts for.
        unpaired: by the number of columns, scores of a release that waits for another one.
        repeats: the repeats of each call with enough numbers, the p-value of the distance at which its noise repeats
            itself most.
        frames: the calls that are going on.
    """

    coins: np.random.Generator
    tails: dict[Family, list[FloatArray]] = field(default_factory=dict)
    signs: dict[Family, list[FloatArray]] = field(default_factory=dict)
    pairs: dict[Pairing, list[FloatArray]] = field(default_factory=dict)
    untested: Counter[str] = field(default_factory=Counter)
    draws: int = 0
    unpaired: dict[int, FloatArray] = field(default_factory=dict)
    repeats: list[float] = field(default_factory=list)
    frames: _Frames = field(default_factory=_Frames)

    @contextmanager
    def within(self, what: str) -> Iterator[bool]:
        """A call is going on: "known" for noise and choices whose distribution is tested, else the name of what draws.

        Yields:
            Whether no known one is around it, so that it is tested itself.
        """
        stack = self.frames.stack
        outermost = all(frame.what != "known" for frame in stack)
        frame = _Frame(what)
        stack.append(frame)
        try:
            yield outermost
        finally:
            stack.pop()
            if frame.drew and outermost:
                self.untested[what] += 1

    def drawn(self) -> None:
        """Words were drawn: by the innermost call, if there is one; outside of all they are public structure."""
        stack = self.frames.stack
        if stack and stack[-1].what != "known":
            stack[-1].drew = True

    def sum(self, mechanism: Any, statistic: NDArray[np.int64], noisy: object, grid: Grid) -> None:
        """Record one release.

        Raises:
            InvalidParameter: what came out has another type or shape than what went in.
        """
        if not isinstance(noisy, np.ndarray) or (noisy.dtype, noisy.shape) != (statistic.dtype, statistic.shape):
            kind = f"{noisy.dtype} {noisy.shape}" if isinstance(noisy, np.ndarray) else type(noisy).__name__
            raise _validate.fail("randomise() result", kind, f"int64 {statistic.shape}", "grid steps")
        steps = np.subtract(noisy, statistic).reshape(-1, grid.columns)  # modulo 2**64, as it was added
        laplace = isinstance(mechanism, LaplaceMechanism | DiscreteLaplaceMechanism)
        family: Family = "Laplace" if laplace else "Gaussian"
        tails = tails_of(mechanism, steps, grid, self.coins)
        coins = np.where(self.coins.random(steps.shape) < 0.5, -1.0, 1.0)
        signs = np.where(steps == 0, coins, np.sign(steps))
        self._keep(family, tails.ravel(), signs.ravel())
        scores = _scores(tails, signs)
        self._pair(scores)
        if scores.size >= _LEAST_REPEATED:
            self.repeats.append(_repeated(scores.ravel()))

    def _pair(self, scores: FloatArray) -> None:
        """Numbers that would be the same if noise were drawn once for all rows, all columns, or all releases."""
        rows, columns = scores.shape
        even = scores[: rows - rows % 2].reshape(-1, 2, columns)
        self.pairs.setdefault("neighbours", []).append(np.moveaxis(even, 1, 2).reshape(-1, 2))
        if columns > 1:
            self.pairs.setdefault("columns", []).append(scores[:, : columns - columns % 2].reshape(-1, 2))
        before = self.unpaired.pop(columns, None)
        if before is None:
            self.unpaired[columns] = scores
            return
        both = min(len(before), rows)
        self.pairs.setdefault("releases", []).append(np.stack((before[:both].ravel(), scores[:both].ravel()), axis=1))

    def choice(self, mechanism: Any, given: Any, grid: Grid, counts: Any, chosen: Any) -> None:
        """Record one choice."""
        place = choice_uniform(mechanism, given, grid, counts, chosen, self.coins)
        self._keep("choices", np.array([place]), np.ones(1))

    def _keep(self, family: Family, tails: FloatArray, signs: FloatArray) -> None:
        self.tails.setdefault(family, []).append(tails)
        self.signs.setdefault(family, []).append(signs)
        self.draws += len(tails)


def noise_tests(record: NoiseRecord, alpha: float) -> tuple[tuple[tuple[str, float], ...], Scale | None]:
    """p-values of all tests by their names, and the noise's scale over the stated one, where it is one family."""
    found: list[tuple[str, float]] = []
    scale: Scale | None = None
    for family, parts in record.tails.items():
        tails = np.concatenate(parts)
        if family == "choices":
            found += [(f"choices: {name}", p) for name, p in _choice_tests(tails)]
            continue
        tests, scale = _sum_tests(family, tails, np.concatenate(record.signs[family]), alpha)
        found += [(f"{family}: {name}", p) for name, p in tests]
    found += [(name, _independence(np.concatenate(parts))) for name, parts in record.pairs.items()]
    if record.repeats:
        # The least of several p-values, one a call, times their number: a union bound.
        found.append(("repeats", min(1.0, min(record.repeats) * len(record.repeats))))
    return tuple(found), scale if len(record.tails) == 1 else None


def _scores(tails: FloatArray, signs: FloatArray) -> FloatArray:
    """N(0, 1), exactly, of uniform tails and fair signs."""
    return np.asarray(-signs * special.ndtri(0.5 * tails))


def _sum_tests(
    family: Family, tails: FloatArray, signs: FloatArray, alpha: float
) -> tuple[list[tuple[str, float]], Scale]:
    """p-values of scale, location, shape, how many lie far out, and how far; the scale and its interval."""
    n, scores = len(tails), _scores(tails, signs)
    law: Any
    if family == "Gaussian":
        total, law, power = float(scores @ scores), stats.chi2(n), 0.5
    else:
        total, law, power = float(-np.log(tails).sum()), stats.gamma(n), 1.0  # |x| / scale is Exp(1), exactly
    tests = [
        ("scale", _two_sided(law, total)),
        ("location", float(2.0 * stats.norm.sf(abs(scores.sum()) / math.sqrt(n)))),
        ("shape", _uniformity(special.ndtr(scores))),
        ("far", _two_sided(stats.binom(n, _FAR), int(np.count_nonzero(tails <= _FAR)), discrete=1)),
        ("farthest", _two_sided(stats.beta(1, n), float(tails.min()))),
    ]
    low, high = (total / float(law.isf(alpha / 2.0))) ** power, (total / float(law.ppf(alpha / 2.0))) ** power
    return tests, ((total / n) ** power, low, high)


def _choice_tests(places: FloatArray) -> list[tuple[str, float]]:
    """Places in (0, 1], from the best utility on: uniform if the distribution is right, small if the rate is larger."""
    law = stats.gamma(len(places))
    inside = np.maximum(1.0 - places, 1e-300)
    return [
        ("best", _two_sided(law, float(-np.log(places).sum()))),
        ("worst", _two_sided(law, float(-np.log(inside).sum()))),
        ("shape", _uniformity(places)),
    ]


def _two_sided(law: Any, value: float, *, discrete: int = 0) -> float:
    return min(1.0, 2.0 * min(float(law.cdf(value)), float(law.sf(value - discrete))))


def _independence(pairs: FloatArray) -> float:
    """Sums and differences of two independent normal scores are independent, and alike: an F test."""
    if not len(pairs):
        return 1.0
    sums, differences = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
    above, below = float(sums @ sums), float(differences @ differences)
    if min(above, below) == 0.0:  # the same number twice, again and again
        return 0.0
    return _two_sided(stats.f(len(pairs), len(pairs)), above / below)


def _repeated(scores: FloatArray) -> float:
    """Noise of one call that repeats itself, or its opposite, at any distance: the distance by correlations, then F.

    The correlations at all distances only say where to look; the exact test there is paid for by all of them.
    """
    n = len(scores)
    spectrum = np.fft.rfft(scores, 2 * n)
    products = np.fft.irfft(spectrum * spectrum.conj(), 2 * n)[1 : n // 2 + 1]
    distances = np.arange(1, n // 2 + 1)
    place = int(distances[np.argmax(np.abs(products) / np.sqrt(n - distances))])
    # Disjoint pairs: blocks of that length, each with the next one.
    blocks = n // (2 * place)
    both = scores[: 2 * place * blocks].reshape(blocks, 2, place)
    return min(1.0, _independence(np.moveaxis(both, 1, 2).reshape(-1, 2)) * len(distances))


def _uniformity(values: FloatArray) -> float:
    """Kolmogorov and Smirnov, exact."""
    n, rising = len(values), np.sort(values)
    above, below = np.arange(1, n + 1) / n - rising, rising - np.arange(n) / n
    return float(stats.kstwo.sf(max(above.max(), below.max()), n))


@contextmanager
def recorded(record: NoiseRecord) -> Iterator[None]:
    """All sums and choices of this thread or task go to the record, until it is closed.

    Raises:
        ReplayFailed: another recording is open here.
    """
    standing: dict[Point, Hook] = {
        "noise": _sum_hook,
        "choice": _choice_hook,
        "words": _words_hook,
        "release": _release_hook,
        "select": _release_hook,
        "sample": _coins_hook,
        "assign": _coins_hook,
        "allocate": _coins_hook,
    }
    with recording("record of noise", {point: functools.partial(hook, record) for point, hook in standing.items()}):
        yield


def _sum_hook(
    record: NoiseRecord, body: Callable[..., Any], mechanism: Any, statistic: Any, grid: Grid, source: Any
) -> Any:
    with record.within("known") as outermost:
        noisy = body(mechanism, statistic, grid, source)
    if outermost:
        record.sum(mechanism, statistic, noisy, grid)
    return noisy


def _choice_hook(record: NoiseRecord, body: Callable[..., Any], mechanism: Any, *given: Any, **named: Any) -> Any:
    if not isinstance(mechanism, _CHOOSING):
        # Made of noise or choices that are known, or not: its own words tell.
        with record.within(type(mechanism).__name__):
            return body(mechanism, *given, **named)
    with record.within("known") as outermost:
        chosen = body(mechanism, *given, **named)
    if outermost:
        record.choice(mechanism, given[0], given[1], named.get("counts"), chosen)
    return chosen


def _release_hook(
    record: NoiseRecord, body: Callable[..., Any], round_: Any, query: Any, mechanism: Any, *, purpose: str
) -> Any:
    before = record.draws, record.untested.total()
    with record.within(_UNMARKED):
        released = body(round_, query, mechanism, purpose=purpose)
    if (record.draws, record.untested.total()) == before:  # whoever checks fails closed
        record.untested[f"{name_of(query)} without noise"] += 1
    return released


def _coins_hook(record: NoiseRecord, body: Callable[..., Any], *arguments: Any) -> Any:
    with record.within("known"):
        return body(*arguments)


def _words_hook(record: NoiseRecord, body: Callable[..., Any], source: Any, n: int) -> Any:
    record.drawn()
    return body(source, n)
