"""From a calibrated plan to the grant that pays for it, and to the privacy statement of the fitted model."""

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Literal, final

from ledgerwood import _validate
from ledgerwood.accounting import risk
from ledgerwood.accounting.adjacency import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.events import Event, PoissonSampled, PoissonSelection, RandomAllocation, RepeatedSelection
from ledgerwood.accounting.filters import GDPFilter, RenyiFilter, ZCDPFilter
from ledgerwood.accounting.ledger import DrawEntry, Grant, GrantEntry, Ledger, LedgerRecord
from ledgerwood.accounting.pricing import price
from ledgerwood.curator import require_within
from ledgerwood.curator.queries.declared import caveats_in
from ledgerwood.errors import AdjacencyMismatch, DrawRefused, InvalidParameter, LedgerCorrupted, PrivacyError
from ledgerwood.mechanisms import RandomSource
from ledgerwood.pages.shown import Card, ShowsItself
from ledgerwood.pages.values import plain
from ledgerwood.trainers.base.plan import Plan
from ledgerwood.trainers.preparing.callers import require_known_caller, warn_of_steps

ROW_IS_UNIT = "each row is one privacy unit"
CLIENT_IS_UNIT = "each client of the federation, with all of its rows, is one privacy unit"
DECLARED = "schema, hyper-parameters and expected_rows are public: none was chosen by looking at these rows"
BOUGHT = (
    "the schema was estimated within this epsilon and delta; the number, names and types of the columns, "
    "hyper-parameters and expected_rows are public: none was chosen by looking at these rows"
)
PARTLY_BOUGHT = (
    "what the draft of the schema declares is public, and the rest of the schema was estimated within this epsilon and "
    "delta; the number, names and types of the columns, hyper-parameters and expected_rows are public: none was chosen "
    "by looking at these rows"
)
OWN_WEIGHTS = "each row's weight is its own: it was neither normalised nor balanced by a look at other rows"
CLASS_WEIGHTS = "the weights of the classes are public: they were not balanced by a look at the labels of these rows"
NOT_FITTED = (
    "X and y were not transformed by anything that was fitted on rows (a scaler, encoder, imputer, selection of "
    "columns or transformation of labels): what such a step learned of the rows is not covered"
)
PSEUDO_RANDOM = (
    "noise and the coins of rows come from AES-256 in counter mode: the guarantee is as good as that is as a "
    "pseudo-random function"
)
ON_DISK = (
    "encoded rows were on this machine's disk, in a scratch folder that nobody else may read, until the fit ended; "
    "exact sums were in this process only"
)
ON_CLUSTER = (
    "rows and exact sums were on the workers, and went through the scheduler, of a Dask cluster: whoever runs it, or "
    "reads its memory, its spilled files or its connections, is trusted as the owner of the rows is"
)
ASSUMPTIONS = (
    ROW_IS_UNIT,
    "the number, names and types of the columns are public, and so is whether X, y and weights have as many rows",
    "running time is not observed",
    PSEUDO_RANDOM,
    NOT_FITTED,
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyStatement(ShowsItself):
    """The privacy guarantee of one fit, with its assumptions.

    Args:
        epsilon: privacy cost of this fit's plan at `delta`, in nats; inf if the noise is reproducible (a seed was set).
        delta: the probability at which epsilon holds.
        adjacency: the relation of neighbouring data sets.
        unit: what one protected record is.
        method: the accounting method.
        certified: whether the privacy cost is a proven upper bound.
        randomness: "secure", or "test" for reproducible noise, which protects no one.
        assumptions: what must hold outside the library.
        ledger_head: hash of the ledger's last entry after the fit.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: PrivacyUnit
    method: str
    certified: bool
    randomness: Literal["secure", "test"]
    assumptions: tuple[str, ...]
    ledger_head: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "assumptions", _validate.items("assumptions", self.assumptions, "sentences"))
        if not self.epsilon >= 0.0:
            raise _validate.fail("epsilon", self.epsilon, ">= 0", "nats")
        if not 0.0 <= self.delta < 1.0:
            raise _validate.fail("delta", self.delta, "in [0, 1)", "probability")
        if self.randomness not in ("secure", "test"):
            raise _validate.fail("randomness", self.randomness, "'secure' or 'test'", "name")
        if self.randomness == "test" and math.isfinite(self.epsilon):
            raise _validate.fail("epsilon", self.epsilon, "inf where the randomness is 'test'", "nats")

    @property
    def in_short(self) -> str:
        """Epsilon and delta in a few words, as an estimator's `repr` shows them."""
        if math.isinf(self.epsilon):
            return "no guarantee" if self.randomness == "secure" else "no guarantee, the noise is reproducible"
        return f"epsilon {plain(self.epsilon)} at delta {self.delta:g}"

    @property
    def meaning(self) -> str:
        """What the guarantee leaves to an attacker, in words; `accounting.risk.in_words` says it."""
        return risk.in_words(self.epsilon, self.delta, adjacency=self.adjacency, unit=self.unit)

    def _card(self) -> Card:
        return Card(
            title="Privacy of this fit",
            facts=(
                ("epsilon", self.epsilon),
                ("delta", self.delta),
                ("adjacency, unit", f"{self.adjacency.value}, {self.unit.value}"),
                ("method", self.method if self.certified else f"{self.method}, not certified"),
                ("randomness", "secure" if self.randomness == "secure" else "reproducible: no guarantee"),
                ("ledger head", self.ledger_head),
            ),
            notes=(self.meaning, *(f"assumes: {text}" for text in self.assumptions)),
        )

    def require_backing(self, event: Event, ledger: LedgerRecord) -> None:
        """Refuse a statement that says less than the grant of the plan costs, or that the ledger does not bear out.

        Args:
            event: the plan. A search of which it is one run may cost less: that there was a run at all may be rare.
            ledger: the ledger that paid.

        Raises:
            LedgerCorrupted: what does not agree.
        """
        if event.adjacency is not self.adjacency:
            raise LedgerCorrupted(f"the statement is under {self.adjacency.value}, the plan {event.adjacency.value}")
        if self.unit is not ledger.terms.unit:
            raise LedgerCorrupted(f"the statement protects a {self.unit.value}, the ledger a {ledger.terms.unit.value}")
        grants = [entry for entry in ledger.entries if isinstance(entry, GrantEntry) and _pays(entry.event, event)]
        if not grants:
            raise LedgerCorrupted("the ledger holds no grant of the model's plan")
        # The fit's own grant is the last of its kind: the record ends with the fit.
        quote = price(grants[-1].event).quote(self.delta)
        if self.epsilon < quote.epsilon:
            raise LedgerCorrupted(f"the statement (epsilon {self.epsilon!r} nats) is not what its grant costs")
        if self.certified and not quote.certified:
            raise LedgerCorrupted("the statement says that its epsilon is certified, and the grant's is not")
        unsaid = [text for text in declared_in(ledger, grants[-1].index) if text not in self.assumptions]
        if unsaid:
            raise LedgerCorrupted(f"the statement leaves out what the ledger's draws say: {unsaid[0]!r}")
        own = [entry for entry in ledger.entries if isinstance(entry, DrawEntry) and entry.grant == grants[-1].index]
        kinds = {entry.randomness for entry in own}
        if "test" in kinds and self.randomness == "secure":
            raise LedgerCorrupted("the statement says 'secure', and the ledger has draws of randomness 'test'")

    def to_record(self) -> dict[str, object]:
        """Plain JSON values; an infinite epsilon becomes null."""
        record = asdict(self)
        record["epsilon"] = self.epsilon if math.isfinite(self.epsilon) else None
        record["adjacency"] = self.adjacency.value
        record["unit"] = self.unit.value
        record["assumptions"] = list(self.assumptions)
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "PrivacyStatement":
        """The inverse of `to_record`."""
        return cls(
            **{
                **record,
                "epsilon": math.inf if record["epsilon"] is None else float(record["epsilon"]),
                "adjacency": Adjacency(record["adjacency"]),
                "unit": PrivacyUnit(record["unit"]),
                "assumptions": tuple(record["assumptions"]),
            }
        )


def declared_in(ledger: LedgerRecord, grant: int) -> tuple[str, ...]:
    """What a grant's draws say of statistics whose sensitivity is declared and not proven: assumptions of the fit.

    Args:
        ledger: as it stood after the fit.
        grant: the index of the grant that paid for the fit; others of an equal plan may be of other fits.
    """
    own = [entry for entry in ledger.entries if isinstance(entry, DrawEntry) and entry.grant == grant]
    return tuple(dict.fromkeys(caveat for entry in own for caveat in caveats_in(entry.purpose)))


def _pays(granted: Event, plan: Event) -> bool:
    """Returns whether a grant is of this plan, or of a search that may have run it (`trainers.tuning`)."""
    if not isinstance(granted, RepeatedSelection | PoissonSelection):
        return granted == plan
    try:
        require_within([plan], granted)
    except PrivacyError:
        return False
    return True


def fit_assumptions(
    unit: PrivacyUnit, *, weighted: bool, where: str, own_ledger: bool, class_weights: bool = False
) -> tuple[str, ...]:
    """What must hold outside the library for one fit.

    Args:
        unit: that is protected.
        weighted: whether rows have their own weights.
        where: who is trusted with the rows, where they are not in this process; or "".
        own_ledger: whether the ledger is the fit's own.
        class_weights: whether classes have weights.
    """
    scope = (
        "this fit only: other uses of the same rows add to it" if own_ledger else "this fit; the ledger has the total"
    )
    common = ASSUMPTIONS if unit is PrivacyUnit.ROW else (CLIENT_IS_UNIT, *ASSUMPTIONS[1:])
    weights = (*((OWN_WEIGHTS,) if weighted else ()), *((CLASS_WEIGHTS,) if class_weights else ()))
    return (*common, *weights, *((where,) if where else ()), f"epsilon covers {scope}")


def require_ledger(ledger: object, unit: PrivacyUnit = PrivacyUnit.ROW) -> None:
    """Refuse what is neither None nor a ledger that protects units of the fit, or a grant of one.

    Warns, with a ledger or without, if a pipeline calls the fit whose other steps learn from the rows.

    Raises:
        InvalidParameter, AdjacencyMismatch: it is, or it came through what learns more from the rows than this fit.
    """
    if ledger is None:
        warn_of_steps()
        return
    if isinstance(ledger, Grant):
        ledger = ledger.ledger
    if not isinstance(ledger, Ledger):
        raise InvalidParameter(
            f"ledger must be a ledgerwood.Ledger, not {type(ledger).__name__}; weights go to sample_weight="
        )
    if ledger.unit is not unit:
        raise AdjacencyMismatch(
            f"the ledger protects a {ledger.unit.value}, and this fit a {unit.value}: a {ledger.unit.value} with "
            f"several {unit.value}s would lose more than the ledger says (unit: privacy unit)"
        )
    require_known_caller()
    warn_of_steps()


def grant_plan(
    plan: Plan, budget: Budget, ledger: Ledger | Grant | None, *, purpose: str, unit: PrivacyUnit = PrivacyUnit.ROW
) -> tuple[Ledger, Grant]:
    """Pay for the whole plan, from the ledger given or from one of its own, at the budget's delta.

    A grant that was made before is taken as it is, where it still holds the plan.

    Raises:
        BudgetExceeded, AdjacencyMismatch: the ledger refuses the plan. Nothing was spent.
        DrawRefused: the grant does not hold the plan, or no longer does. Nothing was drawn.
    """
    if isinstance(ledger, Grant):
        require_held(ledger, plan.event)
        return ledger.ledger, ledger
    ledger = Ledger(budget, unit=unit) if ledger is None else ledger
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
    event: Event,
    budget: Budget,
    source: RandomSource,
    record: LedgerRecord,
    assumptions: tuple[str, ...],
    *,
    grant: int,
) -> PrivacyStatement:
    """Returns the privacy statement of a model that was trained by the plan, out of the grant of this index.

    Args:
        plan: as it was carried out.
        event: what was paid for before it was carried out.
        budget: of the fit.
        source: of all noise.
        record: the ledger after the fit.
        assumptions: of the fit.
        grant: index of the grant that paid.

    Raises:
        InvalidParameter: the plan is no longer the one that was paid for.
    """
    if plan.event != event:
        raise InvalidParameter(
            f"the {type(plan).__name__} changed while it was carried out: its event is {plan.event!r}, and "
            f"{event!r} was paid for. Make the plan a frozen dataclass"
        )
    quote = price(event).quote(budget.delta)
    return PrivacyStatement(
        epsilon=quote.epsilon if source.kind == "secure" else float("inf"),
        delta=budget.delta,
        adjacency=budget.adjacency,
        unit=record.terms.unit,
        method=quote.method,
        certified=quote.certified,
        randomness=source.kind,
        assumptions=(_of_schema(plan), *_of_samples(event), *assumptions, *declared_in(record, grant)),
        ledger_head=record.head,
    )


def _of_samples(event: Event) -> tuple[str, ...]:
    """Which sampler the cost is for: who was in which sample has to stay secret."""
    found: dict[str, None] = {}
    for draw, _ in event.draws():
        match draw:
            case PoissonSampled(sampling_rate=rate):
                how = f"each with probability {rate:.6g}, by a coin for each row and sample (Poisson)"
            case RandomAllocation(selected=selected, steps=steps):
                how = f"each in exactly {selected} of {steps}, chosen uniformly (random allocation)"
            case _:
                continue
        found[f"nobody learns which rows were in which sample of the trees: {how}"] = None
    return tuple(found)


def _of_schema(plan: Plan) -> str:
    """What was taken as public of the schema."""
    if plan.purchase is None:
        return DECLARED
    columns = plan.purchase.columns
    declared = any(column.given is not None for column in (*columns.features, columns.target))
    return PARTLY_BOUGHT if declared else BOUGHT
