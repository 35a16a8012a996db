"""Kill the processes that spend from one ledger, and count what was violated (must be 0).

    python -m benchmarks.ledger_kills [--processes 16] [--grants 2000] [--kills 200] [--json]

Processes grant and draw from one data set until nothing is left, on SQLite and on a private PostgreSQL server. They
are killed (SIGKILL) at random moments by the parent, and by themselves inside of a commit; commits also find the disk
full, and lose their connection before and after the database has them. Afterwards: the grants are within the budget,
every acknowledged entry is there, none is there that was reported as not recorded, and the chain verifies.
"""

import argparse
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from benchmarks.postgres import binaries, server
from ledgerwood.accounting import Adjacency, Budget, Ledger, PrivacyUnit, PureEvent
from ledgerwood.accounting.ledger import GrantEntry, migrations
from ledgerwood.accounting.ledger import _database as database
from ledgerwood.errors import BudgetExceeded, LedgerError, LedgerWriteFailed
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
EVENT = PureEvent(epsilon=2.0**-12, adjacency=A)
FAULTS = ("killed before", "killed after", "full disk", "lost before", "lost after")


def faulty(rng, rate, note):
    """A commit that fails now and then, in each of the ways of FAULTS."""
    real = database.commit

    def commit(connection):
        fault = rng.choice(FAULTS) if rng.random() < rate else None
        if fault is not None:
            note(f"fault {fault}")
        driver = connection.connection.dbapi_connection
        match fault:
            case "killed before":
                os.kill(os.getpid(), signal.SIGKILL)
            case "full disk":
                raise OperationalError("COMMIT", {}, OSError("No space left on device"))
            case "lost before" if connection.dialect.name == "postgresql":
                driver.pgconn.finish()  # the socket is gone; the commit finds out by itself
            case "lost before":
                raise OperationalError("COMMIT", {}, ConnectionError("connection lost"))
        real(connection)
        if fault == "killed after":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "lost after":
            if connection.dialect.name == "postgresql":
                driver.pgconn.finish()
            raise OperationalError("COMMIT", {}, ConnectionError("connection lost"))

    return commit


def spend(url, name, notes, seed, rate, parent):
    """Grant and draw until nothing is left; each outcome is noted at once, so that it outlives a kill."""
    handle = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(text):
        os.write(handle, f"{text}\n".encode())

    rng = random.Random(seed)
    with Ledger.open(url, dataset="kills") as ledger:
        database.commit = faulty(rng, rate, note)
        for attempt in itertools.count():
            if os.getppid() != parent:
                return  # nobody counts any more
            purpose = f"{name} {attempt}"
            try:
                grant = ledger.grant(EVENT, purpose=purpose)
                note(f"granted {grant.index} {purpose}")
                if rng.random() < 0.2:
                    receipt = grant.draw(EVENT, purpose=purpose)
                    note(f"drawn {receipt.index} {receipt.hash}")
            except BudgetExceeded:
                note("refused")
                return
            except LedgerWriteFailed:  # of a grant or of its draw: the former is noted already
                note(f"failed {purpose}")
            except LedgerError:
                note(f"unknown {purpose}")


def campaign(url, folder, *, processes, grants, kills, seed=1, rate=0.03, seconds=600.0):
    """Run all of it; the counts, and the violations by name."""
    rng, context = random.Random(seed), get_context("fork")
    budget = Budget(epsilon=grants * EVENT.epsilon, delta=0.0, adjacency=A)
    Ledger.open(url, dataset="kills", budget=budget, unit=PrivacyUnit.ROW).close()
    engine = sa.create_engine(url)
    count = sa.text("SELECT entries FROM ledgerwood_heads WHERE dataset = 'kills'")

    def entries():
        with engine.connect() as connection:
            return int(connection.execute(count).scalar_one())

    running, files, killed, began = [], [], 0, time.monotonic()

    def start():
        files.append(Path(folder) / f"notes-{len(files)}")
        files[-1].touch()  # a process may be killed before its first line
        process = context.Process(
            target=spend, args=(url, f"p{len(files)}", files[-1], rng.random(), rate, os.getpid())
        )
        process.start()
        running.append(process)

    for _ in range(processes):
        start()
    step = 0.8 * grants / max(kills, 1)  # spread the kills over most of the run
    due = rng.uniform(0, 2 * step)
    while running and time.monotonic() - began < seconds:
        time.sleep(rng.uniform(0.0, 0.02))
        if killed < kills and entries() >= due:
            victim = rng.choice(running)
            victim.kill()
            killed, due = killed + 1, due + rng.uniform(0, 2 * step)
        for process in [p for p in running if not p.is_alive()]:
            process.join()
            running.remove(process)
            if process.exitcode == -signal.SIGKILL:
                start()
            elif process.exitcode != 0:
                raise RuntimeError(f"a worker failed by itself, with code {process.exitcode}")
    took = time.monotonic() - began
    for process in running:
        process.kill()
        process.join()
    engine.dispose()
    found = check(url, files, budget)
    found["violations"]["did not finish in time"] = len(running)
    return {
        "store": sa.make_url(url).get_backend_name(), "processes": processes, "random kills": killed,
        **found, "seconds": round(took, 1), "grants a second": round(found["grants"] / took, 1),
    }  # fmt: skip


def check(url, files, budget):
    """Read the ledger back, and hold it against what the processes noted."""
    said = {"granted": [], "drawn": [], "failed": [], "unknown": [], "fault": [], "refused": []}
    for file in files:
        for line in file.read_text().splitlines():
            kind, _, rest = line.partition(" ")
            said[kind].append(rest)
    report = verify_ledger(url, dataset="kills")  # raises if the chain does not hold
    entries = migrations.read_ledger(url, "kills").entries
    by_purpose = {entry.purpose: entry.index for entry in entries if isinstance(entry, GrantEntry)}
    granted = {purpose: int(index) for index, purpose in (rest.split(" ", 1) for rest in said["granted"])}
    drawn = {int(index): digest for index, digest in (rest.split(" ") for rest in said["drawn"])}
    failed, unknown = set(said["failed"]) - set(granted), set(said["unknown"]) - set(granted)
    violations = {
        "over budget": int(report.epsilon_readded > budget.epsilon),
        "acknowledged grants lost": sum(by_purpose.get(purpose) != index for purpose, index in granted.items()),
        "acknowledged draws lost": sum(entries[index].hash != digest for index, digest in drawn.items()),
        "recorded though reported as not": len(failed & set(by_purpose)),
        "budget left though refused": int(bool(said["refused"]) and report.epsilon_readded < budget.epsilon),
    }
    return {
        "grants": report.grants, "acknowledged": len(granted), "draws": report.draws,
        "epsilon": report.epsilon_readded, "budget": budget.epsilon,
        "faults": {name: said["fault"].count(name) for name in FAULTS}, "outcome unknown": len(unknown),
        "violations": violations,
    }  # fmt: skip


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--processes", type=int, default=16)
    arguments.add_argument("--grants", type=int, default=2000)
    arguments.add_argument("--kills", type=int, default=200, help="by the parent, at random moments")
    arguments.add_argument("--rate", type=float, default=0.03, help="share of commits with an injected fault")
    arguments.add_argument("--url", help="one database, instead of a new SQLite file and a new PostgreSQL server")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()

    def run(url):
        with tempfile.TemporaryDirectory() as folder:
            place = url or f"sqlite:///{folder}/team.db"
            found = campaign(
                place,
                folder,
                processes=options.processes,
                grants=options.grants,
                kills=options.kills,
                rate=options.rate,
            )
        print(json.dumps(found) if options.json else "\n".join(f"{k:>20}  {v}" for k, v in found.items()) + "\n")
        return sum(found["violations"].values())

    if options.url:
        return run(options.url)
    bad = run(None)
    folder = binaries()
    if folder is None:
        print("no PostgreSQL: its initdb, postgres and pg_ctl were not found")
        return 1
    with server(folder) as url:
        return bad + run(url)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
