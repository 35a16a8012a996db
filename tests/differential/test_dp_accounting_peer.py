"""dp-accounting as an oracle: two lattices of losses must have the truth in common; Renyi curves must agree."""

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.interop import from_dp_event, to_dp_event, to_neighboring_relation

ADD_REMOVE, ZERO_OUT, REPLACE_ONE = lw.Adjacency.ADD_REMOVE, lw.Adjacency.ZERO_OUT, lw.Adjacency.REPLACE_ONE
dpa = pytest.importorskip("dp_accounting", reason="needs the extra: oracle")
closed = pytest.importorskip("dp_accounting.gaussian_mechanism", reason="needs the extra: oracle")
STEP = 1e-4  # of the peer's lattice: it rounds each loss of one draw by at most this


def gaussian(multiplier, adjacency=ADD_REMOVE):
    return lw.GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)


def laplace(multiplier, adjacency=ADD_REMOVE):
    return lw.LaplaceEvent(noise_multiplier=multiplier, adjacency=adjacency)


def sampled(event, rate):
    return lw.PoissonSampled(event, sampling_rate=rate)


PLANS = {
    "gaussian": (gaussian(1.0), 1e-5),
    "gaussian under zero-out": (gaussian(4.0, ZERO_OUT), 1e-8),
    "gaussian under replace-one": (gaussian(2.5, REPLACE_ONE), 1e-5),
    "gaussians under replace-one": (lw.Repeated(gaussian(6.0, REPLACE_ONE), count=20), 1e-6),
    "one sampled gaussian": (sampled(gaussian(1.0), 0.01), 1e-5),
    "sampled gaussians": (lw.Repeated(sampled(gaussian(2.0), 0.05), count=100), 1e-5),
    "laplace": (laplace(1.0), 1e-6),
    "laplaces": (lw.Repeated(laplace(10.0), count=100), 1e-6),
    "sampled laplaces": (lw.Repeated(sampled(laplace(0.5), 0.1), count=10), 1e-5),
    "two sampled laplaces, where adding costs more": (lw.Repeated(sampled(laplace(1.0), 0.9), count=2), 0.4),
    "mixed": (
        lw.Composed(
            (
                lw.Repeated(gaussian(5.0), count=10),
                lw.Repeated(laplace(10.0), count=10),
                lw.Repeated(sampled(gaussian(1.0), 0.01), count=100),
            )
        ),
        1e-5,
    ),
    "randomised response": (lw.RandomizedResponseEvent(epsilon=1.0, categories=5, adjacency=REPLACE_ONE), 1e-5),
    "discrete laplaces": (
        lw.Repeated(lw.DiscreteLaplaceEvent(scale=8.0, sensitivity=2, adjacency=ADD_REMOVE), count=50),
        1e-6,
    ),
}


def optimistic(pld, event):
    """The peer's loss distribution of a plan from below, which its accountant does not offer."""
    relation, options = (
        to_neighboring_relation(event.adjacency),
        {"pessimistic_estimate": False, "value_discretization_interval": STEP},
    )
    match event:
        case lw.Repeated():
            return optimistic(pld, event.event).self_compose(event.count)
        case lw.Composed():
            first, *rest = (optimistic(pld, part) for part in event.events)
            for other in rest:
                first = first.compose(other)
            return first
    rate, inner = (event.sampling_rate, event.event) if isinstance(event, lw.PoissonSampled) else (1.0, event)
    tree = to_dp_event(inner)
    match inner:
        case lw.GaussianEvent():
            options |= {"sampling_prob": rate, "neighboring_relation": relation}
            return pld.from_gaussian_mechanism(tree.noise_multiplier, **options)
        case lw.LaplaceEvent():
            return pld.from_laplace_mechanism(tree.noise_multiplier, sampling_prob=rate, **options)
        case lw.DiscreteLaplaceEvent():
            return pld.from_discrete_laplace_mechanism(tree.noise_parameter, tree.sensitivity, **options)
        case lw.RandomizedResponseEvent():
            options["neighboring_relation"] = relation
            return pld.from_randomized_response(tree.noise_parameter, tree.num_buckets, **options)


@pytest.mark.slow  # prices beside those of another library
@pytest.mark.parametrize("name", PLANS)
def test_both_lattices_hold_the_truth(name):
    event, delta = PLANS[name]
    accountant = dpa.pld.PLDAccountant(to_neighboring_relation(event.adjacency), STEP)
    accountant.compose(to_dp_event(event))
    peer_high = accountant.get_epsilon(delta)
    peer_low = optimistic(dpa.pld.privacy_loss_distribution, event).get_epsilon_for_delta(delta)
    low, high = lw.price(event, method="pld").epsilon_interval(delta)
    # The peer's sums are rounded without a bound: of "discrete laplaces" its lower end is 8.65964639918, and the exact
    # sum over the three losses of a draw is 8.65964639870.
    assert peer_low <= high + 1e-9
    assert low <= peer_high + 1e-9
    assert lw.price(event).epsilon(delta) >= max(low, peer_low - 1e-9)
    assert peer_high == pytest.approx(high, abs=2 * STEP)
    draws = sum(count for _, count in event.draws())
    assert peer_high - peer_low <= 1.5 * STEP * draws  # else the two comparisons above would say little


ORDERS = [1.5, 2.0, 3.0, 8.0, 33.0]
CURVES = {
    "gaussian": gaussian(1.7),
    "sampled gaussian": sampled(gaussian(0.8), 0.05),
    "laplace": laplace(0.6),
    "randomised response": lw.RandomizedResponseEvent(epsilon=1.5, categories=4, adjacency=REPLACE_ONE),
    "zcdp": lw.ZeroConcentratedEvent(rho=0.3, adjacency=REPLACE_ONE),
    "plan": lw.Composed((lw.Repeated(gaussian(3.0, ZERO_OUT), count=5), laplace(2.0, ZERO_OUT))),
}


@pytest.mark.parametrize("name", CURVES)
def test_renyi_curves_agree(name):
    event = CURVES[name]
    accountant = dpa.rdp.RdpAccountant(ORDERS, to_neighboring_relation(event.adjacency))
    accountant.compose(to_dp_event(event))
    ours = event.renyi(ORDERS)
    exact = np.array([order.is_integer() or name != "sampled gaussian" for order in ORDERS])
    assert ours[exact] == pytest.approx(accountant.rdp[exact], rel=1e-11)
    assert (ours <= accountant.rdp * (1 + 1e-11)).all()  # at other orders the peer bounds its series from above


def test_of_an_exponential_mechanism_the_peer_knows_less():
    """Its lattice of a black box of the same epsilon bounds ours, and is met where one such release is priced."""
    box = dpa.pld.privacy_loss_distribution.from_privacy_parameters(dpa.pld.common.DifferentialPrivacyParameters(0.1))
    event = lw.BoundedRangeEvent(epsilon=0.1, adjacency=ADD_REMOVE)
    ours = lw.price(lw.Repeated(event, count=1000)).epsilon(1e-6)
    assert ours < 8.85 < 19.3 < box.self_compose(1000).get_epsilon_for_delta(1e-6) < 19.4
    assert lw.price(event).delta(0.05) <= box.get_delta_for_epsilon(0.05)


SAMPLES = {
    "poisson": (dpa.dp_event.PoissonSampledDpEvent(0.1, dpa.GaussianDpEvent(2.0)), 50),
    "nearly everybody": (dpa.dp_event.PoissonSampledDpEvent(0.9, dpa.GaussianDpEvent(2.0)), 5),
}


@pytest.mark.slow  # prices beside those of another library
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_under_replace_one_are_bounded_from_above(name):
    """The peer has the Gaussian's own three laws; ours bounds any release of that presence and replacement."""
    tree, count = SAMPLES[name]
    accountant = dpa.pld.PLDAccountant(to_neighboring_relation(REPLACE_ONE), STEP)
    accountant.compose(tree, count)
    event = lw.Repeated(from_dp_event(tree, adjacency=REPLACE_ONE), count=count)
    assert accountant.get_epsilon(1e-5) - STEP * count <= lw.price(event).epsilon(1e-5)


@pytest.mark.parametrize("shape", [1.0, float("inf")])
def test_private_selection_costs_what_the_peer_says_or_less(shape):
    tree = dpa.dp_event.RepeatAndSelectDpEvent(dpa.GaussianDpEvent(3.0), 10.0, shape)
    accountant = dpa.rdp.RdpAccountant()
    accountant.compose(tree)
    ours, theirs = lw.price(from_dp_event(tree, adjacency=ADD_REMOVE)).epsilon(1e-5), accountant.get_epsilon(1e-5)
    assert 0.75 * theirs < ours < theirs * (1 + 1e-9)


def test_the_gaussian_is_calibrated_alike():
    ours = lw.calibrate(gaussian, lw.Budget(epsilon=1.0, delta=1e-5, adjacency=ADD_REMOVE))
    assert ours == pytest.approx(closed.get_sigma_gaussian(1.0, 1e-5), rel=1e-9)
    assert lw.price(gaussian(2.0)).epsilon(1e-8) == pytest.approx(closed.get_epsilon_gaussian(2.0, 1e-8), rel=1e-9)
