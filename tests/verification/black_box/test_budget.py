"""A limit on all draws of a slow mechanism: kept, divided, and said."""

from types import SimpleNamespace

import numpy as np
import pytest

from ledgerwood import Adjacency, Budget
from ledgerwood.errors import AuditFailed, InvalidParameter
from ledgerwood.verification import assert_dp, audit
from ledgerwood.verification.black_box import draws
from ledgerwood.verification.black_box.budget import unlimited

ONE = Budget(epsilon=1.0, delta=0.0, adjacency=Adjacency.ADD_REMOVE)


class Counting:
    """Half the noise, and how many outputs were asked for; a clock that stands still but for the seconds of each."""

    def __init__(self, seconds=0.0):
        self.drawn, self.seconds, self.clock = 0, seconds, 0.0

    def __call__(self, dataset, n, rng):
        self.drawn += n
        self.clock += n * self.seconds
        return np.sum(dataset) + rng.laplace(scale=0.4, size=n)


@pytest.mark.slow_after(7)  # many audits
@pytest.mark.parametrize("most", [400, 1_000, 5_000, 20_000])
@pytest.mark.parametrize("stop", ["never", "rejected"])
@pytest.mark.parametrize("pairs", [None, [(0.0, 0.1), (0.0, 1.0), (0.0, 0.5)]])
def test_no_more_is_drawn_than_was_allowed_and_what_was_left_out_is_said(most, stop, pairs):
    if pairs is not None and most == 400:
        with pytest.raises(InvalidParameter, match="at least 572"):  # the search has a share of its own
            audit(Counting(), pairs=pairs, claim=ONE, max_draws=most)
        return
    if pairs is not None and most == 1_000:
        with pytest.raises(InvalidParameter, match="300 outputs for the search among 3 pairs, and at least 700"):
            audit(Counting(), pairs=pairs, claim=ONE, max_draws=most)
        return
    sampler = Counting()
    pair = (0.0, 1.0) if pairs is None else None
    found = audit(sampler, pair, pairs=pairs, claim=ONE, n=20_000, max_draws=most, rng=1, stop=stop)
    asked = "instead of the 40,000" if stop == "never" else "instead of the 100,000"
    assert sampler.drawn == found.samples <= most
    assert found.bounds[0].samples <= most // 2
    assert any(f"max_draws={most:,}" in note and asked in note for note in found.notes)
    assert found.rejected or most < 5_000


def test_a_limit_that_is_not_reached_changes_nothing():
    limited = audit(Counting(), (0.0, 1.0), claim=ONE, n=2_000, max_draws=10**6, rng=1)
    free = audit(Counting(), (0.0, 1.0), claim=ONE, n=2_000, rng=1)
    assert limited.epsilon_lower == free.epsilon_lower
    assert limited.notes == ()


def timed(monkeypatch, seconds):
    """A sampler that takes these seconds for an output, by the clock that the audit reads."""
    sampler = Counting(seconds)
    monkeypatch.setattr(draws, "time", SimpleNamespace(perf_counter=lambda: sampler.clock))
    return sampler


def test_seconds_become_draws_before_anything_is_tested(monkeypatch):
    sampler = timed(monkeypatch, 2e-4)
    found = audit(sampler, (0.0, 1.0), claim=ONE, n=100_000, seconds=1.0, rng=1)
    assert 0.5 < sampler.clock <= 1.0
    assert sampler.drawn == found.samples
    assert any("seconds=1 left room for" in note for note in found.notes)
    assert found.bounds[0].samples >= 200


def test_too_small_a_limit_says_what_is_needed(monkeypatch):
    with pytest.raises(InvalidParameter, match="max_draws=100 must be at least 400"):
        audit(Counting(), (0.0, 1.0), claim=ONE, max_draws=100)
    with pytest.raises(AuditFailed, match=r"seconds=0.01 is enough for .* at least 400 are needed, which take about"):
        audit(timed(monkeypatch, 1e-3), (0.0, 1.0), claim=ONE, seconds=0.01)
    with pytest.raises(InvalidParameter, match="seconds"):
        audit(Counting(), (0.0, 1.0), claim=ONE, seconds=-1.0)


def test_assertions_take_the_same_limits():
    with pytest.raises(AssertionError):
        assert_dp(Counting(), pair=(0.0, 1.0), claim=ONE, max_draws=8_000)


@pytest.mark.parametrize(("n", "learn"), [(1_000, 1_000), (5_000, 2_000), (20_000, 2_000), (50_000, 5_000)])
def test_a_test_that_may_stop_early_learns_from_a_tenth_or_from_two_thousand(n, learn):
    sizes = unlimited(n, "rejected")
    assert (sizes.learn, sizes.fit_first, sizes.choose(1), sizes.n) == (learn, learn, 3 * learn, 5 * n // 2)
