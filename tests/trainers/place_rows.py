"""Rows that lie in several places, their schema, and what a fit on them released: for tests of files and clusters."""

import typing

import numpy as np
import pandas as pd

import ledgerwood as lw
from ledgerwood import Categorical, Numeric
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPXGBoostClassifier,
    FederatedGBDTClassifier,
    PrivateBoostingClassifier,
    PrivaTreeClassifier,
    SGBDTClassifier,
)
from ledgerwood.trainers.dpboost.plan import Preset as DPBoostPreset
from ledgerwood.trainers.dpxgboost.plan import Preset as DPXGBoostPreset
from ledgerwood.trainers.federated.presets import Preset as FederatedPreset
from ledgerwood.trainers.privatree.plan import Preset as PrivaTreePreset
from ledgerwood.trainers.sgbdt.plan import Preset as SGBDTPreset

N = 340
GENERATOR = np.random.default_rng(20)
ROWS = pd.DataFrame(
    {
        "size": GENERATOR.uniform(-0.1, 1.1, N),
        "age": GENERATOR.integers(0, 90, N),
        "kind": GENERATOR.choice(["u", "v", "other"], N),
        "row id": np.arange(N),
    }
)
ROWS.loc[::31, "size"] = np.nan
ROWS["number"] = ROWS["size"].fillna(0.5) + 0.3 * (ROWS["kind"] == "u")
ROWS["two"] = np.where(ROWS["number"] > 0.6, "yes", "no")
ROWS["three"] = np.where(ROWS["number"] > 0.8, "h", ROWS["two"])
ROWS["weight"] = np.where(np.arange(N) % 3, 1.0, 0.4)
FEATURES = (Numeric("size", 0, 1, missing=True), Numeric("age", 0, 100), Categorical("kind", ("u", "v")))
NAMES = ["size", "age", "kind"]
TARGETS = {
    "number": Numeric("number", 0, 1.5),
    "two": Categorical("two", ("no", "yes")),
    "three": Categorical("three", ("no", "yes", "h")),
}


def schema_of(label="two", weight_bound=None):
    return lw.Schema(features=FEATURES, target=TARGETS[label], weight_bound=weight_bound)


def model_of(kind=SGBDTClassifier, label="two", weight_bound=None, preset=None, **more):
    named = {} if preset is None else {"preset": preset}
    common = {"epsilon": 5.0, "delta": 1e-4, "random_state": 3, "schema": schema_of(label, weight_bound)}
    return kind(**{**common, **named, **more})


def told(model):
    """All that a fit released and wrote down."""
    ensemble = model.ensemble_
    trees = [(tree.values.tolist(), *(each.tolist() for each in tree.structure.lowered())) for tree in ensemble.trees]
    ledger = [(type(entry).__name__, getattr(entry, "event", None)) for entry in model.ledger_.entries]
    return ensemble.initial_score, trees, ledger, model.privacy_.epsilon


SYSTEMS = {
    SGBDTClassifier: SGBDTPreset,
    DPBoostClassifier: DPBoostPreset,
    DPXGBoostClassifier: DPXGBoostPreset,
    FederatedGBDTClassifier: FederatedPreset,
    PrivaTreeClassifier: PrivaTreePreset,
    PrivateBoostingClassifier: None,
}
"""Each system, and its presets where it has some."""
MATRIX = sorted(
    [(kind, preset) for kind, presets in SYSTEMS.items() for preset in typing.get_args(presets) or (None,)],
    key=lambda case: case[1] not in ("default", "recommended", None),
)
SMALL = {PrivaTreeClassifier: {"max_depth": 3}}
