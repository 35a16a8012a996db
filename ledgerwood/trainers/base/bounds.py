"""Bounds on the parameters and plans of all systems."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ledgerwood import _validate
from ledgerwood.ensemble import MAX_DEPTH

MAX_TREES = 2**40
MAX_BINS = 60_000
"""Steps of a numeric feature's range, at most: with a cell for missing values they fit 16 bits."""


class ShapedPlan(Protocol):
    """The fields that all plans have."""

    @property
    def max_depth(self) -> int:
        """Levels of splits."""

    @property
    def max_bins(self) -> int:
        """Even steps of a numeric feature's range."""


class BoostedPlan(ShapedPlan, Protocol):
    """The fields that the plans of sums of trees have."""

    @property
    def learning_rate(self) -> float:
        """Factor on every leaf."""

    @property
    def initial_share(self) -> float:
        """Share of the budget for the initial score."""


def require_bounds(plan: BoostedPlan, names: Mapping[str, tuple[object, ...]]) -> None:
    """Refuse a plan of a sum of trees whose shared fields are out of bounds.

    Args:
        plan: a system's.
        names: fields that hold one of a closed set, and the set.

    Raises:
        InvalidParameter: one of them is not.
    """
    require_shape(plan, names)
    _validate.positive("learning_rate", plan.learning_rate, "factor on a leaf")
    if not 0.0 < _validate.real("initial_share", plan.initial_share, "share of the budget") < 1.0:
        raise _validate.fail("initial_share", plan.initial_share, "in (0, 1)", "share of the budget")


def require_trees(name: str, value: object) -> None:
    """Refuse a number of trees that is none, or beyond 2**40.

    Raises:
        InvalidParameter: so it is.
    """
    if _validate.count(name, value, "trees") > MAX_TREES:
        raise _validate.fail(name, value, f"at most {MAX_TREES}", "trees")


def require_shape(plan: ShapedPlan, names: Mapping[str, tuple[object, ...]]) -> None:
    """Refuse any plan whose shape is out of bounds. Arguments and errors: as `require_bounds`."""
    for name, allowed in names.items():
        require_name(name, getattr(plan, name), allowed)
    if _validate.count("max_depth", plan.max_depth, "levels", minimum=0) > MAX_DEPTH:
        raise _validate.fail("max_depth", plan.max_depth, f"at most {MAX_DEPTH}", "levels")
    if not 2 <= _validate.count("max_bins", plan.max_bins, "steps") <= MAX_BINS:
        raise _validate.fail("max_bins", plan.max_bins, f"in [2, {MAX_BINS}]", "steps of a feature's range")


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
