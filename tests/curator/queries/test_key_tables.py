"""Tables of keys: what several owners' sums say is what the list of all keys says, or it is said that it cannot be."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

import ledgerwood as lw
from ledgerwood.curator import KeyCounts, KeyTable, TypedColumn, TypedColumns, UndeclaredTable
from ledgerwood.curator.inputs.values import categories
from ledgerwood.curator.queries.columns.key_tables import (
    MOST_BYTES,
    TABLES,
    WORDS,
    keys_in,
    packed_key,
    table_of,
    unpacked_key,
)
from ledgerwood.errors import InvalidParameter, RoundViolation
from ledgerwood.mechanisms import BoundedStabilityMechanism, GaussianStabilityMechanism, SeededRandom
from ledgerwood.mechanisms.bounded_stability import FAILURE, ROOMS

A = lw.Adjacency.ADD_REMOVE
SALT = bytes(range(16))
SMALL = KeyTable(column=0, room=1024, salt=SALT)
ALL = np.empty(0, np.bool_)

TEXTS = st.text(st.characters(), max_size=40).filter(lambda text: not text.endswith("\0"))
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15).map(lambda x: int(x) if x == int(x) else x)
LISTS = st.dictionaries(TEXTS | NUMBERS, st.integers(1, 2**34), max_size=12)


def summed(query, lists):
    total = np.zeros((TABLES, query.cells, WORDS), np.uint64)
    for each in lists:
        total += table_of(query, each).view(np.uint64)
    return total.view(np.int64)


def expected(lists):
    total = Counter()
    for each in lists:
        total.update({key: count for key, count in each.items() if packed_key(key) is not None})
    return dict(total)


@settings(deadline=None, max_examples=60)
@given(st.lists(LISTS, max_size=5), st.binary(min_size=16, max_size=16))
@example(
    [{"": 1, "a\0b": 2, "\0a": 3, "ä" * 16: 4, "ä" * 16 + "x": 5, "\ud800": 6}, {}, {"": 2**34, -1: 1, 0.5: 2}], SALT
)
@example([{0: 1, "0": 1, -0.5: 1, 2**53 - 1: 7, -(2**53) + 1: 7}], SALT)
def test_the_sum_of_tables_is_the_list_of_all_keys(lists, salt):
    query = KeyTable(column=0, room=1024, salt=salt)
    assert keys_in(query, summed(query, lists)) == expected(lists)


def test_a_table_is_a_function_of_the_total_numbers_alone():
    """So the server learns of a column what the list of keys with total numbers says, and not who has which."""
    apart = [{"a": 3, "b": 1}, {"b": 5}, {}]
    other = [{"b": 6}, {}, {"a": 3}]
    assert np.array_equal(summed(SMALL, apart), summed(SMALL, other))
    assert np.array_equal(summed(SMALL, apart), table_of(SMALL, {"a": 3, "b": 6}))


@given(TEXTS | NUMBERS)
def test_keys_and_their_bytes(key):
    packed = packed_key(key)
    if packed is None:
        assert isinstance(key, str)
        broken = any("\ud800" <= letter <= "\udfff" for letter in key)
        assert broken or len(key.encode("utf-8")) > MOST_BYTES
    else:
        found = unpacked_key(packed.ljust(33, b"\0"))
        assert (found, type(found)) == (key, type(key))


@given(st.binary(min_size=33, max_size=33))
@example(b"s" + b"\xff" * 32)
@example(b"i" + b"\x7f" + bytes(31))
@example(b"i" + bytes(31) + b"x")
@example(b"f" + bytes.fromhex("7ff8000000000000") + bytes(24))
@example(b"f" + bytes.fromhex("7ff0000000000000") + bytes(24))
@example(b"f" + bytes.fromhex("3ff0000000000000") + bytes(24))
def test_bytes_that_are_no_key_are_none(content):
    found = unpacked_key(content)
    assert found is None or packed_key(found).ljust(33, b"\0") == content


def test_more_keys_than_a_table_holds_are_no_list_and_near_its_room_all_are_read():
    room = {f"key {i}": i + 1 for i in range(1024)}
    assert keys_in(SMALL, table_of(SMALL, room)) == room
    assert keys_in(SMALL, table_of(SMALL, {str(i): 1 for i in range(4000)})) is None


@pytest.mark.parametrize("word", range(WORDS))
def test_a_table_that_is_no_sum_of_keys_is_no_list(word):
    table = table_of(SMALL, {"a": 3, "b": 1})
    for place in ((0, 0), tuple(np.argwhere(table[..., 0])[0])):
        for by in (1, -1, 2**62, -(2**63)):
            changed = table.copy()
            changed[(*place, word)] += by
            assert keys_in(SMALL, changed) is None


def test_what_an_owner_invents_ends(  # each key that is taken out empties a cell
):
    random = np.random.default_rng(0)
    for _ in range(20):
        forged = random.integers(0, 2**63, (TABLES, SMALL.cells, WORDS), dtype=np.int64)
        assert keys_in(SMALL, forged) is None
    assert keys_in(SMALL, table_of(SMALL, {"a": 1}) - table_of(SMALL, {"b": 1})) is None


def test_rows_of_a_column_are_in_it_as_they_are_in_its_list():
    values = np.array(["a", "b", "a", None, "x" * 33, "end\0", 7, True, 0.25, float("nan"), 2**60], dtype=object)
    columns = TypedColumns(features=(TypedColumn("c", "text"),), target=TypedColumn("y", "numeric"))
    import pandas as pd

    rows = UndeclaredTable.from_data(pd.DataFrame({"c": values}), np.zeros(len(values)), columns)
    listed = rows.evidence(KeyCounts(column=0))(ALL)
    assert rows.evidence(SMALL)(ALL) == {key: n for key, n in listed.items() if key != "x" * 33}
    assert rows.evidence(SMALL)(ALL) == {"a": 2, "b": 1, 7: 1, 1: 1, 0.25: 1}
    half = np.arange(len(values)) < 2
    assert rows.evidence(SMALL)(half) == {"a": 1, "b": 1}
    with pytest.raises(RoundViolation, match="no categories"):
        rows.evidence(KeyTable(column=1, room=1024, salt=SALT))


def test_codes_of_labels():
    keys = categories(np.array([-5, 3, 3, 2**62, -(2**63)]), "y")
    assert keys.keys == (-5, 3)
    assert keys_in(SMALL, table_of(SMALL, {-5: 1, 3: 2})) == {-5: 1, 3: 2}


# ----------------------------------------------------------------------------------------- the probability of a failure


def no_lone_ball(balls, bins):
    """The probability that no bin has exactly one of the balls, exactly, by adding one bin after another."""
    ways = [[1] + [0] * balls]  # of b balls into the bins so far
    for _ in range(bins):
        last = ways[-1]
        ways.append(
            [sum(math.comb(b, here) * last[b - here] for here in range(b + 1) if here != 1) for b in range(balls + 1)]
        )
    return ways[-1][balls] / bins**balls


def bounded_no_lone_ball(balls, bins):
    """log of an upper bound: s! [x^s] (e^x - x)^m / m^s is at most s! (e^r - r)^m / (r^s m^s), whatever r > 0."""
    r = np.exp(np.linspace(-12, 3, 1500))
    found = gammaln(balls + 1) - balls * np.log(bins * r) + bins * np.log(np.expm1(r) - r + 1.0)
    return min(0.0, float(found.min()))


def log_failure(keys, bins, tables, exact=8):
    """log of the expected number of sets of keys that block each other in each table."""
    terms = [
        math.log(math.comb(keys, s)) + tables * math.log(no_lone_ball(s, bins)) for s in range(2, min(exact, keys) + 1)
    ]
    for s in range(exact + 1, keys + 1):
        choices = gammaln(keys + 1) - gammaln(s + 1) - gammaln(keys - s + 1)
        terms.append(choices + tables * bounded_no_lone_ball(s, bins))
    return float(np.logaddexp.reduce(terms))


@pytest.mark.parametrize(("balls", "bins"), [(2, 3), (3, 3), (4, 3), (5, 4), (6, 2)])
def test_the_probability_of_no_lone_ball_by_enumeration(balls, bins):
    every = list(itertools.product(range(bins), repeat=balls))
    none = sum(1 not in Counter(each).values() for each in every)
    assert no_lone_ball(balls, bins) == pytest.approx(none / len(every), rel=1e-12)
    assert bounded_no_lone_ball(balls, bins) >= math.log(none / len(every))


@pytest.mark.parametrize(
    "room", [ROOMS[0], pytest.param(4096, marks=pytest.mark.slow), pytest.param(ROOMS[-1], marks=pytest.mark.slow)]
)
def test_a_table_of_as_many_keys_as_it_has_room_for_is_read(room):
    """All keys of a set that blocks itself share each cell with another one of it, in each table."""
    query = KeyTable(column=0, room=room, salt=SALT)
    wrong = (1 + TABLES) * TABLES * query.cells * 2.0**-72  # a cell of several keys that looks like one key's
    assert math.exp(log_failure(room, query.cells, TABLES)) + wrong <= FAILURE / 2


def test_the_bound_of_failures_against_simulated_ones():
    """Of small tables, where failures are seen: the bound holds, and is not far above them."""
    random = np.random.default_rng(1)
    for keys, bins, tables in ((6, 8, 3), (10, 16, 3), (12, 16, 4)):
        stuck, tries = 0, 4000
        for _ in range(tries):
            cells = random.integers(0, bins, (keys, tables))
            left = set(range(keys))
            while True:
                lone = {i for t in range(tables) for i in left if sum(cells[j, t] == cells[i, t] for j in left) == 1}
                if not lone:
                    break
                left -= lone
            stuck += bool(left)
        bound = math.exp(log_failure(keys, bins, tables, exact=keys))
        assert stuck / tries <= bound + 4.0 * math.sqrt(bound / tries)
        assert stuck / tries >= bound / 4.0


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    "options", [{"room": 1000}, {"room": 512}, {"room": 1 << 15}, {"room": 1024.0}, {"salt": b""}, {"salt": "x" * 16},
                {"column": -1}],
)  # fmt: skip
def test_tables_that_nobody_has_proven(options):
    with pytest.raises(InvalidParameter):
        KeyTable(**{"column": 0, "room": 1024, "salt": SALT, **options})


def test_a_table_needs_a_mechanism_for_its_room():
    for mechanism in (
        BoundedStabilityMechanism(stddev=1.0, threshold=5, room=2048),
        GaussianStabilityMechanism(stddev=1.0, threshold=5),
    ):
        with pytest.raises(RoundViolation, match="room for 1024 keys"):
            SMALL.event(mechanism, A)
    mechanism = BoundedStabilityMechanism(stddev=1.0, threshold=5, room=1024)
    assert SMALL.event(mechanism, A) == mechanism.event(A)
    counts = {"a": 40, "b": 30, 7: 2}
    assert SMALL.select(mechanism, counts, SeededRandom(1)) == KeyCounts(column=0).select(
        mechanism, counts, SeededRandom(1)
    )
    assert SMALL.select(mechanism, None, SeededRandom(1)) is None
    with pytest.raises(RoundViolation, match="were not counted"):
        KeyCounts(column=0).select(GaussianStabilityMechanism(stddev=1.0, threshold=5), None, SeededRandom(1))
