"""How cautious the choice of an event should be: the expected bound of many known mechanisms, by the level of caution.

Of each mechanism the probabilities of all outputs are known (`families`): no case is audited by its samples alone. Each
repetition draws what an audit draws, learns the scores of patterns and of single numbers, chooses an event at each
level of `choosing.LUCK` from the same draws, and takes the mean bound of tests of that event.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy import special, stats

from benchmarks import auditing_samplers as draw
from benchmarks import auditing_truths as exact
from benchmarks.auditing_kinds import ANSWERS, HALVES, SPREAD, FloatArray, Pair, utilities
from ledgerwood.verification.black_box.budget import Counts
from ledgerwood.verification.black_box.choosing import LUCK, Question, Tails, best_bound, tails
from ledgerwood.verification.black_box.encoding import believed
from ledgerwood.verification.black_box.result import Side
from ledgerwood.verification.black_box.scores import ScoreCandidate, ValueScore

Found = dict[str, Any]
Ints = NDArray[np.int64]
LEVELS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
SETTINGS = ((2_000, 0.0), (100_000, 0.0), (100_000, 1e-5))
"""(Outputs a side, delta at which epsilon is bounded)."""
SEED, ALPHA, TESTS = 720_001, 0.05, 40
_LEARN = 400_000
_SIZES = (16, 128, 1024)


def families() -> dict[str, Pair]:
    """Probabilities of all outputs on two data sets, shape (k,) each; the random ones are the same in every call."""
    rng = np.random.default_rng(SEED)
    edges = np.concatenate([[-np.inf], np.arange(-400, 401) * 0.05, [np.inf]])
    ones = (np.arange(1024)[:, np.newaxis] >> np.arange(10) & 1).sum(axis=1)

    def numbers(law: Any) -> Pair:
        return np.diff(law(0.0).cdf(edges)), np.diff(law(1.0).cdf(edges))

    def responses(epsilon: float) -> Pair:
        yes = special.expit(epsilon)
        return yes**ones * (1.0 - yes) ** (10 - ones), (1.0 - yes) ** ones * yes ** (10 - ones)

    def both(law: Any, pair: Pair, *scales: Any) -> Pair:
        return law(pair[0], *scales), law(pair[1], *scales)

    found: dict[str, Pair] = {
        "svt1": both(exact.first_above, ANSWERS, 2.0, 4.0),
        "svt4": both(exact.first_above, ANSWERS, 4.0, 4.0 / 3.0),
        "svt5": both(exact.every_pattern, HALVES, 2.0, 0.0),
        "svt6": both(exact.every_pattern, SPREAD, 2.0, 2.0),
        "exponential, 10": both(draw.exponential_law, utilities(3.0)),
        "exponential, 1000": both(draw.exponential_law, utilities(1.0, 1000)),
        "response": (np.array([0.475, 0.175, 0.175, 0.175]), np.array([0.175, 0.475, 0.175, 0.175])),
        "ten responses, .3": responses(0.3),
        "ten responses, 1": responses(1.0),
        "Laplace, 1": numbers(lambda shift: stats.laplace(shift, 1.0)),
        "Laplace, 1/2": numbers(lambda shift: stats.laplace(shift, 0.5)),
        "two Laplace scales": numbers(lambda shift: stats.laplace(1.0 - 0.5 * shift, 1.0 - 0.5 * shift)),
        "normal, 1": numbers(lambda shift: stats.norm(shift, 1.0)),
        "normal, 3.73": numbers(lambda shift: stats.norm(shift, 3.73)),
        "Student's t": numbers(lambda shift: stats.t(3, shift)),
    }
    for size in _SIZES:
        for spread in (0.5, 1.5):
            for evenness in (0.3, 1.0):
                first = rng.dirichlet(np.full(size, evenness)) + 1e-15
                second = first * np.exp(spread * rng.normal(size=size))
                found[f"random, {size}, {spread:g}, {evenness:g}"] = (first / first.sum(), second / second.sum())
        falling = np.arange(1, size + 1) ** -1.5
        ratio = falling * np.exp(-np.linspace(0.0, 4.0, size))
        grown = (falling / falling.sum(), ratio / ratio.sum())
        found[f"rare tells more, {size}"], found[f"rare tells less, {size}"] = grown, grown[::-1]
    return found


def luck(repetitions: dict[int, int]) -> Found:
    """Mean bounds by setting, mechanism and level.

    Args:
        repetitions: by outputs a side.
    """
    found: Found = {}
    for n, delta in SETTINGS:
        asked = Question(delta=delta, claimed=math.inf, points=(), runs=2 * n, alpha=ALPHA, fair=False)
        rows = {}
        for place, (name, laws) in enumerate(track(families().items(), description="luck", transient=True)):
            bounds = np.array(
                [
                    _bounds(laws, asked, n, np.random.default_rng([SEED, place, n, again]))
                    for again in range(repetitions[n])
                ]
            )
            truth = exact.log_ratio(*laws)
            rows[name] = {
                "means": bounds.mean(axis=(0, 2)).tolist(),
                "above": (bounds > truth + 1e-9).mean(axis=(0, 2)).tolist(),
            }
        found[f"{n}, {delta:g}"] = {
            "n": n, "delta": delta, "repetitions": repetitions[n], "levels": list(LEVELS), "cases": rows,
        }  # fmt: skip
    return found


def _bounds(laws: Pair, asked: Question, n: int, rng: np.random.Generator) -> FloatArray:
    """Bounds of the tests of the event that each level chooses, shape (levels, TESTS)."""
    learned = min(n, _LEARN)
    seen = [rng.multinomial(learned, law) for law in laws]
    up, down = believed(seen[0], seen[1], (learned, learned))
    values = np.arange(laws[0].size, dtype=np.float64)
    scored: list[tuple[FloatArray, Side]] = [
        (up, "first"), (down, "second"), (values, "first"), (-values, "first"), (values, "second"), (-values, "second"),
    ]  # fmt: skip
    many = 3 * n
    chosen = [rng.multinomial(many, law) for law in laws]
    candidates = []
    for score, side in scored:
        own, other = (0, 1) if side == "first" else (1, 0)
        candidate = ScoreCandidate(score=ValueScore(0, 1.0), side=side, words="")
        tail = tails(candidate, *(np.repeat(score, times) for times in chosen))
        inside = [_at_least(score, law, tail.thresholds) for law in (laws[own], laws[other])]
        candidates.append((tail, inside))
    points = rng.random((2, TESTS))
    return np.array([_tested(candidates, asked, level, points) for level in LEVELS])


def _at_least(score: FloatArray, law: FloatArray, thresholds: FloatArray) -> FloatArray:
    """The probability of a score of at least each threshold."""
    order = np.argsort(score)
    tails_of = np.concatenate([np.cumsum(law[order][::-1])[::-1], [0.0]])
    return np.asarray(tails_of[np.searchsorted(score[order], thresholds)])


def _tested(
    candidates: list[tuple[Tails, list[FloatArray]]], asked: Question, level: float, points: FloatArray
) -> FloatArray:
    choices = [best_bound(tail, asked, level) for tail, _ in candidates]
    best = int(np.argmax([choice.merit for choice in choices]))
    choice, (tail, inside) = choices[best], candidates[best]
    at = int(np.searchsorted(tail.thresholds, choice.threshold))
    p, q = float(inside[0][at]), float(inside[1][at])
    hits = stats.binom.ppf(points[0], asked.runs, choice.coin * p).astype(np.int64)
    alarms = stats.binom.ppf(points[1], asked.runs, (1.0 - choice.coin) * q).astype(np.int64)
    return np.array(
        [
            Counts(
                inside=inside_it, other=beside, outside=asked.runs - inside_it - beside, runs=asked.runs,
                coin=choice.coin,
            ).epsilon_from_labels(delta=asked.delta, alpha=asked.alpha)
            for inside_it, beside in zip(hits.tolist(), alarms.tolist(), strict=True)
        ]
    )  # fmt: skip


def print_luck(found: Found, console: Console) -> None:
    """What each level gains over the least one."""
    own = next(iter(found.values()))
    table = Table(
        title=f"bounds by the level of caution, {len(own['cases'])} mechanisms: gain over {own['levels'][0]:g} in the "
        f"mean (of the mechanism that loses most); the audit takes {LUCK:g}",
        title_justify="left",
    )  # fmt: skip
    for column in ("outputs a side", "delta", *(f"{level:g}" for level in own["levels"][1:]), "most above the truth"):
        table.add_column(column, justify="right")
    for entry in found.values():
        means = np.array([row["means"] for row in entry["cases"].values()])
        gains = (means - means[:, :1])[:, 1:]
        above = max(max(row["above"]) for row in entry["cases"].values())
        cells = [f"{mean:+.3f} ({least:+.3f})" for mean, least in zip(gains.mean(0), gains.min(0), strict=True)]
        table.add_row(f"{entry['n']:,}", f"{entry['delta']:g}", *cells, f"{above:.1%}")
    console.print(table)
