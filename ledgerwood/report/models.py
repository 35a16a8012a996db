"""Plans and models between files: a schema file and a table in, a model folder, a ledger file and predictions out."""

import contextlib
import csv
import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from sklearn.base import is_regressor

from ledgerwood.accounting import PrivacyUnit
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.accounting.pricing import price
from ledgerwood.cautions import emit, seed_caution
from ledgerwood.csv_files import read_csv
from ledgerwood.errors import InvalidParameter, PrivacyError, SchemaError
from ledgerwood.report.options import Settings
from ledgerwood.report.printing import Fact, print_json
from ledgerwood.schema import Schema
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.systems import estimator_named, system

Model = Any
"""An estimator of any system: what scikit-learn expects of one, and what `AbstractTrainer` adds."""


def estimator_of(settings: Settings, schema: Schema, *, verbose: bool) -> Model:
    """The estimator that the settings name and that the schema's target asks for.

    Raises:
        InvalidParameter: no such system, a parameter that it does not have, or a target that it does not learn.
    """
    chosen = system(settings.system)
    model = chosen.for_target(schema)()
    values = {"preset": chosen.preset, **settings.estimator_parameters()}
    known = model.get_params(deep=False)
    for name, value in values.items():
        if value is not None and name not in known:
            why = chosen.lacks.get(name, f"whose parameters are {', '.join(known)}")
            raise InvalidParameter(f"{name}={value!r} is not for {chosen.title}, {why}")
    values = {name: value for name, value in values.items() if value is not None}
    model.set_params(**values, schema=schema, verbose=int(verbose))
    return model


def read_schema(path: Path) -> Schema:
    """The schema in a JSON file.

    Raises:
        SchemaError: not a schema.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path} is not a schema: {error}") from error
    return Schema.from_json(text)


def plan_facts(schema: Schema, settings: Settings) -> dict[str, Fact]:
    """The plan of a training and its cost, without data."""
    estimator = estimator_of(settings, schema, verbose=False)
    plan = estimator.make_plan(schema)
    seed = estimator.random_state
    emit([None if seed is None else seed_caution(seed), *estimator.plan_cautions(plan)])
    quote = price(plan.event).quote(settings.delta)
    return {
        "estimator": type(estimator).__name__,
        **_plan_facts(plan),
        "draws": sum(count for _, count in plan.event.draws()),
        "epsilon": quote.epsilon,
        "delta": quote.delta,
        "adjacency": settings.adjacency.value,
        "method": quote.method,
        "certified": quote.certified,
    }


def _plan_facts(plan: Any) -> dict[str, Fact]:
    """The fields of a plan that are single values, by name; None is omitted."""
    values = {each.name: getattr(plan, each.name) for each in fields(plan)}
    return {name: value for name, value in values.items() if isinstance(value, str | bool | int | float)}


def train_model(
    rows: Path,
    schema: Schema,
    settings: Settings,
    *,
    out: Path,
    place: str,
    dataset: str | None,
    analyst: str | None,
    verbose: bool,
) -> dict[str, Fact]:
    """Train on a CSV file; the grant is on disk in the ledger at `place` before a row enters a release.

    A new ledger file gets this training's budget as its limit; an existing ledger, or one in a database, pays, and
    refuses what no longer fits.

    Raises:
        SchemaError: columns that the file does not have, or a schema without target; nothing was spent.
        BudgetExceeded, AdjacencyMismatch, LedgerError: the ledger refuses; nothing was spent.
        OSError: no folder can be made at `out`; nothing was spent.
    """
    estimator = estimator_of(settings, schema, verbose=verbose)
    X, y = read_csv(rows, schema, with_target=True)
    new, fresh = "://" not in place and not Path(place).exists(), not out.exists()
    terms, unit = (estimator.budget, PrivacyUnit.ROW) if new else (None, None)
    out.mkdir(parents=True, exist_ok=True)  # a model that has no place is found out before it is paid for
    try:
        with Ledger.open(place, dataset=dataset, budget=terms, unit=unit, analyst=analyst) as ledger:
            try:
                model = estimator.fit(X, y, ledger=ledger)
            except PrivacyError as error:
                if new and len(ledger.entries) == 1:  # refused before anything was granted: leave no empty ledger
                    Path(place).unlink()
                if not new:  # which may have been there from another training, without being named
                    error.add_note(f"the ledger is {place}, which existed before")
                raise
            spent = ledger.spent()
    except PrivacyError:
        if fresh:
            with contextlib.suppress(OSError):  # the ledger may lie in it
                out.rmdir()
        raise
    model.save(out)
    return {
        "model": str(out),
        "ledger": place,
        **({"trees": len(model.ensemble_.trees)} if isinstance(model, AbstractTreeEstimator) else {}),
        "epsilon": model.privacy_.epsilon,
        "delta": model.privacy_.delta,
        "adjacency": model.privacy_.adjacency.value,
        "method": model.privacy_.method,
        "certified": model.privacy_.certified,
        "ledger_epsilon": spent.epsilon,
        "ledger_delta": spent.delta,
        "ledger_head": model.privacy_.ledger_head,
    }


def load_model(folder: Path) -> Model:
    """The model that `save` wrote to `folder`.

    Raises:
        InvalidParameter: not a model folder, or of an estimator that is not known.
    """
    try:
        name = json.loads((folder / "model.json").read_text(encoding="utf-8"))["estimator"]
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise InvalidParameter(f"{folder} is not a model folder: {error!r}") from error
    return estimator_named(name).load(folder)


def predictions(model: Model, rows: Path, *, probabilities: bool) -> tuple[list[str], list[list[Fact]]]:
    """Header and lines of a table of predictions for the rows of a CSV file.

    Raises:
        SchemaError: file and schema do not fit.
        InvalidParameter: probabilities of a regressor.
    """
    X, _ = read_csv(rows, model.schema_, with_target=False)
    header = ["prediction"]
    columns = [model.predict(X).tolist()]
    if probabilities:
        if is_regressor(model):
            raise InvalidParameter("probabilities=True needs a classifier; this model predicts numbers")
        header += [f"probability of {category}" for category in model.classes_]
        columns += model.predict_proba(X).T.tolist()
    return header, [list(line) for line in zip(*columns, strict=True)]


def write_csv(header: list[str], lines: list[list[Fact]], out: Path | None) -> None:
    """Write a table to a file, or to standard output."""
    if out is None:
        _write(header, lines, sys.stdout)
        return
    with out.open("w", newline="", encoding="utf-8") as file:
        _write(header, lines, file)


def _write(header: list[str], lines: list[list[Fact]], file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)


def show_check(rows: Path, schema: Path, *, as_json: bool) -> bool:
    """Print the report of `Schema.check`; whether the rows fit.

    Raises:
        SchemaError: not a schema, or columns that the file does not have.
    """
    declared = read_schema(schema)
    X, y = read_csv(rows, declared, with_target=declared.target is not None)
    report = declared.check(X, y)
    if as_json:
        print_json(report.to_record())
    else:
        Console(soft_wrap=True).print(str(report), markup=False, highlight=False)
    return report.ok
