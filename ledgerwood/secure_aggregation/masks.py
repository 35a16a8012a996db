"""Masks: the keystream of AES-256 in counter mode as words modulo 2**64, added to a vector in place."""

from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ledgerwood import _validate

MOST_WORDS = 1 << 35
"""Longest vector, in words: the 2**34 blocks of one key can be told from uniform words with advantage 2**-61."""
_CHUNK_WORDS = 1 << 15
"""256 KiB: the keystream stays in a core's cache until it is added."""
_ZEROS = bytes(8 * _CHUNK_WORDS)

Sign = Literal[1, -1]


def pair_sign(client: int, other: int) -> Sign:
    """Returns how a client adds the mask that it shares with another: the one with the lower number adds it."""
    return 1 if client < other else -1


class Masker:
    """Adds and subtracts masks with one buffer.

    Args:
        total: the vector that masks are added to, in place: uint64 (length,), contiguous.
    """

    __slots__ = ("_buffer", "_total")

    def __init__(self, total: NDArray[np.uint64]) -> None:
        if total.size > MOST_WORDS:
            raise _validate.fail("len(values)", total.size, f"at most {MOST_WORDS}", "words")
        self._total = total
        self._buffer = np.empty(min(total.size, _CHUNK_WORDS), dtype="<u8")

    def add(self, key: bytes, sign: Sign) -> None:
        """Adds (1) or subtracts (-1) the mask of a key: words from block 0 on, little-endian, modulo 2**64.

        Args:
            key: 32 bytes, for this mask alone.
            sign: whether the mask is added or subtracted.
        """
        stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
        total, buffer = self._total, self._buffer
        apply = np.add if sign == 1 else np.subtract
        for start in range(0, total.size, _CHUNK_WORDS):
            part = total[start : start + _CHUNK_WORDS]
            words = buffer[: part.size]
            stream.update_into(memoryview(_ZEROS)[: 8 * part.size], words.view(np.uint8).data)
            apply(part, words, out=part)
