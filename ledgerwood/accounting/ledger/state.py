"""The ledger as a state machine without input or output: its valid transitions and its totals."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import final, get_args

from ledgerwood import _validate
from ledgerwood._directed import float_down
from ledgerwood.accounting.adjacency import Budget, PrivacyUnit
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.filters import Charge, Charges, Filter, Remaining
from ledgerwood.accounting.ledger.entries import (
    GENESIS,
    DrawEntry,
    Entry,
    GrantEntry,
    MigrationEntry,
    OpenEntry,
    Randomness,
    Version,
    decode,
    exact_share,
    require_label,
    require_randomness,
    sealed,
    shares,
)
from ledgerwood.errors import AdjacencyMismatch, BudgetExceeded, DrawRefused, LedgerCorrupted, LedgerError, PrivacyError

_FILTERS = "BasicFilter, ZCDPFilter, GDPFilter, RenyiFilter or AdvancedCompositionFilter"
_BROKEN = (PrivacyError, ValueError, KeyError, TypeError, RecursionError)  # what a line that is no entry may raise


@final
class State:
    """Entries and what follows from them. Propose an entry, make it durable elsewhere, then commit it."""

    __slots__ = ("_by", "_left", "_limits", "analysts", "charges", "entries", "terms", "version")

    def __init__(self, terms: OpenEntry) -> None:
        self.terms = terms
        self.entries: list[Entry] = [terms]
        self.charges = Charges()
        self._left: dict[int, Counter[Event]] = {}
        self._share(terms.analysts, terms.version)

    @property
    def head(self) -> str:
        return self.entries[-1].hash

    def left(self, grant: int) -> Counter[Event]:
        """The events that may still be drawn from the grant at this index."""
        return self._left[grant]

    def purse(self, analyst: str | None) -> tuple[Charges, Budget]:
        """The amount charged to an analyst, and the limit; of the whole ledger for None.

        Raises:
            LedgerError: the ledger knows no such analyst.
        """
        if analyst is None:
            return self.charges, self.terms.budget
        if analyst not in self._by:
            raise LedgerError(f"the ledger has no analyst {analyst!r}; it has {sorted(self._by) or 'no analysts'}")
        return self._by[analyst], self._limits[analyst]

    def price(self, event: Event, purpose: str, delta: float | None, analyst: str | None = None) -> Charge:
        """Compute the plan's charge in the current state; it may take a while, and nothing changes.

        Raises:
            AdjacencyMismatch: event and budget are stated under different relations.
            LedgerError: no such analyst, or none where analysts share the budget.
        """
        require_event(event)
        require_label("purpose", purpose)
        self._require_adjacency(event)
        self._require_analyst(analyst)
        filter_ = self.terms.filter
        spent, budget = min(self._purses(analyst), key=lambda purse: filter_.remaining(*purse).delta or 0.0)
        return filter_.charge(event, spent, budget, delta)

    def require_room(self, events: Sequence[Event], delta: float | None, analyst: str | None = None) -> None:
        """Refuse plans that would not fit if they were granted one after the other; nothing changes.

        Raises:
            BudgetExceeded, UnsupportedEvent, AdjacencyMismatch, LedgerError: as `price` and `propose_grant`.
        """
        filter_ = self.terms.filter
        self._require_analyst(analyst)
        for spent, budget in self._purses(analyst):
            charges = list(spent)
            for event in events:
                self._require_adjacency(event)
                charge = filter_.charge(event, charges, budget, delta)
                filter_.admit(charges, charge, budget)
                charges.append(charge)

    def remaining(self, analyst: str | None = None) -> Remaining:
        """The limit of one more grant: by the analyst's share if named, and by the whole budget."""
        own, *whole = (self.terms.filter.remaining(*purse) for purse in self._purses(analyst))
        return own.at_most(whole[0]) if whole else own

    def propose_grant(self, event: Event, charge: Charge, purpose: str, analyst: str | None = None) -> GrantEntry:
        """A grant that fits, at the charge that `price` gave; nothing changes yet.

        Raises:
            BudgetExceeded: it does not fit into the budget, or into the analyst's share of it.
        """
        self._require_analyst(analyst)
        self._admit(charge, analyst)
        return sealed(
            GrantEntry(
                index=len(self.entries), previous=self.head, hash="", event=event, charge=charge, purpose=purpose,
                analyst=analyst, version=self.version,
            )
        )  # fmt: skip

    def propose_migration(self, analysts: Mapping[str, float]) -> MigrationEntry:
        """Propose the migration from version 1 to 2, in which analysts share the budget; nothing changes yet.

        Raises:
            LedgerError: the ledger is of version 2.
            InvalidParameter: no shares, or not of this budget.
        """
        self._require_first_version()
        parts = _fitting_shares(self.terms.budget, self.terms.filter, analysts)
        return sealed(MigrationEntry(index=len(self.entries), previous=self.head, hash="", analysts=parts))

    def propose_draw(self, grant: int, event: Event, purpose: str, randomness: Randomness) -> DrawEntry:
        """A draw that the grant holds; nothing changes yet.

        Raises:
            DrawRefused: the event was not granted, or is used up.
        """
        purpose = require_label("purpose", purpose)
        require_randomness(randomness)
        self._require_left(grant, event)
        return sealed(
            DrawEntry(
                index=len(self.entries), previous=self.head, hash="", grant=grant, event=event, purpose=purpose,
                randomness=randomness, version=self.version,
            )
        )  # fmt: skip

    def commit(self, entry: GrantEntry | DrawEntry | MigrationEntry) -> None:
        """Append an entry that follows the last one."""
        if (entry.index, entry.previous) != (len(self.entries), self.head):
            raise LedgerCorrupted(f"entry {entry.index} does not follow entry {len(self.entries) - 1}")
        if entry.version != self.version and not isinstance(entry, MigrationEntry):
            raise LedgerCorrupted(f"an entry of version {entry.version} in a ledger of version {self.version}")
        match entry:
            case GrantEntry():
                self._require_grantable(entry)
                held: Counter[Event] = Counter()
                for part, count in entry.event.draws():
                    held[part] += count
                self._left[entry.index] = held
                self.charges.append(entry.charge)
                if entry.analyst is not None:
                    self._by[entry.analyst].append(entry.charge)
            case DrawEntry():
                self._require_left(entry.grant, entry.event)
                self._left[entry.grant][entry.event] -= 1
            case MigrationEntry():
                self._require_first_version()
                self._share(entry.analysts, entry.version)
        self.entries.append(entry)

    def follow(self, lines: Iterable[str]) -> None:
        """Take in lines that others wrote after the last entry; charges are taken as written.

        Raises:
            LedgerCorrupted: names the first entry that is not canonical, not chained, or not allowed where it stands.
        """
        known: dict[str, Event] = {}
        for line in lines:
            try:
                entry = decode(line, known)
                if isinstance(entry, OpenEntry):
                    raise LedgerCorrupted("a second opening")
                if isinstance(entry, GrantEntry):
                    self._require_grantable(entry)
                    self._admit(entry.charge, entry.analyst)
                self.commit(entry)
            except BudgetExceeded as error:
                raise LedgerCorrupted(f"entry {len(self.entries)}: the grants exceed the budget: {error}") from error
            except _BROKEN as error:
                raise LedgerCorrupted(f"entry {len(self.entries)}: {error}") from error

    def _share(self, analysts: tuple[tuple[str, float], ...], version: Version) -> None:
        """From here on these analysts share the budget; earlier charges belong to no analyst."""
        self.analysts, self.version = analysts, version
        self._by = {label: Charges() for label, _ in analysts}
        self._limits = {label: limit(self.terms.budget, share) for label, share in analysts}

    def _purses(self, analyst: str | None) -> list[tuple[Charges, Budget]]:
        """The budgets that a grant must fit: the analyst's share if one is named, and the whole."""
        return [self.purse(name) for name in dict.fromkeys((analyst, None))]

    def _admit(self, charge: Charge, analyst: str | None) -> None:
        """Raise BudgetExceeded unless the charge fits into each of these budgets."""
        for spent, budget in reversed(self._purses(analyst)):
            self.terms.filter.admit(spent, charge, budget)

    def _require_grantable(self, entry: GrantEntry) -> None:
        self._require_adjacency(entry.event)
        self._require_analyst(entry.analyst)
        self.terms.filter.require_currency(entry.charge)

    def _require_first_version(self) -> None:
        if self.version != 1:
            raise LedgerError(
                f"the ledger is of format version {self.version}, shared by {sorted(self._by)}: shares never change"
            )

    def _require_analyst(self, analyst: str | None) -> None:
        if analyst is None and self._by:
            raise LedgerError(f"analysts share this ledger: open it with analyst= one of {sorted(self._by)} to spend")
        self.purse(analyst)

    def _require_adjacency(self, event: Event) -> None:
        ours = self.terms.budget.adjacency
        if event.adjacency is not ours:
            raise AdjacencyMismatch(f"the event is stated under {event.adjacency.value}, the ledger under {ours.value}")

    def _require_left(self, grant: int, event: Event) -> None:
        held = self._left.get(grant)
        if held is None:
            raise DrawRefused(f"entry {grant} is not a grant of this ledger")
        if event not in held:
            raise DrawRefused(f"grant {grant} does not hold {event!r}; it holds {_kinds(held)}")
        if held[event] <= 0:
            raise DrawRefused(
                f"grant {grant} has no {event!r} left: each planned event is drawn at most as often as planned"
            )


def limit(budget: Budget, share: float) -> Budget:
    """A share of a budget, rounded down; shares of at most 1 together stay within it, by basic composition."""
    exact = exact_share(share)
    return Budget(
        epsilon=float_down(Fraction(budget.epsilon) * exact), delta=float_down(Fraction(budget.delta) * exact),
        adjacency=budget.adjacency,
    )  # fmt: skip


def opened(
    budget: Budget,
    unit: PrivacyUnit,
    filter_: Filter,
    dataset: str | None,
    analysts: Mapping[str, float] | None = None,
) -> OpenEntry:
    """The first entry of a new ledger."""
    if not isinstance(budget, Budget):
        raise _validate.fail("budget", budget, "a Budget", "budget")
    if not isinstance(unit, PrivacyUnit):
        raise _validate.fail("unit", unit, "a PrivacyUnit (ROW, USER)", "privacy unit")
    if type(filter_) not in get_args(Filter):
        raise _validate.fail("filter", filter_, _FILTERS, "filter")
    filter_.check(budget)
    if dataset is not None:
        dataset = require_label("dataset", dataset)
    parts = () if analysts is None else _fitting_shares(budget, filter_, analysts)
    return sealed(
        OpenEntry(
            index=0, previous=GENESIS, hash="", budget=budget, unit=unit, filter=filter_, dataset=dataset,
            analysts=parts, version=2 if parts else 1,
        )
    )  # fmt: skip


def _fitting_shares(budget: Budget, filter_: Filter, analysts: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Shares that the filter can hold grants against, in the order of their labels."""
    parts = shares(analysts)
    for _, share in parts:
        filter_.check(limit(budget, share))
    return parts


def replay(lines: Iterable[str]) -> State:
    """The state that lines of a ledger file lead to.

    Raises:
        LedgerCorrupted: names the first entry that is not canonical, not chained, or not allowed where it stands;
            charges are taken as written.
    """
    rest = iter(lines)
    first = next(rest, None)
    if first is None:
        raise LedgerCorrupted("entry 0: the ledger is empty")
    try:
        entry = decode(first)
        if not isinstance(entry, OpenEntry) or (entry.index, entry.previous) != (0, GENESIS):
            raise LedgerCorrupted("the first entry does not open a ledger")
    except _BROKEN as error:
        raise LedgerCorrupted(f"entry 0: {error}") from error
    state = State(entry)
    state.follow(rest)
    return state


def _kinds(held: Counter[Event]) -> str:
    listed = [f"{count} x {event!r}" for event, count in list(held.items())[:3]]
    return "; ".join(listed) + ("; ..." if len(held) > len(listed) else "")
