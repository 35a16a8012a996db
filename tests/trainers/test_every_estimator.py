"""What every estimator does alike: on disk, on a shared ledger, without a schema, with a seed, beside a neighbour.

More of the same law: every option's neighbours in test_neighbours, weights in test_sample_weights, silence in
test_silence, every warning in test_cautions.
"""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit, trainers
from ledgerwood.accounting.ledger.state import DrawEntry, GrantEntry
from ledgerwood.errors import BudgetExceeded, PrivacyWarning
from ledgerwood.report.models import load_model
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.verification import added, assert_trainer, replay, verify_ledger

ESTIMATORS = [
    kind
    for kind in vars(trainers).values()
    if inspect.isclass(kind)
    and issubclass(kind, AbstractTreeEstimator)
    and not inspect.isabstract(kind)
    and kind is not trainers.PrivateSearch  # which fits one of the others
]
FEATURES = (
    lw.Numeric("length", 0.0, 1.0),
    lw.Categorical("sold", (False, True)),
    lw.Numeric("weight", -1.0, 1.0, missing=True),
)
TARGETS = {True: lw.Numeric("y", 0.0, 10.0), False: lw.Categorical("y", ("no", "yes"))}
N_ROWS = 60
GENERATOR = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "length": GENERATOR.uniform(0, 1, N_ROWS),
        "sold": GENERATOR.random(N_ROWS) < 0.5,
        "weight": np.where(GENERATOR.random(N_ROWS) < 0.1, np.nan, GENERATOR.uniform(-1, 1, N_ROWS)),
    }
)
LABELS = {True: np.round(9.0 * X["length"].to_numpy(), 2), False: np.where(X["length"] > 0.5, "yes", "no")}
every = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)


def schema_of(kind):
    return lw.Schema(features=FEATURES, target=TARGETS[is_regressor(kind())])


SIZE = {"n_estimators": 2, "max_depth": 2, "max_bins": 16}


def small(kind, **options):
    """Few trees, the system's own delta, and one plan for all tests."""
    size = {name: value for name, value in SIZE.items() if name in inspect.signature(kind).parameters}
    return kind(**(size | {"schema": schema_of(kind)} | options))


def fitted(kind, ledger=None, **options):
    return small(kind, **options).fit(X, LABELS[is_regressor(kind())], ledger=ledger)


def test_every_system_is_among_them():
    assert len(ESTIMATORS) >= 9
    assert {kind.__name__.removesuffix("Classifier") for kind in ESTIMATORS if not is_regressor(kind())} >= {
        kind.__name__.removesuffix("Regressor") for kind in ESTIMATORS if is_regressor(kind())
    }


def assert_the_same(model, loaded):
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    assert (loaded.plan_, loaded.privacy_, loaded.ledger_) == (model.plan_, model.privacy_, model.ledger_)
    assert loaded.plan_.event == model.plan_.event
    assert loaded.schema_ == model.schema_
    assert list(loaded.feature_names_in_) == list(X.columns)
    apart = ("random_state", "adjacency", "schema")
    given = {name: value for name, value in model.get_params().items() if name not in apart}
    assert {name: loaded.get_params()[name] for name in given} == given
    if not is_regressor(model):
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert loaded.classes_.tolist() == model.classes_.tolist()
        assert loaded.classes_.dtype == model.classes_.dtype
    assert verify_ledger(loaded.ledger_, head=loaded.privacy_.ledger_head).grants == 1


@pytest.mark.slow_after(2)  # many fits and plans
@every
def test_a_model_on_disk_is_the_model(kind, tmp_path):
    model = fitted(kind)
    model.save(tmp_path / "model")
    assert_the_same(model, kind.load(tmp_path / "model"))
    assert type(load_model(tmp_path / "model")) is kind, "the command line reads it, too"


@pytest.mark.slow_after(5)  # many fits and plans
@every
def test_fits_on_one_ledger_add_up_until_one_is_refused(kind):
    ledger = Ledger(Budget(epsilon=2.5, delta=1e-3, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    first, second = fitted(kind, ledger), fitted(kind, ledger)
    charges = [entry.charge.epsilon for entry in ledger.entries if isinstance(entry, GrantEntry)]
    assert charges == [first.privacy_.epsilon, second.privacy_.epsilon]
    assert ledger.spent().epsilon == pytest.approx(sum(charges), rel=1e-12)
    before = ledger.entries
    with pytest.raises(BudgetExceeded, match="epsilon"):
        fitted(kind, ledger)
    assert ledger.entries == before
    report = verify_ledger(ledger.record(), head=second.privacy_.ledger_head)
    assert report.grants == 2
    assert report.epsilon_readded == pytest.approx(sum(charges), rel=1e-9)
    # The first model keeps the ledger as it stood after its own fit.
    assert verify_ledger(first.ledger_, head=first.privacy_.ledger_head).grants == 1


@pytest.mark.slow_after(1)  # many fits and plans
@every
def test_a_schema_is_estimated_where_none_is_declared_within_the_budget(kind, tmp_path):
    rows = pd.concat([X] * 10, ignore_index=True)
    labels = np.tile(LABELS[True], 10)
    model = small(kind, schema=None, epsilon=20.0).fit(rows, labels if is_regressor(kind()) else labels > 4.0)
    assert model.plan_.purchase is not None
    assert 19.8 < model.privacy_.epsilon <= 20.0
    assert lw.price(model.plan_.event).epsilon(model.delta) == model.privacy_.epsilon
    drawn = [entry.purpose for entry in model.ledger_.entries if isinstance(entry, DrawEntry)]
    bought = [purpose for purpose in drawn if purpose.startswith("schema: ")]
    assert drawn[: len(bought)] == bought, "before any tree"
    assert {f"schema: bounds of feature {place}" for place in (1, 3)} <= set(bought)
    assert [feature.name for feature in model.schema_.features] == list(X.columns)
    if not is_regressor(kind()):
        assert model.classes_.tolist() == [False, True]
        assert model.classes_.dtype == np.bool_
    model.save(tmp_path / "model")
    assert_the_same(model, kind.load(tmp_path / "model"))


@pytest.mark.slow_after(3)  # many fits and plans
@every
def test_a_seed_repeats_a_fit_protects_nobody_and_warns(kind):
    with pytest.warns(PrivacyWarning, match="random_state"):
        one = fitted(kind, random_state=3)
    other = fitted(kind, random_state=3)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert one.privacy_.epsilon == np.inf
    assert {entry.randomness for entry in one.ledger_.entries if isinstance(entry, DrawEntry)} == {"test"}
    assert fitted(kind).privacy_.epsilon <= 1.0


@every
def test_a_neighbour_moves_releases_by_its_price_at_most(kind):
    def fit(data):
        rows, labels = data
        return small(kind, random_state=3).fit(rows, labels)

    labels = LABELS[is_regressor(kind())]
    rows = np.empty((N_ROWS, 3), dtype=object)
    rows[:, 0], rows[:, 1], rows[:, 2] = (X[name].to_numpy() for name in X.columns)
    far = added((rows, labels), [1e9, True, -1e9], 10.0 if is_regressor(kind()) else "no", at=5)
    found = replay(fit, (rows, labels), far)
    assert found.ok, found
    assert 0.0 < found.largest_share <= 1.0


@pytest.mark.slow  # fits each about a hundred times
@every
def test_the_kit_that_checks_plug_ins_finds_nothing_in_the_librarys_own(kind):
    report = assert_trainer(small(kind))
    applied = {check.name for check in report.checks if check.verdict == "passed"}
    assert applied >= {"replay", "words on neighbours", "refusals", "noise", "ledger", "shared ledger", "save and load"}
