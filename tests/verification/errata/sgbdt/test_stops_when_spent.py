from fractions import Fraction

import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.errata.sgbdt.stops_when_spent import StopsWhenSpent


def extra_trees(specimen, dataset):
    """The extra rounds in whole fractions, row by row."""
    share = Fraction(str(specimen.count_share))
    prices = [share + (1 - share) * Fraction(g) ** 2 for g in dataset]
    spent = [specimen.trees * price for price in prices]
    grown = 0
    while grown < specimen.extra_trees:
        active = [k for k, price in enumerate(prices) if spent[k] + price <= specimen.trees]
        if not active:
            return grown
        for k in active:
            spent[k] += prices[k]
        grown += 1
    return grown


@pytest.mark.parametrize("trees", [10, 150])
@pytest.mark.parametrize("extra", [1, 100, 1000])
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_the_number_of_trees_by_exact_arithmetic(trees, extra, share):
    specimen = StopsWhenSpent(trees=trees, extra_trees=extra, count_share=share)
    outputs = [specimen.output(dataset) for dataset in specimen.pair]
    assert outputs == [(float(extra_trees(specimen, dataset)),) for dataset in specimen.pair]
    assert outputs[0][0] > 0.0 == outputs[1][0]


@pytest.mark.parametrize("wrong", [{"trees": 0}, {"extra_trees": 0}, {"count_share": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        StopsWhenSpent(**wrong)


def test_the_librarys_number_of_trees_is_the_plans(public_part):
    schema = lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("y", -1.0, 1.0))
    for labels in StopsWhenSpent().pair:
        estimator = SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=6, random_state=1)
        shown, *_ = public_part(estimator, labels[:, None] * 0.5, labels)
        assert len(shown["feature"]) == 6
