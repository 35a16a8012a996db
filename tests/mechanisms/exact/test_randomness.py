import copy
import os
import pickle
import sys
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.errors import InvalidParameter, PrivacyError
from ledgerwood.mechanisms import RandomSource, SecureRandom, SeededRandom
from ledgerwood.mechanisms.exact import randomness

SOURCES = [SecureRandom, lambda: SeededRandom(7)]


def scripted(monkeypatch, words):
    """A SeededRandom whose stream is the given words."""
    stream = iter(words)
    monkeypatch.setattr(
        SeededRandom, "_fill", lambda self, n: np.array([next(stream) for _ in range(n)], dtype=np.uint64)
    )
    return SeededRandom(0)


def test_kinds():
    assert SecureRandom().kind == "secure"
    assert SeededRandom(0).kind == "test"


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("shape", [0, 1, 5, 4096, 4097, 200_000, (3,), (2, 3), (0, 4)])
def test_words_have_the_shape_that_was_asked_for(make, shape):
    words = make().uint64(shape)
    assert words.dtype == np.uint64
    assert words.shape == (shape if isinstance(shape, tuple) else (shape,))
    words[...] = 0  # the caller's own


@pytest.mark.parametrize("make", SOURCES)
def test_no_word_comes_twice(make):
    source = make()
    words = np.concatenate([source.uint64(n) for n in (1, 4000, 5000, 100, 4096, 70_000, 3)])
    assert np.unique(words).size == words.size  # a collision of 83,000 words has probability 2e-10


@pytest.mark.parametrize("make", SOURCES)
def test_each_bit_is_fair(make):
    n = 1 << 16
    words = make().uint64(n)
    for bit in range(64):
        ones = int(np.count_nonzero((words >> np.uint64(bit)) & np.uint64(1)))
        assert abs(ones - n / 2) < 8 * np.sqrt(n / 4)  # 8 standard deviations: 1e-15 a bit


def test_the_secure_stream_is_aes_256_in_counter_mode(monkeypatch):
    monkeypatch.setattr(os, "urandom", bytes)  # key and counter 0; NIST's known answer for the zero block
    words = SecureRandom().uint64(2)
    assert words.tobytes().hex() == "dc95c078a2408989ad48a21492842087"


def test_short_and_long_reads_continue_one_keystream(monkeypatch):
    monkeypatch.setattr(os, "urandom", bytes)
    whole = SecureRandom().uint64(200_000)
    source = SecureRandom()
    assert np.array_equal(source.uint64(4096), whole[:4096])
    assert np.array_equal(source.uint64(195_904), whole[4096:])


def test_a_key_is_replaced_before_it_is_worn_out(monkeypatch):
    keys = iter(range(1, 100))
    monkeypatch.setattr(os, "urandom", lambda n: bytes([next(keys)] * n))
    monkeypatch.setattr(randomness, "_WORDS_PER_KEY", randomness._CHUNK_WORDS)
    words = SecureRandom().uint64(3 * randomness._CHUNK_WORDS)
    assert next(keys) == 7  # three keys with their counters
    assert np.unique(words).size == words.size


def test_spent_words_are_wiped():
    source = SecureRandom()
    source.uint64(10)
    assert not source._state.buffer[:10].any()
    assert source._state.buffer[10:].any()


def read_in_child(source, n):
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside other libraries' threads
        pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, source.uint64(n).tobytes())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    return np.frombuffer(data, dtype=np.uint64)


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no fork")
def test_a_forked_child_has_a_stream_of_its_own():
    source = SecureRandom()
    source.uint64(10)  # the rest of the buffer is there for the child to inherit
    streams = [read_in_child(source, 1000), read_in_child(source, 1000), source.uint64(1000)]
    assert np.unique(np.concatenate(streams)).size == 3000


def test_a_new_process_id_alone_discards_key_and_buffer(monkeypatch):
    source = SecureRandom()
    source.uint64(1)
    inherited = source._state.buffer.copy()
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)  # a fork that ran no Python hook
    assert not np.isin(source.uint64(1000), inherited).any()


def test_threads_have_streams_of_their_own():
    source = SecureRandom()
    seen = [source.uint64(1000)]
    threads = [threading.Thread(target=lambda: seen.append(source.uint64(1000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.unique(np.concatenate(seen)).size == 5000


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_secure_source_is_never_duplicated(duplicate):
    with pytest.raises(PrivacyError, match="SecureRandom cannot be copied or pickled"):
        duplicate(SecureRandom())


def test_there_is_no_third_source():
    with pytest.raises(PrivacyError, match="only SecureRandom and SeededRandom"):

        class Foreign(RandomSource):
            pass


def test_a_seed_fixes_the_stream_however_it_is_cut():
    whole = SeededRandom(3).uint64(1000)
    source = SeededRandom(3)
    assert np.array_equal(np.concatenate([source.uint64(n) for n in (1, 499, 0, 500)]), whole)
    assert not np.array_equal(SeededRandom(4).uint64(1000), whole)


@pytest.mark.parametrize("seed", [-1, 1.5, None, True, "7"])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InvalidParameter, match="seed="):
        SeededRandom(seed)


@given(st.floats(min_value=2.0**-60, max_value=1.0, exclude_max=True))
def test_a_coin_is_true_for_exactly_the_first_p_of_all_words(probability):
    threshold = int(probability * 2**64)
    assert threshold <= probability * 2**64 < threshold + 1
    with pytest.MonkeyPatch.context() as patch:
        source = scripted(patch, [0, threshold - 1, threshold, 2**64 - 1])
        assert source.bernoulli(probability, 4).tolist() == [True, True, False, False]


@pytest.mark.parametrize("make", SOURCES)
def test_rate_one_takes_every_row(make):
    assert make().bernoulli(1.0, 100_000).all()


@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.5, 0.999])
def test_coins_keep_their_rate(rate):
    n = 1_000_000
    hits = int(SeededRandom(11).bernoulli(rate, n).sum())
    assert abs(hits - n * rate) < 5 * np.sqrt(n * rate * (1 - rate))


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, float("nan"), float("inf")])
def test_a_rate_outside_its_bound_is_refused(rate):
    with pytest.raises(InvalidParameter, match="probability="):
        SeededRandom(0).bernoulli(rate, 3)


@given(st.lists(st.integers(0, 2**64), min_size=0, max_size=40), st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_a_category_has_exactly_the_words_up_to_its_end(ends, others):
    ends = sorted(ends)
    words = [word for end in ends for word in (end - 1, end) if 0 <= word < 2**64] + others
    with pytest.MonkeyPatch.context() as patch:
        found = scripted(patch, words).categories(ends, len(words))
    assert found.dtype == np.int32
    # In whole numbers: a word is in the first category whose end lies beyond it, or in none.
    assert found.tolist() == [next((k for k, end in enumerate(ends) if word < end), len(ends)) for word in words]


def test_words_next_to_each_other_are_told_apart_where_floats_are_not():
    ends = [2**63 + 1, 2**63 + 2, 2**64 - 1, 2**64]
    words = [2**63, 2**63 + 1, 2**63 + 2, 2**64 - 2, 2**64 - 1]
    with pytest.MonkeyPatch.context() as patch:
        assert scripted(patch, words).categories(ends, 5).tolist() == [0, 1, 2, 2, 3]


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("n", [0, 1, 65_536, 65_537, 200_000])
def test_categories_keep_their_shares(make, n):
    ends = [2**62, 2**62, 2**63, 2**63 + 2**62]
    counts = np.bincount(make().categories(ends, n), minlength=5)
    expected = n * np.array([0.25, 0.0, 0.25, 0.25, 0.25])
    assert counts.sum() == n
    assert np.all(np.abs(counts - expected) <= 8 * np.sqrt(expected))  # 8 standard deviations


def test_a_category_takes_one_word_whatever_is_drawn_in_one_go():
    ends = [2**61, 2**63]
    words = SeededRandom(5).uint64(150_000)
    found = SeededRandom(5).categories(ends, 150_000)
    assert np.array_equal(found, np.select([words < np.uint64(2**61), words < np.uint64(2**63)], [0, 1], 2))


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ([-1], "ends=-1 must be a whole number >= 0"),
        ([3, 2], "ends=2 must be a whole number >= 3"),
        ([1, 2**64 + 1], "ends=18446744073709551617 must be at most 2"),
        ([0.5], "ends=0.5 must be a whole number"),
    ],
)
def test_ends_of_categories_rise_within_the_words(ends, words):
    with pytest.raises(InvalidParameter, match=words):
        SeededRandom(0).categories(ends, 3)


@given(st.integers(1, 2**63))
def test_integers_reject_the_words_that_would_favour_small_numbers(bound):
    limit = 2**64 // bound * bound
    words = [limit - 1, *([limit, 2**64 - 1] if limit < 2**64 else []), 5]
    with pytest.MonkeyPatch.context() as patch:
        source = scripted(patch, words)
        assert source.integers(bound, 1).tolist() == [bound - 1]
    if limit < 2**64:
        with pytest.MonkeyPatch.context() as patch:
            assert scripted(patch, words[1:]).integers(bound, 1).tolist() == [5 % bound]


@pytest.mark.parametrize("bound", [0, -3, 2**63 + 1, 2.0])
def test_integers_need_a_bound(bound):
    with pytest.raises(InvalidParameter, match="bound="):
        SeededRandom(0).integers(bound, 3)


@pytest.mark.parametrize("shape", [-1, 2.0, (2, -1)])
def test_a_shape_is_made_of_whole_numbers(shape):
    with pytest.raises(InvalidParameter, match="shape="):
        SeededRandom(0).uint64(shape)
