import math

import numpy as np
import pytest
from scipy import stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.peers.category_names import CategoryNames


def names(weights, target):
    """Small ones go to the rest; a rest below the target takes the smallest other one."""
    kept = [name for name, weight in weights.items() if weight >= target]
    rest = [weight for weight in weights.values() if weight < target]
    if rest and sum(rest) < target and kept:
        kept.remove(min(kept, key=weights.__getitem__))
    return kept


def test_two_names_are_kept_together_or_not_at_all():
    for a in np.linspace(0.0, 3.0, 13):
        for b in np.linspace(0.0, 3.0, 13):
            assert names({"a": a, "b": b}, 1.3) == (["a", "b"] if min(a, b) >= 1.3 else [])


@pytest.mark.parametrize("count", [20, 40, 200])
@pytest.mark.parametrize("at", [0.0, 0.5, 100.0])
def test_the_loss_by_enumeration(count, at):
    rare = stats.norm(1, 32.5).sf((count + 1) / 32) * stats.norm(count, 32.5).sf((count + 1) / 32)
    common = stats.norm(count, 32.5).sf(count / 32)
    p, q = (rare, 0.0, 1 - rare), (0.0, common, stats.norm(count, 32.5).cdf(count / 32))
    sides = [sum(max(a - math.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p))]
    assert CategoryNames(count=count).delta(at) == pytest.approx(max(sides), rel=1e-9)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"max_bins": 0}, {"stddev": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        CategoryNames(**wrong)
