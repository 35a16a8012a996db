"""What no attack on some releases can exceed, and the score of sums that canaries share."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from ledgerwood import (
    Adjacency,
    Budget,
    Categorical,
    Composed,
    LaplaceEvent,
    Numeric,
    PoissonSampled,
    Repeated,
    Schema,
    price,
)
from ledgerwood.trainers import DPBoostRegressor, DPXGBoostRegressor, PrivaTreeClassifier, SGBDTRegressor
from ledgerwood.verification.auditing.one_run import one_run
from ledgerwood.verification.canaries.fitting import OwnFits
from ledgerwood.verification.canaries.power.as_released import event_as_released
from ledgerwood.verification.canaries.power.ceilings import (
    Nats,
    accuracy_of,
    ceiling,
    choice_nats,
    coin_nats,
    sum_nats,
)
from ledgerwood.verification.canaries.power.shared import laplace_slope

A = Adjacency.ADD_REMOVE
FEATURES = tuple(Categorical(f"b{i}", (0, 1)) for i in range(2))
SMALL = Schema(features=FEATURES, target=Numeric("y", -1.0, 1.0))
NUMERIC = Schema(features=(Numeric("a", 0.0, 1.0), Numeric("b", 0.0, 1.0)), target=Categorical("y", ("a", "b")))
CLASSED = Schema(features=FEATURES, target=Categorical("y", ("a", "b")))


def shannon(law: np.ndarray) -> float:
    return float(special.entr(law).sum())


@given(st.floats(0.01, 8.0))
def test_a_coin_of_randomised_response(epsilon: float) -> None:
    right = 1.0 / (1.0 + math.exp(-epsilon))
    joint = np.array([[right, 1.0 - right], [1.0 - right, right]]) / 2.0
    direct = shannon(joint.sum(axis=0)) + shannon(joint.sum(axis=1)) - shannon(joint.ravel())
    assert coin_nats(epsilon) == pytest.approx(direct, abs=1e-12)
    assert choice_nats(2, 1, 1000, epsilon).least <= math.log(2.0) + 1e-15
    assert choice_nats(1000, 1000, 1, epsilon).least == coin_nats(epsilon)


def test_bounds_of_one_kind_are_added_up_first() -> None:
    """The smaller bound of each release, added up, bounds nothing: coins that were told of depend on each other."""
    both = Nats(outputs=1.0, coins=5.0) + Nats(outputs=5.0, coins=1.0)
    assert both.least == 6.0


@pytest.mark.parametrize("coins", [1, 3])
@pytest.mark.parametrize("shift", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("laplace", [True, False])
def test_the_information_of_a_sum_is_bounded(coins: int, shift: float, laplace: bool) -> None:
    """Of equal coins, by quadrature of the density of what is released."""
    noise = stats.laplace() if laplace else stats.norm()
    weights = stats.binom(coins, 0.5).pmf(np.arange(coins + 1))

    def density(x: float) -> float:
        return float(weights @ noise.pdf(x - shift * np.arange(coins + 1)))

    mixed, _ = integrate.quad(
        lambda x: float(special.entr(density(x))), -40.0, 40.0 + shift * coins, limit=400, points=[0.0, shift * coins]
    )
    told = mixed - float(noise.entropy())
    reach, squares = np.array([[shift * coins]]), np.array([[coins * shift**2]])
    most = sum_nats(reach, squares, np.array([[float(noise.var())]]), laplace=laplace)
    assert 0.0 < told <= min(most.outputs, most.coins) * (1.0 + 1e-6)


@pytest.mark.parametrize("outcomes", [2, 3])
def test_no_code_tells_more_coins_than_its_outcomes(outcomes: int) -> None:
    """All ways to tell three coins by 2 or 3 outcomes, and all guesses of two of the coins, or of three."""
    coins = np.array(list(itertools.product((0, 1), repeat=3)))
    for guesses in (2, 3):
        best = 0.0
        for code in itertools.product(range(outcomes), repeat=8):
            right = 0.0
            for outcome in range(outcomes):
                inside = coins[np.array(code) == outcome]
                if len(inside):
                    counts = np.maximum(inside.sum(axis=0), (1 - inside).sum(axis=0))
                    right += float(np.sort(counts)[-guesses:].sum()) / 8.0
            best = max(best, right / guesses)
        assert best <= accuracy_of(math.log(outcomes), guesses) + 1e-12


def test_sixteen_labels_do_not_show_a_thousand_canaries() -> None:
    claim = Budget(epsilon=4.0, delta=0.0, adjacency=Adjacency.ADD_REMOVE)
    known = ceiling(claim, canaries=1000, nats=16.0 * math.log(2.0), delta=0.0, alpha=0.05)
    free = ceiling(claim, canaries=1000, nats=math.inf, delta=0.0, alpha=0.05)
    assert free > 3.5
    assert known < one_run(16, 16, 1000, delta=0.0, alpha=0.05) + 0.1 < 1.8
    assert ceiling(claim, canaries=1000, nats=0.0, delta=0.0, alpha=0.05) < 0.1


@given(st.floats(-6.0, 6.0), st.floats(0.05, 4.0))
def test_the_slope_of_laplace_noise_and_a_hidden_gaussian(residual: float, hidden: float) -> None:
    def log_density(r: float) -> float:
        found, _ = integrate.quad(
            lambda x: math.exp(-abs(r - x) - 0.5 * x * x / hidden), -15.0, 15.0, points=[r, 0.0], limit=200
        )
        return math.log(found)

    step = 1e-4
    slope = -(log_density(residual + step) - log_density(residual - step)) / (2.0 * step)
    direct = laplace_slope(np.array([residual]), np.array([1.0]), np.array([hidden]))[0]
    assert direct == pytest.approx(slope, abs=1e-4)
    assert laplace_slope(np.array([residual]), np.array([2.0]), np.zeros(1))[0] == pytest.approx(
        0.5 * np.sign(residual), abs=1e-5 if abs(residual) > 1e-3 else 1.0
    )


def released_by(estimator: Any) -> Any:
    """What a fit on one row releases."""
    fits = OwnFits.of(estimator, 2)
    _, recording = fits.fitted(np.zeros((1, 2)), np.ones(1), np.random.default_rng(0))
    return recording.releases


def test_columns_of_laplace_noise_are_composed() -> None:
    """A plan prices number and sum of a leaf by their L1 norm; the pair of both noises tells less, and has one end."""
    tree = DPBoostRegressor(epsilon=2.0, schema=SMALL, n_estimators=1, max_depth=0, initial_score="zero")
    found = event_as_released(released_by(tree))
    assert found is not None
    (scales,) = (each.mechanism.scales for each in released_by(tree))
    multipliers = (scales[0], scales[1] / tree.make_plan(SMALL).clip)
    assert sum(1.0 / each for each in multipliers) == pytest.approx(2.0, rel=1e-9)
    by_hand = Composed(tuple(LaplaceEvent(noise_multiplier=each, adjacency=A) for each in multipliers))
    whole = tree.make_plan(SMALL).event
    for epsilon in (0.5, 1.0, 1.9):
        ours = price(found).delta(epsilon)
        assert ours == pytest.approx(price(by_hand).delta(epsilon), rel=1e-6)
        # By the two densities: E[(1 - e^(epsilon - L))+], L the sum of the two losses.
        first, second = (np.sort(loss_points(1.0 / each)) for each in multipliers)
        direct = float(np.mean(np.maximum(-np.expm1(epsilon - np.add.outer(first, second)), 0.0)))
        assert ours == pytest.approx(direct, rel=0.02)
        assert ours < price(whole).delta(epsilon)


def loss_points(shift: float, points: int = 2000) -> np.ndarray:
    """Equally probable values of |x| - |x - shift| under Laplace noise about `shift`, as P against Q."""
    noise = stats.laplace.ppf((np.arange(points) + 0.5) / points)
    return np.abs(noise + shift) - np.abs(noise)


@pytest.mark.parametrize(
    "estimator",
    [
        SGBDTRegressor(epsilon=2.0, delta=1e-5, schema=SMALL, n_estimators=2, max_depth=1),
        PrivaTreeClassifier(epsilon=2.0, schema=CLASSED, max_depth=1),
        PrivaTreeClassifier(epsilon=2.0, schema=NUMERIC, max_depth=1, preset="paper"),
        DPBoostRegressor(epsilon=2.0, schema=SMALL, n_estimators=2, trees_per_ensemble=2, max_depth=1),
    ],
    ids=["Gaussian noise", "choices", "quantiles", "trees that share rows out"],
)
def test_otherwise_the_claim_is_all_that_is_known(estimator: Any) -> None:
    labels = np.array(["b"]) if isinstance(estimator, PrivaTreeClassifier) else np.ones(1)
    _, recording = OwnFits.of(estimator, 2).fitted(np.zeros((1, 2)), labels, np.random.default_rng(0))
    assert event_as_released(recording.releases) is None


def test_a_sampled_draw_stays_sampled() -> None:
    sampled = DPXGBoostRegressor(epsilon=2.0, schema=SMALL, n_estimators=2, max_depth=1, subsample=0.3)
    found = event_as_released(released_by(sampled))
    assert isinstance(found, Composed)
    rates = {each.sampling_rate for each in parts_of(found) if isinstance(each, PoissonSampled)}
    assert rates == {0.3}


def parts_of(event: Composed) -> list[Any]:
    """The events of the draws."""
    return [each.event if isinstance(each, Repeated) else each for each in event.events]
