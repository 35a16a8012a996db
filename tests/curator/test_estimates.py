"""Means and quantiles from releases: formulas, clamps, and error and bias against exact expectations."""

import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Categorical, Ledger, Numeric, PrivacyUnit, Schema
from ledgerwood.curator import Curator, mean_of_moments, mean_of_sum_and_count, quantiles_of_histogram
from ledgerwood.curator.queries.columns.statistics import ColumnCount, ColumnHistogram, ColumnMoments, ColumnSum
from ledgerwood.curator.release import Release
from ledgerwood.curator.tables.columns import ColumnTable
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.mechanisms import (
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    GaussianMechanism,
    Grid,
    LaplaceMechanism,
    SeededRandom,
)

A = Adjacency.ADD_REMOVE
AGE = Numeric("age", 17.0, 90.0)
SCHEMA = Schema(features=(AGE,))
MOMENTS, SUM, COUNT = ColumnMoments(column=AGE), ColumnSum(column=AGE, origin=0.0), ColumnCount(column=AGE)


def released(value, grid):
    return Release(value=np.array(value, dtype=np.int64), grid=grid, receipt=None, randomness="test")


def moments(count, total):
    return released([count, round(total / MOMENTS.grid.steps[1])], MOMENTS.grid)


@pytest.mark.parametrize(
    ("count", "total", "mean"),
    [
        (100, 50.0, 54.0),
        (100, 0.0, 53.5),
        (100, -1e5, 17.0),  # below the bounds
        (100, 1e5, 90.0),
        (1, 4.0, 57.5),
        (0, 4.0, 57.5),  # fewer than one row are taken as one
        (-30, 4.0, 57.5),
        (-30, -4e9, 17.0),
    ],
)
def test_the_mean_of_moments(count, total, mean):
    assert mean_of_moments(moments(count, total), MOMENTS) == pytest.approx(mean, abs=1e-4)
    plain = released([round((total + 53.5 * count) / SUM.grid.steps[0])], SUM.grid)
    if count > 0:
        of_two = mean_of_sum_and_count(plain, released([count], COUNT.grid), SUM)
        assert of_two == pytest.approx(mean, abs=1e-4)
        assert mean_of_sum_and_count(plain, count, SUM) == of_two


def rounds(queries, source, ages):
    """One draw of all (query, mechanism) pairs, again and again, over the same rows."""
    table = ColumnTable.from_data(ages[:, np.newaxis], SCHEMA)
    event = lw.Composed(tuple(mechanism.event(query.sensitivity(A), A) for query, mechanism in queries))
    whole = lw.PoissonSampled(lw.Repeated(event, count=2000), sampling_rate=1.0)
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=A), unit=PrivacyUnit.ROW)
    curator = Curator(table, ledger.grant(whole, purpose="tests"), source)
    with curator.open(whole, purpose="tests") as round_:
        for _ in range(2000):
            yield [round_.release(query, mechanism, purpose="mean") for query, mechanism in queries]


AGES = np.array([20.0] * 30 + [30.0] * 70)
MEAN = 27.0


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_the_joint_mean_has_the_error_and_the_bias_that_are_stated():
    count_noise, sum_noise = 8.0, 60.0
    mechanism = EllipticalGaussianMechanism(stddevs=(count_noise, sum_noise))
    found = np.array(
        [mean_of_moments(one, MOMENTS) for (one,) in rounds([(MOMENTS, mechanism)], SeededRandom(2), AGES)]
    )
    # docs/explanation/queries.md#column-means, with d = the mean's distance from the middle of the bounds.
    d = MEAN - 53.5
    stddev = math.hypot(sum_noise, d * count_noise) / 100
    bias = d * count_noise**2 / 100**2
    assert found.std() == pytest.approx(stddev, rel=0.1)
    assert found.mean() - MEAN == pytest.approx(bias, abs=4 * stddev / math.sqrt(2000))


@pytest.mark.slow  # its law is estimated from draws
@pytest.mark.parametrize("counting", [DiscreteLaplaceMechanism(scale=2.0), GaussianMechanism(stddev=2.0 * 2**0.5)])
def test_the_mean_of_two_releases(counting):
    query = ColumnSum(column=AGE)
    summing = LaplaceMechanism(scales=(40.0,))
    found = np.array(
        [
            mean_of_sum_and_count(total, count, query)
            for total, count in rounds([(query, summing), (COUNT, counting)], SeededRandom(3), AGES)
        ]
    )
    stddev = math.hypot(40.0, (MEAN - 53.5) * 2.0) * math.sqrt(2) / 100
    assert found.std() == pytest.approx(stddev, rel=0.15)
    assert found.mean() == pytest.approx(MEAN, abs=5 * stddev / math.sqrt(2000))


def test_the_division_of_noise_that_is_recommended_is_the_best_of_its_price():
    """Least error of a mean a share t of half the width from the middle, among noises of one multiplier."""
    half, multiplier, t = 36.5, 3.0, 0.5
    best = (multiplier * math.sqrt((1 + t) / t), multiplier * half * math.sqrt(1 + t))
    event = EllipticalGaussianMechanism(stddevs=best).event(MOMENTS.sensitivity(A), A)
    scaled = lw.price(event).epsilon(1e-6)
    assert scaled == pytest.approx(lw.price(lw.GaussianEvent(noise_multiplier=multiplier, adjacency=A)).epsilon(1e-6))
    error = math.hypot(best[1], t * half * best[0])
    assert error == pytest.approx(multiplier * half * (1 + t))
    for share in np.linspace(0.01, 0.99, 99):
        count_noise, sum_noise = multiplier / math.sqrt(share), multiplier * half / math.sqrt(1 - share)
        assert math.hypot(sum_noise, t * half * count_noise) >= error * (1 - 1e-12)


def test_a_release_of_something_else_is_refused():
    with pytest.raises(InvalidParameter, match=r"release has shape \(1,\)"):
        mean_of_moments(released([5], SUM.grid), MOMENTS)
    with pytest.raises(InvalidParameter, match="total has shape"):
        mean_of_sum_and_count(moments(3, 1.0), released([5], COUNT.grid), SUM)
    with pytest.raises(InvalidParameter, match="on Grid"):
        mean_of_sum_and_count(released([5], Grid(exponents=(-20,))), released([5], COUNT.grid), SUM)
    with pytest.raises(InvalidParameter, match="count has shape"):
        mean_of_sum_and_count(released([5], SUM.grid), released([5, 5], Grid(exponents=(0, 0))), SUM)
    for count in (0, -1, 2.5, True):
        with pytest.raises(InvalidParameter, match="count="):
            mean_of_sum_and_count(released([5], SUM.grid), count, SUM)


UNIT = Numeric("unit", 0.0, 4.0)
FOUR = ColumnHistogram.even(UNIT, 4)


@pytest.mark.parametrize(
    ("counts", "quantiles", "found"),
    [
        ((10, 10, 10, 10, 99), (0.25, 0.5, 0.6), (1.0, 2.0, 2.4)),  # missing rows are not among the values
        ((0, 0, 8, 0, 0), (0.25, 0.5, 0.75), (2.25, 2.5, 2.75)),
        ((5, 0, 0, 5, 0), (0.5, 0.75), (1.0, 3.5)),
        ((0, 0, 0, 0, 0), (0.5, 0.75), (2.0, 3.0)),  # nothing is known: even over the range
        ((-3, -3, -3, 2, 0), (0.5,), (2.0,)),  # a total below 0 is no more
        ((10, -4, 4, 10, 0), (0.25, 0.5, 0.75), (0.625, 3.0, 3.5)),  # 10, 6, 10, 20 rows below become 8, 8, 10, 20
        ((-5, 5, 20, 0, 0), (0.5,), (2.5,)),
    ],
)
def test_quantiles_of_a_histogram(counts, quantiles, found):
    release = released([[count] for count in counts], FOUR.grid)
    assert quantiles_of_histogram(release, FOUR, quantiles) == pytest.approx(found)


def test_noisy_quantiles_rise_and_have_the_error_that_is_stated():
    generator = np.random.default_rng(5)
    cells, n, scale = 64, 20_000, 10.0
    query = ColumnHistogram.even(UNIT, cells)
    truth = np.array([n // cells] * cells + [0])
    shares = tuple(i / 10 for i in range(1, 10))
    errors = []
    for _ in range(200):
        noisy = truth + np.rint(generator.laplace(0, scale, cells + 1)).astype(np.int64)
        found = quantiles_of_histogram(released(noisy[:, np.newaxis], query.grid), query, shares)
        assert list(found) == sorted(found)
        assert found[0] > 0.0
        assert found[-1] < 4.0
        errors.append(np.array(found) / 4.0 - shares)
    spread = np.sqrt(2) * scale * np.sqrt([q * (1 - q) * cells for q in shares]) / n
    np.testing.assert_allclose(np.std(errors, axis=0), spread, rtol=0.25)
    assert (np.abs(np.mean(errors, axis=0)) < 5 * spread / np.sqrt(200)).all()


def test_quantiles_of_something_else_are_refused():
    sex = ColumnHistogram(column=Categorical("sex", ("M", "F")))
    good = released([[1]] * 5, FOUR.grid)
    with pytest.raises(SchemaError, match="categorical"):
        quantiles_of_histogram(released([[1]] * 4, sex.grid), sex, (0.5,))
    for other in (released([1] * 5, FOUR.grid), released([[1]] * 4, FOUR.grid), released([[1]] * 5, SUM.grid)):
        with pytest.raises(InvalidParameter, match="not that of the histogram"):
            quantiles_of_histogram(other, FOUR, (0.5,))
    for quantile in (0.0, 1.0, math.nan, "half"):
        with pytest.raises(InvalidParameter, match="quantiles"):
            quantiles_of_histogram(good, FOUR, (quantile,))
