"""Open a new ledger from a form: the one thing that the dashboard writes, and only for who has its token."""

import hashlib
import re
from pathlib import Path
from typing import Any

from ledgerwood.accounting import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.dashboard.shelf import Shelf
from ledgerwood.dashboard.sources import SUFFIX, DatabaseSource, FolderSource, Source
from ledgerwood.errors import InvalidParameter, LedgerError
from ledgerwood.report.ledgers.commands import shares_of
from ledgerwood.report.ledgers.opening import FILTERS
from ledgerwood.report.options import FilterName

_WORDS: dict[FilterName, str] = {
    "basic": "basic: epsilons and deltas add up",
    "zcdp": "concentrated privacy: rhos add up (many Gaussian releases)",
    "gdp": "Gaussian privacy: squares of mu add up (unsampled Gaussian releases only)",
}
_FIRST = {
    "place": "", "dataset": "", "epsilon": "1", "delta": "1e-6", "adjacency": "add-remove", "unit": "row",
    "filter": "basic", "analysts": "", "owner": "", "description": "", "opened": "",
}  # fmt: skip


def form_values(shelf: Shelf, form: dict[str, str], refused: str | None) -> dict[str, Any]:
    """What the form shows: its choices, what was entered, and why that was refused."""
    return {
        "values": {name: form.get(name, first) for name, first in _FIRST.items()},
        "places": [(_id(source), source.name) for source in _writable(shelf)],
        "adjacencies": [each.value for each in Adjacency],
        "units": [each.value for each in PrivacyUnit],
        "filters": [(name, _WORDS[name]) for name in FILTERS],
        "refused": refused,
    }


def open_ledger(shelf: Shelf, form: dict[str, str]) -> str:
    """Open the ledger that the form describes, and give its id.

    Raises:
        InvalidParameter: a field that is missing, or not of its kind.
        LedgerError: there is a ledger for this data set, or it cannot be written.
    """
    source = next((each for each in _writable(shelf) if _id(each) == form.get("place")), None)
    if source is None:
        raise InvalidParameter("choose where the ledger is to be kept")
    label = form.get("dataset", "").strip()
    if not label:
        raise InvalidParameter("a ledger needs the public label of a data set")
    budget = Budget(
        epsilon=_number(form, "epsilon"), delta=_number(form, "delta"),
        adjacency=_choice(form, "adjacency", {each.value: each for each in Adjacency}),
    )  # fmt: skip
    unit = _choice(form, "unit", {each.value: each for each in PrivacyUnit})
    filter_ = _choice(form, "filter", {str(name): each for name, each in FILTERS.items()})
    analysts = shares_of(list(filter(None, map(str.strip, form.get("analysts", "").splitlines())))) or None
    key = label if isinstance(source, DatabaseSource) else file_name(label)
    if key in source.ledgers() or (isinstance(source, FolderSource) and (source.folder / key).exists()):
        raise LedgerError(f"there is a ledger for {label!r} in {source.name} already; one data set has one ledger")
    place: str | Path = source.url if isinstance(source, DatabaseSource) else source.folder / key
    about = {name: form.get(name, "").strip() or None for name in ("owner", "description", "opened")}
    Ledger.open(
        place, dataset=label, budget=budget, unit=unit, filter=filter_, analysts=analysts, owner=about["owner"],
        description=about["description"], opened=about["opened"],
    ).close()  # fmt: skip
    shelf.relist()
    return source.id_of(key)


def file_name(label: str) -> str:
    """A file's name for a data set's label: letters, digits and dashes, whatever the label holds."""
    name = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:60].strip("-")
    return (name or f"ledger-{hashlib.sha256(label.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}") + SUFFIX


def _writable(shelf: Shelf) -> list[FolderSource | DatabaseSource]:
    return [source for source in shelf.sources if isinstance(source, FolderSource | DatabaseSource)]


def _id(source: Source) -> str:
    return hashlib.sha256(f"place\0{source.identity}".encode("utf-8", "surrogateescape")).hexdigest()[:20]


def _number(form: dict[str, str], name: str) -> float:
    text = form.get(name, "")
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(f"{name}={text[:40]!r} must be a number") from None


def _choice(form: dict[str, str], name: str, choices: dict[str, Any]) -> Any:
    value = form.get(name, "")
    if value not in choices:
        raise InvalidParameter(f"{name}={value[:40]!r} must be one of {', '.join(choices)}")
    return choices[value]
