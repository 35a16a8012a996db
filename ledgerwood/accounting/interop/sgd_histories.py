"""Histories of DP-SGD as events: what Opacus' accountants hold, and TF Privacy's statements.

docs/explanation/interop.md#sgd-histories. Nothing of either library is imported.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from ledgerwood import _directed, _validate
from ledgerwood.accounting import sgd
from ledgerwood.accounting.adjacency import Adjacency, require_adjacency
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.composition import Composed, Repeated
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

_STATEMENT = re.compile(
    r"DP-SGD performed over (?P<rows>\d+) examples with (?P<batch>\d+) examples per iteration, "
    r"noise multiplier (?P<noise>\S+) for (?P<epochs>\S+) epochs (?P<micro>with|without) microbatching, "
    r"and (?:no bound on number of|at most (?P<most>\d+)) examples per user\."
)
_AT = re.compile(r"adjacency at delta = (?P<delta>\S+) computed (?:with|using) (?P<accounting>\w+) accounting")
_LONG = 20_000
_COINS = 2**24
"""Number of values of torch.rand in float32, all equally likely."""


def from_sgd_history(
    history: Iterable[tuple[float, float, int]], *, adjacency: Adjacency, exact_rates: bool = False
) -> Event:
    """The event of a training whose batches were Poisson samples, from its accountant's history.

    Args:
        history: (noise multiplier, sampling rate, steps) of each stretch, as `accountant.history` of Opacus has it.
            The multiplier is over the clipping norm; under replace-one the sensitivity is twice that.
        adjacency: the relation of neighbouring data sets.
        exact_rates: whether each row was taken with exactly the rate of the history. If not, it is the nominal rate of
            Opacus' sampler, whose float32 coins take a row a little more often: `sampler_rate`.

    Raises:
        UnsupportedEvent: no step, or a step without noise.
        InvalidParameter: a value outside its bound, or a stretch that is not three numbers.
    """
    require_adjacency(adjacency)
    exact = _validate.flag("exact_rates", exact_rates)
    parts: list[Event] = []
    for stretch in _validate.items("history", history, "stretches"):
        values = _validate.items("history", stretch, "numbers of a stretch")
        if len(values) != 3:
            raise InvalidParameter(
                f"history: {_validate.shown(stretch)} must be (noise multiplier, sampling rate, steps) (unit: stretch)"
            )
        multiplier = _validate.non_negative("noise_multiplier", values[0], "standard deviations per clipping norm")
        rate = _validate.non_negative("sampling_rate", values[1], "probability")
        if rate > 1.0:
            raise _validate.fail("sampling_rate", rate, "in [0, 1]", "probability")
        count = _validate.count("steps", values[2], "steps", minimum=0)
        if rate > 0.0 and count > 0:
            if multiplier == 0.0:
                raise UnsupportedEvent("noise_multiplier=0.0: steps without noise have no finite privacy cost")
            taken = rate if exact else sampler_rate(rate)
            parts.append(Repeated(sgd.sampled("gaussian", multiplier, adjacency, taken), count=count))
    if not parts:
        raise UnsupportedEvent("a history without steps releases nothing: it has no event")
    return Composed(tuple(parts)) if len(parts) > 1 else parts[0]


def sampler_rate(sample_rate: float) -> float:
    """The probability with which Opacus' sampler takes a row, rounded up: a float32 coin is below a float32 rate.

    Raises:
        InvalidParameter: not a probability above 0.
    """
    rate = _validate.rate("sample_rate", sample_rate, "probability")
    single = float(np.float32(rate))
    single = single if single >= rate else float(np.nextafter(np.float32(rate), np.float32(2.0)))
    return min(_directed.float_up(Fraction(math.ceil(Fraction(single) * _COINS), _COINS)), 1.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TFPrivacyStatement:
    """What a privacy statement of TF Privacy says of a training.

    Args:
        rows, batch_size, epochs: of the training.
        noise_multiplier: as stated, over the clipping norm.
        microbatching: whether rows were clipped in groups, in which a row that changes moves the sum by twice the norm.
        rows_per_user: the most rows of one user, or None if that is not bounded.
        delta: of the statement.
        accounting: its method, "RDP" or "PLD".
    """

    rows: int
    batch_size: int
    epochs: float
    noise_multiplier: float
    microbatching: bool
    rows_per_user: int | None
    delta: float
    accounting: str

    def plan(self, *, sampling: sgd.Sampling, adjacency: Adjacency | None = None, per_row: bool = False) -> sgd.SGDPlan:
        """The training as a plan, for the sampler that really made the batches; the statement does not know it.

        With microbatches a changed row moves the sum by twice the clipping norm, where the batches and groups of all
        others stay: sampling="cyclic" under zero-out, where the plan has half of the stated multiplier, or under
        replace-one. Otherwise there is no bound: docs/explanation/interop.md#sgd-histories.

        Args:
            sampling: how the batches were made, as in `sgd_plan`.
            adjacency: the relation of neighbouring data sets, as in `sgd_plan`.
            per_row: True to price one row where the statement says that a user may have several. The cost of a plan is
                that of one row, whatever the number of a user's rows; with several a user's is larger.

        Raises:
            InvalidParameter: as in `sgd_plan`.
            UnsupportedEvent: microbatches without a bound; or several rows a user without `per_row=True`.
        """
        wanted = _validate.flag("per_row", per_row)
        if self.rows_per_user is not None and self.rows_per_user > 1 and not wanted:
            raise UnsupportedEvent(
                f"rows_per_user={self.rows_per_user}: a plan has the privacy cost of one row, and a user with "
                f"{self.rows_per_user} of them has a larger one; per_row=True makes the plan of one row, and "
                "accounting.user_sampled prices Poisson samples for a user"
            )
        noise = self.noise_multiplier
        if self.microbatching:
            if sampling != "cyclic" or adjacency not in {Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE}:
                stated = "the default" if adjacency is None else adjacency.value
                raise UnsupportedEvent(
                    f"microbatching with sampling={sampling!r} under {stated}: a row that comes in or is left out "
                    "shifts all later rows to other groups, whose clipped sums all change, so that no multiple of the "
                    "clipping norm bounds it; state sampling='cyclic' with adjacency zero-out or replace-one, if the "
                    "batches were public or shuffled"
                )
            if adjacency is Adjacency.ZERO_OUT:  # replace-one counts twice the norm in the plan itself
                noise = _directed.float_down(Fraction(noise) / 2)
        return sgd.sgd_plan(
            rows=self.rows, batch_size=self.batch_size, epochs=self.epochs, noise_multiplier=noise, sampling=sampling,
            adjacency=adjacency,
        )  # fmt: skip


def read_tf_privacy_statement(text: str) -> TFPrivacyStatement:
    """Read the text of TF Privacy's `compute_dp_sgd_privacy_statement`.

    Its epsilons are not read: they are rounded to the nearest thousandth, down as often as up.

    Raises:
        InvalidParameter: the text has no such statement, or states a value outside its bound.
    """
    said: Any = text
    if not isinstance(said, str) or len(said) > _LONG:
        raise _validate.fail("text", said, f"a text of at most {_LONG} characters", "statement")
    joined = " ".join(said.split())
    found, at = _STATEMENT.search(joined), _AT.search(joined)
    if found is None or at is None:
        raise InvalidParameter(
            "text: no statement of TF Privacy was found in it; it begins with 'DP-SGD performed over', and says "
            "'adjacency at delta =' (unit: statement)"
        )
    try:
        noise, epochs, delta = (float(each) for each in (found["noise"], found["epochs"], at["delta"]))
    except ValueError:
        raise InvalidParameter(f"text: a number cannot be read in {found[0]!r} (unit: statement)") from None
    most: Any = found["most"]
    return TFPrivacyStatement(
        rows=_validate.count("rows", int(found["rows"]), "rows"),
        batch_size=_validate.count("batch_size", int(found["batch"]), "rows"),
        epochs=_validate.positive("epochs", epochs, "passes over the rows"),
        noise_multiplier=_validate.positive("noise_multiplier", noise, "standard deviations per clipping norm"),
        microbatching=found["micro"] == "with",
        rows_per_user=None if most is None else _validate.count("rows_per_user", int(most), "rows"),
        delta=_validate.positive("delta", delta, "probability"),
        accounting=at["accounting"],
    )
