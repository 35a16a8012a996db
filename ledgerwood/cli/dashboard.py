"""`ledgerwood dashboard`: the pages of a small server about ledgers, models and privacy costs."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ledgerwood import _extras
from ledgerwood.report.options import Json
from ledgerwood.report.printing import print_json, refusals


@refusals
def dashboard(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="URL_OR_PATH...",
            help="Ledger files, folders of *.ledger.jsonl files, sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
        ),
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8710,
    models: Annotated[
        Path | None, typer.Option(file_okay=False, help="Folder with saved models, to compare them.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; beyond loopback, even reading needs the token.")
    ] = "127.0.0.1",
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="Further name by which browsers reach it, as behind a proxy; more than once."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show ledgers, verdicts, models and a calculator as pages, at http://127.0.0.1:8710/ by default.

    The pages change nothing. To verify a ledger again, or to open one, log in with the token that is printed here, or
    with that in the environment variable LEDGERWOOD_DASHBOARD_TOKEN.

    Examples:
        ledgerwood dashboard sqlite:///team.db --models models
        ledgerwood dashboard ledgers run.ledger.jsonl --port 8800
    """
    try:
        from ledgerwood.dashboard.serving import serve
    except ModuleNotFoundError as missing:
        raise _extras.needed("the dashboard", missing) from missing
    told = Console(stderr=True, soft_wrap=True)
    serve(
        places,
        host=host,
        port=port,
        names=names or (),
        models=models,
        told=lambda line: told.print(line, markup=False, highlight=False),
        ready=lambda address, token: _ready(address, token, as_json=as_json),
    )


def _ready(address: str, token: str | None, *, as_json: bool) -> None:
    if as_json:
        print_json({"address": address, "token": token})
        sys.stdout.flush()
