"""From a calibrated plan to the grant that pays for it, and to the statement of what was paid."""

from collections import Counter

from ledgerwood.accounting.adjacency import Budget, PrivacyUnit
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.filters import GDPFilter, RenyiFilter, ZCDPFilter
from ledgerwood.accounting.ledger import Grant, Ledger, LedgerRecord
from ledgerwood.accounting.pricing import price
from ledgerwood.errors import AdjacencyMismatch, DrawRefused, InvalidParameter
from ledgerwood.mechanisms import RandomSource
from ledgerwood.trainers.base.plan import Plan
from ledgerwood.trainers.base.privacy import PrivacyStatement, declared_in

ROW_IS_UNIT = "each row is one privacy unit"
DECLARED = "schema, hyper-parameters and expected_rows are public: none was chosen by looking at these rows"
BOUGHT = (
    "the schema was estimated within this epsilon and delta; the number, names and types of the columns, "
    "hyper-parameters and expected_rows are public: none was chosen by looking at these rows"
)
OWN_WEIGHTS = "each row's weight is its own: it was neither normalised nor balanced by a look at other rows"
NOT_FITTED = (
    "X and y were not transformed by anything that was fitted on rows (a scaler, encoder, imputer, selection of "
    "columns or transformation of labels): what such a step learned of the rows is not covered"
)
ASSUMPTIONS = (
    ROW_IS_UNIT,
    "the number, names and types of the columns are public, and so is whether X, y and weights have as many rows",
    "running time is not observed",
    NOT_FITTED,
)


def require_ledger(ledger: object) -> None:
    """Refuse what is neither None nor a ledger that protects rows, or a grant of one.

    Raises:
        InvalidParameter, AdjacencyMismatch: it is.
    """
    if ledger is None:
        return
    if isinstance(ledger, Grant):
        ledger = ledger.ledger
    if not isinstance(ledger, Ledger):
        raise InvalidParameter(
            f"ledger must be a ledgerwood.Ledger, not {type(ledger).__name__}; weights go to sample_weight="
        )
    if ledger.unit is not PrivacyUnit.ROW:
        raise AdjacencyMismatch(
            f"the ledger protects a {ledger.unit.value}, and this fit a row: a {ledger.unit.value} with several "
            "rows would lose more than the ledger says (unit: privacy unit)"
        )


def grant_plan(plan: Plan, budget: Budget, ledger: Ledger | Grant | None, *, purpose: str) -> tuple[Ledger, Grant]:
    """Pay for the whole plan, from the ledger given or from one of its own, at the budget's delta.

    A grant that was made before is taken as it is, where it still holds the plan.

    Raises:
        BudgetExceeded, AdjacencyMismatch: the ledger refuses the plan. Nothing was spent.
        DrawRefused: the grant does not hold the plan, or no longer does. Nothing was drawn.
    """
    if isinstance(ledger, Grant):
        require_held(ledger, plan.event)
        return ledger.ledger, ledger
    ledger = Ledger(budget, unit=PrivacyUnit.ROW) if ledger is None else ledger
    return ledger, ledger.grant(plan.event, purpose=purpose, delta=grant_delta(ledger, budget))


def grant_delta(ledger: Ledger, budget: Budget) -> float | None:
    """The delta at which a plan is granted: the budget's; None where the ledger's currency holds at every delta.

    Named, for a plan that is pure as well: it may cost less with a delta.
    """
    return None if isinstance(ledger.filter, GDPFilter | ZCDPFilter | RenyiFilter) else budget.delta


def require_held(grant: Grant, event: Event) -> None:
    """Refuse a grant that does not hold all draws of the event, or no longer does.

    Raises:
        DrawRefused: it does not.
    """
    wanted: Counter[Event] = Counter()
    for part, count in event.draws():
        wanted[part] += count
    left = grant.remaining
    for part, count in wanted.items():
        if left.get(part, 0) < count:
            raise DrawRefused(
                f"grant {grant.index} ({grant.purpose!r}) has {left.get(part, 0)} of the {count} draws of {part!r} "
                "that the plan needs: grant the plan of this very estimator, estimator.make_plan(schema).event"
            )


def privacy_statement(
    plan: Plan,
    budget: Budget,
    source: RandomSource,
    record: LedgerRecord,
    assumptions: tuple[str, ...],
    *,
    grant: int,
) -> PrivacyStatement:
    """Returns the privacy statement of a model that was trained by the plan, out of the grant of this index."""
    quote = price(plan.event).quote(budget.delta)
    return PrivacyStatement(
        epsilon=quote.epsilon if source.kind == "secure" else float("inf"),
        delta=budget.delta,
        adjacency=budget.adjacency,
        unit=PrivacyUnit.ROW,
        method=quote.method,
        certified=quote.certified,
        randomness=source.kind,
        assumptions=(DECLARED if plan.purchase is None else BOUGHT, *assumptions, *declared_in(record, grant)),
        ledger_head=record.head,
    )
