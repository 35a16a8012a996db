"""Fits on rows of a Dask cluster: the same models as in memory, bit for bit, for any number of workers."""

import dataclasses

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Ledger, Numeric, PrivacyUnit
from ledgerwood.curator import LeafMoments
from ledgerwood.curator.places import cluster as places
from ledgerwood.curator.places import worker
from ledgerwood.curator.places.connections import require_private
from ledgerwood.curator.places.messages import KnownValues, SessionSecret, SharedValues, code_digest
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, PrivacyError, RoundViolation, SchemaError
from ledgerwood.trainers import (
    DPBoostClassifier,
    PrivateBoostingClassifier,
    PrivateSearch,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
    private_cross_validate,
)

from .place_rows import FEATURES, MATRIX, NAMES, ROWS, SMALL, SYSTEMS, TARGETS, model_of, told

# Of the extra "dask", which "dev" has: an older environment leaves these tests out, and says so.
distributed, dd, da = (pytest.importorskip(name) for name in ("distributed", "dask.dataframe", "dask.array"))

REFUSED = {(DPBoostClassifier, preset): "LeafRatios are ratios" for preset in ("paper", "para", "seq", "np")}
REFUSED[DPBoostClassifier, "enhanced"] = "GridlessGains is not a sum"


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs="ERROR"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def frame(client):
    return dd.from_pandas(ROWS, npartitions=7)


def same_everywhere(model, frame, label="two", weight=None, **more):
    weights = {} if weight is None else {"sample_weight": ROWS[weight]}
    expected = told(model.fit(ROWS[NAMES], ROWS[label], **weights))
    lazy = {} if weight is None else {"sample_weight": frame[weight]}
    assert told(model.fit(frame[NAMES], frame[label], **lazy, **more)) == expected


@pytest.mark.slow_after(2)  # a fit of each system and preset
@pytest.mark.parametrize(("kind", "preset"), MATRIX, ids=str)
def test_the_same_seed_gives_the_same_model(kind, preset, frame):
    model = model_of(kind, preset=preset, **SMALL.get(kind, {"n_estimators": 3, "max_depth": 3}))
    if (kind, preset) not in REFUSED:
        same_everywhere(model, frame)
        return
    ledger = Ledger(model.budget, unit=PrivacyUnit.ROW)
    with pytest.raises(RoundViolation, match=REFUSED[kind, preset] + ".*Nothing was spent"):
        model.fit(frame[NAMES], frame["two"], ledger)
    assert ledger.spent().epsilon == 0.0


@pytest.mark.slow  # two clusters, and a fit of each system
@pytest.mark.parametrize("workers", [1, 4])
def test_any_number_of_workers(workers):
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs="ERROR"
        ) as cluster,
        distributed.Client(cluster),
    ):
        for kind in SYSTEMS:
            model = model_of(kind, **SMALL.get(kind, {"n_estimators": 3, "max_depth": 3}))
            same_everywhere(model, dd.from_pandas(ROWS, npartitions=9))


@pytest.mark.parametrize("label", ["number", "three"])
def test_numbers_several_classes_weights_and_samples(label, frame):
    kind = SGBDTRegressor if label == "number" else SGBDTClassifier
    model = model_of(kind, label, 1.0, n_estimators=3 if label == "number" else 6, max_depth=2, subsample=0.5)
    same_everywhere(model, frame, label, "weight")


def test_an_allocation_of_rows_to_trees(frame):
    same_everywhere(model_of(n_estimators=4, max_depth=2, subsample=0.5, sampling="allocation"), frame)


@pytest.mark.slow_after(1)  # fits on a cluster
@pytest.mark.parametrize(("kind", "label"), [(PrivateBoostingClassifier, "three"), (SGBDTClassifier, "two")])
def test_weights_of_classes(kind, label, frame):
    model = model_of(kind, label, n_estimators=3, max_depth=2)
    target = dataclasses.replace(TARGETS[label], weights=(1.0, 5.0, 2.5)[: len(TARGETS[label].categories)])
    model.schema = dataclasses.replace(model.schema, target=target)
    same_everywhere(model, frame, label)


@pytest.mark.slow  # a private search, twice
def test_groups_of_rows_the_individual_filter_and_a_private_search(frame, client):
    same_everywhere(
        model_of(DPBoostClassifier, n_estimators=5, max_depth=2, trees_per_ensemble=3), frame, client=client
    )
    same_everywhere(model_of(n_estimators=4, max_depth=2, filter="gdp"), frame)
    candidates = [{"n_estimators": 2, "max_depth": 2}, {"n_estimators": 3, "max_depth": 1}]
    schema = lw.Schema(features=FEATURES, target=TARGETS["two"])
    search = PrivateSearch(
        SGBDTClassifier(), candidates, mean_runs=2.0, epsilon=5.0, delta=1e-4, schema=schema, random_state=3
    )
    same_everywhere(search, frame)


@pytest.mark.parametrize("label", ["number", "two"])
def test_estimated_schemas(label, frame):
    kind = SGBDTRegressor if label == "number" else SGBDTClassifier
    model = model_of(kind, label, epsilon=50.0, n_estimators=3, max_depth=2)
    model.schema = None
    same_everywhere(model, frame, label)
    assert model.schema_.features[0].name == "size"


def test_arrays_of_any_chunks(client):
    X = np.random.default_rng(20).random((200, 4))
    y = X[:, 0]
    model = SGBDTRegressor(
        schema=lw.Schema.uniform(0, 1, target=Numeric("y", 0, 1)), epsilon=5.0, random_state=1, n_estimators=3
    )
    expected, predicted = told(model.fit(X, y)), model.predict(X)
    for chunks, own in (((50, 4), 50), ((50, 2), 70), ((200, 4), 200), ((np.r_[0, 120, 80].tolist(), 4), 50)):
        lazy = da.from_array(X, chunks=chunks)
        assert told(model.fit(lazy, da.from_array(y, chunks=own))) == expected
        np.testing.assert_array_equal(model.predict(lazy).compute(), predicted)


def test_predictions_are_collections(frame):
    model = model_of(n_estimators=3, max_depth=2).fit(frame[NAMES], frame["two"])
    X = ROWS[NAMES]
    labels, likely = model.predict(frame[NAMES]), model.predict_proba(frame[NAMES])
    assert labels.npartitions == frame.npartitions
    assert labels.compute().tolist() == model.predict(X).tolist()
    assert labels.compute().index.tolist() == ROWS.index.tolist()
    np.testing.assert_array_equal(likely.compute(), model.predict_proba(X))
    np.testing.assert_array_equal(model.decision_function(frame[NAMES]).compute(), model.decision_function(X))
    tree = model_of(PrivaTreeClassifier, max_depth=2).fit(frame[NAMES], frame["two"])
    assert tree.predict(frame[NAMES]).compute().tolist() == tree.predict(X).tolist()


def test_secure_randomness_gives_a_model_and_says_where_sums_were(frame):
    model = model_of(random_state=None, n_estimators=2, max_depth=2, subsample=0.5).fit(frame[NAMES], frame["two"])
    assert model.privacy_.epsilon <= 5.0
    assert any("Dask cluster" in each for each in model.privacy_.assumptions)


REFUSALS = [
    (SchemaError, "y is a Series, and rows on a cluster", lambda frame: (frame[NAMES], ROWS["two"], {})),
    (SchemaError, "y has 3 partitions", lambda frame: (frame[NAMES], frame["two"].repartition(npartitions=3), {})),
    (SchemaError, "kind", lambda frame: (frame[["size", "age"]], frame["two"], {})),
    (InvalidParameter, "scratch", lambda frame: (frame[NAMES], frame["two"], {"scratch": "somewhere"})),
    (InvalidParameter, "distributed.Client", lambda frame: (frame[NAMES], frame["two"], {"client": "me"})),
    (InvalidParameter, "client", lambda _: (ROWS[NAMES], ROWS["two"], {"client": "me"})),
]


@pytest.mark.parametrize(("kind", "says", "given"), REFUSALS)
def test_what_is_refused_spends_nothing(kind, says, given, frame):
    model = model_of(n_estimators=2, max_depth=2)
    ledger = Ledger(model.budget, unit=PrivacyUnit.ROW)
    X, y, more = given(frame)
    with pytest.raises(kind, match=says):
        model.fit(X, y, ledger, **more)
    assert ledger.spent().epsilon == 0.0


def test_collections_are_not_computed_where_rows_in_memory_are_needed(frame):
    model = model_of(n_estimators=2, max_depth=2)
    with pytest.raises(SchemaError, match="in no folds"):
        private_cross_validate(model, frame[NAMES], frame["two"])
    with pytest.raises(SchemaError, match="leave the workers"):
        model.partial_fit(frame[NAMES], frame["two"], keys=ROWS["age"])
    assert "Dask collection" in model.schema.check(frame[NAMES], frame["two"]).misfits[0]
    static = model_of(SGBDTClassifier, leaf_noise="static", reg_lambda=1.0, n_estimators=2, max_depth=2)
    with pytest.raises(RoundViolation, match=r"LeafRatios are ratios.*Nothing was spent"):
        static.fit(frame[NAMES], frame["two"])


def test_a_row_enters_once_whatever_is_asked_twice(frame, client, monkeypatch):
    """An answer that comes twice, or to another question, is no part of a sum."""
    seen = []
    plain = places.ClusterSession._summed

    def doubled(self, answers, question):
        seen.append(question.number)
        return plain(self, [*answers, answers[0]] if question.number == 2 else answers, question)

    monkeypatch.setattr(places.ClusterSession, "_summed", doubled)
    model = model_of(n_estimators=3, max_depth=2)
    with pytest.raises(RoundViolation, match="has entered this sum"):
        model.fit(frame[NAMES], frame["two"])
    assert seen == [1, 2]


@pytest.mark.parametrize("address", ["tcp://10.1.2.3:8786", "tcp://host.example:1", "ucx://8.8.8.8:1"])
def test_connections_that_others_can_listen_to_are_refused(address):
    class Told:
        def __init__(self, scheduler, workers):
            self.scheduler, self.workers = self, workers
            self.address = scheduler

        def scheduler_info(self, n_workers):
            return {"workers": dict.fromkeys(self.workers)}

    home = "tcp://127.0.0.1:1"
    require_private(Told(home, ["tcp://[::1]:4", "tls://10.1.2.3:4", "inproc://10.0.0.1/1/2"]))
    for scheduler, workers in ((address, [home]), (home, [home, address])):
        with pytest.raises(PrivacyError, match="others can listen to"):
            require_private(Told(scheduler, workers))


def test_shared_values_travel_once_and_stay_the_same_objects():
    structure = TreeStructure(
        feature=np.zeros(1, dtype=np.int32), split=np.ones(1, dtype=np.uint16), equals=np.zeros(1, dtype=np.bool_)
    )
    tree, statistic = Tree(structure=structure, values=np.array([1.0, 2.0])), LeafMoments(loss="squared", clip=1.0)
    shared, known = SharedValues(), KnownValues()
    first = shared.packed(statistic.of(structure, Ensemble(initial_score=0.0, trees=(tree,))))
    before = len(shared.pickles)
    second = shared.packed(statistic.of(structure, Ensemble(initial_score=0.0, trees=(tree, tree))))
    assert len(shared.pickles) == before + 1  # the longer ensemble
    assert not known.learn(before, shared.pickles[before:])
    assert known.learn(0, shared.pickles[:before])
    one = known.unpacked(first)
    assert known.learn(before, shared.pickles[before:])
    assert known.learn(0, shared.pickles)  # told again, after a loss
    other = known.unpacked(second)
    assert other.structure is one.structure
    assert other.ensemble is not one.ensemble
    assert other.ensemble.extends(one.ensemble)
    assert other.ensemble.trees[1].values.tolist() == [1.0, 2.0]


def test_a_workers_log_shows_no_secret_and_a_worker_with_other_code_says_so():
    secret = SessionSecret(bytes(range(65, 97)))
    assert "ABC" not in repr(secret) + str(secret) + f"{(secret,)}"
    assert "another version" in worker.open_session("a", secret, "of other code", ())
    assert worker.open_session("a", secret, code_digest(), ()) == ""
    worker.close_session("a")
