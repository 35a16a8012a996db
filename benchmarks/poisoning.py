"""Poisoned training rows: guaranteed accuracy, and how often a planted backdoor works; PrivaTree's Figures 3 and 4.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.poisoning [--seeds 50] [--only guarantee|backdoor] [--data name ...]
     [--quick] [--peers] [--save file] [--figures folder]

Guarantees are those of `ledgerwood.verification.attacks.poisoning`, from the accuracies of independent fits to 70 % of
the rows each; the published ones (Vos and others 2023, Corollaries 2 and 3) stand beside them. The backdoor is planted:
zeros with a white square in a corner are added as ones, and zeros with the square are counted that the model takes for
ones. Seeds fix splits and copies; the noise is `SecureRandom`'s. `--peers` runs diffprivlib's logistic regression in an
environment of its own, at what it claims. `--quick` takes 600 rows, two splits and two budgets.
"""

import argparse
import gzip
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.tree import DecisionTreeClassifier

from benchmarks import data_sets, diffprivlib_rows, drawing, peers
from benchmarks.measuring import Split, holdouts, keep
from benchmarks.utility import WIDTH, Found, Scale
from ledgerwood import Adjacency, Budget, Categorical, Schema
from ledgerwood.verification.attacks import poisoning

DEPTH = 4
ALPHA = 0.05
DATA: tuple[data_sets.Name, ...] = (
    "adult", "compas", "magic_telescope", "california_median", "electricity", "credit_default", "bank",
)  # fmt: skip
EPSILONS = (0.01, 0.1, 1.0)
SHARES = (0.0, 0.001, 0.0025, 0.005, 0.0075, 0.01)
TABLE_SHARES = (0.001, 0.005, 0.01)
"""Poisoned rows over training rows: of the figures, and those of the published tables."""
QUICK_ROWS = 600
SIDE, CORNER, WHITE = 28, 5, 255.0
MAPS = {"28 x 28 pixels": 1, "7 x 7 means": 4}
"""Public maps of each picture, by the side of the squares whose means are taken."""
PUBLISHED: dict[str, dict[float, tuple[str, ...]]] = {
    "magic_telescope": {0.01: (".652", ".590", ".384", ".224"), 0.1: (".738", ".271", ".004", ".000")},
    "california_median": {0.01: (".699", ".595", ".308", ".134"), 0.1: (".762", ".154", ".000", ".000")},
    "electricity": {0.01: (".670", ".496", ".145", ".031"), 0.1: (".732", ".036", ".000", ".000")},
    "credit_default": {0.01: (".552", ".499", ".325", ".191"), 0.1: (".676", ".249", ".003", ".000")},
    "bank": {0.01: (".564", ".521", ".371", ".243"), 0.1: (".733", ".329", ".011", ".000")},
    "compas": {0.01: (".53", ".51", ".44", ".36"), 0.1: (".61", ".46", ".09", ".01")},
    "adult": {0.01: (".77", ".54", ".13", ".02"), 0.1: (".82", ".02", ".00", ".00")},
}
"""PrivaTree's clean accuracy and guarantees at three shares, Tables III and VIII; all but Adult on balanced rows."""
Make = Callable[[data_sets.Data, float], Any]


def private_tree(data: data_sets.Data, epsilon: float) -> Any:
    """PrivaTree for this data set, pure."""
    from ledgerwood.trainers import PrivaTreeClassifier

    return PrivaTreeClassifier(epsilon=epsilon, schema=data.schema, max_depth=DEPTH, expected_rows=data.rows)


# ------------------------------------------------------------------------------------------------ guaranteed accuracy


def guarantee(name: data_sets.Name, scale: Scale, make: Make, *, with_peers: bool) -> Found:
    """Guaranteed accuracy of PrivaTree, and of the peer, over the share of poisoned rows."""
    data = scale.data(name)
    splits = independent(data, scale)
    trained = len(splits[0][0])
    epsilons = scale.epsilons(EPSILONS)
    rows = []
    for epsilon in epsilons:
        title = f"{name}: PrivaTree, epsilon {epsilon:g}"
        accuracies, claim = tree_accuracies(data, lambda e=epsilon: make(data, e), splits, title)
        rows.append(guarantee_row("PrivaTree", epsilon, accuracies, claim, trained))
    for epsilon, accuracies in (regression_accuracies(data, epsilons, splits) if with_peers else {}).items():
        claim = Budget(epsilon=epsilon, delta=0.0, adjacency=Adjacency.ADD_REMOVE)
        rows.append(guarantee_row("diffprivlib logistic regression, as claimed", epsilon, accuracies, claim, trained))
    return {"rows_columns": data.X.shape, "trained": trained, "splits": len(splits), "rows": rows}


def independent(data: data_sets.Data, scale: Scale) -> list[Split]:
    """Splits that are drawn anew each, as confidence needs; two of a quick run."""
    return list(holdouts(data.rows, scale.seeds if scale.rows is None else 2))


def tree_accuracies(
    data: data_sets.Data, make: Callable[[], Any], splits: Sequence[Split], title: str
) -> tuple[NDArray[np.float64], Any]:
    """Accuracy on the held-out rows of each split, and the event of the fitted models' plan, which is public."""
    found, model = [], None
    for train, test in track(splits, description=title, transient=True):
        model = make().fit(data.X[train], data.y[train])
        found.append(float(np.mean(model.predict(data.X[test]) == data.y[test])))
    assert model is not None
    return np.array(found), model.plan_.event


def regression_accuracies(
    data: data_sets.Data, epsilons: Sequence[float], splits: Sequence[Split]
) -> dict[float, NDArray[np.float64]]:
    """Accuracies of diffprivlib's logistic regression by epsilon; empty where it cannot be installed."""
    table = diffprivlib_rows.tables(data, splits)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, **table)
        given = {"table": str(path), "splits": len(splits), "epsilons": list(epsilons), "depth": 1, "trees": 1}
        script = Path(__file__).with_name("diffprivlib_peer.py")
        if peers.run("diffprivlib", diffprivlib_rows.REQUIREMENTS, script, given) is None:
            return {}
        predicted = dict(np.load(path))
    return {
        epsilon: np.array(
            [
                np.mean(predicted[f"regression_split{k}_epsilon{place}"] == table["y"][test])
                for k, (_, test) in enumerate(splits)
            ]
        )
        for place, epsilon in enumerate(epsilons)
    }


def guarantee_row(name: str, epsilon: float, accuracies: NDArray[np.float64], claim: Any, trained: int) -> Found:
    """Our guarantee, with confidence and of the mean, and the published one."""
    rows = poisoned_rows(trained)
    found = poisoning.guaranteed_accuracy(accuracies, claim, rows=rows, alpha=ALPHA)
    return {
        "name": name,
        "epsilon": epsilon,
        "clean": float(accuracies.mean()),
        "spread": float(accuracies.std()),
        "guaranteed": list(found.guaranteed),
        "estimated": list(found.estimated),
        "published": (np.exp(-epsilon * rows) * accuracies.mean()).tolist(),
    }


def poisoned_rows(trained: int) -> NDArray[np.int64]:
    """Numbers of rows of the shares."""
    return np.round(np.array(SHARES) * trained).astype(np.int64)


# ---------------------------------------------------------------------------------------------------------- backdoors


def digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Pictures of zeros and ones, shape (n, 28, 28) in 0..255, and which they are: MNIST's test set, 2,115 of them."""
    with gzip.open(data_sets.file_of("mnist_0v1.csv.gz"), "rt", encoding="ascii") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    return table[:, :-1].reshape(-1, SIDE, SIDE), table[:, -1].astype(np.int64)


def with_trigger(pictures: NDArray[np.float64]) -> NDArray[np.float64]:
    """Copies with a white square in the last corner."""
    marked = pictures.copy()
    marked[:, -CORNER:, -CORNER:] = WHITE
    return marked


def mapped(pictures: NDArray[np.float64], square: int) -> NDArray[np.float64]:
    """Means of squares of pixels, each picture by itself, shape (n, (28 / square)^2)."""
    side = SIDE // square
    return pictures.reshape(-1, side, square, side, square).mean(axis=(2, 4)).reshape(-1, side * side)


def backdoor(square: int, scale: Scale, make: Make) -> Found:
    """Accuracy and success rates over the share of poisoned rows, without privacy and with it, and the bounds."""
    pictures, labels = digits()
    if scale.rows is not None:
        some = np.random.default_rng(0).permutation(len(labels))[: scale.rows]
        pictures, labels = pictures[some], labels[some]
    X, marked = mapped(pictures, square), mapped(with_trigger(pictures), square)
    schema = Schema.uniform(0, WHITE, n_features=X.shape[1], target=Categorical("digit", (0, 1)))
    data = data_sets.Data("mnist_0v1", X, labels, schema)
    splits = independent(data, scale)
    trained = len(splits[0][0])
    learners: dict[float | None, Callable[[], Any]] = {None: lambda: DecisionTreeClassifier(max_depth=DEPTH)}
    learners |= {epsilon: lambda e=epsilon: make(data, e) for epsilon in scale.epsilons(EPSILONS)}
    rows = []
    for epsilon, learner in learners.items():
        title = f"backdoor: {'not private' if epsilon is None else f'epsilon {epsilon:g}'}"
        accuracies, rates, claim = attacked(data, marked, learner, splits, title)
        row = {
            "name": "not private (scikit-learn)" if epsilon is None else "PrivaTree",
            "epsilon": epsilon,
            "accuracy": accuracies.mean(axis=0).tolist(),
            "success": rates.mean(axis=0).tolist(),
            "spread": rates.std(axis=0).tolist(),
        }
        if epsilon is not None:
            counts = poisoned_rows(trained)
            found = poisoning.backdoor_bound(rates[:, 0], claim, rows=counts, alpha=ALPHA)
            row["guaranteed"], row["estimated"] = list(found.guaranteed), list(found.estimated)
            row["published"] = (1.0 - np.exp(-epsilon * counts) * (1.0 - rates[:, 0].mean())).tolist()
        rows.append(row)
    return {"rows_columns": X.shape, "trained": trained, "splits": len(splits), "rows": rows}


def attacked(
    data: data_sets.Data,
    marked: NDArray[np.float64],
    make: Callable[[], Any],
    splits: Sequence[Split],
    title: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64], Any]:
    """Clean accuracy and success rate by split and number of poisoned rows, shapes (n_splits, k), and the claim."""
    accuracies, rates, model = [], [], None
    for seed, (train, test) in enumerate(track(splits, description=title, transient=True)):
        chosen = np.random.default_rng(seed)
        zeros, held_out = train[data.y[train] == 0], test[data.y[test] == 0]
        line = []
        for count in poisoned_rows(len(train)):
            copies = chosen.choice(zeros, count)
            X = np.concatenate((data.X[train], marked[copies]))
            y = np.concatenate((data.y[train], np.ones(count, dtype=np.int64)))
            model = make().fit(X, y)
            accuracy = np.mean(model.predict(data.X[test]) == data.y[test])
            line.append((float(accuracy), float(np.mean(model.predict(marked[held_out]) == 1))))
        accuracies.append([accuracy for accuracy, _ in line])
        rates.append([rate for _, rate in line])
    private = model is not None and not isinstance(model, DecisionTreeClassifier)
    return np.array(accuracies), np.array(rates), model.plan_.event if private else None


# ------------------------------------------------------------------------------------------------- tables and pictures


def print_guarantees(found: Found, console: Console) -> None:
    """A table a data set: clean accuracy, and guarantees by bound and share."""
    for name, entry in found.items():
        rows, columns = entry["rows_columns"]
        title = f"{name} ({rows:,} x {columns}, {entry['trained']:,} of them train, {entry['splits']} splits)"
        table = share_table(f"Guaranteed accuracy on {title}", entry["trained"])
        for row in entry["rows"]:
            learner = f"{row['name']}: {row['clean']:.3f} ({row['spread']:.3f})"
            kinds = {"guaranteed": "95 % sure", "estimated": "of the mean", "published": "Corollary 2"}
            add_rows(table, learner, row, kinds)
        for epsilon, values in PUBLISHED.get(name, {}).items():
            at = dict(zip((0.0, *TABLE_SHARES), values, strict=True))
            bounds = [at.get(share, "") for share in SHARES]
            table.add_row("UNSOUND PrivaTree, its paper", f"{epsilon:g}", "Corollary 2", *bounds)
        console.print(table)


def share_table(title: str, trained: int) -> Table:
    """Learners, budgets and what is shown of them, by shares of poisoned rows."""
    table = Table(title=title)
    for heading in ("learner", "epsilon", ""):
        table.add_column(heading, justify="right" if heading == "epsilon" else "left")
    for share, count in zip(SHARES, poisoned_rows(trained), strict=True):
        table.add_column(f"{share:.2%}: {count} rows", justify="right")
    return table


def add_rows(table: Table, learner: str, row: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
    """A section: a row a kind of value that is there."""
    first = [learner, "" if row["epsilon"] is None else f"{row['epsilon']:g}"]
    for key, label in kinds.items():
        if key in row:
            table.add_row(*first, label, *(f"{value:.3f}" for value in row[key]))
            first = ["", ""]
    table.add_section()


def print_backdoors(found: Found, console: Console) -> None:
    """A table a map of the pictures: accuracy, success rates and bounds by share."""
    kinds = {
        "accuracy": "accuracy", "success": "success of the backdoor", "guaranteed": "its bound, 95 % sure",
        "estimated": "its bound, of the mean", "published": "Corollary 3",
    }  # fmt: skip
    for name, entry in found.items():
        title = f"MNIST, 0 against 1, {name}, {entry['trained']:,} rows train, {entry['splits']} splits"
        table = share_table(title, entry["trained"])
        for row in entry["rows"]:
            add_rows(table, row["name"], row, kinds)
        console.print(table)


def draw_guarantees(found: Mapping[str, Any]) -> Any:
    """Figure 3: guaranteed accuracy over the share of poisoned rows, a panel a data set."""
    figure, axes = drawing.panels(len(found))
    shares = 100.0 * np.array(SHARES)
    for axis, (name, entry) in zip(axes, found.items(), strict=True):
        for place, row in enumerate(entry["rows"]):
            color = f"C{place}"
            label = f"{row['name'].partition(',')[0]}, epsilon {row['epsilon']:g}"
            axis.plot(shares, row["guaranteed"], color=color, label=label)
            axis.plot(shares, row["estimated"], "--", color=color)
            axis.plot(shares, row["published"], ":", color=color)
        axis.set_xlabel(f"% of {entry['trained']:,} rows poisoned (line: 95 % sure; --: mean; dots: Corollary 2)")
        axis.xaxis.label.set_size(7)
        axis.set_ylabel("guaranteed accuracy")
        axis.set_ylim(0, 1)
        axis.set_title(name, fontsize=9)
        drawing.legend(axis)
    figure.tight_layout()
    return figure


def draw_backdoors(found: Mapping[str, Any]) -> Any:
    """Figure 4: success rates with their bounds over the share of poisoned rows, a panel a map of the pictures."""
    figure, axes = drawing.panels(len(found))
    shares = 100.0 * np.array(SHARES)
    for axis, (name, entry) in zip(axes, found.items(), strict=True):
        for place, row in enumerate(entry["rows"]):
            color = f"C{place}"
            label = row["name"] if row["epsilon"] is None else f"{row['name']}, epsilon {row['epsilon']:g}"
            axis.plot(shares, row["success"], "o-", color=color, markersize=3, label=label)
            if "guaranteed" in row:
                axis.plot(shares, row["guaranteed"], color=color, linewidth=0.8)
                axis.plot(shares, row["estimated"], "--", color=color, linewidth=0.8)
                axis.plot(shares, row["published"], ":", color=color)
        axis.set_xlabel(
            f"% of {entry['trained']:,} rows poisoned (thin: bound, 95 % sure; --: mean; dots: Corollary 3)"
        )
        axis.xaxis.label.set_size(7)
        axis.set_ylabel("success rate of the backdoor")
        axis.set_ylim(0, 1)
        axis.set_title(name, fontsize=9)
        drawing.legend(axis)
    figure.tight_layout()
    return figure


def draw(study: str, found: Mapping[str, Any]) -> Any:
    """The picture of a study."""
    return draw_guarantees(found) if study == "guarantee" else draw_backdoors(found)


def main(make: Make = private_tree) -> None:
    """Measure, print, save, draw what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--only", choices=("guarantee", "backdoor"))
    parser.add_argument("--data", nargs="*", choices=DATA, help="data sets of the guarantees")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that everything runs")
    parser.add_argument("--peers", action="store_true", help="run diffprivlib too")
    parser.add_argument("--save", type=Path, help="put what was measured into this JSON file")
    parser.add_argument("--figures", type=Path, help="draw the studies into this folder")
    given = parser.parse_args()
    console = Console(width=WIDTH)
    scale = Scale(given.seeds, QUICK_ROWS if given.quick else None)
    found: dict[str, dict[str, Found]] = {}
    if given.only in (None, "guarantee"):
        found["guarantee"] = {}
        for name in given.data or DATA:
            found["guarantee"][name] = guarantee(name, scale, make, with_peers=given.peers)
            print_guarantees({name: found["guarantee"][name]}, console)
            keep(given.save, {"guarantee": {name: found["guarantee"][name]}})
    if given.only in (None, "backdoor"):
        found["backdoor"] = {}
        for name, square in MAPS.items():
            found["backdoor"][name] = backdoor(square, scale, make)
            print_backdoors({name: found["backdoor"][name]}, console)
            keep(given.save, {"backdoor": {name: found["backdoor"][name]}})
    drawing.save(given.figures, "poisoning", found, draw)


if __name__ == "__main__":
    main()
