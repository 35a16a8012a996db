import numpy as np

import ledgerwood as lw
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.errata.dpboost.min_data_in_leaf import MinDataInLeaf


def test_one_row_decides_on_the_split():
    assert [MinDataInLeaf().output(rows) for rows in MinDataInLeaf().pair] == [(1.0,), (0.0,)]
    assert [len(rows) for rows in MinDataInLeaf().pair] == [40, 39]


def test_the_librarys_trees_are_complete(public_part):
    schema = lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("y", -1.0, 1.0))
    models = [
        public_part(SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=3, random_state=1), rows[:, None], rows)
        for rows in (*MinDataInLeaf().pair, np.zeros(1))
    ]
    assert models[0] == models[1] == models[2]
