"""Shuffled runs: each pass over the rows is a random permutation, cut into batches. docs/explanation/shuffling.md."""

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import final

from ledgerwood import _directed, _validate
from ledgerwood.accounting import pricing
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.costs.losses import maxima
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.composition import Repeated
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.errors import UnsupportedEvent


@final
@dataclass(frozen=True, slots=True)
class ShuffledBatches:
    """A run over shuffled rows in batches of a fixed size, between two proven costs; it is no event.

    In each pass the rows are permuted uniformly and cut into `steps` batches of equal size, of which the last one may
    be short; each batch's sum has Gaussian noise. The places of rows depend on each other, so that neither
    `PoissonSampled` nor `RandomAllocation` describes it, and no better certified upper bound is known in general than
    that of one step a pass. docs/explanation/shuffling.md.

    Args:
        event: the release from one batch.
        steps: batches of a pass, >= 1; public.
        epochs: passes, >= 1; public.

    Raises:
        InvalidParameter: a value outside its bound.
        UnsupportedEvent: an event that is not a `GaussianEvent`.
    """

    event: GaussianEvent
    _: KW_ONLY
    steps: int
    epochs: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.event, GaussianEvent):
            raise UnsupportedEvent(f"{self.event!r} is not a GaussianEvent: shuffled batches are bounded for that only")
        object.__setattr__(self, "steps", _validate.count("steps", self.steps, "batches of a pass"))
        object.__setattr__(self, "epochs", _validate.count("epochs", self.epochs, "passes"))

    def above(self) -> Event:
        """The event whose cost bounds the run's, for a ledger: docs/explanation/shuffling.md#shuffled-above.

        Under zero-out and replace-one a row moves one batch of a pass; this is exact where the partition into batches
        is fixed and public. Under add-remove another row takes the place of the row that is gone, and the last batch is
        one row short: sqrt(5) sensitivities.
        """
        step = self.event
        if step.adjacency is Adjacency.ADD_REMOVE and self.steps > 1:
            less = Fraction(step.noise_multiplier) / Fraction(_directed.root_up(Fraction(5)))
            step = GaussianEvent(noise_multiplier=_directed.float_down(less), adjacency=step.adjacency)
        return Repeated(step, count=self.epochs)

    def epsilon_interval(self, delta: float) -> tuple[float, float]:
        """(lower, upper) around the run's epsilon at `delta` in (0, 1), in nats, for the worst rows; both proven.

        Raises:
            InvalidParameter: delta outside (0, 1).
        """
        delta = _validate.positive("delta", delta, "probability")
        upper = pricing.price(self.above()).epsilon(delta)
        noise = self.event
        lower = maxima.epsilon(noise.adjacency, noise.noise_multiplier, self.steps, self.epochs, delta)
        return min(lower, upper), upper

    def delta_interval(self, epsilon: float) -> tuple[float, float]:
        """(lower, upper) around the run's delta at `epsilon` >= 0 (nats), for the worst rows; both proven.

        Raises:
            InvalidParameter: epsilon negative or not finite.
        """
        epsilon = _validate.non_negative("epsilon", epsilon, "nats")
        upper = pricing.price(self.above()).delta(epsilon)
        noise = self.event
        found = maxima.delta(noise.adjacency, noise.noise_multiplier, self.steps, self.epochs)
        return min(found(epsilon), upper), upper
