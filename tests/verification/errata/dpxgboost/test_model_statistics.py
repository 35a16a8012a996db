import pytest

import ledgerwood as lw
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.errata.dpxgboost.model_statistics import ModelStatistics


def test_the_output_is_the_exact_weight_and_value():
    outputs = [ModelStatistics().output(rows) for rows in ModelStatistics().pair]
    assert outputs[0] == pytest.approx((3.0, -0.25 / 3.1))
    assert outputs[1] == pytest.approx((2.0, 0.25 / 2.1))


def test_the_librarys_model_holds_released_values_only(public_part):
    schema = lw.Schema.uniform(-1.0, 1.0, target=lw.Numeric("y", -1.0, 1.0))
    models = [
        public_part(SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=5, random_state=1), rows[:, None], rows)
        for rows in ModelStatistics().pair
    ]
    assert models[0] == models[1]
    assert models[0][1] == ["initial_score", "values"]
