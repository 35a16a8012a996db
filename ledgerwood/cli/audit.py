"""`ledgerwood audit`: what a mechanism, a training or a ledger really loses. Exit code 3: the claim is refuted."""

from pathlib import Path
from typing import Annotated

import typer

from ledgerwood.accounting import Adjacency
from ledgerwood.cli.app import Command, group
from ledgerwood.report import standard_input
from ledgerwood.report.options import (
    Alpha,
    Audited,
    Canaries,
    CsvRows,
    Html,
    Json,
    Label,
    LookAt,
    Place,
    RandomTrees,
    Relation,
    SchemaFile,
    Seed,
    Seen,
    Trainings,
    Unconfirmed,
)
from ledgerwood.report.printing import REFUTED, leave, refusals
from ledgerwood.report.progress import working
from ledgerwood.report.settings import Settings, takes_settings

app = group("Find out how much a mechanism, a training or a ledger really loses.")


@app.command("mechanism", cls=Command)
@refusals
def audit_mechanism(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="sampler(dataset, n, rng), in a file .py or a module.",
        ),
    ],
    pair: Annotated[
        str | None,
        typer.Option(
            callback=standard_input.of_text,
            help="Two neighbouring data sets: JSON, a .json file, - for JSON from standard input, or MODULE:NAME.",
        ),
    ] = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Instead of --pair: data sets are vectors of answers, each of which one row changes by 1 at most.",
        ),
    ] = False,
    epsilon: Annotated[float | None, typer.Option(help="The claim: epsilon in nats, with --delta (else pure).")] = None,
    delta: Annotated[float | None, typer.Option(help="Of the claim, and where epsilon is bounded.")] = None,
    gaussian: Annotated[
        float | None, typer.Option(help="The claim: Gaussian noise of this multiplier (stddev / L2 sensitivity).")
    ] = None,
    laplace: Annotated[
        float | None, typer.Option(help="The claim: Laplace noise of this multiplier (scale / L1 sensitivity).")
    ] = None,
    event: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            allow_dash=True,
            callback=standard_input.of_existing_file,
            help="The claim: an event's record, as a ledger holds it; - for standard input.",
        ),
    ] = None,
    adjacency: Relation = Adjacency.ADD_REMOVE,
    samples: Annotated[int, typer.Option(help="Outputs drawn on each data set for the test.")] = 100_000,
    alpha: Alpha = 0.05,
    numeric: LookAt = "ideal",
    max_draws: Annotated[
        int | None,
        typer.Option(help="Outputs that may be drawn in all, of a slow mechanism; what is left out is said."),
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="The same as a time: the first outputs are timed.")] = None,
    seed: Seed = None,
    html: Html = None,
    as_json: Json = False,
) -> None:
    r"""Draw from a mechanism on two neighbouring data sets, bound its epsilon from below, and test a claim.

    Examples:
        ledgerwood audit mechanism laplace.py:sampler --pair "[[0.0], [1.0]]" --epsilon 1 \
            --samples 20000
        ledgerwood audit mechanism laplace.py:sampler --pair - --epsilon 1 --json < pair.json
        ledgerwood audit mechanism laplace.py:sampler --search --laplace 1 --html audit.html
    """
    from ledgerwood.report.audits.inputs import load_claim, load_pair, load_sampler
    from ledgerwood.report.audits.running import run_mechanism_audit, show_mechanism

    if sum(claim is not None for claim in (epsilon, gaussian, laplace, event)) != 1:
        raise typer.BadParameter("give exactly one claim: --epsilon (with --delta), --gaussian, --laplace or --event")
    if (pair is None) != search:  # a pair that is no pair of neighbours accuses a mechanism that is right
        raise typer.BadParameter("give either --pair, two neighbouring data sets, or --search")
    claim = load_claim(
        epsilon=epsilon, delta=delta, gaussian=gaussian, laplace=laplace, event=event, adjacency=adjacency
    )
    report = run_mechanism_audit(
        mechanism,
        load_sampler(mechanism),
        load_pair(pair),
        claim,
        n=samples,
        alpha=alpha,
        numeric=numeric,
        delta=delta,
        seed=seed,
        max_draws=max_draws,
        seconds=seconds,
    )
    show_mechanism(report, html=html, as_json=as_json)
    if report.audit.rejected:
        raise typer.Exit(REFUTED)


@app.command("model", cls=Command)
@refusals
@takes_settings
def audit_model(
    rows: CsvRows,
    schema: SchemaFile,
    settings: Settings,
    canaries: Canaries = None,
    trainings: Trainings = None,
    mode: Audited = "model",
    structure: RandomTrees = "fixed",
    view: Seen = None,
    alpha: Alpha = 0.05,
    seed: Seed = None,
    html: Html = None,
    as_json: Json = False,
) -> None:
    r"""Train as `train` would, with canaries beside the rows of a CSV file, and bound the model's epsilon from below.

    Examples:
        ledgerwood audit model rows.csv --schema schema.json --epsilon 1 --delta 1e-6
        ledgerwood audit model rows.csv --schema schema.json --epsilon 4 --delta 1e-6 \
            --system sgbdt --n-estimators 5 --canaries 50 --html audit.html
    """
    from ledgerwood.report.audits.running import run_model_audit, show_model
    from ledgerwood.report.models import read_schema

    report = run_model_audit(
        rows,
        read_schema(schema),
        settings,
        canaries=canaries,
        trainings=trainings,
        mode=mode,
        structure=structure,
        view=view,
        alpha=alpha,
        seed=seed,
    )
    show_model(report, html=html, as_json=as_json)
    if report.audit.rejected:
        raise typer.Exit(REFUTED)


@app.command("ledger", cls=Command)
@refusals
def audit_ledger(
    ledger: Place,
    dataset: Label = None,
    model: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="Folder of the model whose statement must name an entry."),
    ] = None,
    vault: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A stream's row vault; looked at with --public-data only."),
    ] = None,
    public_data: Annotated[
        bool, typer.Option("--public-data", help="The rows are public: show what single units have spent.")
    ] = False,
    allow_unconfirmed: Unconfirmed = False,
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Verify a ledger, follow its epsilon round by round, and hold a model against it.

    Exit code 3 where a charge is refuted, 4 where one could not be confirmed.

    Examples:
        ledgerwood audit ledger model.ledger.jsonl --model model --html audit.html
        ledgerwood audit ledger - --json < model.ledger.jsonl
    """
    from ledgerwood.report.audits.running import show_ledger_audit
    from ledgerwood.report.ledgers.audits import audit_ledger as run

    with working("verifying the ledger, and following its epsilon"):
        found = run(ledger, dataset=dataset, model=model, vault=vault, public_data=public_data)
    show_ledger_audit(found, html=html, as_json=as_json)
    leave(found.report.verdict, allow_unconfirmed=allow_unconfirmed)
