"""`ledgerwood export`: a released model in another tool's format, as text, or as a card."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ledgerwood.report.options import Json
from ledgerwood.report.printing import refusals, show

ExportFormat = Literal["xgboost", "onnx", "text", "card"]


@refusals
def export(
    model: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder that `train` wrote.")],
    to: Annotated[ExportFormat, typer.Option(help="xgboost: a booster. onnx: a graph. text: the trees. card: a page.")],
    out: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="File to write; standard output for text and card if not given. XGBoost: .json or .ubj. Card: .html "
            "is a page, all else Markdown.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a released model in another tool's format, as text, or as a model card; free of privacy cost.

    A booster predicts scores, and a graph also labels and probabilities: docs/how-to/export-a-model.md.

    Examples:
        ledgerwood export model --to xgboost --out booster.ubj
        ledgerwood export model --to onnx --out graph.onnx
        ledgerwood export model --to card --out README.md
        ledgerwood export model --to card --out card.html
        ledgerwood export model --to text
    """
    from ledgerwood.report.exports import write_export

    if out is None and (as_json or to in ("xgboost", "onnx")):
        raise typer.BadParameter(f"--to {to} needs --out FILE{', and so does --json' if as_json else ''}")
    facts = write_export(model, to, out)
    if out is not None:
        show("exported", facts, as_json=as_json)
