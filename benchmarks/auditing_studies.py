"""What is measured of `audit`: bounds, what it catches, what it accuses, its power, and what stopping early saves."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks import auditing_peers
from benchmarks.auditing_cases import BOUNDS, CATCH, NULL
from benchmarks.auditing_runs import CASES, FACTORS, ROOT, Job, outcomes
from ledgerwood.verification.auditing import samples_for

Found = dict[str, Any]
ALPHA, CI_ALPHA = 0.05, 1e-3
"""Of an estimate, and of a gate that may not fail by chance."""
DEFAULT = 100_000
SIZES = (100_000, 1_000_000)
BOUND_SEEDS, CATCH_SEEDS, NULL_SEEDS, POWER_SEEDS, STOP_SEEDS = 5, 5, 200, 100, 5
NULL_RUNS = 2_000
"""Outputs a side: so few that thousands of audits take minutes."""
MOST_OF_200 = {ALPHA: 19, CI_ALPHA: 2}
"""Accusations of a right mechanism in 200 seeds that chance explains."""
MOST_IN_ALL = 8
POWERS = (0.5, 0.9)

TARGETS = {
    100_000: {
        "laplace_ok": 0.975, "gauss_ok": 0.90, "laplace_halfscale": 1.97, "laplace_fp": 8.0, "svt3": 2.1, "svt4": 1.6,
        "svt5": 8.1, "svt6": 3.1, "noisyavg": 4.3, "expmech": 1.91,
    },
    1_000_000: {
        "laplace_ok": 0.993, "gauss_ok": 0.97, "laplace_halfscale": 1.99, "laplace_fp": 11.0, "svt3": 2.8,
        "svt4": 1.70, "svt5": 10.7, "svt6": 3.6, "noisyavg": 5.3, "expmech": 1.926,
    },
}  # fmt: skip
"""Mean bounds that were asked for, by outputs a side."""
SECONDS = {100_000: 2.0, 1_000_000: 10.0}


def _grouped(jobs: Iterable[Job], processes: int, title: str) -> dict[str, list[Found]]:
    found: dict[str, list[Found]] = defaultdict(list)
    for job, values in outcomes(jobs, processes=processes, title=title):
        found[job.case].append(values)
    return found


def _mean(values: Sequence[Found], key: str) -> float:
    return math.fsum(float(value[key]) for value in values) / len(values)


def bounds(size: int, seeds: int, processes: int = 1) -> Found:
    """Mean and least bound of each mechanism of section 3 of the peers' comparison, and seconds."""
    jobs = [
        Job(study="bounds", case=case.name, repetition=i, n=size, alpha=ALPHA) for case in BOUNDS for i in range(seeds)
    ]
    grouped = _grouped(jobs, processes, f"bounds, {size:,} a side")
    found = {}
    for name, values in grouped.items():
        truth = CASES[name].truth
        found[name] = {
            "mean": _mean(values, "bound"),
            "least": min(value["bound"] for value in values),
            "assumption": values[0]["assumption"],
            "unconditional": _mean(values, "unconditional"),
            "above the truth": sum(value["bound"] > truth for value in values),
            "seconds": _mean(values, "seconds"),
            "processor": _mean(values, "processor"),
            "seeds": seeds,
            "truth": _plain(truth),
            "delta": CASES[name].delta,
            "target": TARGETS[size].get(name) if size in TARGETS else None,
        }
    return {"cases": found}


def caught(seeds: int, processes: int, n: int = DEFAULT) -> Found:
    """D1 to D18 at the default budget: how often the claim is refuted, and the mean bound."""
    jobs = [
        Job(study="catch", case=case.name, repetition=i, n=n, alpha=ALPHA)
        for case in CATCH.values()
        for i in range(seeds)
    ]
    grouped = _grouped(jobs, processes, "must be caught")
    found = {}
    for label, case in CATCH.items():
        values = grouped[case.name]
        found[label] = {
            "name": case.name,
            "words": case.words,
            "caught": sum(value["rejected"] for value in values),
            "seeds": seeds,
            "mean": _mean(values, "bound"),
            "assumption": values[0]["assumption"],
            "event": values[0]["event"],
            "truth": _plain(case.truth),
            "numeric": case.numeric,
            "seen by": list(case.seen_by),
            "seconds": _mean(values, "seconds"),
        }
    return {"n": n, "cases": found}


def accused(seeds: int, processes: int, alpha: float, n: int = NULL_RUNS, names: Sequence[str] = ()) -> Found:
    """Right mechanisms: how many seeds refute their claim, and how many bounds are above the pair's own loss."""
    cases = [case for case in NULL if not names or case.name in names]
    jobs = [
        Job(study="null", case=case.name, repetition=i, n=min(n, case.runs or n), alpha=alpha)
        for case in cases
        for i in range(seeds)
    ]
    grouped = _grouped(jobs, processes, f"must not be accused, alpha {alpha:g}")
    found = {}
    for case in cases:
        values = grouped[case.name]
        found[case.name] = {
            "words": case.words,
            "flagged": sum(value["rejected"] for value in values),
            "above the truth": sum(value["bound"] > case.truth for value in values),
            "seeds": seeds,
            "n": min(n, case.runs or n),
            "truth": _plain(case.truth),
            "exact": case.exact,
            "mean": _mean(values, "bound"),
            "seconds": _mean(values, "seconds"),
        }
    return {"alpha": alpha, "cases": found}


def power(seeds: int, processes: int) -> Found:
    """Almost right Laplace noise: how often it is caught at the samples that the planner names for each power."""
    jobs = []
    for factor in FACTORS:
        for wanted in POWERS:
            jobs += [
                Job(study="power", case=f"laplace_{factor:g}", repetition=i, n=planned(factor, wanted), alpha=ALPHA)
                for i in range(seeds)
            ]
    found: dict[str, Found] = {}
    for job, values in outcomes(jobs, processes=processes, title="power"):
        row = found.setdefault(f"{job.case}, n {job.n}", {"n": job.n, "caught": 0, "seeds": seeds})
        row["caught"] += values["rejected"]
    for factor in FACTORS:
        for wanted in POWERS:
            n = planned(factor, wanted)
            found[f"laplace_{factor:g}, n {n}"] |= {"factor": factor, "planned": wanted}
    return {"rows": found}


def planned(factor: float, wanted: float) -> int:
    """Outputs a side with which the best event, a half-line, refutes epsilon 1 in this share of all audits."""
    runs = samples_for(
        1.0, with_row=0.5, without=0.5 * math.exp(-factor), delta=0.0, alpha=ALPHA, statistic="randomised_labels",
        power=wanted,
    )  # fmt: skip
    return math.ceil(runs / 2)


def stopped(seeds: int, processes: int, n: int = DEFAULT) -> Found:
    """Outputs drawn until the claim is refuted, beside those of the fixed size; learning included."""
    names = [case.name for case in CATCH.values()] + [f"laplace_{factor:g}" for factor in FACTORS]
    jobs = [
        Job(study="sequential", case=name, repetition=i, n=n, alpha=ALPHA, stop=stop)
        for name in names
        for i in range(seeds)
        for stop in ("never", "rejected")
    ]
    found: dict[str, Found] = {}
    for job, values in outcomes(jobs, processes=processes, title="early stop"):
        row = found.setdefault(job.case, {stop: {"caught": 0, "samples": 0.0} for stop in ("never", "rejected")})
        row[job.stop]["caught"] += values["rejected"]
        row[job.stop]["samples"] += values["samples"] / seeds
    return {"n": n, "seeds": seeds, "cases": found}


def beside(size: int) -> Found:
    """Other auditors' bounds on the mechanisms of `bounds`."""
    return {"rows": auditing_peers.measured(size, ROOT["peers"])}


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
