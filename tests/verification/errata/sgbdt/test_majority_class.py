import numpy as np

import ledgerwood as lw
from ledgerwood.trainers import SGBDTClassifier
from ledgerwood.verification.errata.sgbdt.majority_class import MajorityClass


def test_one_row_exchanges_the_names():
    specimen = MajorityClass()
    assert [specimen.output(dataset) for dataset in specimen.pair] == [(1.0,), (0.0,)]


def test_the_librarys_classes_are_declared(public_part):
    schema = lw.Schema.uniform(0.0, 1.0, target=lw.Categorical("class", ("no", "yes")))
    models, classes = [], []
    for labels in MajorityClass().pair:
        X = np.linspace(0.1, 0.9, labels.size)[:, None]
        estimator = SGBDTClassifier(epsilon=1.0, schema=schema, n_estimators=3, random_state=1)
        models.append(public_part(estimator, X, np.array(["no", "yes"], dtype=object)[labels.astype(int)]))
        classes.append(estimator.classes_.tolist())
    assert models[0] == models[1]
    assert classes[0] == classes[1] == ["no", "yes"]
