"""The calculator: what a training with Gaussian noise on Poisson samples costs, or the least noise that it needs.

Every input is bounded before anything is computed, answers are remembered by their inputs, and one answer is computed
at a time: a visitor cannot occupy the machine.
"""

import functools
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, final, get_args

import numpy as np

from ledgerwood.accounting import (
    Adjacency,
    Budget,
    Event,
    Price,
    SGDPlan,
    calibrate,
    price,
    risk,
    sgd_plan,
)
from ledgerwood.cautions import delta_caution
from ledgerwood.errors import InvalidParameter

Question = Literal["noise", "epsilon"]
"""What is given: the noise multiplier, or the epsilon that must be kept."""

_RATES = (0.001, 0.01, 0.05, 0.1)
_POINTS = 25
_STEPS = 10_000_000
_KEPT = 512
_ONE = threading.Lock()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """An input of the calculator.

    Args:
        name: in the form.
        label: for people, with its unit.
        low, high: its bounds, both allowed.
        value: at first.
        whole: whether it is a whole number.
        hint: one sentence.
    """

    name: str
    label: str
    low: float
    high: float
    value: float
    whole: bool
    hint: str


FIELDS = (
    Field(
        name="rows", label="rows (expected number)", low=100, high=1e9, value=60_000, whole=True,
        hint="A public number: how many rows you expect, not how many there are.",
    ),
    Field(
        name="batch", label="rows in a batch, on average", low=1, high=1e7, value=256, whole=True,
        hint="Each row joins a batch independently, by a coin toss (Poisson sampling).",
    ),
    Field(name="epochs", label="epochs", low=0.01, high=1000, value=20, whole=False, hint="Passes over the data."),
    Field(
        name="noise", label="noise multiplier", low=0.2, high=200, value=1.1, whole=False,
        hint="Standard deviation of the noise, divided by the clipping norm.",
    ),
    Field(
        name="epsilon", label="target epsilon (nats)", low=0.01, high=50, value=1.0, whole=False,
        hint="The least noise is found that keeps it.",
    ),
    Field(
        name="delta", label="delta", low=1e-12, high=1e-2, value=1e-6, whole=False,
        hint="Well below 1 divided by the number of rows.",
    ),
)  # fmt: skip

NAMES = frozenset({"given", *(field.name for field in FIELDS)})
"""The names of a form's fields."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The inputs of the calculator, each within its bounds."""

    given: Question
    rows: int
    batch: int
    epochs: float
    noise: float
    epsilon: float
    delta: float

    @property
    def sampling_rate(self) -> float:
        """Probability that a row joins a batch, rounded up."""
        return self._plan.sampling_rate

    @property
    def steps(self) -> int:
        """Number of batches, rounded up."""
        return self._plan.steps

    def event(self, noise: float) -> Event:
        """The whole training at a noise multiplier."""
        return self._plan.with_noise(noise).event

    @property
    def _plan(self) -> SGDPlan:
        return sgd_plan(
            rows=self.rows, batch_size=self.batch, epochs=self.epochs, noise_multiplier=self.noise, sampling="poisson",
            adjacency=Adjacency.ADD_REMOVE,
        )  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Costing:
    """What a training costs.

    Args:
        noise: the noise multiplier; the least one, where epsilon was given.
        epsilon, delta: the privacy cost, rounded up.
        method: the accounting method.
        certified: whether the cost is a proven upper bound.
        caution: a sentence about delta, if it needs one.
    """

    noise: float
    epsilon: float
    delta: float
    method: str
    certified: bool
    caution: str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CostCurves:
    """The privacy profile, and what it says of attackers; every number is a bound that errs to the safe side.

    Args:
        epsilons, deltas: points of the privacy profile, shape (k,).
        type_one, type_two: false positive rates, and the least false negative rates there, shape (m,).
        attackers: for some false positive rates, the largest true positive rate.
        success: the largest probability of a correct guess whether a unit was in the data, at even odds.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    type_one: tuple[float, ...]
    type_two: tuple[float, ...]
    attackers: tuple[tuple[float, float], ...]
    success: float


def read_inputs(form: Mapping[str, str]) -> Inputs:
    """The inputs that a form states; what it leaves out has its first value.

    Raises:
        InvalidParameter: not a number, outside its bounds, a batch of more than all rows, or too many steps.
    """
    given = form.get("given") or "noise"
    if given not in get_args(Question):
        raise InvalidParameter(f"given={given!r} must be 'noise' or 'epsilon'")
    values = {field.name: _number(field, form.get(field.name)) for field in FIELDS}
    inputs = Inputs(
        given="epsilon" if given == "epsilon" else "noise",
        rows=int(values["rows"]), batch=int(values["batch"]), epochs=values["epochs"], noise=values["noise"],
        epsilon=values["epsilon"], delta=values["delta"],
    )  # fmt: skip
    if inputs.batch > inputs.rows:
        raise InvalidParameter(
            f"rows in a batch: {inputs.batch:,} is more than all {inputs.rows:,} rows; at most that many (unit: rows)"
        )
    if not 1 <= inputs.steps <= _STEPS:
        raise InvalidParameter(
            f"epochs: {inputs.epochs:g} are {inputs.steps:,} batches of {inputs.batch:,} rows; at most {_STEPS:,} "
            "batches are computed here: enlarge the batch (the function `ledgerwood.price` has no such bound)"
        )
    return inputs


def shown_value(field: Field, text: str | None) -> str:
    """What a form shows in a field: what was entered if that is a number, and the first value before anything was."""
    if not text:
        return f"{field.value:.12g}"
    try:
        return text if math.isfinite(float(text)) else ""
    except ValueError:
        return ""


def answer(inputs: Inputs) -> Costing:
    """Compute the privacy cost, or the least noise; remembered.

    Raises:
        PrivacyError: no noise within reach keeps the target, or no finite epsilon was found.
    """
    return _answer(_asked(inputs))


def curves(inputs: Inputs) -> CostCurves:
    """The privacy profile and the attackers' errors at the answer; remembered. Errors as in `answer`."""
    return _curves(_asked(inputs))


def _asked(inputs: Inputs) -> Inputs:
    """The inputs with what takes no part at its first value, so that it is not computed twice."""
    first = {field.name: field.value for field in FIELDS}
    unused = "epsilon" if inputs.given == "noise" else "noise"
    values = {name: getattr(inputs, name) for name in Inputs.__dataclass_fields__}
    return Inputs(**{**values, unused: first[unused]})


@functools.lru_cache(maxsize=_KEPT)
def _answer(inputs: Inputs) -> Costing:
    with _ONE:
        noise = inputs.noise
        if inputs.given == "epsilon":
            budget = Budget(epsilon=inputs.epsilon, delta=inputs.delta, adjacency=Adjacency.ADD_REMOVE)
            noise = calibrate(inputs.event, budget)
        quote = _price(inputs, noise).quote(inputs.delta)
    return Costing(
        noise=noise,
        epsilon=quote.epsilon,
        delta=inputs.delta,
        method=quote.method,
        certified=quote.certified,
        caution=delta_caution(inputs.delta, inputs.rows),
    )


@functools.lru_cache(maxsize=_KEPT)
def _curves(inputs: Inputs) -> CostCurves:
    found = _answer(inputs)
    top = max(2.0 * found.epsilon, 0.1)
    with _ONE:
        grid = np.unique([*np.linspace(0.0, top, _POINTS), found.epsilon])
        logs = _price(inputs, found.noise).log_deltas(grid)
    deltas = np.minimum(np.nextafter(np.exp(logs) * (1.0 + 1e-12), np.inf), 1.0)
    deltas = np.where(grid >= found.epsilon, np.minimum(deltas, found.delta), deltas)
    deltas = np.minimum.accumulate(deltas)  # a profile falls: what holds at an epsilon holds at every larger one
    type_one = np.unique([*np.linspace(0.0, 1.0, 41), *np.geomspace(1e-4, 0.5, 25), *_RATES])
    type_two = risk.type_two(grid, deltas, type_one)
    at = risk.type_two(grid, deltas, np.array(_RATES))
    return CostCurves(
        epsilons=tuple(grid.tolist()),
        deltas=tuple(deltas.tolist()),
        type_one=tuple(type_one.tolist()),
        type_two=tuple(type_two.tolist()),
        attackers=tuple((rate, min(1.0 - float(error) + 1e-15, 1.0)) for rate, error in zip(_RATES, at, strict=True)),
        success=min(0.5 + 0.5 * float(deltas[0]) + 1e-15, 1.0),
    )


def _price(inputs: Inputs, noise: float) -> Price:
    return price(inputs.event(noise))


def _number(field: Field, text: str | None) -> float:
    if text is None or not text.strip():
        return field.value
    try:
        value = float(text)
    except ValueError:
        raise InvalidParameter(f"{field.label}: {text[:40]!r} is not a number") from None
    if not field.low <= value <= field.high:
        raise InvalidParameter(f"{field.label}: {text[:40]} is not within {field.low:g} and {field.high:g}")
    return float(round(value)) if field.whole else value
