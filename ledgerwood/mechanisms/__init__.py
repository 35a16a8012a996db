"""Noise mechanisms. Each receives arrays, not rows, and gives the event from which its privacy cost is computed."""

from ledgerwood import _extras
from ledgerwood.mechanisms.base import Grid as Grid
from ledgerwood.mechanisms.base import Mechanism as Mechanism
from ledgerwood.mechanisms.block_shifts import BlockShifts as BlockShifts
from ledgerwood.mechanisms.bounded_stability import BoundedStabilityMechanism as BoundedStabilityMechanism
from ledgerwood.mechanisms.choices.gridless import Candidate as Candidate
from ledgerwood.mechanisms.choices.gridless import CategoricalCandidates as CategoricalCandidates
from ledgerwood.mechanisms.choices.gridless import GridlessMechanism as GridlessMechanism
from ledgerwood.mechanisms.choices.gridless import NumericCandidates as NumericCandidates
from ledgerwood.mechanisms.choices.joint_quantiles import JointQuantilesMechanism as JointQuantilesMechanism
from ledgerwood.mechanisms.choices.private_bounds import PrivateBoundsMechanism as PrivateBoundsMechanism
from ledgerwood.mechanisms.choices.private_bounds import log_edges as log_edges
from ledgerwood.mechanisms.choices.quantiles import QuantileMechanism as QuantileMechanism
from ledgerwood.mechanisms.choices.repetition import PoissonSelectionMechanism as PoissonSelectionMechanism
from ledgerwood.mechanisms.choices.repetition import RepeatedSelectionMechanism as RepeatedSelectionMechanism
from ledgerwood.mechanisms.choices.repetition import selection_of as selection_of
from ledgerwood.mechanisms.choices.selection import ExponentialMechanism as ExponentialMechanism
from ledgerwood.mechanisms.choices.selection import NoisyMaxMechanism as NoisyMaxMechanism
from ledgerwood.mechanisms.choices.selection import PermuteAndFlipMechanism as PermuteAndFlipMechanism
from ledgerwood.mechanisms.choices.selection import Selection as Selection
from ledgerwood.mechanisms.choices.selection import UtilityRange as UtilityRange
from ledgerwood.mechanisms.choices.sparse_vector import QueryChange as QueryChange
from ledgerwood.mechanisms.choices.sparse_vector import SparseVectorMechanism as SparseVectorMechanism
from ledgerwood.mechanisms.choices.sparse_vector import SparseVectorRun as SparseVectorRun
from ledgerwood.mechanisms.discrete import DiscreteGaussianMechanism as DiscreteGaussianMechanism
from ledgerwood.mechanisms.discrete import DiscreteLaplaceMechanism as DiscreteLaplaceMechanism
from ledgerwood.mechanisms.discrete import SkellamMechanism as SkellamMechanism
from ledgerwood.mechanisms.exact.randomness import RandomSource as RandomSource
from ledgerwood.mechanisms.exact.randomness import SecureRandom as SecureRandom
from ledgerwood.mechanisms.exact.randomness import SeededRandom as SeededRandom
from ledgerwood.mechanisms.gaussian import EllipticalGaussianMechanism as EllipticalGaussianMechanism
from ledgerwood.mechanisms.gaussian import GaussianMechanism as GaussianMechanism
from ledgerwood.mechanisms.laplace import LaplaceMechanism as LaplaceMechanism
from ledgerwood.mechanisms.randomized_response import RandomizedResponseMechanism as RandomizedResponseMechanism
from ledgerwood.mechanisms.sensitivity import BallShifts as BallShifts
from ledgerwood.mechanisms.sensitivity import BoxShifts as BoxShifts
from ledgerwood.mechanisms.stability import GaussianStabilityMechanism as GaussianStabilityMechanism
from ledgerwood.mechanisms.stability import StabilityHistogramMechanism as StabilityHistogramMechanism

MECHANISMS: tuple[type, ...] = (
    GaussianMechanism,
    EllipticalGaussianMechanism,
    LaplaceMechanism,
    DiscreteLaplaceMechanism,
    DiscreteGaussianMechanism,
    SkellamMechanism,
)
"""The closed set of mechanisms: a foreign one could state one event and add the noise of another."""

__all__ = _extras.own_names(vars())  # noqa: PLE0605
