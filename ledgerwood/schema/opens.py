"""Columns of a draft that are not fully described yet: their bounds, their categories or even their kind are open."""

from dataclasses import dataclass
from typing import Any, final

from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter
from ledgerwood.schema.dates import Date, Feature
from ledgerwood.schema.features import MAX_CATEGORIES, Categorical, Category, Numeric, require_name

_FAR = 1e300
"""Of a bound: beside a bound farther out there may be no room for the other one."""


@final
@dataclass(frozen=True, slots=True)
class OpenNumeric:
    """A number, one or both of whose bounds are open.

    Args:
        name: the column's name.
        low, high: public bounds in the column's unit, or None for one that is open.
        missing: whether the value may be missing, as of `Numeric`.
    """

    name: str
    low: float | None = None
    high: float | None = None
    missing: bool = True

    def __post_init__(self) -> None:
        require_name(self.name)
        for end in ("low", "high"):
            value = getattr(self, end)
            if value is not None:
                number = _validate.real(f"{end} of {self.name!r}", value, "the column's unit")
                if abs(number) > _FAR:
                    raise _validate.fail(f"{end} of {self.name!r}", value, f"within {_FAR:g} of 0", "the column's unit")
                object.__setattr__(self, end, number)
        if self.low is not None and self.high is not None:
            raise InvalidParameter(f"both bounds of {self.name!r} are given, and none is open: declare a Numeric")
        _validate.flag(f"missing of {self.name!r}", self.missing)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that are open."""
        return tuple(end for end in ("low", "high") if getattr(self, end) is None)

    @property
    def kind(self) -> str:
        """A word for the column's kind."""
        return "number"

    @property
    def example(self) -> str:
        """What `SchemaDraft.filled` may be given for it, as code."""
        return "(low, high)"

    def filled(self, value: object) -> Feature:
        """The column with its bounds.

        Args:
            value: the bounds (low, high).

        Raises:
            InvalidParameter: not two numbers in order, or a bound that was given with another value.
        """
        ends = _pair(self.name, value, "(low, high)")
        for end, was, now in zip(("low", "high"), (self.low, self.high), ends, strict=True):
            if was is not None and was != now:
                raise _validate.fail(f"{end} of {self.name!r}", now, f"{was!r}, as the draft says", "the column's unit")
        return Numeric(self.name, *ends, missing=self.missing)


@final
@dataclass(frozen=True, slots=True)
class OpenDate:
    """A date, both of whose bounds are open.

    Args:
        name: the column's name.
        missing: whether the value may be missing, as of `Date`.
        zoned: whether the column holds instants: dates and times with a time zone.
    """

    name: str
    missing: bool = True
    zoned: bool = False

    def __post_init__(self) -> None:
        require_name(self.name)
        _validate.flag(f"missing of {self.name!r}", self.missing)
        _validate.flag(f"zoned of {self.name!r}", self.zoned)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that are open."""
        return ("first", "last")

    @property
    def kind(self) -> str:
        """A word for the column's kind."""
        return "instant" if self.zoned else "date"

    @property
    def example(self) -> str:
        """What `SchemaDraft.filled` may be given for it, as code."""
        return "('2001-01-01T00:00Z', '2024-12-31T00:00Z')" if self.zoned else "('2001-01-01', '2024-12-31')"

    def filled(self, value: object) -> Feature:
        """The column with its bounds.

        Args:
            value: the bounds (first, last).

        Raises:
            InvalidParameter: not two dates in order; or with a time zone where the column has none, or without.
        """
        date = Date(self.name, *_pair(self.name, value, "(first, last)"), missing=self.missing)
        if date.zoned != self.zoned:
            need = (
                "with a time zone, as the column has" if self.zoned else "without a time zone, as the column has none"
            )
            raise _validate.fail(f"bounds of {self.name!r}", (date.first, date.last), need, "dates")
        return date


@final
@dataclass(frozen=True, slots=True)
class OpenCategorical:
    """A column of categories whose list is open.

    Args:
        name: the column's name.
        missing: whether the value may be missing, as of `Categorical`.
        max_categories: where they are estimated, the most frequent ones that are kept, by released counts; the others
            count as "other". None: all that are found.
        among: a public list of all categories, of which the most frequent `max_categories` are kept: each is counted
            with noise, at no cost in delta. None: there is no such list.
    """

    name: str
    missing: bool = True
    max_categories: int | None = None
    among: tuple[Category, ...] | None = None

    def __post_init__(self) -> None:
        require_name(self.name)
        _validate.flag(f"missing of {self.name!r}", self.missing)
        if self.max_categories is not None:
            what = f"max_categories of {self.name!r}"
            if _validate.count(what, self.max_categories, "categories") > MAX_CATEGORIES:
                raise _validate.fail(what, self.max_categories, f"at most {MAX_CATEGORIES}", "categories")
        if self.among is not None:
            listed = Categorical(self.name, self.among).categories
            object.__setattr__(self, "among", listed)
            if self.max_categories is None or self.max_categories >= len(listed):
                raise _validate.fail(
                    f"max_categories of {self.name!r}", self.max_categories,
                    f"less than {len(listed)}, the number of categories in among: to keep all of them declare "
                    "Categorical(name, categories)", "categories",
                )  # fmt: skip

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that are open."""
        return ("categories",) if self.among is None else ("the most frequent categories",)

    @property
    def kind(self) -> str:
        """A word for the column's kind."""
        return "category"

    @property
    def example(self) -> str:
        """What `SchemaDraft.filled` may be given for it, as code."""
        return "('...', '...')"

    def filled(self, value: object) -> Feature:
        """The column with its categories.

        Raises:
            InvalidParameter: not a list of categories.
        """
        return Categorical(self.name, value, missing=self.missing)  # type: ignore[arg-type]  # checked there


@final
@dataclass(frozen=True, slots=True)
class OpenColumn:
    """A column of which only the name is known, as of a CSV file.

    Args:
        name: the column's name.
        missing: whether the value may be missing.
    """

    name: str
    missing: bool = True

    def __post_init__(self) -> None:
        require_name(self.name)
        _validate.flag(f"missing of {self.name!r}", self.missing)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that are open."""
        return ("type",)

    @property
    def kind(self) -> str:
        """A word for the column's kind."""
        return "?"

    @property
    def example(self) -> str:
        """What `SchemaDraft.filled` may be given for it, as code."""
        return f"lw.Numeric({self.name!r}, low, high)"

    def filled(self, value: object) -> Feature:
        """The column, which has to be given whole.

        Raises:
            InvalidParameter: always, of what is no declared column.
        """
        raise _validate.fail(
            f"the column {self.name!r}", value,
            "a Numeric, a Categorical or a Date: the draft does not know the column's type", "column",
        )  # fmt: skip


Open = OpenNumeric | OpenDate | OpenCategorical | OpenColumn
"""A column that is not fully described."""


def _pair(name: str, value: object, what: str) -> tuple[Any, Any]:
    found = _validate.items(f"bounds of {name!r}", value, "the column's unit")
    if len(found) != 2:
        raise _validate.fail(f"bounds of {name!r}", value, f"two values {what}", "the column's unit")
    return found[0], found[1]


def filled(column: "Open | Feature", value: object) -> "Open | Feature":
    """The column with what was given for it: a whole declaration, the fields that are open, or another open column.

    Raises:
        InvalidParameter: a declaration of another column, or values that the column cannot have.
    """
    if isinstance(value, Feature | Open):
        if value.name != column.name:
            raise _validate.fail(f"the column {column.name!r}", value, f"named {column.name!r}", "column")
        return value
    if isinstance(column, Feature):
        raise _validate.fail(
            f"the column {column.name!r}", value, f"a whole declaration, since nothing of {column!r} is open", "column"
        )
    return column.filled(value)
