"""Trees that all classes share: a fit releases the same in every place, predicts, and comes back from a file."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import get_scorer

from ledgerwood import Adjacency
from ledgerwood.accounting.costs import gdp
from ledgerwood.curator.inputs import batches as reading_batches
from ledgerwood.curator.tables import chunks
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter, UnsupportedEvent
from ledgerwood.federation.run import federate
from ledgerwood.trainers.base.outputs import unclipped_probabilities
from ledgerwood.verification import added, removed, replaced, replay, verify_ledger

from .class_trees import ClassTreesClassifier
from .place_rows import NAMES, ROWS, N, model_of, told

SIZES = (100, 3, N - 103)


def model(**more):
    return model_of(ClassTreesClassifier, "three", **more)


def fitted(**more):
    return model(**more).fit(ROWS[NAMES], ROWS["three"])


@pytest.mark.parametrize("subsample", [1.0, 0.6])
@pytest.mark.parametrize("parts", [1, 5])
def test_rows_in_files_give_the_model_of_rows_in_memory(subsample, parts, tmp_path, monkeypatch):
    pa, pq = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    monkeypatch.setattr(chunks, "PART_ROWS", -(-N // parts))
    monkeypatch.setattr(reading_batches, "BATCH_ROWS", 47)
    pq.write_table(pa.Table.from_pandas(ROWS, preserve_index=False), tmp_path / "a.parquet")
    weights = {"weight_bound": 1.0}
    expected = told(model(subsample=subsample, **weights).fit(ROWS[NAMES], ROWS["three"], sample_weight=ROWS["weight"]))
    found = model(subsample=subsample, **weights).fit(tmp_path, "three", sample_weight="weight")
    assert told(found) == expected


@pytest.mark.parametrize("more", [{}, {"subsample": 0.5}, {"noise": "skellam"}], ids=str)
def test_a_federation_gives_the_model_of_rows_in_memory(more):
    ends = np.cumsum(SIZES)[:-1]
    given = [(X, y) for X, y in zip(np.split(ROWS[NAMES], ends), np.split(ROWS["three"], ends), strict=True)]
    central, found = fitted(**more), federate(model(**more), given, engine="process")
    assert told(found)[:3] == told(central)[:3]


def test_clients_add_skellam_noise_of_their_own_and_gaussian_noise_is_refused():
    ends = np.cumsum(SIZES)[:-1]
    given = [(X, y) for X, y in zip(np.split(ROWS[NAMES], ends), np.split(ROWS["three"], ends), strict=True)]
    found = federate(model(noise="skellam", random_state=None), given, "clients", engine="process")
    assert found.ensemble_.n_classes == 3
    assert found.privacy_.epsilon <= 5.0
    with pytest.raises(UnsupportedEvent, match="clients cannot add shares of the noise of EllipticalGaussianEvent"):
        federate(model(random_state=None), given, "clients", engine="process")


@pytest.mark.slow  # a cluster starts
def test_a_cluster_gives_the_model_of_rows_in_memory():
    distributed, dd = (pytest.importorskip(name) for name in ("distributed", "dask.dataframe"))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs="ERROR"
        ) as cluster,
        distributed.Client(cluster),
    ):
        frame = dd.from_pandas(ROWS, npartitions=7)
        for more in ({}, {"subsample": 0.5}):
            assert told(model(**more).fit(frame[NAMES], frame["three"])) == told(fitted(**more))


def test_a_model_predicts_by_the_softmax_of_its_scores_and_comes_back(tmp_path):
    found = fitted(n_estimators=12, epsilon=1e4)
    scores, probabilities = found.decision_function(ROWS[NAMES]), found.predict_proba(ROWS[NAMES])
    assert scores.shape == probabilities.shape == (N, 3)
    at_rest = unclipped_probabilities(softmax(scores, axis=1), clip=0.9)
    assert probabilities == pytest.approx(at_rest, rel=1e-12)
    assert (found.predict(ROWS[NAMES]) == found.classes_[scores.argmax(axis=1)]).all()
    assert (found.predict(ROWS[NAMES]) == ROWS["three"]).mean() > 0.7  # half of the rows are of one class
    assert found.feature_importances_.sum() == pytest.approx(1.0)
    found.save(tmp_path / "model")
    again = ClassTreesClassifier.load(tmp_path / "model")
    assert again.decision_function(ROWS[NAMES]).tobytes() == scores.tobytes()
    assert verify_ledger(again.ledger_, head=again.privacy_.ledger_head).grants == 1


def test_of_two_classes_the_decision_is_one_number_a_row_as_scikit_learn_has_it():
    found = model_of(ClassTreesClassifier, "two", n_estimators=12, epsilon=1e4).fit(ROWS[NAMES], ROWS["two"])
    assert found.ensemble_.n_classes == 2
    scores, probabilities = found.decision_function(ROWS[NAMES]), found.predict_proba(ROWS[NAMES])
    both = found.ensemble_.scores(found._cells(ROWS[NAMES]))
    np.testing.assert_allclose(scores, both[:, 1] - both[:, 0], rtol=1e-12)
    assert probabilities == pytest.approx(unclipped_probabilities(softmax(both, axis=1), clip=0.9), rel=1e-12)
    assert (found.predict(ROWS[NAMES]) == found.classes_[probabilities.argmax(axis=1)]).all()
    assert get_scorer("roc_auc")(found, ROWS[NAMES], ROWS["two"]) > 0.7


def test_a_loaded_model_of_other_classes_is_refused(tmp_path):
    found = fitted()
    found.ensemble_ = Ensemble.of_classes((0.0,) * 4)
    found.save(tmp_path / "model")
    with pytest.raises(InvalidParameter, match="trees of 4 classes, for a target of 3"):
        ClassTreesClassifier.load(tmp_path / "model")


def test_the_cost_is_that_of_a_gaussian_pair_for_any_number_of_classes():
    plans = {
        label: model_of(ClassTreesClassifier, label, n_estimators=9).fit(ROWS[NAMES], ROWS[label]).plan_
        for label in ("two", "three")
    }
    assert plans["two"].event == plans["three"].event
    mu = plans["three"].event.mu()
    assert mu == pytest.approx(3.0 / plans["three"].noise_multiplier, rel=1e-12)
    assert mu <= gdp.mu(5.0, 1e-4) * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE])
def test_a_replay_finds_every_release_within_what_it_paid_for(adjacency):
    data = (ROWS[NAMES].to_numpy(dtype=object)[:60], ROWS["three"].to_numpy(dtype=object)[:60])
    row = ([0.99, 88, "v"], "h")
    pairs = (
        [replaced(data, 4, *row), replaced(data, 7, data[0][9].tolist(), "no")]
        if adjacency is Adjacency.REPLACE_ONE
        else [added(data, *row), removed(data, 4)]
    )
    for neighbour in pairs:
        found = replay(lambda rows: model(n_estimators=3, adjacency=adjacency).fit(*rows), data, neighbour)
        assert found.ok, found
        assert 0.0 < found.largest_share <= 1.0
