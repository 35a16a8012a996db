"""ledgerwood: differential privacy accounting, exact noise, a ledger that anyone can recompute, and private trees.

Accounting and ledger are here at once; what touches rows or needs more packages arrives when it is first named.
"""

from typing import TYPE_CHECKING

from ledgerwood import _extras
from ledgerwood import accounting as accounting
from ledgerwood.accounting import Adjacency as Adjacency
from ledgerwood.accounting import AdvancedCompositionFilter as AdvancedCompositionFilter
from ledgerwood.accounting import ApproximateEvent as ApproximateEvent
from ledgerwood.accounting import BasicFilter as BasicFilter
from ledgerwood.accounting import BoundedRangeEvent as BoundedRangeEvent
from ledgerwood.accounting import Budget as Budget
from ledgerwood.accounting import Composed as Composed
from ledgerwood.accounting import Direction as Direction
from ledgerwood.accounting import DiscreteGaussianEvent as DiscreteGaussianEvent
from ledgerwood.accounting import DiscreteLaplaceEvent as DiscreteLaplaceEvent
from ledgerwood.accounting import EllipticalGaussianEvent as EllipticalGaussianEvent
from ledgerwood.accounting import Event as Event
from ledgerwood.accounting import FilteredEvent as FilteredEvent
from ledgerwood.accounting import FixedSizeSampled as FixedSizeSampled
from ledgerwood.accounting import GaussianEvent as GaussianEvent
from ledgerwood.accounting import GaussianMixtureEvent as GaussianMixtureEvent
from ledgerwood.accounting import GDPEvent as GDPEvent
from ledgerwood.accounting import GDPFilter as GDPFilter
from ledgerwood.accounting import Grant as Grant
from ledgerwood.accounting import LaplaceEvent as LaplaceEvent
from ledgerwood.accounting import Ledger as Ledger
from ledgerwood.accounting import Parallel as Parallel
from ledgerwood.accounting import PoissonSampled as PoissonSampled
from ledgerwood.accounting import PoissonSelection as PoissonSelection
from ledgerwood.accounting import Price as Price
from ledgerwood.accounting import PrivacyUnit as PrivacyUnit
from ledgerwood.accounting import ProfileEvent as ProfileEvent
from ledgerwood.accounting import PureEvent as PureEvent
from ledgerwood.accounting import RandomAllocation as RandomAllocation
from ledgerwood.accounting import RandomizedResponseEvent as RandomizedResponseEvent
from ledgerwood.accounting import Receipt as Receipt
from ledgerwood.accounting import RenyiEvent as RenyiEvent
from ledgerwood.accounting import RenyiFilter as RenyiFilter
from ledgerwood.accounting import Repeated as Repeated
from ledgerwood.accounting import RepeatedSelection as RepeatedSelection
from ledgerwood.accounting import ReplaceOneSampled as ReplaceOneSampled
from ledgerwood.accounting import SGDPlan as SGDPlan
from ledgerwood.accounting import SkellamEvent as SkellamEvent
from ledgerwood.accounting import SkellamVectorEvent as SkellamVectorEvent
from ledgerwood.accounting import StaircaseEvent as StaircaseEvent
from ledgerwood.accounting import TruncatedLaplaceEvent as TruncatedLaplaceEvent
from ledgerwood.accounting import ZCDPFilter as ZCDPFilter
from ledgerwood.accounting import ZeroConcentratedEvent as ZeroConcentratedEvent
from ledgerwood.accounting import calibrate as calibrate
from ledgerwood.accounting import grouped as grouped
from ledgerwood.accounting import matrix_gaussian as matrix_gaussian
from ledgerwood.accounting import price as price
from ledgerwood.accounting import sgd_plan as sgd_plan
from ledgerwood.accounting import split as split
from ledgerwood.accounting import tree_gaussian as tree_gaussian
from ledgerwood.errors import BudgetExceeded as BudgetExceeded
from ledgerwood.errors import PrivacyError as PrivacyError
from ledgerwood.errors import PrivacyWarning as PrivacyWarning

if TYPE_CHECKING:
    from ledgerwood import datasets as datasets
    from ledgerwood import displays as displays
    from ledgerwood import mechanisms as mechanisms
    from ledgerwood import reading as reading
    from ledgerwood import trainers as trainers
    from ledgerwood import verification as verification
    from ledgerwood.citing.cite import cite as cite
    from ledgerwood.mechanisms.exact.randomness import SecureRandom as SecureRandom
    from ledgerwood.mechanisms.exact.randomness import SeededRandom as SeededRandom
    from ledgerwood.references import Reference as Reference
    from ledgerwood.schema import Categorical as Categorical
    from ledgerwood.schema import Date as Date
    from ledgerwood.schema import Numeric as Numeric
    from ledgerwood.schema import OpenCategorical as OpenCategorical
    from ledgerwood.schema import OpenColumn as OpenColumn
    from ledgerwood.schema import OpenDate as OpenDate
    from ledgerwood.schema import OpenNumeric as OpenNumeric
    from ledgerwood.schema import Schema as Schema
    from ledgerwood.schema import SchemaDraft as SchemaDraft

__version__ = "0.1.0"

_LATE_MODULES = ("datasets", "displays", "mechanisms", "reading", "trainers", "verification")
_HOMES = {
    "Categorical": "ledgerwood.schema",
    "Date": "ledgerwood.schema",
    "Numeric": "ledgerwood.schema",
    "OpenCategorical": "ledgerwood.schema",
    "OpenColumn": "ledgerwood.schema",
    "OpenDate": "ledgerwood.schema",
    "OpenNumeric": "ledgerwood.schema",
    "Schema": "ledgerwood.schema",
    "SchemaDraft": "ledgerwood.schema",
    "SecureRandom": "ledgerwood.mechanisms.exact.randomness",
    "SeededRandom": "ledgerwood.mechanisms.exact.randomness",
    "Reference": "ledgerwood.references",
    "cite": "ledgerwood.citing",
    **{name: f"ledgerwood.{name}" for name in _LATE_MODULES},
}

_NAMES = [
    "Adjacency",
    "AdvancedCompositionFilter",
    "ApproximateEvent",
    "BasicFilter",
    "BoundedRangeEvent",
    "Budget",
    "BudgetExceeded",
    "Categorical",
    "Composed",
    "Date",
    "Direction",
    "DiscreteGaussianEvent",
    "DiscreteLaplaceEvent",
    "EllipticalGaussianEvent",
    "Event",
    "FilteredEvent",
    "FixedSizeSampled",
    "GDPEvent",
    "GDPFilter",
    "GaussianEvent",
    "GaussianMixtureEvent",
    "Grant",
    "LaplaceEvent",
    "Ledger",
    "Numeric",
    "OpenCategorical",
    "OpenColumn",
    "OpenDate",
    "OpenNumeric",
    "Parallel",
    "PoissonSampled",
    "PoissonSelection",
    "Price",
    "PrivacyError",
    "PrivacyUnit",
    "PrivacyWarning",
    "ProfileEvent",
    "PureEvent",
    "RandomAllocation",
    "RandomizedResponseEvent",
    "Receipt",
    "Reference",
    "RenyiEvent",
    "RenyiFilter",
    "Repeated",
    "RepeatedSelection",
    "ReplaceOneSampled",
    "SGDPlan",
    "Schema",
    "SchemaDraft",
    "SecureRandom",
    "SeededRandom",
    "SkellamEvent",
    "SkellamVectorEvent",
    "StaircaseEvent",
    "TruncatedLaplaceEvent",
    "ZCDPFilter",
    "ZeroConcentratedEvent",
    "__version__",
    "accounting",
    "calibrate",
    "cite",
    "datasets",
    "displays",
    "grouped",
    "matrix_gaussian",
    "mechanisms",
    "price",
    "reading",
    "sgd_plan",
    "split",
    "trainers",
    "tree_gaussian",
    "verification",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Names that arrive late (PEP 562); `__all__` has those that the installed packages allow."""
    if name == "__all__":
        return _extras.obtainable(_public, _NAMES)
    return _extras.late(__name__, name, _HOMES)


def _public(name: str) -> object:
    return globals()[name] if name in globals() else __getattr__(name)


def __dir__() -> list[str]:
    return sorted(_NAMES)
