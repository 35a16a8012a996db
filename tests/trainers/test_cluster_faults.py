"""Fits on a cluster whose workers, files or tasks fail: the same model, or an error that says what was spent."""

import copy
import functools
import os
import pickle
import threading
import traceback

import numpy as np
import pandas as pd
import pytest

import ledgerwood as lw
from ledgerwood import Categorical, Ledger, Numeric, PrivacyUnit
from ledgerwood.curator.places import cluster as places
from ledgerwood.curator.places import worker
from ledgerwood.curator.places.messages import Absent, Answer, Drawn
from ledgerwood.curator.places.tags import row_tag
from ledgerwood.curator.tables.parts import EncodedRows
from ledgerwood.errors import FilesChanged, PrivacyError, RoundViolation, SchemaError, WorkersLost
from ledgerwood.mechanisms.exact.coins import RowCoins
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPXGBoostClassifier,
    FederatedGBDTClassifier,
    PrivaTreeClassifier,
    SGBDTClassifier,
)

# Of the extra "dask", which "dev" has: an older environment leaves these tests out, and says so.
dask, distributed, dd = (pytest.importorskip(name) for name in ("dask", "distributed", "dask.dataframe"))

N = 240
GENERATOR = np.random.default_rng(7)
ROWS = pd.DataFrame({"size": GENERATOR.uniform(0, 1, N), "kind": GENERATOR.choice(["u", "v"], N)})
ROWS["two"] = np.where(ROWS["size"] + 0.3 * (ROWS["kind"] == "u") > 0.6, "yes", "no")
NAMES = ["size", "kind"]
SCHEMA = lw.Schema(
    features=(Numeric("size", 0, 1), Categorical("kind", ("u", "v"))), target=Categorical("two", ("no", "yes"))
)
CASES = {
    "sample": (SGBDTClassifier, {"subsample": 0.5}),
    "allocation": (SGBDTClassifier, {"subsample": 0.4, "sampling": "allocation"}),
    "filter": (SGBDTClassifier, {"filter": "gdp"}),
    "filtered samples": (SGBDTClassifier, {"filter": "renyi", "subsample": 0.7}),
    "groups": (DPBoostClassifier, {"trees_per_ensemble": 2}),
    "histograms": (DPXGBoostClassifier, {}),
    "federated": (FederatedGBDTClassifier, {}),
    "counts": (PrivaTreeClassifier, {}),
}
_IN_MEMORY = {}


def model_of(case="sample", **more):
    kind, own = CASES[case]
    size = {} if kind is PrivaTreeClassifier else {"n_estimators": 3}
    return kind(**{
        "epsilon": 5.0, "delta": 1e-4, "random_state": 3, "schema": SCHEMA, "max_depth": 2, **size, **own, **more,
    })  # fmt: skip


def told(model):
    """All that a fit released and wrote down."""
    ensemble = model.ensemble_
    trees = [(tree.values.tolist(), *(each.tolist() for each in tree.structure.lowered())) for tree in ensemble.trees]
    ledger = [(type(entry).__name__, getattr(entry, "event", None)) for entry in model.ledger_.entries]
    return ensemble.initial_score, trees, ledger, model.privacy_.epsilon


def expected(case):
    if case not in _IN_MEMORY:
        _IN_MEMORY[case] = told(model_of(case).fit(ROWS[NAMES], ROWS["two"]))
    return _IN_MEMORY[case]


def frame():
    return dd.from_pandas(ROWS, npartitions=5)


def fitted(model, rows=None, **more):
    rows = frame() if rows is None else rows
    return model.fit(rows[NAMES], rows["two"], **more)


def ledger_of(model):
    return Ledger(model.budget, unit=PrivacyUnit.ROW)


def cluster_of(workers=2, *, processes=False, **more):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=processes, dashboard_address=":0", silence_logs=50, **more
    )


@pytest.fixture(scope="module")
def client():
    """Workers that are threads of this process: what fails is made to."""
    with cluster_of() as cluster, distributed.Client(cluster) as client:
        yield client


def before_question(monkeypatch, act):
    """Call act(session, number) before each question of a fit."""
    plain = places.ClusterSession.question

    def question(self, query, **more):
        act(self, self._asked + 1)
        return plain(self, query, **more)

    monkeypatch.setattr(places.ClusterSession, "question", question)


def shows(error, secret):
    """Whether a text is anywhere in an error, or in one that led to it."""
    return secret in "".join(traceback.format_exception(error))


# Tasks that run more than once, or on rows that came back from a disk.


def asked_twice(block, question):
    first = PLAIN(block, question)
    second = PLAIN(block, question)
    assert (first.number, first.parts) == (second.number, second.parts)
    np.testing.assert_array_equal(first.sums, second.sums)
    return second


def charged_twice(block, left, question):
    before = copy.deepcopy(left)
    first = PLAIN_CHARGED(block, left, question)
    second = PLAIN_CHARGED(block, before, question)
    np.testing.assert_array_equal(first[0].sums, second[0].sums)
    for mine, other in zip(first[1], second[1], strict=True):
        np.testing.assert_array_equal(mine, other)
    return second


def spilled(block, question):
    return PLAIN(pickle.loads(pickle.dumps(block)), question)


def spilled_charged(block, left, question):
    return PLAIN_CHARGED(*pickle.loads(pickle.dumps((block, left))), question)


PLAIN, PLAIN_CHARGED = worker.answered, worker.charged


@pytest.mark.parametrize("tasks", [(asked_twice, charged_twice), (spilled, spilled_charged)], ids=["twice", "spilled"])
@pytest.mark.parametrize("case", CASES)
def test_an_answer_does_not_depend_on_what_was_asked_before(case, tasks, client, monkeypatch):
    for name, task in zip(("answered", "charged"), tasks, strict=True):
        monkeypatch.setattr(worker, name, task)
    assert told(fitted(model_of(case))) == expected(case)


@pytest.mark.parametrize("case", CASES)
def test_workers_that_forget_the_session_and_rows_that_are_placed_again(case, client, monkeypatch):
    """Whatever lies beside the rows is made again: secrets, shared values, scores, samples, accounts."""

    def lose(session, number):
        if number % 3 == 1:
            client.run(worker.close_session, session.name)
        elif number % 3 == 2:  # as after a loss, in other blocks
            own = client.who_has
            monkeypatch.setattr(client, "who_has", lambda futures: {f.key: (f"w{number % 2}",) for f in futures})
            monkeypatch.setattr(client, "submit", without_homes(type(client).submit.__get__(client)))
            session._place()
            monkeypatch.setattr(client, "who_has", own)
        else:
            client.cancel(session._blocks)

    before_question(monkeypatch, lose)
    assert told(fitted(model_of(case))) == expected(case)


def without_homes(submit):
    @functools.wraps(submit)
    def anywhere(*arguments, workers=None, allow_other_workers=False, **more):
        return submit(*arguments, **more)

    return anywhere


def test_accounts_are_of_the_blocks_that_they_were_made_for():
    asked = []

    def submit(task, *arguments):
        asked.append((task.__name__, *arguments))
        return asked[-1]

    accounts, first, other = places.Accounts(), ["a", "b"], ["a b"]
    accounts.charged("one", first, submit)
    accounts.keep("one", first, ["left of a", "left of b"])
    assert accounts.charged("two", first, submit) == [
        ("charged", "a", "left of a", "two"),
        ("charged", "b", "left of b", "two"),
    ]
    (step,) = accounts.charged("two", other, submit)  # placed again, while another query was asked
    assert step == ("charged", "a b", ("accounts_of", ("charged", "a b", None, "one")), "two")


def test_an_account_is_charged_once_or_not_at_all():
    absent = Absent(worker="w")
    assert worker.charged(None, absent, None) == (absent, absent)


def test_parts_and_questions_are_not_mixed():
    def answer(number, *parts):
        return Answer(number=number, parts=parts, sums=np.ones(2, dtype=np.int64))

    assert worker.merged([answer(4, 0), answer(4, 2, 1)]).sums.tolist() == [2, 2]
    assert worker.merged([answer(4, 0), Absent(worker="w")]) == Absent(worker="w")
    with pytest.raises(RoundViolation, match="has entered this sum"):
        worker.merged([answer(4, 0, 1), answer(4, 1)])
    with pytest.raises(RoundViolation, match=r"questions \[3, 4\]"):
        worker.merged([answer(4, 0), answer(3, 1)])


def encoded():
    return EncodedRows.of(ROWS[NAMES], ROWS["two"], SCHEMA, loss="logistic", bins=16, sample_weight=None)


def test_a_sample_is_that_of_its_coins_and_not_of_its_number():
    secret = bytes(32)
    state = worker._State.__new__(worker._State)
    state.drawn, state.masks = None, []

    class Part:
        offset, n_rows = 0, N

    state.parts = [Part]
    told_of = worker._Told(secret, ())
    first, other = (Drawn(number=1, sealed=RowCoins(bytes([k]) * 32).sealed(secret, b"s 1"), rate=0.5) for k in (1, 2))
    mask = state.sampled(first, told_of, "s")[0]
    assert mask.tolist() == RowCoins(b"\1" * 32).bernoulli(0.5, 0, N).tolist()
    assert state.sampled(other, told_of, "s")[0].tolist() != mask.tolist()
    with pytest.raises(PrivacyError, match="another session's"):
        state.sampled(first, told_of, "other session")


def test_a_tag_tells_other_rows_and_nothing_else():
    rows, secret = encoded(), os.urandom(32)
    tag = row_tag(secret, 3, rows, 10, 50)
    own = EncodedRows(
        cells=rows.cells[:, 10:50].copy(order="F"), targets=None, classes=rows.classes[10:50], weights=rows.weights,
        left_out=rows.left_out[10:50],
    )  # fmt: skip
    assert row_tag(secret, 3, own, 0, 40) == tag  # wherever they lie
    assert (
        len({tag, row_tag(secret, 4, own, 0, 40), row_tag(bytes(32), 3, own, 0, 40), row_tag(secret, 3, own, 0, 39)})
        == 4
    )
    for changed in (own.cells[1], own.classes, own.left_out):
        changed[7] ^= 1
        assert row_tag(secret, 3, own, 0, 40) != tag
        changed[7] ^= 1
    assert row_tag(secret, 3, own, 0, 40) == tag


# Sources that change.


@pytest.fixture
def files(tmp_path, request):
    for number, begin in enumerate(range(0, N, 60)):
        part = ROWS[begin : begin + 60]
        part.to_parquet(tmp_path / f"{number}.parquet")
        part.to_csv(tmp_path / f"{number}.csv", index=False)
    return tmp_path


READERS = {
    "parquet": lambda folder: dd.read_parquet(folder / "*.parquet"),
    "csv": lambda folder: dd.read_csv(folder / "*.csv"),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("change", ["other rows", "gone"])
def test_a_file_that_changes_after_a_loss_is_an_error(kind, change, files, client, monkeypatch):
    rows = READERS[kind](files)
    assert told(fitted(model_of(), rows)) == expected("sample")

    def lose(session, number):
        if number != 2:
            return
        path = files / f"1.{kind}"
        path.unlink()
        if change == "other rows":  # as many
            other = ROWS[:60].assign(size=ROWS["size"][:60] / 2)
            other.to_parquet(path) if kind == "parquet" else other.to_csv(path, index=False)
        client.cancel(session._blocks)

    before_question(monkeypatch, lose)
    model = model_of()
    ledger = ledger_of(model)
    with pytest.raises(FilesChanged, match=r"1\.(parquet|csv).*What the ledger granted to this fit stays spent"):
        fitted(model, rows, ledger=ledger)
    assert ledger.spent().epsilon > 0
    assert not hasattr(model, "ensemble_")


def test_a_file_that_changes_while_rows_are_encoded_costs_nothing(files, client, monkeypatch):
    plain = places.ClusterSession._place

    def place(self):
        plain(self)
        os.utime(files / "0.parquet", ns=(1, 1))

    monkeypatch.setattr(places.ClusterSession, "_place", place)
    model = model_of()
    ledger = ledger_of(model)
    with pytest.raises(FilesChanged, match=r"0\.parquet has changed.*Nothing was spent"):
        fitted(model, dd.read_parquet(files / "*.parquet"), ledger=ledger)
    assert ledger.spent().epsilon == 0.0


def other_each_time(part):
    return part.assign(size=np.random.default_rng().random(len(part)))


def test_rows_that_are_others_each_time_they_are_computed(client, monkeypatch):
    """What no file tells: the tags of the rows do, and Dask itself computes them again where a worker dies."""
    before_question(monkeypatch, lambda session, number: number == 2 and client.cancel(session._blocks))
    model = model_of()
    with pytest.raises(WorkersLost, match="computes other rows each time.*What the ledger granted"):
        fitted(model, frame().map_partitions(other_each_time))


def fails_on_a_value(part, after):
    if len(part) and os.path.exists(after):  # noqa: PTH110
        raise ValueError(f"bad value {part['size'].iloc[0]} of the secret row")
    return part


@pytest.mark.parametrize("late", [False, True])
def test_a_step_that_fails_on_a_value_does_not_tell_it(late, client, monkeypatch, tmp_path):
    mark = tmp_path / "mark"
    rows = frame().map_partitions(fails_on_a_value, str(mark), meta=ROWS)
    if late:
        before_question(monkeypatch, lambda session, _: (mark.touch(), client.cancel(session._blocks)))
    else:
        mark.touch()
    model = model_of()
    ledger = ledger_of(model)
    cost = "What the ledger granted to this fit stays spent" if late else "Nothing was spent"
    with pytest.raises(WorkersLost if late else SchemaError, match=rf"\(ValueError\).*{cost}") as raised:
        fitted(model, rows, ledger=ledger)
    assert not shows(raised.value, "secret row")
    assert (ledger.spent().epsilon > 0) is late


# Clusters.


def test_a_worker_with_other_code_is_refused_by_name(client, monkeypatch):
    monkeypatch.setattr(places, "code_digest", lambda: "another version")
    model = model_of()
    ledger = ledger_of(model)
    with pytest.raises(PrivacyError, match=r"another version of ledgerwood.*inproc://.*Nothing was spent"):
        fitted(model, ledger=ledger)
    assert ledger.spent().epsilon == 0.0


def test_a_worker_with_other_code_that_comes_later(client, monkeypatch):
    def come(session, number):
        if number == 2:
            client.run(worker.close_session, session.name)
            monkeypatch.setattr(places, "code_digest", lambda: "another version")

    before_question(monkeypatch, come)
    with pytest.raises(PrivacyError, match=r"another version.*What the ledger granted to this fit stays spent"):
        fitted(model_of())


def test_a_cluster_without_workers(monkeypatch):
    monkeypatch.setattr(places, "PATIENCE", 0.5)
    model = model_of()
    ledger = ledger_of(model)
    with (
        cluster_of(0) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(WorkersLost, match=r"no worker for 0\.5 seconds. Nothing was spent"),
    ):
        fitted(model, ledger=ledger, client=client)
    assert ledger.spent().epsilon == 0.0


def test_the_last_worker_leaves_in_the_middle(monkeypatch):
    monkeypatch.setattr(places, "PATIENCE", 0.5)
    with cluster_of(1) as cluster, distributed.Client(cluster) as client:
        before_question(monkeypatch, lambda _, number: number == 2 and cluster.scale(0))
        with pytest.raises(WorkersLost, match=r"no worker for 0\.5 seconds. What the ledger granted"):
            fitted(model_of(n_estimators=200), client=client)


@pytest.mark.slow  # a cluster takes seconds to give its scheduler up
def test_a_scheduler_that_is_lost_ends_the_fit(monkeypatch):
    monkeypatch.setattr(places, "PATIENCE", 1.0)
    model = model_of()
    ledger = ledger_of(model)
    patience = dask.config.set({"distributed.comm.timeouts.connect": "2s"})  # with the scheduler that is gone: 30 s
    with patience, cluster_of(1) as cluster, distributed.Client(cluster) as client:
        client._timeout = 0.5  # that it tries to connect again
        before_question(monkeypatch, lambda _, number: number == 2 and client.sync(cluster.scheduler.close))
        with pytest.raises(WorkersLost, match=r"scheduler is lost.*What the ledger granted to this fit stays spent"):
            fitted(model, ledger=ledger, client=client)
    assert ledger.spent().epsilon > 0


def test_an_adaptive_cluster_begins_with_no_worker():
    with cluster_of(0) as cluster, distributed.Client(cluster) as client:
        cluster.adapt(minimum=0, maximum=3, interval="50ms", target_duration="100ms")
        assert told(fitted(model_of("filter"), client=client)) == expected("filter")


def test_a_cluster_with_tls_serves_secure_randomness():
    security = distributed.Security.temporary()
    with cluster_of(1, protocol="tls", security=security) as cluster, distributed.Client(cluster) as client:
        assert client.scheduler.address.startswith("tls://")
        model = fitted(model_of(random_state=None), client=client)
    assert model.privacy_.epsilon <= 5.0


def test_two_fits_at_once_on_one_client(client):
    found = {}

    def fit(case):
        found[case] = told(fitted(model_of(case), client=client))

    for case in ("sample", "filter"):
        expected(case)
    threads = [threading.Thread(target=fit, args=[case]) for case in ("sample", "filter")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {case: expected(case) for case in ("sample", "filter")}


def test_an_interrupt_leaves_the_ledger_valid_and_nothing_on_the_workers(client, monkeypatch):
    names = []

    def interrupt(session, number):
        names.append(session.name)
        if number == 2:
            raise KeyboardInterrupt

    before_question(monkeypatch, interrupt)
    model = model_of()
    ledger = ledger_of(model)
    with pytest.raises(KeyboardInterrupt):
        fitted(model, ledger=ledger)
    assert len([each for each in ledger.entries if type(each).__name__ == "GrantEntry"]) <= 1
    assert ledger.spent().epsilon > 0
    assert all(names[0] not in known for known in client.run(lambda: list(worker._SESSIONS)).values())


def test_no_key_and_no_secret_in_what_the_scheduler_holds(client, monkeypatch):
    keys, held = [], []
    drawn = RowCoins.drawn.__func__

    def known(cls, source):
        coins = drawn(cls, source)
        keys.append(coins._key)
        return coins

    def specs(dask_scheduler):
        return [pickle.dumps(task.run_spec) + repr(task.run_spec).encode() for task in dask_scheduler.tasks.values()]

    def look(session, _):
        keys.append(session._secret)
        held.extend(client.run_on_scheduler(specs))

    monkeypatch.setattr(RowCoins, "drawn", classmethod(known))
    before_question(monkeypatch, look)
    fitted(model_of("filtered samples", random_state=None, n_estimators=4))
    assert len(keys) >= 8
    assert len(held) > 8
    assert any(b"ledgerwood" in each for each in held)
    assert not any(key in each for key in keys for each in held)


def test_what_a_log_of_a_failed_task_shows(client):
    """Dask logs the arguments of a task that fails, by their repr."""
    rows = encoded()
    stretch = worker.Stretch(rows=rows, offset=0, measured=())
    for each in (rows, stretch, worker.Block(None, (stretch,))):
        assert len(repr(each)) < 120
        assert "[" not in repr(each)
    assert "secret" in repr(RowCoins(bytes(32)))
