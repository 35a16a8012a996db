import ledgerwood as lw
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.errata.dpboost.label_scaling import LabelScaling


def test_one_row_moves_an_end():
    assert [LabelScaling().output(rows) for rows in LabelScaling().pair] == [(1.0, 29.0), (1.0, 9.0)]


def test_the_librarys_range_is_declared(public_part):
    schema = lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("rings", 1.0, 29.0))
    models = [
        public_part(
            SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=3, random_state=1), rows[:, None] / 29.0, rows
        )
        for rows in LabelScaling().pair
    ]
    assert models[0] == models[1]
