"""`ledgerwood ledger`: open, show, verify, sign, export, import and migrate ledgers."""

from pathlib import Path
from typing import Annotated

import typer

from ledgerwood.accounting import Adjacency, Budget, PrivacyUnit
from ledgerwood.cli.app import Command, group
from ledgerwood.errors import InvalidParameter
from ledgerwood.report import completing, standard_input
from ledgerwood.report.options import (
    Delta,
    Epsilon,
    FilterName,
    Json,
    Label,
    LedgerLines,
    Place,
    PlaceToWrite,
    Relation,
    Unconfirmed,
    Url,
)
from ledgerwood.report.printing import leave, refusals

app = group("Open, show, verify, export and migrate ledgers.")


@app.command("open", cls=Command)
@refusals
def ledger_open(
    ledger: Annotated[str, typer.Argument(help="New ledger file, or URL of a ledger database, made if needed.")],
    epsilon: Epsilon,
    delta: Delta,
    dataset: Annotated[str | None, typer.Option(help="Public label of the data set; needed for a database.")] = None,
    adjacency: Relation = Adjacency.ADD_REMOVE,
    unit: Annotated[PrivacyUnit, typer.Option(help="What is protected.")] = PrivacyUnit.ROW,
    filter_name: Annotated[
        FilterName,
        typer.Option(
            "--filter",
            help="How costs add up: basic, any plan; zcdp, Gaussian plans by their rho; gdp, unsampled Gaussian plans.",
        ),
    ] = "basic",
    share: Annotated[
        list[str] | None, typer.Option(help="NAME=SHARE: an analyst and the share of the budget; repeatable.")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Who answers for the ledger; public.")] = None,
    description: Annotated[str | None, typer.Option(help="What it is for; public.")] = None,
    opened: Annotated[str | None, typer.Option(help="The day, as 2026-03-01; public. No clock is read.")] = None,
    as_json: Json = False,
) -> None:
    """Open a new ledger with a budget, from which `train --ledger` and Python spend; nothing is spent.

    Examples:
        ledgerwood ledger open budget.jsonl --epsilon 3 --delta 1e-6 --owner "Ada, data protection"
        ledgerwood ledger open sqlite:///new.db --dataset patients --epsilon 3 --delta 1e-6
    """
    from ledgerwood.report.ledgers.opening import open_ledger

    open_ledger(
        ledger, dataset=dataset, budget=Budget(epsilon=epsilon, delta=delta, adjacency=adjacency), unit=unit,
        filter_name=filter_name, shares=share or [], owner=owner, description=description, opened=opened,
        as_json=as_json,
    )  # fmt: skip


@app.command("list", cls=Command)
@refusals
def ledger_list(url: Url, as_json: Json = False) -> None:
    """List the data sets of a ledger database, with the budget and the spending of each.

    Examples:
        ledgerwood ledger list sqlite:///team.db
    """
    from ledgerwood.report.ledgers.commands import list_ledgers

    list_ledgers(url, as_json=as_json)


@app.command("show", cls=Command)
@refusals
def ledger_show(ledger: Place, dataset: Label = None, as_json: Json = False) -> None:
    """Show terms, grants and draws, after a check of the chain; charges are shown as written (see `verify`).

    Examples:
        ledgerwood ledger show model.ledger.jsonl
        ledgerwood ledger show sqlite:///team.db --dataset study --json
    """
    from ledgerwood.report.ledgers.commands import show_ledger

    show_ledger(ledger, dataset=dataset, as_json=as_json)


@app.command("verify", cls=Command)
@refusals
def ledger_verify(
    ledger: Place,
    dataset: Label = None,
    head: Annotated[str | None, typer.Option(help="The hash that a model's privacy statement names.")] = None,
    signature: Annotated[
        Path | None,
        typer.Option(dir_okay=False, callback=standard_input.of_file, help="What `ledger sign` wrote."),
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option(dir_okay=False, callback=standard_input.of_file, help="PEM file of the signer's key."),
    ] = None,
    clients: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            dir_okay=False,
            callback=standard_input.of_files,
            help="Ledger of a client of this federation's server; more than once for several.",
        ),
    ] = None,
    from_checkpoint: Annotated[
        bool,
        typer.Option(
            "--from-checkpoint", help="Look only at the last checkpoint and what follows; the rest is taken on trust."
        ),
    ] = False,
    allow_unconfirmed: Unconfirmed = False,
    as_json: Json = False,
) -> None:
    """Verify the ledger with a second implementation: does each charge cover its plan's privacy cost?

    With --with: verify the clients' ledgers, too, and compare their plans and draws with those of the server's ledger.

    Exit code 0: every charge is confirmed, and the ledgers agree. 3: a charge is refuted, or the ledgers differ. 4: a
    charge could not be confirmed, a session was not compared, or entries before a checkpoint were not verified. 1: the
    chain or an entry is invalid; the first such entry is named.

    Examples:
        ledgerwood ledger verify model.ledger.jsonl
        cat model.ledger.jsonl | ledgerwood ledger verify - --json
        ledgerwood ledger verify sqlite:///team.db --dataset study
    """
    from ledgerwood.report.ledgers.commands import show_agreement, show_verified

    if clients and from_checkpoint:
        raise InvalidParameter("from_checkpoint=True and --with exclude each other: sessions are compared from entry 0")
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
        ledger, dataset=dataset, head=head, signature=signature, public_key=public_key, as_json=as_json,
        from_checkpoint=from_checkpoint,
    )  # fmt: skip
    leave(verdict, allow_unconfirmed=allow_unconfirmed)


@app.command("sign", cls=Command)
@refusals
def ledger_sign(
    ledger: Place,
    out: Annotated[Path, typer.Argument(dir_okay=False, help="File to write, new.")],
    private_key: Annotated[
        Path, typer.Option(dir_okay=False, callback=standard_input.of_file, help="PEM file of an Ed25519 private key.")
    ],
    dataset: Label = None,
    allow_unconfirmed: Unconfirmed = False,
    as_json: Json = False,
) -> None:
    """Verify the ledger and sign its head, so that a rebuilt chain can be detected.

    Examples:
        ledgerwood ledger sign model.ledger.jsonl model.signature --private-key key.pem
    """
    from ledgerwood.report.ledgers.commands import write_signature

    write_signature(
        ledger,
        out,
        private_key=private_key,
        dataset=dataset,
        allow_unconfirmed=allow_unconfirmed,
        as_json=as_json,
    )


@app.command("checkpoint", cls=Command)
@refusals
def ledger_checkpoint(ledger: PlaceToWrite, dataset: Label = None, as_json: Json = False) -> None:
    """Append an entry that states what all entries so far amount to, from which the ledger can be opened and verified.

    It spends nothing. The first one raises the format version to 4 (irreversible). Sign the ledger afterwards, so that
    a reader knows whom the entries before it are trusted to.

    Examples:
        ledgerwood ledger checkpoint model.ledger.jsonl
        ledgerwood ledger checkpoint sqlite:///team.db --dataset study
    """
    from ledgerwood.report.ledgers.commands import add_checkpoint

    add_checkpoint(ledger, dataset=dataset, as_json=as_json)


@app.command("migrate", cls=Command)
@refusals
def ledger_migrate(
    ledger: PlaceToWrite,
    dataset: Label = None,
    share: Annotated[
        list[str] | None,
        typer.Option(
            help="LABEL=SHARE of an analyst, as ada=0.5; once for each. From here on they share the budget.",
            autocompletion=completing.shares,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do all of it, and take it back.")] = False,
    as_json: Json = False,
) -> None:
    """Migrate a database's tables to this release; with --share, a ledger from format version 1 to 2 (irreversible).

    Examples:
        ledgerwood ledger migrate sqlite:///team.db --dry-run
        ledgerwood ledger migrate study.jsonl --share ada=0.5 --share ben=0.5
    """
    from ledgerwood.report.ledgers.commands import migrate

    migrate(ledger, dataset=dataset, shares=share or [], dry_run=dry_run, as_json=as_json)


@app.command("export", cls=Command)
@refusals
def ledger_export(
    url: Url,
    out: Annotated[
        Path, typer.Argument(dir_okay=False, allow_dash=True, help="JSON lines file to write; - for standard output.")
    ],
    dataset: Label = None,
    as_json: Json = False,
) -> None:
    """Write a data set's ledger to the file OUT; the database stays the one to spend from.

    Examples:
        ledgerwood ledger export sqlite:///team.db exported.jsonl --dataset study
        ledgerwood ledger export sqlite:///team.db - --dataset study | ledgerwood ledger verify -
    """
    from ledgerwood.report.ledgers.commands import export_ledger

    export_ledger(url, out, dataset=dataset, as_json=as_json)


@app.command("import", cls=Command)
@refusals
def ledger_import(path: LedgerLines, url: Url, as_json: Json = False) -> None:
    """Verify the ledger file PATH and store it in a database; do not spend from the file afterwards.

    Examples:
        ledgerwood ledger import study.jsonl sqlite:///archive.db
    """
    from ledgerwood.report.ledgers.commands import import_file

    import_file(path, url, as_json=as_json)
