"""Whatever counts what is left of a draw exists once: a copy would release what one draw paid for a second time."""

import copy
import pickle

import numpy as np
import pytest

from ledgerwood import (
    Adjacency,
    Budget,
    FilteredEvent,
    GDPEvent,
    Ledger,
    Numeric,
    Parallel,
    PrivacyUnit,
    RandomAllocation,
    Schema,
)
from ledgerwood.curator import Curator, LabelCount, LabelMoments, RowVault, StreamCurator, StreamRows, Table
from ledgerwood.curator.filtered import PlanPurse, RunPurse
from ledgerwood.errors import PrivacyError
from ledgerwood.mechanisms import GaussianMechanism, SeededRandom

A = Adjacency.ADD_REMOVE
SCHEMA = Schema.uniform(0.0, 1.0, n_features=1, target=Numeric("y", -1.0, 1.0))
NOISE = GaussianMechanism(stddev=4.0)
COUNT = NOISE.event(LabelCount().sensitivity(A), A)
MOMENTS = NOISE.event(LabelMoments().sensitivity(A), A)
FILTERED = FilteredEvent(MOMENTS, limit=GDPEvent(mu=2.0 * MOMENTS.mu(), adjacency=A))
GROUPS = Parallel((COUNT, COUNT), probabilities=(0.5, 0.5))
ALLOCATION = RandomAllocation(COUNT, selected=1, steps=2)


def granted(event):
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=A), unit=PrivacyUnit.ROW)
    return ledger.grant(event, purpose="test")


def curator(event):
    table = Table(schema=SCHEMA, cells=np.zeros((1, 8), np.uint8), targets=np.full(8, 0.5))
    return Curator(table, granted(event), SeededRandom(1))


def stream_rounds():
    rows = StreamRows.from_data([[0.5]], [0.0], ["a"], SCHEMA, loss="squared", bins=8, vault=RowVault())
    return StreamCurator(rows, granted(FILTERED), SeededRandom(1)).open(FILTERED, purpose="rounds")


MADE = {
    "AllocatedRounds": lambda: curator(ALLOCATION).open_allocation(ALLOCATION, purpose="steps"),
    "Curator": lambda: curator(COUNT),
    "CuratorGroups": lambda: curator(GROUPS).open_groups(GROUPS, purpose="groups"),
    "CuratorRound": lambda: curator(COUNT).open(COUNT, purpose="count"),
    "FilteredRounds": lambda: curator(FILTERED).open(FILTERED, purpose="rounds"),
    "Gate": lambda: RunPurse(COUNT, granted(COUNT).draw(COUNT, purpose="run")).gate,
    "PlanPurse": lambda: PlanPurse(COUNT, granted(COUNT)),
    "RunPurse": lambda: RunPurse(COUNT, granted(COUNT).draw(COUNT, purpose="run")),
    "StreamRounds": stream_rounds,
}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("name", MADE)
def test_no_copy_of_what_a_draw_pays_for(name, copied):
    made = MADE[name]()
    assert type(made).__name__ == name
    with pytest.raises(PrivacyError, match=rf"(an?|this) {name} cannot be copied or pickled, or .*; use the object"):
        copied(made)
