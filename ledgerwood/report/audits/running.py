"""`ledgerwood audit mechanism`, `audit ledger` and `audit model`: the run, and its tables, JSON or page.

An audit of a model needs the extra `trainers`, as training does.
"""

import secrets
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledgerwood.csv_files import read_csv
from ledgerwood.errors import PrivacyWarning
from ledgerwood.pages.html import Page, write
from ledgerwood.pages.values import least, plain
from ledgerwood.report.audits.inputs import Sampler, claim_words, named
from ledgerwood.report.audits.pages import ledger_page, mechanism_page, model_page
from ledgerwood.report.audits.shown import MechanismReport, ModelReport, curves_of
from ledgerwood.report.ledgers import audits as ledger_figures
from ledgerwood.report.ledgers.audits import LedgerAudit
from ledgerwood.report.models import estimator_of
from ledgerwood.report.options import Mode, Numeric, Structure, View
from ledgerwood.report.printing import Fact, print_json, show
from ledgerwood.report.progress import working
from ledgerwood.report.settings import Settings
from ledgerwood.schema import Schema
from ledgerwood.verification.auditing import Claim, LowerBound
from ledgerwood.verification.black_box import audit
from ledgerwood.verification.canaries import audit_model
from ledgerwood.verification.figures import beside

_SEED_BITS = 48  # a whole number that every reader of JSON keeps
_SEARCHED = "found by search among vectors of answers, each of which one row is said to change by 1 at most"


def run_mechanism_audit(
    name: str,
    sampler: Sampler,
    pair: tuple[Any, Any] | None,
    claim: Claim,
    *,
    n: int,
    alpha: float,
    numeric: Numeric,
    delta: float | None,
    seed: int | None,
    max_draws: int | None = None,
    seconds: float | None = None,
) -> MechanismReport:
    """Audit a mechanism; arguments and errors as in `verification.audit`, and the seed of its generator."""
    seed = chosen_seed(seed)
    with working("drawing outputs and testing them"):
        found = audit(
            sampler,
            pair,
            claim=claim,
            n=n,
            alpha=alpha,
            numeric=numeric,
            delta=delta,
            rng=np.random.default_rng(seed),
            max_draws=max_draws,
            seconds=seconds,
        )
    curves = curves_of(claim, epsilon=found.epsilon_lower, delta=found.delta, alpha=alpha, scores=found.scores)
    return MechanismReport(
        name=_own_name(name),
        claim=claim_words(claim),
        pair=_SEARCHED if pair is None else "as it was given",
        seed=seed,
        audit=found,
        curves=curves,
    )


def show_mechanism(report: MechanismReport, *, html: Path | None, as_json: bool) -> None:
    """Print what an audit found, and write its page."""
    found = report.audit
    facts: dict[str, Fact] = {
        "mechanism": report.name,
        "verdict": verdict("claim", found.bounds, found.claimed_epsilon, rejected=found.rejected),
        "epsilon at least": f"{beside(found.epsilon_lower, found.claimed_epsilon)[0]}{rests(found.assumption)}",
        "claimed epsilon": beside(found.epsilon_lower, found.claimed_epsilon)[1],
        "delta": found.delta,
        "alpha": found.alpha,
        "test": found.test,
        "event": found.event,
        "outputs drawn": found.samples,
        "seed": report.seed,
        "seconds": found.seconds,
    }
    if found.notes:
        facts["notes"] = "; ".join(found.notes)
    show_audit("audit of a mechanism", facts, found.bounds, mechanism_page(report), html=html, as_json=as_json)


def verdict(words: str, bounds: Sequence[LowerBound], promised: float, *, rejected: bool) -> str:
    """An audit's verdict on a claim: refuted by its one test or not, and whether a lower bound is above it."""
    if rejected:
        return f"the {words} is refuted"
    if any(bound.value > promised for bound in bounds):
        return f"not refuted, but a bound is above the {words}: audit again, with more samples and a smaller alpha"
    return f"nothing found against the {words}"


def show_ledger_audit(found: LedgerAudit, *, html: Path | None, as_json: bool) -> None:
    """Print what an audit of a ledger found, and write its page."""
    report = found.report
    facts: dict[str, Fact] = {
        "ledger": found.place,
        "dataset": report.dataset,
        "verdict": report.verdict,
        "trust": report.trust or None,
        "not confirmed": "\n".join(ledger_figures.doubts(report)) or None,
        "epsilon recomputed": report.epsilon_readded,
        "delta": report.delta_readded,
        "budget": f"epsilon {plain(report.epsilon_budget)}, delta {plain(report.delta_budget)}",
        "adjacency": report.adjacency,
        "filter": report.filter,
        "grants": report.grants,
        "draws": report.draws,
        "randomness": report.randomness,
        "head": report.head,
    }
    if found.backing is not None:
        facts |= {
            "model": found.backing.folder,
            "model's epsilon": found.backing.statement.epsilon,
            "model's entry": found.backing.entry,
            "entries after it": found.backing.later,
        }
    show_audit("audit of a ledger", facts, (), ledger_page(found), html=html, as_json=as_json)


def show_audit(
    title: str,
    facts: Mapping[str, Fact],
    bounds: Sequence[LowerBound],
    page: Page,
    *,
    html: Path | None,
    as_json: bool,
) -> None:
    """Print the page's record as JSON, or facts and bounds as tables; then write the page, which may fail."""
    if as_json:
        print_json(page.record)
    else:
        show(title, facts, as_json=False)
        if bounds:
            Console().print(_table(bounds))
    if html is not None:
        write(page, html)
        if not as_json:
            Console().print(f"page: {escape(str(html))}", soft_wrap=True)


def _table(bounds: Sequence[LowerBound]) -> Table:
    table = Table(title="lower bounds, each by itself", title_justify="left")
    for column in ("epsilon at least", "at delta", "assumption", "test", "samples"):
        table.add_column(column)
    for bound in bounds:
        table.add_row(
            least(bound.value), plain(bound.delta), bound.assumption, escape(bound.statistic), f"{bound.samples:,}"
        )
    return table


def rests(assumption: str) -> str:
    """Returns the assumption of a bound, to be printed after its number."""
    return "" if assumption == "none" else f", assuming {assumption}"


def _own_name(spec: str) -> str:
    """MODULE:FUNCTION without the folders of its file: pages are passed on."""
    module, name = named(spec)
    return f"{Path(module).name}:{name}"


def chosen_seed(seed: int | None) -> int:
    """The seed, or a fresh one: every audit can be run again."""
    return secrets.randbits(_SEED_BITS) if seed is None else seed


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
        seed: the seed of the audit's coins; the trainings' noise has none.

    Raises:
        SchemaError: file and schema do not fit.
        PrivacyError: as in `audit_model`.
    """
    seed = chosen_seed(seed)
    estimator = estimator_of(settings, schema, verbose=False)
    X, y = read_csv(rows, schema, with_target=True)
    with warnings.catch_warnings(), working("training with canaries, and scoring them"):
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
