"""The parts of a model card that follow from the model: its privacy, its plan, its features and its limits."""

import dataclasses
import math
import shlex
from collections.abc import Mapping
from typing import Any

from sklearn.base import is_regressor

import ledgerwood
from ledgerwood.accounting.adjacency import Adjacency, PrivacyUnit
from ledgerwood.accounting.ledger import CheckpointEntry, DrawEntry, GrantEntry, LedgerAbout
from ledgerwood.accounting.risk import in_words
from ledgerwood.curator import Categorical, Date, Feature, Numeric
from ledgerwood.pages.html import HtmlTable, Section, Tone
from ledgerwood.pages.values import plain
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.plan import AbstractPlan
from ledgerwood.trainers.base.privacy import BOUGHT, DECLARED, PARTLY_BOUGHT, PrivacyStatement
from ledgerwood.trainers.base.trainer import AbstractTrainer

_MOST_CATEGORIES, _MOST_FEATURES = 12, 100
"""How many categories of a feature, and how many features, a card lists."""
ADJACENCY_WORDS: Mapping[Adjacency, str] = {
    Adjacency.ADD_REMOVE: "one {unit} more or less; the number of {unit}s is private",
    Adjacency.ZERO_OUT: "one {unit} replaced by one that contributes nothing",
    Adjacency.REPLACE_ONE: "one {unit} replaced by another; the number of {unit}s is public",
}
_SEEDED = (
    "The model was trained with a seed. Whoever knows the seed can compute the noise and take it away, so that epsilon "
    "is infinite: do not release this model as private."
)
_UNBOUNDED = "The stated epsilon is infinite and bounds nothing: do not release this model as private."
_FIELDS = {"classes": "forests"}  # fields of a plan whose names say something else to a reader of the card


def verdict(privacy: PrivacyStatement) -> tuple[Tone, str, str]:
    """The colour, the few words and the sentences that a card begins with."""
    words = risk_words(privacy)
    if not math.isfinite(privacy.epsilon):
        why = _SEEDED if privacy.randomness == "test" else _UNBOUNDED
        return "bad", "No privacy guarantee", f"{why} {words}"
    named = f"epsilon {plain(privacy.epsilon)}, delta {plain(privacy.delta)}, {privacy.adjacency.value}"
    if not privacy.certified:
        why = "This epsilon is an estimate of the privacy cost, and no proven upper bound."
        return "open", f"Differentially private by an uncertified bound: {named}", f"{why} {words}"
    return "good", f"Differentially private: {named}", words


def privacy_line(privacy: PrivacyStatement) -> str:
    """The statement in one line, as other forms of a model begin with."""
    if privacy.randomness == "test":
        return (
            "privacy: no guarantee, epsilon inf: trained with a seed, and whoever knows it can take the noise away; do "
            "not release this model as private"
        )
    if not math.isfinite(privacy.epsilon):
        return "privacy: no guarantee, epsilon inf"
    bound = "" if is_certified(privacy) else "; an estimate, and no proven bound"
    return (
        f"privacy: epsilon {plain(privacy.epsilon)}, delta {plain(privacy.delta)}, {privacy.adjacency.value}, "
        f"unit {privacy.unit.value}{bound}"
    )


def is_certified(privacy: PrivacyStatement) -> bool:
    """Whether the stated epsilon is a proven bound; an infinite one bounds nothing."""
    return privacy.certified and math.isfinite(privacy.epsilon)


def risk_words(privacy: PrivacyStatement) -> str:
    """What the guarantee leaves to an attacker."""
    said = in_words(privacy.epsilon, privacy.delta, adjacency=privacy.adjacency, unit=privacy.unit)
    return said[:1].upper() + said[1:]


def details_section(model: AbstractTrainer, texts: tuple[str, ...], more: tuple[tuple[str, str], ...]) -> Section:
    """The section "Model Details": what it is, in words and figures."""
    target = model.schema_.target
    facts = (
        ("Model type", _type_of(model)),
        ("Target", "" if target is None else _described(target)),
        *more,
        ("Library", f"ledgerwood {ledgerwood.__version__}"),
    )
    return Section(title="Model Details", texts=texts, facts=facts)


def _type_of(model: AbstractTrainer) -> str:
    name = type(model).__name__
    if not isinstance(model, AbstractTreeEstimator):
        return name
    trees = len(model.ensemble_.trees)
    depth = max((tree.structure.depth for tree in model.ensemble_.trees), default=0)
    return f"{name}: {trees} {'tree' if trees == 1 else 'trees'} of depth {depth}"


def limits_section(model: AbstractTrainer, texts: tuple[str, ...]) -> Section:
    """The section "Bias, Risks, and Limitations"."""
    privacy = model.privacy_
    unit = privacy.unit.value
    learned = f"The guarantee is about single {unit}s. What many {unit}s have in common can be learned from the model."
    rare = (
        "Noise and clipping cost accuracy, and they cost rare groups and rare values more than common ones "
        "(Bagdasaryan, Poursaeed and Shmatikov 2019). Compare errors by group before decisions about people depend on "
        "the model."
    )
    noise = "A single leaf, a small importance or a small difference between predictions may be noise."
    outside = (
        'Values outside a declared range are read as its ends, and categories that are not listed as one, "other".'
    )
    points = (risk_words(privacy), learned, rare, noise, outside)
    return Section(title="Bias, Risks, and Limitations", texts=texts, points=points)


def start_section(model: AbstractTrainer, path: str) -> Section:
    """The section "How to Get Started with the Model": code that loads and predicts."""
    kind = type(model)
    home = "ledgerwood.trainers" if kind.__module__.startswith("ledgerwood.") else kind.__module__
    lines = [
        f"from {home} import {kind.__name__}",
        "",
        f"model = {kind.__name__}.load({path!r})",
        "model.predict(X)    # a data frame or an array with the columns below",
        *([] if is_regressor(model) else ["model.predict_proba(X)"]),
        "print(model.privacy_)",
    ]
    return Section(title="How to Get Started with the Model", code=("\n".join(lines),))


def data_section(model: AbstractTrainer, texts: tuple[str, ...]) -> Section:
    """The part "Training Data": the public schema, and nothing that was read off the rows."""
    schema = model.schema_.resolved(model.n_features_in_)
    source = "was declared as public"
    if BOUGHT in model.privacy_.assumptions:
        source = "was estimated privately, within the stated epsilon and delta"
    elif PARTLY_BOUGHT in model.privacy_.assumptions:
        source = "was declared as public in part; the rest was estimated privately, within the stated epsilon and delta"
    text = f"The card says nothing of the rows but the schema, which {source}. Their number is not stated."
    shown, more = schema.features[:_MOST_FEATURES], len(schema.features) - _MOST_FEATURES
    table = HtmlTable(
        header=("feature", "range or categories", "may be missing"),
        rows=tuple((each.name, _values(each), "yes" if each.missing else "no") for each in shown),
    )
    rest = (f"Features that are not listed: {more}, of {len(schema.features)}.",) if more > 0 else ()
    return Section(title="Training Data", level=3, texts=(*texts, text, *rest), tables=(table,))


def privacy_section(privacy: PrivacyStatement) -> Section:
    """The part "Privacy": the whole statement."""
    facts = (
        ("epsilon", plain(privacy.epsilon)),
        ("delta", plain(privacy.delta)),
        ("neighbouring data sets", f"{privacy.adjacency.value}: {_neighbours(privacy.adjacency, privacy.unit)}"),
        ("privacy unit", privacy.unit.value),
        ("accounting method", privacy.method),
        ("certified upper bound", "yes" if is_certified(privacy) else "no"),
        (
            "randomness",
            "secure" if privacy.randomness == "secure" else "test: noise from a seed, which protects no one",
        ),
    )
    text = "What must hold outside the library, and what the guarantee does not cover:"
    ordered = sorted(privacy.assumptions, key=lambda each: each not in (DECLARED, BOUGHT, PARTLY_BOUGHT))
    return Section(title="Privacy", level=3, texts=(text,), points=tuple(ordered), facts=facts)


def ledger_section(model: AbstractTrainer, path: str) -> Section:
    """The part "Ledger": where the cost is recorded, and how a stranger recomputes it."""
    record = model.ledger_
    first, trusted = record.entries[0], record.trusted
    grants = sum(isinstance(entry, GrantEntry) for entry in record.entries)
    draws = sum(isinstance(entry, DrawEntry) for entry in record.entries)
    if isinstance(first, CheckpointEntry):
        grants, draws = grants + first.spent.grants, draws + first.draws
    limit = record.terms.budget
    facts = (
        ("head", record.head),
        ("grants, draws", f"{grants}, {draws}"),
        ("budget of the ledger", f"epsilon {plain(limit.epsilon)}, delta {plain(limit.delta)}"),
        ("data set", "not named" if record.terms.dataset is None else record.terms.dataset),
        *_about(record.terms.about),
    )
    text = (
        "Each cost is an entry of a hash chain that lies beside the model. This command recomputes all of them by a "
        "second implementation, and compares the head:"
    )
    if trusted:
        text = (
            f"Each cost is an entry of a hash chain. The part that lies beside the model begins with a checkpoint: the "
            f"{trusted:,} entries before it are not there, and what they spent is trusted to whoever wrote the "
            "checkpoint. This command recomputes the costs of the entries after it by a second implementation, and "
            'compares the head; its verdict is "trusted" at best:'
        )
    place = shlex.quote(f"{path.rstrip('/')}/ledger.jsonl")
    command = f"ledgerwood ledger verify {place} --head {shlex.quote(record.head)}"
    return Section(title="Ledger", level=3, texts=(text,), facts=facts, code=(command,))


def _about(about: LedgerAbout | None) -> tuple[tuple[str, str], ...]:
    """Who answers for the ledger, and for what, where it says so."""
    if about is None:
        return ()
    said = (("owner", about.owner), ("purpose of the ledger", about.description), ("opened", about.opened))
    return tuple((name, value) for name, value in said if value is not None)


def plan_section(model: AbstractTrainer, candidates: int | None) -> Section:
    """The part "Training Procedure": what was fixed before any row was read.

    Args:
        model: the card's.
        candidates: of the private search that chose it; None if there was none.
    """
    facts = tuple((_FIELDS.get(name, name), value) for name, value in plan_facts(model.plan_).items())
    text = "All of it was fixed, and its cost computed, before a row was read."
    if candidates is not None:
        text = (
            f"Chosen by a private search among {candidates} candidates, all of whose runs and scores are within the "
            "stated epsilon and delta. The plan of the run that was kept:"
        )
    return Section(title="Training Procedure", level=3, texts=(text,), facts=facts)


def plan_facts(plan: Any) -> dict[str, str]:
    """The single values among a plan's fields, and what it derives from them, by name."""
    if not dataclasses.is_dataclass(plan):
        return {}
    values = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}
    if isinstance(plan, AbstractPlan):
        values |= plan.derived
    return {name: plain(value) for name, value in values.items() if isinstance(value, str | bool | int | float)}


def citation_section(texts: tuple[str, ...]) -> Section:
    """The section "Citation"."""
    entry = (
        "@software{ledgerwood,\n  title = {ledgerwood},\n  author = {The ledgerwood maintainers},\n"
        f"  version = {{{ledgerwood.__version__}}},\n}}"
    )
    more = "Cite the paper of the system as well: its documentation names it."
    return Section(title="Citation", texts=(*texts, more), code=(entry,))


def glossary_section() -> Section:
    """The section "Glossary": the words of the privacy statement."""
    return Section(
        title="Glossary",
        points=(
            (
                "epsilon, delta: the probability of any outcome of the training is at most e^epsilon times its "
                "probability on a neighbouring data set, plus delta; smaller is more private."
            ),
            "neighbouring data sets: those that must be hard to tell apart; they differ in one privacy unit.",
            "ledger head: the hash of the last entry of the ledger, which covers all entries before it.",
        ),
    )


def _neighbours(adjacency: Adjacency, unit: PrivacyUnit) -> str:
    return ADJACENCY_WORDS[adjacency].format(unit=unit.value)


def _described(feature: Feature) -> str:
    return f"{feature.name}: {_values(feature)}"


def _values(feature: Feature) -> str:
    match feature:
        case Numeric():
            return f"{plain(feature.low)} to {plain(feature.high)}"
        case Date():
            return f"{feature.first} to {feature.last}"
        case Categorical():
            shown = ", ".join(map(str, feature.categories[:_MOST_CATEGORIES]))
            more = len(feature.categories) - _MOST_CATEGORIES
            return f"{shown}, and {more} more" if more > 0 else shown
