"""Kill workers of a Dask cluster at random moments of fits, and count models and ledgers that differ (must be 0).

    python -m benchmarks.cluster_kills [--kills 50] [--rows 20000] [--save docs/benchmarks/cluster_kills.json]

Each fit has one moment, drawn uniformly from its usual length, at which one worker, or in every fifth fit all of them,
gets SIGKILL; nannies start them again. A kill that comes after the fit has ended is not counted. The model, and the
ledger's grants and draws, must be those of the same seed in memory.
"""

import argparse
import json
import os
import random
import signal
import statistics
import sys
import threading
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dask
import numpy as np
import pandas as pd

import ledgerwood as lw
from ledgerwood import Categorical, Numeric
from ledgerwood.curator.places import cluster as places
from ledgerwood.errors import PrivacyWarning
from ledgerwood.trainers import DPBoostClassifier, FederatedGBDTClassifier, SGBDTClassifier

NAMES = ("a", "b", "c", "kind")
SCHEMA = lw.Schema(
    features=(*(Numeric(name, 0, 1) for name in NAMES[:3]), Categorical("kind", ("u", "v"))),
    target=Categorical("two", ("no", "yes")),
)
CASES = {
    "S-GBDT, samples": (SGBDTClassifier, {"subsample": 0.5}),
    "S-GBDT, individual filter": (SGBDTClassifier, {"filter": "gdp"}),
    "S-GBDT, filter and samples": (SGBDTClassifier, {"filter": "renyi", "subsample": 0.5}),
    "DPBoost, groups": (DPBoostClassifier, {"trees_per_ensemble": 5}),
    "DPBoost": (DPBoostClassifier, {"trees_per_ensemble": 1}),
    "federated": (FederatedGBDTClassifier, {}),
}


def model_of(case):
    kind, own = CASES[case]
    return kind(**{
        "epsilon": 5.0, "delta": 1e-6, "schema": SCHEMA, "random_state": 7, "n_estimators": 10, "max_depth": 4, **own,
    })  # fmt: skip


def rows_of(n):
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({name: rng.random(n) for name in NAMES[:3]})
    rows["kind"] = rng.choice(["u", "v"], n)
    rows["two"] = np.where(rows["a"] + 0.4 * (rows["kind"] == "u") + 0.3 * rng.random(n) > 0.8, "yes", "no")
    return rows


def model_in(model):
    ensemble = model.ensemble_
    trees = [(tree.values.tolist(), *(each.tolist() for each in tree.structure.lowered())) for tree in ensemble.trees]
    return ensemble.initial_score, trees


def ledger_in(model):
    return [(type(entry).__name__, getattr(entry, "event", None)) for entry in model.ledger_.entries]


class Killer(threading.Thread):
    """Kills workers after some seconds, unless the fit has ended by then."""

    def __init__(self, client, seconds, count, rng):
        super().__init__(daemon=True)
        self.ended, self.seconds, self.killed, self.at = threading.Event(), seconds, 0, None
        processes = list(client.run(os.getpid).values())
        self.processes = rng.sample(processes, min(count, len(processes)))

    def run(self):
        if self.ended.wait(self.seconds):
            return
        self.at = QUESTIONS[-1] if QUESTIONS else 0
        for process in self.processes:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
            self.killed += 1


QUESTIONS = []
"""The numbers of the questions of the present fit; a question has its number before it is asked."""


def watch_questions():
    plain = places.ClusterSession.question

    def question(self, query, **more):
        asked = plain(self, query, **more)
        QUESTIONS.append(asked.number)
        return asked

    places.ClusterSession.question = question


def fit(model, rows):
    QUESTIONS.clear()
    begin = time.perf_counter()
    model.fit(rows[list(NAMES)], rows["two"])
    return time.perf_counter() - begin


def measured(arguments):
    import dask.dataframe as dd
    import distributed
    from distributed.utils import get_mp_context

    # A worker that starts again is forked off a process that has loaded the library: it takes a second, not twenty.
    get_mp_context().set_forkserver_preload(["distributed", "ledgerwood.trainers", "ledgerwood.curator.places.worker"])
    rng = random.Random(arguments.seed)
    rows = rows_of(arguments.rows)
    memory = {case: model_of(case).fit(rows[list(NAMES)], rows["two"]) for case in CASES}
    expected = {case: (model_in(model), ledger_in(model)) for case, model in memory.items()}
    watch_questions()
    found = {"fits": 0, "kills": 0, "models_that_differ": 0, "ledgers_that_differ": 0, "fits_that_ended_in_an_error": 0}
    moments, seconds, errors, by_case = {"while rows are encoded": 0, "in rounds": 0}, [], [], dict.fromkeys(CASES, 0)
    with (
        distributed.LocalCluster(
            n_workers=arguments.workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        frame = dd.from_pandas(rows, npartitions=8)
        usual = {}
        for case in CASES:
            fit(model_of(case), frame)  # compiles
            usual[case] = fit(model_of(case), frame)
        names = list(CASES)
        while found["kills"] < arguments.kills:
            case = names[found["fits"] % len(names)]
            count = arguments.workers if found["fits"] % 5 == 4 else 1
            # A nanny may give up a worker that was killed while it started: others take its place.
            while len(client.scheduler_info(n_workers=-1)["workers"]) < arguments.workers:
                cluster.scale(len(cluster.workers) + 1)
                time.sleep(3.0)
            killer = Killer(client, rng.uniform(0.0, usual[case]), count, rng)
            model = model_of(case)
            killer.start()
            try:
                took = fit(model, frame)
            except Exception as error:  # noqa: BLE001  # the count of these is a result
                errors.append(f"{case}: {type(error).__name__}: {str(error)[:200]}")
                found["fits_that_ended_in_an_error"] += 1
            else:
                found["models_that_differ"] += model_in(model) != expected[case][0]
                found["ledgers_that_differ"] += ledger_in(model) != expected[case][1]
                if killer.killed:
                    seconds.append(took)
            finally:
                killer.ended.set()
                killer.join()
            found["fits"] += 1
            found["kills"] += killer.killed
            by_case[case] += killer.killed
            if killer.killed:
                moments["in rounds" if killer.at else "while rows are encoded"] += killer.killed
                arguments.keep({
                    **found, "errors": errors, "kills_by_case": by_case, "kills_by_moment": moments,
                    "rows": arguments.rows, "workers": arguments.workers, "seed": arguments.seed,
                    "seconds_of_a_fit_without_a_kill": statistics.median(usual.values()),
                    "seconds_of_a_fit_with_a_kill": {"median": statistics.median(seconds), "most": max(seconds)},
                })  # fmt: skip
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", type=Path, default=None)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    begin = time.perf_counter()

    def keep(found):
        text = json.dumps({**found, "seconds": time.perf_counter() - begin}, indent=1)
        print(text, flush=True)
        if arguments.save is not None:
            arguments.save.write_text(text + "\n")

    arguments.keep = keep
    found = measured(arguments)
    failed = ("models_that_differ", "ledgers_that_differ", "fits_that_ended_in_an_error")
    return int(any(found[each] for each in failed))


if __name__ == "__main__":
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    sys.exit(main())
