"""The kit for statistics: one that is as it declares passes, and each broken one is caught by its fault's check."""

import logging
import warnings

import numpy as np
import pytest

from ledgerwood import Adjacency, Categorical, Numeric
from ledgerwood.curator import DeclaredStatistic, LabelCount
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BoxShifts
from ledgerwood.verification import assert_statistic, check_statistic

AGE, KIND = Numeric("age", 0.0, 8.0), Categorical("kind", ("u", "v"))
STEPS = 1024


def sums(chunk):
    """(1, age / 8 of those of kind u) in steps of 2**-10; a missing age is 0."""
    age = np.where(chunk["kind"] == 0, np.nan_to_num(chunk["age"]) / 8.0, 0.0)
    return (np.stack((np.ones_like(age), age), axis=1) * STEPS).astype(np.int64)


def declared(function=sums, **more):
    fields = {"most": (STEPS, STEPS), "least": (0, 0), "exponent": -10, "rehearse": False}
    return DeclaredStatistic(
        name="ages", declared_by="the kit's own tests", columns=(AGE, KIND), function=function, **(fields | more)
    )


@pytest.mark.slow_after(1)  # searches and replays
@pytest.mark.parametrize("more", [{}, {"one_by_one": True}, {"norm": 1500.0}, {"constants": {"a": 1}}], ids=str)
def test_a_statistic_as_it_declares_passes(more):
    def with_constants(chunk, constants):
        return sums(chunk) * constants["a"]

    report = assert_statistic(declared(with_constants if "constants" in more else sums, **more), evaluations=60)
    assert report.ok
    assert report["ledger"].why.endswith("not proven here")


def centred(chunk):
    found = sums(chunk)
    found[:, 1] -= np.int64(found[:, 1].mean()) if len(found) > 1 else 0
    return found


class Remembers:
    def __init__(self):
        self.rows = 0

    def __call__(self, chunk):
        self.rows += len(chunk["age"])
        return np.minimum(sums(chunk) + self.rows, STEPS)


def printing(chunk):
    print(len(chunk["age"]))
    return sums(chunk)


def logging_values(chunk):
    logging.getLogger("ages").info("oldest %s", np.nanmax(chunk["age"], initial=0.0))
    return sums(chunk)


def reads_missing_as_numbers(chunk):
    return np.array([[STEPS, int(age * 128)] for age in chunk["age"]], dtype=np.int64).reshape(-1, 2)


def floats(chunk):
    return sums(chunk).astype(float)


def wide(chunk):
    return np.repeat(sums(chunk), 2, axis=1)


def forgets_nan(chunk):
    return np.stack((np.full(len(chunk["age"]), STEPS), (chunk["age"] * 128).astype(np.int64)), axis=1).astype(np.int64)


def asks_for_another_column(chunk):
    return sums({**chunk, "kind": chunk["knd"]})


def always_raises(chunk):
    raise RuntimeError("no")


BROKEN = [
    (lambda: declared(always_raises, rehearse=True), "replay", "nothing can be released"),
    (lambda: declared(always_raises), "replay", "no neighbour moved the sum"),
    (lambda: declared(centred, rehearse=True), "replay", "nothing can be released"),
    (lambda: declared(floats), "replay", "no neighbour moved the sum"),
    (lambda: declared(asks_for_another_column), "rows apart", "asks for 'knd'; it is given the columns 'age', 'kind'"),
    (lambda: declared(forgets_nan), "every value", "use np.nan_to_num"),
    (lambda: declared(centred), "rows apart", "must depend on that row only"),
    (lambda: declared(Remembers()), "rows apart", "after other rows"),
    (lambda: declared(printing), "words", "the function speaks"),
    (lambda: declared(logging_values), "words", "oldest"),
    (lambda: declared(reads_missing_as_numbers), "every value", "raises of a row with missing values"),
    (lambda: declared(floats), "rows apart", "whole numbers"),
    (lambda: declared(wide), "every value", "it returns shape (1, 4)"),
    (
        lambda: declared(sensitivities={Adjacency.ADD_REMOVE: BoxShifts(boxes=((0.5, 0.5),))}),
        "sensitivity, add-remove",
        "is refuted",
    ),
    (
        lambda: declared(sensitivities={Adjacency.REPLACE_ONE: BoxShifts(boxes=((0.0, 0.5),))}),
        "sensitivity, replace-one",
        "is refuted",
    ),
]


@pytest.mark.slow_after(4)  # searches and replays
@pytest.mark.parametrize(("make", "name", "why"), BROKEN, ids=lambda each: each if isinstance(each, str) else "")
def test_each_fault_is_caught_by_name(make, name, why):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = check_statistic(make(), evaluations=60)
    assert not report.ok
    assert report[name].verdict == "failed", report
    assert why in report[name].why, report
    with pytest.raises(AssertionError, match=name):
        report.require_ok()


def test_a_query_of_the_library_is_no_declared_statistic():
    with pytest.raises(InvalidParameter, match="DeclaredStatistic"):
        check_statistic(LabelCount())


def test_a_check_that_is_not_there_is_named():
    report = check_statistic(declared(), evaluations=10)
    with pytest.raises(KeyError, match="the checks are rows apart"):
        report["speed"]
