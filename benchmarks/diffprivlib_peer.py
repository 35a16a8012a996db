"""diffprivlib's tree, forest and logistic regression, in an environment of its own: `benchmarks.peers` runs this there.

Standard input is {"table": a file of `numpy.savez`, "splits": .., "epsilons": [..], "depth": .., "trees": ..}; the
table has codes X, their bounds low and high, labels y in 0..K-1 (others break its learning, docs/errata.md) and the
rows of each split. Predictions go back into the file. With "fits": [[epsilon, split], ..] in place of "splits" and
"epsilons" these are the forest's probabilities, and CPU seconds of each fit. Its epsilon is what it claims: it takes
the classes of its regression from the rows, and its forest cuts the rows by position, unless they are shuffled.
"""

import json
import math
import sys
import time

import numpy as np
from diffprivlib.models import DecisionTreeClassifier, LogisticRegression, RandomForestClassifier


def models(given, epsilon, table):
    """Name and model; the regression sees columns scaled to [-1, 1] by their public bounds."""
    bounds = (table["low"], table["high"])
    classes = list(range(int(table["classes"])))
    yield "tree", DecisionTreeClassifier(max_depth=given["depth"], epsilon=epsilon, bounds=bounds, classes=classes)
    yield (
        "forest",
        RandomForestClassifier(
            n_estimators=given["trees"], max_depth=given["depth"], epsilon=epsilon, bounds=bounds, classes=classes,
            shuffle=True,
        ),
    )  # fmt: skip
    yield "regression", LogisticRegression(epsilon=epsilon, data_norm=math.sqrt(len(table["low"])))


def main(given):
    """Write predictions of each split at each epsilon into the table's file."""
    table = dict(np.load(given["table"]))
    scaled = 2.0 * (table["X"] - table["low"]) / (table["high"] - table["low"]) - 1.0
    found = {}
    for split in range(given["splits"]):
        train, test = table[f"train{split}"], table[f"test{split}"]
        for place, epsilon in enumerate(given["epsilons"]):
            for name, model in models(given, epsilon, table):
                X = scaled if name == "regression" else table["X"]
                model.fit(X[train], table["y"][train])
                found[f"{name}_split{split}_epsilon{place}"] = model.predict(X[test])
    np.savez(given["table"], **found)


def forests(given):
    """Write the forest's probabilities by class, and CPU seconds, of each fit into the table's file."""
    table = dict(np.load(given["table"]))
    found = {}
    for place, (epsilon, split) in enumerate(given["fits"]):
        model = dict(models(given, epsilon, table))["forest"]
        train, test = table[f"train{split}"], table[f"test{split}"]
        start = time.process_time()
        model.fit(table["X"][train], table["y"][train])
        found[f"seconds{place}"] = np.array(time.process_time() - start)
        found[f"fit{place}"] = model.predict_proba(table["X"][test])
    np.savez(given["table"], **found)


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    (forests if "fits" in asked else main)(asked)
    print(json.dumps("done"))
