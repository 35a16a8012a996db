"""`ledgerwood cite`: the papers that a model, a ledger or a system rests on, as BibTeX."""

from typing import Annotated

import typer

from ledgerwood.report import completing, standard_input
from ledgerwood.report.options import Json, Label
from ledgerwood.report.printing import refusals


@refusals
def cite(
    place: Annotated[
        str | None,
        typer.Argument(
            callback=standard_input.of_place,
            help="Folder that `train` wrote, ledger file, URL of a ledger database, or - for a ledger.",
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option(help="A trainer by its name, in place of a model.", autocompletion=completing.systems)
    ] = None,
    dataset: Label = None,
    as_json: Json = False,
) -> None:
    """Print the papers that a model, a ledger or a system rests on, as BibTeX.

    Examples:
        ledgerwood cite model
        ledgerwood cite sqlite:///team.db --dataset study --json
        ledgerwood cite --system dpboost
    """
    from ledgerwood.report.citations import show_citations

    show_citations(place, system=system, dataset=dataset, as_json=as_json)
