"""`ledgerwood schema`: draft a schema, and look at rows beside it."""

from pathlib import Path
from typing import Annotated

import typer

from ledgerwood.cli.app import Command, group
from ledgerwood.report.options import Json, Rows, SchemaFile, placed
from ledgerwood.report.printing import refusals

app = group("Draft a schema, and look at rows beside it.")


@app.callback()
def schemas() -> None:
    """Draft a schema, and look at rows beside it."""


@app.command("draft", cls=Command)
@refusals
def schema_draft(
    rows: Annotated[
        str, typer.Argument(help="Parquet or CSV file, folder or pattern; - for a CSV header on standard input.")
    ],
    target: Annotated[str | None, typer.Option(help="Name of the column that is to be predicted.")] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Name of a column that is not to be used; more than once for several.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(dir_okay=False, callback=placed, help="File to write, new; by default standard output."),
    ] = None,
) -> None:
    """Draft a schema as TOML from the names and types of columns alone; no value is read.

    Of a CSV file the header is read, and types are left open; of a Parquet file the names and types in its footer.

    Examples:
        ledgerwood schema draft rows.csv --target sold --ignore person --out schema.toml
        head -1 rows.csv | ledgerwood schema draft - --target sold
    """
    from ledgerwood.report.models import draft_text, write_new

    text = draft_text(rows, target=target, ignore=ignore or [])
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_new(out, text)


@app.command("check", cls=Command)
@refusals
def schema_check(
    rows: Rows,
    schema: SchemaFile,
    as_json: Json = False,
) -> None:
    """Compare the rows in ROWS with a schema, in detail; exit code 1 where they do not fit.

    For the owner of the data: the report is NOT private. `train` clamps and leaves out without a word.

    Examples:
        ledgerwood schema check rows.csv --schema schema.json
        cat rows.csv | ledgerwood schema check - --schema schema.json --json
    """
    from ledgerwood.report.models import show_check

    if not show_check(rows, schema, as_json=as_json):
        raise typer.Exit(1)
