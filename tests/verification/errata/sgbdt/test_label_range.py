import numpy as np

import ledgerwood as lw
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.errata.sgbdt.label_range import LabelRange


def test_one_row_moves_an_end():
    specimen = LabelRange()
    assert [specimen.output(dataset) for dataset in specimen.pair] == [(4.0, 29.0), (4.0, 9.0)]


def test_the_librarys_range_is_declared(public_part):
    schema = lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("rings", 1.0, 29.0))
    models = []
    for labels in LabelRange().pair:
        X = np.linspace(0.1, 0.9, labels.size)[:, None]
        models.append(
            public_part(SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=3, random_state=1), X, labels)
        )
    assert models[0] == models[1]
