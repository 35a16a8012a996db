"""Sums of the softmax's gradients and hessians: plain Python's, and never longer than their bound, which is sharp."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Budget, Categorical, Ledger, Numeric, PrivacyUnit, Schema
from ledgerwood.curator import Curator, LeafSoftmax, Table
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation
from ledgerwood.mechanisms import GaussianMechanism, TestRandom

SCHEMA = Schema(features=(Numeric("x", 0.0, 4.0),), target=Categorical("kind", ("pear", "apple", "fig")))
TREE = TreeStructure(feature=np.array([0], np.int32), split=np.array([2], np.uint16), equals=np.array([False]))
EVERYONE = np.empty(0, dtype=np.bool_)
UNIT = 2**20
A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def constant(*scores):
    return tuple(Ensemble(initial_score=score) for score in scores)


def one_row(scores, label, scale=2.0):
    """What one row of class `label` of len(scores) classes contributes, int64 (2 K,)."""
    classes = tuple(f"c{k:04d}" for k in range(len(scores)))
    schema = Schema(features=SCHEMA.features, target=Categorical("kind", classes))
    rows = Table(schema=schema, cells=np.zeros((1, 1), np.uint8), classes=np.array([label], np.int32))
    query = LeafSoftmax(structure=TreeStructure.root(), ensembles=constant(*scores), curvature_scale=scale)
    return rows.reader(query)(EVERYONE)[0]


def by_hand(scores, label, scale):
    with mpmath.workdps(40):
        powers = [mpmath.exp(mpmath.mpf(s)) for s in scores]
        p = [each / mpmath.fsum(powers) for each in powers]
        pairs = [(scale * q * (1 - q), q - (k == label)) for k, q in enumerate(p)]
        return [float(number) for pair in pairs for number in pair]


scores_of = st.lists(st.floats(-60.0, 60.0), min_size=2, max_size=7)


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=200, deadline=None, derandomize=True)
@given(scores_of, st.data())
def test_a_contribution_is_the_truncated_loss_and_no_longer_than_root_two(scores, data):
    label = data.draw(st.integers(0, len(scores) - 1))
    scale = data.draw(st.floats(0.1, 3.33 if len(scores) == 2 else 2.0))
    found = one_row(scores, label, scale).tolist()
    wanted = by_hand(scores, label, scale)
    assert all(abs(a / UNIT - b) <= 1.001 / UNIT for a, b in zip(found, wanted, strict=True))
    assert sum(a * a for a in found) <= 2 * UNIT**2


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6).filter(lambda w: sum(w) > 0), st.data())
def test_the_bound_holds_on_the_whole_simplex(weights, data):
    p = [Fraction(w) / sum(map(Fraction, weights)) for w in weights]
    label = data.draw(st.integers(0, len(p) - 1))
    square = sum((q - (k == label)) ** 2 + (2 * q * (1 - q)) ** 2 for k, q in enumerate(p))
    assert square <= 2


def test_the_bound_is_sharp_and_no_larger_scale_is_free():
    assert sum(a * a for a in one_row([0.0, 800.0, 0.0], 0).tolist()) == 2 * UNIT**2

    def square(c):  # at (0, 1/2, 1/2), of the first class
        return Fraction(3, 2) + Fraction(c) ** 2 / 8

    assert square(2) == 2
    assert square(2.001) > 2


def test_sums_by_leaf_with_weights_and_a_sample_are_those_of_the_rows():
    generator = np.random.default_rng(3)
    x, weights = generator.uniform(0, 4, 200), generator.choice([0.0, 0.5, 1.0], 200)
    labels = generator.choice(["apple", "fig", "pear"], 200)
    schema = Schema(features=SCHEMA.features, target=SCHEMA.target, weight_bound=1.0)
    rows = Table.from_data(x[:, None], labels, schema, loss="logistic", bins=4, sample_weight=weights)
    sampled = generator.random(200) < 0.5
    ensembles = tuple(
        Ensemble(initial_score=0.1 * k, trees=(Tree(structure=TREE, values=np.array([0.3 * k, -0.5])),))
        for k in range(3)
    )
    found = rows.reader(LeafSoftmax(structure=TREE, ensembles=ensembles))(sampled)
    wanted = np.zeros((2, 6))
    for value, label, weight, drawn in zip(x, labels, weights, sampled, strict=True):
        leaf = 0 if value < 2.0 else 1
        scores = [each.initial_score + each.trees[0].values[leaf] for each in ensembles]
        if drawn:
            wanted[leaf] += weight * np.array(by_hand(scores, ("apple", "fig", "pear").index(label), 2.0))
    assert np.abs(found / UNIT - wanted).max() <= 200 * 2.0 / UNIT


def test_a_row_of_no_class_or_without_a_finite_score_counts_nothing():
    rows = Table(schema=SCHEMA, cells=np.zeros((1, 2), np.uint8), classes=np.array([-1, 0], np.int32))
    for scores in ((math.nan, 0.0, 0.0), (math.inf, 0.0, 0.0), (0.0, 0.0, math.nan)):
        query = LeafSoftmax(structure=TREE, ensembles=constant(*scores))
        assert not rows.reader(query)(EVERYONE).any()
    found = rows.reader(LeafSoftmax(structure=TREE, ensembles=constant(0.0, 0.0, 0.0)))(EVERYONE)
    assert np.allclose(found[0] / UNIT, by_hand([0.0, 0.0, 0.0], 0, 2.0), atol=2.0 / UNIT)


def test_the_norm_is_held_in_integers_where_floats_would_pass_it():
    # All hessians lose steps, or the row counts nothing; here the radius is an artificial one.
    from ledgerwood.curator.kernels import softmax as softmax_kernels

    def contribution(squared_radius):
        partial, leaves = np.zeros((1, 1, 4), np.int64), np.empty(1, np.int32)
        softmax_kernels.softmax_sums(
            1, np.zeros((1, 1), np.uint8), *TreeStructure.root().lowered(), np.zeros((2, 1)), np.zeros(1, np.int32),
            np.empty(0, np.int32), EVERYONE, 2.0, float(UNIT), squared_radius, leaves, partial,
        )  # fmt: skip
        return partial[0, 0].tolist()

    half = UNIT // 2
    assert contribution(4 * half**2) == [half, -half, half, half]
    assert contribution(4 * half**2 - 1) == [half - 1, -half, half - 1, half]
    assert contribution(2 * half**2) == [0, 0, 0, 0]


def test_the_event_is_the_radius_over_the_noise():
    for adjacency, moved in ((A, 1.0), (R, 2.0)):
        query = LeafSoftmax(structure=TREE, ensembles=constant(0.0, 0.0, 0.0, 0.0))
        radius = query.sensitivity(adjacency).radius
        assert Fraction(radius / moved) ** 2 >= 2 > Fraction(math.nextafter(radius / moved, 0.0)) ** 2
        assert query.squared_radius_steps == 2 * UNIT**2
        event = GaussianMechanism(stddev=3.0).event(query.sensitivity(adjacency), adjacency)
        assert event.noise_multiplier == pytest.approx(3.0 / (moved * math.sqrt(2.0)), rel=1e-14)


def test_a_round_pays_for_all_classes_once():
    query = LeafSoftmax(structure=TREE, ensembles=constant(0.0, 0.0, 0.0))
    noise = GaussianMechanism(stddev=7.0)
    event = noise.event(query.sensitivity(A), A)
    ledger = Ledger(Budget(epsilon=10.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)
    rows = Table.from_data(np.ones((3, 1)), ["fig", "fig", "pear"], SCHEMA, loss="logistic", bins=4)
    curator = Curator(rows, ledger.grant(event, purpose="leaves"), TestRandom(0))
    with curator.open(event, purpose="leaves") as round_:
        with pytest.raises(RoundViolation, match="does not hold"):
            round_.release(query, GaussianMechanism(stddev=6.9), purpose="leaves")
        release = round_.release(query, noise, purpose="leaves")
    assert release.value.shape == (2, 6)


def test_other_classes_than_the_table_has_are_refused():
    rows = Table.from_data(np.ones((3, 1)), ["fig", "fig", "pear"], SCHEMA, loss="logistic", bins=4)
    for query in (LeafSoftmax(structure=TREE, ensembles=constant(*([0.0] * k))) for k in (2, 4)):
        with pytest.raises(RoundViolation, match=r"of . classes, and the table of 3"):
            rows.reader(query)
    numbers = Schema(features=SCHEMA.features, target=Numeric("y", 0.0, 1.0))
    table = Table.from_data(np.ones((3, 1)), np.zeros(3), numbers, loss="squared", bins=4)
    with pytest.raises(RoundViolation, match="the table of 0"):
        table.reader(LeafSoftmax(structure=TREE, ensembles=constant(0.0, 0.0)))


@pytest.mark.parametrize(
    ("classes", "scale", "match"),
    [
        (1, 1.0, "ensembles"),
        (3, 2.01, "at most 2.0 for 3 classes"),
        (2, 3.34, "at most 3.33 for 2"),
        (3, 0.0, "scale"),
        (1025, 1.0, "classes"),
    ],
)
def test_bad_queries_are_refused(classes, scale, match):
    with pytest.raises(InvalidParameter, match=match):
        LeafSoftmax(structure=TREE, ensembles=constant(*([0.0] * classes)), curvature_scale=scale)
