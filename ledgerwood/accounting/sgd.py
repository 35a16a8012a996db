"""A training by stochastic gradient descent as an event, from its public size and its sampler.

docs/explanation/sgd-plans.md derives the event of each sampler.
"""

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, assert_never, final, get_args

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget, require_adjacency
from ledgerwood.accounting.calibration import calibrate
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.composition import Repeated
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.sampled.allocation import RandomAllocation
from ledgerwood.accounting.events.sampled.fixed_size import FixedSizeSampled, ReplaceOneSampled
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.quotes import Method
from ledgerwood.errors import InvalidParameter
from ledgerwood.pages.shown import Card, ShowsItself

Sampling = Literal["poisson", "allocation", "fixed", "cyclic"]
"""How the batches are made: docs/explanation/sgd-plans.md."""
GradientNoise = Literal["gaussian", "laplace"]
"""The noise on a step's sum of clipped gradients."""

_PAGE = "how-to/noise-for-a-target"
_USUAL = {
    "poisson": Adjacency.ADD_REMOVE,
    "allocation": Adjacency.ADD_REMOVE,
    "fixed": Adjacency.REPLACE_ONE,
    "cyclic": Adjacency.ADD_REMOVE,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SGDPlan(ShowsItself):
    """The steps of a training by SGD, with the sampler that its privacy cost is for. `sgd_plan` makes it.

    Args:
        rows: public number of rows, >= 1.
        batch_size: rows in a batch, expected or exact, as the sampler has it; from 1 to `rows`.
        epochs: passes over the rows, > 0; a fraction is read as the decimal number that it is written as.
        noise_multiplier: standard deviation (Gaussian) or scale (Laplace) of the noise on a step's sum, over the
            clipping norm C of one row's gradient: what Opacus, TF Privacy and JAX Privacy call so. Under replace-one
            the sensitivity is 2 C, so that the event has half of this multiplier.
        sampling: how the batches are made.

            * "poisson": each step takes each row by a coin of its own, with probability batch_size / rows.
            * "allocation": each row is in exactly one step of each pass, drawn uniformly, in secret and independently
              of other rows. Batches differ in size.
            * "fixed": each step draws `batch_size` different rows, uniformly, in secret and afresh.
            * "cyclic": the rows' batches are public, and walked in a cycle. There is no amplification by sampling: each
              pass costs one step on all rows.
        noise: its distribution.
        adjacency: the relation of neighbouring data sets.

    Raises:
        InvalidParameter: a value outside its bound, or a sampler without a privacy bound under this relation.
    """

    rows: int
    batch_size: int
    epochs: float
    noise_multiplier: float
    sampling: Sampling
    noise: GradientNoise = "gaussian"
    adjacency: Adjacency

    def __post_init__(self) -> None:
        rows = _validate.count("rows", self.rows, "rows")
        batch_size = _validate.count("batch_size", self.batch_size, "rows")
        if batch_size > rows:
            raise _validate.fail("batch_size", batch_size, f"<= rows={rows}", "rows")
        _require(self.sampling, "sampling", get_args(Sampling))
        _require(self.noise, "noise", get_args(GradientNoise))
        require_adjacency(self.adjacency)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "batch_size", batch_size)
        object.__setattr__(self, "epochs", _validate.positive("epochs", self.epochs, "passes over the rows"))
        unit = "standard deviations or scales per clipping norm"
        multiplier = _validate.positive("noise_multiplier", self.noise_multiplier, unit)
        object.__setattr__(self, "noise_multiplier", multiplier)
        self._require_bound()

    def _require_bound(self) -> None:
        """Refuse a sampler under a relation for which no bound is known, by name."""
        replaced = self.adjacency is Adjacency.REPLACE_ONE
        if self.sampling == "fixed" and not replaced and self.batch_size < self.rows:
            raise InvalidParameter(
                f"adjacency={self.adjacency.value!r} has no bound for sampling='fixed': where a row is absent, another "
                "one is in its place, and the size of the batches is public; take adjacency replace-one, or "
                "sampling='poisson'",
                parameter="adjacency",
            )
        if self.sampling == "allocation" and replaced and self.steps_per_pass > 1:
            raise InvalidParameter(
                f"adjacency={self.adjacency.value!r} has no bound for sampling='allocation': take add-remove or "
                "zero-out, or sampling='fixed', which is stated under replace-one",
                parameter="adjacency",
            )

    @property
    def sampling_rate(self) -> float:
        """The probability that a step takes a row, rounded up; 1 where no sample is secret."""
        match self.sampling:
            case "poisson" | "fixed":
                return _directed.float_up(Fraction(self.batch_size, self.rows))
            case "allocation":
                return _directed.float_up(Fraction(1, self.steps_per_pass))
            case "cyclic":
                return 1.0
            case _:
                assert_never(self.sampling)

    @property
    def steps_per_pass(self) -> int:
        """Steps of one pass: rounded down for an allocation, where fewer steps cost more, else rounded up."""
        if self.sampling == "allocation":
            return self.rows // self.batch_size
        return -(-self.rows // self.batch_size)

    @property
    def passes(self) -> int:
        """Passes over the rows, begun ones included."""
        return math.ceil(self._epochs)

    @property
    def steps(self) -> int:
        """Number of steps of the training, rounded up."""
        match self.sampling:
            case "poisson" | "fixed":
                return math.ceil(self._epochs * self.rows / self.batch_size)
            case "allocation" | "cyclic":
                return math.ceil(self._epochs * self.steps_per_pass)
            case _:
                assert_never(self.sampling)

    @property
    def _epochs(self) -> Fraction:
        """The decimal number as it is written: .1 is a tenth, which no float is."""
        return Fraction(repr(self.epochs))

    @property
    def step(self) -> Event:
        """One step's release, as if all rows took part: the noise over the sensitivity under the relation."""
        return released(self.noise, self.noise_multiplier, self.adjacency)

    @property
    def event(self) -> Event:
        """The whole training. Source: docs/explanation/sgd-plans.md#sgd-plans."""
        match self.sampling:
            case "poisson":
                return Repeated(sampled(self.noise, self.noise_multiplier, self.adjacency, self.sampling_rate),
                                count=self.steps)  # fmt: skip
            case "fixed":
                if self.batch_size == self.rows:
                    return Repeated(self.step, count=self.steps)
                drawn = FixedSizeSampled(self.step, sample_size=self.batch_size, population=self.rows)
                return Repeated(drawn, count=self.steps)
            case "allocation":
                if self.steps_per_pass == 1:
                    return Repeated(self.step, count=self.passes)
                return Repeated(RandomAllocation(self.step, selected=1, steps=self.steps_per_pass), count=self.passes)
            case "cyclic":
                return Repeated(self.step, count=self.passes)
            case _:
                assert_never(self.sampling)

    def with_noise(self, noise_multiplier: float) -> "SGDPlan":
        """The same training with another noise multiplier."""
        return dataclasses.replace(self, noise_multiplier=noise_multiplier)

    def calibrated(self, budget: Budget, *, method: Method = "tightest") -> "SGDPlan":
        """The same training with the least noise that keeps a budget; errors as in `calibrate`."""
        return self.with_noise(calibrate(lambda each: self.with_noise(each).event, budget, method=method))

    @property
    def sampler(self) -> str:
        """Which way of making batches the privacy cost is for."""
        if self.whole:
            return "none: every step sees all rows"
        match self.sampling:
            case "poisson":
                return (
                    f"Poisson: each step takes each row with probability {self.sampling_rate:.6g}, independently, so "
                    "that batches differ in size"
                )
            case "allocation":
                return (
                    f"random allocation: in each pass each row is in exactly one of {self.steps_per_pass} steps, drawn "
                    "uniformly, in secret and independently of other rows, so that batches differ in size"
                )
            case "fixed":
                return (
                    f"fixed size: each step draws {self.batch_size} of {self.rows} rows without replacement, uniformly,"
                    " in secret, and afresh in each step"
                )
            case "cyclic":
                where = "" if self.adjacency is not Adjacency.ADD_REMOVE else (
                    "; a row's batch must not depend on which other rows there are: cut by a public key of the row "
                    "itself, or state zero-out"
                )  # fmt: skip
                return (
                    "cyclic: each row has a public batch, and the batches are walked in a cycle, each row once in a "
                    f"pass; no amplification by sampling is counted, and each pass costs one step on all rows{where}"
                )
            case _:
                assert_never(self.sampling)

    @property
    def whole(self) -> bool:
        """True where every step sees all rows."""
        return self.batch_size == self.rows if self.sampling != "allocation" else self.steps_per_pass == 1

    @property
    def rounding(self) -> str:
        """How rate and steps were computed, and what is rounded to the side that costs more."""
        size, exact = f"{self.rows} / {self.batch_size}", self._epochs * self.rows / self.batch_size
        match self.sampling:
            case "poisson" | "fixed":
                up = "" if exact == self.steps else f" = {float(exact):.2f}, rounded up"
                return f"sampling rate {self.batch_size} / {self.rows}; steps {self.epochs:g} x {size}{up}"
            case "allocation" | "cyclic":
                share = Fraction(self.rows, self.batch_size)
                side = "down, where fewer steps cost more" if self.sampling == "allocation" else "up"
                steps = "" if share.denominator == 1 else f" = {float(share):.2f}, rounded {side}"
                passes = "" if self._epochs == self.passes else f" = {self.passes}, an unfinished pass as a whole one"
                return f"steps in a pass {size}{steps}; passes {self.epochs:g}{passes}"
            case _:
                assert_never(self.sampling)

    @property
    def shuffled(self) -> str:
        """What the privacy cost says of a loader that shuffles the rows and cuts them into batches."""
        if self.whole:
            return "A shuffled order changes nothing where every step sees all rows"
        if self.sampling == "cyclic":
            return (
                "A loader that shuffles the rows in each pass, independently of their values, costs no more than this "
                "under zero-out and replace-one; under add-remove one more row shifts the batches of others, and this "
                "figure does not hold: ShuffledBatches has bounds for it"
            )
        other = ", or makes batches of one size," if self.sampling != "fixed" else " in each pass"
        return (
            f"A loader that shuffles the rows{other} is another mechanism, and these figures do not hold for it: "
            f"{_PAGE} in the manual says what to do, and ShuffledBatches what it costs at least"
        )

    def explain(self) -> str:
        """Explain the sampler, the rounding, the noise multiplier, and a shuffled loader, in sentences."""
        return "\n".join(f"{name}: {text}." for name, text in self._said())

    def _said(self) -> tuple[tuple[str, str], ...]:
        norm = "L2" if self.noise == "gaussian" else "L1"
        twice = " A replaced row moves a step's sum by up to 2 C." if self.adjacency is Adjacency.REPLACE_ONE else ""
        multiplier = f"{self.noise_multiplier:.6g} times the clipping norm C ({norm}) of one row's gradient.{twice}"
        return (
            ("sampler", self.sampler),
            ("computed", self.rounding),
            ("noise", multiplier.rstrip(".")),
            ("neighbours", self.adjacency.value),
            ("shuffled loader", self.shuffled),
        )

    def _card(self) -> Card:
        facts = (
            ("rows", self.rows),
            ("batch size", self.batch_size),
            ("epochs", self.epochs),
            ("noise multiplier", self.noise_multiplier),
            ("sampling", self.sampling),
            ("adjacency", self.adjacency.value),
            ("steps", self.steps),
        )
        return Card(title="SGD plan", facts=facts, notes=tuple(f"{name}: {text}." for name, text in self._said()))


def sgd_plan(
    *,
    rows: int,
    batch_size: int,
    epochs: float,
    noise_multiplier: float | None = None,
    sampling: Sampling,
    noise: GradientNoise = "gaussian",
    adjacency: Adjacency | None = None,
    budget: Budget | None = None,
    method: Method = "tightest",
) -> SGDPlan:
    """Plan a training by SGD: its event, steps and rate, and the sampler that its privacy cost is for.

    Give `noise_multiplier`, or `budget` for the least noise that keeps it. `lw.price(plan.event)` computes the privacy
    cost; `plan.explain()` says what it holds for.

    Args:
        rows, batch_size, epochs, noise_multiplier, sampling, noise: as in `SGDPlan`.
        adjacency: the relation of neighbouring data sets. If not given: the budget's, or the one that the sampler is
            usually stated under, which is replace-one for "fixed" and add-remove for all others. `plan.adjacency` and
            `plan.explain()` say it.
        budget: epsilon and delta to keep, in place of `noise_multiplier`.
        method: the accounting method of the search, as in `price`.

    Raises:
        InvalidParameter: a value outside its bound, both or neither of `noise_multiplier` and `budget`, or a sampler
            without a privacy bound under this relation.
        CalibrationFailed: no noise keeps the budget.
    """
    if (noise_multiplier is None) is (budget is None):
        raise InvalidParameter(
            f"noise_multiplier={noise_multiplier!r} and budget={budget!r}: give one of them; with a budget the least "
            "noise is found that keeps it (unit: plan)"
        )
    if budget is not None and not isinstance(budget, Budget):
        raise _validate.fail("budget", budget, "a Budget", "budget")
    _require(sampling, "sampling", get_args(Sampling))
    if adjacency is None:
        adjacency = _USUAL[sampling] if budget is None else budget.adjacency
    plan = SGDPlan(
        rows=rows, batch_size=batch_size, epochs=epochs, sampling=sampling, noise=noise, adjacency=adjacency,
        noise_multiplier=1.0 if noise_multiplier is None else noise_multiplier,
    )  # fmt: skip
    return plan if budget is None else plan.calibrated(budget, method=method)


def released(noise: GradientNoise, noise_multiplier: float, adjacency: Adjacency) -> Event:
    """A noisy sum of clipped gradients of all rows, for a multiplier over the clipping norm.

    A row that is added, removed or contributes nothing moves the sum by C at most, a replaced one by 2 C.
    """
    factor = 2 if adjacency is Adjacency.REPLACE_ONE else 1
    own = _directed.float_down(Fraction(noise_multiplier) / factor)
    match noise:
        case "gaussian":
            return GaussianEvent(noise_multiplier=own, adjacency=adjacency)
        case "laplace":
            return LaplaceEvent(noise_multiplier=own, adjacency=adjacency)
        case _:
            assert_never(noise)


def sampled(noise: GradientNoise, noise_multiplier: float, adjacency: Adjacency, sampling_rate: float) -> Event:
    """One such sum over a Poisson sample; under replace-one a row's presence moves it by C, its replacement by 2 C."""
    event = released(noise, noise_multiplier, adjacency)
    if sampling_rate == 1.0:  # a full batch is not a sample: it stays exact
        return event
    if adjacency is not Adjacency.REPLACE_ONE:
        return PoissonSampled(event, sampling_rate=sampling_rate)
    present = released(noise, noise_multiplier, Adjacency.ADD_REMOVE)
    return ReplaceOneSampled(event, add_remove=present, sampling_rate=sampling_rate)


def _require(value: object, name: str, names: tuple[str, ...]) -> None:
    if value not in names:
        raise _validate.fail(name, value, f"one of {', '.join(map(repr, names))}", "name")
