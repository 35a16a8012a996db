"""Models of diffprivlib and interpret on two neighbouring tables, in an environment of their own.

`benchmarks.auditing_foreign` runs this there. Standard input is {"system": .., "epsilon": .., "n": .., "seed": ..}; on
the last line of the output are n released values with the canary, n without it, and the seconds of the fits.
"""

import json
import sys
import time

import numpy as np

CORNER = [[0.0, 0.0]]


def naive_bayes(epsilon, X, y, seed):
    from diffprivlib.models import GaussianNB

    model = GaussianNB(epsilon=epsilon, bounds=(0.0, 1.0), random_state=seed).fit(X, y)
    return [*model.class_count_, *model.theta_.ravel(), *model.var_.ravel()]


def logistic(epsilon, X, y, seed):
    from diffprivlib.models import LogisticRegression

    # One weight: noise on the objective's gradient has one direction, and one row turns the gradient there.
    model = LogisticRegression(epsilon=epsilon, data_norm=1.0, fit_intercept=False, random_state=seed).fit(X, y)
    return [*model.coef_.ravel()]


def forest(epsilon, X, y, seed):
    from diffprivlib.models import RandomForestClassifier

    model = RandomForestClassifier(
        n_estimators=1, max_depth=1, epsilon=epsilon, bounds=([0.0, 0.0], [1.0, 1.0]), classes=[0, 1], random_state=seed
    ).fit(X, y)
    return [float(model.predict(CORNER)[0])]


def ebm(epsilon, X, y, seed):
    from interpret.privacy import DPExplainableBoostingRegressor

    model = DPExplainableBoostingRegressor(
        epsilon=epsilon, delta=1e-5, feature_types=["continuous"], privacy_bounds=np.array([[0.0, 1.0]]),
        privacy_target_min=0.0, privacy_target_max=1.0, max_rounds=1, max_bins=4, outer_bags=1, n_jobs=1,
        learning_rate=1.0, random_state=seed,
    ).fit(X[:, :1], y)  # fmt: skip
    # The bins follow from noisy counts: how many there are varies. What is read is the canary's bin.
    place = 1 + int(np.digitize(X[0, 0], model.bins_[0][0]))
    score = float(model.term_scores_[0][place]) + float(model.intercept_)
    weight = float(model.bin_weights_[0][place])
    return [weight, score, weight * score]


# The other rows, the canary, and what stands in for it: on these one row changes most of what is released.
SYSTEMS = {
    "naive Bayes": (naive_bayes, ([[0.0, 0.0]] * 2 + [[1.0, 1.0]] * 2, [0, 0, 1, 1]), ([1.0, 1.0], 1), ([0.0, 0.0], 0)),
    # The other two rows have no gradient: they name the classes.
    "logistic regression": (logistic, ([[0.0]] * 2, [0, 1]), ([1.0], 1), ([1.0], 0)),
    "random forest": (forest, ([[0.0, 0.0]], [0]), ([0.0, 0.0], 1), None),
    "DP-EBM": (ebm, ([[0.2, 0.0]] * 30, [0.0] * 30), ([0.2, 0.0], 1.0), ([0.2, 0.0], 0.0)),
}


def main(given):
    """Released values of both tables."""
    fit, (rows, labels), (canary, label), other = SYSTEMS[given["system"]]
    without = np.array(rows), np.array(labels)
    if other is not None:
        without = np.array([*rows, other[0]]), np.array([*labels, other[1]])
    with_it = np.array([*rows, canary]), np.array([*labels, label])
    seeds = np.random.SeedSequence(given["seed"]).generate_state(2 * given["n"])
    begun = time.perf_counter()
    found = [
        [list(map(float, fit(given["epsilon"], *table, int(seed)))) for seed in own]
        for table, own in zip((with_it, without), np.split(seeds, 2), strict=True)
    ]
    return {"with": found[0], "without": found[1], "seconds": time.perf_counter() - begun}


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
