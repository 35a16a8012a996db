"""Random bits: from the operating system's key by default, from a seed only in tests, and never from anywhere else.

Both sources hand out independent uniform 64-bit words; every sampler of this package is exact given such words.
Which of the two was used follows each release (`kind`): reproducible noise protects no one.
"""

import abc
import os
import sys
import threading
from collections.abc import Sequence
from typing import Literal, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._uncopied import Uncopied
from ledgerwood.errors import PrivacyError
from ledgerwood.recording.points import passes

_BUFFER_WORDS = 4096
_CHUNK_WORDS = 1 << 16
_WORDS_PER_KEY = 1 << 31  # 2**30 AES blocks under one key: distinguishable from uniform with probability 2**-69
_WORD_BITS = 64


class RandomSource(abc.ABC):
    """A stream of independent uniform 64-bit words. `SecureRandom` and `SeededRandom` are the only two."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        if cls.__module__ != __name__:
            raise PrivacyError(
                f"{cls.__qualname__} must not derive from RandomSource: only SecureRandom and SeededRandom do"
            )

    @property
    @abc.abstractmethod
    def kind(self) -> Literal["secure", "test"]:
        """The kind of randomness: "secure", or "test" for reproducible noise."""

    @abc.abstractmethod
    def _words(self, n: int) -> NDArray[np.uint64]:
        """The next n words of the stream, in an array of the caller's own."""

    @passes("words")
    def _fill(self, n: int) -> NDArray[np.uint64]:
        """The same, seen by a recording; every word of every sampler comes from here."""
        return self._words(n)

    def uint64(self, shape: int | tuple[int, ...]) -> NDArray[np.uint64]:
        """Independent uniform words in [0, 2**64), of the given shape."""
        if isinstance(shape, tuple):
            n = 1
            for length in shape:
                n *= _validate.count("shape", length, "words", minimum=0)
            return self._fill(n).reshape(shape)
        return self._fill(_validate.count("shape", shape, "words", minimum=0))

    def bernoulli(self, probability: float, n: int) -> NDArray[np.bool_]:
        """n independent coins, each True with probability floor(p 2**64) / 2**64, never above p; 1.0 gives all True."""
        threshold = words_below(probability)
        n = _validate.count("n", n, "coins", minimum=0)
        if threshold >> _WORD_BITS:
            return np.ones(n, dtype=np.bool_)
        coins = np.empty(n, dtype=np.bool_)
        for start in range(0, n, _CHUNK_WORDS):
            part = coins[start : start + _CHUNK_WORDS]
            np.less(self._fill(part.size), np.uint64(threshold), out=part)
        return coins

    def categories(self, ends: Sequence[int], n: int) -> NDArray[np.int32]:
        """n independent draws of a category, int32 (n,): category k has the words from the end before it up to ends[k].

        Its probability is (ends[k] - ends[k - 1]) / 2**64, exactly; a word at or above the last end is len(ends).

        Args:
            ends: whole numbers that do not fall, within 0..2**64; fewer than 2**31.
            n: how many.
        """
        reached = reached_ends(ends)
        found = np.zeros(_validate.count("n", n, "draws", minimum=0), dtype=np.int32)
        if not reached.size:  # one category has all words
            return found
        for start in range(0, len(found), _CHUNK_WORDS):
            part = found[start : start + _CHUNK_WORDS]
            part[:] = np.searchsorted(reached, self._fill(part.size), side="right")
        return found

    def integers(self, bound: int, n: int) -> NDArray[np.int64]:
        """n independent whole numbers, exactly uniform in [0, bound), 1 <= bound <= 2**63 (by rejection)."""
        bound = _validate.count("bound", bound, "integers")
        if bound > 1 << 63:
            raise _validate.fail("bound", bound, "<= 2**63", "integers")
        limit = (1 << _WORD_BITS) - (1 << _WORD_BITS) % bound  # words at or above it would favour small remainders
        words = self.uint64(n)
        while limit >> _WORD_BITS == 0:
            redo = np.flatnonzero(words >= np.uint64(limit))
            if redo.size == 0:
                break
            words[redo] = self._fill(redo.size)
        return (words % np.uint64(bound)).astype(np.int64)


def words_below(probability: float) -> int:
    """The number of 64-bit words that a coin of this probability lands on: floor(p 2**64), never above p's share."""
    return int(_validate.rate("probability", probability, "probability") * 2.0**_WORD_BITS)


def reached_ends(ends: Sequence[int]) -> NDArray[np.uint64]:
    """The ends of categories that a word can reach: no word reaches an end of 2**64, which is not a uint64.

    Raises:
        InvalidParameter: ends that fall, or are outside 0..2**64.
    """
    before = 0
    for end in ends:
        before = _validate.count("ends", end, "words", minimum=before)
    if before > 1 << _WORD_BITS:
        raise _validate.fail("ends", before, "at most 2**64", "words")
    return np.array([end for end in ends if not end >> _WORD_BITS], dtype=np.uint64)


_generation = 0


def _forked() -> None:
    global _generation  # noqa: PLW0603 - the one fact that a child process learns at fork
    _generation += 1


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)


class _ThreadState(threading.local):
    """One thread's stream: its cipher, unread words, and the process that keyed it."""

    def __init__(self) -> None:
        self.owner: tuple[int, int] = (-1, -1)
        self.cipher: CipherContext | None = None
        self.left = 0
        self.buffer = np.empty(0, dtype=np.uint64)
        self.position = 0


@final
class SecureRandom(Uncopied, RandomSource):
    """AES-256 in counter mode, keyed from the operating system (`os.urandom`).

    Thread-safe without locks: each thread that uses the object gets its own key. A forked child discards the
    parent's key and unread words before its first draw. Cannot be copied or pickled; a worker constructs its own.
    After a virtual machine is restored from a snapshot, construct a new one.
    """

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state = _ThreadState()

    @property
    def kind(self) -> Literal["secure"]:
        return "secure"

    def _words(self, n: int) -> NDArray[np.uint64]:
        state = self._state
        if state.owner != (os.getpid(), _generation):
            _rekey(state)
        if n > _BUFFER_WORDS:
            return _keystream(state, n)
        if n > state.buffer.size - state.position:
            state.buffer, state.position = _keystream(state, _BUFFER_WORDS), 0
        start = state.position
        state.position += n
        words = state.buffer[start : state.position].copy()
        state.buffer[start : state.position] = 0  # spent words do not linger in memory
        return words

    def _uncopied(self) -> str:
        return (
            f"{type(self).__name__} cannot be copied or pickled: two holders of one stream would add the same noise; "
            "construct a new source where it is needed"
        )


def _rekey(state: _ThreadState) -> None:
    state.cipher = Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
    state.left = _WORDS_PER_KEY
    state.buffer, state.position = np.empty(0, dtype=np.uint64), 0
    state.owner = (os.getpid(), _generation)


def _keystream(state: _ThreadState, n: int) -> NDArray[np.uint64]:
    words = np.zeros(n, dtype=np.uint64)
    for start in range(0, n, _CHUNK_WORDS):
        part = words[start : start + _CHUNK_WORDS]
        if state.cipher is None or state.left < part.size:
            _rekey(state)
        assert state.cipher is not None
        state.cipher.update_into(part.data.cast("B"), part.data.cast("B"))
        state.left -= part.size
    return words


@final
class SeededRandom(RandomSource):
    """A reproducible stream from a seed: for tests and for debugging, never for a release that should protect anyone.

    The stream depends on the seed and on the number of words read, not on how the reads are cut. One thread only.

    Args:
        seed: a whole number >= 0.
    """

    __slots__ = ("_bits",)
    __test__ = False  # not a test case, whatever its name

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64DXSM(_validate.count("seed", seed, "seed", minimum=0))

    @property
    def kind(self) -> Literal["test"]:
        return "test"

    def _words(self, n: int) -> NDArray[np.uint64]:
        return self._bits.random_raw(n)
