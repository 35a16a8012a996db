"""Splits of a small sample, whose rows alone are binned: the same as of a table of these rows."""

import numpy as np

from ledgerwood import Numeric, Schema
from ledgerwood.curator import SplitGains, Table
from ledgerwood.ensemble import Ensemble, SplitTests, TreeStructure

SCHEMA = Schema(features=tuple(Numeric(name, 0.0, 1.0) for name in "abc"), target=Numeric("t", -1.0, 1.0))
START = Ensemble(initial_score=0.0)


def test_a_small_sample_is_summed_as_a_table_of_its_own_whatever_was_kept_before():
    generator = np.random.default_rng(2)
    cells, targets = generator.integers(0, 64, (3, 2000)).astype(np.uint8), generator.uniform(-1, 1, 2000)
    table = Table(schema=SCHEMA, cells=cells, targets=targets)
    tests = [
        SplitTests.every(SCHEMA.cells(64), [np.unique(generator.integers(1, 64, 5)) for _ in range(3)])
        for _ in range(2)
    ]
    samples = [generator.random(2000) < rate for rate in (0.1, 0.05, 0.6)]
    # Other tests, other samples, both, and none of them; all rows at last.
    for which, mask in ((0, 0), (0, 1), (1, 1), (0, 1), (0, 2), (1, 0), (1, None)):
        sampled = np.empty(0, np.bool_) if mask is None else samples[mask]
        own = slice(None) if mask is None else sampled
        alone = Table(schema=SCHEMA, cells=np.ascontiguousarray(cells[:, own]), targets=targets[own])
        structure = TreeStructure.root()
        for level in range(3):
            query = SplitGains(
                structure=structure, tests=tests[which], ensemble=START, loss="squared", clip=0.5, damping=1.0
            )
            found, wanted = table.utilities(query, sampled), alone.utilities(query, np.empty(0, np.bool_))
            np.testing.assert_array_equal(found, wanted)
            assert np.any(found)
            structure = structure.deeper(tests[which].taken(np.arange(level, level + structure.n_leaves)))
