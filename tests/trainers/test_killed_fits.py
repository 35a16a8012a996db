"""Fits on rows in files that are killed at random moments: what is left on disk, and what the ledger says."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pandas as pd
import pytest

import ledgerwood as lw
from ledgerwood import Budget, Ledger, PrivacyUnit
from ledgerwood.accounting.ledger import DrawEntry, GrantEntry
from ledgerwood.trainers import DPBoostClassifier
from ledgerwood.verification import verify_ledger

pa, pq = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))

KILLS = 20
BUDGET = Budget(epsilon=100.0, delta=1e-5, adjacency=lw.Adjacency.ADD_REMOVE)
SCHEMA = lw.Schema(features=(lw.Numeric("a", 0, 1), lw.Numeric("b", 0, 1)), target=lw.Categorical("c", ("no", "yes")))
# Imports once, then forks a fit for each line: a fit is killed, and not the imports.
PROGRAM = """
    import os, signal, sys
    from pathlib import Path
    import numpy, pyarrow, pyarrow.parquet, numba, polars
    import ledgerwood as lw
    from ledgerwood import Ledger
    from ledgerwood.accounting.ledger import Grant
    from ledgerwood.curator.inputs import batches as reading_batches
    from ledgerwood.curator.tables import chunks
    from ledgerwood.trainers import DPBoostClassifier

    chunks.PART_ROWS = 1 << 11
    reading_batches.BATCH_ROWS = 1 << 9
    place = Path(sys.argv[1])
    schema = lw.Schema(
        features=(lw.Numeric("a", 0, 1), lw.Numeric("b", 0, 1)), target=lw.Categorical("c", ("no", "yes"))
    )

    # Kills this process as soon as its ledger has written this draw (the first is 1; 0: none).
    def kill_at_draw(last):
        draw, count = Grant.draw, 0

        def counted(*arguments, **options):
            nonlocal count
            receipt = draw(*arguments, **options)
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return receipt

        Grant.draw = counted

    few = numpy.random.default_rng(0).random((100, 2))
    options = dict(epsilon=1.0, delta=0.0, schema=schema, n_estimators=6, max_depth=3, n_jobs=1)
    # Kernels are loaded before the fork, and no thread is started.
    DPBoostClassifier(**options, random_state=0).fit(few, numpy.where(few[:, 0] > 0.5, "yes", "no"))
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            kill_at_draw(int(line))
            with Ledger.open(place / "book.jsonl", dataset="rows") as ledger:
                DPBoostClassifier(**options).fit(
                    place / "rows.parquet", "c", ledger=ledger, scratch=place / "scratch"
                )
            os._exit(0)
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.mark.slow  # some twenty fits, each in a process that is killed
@pytest.mark.filterwarnings("ignore:.*cut short:RuntimeWarning")  # a ledger's line, at which the fit was killed
def test_a_fit_that_is_killed_leaves_no_rows_and_a_ledger_that_is_right(tmp_path):
    generator = np.random.default_rng(5)
    rows = pd.DataFrame(generator.random((10_000, 2)), columns=["a", "b"])
    rows["c"] = np.where(rows["a"] > 0.5, "yes", "no")
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / "rows.parquet", row_group_size=1000)
    book, scratch = tmp_path / "book.jsonl", tmp_path / "scratch"
    Ledger.open(book, dataset="rows", budget=BUDGET, unit=PrivacyUnit.ROW).close()
    scratch.mkdir()
    plan = DPBoostClassifier(epsilon=1.0, delta=0.0, schema=SCHEMA, n_estimators=6, max_depth=3).make_plan(SCHEMA)
    drawn = dict(plan.event.draws())
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PROGRAM), str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip

    def fit(seconds=None, draw=0):
        """The status of a fit that is killed after some seconds or at this draw, and how long it took."""
        server.stdin.write(f"{draw}\n")
        server.stdin.flush()
        child, start = int(server.stdout.readline()), time.perf_counter()
        if seconds is not None:
            time.sleep(seconds)
            with contextlib.suppress(ProcessLookupError):  # it was faster than the last one
                os.kill(child, signal.SIGKILL)
        return int(server.stdout.readline()), time.perf_counter() - start

    try:
        assert server.stdout.readline() == "ready\n"
        fit()  # compiles
        status, whole = fit()
        assert status == 0
        assert list(scratch.iterdir()) == []
        killed, left, in_the_middle = 0, 0, 0
        moments = [{"seconds": each} for each in generator.uniform(0.02, 1.0, KILLS // 2) * whole]
        moments += [{"draw": int(each)} for each in generator.integers(1, sum(drawn.values()), KILLS - len(moments))]
        for moment in moments:
            status, _ = fit(**moment)
            killed += status == signal.SIGKILL
            found = list(scratch.iterdir())
            assert len(found) <= 1  # what an earlier one left was swept by this one, or is this one's
            assert all(re.fullmatch("ledgerwood-.*", each.name) for each in found)
            assert sum(each.stat().st_size for folder in found for each in folder.iterdir()) == 0
            left += len(found)
            in_the_middle += 0 < len(_draws(book)[-1]) < sum(drawn.values())
        assert killed >= KILLS // 2
        assert left > 0
        assert in_the_middle >= KILLS // 2
        assert fit()[0] == 0
        assert list(scratch.iterdir()) == []
    finally:
        server.stdin.close()
        server.wait()
        server.stdout.close()
    grants = _draws(book)
    assert 3 <= len(grants) <= KILLS + 3
    for events in grants:  # each grant is of one fit, which drew nothing twice
        assert all(events.count(event) <= drawn[event] for event in set(events))
    assert len(grants[-1]) == sum(drawn.values())
    report = verify_ledger(book)
    assert report.verdict == "confirmed"
    assert report.epsilon_readded == pytest.approx(len(grants) * 1.0, rel=1e-6)


def _draws(book):
    """The events that were drawn out of each grant."""
    with Ledger.open(book, dataset="rows") as ledger:
        entries = ledger.entries
    grants = [entry.index for entry in entries if isinstance(entry, GrantEntry)]
    return [
        [entry.event for entry in entries if isinstance(entry, DrawEntry) and entry.grant == each] for each in grants
    ]
