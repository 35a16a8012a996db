"""What makes a plan's privacy cost quick to compute, beside the plain way of the same: equal to the last bit."""

import itertools
import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.costs.losses import dots as lines
from ledgerwood.accounting.costs.losses import joint, lattice, saddle

A = Adjacency.ADD_REMOVE
GENERATOR = np.random.default_rng(11)


@pytest.mark.parametrize("size", [1, 2, 3, 17, 400])
def test_the_dots_that_are_kept_are_the_lower_hull(size):
    """A dot is kept if no chord between two others lies below it: heights are convex in e^loss."""
    t = np.concatenate(([0.0], np.cumsum(GENERATOR.uniform(0.01, 0.2, size - 1)))).tolist()
    h = (np.exp(-np.array(t)) + 0.05 * GENERATOR.random(size)).tolist()
    kept, heights = joint._convex(t, h)
    places = [t.index(each) for each in kept]
    assert heights == [h[place] for place in places]
    assert (places[0], places[-1]) == (0, size - 1)
    x = np.exp(np.array(t))
    hull = np.interp(x, x[places], np.array(h)[places])
    assert (hull <= np.array(h) * (1 + 1e-12)).all()
    slopes = np.diff(hull[places]) / np.diff(x[places])
    assert (np.diff(slopes) >= -1e-9 * np.abs(slopes).max(initial=1.0)).all()


@pytest.mark.parametrize(("step", "end", "per_fold"), [(1e-3, 0.005, 64.0), (1e-4, 3.0, 24.0), (0.02, 50.0, 641.3)])
def test_lattice_points_are_those_of_a_set(step, end, per_fold):
    found = lattice.nodes(step, end, per_fold)
    last = math.ceil(end / step) + 2
    start = last if last <= lattice._FEW else min(math.ceil(per_fold), last)
    count = int(math.log(max(last / start, 1.0)) * per_fold) + 2
    sparse = {round(start * math.exp(place / per_fold)) for place in range(count + 1)}
    expected = {*range(start + 1), *(each for each in sparse if each < last), *range(max(last - 4, 0), last + 1)}
    assert found.dtype == np.int64
    assert found.tolist() == sorted(expected)


@pytest.mark.parametrize("size", [1, 7, 129, 5000, 70_000])
def test_sums_of_many_scales_at_once_are_those_of_each(size):
    log_mass, losses = GENERATOR.normal(-5.0, 3.0, size), np.sort(GENERATOR.normal(0.0, 2.0, size))
    scales = -saddle._MARKOV / 0.3
    for scale, found in zip(scales, saddle._log_sums(log_mass, losses, scales), strict=True):
        powers = log_mass + scale * losses
        top = float(powers.max())
        total = math.log(float(np.exp(powers - top).sum()))
        assert found == top + total + 16.0 * lattice.ULP * (200.0 + abs(top))
        assert found >= top + math.log(math.fsum(np.exp(powers - top).tolist()))


EVENTS = [
    lw.LaplaceEvent(noise_multiplier=1.3, adjacency=A),
    lw.BoundedRangeEvent(epsilon=0.4, adjacency=A),
    lw.PoissonSampled(lw.LaplaceEvent(noise_multiplier=0.7, adjacency=A), sampling_rate=0.2),
    lw.GaussianEvent(noise_multiplier=2.0, adjacency=A),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("direction", Direction)
def test_both_sides_of_an_event_that_is_symmetric_are_looked_at_once(event, direction, monkeypatch):
    found = lines.dots(event, direction, 1e-3, math.log(1e-12), 200.0, below=None)
    monkeypatch.setattr(np, "array_equal", lambda *_: False)  # nothing is alike
    plain = lines.dots(event, direction, 1e-3, math.log(1e-12), 200.0, below=None)
    for name in ("ahead_index", "ahead", "back_index", "back"):
        assert getattr(found, name).tolist() == getattr(plain, name).tolist()


@pytest.mark.parametrize("few", [2, 3, 4])
def test_the_divergence_of_a_composition_is_the_larger_of_both_directions(few):
    orders = np.array([1.1, 2.0, 7.5, 64.0])
    for events in itertools.combinations(EVENTS, few):
        whole = lw.Composed((*events, events[0]))
        sides = [whole.renyi(orders, direction=direction) for direction in Direction]
        assert whole.renyi(orders).tolist() == np.maximum(*sides).tolist()
        for side, direction in zip(sides, Direction, strict=True):
            parts = [event.renyi(orders, direction=direction) for event in (*events, events[0])]
            np.testing.assert_allclose(side, np.sum(parts, axis=0), rtol=1e-12)
            assert (side >= np.sum(parts, axis=0) * (1.0 - 2.0 * renyi.ULP)).all()
