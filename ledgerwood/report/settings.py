"""The options of the commands that train, and how a command takes them all as one value."""

import functools
import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Annotated, Any, final, get_args, get_type_hints

import typer

from ledgerwood.accounting import Adjacency
from ledgerwood.errors import InvalidParameter
from ledgerwood.report import completing
from ledgerwood.report.options import Delta, Epsilon, Relation


def _named(values: list[str]) -> list[str]:
    for value in values:
        if "=" not in value or not value.partition("=")[0].isidentifier():
            raise typer.BadParameter(f"{value!r} is not NAME=VALUE, as in --set max_bins=64")
    return values


DEFAULT_SYSTEM = "boosting"
_OF_THE_COMMAND = ("schema", "verbose")
"""Parameters of an estimator that a command sets from what is not in `Settings`."""


def _estimators(given: dict[str, Any]) -> tuple[type[Any], ...]:
    from ledgerwood.trainers.base.systems import system

    return system(given.get("system") or DEFAULT_SYSTEM).estimators


def offered_presets(ctx: typer.Context, incomplete: str) -> completing.Offers:
    """The presets of the system that is named, for a shell."""

    def found(given: dict[str, Any]) -> Iterator[tuple[str, str]]:
        hints = (get_type_hints(kind).get("preset") for kind in _estimators(given))
        words = dict.fromkeys(word for hint in hints for word in get_args(hint) if isinstance(word, str))
        yield from ((word, "") for word in words)

    return completing.quietly(found, ctx.params, incomplete)


def offered_parameters(ctx: typer.Context, incomplete: str) -> completing.Offers:
    """NAME= of each parameter of the named system's estimators that has no option of its own, for a shell."""

    def found(given: dict[str, Any]) -> Iterator[tuple[str, str]]:
        elsewhere = {*_OF_THE_COMMAND, *(each.name for each in fields(Settings))}
        names: dict[str, str] = {}
        for kind in _estimators(given):
            names |= {each.name: str(each.default) for each in fields(kind)}
        yield from ((f"{name}=", default) for name, default in names.items() if name not in elsewhere)

    return completing.quietly(found, ctx.params, incomplete)


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
        str,
        typer.Option(
            autocompletion=completing.systems,
            help="boosting (recommended), sgbdt, dpboost, dpxgboost, federated, privatree, or one that another "
            "package has declared.",
        ),
    ] = DEFAULT_SYSTEM
    preset: Annotated[
        str | None,
        typer.Option(
            autocompletion=offered_presets, help="Named choices for all parameters that you do not set yourself."
        ),
    ] = None
    n_estimators: Annotated[int | None, typer.Option(help="Number of trees; privatree has one.")] = None
    max_depth: Annotated[int | None, typer.Option(help="Levels of splits of a tree.")] = None
    learning_rate: Annotated[float | None, typer.Option(help="Factor on every leaf; privatree has none.")] = None
    subsample: Annotated[
        float | None,
        typer.Option(
            help="Probability that a row is in a tree: sgbdt, dpxgboost; by a coin for each tree, or with "
            "--set sampling=allocation in a fixed number of the trees."
        ),
    ] = None
    parameters: Annotated[
        list[str],
        typer.Option(
            "--set",
            callback=_named,
            metavar="NAME=VALUE",
            autocompletion=offered_parameters,
            help="Any other parameter of the estimator; may be repeated.",
        ),
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
