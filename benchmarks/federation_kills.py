"""Kill processes of a federation at random moments, and count models and ledgers that differ, and hangs (must be 0).

    python -m benchmarks.federation_kills [--runs 50] [--save docs/benchmarks/federation_kills.json]

A SuperLink and five nodes on this machine, with TLS and node authentication (`benchmarks.flower_processes`). In each
run S-GBDT is trained over all five; at a random moment one process, in every fifth run two of different nodes, gets
SIGKILL, and is started again up to 3 s later: the owner's own process (rows, key, ledger), the SuperNode, or the
process of the client app. The model must be the one that the same seed gives on one table of the rows of each round's
recorded
survivors, and each owner's ledger must have one grant for a session and each draw once.
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import ledgerwood as lw
from ledgerwood.errors import FederationRefused, OwnersLost, PrivacyWarning

CLIENTS, ROWS = 5, 2_000
SCHEMA = lw.Schema(
    features=tuple(lw.Numeric(name, 0, 1) for name in "abc"), target=lw.Categorical("two", ("no", "yes"))
)  # fmt: skip
DROPOUTS = 0.4
"""Three of five have to be left."""
BUDGET = lw.Budget(epsilon=1e4, delta=1e-2, adjacency=lw.Adjacency.ADD_REMOVE)
LONGEST = 400.0
"""Seconds of a run, after which it hangs. It has 7 exchanges, of TIMEOUT at most, and one more for each kill."""
TIMEOUT = 20.0
WARM = 2
"""Runs before the first kill."""
APP = "from benchmarks import federation_kills\n\nclient = federation_kills.client\nserver = federation_kills.server\n"


def rows_of(number):
    rng = np.random.default_rng(number)
    X = rng.random((ROWS, 3))
    return X, np.where(X[:, 0] + 0.3 * rng.random(ROWS) > 0.6, "yes", "no")


def model_of(run):
    from ledgerwood.trainers import SGBDTClassifier

    return SGBDTClassifier(
        epsilon=1.0, delta=1e-6, schema=SCHEMA, random_state=run, n_estimators=2, max_depth=3, expected_rows=10_000
    )


def ledger_file(folder, number):
    return Path(folder) / f"owner-{number}.ledger.jsonl"


# ------------------------------------------------------------------------------------------------ the processes' sides


def owner(folder, number, socket):
    """The owner's own process."""
    from ledgerwood.federation.owners.account import ClientAccount
    from ledgerwood.federation.owners.own import OwnRows, identity_at
    from ledgerwood.federation.owners.owner import Owner
    from ledgerwood.federation.owners.policy import OwnerPolicy
    from ledgerwood.federation.owners.service import serve_owner

    X, y = rows_of(int(number))
    account = ClientAccount(
        ledger_file(folder, number), dataset=f"owner {number}", budget=BUDGET, unit=lw.PrivacyUnit.ROW
    )
    policy = OwnerPolicy(allow_seed=True)
    identity = identity_at(Path(folder) / f"owner-{number}.secret")
    serve_owner(Owner(lambda: OwnRows(X=X, y=y), account=account, identity=identity, policy=policy), socket)


def sessions(folder, first, runs):
    """What the server's app does: one fit after another, each after all owners have answered."""
    from ledgerwood.federation.options import FederationOptions
    from ledgerwood.federation.training import train

    folder, options = Path(folder), FederationOptions(dropouts=DROPOUTS, server="benchmark")

    def told(**event):
        with (folder / "progress.jsonl").open("a") as file:
            file.write(json.dumps({**event, "at": time.time()}) + "\n")

    def all_sessions(transport):
        warnings.simplefilter("ignore", PrivacyWarning)
        for run in range(first, first + runs):
            told(run=run, event="waits")
            end = time.monotonic() + 240
            while len(transport.exchange(dict.fromkeys(transport.clients, b""), what="is there")) < CLIENTS:
                if time.monotonic() > end:
                    raise OwnersLost(f"not all owners are there again: {transport.silent}")
            told(run=run, event="begins")
            begin, found = time.perf_counter(), {}
            try:
                model = train(model_of(run), transport, options)
            except (FederationRefused, OwnersLost) as error:
                found = {"error": f"{type(error).__name__}: {error}"}
            else:
                model.save(folder / f"model-{run}")
                record = model.federation_
                found = {
                    "session": record.session,
                    "rounds": [[each.attempts, list(each.asked), list(each.survivors)] for each in record.rounds],
                }
            told(run=run, event="ends", seconds=time.perf_counter() - begin, **found)

    return all_sessions


def __getattr__(name):  # the apps are made where Flower loads them, not where this module is the benchmark
    if name == "client":
        from ledgerwood.federation.flower.apps import client_app
        from ledgerwood.federation.owners.service import OwnerSocket

        return client_app(OwnerSocket(timeout=60.0))
    if name == "server":
        from ledgerwood.federation.flower.server import ServerMain, app_that

        folder, first, runs = os.environ["LEDGERWOOD_KILLS"].split("|")
        train = sessions(folder, int(first), int(runs))
        return app_that(ServerMain(train=train, clients=CLIENTS, model=None, wait=120.0, timeout=TIMEOUT))
    raise AttributeError(name)


# -------------------------------------------------------------------------------------------------- the central model


def central(run, survivors):
    """The model of one table: in each round, of the rows of that round's survivors."""
    from ledgerwood.curator.places.federated_rows import AbstractOwners
    from ledgerwood.curator.tables.parts import EVERYBODY
    from ledgerwood.curator.tables.trees import Table

    rows = [rows_of(number) for number in range(CLIENTS)]

    class Pooled(AbstractOwners):
        noise, unit, assumption, purpose = "server", lw.PrivacyUnit.ROW, "one table", "federation of one table"
        asked = 0

        def head(self, schema, *, numeric_target=False):
            return rows[0][0][:0], rows[0][1][:0]

        @contextmanager
        def session(self, terms):
            self.terms = terms
            yield

        def begin(self):
            pass

        def go_on(self):
            raise NotImplementedError("this fit is no stream")

        def found(self, schema):
            raise NotImplementedError("this fit's schema is declared")

        def sealed(self, coins, draw):
            return b""

        def require(self, query):
            pass

        def sums(self, question):
            own = [rows[number] for number in survivors[self.asked]]
            self.asked += 1
            terms = self.terms
            X, y = np.concatenate([X for X, _ in own]), np.concatenate([y for _, y in own])
            table = Table.from_data(X, y, terms.schema, loss=terms.loss, bins=terms.bins)
            return table.sums(question.query, EVERYBODY, is_choice=question.is_choice)

    return model_of(run).fit(Pooled(), None)


def model_in(model):
    ensemble = model.ensemble_
    trees = [(tree.values.tolist(), *(each.tolist() for each in tree.structure.lowered())) for tree in ensemble.trees]
    return ensemble.initial_score, trees


def double_spends(folder, number):
    """Grants of one session beyond the first, and draws of one grant's place beyond the first, in an owner's ledger."""
    from ledgerwood.accounting.ledger import DrawEntry, GrantEntry, Ledger

    if not ledger_file(folder, number).exists():
        return 0, 0
    entries = Ledger.open(ledger_file(folder, number)).entries
    grants = Counter(each.purpose for each in entries if isinstance(each, GrantEntry))
    draws = Counter((each.grant, each.purpose) for each in entries if isinstance(each, DrawEntry))
    return sum(count - 1 for count in (*grants.values(), *draws.values())), sum(grants.values())


# ------------------------------------------------------------------------------------------------------------ the runs


class Progress:
    """What the server's app has told so far."""

    def __init__(self, folder):
        self.path = folder / "progress.jsonl"

    def events(self):
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def wait(self, run, event, seconds, while_waiting=lambda: None):
        end, looked = time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < end:
            for each in self.events():
                if each["run"] == run and each["event"] == event:
                    return each
            if time.monotonic() > looked + 10:
                while_waiting()
                looked = time.monotonic()
            time.sleep(0.2)
        raise TimeoutError(f"run {run} has not come to {event!r} after {seconds} s")


def measured(runs, seed, folder, keep=lambda _: None):
    """Run and kill.

    Args:
        runs: with a kill, after WARM without.
        seed: of the moments.
        folder: an empty one.
        keep: takes the figures so far.
    """
    from benchmarks.flower_processes import Deployment
    from ledgerwood.trainers import SGBDTClassifier

    rng = random.Random(seed)
    folder = Path(folder)
    commands = [["-m", "benchmarks.federation_kills", "owner", str(folder), str(each)] for each in range(CLIENTS)]
    found = {
        "runs": 0, "kills": 0, "models": 0, "models_that_differ": 0, "double_spends": 0, "hangs": 0,
        "ended_before_the_first_round": 0, "ended_in_owners_lost": 0, "rounds": 0, "rounds_with_dropouts": 0,
        "attempts_beyond_the_first": 0,
    }  # fmt: skip
    kinds, seconds, errors = Counter(), [], []
    os.environ["LEDGERWOOD_KILLS"] = f"{folder}|0|{runs + WARM}"
    progress = Progress(folder)
    with Deployment(folder, commands) as flower:
        app = flower.start_app(flower.make_app("kills", APP))

        def watch():
            status, details = flower.status(app)
            if status.startswith("finished") and not status.endswith("completed"):
                raise RuntimeError(f"the server's app is {status}: {details}; {flower.log('link')}")

        progress.wait(WARM - 1, "begins", 600, watch)  # runs in which processes load what they need
        usual = progress.wait(WARM - 1, "ends", LONGEST)
        if "error" in usual:
            raise RuntimeError(f"the run without a kill failed: {usual['error']}")
        for run in range(WARM, runs + WARM):
            progress.wait(run, "begins", 300, watch)
            nodes = rng.sample(range(CLIENTS), 2 if run % 5 == 0 else 1)
            threads = []
            for node in nodes:
                part = rng.choices(("owner", "node", "app"), (12, 6, 2))[0]
                kinds[part] += 1
                moment, down = rng.uniform(0, usual["seconds"]), rng.uniform(0, 3)

                def strike(part=part, node=node, moment=moment, down=down):
                    time.sleep(moment)
                    flower.kill(f"{part}-{node}")
                    time.sleep(down)
                    flower.keep_up(part, node)

                threads.append(threading.Thread(target=strike))
                threads[-1].start()
            try:
                end = progress.wait(run, "ends", LONGEST)
            except TimeoutError:
                found["hangs"] += 1
                raise
            finally:
                for thread in threads:
                    thread.join()
            found["runs"] += 1
            found["kills"] += len(nodes)
            seconds.append(end["seconds"])
            if "error" in end:
                errors.append(end["error"][:300])
                kind = "ended_before_the_first_round" if end["error"].startswith("Fed") else "ended_in_owners_lost"
                found[kind] += 1
            else:
                survivors = [each[2] for each in end["rounds"]]
                found["models"] += 1
                found["rounds"] += len(survivors)
                found["rounds_with_dropouts"] += sum(len(each) < CLIENTS for each in survivors)
                found["attempts_beyond_the_first"] += sum(each[0] - 1 for each in end["rounds"])
                own = SGBDTClassifier.load(folder / f"model-{run}")
                found["models_that_differ"] += model_in(own) != model_in(central(run, survivors))
            spends = [double_spends(folder, number) for number in range(CLIENTS)]
            found["double_spends"] = sum(twice for twice, _ in spends)
            keep({
                **found, "kills_by_process": dict(kinds), "errors": errors, "owners": CLIENTS, "seed": seed,
                "sessions_in_each_owners_ledger": [grants for _, grants in spends],
                "seconds_of_the_run_without_a_kill": usual["seconds"],
                "seconds_of_a_run_with_a_kill": {"median": statistics.median(seconds), "most": max(seconds)},
                "seconds_until_an_exchange_ends": TIMEOUT,
            })  # fmt: skip
    return found


def main():
    if sys.argv[1:2] == ["owner"]:
        owner(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", type=Path, default=None)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    begin = time.perf_counter()

    def keep(found):
        text = json.dumps({**found, "load": os.getloadavg()[0], "seconds": time.perf_counter() - begin}, indent=1)
        print(text, flush=True)
        if arguments.save is not None:
            arguments.save.write_text(text + "\n")

    with tempfile.TemporaryDirectory(prefix="ledgerwood-kills-") as folder:
        found = measured(arguments.runs, arguments.seed, folder, keep)
    failed = ("models_that_differ", "double_spends", "hangs")
    sys.exit(1 if any(found[each] for each in failed) else 0)


if __name__ == "__main__":
    main()
