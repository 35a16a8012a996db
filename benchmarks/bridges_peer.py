"""Answers of diffprivlib, TF Privacy and JAX Privacy in an environment that has them; run by benchmarks.bridges.

One question as JSON on the standard input, the list of answers on the standard output. The modules of TF Privacy and
JAX Privacy that compute costs need dp-accounting and absl only; they are loaded by their files, without tensorflow and
jax, which their packages import.
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def by_file(package: str, *path: str) -> ModuleType:
    found = importlib.util.find_spec(package)
    file = Path(found.submodule_search_locations[0]).joinpath(*path)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def diffprivlib(cases: list[dict[str, Any]]) -> list[tuple[float, float]]:
    from diffprivlib import BudgetAccountant

    found = []
    for case in cases:
        accountant = BudgetAccountant(slack=case["slack"])
        for epsilon, delta, count in case["spends"]:
            for _ in range(count):
                accountant.spend(epsilon, delta)
        epsilon, delta = accountant.total()
        found.append((float(epsilon), float(delta)))
    return found


def tf_privacy(cases: list[dict[str, Any]]) -> list[float]:
    lib = by_file("tensorflow_privacy", "privacy", "analysis", "compute_dp_sgd_privacy_lib.py")
    found = []
    for case in cases:
        text = lib.compute_dp_sgd_privacy_statement(
            case["rows"], case["batch_size"], case["epochs"], case["noise_multiplier"], case["delta"],
            used_microbatching=False,
        )  # fmt: skip
        line = next(each for each in text.splitlines() if "Poisson sampling (*):" in each)
        found.append(float(line.split()[-1]))
    return found


def jax_privacy(cases: list[dict[str, Any]]) -> list[str]:
    lib = by_file("jax_privacy", "experimental", "accounting.py")
    return [
        repr(
            lib.dpsgd_event(
                case["noise_multiplier"], case["epochs"] * 100, sampling_prob=case["batch_size"] / case["rows"]
            )
        )
        for case in cases
    ]


if __name__ == "__main__":
    question = json.load(sys.stdin)
    answers = {"diffprivlib": diffprivlib, "tf_privacy": tf_privacy, "jax_privacy": jax_privacy}
    print(json.dumps(answers[question["ask"]](question["cases"])))
