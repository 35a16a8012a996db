"""Learning on streams: one draw for all calls, one budget for each unit, and no row state but in the vault."""

import copy
import dataclasses
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.accounting.individuals import FULL
from ledgerwood.accounting.ledger import DrawEntry
from ledgerwood.curator import RowVault, Table, kept_vault
from ledgerwood.curator.inputs.encoding import encode_features
from ledgerwood.curator.inputs.values import read_keys
from ledgerwood.curator.tables import vault as vaults
from ledgerwood.errors import (
    AdjacencyMismatch,
    BudgetExceeded,
    InvalidParameter,
    LedgerCorrupted,
    LedgerError,
    SchemaError,
)
from ledgerwood.mechanisms import EllipticalGaussianMechanism, SeededRandom
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor
from ledgerwood.verification import verify_ledger

SCHEMA = lw.Schema.uniform(0, 1, n_features=3, target=lw.Numeric("y", 0, 10))
CLASSES = lw.Schema.uniform(0, 1, n_features=3, target=lw.Categorical("y", (0, 1)))
GENERATOR = np.random.default_rng(5)
N = 120
X = GENERATOR.uniform(0, 1, (N, 3))
Y = np.clip(X[:, 0] * 8 + GENERATOR.uniform(0, 2, N), 0, 10)
KEYS = np.array([f"unit-{i:04d}" for i in range(N)])
SMALL = {"n_estimators": 4, "max_depth": 2, "max_bins": 8, "reg_lambda": 3.0}


def regressor(**options):
    return SGBDTRegressor(**({"epsilon": 1.0, "delta": 1e-6, "schema": SCHEMA} | SMALL | options))


def classifier(**options):
    return SGBDTClassifier(**({"epsilon": 1.0, "delta": 1e-6, "schema": CLASSES} | SMALL | options))


def new_ledger(epsilon=1.0):
    return Ledger(Budget(epsilon=epsilon, delta=1e-6, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)


def values_of(model):
    return model.ensemble_.to_arrays()["values"]


def left_in(vault):
    """What all units have left, sorted: looks where only a test may."""
    return sorted(vault._contents.left.tolist())


def structures(model):
    return [
        (t.structure.feature.tolist(), t.structure.split.tolist(), t.structure.equals.tolist())
        for t in model.ensemble_.trees
    ]


# ------------------------------------------------------------------------------------------------- the whole stream


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize("options", [{}, {"subsample": 0.5}, {"extra_trees": 2}, {"initial_score": "zero"}])
def test_one_draw_pays_for_all_calls(options):
    ledger = new_ledger()
    model = regressor(**options).partial_fit(X[:40], Y[:40], keys=KEYS[:40], ledger=ledger)
    entries, statement, trees = ledger.entries, model.privacy_, len(model.ensemble_.trees)
    assert trees == model.plan_.trees == 4 + options.get("extra_trees", 0)
    for start in (40, 20, 80):
        model.partial_fit(X[start : start + 40], Y[start : start + 40], keys=KEYS[start : start + 40])
    assert len(model.ensemble_.trees) == 4 * trees
    assert ledger.entries == entries == model.ledger_.entries
    assert model.privacy_ == statement
    assert lw.price(model.plan_.event).epsilon(1e-6) <= statement.epsilon <= 1.0
    draws = [entry.event for entry in entries if isinstance(entry, DrawEntry)]
    assert [type(event).__name__ for event in draws].count("FilteredEvent") == 1
    assert len(draws) == len(model.plan_.initial.events) + 1
    assert any("key" in assumption for assumption in statement.assumptions)
    assert "each row is one privacy unit" not in statement.assumptions
    assert np.isfinite(model.predict(X)).all()


def test_the_ledger_of_a_stream_verifies(tmp_path):
    ledger = new_ledger()
    model = regressor().partial_fit(X, Y, keys=KEYS, ledger=ledger)
    model.partial_fit(X, Y, keys=KEYS)
    ledger.save(tmp_path / "stream.ledger.jsonl")
    report = verify_ledger(tmp_path / "stream.ledger.jsonl", head=model.privacy_.ledger_head)
    assert report.grants == 1


def test_a_later_call_learns():
    """Rows of another distribution, a budget that hides little: the later trees follow what came later."""
    model = regressor(epsilon=1e6, n_estimators=30, clip=1.0, pooling=0.0, random_state=1).partial_fit(
        X, np.full(N, 2.0), keys=KEYS
    )
    assert model.predict(X) == pytest.approx(2.0, abs=1.0)
    model.partial_fit(X, np.full(N, 8.0), keys=np.arange(N).astype(str))
    assert model.predict(X) == pytest.approx(8.0, abs=1.0)


def test_a_classifier_learns_too():
    model = classifier(epsilon=1e6, n_estimators=20, random_state=3).partial_fit(
        X[:60], (Y[:60] > 5).astype(int), keys=KEYS[:60]
    )
    model.partial_fit(X[60:], (Y[60:] > 5).astype(int), keys=KEYS[60:])
    assert (model.predict(X) == (Y > 5)).mean() > 0.9


def test_features_go_on_in_their_cycle():
    model = regressor(n_estimators=1, features_per_tree=1, max_depth=1).partial_fit(X, Y, keys=KEYS)
    for _ in range(4):
        model.partial_fit(X, Y, keys=KEYS)
    assert [int(tree.structure.feature[0]) for tree in model.ensemble_.trees] == [0, 1, 2, 0, 1]


# ------------------------------------------------------------------------------------------------- budgets of units


def seeded(call_seeds, monkeypatch, **options):
    """A stream whose calls draw from these seeds, whatever their rows are."""
    sources = iter([SeededRandom(seed) for seed in call_seeds])
    monkeypatch.setattr(SGBDTRegressor, "_random_source", lambda self, call=0: next(sources))
    return regressor(**options)


def extreme(n):
    """Labels that keep every gradient beyond the clip: each round costs each row all that it can."""
    return np.where(np.arange(n) % 2 == 0, 0.0, 10.0)


@pytest.mark.slow_after(1)  # replays streams
@pytest.mark.parametrize("options", [{}, {"subsample": 0.5}])
def test_a_unit_that_comes_twice_has_no_second_budget(options, monkeypatch):
    """It has spent all in the first call: what its rows hold in the second moves no release by a single bit."""
    models = {}
    for name, (rows, labels, keys) in {
        "again": (X, extreme(N), KEYS),
        "again, other rows": (X[::-1], np.full(N, 5.0), KEYS),
        "again, other order": (X, extreme(N), KEYS[::-1]),
        "nobody was there before": (X, extreme(N), np.array([f"{key}x" for key in KEYS])),
    }.items():
        model = seeded((1, 2), monkeypatch, clip=0.01, initial_score="zero", **options)
        model.partial_fit(X, extreme(N), keys=KEYS)
        assert max(left_in(kept_vault(model))) < FULL // 1000
        model.partial_fit(rows, labels, keys=keys)
        models[name] = values_of(model)
    np.testing.assert_array_equal(models["again"], models["again, other rows"])
    np.testing.assert_array_equal(models["again"], models["again, other order"])
    assert not np.array_equal(models["again"], models["nobody was there before"])


def test_without_the_filter_s_memory_the_second_call_would_differ(monkeypatch):
    """The test above can fail: rows that have something left do move the second call."""
    values = []
    for labels in (np.full(N, 0.0), np.full(N, 10.0)):
        model = seeded((1, 2), monkeypatch, clip=0.25, initial_score="zero")
        model.partial_fit(X, np.full(N, 5.0), keys=KEYS)
        assert min(left_in(kept_vault(model))) > FULL // 2
        model.partial_fit(X, labels, keys=KEYS)
        values.append(values_of(model))
    assert not np.array_equal(*values)


def replayed_losses(model, calls):
    """mu**2 of each unit, added up by the definition over the released trees: an independent reading of the filter.

    Args:
        model: fitted, squared loss, moments, full batch.
        calls: (X, y, keys) of each call.
    """
    plan = model.plan_
    count_noise, gradient_noise = (Fraction(s) for s in plan.leaf_mechanism.stddevs)
    limit = Fraction(next(plan.schedule())[0].limit.mu()) ** 2
    spent, per_call = {}, len(model.ensemble_.trees) // len(calls)
    for number, (rows, labels, keys) in enumerate(calls):
        cells = encode_features(rows, SCHEMA, bins=plan.max_bins)
        targets = labels / 5.0 - 1.0
        for t in range(number * per_call, (number + 1) * per_call):
            prefix = model.ensemble_.trees[:t]
            scores = type(model.ensemble_)(initial_score=model.ensemble_.initial_score, trees=prefix).scores(cells)
            for key, gradient in zip(keys, scores - targets, strict=True):
                clipped = Fraction(min(max(float(gradient), -plan.clip), plan.clip))
                cost = 1 / count_noise**2 + clipped**2 / gradient_noise**2
                if spent.get(key, 0) + cost <= limit:
                    spent[key] = spent.get(key, 0) + cost
    return {key: float(loss / limit) for key, loss in spent.items()}


def test_what_each_unit_has_left_is_what_its_own_contributions_left_it(tmp_path):
    """Four calls with old and new units and changed rows, each contribution computed again from the released trees."""
    other = GENERATOR.uniform(0, 10, N)
    calls = [
        (X[:40], Y[:40], KEYS[:40]),
        (X[20:60], Y[20:60], KEYS[20:60]),
        (X[:50], other[:50], KEYS[:50]),
        (X[100:], Y[100:], KEYS[100:]),
    ]
    model = regressor(clip=0.5, random_state=3)
    for call in calls:
        model.partial_fit(*call)
    truth = replayed_losses(model, calls)
    vault = kept_vault(model)
    left = (np.array(left_in(vault)) / FULL).tolist()
    assert left == pytest.approx(sorted(1.0 - loss for loss in truth.values()), abs=1e-5)
    assert len(left) == 80
    assert min(left) < 0.3


def test_no_unit_loses_more_than_its_budget_in_many_calls():
    model = regressor(clip=0.5)
    for _ in range(6):
        model.partial_fit(X[:30], Y[:30], keys=KEYS[:30])
        assert all(0 <= left <= FULL for left in left_in(kept_vault(model)))
    assert np.median(left_in(kept_vault(model))) < FULL / 4


# ----------------------------------------------------------------------------------------------- neighbouring streams


def neighbours():
    """Streams of two calls that differ by all rows of one unit."""
    extra = np.array([[0.9, 0.1, 0.5]])
    return {
        "base": [(X[:40], Y[:40], KEYS[:40]), (X[20:60], Y[20:60], KEYS[20:60])],
        "without unit 30": [
            tuple(np.delete(part, 30, axis=0) for part in (X[:40], Y[:40], KEYS[:40])),
            tuple(np.delete(part, 10, axis=0) for part in (X[20:60], Y[20:60], KEYS[20:60])),
        ],
        "with another": [
            (np.vstack([extra, X[:40]]), np.append(10.0, Y[:40]), np.append("more", KEYS[:40])),
            (np.vstack([X[20:60], extra]), np.append(Y[20:60], 0.0), np.append(KEYS[20:60], "more")),
        ],
    }


@pytest.mark.slow_after(4)  # many fits and plans
@pytest.mark.parametrize("change", ["without unit 30", "with another"])
@pytest.mark.parametrize("options", [{}, {"extra_trees": 3}, {"initial_score": "laplace"}])
def test_only_released_values_depend_on_a_unit(change, options, monkeypatch):
    found = {}
    for name in ("base", change):
        sources = [SeededRandom(1), SeededRandom(2)]
        remaining = iter(sources)
        monkeypatch.setattr(SGBDTRegressor, "_random_source", lambda self, call=0, it=remaining: next(it))
        model = regressor(**options)
        for call in neighbours()[name]:
            model.partial_fit(*call)
        found[name] = (model, [source._bits.state for source in sources])
    (base, base_states), (model, states) = found.values()
    assert structures(model) == structures(base)
    assert model.ledger_ == base.ledger_
    assert model.privacy_ == base.privacy_
    assert (model.plan_, model.stream_) == (base.plan_, base.stream_)
    assert states == base_states
    assert values_of(model).shape == values_of(base).shape
    assert not np.array_equal(values_of(model), values_of(base))


# ------------------------------------------------------------------------------------------------- where state lives


def test_a_saved_or_pickled_model_holds_no_row_state(tmp_path):
    with RowVault.open(tmp_path / "rows.vault") as vault:
        model = regressor().partial_fit(X, Y, keys=KEYS, vault=vault)
        model.partial_fit(X[:60], Y[:60], keys=KEYS[:60])
        model.save(tmp_path / "model")
        contents = vault._contents
        secrets = [key.encode() for key in KEYS.tolist()]
        secrets += [unit.ljust(16, b"\0") for unit in contents.units.tolist()]
        secrets += [unit.ljust(16, b"\0").hex().encode() for unit in contents.units.tolist()]
        secrets += [str(left).encode() for left in contents.left.tolist() if left not in (0, FULL)]
        secrets += [int(left).to_bytes(8, "little") for left in contents.left.tolist() if left not in (0, FULL)]
        secrets += [contents.salt, contents.salt.hex().encode()]
        places = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
        places["pickle"] = pickle.dumps(model)
        places["attributes"] = repr(vars(model)).encode()
        for name, data in places.items():
            assert [secret for secret in secrets if secret in data] == [], name
            assert b"vault" not in data.replace(b"the vault of what each unit has left", b""), name
    record = json.loads((tmp_path / "model" / "model.json").read_text())
    assert set(record["stream"]) == {"draw", "claims", "parameters"}
    assert record["stream"]["claims"] == 2


def test_a_loaded_model_goes_on_with_the_vault_of_its_stream(tmp_path):
    with RowVault.open(tmp_path / "rows.vault") as vault:
        model = regressor().partial_fit(X[:60], Y[:60], keys=KEYS[:60], vault=vault)
        model.save(tmp_path / "model")
    loaded = SGBDTRegressor.load(tmp_path / "model")
    assert loaded.stream_ == model.stream_
    with pytest.raises(LedgerError, match=r"does not know what the units.*RowVault\.open"):
        loaded.partial_fit(X, Y, keys=KEYS)
    with pytest.raises(LedgerError, match="is new"):
        loaded.partial_fit(X, Y, keys=KEYS, vault=RowVault())
    with RowVault.open(tmp_path / "rows.vault") as vault:
        before = left_in(vault)
        loaded.partial_fit(X, Y, keys=KEYS, vault=vault)
        assert len(left_in(vault)) == N
        assert sum(left_in(vault)) < sum(before) + (N - 60) * FULL
        loaded.partial_fit(X, Y, keys=KEYS)  # the vault of the call before
        loaded.save(tmp_path / "model")
    assert len(SGBDTRegressor.load(tmp_path / "model").ensemble_.trees) == 12
    assert loaded.privacy_ == model.privacy_


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_of_a_model_has_no_vault_in_memory(duplicate):
    model = regressor().partial_fit(X, Y, keys=KEYS)
    other = duplicate(model)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    with pytest.raises(LedgerError, match="does not know what the units"):
        other.partial_fit(X, Y, keys=KEYS)
    model.partial_fit(X, Y, keys=KEYS)


def test_a_clone_starts_a_stream_of_its_own():
    model = regressor().partial_fit(X, Y, keys=KEYS)
    other = clone(model).partial_fit(X, Y, keys=KEYS)
    assert kept_vault(other) is not kept_vault(model)
    assert len(other.ensemble_.trees) == 4


def test_an_older_copy_of_the_vault_is_refused(tmp_path):
    path, backup = tmp_path / "rows.vault", tmp_path / "backup"
    with RowVault.open(path) as vault:
        model = regressor().partial_fit(X, Y, keys=KEYS, vault=vault)
        backup.write_bytes(path.read_bytes())
        model.partial_fit(X, Y, keys=KEYS)
    with RowVault.open(backup) as vault, pytest.raises(LedgerError, match="1 claims, and the stream has made 2"):
        model.partial_fit(X, Y, keys=KEYS, vault=vault)
    with RowVault.open(path) as vault:
        model.partial_fit(X, Y, keys=KEYS, vault=vault)
    with pytest.raises(LedgerError, match="was closed"):
        model.partial_fit(X, Y, keys=KEYS)


def test_a_copy_from_before_a_call_that_failed_is_an_older_copy_too(tmp_path, monkeypatch):
    """The rounds before the failure were released, and its units have paid for them."""
    path, backup = tmp_path / "rows.vault", tmp_path / "backup"
    with RowVault.open(path) as vault:
        model = regressor().partial_fit(X, Y, keys=KEYS, vault=vault)
        backup.write_bytes(path.read_bytes())
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Table, "statistic", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            model.partial_fit(X, Y, keys=KEYS)
        assert model.stream_.claims == vault.claims == 2
    with RowVault.open(backup) as vault, pytest.raises(LedgerError, match="1 claims, and the stream has made 2"):
        model.partial_fit(X, Y, keys=KEYS, vault=vault)


def test_a_vault_serves_one_stream(tmp_path):
    with RowVault.open(tmp_path / "rows.vault") as vault:
        model = regressor().partial_fit(X, Y, keys=KEYS, vault=vault)
        ledger = new_ledger()
        with pytest.raises(LedgerError, match="a new stream needs a new vault"):
            regressor().partial_fit(X, Y, keys=KEYS, vault=vault, ledger=ledger)
        assert len(ledger.entries) == 1
        other = regressor(epsilon=0.5).partial_fit(X, Y, keys=KEYS)
        with pytest.raises(LedgerError, match="belongs to the stream of draw"):
            other.partial_fit(X, Y, keys=KEYS, vault=vault)
        assert vault.claims == 1
        model.partial_fit(X, Y, keys=KEYS)


# -------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (None, "second budget"),
        (KEYS[:-1], "X and keys differ"),
        (np.arange(N) / 1.0, "float64"),
    ],
)
def test_keys_that_name_no_unit_cost_nothing(keys, problem):
    ledger, vault = new_ledger(), RowVault()
    model = regressor()
    with pytest.raises(SchemaError, match=problem):
        model.partial_fit(X, Y, keys=keys, ledger=ledger, vault=vault)
    assert len(ledger.entries) == 1
    vault.prepare()
    model.partial_fit(X, Y, keys=KEYS)
    before = left_in(kept_vault(model))
    with pytest.raises(SchemaError, match=problem):
        model.partial_fit(X, Y, keys=keys)
    assert left_in(kept_vault(model)) == before
    assert kept_vault(model).claims == 1


def test_keys_of_another_kind_are_refused_in_a_later_call():
    model = regressor().partial_fit(X, Y, keys=np.arange(N))
    with pytest.raises(LedgerError, match="keys are integers, and these are strings"):
        model.partial_fit(X, Y, keys=np.arange(N).astype(str))
    assert kept_vault(model).claims == 1


@pytest.mark.parametrize("change", [{"n_estimators": 5}, {"epsilon": 2.0}, {"filter": "gdp"}, {"clip": 0.5}])
def test_other_parameters_are_refused_in_a_later_call(change):
    model = regressor().partial_fit(X, Y, keys=KEYS)
    name, value = next(iter(change.items()))
    former = model.get_params()[name]
    with pytest.raises(InvalidParameter, match=f"{name}={value!r}.*began with"):
        model.set_params(**change).partial_fit(X, Y, keys=KEYS)
    assert kept_vault(model).claims == 1
    model.set_params(**{name: former}, verbose=0).partial_fit(X, Y, keys=KEYS)


def test_another_schema_other_columns_or_another_ledger_are_refused_in_a_later_call():
    model = regressor().partial_fit(X, Y, keys=KEYS)
    with pytest.raises(InvalidParameter, match="schema is another"):
        model.set_params(schema=lw.Schema.uniform(0, 2, n_features=3, target=SCHEMA.target)).partial_fit(X, Y, KEYS)
    model.set_params(schema=SCHEMA)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], Y, keys=KEYS)
    with pytest.raises(LedgerError, match="another ledger"):
        model.partial_fit(X, Y, keys=KEYS, ledger=new_ledger())
    assert kept_vault(model).claims == 1
    ledger = new_ledger()
    paid = regressor().partial_fit(X, Y, keys=KEYS, ledger=ledger)
    paid.partial_fit(X, Y, keys=KEYS, ledger=ledger)


def test_a_plan_that_is_no_stream_costs_nothing():
    ledger = new_ledger()
    with pytest.raises(InvalidParameter, match="filter='none'"):
        regressor(filter="none").partial_fit(X, Y, keys=KEYS, ledger=ledger)
    with pytest.raises(InvalidParameter, match="leaf_noise='dynamic'"):
        regressor(leaf_noise="static").partial_fit(X, Y, keys=KEYS, ledger=ledger)
    with pytest.raises(AdjacencyMismatch, match="replace-one"):
        regressor(adjacency="replace-one").partial_fit(X, Y, keys=KEYS)
    with pytest.raises(SchemaError, match="schema=None"):
        regressor(schema=None).partial_fit(X, Y, keys=KEYS, ledger=ledger)
    with pytest.raises(InvalidParameter, match="RowVault"):
        regressor().partial_fit(X, Y, keys=KEYS, ledger=ledger, vault="rows.vault")
    with pytest.raises(InvalidParameter, match="Ledger"):
        regressor().partial_fit(X, Y, keys=KEYS, ledger=np.ones(N))
    with pytest.raises(BudgetExceeded):
        regressor(epsilon=2.0).partial_fit(X, Y, keys=KEYS, ledger=ledger)
    assert len(ledger.entries) == 1


def test_a_vault_that_cannot_be_used_costs_nothing(tmp_path):
    ledger, vault = new_ledger(), RowVault.open(tmp_path / "rows.vault")
    vault.close()
    with pytest.raises(LedgerError, match="was closed"):
        regressor().partial_fit(X, Y, keys=KEYS, ledger=ledger, vault=vault)
    assert len(ledger.entries) == 1


def test_a_parameter_of_a_later_release_does_not_end_a_stream():
    model = regressor().partial_fit(X, Y, keys=KEYS)
    parameters = {name: value for name, value in model.stream_.parameters.items() if name != "filter"}
    model.stream_ = dataclasses.replace(model.stream_, parameters=parameters | {"gone": 5})
    model.partial_fit(X, Y, keys=KEYS)
    assert len(model.ensemble_.trees) == 8


def test_fit_and_streams_do_not_mix():
    model = regressor().fit(X, Y)
    with pytest.raises(InvalidParameter, match="was fitted by fit"):
        model.partial_fit(X, Y, keys=KEYS)
    model = regressor().partial_fit(X, Y, keys=KEYS)
    model.fit(X, Y)
    assert kept_vault(model) is None
    assert "stream_" not in vars(model)
    assert "each row is one privacy unit" in model.privacy_.assumptions
    with pytest.raises(InvalidParameter, match="was fitted by fit"):
        model.partial_fit(X, Y, keys=KEYS)


def test_a_stream_of_secure_noise_takes_no_seed_and_a_seeded_one_says_so():
    model = regressor().partial_fit(X, Y, keys=KEYS)
    with pytest.raises(InvalidParameter, match="secure noise"):
        model.set_params(random_state=1).partial_fit(X, Y, keys=KEYS)
    test = regressor(random_state=1).partial_fit(X, Y, keys=KEYS)
    assert math.isinf(test.privacy_.epsilon)
    test.partial_fit(X, Y, keys=KEYS).set_params(random_state=None).partial_fit(X, Y, keys=KEYS)
    assert math.isinf(test.privacy_.epsilon)
    first, second = structures(test)[:4], structures(test)[4:8]
    assert first != second  # a later call does not repeat the first one's trees
    again = regressor(random_state=1).partial_fit(X, Y, keys=KEYS).partial_fit(X, Y, keys=KEYS)
    np.testing.assert_array_equal(values_of(again), values_of(test)[: len(values_of(again))])


def test_a_call_that_is_interrupted_leaves_the_model_and_costs_its_rounds(monkeypatch):
    model = regressor(clip=0.5).partial_fit(X, Y, keys=KEYS)
    trees, before = model.ensemble_, sum(left_in(kept_vault(model)))
    calls = []
    statistic = Table.statistic

    def failing(*args):
        calls.append(statistic(*args))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return calls[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Table, "statistic", failing)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, Y, keys=KEYS)
    assert model.ensemble_ is trees
    after = sum(left_in(kept_vault(model)))
    assert after < before
    model.partial_fit(X, Y, keys=KEYS)
    assert sum(left_in(kept_vault(model))) < after
    assert len(model.ensemble_.trees) == 8


def test_a_model_whose_ledger_lacks_its_draw_is_refused(tmp_path):
    regressor().partial_fit(X, Y, keys=KEYS).save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    record = json.loads(file.read_text())
    whole = json.dumps(record)
    for stream, error in (
        (record["stream"] | {"draw": "0" * 64}, LedgerCorrupted),
        (record["stream"] | {"claims": 0}, InvalidParameter),
        ({"draw": record["stream"]["draw"]}, InvalidParameter),
        (record["stream"] | {"parameters": 5}, InvalidParameter),
    ):
        file.write_text(json.dumps(json.loads(whole) | {"stream": stream}))
        with pytest.raises(error):
            SGBDTRegressor.load(tmp_path / "model")


# ------------------------------------------------------------------------------- what the proof asks for, call by call


def transcript(calls, monkeypatch, **options):
    """The plan, and the exact statistic of each release of a stream whose outputs are the same whatever its rows."""
    exact = []

    def forced(self, statistic, grid, source):
        """Noise alone: so two streams have one past, and what differs are the statistics."""
        exact.append(statistic * np.exp2(np.array(grid.exponents)) / np.array(self.stddevs))
        noise = np.random.default_rng(len(exact)).normal(size=statistic.shape) * np.array(self.stddevs)
        return np.round(noise / np.exp2(np.array(grid.exponents))).astype(np.int64)

    with monkeypatch.context() as patch:
        patch.setattr(EllipticalGaussianMechanism, "randomise", forced)
        model = regressor(random_state=1, **options)
        for call in calls:
            model.partial_fit(*call)
    return model, exact


@pytest.mark.slow_after(2)  # replays streams
@pytest.mark.parametrize("seed", range(12))
def test_given_the_same_past_a_unit_moves_all_releases_by_its_one_budget_at_most(seed, monkeypatch):
    """docs/explanation/sgbdt.md#sgbdt-streams: all rows of one unit, which comes in some calls and changes its row."""
    generator = np.random.default_rng(seed)
    clip = generator.choice([0.05, 0.3, 1.0])
    calls, without = [], []
    comes = generator.permutation([True, True, True, generator.random() < 0.5, False])
    for with_unit in comes:
        others = generator.choice(np.arange(1, N), size=12, replace=False)
        units = generator.permutation(np.append(others, 0)) if with_unit else others
        rows = generator.uniform(0, 1, (len(units), 3))
        labels = np.where(units == 0, generator.choice([0.0, 5.0, 10.0]), generator.uniform(0, 10, len(units)))
        calls.append((rows, labels, units))
        without.append((rows[units != 0], labels[units != 0], units[units != 0]))
    model, exact = transcript(calls, monkeypatch, clip=clip)
    other, exact_without = transcript(without, monkeypatch, clip=clip)
    np.testing.assert_array_equal(values_of(model), values_of(other))
    initial, *rounds = (np.atleast_2d(one - another) for one, another in zip(exact, exact_without, strict=True))
    assert len(rounds) == len(calls) * model.plan_.trees
    assert all((moved != 0).any(axis=1).sum() <= 1 for moved in rounds)  # one leaf, the unit's
    budget = next(model.plan_.schedule())[0].limit.mu() ** 2
    assert (initial**2).sum() <= model.plan_.initial.events[0].mu() ** 2 * (1 + 1e-12)
    assert 0 < sum((moved**2).sum() for moved in rounds) <= budget
    # The rest of its account is what the vault says, to the chords and roundings of the costs.
    digest = vaults.key_digests(read_keys([0], 1), kept_vault(model)._contents.salt)[0]
    contents = kept_vault(model)._contents
    left = contents.left[np.searchsorted(contents.units, digest)] / FULL
    assert 1.0 - sum((moved**2).sum() for moved in rounds) / budget == pytest.approx(left, abs=1e-5)
