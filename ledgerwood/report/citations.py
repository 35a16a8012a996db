"""The references of what is on disk: a model's folder, a ledger, or a system by its name."""

from pathlib import Path

from ledgerwood.citing import cite
from ledgerwood.errors import InvalidParameter
from ledgerwood.references import Citations
from ledgerwood.report.printing import print_json


def show_citations(place: str | None, *, system: str | None, dataset: str | None, as_json: bool) -> None:
    """Print the BibTeX of what a place or a system rests on.

    Args:
        place: a model's folder, a ledger's file, or the URL of a ledger database; None for a system.
        system: a trainer's name; None for a place.
        dataset: of a database, the label of its data set.
        as_json: whether to print keys, notes and BibTeX as one JSON document.

    Raises:
        InvalidParameter: both or neither, no such system, or no model in the folder.
        LedgerError, LedgerCorrupted: a ledger that cannot be read.
    """
    if (place is None) is (system is None):
        raise InvalidParameter("name a model's folder or a ledger, or else a trainer by --system (unit: place)")
    found = _of_system(system) if system is not None else _of_place(str(place), dataset)
    if as_json:
        print_json({"keys": list(found.keys), "notes": list(found.notes), "bibtex": found.bibtex})
    else:
        print(found, end="")  # noqa: T201


def _of_system(name: str) -> Citations:
    from ledgerwood.trainers.base import systems

    return cite(*(kind() for kind in systems.system(name).estimators))


def _of_place(place: str, dataset: str | None) -> Citations:
    if "://" not in place and Path(place).is_dir():
        from ledgerwood.report.models import load_model

        return cite(load_model(Path(place)))
    from ledgerwood.report.ledgers.commands import read_record

    return cite(read_record(place, dataset))
