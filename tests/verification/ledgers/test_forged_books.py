"""Ledgers with analysts and migrations whose chains are right and whose entries are not: none is vouched for."""

import numpy as np
import pytest

from benchmarks import forged_books as books
from benchmarks.forged_ledgers import FILTERS


@pytest.mark.slow  # the verifier bounds many forged charges from both sides
@pytest.mark.parametrize("migrated", [True, False], ids=["migrated", "opened with analysts"])
@pytest.mark.parametrize("filter_", FILTERS)
def test_no_forged_book_is_confirmed_with_a_total_that_is_too_small(filter_, migrated):
    honest = books.book(filter_, np.random.default_rng(7), migrated=migrated)
    own = books.verified(honest.records, honest.head)
    assert own.word == "confirmed"
    assert honest.least < own.epsilon < honest.least * (1 + 1e-4)
    found = books.forged(honest)
    assert {name for name, (_, stands) in found.items() if not stands} == set()
    assert len(found) == len(books.FORGERIES) + len(books.HEADED) - (0 if migrated else 6)
    # Who spent is public and not a matter of privacy: the total is what it was.
    assert {name for name, (finding, _) in found.items() if finding.word == "confirmed"} <= {
        "every grant made one analyst's"
    }


@pytest.mark.slow  # the verifier bounds many forged charges from both sides
def test_a_forged_charge_is_named_and_counted_at_what_its_plan_costs():
    honest = books.book("basic", np.random.default_rng(8))
    found = books.forged(honest)
    for name in ("a charge moved to another analyst", "a charge before the analysts halved"):
        finding, _ = found[name]
        assert finding.word == "refuted"
        assert finding.epsilon >= honest.least


@pytest.mark.slow  # the verifier bounds many forged charges from both sides
def test_only_the_head_tells_of_entries_that_are_gone_without_a_trace():
    """docs/explanation/ledger.md#verification: a chain that was rebuilt as a whole is found against its head only."""
    honest = books.book("basic", np.random.default_rng(9))
    for change in books.HEADED.values():
        records = change(honest.records, "epsilon")
        assert books.verified(records).word == "confirmed"
        assert books.verified(records, honest.head).word == "refused"
