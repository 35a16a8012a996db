"""Audits of trained models: canaries that fair coins include, and how well what was released tells which.

docs/explanation/canaries.md says what is valid when.
"""

import dataclasses
import math
import time
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events import Event, GaussianEvent
from ledgerwood.curator import Schema
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter
from ledgerwood.trainers.bounds import require_name
from ledgerwood.trainers.estimator import AbstractTreeEstimator
from ledgerwood.verification._generators import Seeded, generator_of
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.result import Scores, level, small_probability
from ledgerwood.verification.canaries import theory
from ledgerwood.verification.canaries.cells import CanaryCells, canary_cells
from ledgerwood.verification.canaries.fitting import OwnFits, classifies, require_learner
from ledgerwood.verification.canaries.reading import Terms, read
from ledgerwood.verification.canaries.recorder import recorded
from ledgerwood.verification.canaries.result import ModelAudit, Structure, StructureCheck, View
from ledgerwood.verification.canaries.rows import AuditRows, audit_rows, background_rows, seen_schema, with_fill
from ledgerwood.verification.canaries.seeing import seen_predictions, seen_releases
from ledgerwood.verification.canaries.structure import structure_depends_on_data

_UNCLAIMED = GaussianEvent(noise_multiplier=0.5, adjacency=Adjacency.ADD_REMOVE)
"""By which guesses are planned where nothing is claimed."""
_DELTA = 1e-5
_BINS = 32
_LEAF_ROWS = 200
"""Known rows in a canary's cell, where only predictions are seen: many, so that the leaf's value moves little by its
number of rows."""


def audit_model(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    canaries: int = 1000,
    alpha: float = 0.05,
    rng: Seeded = None,
    view: View | None = None,
    structure: Structure = "fixed",
    trainings: int = 1,
    delta: float | None = None,
    claim: Claim | None = None,
    fill: int | None = None,
    guesses: tuple[int, int] | None = None,
    schema: Schema | None = None,
    check_structure: bool = False,
) -> ModelAudit:
    """Train with canaries, each included by a fair coin of its own, and bound epsilon from what tells them apart.

    Args:
        estimator: one of this library's, or any object with fit and predict; it is copied, never fitted itself.
        X, y: the background: rows of every fit, whose labels need no privacy here. One row is enough.
        canaries: in each training, in disjoint cells of the schema.
        alpha: probability that a bound is above the truth.
        rng: of coins and ties, and of the seeds of estimators that have one; None for a fresh one.
        view: "releases" scores released sums and choices (our estimators), "predictions" the model's predictions at the
            canaries; None for the first where it can be.
        structure: "fixed" puts one tree, each canary's cell a leaf, in the place of every tree that the trainer draws
            without a look at the rows. It costs nothing, so that plan and price stay. "own" leaves the trainer's trees.
        trainings: fits, each with coins and noise of its own. A canary is in one of them, so that all together are as
            private for it as one is, and the canaries of all count as those of one run.
        delta: at which epsilon is bounded; None for the estimator's own.
        claim: what is audited; None for the price of the estimator's plan. By its adjacency canaries are in or
            out, or (replace-one) in or exchanged for another row; a function has the plan's, or add-remove.
        fill: known rows that speak against it in each canary's cell; None for what serves best.
        guesses: how many canaries to guess to be in and out, of all trainings; None for what the claim alone makes
            best. Fixed before the fits, either way.
        schema: where canaries go, and their labels, for an estimator that declares none; None: the ranges of X and y.
        check_structure: fit a few times more, and see that public trees do not depend on the rows.

    Raises:
        InvalidParameter: no fit or predict; more canaries than cells, or too few for any bound; an estimator whose
            releases cannot be seen, or that buys its schema, or ignores its seed where that is looked at.
        AdjacencyMismatch: a zero-out claim of an estimator that is not this library's.
        SchemaError: X and y do not fit the schema.
        LedgerCorrupted: a fitted model without a ledger, or with another model's.
    """
    begun = time.perf_counter()
    alpha = level(alpha)
    generator = generator_of(rng)
    trainings = _validate.count("trainings", trainings, "fits")
    canaries = _validate.count("canaries", canaries, "canaries in each training")
    total = canaries * trainings
    _require_enough(total, alpha)
    require_name("structure", structure, get_args(Structure))
    require_learner(estimator)
    view = _require_view(estimator, view)
    guesses = None if guesses is None else _require_guesses(guesses, total)
    fits, rows = _prepared(estimator, X, y, canaries, structure, schema, claim)
    rows = with_fill(rows, *_fills(fits, rows, view, fill))
    claim, delta = _claimed(fits, claim, delta)
    sides: theory.Sides = "included" if fits is not None and fits.labels_only and view == "releases" else "both"
    terms = Terms.planned_for(
        claim, _UNCLAIMED, guesses, canaries=total, delta=delta, alpha=alpha, sides=sides
    )  # fmt: skip
    if view == "releases":
        assert fits is not None  # `_require_view` refused others
        seen = seen_releases(fits, rows, trainings, generator)
    else:
        seen = seen_predictions(estimator, fits, rows, trainings, generator)
    reading = read(seen, terms, generator)
    headline = reading.bounds[0]
    scores = seen.values if seen.normal is None else seen.normal
    check = _checked(fits, rows, generator) if check_structure and fits is not None else None
    return ModelAudit(
        epsilon_lower=headline.value, assumption=headline.assumption, statistic=headline.statistic,
        rejected=reading.rejected, alpha=alpha, delta=delta, bounds=reading.bounds, price=terms.price,
        power=reading.expected[0], expected=reading.expected, needed=reading.needed,
        scores=Scores(with_row=scores[seen.coins], without=scores[~seen.coins]), seconds=time.perf_counter() - begun,
        canaries=canaries, trainings=trainings, view=view, structure="fixed" if seen.fixed else "own",
        shared=not seen.alone, scored=seen.scored, releases=seen.releases, mu=seen.mu,
        price_mu=theory.mu_of_price(terms.price, delta) if math.isfinite(terms.price) else 0.0,
        system=type(estimator).__name__, claim=claim if isinstance(claim, Event) else None, structure_check=check,
    )  # fmt: skip


def _require_view(estimator: Any, view: View | None) -> View:
    own = isinstance(estimator, AbstractTreeEstimator)
    if view is None:
        return "releases" if own else "predictions"
    require_name("view", view, get_args(View))
    if view == "releases" and not own:
        raise InvalidParameter(
            f"view='releases': {type(estimator).__name__} keeps no ledger and releases nothing that could be seen; set "
            "view='predictions'"
        )
    return view


def _require_guesses(guesses: tuple[int, int], total: int) -> tuple[int, int]:
    included, left_out = (_validate.count("guesses", each, "canaries", minimum=0) for each in guesses)
    if not 1 <= included + left_out <= total:
        raise _validate.fail("guesses", guesses, f"1 to {total} together", "canaries")
    return included, left_out


def _require_enough(total: int, alpha: float) -> None:
    least = theory.least_canaries(alpha)
    if total < least:
        raise InvalidParameter(
            f"canaries x trainings = {total} is too few for any bound at alpha={alpha!r}: with right guesses only, "
            f"{least} would show the first that is above 0 (unit: canaries)"
        )


def _prepared(
    estimator: Any, X: Any, y: Any, canaries: int, structure: Structure, schema: Schema | None,
    claim: Claim | None,
) -> tuple[OwnFits | None, AuditRows]:  # fmt: skip
    if isinstance(estimator, AbstractTreeEstimator):
        if schema is not None:
            raise InvalidParameter(f"schema=...: {type(estimator).__name__} has a schema of its own")
        unfixed = OwnFits.of(estimator, _columns(X, y, estimator))
        cells = canary_cells(unfixed.schema, canaries, bins=unfixed.plan.bins)
        fits = dataclasses.replace(unfixed, structure=cells.structure) if structure == "fixed" else unfixed
        return fits, audit_rows(X, y, cells, replaced=_adjacency(claim, fits.event) is Adjacency.REPLACE_ONE)
    if schema is None:
        schema = seen_schema(X, y, classify=classifies(estimator))
    background, _ = background_rows(X, y, schema)
    cells = canary_cells(schema.resolved(background.shape[1]), canaries, bins=_BINS)
    adjacency = _adjacency(claim, None)
    if adjacency is Adjacency.ZERO_OUT:
        raise AdjacencyMismatch(
            f"claim={claim!r} is of zero-out neighbours, and what {type(estimator).__name__} takes for a null row is "
            "not known: state the claim under add-remove or replace-one"
        )
    return None, audit_rows(X, y, cells, replaced=adjacency is Adjacency.REPLACE_ONE)


def _adjacency(claim: Claim | None, planned: Event | None) -> Adjacency:
    """Of the claim, since only its own neighbours refute it; of the plan where it says none."""
    stated = claim if isinstance(claim, Event | Budget) else planned
    return Adjacency.ADD_REMOVE if stated is None else stated.adjacency


def _columns(X: Any, y: Any, estimator: AbstractTreeEstimator) -> int:
    if not isinstance(estimator.schema, Schema):
        return 1  # `OwnFits.of` says what is wrong
    return len(background_rows(X, y, estimator.schema)[0].T)


def _fills(
    fits: OwnFits | None, rows: AuditRows, view: View, fill: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each canary's cell, rows that speak against it and rows that speak for it."""
    m = len(rows.cells)
    none = np.zeros(m, dtype=np.int64)
    if fill is not None:
        return none + _validate.count("fill", fill, "rows in each canary's cell", minimum=0), none
    if fits is None:  # against its neighbours' labels, which would stand in for a canary that is out
        return none + 1, none
    if view == "predictions" and not fits.labels_only:
        other = round(_LEAF_ROWS * fits.share_against)
        return none + other, none + (_LEAF_ROWS - other)
    if not fits.labels_only:
        return none, none
    # With the canary both labels are level, and without it the other one leads:
    # docs/explanation/canaries.md#label-canaries.
    cells: CanaryCells = rows.cells
    leaf = cells.leaf(cells.rows, bins=fits.plan.bins)
    taken = cells.leaf(rows.background, bins=fits.plan.bins)
    ends = np.unique(np.concatenate((rows.own, rows.other)))
    held = np.array([np.bincount(taken[rows.labels == end], minlength=cells.structure.n_leaves) for end in ends])
    beside, against = (held[np.searchsorted(ends, labels), leaf] for labels in (rows.own, rows.other))
    missing = beside - against + 1
    return np.maximum(missing, 0), np.maximum(-missing, 0)


def _claimed(fits: OwnFits | None, claim: Claim | None, delta: float | None) -> tuple[Claim | None, float]:
    if delta is not None:
        delta = small_probability("delta", delta)
    if claim is not None:
        return claim, ClaimedCurve(claim).default_delta() if delta is None else delta
    if fits is None:
        return None, _DELTA if delta is None else delta
    return fits.event, fits.estimator.budget.delta if delta is None else delta


def _checked(fits: OwnFits, rows: AuditRows, generator: np.random.Generator) -> StructureCheck | None:
    """Only where trees are drawn at random."""
    seed = int(generator.integers(2**31))
    with recorded(None) as recording:
        check = structure_depends_on_data(fits.estimator, rows.background, rows.labels, seed=seed)
    return check if recording.trees else None
