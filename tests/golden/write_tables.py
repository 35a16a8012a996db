"""Write the golden database of this release's tables: `python tests/golden/write_tables.py`.

A file that exists is never written again: every layout that a release has written is carried over for ever.
"""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from ledgerwood.accounting import Ledger
from ledgerwood.accounting.ledger import LedgerRecord, migrations
from ledgerwood.accounting.ledger import _database as steps
from ledgerwood.accounting.ledger.jsonl import read_lines

FOLDER = Path(__file__).parent


def main() -> None:
    """A golden ledger in a database, as SQL."""
    out = FOLDER / f"tables-{steps.current()}.sql"
    if out.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/team.db"
        migrations.import_ledger(
            LedgerRecord.from_lines(tuple(read_lines(FOLDER / "sampled-and-laplace.ledger.jsonl"))), url
        )
        Ledger.open(url, dataset="golden").close()
        with closing(sqlite3.connect(f"{folder}/team.db")) as database:
            out.write_text("\n".join(database.iterdump()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
