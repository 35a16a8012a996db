"""Let processes spend from ledger files that others save, create, open and close, and count what was lost (must be 0).

    python -m benchmarks.ledger_races [--seconds 60] [--processes 9] [--kill-every 0.5] [--json]

A third of the processes opens the file, spends a few times, and closes it; a third saves records to the very same path:
what they just read there, what they read a while ago, or a new ledger of the same terms with one spend of its own; a
third only opens and closes. Some are killed (SIGKILL) at any moment, and started again. Once a file's budget is used
up, all go on to the next file. Afterwards every spend that was acknowledged, or saved, must be in its file, every chain
must verify, and no budget may have been granted twice.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ledgerwood.accounting import Adjacency, Budget, Ledger, PrivacyUnit, PureEvent
from ledgerwood.accounting.ledger import GrantEntry, LedgerRecord
from ledgerwood.accounting.ledger.jsonl import read_lines
from ledgerwood.errors import BudgetExceeded, LedgerError
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
EVENT = PureEvent(epsilon=2.0**-5, adjacency=A)
BUDGET = Budget(epsilon=1.0, delta=0.0, adjacency=A)  # 32 spends a file
ROLES = ("spend", "save", "open")


def path_of(folder, turn):
    return Path(folder) / f"{turn}.ledger.jsonl"


def newest(folder):
    """The file that everybody is at: the last that exists."""
    turn = 0
    while path_of(folder, turn + 1).exists():
        turn += 1
    return turn


def work(role, name, folder, notes, seed, until, parent):
    """Do one thing again and again; each outcome is noted at once, so that it outlives a kill."""
    warnings.simplefilter("ignore")  # of a killed spender's last line
    handle = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    rng, old, attempt = random.Random(seed), None, 0

    def note(*words):
        os.write(handle, (" ".join(map(str, words)) + "\n").encode())

    while time.time() < until and os.getppid() == parent:
        turn = newest(folder)
        path, attempt = path_of(folder, turn), attempt + 1
        try:
            if role == "save":
                kind = rng.choice(("fresh", "old", "new"))
                if kind == "new":
                    record = Ledger(BUDGET, unit=PrivacyUnit.ROW)
                    record.spend(EVENT, purpose=f"{name}.{attempt}")
                elif kind == "old" and old is not None:
                    record, path = old
                else:
                    record = LedgerRecord.from_lines(tuple(read_lines(path)))
                    old = record, path
                record.save(path)
                if kind == "new":
                    note("kept", turn, f"{name}.{attempt}")
                note("saved", turn, kind)
                continue
            with Ledger.open(path, budget=BUDGET, unit=PrivacyUnit.ROW) as ledger:
                note("opened", turn, "-")
                for part in range(rng.randint(1, 3) if role == "spend" else 0):
                    purpose = f"{name}.{attempt}.{part}"
                    ledger.spend(EVENT, purpose=purpose)
                    note("kept", turn, purpose)
        except BudgetExceeded:
            path_of(folder, turn + 1).touch()
        except LedgerError as refusal:
            note("refused", turn, type(refusal).__name__)
            time.sleep(rng.uniform(0.0, 0.002))


def campaign(folder, *, seconds, processes, kill_every, seed=1):
    """Run all of it; the counts, and the violations by name."""
    rng, context, started, kills = random.Random(seed), get_context("fork"), 0, 0
    notes, running = [], []
    began = time.monotonic()
    until = time.time() + seconds

    def start(role):
        nonlocal started
        notes.append(Path(folder) / f"notes-{started}")
        arguments = (role, f"p{started}", folder, notes[-1], rng.random(), until, os.getpid())
        process = context.Process(target=work, args=arguments, name=role)
        process.start()
        running.append(process)
        started += 1

    for k in range(processes):
        start(ROLES[k % len(ROLES)])
    while time.time() < until:
        time.sleep(min(rng.uniform(0.0, 2.0 * kill_every), max(until - time.time(), 0.0)))
        if time.time() < until:
            victim = running.pop(rng.randrange(len(running)))
            victim.kill()
            victim.join()
            kills += victim.exitcode == -signal.SIGKILL
            start(victim.name)
    for process in running:
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(f"a process that may {process.name} failed by itself, with code {process.exitcode}")
    return {"processes": processes, "seconds": round(time.monotonic() - began, 1), "kills": kills} | check(
        folder, notes
    )


def check(folder, notes):
    """Read the files back, and hold them against what the processes noted."""
    said = [line.split(" ") for file in notes if file.exists() for line in file.read_text().splitlines()]
    kept = {}
    for kind, turn, rest in said:
        if kind == "kept":
            kept.setdefault(int(turn), set()).add(rest)
    lost = overspent = broken = grants = 0
    for turn in range(newest(folder) + 1):
        path, acknowledged = path_of(folder, turn), kept.get(turn, set())
        overspent += len(acknowledged) * EVENT.epsilon > BUDGET.epsilon
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with Ledger.open(path, budget=BUDGET, unit=PrivacyUnit.ROW) as ledger:
                    entries = ledger.entries
            overspent += verify_ledger(path).epsilon_readded > BUDGET.epsilon
        except LedgerError:
            broken, entries = broken + 1, ()
        found = {entry.purpose for entry in entries if isinstance(entry, GrantEntry)}
        grants += len(found)
        lost += len(acknowledged - found)
    return {
        "files": newest(folder) + 1, "opened": sum(kind == "opened" for kind, _, _ in said),
        "saved": sum(kind == "saved" for kind, _, _ in said), "refused": sum(kind == "refused" for kind, _, _ in said),
        "grants": grants, "acknowledged spends": sum(map(len, kept.values())),
        "lost": lost, "budgets granted twice": overspent, "chains broken": broken,
    }  # fmt: skip


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--processes", type=int, default=9)
    arguments.add_argument("--kill-every", type=float, default=0.5, help="seconds, on average")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = campaign(folder, seconds=options.seconds, processes=options.processes, kill_every=options.kill_every)
    print(json.dumps(found) if options.json else "\n".join(f"{k:>22}  {v}" for k, v in found.items()))
    return found["lost"] + found["budgets granted twice"] + found["chains broken"]


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
