"""The ledger as a state machine without input or output: its valid transitions and its totals."""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal, final, get_args

from ledgerwood import _validate
from ledgerwood._directed import float_down
from ledgerwood.accounting.adjacency import Budget, PrivacyUnit
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.filters import Charge, Charges, Filter, Remaining, nothing_of, sums_of
from ledgerwood.accounting.ledger.entries import (
    GENESIS,
    ON_TRUST,
    CheckpointEntry,
    DrawEntry,
    GrantEntry,
    HeldGrant,
    LedgerAbout,
    MigrationEntry,
    OpenEntry,
    Randomness,
    SpentSums,
    Version,
    decode,
    exact_share,
    require_label,
    require_randomness,
    sealed,
    shares,
)
from ledgerwood.accounting.ledger.kept import KeptEntries
from ledgerwood.errors import AdjacencyMismatch, BudgetExceeded, DrawRefused, LedgerCorrupted, LedgerError, PrivacyError

_FILTERS = "BasicFilter, ZCDPFilter, GDPFilter, RenyiFilter or AdvancedCompositionFilter"
_MOST_KNOWN = 1024  # events that are kept by their text while lines are read
_BROKEN = (PrivacyError, ValueError, KeyError, TypeError, RecursionError)  # what a line that is no entry may raise


@final
class State:
    """Entries and what follows from them. Propose an entry, make it durable elsewhere, then commit it.

    Args:
        terms: the first entry.
        compact: keep older entries compressed, so that a long ledger needs little memory, but is read more slowly.
    """

    __slots__ = (
        "_by", "_limits", "_open", "analysts", "charges", "checkpoints", "draws", "entries", "randomness", "terms",
        "version",
    )  # fmt: skip

    def __init__(self, terms: OpenEntry, *, compact: bool = False) -> None:
        self.terms = terms
        self.entries = KeptEntries(terms, compact=compact)
        self.charges = Charges()
        self.draws = self.checkpoints = 0
        self.randomness: Randomness = "secure"
        self.version: Version = terms.version
        self._open: dict[int, _OpenGrant] = {}  # grants that hold anything still; of those drawn to the end, nothing
        self._share(terms.analysts, terms.version)

    @classmethod
    def at_checkpoint(cls, entry: CheckpointEntry, *, compact: bool = False) -> "State":
        """The state that a checkpoint states; the entries before it are not there, and trusted to who wrote it.

        Raises:
            LedgerCorrupted: it contradicts itself, or states more than its budget.
        """
        state = cls(entry.opening, compact=compact)
        state.entries = KeptEntries(entry, compact=compact)
        state._share(entry.analysts, entry.version)
        state.draws, state.checkpoints, state.randomness = entry.draws, entry.checkpoints + 1, entry.randomness
        if tuple(label for label, _ in entry.by_analyst) != tuple(state._by):
            raise LedgerCorrupted("the checkpoint states sums of other analysts than those who share the budget")
        if entry.opening.analysts not in ((), entry.analysts):
            raise LedgerCorrupted("the checkpoint states other analysts than the opening that it states")
        migrations = 0 if entry.analysts == entry.opening.analysts else 1
        counted = 1 + entry.spent.grants + entry.draws + entry.checkpoints + migrations
        if entry.index != counted:
            raise LedgerCorrupted(f"the checkpoint states {counted} entries before it, and there were {entry.index}")
        state.charges = charged(entry.spent, state.terms.filter)
        state._require_within(state.charges, state.terms.budget)
        for label, spent in entry.by_analyst:
            state._by[label] = charged(spent, state.terms.filter)
            state._require_within(state._by[label], state._limits[label])
        held_by = {label: Charges() for label in state._by}
        held_sums = Charges()
        for held in entry.held:
            state._hold(held, entry)
            held_sums.append(held.grant.charge)
            if held.grant.analyst is not None:
                held_by[held.grant.analyst].append(held.grant.charge)
        state._require_part([held_sums], state.charges)
        taken = sum(_planned(held.entry.event).total() - held.left.total() for held in state._open.values())
        if taken > entry.draws:
            raise LedgerCorrupted("the checkpoint states fewer draws than were made from the grants that it holds")
        state._require_part(list(state._by.values()), state.charges)
        for label, own in held_by.items():
            state._require_part([own], state._by[label])
        return state

    @property
    def head(self) -> str:
        return self.entries.last.hash

    @property
    def count(self) -> int:
        """How many entries there are; the index of the next one."""
        return self.entries.last.index + 1

    def left(self, grant: int) -> Counter[Event]:
        """The events that may still be drawn from the grant at this index; none where it is drawn to the end."""
        held = self._open.get(grant)
        return Counter() if held is None else held.left

    def grant_at(self, index: int) -> GrantEntry | None:
        """The grant at this index; None where there is none."""
        held = self._open.get(index)
        entry = self.entries.at(index) if held is None else held.entry
        return entry if isinstance(entry, GrantEntry) else None

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
            charges = spent.copy()
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
                index=self.count, previous=self.head, hash="", event=event, charge=charge, purpose=purpose,
                analyst=analyst, version=self.version,
            )
        )  # fmt: skip

    def propose_migration(self, analysts: Mapping[str, float]) -> MigrationEntry:
        """Propose that analysts share the budget, which raises version 1 to 2; nothing changes yet.

        Raises:
            LedgerError: analysts share it already.
            InvalidParameter: no shares, or not of this budget.
        """
        self._require_unshared()
        parts = _fitting_shares(self.terms.budget, self.terms.filter, analysts)
        version: Literal[2, 3, 4] = 2 if self.version == 1 else self.version
        return sealed(MigrationEntry(index=self.count, previous=self.head, hash="", analysts=parts, version=version))

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
                index=self.count, previous=self.head, hash="", grant=grant, event=event, purpose=purpose,
                randomness=randomness, version=self.version,
            )
        )  # fmt: skip

    def propose_checkpoint(self) -> CheckpointEntry:
        """What all entries so far amount to; nothing changes yet."""
        sums = functools.partial(_summed, self.terms.filter)
        return sealed(
            CheckpointEntry(
                index=self.count, previous=self.head, hash="", opening=self.terms, analysts=self.analysts,
                spent=sums(self.charges), by_analyst=tuple((label, sums(own)) for label, own in self._by.items()),
                draws=self.draws, checkpoints=self.checkpoints, randomness=self.randomness,
                held=tuple(held.stated() for _, held in sorted(self._open.items())),
            )
        )  # fmt: skip

    def commit(self, entry: GrantEntry | DrawEntry | MigrationEntry | CheckpointEntry) -> None:
        """Append an entry that follows the last one."""
        if (entry.index, entry.previous) != (self.count, self.head):
            raise LedgerCorrupted(f"entry {entry.index} does not follow entry {self.count - 1}")
        if entry.version != self.version and not isinstance(entry, MigrationEntry | CheckpointEntry):
            raise LedgerCorrupted(f"an entry of version {entry.version} in a ledger of version {self.version}")
        match entry:
            case GrantEntry():
                self._require_grantable(entry)
                self._open[entry.index] = _OpenGrant(entry)
                self.charges.append(entry.charge)
                if entry.analyst is not None:
                    self._by[entry.analyst].append(entry.charge)
            case DrawEntry():
                self._require_left(entry.grant, entry.event)
                self._take(entry.grant, entry.event)
                self.draws += 1
                if entry.randomness == "test":
                    self.randomness = "test"
            case MigrationEntry():
                self._require_unshared()
                if entry.version != max(self.version, 2):
                    raise LedgerCorrupted(f"a migration to version {entry.version} in a ledger of {self.version}")
                self._share(entry.analysts, entry.version)
            case CheckpointEntry():
                if entry != self.propose_checkpoint():
                    raise LedgerCorrupted("the checkpoint does not state what the entries before it amount to")
                self.checkpoints += 1
                self.version = entry.version
        self.entries.append(entry)

    def follow(self, lines: Iterable[str]) -> None:
        """Take in lines that others wrote after the last entry; charges are taken as written.

        Raises:
            LedgerCorrupted: names the first entry that is not canonical, not chained, or not allowed where it stands.
        """
        known: dict[str, Event] = {}
        for line in lines:
            if len(known) > _MOST_KNOWN:
                known.clear()
            try:
                entry = decode(line, known)
                if isinstance(entry, OpenEntry):
                    raise LedgerCorrupted("a second opening")
                if isinstance(entry, GrantEntry):
                    self._require_grantable(entry)
                    self._admit(entry.charge, entry.analyst)
                self.commit(entry)
            except BudgetExceeded as error:
                raise LedgerCorrupted(f"entry {self.count}: the grants exceed the budget: {error}") from error
            except _BROKEN as error:
                raise LedgerCorrupted(f"entry {self.count}: {error}") from error

    def _hold(self, held: HeldGrant, checkpoint: CheckpointEntry) -> None:
        """Take in a grant that a checkpoint says holds something still."""
        entry = held.grant
        self._require_adjacency(entry.event)
        if entry.analyst is not None:
            self.purse(entry.analyst)
        self.terms.filter.require_currency(entry.charge)
        own = _OpenGrant(entry)
        left = Counter(dict(held.left))
        if not max(self._open, default=0) < entry.index < checkpoint.index:
            raise LedgerCorrupted(f"the checkpoint holds grant {entry.index} at the wrong place")
        if len(left) < len(held.left) or not left or not left <= own.left:
            raise LedgerCorrupted(f"the checkpoint holds events that grant {entry.index} did not have")
        own.left, own.number = left, left.total()
        self._open[entry.index] = own

    def _require_part(self, parts: list[Charges], whole: Charges) -> None:
        """What a checkpoint says of some grants is part of what it says of all."""
        more = any(
            sum(part.total(amount, power) for part in parts) > whole.total(amount, power)
            for _, amount, power in sums_of(self.terms.filter)
        )
        if more or sum(map(len, parts)) > len(whole):
            raise LedgerCorrupted("open grants, or the analysts, were charged more than the checkpoint states in all")

    def _require_within(self, charges: Charges, budget: Budget) -> None:
        try:
            self.terms.filter.admit(charges, nothing_of(self.terms.filter), budget)
        except BudgetExceeded as error:
            raise LedgerCorrupted(f"the checkpoint states more than its budget: {error}") from error

    def _take(self, grant: int, event: Event) -> None:
        """Take an event out of a grant that holds it."""
        held = self._open[grant]
        held.left[event] -= 1
        held.number -= 1
        if not held.number:
            del self._open[grant]

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

    def _require_unshared(self) -> None:
        if self._by:
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
        held = self._open.get(grant)
        if held is not None and held.left[event] > 0:
            return
        entry = self.grant_at(grant)
        if entry is None:
            raise DrawRefused(f"entry {grant} is not a grant of this ledger")
        planned = _planned(entry.event)
        if event not in planned:
            raise DrawRefused(f"grant {grant} does not hold {event!r}; it holds {_kinds(planned)}")
        if held is None or held.left[event] <= 0:
            raise DrawRefused(
                f"grant {grant} has no {event!r} left: each planned event is drawn at most as often as planned"
            )


@final
class _OpenGrant:
    """A grant that holds events still: its entry, what is left, and how many that is."""

    __slots__ = ("entry", "left", "number")

    def __init__(self, entry: GrantEntry) -> None:
        self.entry, self.left = entry, _planned(entry.event)
        self.number = self.left.total()

    def stated(self) -> HeldGrant:
        """The same as a checkpoint states it."""
        return HeldGrant(
            grant=self.entry, left=tuple((event, self.left[event]) for event in _planned(self.entry.event)
                                         if self.left[event] > 0),
        )  # fmt: skip


def _summed(filter_: Filter, charges: Charges) -> SpentSums:
    sums = tuple((name, charges.total(amount, power)) for name, amount, power in sums_of(filter_))
    return SpentSums(grants=len(charges), sums=sums)


def charged(spent: SpentSums, filter_: Filter) -> Charges:
    """The charges that a checkpoint states, as their sums.

    Raises:
        LedgerCorrupted: an amount without a grant.
    """
    exact = dict(spent.sums)
    if not spent.grants and any(exact.values()):
        raise LedgerCorrupted("the checkpoint states an amount without a grant")
    return Charges(spent.grants, {(amount, power): exact[name] for name, amount, power in sums_of(filter_)})


def _planned(plan: Event) -> Counter[Event]:
    held: Counter[Event] = Counter()
    for part, count in plan.draws():
        held[part] += count
    return held


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
    about: LedgerAbout | None = None,
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
            analysts=parts, about=about, version=3 if about is not None else 2 if parts else 1,
        )
    )  # fmt: skip


def _fitting_shares(budget: Budget, filter_: Filter, analysts: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Shares that the filter can hold grants against, in the order of their labels."""
    parts = shares(analysts)
    for _, share in parts:
        filter_.check(limit(budget, share))
    return parts


def replay(lines: Iterable[str], *, compact: bool = False, from_checkpoint: bool = False) -> State:
    """The state that lines of a ledger file lead to.

    Args:
        lines: of all entries.
        compact: as in `State`.
        from_checkpoint: the lines may begin with a checkpoint, whose word is taken for the entries before it.

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
        if isinstance(entry, CheckpointEntry):
            if not from_checkpoint:
                raise LedgerCorrupted(
                    f"the ledger begins with a checkpoint, and the {entry.index} entries before it are not there; "
                    f"{ON_TRUST}"
                )
            state = State.at_checkpoint(entry, compact=compact)
        elif isinstance(entry, OpenEntry) and (entry.index, entry.previous) == (0, GENESIS):
            state = State(entry, compact=compact)
        else:
            raise LedgerCorrupted("the first entry does not open a ledger")
    except _BROKEN as error:
        raise LedgerCorrupted(f"entry 0: {error}") from error
    state.follow(rest)
    return state


def _kinds(held: Counter[Event]) -> str:
    listed = [f"{count} x {event!r}" for event, count in list(held.items())[:3]]
    return "; ".join(listed) + ("; ..." if len(held) > len(listed) else "")
