"""What a fitted model says of its own privacy."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, final

from ledgerwood.accounting.adjacency import Adjacency, PrivacyUnit


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyStatement:
    """The guarantee of one fit, and what it rests on.

    Args:
        epsilon: price of this fit's plan at `delta`, in nats; inf where the randomness can be repeated.
        delta: probability.
        adjacency: the relation of neighbouring data sets.
        unit: what one protected record is.
        method: how the price was found.
        certified: whether the price is a proven upper bound.
        randomness: "test" protects nobody.
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
