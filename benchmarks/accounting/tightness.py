"""Epsilon of the same plans by every library, beside the reference."""

from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table

import ledgerwood as lw
from benchmarks.accounting import cases, inversion, sides
from benchmarks.accounting.cases import Case
from benchmarks.accounting.sides import Answer

STEP, EPSILON_ERROR = 1e-4, 0.01
COLUMNS = {
    "dpa above": ("dp-accounting", "losses_epsilon", {"step": STEP}),
    "dpa below": ("dp-accounting", "losses_epsilon", {"step": STEP, "pessimistic": False}),
    "prv": ("prv-accountant", "losses_epsilon", {"epsilon_error": EPSILON_ERROR}),
    "dpa renyi": ("dp-accounting", "renyi_epsilon", {}),
    "opacus renyi": ("opacus", "renyi_epsilon", {}),
    "autodp renyi": ("autodp", "renyi_epsilon", {}),
    "opacus gdp": ("opacus", "central_limit_epsilon", {}),
}
"""Column to peer, question and options. The last is a limit, not a bound."""
_NOT_RUN = {"prv": 3e6}  # more draws than that take minutes and gigabytes


def inside(low: float, high: float, case: Case) -> bool | None:
    """Whether the reference, to its digits, is in the interval; None where there is no reference."""
    if case.reference is None:
        return None
    room = 0.5 * 10.0**-case.decimals
    return low <= case.reference + room and case.reference - room <= high


def narrow(low: float, high: float) -> bool:
    """The goal: at most 1e-4 wide, or one part in a thousand."""
    return high < float("inf") and high - low <= max(1e-4, 1e-3 * high)


def our_interval(case: Case, *, runs: int = 3) -> Answer:
    """[lower, upper] by the default method."""
    (family, parameter, rate, count), *rest = case.draws

    def interval(nudge: float) -> list[float]:
        event = cases.plan(((family, parameter * nudge, rate, count), *rest))
        return list(lw.price(event).epsilon_interval(case.delta))

    return sides.ours(interval, runs=runs)


def _referred(case: Case) -> Case:
    """The case with a reference by inversion, where that has an answer: not for a supremum over pairs."""
    if any(family == "bounded_range" for family, *_ in case.draws):
        return case
    found = inversion.epsilon(case.draws, case.delta, lw.price(cases.plan(case.draws)).epsilon(case.delta))
    return case if found is None else replace(case, reference=round(found, case.decimals))


def _record(case: Case) -> dict[str, Any]:
    event = cases.plan(case.draws)
    quote = lw.price(event).quote(case.delta)
    return {
        "plan": cases.label(case.draws),
        "delta": case.delta,
        "reference": case.reference,
        "pure": event.pure_epsilon() if event.pure_epsilon() < 1e300 else None,
        "tightest": quote.epsilon,
        "method": quote.method,
        "certified": quote.certified,
        "interval": our_interval(case),
    }


def _answers(column: str, table: tuple[Case, ...], slow: bool) -> list[Answer]:
    """One column: asked where that is quick or `slow` is set, else as stored."""
    peer, ask, options = COLUMNS[column]

    def known(case: Case) -> Answer | None:
        if sum(count for *_, count in case.draws) > _NOT_RUN.get(column, float("inf")):
            return sides.NOT_RUN
        if slow or column not in (case.stored or {}):
            return None
        return sides.stored(case.stored[column], case.stored[f"{column} ms"])

    given = [known(case) for case in table]
    asked = [
        sides.question(ask, limit=600 if slow else 60, draws=case.draws, delta=case.delta, **options)
        for case, answer in zip(table, given, strict=True)
        if answer is None
    ]
    found = iter(sides.ask(peer, asked))
    return [next(found) if answer is None else answer for answer in given]


def measure(*, slow: bool) -> dict[str, list[dict[str, Any]]]:
    """The two tables, a record for each plan."""
    tables = {}
    others = tuple(_referred(case) for case in cases.OTHERS)
    for name, table in (("sampled", cases.SAMPLED), ("others", others)):
        records = [_record(case) for case in table]
        for column in COLUMNS:
            for record, answer in zip(records, _answers(column, table, slow), strict=True):
                record[column] = answer
        for record, case in zip(records, table, strict=True):
            if "value" in record["interval"]:
                low, high = record["interval"]["value"]
                record |= {"inside": inside(low, high, case), "narrow": narrow(low, high)}
        tables[name] = records
    return tables


def show(console: Console, found: dict[str, list[dict[str, Any]]]) -> None:
    """Print each table in two halves, ours and the peers'."""
    titles = {
        "sampled": "epsilon, Poisson-sampled Gaussian",
        "others": "epsilon, Laplace, mixed and bounded-range plans",
    }
    for name, records in found.items():
        console.print(_our_half(f"{titles[name]}: ledgerwood", records))
        console.print(_their_half(f"{titles[name]}: peers; * stored, not run now", records))


def _our_half(title: str, records: list[dict[str, Any]]) -> Table:
    table = Table(title=title)
    for column in (
        "plan", "delta", "reference", "pure sum", "lower", "upper", "width", "holds it", "in goal", "time", "quoted",
        "by", "certified",
    ):  # fmt: skip
        table.add_column(column, justify="left" if column in ("plan", "by") else "right", no_wrap=True)
    for row in records:
        interval = row["interval"]
        table.add_row(
            row["plan"], f"{row['delta']:g}", "" if row["reference"] is None else f"{row['reference']:.6f}",
            "" if row["pure"] is None else f"{row['pure']:g}",
            *(sides.cell(interval, lambda v, end=end: f"{v[end]:.6f}") for end in (0, 1)),
            sides.cell(interval, lambda v: f"{v[1] - v[0]:.1e}"), _verdict(row.get("inside")),
            _verdict(row.get("narrow")),
            sides.milliseconds(interval), f"{row['tightest']:.6f}", row["method"], _verdict(row["certified"]),
        )  # fmt: skip
    return table


def _their_half(title: str, records: list[dict[str, Any]]) -> Table:
    table = Table(title=title)
    for column in (
        "plan", "our upper", "dp-accounting PLD 1e-4", "prv-accountant .01", "time", "dp-accounting Renyi",
        "opacus Renyi", "autodp Renyi", "opacus CLT (no bound)",
    ):  # fmt: skip
        table.add_column(column, justify="left" if column == "plan" else "right", no_wrap=True)
    four = "{:.4f}".format
    for row in records:
        known = row["reference"]
        limit, clt = row["opacus gdp"], sides.cell(row["opacus gdp"], four)
        under = " UNDER" if known is not None and limit.get("value", known) < known - 1e-6 else ""
        table.add_row(
            row["plan"], sides.cell(row["interval"], lambda v: f"{v[1]:.6f}"),
            f"[{sides.cell(row['dpa below'], '{:.6f}'.format)}, {sides.cell(row['dpa above'], '{:.6f}'.format)}]",
            sides.cell(row["prv"], lambda v: f"[{v[0]:.4f}, {v[2]:.4f}]"), sides.milliseconds(row["prv"]),
            *(sides.cell(row[key], four) for key in ("dpa renyi", "opacus renyi", "autodp renyi")), clt + under,
        )  # fmt: skip
    return table


def _verdict(value: bool | None) -> str:
    return {True: "yes", False: "NO", None: ""}[value]
