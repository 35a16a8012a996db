"""`check_statistic`: one call that holds a `DeclaredStatistic` to what it declares, on synthetic rows."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.curator import Curator, DeclaredStatistic, Schema, Table
from ledgerwood.curator.queries.declared import made_of, rehearsed
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import GaussianMechanism, SeededRandom
from ledgerwood.schema import Categorical, Date, Numeric
from ledgerwood.verification.ledgers.verifying import verify_ledger
from ledgerwood.verification.replaying.replaying import replay
from ledgerwood.verification.sensitivity.checking import check_sensitivity
from ledgerwood.verification.sensitivity.domains import Neighbour, removed
from ledgerwood.verification.testing.kit_reports import Checks, Failure, KitReport, require
from ledgerwood.verification.testing.kit_rows import ODD, Data, heard, kit_rows, odd_row, with_row

_BINS = 4096
_EVERYBODY = np.empty(0, dtype=np.bool_)


def check_statistic(
    statistic: DeclaredStatistic, *, n_rows: int = 40, evaluations: int = 200, seed: int = 0
) -> KitReport:
    """Hold a statistic to what it declares: on synthetic rows of its columns, on neighbours of them, with weights.

    Args:
        statistic: with its constants, where it has any.
        n_rows: synthetic rows, at least 10.
        evaluations: of the search for a breach of its sensitivity, under each adjacency.
        seed: of rows and search.

    Returns:
        Each check by its name, with its verdict. `report.ok` is True only if all of them could be made and none found
        anything. That a function treats each row by itself cannot be proven: the ledger goes on saying so.

    Raises:
        InvalidParameter: no such statistic.
    """
    if not isinstance(statistic, DeclaredStatistic):
        raise InvalidParameter(
            f"statistic={statistic!r} must be a ledgerwood.curator.DeclaredStatistic; the queries of this library are "
            "proven in docs/explanation/queries.md (unit: statistic)"
        )
    n_rows = _validate.count("n_rows", n_rows, "rows", minimum=10)
    kit = _Kit.of(statistic, n_rows, evaluations, seed)
    checks = Checks()
    for name, check in kit.checks().items():
        checks.make(name, check)
    return KitReport(of=statistic.name, checks=tuple(checks.made))


def assert_statistic(
    statistic: DeclaredStatistic, *, n_rows: int = 40, evaluations: int = 200, seed: int = 0
) -> KitReport:
    """Assert, in a test, that `check_statistic` finds nothing and could look at everything.

    Raises:
        AssertionError: it names the checks that failed, or could not be made, and says what was found.
        InvalidParameter: no such statistic.
    """
    __tracebackhide__ = True
    report = check_statistic(statistic, n_rows=n_rows, evaluations=evaluations, seed=seed)
    report.require_ok()
    return report


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Kit:
    statistic: DeclaredStatistic
    schema: Schema
    data: Data
    evaluations: int
    seed: int

    @classmethod
    def of(cls, statistic: DeclaredStatistic, n_rows: int, evaluations: int, seed: int) -> "_Kit":
        # A table of rows has a target, whose place in the statistic does not matter to it: the last column is one here.
        *features, last = sorted(statistic.columns, key=lambda column: not isinstance(column, Date))
        beside = Numeric("beside", 0.0, 1.0)
        if isinstance(last, Date):  # which no table has as its target
            features, last = [*features, last], beside
        schema = Schema(features=tuple(features) or (beside,), target=last, weight_bound=2.0)
        data = kit_rows(schema, n_rows, seed=seed)
        return cls(statistic=statistic, schema=schema, data=data, evaluations=evaluations, seed=seed)

    def checks(self) -> dict[str, Callable[[], str | None]]:
        return {
            "rows apart": self.rows_apart,
            "every value": self.every_value,
            "words": self.words,
            "sensitivity, add-remove": lambda: self.sensitivity(Adjacency.ADD_REMOVE),
            "sensitivity, replace-one": lambda: self.sensitivity(Adjacency.REPLACE_ONE),
            "weights": self.weights,
            "replay": self.replays,
            "ledger": self.ledger,
        }

    def table(self, data: Data, weights: Any = None) -> Table:
        return Table.from_data(*data, self.schema, loss="squared", bins=_BINS, sample_weight=weights)

    def value(self, data: Data, weights: Any = None) -> Any:
        return self.table(data, weights).statistic(self.statistic, _EVERYBODY)

    def rows_apart(self) -> str | None:
        try:
            rehearsed(self.statistic, again=True)
        except InvalidParameter as error:
            raise Failure(str(error)) from error
        return None

    def every_value(self) -> str | None:
        """No declared value makes the function fail: such a row counts nothing, and nobody is told."""
        X, y = self.data
        before = self.value((X[:0], y[:0]))
        require(not np.any(before), f"of no rows it is {before.tolist()}")
        chunk = {column.name: np.array([column.missing_cell]) if isinstance(column, Categorical) else np.array([np.nan])
                 for column in self.statistic.columns}  # fmt: skip
        said, found = heard(lambda: made_of(self.statistic, chunk))
        require(not said.raised, f"the function raises of a row with missing values only: {said.raised}")
        require(
            not said.warned,
            f"numpy warns of a row with missing values only ({said.warned}): NaN that becomes a whole number is the "
            "smallest one, and clamped; use np.nan_to_num, or let such a row count 0",
        )
        require(found.shape == (1, self.statistic.width), f"of one row it returns shape {found.shape}")
        return None

    def words(self) -> str | None:
        """What a function prints, logs or warns of would tell of the rows."""
        for data in (self.data, (self.data[0][:3], self.data[1][:3])):
            said, _ = heard(lambda: self.value(data))  # noqa: B023 - called at once
            require(not said.raised, f"it raises {' from '.join(said.raised)}")
            for name in ("warned", "logged", "out", "err"):
                require(not getattr(said, name), f"the function speaks ({name}): {getattr(said, name)!r}")
        return None

    def sensitivity(self, adjacency: Adjacency) -> str | None:
        found = check_sensitivity(
            self.statistic, schema=self.schema, adjacency=adjacency, evaluations=self.evaluations, rng=self.seed,
            bins=_BINS,
        )  # fmt: skip
        require(found.verdict != "refuted", str(found))
        require(found.refusals == 0, f"{found.refusals} evaluations raised: {found.refusal}")
        return f"largest change {found.ratio:.3g} of the stated one"

    def weights(self) -> str | None:
        n = len(self.data[1])
        whole, none = self.value(self.data, np.full(n, 2.0)), self.value(self.data, np.zeros(n))
        require(not np.any(none), f"rows of weight 0 make {none.tolist()}")
        plain = self.unweighted().value(self.data)
        require(np.array_equal(whole, plain), "rows of the largest weight differ from rows without weights")
        half = self.value(self.data, np.full(n, 1.0))
        lost = np.any((whole != 0) & (half == 0))
        require(
            not lost,
            f"rows of half the largest weight make {half.tolist()}, and of all of it {whole.tolist()}: what is below a "
            "step is cut off; take a finer step, such as exponent=-20 and numbers that are 2**20 times as large",
        )
        return None

    def unweighted(self) -> "_Kit":
        """The same, of rows without weights."""
        return dataclasses.replace(self, schema=dataclasses.replace(self.schema, weight_bound=None))

    def fit(self, data: Any) -> tuple[Any, str, Any]:
        """One release with noise, by the statistic's own sensitivity."""
        mechanism = GaussianMechanism(stddev=max(1.0, 2.0**self.statistic.exponent) * 4.0)
        event = mechanism.event(self.statistic.sensitivity(Adjacency.ADD_REMOVE), Adjacency.ADD_REMOVE)
        budget = Budget(epsilon=1e9, delta=0.5, adjacency=Adjacency.ADD_REMOVE)
        ledger = Ledger(budget, unit=PrivacyUnit.ROW)
        curator = Curator(
            self.unweighted().table(data), ledger.grant(event, purpose="kit", delta=1e-3), SeededRandom(self.seed)
        )
        with curator.open(event, purpose=self.statistic.purpose("kit")) as round_:
            release = round_.release(self.statistic, mechanism, purpose="kit")
        return release.value, release.caveat, ledger.record()

    def heard_fit(self, data: Any) -> Any:
        """The release, and what was said meanwhile."""
        return heard(lambda: self.fit(data))

    def replays(self) -> str | None:
        neighbours: dict[str, Neighbour[Any]] = {"a row less": removed(self.data, 2)}
        n = len(self.data[1])
        for odd in ODD:
            more = with_row(self.data, *odd_row(self.schema, odd))
            neighbours[f"a row more: {odd}"] = Neighbour(data=more, rows=n, origin=(*range(n), -1))
        said, _ = self.heard_fit(self.data)
        require(not said.raised, f"nothing can be released: {' from '.join(said.raised)}")
        share = 0.0
        for name, neighbour in neighbours.items():
            found = replay(self.heard_fit, self.data, neighbour)
            require(found.ok, f"{name}: {'; '.join(map(str, found.violations[:3]))}")
            require(any(call.kind == "release" for call in found.calls), f"{name}: nothing was released")
            share = max(share, found.largest_share)
        require(share > 0.0, "no neighbour moved the sum: what it is made of was not seen")
        return f"{len(neighbours)} neighbours, largest share {share:.3g}"

    def ledger(self) -> str | None:
        _, caveat, record = self.fit(self.data)
        require(caveat == self.statistic.caveat, f"the release says {caveat!r}")
        report = verify_ledger(record)
        require(report.verdict == "confirmed", f"the ledger is {report.verdict}")
        return caveat
