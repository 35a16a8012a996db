"""What pages say of a ledger: texts, shares and tables, from what was read and what was verified."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ledgerwood.accounting import Budget, risk
from ledgerwood.accounting.filters import Charges
from ledgerwood.accounting.ledger import CheckpointEntry, DrawEntry, GrantEntry, MigrationEntry, OpenEntry
from ledgerwood.accounting.ledger.state import State, charged, limit
from ledgerwood.dashboard.books import BookReading, drawn, is_reproducible
from ledgerwood.dashboard.shelf import Look
from ledgerwood.pages.html import Tone
from ledgerwood.pages.values import least, plain
from ledgerwood.report.audits.pages import ledger_outcome
from ledgerwood.report.ledgers.words import (
    NEIGHBOURS,
    charge_in_words,
    filter_in_words,
    left_in_words,
    plan_in_words,
)
from ledgerwood.verification.ledgers.filters import GrantVerdict

PAGE = 50
"""Rows of a table on one page."""
_UNTIL = "This is said until the dashboard is started again."
_NEARLY = 0.9
"""Share of a budget from which on little is left."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is known of a ledger's correctness, in a colour, a few words and a sentence."""

    tone: Tone
    words: str
    sentence: str
    running: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UsedShare:
    """How much of a limit is used, from 0 to 1."""

    name: str
    used: float
    tone: Tone

    @property
    def percent(self) -> str:
        """The share, rounded up."""
        return f"{math.ceil(100.0 * self.used - 1e-9)} %"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBudget:
    """A budget, or an analyst's share of it.

    Args:
        name: of the analyst; "all" for the whole budget.
        shares: the used share of epsilon; and of delta, where deltas add up on their own.
        spent, budget, left: in words; left is "" where more may have been spent than is known.
    """

    name: str
    shares: tuple[UsedShare, ...]
    spent: str
    budget: str
    left: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCard:
    """A ledger in the list of all.

    Args:
        part: which entries the figures are of, where more may have been spent than these say; "" otherwise.
    """

    id: str
    title: str
    place: str
    outcome: Outcome
    entries: int
    grants: int
    terms: tuple[tuple[str, str], ...]
    purses: tuple[ShownBudget, ...]
    meaning: str
    part: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    """A grant in a ledger's table."""

    entry: int
    analyst: str
    purpose: str
    plan: str
    charge: str
    method: str
    drawn: str
    verdict: str
    tone: Tone
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawRow:
    """A draw in a grant's table."""

    entry: int
    purpose: str
    event: str
    randomness: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Paging:
    """A page of a table.

    Args:
        page: which one, from 1.
        pages: how many there are, at least 1.
        total: rows on all pages.
    """

    page: int
    pages: int
    total: int

    @property
    def start(self) -> int:
        """Place of the first row of this page."""
        return (self.page - 1) * PAGE


def paging(total: int, page: int) -> Paging:
    """The page that is nearest to the wanted one."""
    pages = max(1, -(-total // PAGE))
    return Paging(page=min(max(page, 1), pages), pages=pages, total=total)


_KEPT_CARDS = 512
_CARDS: dict[str, LedgerCard] = {}
"""Cards by the stamps of what they show."""


def card(look: Look) -> LedgerCard:
    """A ledger in the list of all; made once for what it shows."""
    found = _CARDS.get(look.stamp)
    if found is None:
        found = _card(look)
        if len(_CARDS) >= _KEPT_CARDS:
            _CARDS.clear()
        if look.reading is look.book.reading:  # else something was appended meanwhile, and the state has it
            _CARDS[look.stamp] = found
    return found


def _card(look: Look) -> LedgerCard:
    with look.book.lock:
        state = look.reading.state
        return LedgerCard(
            id=look.book.id,
            title=title(look),
            place=look.book.source.place_of(look.book.key),
            outcome=outcome(look),
            entries=look.reading.entries,
            grants=0 if state is None else len(state.charges),
            terms=() if state is None else terms(state.terms),
            purses=() if state is None else purses(state, partial=look.reading.partial),
            meaning="" if state is None else meaning(state),
            part=part(look.reading),
        )


def part(reading: BookReading) -> str:
    """Which entries the figures are of, where more may have been spent than these say; "" otherwise."""
    first = "entry" if reading.entries == 1 else f"{reading.entries:,} entries"
    return f"of the first {first}, at least" if reading.partial else ""


def title(look: Look) -> str:
    """The data set's label, or the ledger's place."""
    state = look.reading.state
    return (None if state is None else state.terms.dataset) or look.book.source.place_of(look.book.key)


def terms(opened: OpenEntry) -> tuple[tuple[str, str], ...]:
    """What a ledger protects and how it adds up, by name."""
    adjacency, said = opened.budget.adjacency, opened.about
    of_whom = () if said is None else (("owner", said.owner), ("opened", said.opened), ("purpose", said.description))
    return (
        *((name, text) for name, text in of_whom if text is not None),
        ("one protected unit", opened.unit.value),
        ("neighbouring data", f"{adjacency.value}: {NEIGHBOURS[adjacency]}"),
        ("filter", filter_in_words(opened.filter)),
    )


def meaning(state: State) -> str:
    """What the total of the grants leaves to an attacker, in words."""
    terms_ = state.terms
    spent = terms_.filter.spent(state.charges, terms_.budget)
    return risk.total_in_words(
        spent.epsilon, spent.delta, adjacency=terms_.budget.adjacency, unit=terms_.unit,
        grants=len(state.charges), reproducible=is_reproducible(state),
    )  # fmt: skip


def purses(state: State, *, partial: bool = False) -> tuple[ShownBudget, ...]:
    """The whole budget, and then each analyst's share; if the entries are `partial`, nothing is said to be left."""
    whole = state.terms.budget
    found = [_purse("all", state, None, whole, partial=partial)]
    found += [_purse(label, state, label, limit(whole, share), partial=partial) for label, share in state.analysts]
    return tuple(found)


def _purse(name: str, state: State, analyst: str | None, budget: Budget, *, partial: bool) -> ShownBudget:
    filter_ = state.terms.filter
    charges, _ = state.purse(analyst)
    spent = filter_.spent(charges, budget)
    shares = [_used("epsilon", spent.epsilon, budget.epsilon)]
    if budget.delta > 0.0 and filter_.name in ("basic", "whitehouse"):
        shares.append(_used("delta", spent.delta, budget.delta))
    return ShownBudget(
        name=name,
        shares=tuple(shares),
        spent=f"epsilon {plain(spent.epsilon)}, delta {plain(spent.delta)}",
        budget=f"epsilon {plain(budget.epsilon)}, delta {plain(budget.delta)}",
        left="" if partial else left_in_words(state.remaining(analyst), filter_),
    )


def _used(name: str, spent: float, whole: float) -> UsedShare:
    used = min(spent / whole, 1.0)
    return UsedShare(name=name, used=used, tone="bad" if used >= 1.0 else "open" if used >= _NEARLY else "good")


def outcome(look: Look) -> Outcome:
    """The worst of what reading and verification found."""
    reading, found, running = look.reading, look.verification, look.running
    if reading.failure is not None:
        where = ""
        if reading.entry:
            where = f" What is before it holds and is shown ({counted(reading.entry - reading.trusted)})."
        if reading.trusted:
            where += f" The {counted(reading.trusted)} before the checkpoint at its start are taken on trust."
        words = "Cannot be read" if reading.entry is None else f"Fails from entry {reading.entry:,} on"
        return Outcome(tone="bad", words=words, sentence=f"{reading.failure}.{where}", running=running)
    if reading.replaced is not None:
        other = (
            f"It had {counted(reading.replaced)} when the dashboard looked before, and others were in their place "
            f"later; now it has {reading.entries:,}. What was spent before is spent. {_UNTIL}"
        )
        return Outcome(tone="bad", words="History was replaced", sentence=other, running=running)
    if reading.shrunk is not None:
        lost = (
            f"It had {counted(reading.shrunk)} when the dashboard looked before, and fewer later: entries were lost, "
            f"or an older copy was restored; now it has {reading.entries:,}. What was spent since is spent. {_UNTIL}"
        )
        return Outcome(tone="bad", words="Entries are missing", sentence=lost, running=running)
    if reading.state is None:
        return Outcome(tone="open", words="It is being read", sentence="Load the page again in a moment.", running=True)
    if found is None:
        sentence = "A second implementation recomputes it." if running else "It is the next one."
        return Outcome(tone="open", words="Verification running", sentence=sentence, running=True)
    if found.report is None:
        return Outcome(tone="bad", words="Refuted", sentence=f"{found.failure}.", running=running)
    tone, words, sentence = ledger_outcome(found.report)
    fresh = reading.entries - found.end
    if tone != "bad" and found.report.verdict == "trusted":
        words = f"Trusted before entry {reading.trusted:,}, a checkpoint"
        sentence = f"{found.report.trust}. Each charge that is still there covers its plan's cost."
        if fresh > 0:
            sentence = f"Newer entries are not verified yet ({counted(fresh)}). {sentence}"
    if tone == "good" and fresh > 0:
        words = f"Confirmed up to entry {found.end - 1:,}"
        sentence = f"Newer entries are not verified yet ({counted(fresh)}). {sentence}"
        tone = "open"
    if tone != "bad" and is_reproducible(reading.state):
        tone, words = "bad", "The noise protects no one"
        sentence = "A draw used reproducible (test) randomness: the ledger guarantees no privacy."
    if reading.unfinished:
        sentence += " The last line of the file is not complete: it is being written, or its writing was interrupted."
        tone, words = ("open", "The last line is not complete") if tone == "good" else (tone, words)
    return Outcome(tone=tone, words=words, sentence=sentence, running=running)


def counted(entries: int) -> str:
    """A number of entries."""
    return "1 entry" if entries == 1 else f"{entries:,} entries"


def grant_rows(look: Look, place: Paging, grants: Sequence[GrantEntry]) -> tuple[GrantRow, ...]:
    """One page of a ledger's grants, the latest first."""
    state = look.reading.state
    if state is None:
        return ()
    found = look.verification
    verdicts = {} if found is None or found.report is None else {each.entry: each for each in found.report.verdicts}
    shown = list(reversed(grants))[place.start : place.start + PAGE]
    return tuple(_grant_row(state, entry, verdicts.get(entry.index)) for entry in shown)


def grants_of(state: State) -> list[GrantEntry]:
    """All grants in their order; of those before a checkpoint at the start the ones that it holds."""
    first = state.entries.first
    held = [each.grant for each in first.held] if isinstance(first, CheckpointEntry) else []
    return held + [entry for entry in state.entries if isinstance(entry, GrantEntry)]


def grant_at(state: State, index: int) -> GrantEntry | None:
    """The grant at this index; None where there is none."""
    first = state.entries.first
    if isinstance(first, CheckpointEntry) and index < first.index:  # the state forgets those that are drawn to the end
        return next((each.grant for each in first.held if each.grant.index == index), None)
    return state.grant_at(index)


def draw_rows(state: State, grant: GrantEntry, page: int) -> tuple[Paging, tuple[DrawRow, ...]]:
    """One page of a grant's draws, the latest first."""
    own = [entry for entry in state.entries if isinstance(entry, DrawEntry) and entry.grant == grant.index]
    place = paging(len(own), page)
    shown = list(reversed(own))[place.start : place.start + PAGE]
    return place, tuple(
        DrawRow(
            entry=entry.index,
            purpose=entry.purpose,
            event=plan_in_words(entry.event),
            randomness="secure" if entry.randomness == "secure" else "reproducible: protects no one",
        )
        for entry in shown
    )


def _grant_row(state: State, grant: GrantEntry, verdict: GrantVerdict | None) -> GrantRow:
    done, planned = drawn(state, grant)
    tone: Tone = "open"
    words, reason = "not verified yet", ""
    if verdict is not None:
        tone = {"confirmed": "good", "unconfirmed": "open", "refuted": "bad"}[verdict.verdict]  # type: ignore[assignment]
        bounds = f"{verdict.currency} at least {least(verdict.lower)}, at most {plain(verdict.upper)}"
        words, reason = verdict.verdict, bounds if verdict.verdict == "confirmed" else f"{verdict.reason}; {bounds}"
    return GrantRow(
        entry=grant.index,
        analyst=grant.analyst or "-",
        purpose=grant.purpose,
        plan=plan_in_words(grant.event),
        charge=charge_in_words(grant.charge),
        method=grant.charge.method,
        drawn=f"{done:,} of {planned:,}",
        verdict=words,
        tone=tone,
        reason=reason,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The charged total directly after a grant, or at the checkpoint with which the ledger begins."""

    entry: int
    purpose: str
    epsilon: float


_KEPT_TOTALS = 20_000
_TOTALS: dict[str, float] = {}
"""Epsilon directly after a grant, by the hash of its entry, which covers all that is before it."""
_MOST_POINTS = 64


def totals(state: State) -> tuple[Total, ...]:
    """The charged total over the entries; of many grants each second, fourth, eighth ... one, and the last.

    Of a ledger that begins with a checkpoint, the total that this states comes first.
    """
    first = state.entries.first
    grants = [entry for entry in state.entries if isinstance(entry, GrantEntry)]
    stride = 1
    while len(grants) > _MOST_POINTS * stride:
        stride *= 2
    charges, found = Charges(), []
    if isinstance(first, CheckpointEntry):
        charges = charged(first.spent, state.terms.filter)
        epsilon = state.terms.filter.spent(charges, state.terms.budget).epsilon
        found.append(Total(entry=first.index, purpose="checkpoint: trusted, not recomputed", epsilon=epsilon))
    for place, grant in enumerate(grants, start=1):
        charges.append(grant.charge)
        if place % stride and place != len(grants):
            continue
        known = _TOTALS.get(grant.hash)
        if known is None:
            known = state.terms.filter.spent(charges, state.terms.budget).epsilon
            if len(_TOTALS) >= _KEPT_TOTALS:
                _TOTALS.clear()
            _TOTALS[grant.hash] = known
        found.append(Total(entry=grant.index, purpose=grant.purpose, epsilon=known))
    return tuple(found)


def migrated_at(state: State) -> int | None:
    """The entry from which on analysts share the budget, where that is not the first one."""
    return next((entry.index for entry in state.entries if isinstance(entry, MigrationEntry)), None)
