"""`ledgerwood train`: rows in files in, a model folder and a ledger out, with a declared or an estimated schema."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledgerwood.accounting import Composed, PrivacyUnit
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.accounting.pricing import price
from ledgerwood.curator import label_kind_of, row_files
from ledgerwood.errors import BudgetExceeded, InvalidParameter, PrivacyError, SchemaError
from ledgerwood.pages.values import plain
from ledgerwood.report.models import Model, estimator_of, with_settings
from ledgerwood.report.printing import Fact, print_json, show
from ledgerwood.report.settings import Settings
from ledgerwood.schema import Categorical, Date, Numeric, OpenCategorical, OpenColumn, OpenNumeric, Schema, SchemaDraft
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.systems import system

Task = Literal["classification", "regression"]
_SHOWN = 8
"""Categories that a line shows."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Undeclared:
    """What is public of columns whose schema is to be estimated privately.

    Args:
        target: the label's column.
        task: what is learned of it; None if its type says so.
        numeric, categorical: columns of a CSV file, which has no types, by name or pattern.
        ignore: columns that are no features.
    """

    target: str
    task: Task | None = None
    numeric: Sequence[str] = ()
    categorical: Sequence[str] = ()
    ignore: Sequence[str] = ()

    def prepared(self, rows: str, settings: Settings, *, verbose: bool) -> tuple[Model, Any]:
        """The estimator that the label asks for, and the rows with their types.

        Raises:
            SchemaError: no such columns, or columns without a type.
            InvalidParameter: a label that may be either, or that the system does not learn.
        """
        chosen = system(settings.system)
        classes = self._classes(rows)
        kind = chosen.for_labels(
            classes=classes, said=f"{self.target!r} is learned as {'classes' if classes else 'numbers'}"
        )
        numeric, categorical = tuple(self.numeric), tuple(self.categorical)
        told = row_files(rows, numeric=numeric, categorical=categorical, ignore=self.ignore)
        if label_kind_of(told, self.target) == "untyped" and self.target not in (*numeric, *categorical):
            own = (self.target,)  # of a CSV file: its type follows from the task
            numeric, categorical = (numeric, categorical + own) if classes else (numeric + own, categorical)
            told = row_files(rows, numeric=numeric, categorical=categorical, ignore=self.ignore)
        return with_settings(kind, settings, schema=None, verbose=verbose), told

    def _classes(self, rows: str) -> bool:
        """Returns whether the labels are classes, by what was said, or else by their type."""
        if self.task is not None:
            return self.task == "classification"
        told = row_files(rows, numeric=self.numeric, categorical=self.categorical, ignore=self.ignore)
        kind = label_kind_of(told, self.target)
        if kind == "untyped":  # of a CSV file
            if self.target in self.categorical or self.target in self.numeric:
                return self.target in self.categorical
            raise InvalidParameter(
                f"target={self.target!r} is a column of a CSV file, which does not say whether it holds classes or "
                "numbers: give --task classification or --task regression"
            )
        if kind == "whole":
            raise InvalidParameter(
                f"target={self.target!r} holds whole numbers, which may be classes or quantities: give "
                "--task classification or --task regression"
            )
        return kind != "float"


def _prepared(rows: str, draft: SchemaDraft, settings: Settings, *, verbose: bool) -> tuple[Model, Any]:
    """The estimator that a draft's target asks for, and the rows with their types: of a CSV file the draft's.

    Raises:
        SchemaError: a draft without a target, or a column of a CSV file whose type is open.
        InvalidParameter: a target that the system does not learn.
    """
    target = draft.target
    if target is None or isinstance(target, OpenColumn):
        raise SchemaError(f"{rows}: the draft does not say what the target is: write a table [target] with its type")
    classes = isinstance(target, Categorical | OpenCategorical)
    kind = system(settings.system).for_labels(
        classes=classes, said=f"{target.name!r} is learned as {'classes' if classes else 'numbers'}"
    )
    estimator = with_settings(kind, settings, schema=draft, verbose=verbose)
    if label_kind_of(row_files(rows), target.name) != "untyped":
        return estimator, rows
    unknown = [column.name for column in draft.columns if isinstance(column, OpenColumn)]
    if unknown:
        raise SchemaError(f"{rows}: a CSV file has no types, and the draft leaves those of {unknown} open: write them")
    numeric = [column.name for column in draft.columns if isinstance(column, Numeric | OpenNumeric)]
    others = [column.name for column in draft.columns if column.name not in numeric]  # texts, of dates too
    return estimator, row_files(rows, numeric=numeric, categorical=others)


def train_model(
    rows: str,
    schema: Schema | SchemaDraft | Undeclared,
    settings: Settings,
    *,
    out: Path,
    overwrite: bool,
    scratch: Path | None,
    place: str,
    dataset: str | None,
    analyst: str | None,
    verbose: bool,
) -> tuple[dict[str, Fact], Schema | None]:
    """Train on Parquet or CSV files, read in a stream; the grant is on disk, at `place`, before a row enters a release.

    A new ledger file gets this training's budget as its limit; an existing ledger, or one in a database, pays, and
    refuses what no longer fits.

    Returns:
        What is told of the training, and the schema where it was estimated.

    Raises:
        InvalidParameter: `out` holds a trained model; nothing was spent.
        SchemaError: columns that the file does not have, or a schema without target; nothing was spent.
        BudgetExceeded, AdjacencyMismatch, LedgerError: the ledger refuses; nothing was spent.
        OSError: no folder can be made at `out`; nothing was spent.
    """
    require_vacant(out, overwrite=overwrite)
    if "://" in place and dataset is None:
        raise InvalidParameter(
            f"dataset=None: the database {place} holds a ledger for each data set. Name one by --dataset; "
            f"`ledgerwood ledger list {place}` lists them"
        )
    given: Any = rows
    if isinstance(schema, Undeclared):
        estimator, given = schema.prepared(rows, settings, verbose=verbose)
        label = schema.target
    elif isinstance(schema, SchemaDraft):
        estimator, given = _prepared(rows, schema, settings, verbose=verbose)
        assert schema.target is not None  # `_prepared`
        label = schema.target.name
    else:
        estimator = estimator_of(settings, schema, verbose=verbose)
        if schema.target is None:
            raise SchemaError(f"{rows}: the schema names no target, and training needs one")
        label = schema.target.name
    new, fresh = "://" not in place and not Path(place).exists(), not out.exists()
    terms, unit = (estimator.budget, PrivacyUnit.ROW) if new else (None, None)
    out.mkdir(parents=True, exist_ok=True)  # a model that has no place is found out before it is paid for
    try:
        with Ledger.open(place, dataset=dataset, budget=terms, unit=unit, analyst=analyst) as ledger:
            try:
                _require_start(out, ledger)
                model = estimator.fit(given, label, ledger=ledger, scratch=scratch)
            except PrivacyError as error:
                if new and len(ledger.entries) == 1:  # refused before anything was granted: leave no empty ledger
                    Path(place).unlink()
                if not new:  # which may have been there from another training, without being named
                    error.add_note(f"the ledger is {place}, which existed before")
                if isinstance(error, BudgetExceeded):
                    error.add_note(
                        "nothing was spent. Give a smaller --epsilon; or pay from another ledger, --ledger: then what "
                        "both have spent on these rows must be added up, and the data's owner must agree"
                    )
                raise
            spent = ledger.spent()
    except PrivacyError:
        if fresh:
            with contextlib.suppress(OSError):  # the ledger may lie in it
                out.rmdir()
        raise
    model.save(out)
    facts: dict[str, Fact] = {
        "model": str(out),
        "estimator": type(model).__name__,
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
        **_estimate_facts(model),
    }
    return facts, None if isinstance(schema, Schema) else model.schema_


def require_vacant(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that holds a trained model, before anything is spent.

    Raises:
        InvalidParameter: so it is, and `overwrite` is not given; the message says how to go on.
    """
    if overwrite or not (out / "model.json").exists():
        return
    try:
        record = json.loads((out / "model.json").read_text(encoding="utf-8"))
        what = f" ({record['estimator']}, epsilon {record['privacy']['epsilon']:.6g})"
    except (OSError, KeyError, TypeError, ValueError):
        what = ""
    raise InvalidParameter(
        f"out={str(out)!r} already holds a trained model{what}. Nothing was spent. Use it: "
        f"`ledgerwood predict {out} ROWS`; or train another one with another --out; or give --overwrite to replace it, "
        "which spends budget once more: what the first one cost stays spent"
    )


def _require_start(out: Path, ledger: Ledger) -> None:
    """Refuse a folder whose ledger is not the start of the one that pays: its entries would be lost.

    Raises:
        InvalidParameter: so it is.
    """
    try:
        held = tuple((out / "ledger.jsonl").read_text(encoding="utf-8").splitlines())
    except FileNotFoundError:
        return
    if held != ledger.record().lines[: len(held)]:
        raise InvalidParameter(
            f"out={str(out)!r} holds a ledger that the paying one does not continue, and its entries would be lost. "
            "Nothing was spent. Name another --out, or pay from that model's own ledger by --ledger"
        )


def _estimate_facts(model: Model) -> dict[str, Fact]:
    """What the estimate of a schema cost, where there was one."""
    purchase = model.plan_.purchase
    if purchase is None:
        return {}
    delta = model.privacy_.delta
    alone = price(Composed(tuple(purchase.events))).epsilon(delta)
    share = model.get_params(deep=False)["schema_share"]
    return {
        "columns_estimated": len(purchase.events),
        "estimate_share": share,
        "estimate_epsilon": alone,
        "estimate_is": f"the estimated schema, released by itself, has epsilon {plain(alone)} at delta {delta:g}; it "
        "is part of the epsilon above, and --set schema_share=... changes its share of the budget",
    }


def show_trained(facts: dict[str, Fact], estimated: Schema | None, target: str | None, *, as_json: bool) -> None:
    """Print what is told of a training, and the schema that was estimated: released values, as all of it.

    Args:
        facts, estimated: as `train_model` returns them.
        target: the label's column, by its name in the rows.
        as_json: whether they are printed as JSON.
    """
    if as_json:
        print_json(facts if estimated is None else {**facts, "schema": json.loads(estimated.to_json())})
        return
    show("trained", facts, as_json=False)
    console = Console()
    if estimated is not None:
        console.print(_columns(estimated, target))
    console.print(
        f"next: `ledgerwood predict {facts['model']} ROWS`; `ledgerwood ledger verify {facts['ledger']}`",
        soft_wrap=True, markup=False, highlight=False,
    )  # fmt: skip


def _columns(schema: Schema, target: str | None) -> Table:
    table = Table(title="privately estimated columns", title_justify="left")
    for column in ("column", "holds", "estimated"):
        table.add_column(column, overflow="fold")
    named: list[tuple[str, object]] = [(each.name, each) for each in schema.features]
    for name, each in (*named, (f"{target} (target)", schema.target)):
        match each:
            case Numeric():
                table.add_row(escape(name), "numbers", f"{each.low:.6g} to {each.high:.6g}")
            case Date():
                table.add_row(escape(name), "dates", f"{each.first} to {each.last}")
            case Categorical():
                names = [str(category) for category in each.categories[:_SHOWN]]
                more = len(each.categories) - _SHOWN
                shown = ", ".join(names) + (f" and {more} more" if more > 0 else "")
                table.add_row(escape(name), f"{len(each.categories)} categories", escape(shown))
    return table
