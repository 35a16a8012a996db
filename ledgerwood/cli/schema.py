"""The command line's schemas: what the rows of a file are against one."""

from pathlib import Path
from typing import Annotated

import typer

from ledgerwood.report.options import Existing, Json, SchemaFile
from ledgerwood.report.refusals import refusals

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
    """Compare the CSV file ROWS with a schema, in detail; exit code 1 where they do not fit.

    For the owner of the data: the report is NOT private. `train` clamps and leaves out without a word.
    """
    from ledgerwood.report.schemas import show_check

    if not show_check(rows, schema, as_json=as_json):
        raise typer.Exit(1)
