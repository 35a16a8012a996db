"""`ledgerwood.cite`: the references of what was used, in the order in which they are met."""

from collections.abc import Iterator

from ledgerwood import __version__, _validate
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.events.base import walk
from ledgerwood.accounting.filters import (
    AdvancedCompositionFilter,
    BasicFilter,
    Charge,
    GDPFilter,
    RenyiFilter,
    ZCDPFilter,
)
from ledgerwood.accounting.ledger import Grant, Ledger, LedgerRecord, Receipt
from ledgerwood.accounting.ledger.entries import CheckpointEntry, GrantEntry
from ledgerwood.accounting.odometers import PureOdometer, RenyiOdometer, WhitehouseOdometer
from ledgerwood.accounting.pricing import Price, price
from ledgerwood.accounting.quotes import Quote
from ledgerwood.accounting.sgd import SGDPlan
from ledgerwood.citing.tables import OF_EVENTS, OF_MECHANISMS, OF_METHODS, of_filter, of_odometer
from ledgerwood.errors import UnsupportedEvent
from ledgerwood.references import CitationNote, Citations, Cited, Reference

_TAKES = (
    "a plan, an estimator, an event, a price, a mechanism, a filter, an odometer, a ledger or its record, the result "
    "of an audit, or a Reference"
)


def cite(*used: object) -> Citations:
    """The papers that something rests on, as BibTeX; this library's own entry comes last.

    Args:
        used: one thing or more: the plan of a trainer, a search or a validation; an estimator, fitted or not; an
            event; a `Price`; a mechanism; a filter; an odometer; a ledger or its record; the result of an audit or an
            attack; a `Reference`.

    Returns:
        The references, each once, in the order in which they are met: print it, or write `str(...)` to a file.

    Raises:
        InvalidParameter: a value that rests on nothing known here.
        UnsupportedEvent: an event of a class that is not the library's: its source is not known.
    """
    if not used:
        raise _validate.fail("used", used, f"at least one: {_TAKES}", "what was used")
    references: list[Reference] = []
    notes: list[str] = []
    for found in (each for thing in used for each in _of(thing)):
        if isinstance(found, CitationNote):
            notes.append(found.text)
        else:
            references.append(found)
    own = library()
    return Citations(references=(*(each for each in references if each != own), own), notes=tuple(notes))


def library() -> Reference:
    """This library's own entry, as CITATION.cff has it."""
    return Reference(
        key="ledgerwood",
        kind="misc",
        authors=("The ledgerwood maintainers",),
        title="ledgerwood",
        year=2026,
        note=f"Software, version {__version__}",
    )


def _of(thing: object) -> Iterator[Reference | CitationNote]:
    match thing:
        case Reference() | CitationNote():
            yield thing
        case Cited():
            for each in thing.cited():
                yield from _of(each)
        case Event():
            yield from _of_event(thing)
        case Price():
            yield from _of_event(thing.event)
            yield from OF_METHODS[thing.method]
        case Quote() | Charge():
            yield from OF_METHODS[thing.method]
        case SGDPlan():
            yield from _of(price(thing.event))
        case BasicFilter() | AdvancedCompositionFilter() | ZCDPFilter() | RenyiFilter() | GDPFilter():
            yield from of_filter(thing)
        case PureOdometer() | RenyiOdometer() | WhitehouseOdometer():
            yield from of_odometer(thing)
        case Ledger():
            yield from _of_record(thing.record())
        case LedgerRecord():
            yield from _of_record(thing)
        case Grant():
            yield from _of_event(thing.event)
            yield from _of(thing.charge)
            yield from of_filter(thing.ledger.filter)
        case Receipt():
            yield from _of_event(thing.event)
        case GrantEntry():
            yield from _of_event(thing.event)
            yield from _of(thing.charge)
        case _:
            if type(thing) not in OF_MECHANISMS:
                raise _validate.fail("used", thing, _TAKES, "what was used")
            yield from OF_MECHANISMS[type(thing)]


def _of_event(event: Event) -> Iterator[Reference]:
    """Those of an event and all of its parts, the whole first.

    Raises:
        UnsupportedEvent: an event that has no record: of another package, or made by the accounting itself.
    """
    for part in walk(event):
        if type(part) not in OF_EVENTS:
            raise UnsupportedEvent(f"{type(part).__name__} is a bound that accounting makes, and has no source listed")
        yield from OF_EVENTS[type(part)]


def _of_record(record: LedgerRecord) -> Iterator[Reference | CitationNote]:
    """Those of a ledger's plans, of the methods that charged them, and of its filter."""
    if record.trusted:
        yield CitationNote(
            f"{record.trusted} entries before the last checkpoint are not in this record: their plans are not covered"
        )
    first = record.entries[0]
    grants = [held.grant for held in first.held] if isinstance(first, CheckpointEntry) else []
    grants += [entry for entry in record.entries if isinstance(entry, GrantEntry)]
    for event in dict.fromkeys(entry.event for entry in grants):
        yield from _of_event(event)
    for method in dict.fromkeys(entry.charge.method for entry in grants):
        yield from OF_METHODS[method]
    yield from of_filter(record.terms.filter)
