"""The least noise multiplier for a target epsilon at delta 1e-5, by every library."""

from typing import Any

from rich.console import Console
from rich.table import Table

import ledgerwood as lw
from benchmarks.accounting import cases, sides
from benchmarks.accounting.cases import Target
from benchmarks.accounting.sides import Answer

COLUMNS = {
    "dpa PLD": ("dp-accounting", "losses"),
    "dpa Renyi": ("dp-accounting", "renyi"),
    "opacus PRV": ("opacus", "losses"),
    "opacus Renyi": ("opacus", "renyi"),
    "opacus CLT": ("opacus", "central limit"),
    "autodp Renyi": ("autodp", "renyi"),
    "autodp exact": ("autodp", "exact"),
    "prv-accountant": ("prv-accountant", "losses"),
}
"""Column to peer and method."""
_SLOW = {"opacus PRV": 1e5, "prv-accountant": 1e5, "dpa PLD": 1e5}  # longer plans take from 15 s to minutes
_STORED = {("dpa PLD", 10**6): (3.841245, 15.2e3)}  # (column, count) to multiplier and ms


def our_multiplier(target: Target, method: Any = "tightest", *, runs: int = 3) -> Answer:
    """By `calibrate`."""

    def calibrate(nudge: float) -> float:
        budget = lw.Budget(epsilon=target.epsilon * nudge, delta=cases.DELTA, adjacency=cases.ADD_REMOVE)
        return lw.calibrate(lambda s: cases.plan(cases.sampled(target.rate, target.count, s)), budget, method=method)

    return sides.ours(calibrate, runs=runs)


def ratio(answer: Answer, target: Target) -> float | None:
    """Multiplier over reference, less 1."""
    return None if "error" in answer else answer["value"] / target.reference - 1.0


def below(multiplier: float, target: Target) -> bool:
    """Whether too little noise: by more than half a unit of the reference's last digit."""
    return multiplier < target.reference - 0.5 * 10.0**-target.decimals


def offered(column: str, target: Target) -> bool:
    """Whether the library has this route: the closed form is for one draw, the random variables for sampled ones."""
    if column == "autodp exact":
        return target.rate == 1.0 and target.count == 1
    return target.rate < 1.0 or column not in ("prv-accountant", "autodp Renyi")


def _answers(column: str, slow: bool) -> list[Answer | None]:
    peer, method = COLUMNS[column]
    known: list[Answer | None] = []
    for target in cases.TARGETS:
        if not offered(column, target):
            known.append({"error": "NotImplementedError"})
        elif not slow and target.count > _SLOW.get(column, float("inf")):
            figure = _STORED.get((column, target.count))
            known.append(sides.NOT_RUN if figure is None else sides.stored(*figure))
        else:
            known.append(None)
    asked = [
        sides.question(
            "sigma", limit=900 if slow else 60, rate=target.rate, count=target.count, epsilon=target.epsilon,
            delta=cases.DELTA, method=method,
        )
        for target, answer in zip(cases.TARGETS, known, strict=True)
        if answer is None
    ]  # fmt: skip
    found = iter(sides.ask(peer, asked))
    return [next(found) if answer is None else answer for answer in known]


def measure(*, slow: bool) -> list[dict[str, Any]]:
    """A record for each target."""
    records: list[dict[str, Any]] = [
        {
            "rate": target.rate, "count": target.count, "epsilon": target.epsilon, "reference": target.reference,
            "ledgerwood": our_multiplier(target), "ledgerwood Renyi": our_multiplier(target, "renyi"),
        }
        for target in cases.TARGETS
    ]  # fmt: skip
    for column in COLUMNS:
        for record, answer in zip(records, _answers(column, slow), strict=True):
            record[column] = answer
    return records


def show(console: Console, found: list[dict[str, Any]]) -> None:
    """Print the table: multiplier, per cent above the reference, time."""
    libraries = ("ledgerwood", "ledgerwood Renyi", *COLUMNS)
    table = Table(
        title="noise multiplier for (epsilon, delta 1e-5): % above the reference; time; * stored, not run now"
    )
    for column in ("rate", "count", "epsilon", "reference", *libraries):
        table.add_column(column, justify="right", overflow="fold")
    for row, target in zip(found, cases.TARGETS, strict=True):

        def entry(answer: Answer, target: Target = target) -> str:
            above = ratio(answer, target)
            first = sides.cell(answer, "{:.8g}".format)
            mark = (
                "" if above is None else f"\n{100 * above:+.4f}%" + (" BELOW" if below(answer["value"], target) else "")
            )
            return first + mark + (f"\n{sides.milliseconds(answer)}" if sides.milliseconds(answer) else "")

        table.add_row(
            f"{row['rate']:.4g}", f"{row['count']:g}", f"{row['epsilon']:g}", f"{row['reference']:.9g}",
            *(entry(row[library]) for library in libraries),
        )  # fmt: skip
        table.add_section()
    console.print(table)
