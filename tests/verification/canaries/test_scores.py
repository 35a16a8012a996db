import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.curator import CorrectSplits, LabelledSplits, LabelledTests
from ledgerwood.ensemble import FeatureCells, SplitTests, TreeStructure
from ledgerwood.mechanisms import ExponentialMechanism, PermuteAndFlipMechanism
from ledgerwood.trainers import (
    DPBoostRegressor,
    DPXGBoostRegressor,
    FederatedGBDTRegressor,
    PrivaTreeClassifier,
    SGBDTRegressor,
)
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.verification.canaries.fitting import OwnFits
from ledgerwood.verification.canaries.rows import AuditRows, audit_rows, canary_cells
from ledgerwood.verification.canaries.scores import CanaryScores, _allocated_ratio, _chosen, _log_law
from ledgerwood.verification.canaries.theory import mu_of_price

LABEL = Numeric("y", -1.0, 1.0)
CLASSES = Categorical("y", ("a", "b"))


def binary(features: int, target: Numeric | Categorical = LABEL) -> Schema:
    return Schema(features=tuple(Categorical(f"b{i}", (0, 1)) for i in range(features)), target=target)


def prepared(estimator: AbstractTreeEstimator, canaries: int, *, fixed: bool = True) -> tuple[OwnFits, AuditRows]:
    schema = estimator.schema
    assert schema is not None
    fits = OwnFits.of(estimator, len(schema.features))
    cells = canary_cells(fits.schema, canaries, bins=fits.plan.max_bins)
    rng = np.random.default_rng(5)
    n = 30
    values = rng.integers(0, 2, (n, len(schema.features)))
    labels = np.where(rng.random(n) < 0.5, "a", "b") if schema.target == CLASSES else rng.uniform(-1.0, 1.0, n)
    fits = dataclasses.replace(fits, structure=cells.structure if fixed else None)
    return fits, audit_rows(values, labels, cells, replaced=fits.event.adjacency.value == "replace-one")


def scored(estimator: AbstractTreeEstimator, canaries: int, seed: int) -> tuple[CanaryScores, np.ndarray]:
    fits, rows = prepared(estimator, canaries)
    rng = np.random.default_rng(seed)
    coins = rng.random(canaries) < 0.5
    _, recording = fits.fitted(*rows.data(coins), rng)
    return fits.scores(recording, fits.evidence(rows)), coins


@pytest.mark.parametrize(
    ("estimator", "share"),
    [
        (SGBDTRegressor(epsilon=3.0, delta=1e-5, schema=binary(8), initial_score="zero", n_estimators=6,
        random_state=0), 1.0),
        (
            SGBDTRegressor(
                epsilon=3.0, delta=1e-5, schema=binary(8), initial_score="zero", n_estimators=6, random_state=0,
                adjacency="replace-one"
            ),
            math.nan,
        ),
        (SGBDTRegressor(epsilon=3.0, delta=1e-5, schema=binary(8), n_estimators=6, random_state=0), 0.95),
        (
            FederatedGBDTRegressor(
                epsilon=3.0, delta=1e-5, schema=binary(8), initial_score="zero", split_method="totally_random",
                n_estimators=4,
                recalibrate=False, random_state=0,
            ),
            1.0,
        ),
    ],
    ids=["all in the leaves", "replaced", "a twentieth on the first guess", "federated"],
)  # fmt: skip
def test_scores_are_standard_normal_shifted_by_the_mu_of_the_price(
    estimator: AbstractTreeEstimator, share: float
) -> None:
    """256 canaries, fixed seeds; Kolmogorov-Smirnov at 1e-4 each side, so that luck fails it once in 1200 choices."""
    found, coins = scored(estimator, 256, seed=20_268)
    assert found.alone
    assert found.normal is not None
    assert found.mu is not None
    assert found.mu == pytest.approx(found.mu[0], rel=1e-9)
    priced = mu_of_price(3.0, 1e-5)
    if math.isnan(share):  # between two leaves a replaced row costs more than inside one, where the canary is
        assert found.mu[0] <= priced * (1.0 + 1e-6)
        assert found.mu[0] >= 0.7 * priced
    else:
        # Noise on a grid, and calibration, are within a millionth of the price.
        assert found.mu[0] == pytest.approx(priced * math.sqrt(share), rel=1e-4)
    assert stats.kstest(found.normal[~coins], "norm").pvalue > 1e-4
    assert stats.kstest(found.normal[coins] - found.mu[coins], "norm").pvalue > 1e-4
    # The ratio is the score's own.
    assert found.values == pytest.approx(found.mu * found.normal - 0.5 * found.mu**2, rel=1e-9, abs=1e-9)


@pytest.mark.slow_after(1)  # many fits
@pytest.mark.parametrize(
    "estimator",
    [
        PrivaTreeClassifier(epsilon=1.5, schema=binary(5, CLASSES), split_method="random", random_state=0),
        DPBoostRegressor(
            epsilon=1.5,
            schema=binary(2),
            n_estimators=1,
            trees_per_ensemble=1,
            max_depth=1,
            initial_score="zero",
            random_state=0,
        ),
        DPBoostRegressor(
            epsilon=1.5,
            schema=binary(2),
            n_estimators=2,
            trees_per_ensemble=2,
            max_depth=1,
            initial_score="zero",
            random_state=0,
        ),
        DPXGBoostRegressor(
            epsilon=1.5, schema=binary(2), n_estimators=1, max_depth=1, initial_score="zero", random_state=0
        ),
        DPXGBoostRegressor(
            epsilon=1.5,
            schema=binary(2),
            n_estimators=1,
            max_depth=1,
            subsample=0.5,
            initial_score="zero",
            random_state=0,
        ),
    ],
    ids=["labels", "DPBoost", "DPBoost in groups", "DP-XGBoost", "DP-XGBoost sampled"],
)
def test_a_pure_model_never_tells_more_than_epsilon(estimator: AbstractTreeEstimator) -> None:
    """A likelihood ratio of all that was released cannot leave [-epsilon, epsilon]: else price or ratio is wrong."""
    canaries = 32 if isinstance(estimator, PrivaTreeClassifier) else 1
    found = np.concatenate([scored(estimator, canaries, seed=20_269 + run)[0].values for run in range(12)])
    assert np.abs(found).max() <= 1.5 * (1.0 + 1e-9)
    assert np.abs(found).max() > 0.1


def test_canaries_that_share_leaves_are_told_apart_by_many_trees() -> None:
    estimator = SGBDTRegressor(
        epsilon=30.0, delta=1e-5, schema=binary(6), initial_score="zero", n_estimators=60, max_depth=4, random_state=0
    )
    fits, rows = prepared(estimator, 48, fixed=False)
    rng = np.random.default_rng(20_270)
    coins = rng.random(48) < 0.5
    _, recording = fits.fitted(*rows.data(coins), rng)
    found = fits.scores(recording, fits.evidence(rows))
    assert not found.alone
    assert found.normal is None
    assert found.gaussian
    # Without any signal the area is 1/2, with a standard error of .084.
    area = stats.mannwhitneyu(found.values[coins], found.values[~coins]).statistic / (coins.sum() * (~coins).sum())
    assert area > 0.5 + 4 * 0.084


def test_a_private_choice_has_the_law_that_is_scored() -> None:
    utilities = np.array([[0.0, 1.0, 3.0, 2.5], [0.0, 0.0, 0.0, 0.0]])
    exponential = np.exp(_log_law(ExponentialMechanism(rate=0.7), utilities))
    assert exponential == pytest.approx(np.exp(0.7 * utilities) / np.exp(0.7 * utilities).sum(axis=1, keepdims=True))
    flipped = np.exp(_log_law(PermuteAndFlipMechanism(rate=0.7), utilities))
    for node, own in enumerate(utilities):
        taken = np.exp(0.7 * (own - own.max()))
        law = np.zeros(4)
        for order in itertools.permutations(range(4)):
            left = 1.0 / math.factorial(4)
            for candidate in order:
                law[candidate] += left * taken[candidate]
                left *= 1.0 - taken[candidate]
        assert flipped[node] == pytest.approx(law, rel=1e-9)


@pytest.mark.parametrize("chance", [0.5, 0.1, 0.01])
def test_a_rare_candidate_that_rises_alone_shows_nearly_all_of_epsilon(chance: float) -> None:
    """AUDITING 5: P' = P e^eps / (1 - P + P e^eps), and the loss is eps - ln(1 + P (e^eps - 1))."""
    utilities = np.array([[math.log(chance / (1.0 - chance) * 4.0), 0.0, 0.0, 0.0, 0.0]])
    moved = utilities + np.array([0.5, -0.5, -0.5, -0.5, -0.5])
    mechanism = ExponentialMechanism(rate=1.0)
    logs = _log_law(mechanism, utilities)[0, 0], _log_law(mechanism, moved)[0, 0]
    assert math.exp(logs[0]) == pytest.approx(chance)
    assert logs[1] - logs[0] == pytest.approx(1.0 - math.log1p(chance * (math.e - 1.0)))


def test_what_was_chosen_is_found_among_the_candidates_again() -> None:
    """Thresholds, categories and sets, whose numbers are their own once they are chosen; and labels."""
    cells = (FeatureCells(ordered=3, equality=(3,)), FeatureCells(ordered=0, equality=(0, 1, 2, 3)))
    tests, root = SplitTests.every(cells, None, 9), TreeStructure.root()
    for place in range(len(tests)):
        taken = tests.taken(np.array([place]))
        assert _chosen(CorrectSplits(structure=root, tests=tests, classes=3), taken).tolist() == [place]
        for left, right in itertools.product(range(3), range(3)):
            query = LabelledSplits(structure=root, tests=tests, classes=3)
            value = LabelledTests(tests=taken, labels=np.array([left, right]))
            assert _chosen(query, value).tolist() == [place * 9 + left * 3 + right]


@pytest.mark.parametrize(("selected", "steps", "scored"), [(1, 4, 4), (2, 5, 5), (2, 5, 3), (3, 4, 2), (4, 4, 4)])
def test_an_allocation_s_ratio_is_the_mean_over_all_choices_of_steps(selected, steps, scored):
    logs = np.random.default_rng(3).normal(size=(scored, 6))
    ratios = np.vstack([np.exp(logs), np.ones((steps - scored, 6))])
    chosen = [ratios[list(each)].prod(axis=0) for each in itertools.combinations(range(steps), selected)]
    assert np.exp(_allocated_ratio(list(logs), selected, steps)) == pytest.approx(np.mean(chosen, axis=0))
