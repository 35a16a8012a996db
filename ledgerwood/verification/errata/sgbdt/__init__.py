"""S-GBDT (Kirschte, Peinemann, Stock, Cotrini, Mohammadi): the paper's theorems and the authors' released code."""

from ledgerwood.verification.errata.base import Specimen
from ledgerwood.verification.errata.sgbdt.approximate_prices import ApproximatePrices
from ledgerwood.verification.errata.sgbdt.bucket_indices import BucketIndices
from ledgerwood.verification.errata.sgbdt.category_list import CategoryList
from ledgerwood.verification.errata.sgbdt.clock_seeded_sample import ClockSeededSample
from ledgerwood.verification.errata.sgbdt.custom_noise import CustomNoise
from ledgerwood.verification.errata.sgbdt.exported_counts import ExportedCounts
from ledgerwood.verification.errata.sgbdt.half_hessian_noise import HalfHessianNoise
from ledgerwood.verification.errata.sgbdt.initial_score_count import InitialScoreCount
from ledgerwood.verification.errata.sgbdt.initial_score_scale import InitialScoreScale
from ledgerwood.verification.errata.sgbdt.label_range import LabelRange
from ledgerwood.verification.errata.sgbdt.leaf_noise_multiplier import LeafNoiseMultiplier
from ledgerwood.verification.errata.sgbdt.majority_class import MajorityClass
from ledgerwood.verification.errata.sgbdt.price_cache import PriceCache
from ledgerwood.verification.errata.sgbdt.renyi_conversion import RenyiConversion
from ledgerwood.verification.errata.sgbdt.small_nodes import SmallNodes
from ledgerwood.verification.errata.sgbdt.stops_when_spent import StopsWhenSpent

SGBDT: tuple[Specimen, ...] = (
    InitialScoreScale(),
    InitialScoreCount(),
    RenyiConversion(),
    LeafNoiseMultiplier(),
    HalfHessianNoise(),
    PriceCache(),
    ApproximatePrices(),
    StopsWhenSpent(),
    SmallNodes(),
    ClockSeededSample(),
    CustomNoise(),
    LabelRange(),
    CategoryList(),
    MajorityClass(),
    ExportedCounts(),
    BucketIndices(),
)
"""In the order of docs/errata.md."""
