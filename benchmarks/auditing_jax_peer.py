"""jax_privacy's auditor, in an environment of its own: `benchmarks.auditing_peers` runs this there.

Standard input is {"scores": a file of `numpy.savez` with <case>_first and <case>_second, "cases": {name: delta},
"alpha": ..}. On the last line of its output are the bounds and the seconds of each case and method.
"""

import json
import sys
import time

import numpy as np
from jax_privacy import auditing

LEAST_DELTA = 1e-12
"""Its one-run bounds refuse 0."""
SPLIT = auditing.Split(seed=0)


def methods(alpha, delta):
    """Name and bound of an auditor; alpha is one direction's share."""
    small = max(delta, LEAST_DELTA)
    yield "CP, Bonferroni", lambda a: a.epsilon_clopper_pearson(alpha, delta)
    yield "CP, split", lambda a: a.epsilon_clopper_pearson(alpha, delta, threshold_strategy=SPLIT)
    yield "one run, split", lambda a: a.epsilon_one_run(alpha, small, threshold_strategy=SPLIT)
    yield "one run f-DP, split", lambda a: a.epsilon_one_run_fdp(alpha, max(delta, 1e-6), threshold_strategy=SPLIT)
    yield "GDP", lambda a: a.epsilon_from_gdp(alpha, max(delta, 1e-6))


def main(given):
    """Bounds of each case and method, the better of both directions at half of alpha each."""
    scores = np.load(given["scores"])
    found = {}
    for case, delta in given["cases"].items():
        first, second = scores[f"{case}_first"], scores[f"{case}_second"]
        found[case] = {}
        for name, bound in methods(0.5 * given["alpha"], delta):
            start = time.perf_counter()
            both = [bound(auditing.CanaryScoreAuditor(*pair)) for pair in ((first, second), (-second, -first))]
            found[case][name] = {"bound": float(max(both)), "seconds": time.perf_counter() - start}
    return found


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
