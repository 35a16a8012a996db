"""Coins of rows: a keyed pseudo-random function of a row's position, so that whoever holds a row can toss its coin.

One round draws one key of 256 bits from its random source. The coin of row i is word i of the keystream of AES-256 in
counter mode under that key. It depends on neither the other rows nor the order in which rows are met: rows in memory,
in chunks on disk or on several workers take part in the same samples. docs/explanation/places.md#position-coins.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._uncopied import Uncopied
from ledgerwood.errors import PrivacyError
from ledgerwood.mechanisms.exact.randomness import RandomSource, reached_ends, words_below

KEY_WORDS = 4
"""64-bit words of a key."""
MOST_ROWS = 1 << 35
"""Fewer rows than this have coins under one key: their 2**34 blocks of AES are distinguishable from uniform words with
probability 2**-61 at most."""
_BLOCK_WORDS = 2
_NONCE_BYTES = 12
_CHUNK_WORDS = 1 << 16


@final
class RowCoins(Uncopied):
    """The coins of all rows in one round. The key is never written down, printed, copied or pickled.

    It leaves the process only `sealed`, for workers that hold rows of the same table.

    Args:
        key: 32 bytes, uniform and secret.

    Raises:
        InvalidParameter: a key of another length.
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        if len(key) != 8 * KEY_WORDS:
            raise _validate.fail("len(key)", len(key), f"{8 * KEY_WORDS}", "bytes")
        self._key = bytes(key)

    @classmethod
    def drawn(cls, source: RandomSource) -> "RowCoins":
        """A fresh key from a random source."""
        return cls(source.uint64(KEY_WORDS).astype("<u8").tobytes())

    def words(self, start: int, n: int) -> NDArray[np.uint64]:
        """The words of the rows start .. start + n - 1, uint64 (n,).

        Raises:
            InvalidParameter: rows beyond the 2**35 that one key has coins for.
        """
        start = _validate.count("start", start, "rows", minimum=0)
        end = start + _validate.count("n", n, "rows", minimum=0)
        if end > MOST_ROWS:
            raise _validate.fail("start + n", end, f"at most {MOST_ROWS}", "rows")
        first, before = divmod(start, _BLOCK_WORDS)
        words = np.zeros(n + before + (n + before) % _BLOCK_WORDS, dtype="<u8")
        counter = modes.CTR(first.to_bytes(16, "big"))
        stream = words.view(np.uint8).data
        Cipher(algorithms.AES256(self._key), counter).encryptor().update_into(stream, stream)
        return words[before : before + n].astype(np.uint64, copy=False)

    def bernoulli(self, probability: float, start: int, n: int) -> NDArray[np.bool_]:
        """The coins of n rows from `start` on: True with probability floor(p 2**64) / 2**64; 1.0 gives all True."""
        threshold = words_below(probability)
        coins = np.ones(_validate.count("n", n, "rows", minimum=0), dtype=np.bool_)
        if threshold < 1 << 64:
            for part, words in self._cut(coins, start):
                np.less(words, np.uint64(threshold), out=part)
        return coins

    def categories(self, ends: Sequence[int], start: int, n: int) -> NDArray[np.int32]:
        """The category of each of n rows from `start` on, as `RandomSource.categories` has them; int32 (n,)."""
        reached = reached_ends(ends)
        found = np.zeros(_validate.count("n", n, "rows", minimum=0), dtype=np.int32)
        if reached.size:
            for part, words in self._cut(found, start):
                part[:] = np.searchsorted(reached, words, side="right")
        return found

    def _cut(self, values: NDArray[Any], start: int) -> Iterator[tuple[NDArray[Any], NDArray[np.uint64]]]:
        """Stretches of the values with their words, so that no more than a stretch of words is held at once."""
        for begin in range(0, len(values), _CHUNK_WORDS):
            part = values[begin : begin + _CHUNK_WORDS]
            yield part, self.words(start + begin, len(part))

    def sealed(self, secret: bytes, purpose: bytes) -> bytes:
        """The key, encrypted and authenticated by AES-256-GCM: for another process that knows the secret.

        Args:
            secret: 32 bytes, uniform, that only those may know who hold rows of the same table.
            purpose: what the coins are for; `unsealed` asks for the same.
        """
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(secret).encrypt(nonce, self._key, purpose)

    @classmethod
    def unsealed(cls, sealed: bytes, secret: bytes, purpose: bytes) -> "RowCoins":
        """The coins that `sealed` encrypted.

        Raises:
            PrivacyError: another secret, another purpose, or bytes that were changed.
        """
        try:
            key = AESGCM(secret).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], purpose)
        except InvalidTag:
            failed = True
        else:
            failed = False
        if failed:  # outside of the block above: the first error has nothing to tell
            raise PrivacyError("sealed coins do not open: they are another session's or another round's, or damaged")
        return cls(key)

    def __repr__(self) -> str:
        return "RowCoins(<secret>)"

    def _uncopied(self) -> str:
        return "RowCoins are neither copied nor pickled: whoever has the key knows which rows are in a sample"
