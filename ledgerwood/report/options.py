"""The options and arguments of the command line: each name, type and help text, once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ledgerwood.accounting import Adjacency
from ledgerwood.accounting.quotes import Method

Noise = Literal["gaussian", "laplace"]
System = Literal["sgbdt", "dpboost", "dpxgboost", "federated", "privatree"]
PresetName = Literal["default", "paper"]
PaperName = Literal["sgbdt", "dpboost", "dpxgboost", "federated", "privatree", "peers"]
Numeric = Literal["ideal", "bitwise"]
Structure = Literal["fixed", "own"]
View = Literal["releases", "predictions"]
Mode = Literal["model", "one_mechanism"]

Epsilon = Annotated[float, typer.Option(help="Privacy budget epsilon, in nats, > 0.")]
Delta = Annotated[float, typer.Option(help="Privacy budget delta, a probability in [0, 1).")]
SamplingRate = Annotated[float, typer.Option(help="Poisson inclusion probability of a row per step, in (0, 1].")]
Steps = Annotated[int, typer.Option(help="Number of steps, each with fresh noise and a fresh sample.")]
Relation = Annotated[Adjacency, typer.Option(help="Which data sets are neighbours.")]
Kind = Annotated[Noise, typer.Option(help="The noise: its multiplier is stddev / L2, or scale / L1 sensitivity.")]
Way = Annotated[Method, typer.Option(help="How to price.")]
SchemaFile = Annotated[Path, typer.Option(exists=True, dir_okay=False, help="Schema as JSON, target included.")]
ExpectedRows = Annotated[int | None, typer.Option(help="A public guess of the number of rows, for tuning rules only.")]
Trainer = Annotated[System, typer.Option("--system", help="S-GBDT, DPBoost, DP-XGBoost, federated or PrivaTree.")]
Preset = Annotated[PresetName, typer.Option(help="Where the choices come from that are not named.")]
Trees = Annotated[int | None, typer.Option(help="Number of trees; PrivaTree has one.")]
Depth = Annotated[int | None, typer.Option(help="Levels of splits of a tree.")]
LearningRate = Annotated[float | None, typer.Option(help="Factor on every leaf; PrivaTree has none.")]
Subsample = Annotated[
    float | None,
    typer.Option(help="Poisson inclusion probability of a row per tree (S-GBDT, DP-XGBoost)."),
]
ErrataPaper = Annotated[PaperName | None, typer.Option("--paper", help="Only the specimens of this paper.")]
Unconfirmed = Annotated[
    bool, typer.Option("--allow-unconfirmed", help="Go on, with exit code 0, though a charge could not be confirmed.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Existing = typer.Argument(exists=True, dir_okay=False, readable=True)


def _there(ledger: str) -> str:
    if "://" not in ledger and not Path(ledger).is_file():
        raise typer.BadParameter(f"there is no file {ledger!r}")
    return ledger


Place = Annotated[str, typer.Argument(callback=_there, help="A ledger file, or the URL of a ledger database.")]
Url = Annotated[str, typer.Argument(help="sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE.")]
Label = Annotated[str | None, typer.Option("--dataset", help="The data set's label; needed for a database.")]


def _placed(html: Path | None) -> Path | None:
    """Found out before anything is run: an audit takes a while."""
    if html is not None and not html.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(html.parent)!r}")
    return html


Html = Annotated[
    Path | None,
    typer.Option("--html", dir_okay=False, callback=_placed, help="Also write a page that stands alone."),
]
Alpha = Annotated[
    float, typer.Option(help="Probability that a bound is above the truth, and that a right claim is refuted.")
]
Canaries = Annotated[
    int | None,
    typer.Option(help="Made-up rows of a training, each in or out by a fair coin; 1000, or what suits --mode."),
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Of the audit's own random numbers; drawn, and shown, if not given.")
]
LookAt = Annotated[Numeric, typer.Option(help="Look at values, or at their bits too.")]
RandomTrees = Annotated[
    Structure, typer.Option("--structure", help="Trees drawn at random: one of the audit's own, or as drawn.")
]
Trainings = Annotated[
    int | None, typer.Option(help="Trainings, each with canaries of its own; 1, or what suits --mode.")
]
Audited = Annotated[
    Mode,
    typer.Option("--mode", help="Audit the model, or one tree of depth 1 with its whole budget, by the same code."),
]
Seen = Annotated[
    View | None, typer.Option("--view", help="Score what was released, or predictions; the first where it can be.")
]
