import pytest

import ledgerwood as lw
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.trainers.parts.initial_scores import InitialScore
from ledgerwood.verification.errata.dpboost.boost_from_average import BoostFromAverage


def test_one_row_moves_the_mean():
    outputs = [BoostFromAverage().output(rows)[0] for rows in BoostFromAverage().pair]
    assert outputs == pytest.approx([0.5 / 3, -0.25])


def test_the_librarys_initial_score_is_released_with_noise_and_paid_for():
    score = InitialScore(kind="moments", adjacency=lw.Adjacency.ADD_REMOVE, multiplier=4.0, expected_rows=None)
    assert all(lw.price(event).delta(0.1) > 0.0 for event in score.events)
    schema = lw.Schema.uniform(-1.0, 1.0, target=lw.Numeric("y", -1.0, 1.0))
    rows = BoostFromAverage().pair[0]
    found = {
        float(
            SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=2).fit(rows[:, None], rows).ensemble_.initial_score
        )
        for _ in range(3)
    }
    assert len(found) == 3
