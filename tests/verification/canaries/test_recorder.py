import numpy as np
import pytest

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.curator import LeafMoments, LeafRatios, SplitGains
from ledgerwood.curator.rounds import CuratorRound
from ledgerwood.errors import ReplayFailed
from ledgerwood.trainers import DPBoostRegressor, SGBDTRegressor
from ledgerwood.trainers.sgbdt import training as sgbdt
from ledgerwood.verification.canaries.recorder import recorded
from ledgerwood.verification.canaries.rows import canary_cells

SCHEMA = Schema(features=tuple(Categorical(f"b{i}", (0, 1)) for i in range(4)), target=Numeric("y", -1.0, 1.0))
ROWS = np.array([[0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
LABELS = np.array([-0.5, 0.25, 1.0])


def model() -> SGBDTRegressor:
    return SGBDTRegressor(epsilon=2.0, delta=1e-5, schema=SCHEMA, n_estimators=3, initial_score="zero", random_state=7)


def test_a_recording_keeps_what_the_trainer_gets_and_changes_nothing() -> None:
    plain = model().fit(ROWS, LABELS)
    methods = CuratorRound.release, CuratorRound.select, sgbdt.random_tree
    with recorded() as recording:
        fitted = model().fit(ROWS, LABELS)
    assert (CuratorRound.release, CuratorRound.select, sgbdt.random_tree) == methods
    assert (fitted.predict(ROWS) == plain.predict(ROWS)).all()
    assert recording.trees == 3
    assert [type(each.query.statistic) for each in recording.releases] == [LeafMoments] * 3
    assert len({each.draw for each in recording.releases}) == 3
    for released, tree in zip(recording.releases, fitted.ensemble_.trees, strict=True):
        assert (fitted.plan_.leaf_values(released.value) == tree.values).all()


def test_a_fixed_tree_changes_neither_plan_nor_price() -> None:
    plain = model().fit(ROWS, LABELS)
    cells = canary_cells(SCHEMA, 16, bins=4)
    with recorded(cells.structure) as recording:
        fitted = model().fit(ROWS, LABELS)
    assert recording.trees == 3
    assert all(tree.structure is cells.structure for tree in fitted.ensemble_.trees)
    assert fitted.plan_ == plain.plan_
    assert [entry.event for entry in fitted.ledger_.entries[1:]] == [entry.event for entry in plain.ledger_.entries[1:]]


def test_groups_and_choices_are_told_apart() -> None:
    with recorded() as recording:
        DPBoostRegressor(
            epsilon=4.0, schema=SCHEMA, n_estimators=2, trees_per_ensemble=2, max_depth=1, initial_score="zero",
            leaf_release="ratio", random_state=7,
        ).fit(ROWS, LABELS)  # fmt: skip
    asked = [(getattr(each.query, "statistic", each.query), each) for each in recording.releases]
    assert [(type(query), each.chosen, each.group) for query, each in asked] == [
        (SplitGains, True, 0), (LeafRatios, False, 0), (SplitGains, True, 1), (LeafRatios, False, 1),
    ]  # fmt: skip
    assert len({each.draw for each in recording.releases}) == 1


def test_one_fit_is_recorded_at_a_time() -> None:
    with (
        recorded(),
        pytest.raises(ReplayFailed, match="another recording is going on here, a record of an audited fit"),
        recorded(),
    ):
        pass
    with recorded() as recording:  # the refused one has not stuck
        assert recording.releases == []
