"""`check_sensitivity` finds what breaks a stated sensitivity, and leaves alone what is right."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood import Adjacency, Categorical, Numeric
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification import SensitivityReport, assert_sensitivity, check_sensitivity
from ledgerwood.verification.sensitivity import pair_search

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def clean(x):
    """Values in [0, 1], for certain."""
    return np.clip(np.nan_to_num(x, nan=0.0), 0.0, 1.0)


# ------------------------------------------------------------------------- what is wrong, as others have had it wrong


def clips_without_nan(x):
    """NaN passes np.clip (arXiv 2602.17454, section 4.3.9)."""
    return np.clip(x, 0.0, 1.0).sum()


def clips_a_copy(x):
    """The clipped values are thrown away (smartnoise-sdk, issue 622)."""
    np.clip(np.nan_to_num(x), 0.0, 1.0)
    return np.nan_to_num(x).sum()


def counts_by_class(data):
    """Classes are read off the data (diffprivlib)."""
    return np.unique(data[1], return_counts=True)[1]


def names_of_classes(data):
    return np.unique(data[1])


def divides_by_the_number_of_rows(x):
    return clean(x).sum() / max(len(x), 1)


def first_row(x):
    return clean(x)[:1].sum()


LABELLED = (np.linspace(0.0, 1.0, 6).reshape(3, 2), np.array([0, 1, 1]))
NAMED = (np.linspace(0.0, 1.0, 6).reshape(3, 2), np.array(["a", "b", "b"]))
WRONG = {
    "NaN": (clips_without_nan, {"claimed": 1.0}, math.inf),
    "a copy": (clips_a_copy, {"claimed": 1.0, "bounds": (0.0, 1.0)}, 1e299),
    "the lower bound twice": (lambda x: clean(x / 100).sum(), {"claimed": 0.0, "bounds": (0, 100)}, math.inf),
    "classes": (counts_by_class, {"claimed": 1.0, "data": LABELLED}, math.inf),
    "named classes": (counts_by_class, {"claimed": 1.0, "data": NAMED}, math.inf),
    "names": (names_of_classes, {"claimed": 1.0, "data": NAMED}, math.inf),
    "keys": (lambda d: dict.fromkeys(d[1].tolist(), 1), {"claimed": 1.0, "data": NAMED}, math.inf),
    "a mean over n": (divides_by_the_number_of_rows, {"claimed": 0.1, "adjacency": R, "bounds": (0, 1)}, 9.9),
    "half a replaced row": (lambda x: clean(x).sum(), {"claimed": 0.5, "adjacency": R}, 1.99),
    "the order": (first_row, {"claimed": 1.0}, math.inf),
    "a count of one kind": (lambda x: float(np.sum(x > 1e200) * 3), {"claimed": 1.0}, 2.99),
    "a sign of zero": (lambda x: 2.0 * np.signbit(x[x == 0.0]).sum(), {"claimed": 1.0}, 1.99),
    "whole numbers that wrap": (lambda x: np.uint8(len(x)) - np.uint8(1), {"claimed": 1.0}, 254.0),
    "a list of rows": (lambda x: clean(x), {"claimed": 1.0}, math.inf),
    "infinite": (lambda x: np.sum(x[np.isfinite(x)]) if np.isfinite(x).all() else np.inf, {"claimed": 1e301}, math.inf),
}


@pytest.mark.slow_after(7)  # many replays and searches
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sensitivity_is_refuted_with_a_pair_that_shows_it(name):
    query, options, least = WRONG[name]
    report = check_sensitivity(query, **options)
    assert report.refuted
    assert report.ratio >= least
    # The pair is one: neighbours under the relation, and the query is as far apart on them as the report says.
    neighbour = report.neighbour
    neighbour.require(options.get("adjacency", A))
    assert neighbour.rows == len(report.data[0] if isinstance(report.data, tuple) else report.data)
    with np.errstate(all="ignore"):
        first, second = query(report.data), query(neighbour.data)
    if math.isfinite(report.ratio):
        found = np.linalg.norm(np.asarray(second, float) - np.asarray(first, float))
        assert found == pytest.approx(report.distance)
        assert report.ratio == pytest.approx(found / options["claimed"])
    with pytest.raises(AssertionError, match="is refuted"):
        assert_sensitivity(query, **options)


# ------------------------------------------------------------------------------------------------------ what is right

RIGHT = {
    "sum": (lambda x: clean(x).sum(), {}, {A: 1.0, R: 1.0}, 1.0),
    "count": (len, {}, {A: 1.0}, 1.0),
    "signed sum": (lambda x: (2 * clean(x) - 1).sum(), {}, {A: 1.0, R: 2.0}, 1.0),
    "histogram": (lambda x: np.histogram(clean(x), 4, (0, 1))[0], {}, {A: 1.0, R: math.sqrt(2)}, 1.0),
    "histogram, l1": (lambda x: np.histogram(clean(x), 4, (0, 1))[0], {"norm": "l1"}, {A: 1.0, R: 2.0}, 1.0),
    "histogram, linf": (lambda x: np.histogram(clean(x), 4, (0, 1))[0], {"norm": "linf"}, {A: 1.0, R: 1.0}, 1.0),
    "histogram, range": (lambda x: np.histogram(clean(x), 4, (0, 1))[0], {"norm": "range"}, {A: 1.0, R: 2.0}, 1.0),
    "variance": (lambda x: clean(x).var() if len(x) else 0.0, {}, {A: 0.25, R: 0.25}, 1.0),
    "median": (lambda x: np.median(clean(x)) if len(x) else 0.5, {}, {A: 0.5, R: 1.0}, 1.0),
    # Its largest contribution is at no end of a range: sin of .77 pi x is 1 at x = .6494.
    "a hump": (lambda x: np.sin(0.77 * np.pi * clean(x)).sum(), {"bounds": (0, 1)}, {A: 1.0, R: 1.0}, 1.0 - 1e-6),
    "two humps": (
        lambda X: np.array([np.sin(0.77 * np.pi * clean(X[:, 0])).sum(), np.sin(2.5 * clean(X[:, 1])).sum()]),
        {"bounds": (0, 1), "columns": 2},
        {A: math.sqrt(2)},
        1.0 - 1e-5,
    ),
    "a row's norm": (
        lambda X: (np.nan_to_num(X, posinf=0, neginf=0) / np.maximum(1.0, norms(X))[:, None]).sum(axis=0),
        {"columns": 3},
        {A: 1.0, R: 2.0},
        1.0 - 1e-9,
    ),
}


def norms(X):
    return np.array([math.hypot(*row) for row in np.nan_to_num(X, posinf=0, neginf=0).tolist()])


@pytest.mark.slow  # a search for a breach of each mechanism
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_not_refuted_and_the_search_comes_as_far_as_it_may(name):
    query, options, claims, least = RIGHT[name]
    for adjacency, claimed in claims.items():
        report = assert_sensitivity(query, claimed=claimed, adjacency=adjacency, **options)
        assert isinstance(report, SensitivityReport)
        assert least - 1e-9 <= report.ratio <= 1.0 + 1e-9, f"{adjacency}: {report}"
        assert report.evaluations <= 2_003
        # A claim that is a little smaller is refuted, by the same search.
        assert check_sensitivity(query, claimed=0.99 * claimed, adjacency=adjacency, **options).refuted


@pytest.mark.slow  # many replays and searches
@settings(max_examples=30)
@given(
    scale=st.floats(1e-6, 1e6), offset=st.floats(-1e6, 1e6), parts=st.integers(1, 4), dtype=st.sampled_from("fd"),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_rounding_is_no_breach(scale, offset, parts, dtype, seed):
    """Sums of floats, in any order and off by a constant: the exact sensitivity is claimed, and is not refuted."""
    weights = np.linspace(0.1, 1.0, parts)

    def query(x):
        return (scale * (offset + np.cumsum(clean(x).astype(dtype))[-1:].sum()) * weights).astype(dtype)

    report = check_sensitivity(
        query, claimed=scale * math.sqrt(float(np.sum(weights**2))), evaluations=150, rng=np.random.default_rng(seed),
        tolerance=1e-7 if dtype == "f" else 1e-9,
    )  # fmt: skip
    assert not report.refuted, report


# --------------------------------------------------------------------------------------------- of rows under a schema

SCHEMA = lw.Schema(
    features=(Numeric("a", 0, 1, missing=True), Categorical("kind", ("u", "v"))),
    target=Categorical("class", (0, 1)),
    weight_bound=2.0,
)


def weighted_counts(data):
    X, y, weights = data
    known = np.isin(y, [0, 1])
    kept = np.where(np.isfinite(weights.astype(float)), np.clip(weights.astype(float), 0.0, 2.0), 0.0)
    return np.bincount(y[known].astype(int), weights=kept[known], minlength=2)


@pytest.mark.slow  # many replays and searches
def test_rows_of_a_schema_have_labels_weights_and_missing_values():
    report = assert_sensitivity(weighted_counts, claimed=2.0, schema=SCHEMA)
    assert report.ratio == pytest.approx(1.0)
    unbounded = check_sensitivity(lambda data: data[2].sum(), claimed=2.0, schema=SCHEMA)
    assert unbounded.refuted
    X, y, weights = unbounded.data
    assert (X.dtype, X.shape[1]) == (object, 2)
    assert len(X) == len(y) == len(weights)
    assert not check_sensitivity(lambda data: data[2].sum(), claimed=2.0, schema=SCHEMA, rows="valid").refuted
    seen = set()

    def watching(data):
        seen.update(map(str, data[0].ravel().tolist() + data[1].tolist()))
        return weighted_counts(data)

    check_sensitivity(watching, claimed=2.0, schema=SCHEMA)
    assert {"nan", "u", "v", "a category that no schema lists", "inf", "-inf", "1e+300", "0.0", "-0.0", "2"} <= seen
    seen.clear()
    check_sensitivity(watching, claimed=2.0, schema=SCHEMA, rows="valid")
    assert {"nan", "u", "v", "0.0", "-0.0", "1.0"} <= seen
    assert not seen & {"a category that no schema lists", "inf", "1e+300", "2"}


def test_what_was_tried_besides_single_rows():
    """Empty data, one row, rows all alike, ties, a row more of a kind."""
    seen = []

    def watching(x):
        seen.append(tuple(x.tolist()))
        return clean(x).sum()

    check_sensitivity(watching, claimed=1.0, bounds=(0, 1), rows="valid")
    assert () in seen
    assert (0.0,) in seen
    assert (1.0, 1.0, 1.0) in seen
    assert (1.0, 1.0, 1.0, 1.0) in seen
    assert (0.0, 0.0, 1.0, 1.0) in seen
    assert any(len(x) == 20 and len(set(x)) > 5 for x in seen)


def test_data_that_are_given_are_the_first_to_be_tried_and_stay_as_they_are():
    data = (np.array([[0.25, 3.0], [0.5, 5.0]]), np.array([1, 0]), np.array([0.5, 1.0]))
    kept = tuple(part.copy() for part in data)
    calls = []

    def spoiling(given):
        calls.append(tuple(part.copy() for part in given))
        given[0][:] = 0.0
        return float(len(given[1]))

    assert_sensitivity(spoiling, claimed=1.0, data=data)
    for part, first, dtype in zip(kept, calls[0], (np.float64, np.int64, np.float64), strict=True):
        np.testing.assert_array_equal(first, part)
        assert first.dtype == dtype
    for part, same in zip(data, kept, strict=True):
        np.testing.assert_array_equal(part, same)


def test_the_order_of_rows_matters_where_it_is_said_to():
    """Running sums of a stream: a row more moves those after it."""

    def last(x):
        return clean(x)[-1:].sum()

    assert check_sensitivity(last, claimed=1.0).refuted
    assert not check_sensitivity(last, claimed=1.0, ordered=True).refuted


def test_a_query_that_raises_shows_nothing_and_is_counted():
    def strict(x):
        if not np.isfinite(x).all():
            raise ValueError("the data have NaN")
        return clean(x).sum()

    report = assert_sensitivity(strict, claimed=1.0)
    assert report.refusals > 0
    assert report.refusal == "ValueError: the data have NaN"
    assert "evaluations raised an error and show nothing; the first: ValueError" in str(report)
    with pytest.raises(InvalidParameter, match=r"raised on all of .* data sets, the first time IndexError: .* data="):
        check_sensitivity(lambda X: X[:, 3].sum(), claimed=1.0)
    with pytest.raises(InvalidParameter, match="the first time InvalidParameter: the query returned"):
        check_sensitivity(lambda x: object(), claimed=1.0)


def test_a_random_query_is_refused():
    generator = np.random.default_rng(5)
    with pytest.raises(InvalidParameter, match="the query is random"):
        check_sensitivity(lambda x: clean(x).sum() + generator.laplace(), claimed=1.0)
    with pytest.raises(InvalidParameter, match="the query is random"):
        check_sensitivity(lambda x: generator.uniform(size=generator.integers(1, 9)), claimed=1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "claimed=None must be a number >= 0, of a function"),
        ({"claimed": -1.0}, "claimed=-1.0 must be >= 0"),
        ({"claimed": 1.0, "norm": "l3"}, "norm='l3' must be"),
        ({"claimed": 1.0, "rows": "clean"}, "rows='clean' must be 'any' or 'valid'"),
        ({"claimed": 1.0, "rows": "valid"}, "valid rows need data, a schema or bounds"),
        ({"claimed": 1.0, "evaluations": 3}, "evaluations=3 must be a whole number >= 4"),
        ({"claimed": 1.0, "bounds": (1, 1)}, "bounds=.* must be low < high"),
        ({"claimed": 1.0, "bounds": ((0, 0), (1, 1, 1))}, "bounds=.* must be one number, or 2, at each end"),
        ({"claimed": 1.0, "schema": SCHEMA, "columns": 2}, "give no bounds and no columns with it"),
        ({"claimed": 1.0, "data": [1.0, 2.0]}, "data must be arrays .* not list"),
        ({"claimed": 1.0, "data": (np.zeros((2, 2)), np.zeros(3))}, r"data of shapes \[\(2, 2\), \(3,\)\]"),
        ({"claimed": 1.0, "data": np.zeros((2, 2)), "columns": 3}, "columns=3 must be 2, as the data have"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InvalidParameter, match=message):
        check_sensitivity(lambda x: 0.0, **options)
    with pytest.raises(InvalidParameter, match=message):
        assert_sensitivity(lambda x: 0.0, **options)


def test_what_is_no_function_and_no_query_is_refused():
    with pytest.raises(InvalidParameter, match="the exact value of str needs a schema"):
        check_sensitivity("sum", claimed=1.0)
    with pytest.raises(InvalidParameter, match="str is neither a function nor a query"):
        check_sensitivity("sum", schema=SCHEMA)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"adjacency": "add-remove"}, "adjacency='add-remove' must be an Adjacency"),
        ({"rng": -1}, "rng=-1 must be a numpy Generator, or a whole number >= 0"),
        ({"claimed": "1"}, "claimed='1' must be a number >= 0"),
    ],
)
def test_arguments_of_other_kinds_are_refused_by_name(named, message):
    with pytest.raises(InvalidParameter, match=message):
        check_sensitivity(**{"query": len, "claimed": 1.0, **named})


@pytest.mark.slow_after(2)  # many replays and searches
@pytest.mark.parametrize("least", [2, 10, 15, 30])
def test_a_least_number_of_rows_is_found(least):
    found = check_sensitivity(
        lambda x: np.clip(np.nan_to_num(x), 0.0, 1.0).sum() if len(x) >= least else 0.0, claimed=1.0
    )
    assert found.refuted
    assert found.ratio >= least  # all rows at 1 appear at once


def test_a_claim_may_be_any_number():
    assert check_sensitivity(len, claimed=np.int64(1), rng=3).ratio == 1.0


# ------------------------------------------------------------------------------------------------- rounding of floats


HUGE = (2.0**52, 2.0**52 + 1.0)


def sum_of_huge(x):
    return np.clip(np.nan_to_num(x, nan=HUGE[0], posinf=HUGE[0], neginf=HUGE[0]), *HUGE).sum()


def test_a_sum_of_floats_that_moves_by_sixteen_times_the_claim_is_refuted_up_to_rounding():
    report = check_sensitivity(sum_of_huge, claimed=1.0, adjacency=R, bounds=HUGE)
    assert (report.verdict, report.refuted) == ("refuted up to rounding", False)
    assert report.ratio >= 8.0
    assert "the claim allows" in report.why  # in numpy's longer floats it moves by 1 at most
    first, second = sum_of_huge(report.data), sum_of_huge(report.neighbour.data)
    assert abs(second - first) == report.distance  # the pair shows it
    assert str(report).startswith("sensitivity 1.0 (l2, replace-one) is refuted up to rounding: ")
    assert repr(float(first)) in str(report)  # all digits: the two values differ in the last ones
    assert repr(float(second)) in str(report)
    with pytest.warns(lw.PrivacyWarning, match="Round rows to a public grid"):
        assert assert_sensitivity(sum_of_huge, claimed=1.0, adjacency=R, bounds=HUGE).ratio == report.ratio


def counts_of_huge(x):
    """Exact in fractions: no constant of it is a float."""
    return 2**56 + np.clip(x, 0, 1).sum() * 3 if len(x) else 2**56


@pytest.mark.parametrize(("claimed", "verdict"), [(3.0, "refuted up to rounding"), (2.5, "refuted")])
def test_exact_fractions_tell_rounding_from_a_breach_that_rounding_hides(claimed, verdict):
    """Near 2^56 the spacing of floats is 16: a row moves the value by 0 or 16, and in truth by 3."""
    report = check_sensitivity(counts_of_huge, claimed=claimed, rows="valid", bounds=(0.0, 1.0))
    assert report.verdict == verdict
    assert report.distance == 16.0
    assert "fractions" in report.why


def test_what_takes_neither_fractions_nor_longer_floats_is_left_open():
    def query(x):
        return np.float64(2.0**56) + np.float64(np.clip(np.nan_to_num(x), 0, 1).sum())

    report = check_sensitivity(query, claimed=1.0)
    assert report.verdict == "refuted up to rounding"
    assert "open" in report.why


def test_cancellation_of_large_numbers_is_rounding_by_exact_arithmetic():
    """The sum of squares around 2^27 minus its own large part: intermediate numbers are far larger than the value."""

    def query(x):
        shifted = np.clip(x, 0, 1) * 3 + 2**27
        return ((shifted * shifted) * 2**14 - (shifted * shifted) * (2**14 - 1)).sum() - (shifted * shifted).sum()

    report = check_sensitivity(query, claimed=1.0, rows="valid", bounds=(0.0, 1.0))
    assert report.verdict != "refuted"  # in fractions it is 0 on all data


def test_a_ratio_just_above_one_is_printed_with_its_digits():
    report = check_sensitivity(lambda x: clean(x).sum(), claimed=1.0 - 1e-12, tolerance=0.0)
    assert report.verdict == "refuted"  # fractions say so, though floats are as far off
    assert "1.000000000001 times it" in str(report)


# -------------------------------------------------------------------------------------------------- what was left out


def test_what_the_search_left_out_is_named():
    found = check_sensitivity(lambda x: clean(x).sum(), claimed=1.0, data=np.linspace(0, 1, 500), evaluations=50)
    assert any("500 rows that were given, 100 were looked at" in words for words in found.left_out)
    assert any("evaluations=50 was used up" in words for words in found.left_out)
    assert "not looked at: " in str(found)
    everything = check_sensitivity(lambda x: clean(x).sum(), claimed=1.0, evaluations=10**6)
    assert everything.left_out == ()


def test_a_slow_query_is_searched_for_as_long_as_is_said(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(pair_search, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def slow(x):
        clock[0] += 2e-3
        return clean(x).sum()

    found = check_sensitivity(slow, claimed=1.0, seconds=0.2)
    assert 0.2 < clock[0] < 0.3
    assert any("seconds=0.2 was used up" in words for words in found.left_out)
    with pytest.raises(InvalidParameter, match="seconds"):
        check_sensitivity(slow, claimed=1.0, seconds=0.0)
