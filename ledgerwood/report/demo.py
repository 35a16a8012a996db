"""A demonstration on a real data set: plan, train and verify, utility over epsilon, two models without privacy."""

import os
import sys
import tempfile
import time
import warnings
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ledgerwood.accounting import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.datasets import Dataset, DatasetName, load
from ledgerwood.errors import PrivacyWarning
from ledgerwood.pages.html import write
from ledgerwood.report.demo_page import DemoResult, UtilityPoint, demo_page, text_plot
from ledgerwood.report.printing import print_json, show
from ledgerwood.schema import Categorical, Schema
from ledgerwood.trainers import PrivateBoostingClassifier, PrivateBoostingRegressor
from ledgerwood.verification import verify_ledger

TEST_SHARE = 0.3
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""The budgets of the picture, nats; the demonstration's own is one more."""


def run_demo(name: DatasetName, *, epsilon: float, delta: float, verbose: bool) -> DemoResult:
    """Train on seven tenths of a data set, score on the rest; then once at each of EPSILONS, for a picture.

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
    folder = Path(tempfile.mkdtemp(prefix="ledgerwood-demo-"))
    path = folder / "run.ledger.jsonl"

    def estimator(own: float) -> PrivateBoostingClassifier | PrivateBoostingRegressor:
        return _estimator(data)(
            epsilon=own,
            delta=delta,
            schema=data.schema,
            expected_rows=round(data.expected_rows * (1 - TEST_SHARE)),
            verbose=int(verbose),
        )

    with Ledger.open(path, dataset=name, budget=budget, unit=PrivacyUnit.ROW) as ledger:
        began = time.perf_counter()
        model = estimator(epsilon).fit(data.X[~test], data.y[~test], ledger=ledger)
        seconds = time.perf_counter() - began
    checked = verify_ledger(path, head=model.privacy_.ledger_head)
    scores = _scores(data, test, model.predict(data.X[test]))
    points = [UtilityPoint(epsilon=epsilon, score=_main(scores)[0])]
    with warnings.catch_warnings():  # these fits have no common ledger: the page says that the rows are public
        warnings.simplefilter("ignore", PrivacyWarning)
        for own in EPSILONS:
            if own != epsilon:
                other = estimator(own).fit(data.X[~test], data.y[~test])
                points.append(UtilityPoint(epsilon=own, score=_score(data, test, other.predict(data.X[test]))))
    result = DemoResult(
        dataset=name,
        train_rows=int(np.sum(~test)),
        test_rows=int(np.sum(test)),
        scores=scores,
        epsilon_planned=model.privacy_.epsilon,
        epsilon_readded=checked.epsilon_readded,
        delta=delta,
        adjacency=budget.adjacency,
        trees=len(model.ensemble_.trees),
        seconds=seconds,
        ledger=path,
        utility=tuple(sorted(points, key=lambda point: point.epsilon)),
        page=folder / "demo.html",
    )
    write(demo_page(result), result.page)
    return result


def show_demo(result: DemoResult, *, as_json: bool, browse: bool | None = None) -> None:
    """Print what a demonstration found, and open its page.

    Args:
        result: what was found.
        as_json: print one JSON object and open nothing.
        browse: whether to open the page in a browser; None does so from a terminal on a machine with a screen.
    """
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
    console.print(text_plot(result, blocks=console.encoding.startswith("utf")), highlight=False)
    console.print(result.remark)
    console.print(f"Recompute it: ledgerwood ledger verify {result.ledger}", soft_wrap=True)
    opened = (_has_screen() if browse is None else browse) and webbrowser.open(result.page.as_uri())
    console.print(f"{'Opened' if opened else 'The same as a page'}: {result.page}", soft_wrap=True)


def _has_screen() -> bool:
    """Whether a person at a screen started this: a browser in a terminal would take the terminal away."""
    shown = sys.platform in {"darwin", "win32"} or bool({"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ))
    return sys.stdout.isatty() and shown


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


def _main(scores: dict[str, tuple[float, float, float]]) -> tuple[float, float, float]:
    """The measure that the picture shows: accuracy, or R2."""
    return scores.get("accuracy") or scores["R2"]


def _score(data: Dataset, test: NDArray[np.bool_], guess: NDArray[Any]) -> float:
    """That measure of one model's predictions."""
    truth = data.y[test]
    if isinstance(data.schema.target, Categorical):
        return float(np.mean(guess == truth))
    return 1.0 - float(np.mean((guess - truth) ** 2)) / float(np.mean((truth - truth.mean()) ** 2))


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
