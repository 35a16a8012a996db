"""What an owner of rows accepts of a federation's server, whatever the server says."""

from dataclasses import dataclass
from typing import final, get_args

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.accounting.events.shares import require_shared_noise
from ledgerwood.curator.places.federated_plans import require_plain, require_whole
from ledgerwood.curator.places.federated_rows import NoiseBy
from ledgerwood.curator.queries.declared import DeclaredStatistic
from ledgerwood.curator.queries.named_statistics import NamedStatistic, trusted
from ledgerwood.errors import FederationRefused
from ledgerwood.federation.messages import FederationTerms, Hello
from ledgerwood.federation.options import Tolerance, pooling
from ledgerwood.schema import Schema
from ledgerwood.secure_aggregation import ClientRegistry

_MOST_BINS = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerPolicy:
    """The terms that an owner takes part on; the owner's ledger bounds what they may cost.

    Args:
        schema: that the server's has to equal; None accepts any, and one that is privately estimated.
        noise: that the server has to use; None accepts both.
        colluding: fraction of the owners from whose knowledge of their own noise this owner wants to be safe, under
            noise="clients"; from one owner in any case.
        allow_seed: whether runs with a seed are answered, which protect nobody.
        registry: the public keys of all owners, known from elsewhere than the server: the owner takes part in active
            sessions only, in which a server cannot invent owners. None: in semi-honest ones only.
        statistics: from outside, whose functions this owner runs on its rows. A server that asks for another one, or
            declares one of them differently, is refused; it tells only the constants.

    Raises:
        InvalidParameter: a value of another type, or out of its bound.
    """

    schema: Schema | None = None
    noise: NoiseBy | None = None
    colluding: float = 0.0
    allow_seed: bool = False
    registry: ClientRegistry | None = None
    statistics: tuple[DeclaredStatistic, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in (("schema", Schema), ("registry", ClientRegistry)):
            if not isinstance(getattr(self, name), kind | None):
                raise _validate.fail(name, getattr(self, name), f"a {kind.__name__} or None", "terms of a session")
        if self.noise not in (None, *get_args(NoiseBy)):
            raise _validate.fail("noise", self.noise, "'server', 'clients' or None", "name")
        object.__setattr__(self, "colluding", Tolerance(colluding=self.colluding).colluding)
        _validate.flag("allow_seed", self.allow_seed)
        statistics = _validate.items("statistics", self.statistics, "statistics")
        if not all(isinstance(each, DeclaredStatistic) for each in statistics):
            raise _validate.fail("statistics", statistics, "each a DeclaredStatistic", "statistics")
        names = [each.name for each in statistics]
        if len(set(names)) < len(names):
            raise _validate.fail("statistics", names, "of different names, by which servers ask for them", "names")
        object.__setattr__(self, "statistics", statistics)

    def require(self, request: Hello) -> None:
        """Refuse terms that this owner does not accept.

        Raises:
            FederationRefused, RoundViolation, UnsupportedEvent: what it does not accept.
        """
        terms = request.terms
        if terms.fit.schema is None:
            self.require_no_schema()
        if self.schema is not None and terms.fit.schema != self.schema:
            raise FederationRefused("the server's schema is not the one that this owner has: agree on one schema file")
        if self.noise is not None and terms.noise != self.noise:
            raise FederationRefused(f"this owner takes part with noise={self.noise!r}, not {terms.noise!r}")
        if terms.fit.seeded and not self.allow_seed:
            raise FederationRefused(
                "the estimator has a random_state: its noise can be computed, so that it protects nobody. Fit with "
                "random_state=None, or let owners of test rows say allow_seed=True"
            )
        if terms.sums.active != (self.registry is not None):
            raise FederationRefused(
                "this owner has a registry of owners, and takes part in active sessions only: give it to the server"
                if self.registry is not None
                else "an active session needs a registry of owners, which this owner does not have"
            )
        if not 1 <= terms.fit.bins <= _MOST_BINS:
            raise FederationRefused(f"max_bins={terms.fit.bins} is not in 1..{_MOST_BINS} (unit: steps)")
        if not 0 <= request.number < terms.sums.n_clients:
            raise FederationRefused(f"owner {request.number} is none of the {terms.sums.n_clients} owners")
        self._require_enough(terms)
        require_plain(terms.fit.event)
        for named in terms.fit.statistics:
            self.trusted(named)
        if terms.noise == "clients":
            require_shared_noise(terms.fit.event)
        if terms.unit is not PrivacyUnit.ROW:
            require_whole(terms.fit.event)

    def require_no_schema(self) -> None:
        """Refuse a fit that estimates the schema, where this owner has one.

        Raises:
            FederationRefused: so it is.
        """
        if self.schema is not None:
            raise FederationRefused(
                "this owner takes part with a schema that it has declared, and the estimator would estimate one: give "
                "it the same schema"
            )

    def trusted(self, named: NamedStatistic) -> DeclaredStatistic:
        """The statistic of this owner's list that a server names, with the server's constants.

        Raises:
            RoundViolation: it is not on the list as the server declares it.
        """
        return trusted(named, self.statistics, "this owner's list (statistics=)")

    def _require_enough(self, terms: FederationTerms) -> None:
        """Refuse rounds of too few owners, and too few that carry the noise.

        Raises:
            FederationRefused: so it is.
        """
        pools = pooling(self.colluding, terms.sums.n_clients)
        if terms.noise == "clients" and terms.least - terms.honest < pools:
            raise FederationRefused(
                f"{terms.honest} owners would carry the noise of a round of {terms.least}: if {pools} of them pool "
                f"what they know, less of it is left than was planned. At most {terms.least - pools} may carry it"
            )
        if not (terms.honest <= terms.least and 2 <= terms.least <= terms.sums.n_clients):
            raise FederationRefused(
                f"honest={terms.honest} and least={terms.least} do not lie in honest <= least, 2 <= least <= "
                f"{terms.sums.n_clients} owners"
            )
