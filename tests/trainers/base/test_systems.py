"""Trainers by name: this library's own come by the door that is open to others, and nothing else comes in by it."""

from importlib.metadata import EntryPoint

import pytest
from sklearn.linear_model import LogisticRegression

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import PrivaTreeClassifier, SGBDTClassifier, SGBDTRegressor, System
from ledgerwood.trainers.base import systems

NUMBERS = lw.Schema.uniform(0, 1, n_features=1, target=lw.Numeric("y", 0, 1))
CLASSES = lw.Schema.uniform(0, 1, n_features=1, target=lw.Categorical("y", (0, 1)))
FOREIGN = System(title="foreign", classifier=SGBDTClassifier)
NOT_A_SYSTEM = SGBDTClassifier


@pytest.fixture(autouse=True)
def fresh():
    systems.declared.cache_clear()
    systems.system.cache_clear()
    yield
    systems.declared.cache_clear()
    systems.system.cache_clear()


def declare(monkeypatch, *pairs):
    points = tuple(EntryPoint(name, value, systems.GROUP) for name, value in pairs)
    monkeypatch.setattr(systems, "entry_points", lambda group: points if group == systems.GROUP else ())


def test_the_librarys_own_are_declared_and_every_estimator_is_found_by_its_name():
    assert {"sgbdt", "dpboost", "dpxgboost", "federated", "privatree"} <= systems.declared().keys()
    ours = {name for name in lw.trainers.__all__ if name.endswith(("Classifier", "Regressor"))}
    assert ours - {"AbstractClassifier", "AbstractRegressor"} <= {
        kind.__name__ for name in systems.declared() for kind in systems.system(name).estimators
    }
    assert systems.estimator_named("PrivaTreeClassifier") is PrivaTreeClassifier
    with pytest.raises(InvalidParameter, match="known are DPBoostClassifier, "):
        systems.estimator_named("LogisticRegression")


def test_a_package_brings_a_system(monkeypatch):
    declare(monkeypatch, ("mine", f"{__name__}:FOREIGN"))
    monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.value.partition(":")[2]])
    assert systems.system("mine") is FOREIGN
    assert systems.system("mine").for_target(CLASSES) is SGBDTClassifier
    with pytest.raises(InvalidParameter, match="foreign learns classes; the schema's target is Numeric"):
        systems.system("mine").for_target(NUMBERS)
    with pytest.raises(InvalidParameter, match=r"system='sgbdt' must be one of 'mine' \(unit: name\)"):
        systems.system("sgbdt")


def test_what_is_no_system_is_refused_by_name(monkeypatch):
    declare(monkeypatch, ("mine", f"{__name__}:NOT_A_SYSTEM"))
    monkeypatch.setattr(EntryPoint, "load", lambda self: NOT_A_SYSTEM)
    with pytest.raises(InvalidParameter, match="NOT_A_SYSTEM, declared as the trainer 'mine', is not a"):
        systems.system("mine")


def test_two_packages_cannot_share_a_name(monkeypatch):
    declare(monkeypatch, ("mine", "one:SYSTEM"), ("mine", "other:SYSTEM"))
    with pytest.raises(InvalidParameter, match="two packages declare the trainer 'mine': one:SYSTEM and other:SYSTEM"):
        systems.declared()


def test_a_system_learns_something_by_an_estimator_of_the_library():
    with pytest.raises(InvalidParameter, match="needs a classifier or a regressor"):
        System(title="nothing")
    with pytest.raises(InvalidParameter, match="LogisticRegression.* is no trainer"):
        System(title="plain", classifier=LogisticRegression)
    with pytest.raises(InvalidParameter, match="the schema names no target"):
        System(title="ours", regressor=SGBDTRegressor).for_target(lw.Schema.uniform(0, 1, n_features=1))
