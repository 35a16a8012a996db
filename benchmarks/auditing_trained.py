"""Our own trainers as mechanisms to audit: what one small model releases is one output.

A data set has rows (feature, label), both 0 or 1. Trees have depth 1, so that a model is its splits and its leaves.
"""

import functools

import numpy as np

from benchmarks.auditing_truths import gaussian_mu
from ledgerwood import (
    Adjacency,
    BasicFilter,
    Budget,
    Categorical,
    GaussianEvent,
    Ledger,
    Numeric,
    PrivacyUnit,
    Repeated,
    Schema,
    price,
)
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.curator.curator import Curator
from ledgerwood.curator.tables.trees import Table
from ledgerwood.ensemble import Ensemble
from ledgerwood.mechanisms import SeededRandom
from ledgerwood.trainers import FederatedGBDTClassifier, SGBDTRegressor
from ledgerwood.trainers.sgbdt.plan import SGBDTPlan
from ledgerwood.trainers.sgbdt.training import train

A = Adjacency.ADD_REMOVE
DELTA = 1e-5
ROUNDS = 3
PAIR = (np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 1.0]]))

_LEAST = (1.0 - 1e-6) / gaussian_mu(1.0, DELTA)
TREE = GaussianEvent(noise_multiplier=_LEAST, adjacency=A)
"""What one tree of `forest` may cost: epsilon 1 at delta 1e-5, and a rounding."""
FOREST_SCHEMA = Schema(features=(Categorical("a", ("0", "1")),), target=Categorical("y", ("0", "1")))
_BOOSTED = Schema(features=(Categorical("a", ("0", "1")),), target=Numeric("y", 0.0, 1.0))


def forest(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """One forest of n trees, each one an output: nothing but the rows connects them; shape (n, 4).

    Its budget is that of n trees of epsilon 1 each, so every tree has the noise that `TREE` states.
    """
    epsilon = price(Repeated(GaussianEvent(noise_multiplier=1.0 / gaussian_mu(1.0, DELTA), adjacency=A), count=n))
    model = forest_model(n, epsilon.epsilon(DELTA), int(rng.integers(2**62)))
    words = dataset.astype(int).astype(str).astype(object)
    return _released(model.fit(words[:, :1], words[:, 1]).ensemble_).reshape(n, -1)


def forest_model(n: int, epsilon: float, seed: int) -> FederatedGBDTClassifier:
    """A forest of n trees of depth 1 for this budget."""
    return FederatedGBDTClassifier(
        epsilon=epsilon, delta=DELTA, schema=FOREST_SCHEMA, preset="dp_rf", n_estimators=n, max_depth=1,
        initial_score="zero", expected_rows=2, random_state=seed,
    )  # fmt: skip


def boosted(dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """n boosted models of three trees each, under one ledger that pays for all of them; shape (n, 12)."""
    plan = boosted_plan()
    words = dataset.astype(int).astype(str).astype(object)
    table = Table.from_data(words[:, :1], dataset[:, 1], _BOOSTED, loss=plan.loss, bins=plan.max_bins)
    ledger = Ledger(Budget(epsilon=1e6, delta=DELTA, adjacency=A), unit=PrivacyUnit.ROW, filter=BasicFilter())
    grant = ledger.grant(Repeated(plan.tree_event, count=ROUNDS * n), purpose="models", delta=DELTA)
    curator = Curator(table, grant, SeededRandom(int(rng.integers(2**62))))
    return np.stack([_released(train(plan, curator, rng)) for _ in range(n)])


def boosted_claim() -> Event:
    """What one model of `boosted` costs."""
    return boosted_plan().event


@functools.lru_cache(maxsize=1)
def boosted_plan() -> SGBDTPlan:
    """S-GBDT at epsilon 1, delta 1e-5, on all rows."""
    model = SGBDTRegressor(
        epsilon=1.0, delta=DELTA, schema=_BOOSTED, n_estimators=ROUNDS, max_depth=1, initial_score="zero",
        expected_rows=2, filter="none",
    )  # fmt: skip
    plan = model.make_plan(_BOOSTED)
    assert isinstance(plan, SGBDTPlan)
    return plan


def _released(ensemble: Ensemble) -> FloatArray:
    """Split, both leaves and their difference of each tree, one after the other."""
    rows = [
        (tree.structure.split[0], tree.values[0], tree.values[1], tree.values[0] - tree.values[1])
        for tree in ensemble.trees
    ]
    return np.array(rows, dtype=np.float64).ravel()
