"""autodp as an oracle of Renyi divergences, and of composition by them."""

import numpy as np
import pytest

import ledgerwood as lw

ADD_REMOVE, REPLACE_ONE = lw.Adjacency.ADD_REMOVE, lw.Adjacency.REPLACE_ONE
zoo = pytest.importorskip("autodp.mechanism_zoo", reason="needs the extra: oracle")
transformers = pytest.importorskip("autodp.transformer_zoo", reason="needs the extra: oracle")
ORDERS = [2.0, 3.0, 8.0, 32.0]


def gaussian(multiplier):
    return lw.GaussianEvent(noise_multiplier=multiplier, adjacency=ADD_REMOVE)


def laplace(multiplier):
    return lw.LaplaceEvent(noise_multiplier=multiplier, adjacency=ADD_REMOVE)


CURVES = {
    "gaussian": (gaussian(1.3), zoo.GaussianMechanism(1.3)),
    "laplace": (laplace(0.7), zoo.LaplaceMechanism(0.7)),
    "pure": (lw.PureEvent(epsilon=0.8, adjacency=ADD_REMOVE), zoo.PureDP_Mechanism(0.8)),
    "zcdp": (lw.ZeroConcentratedEvent(rho=0.2, adjacency=ADD_REMOVE), zoo.zCDP_Mechanism(0.2)),
    "randomised response": (
        lw.RandomizedResponseEvent(epsilon=np.log(3.0), categories=2, adjacency=REPLACE_ONE),
        zoo.RandresponseMechanism(0.75),
    ),
}


@pytest.mark.parametrize("name", CURVES)
def test_renyi_curves_agree(name):
    event, mechanism = CURVES[name]
    assert event.renyi(ORDERS) == pytest.approx([mechanism.RenyiDP(order) for order in ORDERS], rel=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_sampled_renyi_curves_agree_at_whole_orders(name, rate):
    event, mechanism = CURVES[name]
    sample = transformers.AmplificationBySampling()
    sampled = sample(mechanism, rate, improved_bound_flag=True)
    ours = lw.PoissonSampled(event, sampling_rate=rate).renyi(ORDERS)
    assert ours == pytest.approx([sampled.RenyiDP(order) for order in ORDERS], rel=1e-7)


BOUNDS = {
    "exponential": (lw.BoundedRangeEvent(epsilon=1.0, adjacency=ADD_REMOVE), zoo.ExponentialMechanism(1.0)),
    "discrete gaussian": (
        lw.DiscreteGaussianEvent(scale=0.7, sensitivity=1, adjacency=ADD_REMOVE),
        zoo.DiscreteGaussianMechanism(0.7),
    ),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_where_the_peer_has_a_bound_ours_is_below_it(name):
    event, mechanism = BOUNDS[name]
    orders = [1.3, 2.5, 7.9]
    theirs = np.array([mechanism.RenyiDP(order) for order in orders])
    assert (event.renyi(orders) < theirs).all()
    assert event.renyi(orders)[0] == pytest.approx(theirs[0], rel=0.2)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the peer's search over orders
def test_composition_by_divergences_agrees():
    step = transformers.AmplificationBySampling()(zoo.GaussianMechanism(1.0), 0.01, improved_bound_flag=True)
    composed = transformers.Composition()([step, zoo.LaplaceMechanism(5.0)], [2000, 3])
    steps = lw.Repeated(lw.PoissonSampled(gaussian(1.0), sampling_rate=0.01), count=2000)
    event = lw.Composed((steps, lw.Repeated(laplace(5.0), count=3)))
    ours, theirs = lw.price(event, method="renyi").epsilon(1e-6), composed.get_approxDP(1e-6)
    assert ours <= theirs * (1 + 1e-9)  # which knows whole orders only
    assert ours == pytest.approx(theirs, rel=0.005)


def test_the_exact_gaussian_agrees():
    theirs = zoo.ExactGaussianMechanism(2.0).approxDP(1e-6)
    assert lw.price(gaussian(2.0)).epsilon(1e-6) == pytest.approx(theirs, rel=1e-6)
