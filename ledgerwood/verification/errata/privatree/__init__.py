"""PrivaTree (Vos, Vos, Li, Erkin, Verwer): the paper's Theorem 3 and Algorithm 1, and the authors' released code."""

from ledgerwood.verification.errata.base import Specimen
from ledgerwood.verification.errata.privatree.feature_composition import FeatureComposition
from ledgerwood.verification.errata.privatree.feature_range import FeatureRange
from ledgerwood.verification.errata.privatree.geometric_ratio import GeometricRatio
from ledgerwood.verification.errata.privatree.label_classes import LabelClasses
from ledgerwood.verification.errata.privatree.noisy_size import NoisySize
from ledgerwood.verification.errata.privatree.pure_node import PureNode
from ledgerwood.verification.errata.privatree.replaced_row import ReplacedRow
from ledgerwood.verification.errata.privatree.single_row import SingleRow

PRIVATREE: tuple[Specimen, ...] = (
    FeatureComposition(),
    PureNode(),
    SingleRow(),
    NoisySize(),
    ReplacedRow(),
    LabelClasses(),
    FeatureRange(),
    GeometricRatio(),
)
"""In the order of docs/errata.md."""
