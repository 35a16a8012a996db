"""Train with canaries, score what was released or predicted, and say what follows: the audit by guesses of one run."""

import dataclasses
import math
import time
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import GaussianEvent
from ledgerwood.curator import Schema
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.bounds import require_name
from ledgerwood.trainers.base.progress import progress_bar
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.verification.auditing.claims import Claim
from ledgerwood.verification.auditing.result import Scores
from ledgerwood.verification.canaries import theory
from ledgerwood.verification.canaries import theory as power
from ledgerwood.verification.canaries.bounds import CanaryTerms, read
from ledgerwood.verification.canaries.fitting import (
    OwnFits,
    adjacency_of,
    claimed,
    classifies,
    column_count_of,
    require_known,
)
from ledgerwood.verification.canaries.power.rows import WorstRows
from ledgerwood.verification.canaries.recorder import recorded
from ledgerwood.verification.canaries.result import Mode, ModelAudit, Structure, StructureCheck, View
from ledgerwood.verification.canaries.rows import (
    AuditRows,
    CanaryCells,
    audit_rows,
    background_rows,
    canary_cells,
    seen_schema,
    with_fill,
)
from ledgerwood.verification.canaries.seeing import Seen, seen_predictions, seen_releases, structure_depends_on_data

_UNCLAIMED = GaussianEvent(noise_multiplier=0.5, adjacency=Adjacency.ADD_REMOVE)
"""By which guesses are planned where nothing is claimed."""
_BINS = 32
_LEAF_ROWS = 200
"""Known rows in a canary's cell, where only predictions are seen: many, so that the leaf's value moves little by its
number of rows."""


def canary_audit(
    estimator: Any, X: Any, y: Any, *, canaries: int, alpha: float, view: View | None, structure: Structure,
    trainings: int, delta: float | None, claim: Claim | None, fill: int | None, guesses: tuple[int, int] | None,
    schema: Schema | None, check_structure: bool, generator: np.random.Generator, begun: float, mode: Mode,
    worst: WorstRows | None, verbose: int,
) -> ModelAudit:  # fmt: skip
    """Bound epsilon from canaries that fair coins include; arguments and errors as in `audit_model`, all of them given.

    Args:
        begun: when the audit began, for its duration.
        worst: rows that the audit made up, with the guesses that were planned for them; X and y are not used then.
        estimator, verbose: see there, as of all others.
    """
    trainings = _validate.count("trainings", trainings, "fits")
    canaries = _validate.count("canaries", canaries, "canaries in each training")
    total = canaries * trainings
    _require_enough(total, alpha)
    view = _require_view(estimator, view)
    guesses = None if guesses is None else _require_guesses(guesses, total)
    fits, rows = _prepared(estimator, X, y, canaries, structure, schema, claim)
    if worst is None:
        rows = with_fill(rows, *_fills(fits, rows, view, fill))
    else:
        rows, guesses = worst.rows, worst.guesses
    claim, delta = claimed(fits, claim, delta)
    sides: theory.Sides = "included" if fits is not None and fits.labels_only and view == "releases" else "both"
    terms = CanaryTerms.planned_for(
        claim, _UNCLAIMED, guesses, canaries=total, delta=delta, alpha=alpha, sides=sides
    )  # fmt: skip
    with progress_bar(type(estimator).__name__, verbose) as progress:
        if view == "releases":
            assert fits is not None  # `_require_view` refused others
            seen = seen_releases(fits, rows, trainings, generator, progress)
        else:
            seen = seen_predictions(estimator, fits, rows, trainings, generator, progress)
    reading = read(seen, terms, generator)
    headline = reading.bounds[0]
    scores = seen.values if seen.normal is None else seen.normal
    check = _checked(fits, rows, generator) if check_structure and fits is not None else None
    detectable = reading.expected[0]
    return ModelAudit(
        epsilon_lower=headline.value, assumption=headline.assumption, statistic=headline.statistic,
        rejected=reading.rejected, alpha=alpha, delta=delta, bounds=reading.bounds, price=terms.price,
        epsilon_detectable=detectable, epsilon_ceiling=reading.largest, expected=reading.expected,
        needed=reading.needed, scores=Scores(with_row=scores[seen.coins], without=scores[~seen.coins]),
        seconds=time.perf_counter() - begun, canaries=canaries, trainings=trainings, view=view,
        structure="fixed" if seen.fixed else "own", shared=not seen.alone, scored=seen.scored, releases=seen.releases,
        mu=seen.mu, price_mu=theory.mu_of_price(terms.price, delta) if math.isfinite(terms.price) else 0.0,
        system=type(estimator).__name__, claim=claim, structure_check=check,
        attack=f"{canaries} canaries in cells of the schema, {trainings} trainings, scored by {view}"
        if worst is None else worst.words,
        notes=_unseen(seen, view), epsilon_attack=math.nan if worst is None else worst.expected,
        weaknesses=power.weaknesses(
            found=headline.value, detectable=detectable, largest=reading.largest, price=terms.price,
            rejected=reading.rejected, needed=_needed(reading.needed, fits, mode), stronger=_stronger(view, fits, mode),
        ),
    )  # fmt: skip


def _unseen(seen: Seen, view: View) -> tuple[str, ...]:
    """Notes on what this attack could not see."""
    notes = []
    if view == "predictions":
        notes.append("predictions at the canaries were looked at, and nothing else that the fitted model holds")
    elif seen.scored < seen.releases:
        notes.append(
            f"{seen.releases - seen.scored} of {seen.releases} releases of a fit took no part in the scores: they tell "
            "of all canaries at once"
        )
    if not seen.alone:
        notes.append("canaries may have shared leaves and hidden each other")
    if len(np.unique(seen.values)) == 1:
        notes.append("all canaries had the same score: this attack could see nothing, and its bound is luck")
    return tuple(notes)


def _needed(canaries: int | None, fits: OwnFits | None, mode: Mode) -> str:
    if canaries is not None:
        return f"{canaries} canaries (canaries= times trainings=) would be expected to come near it"
    way = "mode='one_mechanism' or " if fits is not None and mode == "model" else ""
    return f"no number of canaries would come near it by this test; {way}released= may show more"


def _stronger(view: View, fits: OwnFits | None, mode: Mode) -> str:
    if mode != "model" and view == "releases":
        return (
            "another background (X, y), in which one row decides more, may show more; so may an estimator whose splits "
            "are drawn at random, which leaves the leaves' mechanism alone"
        )
    if fits is None:
        return "released='attributes', or a function of the fitted model, looks at more than predictions"
    if view == "predictions":
        return "view='releases' looks at what was released, mode='one_mechanism' at one round of the same code"
    return "mode='one_mechanism' looks at one round of the same code, with its whole budget in it"


def _require_view(estimator: Any, view: View | None) -> View:
    own = isinstance(estimator, AbstractTrainer)
    if view == "fitted":
        raise InvalidParameter("view='fitted' needs released=: a function of the fitted model, or 'attributes'")
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
    if isinstance(estimator, AbstractTrainer):
        if schema is not None:
            raise InvalidParameter(f"schema=...: {type(estimator).__name__} has a schema of its own")
        unfixed = OwnFits.of(estimator, column_count_of(X, y, estimator))
        cells = canary_cells(unfixed.schema, canaries, bins=unfixed.plan.max_bins)
        fits = dataclasses.replace(unfixed, structure=cells.structure) if structure == "fixed" else unfixed
        return fits, audit_rows(X, y, cells, replaced=adjacency_of(claim, fits.event) is Adjacency.REPLACE_ONE)
    if schema is None:
        schema = seen_schema(X, y, classify=classifies(estimator))
    background, _ = background_rows(X, y, schema)
    cells = canary_cells(schema.resolved(background.shape[1]), canaries, bins=_BINS)
    adjacency = adjacency_of(claim, None)
    require_known(adjacency, claim, estimator)
    return None, audit_rows(X, y, cells, replaced=adjacency is Adjacency.REPLACE_ONE)


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
    leaf = cells.leaf(cells.rows, bins=fits.plan.max_bins)
    taken = cells.leaf(rows.background, bins=fits.plan.max_bins)
    ends = np.unique(np.concatenate((rows.own, rows.other)))
    held = np.array([np.bincount(taken[rows.labels == end], minlength=cells.structure.n_leaves) for end in ends])
    beside, against = (held[np.searchsorted(ends, labels), leaf] for labels in (rows.own, rows.other))
    missing = beside - against + 1
    return np.maximum(missing, 0), np.maximum(-missing, 0)


def _checked(fits: OwnFits, rows: AuditRows, generator: np.random.Generator) -> StructureCheck | None:
    """Only where trees are drawn at random."""
    seed = int(generator.integers(2**31))
    with recorded(None) as recording:
        check = structure_depends_on_data(fits.estimator, rows.background, rows.labels, seed=seed)
    return check if recording.trees else None
