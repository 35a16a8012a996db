"""Rows outside of memory, some at a time: what a batch is, which columns have which role, and what a source does."""

import abc
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

from ledgerwood.errors import SchemaError
from ledgerwood.schema import Schema

BATCH_ROWS = 1 << 16
_BATCH_CELLS = 1 << 22


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Batch:
    """Some consecutive rows as tables in memory are given.

    Args:
        X: data frame or array of the features.
        y: the labels; None of rows for prediction.
        weights, keys: None for rows without.
    """

    X: Any
    y: Any
    weights: Any
    keys: Any = None

    def __len__(self) -> int:
        return int(self.X.shape[0])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which columns are what.

    Args:
        schema: of the features; other columns than these and the three below are left alone. None: it is to be
            estimated, of all columns without another role.
        label, weight, key: names of columns; None for none.
        named: of a schema with one range for all columns, which ones; of another one the order in which data frames
            have them. None: all that have no other role, or the schema's order.
        ignored: columns that are none of those.
        whole: whether a file with further columns is refused.
    """

    schema: Schema | None
    label: str | None
    weight: str | None
    key: str | None = None
    named: tuple[str, ...] | None = None
    ignored: tuple[str, ...] = ()
    whole: bool = False

    @property
    def declared(self) -> Schema:
        """The schema of rows whose schema is declared."""
        assert self.schema is not None  # rows without one are not encoded by it
        return self.schema

    @property
    def others(self) -> list[str]:
        """The columns that are read besides the features."""
        return [name for name in (self.label, self.weight, self.key) if name is not None]

    def without(self, names: tuple[str, ...]) -> "Roles":
        """The roles, with these columns ignored, too."""
        return dataclasses.replace(self, ignored=(*self.ignored, *names)) if names else self

    def features(self, columns: Sequence[str], where: str) -> list[str]:
        """The features' names, in the order of `named` or the schema; of one range for all, those without another role.

        Raises:
            SchemaError: a column is not there, is there twice, has two roles, or is one too many.
        """
        others = self.others
        if self.schema is not None and self.schema.features:
            names = [feature.name for feature in self.schema.features]
            if self.named is not None and sorted(self.named) == sorted(names):
                names = list(self.named)  # found by name, and in the order that scikit-learn compares
        elif self.named is not None:
            names = list(self.named)
        else:
            names = [name for name in columns if name not in others and name not in self.ignored]
        wanted = [*names, *others]
        twice = sorted({name for name in wanted if wanted.count(name) > 1 or list(columns).count(name) > 1})
        absent = [name for name in wanted if name not in columns]
        if twice:
            raise SchemaError(f"{where}: the columns {twice} are there twice, or have two roles")
        if absent:
            raise SchemaError(f"{where} lacks the columns {absent}; it has {sorted(columns)}")
        further = sorted(set(columns) - {*wanted, *self.ignored}) if self.whole else []
        if further:
            raise SchemaError(f"{where} has the columns {further}, which the first file does not have")
        return names


class RowSource(abc.ABC):
    """Rows outside of memory."""

    __slots__ = ()

    @abc.abstractmethod
    def heads(self, roles: Roles) -> Iterator[Batch]:
        """Batches without rows: names and types, of each file.

        Raises:
            SchemaError: columns that are not there.
            FilesChanged: a file differs from what it was when the source was made, or is gone.
        """

    @abc.abstractmethod
    def batches(self, roles: Roles) -> Iterator[Batch]:
        """All rows, in their public order.

        Raises:
            SchemaError: a file that is damaged.
            FilesChanged: as of `heads`; found out when the file's last row has been read, at the latest.
        """

    @property
    @abc.abstractmethod
    def size(self) -> int | None:
        """Bytes of the files; None where there are none to look at."""

    @property
    def sparse(self) -> bool:
        """True where batches are sparse tables."""
        return False

    @property
    def cost(self) -> str:
        """What has been paid when the rows are encoded, for errors."""
        return "Nothing was spent"


def batch_rows(width: int) -> int:
    """Returns the number of rows to read at a time, for a number of columns."""
    return max(1, min(BATCH_ROWS, _BATCH_CELLS // max(1, width)))
