"""What could have been found stands beside what was, and a bound far below it is a warning."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.naive_bayes import GaussianNB

from ledgerwood import Adjacency, Budget, GaussianEvent, PrivacyWarning
from ledgerwood.verification import audit_model
from ledgerwood.verification.black_box.budget import Counts
from ledgerwood.verification.canaries import theory

A = Adjacency.ADD_REMOVE
ROWS = np.random.default_rng(1).normal(size=(40, 2))
LABELS = (ROWS[:, 0] > 0).astype(int)


@pytest.mark.slow  # many fits
@pytest.mark.parametrize(("epsilon", "runs"), [(0.5, 2000), (1.0, 400), (2.0, 2000)])
def test_the_power_is_what_randomised_response_really_gives(epsilon: float, runs: int) -> None:
    """The pair of a pure claim is one coin of rate e^eps / (1 + e^eps), simulated with the best of all uneven coins."""
    expected = theory.perfect_bound(
        Budget(epsilon=epsilon, delta=0.0, adjacency=A), runs=runs, delta=0.0, alpha=0.05
    )  # fmt: skip
    rate, rng, medians = math.exp(epsilon) / (1.0 + math.exp(epsilon)), np.random.default_rng(3), []
    for coin in np.arange(1, 16) / 16.0:
        found = []
        for first in rng.binomial(runs, coin, size=200).tolist():
            inside, other = int(rng.binomial(first, rate)), int(rng.binomial(runs - first, 1.0 - rate))
            counts = Counts(inside=inside, other=other, outside=runs - first - other, runs=runs, coin=float(coin))
            found.append(counts.epsilon_from_labels(delta=0.0, alpha=0.05))
        medians.append(float(np.median(found)))
    assert expected == pytest.approx(max(medians), abs=0.06)
    assert expected < epsilon


def test_the_ceiling_is_the_exact_bound_where_all_outputs_tell() -> None:
    """k of k labels in the event: alpha^(1/k) is the least share, k a quantile of the coin's count."""
    by_hand = []
    for coin in np.arange(1, 16) / 16.0:
        k = float(stats.binom.isf(1e-6, 1000, coin))
        share = 0.05 ** (1.0 / k)
        by_hand.append(math.log(share / (1.0 - share)) - math.log(coin / (1.0 - coin)))
    found = theory.largest_bound(runs=1000, delta=0.0, alpha=0.05)
    assert max(by_hand) * (1.0 - 1e-6) < found <= max(by_hand)


@pytest.mark.slow  # many fits
def test_the_power_grows_with_the_audit_and_stays_below_the_claim() -> None:
    claim = GaussianEvent(noise_multiplier=1.0, adjacency=A)
    found = [theory.perfect_bound(claim, runs=runs, delta=1e-5, alpha=0.05) for runs in (200, 2000, 200_000)]
    assert found == sorted(found)
    assert 0.0 < found[0] < found[-1] < theory.price_of(claim, 1e-5)


BASE: dict[str, Any] = {"largest": 5.0, "needed": "more", "stronger": "other"}


def test_the_rule_is_half_of_what_could_be_found() -> None:
    assert not theory.weaknesses(found=1.01, detectable=2.0, price=3.0, rejected=False, **BASE)
    (far,) = theory.weaknesses(found=0.99, detectable=2.0, price=3.0, rejected=False, **BASE)
    assert "the bound 0.99 is far below what could have been found" in far
    assert "expected to show 2." in far
    (small,) = theory.weaknesses(found=1.4, detectable=1.4, price=3.0, rejected=False, **BASE)
    assert "this audit is too small for its claim" in small
    assert len(theory.weaknesses(found=0.0, detectable=1.4, price=3.0, rejected=False, **BASE)) == 2
    assert not theory.weaknesses(found=0.0, detectable=2.0, price=3.0, rejected=True, **BASE)
    unclaimed: dict[str, Any] = {"detectable": math.nan, "price": math.inf, "rejected": False}
    assert not theory.weaknesses(found=2.6, **unclaimed, **BASE)
    (could,) = theory.weaknesses(found=0.0, **unclaimed, **BASE)
    assert "this audit could have shown up to 5" in could


def test_zero_from_an_attack_that_saw_nothing_is_no_reassurance() -> None:
    """Predictions of naive Bayes hardly depend on one row in a cell of its own: today's bound is 0, without a word."""
    claim = Budget(epsilon=1.0, delta=0.0, adjacency=A)
    with pytest.warns(
        PrivacyWarning, match="GaussianNB: .* far below what could have been found.*released='attributes'"
    ):
        audit = audit_model(GaussianNB(), ROWS, LABELS, canaries=300, claim=claim, rng=1)
    assert audit.epsilon_lower < 0.5 * audit.epsilon_detectable
    assert audit.epsilon_detectable < audit.price == pytest.approx(1.0)
    assert audit.epsilon_ceiling >= audit.epsilon_detectable
    assert "no evidence that the model tells little" in str(audit)
    assert any("nothing else that the fitted model holds" in note for note in audit.notes)
    assert audit.to_dict()["weaknesses"] == list(audit.weaknesses)


def test_an_attack_that_sees_what_can_be_seen_is_not_warned_of() -> None:
    class Kept:
        def fit(self, X: Any, y: Any) -> None:
            self.known = {tuple(row): label for row, label in zip(X.tolist(), y.tolist(), strict=True)}

        def predict(self, X: Any) -> Any:
            return np.array([self.known.get(tuple(row), -5.0) for row in np.asarray(X).tolist()], dtype=float)

    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        audit = audit_model(
            Kept(), ROWS, LABELS.astype(float), canaries=100, fill=0, rng=1,
            claim=Budget(epsilon=1.0, delta=0.0, adjacency=A),
        )  # fmt: skip
    assert audit.rejected
    assert not audit.weaknesses
