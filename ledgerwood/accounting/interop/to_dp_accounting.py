"""Convert events to dp-accounting's DpEvent trees. docs/explanation/interop.md#dp-events derives each conversion."""

import math
from fractions import Fraction
from typing import Any

from ledgerwood import _directed
from ledgerwood.accounting.adjacency import Adjacency, require_adjacency
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.events.choices.bounded_range import BoundedRangeEvent
from ledgerwood.accounting.events.choices.pure import PureEvent, RandomizedResponseEvent
from ledgerwood.accounting.events.choices.selection import PoissonSelection, RepeatedSelection
from ledgerwood.accounting.events.composition import Composed, Repeated
from ledgerwood.accounting.events.noise.discrete import DiscreteGaussianEvent, DiscreteLaplaceEvent
from ledgerwood.accounting.events.noise.gaussian import EllipticalGaussianEvent, GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.sampled.fixed_size import FixedSizeSampled, ReplaceOneSampled
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.events.stated import ApproximateEvent, ZeroConcentratedEvent
from ledgerwood.accounting.interop import peers
from ledgerwood.accounting.interop.from_dp_accounting import from_dp_event, log_odds, sensitivity_factor
from ledgerwood.errors import UnsupportedEvent

_ULP = 2.0**-52


def to_dp_event(event: Event) -> Any:
    """The DpEvent of dp-accounting that describes an event; `from_dp_event` brings it back.

    The adjacency is not part of it: give the accountant `to_neighboring_relation(event.adjacency)`. Under replace-one
    the multiplier is doubled, and dp-accounting 0.6.0 accounts for the result correctly by PLD only
    (docs/explanation/peers.md#peer-bugs, B5). What float64 cannot hold is rounded to the costlier side; an elliptical
    Gaussian becomes, and comes back as, the Gaussian that it is.

    Raises:
        UnsupportedEvent: a part that the installed dp-accounting cannot describe; the message names the part.
        ImportError: dp-accounting is not installed.
    """
    require_event(event)
    return _tree(event, vars(peers.load("dp_accounting.dp_event", extra="dp-accounting")))


def to_neighboring_relation(adjacency: Adjacency) -> Any:
    """The relation that dp-accounting's accountants are to be told for events of this adjacency.

    Raises:
        ImportError: dp-accounting is not installed.
    """
    require_adjacency(adjacency)
    relations = peers.load("dp_accounting.privacy_accountant", extra="dp-accounting").NeighboringRelation
    match adjacency:
        case Adjacency.ADD_REMOVE:
            return relations.ADD_OR_REMOVE_ONE
        case Adjacency.ZERO_OUT:
            return relations.REPLACE_SPECIAL
        case Adjacency.REPLACE_ONE:
            return relations.REPLACE_ONE


def _tree(event: Event, known: dict[str, Any]) -> Any:
    factor = sensitivity_factor(event.adjacency)

    def make(name: str, *values: object) -> Any:
        if name not in known:
            raise UnsupportedEvent(f"{event!r} needs dp-accounting's {name}, which the installed release does not have")
        return known[name](*values)

    match event:
        case Repeated():
            return make("SelfComposedDpEvent", _tree(event.event, known), event.count)
        case Composed():
            return make("ComposedDpEvent", [_tree(part, known) for part in event.events])
        case PoissonSampled():
            return make("PoissonSampledDpEvent", event.sampling_rate, _tree(event.event, known))
        case FixedSizeSampled():
            inner = _tree(event.event, known)
            return make("SampledWithoutReplacementDpEvent", event.population, event.sample_size, inner)
        case ReplaceOneSampled():
            tree = make("PoissonSampledDpEvent", event.sampling_rate, _tree(event.event, known))
            if from_dp_event(tree, adjacency=event.adjacency) != event:
                raise UnsupportedEvent(
                    f"{event!r}: dp-accounting takes a record's presence for half of its replacement"
                )
            return tree
        case PoissonSelection():
            return make("RepeatAndSelectDpEvent", _tree(event.event, known), event.mean, math.inf)
        case RepeatedSelection() if event.shape == 1.0:
            mean = _directed.float_up(1 / Fraction(event.stopping_rate))
            return make("RepeatAndSelectDpEvent", _tree(event.event, known), mean, 1.0)
        case GaussianEvent() | EllipticalGaussianEvent():
            return make("GaussianDpEvent", factor * event.noise_multiplier)
        case LaplaceEvent():
            return make("LaplaceDpEvent", factor * event.noise_multiplier)
        case DiscreteLaplaceEvent() if event.sensitivity % factor == 0:
            parameter = _directed.float_up(1 / Fraction(event.scale))
            return make("DiscreteLaplaceDpEvent", parameter, event.sensitivity // factor)
        case DiscreteGaussianEvent():
            return make("DiscreteGaussianDpEvent", event.scale, float(event.sensitivity), 1)
        case RandomizedResponseEvent():
            return make("RandomizedResponseDpEvent", _noise_parameter(event), event.categories)
        case ZeroConcentratedEvent():
            return make("ZCDpEvent", event.rho)
        case BoundedRangeEvent():
            return make("ExponentialMechanismDpEvent", event.epsilon)
        case PureEvent():
            return make("EpsilonDeltaDpEvent", event.epsilon, 0.0)
        case ApproximateEvent():
            return make("EpsilonDeltaDpEvent", event.epsilon, event.delta)
        case _:
            raise UnsupportedEvent(f"{event!r} has no event in dp-accounting")


def _noise_parameter(event: RandomizedResponseEvent) -> float:
    """The largest float p at which randomised response loses no less than the event."""
    k = event.categories
    parameter = k / (math.expm1(event.epsilon) + k) if event.epsilon < 700.0 else 0.0
    parameter = min(parameter, 1.0 - _ULP)
    while parameter >= 1e-300 and log_odds(parameter, k)[0] < event.epsilon:
        parameter = math.nextafter(parameter, 0.0)
    if parameter < 1e-300 or log_odds(parameter, k)[1] > event.epsilon * (1.0 + 1e-9):
        raise UnsupportedEvent(f"no float64 noise_parameter of dp-accounting's randomised response expresses {event!r}")
    return parameter
