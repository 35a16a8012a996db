"""prv-accountant as an oracle: its interval and ours must have the truth in common."""

import pytest

import ledgerwood as lw

ADD_REMOVE = lw.Adjacency.ADD_REMOVE
prv_accountant = pytest.importorskip("prv_accountant", reason="needs the extra: oracle")
prv = pytest.importorskip("prv_accountant.privacy_random_variables", reason="needs the extra: oracle")
ERROR = 0.01  # of epsilon, each way, that the peer is asked for


def gaussian(multiplier):
    return lw.GaussianEvent(noise_multiplier=multiplier, adjacency=ADD_REMOVE)


def sampled(multiplier, rate):
    return lw.PoissonSampled(gaussian(multiplier), sampling_rate=rate)


def laplace(multiplier):
    return lw.LaplaceEvent(noise_multiplier=multiplier, adjacency=ADD_REMOVE)


PLANS = {
    "gaussians": ({gaussian(4.0): 10}, 1e-5),
    "sampled gaussians": ({sampled(1.0, 0.01): 1000}, 1e-5),
    "many faint samples": ({sampled(4.0, 0.01): 1000}, 1e-6),
    "laplaces": ({laplace(10.0): 100}, 1e-6),
    "pure": ({lw.PureEvent(epsilon=0.1, adjacency=ADD_REMOVE): 100}, 1e-6),
    "mixed": ({gaussian(5.0): 10, laplace(10.0): 10, sampled(1.0, 0.01): 100}, 1e-5),
}


def variable(event):
    match event:
        case lw.GaussianEvent():
            return prv.GaussianMechanism(event.noise_multiplier)
        case lw.LaplaceEvent():
            return prv.LaplaceMechanism(mu=1.0 / event.noise_multiplier)
        case lw.PureEvent():
            return prv.PureDPMechanism(event.epsilon)
        case lw.PoissonSampled():
            return prv.PoissonSubsampledGaussianMechanism(
                sampling_probability=event.sampling_rate, noise_multiplier=event.event.noise_multiplier
            )


@pytest.mark.slow_after(1)  # prices beside those of another library
@pytest.mark.parametrize("name", PLANS)
def test_both_intervals_hold_the_truth(name):
    counts, delta = PLANS[name]
    variables = [variable(event) for event in counts]
    accountant = prv_accountant.PRVAccountant(
        prvs=variables, max_self_compositions=list(counts.values()), eps_error=ERROR, delta_error=delta / 1000
    )
    peer_low, estimate, peer_high = accountant.compute_epsilon(delta, list(counts.values()))
    event = lw.Composed(tuple(lw.Repeated(step, count=count) for step, count in counts.items()))
    low, high = lw.price(event, method="pld").epsilon_interval(delta)
    assert peer_low <= high
    assert low <= peer_high
    assert lw.price(event).epsilon(delta) >= max(low, peer_low)
    assert estimate == pytest.approx(high, abs=ERROR)
