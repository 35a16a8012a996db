"""privacy-estimates' bounds from counts, in an environment of its own: `benchmarks.auditing_peers` runs this there.

Standard input is {"counts": {case: {"delta": .., "TP": .., "FP": .., "TN": .., "FN": ..}}, "alpha": ..}: of one event,
fixed on other outputs. On the last line of its output are the bounds and the seconds of each case and method.
"""

import json
import sys
import time

from privacy_estimates import AttackResults, compute_eps_lo

METHODS = {"CP": "beta", "Jeffreys": "jeffreys"}


def main(given):
    """Bounds of each case and method; alpha covers an event and its complement."""
    found = {}
    for case, counts in given["counts"].items():
        delta = counts.pop("delta")
        found[case] = {}
        for name, method in METHODS.items():
            start = time.perf_counter()
            bound = compute_eps_lo(AttackResults(**counts), delta=delta, alpha=given["alpha"], method=method)
            found[case][name] = {"bound": max(float(bound), 0.0), "seconds": time.perf_counter() - start}
    return found


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
