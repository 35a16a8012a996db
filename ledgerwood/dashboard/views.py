"""The values that each page shows, read in a thread."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from ledgerwood.accounting.ledger.entries import encode
from ledgerwood.dashboard import calculator, figures, shown
from ledgerwood.dashboard.books import Book, drawn
from ledgerwood.dashboard.models import ModelFacts, Models
from ledgerwood.dashboard.shelf import Look, Shelf
from ledgerwood.errors import PrivacyError
from ledgerwood.report.ledgers.words import charge_in_words, plan_in_words

_LOCAL = re.compile(r"/[a-z0-9/]{0,80}")


def local_target(path: str) -> str:
    """The path if it is one of this server's, else the first page: a login leads nowhere else."""
    return path if _LOCAL.fullmatch(path) and not path.startswith("//") else "/"


def home(shelf: Shelf, page: int) -> dict[str, Any]:
    """A page of all ledgers."""
    books = shelf.books()
    place = shown.paging(len(books), page)
    looks = [shelf.look(book) for book in books[place.start : place.start + shown.PAGE]]
    failures = shelf.failures()
    cards = [shown.card(look) for look in looks]
    return {
        "cards": cards,
        "place": place,
        "failures": failures,
        "sources": [source.name for source in shelf.sources],
        "stamp": _stamp([*(look.stamp for look in looks), repr(failures), str(len(books))]),
        "said": f"{len(books)} ledgers, {sum(card.outcome.tone == 'bad' for card in cards)} with something wrong",
    }


def ledger_stamp(shelf: Shelf, book: Book) -> str:
    """Changes when the page of a ledger would."""
    return _stamp([shelf.look(book).stamp])


def ledger(shelf: Shelf, models: Models, book: Book, page: int) -> dict[str, Any]:
    """The page of one ledger."""
    look = shelf.look(book)
    with book.lock:
        state = look.reading.state
        grants = [] if state is None else shown.grants_of(state)
        place = shown.paging(len(grants), page)
        totals = () if state is None else shown.totals(state)
        found: dict[str, Any] = {
            "card": shown.card(look),
            "place": place,
            "rows": shown.grant_rows(look, place, grants),
            "shared": state is not None and bool(state.analysts),
            "migrated": None if state is None else shown.migrated_at(state),
            "head": None if state is None else state.head,
            "figure": figures.totals_figure(
                totals, look.reading.entries, state.terms.budget.epsilon, shown.part(look.reading), look.reading.trusted
            )
            if state is not None and totals
            else None,
            "hashes": _hashes(look),
            "trusted": look.reading.trusted,
        }
    hashes = found.pop("hashes")
    own = [facts for facts in models.all() if facts.head in hashes]
    verification = look.verification
    return found | {
        "book": book.id,
        "models": own,
        "verification": verification,
        "report": None if verification is None else verification.report,
        "stamp": _stamp([look.stamp]),
        "said": f"{found['card'].outcome.words}; {look.reading.entries} entries",
    }


def grant(shelf: Shelf, book: Book, entry: int, page: int) -> dict[str, Any] | None:
    """The page of one grant; None if the entry is not one."""
    look = shelf.look(book)
    with book.lock:
        state = look.reading.state
        wanted = None if state is None else shown.grant_at(state, entry)
        if state is None or wanted is None:
            return None
        place, rows = shown.draw_rows(state, wanted, page)
        parts = [(plan_in_words(event), f"{count:,}") for event, count in wanted.event.draws()]
        verdicts = shown.grant_rows(look, shown.paging(1, 1), [wanted])
        return {
            "book": book.id,
            "title": shown.title(look),
            "grant": verdicts[0],
            "charge": charge_in_words(wanted.charge),
            "hash": wanted.hash,
            "parts": parts[: shown.PAGE],
            "other_parts": max(0, len(parts) - shown.PAGE),
            "place": place,
            "rows": rows,
            "unlisted": drawn(state, wanted)[0] - place.total,
        }


def lines(book: Book) -> tuple[str, str]:
    """A file name, and the entries that hold, as a ledger file has them."""
    with book.lock:
        state = book.reading.state
        text = "" if state is None else "".join(encode(entry) + "\n" for entry in state.entries)
    return f"{book.id}.ledger.jsonl", text


def models(found: Models, shelf: Shelf) -> dict[str, Any]:
    """All models side by side."""
    facts = found.all()
    ledgers = _ledgers_of(facts, shelf)
    names = sorted({name for one in facts for name, _ in one.plan})
    shared = [name for name in names if len({dict(one.plan).get(name) for one in facts if one.failure is None}) > 1]
    return {
        "models": facts,
        "ledgers": ledgers,
        "differing": shared,
        "plans": {one.id: dict(one.plan) for one in facts},
    }


def model(found: Models, shelf: Shelf, model_id: str) -> dict[str, Any] | None:
    """One model; None if there is none of this id."""
    facts = found.find(model_id)
    if facts is None:
        return None
    return {"model": facts, "ledger": _ledgers_of([facts], shelf).get(facts.id)}


def calculation(form: dict[str, str], *, curves: bool) -> dict[str, Any]:
    """The calculator's inputs and its answer, or what it refused."""
    values = {field.name: calculator.shown_value(field, form.get(field.name)) for field in calculator.FIELDS}
    found: dict[str, Any] = {
        "fields": calculator.FIELDS,
        "values": values,
        "given": "epsilon" if form.get("given") == "epsilon" else "noise",
        "refused": None,
        "inputs": None,
        "answer": None,
        "curves": None,
        "figures": (),
    }
    try:
        inputs = calculator.read_inputs(form)
        answer = calculator.answer(inputs)
        points = calculator.curves(inputs) if curves else None
    except PrivacyError as refused:
        return found | {"refused": str(refused)}
    drawn = () if points is None else (figures.profile_figure(answer, points), figures.trade_off_figure(points))
    return found | {"inputs": inputs, "answer": answer, "curves": points, "figures": drawn}


def _ledgers_of(facts: Sequence[ModelFacts], shelf: Shelf) -> dict[str, tuple[str, str]]:
    """For each model, the id and the title of the ledger that holds the entry which its statement names."""
    heads = {one.head: one.id for one in facts if one.head}
    found = {}
    for book in shelf.books():
        look = shelf.look(book)
        for head in _hashes(look) & heads.keys():
            found[heads[head]] = (book.id, shown.title(look))
    return found


def _hashes(look: Look) -> set[str]:
    with look.book.lock:
        state = look.reading.state
        return set() if state is None else {entry.hash for entry in state.entries}


def _stamp(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
