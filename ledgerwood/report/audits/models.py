"""`ledgerwood audit model`: the run, and what is printed. It needs the extra `trainers`, as training does."""

import warnings
from pathlib import Path

import numpy as np

from ledgerwood.csv_files import read_csv
from ledgerwood.errors import PrivacyWarning
from ledgerwood.report.audits.inputs import claim_words
from ledgerwood.report.audits.pages import model_page
from ledgerwood.report.audits.running import chosen_seed, rests, show_audit, verdict
from ledgerwood.report.audits.shown import ModelReport, curves_of
from ledgerwood.report.models import estimator_of
from ledgerwood.report.options import Mode, Settings, Structure, View
from ledgerwood.report.printing import Fact, least
from ledgerwood.schema import Schema
from ledgerwood.verification.canaries import audit_model


def run_model_audit(
    rows: Path,
    schema: Schema,
    settings: Settings,
    *,
    canaries: int | None,
    trainings: int | None,
    mode: Mode,
    structure: Structure,
    view: View | None,
    alpha: float,
    seed: int | None,
) -> ModelReport:
    """Train on the rows of a CSV file with canaries beside them.

    Args:
        rows, schema, settings: as for `train`.
        canaries, trainings, mode, structure, view, alpha: as in `verification.audit_model`.
        seed: of the audit's coins; the trainings' noise has none.

    Raises:
        SchemaError: file and schema do not fit.
        PrivacyError: as in `audit_model`.
    """
    seed = chosen_seed(seed)
    estimator = estimator_of(settings, schema, verbose=False)
    X, y = read_csv(rows, schema, with_target=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # what it says is shown with the result
        found = audit_model(
            estimator,
            X,
            y,
            canaries=canaries,
            trainings=trainings,
            mode=mode,
            structure=structure,
            view=view,
            alpha=alpha,
            rng=np.random.default_rng(seed),
        )
    curves = curves_of(
        found.claim, epsilon=found.epsilon_lower, delta=found.delta, alpha=alpha, scores=found.scores,
        independent=not found.shared,
    )  # fmt: skip
    return ModelReport(claim=claim_words(found.claim), seed=seed, audit=found, curves=curves)


def show_model(report: ModelReport, *, html: Path | None, as_json: bool) -> None:
    """Print what an audit of a training found, and write its page."""
    found = report.audit
    facts: dict[str, Fact] = {
        "estimator": found.audited,
        "verdict": verdict("claimed epsilon", found.bounds, found.price, rejected=found.rejected),
        "epsilon at least": f"{least(found.epsilon_lower)}{rests(found.assumption)}",
        "claimed epsilon": found.price,
        "delta": found.delta,
        "alpha": found.alpha,
        "a perfect attack would show": least(found.epsilon_detectable),
        "largest possible bound": least(found.epsilon_ceiling),
        "canaries": found.canaries * found.trainings,
        "canaries for a tighter answer": found.needed,
        "seed": report.seed,
        "seconds": found.seconds,
    }
    facts |= {f"warning {place}": words for place, words in enumerate(found.weaknesses, 1)}
    facts |= {f"note {place}": words for place, words in enumerate(found.notes, 1)}
    show_audit("audit of a training", facts, found.bounds, model_page(report), html=html, as_json=as_json)
