"""Audit what a fitted model shows, by many fits with and without one row: what was asked, and what is said of it."""

import math
import time
from typing import Any

import numpy as np

from ledgerwood import _validate
from ledgerwood.curator import Categorical, Schema
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.progress import progress_bar
from ledgerwood.verification.auditing.claims import Claim
from ledgerwood.verification.canaries.evidence import power, theory
from ledgerwood.verification.canaries.fits.claiming import adjacency_of, claimed, column_count_of, require_known
from ledgerwood.verification.canaries.fits.fitting import OwnFits, classifies
from ledgerwood.verification.canaries.fits.frames import FrameShape
from ledgerwood.verification.canaries.fits.rows import background_rows, seen_schema
from ledgerwood.verification.canaries.released.auditing import audit_released
from ledgerwood.verification.canaries.released.values import Released
from ledgerwood.verification.canaries.released.auditing import FITS, LEAST_FITS
from ledgerwood.verification.canaries.released.fits import ManyFits, jobs
from ledgerwood.verification.canaries.result import ModelAudit


def released_audit(
    estimator: Any, X: Any, y: Any, *, released: Released, claim: Claim | None, delta: float | None, alpha: float,
    schema: Schema | None, canary: tuple[Any, Any] | None, background: int | None, fits: int | None, n_jobs: int,
    verbose: int, generator: np.random.Generator, begun: float,
) -> ModelAudit:  # fmt: skip
    """Bound epsilon from what many fits with and without one row show; arguments and errors as in `audit_model`.

    Args:
        begun: when the audit began, for its duration; the other ones as in `audit_model`.
    """
    if not callable(released) and released != "attributes":
        raise InvalidParameter(
            f"released={released!r} must be a function of the fitted model, or 'attributes' (unit: released value)"
        )
    budget = _validate.count("fits", FITS if fits is None else fits, "fits", minimum=LEAST_FITS)
    processes = jobs(n_jobs)
    own: OwnFits | None = None
    bounded = True
    if isinstance(estimator, AbstractTreeEstimator):
        if schema is not None:
            raise InvalidParameter(f"schema=...: {type(estimator).__name__} has a schema of its own")
        own = OwnFits.of(estimator, column_count_of(X, y, estimator))
        schema = own.schema
    elif schema is None:
        schema, bounded = seen_schema(X, y, classify=classifies(estimator)), False
    adjacency = adjacency_of(claim, None if own is None else own.event)
    if own is None:
        require_known(adjacency, claim, estimator)
    rows = background_rows(X, y, schema)
    schema = schema.resolved(rows[0].shape[1])
    # Learners of other libraries may ask for columns by name; our own take rows in the schema's order.
    frame = None if own is not None else FrameShape.of(X, [feature.name for feature in schema.features])
    claim, delta = claimed(own, claim, delta)
    with progress_bar(type(estimator).__name__, verbose) as progress:
        many = ManyFits(estimator, released, processes, budget, progress, frame)
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
            stronger="another function released=, a canary= that stands out more, or a smaller background= may help",
        ),
    )  # fmt: skip
