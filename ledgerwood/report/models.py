"""Plans and models between files: a schema file and a table in, a model folder, a ledger file and predictions out."""

import contextlib
import csv
import json
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TextIO, final

from ledgerwood.accounting import Adjacency, PrivacyUnit
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.accounting.pricing import price
from ledgerwood.cautions import emit
from ledgerwood.csv_files import read_csv
from ledgerwood.errors import InvalidParameter, PrivacyError, SchemaError
from ledgerwood.report.options import PresetName, System
from ledgerwood.report.printing import Fact
from ledgerwood.schema import Categorical, Schema
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPBoostPlan,
    DPBoostRegressor,
    DPXGBoostClassifier,
    DPXGBoostPlan,
    DPXGBoostRegressor,
    FederatedGBDTClassifier,
    FederatedGBDTRegressor,
    FederatedPlan,
    PrivaTreeClassifier,
    PrivaTreePlan,
    SGBDTClassifier,
    SGBDTPlan,
    SGBDTRegressor,
)
from ledgerwood.trainers.base.estimator import Plan
from ledgerwood.trainers.base.outputs import AbstractClassifier, AbstractRegressor

Classifier = AbstractClassifier | PrivaTreeClassifier
Model = Classifier | AbstractRegressor
SYSTEMS: dict[System, tuple[type[Classifier], type[AbstractRegressor] | None]] = {
    "sgbdt": (SGBDTClassifier, SGBDTRegressor),
    "dpboost": (DPBoostClassifier, DPBoostRegressor),
    "dpxgboost": (DPXGBoostClassifier, DPXGBoostRegressor),
    "federated": (FederatedGBDTClassifier, FederatedGBDTRegressor),
    "privatree": (PrivaTreeClassifier, None),
}
"""What the command line trains; None where a system does not learn numbers."""
_TITLES = {"dpboost": "DPBoost", "federated": "the federated framework", "privatree": "PrivaTree"}
_MISSING: dict[System, dict[str, str]] = {
    "dpboost": {"subsample": "whose trees share the rows among them"},
    "federated": {"subsample": "whose trees see all rows"},
    "privatree": {
        "n_estimators": "which grows one tree",
        "learning_rate": "whose leaves are labels",
        "subsample": "whose one tree sees all rows",
    },
}
"""Parameters that a system does not have, and why."""
ESTIMATORS = {kind.__name__: kind for kinds in SYSTEMS.values() for kind in kinds if kind is not None}
"""Whose models it reads."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line lets one choose of an estimator; None means: as the preset says."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    expected_rows: int | None
    system: System
    preset: PresetName
    n_estimators: int | None
    max_depth: int | None
    learning_rate: float | None
    subsample: float | None

    def estimator(self, schema: Schema, *, verbose: bool) -> Model:
        """The estimator that the schema's target asks for: a classifier for classes, a regressor for numbers.

        Raises:
            SchemaError: the schema names no target.
            InvalidParameter: a choice that the system does not have.
        """
        if schema.target is None:
            raise SchemaError("the schema names no target: add one, a numeric or a categorical feature")
        kind = SYSTEMS[self.system][0 if isinstance(schema.target, Categorical) else 1]
        if kind is None:
            raise SchemaError(f"{_TITLES[self.system]} learns classes; the schema's target is {schema.target!r}")
        model: Model = kind()
        chosen = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "system"}
        for name, why in _MISSING.get(self.system, {}).items():
            given = chosen.pop(name)
            if given is not None:
                raise InvalidParameter(f"{name}={given!r} is not for {_TITLES[self.system]}, {why}")
        if self.system == "federated" and self.preset == "default":
            chosen["preset"] = "recommended"
        model.set_params(**chosen, schema=schema, verbose=int(verbose))
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
    """What a training would do and cost; pure, no data."""
    estimator = settings.estimator(schema, verbose=False)
    plan = estimator.make_plan(schema)
    emit(estimator.plan_cautions(plan))
    quote = price(plan.event).quote(settings.delta)
    return {
        "estimator": type(estimator).__name__,
        **_tree_facts(plan),
        "draws": sum(count for _, count in plan.event.draws()),
        "epsilon": quote.epsilon,
        "delta": quote.delta,
        "adjacency": settings.adjacency.value,
        "method": quote.method,
        "certified": quote.certified,
    }


def _tree_facts(plan: Plan) -> dict[str, Fact]:
    """What each system's plan says of its trees."""
    match plan:
        case SGBDTPlan():
            own = {"subsample": plan.subsample, "noise_multiplier": plan.noise_multiplier}
        case DPBoostPlan():
            own = {"trees_per_ensemble": plan.trees_per_ensemble, "tree_epsilon": plan.tree_epsilon}
        case DPXGBoostPlan():
            own = {"subsample": plan.subsample, "tree_epsilon": plan.tree_epsilon}
        case FederatedPlan():
            own = {"queries": plan.query_counts.total, "noise_multiplier": plan.noise_multiplier}
        case PrivaTreePlan():
            return {
                "n_estimators": 1,
                "max_depth": plan.max_depth,
                "splits": plan.splits,
                "candidates": plan.candidates,
                "leaf_share": plan.leaf_share,
                "tree_epsilon": plan.tree_epsilon,
            }
        case _:
            raise InvalidParameter(f"{type(plan).__name__} is not a plan that the command line makes")
    shared = {"max_depth": plan.max_depth, "learning_rate": plan.learning_rate, "initial_score": plan.initial_score}
    return {"n_estimators": plan.n_estimators, **shared, **own}


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


def load_model(folder: Path) -> Model:
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
        if isinstance(model, AbstractRegressor):
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
