import numpy as np

import ledgerwood as lw
from ledgerwood.mechanisms.choices.gridless import NumericCandidates
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.errata.dpboost.quantile_bins import QuantileBins


def test_one_row_moves_the_border():
    assert [QuantileBins().output(rows) for rows in QuantileBins().pair] == [(3.0,), (2.0,)]


def test_the_librarys_thresholds_are_a_public_grid(public_part):
    schema = lw.Schema.uniform(0.0, 8.0, target=lw.Numeric("y", 0.0, 8.0))
    models = [
        public_part(SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=5, random_state=1), rows[:, None], rows)
        for rows in QuantileBins().pair
    ]
    assert models[0] == models[1]


def test_a_choice_between_all_points_has_the_same_points_on_both_data_sets():
    held = []
    for rows in QuantileBins().pair:
        candidates = NumericCandidates(
            positions=np.sort(rows.astype(np.int64)), points=10, utilities=np.zeros(rows.size + 1, dtype=np.int64)
        )
        starts, sizes, _ = candidates.cells()
        held.append(np.concatenate([np.arange(s, s + k) for s, k in zip(starts, sizes, strict=True)]).tolist())
    assert held[0] == held[1] == list(range(10))
