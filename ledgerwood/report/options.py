"""The options and arguments of the command line: each name, type and help text, once."""

import functools
import inspect
import json
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, final

import typer

from ledgerwood.accounting import Adjacency
from ledgerwood.accounting.quotes import Method
from ledgerwood.errors import InvalidParameter

Noise = Literal["gaussian", "laplace"]
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
Way = Annotated[Method, typer.Option(help="Accounting method.")]
SchemaFile = Annotated[Path, typer.Option(exists=True, dir_okay=False, help="Schema as JSON, target included.")]
ErrataPaper = Annotated[PaperName | None, typer.Option("--paper", help="Only the specimens of this paper.")]
Unconfirmed = Annotated[
    bool, typer.Option("--allow-unconfirmed", help="Go on, with exit code 0, though a charge could not be confirmed.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Rows = typer.Argument(help="Parquet, CSV or LIBSVM file, folder of such files, or quoted pattern, as 'rows/*.parquet'.")
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
    int | None, typer.Option(help="Number of trainings, each with its own canaries; by default 1, or as --mode needs.")
]
Audited = Annotated[
    Mode,
    typer.Option("--mode", help="Audit the model, or one tree of depth 1 with its whole budget, by the same code."),
]
Seen = Annotated[
    View | None, typer.Option("--view", help="Score what was released, or predictions; the first where it can be.")
]


def _named(values: list[str]) -> list[str]:
    for value in values:
        if "=" not in value or not value.partition("=")[0].isidentifier():
            raise typer.BadParameter(f"{value!r} is not NAME=VALUE")
    return values


_OF_THE_COMMAND = ("schema", "verbose")
"""Parameters of an estimator that a command sets from what is not in `Settings`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of the commands that train: each option of an estimator once. None: as in the preset."""

    epsilon: Epsilon
    delta: Delta
    adjacency: Relation = Adjacency.ADD_REMOVE
    expected_rows: Annotated[
        int | None, typer.Option(help="A public guess of the number of rows, for tuning rules only.")
    ] = None
    system: Annotated[
        str, typer.Option(help="sgbdt, dpboost, dpxgboost, federated, privatree, or one that a package has declared.")
    ] = "sgbdt"
    preset: Annotated[str | None, typer.Option(help="Where the choices come from that are not named.")] = None
    n_estimators: Annotated[int | None, typer.Option(help="Number of trees; PrivaTree has one.")] = None
    max_depth: Annotated[int | None, typer.Option(help="Levels of splits of a tree.")] = None
    learning_rate: Annotated[float | None, typer.Option(help="Factor on every leaf; PrivaTree has none.")] = None
    subsample: Annotated[
        float | None, typer.Option(help="Poisson inclusion probability of a row per tree (S-GBDT, DP-XGBoost).")
    ] = None
    parameters: Annotated[
        list[str],
        typer.Option("--set", callback=_named, metavar="NAME=VALUE", help="Any other parameter; may be repeated."),
    ] = field(default_factory=list)

    def estimator_parameters(self) -> dict[str, Any]:
        """The estimator's parameters by name, those of `--set` included; None if nothing was chosen.

        Raises:
            InvalidParameter: a parameter of `--set` that an option of its own sets, or that stands there twice: what is
                shown and what is done could differ.
        """
        chosen = {each.name: getattr(self, each.name) for each in fields(self)}
        others: dict[str, Any] = {}
        for pair in self.parameters:
            name, _, value = pair.partition("=")
            if name in chosen:
                option = name.replace("_", "-")
                raise InvalidParameter(f"--set {pair}: {name} has a separate option, --{option}", parameter=name)
            if name in _OF_THE_COMMAND:
                raise InvalidParameter(f"--set {pair}: the command itself sets {name}", parameter=name)
            if name in others:
                raise InvalidParameter(f"--set {pair}: {name} is set twice", parameter=name)
            others[name] = _value(value)
        del chosen["system"], chosen["parameters"]
        return chosen | others


def _value(text: str) -> Any:
    """A number, true, false or null as JSON writes it; else the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `settings: Settings` an option for each field of it in that place."""
    whole = inspect.signature(command)
    options = {
        each.name: inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(each),
            annotation=each.type,
        )
        for each in fields(Settings)
    }
    own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in whole.parameters.values()]
    parameters = [p for each in own for p in (options.values() if each.name == "settings" else (each,))]

    @functools.wraps(command)
    def expanded(*_: Any, **given: Any) -> None:
        chosen = {name: given.pop(name) for name in options}
        command(settings=Settings(**chosen), **given)

    expanded.__signature__ = whole.replace(parameters=parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    return expanded


def _default(each: Field[Any]) -> Any:
    if each.default_factory is not MISSING:
        return each.default_factory()
    return inspect.Parameter.empty if each.default is MISSING else each.default
