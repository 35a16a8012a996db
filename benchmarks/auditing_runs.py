"""One audit of one case, and many of them in processes: seeds are named here, before anything is drawn."""

import multiprocessing
import time
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from rich.progress import track
from threadpoolctl import threadpool_limits

from benchmarks.auditing_cases import BOUNDS, CATCH, NULL, Case, near_miss
from ledgerwood.verification import audit

Study = Literal["bounds", "catch", "null", "power", "sequential", "peers"]
ROOT: dict[Study, int] = {
    "bounds": 710_001, "catch": 710_002, "null": 710_003, "power": 710_004, "sequential": 710_005, "peers": 710_006,
}  # fmt: skip
"""The first word of each study's seeds; then come the case's name, the samples and the number of the repetition."""

FACTORS = (1.02, 1.05, 1.1, 1.2)
CASES: dict[str, Case] = {
    case.name: case for case in (*BOUNDS, *CATCH.values(), *NULL, *(near_miss(factor) for factor in FACTORS))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One audit.

    Args:
        study: whose seeds it takes.
        case: a name of `CASES`.
        repetition: from 0.
        n: outputs of each data set in the final test.
        alpha: the level.
        stop: "rejected" stops as soon as the claim is refuted.
    """

    study: Study
    case: str
    repetition: int
    n: int
    alpha: float
    stop: Literal["never", "rejected"] = "never"


def generator(job: Job) -> np.random.Generator:
    """The job's own stream; the level does not enter."""
    words = (ROOT[job.study], zlib.crc32(job.case.encode()), job.n, job.repetition)
    return np.random.default_rng(words)


def outcome(job: Job) -> dict[str, Any]:
    """What the audit says, as plain values."""
    case = CASES[job.case]
    start = time.process_time()
    found = audit(
        case.sampler, case.pair, claim=case.claim, n=job.n, alpha=job.alpha, numeric=case.numeric, delta=case.delta,
        stop=job.stop, rng=generator(job),
    )  # fmt: skip
    alone = [bound.value for bound in found.bounds if bound.assumption == "none"]
    return {
        "bound": found.epsilon_lower,
        "assumption": found.assumption,
        "unconditional": max(alone, default=0.0),
        "rejected": found.rejected,
        "samples": found.samples,
        "seconds": found.seconds,
        "processor": time.process_time() - start,
        "event": found.event,
    }


def outcomes(jobs: Iterable[Job], *, processes: int, title: str) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Each job and what it found, in order; one process times best, several are faster on a quiet machine."""
    listed = list(jobs)
    if processes == 1:
        with threadpool_limits(1):
            for job in track(listed, description=title, transient=True):
                yield job, outcome(job)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_one_thread) as pool:
        found = pool.map(outcome, listed, chunksize=4)
        yield from zip(listed, track(found, description=title, total=len(listed), transient=True), strict=True)


def _one_thread() -> None:
    threadpool_limits(1)
