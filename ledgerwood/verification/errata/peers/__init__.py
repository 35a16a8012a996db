"""Other private tree ensembles: diffprivlib's random forest, Fletcher and Islam's, and interpret's DP-EBM."""

from ledgerwood.verification.errata.base import Specimen
from ledgerwood.verification.errata.peers.category_names import CategoryNames
from ledgerwood.verification.errata.peers.data_bounds import DataBounds
from ledgerwood.verification.errata.peers.data_classes import DataClasses
from ledgerwood.verification.errata.peers.largest_weight import LargestWeight
from ledgerwood.verification.errata.peers.replaced_label import ReplacedLabel
from ledgerwood.verification.errata.peers.row_blocks import RowBlocks
from ledgerwood.verification.errata.peers.smooth_label import SmoothLabel
from ledgerwood.verification.errata.peers.target_weight import TargetWeight
from ledgerwood.verification.errata.peers.unclipped_residual import UnclippedResidual

PEERS: tuple[Specimen, ...] = (
    RowBlocks(),
    ReplacedLabel(),
    SmoothLabel(),
    UnclippedResidual(),
    DataClasses(),
    DataBounds(),
    TargetWeight(),
    CategoryNames(),
    LargestWeight(),
)
"""In the order of docs/errata.md."""
