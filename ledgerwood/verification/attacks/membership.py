"""Membership inference attacks on trained models. Their results are not bounds on epsilon.

Three attacks from the literature; docs/explanation/membership.md lists the differences from the papers: a threshold on
the loss, the likelihood-ratio attack, and the robust attack. Shadow models are trained on random halves of the same
rows.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ledgerwood import _validate
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import InvalidParameter
from ledgerwood.pages.shown import Told
from ledgerwood.recording.opening import unreleased
from ledgerwood.references import Cited, Reference, auditing
from ledgerwood.verification.attacks.scores import SCORES, Signals, signals_of
from ledgerwood.verification.auditing.counts import binomial_lower, binomial_upper
from ledgerwood.verification.auditing.result import level

Attack = Literal["loss", "lira", "lira offline", "rmia"]
ATTACKS: tuple[Attack, ...] = get_args(Attack)
SOURCES: Mapping[Attack, str] = {
    "loss": "Yeom, Giacomelli, Fredrikson and Jha 2018, a threshold on the loss",
    "lira": "Carlini, Chien, Nasr, Song, Terzis and Tramer 2022, Algorithm 1, online",
    "lira offline": "Carlini, Chien, Nasr, Song, Terzis and Tramer 2022, section IV-C, offline",
    "rmia": "Zarifzadeh, Liu and Shokri 2024, pairwise likelihood ratios",
}
REFERENCES: Mapping[Attack, Reference] = {
    "loss": auditing.YEOM_2018,
    "lira": auditing.CARLINI_2022,
    "lira offline": auditing.CARLINI_2022,
    "rmia": auditing.ZARIFZADEH_2024,
}
LEAST_SHADOWS: Mapping[Attack, int] = {"loss": 0, "lira": 4, "lira offline": 4, "rmia": 2}
"""Two with each row and two without it make a variance; one of each makes a mean."""
RATES = (0.001, 0.01, 0.1)
NOTE = (
    "a description of these attacks on this model, not a bound on epsilon: another attack may read more, and rows that "
    "one model was trained on are not independent"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RateReading:
    """One point of an attack's curve, with Clopper and Pearson's intervals of both rates at that threshold.

    Args:
        asked: the false positive rate that was asked for.
        false_positive_rate: the largest one at or below it that a threshold has among these rows.
        false_positive_low, false_positive_high: its interval.
        true_positive_rate: at that threshold.
        true_positive_low, true_positive_high: its interval.
    """

    asked: float
    false_positive_rate: float
    false_positive_low: float
    false_positive_high: float
    true_positive_rate: float
    true_positive_low: float
    true_positive_high: float


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttackScores:
    """Each row's score; for the owner of the rows only: it says who was a member.

    Args:
        scores: float64 (n_rows,), larger for what looks like a member.
        members: bool (n_rows,).
    """

    scores: FloatArray
    members: NDArray[np.bool_]

    def roc(self) -> tuple[FloatArray, FloatArray]:
        """False and true positive rates of every threshold, rising from (0, 0) to (1, 1)."""
        false, true = _curve(self.scores, self.members)
        return false / false[-1], true / true[-1]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttackReading(Told, Cited):
    """The result of one attack on one model. It is not a bound on epsilon; `note` says why.

    Args:
        attack: its name.
        source: its publication.
        auc: area under the curve, ties counted half; .5 for a guess.
        advantage: the largest true minus false positive rate over all thresholds, chosen after the fact.
        rates: points of the curve.
        members, others: rows that were trained on, and rows that were not.
        shadows: the number of shadow models.
        alpha: probability that an interval does not contain its rate, if the rows were independent.
        seconds: the time, including the training of the shadow models.
        scores: each row's, if they were asked for; for the owner of the rows only.
    """

    attack: Attack
    source: str
    auc: float
    advantage: float
    rates: tuple[RateReading, ...]
    members: int
    others: int
    shadows: int
    alpha: float
    seconds: float
    scores: AttackScores | None = None
    note: ClassVar[str] = NOTE

    def cited(self) -> tuple[object, ...]:
        """The attack's paper, for `ledgerwood.cite`."""
        return (REFERENCES[self.attack],)

    def to_dict(self) -> dict[str, object]:
        """Plain values, the note included; never the rows' scores."""
        return {
            "attack": self.attack, "source": self.source, "note": NOTE, "auc": self.auc, "advantage": self.advantage,
            "rates": [{name: getattr(rate, name) for name in RateReading.__slots__} for rate in self.rates],
            "members": self.members, "others": self.others, "shadows": self.shadows, "alpha": self.alpha,
            "seconds": self.seconds,
        }  # fmt: skip

    def __str__(self) -> str:
        rates = ", ".join(
            f"{rate.true_positive_rate:.3f} [{rate.true_positive_low:.3f}, {rate.true_positive_high:.3f}] at "
            f"{rate.asked:g}"
            for rate in self.rates
        )
        return f"{self.attack}: AUC {self.auc:.3f}, true positive rate {rates}; {NOTE}"


def attack_model(
    model: Any,
    X: Any,
    y: Any,
    members: Any,
    *,
    fit: Callable[[Any, Any], Any] | None = None,
    shadows: int = 32,
    attacks: Sequence[Attack] = ATTACKS,
    classes: Sequence[Any] | None = None,
    rates: Sequence[float] = RATES,
    gamma: float = 2.0,
    alpha: float = 0.05,
    keep_scores: bool = False,
    seed: int = 0,
) -> tuple[AttackReading, ...]:
    """Attack a fitted model with rows whose membership in the training data is known.

    Args:
        model: has `predict_proba` or `predict`; of classes, probabilities are taken where there are any.
        X: rows of both kinds, array (n_rows, n_features).
        y: their labels, (n_rows,).
        members: bool (n_rows,), which of them the model was trained on.
        fit: from (X, y) to a fitted model, as the attacked one was made; called once a shadow model, with a random half
            of the rows. Not needed for "loss".
        shadows: their number; at least 4 for LiRA, 2 for RMIA.
        attacks: which of them.
        classes: the classes of the labels; None if labels are numbers, and a model is judged by its error.
        rates: false positive rates in [0, 1] at which the curve is read.
        gamma: the gamma of RMIA, > 0: how much more likely a row must be than another one.
        alpha: the alpha of each interval of a rate, two-sided.
        keep_scores: whether each row's scores are kept, for the owner of the rows only.
        seed: the seed of the halves.

    Raises:
        InvalidParameter: arrays of other shapes, rows of one kind only, labels outside of `classes`, too few shadows,
            no `fit` where shadows are needed, a model without a prediction, or predictions that are not finite numbers.
    """
    start = time.perf_counter()
    X, y, inside = _checked_rows(X, y, members)
    attacks, alpha = _checked_attacks(attacks), level(alpha)
    asked = tuple(_rate(rate) for rate in _validate.several("rates", rates, "false positive rates"))
    gamma = _validate.positive("gamma", gamma, "likelihood ratio")
    known = None if classes is None else _validate.several("classes", classes, "classes")
    if known is not None:
        _require_classes(y, known)
    needed = max(LEAST_SHADOWS[attack] for attack in attacks)
    count = _validate.count("shadows", shadows, "models", minimum=needed)
    if needed and fit is None:
        raise InvalidParameter(
            f"attacks={attacks!r} need shadow models: give fit=, from (X, y) to a fitted model (unit: model)"
        )
    target = signals_of(model, X, y, known, "the model")
    halves = random_halves(count if needed else 0, len(y), np.random.default_rng(seed))
    trained: list[Signals] = []
    for number, half in enumerate(halves, start=1):
        assert fit is not None  # asked for above
        with unreleased():
            shadow = fit(X[half], y[half])
        trained.append(signals_of(shadow, X, y, known, f"shadow model {number}"))
    shadow = Signals.stacked(trained) if trained else None
    common = time.perf_counter() - start
    readings = []
    for attack in attacks:
        begun = time.perf_counter()
        scores = SCORES[attack](target, shadow, halves, gamma)
        readings.append(
            _reading(
                attack, scores, inside, asked, alpha, shadows=len(halves) if LEAST_SHADOWS[attack] else 0,
                seconds=common + time.perf_counter() - begun, keep=keep_scores,
            )
        )  # fmt: skip
    return tuple(readings)


def random_halves(count: int, rows: int, generator: np.random.Generator) -> NDArray[np.bool_]:
    """bool (count, rows): each row is in half of them, rounded down, which ones at random and by itself."""
    places = np.argsort(generator.random((count, rows)), axis=0)
    return np.asarray(places < count // 2)


def _reading(
    attack: Attack, scores: FloatArray, inside: NDArray[np.bool_], asked: tuple[float, ...], alpha: float, *,
    shadows: int, seconds: float, keep: bool,
) -> AttackReading:  # fmt: skip
    false, true = _curve(scores, inside)
    others, members = int(false[-1]), int(true[-1])
    ranks = stats.rankdata(scores)
    below = float(ranks[inside].sum()) - members * (members + 1) / 2.0
    rates = []
    for rate in asked:
        place = int(np.searchsorted(false, rate * others * (1.0 + 1e-12), side="right")) - 1
        hits, alarms = int(true[place]), int(false[place])
        rates.append(
            RateReading(
                asked=rate,
                false_positive_rate=alarms / others,
                false_positive_low=binomial_lower(alarms, others, alpha / 2.0),
                false_positive_high=binomial_upper(alarms, others, alpha / 2.0),
                true_positive_rate=hits / members,
                true_positive_low=binomial_lower(hits, members, alpha / 2.0),
                true_positive_high=binomial_upper(hits, members, alpha / 2.0),
            )
        )
    return AttackReading(
        attack=attack, source=SOURCES[attack], auc=below / (members * others),
        advantage=float(np.max(true / members - false / others)), rates=tuple(rates), members=members, others=others,
        shadows=shadows, alpha=alpha, seconds=seconds,
        scores=AttackScores(scores=scores, members=inside) if keep else None,
    )  # fmt: skip


def _curve(scores: FloatArray, inside: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Numbers of false and of true positives of each threshold, from none to all; equal scores are one threshold."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    right = np.cumsum(inside[order])[last]
    counts = np.concatenate(([0.0], right.astype(np.float64)))
    return np.concatenate(([0.0], last + 1.0)) - counts, counts


def _checked_rows(X: Any, y: Any, members: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    X, y, inside = np.asarray(X), np.asarray(y), np.asarray(members)
    if X.ndim != 2:
        raise _validate.fail("X shape", X.shape, "(n_rows, n_features)", "rows")
    for name, array in (("y", y), ("members", inside)):
        if array.shape != (len(X),):
            raise _validate.fail(f"{name} shape", array.shape, f"({len(X)},), one a row of X", "rows")
    if inside.dtype != np.bool_:
        raise _validate.fail("members type", str(inside.dtype), "bool, one a row", "rows")
    if inside.all() or not inside.any():
        raise InvalidParameter(
            f"members has {int(inside.sum())} members and {int((~inside).sum())} others: an attack needs both "
            "(unit: rows)"
        )
    return X, y, inside


def _checked_attacks(attacks: Sequence[Attack]) -> tuple[Attack, ...]:
    found = _validate.several("attacks", (attacks,) if isinstance(attacks, str) else attacks, "attacks")
    for attack in found:
        if attack not in ATTACKS:
            raise _validate.fail("attacks", attack, f"of {', '.join(map(repr, ATTACKS))}", "name")
    return found


def _require_classes(y: NDArray[Any], classes: tuple[Any, ...]) -> None:
    foreign = [label for label in dict.fromkeys(y.tolist()) if label not in classes]
    if foreign:
        raise InvalidParameter(f"y holds the label {foreign[0]!r}, which is not in classes={classes!r} (unit: classes)")


def _rate(rate: object) -> float:
    value = _validate.non_negative("rates", rate, "probability")
    if value > 1.0:
        raise _validate.fail("rates", rate, "in [0, 1]", "probability")
    return value
