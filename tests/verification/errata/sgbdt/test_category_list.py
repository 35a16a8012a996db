import math
from fractions import Fraction

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.errata.sgbdt.category_list import CategoryList


@pytest.mark.parametrize("epsilon", [0.0, 0.2, math.log(1.5), 1.0, 50.0])
def test_the_loss_by_enumeration(epsilon):
    p, q, factor = [Fraction(1, 3)] * 3, [Fraction(1, 2)] * 2 + [Fraction(0)], Fraction(math.exp(epsilon))
    both = (
        sum(max(a - factor * b, 0) for a, b in zip(first, second, strict=True)) for first, second in ((p, q), (q, p))
    )
    assert CategoryList().delta(epsilon) == pytest.approx(float(max(both)), rel=1e-12)


def test_the_librarys_categories_are_declared(public_part):
    schema = lw.Schema(features=(lw.Categorical("sex", ("M", "F", "I")),), target=lw.Numeric("rings", 1.0, 29.0))
    names = np.array(["M", "F", "I"], dtype=object)
    models = []
    for codes in CategoryList().pair:
        X = names[codes.astype(int)][:, None]
        models.append(
            public_part(
                SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=20, random_state=1), X, np.full(codes.size, 9.0)
            )
        )
    assert models[0] == models[1]
