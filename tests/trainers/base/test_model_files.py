"""A saved model's folder: what of it belongs together, and what a save may replace."""

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter, LedgerError
from ledgerwood.trainers import SGBDTRegressor

X = np.random.default_rng(0).uniform(0, 1, (300, 2))
Y = np.round(X[:, 0] * 9, 3)
SCHEMA = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0.0, 10.0))


def regressor(**options):
    return SGBDTRegressor(**({"n_estimators": 2, "max_depth": 2, "delta": 1e-6, "schema": SCHEMA} | options))


def saved(model, folder):
    model.save(folder)
    return folder


def test_arrays_of_another_model_are_refused(tmp_path):
    first, second = (saved(regressor().fit(X, Y), tmp_path / name) for name in ("first", "second"))
    (first / "arrays.npz").write_bytes((second / "arrays.npz").read_bytes())
    with pytest.raises(InvalidParameter, match=r"arrays\.npz is not the file"):
        SGBDTRegressor.load(first)


def test_a_model_is_replaced_by_a_later_save(tmp_path):
    saved(regressor().fit(X, Y), tmp_path / "model")
    later = regressor().fit(X, Y)
    loaded = SGBDTRegressor.load(saved(later, tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(X), later.predict(X))


def test_a_folder_with_another_ledger_keeps_its_model(tmp_path):
    first, other = regressor().fit(X, Y), regressor(epsilon=2.0).fit(X, Y)
    first.save(tmp_path / "model")
    with pytest.raises(LedgerError, match="save to another path"):
        other.save(tmp_path / "model")
    np.testing.assert_array_equal(SGBDTRegressor.load(tmp_path / "model").predict(X), first.predict(X))
