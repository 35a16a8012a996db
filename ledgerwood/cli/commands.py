"""The command line: every family of commands, and the console script. Each family is a module of this folder."""

from typing import Annotated

import typer

from ledgerwood import __version__
from ledgerwood.cli import audit, citations, dashboard, exporting, ledgers, noise, schemas, showing, training
from ledgerwood.cli.app import Command
from ledgerwood.report.printing import exit_codes

app = typer.Typer(
    name="ledgerwood",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Compute privacy costs, train private models, audit them, verify their ledgers.",
    epilog=exit_codes(),
)
for command in (
    noise.sigma, noise.price, training.plan, training.train, training.predict, exporting.export, citations.cite,
    showing.demo, showing.errata, dashboard.dashboard,
):  # fmt: skip
    app.command(cls=Command)(command)
for name, family in {"schema": schemas.app, "audit": audit.app, "ledger": ledgers.app}.items():
    app.add_typer(family, name=name)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ledgerwood {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_say_version, help="Show the version, and end.")
    ] = False,
) -> None:
    """Options before the name of a command."""


def main() -> None:
    """The console script."""
    app()
