"""A table of trees whose rows are on the workers of a Dask cluster."""

from collections.abc import Sequence
from typing import Any, final

from ledgerwood.curator.places.cluster import Accounts, ClusterSession
from ledgerwood.curator.places.messages import RowCharge
from ledgerwood.curator.queries.registry import TREE_CHOICES, Evaluation
from ledgerwood.curator.tables.trees import TreeTable
from ledgerwood.curator.views.tree_rows import NO_FILTER, RowBudgets, TreeRows, TreeShape
from ledgerwood.mechanisms import RandomSource
from ledgerwood.mechanisms.exact.coins import RowCoins
from ledgerwood.recording.points import passes


@final
class ClusterTable(TreeTable):
    """Encoded rows on a cluster, for one curator.

    A sample is no array here: it is a `Drawn`, by which each worker finds out who of its rows takes part.

    Args:
        session: that has placed the rows.
        shape: what is public of them.
    """

    __slots__ = ("_session",)

    def __init__(self, session: ClusterSession, shape: TreeShape) -> None:
        self.schema = shape.schema
        self._shape = shape
        self._session = session

    @property
    def n_rows(self) -> int:
        """The number of rows, curator only."""
        return self._session.n_rows

    @passes("sample")
    def sample(self, sampling_rate: float, source: RandomSource) -> Any:
        """As `AbstractRows.sample`: None for all rows."""
        if sampling_rate == 1.0:
            return None
        return self._session.drawn(RowCoins.drawn(source), rate=sampling_rate)

    @passes("assign")
    def assign(self, ends: Sequence[int], source: RandomSource) -> Any:
        """As `AbstractRows.assign`."""
        if ends[0] == 1 << 64:  # the first group has everybody, without a coin
            return self._session.drawn(None, ends=tuple(ends))
        return self._session.drawn(RowCoins.drawn(source), ends=tuple(ends))

    def members(self, assignment: Any, group: int) -> Any:
        """As `AbstractRows.members`."""
        return assignment.of_group(group)

    @passes("allocate")
    def allocate(self, selected: int, steps: int, source: RandomSource) -> Any:
        """As `AbstractRows.allocate`."""
        return self._session.drawn(RowCoins.drawn(source), selected=selected, steps=steps)

    @passes("allocated")
    def allocated(self, allocation: Any, step: int) -> Any:
        """As `AbstractRows.allocated`."""
        return allocation.of_step(step)

    def full_accounts(self) -> Any:
        """As `TreeTable.full_accounts`: they are on the workers."""
        return Accounts()

    def _require(self, evaluation: Evaluation[TreeShape, TreeRows], query: object) -> None:
        super()._require(evaluation, query)
        evaluation.require_sums(query)

    def _evaluated(
        self, evaluation: Evaluation[TreeShape, TreeRows], query: object, sampled: Any, budgets: RowBudgets
    ) -> Any:
        session = self._session
        is_choice = query in TREE_CHOICES and TREE_CHOICES.evaluation(query) is evaluation
        if budgets is NO_FILTER:
            asked = session.question(query, is_choice=is_choice, drawn=sampled, charge=None)
            return evaluation.finish(query, session.answered(asked), self._shape)
        charge = RowCharge(costs=budgets.costs, weights=budgets.weights)
        asked = session.question(query, is_choice=is_choice, drawn=sampled, charge=charge)
        accounts: Any = budgets.left
        return evaluation.finish(query, session.charged(asked, accounts), self._shape)
