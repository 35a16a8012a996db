"""interpret's DP-EBM, in an environment of its own: `benchmarks.peers` runs this there.

Standard input is {"table": a file of `numpy.savez`, "fits": [[epsilon, split], ..], "delta": ..}; the table has X with
codes in nominal columns (`nominal` says which), public bounds low and high, labels y (numbers between `target`, or 0
and 1) and the rows of each split. Predictions, and CPU seconds of each fit, go back into the file. All parameters are
its defaults. Its epsilon is what it claims: it takes the names of categories from the rows, and does not clip the
residuals of a regression (docs/errata.md).
"""

import json
import sys
import time

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor


def model_of(given, table, epsilon):
    """An estimator with declared types, ranges of columns, and the label's range."""
    common = {
        "feature_types": ["nominal" if nominal else "continuous" for nominal in table["nominal"]],
        "privacy_bounds": np.column_stack([table["low"], table["high"]]),
        "epsilon": epsilon,
        "delta": given["delta"],
        "composition": "gdp",
        "n_jobs": 1,
    }
    if "target" not in table:
        return DPExplainableBoostingClassifier(**common)
    low, high = table["target"].tolist()
    return DPExplainableBoostingRegressor(**common, privacy_target_min=low, privacy_target_max=high)


def main(given):
    """Write predictions of each fit into the table's file: numbers, or probabilities of both classes."""
    table = dict(np.load(given["table"]))
    X = table["X"].astype(object)
    for j in np.flatnonzero(table["nominal"]):
        X[:, j] = [str(int(code)) for code in table["X"][:, j]]
    found = {}
    for place, (epsilon, split) in enumerate(given["fits"]):
        train, test = table[f"train{split}"], table[f"test{split}"]
        model = model_of(given, table, epsilon)
        start = time.process_time()
        model.fit(X[train], table["y"][train])
        found[f"seconds{place}"] = np.array(time.process_time() - start)
        predict = model.predict if "target" in table else model.predict_proba
        found[f"fit{place}"] = predict(X[test])
    np.savez(given["table"], **found)


if __name__ == "__main__":
    main(json.load(sys.stdin))
    print(json.dumps("done"))
