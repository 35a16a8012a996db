"""Each library that events can be taken from, asked for its epsilon of 100 random histories, beside ours.

`python -m benchmarks.bridges OTHER [--write]`: OTHER is a python that has diffprivlib (which needs scikit-learn < 1.6),
and, installed without their requirements, tensorflow-privacy and jax-privacy. The rest is in the extra "dev".

A peer's epsilon is *too small* where it is below the proven lower end of ours. Figures: docs/benchmarks/bridges.json.
"""

import argparse
import json
import logging
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import ledgerwood as lw
from ledgerwood.accounting.interop import from_dp_event, from_sgd_history, to_autodp, to_dp_event

A, R = lw.Adjacency.ADD_REMOVE, lw.Adjacency.REPLACE_ONE
COUNT = 100
SEED = 20
ROUNDING = 1e-9
"""Relative; what a peer loses in its last places is not listed."""
FILE = Path(__file__).parents[1] / "docs" / "benchmarks" / "bridges.json"
PEER = Path(__file__).with_name("bridges_peer.py")
Case = dict[str, Any]


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.4g}")


def trainings(count: int = COUNT, seed: int = SEED) -> list[Case]:
    """Histories of one or two stretches of DP-SGD."""
    rng = np.random.default_rng(seed)
    cases = []
    for _ in range(count):
        stretches = [
            (log_uniform(rng, 0.6, 6.0), log_uniform(rng, 1e-3, 0.2), int(log_uniform(rng, 10, 3000)))
            for _ in range(int(rng.integers(1, 3)))
        ]
        cases.append({"history": stretches, "delta": float(f"1e-{rng.integers(3, 9)}")})
    return cases


def statements(count: int = COUNT, seed: int = SEED) -> list[Case]:
    """Trainings by their public size, little noise to much."""
    rng = np.random.default_rng(seed + 1)
    cases = []
    for _ in range(count):
        rows = int(log_uniform(rng, 2_000, 1e6))
        cases.append(
            {
                "rows": rows, "batch_size": min(int(log_uniform(rng, 16, 2048)), rows // 4),
                "epochs": int(rng.integers(1, 40)), "noise_multiplier": log_uniform(rng, 0.7, 60.0),
                "delta": float(f"1e-{rng.integers(3, 9)}"),
            }
        )  # fmt: skip
    return cases


def spends(count: int = COUNT, seed: int = SEED) -> list[Case]:
    """What a BudgetAccountant may hold: pairs of a few kinds, and a slack, perhaps 0."""
    rng = np.random.default_rng(seed + 2)
    cases = []
    for _ in range(count):
        kinds = [
            (log_uniform(rng, 0.01, 1.0), 0.0 if rng.random() < 0.5 else log_uniform(rng, 1e-9, 1e-6), int(n))
            for n in rng.integers(1, 60, size=rng.integers(1, 4))
        ]
        slack = 0.0 if rng.random() < 0.3 else float(f"1e-{rng.integers(3, 8)}")
        cases.append({"spends": kinds, "slack": slack})
    return cases


def releases(count: int = COUNT, seed: int = SEED) -> list[Case]:
    """Integer noise on counts: (kind, scale, how often), for OpenDP."""
    rng = np.random.default_rng(seed + 3)
    cases = []
    for _ in range(count):
        parts = [
            (str(rng.choice(["gaussian", "laplace"])), log_uniform(rng, 5.0, 200.0), int(rng.integers(1, 30)))
            for _ in range(int(rng.integers(1, 4)))
        ]
        cases.append({"parts": parts, "delta": float(f"1e-{rng.integers(3, 9)}")})
    return cases


def ends(event: lw.Event, delta: float) -> tuple[float, float]:
    """Our proven interval of epsilon."""
    return lw.price(event).epsilon_interval(delta)


def compare(theirs: list[float | None], ours: list[tuple[float, float]], cases: list[Case]) -> dict[str, Any]:
    """How a peer's epsilons lie to ours; None is a refusal."""
    known = [(t, low, high, case) for t, (low, high), case in zip(theirs, ours, cases, strict=True) if t is not None]
    small = [(t, low, high, case) for t, low, high, case in known if t < low * (1.0 - ROUNDING)]
    ratios = [t / high for t, _, high, _ in known if high > 0.0]
    worst = min(small, key=lambda each: each[0] / each[1], default=None)
    return {
        "histories": len(cases),
        "answered": len(known),
        "too_small": len(small),
        "worst": None if worst is None else {"theirs": worst[0], "at_least": worst[1], "ours": worst[2], **worst[3]},
        "median_ratio": float(np.median(ratios)) if ratios else None,
        "largest_ratio": max(ratios, default=None),
    }


def tried(ask: Callable[[Case], float], cases: list[Case]) -> list[float | None]:
    """A peer's answers; whatever it raises is a refusal."""
    found: list[float | None] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases:
            try:
                value = float(ask(case))
            except Exception:  # noqa: BLE001  a peer's refusal, whatever its type
                value = math.nan
            found.append(value if math.isfinite(value) else None)
    return found


def opacus(mechanism: str) -> Callable[[Case], float]:
    from opacus.accountants import create_accountant

    def ask(case: Case) -> float:
        accountant = create_accountant(mechanism)
        accountant.history = [tuple(each) for each in case["history"]]
        return float(accountant.get_epsilon(delta=case["delta"]))

    return ask


def dp_accounting(method: str) -> Callable[[Case], float]:
    import dp_accounting as dpa

    def ask(case: Case) -> float:
        accountant = dpa.rdp.RdpAccountant() if method == "rdp" else dpa.pld.PLDAccountant()
        accountant.compose(to_dp_event(from_sgd_history(case["history"], adjacency=A, exact_rates=True)))
        return float(accountant.get_epsilon(case["delta"]))

    return ask


def autodp(case: Case) -> float:
    from autodp.transformer_zoo import Composition

    steps = [from_sgd_history([(m, q, 1)], adjacency=A, exact_rates=True).event for m, q, _ in case["history"]]  # type: ignore[attr-defined]
    mechanisms = [to_autodp(step, name=f"step {place}") for place, step in enumerate(steps)]
    return float(Composition()(mechanisms, [n for *_, n in case["history"]]).get_approxDP(case["delta"]))


def opendp(case: Case) -> float:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    parts = []
    for kind, scale, count in case["parts"]:
        if kind == "gaussian":
            one = dp.m.make_gaussian(*space, scale=scale)
        else:
            one = dp.c.make_pureDP_to_zCDP(dp.m.make_laplace(*space, scale=scale))
        parts += [one] * count
    return float(dp.c.make_zCDP_to_approxDP(dp.c.make_composition(parts)).map(1).epsilon(case["delta"]))


def counted(case: Case) -> lw.Event:
    """The same releases by our events."""
    made = {"gaussian": lw.DiscreteGaussianEvent, "laplace": lw.DiscreteLaplaceEvent}
    parts = [
        lw.Repeated(made[kind](scale=scale, sensitivity=1, adjacency=A), count=count)
        for kind, scale, count in case["parts"]
    ]
    return lw.Composed(tuple(parts))


def spent(case: Case) -> lw.Event:
    """The spends as stated events."""
    parts = []
    for epsilon, delta, count in case["spends"]:
        one = (
            lw.ApproximateEvent(epsilon=epsilon, delta=delta, adjacency=R)
            if delta
            else lw.PureEvent(epsilon=epsilon, adjacency=R)
        )
        parts.append(lw.Repeated(one, count=count))
    return lw.Composed(tuple(parts))


def elsewhere(python: str, question: dict[str, Any]) -> Any:
    """A peer's answers in its own environment."""
    done = subprocess.run([python, str(PEER)], input=json.dumps(question), capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def of_jax(python: str) -> dict[str, Any]:
    """JAX Privacy's events, read back: the same as ours."""
    import dp_accounting as dpa

    cases = statements()
    found = elsewhere(python, {"ask": "jax_privacy", "cases": cases})
    names = vars(dpa.dp_event)
    equal = 0
    for case, tree in zip(cases, found, strict=True):
        event = from_dp_event(eval(tree, dict(names)), adjacency=A)
        step = lw.GaussianEvent(noise_multiplier=case["noise_multiplier"], adjacency=A)
        rate = case["batch_size"] / case["rows"]
        equal += event == lw.Repeated(lw.PoissonSampled(step, sampling_rate=rate), count=case["epochs"] * 100)
    return {"histories": len(cases), "equal_events": equal}


def run(python: str | None) -> dict[str, Any]:
    """All comparisons; those of `python` only if it is given."""
    found: dict[str, Any] = {}
    cases = trainings()
    ours = [ends(from_sgd_history(case["history"], adjacency=A, exact_rates=True), case["delta"]) for case in cases]
    asked: dict[str, Callable[[Case], float]] = {
        "Opacus, prv": opacus("prv"), "Opacus, rdp": opacus("rdp"),
        "dp-accounting, pld": dp_accounting("pld"), "dp-accounting, rdp": dp_accounting("rdp"), "autodp": autodp,
    }  # fmt: skip
    for name, ask in asked.items():
        found[name] = compare(tried(ask, cases), ours, cases)
    single = [{**case, "history": case["history"][:1]} for case in cases]  # it takes one stretch only
    lone = [ends(from_sgd_history(case["history"], adjacency=A, exact_rates=True), case["delta"]) for case in single]
    found["Opacus, gdp"] = compare(tried(opacus("gdp"), single), lone, single)
    cases = releases()
    found["OpenDP"] = compare(tried(opendp, cases), [ends(counted(case), case["delta"]) for case in cases], cases)
    if python is not None:
        cases = spends()
        totals = elsewhere(python, {"ask": "diffprivlib", "cases": cases})
        found["diffprivlib"] = compare(
            [epsilon for epsilon, _ in totals],
            # with slack 0 their delta is what is lost for certain: a little more, so that what is rounded up fits
            [ends(spent(case), delta * (1.0 + 1e-6)) for case, (_, delta) in zip(cases, totals, strict=True)],
            cases,
        )
        cases = statements()
        printed = elsewhere(python, {"ask": "tf_privacy", "cases": cases})
        plans = [
            lw.sgd_plan(
                rows=case["rows"], batch_size=case["batch_size"], epochs=case["epochs"], sampling="poisson",
                noise_multiplier=case["noise_multiplier"],
            )
            for case in cases
        ]  # fmt: skip
        found["TF Privacy, as printed"] = compare(
            printed, [ends(plan.event, case["delta"]) for plan, case in zip(plans, cases, strict=True)], cases
        )
        found["JAX Privacy"] = of_jax(python)
    return found


def show(found: dict[str, Any]) -> Table:
    """The stored comparisons as a table."""
    table = Table(title="Epsilon of random histories beside ours")
    for name in ("library", "histories", "answered", "too small", "ratio, median", "ratio, largest", "the worst"):
        table.add_column(name)
    for name, each in found.items():
        if not isinstance(each, dict):
            continue
        if "answered" not in each:
            table.add_row(name, str(each["histories"]), f"{each['equal_events']} events equal ours", "", "", "", "")
            continue
        worst = each["worst"]
        table.add_row(
            name, str(each["histories"]), str(each["answered"]), str(each["too_small"]),
            f"{each['median_ratio']:.4f}", f"{each['largest_ratio']:.4f}",
            "" if worst is None else f"{worst['theirs']:.4g}, at least {worst['at_least']:.4g}",
        )  # fmt: skip
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", nargs="?", help="a python with diffprivlib, tensorflow-privacy and jax-privacy")
    parser.add_argument("--write", action="store_true", help="store the figures")
    given = parser.parse_args()
    logging.disable(logging.WARNING)  # peers say which orders they leave out
    start = time.perf_counter()
    found = run(given.other)
    found["seconds"] = round(time.perf_counter() - start)
    text = json.dumps(found, indent=1)
    print(text)
    if given.write:
        FILE.write_text(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
