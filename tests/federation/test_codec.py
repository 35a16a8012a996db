"""Bytes of a federation's messages: what travels comes back equal, and nothing else is read."""

import dataclasses
import pickle

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import ledgerwood as lw
from ledgerwood.curator import CandidateBins, DeclaredStatistic, LeafClassGradients, LeafMoments, LeafQuery, WholeSums
from ledgerwood.curator.queries.registry import TREE_CHOICES, TREES
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, Tree, TreeStructure
from ledgerwood.errors import BadMessage
from ledgerwood.federation.codec import ReadValues, RepeatedValues, kind_in, pack, unpack, value_kinds
from ledgerwood.mechanisms import GaussianMechanism

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.dictionaries(st.integers(0, 9), inner, max_size=3),
    max_leaves=12,
)


def tree(value=1.0):
    tests = SplitTests(feature=np.array([1], np.int32), split=np.array([3], np.uint16), equals=np.array([False]))
    return Tree(structure=TreeStructure.root().deeper(tests), values=np.array([value, -value]))


def same(left, right):
    """Equal field by field, arrays by dtype and content."""
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and left.shape == right.shape and np.array_equal(left, right)
    if dataclasses.is_dataclass(left):
        return type(left) is type(right) and all(
            same(getattr(left, field.name), getattr(right, field.name)) for field in dataclasses.fields(left)
        )
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right and type(left) is type(right)


@given(value=PLAIN)
def test_plain_values_come_back(value):
    assert unpack(pack(value)) == value


KINDS = [np.int64, np.uint64, np.uint16, np.bool_, np.float64]


@given(value=arrays.arrays(st.sampled_from(KINDS), arrays.array_shapes()))
def test_arrays_come_back(value):
    found = unpack(pack(value))
    assert found.dtype == value.dtype
    assert found.shape == value.shape
    assert found.tobytes() == value.tobytes()


def test_queries_come_back_with_their_trees_and_bins():
    ensemble = Ensemble(initial_score=0.5, trees=(tree(), tree(2.0)))
    query = LeafMoments(loss="squared", clip=1.0).of(tree().structure, ensemble)
    bins = CandidateBins.of((FeatureCells(ordered=4, equality=(4,)), FeatureCells(ordered=0, equality=(0, 1))))
    leaf = LeafClassGradients(classes=3, clip=0.5)
    several = Ensemble.of_classes((0.5, 0.0, -0.25)).extended(
        Tree(structure=tree().structure, values=np.arange(tree().structure.n_leaves * 3.0).reshape(-1, 3))
    )
    joint = leaf.of(tree().structure, several)
    whole = WholeSums(leaf=leaf, bits=9, weight_bits=3).of(tree().structure, several)
    for value in (
        joint,
        whole,
        query,
        bins,
        GaussianMechanism(stddev=2.0),
        lw.Schema.uniform(0, 1, target=lw.Numeric("t", 0, 1)),
    ):
        assert same(unpack(pack(value)), value)


def test_events_come_back():
    noise = lw.GaussianEvent(noise_multiplier=2.0, adjacency=lw.Adjacency.ADD_REMOVE)
    event = lw.Composed((lw.Repeated(lw.PoissonSampled(noise, sampling_rate=0.1), count=3), noise))
    assert unpack(pack(event)) == event


def test_repeated_values_are_sent_once_and_are_the_same_object_each_time():
    sent, read = RepeatedValues(), ReadValues()
    first, second = tree(), tree(2.0)
    before = pack(Ensemble(initial_score=0.0, trees=(first,)), sent)
    news = list(sent.packed)
    assert read.learn(0, news)
    one = unpack(before, read)
    after = pack(Ensemble(initial_score=0.0, trees=(first, second)), sent)
    assert len(after) < 100
    assert read.learn(len(news), sent.packed[len(news) :])
    two = unpack(after, read)
    assert two.extends(one)
    assert not ReadValues().learn(len(news), [])  # values that never came


@pytest.mark.parametrize("kind", sorted(TREES.kinds | TREE_CHOICES.kinds, key=str), ids=lambda kind: kind.__name__)
def test_every_query_of_trees_travels_but_a_function_from_outside(kind):
    assert (value_kinds().get(kind.__name__) is kind) == (kind is not DeclaredStatistic)


class Foreign:
    """No value of the library."""


def test_what_is_no_value_of_the_library_does_not_travel():
    for value in (Foreign(), {1, 2}, np.array(["text"]), np.array([None], dtype=object), LeafQuery, lambda: 1):
        with pytest.raises(BadMessage):
            pack(value)


@given(value=PLAIN)
def test_the_kind_of_a_message_is_known_without_reading_it(value):
    assert kind_in(pack(value)) == ""
    assert kind_in(pack(GaussianMechanism(stddev=2.0))) == "GaussianMechanism"
    found = pack(tree())
    assert kind_in(found) == "Tree"
    for end in range(0, len(found), 7):
        assert kind_in(found[:end]) == ""


def test_bytes_that_are_no_message_are_refused_and_run_nothing(tmp_path):
    trap = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return trap.touch, ()

    foreign = [
        b"", b"\xc1", pickle.dumps(Trap()), b"\xff" * 40, pack((1, 2))[:-1],
        msgpack.packb(msgpack.ExtType(2, msgpack.packb(["Popen", "ls"]))),
        msgpack.packb(msgpack.ExtType(2, msgpack.packb(["GaussianMechanism", -1.0]))),
        msgpack.packb(msgpack.ExtType(2, msgpack.packb(["GaussianMechanism"]))),
        msgpack.packb(msgpack.ExtType(1, msgpack.packb(["<i8", [3]]) + b"12345678")),
        msgpack.packb(msgpack.ExtType(1, msgpack.packb(["O", [1]]) + b"12345678")),
        msgpack.packb(msgpack.ExtType(1, msgpack.packb(["<i8", [-1]]) + b"")),
        msgpack.packb(msgpack.ExtType(3, b'{"type": "os.system"}')),
        msgpack.packb(msgpack.ExtType(4, b"Adjacency.NONE")),
        msgpack.packb(msgpack.ExtType(5, msgpack.packb(3))),
        msgpack.packb(msgpack.ExtType(77, b"")),
    ]  # fmt: skip
    for message in foreign:
        with pytest.raises(BadMessage):
            unpack(message)
    assert not trap.exists()
