"""The contents of audit pages: sentences, facts and figures for a mechanism, a model or a ledger."""

import math
from collections.abc import Sequence

from ledgerwood import __version__
from ledgerwood.pages.html import Figure, Page, Section, Tone
from ledgerwood.pages.values import least, plain
from ledgerwood.report.audits import figures
from ledgerwood.report.audits.shown import Curves, MechanismReport, ModelReport
from ledgerwood.report.ledgers import audits as ledger_figures
from ledgerwood.report.ledgers.audits import Backing, LedgerAudit
from ledgerwood.verification import LedgerReport
from ledgerwood.verification.auditing import Assumption, LowerBound
from ledgerwood.verification.figures import beside

_OWNER = (
    "For the data owner only: an audit's findings are not private. Privacy costs are rounded up, lower bounds down."
)
_LONGEST = 600
"""Characters of a claim that are shown."""
_LOOKED_AT = {
    "releases": "released values",
    "predictions": "predictions",
    "fitted": "the fitted model's values, by released=",
}
_NO_ROWS = "This audit is of a {}, not of single rows, so there are no individual budgets to show."


def mechanism_page(report: MechanismReport) -> Page:
    """The page of an audited mechanism."""
    audit = report.audit
    found, claimed = beside(audit.epsilon_lower, audit.claimed_epsilon)
    delta, beyond = plain(audit.delta), _beyond(audit.bounds, audit.claimed_epsilon, rejected=audit.rejected)
    if audit.rejected:
        verdict = "The claim is refuted"
        sentence = f"If the claim were true, this result would have probability {plain(audit.alpha)} at most."
    else:
        verdict = "Not refuted, but a bound is above the claim" if beyond else "Nothing was found against the claim"
        sentence = "This does not prove privacy: other events, or more draws, may show more."
        if audit.notes:
            sentence += " Something was left out, or could not be tested: see the notes."
    return Page(
        kind="Audit of a mechanism",
        title=report.name,
        tone="bad" if audit.rejected else "open" if beyond else "good",
        verdict=verdict,
        sentence=f"{sentence} Tested: {audit.test}.{beyond}",
        facts=(
            (f"found at delta {delta}", f"epsilon \N{GREATER-THAN OR EQUAL TO} {found}"),
            (
                f"claimed at delta {delta}",
                f"epsilon {claimed}" if math.isfinite(audit.claimed_epsilon) else "no epsilon",
            ),
            ("error probability of each statement", plain(audit.alpha)),
            ("outputs drawn", f"{audit.samples:,}"),
        ),
        sections=(
            _bounds_section(
                figures.bounds_figure(audit.bounds, audit.claimed_epsilon, "claimed"), audit.assumption, audit.alpha
            ),
            *_curve_sections(
                report.curves,
                audit.alpha,
                "Scores of outputs",
                ("on the data set the event speaks for", "on the other one"),
            ),
            Section(
                title="How it was done",
                facts=(
                    ("claim", _start(report.claim)),
                    ("pair of neighbours", report.pair),
                    ("event", audit.event),
                    ("the event speaks for", f"the {audit.direction} data set"),
                    ("tested", "values" if audit.numeric == "ideal" else "values and their bits"),
                    ("least draws that could refute it", "-" if audit.needed is None else f"{audit.needed:,}"),
                    ("seed", str(report.seed)),
                    ("seconds", f"{audit.seconds:.1f}"),
                ),
            ),
            *([Section(title="Notes", texts=audit.notes)] if audit.notes else []),
            Section(title="Individual budgets", texts=(_NO_ROWS.format("mechanism"),)),
        ),
        footer=_footer(),
        record=report.to_record(),
    )


def model_page(report: ModelReport) -> Page:
    """The page of an audited trainer."""
    audit = report.audit
    delta, beyond = plain(audit.delta), _beyond(audit.bounds, audit.price, rejected=audit.rejected)
    if audit.rejected:
        verdict = "The claimed epsilon is refuted"
        sentence = f"If the claimed epsilon were true, this result would have probability {plain(audit.alpha)} at most."
    else:
        verdict = (
            "Not refuted, but a bound is above the claimed epsilon"
            if beyond
            else "This audit had too little power to find anything"
            if audit.weaknesses
            else "Nothing was found against the claimed epsilon"
        )
        weak = "".join(f" {words[:1].upper()}{words[1:]}." for words in audit.weaknesses)
        sentence = f"This does not prove privacy: {audit.power_words}.{weak} " + (
            "" if audit.view == "fitted" else _needed(audit.needed)
        )
    shares = "Canaries may have shared leaves. They are then not independent, and only the bounds from guesses hold."
    return Page(
        kind="Audit of a training",
        title=audit.audited,
        tone="bad" if audit.rejected else "open" if beyond or audit.weaknesses else "good",
        verdict=verdict,
        sentence=sentence + beyond,
        facts=(
            (f"found at delta {delta}", f"epsilon \N{GREATER-THAN OR EQUAL TO} {least(audit.epsilon_lower)}"),
            (f"claimed at delta {delta}", _claimed(audit.price)),
            ("a perfect attack would show", f"about {least(audit.epsilon_detectable)}"),
            ("largest possible bound", least(audit.epsilon_ceiling)),
            ("canaries", f"{audit.canaries:,}" + (f", {audit.trainings:,} times" if audit.trainings > 1 else "")),
        ),
        sections=(
            _bounds_section(figures.bounds_figure(audit.bounds, audit.price, "claimed"), audit.assumption, audit.alpha),
            *_curve_sections(
                report.curves, audit.alpha, "Canary scores", ("canaries that were in", "canaries that were left out")
            ),
            Section(
                title="How it was done",
                texts=(
                    *((shares,) if audit.shared else ()),
                    *(f"{note[:1].upper()}{note[1:]}." for note in audit.notes),
                ),
                facts=(
                    ("claim", _start(report.claim)),
                    ("test of the main bound", audit.statistic),
                    ("error probability of each statement", plain(audit.alpha)),
                    ("attacked", _LOOKED_AT[audit.view]),
                    ("attack", audit.attack or "-"),
                    ("releases in the scores", f"{audit.scored:,} of {audit.releases:,}"),
                    ("random trees", "as drawn" if audit.structure == "own" else "fixed by the audit"),
                    ("structure without data", _structure(report)),
                    ("seed", str(report.seed)),
                    ("seconds", f"{audit.seconds:.1f}"),
                ),
            ),
            Section(title="Individual budgets", texts=(_NO_ROWS.format("training with made-up canaries"),)),
        ),
        footer=_footer(),
        record=report.to_record(),
    )


def ledger_page(audit: LedgerAudit) -> Page:
    """The page of a ledger."""
    report = audit.report
    tone, verdict, sentence = ledger_outcome(report)
    doubts = ledger_figures.doubts(report)
    sections = [
        Section(
            title="Privacy cost of each grant",
            texts=(
                _THREE_WORDS,
                *doubts,
            ),
            tables=(ledger_figures.verdicts_table(report),) if report.verdicts else (),
        )
    ]
    if audit.moments:
        figure = ledger_figures.rounds_figure(audit.moments, report.epsilon_budget, report.trusted)
        sections.append(Section(title="Epsilon over rounds", figures=(figure,)))
    else:
        sections.append(Section(title="Epsilon over rounds", texts=("Nothing was granted yet.",)))
    sections.append(_model_section(audit.backing))
    sections.append(
        Section(title="Individual budgets", texts=(audit.individuals,))
        if isinstance(audit.individuals, str)
        else Section(title="Individual budgets", figures=(ledger_figures.individuals_figure(audit.individuals),))
    )
    sections.append(
        Section(
            title="The ledger",
            facts=(
                ("file or database", audit.place),
                ("data set", report.dataset or "-"),
                ("adjacency", report.adjacency),
                ("one protected unit", report.unit),
                ("filter", report.filter),
                ("randomness", report.randomness),
                ("head", report.head),
            ),
        )
    )
    return Page(
        kind="Audit of a ledger",
        title=report.dataset or audit.place,
        tone=tone,
        verdict=verdict,
        sentence=sentence,
        facts=(
            (f"spent at delta {plain(report.delta_readded)}", f"epsilon {plain(report.epsilon_readded)}"),
            (f"budget at delta {plain(report.delta_budget)}", f"epsilon {plain(report.epsilon_budget)}"),
            ("grants", f"{report.grants:,}"),
            ("draws", f"{report.draws:,}"),
        ),
        sections=tuple(sections),
        footer=_footer(),
        record=audit.to_record(),
    )


_THREE_WORDS = (
    "A second implementation bounded the cost of each plan from both sides. A charge is refuted if it is below the "
    "lower bound, confirmed if it covers the upper bound or both are within 1 % of it, and otherwise unconfirmed."
)


def ledger_outcome(report: LedgerReport) -> tuple[Tone, str, str]:
    """The colour, the few words and the sentence."""
    counts = {word: sum(found.verdict == word for found in report.verdicts) for word in ("refuted", "unconfirmed")}
    if report.verdict == "refuted":
        return (
            "bad",
            "The ledger is refuted",
            f"{counts['refuted']:,} of {report.grants:,} grants cost more than was charged.",
        )
    if report.randomness != "secure":
        return (
            "bad",
            ("The total is correct, but the" if report.verdict == "confirmed" else "The") + " noise protects no one",
            "A draw used reproducible (test) randomness: the ledger guarantees no privacy."
            + (f" {report.trust}." if report.trust else ""),
        )
    if report.verdict == "unconfirmed":
        return (
            "open",
            "The ledger is not confirmed",
            f"{counts['unconfirmed']:,} of {report.grants:,} grants could be neither refuted nor confirmed."
            + (f" {report.trust}." if report.trust else ""),
        )
    if report.verdict == "trusted":
        return "open", "The ledger is confirmed from a checkpoint on, and trusted before it", f"{report.trust}."
    return (
        "good",
        "The ledger is confirmed",
        f"{report.grants:,} grants and {report.draws:,} draws were verified independently, within the budget.",
    )


def _bounds_section(figure: Figure, assumption: Assumption, alpha: float) -> Section:
    rests = (
        "The main bound assumes independent runs only."
        if assumption == "none"
        else f"The main bound has an assumption: {assumption}. Bounds without one are shown too."
    )
    return Section(
        title="How much was found",
        texts=(f"Each bound holds with confidence {1.0 - alpha:.6g} separately. {rests}",),
        figures=(figure,),
    )


def _curve_sections(curves: Curves, alpha: float, caption: str, names: tuple[str, str]) -> list[Section]:
    trade_off = figures.trade_off_figure(curves, alpha)
    drawn = [trade_off] if trade_off is not None else []
    if curves.roc is not None:
        drawn.append(figures.roc_figure(curves.roc))
    if curves.histograms is not None:
        drawn.append(figures.scores_figure(curves.histograms, caption, names))
    texts = tuple(f"Not shown, {name}: {why}" for name, why in curves.absent)
    return [Section(title="What an attacker sees", texts=texts, figures=tuple(drawn))]


def _model_section(backing: Backing | None) -> Section:
    if backing is None:
        return Section(
            title="The model", texts=("No model was named (--model), so none was compared with this ledger.",)
        )
    statement = backing.statement
    after = "It is the last entry." if not backing.later else f"{backing.later:,} entries follow it: later spends."
    closes = f"The privacy statement of the model in {backing.folder!r} ends with entry {backing.entry} of this ledger."
    return Section(
        title="The model",
        texts=(f"{closes} {after}",),
        facts=(
            ("estimator", backing.estimator),
            ("epsilon stated", plain(statement.epsilon)),
            ("delta stated", plain(statement.delta)),
            ("adjacency", statement.adjacency.value),
            ("method", statement.method),
            ("certified", plain(statement.certified)),
            ("assumptions", "; ".join(statement.assumptions) or "none"),
            ("ledger head", statement.ledger_head),
        ),
    )


def _claimed(epsilon: float) -> str:
    return f"epsilon {plain(epsilon)}" if math.isfinite(epsilon) else "no epsilon"


def _beyond(bounds: Sequence[LowerBound], promised: float, *, rejected: bool) -> str:
    """A warning where a bound is above the promise, and the test of the promise did not refute it."""
    high = [bound for bound in bounds if bound.value > promised]
    if rejected or not high:
        return ""
    rests = sorted({"by itself" if bound.assumption == "none" else f"assuming {bound.assumption}" for bound in high})
    return (
        f" But a bound below is above the claim ({', '.join(rests)}). Each bound is wrong with probability "
        f"{plain(high[0].alpha)}: audit again, with more samples and a smaller alpha."
    )


def _start(text: str) -> str:
    """The beginning of a text that may be very long; the page's JSON has all of it."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\N{HORIZONTAL ELLIPSIS}"


def _needed(canaries: int | None) -> str:
    if canaries is None:
        return "No number of canaries would bring the bound near the claimed epsilon by this statistic."
    return f"{canaries:,} canaries would bring it near the claimed epsilon."


def _structure(report: ModelReport) -> str:
    check = report.audit.structure_check
    if check is None:
        return "not asked for, or nothing is drawn at random"
    if check.independent:
        return f"{check.trees:,} trees are the same, bit for bit, for all tested rows"
    return f"differs: {check.difference}"


def _footer() -> str:
    return f"{_OWNER} Made by ledgerwood {__version__}."
