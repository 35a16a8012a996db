"""Rows of a table of columns are read by the curator only, and only once their draw is on the ledger."""

import sys

import numpy as np
import pytest

from ledgerwood import Adjacency, Budget, Categorical, Ledger, Numeric, PrivacyUnit, Schema
from ledgerwood.curator import (
    ColumnBounds,
    ColumnCount,
    ColumnHistogram,
    ColumnKeys,
    ColumnMode,
    ColumnMoments,
    ColumnQuantile,
    ColumnQuantiles,
    ColumnSum,
    ColumnTable,
    Curator,
    RowCount,
)
from ledgerwood.errors import BudgetExceeded, RoundViolation, SchemaError
from ledgerwood.mechanisms import (
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    JointQuantilesMechanism,
    LaplaceMechanism,
    PrivateBoundsMechanism,
    QuantileMechanism,
    SeededRandom,
    StabilityHistogramMechanism,
)

A = Adjacency.ADD_REMOVE
AGE = Numeric("age", 17.0, 90.0)
SEX = Categorical("sex", ("M", "F"))
SCHEMA = Schema(features=(AGE, SEX))
COUNTING = DiscreteLaplaceMechanism(scale=2.0)
STATISTICS = [
    (RowCount(), COUNTING),
    (ColumnCount(column=AGE), COUNTING),
    (ColumnCount(column=SEX), COUNTING),
    (ColumnSum(column=AGE), LaplaceMechanism(scales=(9.0,))),
    (ColumnMoments(column=AGE), EllipticalGaussianMechanism(stddevs=(2.0, 70.0))),
    (ColumnHistogram(column=SEX), COUNTING),
    (ColumnHistogram.even(AGE, 3), COUNTING),
]
SELECTIONS = [
    (ColumnMode(histogram=ColumnHistogram(column=SEX)), ExponentialMechanism(rate=0.5)),
    (ColumnQuantile(column=AGE), QuantileMechanism(quantile=0.5, rate=0.5)),
    (ColumnQuantiles(column=AGE), JointQuantilesMechanism(quantiles=(0.25, 0.75), rate=0.5)),
    (ColumnBounds(column=AGE, smallest=1.0), PrivateBoundsMechanism(scale=1.0, threshold=5)),
    (ColumnKeys(name="city"), StabilityHistogramMechanism(scale=1.0, threshold=9)),
]


class Watched:
    """Stands where an array is, and notes which module of the library asks for its values."""

    def __init__(self, values, log):
        self._values, self._log = np.asarray(values), log
        self.shape, self.dtype, self.ndim = self._values.shape, self._values.dtype, self._values.ndim

    def __len__(self):
        return len(self._values)

    def __array__(self, dtype=None, copy=None):
        frame = sys._getframe(1)
        while frame is not None:
            name = frame.f_globals.get("__name__", "")
            if name.startswith("ledgerwood."):
                self._log.append(name)
                break
            frame = frame.f_back
        return np.array(self._values, dtype=dtype)


def opened(budget=1e6):
    rows = np.array([[20.0 + i, "M"] for i in range(9)], dtype=object)
    log = []
    table = ColumnTable.from_data(Watched(rows, log), SCHEMA, keys={"city": Watched(["rome"] * 9, log)})
    ledger = Ledger(Budget(epsilon=budget, delta=1e-3, adjacency=A), unit=PrivacyUnit.ROW)
    return table, ledger, log


def test_the_owners_check_reads_in_the_curator():
    _, _, log = opened()
    assert log
    assert {name.split(".")[1] for name in log} == {"curator"}


@pytest.mark.parametrize(("query", "mechanism"), STATISTICS + SELECTIONS, ids=lambda x: type(x).__name__)
def test_rows_are_read_after_their_draw_is_on_the_ledger(query, mechanism, monkeypatch):
    table, ledger, _ = opened()
    seen = []
    for name in ("sample", "statistic", "read"):
        original = getattr(ColumnTable, name)

        def watched(*args, name=name, original=original):
            seen.append((name, ledger.entries[-1].purpose))
            return original(*args)

        monkeypatch.setattr(ColumnTable, name, watched)
    choice = (query, mechanism) in SELECTIONS
    event = query.event(mechanism, A) if choice else mechanism.event(query.sensitivity(A), A)
    curator = Curator(table, ledger.grant(event, purpose="grant"), SeededRandom(1))
    assert seen == []
    with curator.open(event, purpose="draw") as round_:
        (round_.select if choice else round_.release)(query, mechanism, purpose="draw")
    assert seen == [("sample", "draw"), ("read" if choice else "statistic", "draw")]


def test_what_is_refused_reads_nothing(monkeypatch):
    table, ledger, log = opened(budget=0.9)
    for name in ("sample", "statistic", "read"):
        monkeypatch.setattr(ColumnTable, name, lambda *_: pytest.fail("rows were read"))
    log.clear()
    events = [mechanism.event(query.sensitivity(A), A) for query, mechanism in STATISTICS]
    before = ledger.entries
    with pytest.raises(BudgetExceeded):
        ledger.grant(events[3].__class__(noise_multiplier=1.0, adjacency=A), purpose="too much")
    assert ledger.entries == before
    curator = Curator(table, ledger.grant(events[0], purpose="a count"), SeededRandom(1))
    monkeypatch.setattr(ColumnTable, "sample", lambda *_: np.empty(0, dtype=np.bool_))
    with curator.open(events[0], purpose="a count") as round_:
        with pytest.raises(RoundViolation):
            round_.release(*STATISTICS[3], purpose="a sum")
        with pytest.raises(RoundViolation):
            round_.select(*SELECTIONS[0], purpose="a choice")
        with pytest.raises(SchemaError):
            round_.release(ColumnCount(column=Numeric("weight", 0.0, 1.0)), COUNTING, purpose="no such column")
    assert log == []
