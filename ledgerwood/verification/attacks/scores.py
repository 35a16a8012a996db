"""The signals that membership attacks use, and each attack's score, which is larger for a likely member.

docs/explanation/membership.md#membership-attacks. `lower_mean` bounds a mean of independent numbers in [0, 1]:
docs/explanation/poisoning.md#confidence.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ledgerwood import _validate
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import InvalidParameter

_ULP = 2.0**-52
_HALVINGS = 100


def lower_mean(values: FloatArray, alpha: float) -> float:
    """A lower bound on the mean of the expectations; it fails with probability at most `alpha`, for any distributions.

    The larger of two bounds, each of which fails with probability at most alpha / 2: Hoeffding's in terms of the mean,
    and one in terms of the geometric mean, which is better if the numbers are similar. Rounded down.

    Args:
        values: independent, in [0, 1], shape (n,), n >= 1; n was chosen before they were seen.
        alpha: in (0, 1).

    Source: Hoeffding 1963, Theorem 1, first form; docs/explanation/poisoning.md#confidence.
    """
    return max(_entropy_bound(values, alpha / 2.0), _geometric_bound(values, alpha / 2.0))


def _entropy_bound(values: FloatArray, alpha: float) -> float:
    """The least m that n kl(mean, m) <= -log alpha leaves, for m below the mean."""
    n = len(values)
    mean = min(math.fsum(values) / n, 1.0)
    mean *= 1.0 - 2.0 * _ULP
    if mean <= 0.0:
        return 0.0
    target = -math.log(alpha) * (1.0 + 4.0 * _ULP)
    low, high = 0.0, mean  # low is refused, or 0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        one = mean * math.log(mean / middle)
        rest = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - middle))
        guard = 8.0 * _ULP * (1.0 + abs(one) + abs(rest))
        if n * (one + rest - guard) * (1.0 - 4.0 * _ULP) > target:
            low = middle
        else:
            high = middle
    return low


def _geometric_bound(values: FloatArray, alpha: float) -> float:
    """(alpha times the product of the values)^(1 / n): the product exceeds mean^n / alpha that rarely, by Markov."""
    if float(values.min()) == 0.0:
        return 0.0
    logs = [*np.log(values).tolist(), math.log(alpha)]
    log_mean = math.fsum(logs) / len(values)
    return math.exp(log_mean - 8.0 * _ULP * (1.0 + math.fsum(map(abs, logs)) / len(values)))


_LEAST = 1e-12
"""Probabilities are not taken below it: their logarithms stay finite."""
_OWN_VARIANCE = 64
"""The least number of shadow models for a separate variance for each row, as Carlini et al. 2022 recommend."""
Mask = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """The signals of one model or several for each row's own label; (n_rows,) or (n_models, n_rows).

    Args:
        confidence: log odds of the own class, or minus the absolute error.
        likelihood: log probability of the own class, or minus the squared error.
        error: whether the likelihood is an error that has no scale yet.
    """

    confidence: FloatArray
    likelihood: FloatArray
    error: bool

    @classmethod
    def stacked(cls, parts: Sequence["Signals"]) -> "Signals":
        """Stack the signals of several models."""
        return cls(
            np.stack([part.confidence for part in parts]), np.stack([part.likelihood for part in parts]), parts[0].error
        )


def signals_of(model: Any, X: NDArray[Any], y: NDArray[Any], classes: tuple[Any, ...] | None, name: str) -> Signals:
    """A model's signals of each row.

    Raises:
        InvalidParameter: no `predict`, or predictions of another shape, or that are not finite numbers.
    """
    probabilities = None if classes is None else getattr(model, "predict_proba", None)
    if classes is not None and probabilities is not None:
        return _of_probabilities(_finite(probabilities(X), (len(X), None), name), model, y, classes, name)
    predict = getattr(model, "predict", None)
    if predict is None:
        raise InvalidParameter(f"{name} is {_validate.kind_of(model)}, which has no predict (unit: model)")
    if classes is not None:
        predicted = np.asarray(predict(X))
        if predicted.shape != y.shape:
            raise InvalidParameter(f"{name} predicts shape {predicted.shape}, not {y.shape} (unit: predictions)")
        right = np.equal(predicted.astype(object), y.astype(object)).astype(np.float64)
        return _of_pair(right, 1.0 - right)
    error = _finite(predict(X), y.shape, name) - _numbers(y, "y holds")
    return Signals(-np.abs(error), -np.square(error), error=True)


def _of_probabilities(given: FloatArray, model: Any, y: NDArray[Any], classes: tuple[Any, ...], name: str) -> Signals:
    # A shadow model may not have seen all classes: its columns are those that it knows.
    known = list(getattr(model, "classes_", classes))
    if given.shape[1] != len(known):
        raise InvalidParameter(
            f"{name}.predict_proba returned {given.shape[1]} columns for {len(known)} classes (unit: classes)"
        )
    # As objects: an array of strings would cut off longer ones.
    own = np.equal.outer(y.astype(object), np.array(known, dtype=object)).astype(np.bool_)
    return _of_pair(np.where(own, given, 0.0).sum(axis=1), np.where(own, 0.0, given).sum(axis=1))


def _of_pair(own: FloatArray, others: FloatArray) -> Signals:
    likelihood = np.log(np.maximum(own, _LEAST))
    return Signals(likelihood - np.log(np.maximum(others, _LEAST)), likelihood, error=False)


def _finite(values: Any, shape: tuple[int | None, ...], name: str) -> FloatArray:
    found = _numbers(values, f"{name} predicts")
    if found.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, found.shape, strict=True)):
        raise InvalidParameter(f"{name} predicts shape {found.shape}, not {shape} (unit: predictions)")
    return found


def _numbers(values: Any, whose: str) -> FloatArray:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"{whose} values that are not numbers: {error} (unit: numbers)") from error
    if not np.isfinite(found).all():
        raise InvalidParameter(f"{whose} numbers that are not finite (unit: numbers)")
    return found


def loss(target: Signals, _: Signals | None, __: Mask, ___: float) -> FloatArray:
    """Minus the loss: the log probability of the own class, or minus the squared error."""
    return target.likelihood


def lira(target: Signals, shadow: Signals | None, halves: Mask, _: float) -> FloatArray:
    """Log of the normal densities' ratio, of the shadow models with the row and of those without it."""
    assert shadow is not None  # needed, and asked for before
    densities = []
    for side in (halves, ~halves):
        mean, deviation = _normal(shadow.confidence, side)
        densities.append(-0.5 * np.square((target.confidence - mean) / deviation) - np.log(deviation))
    return np.asarray(densities[0] - densities[1])


def lira_offline(target: Signals, shadow: Signals | None, halves: Mask, _: float) -> FloatArray:
    """The confidence less its mean over the shadow models without the row, in their standard deviations."""
    assert shadow is not None
    mean, deviation = _normal(shadow.confidence, ~halves)
    return np.asarray((target.confidence - mean) / deviation)


def rmia(target: Signals, shadow: Signals | None, halves: Mask, gamma: float) -> FloatArray:
    """The share of other rows whose likelihood ratio is at least `gamma` times smaller than this row's."""
    assert shadow is not None
    own, others = target.likelihood, shadow.likelihood
    if target.error:  # a normal density of the error, as wide as errors of rows that were left out are
        squares = -others[~halves]
        width = max(2.0 * float(squares.mean()), np.finfo(np.float64).tiny)
        own, others = own / width, others / width
    gain = own - (special.logsumexp(others, axis=0) - np.log(len(others)))
    rising = np.sort(gain)
    beaten = np.searchsorted(rising, gain - np.log(gamma), side="right").astype(np.float64)
    if gamma <= 1.0:  # each row beats itself
        beaten -= 1.0
    return np.asarray(beaten / max(len(gain) - 1, 1))


def _normal(values: FloatArray, side: Mask) -> tuple[FloatArray, FloatArray]:
    """Mean and deviation of each row's values on one side; with few models one deviation for all rows."""
    counts = side.sum(axis=0)
    mean = np.where(side, values, 0.0).sum(axis=0) / counts
    squares = np.where(side, np.square(values - mean), 0.0).sum(axis=0)
    if len(values) >= _OWN_VARIANCE:
        variance = squares / (counts - 1)
    else:
        variance = np.full(mean.shape, squares.sum() / (counts - 1).sum())
    return mean, np.sqrt(variance) + _LEAST


SCORES: Mapping[str, Callable[[Signals, Signals | None, Mask, float], FloatArray]] = {
    "loss": loss,
    "lira": lira,
    "lira offline": lira_offline,
    "rmia": rmia,
}
