"""OpenDP's measurements, by their privacy maps. docs/explanation/interop.md#opendp."""

from typing import Any

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, require_adjacency
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.accounting.events.stated import ApproximateEvent, ProfileEvent, RenyiEvent, ZeroConcentratedEvent
from ledgerwood.accounting.interop import dp_accounting
from ledgerwood.errors import AdjacencyMismatch, UnsupportedEvent

_LEAST_EPSILON = 1e-100
_LARGEST_EPSILON = 700.0
_ORDERS = (1.25, 1.5, 2.0, 2.5, *(float(order) for order in range(3, 65)), 96.0, 128.0, 256.0)
_DELTAS = (0.5, 0.2, *(float(f"{digit}e-{power}") for power in range(1, 19) for digit in (1, 0.5, 0.2)))
_RELATIONS = {
    "SymmetricDistance": {(Adjacency.ADD_REMOVE, 1), (Adjacency.REPLACE_ONE, 2)},
    "InsertDeleteDistance": {(Adjacency.ADD_REMOVE, 1), (Adjacency.REPLACE_ONE, 2)},
    "ChangeOneDistance": {(Adjacency.REPLACE_ONE, 1)},
    "HammingDistance": {(Adjacency.REPLACE_ONE, 1)},
}
"""For metrics between data sets: the relations, each with the distance of neighbours."""
_STATISTICS = frozenset({"AbsoluteDistance", "L1Distance", "L2Distance", "LInfDistance", "DiscreteDistance"})
_GROUPED = ("L01InfDistance(AbsoluteDistance(", "L02InfDistance(AbsoluteDistance(")
"""For metrics between statistics the relation is the caller's word."""


def from_opendp(measurement: object, *, d_in: object, adjacency: Adjacency) -> Event:
    """A measurement of OpenDP as the event of its privacy map at one input distance.

    The map's answer is OpenDP's word: it is *stated* here, not proven. Where this library has the event itself (noise
    on integers, say), that one costs less in compositions.

    Args:
        measurement: an `opendp.mod.Measurement`.
        d_in: the distance of neighbouring inputs in the measurement's input metric: 1 for data sets that differ by an
            added or removed row, or the sensitivity of a statistic.
        adjacency: the relation of which d_in is the distance. A metric between data sets that contradicts it is
            refused; for metrics between statistics (absolute, L1, L2, LInf, discrete) it is your word.

    Returns:
        A `PureEvent` for MaxDivergence, a `ZeroConcentratedEvent` for ZeroConcentratedDivergence, an `ApproximateEvent`
        for Approximate(MaxDivergence), a `ProfileEvent` of (epsilon, delta) at 56 deltas from .5 to 2e-18 for
        SmoothedMaxDivergence, and a `RenyiEvent` at 69 orders from 1.25 to 256 for RenyiDivergence.

    Raises:
        UnsupportedEvent: another privacy measure, an infinite cost, or none; or an input metric that is not known.
        AdjacencyMismatch: the input metric has another distance under this relation.
        InvalidParameter: not a Measurement.
        ImportError: OpenDP is not installed.
    """
    require_adjacency(adjacency)
    mod = dp_accounting.load("opendp.mod", extra="opendp")
    if not isinstance(measurement, mod.Measurement):
        raise _validate.fail("measurement", measurement, "an opendp Measurement", "measurement")
    found: Any = measurement
    _require_relation(found.input_metric, d_in, adjacency)
    measure = str(found.output_measure)
    cost = found.map(d_in)
    match measure:
        case "MaxDivergence":
            epsilon = _finite(cost, measure)
            return PureEvent(epsilon=epsilon, adjacency=adjacency)
        case "ZeroConcentratedDivergence":
            return ZeroConcentratedEvent(rho=_finite(cost, measure), adjacency=adjacency)
        case "Approximate(MaxDivergence)":
            epsilon, delta = cost
            if delta == 0.0:
                return PureEvent(epsilon=_finite(epsilon, measure), adjacency=adjacency)
            stated = max(_validate.non_negative("epsilon", epsilon, "nats"), _LEAST_EPSILON)
            return ApproximateEvent(epsilon=stated, delta=delta, adjacency=adjacency)
        case "SmoothedMaxDivergence":
            return _profile(cost, adjacency)
        case "RenyiDivergence":
            return RenyiEvent(orders=_ORDERS, divergences=tuple(_finite(cost(a), measure) for a in _ORDERS),
                              adjacency=adjacency)  # fmt: skip
        case _:
            raise UnsupportedEvent(
                f"{measure} has no event here: state the measurement by MaxDivergence, ZeroConcentratedDivergence, "
                "SmoothedMaxDivergence, or Approximate(MaxDivergence), as dp.c.make_zCDP_to_approxDP does"
            )


def _require_relation(metric: Any, d_in: object, adjacency: Adjacency) -> None:
    """Refuse a metric between data sets that contradicts the relation, and one that is not known."""
    text = str(metric)
    if type(metric).__name__ == "ExtrinsicDistance":
        text = f"user_distance({text!r})"  # its text is whatever its maker says
    whole = text.removeprefix("FrameDistance(").removesuffix(")") if text.startswith("FrameDistance(") else text
    name = whole.partition("(")[0]
    if text.partition("(")[0] in _STATISTICS or text.startswith(_GROUPED):
        return
    if whole != f"{name}()" or name not in _RELATIONS:
        raise UnsupportedEvent(
            f"the input metric {text} is not known to be {adjacency.value} at any d_in: metrics between data sets are "
            f"read if they count rows ({', '.join(_RELATIONS)}), and others if they are of statistics "
            f"({', '.join(sorted(_STATISTICS))}). Where identifiers are counted, a neighbour is a whole user; state "
            "the cost yourself, as PureEvent(epsilon=measurement.map(d_in), adjacency=...), on a ledger with that unit"
        )
    if not isinstance(d_in, int) or (adjacency, d_in) not in _RELATIONS[name]:
        known = " or ".join(f"{relation.value} at d_in={distance}" for relation, distance in sorted(
            _RELATIONS[name], key=lambda pair: pair[0].value))  # fmt: skip
        why = "" if adjacency is not Adjacency.ZERO_OUT else (
            ". A row that is set to zero need not be in the measurement's domain: a sum of values in [99, 100] moves "
            "by up to 100, where this metric counts 1; convert the noise on the statistic, with d_in its move"
        )  # fmt: skip
        raise AdjacencyMismatch(f"{name} at d_in={d_in!r} is not {adjacency.value}: it states {known}{why}")


def _finite(cost: Any, measure: str) -> float:
    if cost == 0.0:
        raise UnsupportedEvent(f"{measure} of 0: nothing that depends on the data is released, so there is no event")
    if cost == float("inf"):
        raise UnsupportedEvent(f"{measure} of inf: the measurement has no finite privacy cost")
    return _validate.positive("privacy cost", cost, "nats")


def _profile(profile: Any, adjacency: Adjacency) -> Event:
    """Pairs that the measurement keeps, by its own word; between them chords: interop.md#opendp."""
    least: dict[float, float] = {}
    for delta in _DELTAS:
        epsilon = float(profile.epsilon(delta))
        if 0.0 <= epsilon <= _LARGEST_EPSILON:
            least[epsilon] = min(delta, least.get(epsilon, 1.0))
    if not least:
        raise UnsupportedEvent(
            f"the privacy profile has no epsilon up to {_LARGEST_EPSILON:g} nats at any delta from {_DELTAS[-1]} on"
        )
    epsilons = tuple(sorted(least))
    return ProfileEvent(epsilons=epsilons, deltas=tuple(least[each] for each in epsilons), adjacency=adjacency)
