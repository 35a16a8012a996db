"""The federated framework of Maddock, Cormode, Wang, Maple and Jha: the paper's Table 1, and the released code."""

from ledgerwood.verification.errata.base import Specimen
from ledgerwood.verification.errata.federated.class_number import ClassNumber
from ledgerwood.verification.errata.federated.clipped_sums import ClippedSums
from ledgerwood.verification.errata.federated.data_bounds import DataBounds
from ledgerwood.verification.errata.federated.node_counts import NodeCounts
from ledgerwood.verification.errata.federated.partial_queries import PartialQueries
from ledgerwood.verification.errata.federated.replaced_gradient import ReplacedGradient
from ledgerwood.verification.errata.federated.size_in_delta import SizeInDelta
from ledgerwood.verification.errata.federated.skew_sign import SkewSign
from ledgerwood.verification.errata.federated.zero_noise import ZeroNoise

FEDERATED: tuple[Specimen, ...] = (
    ZeroNoise(),
    PartialQueries(),
    ReplacedGradient(),
    DataBounds(),
    SkewSign(),
    SizeInDelta(),
    ClippedSums(),
    ClassNumber(),
    NodeCounts(),
)
"""In the order of docs/errata.md."""
