"""Conversions between events and dp-accounting's DpEvent trees. docs/explanation/interop.md#dp-events derives each.

A DpEvent does not know which data sets are neighbours; the accountant that reads it does. Its noise multiplier is noise
over the bound C on the norm of *one record's values*: the sensitivity where a record is added, removed or replaced by a
null, and half of it where a record is replaced by another. Events here are stated after that factor.
"""

import importlib
import math
from collections.abc import Iterable
from fractions import Fraction
from types import ModuleType
from typing import Any

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency, require_adjacency
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.events.choices.pure import BoundedRangeEvent, PureEvent, RandomizedResponseEvent
from ledgerwood.accounting.events.choices.selection import PoissonSelection, RepeatedSelection
from ledgerwood.accounting.events.composition import Composed, Repeated
from ledgerwood.accounting.events.noise.discrete import DiscreteGaussianEvent, DiscreteLaplaceEvent
from ledgerwood.accounting.events.noise.gaussian import EllipticalGaussianEvent, GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.noise.mixture import GaussianMixtureEvent
from ledgerwood.accounting.events.sampled.fixed_size import FixedSizeSampled, ReplaceOneSampled
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.events.sampled.variants import truncated_poisson
from ledgerwood.accounting.events.stated import ApproximateEvent, ZeroConcentratedEvent
from ledgerwood.errors import UnsupportedEvent

_LEVELS = 64
_LEAST_EPSILON = 1e-100
_ULP = 2.0**-52
_REFUSED = {
    "NonPrivateDpEvent": "a release without privacy has no finite privacy cost",
    "UnsupportedDpEvent": "it states no privacy guarantee",
    "SampledWithReplacementDpEvent": "a record may be drawn twice, and no event of this library describes this",
}
_NORM_BOUNDED = {"GaussianDpEvent", "LaplaceDpEvent", "DiscreteLaplaceDpEvent"}


def from_dp_event(tree: object, *, adjacency: Adjacency) -> Event:
    """The event that a DpEvent of dp-accounting describes; parts that release nothing are left out.

    Args:
        tree: an event of `dp_accounting.dp_event`, of exactly one of its classes.
        adjacency: the relation that its accountant would have been told. Under REPLACE_ONE a noise multiplier m
            becomes m / 2, since a record that is replaced moves a clipped sum by twice its norm bound.

    Raises:
        UnsupportedEvent: a part that has no event here, or a tree that releases nothing; the message names the part.
        InvalidParameter: a parameter outside the bounds of its event.
    """
    require_adjacency(adjacency)
    event = _event(tree, adjacency, _LEVELS)
    if event is None:
        raise UnsupportedEvent(f"{_short(tree)} releases nothing that depends on the data: it has no event")
    return event


def _event(tree: Any, adjacency: Adjacency, levels: int) -> Event | None:
    """None if nothing that depends on the data is released."""
    if levels == 0:
        raise UnsupportedEvent(f"a DpEvent nested deeper than {_LEVELS} levels is refused")
    cls = type(tree)
    if cls.__module__ != "dp_accounting.dp_event":
        raise UnsupportedEvent(
            f"{_short(tree)} is a {cls.__module__}.{cls.__qualname__}, not one of dp-accounting's events"
        )
    match cls.__name__:
        case "NoOpDpEvent":
            return None
        case "SelfComposedDpEvent":
            count = _validate.count("count", tree.count, "releases", minimum=0)
            inner = _event(tree.event, adjacency, levels - 1) if count else None
            return None if inner is None else Repeated(inner, count=count)
        case "ComposedDpEvent":
            parts = [_event(part, adjacency, levels - 1) for part in tree.events]
            members = tuple(part for part in parts if part is not None)
            return Composed(members) if members else None
        case "PoissonSampledDpEvent":
            return _poisson_sampled(tree, adjacency, levels)
        case "SampledWithoutReplacementDpEvent":
            size = _validate.count("sample_size", tree.sample_size, "rows", minimum=0)
            inner = _event(tree.event, adjacency, levels - 1) if size else None
            population = tree.source_dataset_size
            return None if inner is None else FixedSizeSampled(inner, sample_size=size, population=population)
        case "RepeatAndSelectDpEvent":
            inner = _event(tree.event, adjacency, levels - 1)
            return None if inner is None else _selection(tree, inner)
        case _:
            return _release(tree, adjacency)


def _poisson_sampled(tree: Any, adjacency: Adjacency, levels: int) -> Event | None:
    """Under replace-one a norm bound says both what a replaced record moves and what a record's presence does."""
    rate = _validate.non_negative("sampling_probability", tree.sampling_probability, "probability")
    inner = _event(tree.event, adjacency, levels - 1) if rate > 0.0 else None
    if inner is None:
        return None
    if adjacency is not Adjacency.REPLACE_ONE:
        return PoissonSampled(inner, sampling_rate=rate)
    if not _norm_bounded(tree.event):
        raise _refused(tree, "under replace-one the cost of a record's presence must be known, and it is not")
    present = _event(tree.event, Adjacency.ADD_REMOVE, levels - 1)
    assert present is not None
    return ReplaceOneSampled(inner, add_remove=present, sampling_rate=rate)


def _norm_bounded(tree: Any) -> bool:
    match type(tree).__name__:
        case "SelfComposedDpEvent":
            return _norm_bounded(tree.event)
        case "ComposedDpEvent":
            return all(_norm_bounded(part) for part in tree.events)
        case name:
            return name in _NORM_BOUNDED


def _selection(tree: Any, inner: Event) -> Event:
    """The best of a Poisson or a geometric number of runs; docs/explanation/interop.md#dp-selection."""
    mean = _validate.positive("mean", tree.mean, "runs")
    if tree.shape == math.inf:
        return PoissonSelection(inner, mean=mean)
    if tree.shape != 1.0 or mean < 1.0:
        raise _refused(
            tree, "only a Poisson (shape inf) or a geometric (shape 1, mean >= 1) number of runs is accepted"
        )
    rate = _directed.float_down(1 / Fraction(mean))
    return inner if rate == 1.0 else RepeatedSelection(inner, shape=1.0, stopping_rate=rate)


def _release(tree: Any, adjacency: Adjacency) -> Event | None:
    match type(tree).__name__:
        case "GaussianDpEvent":
            return GaussianEvent(noise_multiplier=_own_multiplier(tree, adjacency), adjacency=adjacency)
        case "LaplaceDpEvent":
            return LaplaceEvent(noise_multiplier=_own_multiplier(tree, adjacency), adjacency=adjacency)
        case "DiscreteLaplaceDpEvent":
            return _discrete_laplace(tree, adjacency)
        case "DiscreteGaussianDpEvent":
            return _discrete_gaussian(tree, adjacency)
        case "RandomizedResponseDpEvent":
            return _randomized_response(tree, adjacency)
        case "ExponentialMechanismDpEvent":
            return BoundedRangeEvent(epsilon=tree.epsilon, adjacency=adjacency)
        case "PermuteAndFlipDpEvent":
            return PureEvent(epsilon=tree.epsilon, adjacency=adjacency)
        case "EpsilonDeltaDpEvent":
            return _approximate(tree, adjacency)
        case "ZCDpEvent":
            return _concentrated(tree, adjacency)
        case "MixtureOfGaussiansDpEvent":
            return _mixture(tree, adjacency)
        case "TruncatedSubsampledGaussianDpEvent":
            return _truncated(tree, adjacency)
        case "SingleEpochTreeAggregationDpEvent":
            return _tree_aggregation(tree, adjacency)
        case name:
            raise _refused(tree, _REFUSED.get(name, "its class is not known here"))


def sensitivity_factor(adjacency: Adjacency) -> int:
    """Sensitivity over the bound on one record's norm."""
    return 2 if adjacency is Adjacency.REPLACE_ONE else 1


def _own_multiplier(tree: Any, adjacency: Adjacency) -> float:
    unit = "standard deviations or scales per unit of norm bound"
    return _validate.positive("noise_multiplier", tree.noise_multiplier, unit) / sensitivity_factor(adjacency)


def _discrete_laplace(tree: Any, adjacency: Adjacency) -> Event | None:
    """One coordinate that takes the whole L1 shift bounds a vector: docs/explanation/interop.md#dp-discrete-laplace."""
    parameter = Fraction(_validate.positive("noise_parameter", tree.noise_parameter, "1 / scale"))
    norm = _validate.count("sensitivity", tree.sensitivity, "units of the statistic", minimum=0)
    if norm == 0:
        return None
    return DiscreteLaplaceEvent(
        scale=_directed.float_down(1 / parameter), sensitivity=sensitivity_factor(adjacency) * norm, adjacency=adjacency
    )


def _discrete_gaussian(tree: Any, adjacency: Adjacency) -> Event:
    """In one dimension exactly; of a vector only the zCDP is known. Its sensitivity is the statistic's own."""
    sigma = _validate.positive("sigma", tree.sigma, "units of the statistic")
    sensitivity = _validate.positive("sensitivity", tree.sensitivity, "units of the statistic")
    if tree.dimension == 1 and sensitivity.is_integer():
        return DiscreteGaussianEvent(scale=sigma, sensitivity=int(sensitivity), adjacency=adjacency)
    rho = _directed.float_up(Fraction(sensitivity) ** 2 / (2 * Fraction(sigma) ** 2))
    return ZeroConcentratedEvent(rho=rho, adjacency=adjacency)


def _randomized_response(tree: Any, adjacency: Adjacency) -> Event | None:
    """docs/explanation/interop.md#dp-randomised-response."""
    parameter = _validate.non_negative("noise_parameter", tree.noise_parameter, "probability")
    if parameter > 1.0:
        raise _validate.fail("noise_parameter", tree.noise_parameter, "in [0, 1]", "probability")
    buckets = _validate.count("num_buckets", tree.num_buckets, "categories")
    if buckets == 1 or parameter == 1.0:
        return None
    if parameter == 0.0:
        raise _refused(tree, "without noise it releases the answer itself")
    _, epsilon = log_odds(parameter, buckets)
    return RandomizedResponseEvent(epsilon=epsilon, categories=buckets, adjacency=adjacency)


def log_odds(parameter: float, buckets: int) -> tuple[float, float]:
    """log(1 + k (1 - p) / p) for p in (0, 1), from below and from above, in nats."""
    odds = buckets * (1 - Fraction(parameter)) / Fraction(parameter)
    return (
        math.log1p(_directed.float_down(odds)) * (1.0 - 4 * _ULP),
        math.log1p(_directed.float_up(odds)) * (1.0 + 4 * _ULP),
    )


def _approximate(tree: Any, adjacency: Adjacency) -> Event | None:
    epsilon = _validate.non_negative("epsilon", tree.epsilon, "nats")
    delta = _validate.non_negative("delta", tree.delta, "probability")
    if delta == 0.0:
        return PureEvent(epsilon=epsilon, adjacency=adjacency) if epsilon > 0.0 else None
    return ApproximateEvent(epsilon=max(epsilon, _LEAST_EPSILON), delta=delta, adjacency=adjacency)


def _concentrated(tree: Any, adjacency: Adjacency) -> Event | None:
    rho = _validate.non_negative("rho", tree.rho, "nats")
    if _validate.non_negative("xi", tree.xi, "nats") > 0.0:
        raise _refused(tree, "a divergence of xi + rho a has no event here; state a RenyiEvent at orders you choose")
    return ZeroConcentratedEvent(rho=rho, adjacency=adjacency) if rho > 0.0 else None


def _mixture(tree: Any, adjacency: Adjacency) -> Event | None:
    """N(0, s^2) against a mixture of N(c_i, s^2): with one c that is not 0, the sampled Gaussian.

    docs/explanation/interop.md#dp-mixture.
    """
    sigma = _validate.positive("standard_deviation", tree.standard_deviation, "units of the statistic")
    sizes = [_validate.non_negative("sensitivities", c, "units of the statistic") for c in tree.sensitivities]
    shares = [_validate.non_negative("sampling_probs", p, "probability") for p in tree.sampling_probs]
    if len(sizes) != len(shares) or abs(math.fsum(shares) - 1.0) > 1e-9:
        raise _refused(tree, "sensitivities and sampling_probs must pair up, and the probabilities sum to 1")
    moved: dict[float, Fraction] = {}
    still = Fraction(0)
    for size, share in zip(sizes, shares, strict=True):
        if size == 0.0:
            still += Fraction(share)
        elif share > 0.0:
            moved[size] = moved.get(size, Fraction(0)) + Fraction(share)
    if not moved:
        return None
    if adjacency is Adjacency.REPLACE_ONE:
        raise _refused(tree, "it is the pair of a record's presence, and replace-one has another pair")
    kept = _whole(moved, still)
    if len(kept) == 1:
        ((size, probability),) = kept.items()
        multiplier = _directed.float_down(Fraction(sigma) / Fraction(size))
        gaussian = GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)
        return gaussian if probability == 1.0 else PoissonSampled(gaussian, sampling_rate=probability)
    return GaussianMixtureEvent(
        shifts=tuple(kept), probabilities=tuple(kept.values()), noise_multiplier=sigma, adjacency=adjacency
    )


def _whole(moved: dict[float, Fraction], still: Fraction) -> dict[float, float]:
    """Probabilities by size, ascending: as they are stated, if all are within rounding of 1; else of a costlier whole.

    What is missing moves to the largest size; what is too much is taken from no move, then from the smallest sizes. The
    others are rounded down to a grid on which the sum is exactly 1 where something always moves.
    """
    total = sum(moved.values(), start=Fraction(0))
    near = still > 0 and total <= 1 and abs(total + still - 1) <= (len(moved) + 1) * Fraction(_ULP)
    as_stated = {size: float(moved[size]) for size in sorted(moved)}
    if (near or total == 1) and all(Fraction(as_stated[size]) == moved[size] for size in moved):
        return as_stated
    largest, *others = sorted(moved, reverse=True)
    rest = 1 - max(still - max(total + still - 1, Fraction(0)), Fraction(0))
    least, kept = min(moved[largest], rest), dict[float, float]()
    for size in others:
        part = min(moved[size], rest - least) // Fraction(_ULP) * Fraction(_ULP)
        rest -= part
        if part > 0:
            kept[size] = float(part)
    return {**dict(reversed(kept.items())), largest: _directed.float_up(rest)}


def _truncated(tree: Any, adjacency: Adjacency) -> Event | None:
    """A Poisson sample cut to a largest batch at random; under add-remove a neighbour may have one row more."""
    rate = _validate.non_negative("sampling_probability", tree.sampling_probability, "probability")
    batch = _validate.count("truncated_batch_size", tree.truncated_batch_size, "rows", minimum=0)
    rows = _validate.count("dataset_size", tree.dataset_size, "rows", minimum=0)
    if rate == 0.0 or batch == 0:
        return None
    if adjacency is Adjacency.REPLACE_ONE:
        raise _refused(tree, "under replace-one a sample that is cut to a largest batch has no event here")
    gaussian = GaussianEvent(noise_multiplier=_own_multiplier(tree, adjacency), adjacency=adjacency)
    more = 1 if adjacency is Adjacency.ADD_REMOVE else 0
    return truncated_poisson(gaussian, sampling_rate=rate, rows_at_most=max(rows + more, 1), batch_at_most=batch)


def _tree_aggregation(tree: Any, adjacency: Adjacency) -> Event | None:
    """One Gaussian of multiplier m / sqrt(depth). docs/explanation/interop.md#dp-tree."""
    steps = tree.step_counts if isinstance(tree.step_counts, Iterable) else (tree.step_counts,)
    depth = max(_validate.count("step_counts", n, "steps", minimum=0).bit_length() for n in steps)
    if depth == 0:
        return None
    if adjacency is not Adjacency.ZERO_OUT:
        raise _refused(tree, f"it is stated under zero-out (REPLACE_SPECIAL): under {adjacency.value} later steps move")
    multiplier = Fraction(_own_multiplier(tree, adjacency))
    return GaussianEvent(noise_multiplier=_directed.root_down(multiplier**2 / depth), adjacency=adjacency)


def _refused(tree: object, reason: str) -> UnsupportedEvent:
    return UnsupportedEvent(f"{_short(tree)} is refused: {reason}")


def _short(tree: object) -> str:
    text = repr(tree)
    return text if len(text) <= 200 else text[:197] + "..."


def load(module: str, *, extra: str) -> ModuleType:
    """The module of a peer.

    Raises:
        ImportError: the peer is not installed; the message names the extra that brings it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        raise ImportError(
            f"this conversion needs {missing.name}: pip install 'ledgerwood[{extra}]'", name=missing.name
        ) from missing


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
    return _tree(event, vars(load("dp_accounting.dp_event", extra="dp-accounting")))


def to_neighboring_relation(adjacency: Adjacency) -> Any:
    """The relation that dp-accounting's accountants are to be told for events of this adjacency.

    Raises:
        ImportError: dp-accounting is not installed.
    """
    require_adjacency(adjacency)
    relations = load("dp_accounting.privacy_accountant", extra="dp-accounting").NeighboringRelation
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
                    f"{event!r}: dp-accounting assumes that a record's presence costs half of its replacement"
                )
            return tree
        case GaussianMixtureEvent():
            rest = event.rest()
            sizes, shares = list(event.shifts), list(event.probabilities)
            if rest > 0.0:
                sizes, shares = [0.0, *sizes], [rest, *shares]
            return make("MixtureOfGaussiansDpEvent", event.noise_multiplier, sizes, shares)
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
