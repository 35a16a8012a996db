"""Events: what was released, under which adjacency, and what it costs."""

from ledgerwood.accounting.events.base import Event as Event
from ledgerwood.accounting.events.bounded_range import BoundedRangeEvent as BoundedRangeEvent
from ledgerwood.accounting.events.composition import Composed as Composed
from ledgerwood.accounting.events.composition import Parallel as Parallel
from ledgerwood.accounting.events.composition import Repeated as Repeated
from ledgerwood.accounting.events.discrete import DiscreteGaussianEvent as DiscreteGaussianEvent
from ledgerwood.accounting.events.discrete import DiscreteLaplaceEvent as DiscreteLaplaceEvent
from ledgerwood.accounting.events.gaussian import EllipticalGaussianEvent as EllipticalGaussianEvent
from ledgerwood.accounting.events.gaussian import GaussianEvent as GaussianEvent
from ledgerwood.accounting.events.laplace import LaplaceEvent as LaplaceEvent
from ledgerwood.accounting.events.pure import PureEvent as PureEvent
from ledgerwood.accounting.events.pure import RandomizedResponseEvent as RandomizedResponseEvent
from ledgerwood.accounting.events.sampling import PoissonSampled as PoissonSampled
from ledgerwood.accounting.events.serial import from_json as from_json
from ledgerwood.accounting.events.serial import to_json as to_json
from ledgerwood.accounting.events.skellam import SkellamEvent as SkellamEvent
from ledgerwood.accounting.events.skellam import SkellamVectorEvent as SkellamVectorEvent
from ledgerwood.accounting.events.staircase import StaircaseEvent as StaircaseEvent
from ledgerwood.accounting.events.stated import ApproximateEvent as ApproximateEvent
from ledgerwood.accounting.events.stated import GDPEvent as GDPEvent
from ledgerwood.accounting.events.stated import RenyiEvent as RenyiEvent
from ledgerwood.accounting.events.stated import ZeroConcentratedEvent as ZeroConcentratedEvent
from ledgerwood.accounting.events.tabulated import ProfileEvent as ProfileEvent
from ledgerwood.accounting.events.truncated import TruncatedLaplaceEvent as TruncatedLaplaceEvent
