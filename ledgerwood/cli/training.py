"""`ledgerwood plan`, `train` and `predict`: a training before, with and after its rows."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ledgerwood.report import completing
from ledgerwood.report.options import Json, OptionalSchemaFile, Rows, SchemaFile, placed
from ledgerwood.report.printing import print_json, refusals, show
from ledgerwood.report.progress import seen, working
from ledgerwood.report.settings import Settings, takes_settings


@refusals
@takes_settings
def plan(
    schema: SchemaFile,
    settings: Settings,
    as_json: Json = False,
) -> None:
    """Show what a training would do and cost, calibrated to the budget, without any data.

    Examples:
        ledgerwood plan --schema schema.json --epsilon 1 --delta 1e-6
        ledgerwood plan --schema schema.json --epsilon 1 --delta 0 --system dpboost --n-estimators 20
        ledgerwood plan --schema - --epsilon 1 --delta 1e-6 --json < schema.json
    """
    from ledgerwood.report.models import plan_facts, read_schema

    with working("calibrating the plan's noise"):
        facts = plan_facts(read_schema(schema), settings)
    show("plan", facts, as_json=as_json)


@refusals
@takes_settings
def train(
    rows: Rows,
    settings: Settings,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for the model.")],
    schema: OptionalSchemaFile = None,
    target: Annotated[
        str | None,
        typer.Option(help="Without --schema: the label's column. Ranges and categories are estimated privately."),
    ] = None,
    task: Annotated[
        Literal["classification", "regression"] | None,
        typer.Option(help="Without --schema: what is learned; needed for whole numbers and for CSV files."),
    ] = None,
    numeric: Annotated[
        list[str] | None,
        typer.Option(help="Without --schema: column of a CSV file that holds numbers, or a pattern; repeatable."),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(help="Without --schema: column of a CSV file that holds categories, or a pattern; repeatable."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="Without --schema: column that is no feature, or a pattern; repeatable."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Ledger to pay from: a file, or a database's URL; by default OUT.ledger.jsonl, made or continued."
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="Public label of the data set, for the ledger.", autocompletion=completing.datasets),
    ] = None,
    analyst: Annotated[
        str | None,
        typer.Option(help="Who pays, where analysts share the ledger.", autocompletion=completing.analysts),
    ] = None,
    scratch: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Folder for the encoded rows while it runs; by default the system's own."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a trained model in OUT; what it cost stays spent.")
    ] = False,
    as_json: Json = False,
) -> None:
    r"""Train on Parquet, CSV or LIBSVM files, which are read in a stream; the grant is on disk before a row is used.

    Values outside the schema are clamped, and rows that cannot be read contribute 0, without a message: check the rows
    with `ledgerwood schema check` first. Without --schema, the ranges and categories of the columns are estimated
    privately, with a share of the budget. A CSV file has no types: name its --numeric and --categorical columns.
    Of a TOML file with `estimated = true` what is declared is taken, and what is open is estimated.

    Examples:
        ledgerwood train rows.csv --schema schema.json --epsilon 1 --delta 1e-6 --out model
        ledgerwood train rows.csv --target sold --task classification --numeric size \
            --categorical colour --ignore person --epsilon 2 --delta 1e-6 --out model
        ledgerwood train rows.parquet --target sold --ignore person --epsilon 2 --delta 1e-6 --out model
        cat rows.csv | ledgerwood train - --schema schema.json --epsilon 1 --delta 1e-6 --out model
        ledgerwood train rows.csv --schema schema.json --epsilon 1 --delta 1e-6 --out model --json \
            --system sgbdt --n-estimators 20 --ledger ward.jsonl --dataset ward-2026
    """
    from ledgerwood.report.models import read_described
    from ledgerwood.report.training import Undeclared, show_trained, train_model

    kinds = {"--target": target, "--task": task, "--numeric": numeric, "--categorical": categorical, "--ignore": ignore}
    beside = [name for name, value in kinds.items() if value]
    if schema is not None and beside:
        raise typer.BadParameter(f"{beside[0]} is for rows without --schema: the schema names target and columns")
    if schema is None and target is None:
        raise typer.BadParameter(
            "give --schema, a file that declares the columns (`ledgerwood schema draft ROWS` writes one to fill in) or "
            "--target, the label's column: ranges and categories are then estimated privately, for a share of the "
            "budget"
        )
    described = (
        read_described(schema)
        if schema is not None
        else Undeclared(
            target=target or "", task=task, numeric=numeric or (), categorical=categorical or (), ignore=ignore or ()
        )
    )
    facts, estimated = train_model(
        rows,
        described,
        settings,
        out=out,
        overwrite=overwrite,
        place=ledger or str(out.with_name(f"{out.name}.ledger.jsonl")),
        dataset=dataset,
        analyst=analyst,
        scratch=scratch,
        verbose=seen(),
    )
    label = target if estimated is None or estimated.target is None else target or estimated.target.name
    show_trained(facts, estimated, label, as_json=as_json)


@refusals
def predict(
    model: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder that `train` wrote.")],
    rows: Rows,
    out: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            callback=placed,
            help="CSV file, or Parquet if it ends in .parquet; else standard output, as CSV.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--id", help="Column of the rows that tells them apart: it is kept before the predictions."),
    ] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Add a column for each class.")] = False,
    as_json: Json = False,
) -> None:
    """Predict the rows of Parquet, CSV or LIBSVM files, which are read in a stream.

    Examples:
        ledgerwood predict model rows.csv
        ledgerwood predict model rows.csv --id person --probabilities --out predictions.csv
        ledgerwood predict model - --out predictions.parquet < rows.csv
        ledgerwood predict model rows.csv --id person --json
    """
    from ledgerwood.report.models import load_model
    from ledgerwood.report.predicting import Predictions, write_predictions

    found = Predictions(load_model(model), rows, probabilities=probabilities, key=key)
    if as_json:
        with working("predicting rows") as done:
            lines = [dict(zip(found.header, line, strict=True)) for line in found.lines(done)]
        print_json(lines)
    else:
        write_predictions(found, out)
