"""Ledgers in a database: one chain a data set, whoever writes; what others spent is spent."""

import os
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager
from fractions import Fraction

import pytest
import sqlalchemy as sa

from ledgerwood.accounting import (
    Adjacency,
    BasicFilter,
    Budget,
    GaussianEvent,
    GDPFilter,
    Ledger,
    PrivacyUnit,
    PureEvent,
    Repeated,
    price,
)
from ledgerwood.accounting.ledger import Grant, sql
from ledgerwood.accounting.ledger.state import State
from ledgerwood.errors import (
    BudgetExceeded,
    DrawRefused,
    InvalidParameter,
    LedgerError,
)
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def create(url, dataset="adult", **terms):
    return Ledger.open(url, **({"dataset": dataset, "budget": BUDGET, "unit": PrivacyUnit.ROW} | terms))


@contextmanager
def raw(url):
    """A connection past the library."""
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def stored(url, dataset="adult"):
    with raw(url) as connection:
        query = "SELECT line FROM ledgerwood_entries WHERE dataset = :d ORDER BY position"
        return list(connection.scalars(sa.text(query), {"d": dataset}))


def test_postgresql_is_here(postgres):
    assert postgres.startswith("postgresql+psycopg://ledger@127.0.0.1:")


def test_every_entry_is_in_the_database_before_the_call_returns(url):
    with create(url) as ledger:
        assert len(stored(url)) == 1
        grant = ledger.grant(Repeated(pure(0.1), count=2), purpose="train")
        assert len(stored(url)) == 2
        receipt = grant.draw(pure(0.1), purpose="step 1")
        assert stored(url) == list(ledger.record().lines)
        assert (receipt.index, receipt.hash) == (2, ledger.head)
        assert verify_ledger(url, dataset="adult", head=ledger.head).draws == 1


def test_the_chain_is_the_one_that_a_file_would_hold(url, tmp_path):
    lines = []
    for place in (url, tmp_path / "run.ledger.jsonl"):
        with create(place) as ledger:
            grant = ledger.grant(Repeated(GaussianEvent(noise_multiplier=20.0, adjacency=A), count=2), purpose="train")
            grant.draw(GaussianEvent(noise_multiplier=20.0, adjacency=A), purpose="step 1", randomness="test")
            lines.append(ledger.record().lines)
    assert lines[0] == lines[1]


def test_what_others_spent_is_spent(url):
    with create(url) as one, Ledger.open(url, dataset="adult") as other:
        one.grant(pure(0.6), purpose="first")
        with pytest.raises(BudgetExceeded, match=r"epsilon=0\.4"):
            other.grant(pure(0.6), purpose="second")
        assert other.spent() == one.spent()
        assert other.remaining().epsilon == 0.4
        other.grant(pure(0.25), purpose="third")
        assert one.head == other.head
        assert one.entries == other.entries
        assert len(one.entries) == 3


def test_a_spend_between_price_and_lock_is_seen(url, monkeypatch):
    """The filter is asked again under the lock; where all of delta was asked for, what remains is priced anew."""
    with create(url) as one, create(url) as other:
        real, quick = State.price, [lambda: other.grant(pure(0.9), purpose="quicker")]

        def slow(self, *arguments):
            charge = real(self, *arguments)
            if self is one._state and quick:
                quick.pop()()
            return charge

        monkeypatch.setattr(State, "price", slow)
        with pytest.raises(BudgetExceeded):
            one.grant(pure(0.2), purpose="too late")
        assert one.spent().epsilon == 0.9
    with create(url, "census") as one, create(url, "census") as other:
        wide = GaussianEvent(noise_multiplier=30.0, adjacency=A)
        quick.append(lambda: other.grant(wide, purpose="quicker", delta=9e-6))
        grant = one.grant(wide, purpose="all the rest")
        left = float(Fraction(1e-5) - Fraction(9e-6))
        assert grant.charge.delta == left
        assert grant.charge.epsilon == price(wide).epsilon(left)
        assert verify_ledger(url, dataset="census").grants == 2


def test_data_sets_are_chains_of_their_own(url):
    with create(url, "adult") as adult, create(url, "abalone", budget=Budget(epsilon=2.0, delta=0.0, adjacency=A)) as b:
        adult.grant(pure(0.9), purpose="p")
        b.grant(pure(1.5), purpose="q")
        assert (adult.spent().epsilon, b.spent().epsilon) == (0.9, 1.5)
        assert adult.head != b.head
    assert [len(stored(url, name)) for name in ("adult", "abalone", "unknown")] == [2, 2, 0]


def test_reopening_keeps_what_was_spent_and_resumes_no_purse(url):
    with create(url) as ledger:
        old = ledger.grant(Repeated(pure(0.1), count=2), purpose="train")
        old.draw(pure(0.1), purpose="step 1")
        spent, head = ledger.spent(), ledger.head
    assert ledger.spent() == spent  # what was known when it was closed
    with pytest.raises(LedgerError, match="closed"):
        old.draw(pure(0.1), purpose="step 2")
    with pytest.raises(LedgerError, match="closed"):
        ledger.grant(pure(0.1), purpose="more")
    with Ledger.open(url, dataset="adult") as again:
        assert (again.spent(), again.head, again.budget, again.unit) == (spent, head, BUDGET, PrivacyUnit.ROW)
        new = again.grant(pure(0.1), purpose="more")
        new.draw(pure(0.1), purpose="it")
        with pytest.raises(DrawRefused):
            new.draw(pure(0.1), purpose="the old plan's second half")


def test_a_planned_event_is_drawn_once_whoever_draws(url):
    with create(url) as one, create(url) as other:
        grant = one.grant(pure(0.1), purpose="train")
        assert sum(other._left(grant.index).values()) == 1
        twin = Grant(other, grant._entry)  # nobody is handed such a thing; the database refuses it all the same
        grant.draw(pure(0.1), purpose="here")
        assert not twin.remaining
        with pytest.raises(DrawRefused, match="left"):
            twin.draw(pure(0.1), purpose="there")


@pytest.mark.parametrize(
    ("terms", "name"),
    [
        ({"budget": Budget(epsilon=2.0, delta=1e-5, adjacency=A)}, "budget"),
        ({"unit": PrivacyUnit.USER}, "unit"),
        ({"filter": GDPFilter()}, "filter"),
    ],
)
def test_a_data_set_has_one_ledger(url, terms, name):
    create(url).close()
    before = stored(url)
    with pytest.raises(LedgerError, match=f"{name}=.*{name}=") as refusal:
        create(url, **terms)
    assert repr(next(iter(terms.values()))) in str(refusal.value)
    assert stored(url) == before
    create(url, filter=BasicFilter()).close()


def test_whoever_creates_second_gets_the_first_ones_ledger(url, monkeypatch):
    """Between looking and creating somebody else created it."""
    with create(url) as first:
        first.grant(pure(0.5), purpose="p")
        monkeypatch.setattr(sql.SqlStore, "read", lambda self, **_: [])
        with create(url) as second:
            assert second.spent().epsilon == 0.5
        with pytest.raises(LedgerError, match="budget="):
            create(url, budget=Budget(epsilon=9.0, delta=1e-5, adjacency=A))


@pytest.mark.slow  # starts processes, which import everything
def test_many_processes_may_create_at_once(url):
    program = (
        "import sys\n"
        "from ledgerwood.accounting import *\n"
        "A = Adjacency.ADD_REMOVE\n"
        "B = Budget(epsilon=1.0, delta=0.0, adjacency=A)\n"
        "with Ledger.open(sys.argv[1], dataset='d', budget=B, unit=PrivacyUnit.ROW) as ledger:\n"
        "    ledger.grant(PureEvent(epsilon=0.25, adjacency=A), purpose='p')\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, url], stderr=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate()[1] for process in running] == [b""] * 2
    assert verify_ledger(url, dataset="d").epsilon_readded == 0.5


def test_a_new_ledger_needs_terms_and_a_label(sqlite_url, tmp_path):
    with pytest.raises(InvalidParameter, match="budget="):
        Ledger.open(sqlite_url, dataset="adult")
    with pytest.raises(InvalidParameter, match="dataset=None"):
        Ledger.open(sqlite_url, budget=BUDGET, unit=PrivacyUnit.ROW)
    with pytest.raises(LedgerError, match="no ledger database"):
        verify_ledger(sqlite_url, dataset="adult")
    assert list(tmp_path.iterdir()) == []
    create(sqlite_url).close()
    with pytest.raises(InvalidParameter, match="budget="):
        Ledger.open(sqlite_url, dataset="abalone")
    with pytest.raises(LedgerError, match="there is no ledger"):
        verify_ledger(sqlite_url, dataset="abalone")
    with pytest.raises(InvalidParameter, match="dataset=None"):
        verify_ledger(sqlite_url)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://", "sqlite:///:memory:", "sqlite:///a.db?timeout=1", "sqlite:///file:a.db?nolock=1&uri=true",
        "mysql://host/ledgers", "postgresql+asyncpg://host/ledgers", "http://example.org", "://",
    ],
)  # fmt: skip
def test_a_url_that_cannot_hold_a_ledger_is_refused(url):
    with pytest.raises(InvalidParameter, match="sqlite:///FILE or postgresql"):
        create(url)


def test_a_server_that_is_not_there_is_named_without_its_password():
    with pytest.raises(LedgerError, match="cannot be read") as refusal:
        create("postgresql://somebody:secret@127.0.0.1:1/ledgers")
    assert "secret" not in str(refusal.value)
    assert "somebody:***@127.0.0.1:1" in str(refusal.value)


@pytest.mark.slow  # starts processes, which import everything
@pytest.mark.parametrize(("package", "url"), [("sqlalchemy", "sqlite:///a.db"), ("psycopg", "postgresql://h/d")])
def test_without_the_extra_it_says_how_to_get_it(package, url):
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "import ledgerwood as lw\n"
        "for use in (lw.Ledger.open, lw.verification.verify_ledger):\n"
        f"    try:\n        use({url!r}, dataset='d')\n"
        "    except ImportError as error:\n        print(error)\n"
        f"from ledgerwood.cli.commands import main; sys.argv = ['ledgerwood', 'ledger', 'list', {url!r}]; main()"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.stdout == f"a ledger in a database needs {package}: pip install 'ledgerwood[sql]'\n" * 2
    assert finished.stderr == f"this command needs {package}: pip install 'ledgerwood[sql]'\n"


@pytest.mark.slow_after(1)  # starts processes, which import everything
def test_many_threads_never_overspend_together(url):
    with create(url) as one, create(url) as other:
        granted, refused = [], []

        def spend(ledger, name):
            for i in range(6):
                try:
                    granted.append(ledger.spend(pure(0.0625), purpose=f"{name} {i}").hash)
                except BudgetExceeded:
                    refused.append((name, i))

        threads = [threading.Thread(target=spend, args=(ledger, n)) for n, ledger in enumerate([one, other] * 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(granted), len(refused), one.spent().epsilon) == (16, 8, 1.0)
        assert set(granted) == {entry.hash for entry in other.entries if type(entry).__name__ == "DrawEntry"}
    assert verify_ledger(url, dataset="adult").grants == 16


def test_a_forked_child_may_not_spend_and_leaves_the_connection_alone(url):
    with create(url) as ledger:
        ledger.grant(pure(0.25), purpose="before")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn of forks beside threads
            child = os.fork()
        if child == 0:
            _in_the_child(ledger)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        ledger.grant(pure(0.25), purpose="after")
        assert ledger.spent().epsilon == 0.5


def _in_the_child(ledger):
    try:
        ledger.grant(pure(0.25), purpose="child")
    except LedgerError as error:
        known = ledger.spent().epsilon
        ledger.close()
        os._exit(0 if "another process" in str(error) and known == 0.25 else 2)
    os._exit(1)


def test_a_forgotten_ledger_gives_its_connection_back(url):
    ledger = create(url)
    pool = ledger._store._engine.pool  # SQLite's has nothing to keep: its file is opened for each transaction
    assert isinstance(pool, sa.NullPool) if url.startswith("sqlite") else pool.checkedin() == 1
    del ledger
    assert isinstance(pool, sa.NullPool) or pool.checkedin() == 0
