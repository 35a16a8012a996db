"""Trees drawn from the schema: no split that its own path has decided, while another could be had."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.ensemble import FeatureCells
from ledgerwood.mechanisms import SecureRandom, SeededRandom
from ledgerwood.trainers.parts.splits import cyclic_features, random_tree, structure_generator


def drawn(cells, *, depth, features=None, numeric_weight=1.0, seed=0):
    return random_tree(
        cells,
        depth=depth,
        features=range(len(cells)) if features is None else features,
        numeric_weight=numeric_weight,
        generator=np.random.default_rng(seed),
    )


def all_cells(feature):
    """Every cell that a row can have: ordered ones, testable ones, and for categories "other"."""
    found = set(range(feature.ordered)) | set(feature.equality)
    return found if feature.ordered else found | {max(feature.equality) + 1}


def open_tests(feature, possible):
    """How many different splits of the possible cells the feature's tests can still make."""
    thresholds = sum(
        1 for t in range(1, feature.ordered) if any(c < t for c in possible) and any(c >= t for c in possible)
    )
    return thresholds + sum(1 for c in feature.equality if c in possible and len(possible) > 1)


@st.composite
def schemas(draw):
    cells = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            bins = draw(st.integers(2, 6))
            cells.append(FeatureCells(ordered=bins, equality=(bins,) if draw(st.booleans()) else ()))
        else:
            k = draw(st.integers(1, 4))
            cells.append(FeatureCells(ordered=0, equality=tuple(range(k))))
    return tuple(cells)


@pytest.mark.slow  # many fits and plans
@settings(max_examples=150)
@given(schemas(), st.integers(0, 5), st.integers(0, 2**32), st.data())
def test_no_split_is_void_while_something_can_be_split(cells, depth, seed, data):
    features = data.draw(st.lists(st.integers(0, len(cells) - 1), min_size=1, max_size=len(cells), unique=True))
    tree = drawn(cells, depth=depth, features=features, seed=seed)
    assert tree.depth == depth
    # A tree of depth 0 has no node to look at: it is one leaf.
    reach = {0: [all_cells(feature) for feature in cells]}
    for node in range(tree.n_leaves - 1):
        possible = reach.pop(node)
        j, split, equals = int(tree.feature[node]), int(tree.split[node]), bool(tree.equals[node])
        left = {c for c in possible[j] if (c == split if equals else c < split)}
        right = possible[j] - left
        still_open = [i for i in range(len(cells)) if open_tests(cells[i], possible[i])]
        if still_open:
            assert min(len(left), len(right)) > 0, "a void split, though something could be split"
            own = [i for i in still_open if i in features]
            assert j in own or not own, "a feature that is not the tree's, though one of the tree's could be split"
        else:
            assert not left, "where nothing can be split, every row goes right"
        for child, part in ((2 * node + 1, left), (2 * node + 2, right)):
            reach[child] = [part if i == j else cell for i, cell in enumerate(possible)]


def root_features(cells, n, **options):
    generator = np.random.default_rng(11)
    options = {"features": range(len(cells)), "numeric_weight": 1.0} | options
    return Counter(int(random_tree(cells, depth=1, generator=generator, **options).feature[0]) for _ in range(n))


NUMERIC = FeatureCells(ordered=4, equality=())
CATEGORICAL = FeatureCells(ordered=0, equality=(0, 1, 2))


@pytest.mark.parametrize("weight", [1.0, 3.0, 0.25])
def test_a_numeric_feature_is_drawn_by_its_weight(weight):
    n = 4_000
    share = weight / (weight + 1.0)
    counts = root_features((NUMERIC, CATEGORICAL), n, numeric_weight=weight)
    assert abs(counts[0] - n * share) < 6 * np.sqrt(n * share * (1 - share))


def test_the_tests_of_a_feature_are_drawn_evenly():
    with_missing = FeatureCells(ordered=4, equality=(4,))
    generator = np.random.default_rng(2)
    seen = Counter()
    for _ in range(4_000):
        tree = random_tree((with_missing,), depth=1, features=(0,), numeric_weight=1.0, generator=generator)
        seen[int(tree.split[0]), bool(tree.equals[0])] += 1
    assert set(seen) == {(1, False), (2, False), (3, False), (4, True)}
    assert all(abs(count - 1_000) < 6 * np.sqrt(1_000 * 0.75) for count in seen.values())


def test_only_the_trees_features_are_split_while_they_last():
    assert set(root_features((NUMERIC,) * 4, 200, features=(1, 3))) == {1, 3}
    # One feature of one category is used up by one split; then any other will do.
    tree = drawn((FeatureCells(ordered=0, equality=(0,)), NUMERIC), depth=3, features=(0,), seed=3)
    assert tree.feature[0] == 0
    assert set(tree.feature[1:].tolist()) == {1}


def test_a_schema_that_is_used_up_sends_every_row_right():
    tree = drawn((FeatureCells(ordered=0, equality=(0,)),), depth=3)
    # At the root 0 goes left and "other" right; below, nothing is left to test.
    leaves = tree.route(np.array([[0, 1]], np.uint8))
    assert leaves.tolist() == [3, 7]


def test_many_categories_are_split_at_cells_beyond_eight_bits():
    many = FeatureCells(ordered=0, equality=tuple(range(1_000)))
    tree = drawn((many,), depth=6)
    assert tree.split.dtype == np.uint16
    assert tree.split.max() > 255
    # Along the right-hand side nothing is used up.
    assert tree.equals[[0, 2, 6, 14, 30, 62]].all()
    leaves = tree.route(np.arange(1_000, dtype=np.uint16)[None, :])
    assert len(set(leaves.tolist())) > 6


def test_features_take_turns():
    assert [cyclic_features(t, n_features=5, per_tree=2) for t in range(5)] == [(0, 1), (2, 3), (4, 0), (1, 2), (3, 4)]
    for k in (None, 3, 7):
        assert cyclic_features(4, n_features=3, per_tree=k) == (0, 1, 2)


def test_the_generator_of_structures_comes_from_the_source():
    one, other = (structure_generator(SeededRandom(5)).random(4).tolist() for _ in range(2))
    assert one == other
    secure = SecureRandom()
    assert structure_generator(secure).random(4).tolist() != structure_generator(secure).random(4).tolist()
