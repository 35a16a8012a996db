"""The numbers of outputs for learning, choosing and testing, and the exact test on the last of them.

All numbers are settled before the outputs of the test are drawn, from the arguments and from the time that the first
outputs took (a slow mechanism gets fewer), so that the test stays one test.

Each output of the test is from the data set that a coin chose, which need not be fair:
docs/explanation/black-box.md#uneven-coins proves both bounds. With a fair coin `epsilon_from_labels` is
`auditing.randomised_labels`.
"""

import math
from dataclasses import dataclass
from typing import final

from ledgerwood import _validate
from ledgerwood.errors import AuditFailed, InvalidParameter
from ledgerwood.verification.auditing.counts import binomial_lower, binomial_upper, hockey_stick
from ledgerwood.verification.black_box.draws import OutputDraws
from ledgerwood.verification.black_box.terms import Stop, least_outputs

_LEAST_FIT, _MOST_FIT, _FIT, _CHEAP_FIT = 20_000, 400_000, 1_200_000, 40_000_000
"""Outputs to learn from, of each data set: at least and at most, and for outputs of many and of few numbers. The
tables of patterns and intervals gain from more outputs, at no cost worth saving where these are of few numbers."""
_LEAST_RANK, _RANK, _CHEAP = 20_000, 100_000, 200_000_000
_EARLY, _LATEST = 10, 2.5
"""Where a test may stop early, a tenth as many outputs are learned from, and up to 2.5 times as many tested: together
fewer than an audit of fixed size draws, of outputs of one or two numbers."""
_TEST, _CHOOSE = 0.5, 0.3
"""Of a limited number of outputs: for the test, and for choosing its event. The rest is for learning."""
_SEARCH, _FIRST, _LEAST_SEARCH = 0.3, 2000, 25
"""Of a limited number of outputs: for the search of a pair; and outputs of its first round, at most and at least."""
_PROBE, _TRIAL = 10, 0.02
"""Outputs of the first trial, and how much of the time trials may take before the last one."""
_USED = 0.8
"""Of the time that is given: the rest is for learning itself."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Outputs of each data set.

    Args:
        n: the number of outputs of the test.
        learn: the learn of learning, at most.
        most: the limit of all parts together, on both data sets; None without a limit.
        search: the outputs for the search of a pair, on both data sets; None without a limit.
        notes: what was left out, in words.
    """

    n: int
    learn: int
    most: int | None
    search: int | None
    notes: tuple[str, ...]

    @property
    def fit_first(self) -> int:
        """The outputs of the first call, from which the encoding is learned."""
        return min(self.learn, _LEAST_FIT)

    def fit_more(self, columns: int) -> int:
        """The outputs of a second call, for outputs with this number of numbers."""
        most = max(_FIT // max(columns, 1), _CHEAP_FIT // max(columns, 1) ** 2, _LEAST_FIT)
        return max(min(self.learn, most, _MOST_FIT) - self.fit_first, 0)

    def choose(self, columns: int) -> int:
        """The outputs for choosing an event: more give a better choice; outputs of one or two numbers are cheap."""
        if self.most is not None:
            return max(int(0.5 * _CHOOSE * self.most), 1)
        return max(self.learn, min(3 * self.learn, _CHEAP // columns**2))

    def rank(self, columns: int) -> int:
        """The part of these outputs that is used for all candidates."""
        return max(_RANK // columns, _LEAST_RANK)

    def search_first(self, pairs: int) -> int:
        """The outputs of the first round of the search, for each pair; each later round has half the pairs, twice that.

        Raises:
            InvalidParameter: fewer than can be learned from.
        """
        first = min(_FIRST, self.n)
        if self.search is None:
            return first
        left, scale, outputs = pairs, 1, 0
        while True:
            outputs += 4 * left * scale  # to learn and to choose, on both data sets
            left, scale = (left + 1) // 2, 2 * scale
            if left == 1:
                break
        if self.search < _LEAST_SEARCH * outputs:
            raise InvalidParameter(
                f"max_draws or seconds leave {self.search} outputs for the search among {pairs} pairs, and at least "
                f"{_LEAST_SEARCH * outputs} are needed: give fewer pairs, or one pair=, or raise the limit "
                "(unit: outputs)"
            )
        return min(first, self.search // outputs)


def unlimited(n: int, stop: Stop) -> Sizes:
    """Returns sizes without limits: as many outputs as n asks for."""
    if stop == "never":
        return Sizes(n=n, learn=n, most=None, search=None, notes=())
    return Sizes(n=math.ceil(_LATEST * n), learn=max(n // _EARLY, min(n, 2000)), most=None, search=None, notes=())


def sizes(
    draws: OutputDraws,
    n: int,
    *,
    stop: Stop,
    alpha: float,
    max_draws: int | None,
    seconds: float | None,
    searching: bool,
) -> Sizes:
    """Divides the outputs among the parts of the audit.

    Args:
        draws: to be timed, where seconds are given.
        n, stop, alpha, max_draws, seconds: as for `audit`.
        searching: whether a pair is searched first.

    Raises:
        InvalidParameter: too few draws for any bound, or not a number of them.
        AuditFailed: the mechanism is too slow for the time that is given.
    """
    full, notes = unlimited(n, stop), []
    most = None if max_draws is None else _validate.count("max_draws", max_draws, "outputs in all")
    # Each part has its least number on both data sets.
    least = math.ceil(2 * least_outputs(alpha) / _TEST / (1.0 - _SEARCH if searching else 1.0))
    if most is not None and most < least:
        bound = f"at least {least}: fewer can show nothing at alpha={alpha}"
        raise _validate.fail("max_draws", max_draws, bound, "outputs in all")
    if seconds is not None:
        given = _validate.positive("seconds", seconds, "seconds")
        fitting, each = _timed(draws, given, n)
        if fitting < least:
            raise AuditFailed(
                f"seconds={given:g} is enough for {fitting} outputs of this mechanism, at {each:.3g} s each; at least "
                f"{least} are needed, which take about {least * each / _USED:.3g} s"
            )
        if most is None or fitting < most:
            notes.append(f"seconds={given:g} left room for {fitting:,} outputs in all, at {each:.2g} s each")
            most = fitting
    if most is None:
        return full
    left = int(most * (1.0 - _SEARCH)) if searching else most
    if 2 * (full.learn + 3 * full.learn + full.n) <= left:
        return full
    tested = min(full.n, int(0.5 * _TEST * left))
    learn = min(full.learn, int(0.5 * (1.0 - _TEST - _CHOOSE) * left))
    if tested < full.n:
        notes.append(
            f"the test had {2 * tested:,} outputs instead of the {2 * full.n:,} that n={n:,} asks for"
            + ("" if max_draws is None else f" (max_draws={max_draws:,})")
        )
    if learn < full.learn:
        notes.append(f"its event was learned on {learn:,} outputs a side instead of up to {full.learn:,}")
    return Sizes(n=tested, learn=learn, most=left, search=most - left if searching else None, notes=tuple(notes))


def _timed(draws: OutputDraws, seconds: float, n: int) -> tuple[int, float]:
    """How many outputs fit the time, and what one takes: by trials that grow as long as they are quick."""
    size = _PROBE
    while True:
        before = draws.seconds
        draws.trial(size)
        took = draws.seconds - before
        each = max(took / (2 * size), 1e-9)
        if size >= n or 10.0 * took > _TRIAL * seconds:
            return int(_USED * max(seconds - draws.seconds, 0.0) / each), each
        size *= 10


_SHARE = 0.05
"""Of alpha: spent on how often the event happens at all, where a delta is in play."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of one event, by the coin and by the outputs.

    Args:
        inside: outputs in the event from the data set that the event speaks for.
        other: outputs in the event from the other data set.
        outside: outputs from the other data set that are not in the event.
        runs: all outputs.
        coin: probability that a run was on the data set that the event speaks for.
    """

    inside: int
    other: int
    outside: int
    runs: int
    coin: float

    @property
    def _least_odds(self) -> float:
        return self.coin / (1.0 - self.coin)

    def epsilon_from_labels(self, *, delta: float, alpha: float) -> float:
        """A lower bound on epsilon at `delta` from the share of labels among outputs in the event; exact.

        Source: docs/explanation/black-box.md#uneven-coins.
        """
        total = self.inside + self.other
        if total == 0:
            return 0.0
        share, rest = self._shares(alpha * (1.0 - _SHARE) if delta > 0.0 else alpha)
        if delta > 0.0:
            least = binomial_lower(total, self.runs, alpha * _SHARE)
            share = share - self.coin * delta / least if least > 0.0 else 0.0
        if share <= 0.0:
            return 0.0
        return max(0.0, math.log(share / rest / self._least_odds)) * (1.0 - 1e-12)

    def _shares(self, alpha: float) -> tuple[float, float]:
        """One bound on the share of labels, from below, and what is left of it, from above: both keep their digits."""
        total = self.inside + self.other
        return binomial_lower(self.inside, total, alpha), binomial_upper(self.other, total, alpha)

    def delta_from_labels(self, *, epsilon: float, alpha: float) -> float:
        """A lower bound on delta at `epsilon` from the same share: what `epsilon_from_labels` refuses.

        Source: docs/explanation/black-box.md#uneven-coins.
        """
        total = self.inside + self.other
        if total == 0:
            return 0.0
        share, rest = self._shares(alpha * (1.0 - _SHARE))
        least = binomial_lower(total, self.runs, alpha * _SHARE)
        odds = self._least_odds * math.exp(epsilon)
        return max(0.0, least / self.coin * (share - rest * odds)) * (1.0 - 1e-12)

    def delta_from_guesses(self, *, epsilon: float, alpha: float) -> float:
        """A lower bound on delta at `epsilon` where the coin is 1 / (1 + e^epsilon): `auditing.hockey_stick`."""
        return hockey_stick(self.inside + self.outside, self.runs, epsilon=epsilon, alpha=alpha)
