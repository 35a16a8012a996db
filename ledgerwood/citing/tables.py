"""Which papers each event, method of accounting, filter, odometer and mechanism rests on.

`OURS` says that there is no paper: the derivation is this library's. An event or a mechanism without a line here stops
the import: nobody can add one and forget its source.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ledgerwood import mechanisms
from ledgerwood.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    Event,
    FilteredEvent,
    FixedSizeSampled,
    GaussianEvent,
    GaussianMixtureEvent,
    GDPEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    ProfileEvent,
    PureEvent,
    RandomAllocation,
    RandomizedResponseEvent,
    RenyiEvent,
    Repeated,
    RepeatedSelection,
    ReplaceOneSampled,
    SkellamEvent,
    SkellamVectorEvent,
    StaircaseEvent,
    TruncatedLaplaceEvent,
    ZeroConcentratedEvent,
)
from ledgerwood.accounting.events.serial import RECORDED
from ledgerwood.accounting.filters import (
    AdvancedCompositionFilter,
    BasicFilter,
    ChargeMethod,
    Filter,
    GDPFilter,
    RenyiFilter,
    ZCDPFilter,
)
from ledgerwood.accounting.odometers import Odometer, PureOdometer, RenyiOdometer, WhitehouseOdometer
from ledgerwood.errors import PrivacyError
from ledgerwood.references import Reference
from ledgerwood.references import accounting as on_costs
from ledgerwood.references import mechanisms as on_noise
from ledgerwood.references import systems as on_systems

References = tuple[Reference, ...]

OURS: References = ()
"""There is no paper: the derivation is this library's, in docs/explanation."""

_GAUSSIAN: References = (on_costs.BALLE_WANG_2018, on_costs.DONG_2022)
_SELECTION: References = (on_noise.LIU_2019, on_noise.PAPERNOT_2022)
_COMPOSITION: References = (on_costs.ZHU_2022,)
_ANSWERS: References = (on_noise.WARNER_1965, on_noise.KAIROUZ_2016)

OF_EVENTS: Mapping[type[Event], References] = {
    GaussianEvent: _GAUSSIAN,
    EllipticalGaussianEvent: _GAUSSIAN,
    GaussianMixtureEvent: (on_costs.GANESH_2024,),
    LaplaceEvent: (on_costs.DWORK_2006,),
    DiscreteGaussianEvent: (on_costs.CANONNE_2020,),
    DiscreteLaplaceEvent: (on_noise.GHOSH_2009,),
    SkellamEvent: (on_noise.AGARWAL_2021,),
    SkellamVectorEvent: (on_noise.AGARWAL_2021,),
    StaircaseEvent: (on_noise.GENG_2014,),
    TruncatedLaplaceEvent: (on_noise.GENG_2020,),
    PureEvent: (on_costs.DWORK_2006, on_costs.KAIROUZ_2015),
    RandomizedResponseEvent: _ANSWERS,
    BoundedRangeEvent: (on_noise.DURFEE_2019, on_noise.DONG_DURFEE_ROGERS_2020),
    ProfileEvent: (on_costs.BALLE_BARTHE_GABOARDI_2018,),
    ApproximateEvent: (on_costs.KAIROUZ_2015,),
    RenyiEvent: (on_costs.MIRONOV_2017,),
    ZeroConcentratedEvent: (on_costs.BUN_STEINKE_2016,),
    GDPEvent: (on_costs.DONG_2022,),
    PoissonSampled: (on_costs.BALLE_BARTHE_GABOARDI_2018, on_costs.MIRONOV_TALWAR_ZHANG_2019),
    FixedSizeSampled: (on_costs.BALLE_BARTHE_GABOARDI_2018,),
    ReplaceOneSampled: (on_costs.BALLE_BARTHE_GABOARDI_2018,),
    RandomAllocation: (on_costs.FELDMAN_SHENFELD_2025,),
    FilteredEvent: (on_costs.FELDMAN_ZRNIC_2021, on_costs.KOSKELA_2023),
    RepeatedSelection: _SELECTION,
    PoissonSelection: _SELECTION,
    Repeated: _COMPOSITION,
    Composed: _COMPOSITION,
    Parallel: (on_costs.MCSHERRY_2009,),
}

OF_METHODS: Mapping[ChargeMethod, References] = {
    "profile": (on_costs.BALLE_BARTHE_GABOARDI_2018,),
    "renyi": (on_costs.MIRONOV_2017, on_costs.CANONNE_2020),
    "gdp": (on_costs.DONG_2022,),
    "pure": (on_costs.KAIROUZ_2015,),
    "pld": (on_costs.ZHU_2022, on_costs.DOROSHENKO_2022),
    "unsampled": OURS,
    "zcdp": (on_costs.BUN_STEINKE_2016, on_costs.CANONNE_2020),
}

OF_MECHANISMS: Mapping[type[Any], References] = {
    mechanisms.GaussianMechanism: _GAUSSIAN,
    mechanisms.EllipticalGaussianMechanism: _GAUSSIAN,
    mechanisms.LaplaceMechanism: (on_costs.DWORK_2006,),
    mechanisms.DiscreteLaplaceMechanism: (on_noise.GHOSH_2009,),
    mechanisms.DiscreteGaussianMechanism: (on_costs.CANONNE_2020,),
    mechanisms.SkellamMechanism: (on_noise.AGARWAL_2021,),
    mechanisms.RandomizedResponseMechanism: _ANSWERS,
    mechanisms.ExponentialMechanism: (on_noise.MCSHERRY_TALWAR_2007, on_noise.DONG_DURFEE_ROGERS_2020),
    mechanisms.GridlessMechanism: (on_noise.MCSHERRY_TALWAR_2007, on_systems.KIRSCHTE_2023),
    mechanisms.PermuteAndFlipMechanism: (on_noise.MCKENNA_2020,),
    mechanisms.NoisyMaxMechanism: (on_noise.DWORK_ROTH_2014,),
    mechanisms.QuantileMechanism: (on_noise.SMITH_2011,),
    mechanisms.JointQuantilesMechanism: (on_noise.GILLENWATER_2021,),
    mechanisms.SparseVectorMechanism: (on_noise.DWORK_ROTH_2014, on_noise.LYU_2017),
    mechanisms.RepeatedSelectionMechanism: _SELECTION,
    mechanisms.PoissonSelectionMechanism: _SELECTION,
    mechanisms.StabilityHistogramMechanism: (on_noise.KOROLOVA_2009, on_noise.BUN_NISSIM_STEMMER_2016),
    mechanisms.GaussianStabilityMechanism: (on_noise.KOROLOVA_2009,),
    mechanisms.BoundedStabilityMechanism: (on_noise.KOROLOVA_2009,),
    mechanisms.PrivateBoundsMechanism: OURS,
}


def of_filter(filter: Filter) -> References:  # noqa: A002  # what it is called everywhere
    """The references of a filter: who proved that its currency may be chosen adaptively."""
    match filter:
        case BasicFilter():
            return (on_costs.ROGERS_2016,)
        case AdvancedCompositionFilter():
            return (on_costs.WHITEHOUSE_2023,)
        case ZCDPFilter():
            return (on_costs.BUN_STEINKE_2016, on_costs.WHITEHOUSE_2023, on_costs.FELDMAN_ZRNIC_2021)
        case RenyiFilter():
            return (on_costs.MIRONOV_2017, on_costs.FELDMAN_ZRNIC_2021)
        case GDPFilter():
            return (on_costs.DONG_2022, on_costs.SMITH_THAKURTA_2022, on_costs.KOSKELA_2023)


def of_odometer(odometer: Odometer) -> References:
    """The references of an odometer."""
    match odometer:
        case PureOdometer():
            return (on_costs.ROGERS_2016,)
        case RenyiOdometer():
            return (on_costs.MIRONOV_2017, on_costs.FELDMAN_ZRNIC_2021, on_costs.WHITEHOUSE_2023)
        case WhitehouseOdometer():
            return (on_costs.WHITEHOUSE_2023,)


def public_mechanisms() -> frozenset[type[Any]]:
    """The classes of `ledgerwood.mechanisms` that are mechanisms, by their names."""
    public = (getattr(mechanisms, name) for name in mechanisms.__all__ if name.endswith("Mechanism"))
    return frozenset(kind for kind in public if kind is not mechanisms.Mechanism)


def _require_complete(what: str, listed: Iterable[Any], known: Iterable[Any]) -> None:
    if differ := {str(kind) for kind in {*listed} ^ {*known}}:
        raise PrivacyError(f"references of {what} and the {what} differ in {', '.join(sorted(differ))}")


_require_complete("events", OF_EVENTS, RECORDED)
_require_complete("mechanisms", OF_MECHANISMS, public_mechanisms())
