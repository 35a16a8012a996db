"""DPBoost (Li, Wu, Wen, He 2020): the paper's lemmas and algorithms, and the authors' released code."""

from ledgerwood.verification.errata.base import Specimen
from ledgerwood.verification.errata.dpboost.boost_from_average import BoostFromAverage
from ledgerwood.verification.errata.dpboost.fixed_seeds import FixedSeeds
from ledgerwood.verification.errata.dpboost.gain_sensitivity import GainSensitivity
from ledgerwood.verification.errata.dpboost.geometric_index import GeometricIndex
from ledgerwood.verification.errata.dpboost.hardwired_lambda import HardwiredLambda
from ledgerwood.verification.errata.dpboost.label_scaling import LabelScaling
from ledgerwood.verification.errata.dpboost.leaf_wise_growth import LeafWiseGrowth
from ledgerwood.verification.errata.dpboost.min_data_in_leaf import MinDataInLeaf
from ledgerwood.verification.errata.dpboost.positive_gain import PositiveGain
from ledgerwood.verification.errata.dpboost.quantile_bins import QuantileBins
from ledgerwood.verification.errata.dpboost.saved_counts import SavedCounts
from ledgerwood.verification.errata.dpboost.single_precision_noise import SinglePrecisionNoise
from ledgerwood.verification.errata.dpboost.subset_sizes import SubsetSizes

DPBOOST: tuple[Specimen, ...] = (
    GainSensitivity(),
    GeometricIndex(),
    HardwiredLambda(),
    SubsetSizes(),
    PositiveGain(),
    MinDataInLeaf(),
    LeafWiseGrowth(),
    QuantileBins(),
    LabelScaling(),
    BoostFromAverage(),
    SavedCounts(),
    FixedSeeds(),
    SinglePrecisionNoise(),
)
"""In the order of docs/errata.md."""
