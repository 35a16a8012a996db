"""DP-XGBoost (Grislain, Gonzalvez 2021): the paper's mechanisms and the authors' released code."""

from ledgerwood.verification.errata.base import Specimen
from ledgerwood.verification.errata.dpxgboost.chosen_gain import ChosenGain
from ledgerwood.verification.errata.dpxgboost.exponential_scale import ExponentialScale
from ledgerwood.verification.errata.dpxgboost.min_child_weight import MinChildWeight
from ledgerwood.verification.errata.dpxgboost.model_statistics import ModelStatistics
from ledgerwood.verification.errata.dpxgboost.newton_gain import NewtonGain
from ledgerwood.verification.errata.dpxgboost.noisy_average import NoisyAverage
from ledgerwood.verification.errata.dpxgboost.public_sample import PublicSample
from ledgerwood.verification.errata.dpxgboost.replaced_gain import ReplacedGain
from ledgerwood.verification.errata.dpxgboost.replaced_sample import ReplacedSample
from ledgerwood.verification.errata.dpxgboost.round_trees import RoundTrees
from ledgerwood.verification.errata.dpxgboost.shared_seed import SharedSeed
from ledgerwood.verification.errata.dpxgboost.sketch_noise import SketchNoise
from ledgerwood.verification.errata.dpxgboost.small_root import SmallRoot
from ledgerwood.verification.errata.dpxgboost.unfiltered_statistics import UnfilteredStatistics

DPXGBOOST: tuple[Specimen, ...] = (
    NoisyAverage(),
    SmallRoot(),
    UnfilteredStatistics(),
    ReplacedGain(),
    NewtonGain(),
    MinChildWeight(),
    ChosenGain(),
    ModelStatistics(),
    SketchNoise(),
    SharedSeed(),
    PublicSample(),
    ReplacedSample(),
    RoundTrees(),
    ExponentialScale(),
)
"""In the order of docs/errata.md."""
