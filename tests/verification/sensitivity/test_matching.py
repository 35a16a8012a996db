"""Plain data sets as neighbours: rows are matched by their values."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification import added, duplicated, neighbour_of, permuted, removed, replaced
from ledgerwood.verification.sensitivity.domains import Neighbour

NAN = float("nan")
NUMBERS = (
    np.array([[0.5, 1.0], [NAN, 2.0], [0.5, 1.0], [-0.0, 3.0]]),
    np.array([1, 0, 1, 0]),
    np.array([1.0, 0.5, 1.0, 0.25]),
)
OBJECTS = (np.array([["a", 1], ["b", NAN], ["a", 1], [None, True]], dtype=object), np.array(["x", "y", "x", "x"]))


@pytest.mark.parametrize(("data", "new"), [(NUMBERS, ([0.7, 9.0], 3, 2.0)), (OBJECTS, (["c", 2.5], "z"))])
def test_each_change_is_found_again(data, new):
    # What was added is put at the end: of equal rows, the last one is the new one.
    for made in (
        added(data, *new),
        added(data, *new, at=0),
        removed(data, 1),
        replaced(data, 3, *new),
        permuted(data, np.random.default_rng(3)),
    ):
        found = neighbour_of(data, made.data)
        assert (found.change, found.new, found.gone) == (made.change, made.new, made.gone)
        assert found.data is made.data
        for place, origin in enumerate(found.origin):
            for theirs, mine in zip(found.data, data, strict=True):
                if origin != -1:
                    assert str(theirs[place]) == str(mine[origin])


def test_a_duplicate_is_one_row_more():
    found = neighbour_of(NUMBERS, duplicated(NUMBERS, 0).data)
    assert found.change == "added"
    assert (found.new, found.gone) == (3, None)  # the third row of its values


def test_missing_values_are_one_value_and_signed_zeros_are_two():
    other_nan = np.array([0x7FF8_0000_0000_0001], np.uint64).view(np.float64)[0]
    assert neighbour_of(np.array([NAN, 1.0]), np.array([1.0, other_nan])).change == "permuted"
    assert neighbour_of(np.array([NAN, 1], dtype=object), np.array([1, NAN], dtype=object)).change == "permuted"
    assert neighbour_of(np.array([0.0, 1.0]), np.array([-0.0, 1.0])).change == "replaced"
    assert neighbour_of(np.array([0.0, 1.0], object), np.array([-0.0, 1.0], object)).change == "replaced"
    assert neighbour_of(np.array([True], object), np.array([1], object)).change == "replaced"


def test_frames_lists_and_whole_numbers_among_floats_are_rows_too():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["u", None]})
    longer = pd.concat([frame, pd.DataFrame({"a": [3.0], "b": ["v"]})], ignore_index=True)
    found = neighbour_of((frame, [0, 1]), (longer, [0, 1, 1]))
    assert (found.change, found.new) == ("added", 2)
    assert neighbour_of(np.array([1, 2]), np.array([1.0, 2.0, 3.5])).change == "added"
    assert neighbour_of((np.zeros((0, 2)), np.zeros(0)), (np.zeros((1, 2)), np.zeros(1))).change == "added"
    assert neighbour_of((np.ones((2, 1)), None), (np.ones((1, 1)), None)).change == "removed"


@given(
    rows=st.lists(st.tuples(st.sampled_from([0.0, 1.0, NAN]), st.sampled_from("ab")), max_size=7),
    others=st.lists(st.tuples(st.sampled_from([0.0, 1.0, NAN]), st.sampled_from("ab")), max_size=7),
)
def test_what_differs_is_what_a_count_of_the_rows_says(rows, others):
    """By another way: multisets of the rows' texts."""
    data = tuple(
        (np.array([row[0] for row in table], float), np.array([row[1] for row in table], object))
        for table in (rows, others)
    )
    counts = Counter(map(str, rows)), Counter(map(str, others))
    new, gone = (counts[1] - counts[0]).total(), (counts[0] - counts[1]).total()
    if new > 1 or gone > 1:
        with pytest.raises(InvalidParameter, match=f"has {new} rows that the data do not have, and lacks {gone}"):
            neighbour_of(*data)
        return
    found = neighbour_of(*data)
    assert isinstance(found, Neighbour)
    assert (found.new is not None, found.gone is not None) == (bool(new), bool(gone))
    for place, origin in enumerate(found.origin):
        assert origin == -1 or str(others[place]) == str(rows[origin])


@pytest.mark.parametrize(
    ("data", "other", "message"),
    [
        ({"X": [1]}, {"X": [1]}, "data is a dict: rows are matched by value in arrays"),
        ((np.zeros((3, 2)), np.zeros(2)), (np.zeros((3, 2)), np.zeros(3)), r"data: arrays of \[3, 3, 2\] rows"),
        (np.zeros((3, 2)), np.zeros((3, 3)), "the neighbour has 3 columns of values, the data 2"),
        (np.array([None, []], object), np.array([None], object), "a value cannot be: .*unhashable type"),
        (np.arange(4), np.arange(1, 6), "has 2 rows that the data do not have, and lacks 1 of theirs"),
        ((), (), r"data: arrays of \[\] rows"),
    ],
)
def test_what_is_no_pair_is_refused(data, other, message):
    with pytest.raises(InvalidParameter, match=message):
        neighbour_of(data, other)
