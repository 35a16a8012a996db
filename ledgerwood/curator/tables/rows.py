"""What all tables of rows have in common: they are sampled row by row, and neither copied nor pickled."""

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledgerwood.errors import LedgerError
from ledgerwood.mechanisms import RandomSource
from ledgerwood.recording.points import passes


class AbstractRows(abc.ABC):
    """Rows, for one curator."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def n_rows(self) -> int:
        """The number of rows, for the curator alone."""

    def caveat(self, query: object) -> str:
        """What the ledger has to say of a query whose sensitivity is not proven; empty for all others."""
        return ""

    @passes("sample")
    def sample(self, sampling_rate: float, source: RandomSource) -> NDArray[np.bool_]:
        """One Poisson sample of the rows; empty, for all of them, at rate 1."""
        if sampling_rate == 1.0:
            return np.empty(0, dtype=np.bool_)
        return source.bernoulli(sampling_rate, self.n_rows)

    @passes("assign")
    def assign(self, ends: Sequence[int], source: RandomSource) -> NDArray[np.int32]:
        """A group for each row, or none, as `RandomSource.categories` draws them."""
        return source.categories(ends, self.n_rows)

    def __copy__(self) -> "AbstractRows":
        raise LedgerError("a table is not copied: its rows and their state belong to one curator")

    def __deepcopy__(self, memo: object) -> "AbstractRows":
        raise LedgerError("a table is not copied: its rows and their state belong to one curator")

    def __reduce__(self) -> tuple[Any, ...]:
        raise LedgerError("a table is not pickled: rows stay with the curator")
