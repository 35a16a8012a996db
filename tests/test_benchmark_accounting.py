"""The accounting benchmark's own judgements: what it calls under, inside, narrow, below or contradicted."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.accounting import accuracy, agreement, calibration, cases, inversion, sides, tightness, width


def rows(*truths):
    return [("gaussian", 0.1, 1.0, 2.0, Fraction(truth)) for truth in truths]


def test_the_summary_counts_what_is_wrong():
    found = accuracy.summary(
        rows("1", "1", "1e-12", "2", "2", "2"), [1.0 + 1e-4, 1.0 - 1e-4, -1e-12, math.nan, math.inf, 2.0]
    )
    assert (found["points"], found["nan"], found["inf"], found["not positive"]) == (6, 1, 1, 1)
    assert (found["under by 0"], found["under by 1e-06"], found["under by 0.001"]) == (2, 2, 1)
    assert found["largest over"] == pytest.approx(1e-4)
    assert found["worst under"] == pytest.approx(-1e-4)  # not -2, of a truth below 1e-9


def test_a_value_that_is_only_rounded_down_counts_as_under():
    found = accuracy.summary(rows("0.1000000000000000000001", "0.1"), [math.nextafter(0.1, 0.0), 0.1])
    assert found["under by 0"] == 1  # the float 0.1 is above one tenth


def test_the_whole_ground_truth_is_read():
    found = accuracy.truth("laplace")
    assert len(found) == 728
    assert all(row[-1] > 0 for row in found)


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(1.0, 1.1, True), (1.0500006, 1.1, False), (1.0, 1.0499994, False)]
)
def test_a_reference_is_inside_up_to_its_last_digit(low, high, expected):
    case = cases.Case(draws=cases.sampled(0.1, 1, 1.0), delta=1e-5, reference=1.05)
    assert tightness.inside(low, high, case) is expected


def test_no_reference_no_verdict():
    assert tightness.inside(0.0, 1.0, cases.OTHERS[0]) is None


def test_the_goal_is_the_larger_of_absolute_and_relative():
    assert tightness.narrow(0.01, 0.0101)
    assert not tightness.narrow(0.01, 0.01011)
    assert tightness.narrow(100.0, 100.1)
    assert not tightness.narrow(100.0, 100.2)
    assert not tightness.narrow(0.0, math.inf)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [(None, "refused"), ([0.0, math.inf], "unbounded"), ([0.0, 1.0], "wide"), ([1.0, 1.0001], "in goal")],
)
def test_verdicts_on_a_width(interval, expected):
    assert width.verdict(interval) == expected


def test_a_multiplier_is_below_by_more_than_rounding():
    target = cases.Target(rate=1.0, count=1, epsilon=1.0, reference=3.73063163, decimals=8)
    assert calibration.below(3.7306316, target)
    assert not calibration.below(3.730631627, target)
    assert calibration.ratio({"value": 2 * target.reference}, target) == pytest.approx(1.0)
    assert calibration.ratio({"error": "no"}, target) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ((1.0, 1.1, 1.1), (0.5, 1.05), []),
        ((1.2, 1.3, 1.3), (0.5, 1.1), ["lower above pessimistic"]),
        ((1.0, 1.1, 1.15), (1.12, 1.2), ["upper below optimistic"]),
        ((1.0, 1.1, 1.1), (1.2, 1.3), ["upper below optimistic", "tightest below optimistic"]),
        ((1.1, 1.0, 1.2), (0.0, 2.0), ["crossed"]),
    ],
)
def test_contradictions(ours, theirs, expected):
    assert agreement.contradictions(ours, theirs) == expected


def test_the_judge_refutes_beyond_its_own_error():
    assert agreement.refuted(None, (0.0, 1.0)) is None
    assert agreement.refuted(1.0 + 1e-8, (0.0, 1.0)) is False
    assert agreement.refuted(1.0 + 1e-6, (0.0, 1.0)) is True


def test_random_plans_are_the_same_every_time():
    assert agreement.random_cases() == agreement.random_cases()
    assert len(agreement.random_cases()) == agreement.PLANS


def test_cells():
    assert sides.cell(sides.stored(2.5), "{:.1f}".format) == "2.5*"
    assert sides.cell({"error": "NotImplementedError: Gaussian noise only"}, str) == "-"
    assert sides.cell({"error": "ValueError: too low"}, str) == "ValueError"
    assert [sides.span(ms) for ms in (0.1234, 45.6, 12_345.0)] == ["0.12 ms", "46 ms", "12.3 s"]


def test_our_runs_have_parameters_of_their_own():
    seen = []
    answer = sides.ours(lambda nudge: seen.append(nudge) or 7.0, runs=3)
    assert answer["value"] == 7.0
    assert len(set(seen)) == 4
    assert seen[-1] == 1.0  # so that the value is the one at the stated parameters


def test_a_refusal_of_ours_is_an_answer():
    def refuse(nudge):
        raise ValueError("too wide")

    assert sides.ours(refuse) == {"error": "ValueError: too wide"}


def test_the_label_of_a_plan():
    assert cases.label((("gaussian", 1.0, 0.01, 10_000), ("laplace", 0.25, 1.0, 1))) == "G(1)@0.01 x10000 + L(0.25)"


def gaussian_delta(mu, epsilon):
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("multiplier", "count"), [(1.0, 1), (5.0, 100), (3.0, 9)])
def test_the_judge_agrees_with_the_closed_form(multiplier, count):
    draws = cases.sampled(1.0, count, multiplier)
    found = inversion.epsilon(draws, 1e-6, 4.0)
    assert gaussian_delta(math.sqrt(count) / multiplier, found) == pytest.approx(1e-6, rel=1e-7)


@pytest.mark.slow_after(1)  # each study once, made small
@pytest.mark.parametrize("case", cases.SAMPLED[1:4], ids=lambda case: cases.label(case.draws))
def test_the_judge_agrees_with_the_references(case):
    near = 1.1 * case.reference
    assert inversion.epsilon(case.draws, case.delta, near) == pytest.approx(case.reference, abs=1e-6)


def test_sampling_at_rate_one_is_no_sampling_for_the_judge():
    s = np.array([0.3 + 0.2j])
    for remove in (True, False):
        almost = inversion.transform(("gaussian", 1.0, 1.0 - 1e-12, 1), s, remove=remove)
        assert almost == pytest.approx(inversion.transform(("gaussian", 1.0, 1.0, 1), s, remove=remove), rel=1e-9)


def test_the_transform_of_laplace_noise():
    b, s = 2.0, 1.5  # e^{s D_{1+s}}, Mironov 2017, Table II
    a = 1.0 + s
    expected = math.log(a / (2 * a - 1) * math.exp(s / b) + s / (2 * a - 1) * math.exp(-a / b))
    found = inversion.transform(("laplace", b, 1.0, 3), np.array([s + 0j]), remove=True)
    assert found[0].real == pytest.approx(3 * expected, rel=1e-12)


def test_the_judge_knows_when_it_cannot_tell():
    assert inversion.epsilon(cases.sampled(0.01, 1, 1.0), 1e-5, 0.2) is None  # one draw, hardly ever a hit
    assert inversion.epsilon((("laplace", 10.0, 1.0, 100),), 1e-6, 4.7) is None  # atoms
