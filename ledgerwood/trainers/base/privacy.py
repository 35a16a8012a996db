"""The privacy statement of a fitted model."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, PrivacyUnit
from ledgerwood.accounting.events import Event, PoissonSelection, RepeatedSelection
from ledgerwood.accounting.ledger import DrawEntry, GrantEntry, LedgerRecord
from ledgerwood.accounting.pricing import price
from ledgerwood.curator import require_within
from ledgerwood.curator.queries.declared import caveats_in
from ledgerwood.errors import LedgerCorrupted, PrivacyError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyStatement:
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
        if self.epsilon < price(grants[-1].event).quote(self.delta).epsilon:
            raise LedgerCorrupted(f"the statement (epsilon {self.epsilon!r} nats) is not what its grant costs")
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
