import numpy as np

import ledgerwood as lw
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.errata.dpboost.leaf_wise_growth import LeafWiseGrowth


def test_one_row_moves_the_next_split():
    specimen = LeafWiseGrowth()
    assert [specimen.output(rows) for rows in specimen.pair] == [(1.0,), (0.0,)]
    # Two against two rows of 1 and -1 apart gain 1 / 1.1 each; one more of 1 on its side: 4 / 2.1 + 1 / 1.1 - 1 / 3.1.
    assert 4 / 2.1 + 1 / 1.1 - 1 / 3.1 > 2 / 1.1


def test_the_librarys_trees_split_every_node_of_a_level(public_part):
    schema = lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("y", -1.0, 1.0))
    models = [
        public_part(
            SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=3, max_depth=3, random_state=1),
            rows[:, :2],
            rows[:, 2],
        )
        for rows in LeafWiseGrowth().pair
    ]
    assert models[0] == models[1]
    assert np.shape(models[0][0]["feature"]) == (3, 7)
