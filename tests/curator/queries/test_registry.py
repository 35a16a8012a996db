"""Every query of the curator's is registered, and nothing else is carried out: not even what calls itself one."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import ledgerwood.curator.queries as room
from ledgerwood import Adjacency, Budget, Ledger, Numeric, PrivacyUnit, Schema
from ledgerwood.curator import (
    CellCounts,
    Curator,
    LabelCount,
    LabelMoments,
    LeafCounts,
    LeafCurvatures,
    LeafMoments,
    LeafQuery,
    LeafRatios,
    LeafStatistic,
    PredictionFit,
    ScoreQuery,
    ScoreStatistic,
    SplitGains,
    Table,
    WholeSums,
)
from ledgerwood.curator.queries.leaf_statistics import LEAVES
from ledgerwood.curator.queries.registry import REGISTRIES, TREE_CHOICES, TREES, no_refusal
from ledgerwood.curator.queries.scores import SCORES
from ledgerwood.curator.tables import columns, trees
from ledgerwood.curator.tables import trees as undeclared
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation
from ledgerwood.mechanisms import BoxShifts, EllipticalGaussianMechanism, SeededRandom

A = Adjacency.ADD_REMOVE
ROOT, START = TreeStructure.root(), Ensemble(initial_score=0.0)
SCHEMA = Schema(features=(Numeric("a", 0, 1),), target=Numeric("y", -1, 1))
ALL = (*REGISTRIES, LEAVES, SCORES)
STATISTICS = [
    LeafMoments(loss="squared", clip=0.5),
    LeafCurvatures(clip=0.5),
    LeafRatios(loss="squared", clip=0.5, damping=1.0),
    WholeSums(leaf=LeafCurvatures(clip=0.5), bits=6),
    LeafCounts(),
]


def table():
    return Table.from_data(np.array([[0.25], [0.75]]), np.array([0.5, -1.0]), SCHEMA, loss="squared", bins=4)


def described():
    """Every class of the room that states what a row changes, or what a choice costs."""
    found = set()
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        for kind in vars(importlib.import_module(module.name)).values():
            if not isinstance(kind, type) or not kind.__module__.startswith(room.__name__):
                continue
            states = {"sensitivity", "grid"} <= set(dir(kind)) or {"event", "select"} <= set(dir(kind))
            if states and not inspect.isabstract(kind) and not getattr(kind, "_is_protocol", False):
                found.add(kind)
    return {kind for kind in found if not any(kind is not other and issubclass(other, kind) for other in found)}


def test_every_query_of_the_room_is_registered_once():
    registered = [kind for registry in ALL for kind in registry.kinds]
    # A statistic from outside is asked of both kinds of table.
    assert sorted(kind.__name__ for kind in {*registered} if registered.count(kind) > 1) == ["DeclaredStatistic"]
    assert described() == set(registered)


def test_a_table_imports_no_query():
    kinds = {kind for registry in ALL for kind in registry.kinds}
    for module in (trees, columns, undeclared):
        assert not kinds & {each for each in vars(module).values() if isinstance(each, type)}


class Cheaper(LabelMoments):  # type: ignore[misc]
    def sensitivity(self, adjacency):
        return LabelCount().sensitivity(adjacency)


class Mimic(type):
    """Classes that say they are another one."""

    def __eq__(cls, other):
        return other in (LabelMoments, LeafMoments, PredictionFit, SplitGains, cls)

    def __hash__(cls):
        return hash(LabelMoments)


class Pretender(metaclass=Mimic):
    grid = LabelMoments().grid

    def sensitivity(self, adjacency):
        return LabelCount().sensitivity(adjacency)


class SmallerLeaf(LeafMoments):  # type: ignore[misc]
    def sensitivity(self, adjacency):
        return BoxShifts(boxes=((1e-6, 1e-6),))


class SmallerQuery(LeafQuery):  # type: ignore[misc]
    def sensitivity(self, adjacency):
        return BoxShifts(boxes=((1e-6, 1e-6),))


class SmallerFit(PredictionFit):  # type: ignore[misc]
    def sensitivity(self, adjacency):
        return BoxShifts(boxes=((1e-6,),))


class OwnLeaf(LeafStatistic):
    grid, width, uses_scores = LeafMoments(loss="squared", clip=1.0).grid, 2, True

    def sensitivity(self, adjacency):
        return BoxShifts(boxes=((1e-6, 1e-6),))


@pytest.mark.parametrize(
    "query",
    [
        Cheaper(),
        Pretender(),
        SmallerLeaf(loss="squared", clip=0.5).of(ROOT, START),
        SmallerQuery(statistic=LeafMoments(loss="squared", clip=0.5), structure=ROOT, ensemble=START),
        OwnLeaf().of(ROOT, START),
        SmallerFit(loss="squared", width=1.0).of(START),
        LeafMoments(loss="squared", clip=0.5),  # of no tree
        object(),
        None,
    ],
    ids=lambda query: type(query).__name__,
)
def test_a_foreign_query_is_refused_by_name_before_a_draw_is_used(query):
    pair = EllipticalGaussianMechanism(stddevs=(4.0, 4.0))
    event = pair.event(LabelMoments().sensitivity(A), A)
    ledger = Ledger(Budget(epsilon=50.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)
    curator = Curator(table(), ledger.grant(event, purpose="test"), SeededRandom(1))
    with curator.open(event, purpose="test") as round_:
        with pytest.raises(RoundViolation, match="is not a"):
            round_.release(query, pair, purpose="foreign")
        # What was paid for is still there.
        assert round_.release(LabelMoments(), pair, purpose="own").value.shape == (2,)


def test_a_statistic_that_is_asked_of_no_tree_says_how_to_ask_it():
    with pytest.raises(RoundViolation, match=r"ask statistic.of\(tree, ensemble\)"):
        table().reader(LeafMoments(loss="squared", clip=0.5))


def test_a_foreign_class_cannot_be_registered_nor_a_class_twice():
    with pytest.raises(RoundViolation, match="Cheaper is not a query of the curator"):
        TREES.carries_out(Cheaper, check=no_refusal)
    with pytest.raises(RoundViolation, match="LabelMoments is registered already"):
        TREES.carries_out(LabelMoments, check=no_refusal)
    assert Cheaper not in TREES.kinds
    assert SplitGains in TREE_CHOICES.kinds
    assert SplitGains not in TREES.kinds


@pytest.mark.parametrize("module", ["ledgerwood.curator.queries.labels", "ledgerwood.curator.queries.mine"])
def test_a_class_that_says_it_is_of_the_room_is_foreign_all_the_same(module):
    class Claims:
        grid = LabelMoments().grid

        def sensitivity(self, adjacency):
            return LabelCount().sensitivity(adjacency)

    Claims.__module__ = module
    with pytest.raises(RoundViolation, match="Claims is not a query of the curator"):
        TREES.carries_out(Claims, check=no_refusal)


def test_what_has_put_itself_into_a_module_of_the_room_comes_too_late(monkeypatch):
    from ledgerwood.curator.queries import labels

    late = type("Late", (), {"__module__": labels.__name__})
    monkeypatch.setattr(labels, "Late", late, raising=False)
    for registry in ALL:
        with pytest.raises(RoundViolation, match="Late comes too late"):
            registry.carries_out(late, check=no_refusal)
        assert late not in registry.kinds


def test_a_foreign_tree_inside_of_an_ensemble_is_refused_before_a_draw_is_used():
    far = TreeStructure(feature=np.array([3], np.int32), split=np.array([1], np.uint16), equals=np.array([False]))
    ensemble = Ensemble(initial_score=0.0, trees=(Tree(structure=far, values=np.zeros(2)),))
    pair = EllipticalGaussianMechanism(stddevs=(4.0, 4.0))
    leaf = LeafMoments(loss="squared", clip=0.5)
    event = pair.event(leaf.sensitivity(A), A)
    ledger = Ledger(Budget(epsilon=50.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)
    curator = Curator(table(), ledger.grant(event, purpose="test"), SeededRandom(1))
    with curator.open(event, purpose="test") as round_:
        with pytest.raises(RoundViolation, match=r"features outside 0\.\.0"):
            round_.release(leaf.of(ROOT, ensemble), pair, purpose="far")
        assert round_.release(leaf.of(ROOT, START), pair, purpose="own").value.shape == (1, 2)
    tests = SplitTests.every(SCHEMA.cells(4))
    gains = SplitGains(structure=ROOT, ensemble=ensemble, loss="squared", clip=1.0, damping=0.0, tests=tests)
    with pytest.raises(RoundViolation, match="features outside"):
        table().evidence(gains)
    with pytest.raises(RoundViolation, match="features outside"):
        table().reader(PredictionFit(loss="squared", width=1.0).of(ensemble))


def test_a_tree_with_a_feature_below_zero_is_refused_when_it_is_built():
    with pytest.raises(InvalidParameter, match=r"feature=-1 must be >= 0"):
        TreeStructure(feature=np.array([-1], np.int32), split=np.array([1], np.uint16), equals=np.array([False]))


def test_a_tree_or_an_ensemble_that_is_not_the_tables_is_refused_before_a_draw_is_used():
    far = TreeStructure(feature=np.array([3], np.int32), split=np.array([1], np.uint16), equals=np.array([False]))
    odd = type("Odd", (Ensemble,), {"__slots__": ()})(initial_score=0.0)
    tests = SplitTests.every(SCHEMA.cells(4))
    for structure, ensemble, match in ((far, START, r"outside 0\.\.0"), (ROOT, odd, "plain trees")):
        for statistic in STATISTICS:
            if ensemble is START or statistic.uses_scores:
                with pytest.raises(RoundViolation, match=match):
                    table().reader(statistic.of(structure, ensemble))
        gains = SplitGains(structure=structure, ensemble=ensemble, loss="squared", clip=1.0, damping=0.0, tests=tests)
        with pytest.raises(RoundViolation, match=match):
            table().evidence(gains)
    with pytest.raises(RoundViolation, match="plain trees"):
        table().reader(PredictionFit(loss="squared", width=1.0).of(odd))
    with pytest.raises(RoundViolation, match=r"features outside 0\.\.0"):
        table().reader(CellCounts(features=(1,), cells=2))


@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda each: type(each).__name__)
def test_what_a_leaf_releases_is_known_before_there_is_a_tree(statistic):
    trees = [ROOT, ROOT.deeper(SplitTests.every(SCHEMA.cells(4)).taken(np.array([1])))]
    for tree in trees:
        query = statistic.of(tree, START)
        assert query.grid == statistic.grid
        for adjacency in Adjacency:
            assert query.sensitivity(adjacency) == statistic.sensitivity(adjacency)
        exact = table().reader(query)(np.empty(0, np.bool_))
        assert exact.size == tree.n_leaves * statistic.width
        assert exact.shape[-1] == statistic.grid.columns


def test_a_statistic_of_gradients_asks_for_an_ensemble():
    with pytest.raises(InvalidParameter, match="ensemble=None must be an Ensemble for LeafMoments"):
        LeafMoments(loss="squared", clip=1.0).of(ROOT)
    assert LeafCounts().of(ROOT).ensemble is None


def test_statistics_are_compared_by_their_parameters():
    assert LeafMoments(loss="squared", clip=1) == LeafMoments(loss="squared", clip=1.0)
    assert LeafMoments(loss="squared", clip=1.0) != LeafMoments(loss="squared", clip=0.5)
    assert isinstance(PredictionFit(loss="squared", width=1.0), ScoreStatistic)
    assert isinstance(PredictionFit(loss="squared", width=1.0).of(START), ScoreQuery)
