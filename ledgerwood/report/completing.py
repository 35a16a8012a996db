"""Words that a shell offers where a value is from a list that only the library, or a ledger, knows.

What cannot be found out offers nothing: a line that is being typed is no place for an error.
"""

from collections.abc import Callable, Iterator
from typing import Any

import typer

from ledgerwood.errors import PrivacyError

Offers = list[tuple[str, str]]
"""Words, each with a note, which some shells show beside it."""


def quietly(find: Callable[[dict[str, Any]], Iterator[tuple[str, str]]], given: dict[str, Any], typed: str) -> Offers:
    """The words that are found by what has been given so far, and that begin as was typed; none where finding fails."""
    try:
        return [(word, note) for word, note in find(given) if word.startswith(typed)]
    except (ImportError, OSError, PrivacyError):  # no extra, no file, no ledger
        return []


def _typed(ctx: typer.Context) -> dict[str, Any]:
    return {**ctx.params, "typed before": ctx.args}


def systems(incomplete: str) -> Offers:
    """The systems that are declared; none is imported for it."""

    def found(_: dict[str, Any]) -> Iterator[tuple[str, str]]:
        from importlib.metadata import entry_points

        yield from ((point.name, point.value) for point in entry_points(group="ledgerwood.trainers"))

    return quietly(found, {}, incomplete)


def datasets(ctx: typer.Context, incomplete: str) -> Offers:
    """The data sets of the ledger that is named before."""
    return quietly(_datasets, _typed(ctx), incomplete)


def analysts(ctx: typer.Context, incomplete: str) -> Offers:
    """The analysts who share the ledger that is named before."""
    return quietly(_analysts, _typed(ctx), incomplete)


def shares(ctx: typer.Context, incomplete: str) -> Offers:
    """LABEL= of each analyst who shares the ledger that is named before."""
    return [(f"{label}=", note) for label, note in analysts(ctx, incomplete)]


def specimens(incomplete: str) -> Offers:
    """The published mechanisms."""

    def found(_: dict[str, Any]) -> Iterator[tuple[str, str]]:
        from ledgerwood.verification.errata import SPECIMENS

        yield from ((specimen.name, "") for specimen in SPECIMENS)

    return quietly(found, {}, incomplete)


def _place(given: dict[str, Any]) -> str:
    """The ledger: an option, or the first argument, which click has not assigned while an option lacks its value."""
    place = given.get("ledger") or given.get("url") or next(iter(given["typed before"]), "")
    if not isinstance(place, str) or not place:
        raise FileNotFoundError("no ledger is named yet")
    return place


def _datasets(given: dict[str, Any]) -> Iterator[tuple[str, str]]:
    place = _place(given)
    if "://" in place:
        from ledgerwood.accounting.ledger import migrations

        yield from ((label, "") for label in migrations.datasets(place))
    else:
        from ledgerwood.report.ledgers.commands import read_record

        label = read_record(place, None).terms.dataset
        if label is not None:
            yield label, place


def _analysts(given: dict[str, Any]) -> Iterator[tuple[str, str]]:
    from ledgerwood.report.ledgers.commands import read_record

    for label, share in read_record(_place(given), given.get("dataset")).analysts:
        yield label, f"{share:g} of the budget"
