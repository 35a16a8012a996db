"""One tree of depth 1 with the whole budget, audited in the place of a model whose attack has no power."""

import json
import math
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ledgerwood import Budget, Categorical, Numeric, PrivacyWarning, Schema, price
from ledgerwood.accounting import Adjacency
from ledgerwood.cli.commands import app
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import (
    DPBoostRegressor,
    DPXGBoostRegressor,
    FederatedGBDTRegressor,
    PrivaTreeClassifier,
    SGBDTRegressor,
)
from ledgerwood.verification import audit_model
from ledgerwood.verification.canaries.reduced import LEFT_OVER, one_mechanism

FEATURES = tuple(Categorical(f"b{i}", (0, 1)) for i in range(4))
SCHEMA = Schema(features=FEATURES, target=Numeric("y", -1.0, 1.0))
CLASSED = Schema(features=FEATURES, target=Categorical("y", ("a", "b")))
GENERATOR = np.random.default_rng(2)
ROWS, LABELS = GENERATOR.integers(0, 2, (30, 4)), GENERATOR.uniform(-1.0, 1.0, 30)
SYSTEMS: dict[str, Any] = {
    "S-GBDT": SGBDTRegressor(epsilon=4.0, delta=1e-5, schema=SCHEMA),
    "DPBoost": DPBoostRegressor(epsilon=4.0, schema=SCHEMA),
    "DPBoost, paper": DPBoostRegressor(epsilon=4.0, schema=SCHEMA, preset="paper"),
    "DP-XGBoost": DPXGBoostRegressor(epsilon=4.0, schema=SCHEMA),
    "DP-XGBoost, paper": DPXGBoostRegressor(epsilon=4.0, schema=SCHEMA, preset="paper"),
    "federated": FederatedGBDTRegressor(epsilon=4.0, delta=1e-5, schema=SCHEMA),
    "PrivaTree": PrivaTreeClassifier(epsilon=4.0, schema=CLASSED),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_reduced_model_is_one_tree_with_the_whole_budget(name: str) -> None:
    model = SYSTEMS[name]
    reduced, changed = one_mechanism(model)
    plan = reduced.make_plan(reduced.schema)
    assert reduced.max_depth == 1
    assert plan.max_depth == 1
    assert name == "PrivaTree" or plan.n_estimators == 1
    assert reduced.epsilon == model.epsilon
    kept = {key: value for key, value in model.get_params().items() if key not in changed}
    assert {key: value for key, value in reduced.get_params().items() if key not in changed} == kept
    assert model.max_depth is None  # what was given stays as it was


@pytest.mark.slow  # needs power: many fits
@pytest.mark.parametrize("name", ["DPBoost", "DP-XGBoost"])
def test_one_tree_shows_what_an_ensemble_hides(name: str) -> None:
    """300 trainings show more than 1 of 4; default ensembles show 0 to 0.4."""
    audit = audit_model(SYSTEMS[name], ROWS, LABELS, mode="one_mechanism", trainings=300, rng=3)
    assert 1.0 < audit.epsilon_lower <= audit.price == pytest.approx(4.0, rel=1e-3)
    assert not audit.rejected
    assert (audit.mode, audit.canaries, audit.trainings) == ("one_mechanism", 1, 300)
    assert dict(audit.changed)["n_estimators"] == 1
    assert "The bound is that of the one tree, not of the model" in audit.notes[0]
    assert str(audit).startswith(f"one mechanism of {type(SYSTEMS[name]).__name__}(n_estimators=1, ")
    assert json.loads(json.dumps(audit.to_dict(), allow_nan=False))["mode"] == "one_mechanism"


@pytest.mark.slow  # many fits
def test_a_tree_with_a_tenth_of_its_noise_is_refuted() -> None:
    """One tree of epsilon 10 under a claim of epsilon 1, as a bug in the noise would state it."""
    reduced, _ = one_mechanism(DPBoostRegressor(epsilon=10.0, schema=SCHEMA))
    audit = audit_model(
        reduced, ROWS, LABELS, canaries=1, trainings=120, rng=4,
        claim=Budget(epsilon=1.0, delta=0.0, adjacency=Adjacency.ADD_REMOVE),
    )  # fmt: skip
    assert audit.rejected


def test_public_trees_take_as_many_canaries_as_there_are_cells() -> None:
    audit = audit_model(SYSTEMS["S-GBDT"], ROWS, LABELS, mode="one_mechanism", trainings=4, rng=3)
    assert (audit.canaries, audit.trainings) == (16, 4)


@pytest.mark.slow  # many fits
def test_an_ensemble_whose_attack_sees_little_points_to_the_mode() -> None:
    with pytest.warns(PrivacyWarning, match="mode='one_mechanism'"):
        audit = audit_model(
            DPBoostRegressor(epsilon=4.0, schema=SCHEMA, n_estimators=4), ROWS, LABELS, canaries=8, trainings=8, rng=3
        )  # fmt: skip
    assert audit.weaknesses
    assert audit.mode == "model"


def test_other_learners_and_other_claims_are_refused() -> None:
    class Other:
        def fit(self, X: Any, y: Any) -> None: ...
        def predict(self, X: Any) -> None: ...

    with pytest.raises(InvalidParameter, match="Other is not an estimator of this library"):
        audit_model(Other(), ROWS, LABELS, mode="one_mechanism")
    with pytest.raises(InvalidParameter, match="the audit's claim is the reduced model's privacy cost"):
        audit_model(
            SYSTEMS["DPBoost"], ROWS, LABELS, mode="one_mechanism",
            claim=Budget(epsilon=1.0, delta=0.0, adjacency=Adjacency.ADD_REMOVE),
        )  # fmt: skip


@pytest.mark.slow  # many fits
def test_the_command_line_shows_mode_power_and_warnings(tmp_path: Any) -> None:
    (tmp_path / "schema.json").write_text(
        Schema(features=(Numeric("a", 0, 1), Numeric("b", 0, 1)), target=Numeric("y", -1, 1)).to_json()
    )
    lines = ["a,b,y"] + [f"{x},{z},{y}" for x, z, y in np.random.default_rng(0).uniform(0, 1, (12, 3)).tolist()]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    page = tmp_path / "page.html"
    command = [
        "audit", "model", str(tmp_path / "rows.csv"), "--schema", str(tmp_path / "schema.json"), "--system", "dpboost",
        "--epsilon", "4", "--delta", "0", "--mode", "one_mechanism", "--trainings", "12", "--seed", "1",
    ]  # fmt: skip
    shown = CliRunner().invoke(app, [*command, "--html", str(page)])
    assert shown.exit_code == 0, shown.output
    words = " ".join(shown.output.split())
    for part in (
        "one mechanism of",
        "DPBoostRegressor(n_estimators=1,",
        "a perfect attack would show",
        "largest possible bound",
        "warning 1",
    ):
        assert part in words
    html = page.read_text()
    assert "This audit had too little power to find anything" in html
    assert "audited was one tree of depth 1" in html.replace("Audited", "audited")


@pytest.mark.parametrize("name", ["DPBoost", "DP-XGBoost", "DP-XGBoost, paper"])
def test_a_selection_alone_has_nearly_the_whole_budget(name: str) -> None:
    reduced, changed = one_mechanism(SYSTEMS[name], "one_selection")
    plan = reduced.make_plan(SCHEMA)
    assert plan.split_epsilon > 0.98 * reduced.epsilon
    assert price(plan.event).epsilon(0.0) == pytest.approx(4.0, rel=1e-6)
    assert changed["leaf_share"] == LEFT_OVER


@pytest.mark.parametrize("split_method", ["accuracy", "gini"])
def test_a_selection_alone_leaves_quantiles_next_to_nothing(split_method: str) -> None:
    schema = Schema(features=(Numeric("a", 0.0, 1.0),), target=Categorical("y", ("u", "v")))
    tree = PrivaTreeClassifier(epsilon=4.0, schema=schema, split_method=split_method, candidates="quantiles")
    plan = one_mechanism(tree, "one_selection")[0].make_plan(schema)
    chosen = plan.label_event if split_method == "accuracy" else plan.level_event
    assert price(chosen).epsilon(0.0) > 0.98 * 4.0
    assert price(plan.event).epsilon(0.0) == pytest.approx(4.0, rel=1e-6)


@pytest.mark.parametrize("name", ["DPBoost", "DP-XGBoost", "PrivaTree"])
def test_leaves_alone_have_the_whole_budget(name: str) -> None:
    reduced, changed = one_mechanism(SYSTEMS[name], "one_leaf")
    plan = reduced.make_plan(reduced.schema)
    assert changed["max_depth"] == plan.max_depth == 0
    own = plan.leaf_event if name != "PrivaTree" else plan.label_event
    assert price(own).epsilon(0.0) == pytest.approx(4.0, rel=1e-6)


def test_a_selection_that_a_model_does_not_make_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="SGBDTRegressor chooses no split by a private selection"):
        audit_model(SYSTEMS["S-GBDT"], mode="one_selection")
    histograms = FederatedGBDTRegressor(epsilon=4.0, delta=1e-5, schema=SCHEMA, split_method="histogram")
    with pytest.raises(InvalidParameter, match="chooses no split by a private selection"):
        audit_model(histograms, mode="one_selection")
    assert one_mechanism(histograms, "one_leaf")[1]["max_depth"] == 0
    # Splits that cost nothing leave the budget to the leaves in either mode.
    assert one_mechanism(SYSTEMS["S-GBDT"], "one_leaf")[1] == one_mechanism(SYSTEMS["S-GBDT"])[1]


def test_labels_alone_are_audited() -> None:
    audit = audit_model(PrivaTreeClassifier(epsilon=4.0, schema=CLASSED), mode="one_leaf", trainings=100, rng=6)
    assert (audit.mode, audit.canaries, audit.trainings) == ("one_leaf", 1, 100)
    assert "the release of one tree's leaves with the whole budget" in audit.notes[0]
    assert 0.9 * audit.epsilon_detectable > audit.epsilon_attack > 0.5 * audit.epsilon_detectable
    assert 0.0 < audit.epsilon_lower <= audit.price


@pytest.mark.slow  # makes rows for two trees
@pytest.mark.parametrize(
    "estimator",
    [
        DPXGBoostRegressor(epsilon=4.0, schema=SCHEMA, n_estimators=1, max_depth=1, subsample=0.3),
        DPBoostRegressor(epsilon=4.0, schema=SCHEMA, n_estimators=2, trees_per_ensemble=2, max_depth=1),
    ],
    ids=["a sample", "groups"],
)
def test_no_bound_is_expected_of_rows_that_a_draw_may_leave_out(estimator: Any) -> None:
    """As if it were in every draw, one canary would be expected to show more than a perfect attack can."""
    with pytest.warns(PrivacyWarning):
        audit = audit_model(estimator, trainings=60, rng=6, check_structure=False)
    assert math.isnan(audit.epsilon_attack)
    assert "is expected to show" not in audit.attack
