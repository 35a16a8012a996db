"""Private initial scores: the mean label, released before the first tree."""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.splitting import split
from ledgerwood.curator import Aggregator, LabelCount, LabelMoments, LabelSum, Loss, Query
from ledgerwood.curator.queries.labels import COARSER
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter
from ledgerwood.mechanisms import (
    BallShifts,
    BoxShifts,
    EllipticalGaussianMechanism,
    LaplaceMechanism,
    SkellamMechanism,
)
from ledgerwood.trainers.parts.whole_noise import NoiseKind, bits_of, skellam_noise

InitialScoreKind = Literal["zero", "moments", "laplace", "public_count"]
COUNT_SHARE = 0.2
"""Share of the pair's mu**2 for the number of rows; the sum of labels is worth more."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InitialScore:
    """The queries of the initial score and their noise; all rows take part, whatever the trees sample.

    Args:
        kind: "zero" asks for nothing; "moments" for (count, sum) with elliptical Gaussian noise; "laplace" for a
            count and a sum with Laplace noise, as two releases; "public_count" for a Laplace sum over the declared
            number of rows, which is public under replace-one only.
        adjacency: the relation of neighbouring data sets.
        multiplier: noise of each release, stddev or scale over sensitivity.
        expected_rows: declared number of rows; "public_count" needs it.
        noise: "skellam" for "moments" in whole units, with Skellam noise.
    """

    kind: InitialScoreKind
    adjacency: Adjacency
    multiplier: float
    expected_rows: int | None
    noise: NoiseKind = "gaussian"

    def __post_init__(self) -> None:
        _validate.positive("initial_multiplier", self.multiplier, "noise / sensitivity")
        if self.kind == "public_count":
            if self.adjacency is not Adjacency.REPLACE_ONE:
                raise AdjacencyMismatch(
                    "initial_score='public_count' needs adjacency replace-one: "
                    f"the number of rows is private under {self.adjacency.value}"
                )
            if self.expected_rows is None:
                raise InvalidParameter("initial_score='public_count' needs the declared number of rows (expected_rows)")

    @property
    def queries(self) -> tuple[Query[BoxShifts | BallShifts], ...]:
        """The queries, each of which is one release."""
        match self.kind:
            case "zero":
                return ()
            case "moments":
                return (LabelMoments(bits=self.bits),)
            case "laplace":
                return (LabelCount(), LabelSum())
            case "public_count":
                return (LabelSum(),)

    @property
    def sum_stddev(self) -> float:
        """Standard deviation of Skellam noise on the sum of labels; that on the rows is larger, by their units."""
        return self.multiplier * BoxShifts(boxes=((1.0, 1.0),)).l2((2.0**COARSER, 1.0))

    @property
    def bits(self) -> int | None:
        """Whole units of 2**-bits for Skellam noise, else None."""
        return bits_of(self.sum_stddev, COARSER) if self.noise == "skellam" else None

    @property
    def mechanism(self) -> EllipticalGaussianMechanism | LaplaceMechanism | SkellamMechanism:
        """The noise of each release."""
        if self.kind == "moments" and self.bits is not None:
            return skellam_noise(self.sum_stddev, self.bits)
        if self.kind == "moments":
            count = self.multiplier / math.sqrt(COUNT_SHARE)
            total = self.multiplier / math.sqrt(1.0 - COUNT_SHARE)
            return EllipticalGaussianMechanism(stddevs=(count, total))
        width = 2.0 if self.adjacency is Adjacency.REPLACE_ONE else 1.0
        return LaplaceMechanism(scales=(self.multiplier * width,))

    @property
    def events(self) -> tuple[Event, ...]:
        """The draws, one a release."""
        return tuple(self.mechanism.event(query.sensitivity(self.adjacency), self.adjacency) for query in self.queries)

    def require_fit(self) -> None:
        """Refuse noise that cannot be drawn on the statistics' grids.

        Raises:
            InvalidParameter: it cannot.
        """
        for query in self.queries:
            self.mechanism.require_fit(query.grid)

    def with_share(self, share: float, budget: Budget) -> "InitialScore":
        """Returns the initial score with the noise for this share of the budget: of mu**2 ("moments") or of epsilon.

        Raises:
            InvalidParameter, UnsupportedEvent: as `split`.
        """
        if self.kind == "zero":
            return self
        parts = {"initial_score": share, "trees": 1.0 - share}
        if self.kind == "moments":
            multiplier = split(budget, parts, currency="mu_squared")["initial_score"].gaussian_multiplier()
        else:
            own = split(budget, parts, currency="epsilon")["initial_score"]
            multiplier = own.laplace_multiplier(count=len(self.queries))
        return dataclasses.replace(self, multiplier=multiplier)

    @property
    def count_stddev(self) -> float:
        """Standard deviation of the noise on the number of rows."""
        mechanism = self.mechanism
        if isinstance(mechanism, LaplaceMechanism):
            return math.sqrt(2.0) * mechanism.scales[0]
        if isinstance(mechanism, SkellamMechanism):
            return self.sum_stddev * 2.0**COARSER
        return mechanism.stddevs[0]


def mean_label(score: InitialScore, aggregator: Aggregator) -> float:
    """The private mean of the labels, which are scaled to [-1, 1] (S-GBDT Algorithm 6, made sound).

    Drawn to the middle of the range where the noise on the number of rows outweighs it.
    """
    sums: list[float] = []
    for event, query, purpose in _asked(score):
        with aggregator.open(event, purpose=purpose) as round_:
            released = round_.release(query, score.mechanism, purpose=purpose).real
            sums.extend((released / query.units if isinstance(query, LabelMoments) else released).tolist())
    match sums:
        case []:
            return 0.0
        case [total]:
            rows = float(score.expected_rows or 1)
        case [count, total]:
            rows = max(count, 0.0) + score.count_stddev
    return min(max(total / rows, -1.0), 1.0)


def first_score(score: InitialScore, loss: Loss, aggregator: Aggregator) -> float:
    """The mean label, or its log-odds for the logistic loss."""
    mean = mean_label(score, aggregator)
    if loss == "squared":
        return mean
    # Kept where a few noisy labels cannot make a class impossible.
    mean = min(max(mean, -0.98), 0.98)
    return math.log1p(mean) - math.log1p(-mean)


def leave_first_score(score: InitialScore, aggregator: Aggregator) -> None:
    """Make the draws of the initial score and release nothing, where several classes have no mean label."""
    for event, _, purpose in _asked(score):
        with aggregator.open(event, purpose=purpose):
            pass


def _asked(score: InitialScore) -> Iterator[tuple[Event, Query[BoxShifts | BallShifts], str]]:
    """Each release: its event, its query and its purpose."""
    for event, query in zip(score.events, score.queries, strict=True):
        yield event, query, f"initial score: {type(query).__name__}"
