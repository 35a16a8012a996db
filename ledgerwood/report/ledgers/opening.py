"""`ledgerwood ledger open`: a new ledger with its terms, before anything is spent."""

from pathlib import Path

from ledgerwood.accounting import Budget, Ledger, PrivacyUnit
from ledgerwood.accounting.filters import BasicFilter, Filter, GDPFilter, ZCDPFilter
from ledgerwood.errors import InvalidParameter, LedgerError
from ledgerwood.report.ledgers.commands import shares_of, terms
from ledgerwood.report.options import FilterName
from ledgerwood.report.printing import show

FILTERS: dict[FilterName, Filter] = {"basic": BasicFilter(), "zcdp": ZCDPFilter(), "gdp": GDPFilter()}


def open_ledger(
    place: str,
    *,
    dataset: str | None,
    budget: Budget,
    unit: PrivacyUnit,
    filter_name: FilterName,
    shares: list[str],
    owner: str | None,
    description: str | None,
    opened: str | None,
    as_json: bool,
) -> None:
    """Make the ledger and print its terms.

    Raises:
        LedgerError: there is a ledger already, or it cannot be written.
        InvalidParameter: a database without the label of a data set, or a share that cannot be read.
    """
    in_database = "://" in place
    if in_database and not dataset:
        raise InvalidParameter("a database holds many data sets: name the new one by --dataset (unit: text)")
    if _exists(place, dataset):
        raise LedgerError(f"there is a ledger in {place} already: look at it by `ledgerwood ledger show`")
    with Ledger.open(
        place,
        dataset=dataset,
        budget=budget,
        unit=unit,
        filter=FILTERS[filter_name],
        analysts=shares_of(shares) or None,
        owner=owner,
        description=description,
        opened=opened,
    ) as ledger:
        record = ledger.record()
    show("opened", terms(record), as_json=as_json)


def _exists(place: str, dataset: str | None) -> bool:
    if "://" not in place:
        return Path(place).exists()
    from ledgerwood.accounting.ledger import migrations

    try:
        return dataset in migrations.datasets(place)
    except LedgerError:  # no database yet: the ledger makes it, or says why it cannot
        return False
