"""What nobody should hand in, item by item: an error that names value, bound and unit, and nothing spent or lost.

Part 1: numbers and arrays. Part 2: a curator and a trainer that meet them with a ledger in their hands. Part 3: the
database of a ledger. Each ledger is used again afterwards, and verified.
"""

import math
import shutil
import sqlite3
import threading
from contextlib import closing, contextmanager

import numpy as np
import pytest
import sqlalchemy as sa

import ledgerwood as lw
from ledgerwood.accounting.ledger import LedgerRecord, migrations
from ledgerwood.accounting.ledger import _database as database
from ledgerwood.curator import Curator, LabelCount, LabelMoments, Table
from ledgerwood.errors import (
    CalibrationFailed,
    InvalidParameter,
    LedgerCorrupted,
    LedgerError,
    LedgerWriteFailed,
    RoundViolation,
    SchemaError,
)
from ledgerwood.mechanisms import (
    BallShifts,
    BoxShifts,
    CategoricalCandidates,
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    Grid,
    GridlessMechanism,
    JointQuantilesMechanism,
    LaplaceMechanism,
    NoisyMaxMechanism,
    NumericCandidates,
    PermuteAndFlipMechanism,
    PrivateBoundsMechanism,
    QuantileMechanism,
    SeededRandom,
    StabilityHistogramMechanism,
    UtilityRange,
)
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification import verify_ledger

A = lw.Adjacency.ADD_REMOVE
BUDGET = lw.Budget(epsilon=1.0, delta=1e-5, adjacency=A)
ONE = Grid(exponents=(0,))
NONE = np.zeros(0, dtype=np.int64)
SELECTIONS = (ExponentialMechanism(rate=1.0), PermuteAndFlipMechanism(rate=1.0), NoisyMaxMechanism(scale=1.0))


def pure(epsilon):
    return lw.PureEvent(epsilon=epsilon, adjacency=A)


def integers(*values):
    return np.array(values, dtype=np.int64)


def refused(act, *parts):
    """The one kind of error for a bad value, with all that it must name."""
    with pytest.raises(InvalidParameter, match=r"\(unit: .+\)$") as refusal:
        act()
    for part in parts:
        assert part in str(refusal.value)


# Part 1.


@pytest.mark.parametrize(
    ("act", "parts"),
    [
        (lambda: Grid(exponents=(961,)), ["exponents=961", "<= 960", "powers of two"]),
        (lambda: Grid(exponents=(-1023,)), ["exponents=-1023", ">= -1022", "powers of two"]),
        (lambda: Grid(exponents=(0.5,)), ["exponents=0.5", "a whole number", "powers of two"]),
        (lambda: Grid(exponents=()), ["exponents=()", "at least one", "columns"]),
        (lambda: Grid(exponents=3), ["exponents=3", "a sequence", "columns"]),
        (
            lambda: GaussianMechanism(stddev=1e10).require_fit(Grid(exponents=(-1000,))),
            ["scale=10000000000.0", "<= 2**55 grid steps of 9.3", "statistic"],
        ),
        (lambda: LaplaceMechanism(scales=(1e300,)).require_fit(ONE), ["scale=1e+300", "<= 2**55 grid steps of 1.0"]),
        (lambda: LaplaceMechanism(scales=1.0), ["scales=1.0", "a sequence", "columns"]),
        (lambda: EllipticalGaussianMechanism(stddevs=()), ["stddevs=()", "at least one", "columns"]),
        (
            lambda: NoisyMaxMechanism(scale=1e30).select(integers(1, 2), ONE, SeededRandom(1)),
            ["scale=1e+30", "<= 2**55 grid steps of 1.0"],
        ),
        (
            lambda: ExponentialMechanism(rate=1e200).select(integers(1, 2), Grid(exponents=(960,)), SeededRandom(1)),
            ["rate=1e+200", "2**1000 nats a grid step"],
        ),
        (
            lambda: DiscreteLaplaceMechanism(scale=1.0).require_fit(Grid(exponents=(-1,))),
            ["grid=(0.5,)", "steps of 1", "statistic"],
        ),
        (
            lambda: GaussianMechanism(stddev=1.0).randomise(np.array([2**70], dtype=object), ONE, SeededRandom(1)),
            ["statistic type='object'", "an int64 array", "grid steps"],
        ),
        (
            lambda: GaussianMechanism(stddev=1.0).randomise(np.array([1.5]), ONE, SeededRandom(1)),
            ["statistic type='float64'", "an int64 array", "grid steps"],
        ),
    ],
)
def test_grids_that_overflow(act, parts):
    refused(act, *parts)


def test_a_sum_that_overflows_wraps_and_says_nothing():
    """An error would tell of the rows: the largest integers are added to modulo 2**64."""
    most = np.array([2**63 - 1, -(2**63)]).reshape(2, 1)
    noisy = GaussianMechanism(stddev=4.0).randomise(most, ONE, SeededRandom(1))
    assert np.abs(noisy - most).max() < 100  # the difference modulo 2**64 is the noise
    wide = GaussianMechanism(stddev=2.0**54).randomise(most, ONE, SeededRandom(1))
    assert wide.dtype == np.int64


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize(
    ("make", "unit"),
    [
        (lambda value: BallShifts(radius=value), "statistic"),
        (lambda value: BoxShifts(boxes=((value,),)), "statistic"),
        (lambda value: BoxShifts.moved(boxes=((value,),)), "statistic"),
        (lambda value: UtilityRange(range=value), "utility"),
        (lambda value: GaussianMechanism(stddev=value), "statistic"),
        (lambda value: LaplaceMechanism(scales=(value,)), "statistic"),
        (lambda value: lw.GaussianEvent(noise_multiplier=value, adjacency=A), "per unit of sensitivity"),
        (lambda value: lw.EllipticalGaussianEvent(sensitivities=(1.0,), stddevs=(value,), adjacency=A), "coordinate"),
        (lambda value: lw.PureEvent(epsilon=value, adjacency=A), "nats"),
    ],
)
def test_sensitivities_and_scales_of_zero_or_infinity(make, unit, value):
    bound = "a finite real number" if not math.isfinite(value) else ">"
    refused(lambda: make(value), repr(value), bound, f"{unit})")


@pytest.mark.parametrize(
    ("act", "parts"),
    [
        (lambda: BoxShifts(boxes=((1.0, math.inf),)), ["boxes=inf", "finite", "statistic"]),
        (lambda: BoxShifts(boxes=()), ["boxes=()", "at least one box", "statistic"]),
        (
            lambda: GaussianMechanism(stddev=5e-324).event(BallShifts(radius=1e308), A),
            ["multiplier='5e-324 / 1e+308'", "within float64", "ratio"],
        ),
        (
            lambda: GaussianMechanism(stddev=1e308).event(BallShifts(radius=5e-324), A),
            ["multiplier of about 2**", "within float64", "ratio"],
        ),
        (
            lambda: ExponentialMechanism(rate=1e200).event(UtilityRange(range=1e300), A),
            ["epsilon of about 2**1660", "within float64", "nats"],
        ),
        (
            lambda: NoisyMaxMechanism(scale=1e-300).event(UtilityRange(range=1e300), A),
            ["epsilon of about 2**", "within float64", "nats"],
        ),
    ],
)
def test_sensitivities_that_overflow(act, parts):
    refused(act, *parts)


def test_empty_candidate_sets():
    for mechanism in SELECTIONS:
        refused(lambda m=mechanism: m.select(NONE, ONE, SeededRandom(1)), "candidates=0", "in 1..2**24", "candidates")
    refused(lambda: GridlessMechanism(rate=1.0).select([], ONE, SeededRandom(1)), "features=0", ">= 1", "features")
    refused(lambda: CategoricalCandidates(utilities=NONE), "categories=0", ">= 1", "categories")
    refused(lambda: NumericCandidates(positions=NONE, points=0, utilities=integers(0)), "points=0", ">= 1")
    refused(lambda: JointQuantilesMechanism(quantiles=(), rate=1.0), "quantiles=()", "at least one")
    refused(
        lambda: PrivateBoundsMechanism(scale=1.0, threshold=5).select(np.ones(3), (0.0,), SeededRandom(1)),
        "at least two increasing numbers", "(0.0,)", "column",
    )  # fmt: skip
    refused(
        lambda: SELECTIONS[0].select(integers(1, 2), ONE, SeededRandom(1), counts=integers(0, 0)), "counts", "one > 0"
    )


@pytest.mark.parametrize(
    "wrong", [np.array([1.0, math.nan]), np.array([1.0, math.inf]), [1, 2], 3, np.zeros((2, 2), int)]
)
def test_utilities_that_are_no_integers(wrong):
    """NaN cannot come in: a utility is a whole number of grid steps, and its type is all that is looked at."""
    kind = f"{wrong.dtype} {wrong.shape}" if isinstance(wrong, np.ndarray) else type(wrong).__name__
    for mechanism in SELECTIONS:
        refused(lambda m=mechanism: m.select(wrong, ONE, SeededRandom(1)), kind, "an int64 vector", "grid steps")
    refused(lambda: SELECTIONS[0].select(integers(1, 2), ONE, SeededRandom(1), counts=wrong), "counts")
    refused(lambda: CategoricalCandidates(utilities=wrong), kind, "an int64 vector", "grid steps")
    refused(lambda: NumericCandidates(positions=NONE, points=5, utilities=wrong), kind, "an int64 vector", "grid steps")


def test_quantiles_of_no_rows_are_quantiles():
    """How many rows there are is private: without any, every threshold is as good as every other."""
    median, joint = QuantileMechanism(quantile=0.5, rate=1.0), JointQuantilesMechanism(quantiles=(0.25, 0.75), rate=1.0)
    source = SeededRandom(1)
    assert {median.select(NONE, 4, source) for _ in range(200)} == {0, 1, 2, 3}
    drawn = [joint.select(NONE, 4, source) for _ in range(200)]
    assert {place for pair in drawn for place in pair} == {0, 1, 2, 3}
    assert all(first <= second for first, second in drawn)
    bounds = PrivateBoundsMechanism(scale=1.0, threshold=60)
    assert bounds.select(np.zeros(0), (0.0, 1.0, 2.0), source) == (0.0, 2.0)
    assert bounds.select(np.full(3, math.nan), (0.0, 1.0, 2.0), source) == (0.0, 2.0)
    assert StabilityHistogramMechanism(scale=1.0, threshold=60).select({}, source) == {}


@pytest.mark.parametrize(
    ("act", "parts"),
    [
        (lambda m, j: m.select(np.array([math.nan]), 4, SeededRandom(1)), ["positions='float64 (1,)'", "thresholds"]),
        (lambda m, j: m.select([], 4, SeededRandom(1)), ["positions='list'", "an int64 vector", "thresholds"]),
        (lambda m, j: j.select(NONE, 0, SeededRandom(1)), ["points=0", ">= 1", "thresholds"]),
        (lambda m, j: j.select(NONE, 2**40, SeededRandom(1)), ["points=1099511627776", "< 2**40", "thresholds"]),
        (lambda m, j: QuantileMechanism(quantile=1.0, rate=1.0), ["quantile=1.0", "in (0, 1)", "share of the rows"]),
        (lambda m, j: QuantileMechanism(quantile=math.nan, rate=1.0), ["quantile=nan", "finite", "share of the rows"]),
        (lambda m, j: QuantileMechanism(quantile=0.5, rate=math.inf), ["rate=inf", "finite", "nats"]),
    ],
)
def test_quantiles_of_what_is_none(act, parts):
    joint = JointQuantilesMechanism(quantiles=(0.25, 0.75), rate=1.0)
    refused(lambda: act(QuantileMechanism(quantile=0.5, rate=1.0), joint), *parts)


# Part 2.


def test_noise_that_misses_the_grid_takes_nothing_out_of_a_round():
    schema = lw.Schema.uniform(0.0, 1.0, n_features=2, target=lw.Numeric("y", -1.0, 1.0))
    table = Table(schema=schema, cells=np.zeros((2, 50), np.uint8), targets=np.full(50, 0.5))
    good, coarse = EllipticalGaussianMechanism(stddevs=(2.0, 2.0)), EllipticalGaussianMechanism(stddevs=(1e300, 2.0))
    event = good.event(LabelMoments().sensitivity(A), A)
    ledger = lw.Ledger(lw.Budget(epsilon=1e3, delta=0.5, adjacency=A), unit=lw.PrivacyUnit.ROW)
    curator = Curator(table, ledger.grant(event, purpose="moments"), SeededRandom(1))
    with curator.open(event, purpose="moments") as round_:
        before = ledger.entries
        refused(lambda: round_.release(LabelMoments(), coarse, purpose="moments"), "scale=1e+300", "2**55 grid steps")
        refused(lambda: round_.release(LabelCount(), good, purpose="moments"), "scales=(2.0, 2.0)", "1 numbers")
        with pytest.raises(RoundViolation, match="does not hold"):
            round_.release(LabelCount(), LaplaceMechanism(scales=(3.0,)), purpose="count")
        assert ledger.entries == before
        assert round_.release(LabelMoments(), good, purpose="moments").receipt.hash == ledger.head  # still all there


ROWS, LABELS = np.linspace(0.0, 1.0, 40).reshape(20, 2), np.linspace(0.0, 1.0, 20)


@pytest.mark.slow_after(2)  # several fits
@pytest.mark.parametrize(
    ("settings", "rows", "labels", "kind"),
    [
        ({"epsilon": 0.0}, ROWS, LABELS, InvalidParameter),
        ({"epsilon": math.inf}, ROWS, LABELS, InvalidParameter),
        ({"epsilon": 1e-12, "delta": 1e-12}, ROWS, LABELS, InvalidParameter),  # noise of more than 2**55 grid steps
        ({"delta": 0.0}, ROWS, LABELS, CalibrationFailed),
        ({}, ROWS[1:], LABELS, SchemaError),
        ({}, ROWS[:, :1], LABELS, SchemaError),
        ({}, ROWS.astype("datetime64[s]"), LABELS, SchemaError),
        ({}, ROWS, LABELS.astype(str), SchemaError),
    ],
)
def test_a_trainer_that_refuses_has_spent_nothing(settings, rows, labels, kind):
    schema = lw.Schema.uniform(0.0, 1.0, n_features=2, target=lw.Numeric("y", 0.0, 1.0))
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    before, left = ledger.entries, ledger.remaining()
    usual = {"epsilon": 0.5, "delta": 1e-6, "schema": schema, "n_estimators": 2, "random_state": 1}
    with pytest.raises(kind):
        SGBDTRegressor(**usual | settings).fit(rows, labels, ledger=ledger)
    assert (ledger.entries, ledger.remaining()) == (before, left)
    SGBDTRegressor(**usual).fit(ROWS, LABELS, ledger=ledger)
    assert ledger.spent().epsilon == pytest.approx(0.5, abs=1e-3)


# Part 3: of a database. Faults in the middle of a commit are in accounting/ledger/test_sql_faults.py.


class Team:
    """A ledger in a SQLite file, with one grant in it, and what it must still hold."""

    def __init__(self, folder):
        self.file = folder / "team.db"
        self.url = f"sqlite:///{self.file}"
        with lw.Ledger.open(self.url, dataset="adult", budget=BUDGET, unit=lw.PrivacyUnit.ROW) as ledger:
            ledger.spend(pure(0.25), purpose="before")
            self.lines = ledger.record().lines

    def open(self, **terms):
        return lw.Ledger.open(self.url, dataset="adult", **terms)

    def edit(self, *statements):
        with closing(sqlite3.connect(self.file)) as connection, connection:
            for statement in statements:
                assert connection.execute(statement).rowcount == 1

    @contextmanager
    def kept(self):
        """Nothing is lost meanwhile, and afterwards the ledger goes on."""
        yield
        assert migrations.read_ledger(self.url, "adult").lines == self.lines
        with self.open() as ledger:
            assert ledger.spent().epsilon == 0.25
            ledger.spend(pure(0.25), purpose="after")
            assert verify_ledger(self.url, dataset="adult", head=ledger.head).epsilon_readded == 0.5


def on_each_connection(ledger, pragma):
    """From now on: each transaction opens a connection, and a pragma is a connection's own."""
    sa.event.listen(ledger._store._engine, "connect", lambda connection, _: connection.execute(pragma))


@pytest.fixture
def team(tmp_path):
    return Team(tmp_path)


def test_a_database_that_is_read_only(team):
    with team.kept(), team.open() as ledger:
        head = ledger.head
        on_each_connection(ledger, "PRAGMA query_only = ON")
        for write in (
            lambda: ledger.grant(pure(0.25), purpose="p"),
            lambda: ledger.migrate(analysts={"ada": 0.5}),
        ):
            with pytest.raises(LedgerWriteFailed, match="nothing was recorded in the ledger database .*read-only"):
                write()
        assert (ledger.head, ledger.spent().epsilon) == (head, 0.25)


def test_a_database_that_is_locked(team, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.2)
    with team.kept(), team.open() as ledger, closing(sqlite3.connect(team.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerWriteFailed, match=r"locked for more than 0\.2 s .*; try again"):
            ledger.grant(pure(0.25), purpose="p")
        assert ledger.spent().epsilon == 0.25  # reading goes on
        other.execute("ROLLBACK")


@pytest.mark.slow  # several fits
def test_a_database_that_is_full(team):
    with team.kept(), team.open() as ledger:
        with ledger._store._engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        on_each_connection(ledger, f"PRAGMA max_page_count = {pages}")
        many = lw.Composed(tuple(pure(2.0**-60 * (1 + i)) for i in range(200)))  # a line of several pages
        with pytest.raises(LedgerWriteFailed, match="nothing was recorded .*its disk is full"):
            ledger.grant(many, purpose="p")
        assert ledger.record().lines == team.lines


def test_a_database_from_a_future_version(team):
    with team.kept():
        team.edit("UPDATE ledgerwood_schema SET version = 9")
        content = team.file.read_bytes()
        for use in (
            team.open,
            lambda: migrations.datasets(team.url),
            lambda: migrations.read_ledger(team.url, "adult"),
        ):
            with pytest.raises(LedgerError, match="tables are of version 9; this release reads version 1. Nothing was"):
                use()
        assert team.file.read_bytes() == content
        team.edit("UPDATE ledgerwood_schema SET version = 1")


def test_an_entry_from_a_future_version(team):
    line = team.lines[1].replace('"version":1', '"version":5')
    with team.kept():
        with closing(sqlite3.connect(team.file)) as connection, connection:
            connection.execute("UPDATE ledgerwood_entries SET line = ? WHERE position = 1", (line,))
        with pytest.raises(
            LedgerCorrupted, match=r"entry 1: format version 5 is not one of \(1, 2, 3, 4\): a later release"
        ):
            team.open()
        with pytest.raises(LedgerCorrupted, match="entry 1: format version 5 is not 1 to 4"):
            verify_ledger(team.url, dataset="adult")
        with closing(sqlite3.connect(team.file)) as connection, connection:
            connection.execute("UPDATE ledgerwood_entries SET line = ? WHERE position = 1", (team.lines[1],))


@pytest.mark.parametrize(
    ("there", "back"),
    [
        ("SET line = replace(line, '0.25', '0.125') WHERE position = 1", "replace(line, '0.125', '0.25')"),
        ("SET line = replace(line, 'before', 'beyond') WHERE position = 1", "replace(line, 'beyond', 'before')"),
        ("SET line = line || ' ' WHERE position = 1", "rtrim(line)"),
    ],
)
def test_a_database_that_was_tampered_with(team, there, back):
    with team.kept():
        team.edit(f"UPDATE ledgerwood_entries {there}")
        for use in (team.open, lambda: verify_ledger(team.url, dataset="adult")):
            with pytest.raises(LedgerCorrupted, match="entry 1:"):
                use()
        team.edit(f"UPDATE ledgerwood_entries SET line = {back} WHERE position = 1")


def test_two_ledgers_for_one_data_set(team, tmp_path):
    """In one database the second is refused. In two files or databases nobody can know; the documentation says so."""
    with team.kept():
        wider = lw.Budget(epsilon=9.0, delta=1e-5, adjacency=A)
        with pytest.raises(LedgerError, match=r"opened with budget=.*epsilon=1\.0.*with budget=.*epsilon=9\.0"):
            team.open(budget=wider, unit=lw.PrivacyUnit.ROW)
        with lw.Ledger.open(tmp_path / "b.jsonl", dataset="adult", budget=wider, unit=lw.PrivacyUnit.ROW) as other:
            other.spend(pure(0.5), purpose="elsewhere")
            with pytest.raises(LedgerError, match="another ledger of 3 entries, the first 0 of them the same"):
                migrations.import_ledger(other.record(), team.url)


def test_a_copied_ledger_is_told_by_its_head(team, tmp_path):
    """A copy is a second purse, and cannot know it. The heads part: a model names its own, and no chain holds both."""
    shutil.copy(team.file, tmp_path / "copy.db")
    copy, heads = f"sqlite:///{tmp_path}/copy.db", []
    with team.kept():
        with lw.Ledger.open(copy, dataset="adult") as ledger:
            heads.append(ledger.spend(pure(0.75), purpose="from the copy").hash)
            record = ledger.record()
        with pytest.raises(LedgerCorrupted, match=f"but {heads[0]} was expected"):
            verify_ledger(team.url, dataset="adult", head=heads[0])
    with pytest.raises(LedgerError, match="another ledger of 5 entries, the first 3 of them the same"):
        migrations.import_ledger(record, team.url)  # and it cannot be brought back


def test_an_older_copy_put_in_the_place_of_an_open_ledger(team, tmp_path):
    shutil.copy(team.file, tmp_path / "backup.db")
    with team.open() as ledger:
        ledger.grant(pure(0.5), purpose="since the backup")
        shutil.copy(tmp_path / "backup.db", team.file)
        with pytest.raises(LedgerError, match="holds 3 entries, where 4 have been seen.* nothing more is granted"):
            ledger.grant(pure(0.5), purpose="again")
        with pytest.raises(LedgerError, match="older copy"):
            ledger.spent()


def test_a_ledger_in_memory_that_is_shared_by_threads_keeps_its_sums():
    """Running sums are read without the ledger's lock by `repr`: they never forget a charge."""
    ledger = lw.Ledger(lw.Budget(epsilon=1.0, delta=0.0, adjacency=A), unit=lw.PrivacyUnit.ROW)
    done = threading.Event()

    def look():
        while not done.is_set():
            repr(ledger)

    watcher = threading.Thread(target=look)
    watcher.start()
    for _ in range(256):
        ledger.grant(pure(2.0**-8), purpose="p")
    done.set()
    watcher.join()
    assert (ledger.spent().epsilon, ledger.remaining().epsilon) == (1.0, 0.0)
    assert LedgerRecord.from_lines(ledger.record().lines).spent().epsilon == 1.0
