"""`ledgerwood demo` and `ledgerwood errata`: the whole workflow on real rows, and published mechanisms that fail."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ledgerwood.report import completing
from ledgerwood.report.options import Delta, Epsilon, ErrataPaper, Json, placed
from ledgerwood.report.printing import refusals
from ledgerwood.report.progress import seen


@refusals
def demo(
    dataset: Annotated[
        Literal["breast_cancer", "adult", "abalone"],
        typer.Option(help="adult and abalone come from the folder LEDGERWOOD_DATA, or from OpenML."),
    ] = "breast_cancer",
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-5,
    browse: Annotated[
        bool | None,
        typer.Option(
            "--browse/--no-browse", help="Open the page in a browser; by default from a terminal with a screen."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the whole workflow on a real data set: plan, train, score, verify the ledger, draw utility over epsilon.

    Examples:
        ledgerwood demo
        ledgerwood demo --epsilon 4 --json
    """
    from ledgerwood.report.demo import run_demo, show_demo

    found = run_demo(dataset, epsilon=epsilon, delta=delta, verbose=seen())
    show_demo(found, as_json=as_json, browse=browse)


@refusals
def errata(
    paper: ErrataPaper = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="A specimen's name; more than once for several.", autocompletion=completing.specimens),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Outputs per specimen; by default as many as each one needs.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Probability that a correct mechanism would be refuted.")] = 0.001,
    seed: Annotated[int, typer.Option(help="Seed of all draws, >= 0.")] = 0,
    page: Annotated[
        Path | None, typer.Option(dir_okay=False, callback=placed, help="Write docs/errata.md and its figures.")
    ] = None,
    stored: Annotated[bool, typer.Option("--stored", help="With --page: from the stored figures.")] = False,
    as_json: Json = False,
) -> None:
    """Audit published mechanisms that lose more privacy than they claim; exit code 1 if one is not detected.

    Examples:
        ledgerwood errata --only dpboost-saved-counts
        ledgerwood errata --paper dpboost --json
    """
    from ledgerwood.report.errata import errata as run_errata

    if not run_errata(
        paper, only or (), samples=samples, alpha=alpha, seed=seed, page=page, stored=stored, as_json=as_json
    ):
        raise typer.Exit(1)
