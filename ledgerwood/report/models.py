"""Plans and models between files: a schema file and a table in, a model folder, a ledger file and predictions out."""

import difflib
import json
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console

from ledgerwood.accounting.pricing import price
from ledgerwood.cautions import emit, seed_caution
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.report.printing import Fact, print_json
from ledgerwood.report.progress import working
from ledgerwood.report.settings import Settings
from ledgerwood.schema import Categorical, Schema, SchemaDraft
from ledgerwood.trainers.base.plan import AbstractPlan
from ledgerwood.trainers.base.systems import estimator_named, system

Model = Any
"""An estimator of any system: what scikit-learn expects of one, and what `AbstractTrainer` adds."""


def estimator_of(settings: Settings, schema: Schema, *, verbose: bool) -> Model:
    """The estimator that the settings name and that the schema's target asks for.

    Raises:
        InvalidParameter: no such system, a parameter that it does not have, or a target that it does not learn.
    """
    return with_settings(system(settings.system).for_target(schema), settings, schema=schema, verbose=verbose)


def with_settings(kind: type[Any], settings: Settings, *, schema: Schema | SchemaDraft | None, verbose: bool) -> Model:
    """An estimator of a class of the system that the settings name, with their parameters.

    Raises:
        InvalidParameter: a parameter that it does not have.
    """
    chosen, model = system(settings.system), kind()
    values = {"preset": chosen.preset, **settings.estimator_parameters()}
    known = model.get_params(deep=False)
    for name, value in values.items():
        if value is not None and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f" (did you mean {near[0]}?)" if near else ""
            why = chosen.lacks.get(name, f"whose parameters are {', '.join(known)}{meant}")
            raise InvalidParameter(f"{name}={value!r} is not for {chosen.title}, {why}")
    values = {name: value for name, value in values.items() if value is not None}
    model.set_params(**values, schema=schema, verbose=int(verbose))
    return model


def read_schema(path: Path) -> Schema:
    """The schema in a JSON or TOML file: TOML by its name, or where the text is no JSON object.

    Raises:
        SchemaError: not a schema, or one with open fields; the message names the file, and the line or the field.
    """
    text, toml = _schema_text(path)
    try:
        return Schema.from_toml(text) if toml else Schema.from_json(text)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from error


def read_described(path: Path) -> Schema | SchemaDraft:
    """The schema in a file, as `read_schema`; or the draft in a TOML file that says `estimated = true`.

    Raises:
        SchemaError: neither.
    """
    text, toml = _schema_text(path)
    if toml:
        try:
            found = SchemaDraft.from_toml(text)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from error
        if isinstance(found, Schema) or found.estimated:
            return found
    return read_schema(path)


def _schema_text(path: Path) -> tuple[str, bool]:
    """The text of a file, and whether it is TOML."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path} is not a schema: {error}") from error
    return text, path.suffix == ".toml" or (path.suffix != ".json" and not text.lstrip().startswith("{"))


def draft_text(rows: str, *, target: str | None, ignore: Sequence[str]) -> str:
    """The draft of a schema as TOML, from names and types alone.

    Args:
        rows: a Parquet or CSV file, a folder or a pattern, of which the first file is looked at; "-" for standard
            input, of which the first line is read: a CSV file's header.
        target: the column that is to be predicted.
        ignore: columns that are not to be used.

    Raises:
        SchemaError: no such columns, or a type that a schema does not have.
    """
    from ledgerwood.curator.inputs.drafting import draft_of_header

    if rows == "-":
        line = sys.stdin.buffer.readline().decode("utf-8", "surrogateescape")
        return draft_of_header(line, target=target, ignore=ignore).to_toml()
    return Schema.draft(rows, target=target, ignore=ignore).to_toml()


def write_new(path: Path, text: str) -> None:
    """Write a text to a file that is not there yet.

    Raises:
        InvalidParameter: there is a file; it is left as it is.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InvalidParameter(f"{path} is there already, and may have been filled in: name another file") from error


def plan_facts(schema: Schema, settings: Settings) -> dict[str, Fact]:
    """The plan of a training and its cost, without data."""
    estimator = estimator_of(settings, schema, verbose=False)
    plan = estimator.make_plan(schema)
    seed = estimator.random_state
    emit([None if seed is None else seed_caution(seed), *estimator.plan_cautions(plan)])
    quote = price(plan.event).quote(settings.delta)
    return {
        "estimator": type(estimator).__name__,
        **plan_values(plan),
        **_class_weights(schema),
        "draws": sum(count for _, count in plan.event.draws()),
        "epsilon": quote.epsilon,
        "delta": quote.delta,
        "adjacency": settings.adjacency.value,
        "method": quote.method,
        "certified": quote.certified,
    }


def plan_values(plan: Any) -> dict[str, Fact]:
    """The fields of a plan that are single values, and what it derives from them, by name; None is omitted."""
    values = {each.name: getattr(plan, each.name) for each in fields(plan)}
    if isinstance(plan, AbstractPlan):  # a plug-in's plan may be another class
        values |= plan.derived
    return {name: value for name, value in values.items() if isinstance(value, str | bool | int | float)}


def _class_weights(schema: Schema) -> dict[str, Fact]:
    """The weights of the target's classes, where the schema has some."""
    if not isinstance(schema.target, Categorical) or not schema.class_weights:
        return {}
    pairs = zip(schema.target.categories, schema.class_weights, strict=True)
    return {"class_weights": ", ".join(f"{category} {weight:g}" for category, weight in pairs)}


def load_model(folder: Path) -> Model:
    """The model that `save` wrote to `folder`.

    Raises:
        InvalidParameter: not a model folder, or of an estimator that is not known.
    """
    try:
        name = json.loads((folder / "model.json").read_text(encoding="utf-8"))["estimator"]
    except FileNotFoundError:
        raise InvalidParameter(
            f"{folder} is not a model folder: it has no file model.json. Name the folder that `ledgerwood train --out` "
            "or `model.save` wrote"
        ) from None
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise InvalidParameter(f"{folder} is not a model folder: {error!r}") from error
    return estimator_named(name).load(folder)


def show_check(rows: str, schema: Path, *, as_json: bool) -> bool:
    """Print the report of `Schema.check`; whether the rows fit.

    Args:
        rows: a file, a folder, or a pattern.
        schema: the file with the schema.
        as_json: whether the report is JSON.

    Raises:
        SchemaError: not a schema, or no files.
    """
    declared = read_schema(schema)
    with working("checking the rows"):
        report = declared.check(rows, None if declared.target is None else declared.target.name)
    if as_json:
        print_json(report.to_record())
    else:
        Console(soft_wrap=True).print(str(report), markup=False, highlight=False)
    return report.ok
