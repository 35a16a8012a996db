import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.errata.sgbdt.clock_seeded_sample import ClockSeededSample


def shuffled(items, count, draw):
    """The code's shuffle: from the end, swap with a place at or below; the last `count` are the sample."""
    items = list(items)
    for last in range(len(items) - 1, len(items) - 1 - count, -1):
        other = draw(last + 1)
        items[last], items[other] = items[other], items[last]
    return items[len(items) - count :]


def test_the_place_in_the_shuffle_decides():
    # For one stream of the shuffle, a larger sample only adds rows: a row is in if its place is at most the number.
    for seed in range(20):
        first_in = None
        for count in range(13):
            rng = np.random.default_rng(seed)
            inside = 7 in shuffled(range(12), count, lambda n, rng=rng: int(rng.integers(n)))
            first_in = count if inside and first_in is None else first_in
            assert inside == (first_in is not None)
        assert first_in is not None


@pytest.mark.parametrize("count", [1, 12, 200])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_loss_by_enumeration_of_places(count, epsilon, sampled_gaussian_delta):
    specimen = ClockSeededSample(count=count, sampling_rate=0.3, noise_multiplier=1.5)
    masses = [math.comb(count, k) * 0.3**k * 0.7 ** (count - k) for k in range(count + 1)]
    rates = [math.fsum(masses[place:]) for place in range(1, count + 1)]
    assert specimen.rates() == pytest.approx(rates, rel=1e-9, abs=1e-14)
    assert math.fsum(rates) == pytest.approx(0.3 * count)  # the mean rate is still the sampling rate
    expected = math.fsum(sampled_gaussian_delta(1 / 1.5, min(r, 1.0), epsilon) for r in rates if r > 1e-12) / count
    assert specimen.delta(epsilon) == pytest.approx(expected, rel=1e-7)


def test_one_row_alone_keeps_its_secret():
    specimen = ClockSeededSample(count=1)
    assert specimen.delta(1.0) == pytest.approx(specimen.claimed_delta(1.0), rel=1e-12)


def test_many_rows_have_no_secret_left():
    event = lw.GaussianEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE)
    known = 0.1 * lw.price(event).delta(1.0)  # a tenth of the rows is in for certain
    assert 0.98 * known < ClockSeededSample(count=20_000).delta(1.0) < known


@pytest.mark.parametrize("wrong", [{"noise_multiplier": 0.0}, {"sampling_rate": 1.0}, {"count": 0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        ClockSeededSample(**wrong)


def test_the_librarys_seed_is_marked_and_voids_the_guarantee():
    schema = lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("y", 0.0, 1.0))
    rows = np.array([[0.2], [0.4], [0.8]])
    found = {}
    for seed in (None, 1):
        model = SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=2, subsample=0.5, random_state=seed)
        found[seed] = model.fit(rows, rows[:, 0]).privacy_.epsilon
    assert found[None] <= 1.0
    assert found[1] == math.inf
