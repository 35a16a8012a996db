"""Audits of trained models: canaries that fair coins include, and how well what was released tells which.

docs/explanation/canaries.md says what is valid when.
"""

import dataclasses
import math
import warnings
from time import perf_counter
from typing import Any, get_args

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator import Schema
from ledgerwood.errors import InvalidParameter, PrivacyWarning
from ledgerwood.trainers.base.bounds import require_name
from ledgerwood.trainers.base.systems import trainer_of
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.verification.auditing.claims import Claim
from ledgerwood.verification.auditing.result import level
from ledgerwood.verification.canaries.canary_audit import canary_audit
from ledgerwood.verification.canaries.fitting import (
    OwnFits,
    adjacency_of,
    claimed,
    column_count_of,
    require_learner,
)
from ledgerwood.verification.canaries.power.rows import WorstRows, made_up_row, worst_rows
from ledgerwood.verification.canaries.reduced import WORDS, one_mechanism
from ledgerwood.verification.canaries.released_audit import released_audit
from ledgerwood.verification.canaries.released_values import Released
from ledgerwood.verification.canaries.result import Mode, ModelAudit, Structure, View
from ledgerwood.verification.figures import Seeded, generator_of

CANARIES = 1000
"""Of one training; and, of one mechanism with public trees, of all trainings together."""
TRAININGS, GAUSSIAN_TRAININGS = 500, 300
"""Of one mechanism whose splits depend on the rows, with one canary each: means of Gaussian scores need fewer."""
WORST_TRAININGS = 2000
"""With one canary each, beside rows that the audit made up."""


def audit_model(
    estimator: Any,
    X: Any = None,
    y: Any = None,
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
    """Train with canaries, each included by its own fair coin, and bound epsilon from how well they can be detected.

    With `released`, train many times with and without one row, and compare what the fitted models show.

    Args:
        estimator: one of this library's, or any object with fit and predict; it is copied, never fitted itself. Or the
            name of a system, as its entry point has it, with `schema`: its estimator for the schema's target.
        X, y: the background: rows of every fit, whose labels need no privacy here. One row is enough. Both None (our
            estimators): the audit makes up its rows. Where splits depend on rows, they are those on which one canary
            decides most, by the plan: docs/explanation/canaries.md#worst-rows.
        canaries: in each training, in disjoint cells of the schema; None for 1000. With a mode of one mechanism None is
            for as many cells as there are, at most 1000, or for 1 where splits depend on the rows.
        alpha: probability that a bound is above the truth.
        rng: a generator for coins, ties and the estimators' seeds, or its seed; None for fresh entropy.
        view: "releases" scores released sums and choices (our estimators), "predictions" the model's predictions at the
            canaries; None for the first where it can be. "fitted" is what `released` sets.
        structure: "fixed" puts one tree, each canary's cell a leaf, instead of every tree that the trainer draws
            without a look at the rows. It costs nothing, so that plan and price stay. "own" leaves the trainer's trees.
        trainings: number of fits, each with its own coins and noise; None for 1; with a mode of one mechanism None is
            for 1000 canaries in all, or 500 trainings with one each (300 if delta > 0). Without X and y, 2000 with one
            each where splits depend on rows. A canary is in one of them, so that all together are as private for it as
            one is, and the canaries of all count as those of one run.
        delta: at which epsilon is bounded; None for the estimator's own.
        claim: the claimed guarantee; None for the privacy cost of the estimator's plan. Its adjacency decides whether
            canaries are in or out, or (replace-one) in or exchanged for another row; a function has the plan's, or
            add-remove.
        fill: number of known rows with the opposite label in each canary's cell; None chooses the best number.
        guesses: numbers of canaries to guess as included and as left out, over all trainings; None chooses the best
            numbers for the claim. They are fixed before the fits.
        schema: where canaries go, and their labels, for an estimator that declares none; None: the ranges of X and y,
            and with `released` also rows far beyond them, since such rows are then not excluded.
        check_structure: fit a few times more, and see that public trees do not depend on the rows.
        mode: "model" audits the estimator as it is; "one_mechanism" one tree of depth 1 with its whole budget, made by
            the same code (our estimators): the test is of that tree's privacy cost, with the power that an ensemble
            does not leave. "one_selection" gives nearly all of this budget to the private choice of the split, and
            "one_leaf" all of it to the leaves.
        released: the values of a fitted model to attack: a function of it that returns numbers, texts, arrays, or
            tuples and dicts of them; or "attributes", its attributes that end in "_", and those of estimators in it.
        canary: with `released`, the one row that is in or out, as (row, label); None chooses the best of some fits.
        background: with `released`, rows of X and y in every fit, drawn at random; None for 16.
        fits: with `released`, all fits, at least 1000; half of them are the test. None for 4000.
        n_jobs: with `released`, processes, -1 for one a core. It changes no result.
        verbose: 1 shows a progress bar of the fits.

    Raises:
        InvalidParameter: no fit or predict; more canaries than cells, or too few for any bound; an estimator whose
            releases cannot be recorded, whose schema is estimated, or that ignores its seed; arguments
            that cannot be combined; a released value that is not a number.
        AdjacencyMismatch: a zero-out claim of an estimator that is not this library's.
        SchemaError: X and y do not fit the schema.
        LedgerCorrupted: a fitted model without a ledger, or with another model's.
        AuditFailed: fits that fail, or that depend on each other.

    Warns:
        PrivacyWarning: the bound is less than half of the bound expected of a perfect attack on exactly the claim with
            as many canaries, or the latter is less than half of the claim: docs/explanation/canaries.md#canary-power.
    """
    begun = perf_counter()
    alpha = level(alpha)
    generator = generator_of(rng)
    require_name("structure", structure, get_args(Structure))
    require_name("mode", mode, get_args(Mode))
    if isinstance(estimator, str):
        estimator, schema = trainer_of(estimator, schema), None
    require_learner(estimator)
    changed: dict[str, Any] = {}
    full = estimator
    if mode != "model":
        if claim is not None:
            raise InvalidParameter(
                f"claim=... with mode={mode!r}: the audit's claim is the reduced model's privacy cost; omit claim"
            )
        estimator, changed = one_mechanism(estimator, mode)
    if released is not None:
        _require_absent(
            "with released=", view=view, fill=fill, guesses=guesses, canaries=canaries, trainings=trainings,
            check_structure=check_structure or None, structure=None if structure == "fixed" else structure,
        )  # fmt: skip
        found = released_audit(
            estimator, X, y, released=released, claim=claim, delta=delta, alpha=alpha, schema=schema, canary=canary,
            background=background, fits=fits, n_jobs=n_jobs, verbose=verbose, generator=generator, begun=begun,
        )  # fmt: skip
    else:
        _require_absent("without released=", canary=canary, background=background, fits=fits)
        worst = None
        if X is None and y is None:
            X, y, worst = _made_up(
                estimator, canaries, trainings, structure, delta, alpha, claim, generator,
                absent={"view": view, "fill": fill, "guesses": guesses, "check_structure": check_structure or None},
            )  # fmt: skip
            if worst is not None:
                canaries, trainings = 1, worst.canaries
        canaries, trainings = _sizes(estimator, X, y, canaries, trainings, structure, mode)
        found = canary_audit(
            estimator, X, y, canaries=canaries, alpha=alpha, view=view, structure=structure, trainings=trainings,
            delta=delta, claim=claim, fill=fill, guesses=guesses, schema=schema, check_structure=check_structure,
            generator=generator, begun=begun, mode=mode, worst=worst, verbose=verbose,
        )  # fmt: skip
    if mode != "model":
        found = dataclasses.replace(
            found, mode=mode, changed=tuple(changed.items()), notes=(_about_the_full(full, found, mode), *found.notes)
        )
    if found.weaknesses:
        warnings.warn(f"{found.system}: {'; '.join(found.weaknesses)}", PrivacyWarning, stacklevel=2)
    return found


def _sizes(
    estimator: Any, X: Any, y: Any, canaries: int | None, trainings: int | None, structure: Structure, mode: Mode
) -> tuple[int, int]:
    """Canaries of each training, and trainings, where they were left open.

    Of one mechanism, one canary a training wherever canaries would hide each other; where leaves are their own, as many
    as there are cells.
    """
    if mode == "model":
        return _or(canaries, CANARIES), _or(trainings, 1)
    own = OwnFits.of(estimator, column_count_of(X, y, estimator))
    apart = own.public_trees and structure == "fixed"
    canaries = _or(canaries, min(own.cells, CANARIES) if apart else 1)
    if apart:
        return canaries, _or(trainings, math.ceil(CANARIES / canaries))
    return canaries, _or(trainings, GAUSSIAN_TRAININGS if own.estimator.budget.delta > 0.0 else TRAININGS)


def _made_up(
    estimator: Any, canaries: int | None, trainings: int | None, structure: Structure, delta: float | None,
    alpha: float, claim: Claim | None, generator: np.random.Generator, absent: dict[str, object],
) -> tuple[Any, Any, WorstRows | None]:  # fmt: skip
    """Rows in the place of X and y: one, where canaries have separate leaves; else the worst ones of the plan."""
    if not isinstance(estimator, AbstractTrainer) or not isinstance(estimator.schema, Schema):
        raise InvalidParameter(
            f"X=None, y=None: of {type(estimator).__name__} no plan and schema are known from which rows could be made "
            "up; give X and y"
        )
    if not estimator.schema.features:
        raise InvalidParameter(
            "X=None, y=None: the schema does not say how many features there are; name them, or give X and y"
        )
    fits = OwnFits.of(estimator, len(estimator.schema.features))
    X, y = made_up_row(fits)
    if fits.public_trees and structure == "fixed":
        return X, y, None
    _require_absent("without X and y, where one canary decides the splits", **absent)
    if canaries not in (None, 1):
        raise _validate.fail("canaries", canaries, "1, of each of several trainings, without X and y", "canaries")
    trainings = _validate.count("trainings", _or(trainings, WORST_TRAININGS), "fits")
    stated, at = claimed(fits, claim, delta)
    replaced = adjacency_of(stated, fits.event) is Adjacency.REPLACE_ONE
    return X, y, worst_rows(fits, replaced=replaced, canaries=trainings, delta=at, alpha=alpha, generator=generator)


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _require_absent(where: str, **arguments: object) -> None:
    given = [name for name, value in arguments.items() if value is not None]
    if given:
        raise InvalidParameter(f"{', '.join(given)}: not used {where}; leave it out (unit: arguments)")


def _about_the_full(estimator: Any, audit: ModelAudit, mode: Mode) -> str:
    """What an audit of one mechanism says of the model whose code it is."""
    whole = "the one tree" if mode == "one_mechanism" else "this part of one tree"
    return (
        f"audited was {WORDS[mode]} (epsilon {audit.price:.3g} at delta {audit.delta:.3g}),"
        f" made by the code that makes every round of this {type(estimator).__name__}. A violation by it is one by the "
        f"model. The bound is that of {whole}, not of the model; the ledger's verification checks how the rounds "
        "compose to the model's own epsilon"
    )
