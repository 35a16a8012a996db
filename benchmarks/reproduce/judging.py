"""Rules that turn measured values into a verdict. Each is a function, so that no verdict is written by hand.

A printed figure is *reached* where ours is at least as good within half a unit of its last digit and two standard
errors: of our mean, and of the printed one where the paper has its error. Where the mean falls short by more than a
tenth of the figure, and only the errors allow it, the figure is *open*: too few fits to tell. A cost is *covered* where
what is claimed is at least the exact one, relative slack 1e-9.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmarks.reproduce.items import Reading, Verdict
from benchmarks.reproduce.results import DOCS

ERRORS = 2.0
"""Standard errors of a mean that a comparison allows."""
SHORT = 0.1
"""The share of a printed figure by which a mean may fall short, where the errors allow it."""
SLACK = 1e-9


def text(value: float, digits: int = 3) -> str:
    """A value for a cell: as many decimals as asked for below 100, and in scientific notation where it is tiny."""
    if value != 0.0 and abs(value) < 10.0**-digits:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{digits}f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean of `count` scores with the spread (standard deviation) of one."""

    value: float
    spread: float = 0.0
    count: int = 1

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 for what has no chance in it."""
        return self.spread / math.sqrt(self.count)

    def __str__(self) -> str:
        return f"{text(self.value)} ({text(self.spread)})" if self.spread else text(self.value)


def cell_mean(cell: Mapping[str, Any], place: int, count: int) -> Mean:
    """A stored cell's mean and spread of the score at `place`, over `count` splits."""
    return Mean(value=cell["mean"][place], spread=cell["spread"][place], count=count)


def last_digit(printed: str) -> float:
    """One unit of the last printed digit: .01 of ".39", 1 of "66"."""
    _, point, decimals = printed.partition(".")
    return 10.0 ** -len(decimals.rstrip("%")) if point else 1.0


def is_reached(printed: str, ours: Mean, *, higher: bool) -> bool:
    """Whether ours is at least as good as a printed figure, which may have its standard error: ".747 ± .008"."""
    sign = 1.0 if higher else -1.0
    figure, _, error = printed.partition(" ± ")
    slack = 0.5 * last_digit(figure) * (1.0 + SLACK) + ERRORS * math.hypot(ours.error, float(error or 0.0))
    return sign * (ours.value - float(figure.rstrip("%"))) >= -slack


def is_open(printed: str, ours: Mean, *, higher: bool) -> bool:
    """Whether a printed figure is reached by the errors alone: our mean is more than a tenth of the figure short."""
    figure = float(printed.partition(" ± ")[0].rstrip("%"))
    short = (figure - ours.value) * (1.0 if higher else -1.0)
    return is_reached(printed, ours, higher=higher) and short > max(
        SHORT * abs(figure), 0.5 * last_digit(printed.partition(" ± ")[0])
    )


def reached(
    printed: Mapping[str, str], ours: Mapping[str, Mean], *, higher: bool, as_printed: Mapping[str, Mean] | None = None
) -> Reading:
    """Whether all printed points are reached by sound code, or at least with the noise as printed; keys name points.

    Where all are reached, but some are open, it cannot be judged.
    """
    hits = [point for point in printed if is_reached(printed[point], ours[point], higher=higher)]
    unsure = [point for point in printed if is_open(printed[point], ours[point], higher=higher)]
    cells = "; ".join(f"{point}: {ours[point]}" for point in printed)
    verdict: Verdict = "does not hold" if len(hits) < len(printed) else "cannot be judged" if unsure else "holds"
    as_text = ""
    if as_printed is not None:
        as_text = "; ".join(f"{point}: {as_printed[point]}" for point in printed if point in as_printed)
        best = {point: as_printed.get(point, ours[point]) for point in printed}
        also = all(
            is_reached(printed[p], best[p], higher=higher) and not is_open(printed[p], best[p], higher=higher)
            for p in printed
        )
        if verdict == "does not hold" and also:
            verdict = "holds with less noise"
    told = f", {len(unsure)} by errors only" if unsure else ""
    counted = f" [{len(hits)} of {len(printed)}{told}]" if len(printed) > 1 else " [by errors only]" if unsure else ""
    return Reading(ours=cells + counted, as_printed=as_text, verdict=verdict)


def ordered(
    better: Mapping[str, Mean],
    worse: Mapping[str, Mean],
    *,
    higher: bool,
    names: tuple[str, str],
    most: bool = False,
) -> Reading:
    """A claim that one method is above another at all points: no point may contradict it by two standard errors.

    It cannot be judged where no point confirms it by two standard errors either. With `most` it is a claim about most
    points, on which the method is better or about as good: fewer than half may contradict it.
    """
    sign = 1.0 if higher else -1.0
    gaps = {p: sign * (better[p].value - worse[p].value) for p in better}
    errors = {p: math.hypot(better[p].error, worse[p].error) for p in better}
    against = [p for p in gaps if gaps[p] < -ERRORS * errors[p]]
    clear = [p for p in gaps if gaps[p] > ERRORS * errors[p]]
    refuted_ = len(against) >= len(gaps) / 2 if most else bool(against)
    verdict: Verdict = "does not hold" if refuted_ else "holds" if clear else "cannot be judged"
    cells = "; ".join(f"{p}: {better[p]} / {worse[p]}" for p in better)
    said = f" [{names[0]} / {names[1]}; clearly better at {len(clear)}, clearly worse at {len(against)} of {len(gaps)}]"
    return Reading(ours=cells + said, verdict=verdict)


def paired(
    gaps: Mapping[str, Mean], *, higher: bool, cells: Mapping[str, str] | None = None, names: tuple[str, str]
) -> Reading:
    """A claim that one method is above another at all points, by paired differences (better less worse).

    The rule is `ordered`'s; differences on the same splits have a smaller error than the difference of means.

    Args:
        gaps: of each point.
        higher: True where a larger score is better.
        cells: what is shown for a point; None: its difference.
        names: of the two methods.
    """
    sign = 1.0 if higher else -1.0
    against = [p for p, gap in gaps.items() if sign * gap.value < -ERRORS * gap.error]
    clear = [p for p, gap in gaps.items() if sign * gap.value > ERRORS * gap.error]
    verdict: Verdict = "does not hold" if against else "holds" if clear else "cannot be judged"
    shown = "; ".join(f"{p}: {str(gaps[p]) if cells is None else cells[p]}" for p in gaps)
    counted = f"paired: clearly better at {len(clear)}, clearly worse at {len(against)} of {len(gaps)}"
    return Reading(ours=f"{shown} [{names[0]} / {names[1]}; {counted}]", verdict=verdict)


def alike(gaps: Mapping[str, Mean], *, margin: float, cells: Mapping[str, str], names: tuple[str, str]) -> Reading:
    """A claim that two methods are equally good, by paired differences: all are within a margin, errors included.

    It does not hold where a difference is beyond the margin by two standard errors, and cannot be judged where the
    errors allow both.

    Args:
        gaps: the difference of each point.
        margin: the largest difference that counts as none.
        cells: what is shown for a point, beside its difference.
        names: of the two methods.
    """
    beyond = [p for p, gap in gaps.items() if abs(gap.value) - ERRORS * gap.error > margin]
    within = [p for p, gap in gaps.items() if abs(gap.value) + ERRORS * gap.error <= margin]
    verdict: Verdict = "does not hold" if beyond else "holds" if len(within) == len(gaps) else "cannot be judged"
    shown = "; ".join(
        f"{p}: {cells[p]}, difference {gap.value:+.3f} ± {ERRORS * gap.error:.3f}" for p, gap in gaps.items()
    )
    counted = f"paired: surely within {text(margin)} at {len(within)}, surely beyond at {len(beyond)} of {len(gaps)}"
    return Reading(ours=f"{shown} [{names[0]} / {names[1]}; {counted}]", verdict=verdict)


def covered(claimed: float, exact: float, *, what: str) -> Reading:
    """A claimed cost, sensitivity or bound against the exact or the largest one that was found."""
    verdict: Verdict = "holds" if exact <= claimed * (1.0 + SLACK) else "does not hold"
    return Reading(ours=f"{what}: {text(exact, 5)}", as_printed=text(claimed, 5), verdict=verdict)


@cache
def _findings() -> Mapping[str, Mapping[str, Any]]:
    stored = json.loads((DOCS / "errata.json").read_text(encoding="utf-8"))
    return {entry["specimen"]: entry for entry in stored["findings"]}


def specimens(names: Sequence[str]) -> str:
    """What audits of the errata's specimens found, in one cell."""
    cells = []
    for name in names:
        found = _findings()[name]
        caught = f"caught: {found['test']}" if found["caught"] else "not caught"
        deltas = f"exact delta {found['exact_delta']:.3g}, claimed {found['claimed_delta']:.3g}"
        cells.append(f"{found['claim']}: {deltas}; {caught}")
    return "; ".join(cells)


def refuted(*names: str) -> Reading:
    """A statement that the errata's specimens refute: each is unsound and was caught."""
    if not names:
        raise ValueError("a refutation needs a specimen")
    sound = [name for name in names if not _findings()[name]["caught"]]
    if sound:
        raise ValueError(f"these specimens were not caught: {', '.join(sound)}")
    return Reading(ours="", as_printed=specimens(names), verdict="does not hold")
