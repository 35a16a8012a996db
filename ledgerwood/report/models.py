"""Plans and models between files: a schema file and a table in, a model folder, a ledger file and predictions out."""

import contextlib
import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO, final

from ledgerwood.accounting import Adjacency, PrivacyUnit
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.accounting.pricing import price
from ledgerwood.curator.schema import Categorical, Schema
from ledgerwood.errors import InvalidParameter, PrivacyError, SchemaError
from ledgerwood.report.printing import Fact
from ledgerwood.tables import read_csv
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor

Preset = Literal["default", "paper"]
Estimator = SGBDTClassifier | SGBDTRegressor
ESTIMATORS: dict[str, type[SGBDTClassifier] | type[SGBDTRegressor]] = {
    "SGBDTClassifier": SGBDTClassifier,
    "SGBDTRegressor": SGBDTRegressor,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line lets one choose of an estimator; None means: as the preset says."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    expected_rows: int | None
    preset: Preset
    n_trees: int | None
    max_depth: int | None
    learning_rate: float | None
    sampling_rate: float | None

    def estimator(self, schema: Schema, *, verbose: bool) -> Estimator:
        """The estimator that the schema's target asks for: a classifier for classes, a regressor for numbers.

        Raises:
            SchemaError: the schema names no target.
        """
        if schema.target is None:
            raise SchemaError("the schema names no target: add one, a numeric or a categorical feature")
        kind = SGBDTClassifier if isinstance(schema.target, Categorical) else SGBDTRegressor
        return kind(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            schema=schema,
            expected_rows=self.expected_rows,
            preset=self.preset,
            n_trees=self.n_trees,
            max_depth=self.max_depth,
            learning_rate=self.learning_rate,
            sampling_rate=self.sampling_rate,
            verbose=int(verbose),
        )


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
    """What a training would do and cost; pure, no data."""
    estimator = settings.estimator(schema, verbose=False)
    plan = estimator.make_plan(schema)
    quote = price(plan.event).quote(settings.delta)
    return {
        "estimator": type(estimator).__name__,
        "trees": plan.rounds,
        "depth": plan.depth,
        "sampling_rate": plan.sampling_rate,
        "learning_rate": plan.learning_rate,
        "noise_multiplier": plan.noise_multiplier,
        "initial_score": plan.initial_score,
        "draws": sum(count for _, count in plan.event.draws()),
        "epsilon": quote.epsilon,
        "delta": quote.delta,
        "adjacency": settings.adjacency.value,
        "method": quote.method,
        "certified": quote.certified,
    }


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
        SchemaError: file and schema do not fit; nothing was spent.
        BudgetExceeded, AdjacencyMismatch, LedgerError: the ledger refuses; nothing was spent.
        OSError: no folder can be made at `out`; nothing was spent.
    """
    estimator = settings.estimator(schema, verbose=verbose)
    X, y = read_csv(rows, schema, with_target=True)
    new, fresh = "://" not in place and not Path(place).exists(), not out.exists()
    terms, unit = (estimator.budget, PrivacyUnit.ROW) if new else (None, None)
    out.mkdir(parents=True, exist_ok=True)  # a model that has no place is found out before it is paid for
    try:
        with Ledger.open(place, dataset=dataset, budget=terms, unit=unit, analyst=analyst) as ledger:
            try:
                model = estimator.fit(X, y, ledger=ledger)
            except PrivacyError:
                if new and len(ledger.entries) == 1:  # refused before anything was granted: leave no empty ledger
                    Path(place).unlink()
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
        "trees": len(model.ensemble_.trees),
        "epsilon": model.privacy_.epsilon,
        "delta": model.privacy_.delta,
        "adjacency": model.privacy_.adjacency.value,
        "method": model.privacy_.method,
        "certified": model.privacy_.certified,
        "ledger_epsilon": spent.epsilon,
        "ledger_delta": spent.delta,
        "ledger_head": model.privacy_.ledger_head,
    }


def load_model(folder: Path) -> Estimator:
    """The model that `save` wrote to `folder`.

    Raises:
        InvalidParameter: not a model folder, or of an estimator that is not known.
    """
    try:
        name = json.loads((folder / "model.json").read_text(encoding="utf-8"))["estimator"]
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise InvalidParameter(f"{folder} is not a model folder: {error!r}") from error
    if name not in ESTIMATORS:
        raise InvalidParameter(f"{folder} holds a {name!r}; known are {', '.join(ESTIMATORS)}")
    return ESTIMATORS[name].load(folder)


def predictions(model: Estimator, rows: Path, *, probabilities: bool) -> tuple[list[str], list[list[Fact]]]:
    """Header and lines of a table of predictions for the rows of a CSV file.

    Raises:
        SchemaError: file and schema do not fit.
        InvalidParameter: probabilities of a regressor.
    """
    X, _ = read_csv(rows, model.schema_, with_target=False)
    header = ["prediction"]
    columns = [model.predict(X).tolist()]
    if probabilities:
        if not isinstance(model, SGBDTClassifier):
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
