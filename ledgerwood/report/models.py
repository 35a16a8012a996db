"""Plans and models between files: a schema file and a table in, a model folder, a ledger file and predictions out."""

import contextlib
import csv
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO, final

from numpy.typing import NDArray
from rich.console import Console
from sklearn.base import is_regressor

from ledgerwood import _extras
from ledgerwood.accounting import PrivacyUnit
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.accounting.pricing import price
from ledgerwood.cautions import emit, seed_caution
from ledgerwood.csv_files import read_csv
from ledgerwood.errors import InvalidParameter, PrivacyError, SchemaError
from ledgerwood.libsvm_files import ENDINGS, read_libsvm
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
    rows: str,
    schema: Schema,
    settings: Settings,
    *,
    out: Path,
    scratch: Path | None,
    place: str,
    dataset: str | None,
    analyst: str | None,
    verbose: bool,
) -> dict[str, Fact]:
    """Train on Parquet or CSV files, read in a stream; the grant is on disk, at `place`, before a row enters a release.

    A new ledger file gets this training's budget as its limit; an existing ledger, or one in a database, pays, and
    refuses what no longer fits.

    Raises:
        SchemaError: columns that the file does not have, or a schema without target; nothing was spent.
        BudgetExceeded, AdjacencyMismatch, LedgerError: the ledger refuses; nothing was spent.
        OSError: no folder can be made at `out`; nothing was spent.
    """
    estimator = estimator_of(settings, schema, verbose=verbose)
    if schema.target is None:
        raise SchemaError(f"{rows}: the schema names no target, and training needs one")
    new, fresh = "://" not in place and not Path(place).exists(), not out.exists()
    terms, unit = (estimator.budget, PrivacyUnit.ROW) if new else (None, None)
    out.mkdir(parents=True, exist_ok=True)  # a model that has no place is found out before it is paid for
    try:
        with Ledger.open(place, dataset=dataset, budget=terms, unit=unit, analyst=analyst) as ledger:
            try:
                model = estimator.fit(rows, schema.target.name, ledger=ledger, scratch=scratch)
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


@final
class Predictions:
    """The predictions for rows in Parquet or CSV files, which are read in a stream, some rows at a time.

    Args:
        model: fitted.
        rows: a file, a folder, or a pattern.
        probabilities: whether each class has a column.

    Raises:
        SchemaError: files and schema do not fit.
        InvalidParameter: probabilities of a regressor.
    """

    __slots__ = ("_batches", "_model", "_probabilities", "header")

    def __init__(self, model: Model, rows: str, *, probabilities: bool) -> None:
        if probabilities and is_regressor(model):
            raise InvalidParameter("probabilities=True needs a classifier; this model predicts numbers")
        self._model, self._probabilities = model, probabilities
        self._batches = model.batches(rows)
        self.header = ["prediction"]
        if probabilities:
            self.header += [f"probability of {category}" for category in model.classes_]

    def columns(self) -> Iterator[list[NDArray[Any]]]:
        """The columns of one batch after another; the first batch has no row."""
        for X in self._batches:
            found = [self._model.predict(X)]
            if self._probabilities:
                found += list(self._model.predict_proba(X).T)
            yield found

    def lines(self) -> Iterator[list[Fact]]:
        """One line after another."""
        for columns in self.columns():
            yield from (list(line) for line in zip(*(column.tolist() for column in columns), strict=True))


def write_predictions(found: Predictions, out: Path | None) -> None:
    """Write them to a file, Parquet by its name and CSV otherwise, or as CSV to standard output.

    Nothing is left at `out` if the rows cannot be read to their end.
    """
    if out is None:
        _write(found.header, found.lines(), sys.stdout)
        return
    partial = out.with_name(f"{out.name}.part")
    try:
        if out.suffix in (".parquet", ".pq"):
            _write_parquet(found, partial)
        else:
            with partial.open("w", newline="", encoding="utf-8") as file:
                _write(found.header, found.lines(), file)
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)


def _write_parquet(found: Predictions, out: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as missing:
        raise _extras.needed("writing Parquet files", missing) from missing
    writer = None
    try:
        for columns in found.columns():
            table = pa.table(dict(zip(found.header, columns, strict=True)))
            if writer is None:
                writer = pq.ParquetWriter(out, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _write(header: list[str], lines: Iterable[list[Fact]], file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)


def show_check(rows: Path, schema: Path, *, as_json: bool) -> bool:
    """Print the report of `Schema.check`; whether the rows fit.

    Raises:
        SchemaError: not a schema, or columns that the file does not have.
    """
    declared = read_schema(schema)
    X: Any
    y: Any
    if rows.name.endswith(ENDINGS):
        X, labels = read_libsvm(rows, declared)
        y = None if declared.target is None else labels
    else:
        X, y = read_csv(rows, declared, with_target=declared.target is not None)
    report = declared.check(X, y)
    if as_json:
        print_json(report.to_record())
    else:
        Console(soft_wrap=True).print(str(report), markup=False, highlight=False)
    return report.ok
