"""What may find a bug in a trainer: its own refusals, the ledger, record and replay, the noise's law, an audit."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.bug_injections import Bug, instead, patched
from benchmarks.bug_systems import SEED, System
from ledgerwood.accounting.pricing import Price
from ledgerwood.curator.rounds import CuratorRound
from ledgerwood.curator.tables.trees import Table
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import PrivacyError
from ledgerwood.mechanisms import EllipticalGaussianMechanism, GaussianMechanism, LaplaceMechanism
from ledgerwood.verification.auditing import ClaimedCurve, hockey_stick, randomised_labels
from ledgerwood.verification.ledgers.verifying import verify_ledger
from ledgerwood.verification.noise.law import check_fit_noise
from ledgerwood.verification.replaying.replaying import replay
from ledgerwood.verification.sensitivity.domains import removed
from ledgerwood.verification.testing.kit_neighbours import FEW

ALPHA = 1e-3
DETECTORS = ("refusal", "ledger", "replay", "noise law", "independence", "audit")


Finding = tuple[bool, str]
"""Whether the bug is found, and what was said."""


def detect(bug: Bug, system: System, audit_runs: int, detectors: tuple[str, ...] = DETECTORS) -> dict[str, Finding]:
    """What each detector says; only the refusal, where there is no model to look at.

    Args:
        bug, system: what is injected, and where.
        audit_runs: fits of an audit, with and without the canary together.
        detectors: which of them.
    """
    with bug.active(system), remembered(system):
        refused = refusal(system)
        found = {"refusal": refused}
        if not refused[0]:
            for name in detectors:
                if name != "refusal":
                    found[name] = _DETECT[name](system, audit_runs)
    return {name: found[name] for name in detectors if name in found}


@contextmanager
def remembered(system: System) -> Iterator[None]:
    """Plans follow from parameters and schema alone, and prices from events: each is worked out once a bug."""
    plan = _once(
        system.kind.make_plan,
        lambda model, schema: (repr(model.get_params(deep=False) | {"random_state": 0}), repr(schema)),
    )
    quote = _once(Price.quote, lambda price, delta: (price.event, price.method, delta))
    owner = next(kind for kind in system.kind.__mro__ if "make_plan" in vars(kind))
    with patched((owner, "make_plan", instead(plan)), (Price, "quote", instead(quote))):
        yield


def _once(function: Callable[..., Any], key_of: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[Any, Any] = {}

    @functools.wraps(function)
    def remembering(*arguments: Any) -> Any:
        key = key_of(*arguments)
        if key not in known:
            known[key] = function(*arguments)
        return known[key]

    return remembering


def _fit(system: System, data: Any, **changes: Any) -> Any:
    return system.kind(**{**system.parameters, **changes}).fit(*data)


def refusal(system: System) -> Finding:
    """The library's own refusal: a draw that the grant does not hold, a release that its round does not."""
    try:
        _fit(system, system.rows())
    except PrivacyError as error:
        return True, f"{type(error).__name__}: {error}"
    return False, ""


def ledger(system: System, _: int) -> Finding:
    """Verify the ledger by other code, and compare it with the model's privacy statement."""
    model = _fit(system, system.rows())
    try:
        report = verify_ledger(model.ledger_)
        model.privacy_.require_backing(model.plan_.event, model.ledger_)
    except PrivacyError as error:
        return True, f"{type(error).__name__}: {error}"
    return False, f"recomputed epsilon {report.epsilon_readded:.4g}"


def replayed(system: System, _: int) -> Finding:
    """Record and replay over the neighbours, with the changed row in every sample and in each of two groups."""
    data = system.rows()
    for name, neighbour in system.neighbours(data).items():
        for group in (0, 1) if system.name == "DPBoost" else (0,):
            try:
                found = replay(lambda rows: _fit(system, rows), data, neighbour, group=group)
            except PrivacyError as error:
                return True, f"{name}: {type(error).__name__}: {error}"
            if not found.ok:
                return True, f"{name}: {found.violations[0]}"
    X, y = system.rows()
    y = y[np.random.default_rng(SEED).permutation(len(y))]
    # Of few rows, with labels at random, one changes what is best, which among many it seldom does.
    for n in range(FEW, 0, -1):
        found = replay(lambda rows: _fit(system, rows), (X[:n], y[:n]), removed((X[:n], y[:n]), n - 1))
        if not found.ok:
            return True, f"the last of {n} rows: {found.violations[0]}"
    return False, "nothing found"


def noise_law(system: System, _: int) -> Finding:
    """All noise and all choices of some fits against what their mechanisms state."""
    seeds = itertools.count(SEED + 1)
    found = check_fit_noise(
        lambda: _fit(system, system.rows(), random_state=next(seeds)), fits=system.noise_fits, alpha=ALPHA
    )
    name, p = min(found.p_values, key=lambda pair: pair[1])
    return found.rejected, f"{name}, p {p:.2g}, {found.draws} draws"


def independence(system: System, _: int) -> Finding:
    """Ledger, plan, statement, schema and shapes of a model, and trees that are public, on neighbouring rows."""
    data = system.rows()
    first = _public(_fit(system, data), system)
    for name, neighbour in system.neighbours(data).items():
        second = _public(_fit(system, neighbour.data), system)
        for part, value in first.items():
            if value != second[part]:
                return True, f"{name}: another {part}"
    return False, "nothing found"


def _public(model: Any, system: System) -> dict[str, Any]:
    forests = [model.ensemble_] if isinstance(model.ensemble_, Ensemble) else list(model.ensemble_)
    found = {
        "ledger": tuple(model.ledger_.lines),
        "plan": model.plan_,
        "statement": dataclasses.replace(model.privacy_, ledger_head=""),
        "schema": repr(model.schema_),
        "shape": [tree.values.shape for forest in forests for tree in forest.trees],
        "parameters": repr(model.get_params(deep=False)),
    }
    if system.name == "S-GBDT":
        found["trees"] = [
            tuple(array.tobytes() for array in (tree.structure.feature, tree.structure.split, tree.structure.equals))
            for forest in forests
            for tree in forest.trees
        ]
    return found


# ---------------------------------------------------------------------------------------------------------------- audit


def audit(system: System, audit_runs: int) -> Finding:
    """One tree with a single release, fitted with a canary or without it by a fair coin; one event, fixed beforehand.

    The score adds up, over the leaves' sums, how far the release lies towards the one with the canary, in units of the
    stated noise; its middle is the event. Held against the whole claimed curve at epsilon 0, or, of labels, at delta 0.
    """
    data, canary = _backgrounds(system)
    coins = np.random.default_rng(SEED).integers(0, 2, audit_runs * system.audit_factor)
    labels = system.chooses
    tower = _Tower(system, data, canary)
    hits, model = [], None
    with patched((CuratorRound, "release", tower.reading)):
        for run, coin in enumerate(coins.tolist()):
            tower.score = 0.0
            try:
                model = _fit(system, canary if coin else data, **system.audited, random_state=SEED + 7 + run)
            except PrivacyError as error:
                return False, f"no audit, since a fit is refused: {type(error).__name__}: {error}"
            hits.append(model.predict(canary[0][-1:])[0] == "no" if labels else tower.score > 0.0)
    assert model is not None
    event, inside, with_canary = model.plan_.event, np.array(hits), coins == 1
    if labels:
        alone, beside = int((inside & ~with_canary).sum()), int((inside & with_canary).sum())
        found = randomised_labels(alone, beside, len(coins), delta=0.0, alpha=ALPHA)
        allowed = ClaimedCurve(event).epsilon(0.0)
        return found > allowed, f"epsilon >= {found:.3g} of {allowed:.3g} claimed, {len(coins)} fits"
    correct = int((inside == with_canary).sum())
    found = hockey_stick(correct, len(coins), epsilon=0.0, alpha=ALPHA)
    allowed = ClaimedCurve(event).delta(0.0)
    return found > allowed, f"delta(0) >= {found:.3g} of {allowed:.3g} claimed, {len(coins)} fits"


def _backgrounds(system: System) -> tuple[Any, Any]:
    """Rows, and the same with a canary in the last place: a row that moves what is released by all that it may."""
    corner = np.array([[0.5, 0.5]])
    if system.chooses:  # two classes tie
        X, y, label = np.repeat(corner, 8, axis=0), np.array(["no", "yes"] * 4, dtype=object), "yes"
    elif system.audited.get("leaf_release") == "ratio":  # from the one end, alone, to the middle
        X, y, label = corner, np.zeros(1), 1.0
    else:
        (X, y), label = system.rows(), "maybe" if system.name == "federated" else 1.0
    return (X, y), (np.vstack([X, corner]), np.concatenate([y, np.array([label], dtype=y.dtype)]))


class _Tower:
    """Looks at releases: how far they lie towards those with the canary, in units of the stated noise."""

    def __init__(self, system: System, data: Any, canary: Any) -> None:
        loss: Any = "logistic" if system.name == "federated" else "squared"
        self._tables = [
            Table.from_data(*rows, system.schema, loss=loss, bins=system.parameters["max_bins"])
            for rows in (data, canary)
        ]
        self.score = 0.0

    def reading(self, original: Any) -> Any:
        """Around `CuratorRound.release`."""

        def release(round_: Any, query: Any, mechanism: Any, *, purpose: str) -> Any:
            released = original(round_, query, mechanism, purpose=purpose)
            without, beside = (
                released.grid.to_real(table.statistic(query, np.empty(0, dtype=np.bool_))) for table in self._tables
            )
            self.score += _toward(mechanism, released.grid.to_real(released.value) - without, beside - without)
            return released

        return release


def _toward(mechanism: Any, away: Any, shift: Any) -> float:
    """The log-likelihood ratio of the canary being in, by the stated noise; its middle is 0 by symmetry."""
    match mechanism:
        case LaplaceMechanism(scales=scales):
            b = np.array(scales)
            return float(((np.abs(away) - np.abs(away - shift)) / b).sum())
        case GaussianMechanism(stddev=stddev):
            stddevs: Any = stddev
        case EllipticalGaussianMechanism(stddevs=stddevs):
            stddevs = np.array(stddevs)
        case _:
            raise TypeError(f"noise that is not known here: {mechanism!r}")
    return float((shift * (away - shift / 2.0) / np.square(stddevs)).sum())


_DETECT: dict[str, Callable[[System, int], Finding]] = {
    "ledger": ledger,
    "replay": replayed,
    "noise law": noise_law,
    "independence": independence,
    "audit": audit,
}
