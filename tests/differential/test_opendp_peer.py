"""OpenDP as an oracle of the discrete mechanisms, selection, and the conversion from zCDP."""

import pytest

import ledgerwood as lw
from ledgerwood.accounting.interop import from_dp_event

ADD_REMOVE, REPLACE_ONE = lw.Adjacency.ADD_REMOVE, lw.Adjacency.REPLACE_ONE
dp = pytest.importorskip("opendp.prelude", reason="needs the extra: oracle")
de = pytest.importorskip("dp_accounting.dp_event", reason="needs the extra: oracle")
dp.enable_features("contrib")
INTEGERS = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
SCALES = [0.5, 5.0, 123.4]


@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace(scale):
    theirs = dp.m.make_laplace(*INTEGERS, scale=scale).map(3)
    event = lw.DiscreteLaplaceEvent(scale=scale, sensitivity=3, adjacency=ADD_REMOVE)
    assert event.pure_epsilon() == pytest.approx(theirs, rel=1e-15)
    assert event.pure_epsilon() <= theirs


@pytest.mark.parametrize("scale", SCALES)
def test_discrete_gaussian(scale):
    rho = dp.m.make_gaussian(*INTEGERS, scale=scale).map(3)
    event = lw.DiscreteGaussianEvent(scale=scale, sensitivity=3, adjacency=ADD_REMOVE)
    orders = [1.1, 2.0, 7.5, 40.0]
    assert (event.renyi(orders) <= [rho * order * (1 + 1e-12) for order in orders]).all()
    assert event.renyi([2.0, 40.0]) == pytest.approx([2 * rho, 40 * rho], rel=1e-12)  # whole orders attain the bound


def test_many_discrete_gaussians():
    once = dp.m.make_gaussian(*INTEGERS, scale=20.0)
    composed = dp.c.make_composition([once] * 50)
    theirs = dp.c.make_zCDP_to_approxDP(composed).map(1).epsilon(1e-6)
    event = lw.DiscreteGaussianEvent(scale=20.0, sensitivity=1, adjacency=ADD_REMOVE)
    plan = lw.Repeated(event, count=50)
    low, high = lw.price(plan, method="pld").epsilon_interval(1e-6)
    assert low <= high <= lw.price(plan).epsilon(1e-6) <= theirs * (1 + 1e-6)
    assert theirs == pytest.approx(lw.price(plan, method="renyi").epsilon(1e-6), rel=1e-6)


def test_from_zcdp():
    measured = dp.m.make_gaussian(*INTEGERS, scale=2.0)
    curve = dp.c.make_zCDP_to_approxDP(measured).map(1)
    event = lw.ZeroConcentratedEvent(rho=measured.map(1), adjacency=ADD_REMOVE)
    for delta in (1e-3, 1e-6, 1e-12):
        assert lw.price(event).epsilon(delta) == pytest.approx(curve.epsilon(delta), rel=1e-6)


@pytest.mark.parametrize(("categories", "truth"), [(2, 0.7), (3, 0.6), (26, 0.5)])
def test_randomised_response(categories, truth):
    names = [str(index) for index in range(categories)]
    theirs = dp.m.make_randomized_response(names, prob=truth).map(1)
    parameter = (1 - truth) * categories / (categories - 1)
    tree = de.RandomizedResponseDpEvent(parameter, categories)
    assert from_dp_event(tree, adjacency=REPLACE_ONE).pure_epsilon() == pytest.approx(theirs, rel=1e-12)


def test_selection():
    """Scores move by at most 1 each way: the range of what decides is 2 / scale."""
    scores = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    selection = dp.m.make_noisy_max(*scores, dp.zero_concentrated_divergence(), scale=4.0)
    rho, event = selection.map(1.0), lw.BoundedRangeEvent(epsilon=0.5, adjacency=ADD_REMOVE)
    orders = [1.1, 2.0, 9.0, 60.0]
    assert (event.renyi(orders) <= [rho * order for order in orders]).all()
    assert event.renyi([1.1])[0] == pytest.approx(1.1 * rho, rel=0.05)
    pure = dp.m.make_noisy_max(*scores, dp.max_divergence(), scale=4.0).map(1.0)
    assert event.pure_epsilon() == pytest.approx(pure, rel=1e-12)
