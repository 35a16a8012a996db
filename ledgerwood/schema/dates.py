"""Dates as numbers: days since 1970-01-01, with the time of day as a fraction, to the microsecond.

One public scale for every kind of column that holds dates. docs/how-to/choose-a-schema.md has the rules.
"""

import datetime as dt
import re
from dataclasses import dataclass, field
from typing import final

from ledgerwood import _validate
from ledgerwood.ensemble import FeatureCells
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.schema.features import Categorical, Numeric, require_name

_EPOCH = dt.date(1970, 1, 1).toordinal()
_FIRST_DAY, _LAST_DAY = 1 - _EPOCH, dt.date.max.toordinal() - _EPOCH
_DAY = 86_400_000_000
"""Microseconds."""
_ISO = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[T ](?P<time>\d\d:\d\d(?::\d\d(?:[.,](?P<fraction>\d{1,9}))?)?)(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_UTC = dt.UTC


@final
@dataclass(frozen=True, slots=True)
class Date:
    """A date, or a date with a time, between two public ones.

    Trees see a number: days since 1970-01-01, with the time of day as a fraction, clamped to the declared range.

    Args:
        name: the column's name.
        first, last: public bounds, as ISO texts: "2001-01-01", "2001-01-01T08:30" or "2001-01-01T08:30:00Z"; or as
            `datetime.date` or `datetime.datetime`. A `last` without a time includes all of its day. If both have a time
            zone, the column holds instants, which columns with a time zone do; if none has, it holds dates and times
            without one. The two are never converted into each other.
        missing: whether the value may be missing, as of `Numeric`.
        low, high: the bounds as numbers of days; derived.

    Raises:
        InvalidParameter: no such text, bounds that are not in order, or a time zone in one of them alone.
    """

    name: str
    first: str
    last: str
    missing: bool = False
    low: float = field(init=False, repr=False, compare=False)
    high: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_name(self.name)
        first, last = (_bound(self.name, end, getattr(self, end)) for end in ("first", "last"))
        if (first[2] is None) != (last[2] is None):
            raise InvalidParameter(
                f"first={first[0]!r} and last={last[0]!r} of {self.name!r}: one has a time zone, the other has none; "
                "give both one, for a column of instants, or neither (unit: dates)"
            )
        object.__setattr__(self, "first", first[0])
        object.__setattr__(self, "last", last[0])
        object.__setattr__(self, "low", first[1])
        object.__setattr__(self, "high", last[1] + 1.0 if self.whole_last_day else last[1])
        if not self.low < self.high:
            raise _validate.fail(f"last of {self.name!r}", self.last, f"after first={self.first!r}", "dates")
        _validate.flag(f"missing of {self.name!r}", self.missing)

    @property
    def zoned(self) -> bool:
        """Whether the column holds instants: dates and times with a time zone."""
        match = _ISO.fullmatch(self.first)
        return match is not None and match["zone"] is not None

    @property
    def whole_last_day(self) -> bool:
        """Whether the range ends with the end of the day `last`."""
        return "T" not in self.last

    @property
    def scale(self) -> Numeric:
        """The column as a number of days, in the declared range."""
        return Numeric(self.name, self.low, self.high, self.missing)

    def cells(self, bins: int) -> FeatureCells:
        """Even steps of the range, and one more cell for a missing value."""
        return self.scale.cells(bins)

    def spelled(self, days: float) -> str:
        """A number of the scale as an ISO text, to the second; a whole day without a time.

        Args:
            days: since 1970-01-01; clamped to the range.
        """
        moment = spelled_days(min(max(days, self.low), self.high))
        if not self.zoned:
            return moment
        return f"{moment}Z" if "T" in moment else f"{moment}T00:00:00Z"


Ranged = Numeric | Date
"""A column with a range of numbers: its values have an order, and even steps."""
Target = Numeric | Categorical
"""A declared column that can be learned."""
Feature = Numeric | Categorical | Date
"""A declared column."""


def _bound(name: str, end: str, value: object) -> tuple[str, float, str | None]:
    """A bound as (its text, its number of days, its time zone)."""
    what = f"{end} of {name!r}"
    if isinstance(value, dt.date):
        text = value.isoformat()
    elif isinstance(value, str):
        text = value.strip().replace(" ", "T").replace(",", ".")
    else:
        raise _validate.fail(what, value, "an ISO date or time, as '2001-01-31' or '2001-01-31T08:30'", "dates")
    match = _ISO.fullmatch(text)
    days = None if match is None else iso_days(text, zoned=match["zone"] is not None)
    if match is None or days is None:
        raise _validate.fail(what, value, "an ISO date or time, as '2001-01-31' or '2001-01-31T08:30'", "dates")
    return text, days, match["zone"]


def iso_days(text: str, *, zoned: bool) -> float | None:
    """The number of days that an ISO text says; None for another text, or one of the other kind.

    Args:
        text: YYYY-MM-DD, with a time (hh:mm, hh:mm:ss, fractions of a second) after T or a space, and its zone (Z or
            +hh:mm). What is finer than a microsecond is cut off.
        zoned: whether a time zone is asked for; without one no zone is allowed.
    """
    match = _ISO.fullmatch(text)
    if match is None or (match["zone"] is not None) != zoned:
        return None
    try:
        moment = dt.datetime.fromisoformat(text.replace(",", "."))
        return _days(moment)
    except (ValueError, OverflowError):  # no such day or hour; or a zone that leads out of the calendar
        return None


def object_days(value: object, *, zoned: bool) -> float | None:
    """The number of days of one value of an untyped column; None for what is no date, or one of the other kind.

    Args:
        value: `datetime.date`, `datetime.datetime` or an ISO text.
        zoned: as of `iso_days`.
    """
    kind = type(value)
    if issubclass(kind, str):
        return iso_days(str.__str__(value).strip(), zoned=zoned)
    try:
        if issubclass(kind, dt.datetime):
            if value != value:  # "not a time", which has a place in the calendar as an object
                return None
            if (value.tzinfo is not None) != zoned:  # type: ignore[attr-defined]
                return None
            return _days(value)  # type: ignore[arg-type]
        if issubclass(kind, dt.date):
            return None if zoned else float(dt.date.toordinal(value) - _EPOCH)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001  # what a foreign class or zone raises is its own affair: no date
        return None
    return None


def _days(moment: dt.datetime) -> float:
    """Whole days and a correctly rounded share of one, so that every unit of time gives the same number."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(_UTC)
    whole = dt.date.toordinal(moment) - _EPOCH
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    return whole + (seconds * 1_000_000 + moment.microsecond) / _DAY


def require_target(column: object) -> Target | None:
    """The column as a target; None for none.

    Raises:
        SchemaError: a date, which no estimator learns, or no column at all.
    """
    if column is None or isinstance(column, Numeric | Categorical):
        return column
    if isinstance(column, Date):
        raise SchemaError(
            f"the target {column.name!r} is a Date, and a target is a Numeric or a Categorical: declare the number of "
            "days since a public day, and give that as the label"
        )
    raise SchemaError(f"target={column!r} must be a Numeric or a Categorical")


LATEST = ("9999-12-31", "9999-12-31T00:00:00Z")
"""The last day that can be said, without a time zone and with one."""


def scale_of(feature: Ranged) -> Numeric:
    """The feature as numbers: itself, or of dates their number of days."""
    return feature.scale if isinstance(feature, Date) else feature


def as_given(feature: Ranged, value: float) -> float | str:
    """A number of the feature's scale as a row would have it: the number itself, or the text of a date."""
    return feature.spelled(value) if isinstance(feature, Date) else value


def spelled_days(days: float) -> str:
    """The ISO text of a number of days since 1970-01-01, to the second; a whole day without a time.

    Args:
        days: clamped to the years 1 to 9999.
    """
    seconds = round(min(max(days, _FIRST_DAY), _LAST_DAY) * 86_400.0)
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)  # noqa: DTZ001  # without a zone
    return moment.date().isoformat() if seconds % 86_400 == 0 else moment.isoformat()
