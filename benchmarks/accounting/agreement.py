"""Random plans against dp-accounting's optimistic and pessimistic losses: who contradicts whom, and who is right."""

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import ledgerwood as lw
from benchmarks.accounting import cases, inversion, sides
from benchmarks.accounting.cases import Case, Draw

PLANS, SEED, STEP = 60, 20, 1e-4
ROOM = 1e-7  # of the judge, relative to 1 + epsilon


def random_cases(plans: int = PLANS, seed: int = SEED) -> list[Case]:
    """One to three kinds of Gaussian and Laplace draws, sampled or not, up to 3000 of each; delta 1e-10 to 1e-2."""
    rng = np.random.default_rng(seed)

    def draw() -> Draw:
        family = str(rng.choice(["gaussian", "laplace"]))
        rate = 1.0 if rng.random() < 0.35 else float(10 ** rng.uniform(-3, -0.05))
        return family, float(10 ** rng.uniform(-0.4, 1.5)), rate, int(10 ** rng.uniform(0, 3.5))

    return [
        Case(draws=tuple(draw() for _ in range(rng.integers(1, 4))), delta=float(10 ** rng.uniform(-10, -2)))
        for _ in range(plans)
    ]


def contradictions(ours: tuple[float, float, float], theirs: tuple[float, float]) -> list[str]:
    """What cannot be true if both libraries' bounds are.

    Args:
        ours: lower, upper and tightest epsilon.
        theirs: optimistic and pessimistic epsilon.
    """
    low, high, tightest = ours
    optimistic, pessimistic = theirs
    found = {
        "lower above pessimistic": low > pessimistic,
        "upper below optimistic": high < optimistic,
        "tightest below optimistic": tightest < optimistic,
        "crossed": low > high or low > tightest,
    }
    return [name for name, wrong in found.items() if wrong]


def refuted(judge: float | None, bounds: tuple[float, float]) -> bool | None:
    """Whether the judge's epsilon, near 1e-7, is outside of bounds; None where it has no answer."""
    if judge is None:
        return None
    room = ROOM * (1.0 + judge)
    return not bounds[0] - room <= judge <= bounds[1] + room


def measure(*, slow: bool) -> list[dict[str, Any]]:
    """A record for each plan."""
    del slow
    drawn, records = random_cases(), []
    for case in drawn:
        event = cases.plan(case.draws)
        answer = sides.ours(
            lambda _, event=event, case=case: lw.price(event, method="pld").epsilon_interval(case.delta)
        )
        tightest = lw.price(event).epsilon(case.delta)
        records.append({"plan": cases.label(case.draws), "delta": case.delta, "interval": answer, "tightest": tightest})
    for key, pessimistic in (("optimistic", False), ("pessimistic", True)):
        questions = [
            sides.question("losses_epsilon", draws=case.draws, delta=case.delta, step=STEP, pessimistic=pessimistic)
            for case in drawn
        ]
        for record, answer in zip(records, sides.ask("dp-accounting", questions), strict=True):
            record[key] = answer
    for record, case in zip(records, drawn, strict=True):
        if all("value" in record[key] for key in ("interval", "optimistic", "pessimistic")):
            low, high = record["interval"]["value"]
            theirs = record["optimistic"]["value"], record["pessimistic"]["value"]
            judge = inversion.epsilon(case.draws, case.delta, min(high, record["tightest"]))
            record |= {
                "contradictions": contradictions((low, high, record["tightest"]), theirs), "judge": judge,
                "ours refuted": refuted(judge, (low, min(high, record["tightest"]))),
                "theirs refuted": refuted(judge, theirs),
            }  # fmt: skip
    return records


def show(console: Console, found: list[dict[str, Any]]) -> None:
    """Print the counts, and every plan with a contradiction or without an answer."""
    compared = [record for record in found if "contradictions" in record]
    contradicted = [record for record in compared if record["contradictions"]]
    judged = [record for record in compared if record["judge"] is not None]
    table = Table(title=f"agreement with dp-accounting's \\[optimistic, pessimistic] at step {STEP:g}; random plans")
    for column in (
        "plans", "compared", "contradicted", "of them undecided", "judged", "ours refuted", "theirs refuted",
        "our upper is the lower", "our width, median", "theirs, median",
    ):  # fmt: skip
        table.add_column(column, justify="right")
    widths = [record["interval"]["value"][1] - record["interval"]["value"][0] for record in compared]
    theirs = [record["pessimistic"]["value"] - record["optimistic"]["value"] for record in compared]
    lower = sum(record["interval"]["value"][1] <= record["pessimistic"]["value"] for record in compared)
    counts = (
        len(found), len(compared), len(contradicted), sum(record["judge"] is None for record in contradicted),
        len(judged),
        sum(record["ours refuted"] for record in judged), sum(record["theirs refuted"] for record in judged), lower,
    )  # fmt: skip
    table.add_row(*map(str, counts), f"{np.median(widths):.1e}", f"{np.median(theirs):.1e}")
    console.print(table)
    console.print("judge: inversion of the loss's transform at the saddle point, where that converges")
    for record in found:
        if record not in compared:
            console.print(f"  {record['plan']}, delta {record['delta']:.3g}: not compared: {record}")
        elif record["contradictions"] or record["ours refuted"] or record["theirs refuted"]:
            low, high = record["interval"]["value"]
            ends = record["optimistic"]["value"], record["pessimistic"]["value"]
            console.print(
                f"  {record['plan']}, delta {record['delta']:.3g}: ours \\[{low:.6f}, {high:.6f}], theirs "
                f"\\[{ends[0]:.6f}, {ends[1]:.6f}], judge {record['judge']}; {', '.join(record['contradictions'])}"
            )
