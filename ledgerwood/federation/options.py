"""What a federation's server fixes before a fit: who adds noise, what is protected, what is withstood.

Owners may be missing, and may pool what they know: docs/explanation/federation.md#shared-noise.
"""

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import final, get_args

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.events.shares import require_shared_noise
from ledgerwood.curator.places.federated_plans import require_plain, require_whole
from ledgerwood.curator.places.federated_rows import FitTerms, NoiseBy
from ledgerwood.federation.messages import FederationTerms
from ledgerwood.federation.owners.account_terms import require_server
from ledgerwood.secure_aggregation import ClientRegistry, SumTerms

_SESSION_BYTES = 16
LEAST_POOLING = 1 / 3
"""Fraction of the owners from whom, together with the server, secure aggregation hides the others in any case."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Fractions of the owners, in [0, 1), below 1 together.

    Args:
        colluding: that may pool what they know, with the server or with each other.
        dropouts: that may be missing in a round.
    """

    colluding: float = 0.0
    dropouts: float = 0.0

    def __post_init__(self) -> None:
        for name, given in (("colluding", self.colluding), ("dropouts", self.dropouts)):
            value = _validate.real(name, given, "share of the owners")
            if not 0.0 <= value < 1.0:
                raise _validate.fail(name, value, "in [0, 1)", "share of the owners")
            object.__setattr__(self, name, value)
        together = self.colluding + self.dropouts
        if together >= 1.0:
            raise _validate.fail(
                "colluding + dropouts", together, "below 1: nobody would be left", "share of the owners"
            )

    @property
    def masked_from(self) -> float:
        """The fraction that secure aggregation withstands: a third at least, since masks cost little."""
        return max(self.colluding, LEAST_POOLING)

    def least(self, owners: int) -> int:
        """The fewest survivors of a round that is unmasked; at least two, of whom neither is alone."""
        return max(2, owners - members(self.dropouts, owners))

    def honest(self, owners: int) -> int:
        """How many survivors carry the whole noise: all but those that pool what they know."""
        return self.least(owners) - pooling(self.colluding, owners)


def members(share: float, owners: int) -> int:
    """The most owners that are a share of all, as it is meant: .29 of 100 are 29, which floats make 28.99..."""
    return math.floor(Fraction(share).limit_denominator(1 << 32) * owners)


def pooling(share: float, owners: int) -> int:
    """How many owners may pool what they know: a share of all, and one in any case, who knows its own noise."""
    return max(1, members(share, owners))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FederationOptions:
    """Who adds the noise, what is protected, and what is withstood.

    Args:
        noise: who adds it: "server" or "clients".
        unit: what is protected: a row, or with `PrivacyUnit.USER` an owner's whole contribution.
        rows_per_client: of whole contributions, how many rows count as one: public.
        colluding: fraction of the owners that may pool what they know, with the server or with each other.
        dropouts: fraction of the owners that may be missing in a round.
        server: the server's name in the owners' ledgers.
        registry: the public keys of all owners by number, for active security: owners that have it too, and a
            threshold above two thirds, keep a server from inventing owners or showing them different rounds. None:
            semi-honest security.

    Raises:
        InvalidParameter: a value of another type, or out of its bound.
    """

    noise: NoiseBy = "server"
    unit: PrivacyUnit = PrivacyUnit.ROW
    rows_per_client: int = 1
    colluding: float = 0.0
    dropouts: float = 0.0
    server: str = "server"
    registry: ClientRegistry | None = None

    def __post_init__(self) -> None:
        if self.noise not in get_args(NoiseBy):
            raise _validate.fail("noise", self.noise, "'server' or 'clients'", "name")
        if not isinstance(self.unit, PrivacyUnit):
            raise _validate.fail("unit", self.unit, "a PrivacyUnit (ROW, USER)", "privacy unit")
        _validate.count("rows_per_client", self.rows_per_client, "rows")
        tolerance = self.tolerance
        object.__setattr__(self, "colluding", tolerance.colluding)
        object.__setattr__(self, "dropouts", tolerance.dropouts)
        require_server(self.server)
        if not isinstance(self.registry, ClientRegistry | None):
            raise _validate.fail("registry", self.registry, "a ClientRegistry or None", "public keys")

    @property
    def tolerance(self) -> Tolerance:
        """What is withstood."""
        return Tolerance(colluding=self.colluding, dropouts=self.dropouts)

    def require(self, event: Event) -> None:
        """Refuse a plan that a federation does not carry out on these terms.

        Raises:
            RoundViolation, UnsupportedEvent: so it is.
        """
        require_plain(event)
        if self.noise == "clients":
            require_shared_noise(event)
        if self.unit is not PrivacyUnit.ROW:
            require_whole(event)

    def terms(self, fit: FitTerms, owners: int) -> FederationTerms:
        """The terms of a new session.

        Args:
            fit: what is trained.
            owners: how many there are.
        """
        tolerance = self.tolerance
        return FederationTerms(
            session=os.urandom(_SESSION_BYTES),
            fit=fit,
            noise=self.noise,
            unit=self.unit,
            rows_per_client=self.rows_per_client,
            honest=tolerance.honest(owners),
            least=tolerance.least(owners),
            sums=SumTerms.for_clients(
                owners, colluding=tolerance.masked_from, dropouts=tolerance.dropouts, active=self.registry is not None
            ),
            server=self.server,
        )
