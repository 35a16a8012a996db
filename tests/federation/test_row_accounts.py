"""Individual filters in a federation: each owner keeps the accounts of its rows, and no row takes part beyond them."""

import dataclasses
import itertools
import json
import shutil

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.individuals import FULL
from ledgerwood.accounting.ledger import DrawEntry
from ledgerwood.curator.filtered import FilteredRounds
from ledgerwood.curator.places.row_accounts import RowAccounts
from ledgerwood.curator.queries.leaf_sums import WholeSums
from ledgerwood.curator.queries.row_counts import LeafCounts
from ledgerwood.curator.tables.trees import Table
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import OwnersLost, RoundViolation, UnsupportedEvent
from ledgerwood.federation.codec import pack, unpack
from ledgerwood.federation.messages import Refusal, Uploaded
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.run import federate
from ledgerwood.federation.training import train
from ledgerwood.mechanisms import GaussianMechanism, LaplaceMechanism
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor
from ledgerwood.verification import verify_federation, verify_ledger

from .conftest import SCHEMA, Wire, parts, rows

COMMON = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-5, "n_estimators": 3, "max_depth": 3}
FULL_BATCH = SGBDTClassifier(**COMMON, filter="gdp", extra_trees=6)
SAMPLED = SGBDTClassifier(**COMMON, filter="renyi", extra_trees=6, subsample=0.4)
ESTIMATORS = {
    "full batch": FULL_BATCH,
    "sampled": SAMPLED,
    "drop": SGBDTClassifier(**COMMON, filter="gdp", extra_trees=4, large_gradients="drop"),
    "curvatures": SGBDTClassifier(**COMMON, filter="gdp", extra_trees=4, leaf_statistic="curvature"),
}


def seeded(estimator, seed=7):
    return type(estimator)(**{**estimator.get_params(), "random_state": seed})


def same(left, right, X):
    return np.array_equal(left.predict_proba(X), right.predict_proba(X))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_under_a_seed_the_model_is_the_central_one(name):
    X, y = rows(300)
    central = seeded(ESTIMATORS[name]).fit(X, y)
    plain = seeded(SGBDTClassifier(**{**ESTIMATORS[name].get_params(), "filter": "none", "extra_trees": 0})).fit(X, y)
    assert not same(plain, central, X)
    for sizes in ((100, 50, 150), (1, 299)):
        found = federate(seeded(ESTIMATORS[name]), parts(X, y, sizes), engine="process")
        assert same(found, central, X)
        assert [entry.event for entry in found.ledger_.entries if isinstance(entry, DrawEntry)] == [
            entry.event for entry in central.ledger_.entries if isinstance(entry, DrawEntry)
        ]


def test_regression_with_weights_is_the_central_one():
    X, _ = rows(200)
    y, weights = X[:, 0] * 3, np.linspace(0.0, 2, 200)
    schema = lw.Schema(features=SCHEMA.features, target=lw.Numeric("y", 0, 3), weight_bound=2)
    options = {**COMMON, "schema": schema, "random_state": 3, "filter": "gdp", "extra_trees": 9}
    central = SGBDTRegressor(**options).fit(X, y, sample_weight=weights)
    clients = [(X[:80], y[:80], weights[:80]), (X[80:], y[80:], weights[80:])]
    found = federate(SGBDTRegressor(**options), clients, engine="process")
    assert np.array_equal(found.predict(X), central.predict(X))


def test_secure_fits_spend_the_plan_on_every_ledger(owners):
    X, y = rows(150)
    group = owners(parts(X, y, (50, 50, 50)), allow_seed=False)
    found = train(SAMPLED, Wire(group))
    assert found.privacy_.epsilon == pytest.approx(1.0, rel=1e-3)
    assert any("each owner kept the accounts of its rows" in text for text in found.privacy_.assumptions)
    together = verify_federation(found.ledger_, [account.path for account in group.accounts])
    assert together.verdict == "confirmed"
    assert all("what single rows paid" in " ".join(client.notes) for client in together.clients)
    for account in group.accounts:
        report = verify_ledger(account.path)
        assert report.verdict == "confirmed"
        assert report.epsilon_readded == pytest.approx(found.privacy_.epsilon, rel=1e-4)


# ----------------------------------------------------------------------------------------------- what rows have left


def file_of(group, number):
    (found,) = (group.folder / f"{number}.jsonl.rows").iterdir()
    return found


def accounts_of(group, number):
    path = file_of(group, number)
    return RowAccounts.decoded(path.read_bytes(), path)


def uploads(wire):
    """Who uploaded, by round and attempt."""
    found = {}
    for number, what, request, reply in wire.seen:
        if what == "upload" and isinstance(unpack(reply), Uploaded):
            asked = unpack(request)
            found.setdefault((asked.round, asked.attempt), set()).add(number)
    return found


def central_over(estimator, given, record, uploaded, monkeypatch):
    """The central fit whose question r reads the rows of the survivors of round r, and charges who uploaded in it.

    Returns:
        the model, and what the rows have left.
    """
    X, y = (np.concatenate(each) for each in zip(*given, strict=True))
    owner = np.repeat(np.arange(len(given)), [len(each[1]) for each in given])
    asked = itertools.count()
    whole, full, kept = Table._evaluated, Table.full_accounts, []

    def of_survivors(self, evaluation, query, sampled, budgets):
        done = record.rounds[next(asked)]
        if not budgets.left.size:
            there = np.isin(owner, done.survivors)
            return whole(self, evaluation, query, there & sampled if sampled.size else there, budgets)
        found = None
        for attempt in range(1, done.attempts + 1):
            there = np.isin(owner, done.survivors if attempt == done.attempts else ())
            there = there & sampled if sampled.size else there
            before = budgets.left.copy()
            found = whole(self, evaluation, query, there, budgets)
            unasked = ~np.isin(owner, list(uploaded.get((done.number, attempt), ())))
            budgets.left[unasked] = before[unasked]
        return found

    def keeping(self):
        kept.append(full(self))
        return kept[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Table, "_evaluated", of_survivors)
        patch.setattr(Table, "full_accounts", keeping)
        central = estimator.fit(X, y)
    assert next(asked) == len(record.rounds)
    (left,) = kept
    return central, left


@pytest.mark.parametrize("name", ["full batch", "sampled"])
@pytest.mark.parametrize(("what", "way"), [("upload", "there"), ("upload", "back"), ("recover", "back")])
def test_rows_of_owners_that_drop_out_pay_for_their_uploads_and_nothing_else(name, what, way, owners, monkeypatch):
    X, y = rows(240)
    given = parts(X, y, (60, 20, 40, 40, 40, 40))
    generator = np.random.default_rng(5)

    def lost(number, of, count):
        early = of == "upload" and what == "recover" and number == 0
        return way if early or (of == what and generator.random() < 0.2) else None

    group = owners(given)
    wire = Wire(group, lost)
    found = train(seeded(ESTIMATORS[name]), wire, FederationOptions(dropouts=0.45))
    record, uploaded = found.federation_, uploads(wire)
    assert record.dropped > 0 or any(each.attempts > 1 for each in record.rounds)
    central, left = central_over(seeded(ESTIMATORS[name]), given, record, uploaded, monkeypatch)
    assert same(found, central, X)
    answered = set().union(*(numbers for (round_, _), numbers in uploaded.items() if round_ > 1))
    ends = np.cumsum([0, *(len(each[1]) for each in given)])
    for number in answered:
        assert np.array_equal(accounts_of(group, number).left, left[ends[number] : ends[number + 1]])
    assert left.min() < FULL // 2


def test_a_process_that_restarts_between_any_two_messages_goes_on_with_what_is_left(owners, monkeypatch):
    X, y = rows(120)
    group = owners(parts(X, y, (40, 40, 40)))
    wire = Wire(group, lambda number, what, count: group.restarted(number) if count % 4 == 0 else None)
    found = train(seeded(SAMPLED), wire)
    central, left = central_over(seeded(SAMPLED), group.given, found.federation_, uploads(wire), monkeypatch)
    assert same(found, central, X)
    assert same(found, seeded(SAMPLED).fit(X, y), X)
    assert np.array_equal(np.concatenate([accounts_of(group, number).left for number in range(3)]), left)


def test_an_owner_whose_rows_are_exhausted_answers_zeros_and_shows_it_to_nobody(owners):
    X, _ = rows(90)
    y = np.where(np.arange(90) % 2 == 0, "yes", "no")  # nothing can be learned: gradients stay large
    estimator = SGBDTClassifier(**{**COMMON, "n_estimators": 2}, filter="gdp", extra_trees=30, clip=0.05)
    group = owners(parts(X, y, (30, 30, 30)))
    wire = Wire(group)
    found = train(seeded(estimator), wire)
    assert same(found, seeded(estimator).fit(X, y), X)
    assert all((accounts_of(group, number).left < FULL // 64).all() for number in range(3))
    replies = [reply for number, what, _, reply in wire.seen if what == "upload" and number == 0]
    assert len({len(reply) for reply in replies[1:]}) == 1  # of a full batch and of zeros


# ------------------------------------------------------------------------------------------------- a hostile server


@pytest.fixture
def counted(monkeypatch):
    """The sums of the owners' rows before they are masked."""
    from ledgerwood.curator.places.owner_rows import OwnerRows

    found, whole = [], OwnerRows.sums

    def kept(*arguments, **named):
        found.append(whole(*arguments, **named))
        return found[-1]

    monkeypatch.setattr(OwnerRows, "sums", kept)
    return found


ROOMY = SGBDTClassifier(**{**COMMON, "n_estimators": 12}, filter="gdp")


def halted(owners, estimator=ROOMY, questions=4):
    """A fit whose server stops after some questions, with one row at owner 0; the questions of its filtered draw."""
    X, y = rows(60)
    uploads = [0]

    def lost(number, what, count):
        uploads[0] += number == 0 and what == "upload"
        return "there" if what == "upload" and uploads[0] > questions else None

    wire = Wire(owners(parts(X, y, (1, 30, 29)), allow_seed=False), lost)
    with pytest.raises(OwnersLost):
        train(estimator, wire)
    asks = [unpack(request) for number, what, request, _ in wire.seen if what == "upload" and number == 0]
    return wire, [each for each in asks if isinstance(each.draw.event, lw.FilteredEvent)]


def said(wire, number, message):
    return unpack(wire.owners.all[number].answer(pack(message)))


@pytest.mark.parametrize("options", [{}, {"leaf_statistic": "curvature"}, {"large_gradients": "drop"}])
def test_no_sequence_of_questions_takes_more_of_a_row_than_its_limit(options, owners, counted):
    """An owner of one row: all its sums are that row's, and Gaussian costs add up by their squared norms."""
    estimator = SGBDTClassifier(**{**ROOMY.get_params(), **options})
    wire, asks = halted(owners, estimator)
    plan = estimator.make_plan(SCHEMA)
    begin = next(request for number, what, request, _ in wire.seen if what == "begin" and number == 0)
    news = tuple(value for each in asks for value in each.news)
    counted.clear()
    spent_before = FULL - int(accounts_of(wire.owners, 0).left[0])
    assert 0 < spent_before < FULL // 2
    generator = np.random.default_rng(2)
    round_, attempt, answered = asks[-1].round, 1, 0
    for _ in range(120):
        round_, attempt = (round_ + 1, 1) if generator.random() < 0.6 else (round_, attempt + 1)
        ask = dataclasses.replace(asks[generator.integers(len(asks))], round=round_, attempt=attempt)
        if generator.random() < 0.2:
            wire.owners.restarted(0)
            wire.owners.all[0].answer(begin)
        reply = said(wire, 0, dataclasses.replace(ask, known=0, news=news))
        answered += isinstance(reply, Uploaded)
    assert answered > 60
    stddevs = getattr(plan.leaf_mechanism, "stddevs", None) or (plan.leaf_mechanism.stddev,) * 2
    steps = np.array([each.reshape(-1, 2).sum(axis=0) for each in counted], dtype=float)
    costs = ((steps * 2.0 ** np.array(plan.asked.grid.exponents) / np.array(stddevs)) ** 2).sum(axis=1)
    share = costs.sum() / asks[0].draw.event.limit.mu() ** 2
    left = int(accounts_of(wire.owners, 0).left[0])
    assert 0.0 < share <= (FULL - spent_before - left) / FULL <= 1.0
    assert share > 0.4
    assert (costs == 0.0).any()  # nothing was left, and the row took part no more


def test_questions_that_do_not_charge_each_row_are_refused(owners, counted):
    wire, asks = halted(owners)
    plan, last = ROOMY.make_plan(SCHEMA), asks[-1]
    counted.clear()
    before = file_of(wire.owners, 0).read_bytes()
    root, noise, event, draw = TreeStructure.root(), plan.leaf_mechanism, last.draw.event, last.draw
    ensemble = Ensemble(initial_score=0.0)
    adjacency = event.adjacency
    limit = lw.GDPEvent(mu=9.0, adjacency=adjacency)

    def asking(query, mechanism=noise):
        return {"packed": pack((query, mechanism))}

    def drawing(**changed):
        return {"draw": dataclasses.replace(draw, **changed)}

    forged = [
        (asking(LeafCounts().of(root)), "each row pays for"),
        (asking(WholeSums(leaf=plan.asked, bits=10).of(root, ensemble)), "each row pays for"),
        (asking(plan.asked.of(root, ensemble), LaplaceMechanism(scales=(1.0, 1.0))), "Refus"),
        (asking(plan.asked.of(root, ensemble), GaussianMechanism(stddev=1e-3)), "this draw filters"),
        ({"is_choice": True}, "Refus"),
        (drawing(number=draw.number + 1), "holds no such draw any more"),
        (drawing(rate=0.5), "another sample"),
        (drawing(event=event.release), "as many draws"),
        (drawing(event=dataclasses.replace(event, limit=limit)), "as many draws"),
        (drawing(event=lw.Composed((event,))), "Refus"),
        (drawing(group=0), "another sample"),
    ]
    for changed, why in forged:
        reply = said(wire, 0, dataclasses.replace(last, round=last.round + 1, attempt=1, **changed))
        assert isinstance(reply, Refusal)
        assert why in f"Refused {reply.reason}"
    assert counted == []
    assert file_of(wire.owners, 0).read_bytes() == before


# ------------------------------------------------------------------------------------- files, and what befalls them


def test_each_attempt_is_paid_for(owners):
    wire, asks = halted(owners)
    last = asks[-1]
    left = [accounts_of(wire.owners, 0).left[0]]
    for attempt in (1, 2, 3):
        assert isinstance(said(wire, 0, dataclasses.replace(last, round=last.round + 1, attempt=attempt)), Uploaded)
        left.append(accounts_of(wire.owners, 0).left[0])
    assert left[0] - left[1] == left[1] - left[2] == left[2] - left[3] > 0


def test_accounts_that_are_lost_older_or_cut_end_the_session(owners, counted):
    wire, asks = halted(owners)
    path, last = file_of(wire.owners, 0), asks[-1]
    newest = path.read_bytes()
    older = dataclasses.replace(accounts_of(wire.owners, 0), round=asks[-2].round, left=np.array([FULL]))
    other = dataclasses.replace(accounts_of(wire.owners, 0), left=np.array([FULL, FULL]))
    foreign = dataclasses.replace(accounts_of(wire.owners, 0), session="0" * 32)
    counted.clear()
    for number, content in enumerate((None, older.encoded(), other.encoded(), foreign.encoded(), newest[:-9], b"")):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        reply = said(wire, 0, dataclasses.replace(last, round=last.round + 1, attempt=1 + number))
        assert isinstance(reply, Refusal)
        assert "this owner's ledger refuses; its log says why" in reply.reason
    assert counted == []
    path.write_bytes(newest)
    assert isinstance(said(wire, 0, dataclasses.replace(last, round=last.round + 1, attempt=9)), Uploaded)


def test_a_process_that_dies_between_charge_and_answer_has_charged(owners, monkeypatch):
    from ledgerwood.federation.owners.answers import AnswersFile

    wire, asks = halted(owners)
    last = dataclasses.replace(asks[-1], round=asks[-1].round + 1)
    before = accounts_of(wire.owners, 0).left[0]

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(AnswersFile, "answer", killed)
        with pytest.raises(KeyboardInterrupt):
            said(wire, 0, last)
    after = accounts_of(wire.owners, 0).left[0]
    assert after < before
    assert isinstance(said(wire, 0, last), Uploaded)
    assert before - after == after - accounts_of(wire.owners, 0).left[0]


def test_a_disk_that_is_full_answers_nothing(owners, monkeypatch):
    from ledgerwood.curator.tables import vault_files

    wire, asks = halted(owners)
    last = dataclasses.replace(asks[-1], round=asks[-1].round + 1)

    def full(*_):
        raise OSError(28, "No space left on device")

    answers = (wire.owners.folder / "0.jsonl.answers").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(vault_files, "_write", full)
        assert isinstance(said(wire, 0, last), Refusal)
    assert (wire.owners.folder / "0.jsonl.answers").read_bytes() == answers
    assert isinstance(said(wire, 0, last), Uploaded)


def test_older_answers_beside_newer_accounts_give_no_whole_limits(owners, tmp_path):
    """Ledger and answers that were put back from before the first question: the accounts still know what was spent."""
    X, y = rows(60)
    group = owners(parts(X, y, (20, 20, 20)), allow_seed=False)
    copies = tmp_path / "copies"
    copies.mkdir()

    def lost(number, what, count):
        if what == "upload" and not list(copies.iterdir()):
            for name in ("0.jsonl", "0.jsonl.answers"):
                shutil.copy(group.folder / name, copies / name)

    wire = Wire(group, lost)
    train(FULL_BATCH, wire)
    spent = accounts_of(group, 0).left
    for each in copies.iterdir():
        shutil.copy(each, group.folder / each.name)
    group.accounts[0].close()
    group.restarted(0)
    told = [request for number, what, request, _ in wire.seen if number == 0 and what in ("begin", "upload")]
    for request in told:
        group.all[0].answer(request)
    assert (accounts_of(group, 0).left <= spent).all()


def test_the_file_is_the_owners_alone(owners):
    wire, _ = halted(owners)
    path = file_of(wire.owners, 0)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    header = json.loads(path.read_bytes().partition(b"\n")[0])
    assert header["rows"] == 1


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"noise": "clients"}, UnsupportedEvent, "FilteredEvent"),
        ({"unit": lw.PrivacyUnit.USER}, RoundViolation, "FilteredEvent"),
    ],
)
def test_filters_with_shared_noise_or_whole_contributions_are_refused_and_spend_nothing(options, error, message):
    X, y = rows(60)
    budget = lw.Budget(epsilon=9.0, delta=1e-3, adjacency=lw.Adjacency.ADD_REMOVE)
    ledger = lw.Ledger(budget, unit=options.get("unit", lw.PrivacyUnit.ROW))
    with pytest.raises(error, match=message):
        federate(FULL_BATCH, parts(X, y, (30, 30)), ledger=ledger, engine="process", **options)
    assert len(ledger.entries) == 1


def test_too_few_owners_end_the_fit(owners):
    X, y = rows(60)
    wire = Wire(
        owners(parts(X, y, (20, 20, 20))),
        lambda number, what, count: "there" if what == "upload" and number and count > 12 else None,
    )
    with pytest.raises(OwnersLost):
        train(FULL_BATCH, wire)


def test_the_server_holds_no_accounts():
    kept = []
    made = FilteredRounds.__init__

    def keeping(self, *arguments, **named):
        made(self, *arguments, **named)
        kept.append(self._left)

    X, y = rows(60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FilteredRounds, "__init__", keeping)
        federate(FULL_BATCH, parts(X, y, (30, 30)), engine="process")
    assert kept == [None]
