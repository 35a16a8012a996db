"""What the recommended trees do not have, and why: samples, which never cost less for the same signal, and streams."""

import mpmath as mp
import pytest
from sklearn.base import clone

import ledgerwood as lw
from ledgerwood.trainers import PrivateBoostingClassifier, PrivateBoostingRegressor

A = lw.Adjacency.ADD_REMOVE


def gaussian(sigma):
    return lw.GaussianEvent(noise_multiplier=sigma, adjacency=A)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("q", [0.01, 0.1, 0.5, 0.9])
def test_a_sampled_tree_never_costs_less_than_one_over_all_rows(q, sigma):
    """At the same noise for a full signal, sigma / q: docs/explanation/boosting.md#boosting-samples."""
    sampled = lw.PoissonSampled(gaussian(sigma), sampling_rate=q)
    for order in (2, 3, 8, 32, 128):
        moment = mp.fsum(
            mp.binomial(order, k)
            * (1 - mp.mpf(q)) ** (order - k)
            * mp.mpf(q) ** k
            * mp.exp(k * (k - 1) / (2 * mp.mpf(sigma) ** 2))
            for k in range(order + 1)
        )
        found = float(sampled.renyi([float(order)])[0])
        assert found == pytest.approx(float(mp.log(moment) / (order - 1)), rel=1e-6)
        assert found > order * (q / sigma) ** 2 / 2.0


@pytest.mark.parametrize("q", [0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_at_one_budget_and_number_of_trees_a_sampled_plan_has_more_noise_for_its_signal(q, epsilon):
    budget = lw.Budget(epsilon=epsilon, delta=1e-6, adjacency=A)

    def noise(rate):
        def plan(sigma):
            event = gaussian(sigma) if rate == 1.0 else lw.PoissonSampled(gaussian(sigma), sampling_rate=rate)
            return lw.Repeated(event, count=256)

        return lw.calibrate(plan, budget) / rate

    assert noise(q) > noise(1.0)


@pytest.mark.parametrize(
    ("kind", "other"), [(PrivateBoostingRegressor, "SGBDTRegressor"), (PrivateBoostingClassifier, "SGBDTClassifier")]
)
def test_there_is_no_partial_fit_and_an_access_says_what_to_use(kind, other):
    model = kind(epsilon=2.0)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match=rf"{kind.__name__} has no partial_fit: .*Use {other}\(\.\.\.\)"):
        model.partial_fit([[0.0]], [0.0])
    assert clone(model).epsilon == 2.0


def test_samples_are_no_parameter():
    for kind in (PrivateBoostingRegressor, PrivateBoostingClassifier):
        with pytest.raises(TypeError, match="subsample"):
            kind(subsample=0.5)
