"""The coins of rows: AES-256 in counter mode, by position."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.errors import InvalidParameter, PrivacyError
from ledgerwood.mechanisms import SecureRandom, SeededRandom
from ledgerwood.mechanisms.exact.coins import MOST_ROWS, RowCoins

KEY = bytes(range(32))
COINS = RowCoins(KEY)


def by_block(place):
    """Word `place`, from the block cipher alone: block place // 2 is the cipher of that number."""
    block = Cipher(algorithms.AES256(KEY), modes.ECB()).encryptor().update((place // 2).to_bytes(16, "big"))
    return int.from_bytes(block[8 * (place % 2) :][:8], "little")


@given(st.integers(0, 2**35 - 40), st.integers(0, 40))
def test_each_word_is_the_ciphers_whatever_is_asked_beside_it(start, n):
    assert COINS.words(start, n).tolist() == [by_block(place) for place in range(start, start + n)]


def test_the_known_answer_of_the_cipher():
    """NIST SP 800-38A, F.5.5: CTR-AES256 of four blocks, here with its own counter and zeros for the text."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    stream = Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor().update(bytes(16))
    assert stream.hex() == "0bdf7df1591716335e9a8b15c860c502"


@given(st.floats(2.0**-60, 1.0), st.lists(st.integers(0, 400), max_size=6))
def test_any_parts_of_the_rows_have_the_coins_of_the_whole(rate, cuts):
    edges = [0, *sorted(cuts), 400]
    parts = [(a, b - a) for a, b in itertools.pairwise(edges)]
    whole = COINS.bernoulli(rate, 0, 400)
    assert np.concatenate([COINS.bernoulli(rate, a, n) for a, n in parts]).tolist() == whole.tolist()
    assert whole.tolist() == [by_block(place) < int(rate * 2.0**64) for place in range(400)]
    ends = [1 << 62, 1 << 63]
    groups = COINS.categories(ends, 0, 400)
    assert np.concatenate([COINS.categories(ends, a, n) for a, n in parts]).tolist() == groups.tolist()
    assert groups.tolist() == [sum(by_block(place) >= end for end in ends) for place in range(400)]


def test_long_stretches_are_cut_and_not_changed():
    n = (1 << 17) + 3
    assert np.array_equal(COINS.bernoulli(0.25, 5, n), COINS.words(5, n) < np.uint64(1 << 62))


def test_a_row_more_at_the_end_changes_no_other_coin():
    assert COINS.bernoulli(0.5, 0, 101)[:100].tolist() == COINS.bernoulli(0.5, 0, 100).tolist()


def test_each_round_has_a_key_of_its_own():
    source = SeededRandom(1)
    first, second = RowCoins.drawn(source).words(0, 8), RowCoins.drawn(source).words(0, 8)
    assert not set(first.tolist()) & set(second.tolist())
    assert RowCoins.drawn(SeededRandom(1)).words(0, 8).tolist() == first.tolist()
    assert RowCoins.drawn(SecureRandom()).words(0, 8).tolist() != first.tolist()


def test_the_key_is_never_shown_copied_or_pickled():
    assert repr(COINS) == "RowCoins(<secret>)"
    for take in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(PrivacyError, match="neither copied nor pickled"):
            take(COINS)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: RowCoins(b"short"),
        lambda: COINS.words(MOST_ROWS - 1, 2),
        lambda: COINS.words(-1, 1),
        lambda: COINS.bernoulli(1.5, 0, 1),
        lambda: COINS.categories([3, 2], 0, 1),
    ],
)
def test_what_has_no_coins_is_refused(ask):
    with pytest.raises(InvalidParameter):
        ask()
