"""Standard input in place of a file: `-` stands for a copy in a private folder, which is removed when the command ends.

Files are read more than once, by other programs' readers, and watched for changes; a pipe allows none of that.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import typer
from rich.console import Console
from typer.core import TyperArgument

_TAKEN = "ledgerwood.standard_input"
_KINDS = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz"}
"""What files of rows begin with that are no plain CSV."""


def of_rows(ctx: typer.Context, param: typer.CallbackParam, value: str) -> str:
    """Rows: Parquet or packed CSV by their first bytes, and CSV otherwise; a name is itself."""
    if value != "-" or ctx.resilient_parsing:
        return value
    copy = _copied(ctx, param, "")
    with copy.open("rb") as file:
        first = file.read(4)
    ending = next((ending for start, ending in _KINDS.items() if first.startswith(start)), ".csv")
    return str(copy.rename(copy.with_name(f"standard-input{ending}")))


def of_schema(ctx: typer.Context, param: typer.CallbackParam, value: Path | None) -> Path | None:
    """A schema; a file that is there is itself.

    Raises:
        typer.BadParameter: no such file.
    """
    return of_existing_file(ctx, param, value)


def of_ledger(ctx: typer.Context, param: typer.CallbackParam, value: str) -> str:
    """A ledger's lines; a file that is there, or a database's URL, is itself.

    Raises:
        typer.BadParameter: no such file.
    """
    if value == "-":
        return str(_copied(ctx, param, ".jsonl"))
    return _existing(ctx, value, ", or - for standard input")


def of_place(ctx: typer.Context, param: typer.CallbackParam, value: str | None) -> str | None:
    """A model's folder or a ledger, as `of_ledger`; None where none is named."""
    return value if value is None or Path(value).is_dir() else of_ledger(ctx, param, value)


def none_of_ledger(ctx: typer.Context, value: str) -> str:
    """A ledger that is written to, as it stands.

    Raises:
        typer.BadParameter: no such file.
    """
    return _existing(ctx, value, "")


def _existing(ctx: typer.Context, value: str, other: str) -> str:
    if not ctx.resilient_parsing and "://" not in value and not Path(value).is_file():
        raise typer.BadParameter(
            f"there is no file {value!r}: name a ledger file, or a database as sqlite:///FILE{other}"
        )
    if not ctx.resilient_parsing and "://" not in value and value.endswith((".csv", ".parquet", ".json")):
        raise typer.BadParameter(
            f"{value!r} is no ledger: `ledgerwood train --out model` writes one as model.ledger.jsonl{other}"
        )
    return value


def of_file(ctx: typer.Context, param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Any other file; another path is itself."""
    return _copied(ctx, param, "") if value == Path("-") else value


def of_existing_file(ctx: typer.Context, param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Any other file that has to be there; typer's own check takes - for a file's name, in some of its releases.

    Raises:
        typer.BadParameter: no such file.
    """
    if value is not None and value != Path("-") and not ctx.resilient_parsing and not value.exists():
        raise typer.BadParameter(f"File {str(value)!r} does not exist.")
    return of_file(ctx, param, value)


def of_files(ctx: typer.Context, param: typer.CallbackParam, values: list[Path] | None) -> list[Path]:
    """Any number of other files, one of which may be standard input."""
    return [_copied(ctx, param, "") if value == Path("-") else value for value in values or ()]


def of_text(ctx: typer.Context, param: typer.CallbackParam, value: str | None) -> str | None:
    """JSON that is given as a text or in a file: of standard input the name of a copy."""
    return str(_copied(ctx, param, ".json")) if value == "-" else value


def _copied(ctx: typer.Context, param: typer.CallbackParam, ending: str) -> Path:
    """Standard input as a file of a folder of mode 700 that lasts as long as the command.

    Raises:
        typer.BadParameter: another parameter has taken it.
    """
    name = str(param.name).upper() if isinstance(param, TyperArgument) else param.opts[0]
    if ctx.resilient_parsing:  # of a line that is being completed
        return Path("-")
    if _TAKEN in ctx.meta:
        raise typer.BadParameter(f"standard input is read once, and {ctx.meta[_TAKEN]} takes it: name a file here")
    ctx.meta[_TAKEN] = name
    if sys.stdin.isatty():
        Console(stderr=True).print(f"{name} is read from the keyboard: end it with Ctrl-D", highlight=False)
    folder = Path(tempfile.mkdtemp(prefix="ledgerwood-"))
    ctx.find_root().call_on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    copy = folder / f"standard-input{ending}"
    with copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return copy
