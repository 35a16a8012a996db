"""Sensitivities of jax_privacy's matrix mechanisms, in its own environment: cases from standard input, then figures."""

import json
import sys
import time

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
from jax_privacy.matrix_factorization import sensitivity  # noqa: E402


def figures(case: dict) -> dict:
    """Each of its functions with its seconds, or what it says instead."""
    matrix, most, apart = np.array(case["matrix"]), case["participations"], case["separation"]
    row = {}
    for name, function, arguments in (
        ("upper", sensitivity.get_min_sep_sensitivity_upper_bound, (matrix, apart, most)),
        ("banded", sensitivity.get_sensitivity_banded, (matrix, apart, most)),
        ("fixed", sensitivity.fixed_epoch_sensitivity, (matrix, most)),
    ):
        started = time.perf_counter()
        try:
            row[name] = [float(function(*arguments)), time.perf_counter() - started]
        except ValueError as error:
            row[name] = [None, str(error)[:80]]
    return row


if __name__ == "__main__":
    print(json.dumps([figures(case) for case in json.load(sys.stdin)]))
