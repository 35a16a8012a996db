"""A demonstration on a real data set: plan, train and verify, with two non-private models for comparison."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ledgerwood.accounting import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.datasets import Dataset, DatasetName, load
from ledgerwood.report.printing import print_json, show
from ledgerwood.schema import Categorical, Schema
from ledgerwood.trainers import PrivateBoostingClassifier, PrivateBoostingRegressor
from ledgerwood.verification import verify_ledger

TEST_SHARE = 0.3
FEW_ROWS = 10_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The result of one demonstration.

    Args:
        dataset: name of the data set.
        train_rows, test_rows: rows of each part (public here: the data set is).
        scores: for each measure the private, the non-private and the trivial model's score on the test rows.
        epsilon_planned: privacy cost of the plan before training, nats.
        epsilon_readded: total of the ledger file, recomputed by the verifier, nats.
        delta: probability.
        adjacency: the relation.
        trees: number of trees.
        seconds: the seconds of the private training.
        ledger: the ledger file.
    """

    dataset: DatasetName
    train_rows: int
    test_rows: int
    scores: dict[str, tuple[float, float, float]]
    epsilon_planned: float
    epsilon_readded: float
    delta: float
    adjacency: Adjacency
    trees: int
    seconds: float
    ledger: Path

    @property
    def remark(self) -> str:
        """Why the private model stands where it stands."""
        size = (
            "are few, so the noise reduces the accuracy; with a hundred times as many rows it would hardly matter."
            if self.train_rows < FEW_ROWS
            else "are many, so the noise costs little."
        )
        return (
            "Why the gap: the noise on a leaf depends on epsilon, delta and the number of trees, not on the number of "
            f"rows, while the signal grows with the rows. {self.train_rows:,} training rows {size}"
        )

    def to_record(self) -> dict[str, object]:
        """Plain JSON values."""
        return {
            "dataset": self.dataset,
            "train_rows": self.train_rows,
            "test_rows": self.test_rows,
            "scores": {
                measure: dict(zip(("private", "non_private", "trivial"), values, strict=True))
                for measure, values in self.scores.items()
            },
            "epsilon_planned": self.epsilon_planned,
            "epsilon_readded": self.epsilon_readded,
            "delta": self.delta,
            "adjacency": self.adjacency.value,
            "trees": self.trees,
            "seconds": self.seconds,
            "ledger": str(self.ledger),
        }


def run_demo(name: DatasetName, *, epsilon: float, delta: float, verbose: bool) -> DemoResult:
    """Train on seven tenths of a data set, score on the rest.

    Args:
        name: which data set.
        epsilon, delta: the budget, under add-remove, one row a unit.
        verbose: whether to show a progress bar.

    Raises:
        DataUnavailable: the data set is neither on disk nor reachable.
        PrivacyError: as `fit` and `verify_ledger`.
    """
    budget = Budget(epsilon=epsilon, delta=delta, adjacency=Adjacency.ADD_REMOVE)
    data = load(name)
    test = np.random.default_rng(0).random(len(data.y)) < TEST_SHARE
    path = Path(tempfile.mkdtemp(prefix="ledgerwood-demo-")) / "run.ledger.jsonl"
    estimator = _estimator(data)(
        epsilon=epsilon,
        delta=delta,
        schema=data.schema,
        expected_rows=round(data.expected_rows * (1 - TEST_SHARE)),
        verbose=int(verbose),
    )
    with Ledger.open(path, dataset=name, budget=budget, unit=PrivacyUnit.ROW) as ledger:
        began = time.perf_counter()
        model = estimator.fit(data.X[~test], data.y[~test], ledger=ledger)
        seconds = time.perf_counter() - began
    checked = verify_ledger(path, head=model.privacy_.ledger_head)
    return DemoResult(
        dataset=name,
        train_rows=int(np.sum(~test)),
        test_rows=int(np.sum(test)),
        scores=_scores(data, test, model.predict(data.X[test])),
        epsilon_planned=model.privacy_.epsilon,
        epsilon_readded=checked.epsilon_readded,
        delta=delta,
        adjacency=budget.adjacency,
        trees=len(model.ensemble_.trees),
        seconds=seconds,
        ledger=path,
    )


def show_demo(result: DemoResult, *, as_json: bool) -> None:
    """Print what a demonstration found."""
    if as_json:
        print_json(result.to_record())
        return
    console = Console()
    table = Table(
        title=f"{result.dataset}: {result.train_rows:,} rows to train, {result.test_rows:,} to test",
        title_justify="left",
    )
    for column in ("on the test rows", "private", "not private (scikit-learn)", "trivial"):
        table.add_column(column, justify="left" if column == "on the test rows" else "right")
    for measure, values in result.scores.items():
        table.add_row(measure, *(f"{value:z.3f}" for value in values))
    console.print(table)
    show(
        "privacy",
        {
            "epsilon planned": result.epsilon_planned,
            "epsilon recomputed from the ledger file": result.epsilon_readded,
            "delta": result.delta,
            "adjacency": result.adjacency.value,
            "trees": result.trees,
            "seconds to train": result.seconds,
        },
        as_json=False,
    )
    console.print(result.remark)
    console.print(f"Add it up yourself: ledgerwood ledger verify {result.ledger}", soft_wrap=True)


def _estimator(data: Dataset) -> type[PrivateBoostingClassifier] | type[PrivateBoostingRegressor]:
    return PrivateBoostingClassifier if isinstance(data.schema.target, Categorical) else PrivateBoostingRegressor


def _scores(data: Dataset, test: NDArray[np.bool_], private: NDArray[Any]) -> dict[str, tuple[float, float, float]]:
    truth = data.y[test]
    predictions = (private, _booster(data, test), _trivial(data, test))
    if isinstance(data.schema.target, Categorical):
        return {"accuracy": _three(lambda guess: float(np.mean(guess == truth)), predictions)}
    spread = float(np.mean((truth - truth.mean()) ** 2))
    return {
        "RMSE": _three(lambda guess: float(np.sqrt(np.mean((guess - truth) ** 2))), predictions),
        "R2": _three(lambda guess: 1.0 - float(np.mean((guess - truth) ** 2)) / spread, predictions),
    }


def _three(
    measure: Callable[[NDArray[Any]], float], predictions: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
) -> tuple[float, float, float]:
    private, booster, trivial = predictions
    return measure(private), measure(booster), measure(trivial)


def _booster(data: Dataset, test: NDArray[np.bool_]) -> NDArray[Any]:
    """scikit-learn's own booster, which has no privacy at all."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    codes = _codes(data.X, data.schema)
    kind = (
        HistGradientBoostingClassifier if isinstance(data.schema.target, Categorical) else HistGradientBoostingRegressor
    )
    columns = [j for j, feature in enumerate(data.schema.features) if isinstance(feature, Categorical)]
    with threadpool_limits(
        1
    ):  # its threads wait for each other busily, which takes minutes on a machine that is shared
        model = kind(categorical_features=columns, random_state=0).fit(codes[~test], data.y[~test])
        return np.asarray(model.predict(codes[test]))


def _trivial(data: Dataset, test: NDArray[np.bool_]) -> NDArray[Any]:
    """The same answer for everybody: the most frequent class, or the mean."""
    labels = data.y[~test]
    if isinstance(data.schema.target, Categorical):
        classes, counts = np.unique(labels, return_counts=True)
        return np.full(int(test.sum()), classes[np.argmax(counts)], dtype=object)
    return np.full(int(test.sum()), labels.mean())


def _codes(X: NDArray[Any], schema: Schema) -> NDArray[np.float64]:
    codes = np.empty(X.shape, dtype=np.float64)
    for j, feature in enumerate(schema.features):
        column = X[:, j]
        if isinstance(feature, Categorical):
            place = {category: float(i) for i, category in enumerate(feature.categories)}
            column = np.array([place.get(value, np.nan) for value in column])
        codes[:, j] = column
    return codes
