"""The record of one fit, and how far a second one follows it; see `ledgerwood.verification.replaying.replaying`."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import Event, FilteredEvent, GaussianEvent, GDPEvent, Parallel, PoissonSampled
from ledgerwood.accounting.ledger import Grant, Receipt
from ledgerwood.errors import PrivacyError, ReplayFailed
from ledgerwood.pages.shown import Told
from ledgerwood.verification.replaying.comparison import difference
from ledgerwood.verification.replaying.moves import Move
from ledgerwood.verification.sensitivity.domains import Neighbour

Kind = Literal[
    "words", "grant", "draw", "open", "open_groups", "group", "open_allocation", "step", "sample", "assign",
    "allocate", "allocated", "release", "select", "search",
]  # fmt: skip

Handled = Literal["noise", "evidence", "choice"]
"""Points inside of a release, which its own handlers listen at."""

_ROUNDING = 2.0**-30
"""Relative: a filter's limit and the prices of rounds are rounded, up, by less."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call:
    """One call of a fit, as far as it is public.

    Args:
        number: from 1, in order.
        kind: "words" are random words that were drawn outside of samples and noise: for structures, say.
        purpose: as the fit named it; empty where it did not.
        fields: by name, what must be the same in both fits.
        share: of a release or selection, how much of what was paid for it the exact value moved by; else None.
    """

    number: int
    kind: Kind
    purpose: str
    fields: dict[str, object]
    share: float | None = None

    def __str__(self) -> str:
        return f"call {self.number}, {self.kind}" + (f" {self.purpose!r}" if self.purpose else "")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """What was not as stated.

    Args:
        where: the call, or the model.
        stated: by the first fit, or by the release.
        found: in the second fit.
    """

    where: str
    stated: str
    found: str

    def __str__(self) -> str:
        return f"{self.where}: stated {self.stated}; found {self.found}"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replay(Told):
    """The result of a replay; for the data owner only, since violations depend on rows.

    Args:
        calls: of the first fit, in order.
        violations: none, if the replay found nothing.
    """

    calls: tuple[Call, ...]
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        """True if nothing was found."""
        return not self.violations

    @property
    def largest_share(self) -> float:
        """The largest change of an exact value, as a share of what was paid for: 0 if nothing changed."""
        return max((call.share for call in self.calls if call.share is not None), default=0.0)

    def __str__(self) -> str:
        if self.ok:
            return f"{len(self.calls)} calls, nothing found; largest share {self.largest_share:.3g}"
        return "\n".join(map(str, self.violations))


class Stop(BaseException):
    """Ends a fit that cannot go on: no handler of a trainer's may take it for its own error."""


@final
@dataclass(slots=True, kw_only=True)
class ReplayStep:
    """A call, and what is private of it."""

    call: Call
    evidence: Any = None
    output: Any = None
    value: Any = None


@final
@dataclass(slots=True, kw_only=True, eq=False)
class SeenAllocation:
    """An allocation of a fit: what the table made, and in how many steps each row was.

    Args:
        call: by which it was made.
        made: by the table, of the first fit; None in the second one, whose rows are those of the first.
        selected, steps: as it was asked for.
        done: steps whose rows were asked for.
        counts: of each row of the first fit, its steps so far; None before the first.
    """

    call: Call
    made: Any
    selected: int
    steps: int
    done: int = 0
    counts: NDArray[np.int64] | None = None

    def fault(self, step: int, mask: NDArray[np.bool_]) -> tuple[str, str] | None:
        """Add a step's rows; returns what was stated and found, where a row is in too many steps, or too few."""
        if step != self.done:
            return f"step {self.done} of the allocation", f"step {step}"
        self.done += 1
        self.counts = np.zeros(len(mask), dtype=np.int64) if self.counts is None else self.counts
        self.counts += mask
        most, least = int(self.counts.max(initial=0)), int(self.counts.min(initial=self.selected))
        stated = f"each row in {self.selected} of {self.steps} steps"
        if most > self.selected:
            return stated, f"a row in {most} of the first {self.done}"
        if least + self.steps - self.done < self.selected:
            return stated, f"a row in {least} of the first {self.done}"
        return None


@final
class Session:
    """The record of a first fit, and how far a second one has followed it."""

    def __init__(self, neighbour: Neighbour[Any], *, sampled: bool, group: int) -> None:
        self.neighbour = neighbour
        self.sampled = sampled
        self.group = group
        self.replaying = False
        self.private = 0  # depth of calls whose words are samples or noise
        self.drawn = self.again = 0  # words of such a call, and those of them that were drawn before
        self.handlers: dict[Handled, Callable[..., Any] | None] = {}
        self._threads: set[int] = set()
        self._words: set[int] = set()
        self._paid: Counter[Event] = Counter()  # drawn, and not opened yet
        self._receipts: dict[tuple[int, str], tuple[object, str]] = {}  # with the grant, so that no other has its id
        # Of the sample, or the groups, drawn last: whether the changed row is in it, and in which group it is.
        self.in_sample: bool | None = None
        self.in_group: int | None = None
        self._steps: list[ReplayStep] = []
        self._rounds: dict[
            int, tuple[object, Counter[Event], bool]
        ] = {}  # with the round itself, so that no other has its id
        self._groups: dict[int, tuple[object, Parallel, int]] = {}
        self._place = 0
        self._shares: dict[int, float] = {}
        self._violations: list[Violation] = []
        self._lost: dict[int, tuple[FilteredEvent, list[Fraction]]] = {}
        self._error: PrivacyError | None = None
        self._stopped = False
        self._ended = False

    @property
    def changed_place(self) -> int | None:
        """Of the row in which the data differ, in those that are being fitted; None where they do not have it."""
        return self.neighbour.new if self.replaying else self.neighbour.gone

    def before_draw(self) -> None:
        """No sample and no groups have been drawn yet."""
        self.in_sample = self.in_group = None

    def joins(self, opened: object, event: Event, *, held: bool) -> None:
        """Keep what a round may release, and whether the changed row is one of those that it asks."""
        inner = event.event if isinstance(event, PoissonSampled) else event
        left: Counter[Event] = Counter()
        for part, count in inner.draws():  # equal members of a composition come one by one
            left[part] += count
        self._rounds[id(opened)] = opened, left, held

    def joins_group(self, groups: object, event: Parallel, group: int) -> None:
        """Keep which of the groups the changed row is in; the number of groups for none."""
        self._groups[id(groups)] = groups, event, group

    def opens_group(self, groups: object, group: int, opened: object) -> None:
        """Keep what the round of a group may release, the first time that it is asked for."""
        _, event, changed = self._groups[id(groups)]
        if id(opened) not in self._rounds:
            self.joins(opened, event.events[group], held=group == changed)

    def releases(self, opened: object, event: Event, step: ReplayStep) -> bool:
        """Hold a release against what the round's draw has left, by this session's own account.

        Returns:
            Whether the changed row is one of those that the round asks, by the samples that this session has handed
            out, whatever the round does with them.
        """
        if id(opened) not in self._rounds:
            self.fail(ReplayFailed("a round that was opened by no sample and no groups: its rows are not known"))
        _, left, held = self._rounds[id(opened)]
        for part, count in event.draws():
            if left[part] < count and self.replaying:
                self.violated(str(step.call), f"{left[part]} x {part!r} left of the draw", f"{count} x")
            left[part] -= count
        return held

    def pays(self, step: ReplayStep, event: Event, purse: object, receipt: Receipt) -> None:
        """Keep what was drawn. Each draw of a grant has its own entry; those of a search's run have none."""
        self._paid[event] += 1
        if not isinstance(purse, Grant):
            return
        key = id(purse), receipt.hash
        if key in self._receipts:
            found = f"that of {self._receipts[key][1]!r}"
            self.violated(str(step.call), "its own entry on the ledger", found)
        else:
            self._receipts[key] = purse, step.call.purpose

    def require_paid(self, step: ReplayStep, events: Iterable[Event]) -> None:
        """Hold what was opened to what was drawn for it."""
        missing = Counter(events) - self._paid
        if missing:
            shown = ", ".join(f"{count} x {event!r}" for event, count in missing.items())
            self.violated(str(step.call), "a draw of the ledger", f"none of {shown}")
        self._paid.clear()

    def require_mechanism(self, step: ReplayStep, asked: object, used: object) -> None:
        """Hold what draws to what was asked for: another scale is another price."""
        if self.replaying and used != asked:
            self.violated(str(step.call), f"{asked!r}, as it was asked for", repr(used))

    def draws(self, words: list[int]) -> None:
        """Keep the words of a sample or of noise: two of a fit are equal by chance once in 2**64."""
        known = len(self._words)
        self._words.update(words)
        self.drawn += len(words)
        self.again += len(words) - (len(self._words) - known)

    def require_words(self, step: ReplayStep, least: int) -> None:
        """Hold a sample or noise to fresh random words."""
        if self.drawn < least:
            self.violated(str(step.call), f"at least {least} random words", str(self.drawn))
        if self.again:
            self.violated(str(step.call), "fresh random words", f"{self.again} that were drawn before")

    def run(self, fit: Callable[[Any], object], data: Any) -> object:
        """One fit; None where it was stopped."""
        model = None
        self._ended = False
        self._paid.clear()
        try:
            model = fit(data)
            self._ended = True
        except Stop:
            pass
        except Exception as error:
            if self._error is None and (not self.replaying or not self._place):
                raise  # of the data's check, or of the fit itself
            self.violated(self._where(), "a fit that ends", f"{type(error).__name__}: {error}")
        if self._error is not None:
            raise self._error
        return model

    def outcome(self, first: object, second: object) -> Replay:
        """What both fits show together."""
        if self._ended and not self._stopped:
            if self._place < len(self._steps):
                missing = self._steps[self._place].call
                self.violated(str(missing), "this call", "the end of the fit")
            elif (found := difference(first, second, "model")) is not None:
                self.violated(found[0], found[1], found[2])
        for index, (event, norms) in self._lost.items():
            self._check_limit(index, event, norms)
        calls = tuple(
            Call(
                number=step.call.number, kind=step.call.kind, purpose=step.call.purpose, fields=step.call.fields,
                share=self._shares.get(step.call.number),
            )
            for step in self._steps
        )  # fmt: skip
        return Replay(calls=calls, violations=tuple(self._violations))

    def step(self, kind: Kind, purpose: str, fields: dict[str, object]) -> ReplayStep:
        """The next call: a new one, or the recorded one, which must be the same.

        Raises:
            Stop: it is not, or cannot be compared; the violation or the error is kept.
        """
        if self._stopped:  # a fit that went on all the same
            raise Stop
        self._threads.add(threading.get_ident())
        if not self.replaying:
            call = Call(number=len(self._steps) + 1, kind=kind, purpose=purpose, fields=fields)
            self._steps.append(ReplayStep(call=call))
            return self._steps[-1]
        if self._place == len(self._steps):
            self.violated(f"after call {len(self._steps)}", "the end of the fit", f"{kind} {purpose!r}")
            self.stop()
        step = self._steps[self._place]
        call = step.call
        if (call.kind, call.purpose) != (kind, purpose):
            if len(self._threads) > 1:
                self.fail(
                    ReplayFailed(
                        f"{call} came as {kind} {purpose!r} in the second fit, and {len(self._threads)} threads fit: "
                        "their calls have no order to compare; fit in one thread"
                    )
                )
            self.violated(str(call), "this call", f"{kind} {purpose!r}")
            self.stop()
        try:
            for name, value in fields.items():
                found = difference(call.fields[name], value, name)
                if found is not None:
                    self.violated(f"{call}: {found[0]}", found[1], found[2])
                    self.stop()
        except ReplayFailed as error:
            self.fail(error)
        self._place += 1
        return step

    def moved(self, step: ReplayStep, move: Move) -> None:
        """Keep how far the call's exact value moved."""
        self._shares[step.call.number] = move.share
        for stated, found in move.faults:
            self.violated(str(step.call), stated, found)

    def lost(self, draw: int, event: FilteredEvent, norm: Fraction) -> None:
        """Keep what the changed row has lost by one filtered release: the norm of its shift in units of the noise."""
        self._lost.setdefault(draw, (event, []))[1].append(norm)

    def require(self, adjacency: Adjacency) -> None:
        """Stop where the data are no neighbours under the fit's adjacency."""
        try:
            self.neighbour.require(adjacency)
        except PrivacyError as error:
            self.fail(error)

    def violated(self, where: str, stated: str, found: str) -> None:
        """Keep a violation."""
        self._violations.append(Violation(where=where, stated=stated, found=found))

    def fail(self, error: PrivacyError) -> NoReturn:
        """Give the replay up.

        Raises:
            Stop: always.
        """
        self._error = error
        self.stop()

    def stop(self) -> NoReturn:
        """End this fit.

        Raises:
            Stop: always.
        """
        self._stopped = True
        raise Stop

    def _where(self) -> str:
        return str(self._steps[self._place - 1].call)

    def _check_limit(self, draw: int, event: FilteredEvent, norms: list[Fraction]) -> None:
        """What the changed row has lost in all filtered releases of one draw, by their events alone."""
        if isinstance(event.limit, GDPEvent):
            total, most, unit = float(sum(norm**2 for norm in norms)), event.limit.mu() ** 2, "mu**2"
        else:
            total, most, unit = 0.0, event.limit.divergences[0], f"nats at order {event.limit.orders[0]!r}"
            costs = {}
            for norm in norms:
                if norm and norm not in costs:
                    release = GaussianEvent(noise_multiplier=float(1 / norm), adjacency=event.adjacency)
                    rate = event.sampling_rate
                    once = release if rate == 1.0 else PoissonSampled(release, sampling_rate=rate)
                    costs[norm] = float(once.renyi([event.limit.orders[0]])[0])
                total += costs[norm] if norm else 0.0
        if total > most * (1.0 + _ROUNDING):
            self.violated(f"the filtered rounds of draw {draw}", f"at most {most!r} {unit} a row", repr(total))
