"""Audits of trained models: canaries that fair coins include, and how well what was released tells which.

docs/explanation/canaries.md says what is valid when.
"""

import dataclasses
import math
import time
import warnings
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events import Event, GaussianEvent
from ledgerwood.curator import Categorical, Schema
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, PrivacyWarning
from ledgerwood.trainers.bounds import require_name
from ledgerwood.trainers.estimator import AbstractTreeEstimator
from ledgerwood.trainers.progress import progress_bar
from ledgerwood.verification._generators import Seeded, generator_of
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.result import Scores, level, small_probability
from ledgerwood.verification.canaries import power, theory
from ledgerwood.verification.canaries.cells import CanaryCells, canary_cells
from ledgerwood.verification.canaries.fitting import OwnFits, classifies, require_learner
from ledgerwood.verification.canaries.reading import Terms, read
from ledgerwood.verification.canaries.recorder import recorded
from ledgerwood.verification.canaries.reduced import one_mechanism
from ledgerwood.verification.canaries.released import Released, audit_released
from ledgerwood.verification.canaries.released.auditing import FITS, LEAST_FITS
from ledgerwood.verification.canaries.released.fits import ManyFits, jobs
from ledgerwood.verification.canaries.result import Mode, ModelAudit, Structure, StructureCheck, View
from ledgerwood.verification.canaries.rows import AuditRows, audit_rows, background_rows, seen_schema, with_fill
from ledgerwood.verification.canaries.seeing import Seen, seen_predictions, seen_releases
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
    canaries: int | None = None,
    alpha: float = 0.05,
    rng: Seeded = None,
    view: View | None = None,
    structure: Structure = "fixed",
    trainings: int | None = None,
    delta: float | None = None,
    claim: Claim | None = None,
    fill: int | None = None,
    guesses: tuple[int, int] | None = None,
    schema: Schema | None = None,
    check_structure: bool = False,
    mode: Mode = "model",
    released: Released | None = None,
    canary: tuple[Any, Any] | None = None,
    background: int | None = None,
    fits: int | None = None,
    n_jobs: int = 1,
    verbose: int = 0,
) -> ModelAudit:
    """Train with canaries, each included by a fair coin of its own, and bound epsilon from what tells them apart.

    With `released`, train many times with and without one row, and compare what the fitted models show.

    Args:
        estimator: one of this library's, or any object with fit and predict; it is copied, never fitted itself.
        X, y: the background: rows of every fit, whose labels need no privacy here. One row is enough.
        canaries: in each training, in disjoint cells of the schema; None for 1000. With mode="one_mechanism" None is
            for as many cells as there are, at most 1000, or for 1 where splits depend on the rows.
        alpha: probability that a bound is above the truth.
        rng: of coins and ties, and of the seeds of estimators that have one; None for a fresh one.
        view: "releases" scores released sums and choices (our estimators), "predictions" the model's predictions at the
            canaries; None for the first where it can be. "fitted" is what `released` sets.
        structure: "fixed" puts one tree, each canary's cell a leaf, in the place of every tree that the trainer draws
            without a look at the rows. It costs nothing, so that plan and price stay. "own" leaves the trainer's trees.
        trainings: fits, each with coins and noise of its own; None for 1; with mode="one_mechanism" None is for
            1000 canaries in all, or 500 trainings with one each (300 where delta > 0). A canary is in one of them, so
            that all together are as private for it as one is, and the canaries of all count as those of one run.
        delta: at which epsilon is bounded; None for the estimator's own.
        claim: what is audited; None for the price of the estimator's plan. By its adjacency canaries are in or
            out, or (replace-one) in or exchanged for another row; a function has the plan's, or add-remove.
        fill: known rows that speak against it in each canary's cell; None for what serves best.
        guesses: how many canaries to guess to be in and out, of all trainings; None for what the claim alone makes
            best. Fixed before the fits, either way.
        schema: where canaries go, and their labels, for an estimator that declares none; None: the ranges of X and y,
            and with `released` also rows far beyond them, since nothing then says that there can be none.
        check_structure: fit a few times more, and see that public trees do not depend on the rows.
        mode: "model" audits the estimator as it is; "one_mechanism" one tree of depth 1 with its whole budget, made by
            the same code (our estimators): the price of that tree is what is tested, with the power that an ensemble
            does not leave.
        released: what is looked at in a fitted model: a function of it that returns numbers, texts, arrays, or tuples
            and dicts of them; or "attributes", its attributes that end in "_", and those of estimators in it.
        canary: with `released`, the one row that is in or out, as (row, label); None for what tells most of some fits.
        background: with `released`, rows of X and y in every fit, drawn at random; None for 16.
        fits: with `released`, all fits, at least 1000; half of them are the test. None for 4000.
        n_jobs: with `released`, processes, -1 for one a core. It changes no result.
        verbose: with `released`, 1 shows a progress bar.

    Raises:
        InvalidParameter: no fit or predict; more canaries than cells, or too few for any bound; an estimator whose
            releases cannot be seen, or that buys its schema, or ignores its seed where that is looked at; arguments
            that do not go together; a released value that is no number.
        AdjacencyMismatch: a zero-out claim of an estimator that is not this library's.
        SchemaError: X and y do not fit the schema.
        LedgerCorrupted: a fitted model without a ledger, or with another model's.
        AuditFailed: fits that fail, or that depend on each other.

    Warns:
        PrivacyWarning: the bound is less than half of what a perfect attack on exactly the claim is expected to show
            with as many canaries, or that is less than half of the claim: docs/explanation/canaries.md#canary-power.
    """
    begun = time.perf_counter()
    alpha = level(alpha)
    generator = generator_of(rng)
    require_name("structure", structure, get_args(Structure))
    require_name("mode", mode, get_args(Mode))
    require_learner(estimator)
    changed: dict[str, Any] = {}
    full = estimator
    if mode == "one_mechanism":
        if claim is not None:
            raise InvalidParameter(
                "claim=... with mode='one_mechanism': the price of the reduced model is what is audited; leave it out"
            )
        estimator, changed = one_mechanism(estimator)
    if released is not None:
        _require_absent(
            "with released=", view=view, fill=fill, guesses=guesses, canaries=canaries, trainings=trainings,
            check_structure=check_structure or None, structure=None if structure == "fixed" else structure,
        )  # fmt: skip
        found = _released_audit(
            estimator, X, y, released=released, claim=claim, delta=delta, alpha=alpha, schema=schema, canary=canary,
            background=background, fits=fits, n_jobs=n_jobs, verbose=verbose, generator=generator, begun=begun,
        )  # fmt: skip
    else:
        _require_absent("without released=", canary=canary, background=background, fits=fits)
        canaries, trainings = _sizes(estimator, X, y, canaries, trainings, structure, mode)
        found = _canary_audit(
            estimator, X, y, canaries=canaries, alpha=alpha, view=view, structure=structure, trainings=trainings,
            delta=delta, claim=claim, fill=fill, guesses=guesses, schema=schema, check_structure=check_structure,
            generator=generator, begun=begun, mode=mode,
        )  # fmt: skip
    if mode == "one_mechanism":
        found = dataclasses.replace(
            found, mode=mode, changed=tuple(changed.items()), notes=(_about_the_full(full, found), *found.notes)
        )
    if found.weaknesses:
        warnings.warn(f"{found.system}: {'; '.join(found.weaknesses)}", PrivacyWarning, stacklevel=2)
    return found


CANARIES = 1000
"""Of one training; and, of one mechanism with public trees, of all trainings together."""
TRAININGS, GAUSSIAN_TRAININGS = 500, 300
"""Of one mechanism whose splits depend on the rows, with one canary each: means of Gaussian scores need fewer."""


def _sizes(
    estimator: Any, X: Any, y: Any, canaries: int | None, trainings: int | None, structure: Structure, mode: Mode
) -> tuple[int, int]:
    """Canaries of each training, and trainings, where they were left open.

    Of one mechanism, one canary a training wherever canaries would hide each other; where leaves are their own, as many
    as there are cells.
    """
    if mode == "model":
        return _or(canaries, CANARIES), _or(trainings, 1)
    own = OwnFits.of(estimator, _columns(X, y, estimator))
    apart = own.public_trees and structure == "fixed"
    canaries = _or(canaries, min(own.cells, CANARIES) if apart else 1)
    if apart:
        return canaries, _or(trainings, math.ceil(CANARIES / canaries))
    return canaries, _or(trainings, GAUSSIAN_TRAININGS if own.estimator.budget.delta > 0.0 else TRAININGS)


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _require_absent(where: str, **arguments: object) -> None:
    given = [name for name, value in arguments.items() if value is not None]
    if given:
        raise InvalidParameter(f"{', '.join(given)}: not used {where}; leave it out (unit: arguments)")


def _about_the_full(estimator: Any, audit: ModelAudit) -> str:
    """What an audit of one mechanism says of the model whose code it is."""
    return (
        f"audited was one tree of depth 1 with the whole budget (epsilon {audit.price:.3g} at delta {audit.delta:.3g}), "
        f"made by the code that makes every round of this {type(estimator).__name__}. A breach of it is one of the "
        "model; the bound is that of the one tree, not of the model, and how the rounds add up to the model's own "
        "epsilon is what the ledger's verification checks"
    )


def _canary_audit(
    estimator: Any, X: Any, y: Any, *, canaries: int, alpha: float, view: View | None, structure: Structure,
    trainings: int, delta: float | None, claim: Claim | None, fill: int | None, guesses: tuple[int, int] | None,
    schema: Schema | None, check_structure: bool, generator: np.random.Generator, begun: float, mode: Mode,
) -> ModelAudit:  # fmt: skip
    trainings = _validate.count("trainings", trainings, "fits")
    canaries = _validate.count("canaries", canaries, "canaries in each training")
    total = canaries * trainings
    _require_enough(total, alpha)
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
        attack=f"{canaries} canaries in cells of the schema, {trainings} trainings, scored by {view}",
        notes=_unseen(seen, view, own=fits is not None),
        weaknesses=power.weaknesses(
            found=headline.value, detectable=detectable, largest=reading.largest, price=terms.price,
            rejected=reading.rejected, needed=_needed(reading.needed, fits, mode), stronger=_stronger(view, fits, mode),
        ),
    )  # fmt: skip


def _unseen(seen: Seen, view: View, *, own: bool) -> tuple[str, ...]:
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
    if mode == "one_mechanism" and view == "releases":
        return (
            "another background (X, y), in which one row decides more, may show more; so may an estimator whose splits "
            "are drawn at random, which leaves the leaves' mechanism alone"
        )
    if fits is None:
        return "released='attributes', or a function of the fitted model, looks at more than predictions"
    if view == "predictions":
        return "view='releases' looks at what was released, mode='one_mechanism' at one round of the same code"
    return "mode='one_mechanism' looks at one round of the same code, with its whole budget in it"


def _released_audit(
    estimator: Any, X: Any, y: Any, *, released: Released, claim: Claim | None, delta: float | None, alpha: float,
    schema: Schema | None, canary: tuple[Any, Any] | None, background: int | None, fits: int | None, n_jobs: int,
    verbose: int, generator: np.random.Generator, begun: float,
) -> ModelAudit:  # fmt: skip
    if not callable(released) and released != "attributes":
        raise InvalidParameter(
            f"released={released!r} must be a function of the fitted model, or 'attributes' (unit: released value)"
        )
    budget = _validate.count("fits", _or(fits, FITS), "fits", minimum=LEAST_FITS)
    processes = jobs(n_jobs)
    own: OwnFits | None = None
    bounded = True
    if isinstance(estimator, AbstractTreeEstimator):
        if schema is not None:
            raise InvalidParameter(f"schema=...: {type(estimator).__name__} has a schema of its own")
        own = OwnFits.of(estimator, _columns(X, y, estimator))
        schema = own.schema
    elif schema is None:
        schema, bounded = seen_schema(X, y, classify=classifies(estimator)), False
    adjacency = _adjacency(claim, None if own is None else own.event)
    if own is None:
        _require_known(adjacency, claim, estimator)
    rows = background_rows(X, y, schema)
    schema = schema.resolved(rows[0].shape[1])
    claim, delta = _claimed(own, claim, delta)
    with progress_bar(type(estimator).__name__, verbose) as progress:
        many = ManyFits(estimator, released, processes, budget, progress)
        found = audit_released(
            many, rows, schema, bounded=bounded, classify=isinstance(schema.target, Categorical), claim=claim,
            adjacency=adjacency, delta=delta, alpha=alpha, canary=canary, background=background, generator=generator,
        )  # fmt: skip
    price, headline = power.price_of(claim, delta), found.bounds[0]
    return ModelAudit(
        epsilon_lower=headline.value, assumption=headline.assumption, statistic=headline.statistic,
        rejected=found.rejected, alpha=alpha, delta=delta, bounds=found.bounds, price=price,
        epsilon_detectable=found.detectable, epsilon_ceiling=found.largest,
        expected=tuple(found.detectable if each.assumption == "none" else math.nan for each in found.bounds),
        needed=None, scores=found.scores, seconds=time.perf_counter() - begun, canaries=1, trainings=found.fits,
        view="fitted", structure="own", shared=False, scored=found.columns, releases=found.columns, mu=None,
        price_mu=theory.mu_of_price(price, delta) if math.isfinite(price) else 0.0, system=type(estimator).__name__,
        claim=claim, structure_check=None, attack=found.attack, notes=found.notes,
        weaknesses=power.weaknesses(
            found=headline.value, detectable=found.detectable, largest=found.largest, price=price,
            rejected=found.rejected, needed=f"more than fits={budget} would show more",
            stronger="another function released=, a canary= that stands out more or a smaller background= may show more",
        ),
    )  # fmt: skip


def _require_view(estimator: Any, view: View | None) -> View:
    own = isinstance(estimator, AbstractTreeEstimator)
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
    _require_known(adjacency, claim, estimator)
    return None, audit_rows(X, y, cells, replaced=adjacency is Adjacency.REPLACE_ONE)


def _require_known(adjacency: Adjacency, claim: Claim | None, estimator: Any) -> None:
    if adjacency is Adjacency.ZERO_OUT:
        raise AdjacencyMismatch(
            f"claim={claim!r} is of zero-out neighbours, and what {type(estimator).__name__} takes for a null row is "
            "not known: state the claim under add-remove or replace-one"
        )


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
