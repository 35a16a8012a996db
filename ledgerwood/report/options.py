"""The options and arguments of the command line: each name, type and help text, once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ledgerwood.accounting import Adjacency
from ledgerwood.accounting.quotes import Method
from ledgerwood.accounting.sgd import GradientNoise, Sampling
from ledgerwood.report import completing, standard_input

PaperName = Literal["sgbdt", "dpboost", "dpxgboost", "federated", "privatree", "peers"]
Numeric = Literal["ideal", "bitwise"]
Structure = Literal["fixed", "own"]
View = Literal["releases", "predictions"]
Mode = Literal["model", "one_mechanism", "one_selection", "one_leaf"]
FilterName = Literal["basic", "zcdp", "gdp"]

Epsilon = Annotated[float, typer.Option(help="Privacy budget epsilon, in nats, > 0.")]
Delta = Annotated[float, typer.Option(help="Privacy budget delta, a probability in [0, 1).")]
OptionalDelta = Annotated[
    float | None,
    typer.Option(help="Privacy budget delta, a probability in [0, 1); suggested where --rows is given."),
]
SamplingRate = Annotated[
    float | None,
    typer.Option(help="Poisson inclusion probability of a row per step, in (0, 1]; 1, all rows, if not given."),
]
StepCount = Annotated[
    int | None,
    typer.Option("--steps", help="Number of steps, each with fresh noise and a fresh sample; 1 if not given."),
]
RowCount = Annotated[
    int | None,
    typer.Option(
        "--rows", help="Public number of rows, with --batch-size and --epochs in place of --sampling-rate and --steps."
    ),
]
BatchSize = Annotated[int | None, typer.Option(help="Number of rows in a step's batch; expected, if it is random.")]
Epochs = Annotated[
    float | None, typer.Option(help="Passes over the rows: the number of steps is epochs * rows / batch size.")
]
Batches = Annotated[
    Sampling | None,
    typer.Option(
        "--sampling",
        help="How batches are made of --rows: by Poisson samples (if not given), by a random allocation of each row to "
        "one step of a pass, of a fixed size drawn afresh in each step, or in a public cycle.",
    ),
]
Relation = Annotated[Adjacency, typer.Option(help="Which data sets are neighbours.")]
StepsRelation = Annotated[
    Adjacency | None,
    typer.Option(
        help="Which data sets are neighbours: add-remove if not given, or replace-one for --sampling fixed.",
    ),
]
Kind = Annotated[
    GradientNoise, typer.Option(help="The noise: its multiplier is stddev / L2, or scale / L1 sensitivity.")
]
Way = Annotated[Method, typer.Option(help="Accounting method.")]
_SCHEMA = typer.Option(
    dir_okay=False, allow_dash=True, callback=standard_input.of_schema,
    help="Schema as TOML or JSON, target included; `ledgerwood schema draft ROWS` writes one to fill in; - for "
    "standard input.",
)  # fmt: skip
SchemaFile = Annotated[Path, _SCHEMA]
OptionalSchemaFile = Annotated[Path | None, _SCHEMA]
ErrataPaper = Annotated[PaperName | None, typer.Option("--paper", help="Only the specimens of this paper.")]
Unconfirmed = Annotated[
    bool, typer.Option("--allow-unconfirmed", help="Go on, with exit code 0, though a charge could not be confirmed.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Rows = Annotated[
    str,
    typer.Argument(
        callback=standard_input.of_rows,
        help="Parquet, CSV or LIBSVM file, folder of such files, or quoted pattern, as 'rows/*.parquet'; - for CSV or "
        "Parquet from standard input.",
    ),
]
CsvRows = Annotated[
    Path,
    typer.Argument(
        dir_okay=False, readable=True, allow_dash=True, callback=standard_input.of_existing_file,
        help="CSV file; - for standard input.",
    ),
]  # fmt: skip
LedgerLines = Annotated[
    Path,
    typer.Argument(
        dir_okay=False, readable=True, allow_dash=True, callback=standard_input.of_existing_file,
        help="Ledger file; - for standard input.",
    ),
]  # fmt: skip


Place = Annotated[
    str,
    typer.Argument(
        callback=standard_input.of_ledger, help="Ledger file, URL of a ledger database, or - for standard input."
    ),
]
PlaceToWrite = Annotated[
    str,
    typer.Argument(callback=standard_input.none_of_ledger, help="Ledger file, or URL of a ledger database."),
]
Url = Annotated[str, typer.Argument(help="sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE.")]
Label = Annotated[
    str | None,
    typer.Option("--dataset", help="The data set's label; needed for a database.", autocompletion=completing.datasets),
]


def placed(file: Path | None) -> Path | None:
    """A file to write, whose folder is there: found out before anything is run."""
    if file is not None and not file.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(file.parent)!r}: make it first, or name another file")
    return file


Html = Annotated[
    Path | None,
    typer.Option("--html", dir_okay=False, callback=placed, help="Also write a page that stands alone."),
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
    int | None, typer.Option(help="Number of trainings, each with its own canaries; by default 1, or as --mode needs.")
]
Audited = Annotated[
    Mode,
    typer.Option(
        "--mode", help="Audit the model; or one tree of depth 1, its split or its leaves, with the whole budget."
    ),
]
Seen = Annotated[
    View | None, typer.Option("--view", help="Score what was released, or predictions; the first where it can be.")
]
