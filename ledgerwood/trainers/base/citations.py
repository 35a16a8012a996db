"""Which papers a plan and an estimator rest on, for `ledgerwood.cite`."""

import abc
from typing import Any, ClassVar

from ledgerwood.accounting.events import Event
from ledgerwood.accounting.ledger.entries import GrantEntry
from ledgerwood.accounting.pricing import Price, price
from ledgerwood.curator import Schema
from ledgerwood.errors import UnsupportedEvent
from ledgerwood.references import CitationNote, Cited, Reference


class CitedPlan(Cited):
    """A plan, which rests on the papers of its system and on those of all that it draws.

    `references` are the papers that the system is made from: () says that there is none, None that nobody said it.
    Papers on noise, sampling and accounting follow from the event.
    """

    __slots__ = ()

    references: ClassVar[tuple[Reference, ...] | None] = None

    @property
    @abc.abstractmethod
    def event(self) -> Event:
        """The whole sequence of events."""

    def cited_parts(self) -> tuple[object, ...]:
        """Mechanisms, and plans within this one, whose events do not say which they are."""
        return ()

    def cited(self) -> tuple[object, ...]:
        """The system's papers, its parts', and those of its event and of the method that prices it."""
        return (*named_references(type(self)), *self.cited_parts(), cost_of(self.event))


def named_references(kind: type[Any]) -> tuple[Reference | CitationNote, ...]:
    """The papers that a plan's class names, or a note that it names none."""
    found = kind.references if issubclass(kind, CitedPlan) else None
    if found is None:
        return (CitationNote(f"{kind.__name__} names no papers: give it references = (...), or () if there is none"),)
    return found


def cost_of(event: Event) -> Price | Event:
    """The privacy cost of an event by the tightest method, for its references; the event itself where there is none."""
    try:
        return price(event)
    except UnsupportedEvent:
        return event


def estimator_citations(estimator: Any, kind: type[Any]) -> tuple[object, ...]:
    """What an estimator rests on: its plan, and the filter of a ledger that paid for other plans too.

    Before a fit the plan is made for the declared schema. Where columns are not declared, only the system's papers are
    known, and a note says so.

    Args:
        estimator: fitted or not.
        kind: the class of its plan.
    """
    if "plan_" in vars(estimator):
        grants = sum(isinstance(entry, GrantEntry) for entry in estimator.ledger_.entries)
        return (estimator.plan_, estimator.ledger_.terms.filter) if grants > 1 else (estimator.plan_,)
    schema = estimator.schema
    if isinstance(schema, Schema) and schema.every is None:
        return (estimator.make_plan(schema),)
    name = type(estimator).__name__
    note = f"{name} has no declared columns yet: the papers on its noise and its accounting are known after fit"
    return (*named_references(kind), CitationNote(note))
