"""The command line.

Exit codes: 0 done; 1 refused or failed (the reason on standard error); 2 wrong usage; 3 an audit refuted a claim.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ledgerwood.accounting import Adjacency, Budget, Event, GaussianEvent, LaplaceEvent, PoissonSampled, Repeated
from ledgerwood.cautions import delta_caution, emit
from ledgerwood.cli.audit import audit_app
from ledgerwood.report.options import (
    Delta,
    Epsilon,
    ErrataPaper,
    Existing,
    Json,
    Kind,
    Label,
    Noise,
    Place,
    Relation,
    Rows,
    SamplingRate,
    SchemaFile,
    Settings,
    Steps,
    Unconfirmed,
    Url,
    Way,
    takes_settings,
)
from ledgerwood.report.printing import Fact, leave, print_json, refusals, show

schema_app = typer.Typer(no_args_is_help=True, help="Look at a schema, and at rows beside it.")


@schema_app.callback()
def schemas() -> None:
    """Look at a schema, and at rows beside it."""


@schema_app.command("check")
@refusals
def schema_check(
    rows: Annotated[Path, Existing],
    schema: SchemaFile,
    as_json: Json = False,
) -> None:
    """Compare the CSV or LIBSVM file ROWS with a schema, in detail; exit code 1 where they do not fit.

    For the owner of the data: the report is NOT private. `train` clamps and leaves out without a word.
    """
    from ledgerwood.report.models import show_check

    if not show_check(rows, schema, as_json=as_json):
        raise typer.Exit(1)


app = typer.Typer(
    name="ledgerwood",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Compute privacy costs, train private models, audit them, verify their ledgers.",
)
ledger_app = typer.Typer(no_args_is_help=True, help="Show, verify, export and migrate ledgers.")
app.add_typer(audit_app, name="audit")
app.add_typer(ledger_app, name="ledger")
app.add_typer(schema_app, name="schema")


def main() -> None:
    """The console script."""
    app()


def _steps(noise: Noise, multiplier: float, sampling_rate: float, steps: int, adjacency: Adjacency) -> Event:
    event: Event
    match noise:
        case "gaussian":
            event = GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)
        case "laplace":
            event = LaplaceEvent(noise_multiplier=multiplier, adjacency=adjacency)
    if sampling_rate != 1.0:  # a full batch is not a sample: it stays exact, and under replace-one too
        event = PoissonSampled(event, sampling_rate=sampling_rate)
    return Repeated(event, count=steps)


@app.command()
@refusals
def sigma(
    epsilon: Epsilon,
    delta: Delta,
    sampling_rate: SamplingRate = 1.0,
    steps: Steps = 1,
    adjacency: Relation = Adjacency.ADD_REMOVE,
    noise: Kind = "gaussian",
    method: Way = "tightest",
    as_json: Json = False,
) -> None:
    """Compute the least noise multiplier that keeps STEPS steps within (epsilon, delta)."""
    from ledgerwood.accounting import calibrate, price

    budget = Budget(epsilon=epsilon, delta=delta, adjacency=adjacency)
    emit([delta_caution(delta)])

    def plan(multiplier: float) -> Event:
        return _steps(noise, multiplier, sampling_rate, steps, adjacency)

    multiplier = calibrate(plan, budget, method=method)
    quote = price(plan(multiplier), method=method).quote(delta)
    show(
        "least noise",
        {
            "noise_multiplier": multiplier,
            "epsilon": quote.epsilon,
            "delta": delta,
            "adjacency": adjacency.value,
            "noise": noise,
            "sampling_rate": sampling_rate,
            "steps": steps,
            "method": quote.method,
            "certified": quote.certified,
        },
        as_json=as_json,
    )


@app.command()
@refusals
def price(
    noise_multiplier: Annotated[
        float, typer.Option(help="Noise standard deviation (or Laplace scale) / sensitivity, > 0.")
    ],
    delta: Annotated[float | None, typer.Option(help="Give delta to get epsilon.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Give epsilon to get delta.")] = None,
    sampling_rate: SamplingRate = 1.0,
    steps: Steps = 1,
    adjacency: Relation = Adjacency.ADD_REMOVE,
    noise: Kind = "gaussian",
    method: Way = "tightest",
    false_positive_rate: Annotated[
        float | None, typer.Option(help="Also bound an attacker with this false positive rate.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also explain the method and the meaning of the result.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compute the privacy cost of STEPS steps of noise: epsilon at a delta, or delta at an epsilon."""
    from ledgerwood.accounting import price as price_event
    from ledgerwood.accounting import risk

    if (delta is None) == (epsilon is None):
        raise typer.BadParameter("give exactly one of --delta and --epsilon; the other one is the answer")
    priced = price_event(_steps(noise, noise_multiplier, sampling_rate, steps, adjacency), method=method)
    if delta is not None:
        epsilon = priced.epsilon(delta)
        emit([delta_caution(delta)])
    elif epsilon is not None:
        delta = priced.delta(epsilon)
    facts: dict[str, Fact] = {
        "epsilon": epsilon,
        "delta": delta,
        "noise_multiplier": noise_multiplier,
        "adjacency": adjacency.value,
        "noise": noise,
        "sampling_rate": sampling_rate,
        "steps": steps,
        "method": priced.method,
        "certified": priced.certified,
    }
    if false_positive_rate is not None:
        facts["advantage"] = risk.advantage(priced)
        facts["false_positive_rate"] = false_positive_rate
        facts["true_positive_rate"] = risk.true_positive_rate(priced, false_positive_rate)
        facts["belief_at_even_odds"] = risk.belief(priced, 0.5, false_positive_rate)
    if explain:
        facts["explanation"] = priced.explain(delta or None)
    show("price", facts, as_json=as_json)


@app.command()
@refusals
@takes_settings
def plan(
    schema: SchemaFile,
    settings: Settings,
    as_json: Json = False,
) -> None:
    """Show what a training would do and cost, calibrated to the budget, without any data."""
    from ledgerwood.report.models import plan_facts, read_schema

    show("plan", plan_facts(read_schema(schema), settings), as_json=as_json)


@app.command()
@refusals
@takes_settings
def train(
    rows: Annotated[str, Rows],
    schema: SchemaFile,
    settings: Settings,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for the model.")],
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Ledger to pay from: a file, or a database's URL; by default OUT.ledger.jsonl, made or continued."
        ),
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Public label of the data set, for the ledger.")] = None,
    analyst: Annotated[str | None, typer.Option(help="Who pays, where analysts share the ledger.")] = None,
    scratch: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Folder for the encoded rows while it runs; by default the system's own."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train on Parquet, CSV or LIBSVM files, which are read in a stream; the grant is on disk before a row is used.

    Values outside the schema are clamped, and rows that cannot be read contribute 0, without a message: check the rows
    with `ledgerwood schema check` first.
    """
    from ledgerwood.report.models import read_schema, train_model

    facts = train_model(
        rows,
        read_schema(schema),
        settings,
        out=out,
        place=ledger or str(out.with_name(f"{out.name}.ledger.jsonl")),
        dataset=dataset,
        analyst=analyst,
        scratch=scratch,
        verbose=not as_json,
    )
    show("trained", facts, as_json=as_json)


@app.command()
@refusals
def predict(
    model: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder that `train` wrote.")],
    rows: Annotated[str, Rows],
    out: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="CSV file, or Parquet if it ends in .parquet; else standard output, as CSV."),
    ] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Add a column for each class.")] = False,
    as_json: Json = False,
) -> None:
    """Predict the rows of Parquet, CSV or LIBSVM files, which are read in a stream."""
    from ledgerwood.report.models import Predictions, load_model, write_predictions

    found = Predictions(load_model(model), rows, probabilities=probabilities)
    if as_json:
        print_json([dict(zip(found.header, line, strict=True)) for line in found.lines()])
    else:
        write_predictions(found, out)


@app.command()
@refusals
def demo(
    dataset: Annotated[
        Literal["breast_cancer", "adult", "abalone"],
        typer.Option(help="adult and abalone come from the folder LEDGERWOOD_DATA, or from OpenML."),
    ] = "breast_cancer",
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-5,
    as_json: Json = False,
) -> None:
    """Run the whole workflow on a real data set: plan, train, score, verify the ledger."""
    from ledgerwood.report.demo import run_demo, show_demo

    show_demo(run_demo(dataset, epsilon=epsilon, delta=delta, verbose=not as_json), as_json=as_json)


@ledger_app.command("list")
@refusals
def ledger_list(url: Url, as_json: Json = False) -> None:
    """List the data sets of a ledger database, with the budget and the spending of each."""
    from ledgerwood.report.ledgers.commands import list_ledgers

    list_ledgers(url, as_json=as_json)


@ledger_app.command("show")
@refusals
def ledger_show(ledger: Place, dataset: Label = None, as_json: Json = False) -> None:
    """Show terms, grants and draws, after a check of the chain; charges are shown as written (see `verify`)."""
    from ledgerwood.report.ledgers.commands import show_ledger

    show_ledger(ledger, dataset=dataset, as_json=as_json)


@ledger_app.command("verify")
@refusals
def ledger_verify(
    ledger: Place,
    dataset: Label = None,
    head: Annotated[str | None, typer.Option(help="The hash that a model's privacy statement names.")] = None,
    signature: Annotated[Path | None, typer.Option(dir_okay=False, help="What `ledger sign` wrote.")] = None,
    public_key: Annotated[Path | None, typer.Option(dir_okay=False, help="PEM file of the signer's key.")] = None,
    clients: Annotated[
        list[Path] | None,
        typer.Option(
            "--with", dir_okay=False, help="Ledger of a client of this federation's server; more than once for several."
        ),
    ] = None,
    allow_unconfirmed: Unconfirmed = False,
    as_json: Json = False,
) -> None:
    """Verify the ledger with a second implementation: does each charge cover its plan's privacy cost?

    With --with: verify the clients' ledgers, too, and compare their plans and draws with those of the server's ledger.

    Exit code 0: every charge is confirmed, and the ledgers agree. 3: a charge is refuted, or the ledgers differ. 4: a
    charge could not be confirmed, or a session not compared. 1: the chain or an entry is invalid; the first such entry
    is named.
    """
    from ledgerwood.report.ledgers.commands import show_agreement, show_verified

    if clients:
        agreed = show_agreement(
            ledger,
            clients,
            dataset=dataset,
            head=head,
            signature=signature,
            public_key=public_key,
            as_json=as_json,
        )
        leave(agreed, allow_unconfirmed=allow_unconfirmed)
        return
    verdict = show_verified(
        ledger, dataset=dataset, head=head, signature=signature, public_key=public_key, as_json=as_json
    )
    leave(verdict, allow_unconfirmed=allow_unconfirmed)


@app.command()
@refusals
def errata(
    paper: ErrataPaper = None,
    only: Annotated[list[str] | None, typer.Option(help="A specimen's name; more than once for several.")] = None,
    samples: Annotated[
        int | None, typer.Option(help="Outputs per specimen; by default as many as each one needs.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Probability that a correct mechanism would be refuted.")] = 0.001,
    seed: Annotated[int, typer.Option(help="Seed of all draws, >= 0.")] = 0,
    page: Annotated[Path | None, typer.Option(dir_okay=False, help="Write docs/errata.md and its figures.")] = None,
    stored: Annotated[bool, typer.Option("--stored", help="With --page: from the stored figures.")] = False,
    as_json: Json = False,
) -> None:
    """Audit published mechanisms that lose more privacy than they claim; exit code 1 if one is not detected."""
    from ledgerwood.report.errata import errata as run_errata

    if not run_errata(
        paper, only or (), samples=samples, alpha=alpha, seed=seed, page=page, stored=stored, as_json=as_json
    ):
        raise typer.Exit(1)


@ledger_app.command("sign")
@refusals
def ledger_sign(
    ledger: Place,
    out: Annotated[Path, typer.Argument(dir_okay=False, help="File to write, new.")],
    private_key: Annotated[Path, typer.Option(dir_okay=False, help="PEM file of an Ed25519 private key.")],
    dataset: Label = None,
    allow_unconfirmed: Unconfirmed = False,
    as_json: Json = False,
) -> None:
    """Verify the ledger and sign its head, so that a rebuilt chain can be detected."""
    from ledgerwood.report.ledgers.commands import write_signature

    write_signature(
        ledger,
        out,
        private_key=private_key,
        dataset=dataset,
        allow_unconfirmed=allow_unconfirmed,
        as_json=as_json,
    )


@ledger_app.command("migrate")
@refusals
def ledger_migrate(
    ledger: Place,
    dataset: Label = None,
    share: Annotated[
        list[str] | None,
        typer.Option(help="LABEL=SHARE of an analyst, as ada=0.5; once for each. From here on they share the budget."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do all of it, and take it back.")] = False,
    as_json: Json = False,
) -> None:
    """Migrate a database's tables to this release; with --share, a ledger from format version 1 to 2 (irreversible)."""
    from ledgerwood.report.ledgers.commands import migrate

    migrate(ledger, dataset=dataset, shares=share or [], dry_run=dry_run, as_json=as_json)


@ledger_app.command("export")
@refusals
def ledger_export(
    url: Url,
    out: Annotated[Path, typer.Argument(dir_okay=False, help="JSON lines file to write.")],
    dataset: Label = None,
    as_json: Json = False,
) -> None:
    """Write a data set's ledger to the file OUT; the database stays the one to spend from."""
    from ledgerwood.report.ledgers.commands import export_ledger

    export_ledger(url, out, dataset=dataset, as_json=as_json)


@ledger_app.command("import")
@refusals
def ledger_import(path: Annotated[Path, Existing], url: Url, as_json: Json = False) -> None:
    """Verify the ledger file PATH and store it in a database; do not spend from the file afterwards."""
    from ledgerwood.report.ledgers.commands import import_file

    import_file(path, url, as_json=as_json)
