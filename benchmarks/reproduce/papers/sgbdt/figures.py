"""S-GBDT: a row for each figure, table and headline, the studies that they read, and their pictures."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks import drawing
from benchmarks.reproduce.items import Found, Reading, Verdict
from benchmarks.reproduce.judging import ERRORS, Mean, ordered, reached, text
from benchmarks.reproduce.papers.sgbdt.runs import AS_PUBLISHED

R2, ACCURACY = 1, 1
"""Places of what the paper reports in a stored cell; the first score is RMSE or AUC."""


def of(cell: Mapping[str, Any], count: int, *, error: bool = False) -> Mean:
    """R2, or with `error` the error in percent, of a stored cell."""
    mean, spread = cell["mean"][R2], cell["spread"][R2]
    return Mean(value=100.0 * (1.0 - mean) if error else mean, spread=100.0 * spread if error else spread, count=count)


def best(row: Mapping[str, Any], count: int, start: str = "", *, error: bool = False) -> tuple[str, Mean]:
    """The best setting whose name begins with `start`, by the rows held out, as the paper chose."""
    own = {
        name: of(cell, count, error=error) for name, cell in row.items() if name.startswith(start) and cell_like(cell)
    }
    own.pop("as printed", None)
    name = min(own, key=lambda key: own[key].value if error else -own[key].value)
    return name, own[name]


def cell_like(value: Any) -> bool:
    """Whether a stored value is a cell."""
    return isinstance(value, dict) and "mean" in value


def at_points(printed: Mapping[str, str], *, error: bool = False) -> Callable[[Found], Reading]:
    """A reading of printed scores: the best setting, and the defaults with Algorithm 7's noise as printed."""

    def read(found: Found) -> Reading:
        rows, count = found["rows"], found["splits"]
        ours = {point: best(rows[point], count, error=error)[1] for point in printed}
        as_printed = {point: of(rows[point]["as printed"], count, error=error) for point in printed}
        reading = reached(printed, ours, higher=not error, as_printed=as_printed)
        real = "; ".join(f"{point}: {rows[point]['real_epsilon']:.2f}" for point in printed)
        return Reading(
            ours=reading.ours,
            as_printed=f"{reading.as_printed} (its noise really costs epsilon {real})",
            verdict=reading.verdict,
        )

    return read


def beside_dpboost(printed: Mapping[str, str], *, error: bool = False) -> Callable[[Found], Reading]:
    """A reading of DPBoost's printed scores: the best of its settings."""

    def read(found: Found) -> Reading:
        ours = {point: best(found["rows"][point], found["splits"], "DPBoost", error=error)[1] for point in printed}
        return reached(printed, ours, higher=not error)

    return read


def above(upper: str, lower: str, *, error: bool = False, most: float = math.inf) -> Callable[[Found], Reading]:
    """A reading: the best setting of one system is above the best of another at every epsilon."""

    def read(found: Found) -> Reading:
        cells, clear, against = [], 0, 0
        points = [point for point in found["rows"] if float(point) <= most]
        for point in points:
            row, count = found["rows"][point], found["splits"]
            (_, better), (_, worse) = best(row, count, upper, error=error), best(row, count, lower, error=error)
            gap = (worse.value - better.value) if error else (better.value - worse.value)
            spread = math.hypot(better.error, worse.error)
            clear, against = clear + (gap > ERRORS * spread), against + (gap < -ERRORS * spread)
            cells.append(f"{point}: {better} / {worse}")
        verdict: Verdict = "does not hold" if against else "holds" if clear else "cannot be judged"
        plain = of(found["non_private"], 5, error=error) if "non_private" in found else None
        told = f"; not private {plain}" if plain else ""
        return Reading(
            ours="; ".join(cells) + f" [{upper} / {lower}; clearly better at {clear} of {len(points)}]{told}",
            verdict=verdict,
        )

    return read


def paired(group: str | None, first: str, other: str, *, error: bool = False) -> Callable[[Found], Reading]:
    """A reading of a claim that `first` is better than `other`, of differences paired by split.

    Args:
        group: of the stored rows; None: the rows themselves, or all of their groups.
        first, other: one of them is what the stored differences are taken from.
        error: the claim is about an error in percent.
    """

    def read(found: Found) -> Reading:
        cells, gaps = [], []
        for point, row in found["rows"].items():
            for name, members in groups(row, group):
                base, moved = (first, other) if next(iter(members)) == first else (other, first)
                if next(iter(members)) != base:
                    raise ValueError(f"differences of {name} are not taken from {first!r} or {other!r}")
                sign = 1.0 if moved == first else -1.0  # both measures: more is better
                stored = members[moved]["paired"]
                gaps.append(Mean(value=sign * stored["mean"][R2], spread=stored["spread"][R2], count=found["splits"]))
                both = (of(members[key], found["splits"], error=error) for key in (first, other))
                cells.append(f"{name}{point}: " + " / ".join(map(str, both)))
        clear = sum(gap.value > ERRORS * gap.error for gap in gaps)
        against = sum(gap.value < -ERRORS * gap.error for gap in gaps)
        verdict: Verdict = "does not hold" if against else "holds" if clear else "cannot be judged"
        told = f" [{first} / {other}; paired: clearly better at {clear}, clearly worse at {against} of {len(gaps)}]"
        return Reading(ours="; ".join(cells) + told, verdict=verdict)

    return read


def groups(row: Mapping[str, Any], group: str | None) -> list[tuple[str, Mapping[str, Any]]]:
    """The groups of a stored row that are asked for, each with a prefix for its cells."""
    if group is not None:
        return [("", row[group])]
    if all(cell_like(value) for value in row.values()):
        return [("", row)]
    return [(f"{name}, ", members) for name, members in row.items()]


Variant = tuple[str, str]
"""A stored ablation's group and name."""
LEARNED: Variant = ("defaults", "no filter, dynamic, clipped")


def of_variant(found: Found, variant: Variant, *, error: bool = False) -> dict[str, Mean]:
    """A stored ablation's scores by epsilon, over the folds of all seeds."""
    (row,) = (row for row in found["rows"] if (row["group"], row["name"]) == variant)
    return {f"{cell['epsilon']:g}": of(cell, found["splits"], error=error) for cell in row["cells"]}


def part(with_it: Variant, without: Variant, *others: Variant, error: bool = False) -> Callable[[Found], Reading]:
    """A reading of a stored ablation: with a part against without it; further variants are shown beside."""

    def read(found: Found) -> Reading:
        better, worse = (of_variant(found, variant, error=error) for variant in (with_it, without))
        base = ordered(better, worse, higher=not error, names=(with_it[1], without[1]))
        more = "".join(
            f"; {': '.join(variant)}: "
            + ", ".join(f"{p}: {m}" for p, m in of_variant(found, variant, error=error).items())
            for variant in others
        )
        return Reading(ours=base.ours + more, verdict=base.verdict)

    return read


def at_less(epsilon: str, printed: str) -> Callable[[Found], Reading]:
    """A reading of a printed error by our defaults at a smaller epsilon, of stored ablations."""

    def read(found: Found) -> Reading:
        ours = of_variant(found, LEARNED, error=True)[epsilon]
        return reached({f"epsilon {epsilon}": printed}, {f"epsilon {epsilon}": ours}, higher=False)

    return read


def curve_of(found: Found, start: str, *, error: bool = False) -> tuple[list[float], list[float]]:
    """Epsilons and the best mean at each."""
    rows = found["rows"]
    return [float(p) for p in rows], [best(rows[p], found["splits"], start, error=error)[1].value for p in rows]


def least_epsilon(epsilons: list[float], scores: list[float], score: float) -> float:
    """The least epsilon that reaches a score: the upper envelope, linear in log epsilon; nan where none does."""
    reached_by = np.maximum.accumulate(scores)
    if score > reached_by[-1]:
        return math.nan
    place = int(np.argmax(reached_by >= score))
    if place == 0:
        return epsilons[0]
    low, high = reached_by[place - 1], reached_by[place]
    part = (score - low) / (high - low)
    return float(math.exp(math.log(epsilons[place - 1]) * (1 - part) + math.log(epsilons[place]) * part))


def factor(found: Found) -> Reading:
    """How many times less epsilon S-GBDT needs than DPBoost, for the scores that DPBoost has from epsilon .5 on.

    Beside the best DPBoost stands its published size; the verdict is by the former, since the paper tuned it, too. A
    factor that only two standard errors of both means allow is not judged.
    """
    own, texts = curve_of(found, "S-GBDT"), []
    most: dict[str, tuple[float, float]] = {}  # as measured, and with two standard errors
    error = max(best(row, found["splits"], "S-GBDT")[1].error for row in found["rows"].values())
    for name, start in (("best DPBoost", "DPBoost"), (f"DPBoost, {AS_PUBLISHED}", f"DPBoost, {AS_PUBLISHED}")):
        cells, most[name] = [], (0.0, 0.0)
        for epsilon, score in zip(*curve_of(found, start), strict=True):
            needed = least_epsilon(*own, score)
            if epsilon < 0.5 or score <= 0.0 or not math.isfinite(needed):
                continue
            allowed = ERRORS * math.hypot(best(found["rows"][f"{epsilon:g}"], found["splits"], start)[1].error, error)
            low, high = (epsilon / least_epsilon(*own, score + sign * allowed) for sign in (1.0, -1.0))
            most[name] = max(most[name][0], epsilon / needed), max(most[name][1], high)
            least = " or more" if needed == own[0][0] else ""
            more = " or more" if high == epsilon / own[0][0] else ""
            spread = f" ({low:.0f} to {high:.0f}{more})" if high > low else ""
            cells.append(
                f"R2 {text(score, 2)} at {epsilon:g} and {needed:.2g}, {epsilon / needed:.0f} times{least}{spread}"
            )
        texts.append(f"{name}: " + ("; ".join(cells) or "no R2 above 0 from .5 on"))
    measured, possible = most["best DPBoost"]
    verdict: Verdict = "holds" if measured >= 65.5 else "cannot be judged" if possible >= 65.5 else "does not hold"
    return Reading(ours=". ".join(texts), verdict=verdict)


def spent(found: Found) -> Reading:
    """Mean spent epsilon, without and with the filter's extra trees."""
    without, with_it = found["no filter, mean"][0], found["100 extra trees, mean"][0]
    return Reading(
        ours=f"mean spent epsilon of budget .5: {text(without)} to {text(with_it)} with 100 extra trees",
        verdict="holds" if with_it > without else "does not hold",
    )


def shrinks(found: Found) -> Reading:
    """n times the spread of a leaf's value does not grow with n."""
    spreads = {int(rows): value for rows, value in found["spreads"].items()}
    first = spreads[min(spreads)]
    verdict: Verdict = "holds" if max(spreads.values()) <= first * (1 + 1e-9) else "does not hold"
    cells = "; ".join(f"n = {rows:,}: {text(value, 2)}" for rows, value in spreads.items())
    return Reading(ours=f"n times the standard deviation: {cells}", verdict=verdict)


ALMOST = ".10"
"""Total variation up to which a choice counts as almost uniform here; the paper has no number."""


def uniform(found: Found) -> Reading:
    """Distance of the root's choice from no choice."""
    shares = {f"epsilon {epsilon}": Mean(value=value) for epsilon, value in found["distance"].items()}
    reading = reached(dict.fromkeys(shares, ALMOST), shares, higher=False)
    whole = "; ".join(f"epsilon {epsilon}: {text(value)}" for epsilon, value in found["all rows"].items())
    return Reading(
        ours=f"total variation from no choice: {reading.ours}; one tree on all rows: {whole}", verdict=reading.verdict
    )


def averages(found: Found) -> Reading:
    """Algorithm 9's averages against one sum over all clients."""
    cells, lost = [], False
    for name, entry in found.items():
        rows, count = entry["rows"], entry["splits"]
        means = {
            k: Mean(value=v["planned noise"]["mean"], spread=v["planned noise"]["spread"], count=count)
            for k, v in rows.items()
        }
        one = means["one sum"]
        for mean in means.values():
            lost |= one.value - mean.value > ERRORS * math.hypot(one.error, mean.error)
        cells.append(f"{name}, {entry['measure']}: " + ", ".join(f"{label} {mean}" for label, mean in means.items()))
    return Reading(ours="; ".join(cells), verdict="does not hold" if lost else "holds")


def plain(printed: Mapping[str, str], *, error: bool = False) -> Callable[[Found], Reading]:
    """A reading of what is reached without privacy."""

    def read(found: Found) -> Reading:
        ours = of(found["non_private"], min(found["splits"], 5), error=error)
        return reached(printed, dict.fromkeys(printed, ours), higher=not error)

    return read


# ------------------------------------------------------------------------------------------------------------ pictures


def _line(axis: Any, mark: str, name: str, points: list[float], means: list[Mean]) -> None:
    """A method's means against its points, with their spread."""
    values, spreads = [m.value for m in means], [m.spread for m in means]
    axis.errorbar(points, values, spreads, fmt=f"{mark}-", markersize=4, capsize=2, label=name)


def drawn(starts: Mapping[str, str], label: str, *, error: bool = False) -> Callable[[Found], Any]:
    """Scores against epsilon, one line a name, the best setting of each."""

    def draw(found: Found) -> Any:
        figure, (axis,) = drawing.panels(1)
        for mark, (name, start) in zip(drawing.MARKERS, starts.items(), strict=False):
            rows, count = found["rows"], found["splits"]
            points = [float(point) for point in rows]
            means = [best(rows[point], count, start, error=error)[1] for point in rows]
            _line(axis, mark, name, points, means)
        if "non_private" in found:
            axis.axhline(of(found["non_private"], 1, error=error).value, color="gray", linewidth=1, label="not private")
        axis.set_xscale("log")
        axis.set_xlabel("epsilon")
        axis.set_ylabel(label)
        if not error:
            axis.set_ylim(bottom=max(axis.get_ylim()[0], -0.2))
        else:
            axis.set_ylim(30.0, 12.0)  # higher is better, as in the paper
        drawing.legend(axis)
        figure.tight_layout()
        return figure

    return draw


def drawn_groups(label: str, *, error: bool = False) -> Callable[[Found], Any]:
    """Scores against epsilon, a panel a group."""

    def draw(found: Found) -> Any:
        groups = list(next(iter(found["rows"].values())))
        figure, axes = drawing.panels(len(groups))
        for axis, group in zip(axes, groups, strict=True):
            names = list(next(iter(found["rows"].values()))[group])
            for mark, name in zip(drawing.MARKERS, names, strict=False):
                means = [of(row[group][name], found["splits"], error=error) for row in found["rows"].values()]
                points = [float(point) for point in found["rows"]]
                _line(axis, mark, name, points, means)
            axis.set_xscale("log")
            axis.set_title(group, fontsize=9)
            axis.set_xlabel("epsilon")
            axis.set_ylabel(label)
            if error:
                axis.invert_yaxis()
            else:
                axis.set_ylim(bottom=max(axis.get_ylim()[0], -0.5))
            drawing.legend(axis)
        figure.tight_layout()
        return figure

    return draw


def draw_spent(found: Found) -> Any:
    """Figure 3: rows sorted by what they have lost."""
    figure, (axis,) = drawing.panels(1)
    for name, values in found.items():
        if len(values) > 1:
            axis.plot(np.linspace(0.0, 1.0, len(values)), values, label=name)
        else:
            axis.axhline(values[0], linestyle=":", color="gray")
    axis.set_xlabel("rows, sorted")
    axis.set_ylabel("spent epsilon (means dotted)")
    drawing.legend(axis)
    figure.tight_layout()
    return figure


def draw_lengths(found: Found) -> Any:
    """R2 by the number of rows."""
    figure, (axis,) = drawing.panels(1)
    for mark, name in zip(drawing.MARKERS, ("S-GBDT", "DPBoost"), strict=False):
        means = [of(row[name], found["splits"]) for row in found["rows"].values()]
        lengths = [float(length) for length in found["rows"]]
        _line(axis, mark, name, lengths, means)
    axis.set_xlabel("rows for training")
    axis.set_ylabel("R2, epsilon .54")
    axis.set_ylim(bottom=max(axis.get_ylim()[0], -0.5))
    drawing.legend(axis)
    figure.tight_layout()
    return figure
