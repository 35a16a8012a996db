"""Pictures of audits: the bounds and the rates are the audit's own."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from ledgerwood.accounting import Adjacency, Budget
from ledgerwood.displays import AttackDisplay, AuditDisplay
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification import audit
from ledgerwood.verification.attacks.membership import AttackReading, RateReading

A = Adjacency.ADD_REMOVE


@pytest.fixture(scope="module")
def result():
    """Normal noise of multiplier 1, claimed to be much better than it is."""

    def sampler(data, n, rng):
        return len(data) + rng.normal(size=n)

    claim = Budget(epsilon=0.05, delta=1e-5, adjacency=A)
    return audit(sampler, pair=([1, 2], [1]), claim=claim, n=4000, rng=np.random.default_rng(0))


def test_bounds_stand_beside_the_claim(result):
    display = AuditDisplay.from_audit(result)
    assert [bound.epsilon for bound in display.bounds] == [bound.value for bound in result.bounds]
    assert (display.claimed, display.rejected) == (0.05, result.rejected)
    assert f"at least {result.bounds[0].value:.3g}" in display.alt
    assert ("is refuted" in display.alt) is result.rejected
    ax = display.plot(Figure().add_subplot())
    dots = [line for line in ax.get_lines() if line.get_marker() == "o"]
    drawn = sorted(float(x) for line in dots for x in line.get_xdata())
    assert drawn == pytest.approx(sorted(bound.value for bound in result.bounds))
    assert any(list(line.get_xdata()) == [0.05, 0.05] for line in ax.get_lines())


@pytest.mark.parametrize("log", [False, True])
def test_an_attacks_rates_stand_beside_the_claim(result, log):
    display = AttackDisplay.from_audit(result, log=log)
    ax = display.plot(Figure().add_subplot())
    assert (ax.get_xscale() == "log") is log
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["true rates lie here", "this attack", "most that the claim allows", "guessing"]
    assert 0.5 < display.roc.area < 1.0
    assert f"area under the curve is {display.roc.area:.3f}" in display.alt
    claimed = 1.0 - np.array(display.claimed.false_negative_rate)
    np.testing.assert_array_equal(ax.get_lines()[1].get_ydata(), claimed)


def test_a_reading_is_drawn_as_points():
    rate = RateReading(asked=0.01, false_positive_rate=0.01, false_positive_low=0.0, false_positive_high=0.02,
                       true_positive_rate=0.03, true_positive_low=0.01, true_positive_high=0.06)  # fmt: skip
    reading = AttackReading(attack="loss", source="", auc=0.6, advantage=0.1, rates=(rate,), members=9, others=9,
                            shadows=0, alpha=0.05, seconds=0.1)  # fmt: skip
    display = AttackDisplay.from_reading(reading)
    assert "true positive rate 0.03 [0.01, 0.06] at false positive rate 0.01" in display.alt
    assert display.plot(Figure().add_subplot()).get_xscale() == "log"


def test_an_audit_without_scores_has_no_curve(result):
    import dataclasses

    with pytest.raises(InvalidParameter, match="kept no scores"):
        AttackDisplay.from_audit(dataclasses.replace(result, scores=None))
