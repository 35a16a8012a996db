"""The ledger as a state machine without input or output: what may follow what, and what it adds up to."""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import final, get_args

from ledgerwood import _validate
from ledgerwood._directed import float_down
from ledgerwood.accounting.adjacency import Budget, PrivacyUnit
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.filters import Charge, Filter
from ledgerwood.accounting.ledger.entries import (
    GENESIS,
    DrawEntry,
    Entry,
    GrantEntry,
    OpenEntry,
    Randomness,
    decode,
    exact_share,
    require_label,
    require_randomness,
    sealed,
    shares,
)
from ledgerwood.errors import AdjacencyMismatch, BudgetExceeded, DrawRefused, LedgerCorrupted, LedgerError, PrivacyError

_FILTERS = "BasicFilter, ZCDPFilter, GDPFilter, RenyiFilter or WhitehouseFilter"
_BROKEN = (PrivacyError, ValueError, KeyError, TypeError, RecursionError)  # what a line that is no entry may raise


@final
class State:
    """Entries and what follows from them. Propose an entry, make it durable elsewhere, then commit it."""

    __slots__ = ("_by", "_left", "_limits", "charges", "entries", "terms")

    def __init__(self, terms: OpenEntry) -> None:
        self.terms = terms
        self.entries: list[Entry] = [terms]
        self.charges: list[Charge] = []
        self._left: dict[int, Counter[Event]] = {}
        self._by: dict[str, list[Charge]] = {label: [] for label, _ in terms.analysts}
        self._limits = {label: limit(terms.budget, share) for label, share in terms.analysts}

    @property
    def head(self) -> str:
        return self.entries[-1].hash

    def left(self, grant: int) -> Counter[Event]:
        """What may still be drawn from the grant at this index."""
        return self._left[grant]

    def purse(self, analyst: str | None) -> tuple[list[Charge], Budget]:
        """What was charged to an analyst, and the limit; of the whole ledger for None.

        Raises:
            LedgerError: the ledger knows no such analyst.
        """
        if analyst is None:
            return self.charges, self.terms.budget
        if analyst not in self._by:
            raise LedgerError(
                f"the ledger has no analyst {analyst!r}; it was opened for {sorted(self._by) or 'anyone'}"
            )
        return self._by[analyst], self._limits[analyst]

    def price(self, event: Event, purpose: str, delta: float | None, analyst: str | None = None) -> Charge:
        """What the plan costs, as things stand; it may take a while, and nothing changes.

        Raises:
            AdjacencyMismatch: event and budget are stated under different relations.
            LedgerError: no such analyst, or none where analysts share the budget.
        """
        require_event(event)
        require_label("purpose", purpose)
        self._require_adjacency(event)
        self._require_analyst(analyst)
        spent, budget = self.purse(analyst)
        return self.terms.filter.charge(event, spent, budget, delta)

    def propose_grant(self, event: Event, charge: Charge, purpose: str, analyst: str | None = None) -> GrantEntry:
        """A grant that fits, at the charge that `price` gave; nothing changes yet.

        Raises:
            BudgetExceeded: it does not fit into the budget, or into the analyst's share of it.
        """
        self._require_analyst(analyst)
        self.terms.filter.admit(self.charges, charge, self.terms.budget)
        if analyst is not None:
            spent, share = self.purse(analyst)
            self.terms.filter.admit(spent, charge, share)
        return sealed(
            GrantEntry(
                index=len(self.entries), previous=self.head, hash="", event=event, charge=charge, purpose=purpose,
                analyst=analyst, version=self.terms.version,
            )
        )  # fmt: skip

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
                randomness=randomness, version=self.terms.version,
            )
        )  # fmt: skip

    def commit(self, entry: GrantEntry | DrawEntry) -> None:
        """Append an entry that follows the last one."""
        if (entry.index, entry.previous) != (len(self.entries), self.head):
            raise LedgerCorrupted(f"entry {entry.index} does not follow entry {len(self.entries) - 1}")
        if entry.version != self.terms.version:
            raise LedgerCorrupted(f"an entry of version {entry.version} in a ledger of version {self.terms.version}")
        match entry:
            case GrantEntry():
                self._require_adjacency(entry.event)
                self._require_analyst(entry.analyst)
                self.terms.filter.require_currency(entry.charge)
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
        self.entries.append(entry)

    def follow(self, lines: Iterable[str]) -> None:
        """Take in lines that others wrote after the last entry; prices are taken as written.

        Raises:
            LedgerCorrupted: names the first entry that is not canonical, not chained, or not allowed where it stands.
        """
        known: dict[str, Event] = {}
        charged = len(self.charges)
        for line in lines:
            try:
                entry = decode(line, known)
                if isinstance(entry, OpenEntry):
                    raise LedgerCorrupted("a second opening")
                self.commit(entry)
            except _BROKEN as error:
                raise LedgerCorrupted(f"entry {len(self.entries)}: {error}") from error
        if len(self.charges) > charged:
            for analyst in (None, *self._by):
                spent, budget = self.purse(analyst)
                try:
                    if spent:
                        self.terms.filter.admit(spent[:-1], spent[-1], budget)
                except BudgetExceeded as error:
                    whose = "the budget" if analyst is None else f"the share of {analyst!r}"
                    raise LedgerCorrupted(f"the grants exceed {whose}: {error}") from error

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
    parts = () if analysts is None else shares(analysts)
    for _, share in parts:
        filter_.check(limit(budget, share))
    return sealed(
        OpenEntry(
            index=0, previous=GENESIS, hash="", budget=budget, unit=unit, filter=filter_, dataset=dataset,
            analysts=parts, version=2 if parts else 1,
        )
    )  # fmt: skip


def replay(lines: Iterable[str]) -> State:
    """The state that lines of a ledger file lead to.

    Raises:
        LedgerCorrupted: names the first entry that is not canonical, not chained, or not allowed where it stands;
            prices are taken as written.
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
