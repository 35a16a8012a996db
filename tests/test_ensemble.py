"""Trees as flat arrays: routing against a walk by hand, sums of trees, and arrays there and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import routing
from ledgerwood.ensemble import MAX_DEPTH, Ensemble, FeatureCells, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.threads import threads


def structure_of(feature, split, equals):
    return TreeStructure(
        feature=np.array(feature, np.int32), split=np.array(split, np.uint16), equals=np.array(equals, np.bool_)
    )


@st.composite
def structures(draw, n_features=3, cells=6):
    inner = 2 ** draw(st.integers(0, 4)) - 1
    return structure_of(
        draw(st.lists(st.integers(0, n_features - 1), min_size=inner, max_size=inner)),
        draw(st.lists(st.integers(0, cells), min_size=inner, max_size=inner)),
        draw(st.lists(st.booleans(), min_size=inner, max_size=inner)),
    )


@st.composite
def tables(draw, dtype=np.uint8):
    n_rows = draw(st.integers(1, 6))
    cells = draw(st.lists(st.integers(0, 6), min_size=3 * n_rows, max_size=3 * n_rows))
    return np.array(cells, dtype).reshape(3, n_rows)


def walk(structure, column):
    """A path from the root as a string of turns; the leaf's number is the path read in binary."""
    node, path = 0, ""
    for _ in range(structure.depth):
        cell, split = column[structure.feature[node]], structure.split[node]
        left = cell == split if structure.equals[node] else cell < split
        path += "0" if left else "1"
        node = 2 * node + 1 + int(not left)
    return int(path or "0", 2)


@pytest.mark.slow  # several fits
@given(structures(), tables(), st.sampled_from([np.uint8, np.uint16]))
def test_rows_go_to_the_leaf_that_a_walk_finds(structure, cells, dtype):
    assert structure.route(cells.astype(dtype)).tolist() == [walk(structure, column) for column in cells.T]


@pytest.mark.slow  # several fits
def test_cells_beyond_eight_bits_are_compared_whole():
    structure = structure_of([0], [300], [True])
    # 300 - 256 = 44 must not be taken for 300, nor 300 for 44.
    assert structure.route(np.array([[44, 300, 299]], np.uint16)).tolist() == [1, 0, 1]
    assert structure.route(np.array([[44]], np.uint8)).tolist() == [1]


@settings(max_examples=40)
@given(st.lists(structures(), max_size=3), tables(), st.floats(-5, 5), st.data())
def test_a_score_is_the_initial_score_plus_each_trees_leaf(trees, cells, start, data):
    ensemble = Ensemble(initial_score=start)
    expected = [start] * cells.shape[1]
    for structure in trees:
        values = data.draw(st.lists(st.floats(-1e3, 1e3), min_size=structure.n_leaves, max_size=structure.n_leaves))
        ensemble = ensemble.extended(Tree(structure=structure, values=np.array(values)))
        expected = [score + values[walk(structure, column)] for score, column in zip(expected, cells.T, strict=True)]
    assert ensemble.scores(cells).tolist() == expected


def test_several_threads_and_one_agree(monkeypatch):
    generator = np.random.default_rng(0)
    cells = generator.integers(0, 6, (3, 2 * routing.CHUNK_ROWS + 5), dtype=np.uint8)
    structure = structure_of([0, 1, 2], [3, 2, 4], [False, True, False])
    ensemble = Ensemble(initial_score=0.5, trees=(Tree(structure=structure, values=np.arange(4) / 7),))
    alone = structure.route(cells), ensemble.scores(cells)
    monkeypatch.setattr(routing, "THREADED_ROWS", 0)
    with threads(3):
        threaded = structure.route(cells), ensemble.scores(cells)
    np.testing.assert_array_equal(alone[0], threaded[0])
    np.testing.assert_array_equal(alone[1], threaded[1])
    assert [walk(structure, column) for column in cells.T[:200]] == alone[0][:200].tolist()


def stump(value=1.0):
    return Tree(structure=structure_of([0], [1], [False]), values=np.array([value, -value]))


def test_arrays_there_and_back():
    ensemble = Ensemble(initial_score=0.1, trees=(stump(0.1), stump(1e-300), stump(-3.0)))
    back = Ensemble.from_arrays(ensemble.to_arrays())
    assert back.initial_score == ensemble.initial_score
    for one, other in zip(ensemble.trees, back.trees, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.structure.feature, other.structure.feature)
        np.testing.assert_array_equal(one.structure.split, other.structure.split)
        np.testing.assert_array_equal(one.structure.equals, other.structure.equals)
    empty = Ensemble(initial_score=-2.0)
    assert set(empty.to_arrays()) == {"initial_score"}
    assert Ensemble.from_arrays(empty.to_arrays()).trees == ()


def test_an_ensemble_extends_its_own_prefixes_only():
    first = Ensemble(initial_score=0.1, trees=(stump(),))
    longer = first.extended(stump(2.0))
    assert longer.extends(first)
    assert longer.extends(longer)
    assert not first.extends(longer)
    assert not Ensemble(initial_score=0.2, trees=longer.trees).extends(first)
    # A tree is known by identity: another of the same values is another tree.
    assert not Ensemble(initial_score=0.1, trees=(stump(),)).extends(first)


def test_shapes_that_are_no_complete_tree_are_refused():
    for nodes in (2, 4, 6):
        with pytest.raises(InvalidParameter, match=r"must be 2\*\*depth - 1"):
            structure_of([0] * nodes, [0] * nodes, [False] * nodes)
    with pytest.raises(InvalidParameter, match="the same for split and equals"):
        structure_of([0], [0, 0], [False])
    too_deep = 2 ** (MAX_DEPTH + 1) - 1
    with pytest.raises(InvalidParameter, match="at most 20"):
        structure_of(np.zeros(too_deep), np.zeros(too_deep), np.zeros(too_deep))
    with pytest.raises(InvalidParameter, match=r"values\.shape=\(3,\) must be \(2,\)"):
        Tree(structure=structure_of([0], [1], [False]), values=np.zeros(3))


def test_structures_and_values_do_not_change_afterwards():
    tree = stump()
    for array in (tree.values, tree.structure.feature, tree.structure.split, tree.structure.equals):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert (tree.structure.depth, tree.structure.n_leaves) == (1, 2)
    assert (structure_of([], [], []).depth, structure_of([], [], []).n_leaves) == (0, 1)


def test_tests_are_not_changed_through_the_array_that_they_were_made_of():
    """A cell that goes left twice, or a feature that is not there, is refused once: it must not come in afterwards."""
    arrays = {
        "feature": np.array([0], np.int32),
        "split": np.array([2], np.uint16),
        "equals": np.array([False]),
        "besides": np.array([3], np.int32),
    }
    tests = SplitTests(**{name: array[:] for name, array in arrays.items()})
    for array, later in zip(arrays.values(), (-3, 4, True, 1), strict=True):
        array[0] = later
    assert (tests.feature[0], tests.split[0], tests.equals[0], tests.besides[0]) == (0, 2, False, 3)
    for array in (tests.feature, tests.split, tests.equals, tests.besides):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_tree_is_not_changed_through_the_arrays_that_it_was_made_of():
    """A table looks once whether all tested features are its own: what it looked at must be what its loops read."""
    arrays = {
        "feature": np.array([0], np.int32),
        "split": np.array([2], np.uint16),
        "equals": np.array([False]),
        "besides": np.array([3], np.int32),
    }
    values = np.array([1.0, 2.0])
    structure = TreeStructure(**{name: array[:] for name, array in arrays.items()})
    tree = Tree(structure=structure, values=values[:])
    for array, later in zip((*arrays.values(), values), (-3, 4, True, 1, 9.0), strict=True):
        array[0] = later
    assert (structure.feature[0], structure.split[0], structure.equals[0], structure.besides[0]) == (0, 2, False, 3)
    assert tree.values[0] == 1.0


def test_a_tree_keeps_plain_arrays():
    class Boasting(np.ndarray):
        def min(self, *_, **__):
            return 0

        def max(self, *_, **__):
            return 0

    feature = np.array([7], np.int32).view(Boasting)
    structure = TreeStructure(feature=feature, split=np.array([1], np.uint16), equals=np.array([False]))
    assert not structure.tests_only(3)


@pytest.mark.parametrize(("feature", "inside"), [([0, 2, 1], True), ([0, 3, 1], False), ([], True)])
def test_a_tree_knows_whether_it_fits_a_table(feature, inside):
    n = len(feature)
    assert structure_of(feature, [1] * n, [False] * n).tests_only(3) is inside


def test_an_ensemble_reads_no_feature_that_is_not_there():
    tree = Tree(structure=structure_of([2], [1], [False]), values=np.array([1.0, 2.0]))
    ensemble = Ensemble(initial_score=0.0, trees=(tree,))
    assert ensemble.scores(np.zeros((3, 2), np.uint8)).tolist() == [1.0, 1.0]
    with pytest.raises(InvalidParameter, match=r"len\(cells\)=2 must be as many as the trees were grown on"):
        ensemble.scores(np.zeros((2, 2), np.uint8))


CELLS = (FeatureCells(ordered=3, equality=(3,)), FeatureCells(ordered=0, equality=(0, 1)))
EVERY = [
    (0, 1, False, -1), (0, 2, False, -1), (0, 1, False, 3), (0, 2, False, 3), (0, 3, True, -1), (1, 0, True, -1),
    (1, 1, True, -1),
]  # fmt: skip


def rows_of(tests):
    columns = (tests.feature, tests.split, tests.equals, tests.besides)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_every_test_that_the_cells_allow():
    assert rows_of(SplitTests.every(CELLS)) == EVERY
    with pytest.raises(InvalidParameter, match="tests=0 must be >= 1"):
        SplitTests.every([FeatureCells(ordered=1, equality=())])


def test_tests_at_some_thresholds_are_those_of_all_of_them():
    some = SplitTests.every(CELLS, [np.array([2]), np.array([], np.int64)])
    assert rows_of(some) == [each for each in EVERY if each[0] or each[1] != 1]
    assert rows_of(SplitTests.every(CELLS, [np.array([1, 2], np.uint8), np.empty(0, np.int64)])) == EVERY
    with pytest.raises(ValueError, match="zip"):
        SplitTests.every(CELLS, [np.array([2])])


@pytest.mark.parametrize(
    "thresholds",
    [np.array(given) for given in ([0], [3], [-1, 1], [2, 1], [1, 1], [1.0], [[1]])] + [np.array([2, 1], np.uint16)],
)
def test_thresholds_of_another_feature_are_refused(thresholds):
    with pytest.raises(InvalidParameter, match="thresholds of feature 0"):
        SplitTests.every(CELLS, [thresholds, np.empty(0, np.int64)])


def test_more_cells_than_a_test_can_name_are_refused():
    largest = SplitTests.every([FeatureCells(ordered=2**16, equality=())])
    assert (len(largest), largest.split[-1]) == (2**16 - 1, 2**16 - 1)
    for ordered, equality in ((2**16 + 1, ()), (2**16, (2**16,)), (0, (2**16,))):
        with pytest.raises(InvalidParameter, match="cells of feature 1=65537 must be at most 65536"):
            SplitTests.every([CELLS[0], FeatureCells(ordered=ordered, equality=equality)])
    with pytest.raises(InvalidParameter, match="tests=0 must be >= 1"):
        SplitTests.every([])


def test_a_tree_grows_by_one_test_a_leaf():
    tests = SplitTests.every(CELLS)
    tree = TreeStructure.root().deeper(tests.taken(np.array([2])))
    assert tree.route(np.array([[0, 1, 2, 3], [0, 0, 0, 0]], np.uint8)).tolist() == [0, 1, 1, 0]
    tree = tree.deeper(tests.taken(np.array([4, -1])))
    # The left leaf asks for a missing value; the right one sends every row right.
    assert tree.route(np.array([[0, 1, 2, 3], [0, 0, 0, 0]], np.uint8)).tolist() == [1, 3, 3, 0]
    assert tree.besides.tolist() == [3, -1, -1]
    with pytest.raises(InvalidParameter, match=r"len\(tests\)=2 must be 4, one a leaf"):
        tree.deeper(tests.taken(np.array([0, 1])))
    with pytest.raises(ValueError, match="read-only"):
        tree.besides[0] = 1


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(range(len(EVERY))), min_size=3, max_size=3), st.data())
def test_a_cell_besides_goes_left_in_scores_and_after_a_round_trip(places, data):
    taken = SplitTests.every(CELLS).taken(np.array(places))
    structure = TreeStructure.root().deeper(taken.taken(np.array([0]))).deeper(taken.taken(np.array([1, 2])))
    ensemble = Ensemble(initial_score=0.5, trees=(Tree(structure=structure, values=np.arange(4.0)),))
    arrays = ensemble.to_arrays()
    assert ("besides" in arrays) == any(EVERY[place][3] >= 0 for place in places)
    row = (data.draw(st.integers(0, 3)), data.draw(st.integers(0, 2)))

    def left(place):
        feature, split, equals, besides = EVERY[place]
        return row[feature] == split if equals else row[feature] < split or row[feature] == besides

    leaf = (0 if left(places[1]) else 1) if left(places[0]) else (2 if left(places[2]) else 3)
    cells = np.array([row], np.uint8).T
    assert ensemble.scores(cells).tolist() == [0.5 + leaf]
    assert Ensemble.from_arrays(arrays).scores(cells).tolist() == [0.5 + leaf]


@pytest.mark.parametrize(
    ("feature", "split", "equals", "besides", "match"),
    [
        ([0], [1], [False, True], None, "equals='bool .2,.' must be one bool a test"),
        ([-1], [1], [False], None, "feature=-1 must be >= 0"),
        ([0], [4], [False], [3], "besides=3 must be -1, or a cell from split on"),
        ([0], [4], [True], [4], "besides=4 must be -1, or a cell from split on, no equality"),
        ([0], [4], [False], [-2], "besides=-2"),
        ([0], [4], [False], [2**16], "besides=65536"),
        ([0], [4], [False], [5, 5], "besides='int32 .2,.' must be int32"),
        ([], [], [], None, "tests=0"),
    ],
)
def test_bad_tests_are_refused(feature, split, equals, besides, match):
    arrays = {
        "feature": np.array(feature, np.int32),
        "split": np.array(split, np.uint16),
        "equals": np.array(equals, np.bool_),
        "besides": None if besides is None else np.array(besides, np.int32),
    }
    with pytest.raises(InvalidParameter, match=match):
        SplitTests(**arrays)
    if besides is not None:
        with pytest.raises(InvalidParameter, match=match):
            TreeStructure(**arrays)


# ------------------------------------------------------------------------------------------------- sets of categories


SETS = np.array([[True, False, True, False], [False, True, True, True]])


def with_sets(besides=(-2, -3, -1), split=(0, 0, 2), sets=SETS):
    return TreeStructure(
        feature=np.array([0, 1, 0], np.int32),
        split=np.array(split, np.uint16),
        equals=np.zeros(3, np.bool_),
        besides=np.array(besides, np.int32),
        left_sets=sets,
    )


def left_by_hand(node, cell):
    if node == 2:
        return cell < 2
    return cell < 4 and bool(SETS[node, cell])


def test_a_set_of_cells_goes_left_and_cells_beyond_it_right():
    cells = np.array([[a for a in range(6) for _ in range(6)], [b for _ in range(6) for b in range(6)]], np.uint8)
    found = with_sets().route(cells).tolist()
    for (first, second), leaf in zip(cells.T.tolist(), found, strict=True):
        root = left_by_hand(0, first)
        side = left_by_hand(1, second) if root else left_by_hand(2, first)
        assert leaf == (0 if root else 2) + (0 if side else 1)


def test_levels_with_sets_are_stacked_and_survive_a_round_trip():
    root = TreeStructure.root().deeper(
        SplitTests(
            feature=np.array([0], np.int32), split=np.array([0], np.uint16), equals=np.array([False]),
            besides=np.array([-2], np.int32), left_sets=SETS[:1, :3],
        )
    )  # fmt: skip
    level = SplitTests(
        feature=np.array([1, 0], np.int32), split=np.array([0, 2], np.uint16), equals=np.zeros(2, np.bool_),
        besides=np.array([-2, -1], np.int32), left_sets=SETS[1:],
    )  # fmt: skip
    grown = root.deeper(level)
    plain = TreeStructure.root().deeper(SplitTests.every([FeatureCells(ordered=2, equality=())]))
    cells = np.random.default_rng(0).integers(0, 6, (2, 300)).astype(np.uint8)
    assert grown.besides.tolist() == [-2, -3, -1]
    assert (grown.route(cells) == with_sets().route(cells)).all()
    trees = (
        Tree(structure=grown, values=np.arange(4.0)),
        Tree(structure=plain.deeper(level.taken(np.array([0, -1]))), values=np.arange(4.0)),
        Tree(structure=plain.deeper(level.taken(np.array([-1, 1]))), values=np.ones(4)),
    )
    ensemble = Ensemble(initial_score=0.5, trees=trees)
    again = Ensemble.from_arrays(ensemble.to_arrays())
    assert (again.scores(cells) == ensemble.scores(cells)).all()


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"besides": (-4, -1, -1)}, "besides=-4 must be"),
        ({"split": (1, 0, 2)}, "besides=-2 must be"),
        ({"sets": SETS.astype(np.int8)}, "left_sets='int8 .2, 4.' must be bool"),
        ({"sets": SETS[0]}, "left_sets"),
        ({"sets": None}, "besides=-2 must be"),
    ],
)
def test_sets_that_are_not_there_are_refused(changed, match):
    with pytest.raises(InvalidParameter, match=match):
        with_sets(**changed)


def test_an_ensemble_owns_its_trees_and_its_initial_score():
    """A list could grow after rows were scored; a score of the caller's own could be an array, of n numbers or not."""
    tree = Tree(structure=TreeStructure.root(), values=np.zeros(1))
    trees = [tree]
    ensemble = Ensemble(initial_score=np.float64(0.5), trees=trees)
    trees.append(tree)
    assert ensemble.trees == (tree,)
    assert type(ensemble.initial_score) is float
    with pytest.raises(TypeError):
        Ensemble(initial_score=np.zeros(4))


# -------------------------------------------------------------------------------------------- a score for each class


@settings(max_examples=40)
@given(st.lists(structures(), max_size=3), tables(), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_each_class_has_the_scores_of_an_ensemble_of_its_own(trees, cells, classes, seed):
    generator = np.random.default_rng(seed)
    ensemble = Ensemble.of_classes(generator.normal(size=classes).tolist())
    alone = [Ensemble(initial_score=score) for score in ensemble.class_scores]
    for structure in trees:
        values = generator.normal(scale=10.0, size=(structure.n_leaves, classes))
        ensemble = ensemble.extended(Tree(structure=structure, values=values))
        alone = [each.extended(Tree(structure=structure, values=values[:, place])) for place, each in enumerate(alone)]
    expected = np.column_stack([each.scores(cells) for each in alone])
    assert ensemble.scores(cells).tobytes() == expected.tobytes()


def test_classes_come_back_from_arrays_and_are_no_ensemble_of_one_score():
    tree = Tree(structure=structure_of([0], [3], [False]), values=np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    start = Ensemble.of_classes((0.5, 0.0, -0.5))
    grown = start.extended(tree).extended(tree)
    for ensemble in (start, grown):
        found = Ensemble.from_arrays(ensemble.to_arrays())
        assert found.class_scores == ensemble.class_scores
        assert [each.values.tolist() for each in found.trees] == [each.values.tolist() for each in ensemble.trees]
    cells = np.array([[1, 5]], np.uint8)
    assert Ensemble.from_arrays(grown.to_arrays()).scores(cells).tolist() == [[2.5, 4.0, 5.5], [8.5, 10.0, 11.5]]
    assert (start.n_classes, tree.n_classes, Ensemble(initial_score=0.0).n_classes) == (3, 3, 0)
    assert grown.extends(start)
    assert grown.extends(grown.of_first(1))
    assert grown.of_first(1).trees == grown.trees[:1]
    assert not grown.extends(Ensemble.of_classes((0.5, 0.0, -0.25)))
    assert not grown.extends(Ensemble(initial_score=0.0))


def test_trees_of_other_classes_and_one_class_are_refused():
    structure = structure_of([0], [3], [False])
    pair, plain = Tree(structure=structure, values=np.zeros((2, 2))), Tree(structure=structure, values=np.zeros(2))
    for start, tree in (
        (Ensemble.of_classes((0.0,) * 3), pair),
        (Ensemble.of_classes((0.0,) * 3), plain),
        (Ensemble(initial_score=0.0), pair),
    ):
        with pytest.raises(InvalidParameter, match="classes of a tree"):
            start.extended(tree)
    with pytest.raises(InvalidParameter, match="initial_scores"):
        Ensemble.of_classes((0.0,))
    with pytest.raises(InvalidParameter, match="class_scores"):
        Ensemble(initial_score=0.0, class_scores=(0.0,))
    for shape in ((2, 1), (3, 2), (2, 2, 2), (2, 0), ()):
        with pytest.raises(InvalidParameter, match="values.shape"):
            Tree(structure=structure, values=np.zeros(shape))


def test_several_threads_and_one_agree_on_all_classes(monkeypatch):
    generator = np.random.default_rng(0)
    cells = generator.integers(0, 6, (3, 2 * routing.CHUNK_ROWS + 5), dtype=np.uint8)
    tree = Tree(
        structure=structure_of([0, 1, 2], [3, 2, 4], [False, True, False]), values=generator.normal(size=(4, 3))
    )
    ensemble = Ensemble(initial_score=0.5, trees=(tree, tree), class_scores=(0.1, 0.2, 0.3))
    alone = ensemble.scores(cells)
    monkeypatch.setattr(routing, "THREADED_ROWS", 0)
    with threads(2):
        assert (ensemble.scores(cells) == alone).all()
