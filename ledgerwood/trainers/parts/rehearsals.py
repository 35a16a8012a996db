"""Rehearsals of trainers from outside, on tables without rows: a query that files refuse is found before it costs.

The library's own plans say what they ask (`Plan.needs_one_part`), and tests hold them to it. A plan from outside may
not know, and its loop would be refused in the middle, with the grant spent.
"""

import contextvars
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.accounting.ledger import DrawEntry, Ledger
from ledgerwood.curator import Curator, PlanPurse, Schema, Table
from ledgerwood.curator.queries.declared import DeclaredStatistic, caveats_in
from ledgerwood.errors import NotASum, RoundViolation
from ledgerwood.mechanisms import SecureRandom
from ledgerwood.trainers.base.plan import Plan
from ledgerwood.trainers.base.privacy import grant_delta
from ledgerwood.trainers.base.progress import unseen
from ledgerwood.trainers.parts.splits import structure_generator

_CODE = (
    "it asks a statistic from outside ({}), whose function is code, and the owners of a federation's rows take none "
    "from a server: name it in the trainer's declared_statistics and give it to the owners, ask the library's own "
    "queries, or use rows in one place"
)


def require_sums_asked(
    model: Any,
    plan: Plan,
    schema: Schema,
    who: str,
    *,
    travels: bool = False,
    statistics: Sequence[DeclaredStatistic] = (),
) -> None:
    """Run the loop of a trainer from outside on a table of no rows in two parts, which refuses what is not a sum.

    What a loop asks depends on what was released before: one that asks for sums here, and for something else later, is
    refused then. One that fails without rows for any other reason is not judged.

    Args:
        model: the estimator; a clone of it runs.
        plan: of the fit.
        schema: resolved.
        who: asks, for the error.
        travels: whether the queries go to owners of rows, who take no functions.
        statistics: whose functions the owners have.

    Raises:
        RoundViolation: the loop asks for a query that is not a sum over rows, or that does not travel. Nothing was
            spent.
    """
    if type(model).__module__.partition(".")[0] == "ledgerwood":
        return
    # A context without a recording: no fit of anybody's.
    refusal = contextvars.Context().run(
        _refusal, clone(model), plan, schema, [each.caveat for each in statistics] if travels else None
    )
    if refusal:
        raise RoundViolation(f"{who}: {refusal}. Nothing was spent")


def _refusal(model: Any, plan: Plan, schema: Schema, known: Sequence[str] | None) -> str:
    width, event, source = len(schema.features), plan.event, SecureRandom()
    ledger = Ledger(model.budget, unit=PrivacyUnit.ROW)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit itself warns
            none = np.empty((0, width), dtype=object), np.empty(0, dtype=object)
            rows = Table.from_data(*none, schema, loss=plan.loss, bins=plan.max_bins).parted([0, 0])
            grant = ledger.grant(event, purpose="rehearsal", delta=grant_delta(ledger, model.budget))
            model._train(plan, Curator(rows, PlanPurse(event, grant), source), structure_generator(source), unseen)
    except NotASum as refusal:
        return str(refusal)
    except Exception:  # noqa: BLE001  # without rows, or within the estimator's own budget; the fit shows it
        pass
    draws = [entry for entry in ledger.entries if isinstance(entry, DrawEntry)]
    if known is None:
        return ""
    unknown = [caveat for entry in draws for caveat in caveats_in(entry.purpose) if caveat not in known]
    return _CODE.format(unknown[0]) if unknown else ""
