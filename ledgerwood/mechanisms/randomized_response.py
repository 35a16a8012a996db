"""Randomised response among k categories: each row answers for itself, exactly.

Proof: docs/explanation/selection.md#randomised-answers.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import RandomizedResponseEvent
from ledgerwood.mechanisms.exact.deviates import exp_bounds
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.recording.points import passes

_WORD = 64
_CHUNK = 1 << 15


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponseMechanism:
    """Each row's category with probability e^epsilon / (e^epsilon + k - 1), else one of the k - 1 others, uniformly.

    Source: Warner 1965; Kairouz, Bonawitz and Ramage 2016; docs/explanation/selection.md#randomised-answers.

    Args:
        epsilon: in [1e-100, 1e100], in nats.
        categories: k, in [2, 2**53]; public.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    epsilon: float
    categories: int

    def __post_init__(self) -> None:
        event = self.event(Adjacency.REPLACE_ONE)  # the bounds of the event are those of the mechanism
        object.__setattr__(self, "epsilon", event.epsilon)
        object.__setattr__(self, "categories", event.categories)

    def event(self, adjacency: Adjacency) -> RandomizedResponseEvent:
        """RandomizedResponseEvent of the same fields: one answer of each row.

        Raises:
            UnsupportedEvent: add-remove or zero-out.
        """
        return RandomizedResponseEvent(epsilon=self.epsilon, categories=self.categories, adjacency=adjacency)

    @passes("choice")
    def randomise(self, categories: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        """Answers, int64 in [0, k) of the same shape.

        Args:
            categories: int64, any shape, in [0, k); a value outside is taken as the nearest category.
            source: random words.

        Raises:
            InvalidParameter: not an int64 array. Never because of a value.
        """
        _require_integers(categories)
        answers = np.clip(categories, 0, self.categories - 1).reshape(-1)
        low, high = self._bounds(_WORD)
        sure, unsure = np.uint64(low), np.uint64(min(high, (1 << _WORD) - 1))
        for start in range(0, answers.size, _CHUNK):
            part = answers[start : start + _CHUNK]
            words = source.uint64(part.size)
            changes = words < sure
            for i in np.flatnonzero((words >= sure) & (words <= unsure)).tolist():
                changes[i] = self._changes(int(words[i]), source)
            places = np.flatnonzero(changes)
            part[places] = (part[places] + 1 + source.integers(self.categories - 1, places.size)) % self.categories
        return answers.reshape(categories.shape)

    def _bounds(self, bits: int) -> tuple[int, int]:
        """Integers around 2**bits times the probability of another category than the true one."""
        exact, others = Fraction(self.epsilon), self.categories - 1
        precision = bits + _WORD
        low, high = exp_bounds(exact.numerator, exact.denominator.bit_length() - 1, precision)
        low, high, one = others * max(low, 0), others * high, 1 << precision
        return (low << bits) // (one + low), -((-high << bits) // (one + high))

    def _changes(self, word: int, source: RandomSource) -> bool:
        """Returns whether a uniform real that begins with `word` is below that probability, from further words."""
        bits = _WORD
        while True:
            word, bits = (word << _WORD) + int(source.uint64(1)[0]), bits + _WORD
            low, high = self._bounds(bits)
            if word < low:
                return True
            if word >= high:
                return False


def _require_integers(categories: object) -> None:
    """Looks at the type only."""
    if not isinstance(categories, np.ndarray) or categories.dtype != np.int64:
        kind = categories.dtype if isinstance(categories, np.ndarray) else type(categories).__name__
        raise _validate.fail("categories type", str(kind), "an int64 array", "categories")
