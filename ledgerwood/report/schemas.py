"""Rows of a file beside a schema, for their owner."""

from pathlib import Path

from rich.console import Console

from ledgerwood.csv_files import read_csv
from ledgerwood.report.models import read_schema
from ledgerwood.report.printing import print_json


def show_check(rows: Path, schema: Path, *, as_json: bool) -> bool:
    """Print the report of `Schema.check`; whether the rows fit.

    Raises:
        SchemaError: not a schema, or columns that the file does not have.
    """
    declared = read_schema(schema)
    X, y = read_csv(rows, declared, with_target=declared.target is not None)
    report = declared.check(X, y)
    if as_json:
        print_json(report.to_record())
    else:
        Console(soft_wrap=True).print(str(report), markup=False, highlight=False)
    return report.ok
