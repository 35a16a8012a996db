"""Privacy warnings: uses that weaken a guarantee, or hide its total; one `PrivacyWarning` for each fit and reason.

Each text names the remedy. A warning depends on parameters, plans, the names of columns and privately estimated schemas
only, never on unreleased rows. docs/how-to/privacy-warnings.md lists them;
docs/explanation/cautions.md derives the two thresholds.
"""

import multiprocessing
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral

from ledgerwood import _validate
from ledgerwood.errors import PrivacyWarning
from ledgerwood.recording.points import is_recorded

LARGEST_DELTA = 1e-3
UNKNOWN_ROWS = 10_000
"""If the number of rows is not declared: leaves that are noise in a table of that many are warned of."""
_DOUBLINGS = 60
_PASSED_THROUGH = frozenset({"ledgerwood", "sklearn", "joblib"})
"""Packages that lie between a user's line and a fit."""
_ALREADY: ContextVar[bool] = ContextVar("already warned", default=False)
"""True if the caller of these fits has already warned for all of them."""
_LOCK = threading.Lock()
_FITS: Counter[frozenset[str]] = Counter()
"""The fits of this process, by the names of their features."""


def emit(messages: Iterable[str | None]) -> None:
    """Give each warning, at the user's own line of code.

    No warning is given inside a verification, whose fits are not released, nor inside `already_warned`.
    """
    if is_recorded() or _ALREADY.get():
        return
    for message in messages:
        if message is not None:
            warnings.warn(message, PrivacyWarning, stacklevel=_users_level())


@contextmanager
def already_warned() -> Iterator[None]:
    """Suppress warnings and counting of fits in this block and thread: the caller has warned for all of them."""
    token = _ALREADY.set(True)
    try:
        yield
    finally:
        _ALREADY.reset(token)


def of_candidates(found: Sequence[Sequence[str]]) -> list[str]:
    """Combine the warnings of several candidates: those that hold for all, and one text for those that hold for some.

    Args:
        found: for each candidate, its own texts.
    """
    common = [text for text in dict.fromkeys(found[0]) if all(text in texts for texts in found)]
    others = [[text for text in texts if text not in common] for texts in found]
    some = [(place, texts[0]) for place, texts in enumerate(others) if texts]
    if some:
        place, text = some[0]
        common.append(f"{len(some)} of {len(found)} candidates cause a warning; candidate {place}: {text}")
    return common


def _users_level() -> int:
    """The level of the innermost frame of no package between a user and a fit, as seen by `emit`."""
    frame = sys._getframe(1)
    level = 1
    while frame.f_back is not None and _package(frame.f_globals.get("__name__", "")) in _PASSED_THROUGH:
        frame = frame.f_back
        level += 1
    return level


def _package(module: object) -> str:
    return str(module).partition(".")[0]


def seed_caution(random_state: object) -> str:
    """Returns the warning that seeded noise can be reproduced and removed."""
    shown = repr(random_state) if isinstance(random_state, Integral) else _validate.kind_of(random_state)
    return (
        f"random_state={shown}: all noise is drawn from this seed, and anyone who knows or guesses it can remove the "
        "noise. privacy_.epsilon is inf, and the ledger marks the draws 'test'. Use random_state=None for every model "
        "that you release"
    )


def delta_caution(delta: float, expected_rows: float | None = None) -> str | None:
    """Returns the warning that delta is large enough to allow publishing whole rows; None if it is small."""
    limit = "1e-3" if delta > LARGEST_DELTA else ""
    if expected_rows is not None and expected_rows * delta > 1.0:
        rows = f"1 / expected_rows = {1.0 / expected_rows:.3g}"
        limit = f"{limit} and above {rows}" if limit else rows
    if not limit:
        return None
    advice = _advised(expected_rows)
    return (
        f"delta={delta!r} (unit: probability) is above {limit}: a mechanism that publishes each row with probability "
        "delta satisfies this guarantee, for any epsilon. Set delta far below 1 / (number of rows), for example "
        f"{advice:.0e}"
    )


def _advised(rows: float | None) -> float:
    """A hundredth of the largest delta that is not warned of."""
    return (LARGEST_DELTA if rows is None else min(LARGEST_DELTA, 1.0 / rows)) / 100


def suggested_delta(rows: int) -> float:
    """Returns a delta for a public number of rows: the largest power of ten that is at most a hundredth of 1 / rows.

    Nor more than 1e-5, a hundredth of the largest delta that is not warned of.

    Args:
        rows: public; a number that was counted in private rows is no argument for this function.
    """
    digits = 0
    while 10**digits < 100 * rows or float(f"1e-{digits}") > _advised(None):
        digits += 1
    return float(f"1e-{digits}")


def leaf_caution(
    signal: Callable[[float], float], *, epsilon: float, delta: float, expected_rows: float | None
) -> str | None:
    """Returns the warning that a plan's leaves are mostly noise, and up to how many rows; None if they are not.

    docs/explanation/cautions.md#leaf-noise. Arguments as of `noise_caution`; `signal` is a plan's `leaf_signal`.
    """
    return noise_caution(
        signal, epsilon=epsilon, delta=delta, expected_rows=expected_rows, statistic="a leaf",
        together="summed over all trees, ", remedies="fewer levels (max_depth) or fewer trees",
    )  # fmt: skip


def noise_caution(
    signal: Callable[[float], float],
    *,
    epsilon: float,
    delta: float,
    expected_rows: float | None,
    statistic: str,
    together: str = "",
    remedies: str,
) -> str | None:
    """Returns the warning that what a plan releases is mostly noise, and up to how many rows; None if it is not.

    Args:
        signal: a function, not decreasing, from the number of rows to the largest possible signal-to-noise ratio of the
            statistic.
        epsilon, delta: the budget.
        expected_rows: a public guess of the number of rows; None assumes 10,000.
        statistic: what is released, such as "a gradient".
        together: words for the sum of several releases, ending with a comma and a space.
        remedies: parameters that help besides epsilon and rows.
    """
    rows = UNKNOWN_ROWS if expected_rows is None else expected_rows
    ratio = signal(rows)
    if ratio >= 1.0:
        return None
    least = _least_rows(signal)
    fewer = "in a table of any size" if least is None else f"in every table of fewer than about {least:,} rows"
    if expected_rows is None:
        known, more = "", "If there are more rows than that, set expected_rows; else take"
    else:
        known, more = (
            f" (with expected_rows={expected_rows!r} the signal-to-noise ratio is at most {ratio:.2g})",
            "Take",
        )
    return (
        f"epsilon={epsilon!r} at delta={delta!r} leaves little but noise: by this plan the noise of {statistic} is "
        f"larger than the largest possible sum of its rows, {together}{fewer}{known}. {more} a larger epsilon, more "
        f"rows, {remedies}"
    )


def _least_rows(signal: Callable[[float], float]) -> int | None:
    """The number of rows from which the ratio may be 1, to 2 digits; None if there is none."""
    high = next((2.0**k for k in range(_DOUBLINGS) if signal(2.0**k) >= 1.0), None)
    if high is None:
        return None
    low = high / 2.0
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if signal(middle) >= 1.0 else (middle, high)
    return int(float(f"{high:.2g}"))


def estimate_caution(useless: Sequence[str]) -> str | None:
    """Returns the warning about useless private estimates of columns, by released values; None if all are useful.

    Args:
        useless: for each, its name and what came out, as one text.
    """
    if not useless:
        return None
    return (
        f"the privately estimated schema is of no use for {'; '.join(useless)}. The model learns little or nothing "
        "from them; look at schema_. Declare those columns in a Schema, or raise epsilon or schema_share"
    )


@contextmanager
def counted_fit(features: Iterable[str], *, own: bool) -> Iterator[str | None]:
    """Count a fit on these columns, or several fits as one.

    Fits inside a verification or `already_warned`, and fits that raise, are not counted.

    Args:
        features: the names of the columns, in any order; the rows are not looked at.
        own: whether the fit opens its own ledger.

    Yields:
        The warning, if the fit opens its own ledger and this process has fitted the same columns before, or was started
        by another process, whose fits it cannot count; else None.
    """
    if is_recorded() or _ALREADY.get():
        yield None
        return
    columns = frozenset(features)
    with _LOCK:
        again = _FITS[columns] > 0
        _FITS[columns] += 1
    try:
        if own and again:
            yield _own_ledger_caution(columns)
        elif own and multiprocessing.parent_process() is not None:
            yield _CHILD_CAUTION
        else:
            yield None
    except BaseException:
        with _LOCK:
            _FITS[columns] -= 1
        raise


_CHILD_CAUTION = (
    "this fit runs in a process that another one has started (n_jobs of a cross-validation or a search?) and opens its "
    "own ledger: the epsilons of all processes' fits on the same rows must be summed, and no ledger has the total. Use "
    "ledgerwood.trainers.private_cross_validate or private_grid_search, which charge all fits on one ledger, or pass "
    "ledger=Ledger.open('sqlite:///...') of one database to every fit"
)


def _own_ledger_caution(columns: frozenset[str]) -> str:
    names = sorted(columns)
    shown = ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (
        f"this process has fitted columns {shown} before, and this fit opens its own ledger: if the rows are "
        "the same, or overlap, the fits' epsilons must be summed, and no ledger has the total. Open one "
        "ledgerwood.Ledger for these rows and pass it to every fit: fit(X, y, ledger=ledger)"
    )
