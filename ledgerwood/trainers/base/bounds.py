"""Bounds of parameters: each is declared beside the plan's field that it bounds, and one loop checks them all.

A field of a `Literal` type is one of its names, and a field of type `bool` is True or False, without a declaration.
"""

import abc
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, final, get_args, get_origin, get_type_hints

import numpy as np

from ledgerwood import _validate
from ledgerwood.ensemble import MAX_DEPTH

MAX_TREES = 2**40
MAX_BINS = 60_000
"""GridSteps of a numeric feature's range, at most: with a cell for missing values they fit 16 bits."""


class Bound(abc.ABC):
    """What a value must hold to, in `Annotated[type, bound]`."""

    __slots__ = ()

    @abc.abstractmethod
    def require(self, name: str, value: object) -> None:
        """Refuse another value.

        Raises:
            InvalidParameter: it names the parameter, the value, the bound and the unit.
        """


@final
@dataclass(frozen=True, slots=True)
class Count(Bound):
    """A whole number."""

    unit: str = field(repr=False)  # not in the reference pages' types
    minimum: int = 1
    most: int | None = None

    def require(self, name: str, value: object) -> None:
        """See `Bound`."""
        if self.most is not None and _validate.count(name, value, self.unit, minimum=self.minimum) > self.most:
            raise _validate.fail(name, value, f"at most {self.most}", self.unit)
        _validate.count(name, value, self.unit, minimum=self.minimum)


@final
@dataclass(frozen=True, slots=True)
class GridSteps(Bound):
    """A whole number of at least two."""

    unit: str = field(repr=False)  # not in the reference pages' types
    most: int

    def require(self, name: str, value: object) -> None:
        """See `Bound`."""
        if not 2 <= _validate.count(name, value, "steps") <= self.most:
            raise _validate.fail(name, value, f"in [2, {self.most}]", self.unit)


@final
@dataclass(frozen=True, slots=True)
class Real(Bound):
    """A finite real number of an interval; open at an end that it does not `hold`."""

    unit: str = field(repr=False)  # not in the reference pages' types
    low: float = 0
    high: float = math.inf
    holds_low: bool = False
    holds_high: bool = False

    def require(self, name: str, value: object) -> None:
        """See `Bound`."""
        number = _validate.real(name, value, self.unit)
        if not (
            (self.low <= number if self.holds_low else self.low < number)
            and (number <= self.high if self.holds_high else number < self.high)
        ):
            raise _validate.fail(name, value, self._words, self.unit)

    @property
    def _words(self) -> str:
        if math.isinf(self.high):
            return f"{'>=' if self.holds_low else '>'} {self.low}"
        return f"in {'[' if self.holds_low else '('}{self.low}, {self.high}{']' if self.holds_high else ')'}"


@final
@dataclass(frozen=True, slots=True)
class OneOf(Bound):
    """One of a closed set of names, or of True and False."""

    names: tuple[object, ...]

    def require(self, name: str, value: object) -> None:
        """See `Bound`."""
        require_name(name, value, self.names)


def positive(unit: str) -> Real:
    """Above zero."""
    return Real(unit)


def share(unit: str) -> Real:
    """A part of a whole, neither nothing nor all of it."""
    return Real(unit, high=1)


Trees = Annotated[int, Count("trees", most=MAX_TREES)]
Depth = Annotated[int, Count("levels", minimum=0, most=MAX_DEPTH)]
Bins = Annotated[int, GridSteps("steps of a feature's range", MAX_BINS)]


def require_bounds(plan: Any) -> None:
    """Refuse a dataclass one of whose fields is out of its bound; None is in the bound of a field that may be None.

    Raises:
        InvalidParameter: the first such field.
    """
    for name, bound, optional in bounds_of(plan.__class__):
        value = getattr(plan, name)
        if not (optional and value is None):
            bound.require(name, value)


@functools.cache
def bounds_of(kind: Any) -> tuple[tuple[str, Bound, bool], ...]:
    """(name, bound, whether it may be None) of each bounded field of a dataclass, by the fields' types."""
    hints = get_type_hints(kind, include_extras=True)
    found = [(field.name, *_bound(hints[field.name])) for field in fields(kind)]
    return tuple((name, bound, optional) for name, bound, optional in found if bound is not None)


def _bound(hint: Any) -> tuple[Bound | None, bool]:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        others = [part for part in parts if part is not NoneType]
        return (_bound(others[0])[0], True) if len(others) == 1 else (None, True)
    if origin is Annotated:
        return next((each for each in hint.__metadata__ if isinstance(each, Bound)), None), False
    if origin is Literal:
        return OneOf(parts), False
    return (OneOf((True, False)), False) if hint is bool else (None, False)


def require_name(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse what is not one of a closed set of names, or of True and False.

    Raises:
        InvalidParameter: it is not.
    """
    if not isinstance(value, str | bool) or value not in allowed:
        raise _validate.fail(name, value, f"one of {', '.join(map(repr, allowed))}", "name")


def is_word(value: object, word: str) -> bool:
    """Returns whether a parameter is this word; what it is compared with may be an array."""
    return isinstance(value, str) and value == word


def require_rows(expected_rows: object) -> None:
    """Refuse a declared number of rows that is none.

    Raises:
        InvalidParameter: neither None nor a whole number, at least 1.
    """
    if expected_rows is not None:
        _validate.real("expected_rows", _validate.count("expected_rows", expected_rows, "rows"), "rows")


def require_verbose(verbose: object) -> None:
    """Refuse a level of detail that is neither a whole number, at least 0, nor True or False.

    Raises:
        InvalidParameter: so it is.
    """
    if not isinstance(verbose, bool | np.bool_):
        _validate.count("verbose", verbose, "level of detail", minimum=0)


def named_choices(choices: Mapping[str, Any]) -> dict[str, Any]:
    """The choices that somebody named, with numpy's numbers as Python's.

    Raises:
        InvalidParameter: an array.
    """
    named = {name: value for name, value in choices.items() if value is not None}
    for name, value in named.items():
        if isinstance(value, np.ndarray):
            raise _validate.fail(name, value, "one value, not an array", "parameter")
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in named.items()}
