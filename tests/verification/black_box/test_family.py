"""Bounds inside the claim's family: stated where a member fits, and where none does the unconditional one is first."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from ledgerwood import Adjacency, Composed, GaussianEvent, LaplaceEvent, PoissonSampled, Repeated
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.pricing import price
from ledgerwood.pages.html import render
from ledgerwood.report.audits.pages import mechanism_page
from ledgerwood.report.audits.running import run_mechanism_audit
from ledgerwood.verification import audit
from ledgerwood.verification.auditing import ClaimedCurve
from ledgerwood.verification.black_box import auditor
from ledgerwood.verification.black_box import terms as family
from ledgerwood.verification.black_box.choosing import Attack, Choice, CurvePoint
from ledgerwood.verification.black_box.learning import Chosen
from ledgerwood.verification.black_box.scores import ScoreCandidate
from ledgerwood.verification.black_box.terms import AuditTerms
from ledgerwood.verification.black_box.testing import agenda

A = Adjacency.ADD_REMOVE


def gaussian(sigma):
    return GaussianEvent(noise_multiplier=sigma, adjacency=A)


def normal(stddev, rate=1.0):
    return lambda dataset, n, rng: dataset * (rng.random(n) < rate) + rng.normal(scale=stddev, size=n)


def run(sampler, claim, **named):
    return audit(sampler, (0.0, 1.0), claim=claim, delta=1e-5, **({"n": 20_000, "rng": 3, "learners": "light"} | named))


@pytest.mark.slow_after(1)  # many audits
@pytest.mark.parametrize(
    ("rate", "sigma", "stop"),
    [
        (0.01, 1.0, "never"), (0.1, 1.0, "never"), (0.3, 0.5, "never"), (0.5, 1.0, "never"), (0.5, 2.0, "never"),
        (0.01, 1.0, "rejected"), (0.5, 1.0, "rejected"),
    ],
)  # fmt: skip
def test_a_sampler_that_always_includes_has_an_unconditional_headline_below_the_truth(rate, sigma, stop):
    claim = PoissonSampled(gaussian(sigma), sampling_rate=rate)
    found = run(normal(sigma), claim, stop=stop)
    assert found.rejected
    assert found.assumption == "none"
    assert all(bound.assumption == "none" for bound in found.bounds)
    assert found.epsilon_lower <= gdp.epsilon(1.0 / sigma, 1e-5)
    assert "no member of the claim's family" in found.notes[0]


@pytest.mark.slow_after(1)  # many audits
@pytest.mark.parametrize(
    ("claim", "sampler"),
    [
        (gaussian(1.0), lambda d, n, rng: d + rng.laplace(size=n)),
        (gaussian(2.0), lambda d, n, rng: np.where(rng.random(n) < 0.01, 1e3 * d, d + rng.normal(scale=2.0, size=n))),
        (Repeated(PoissonSampled(gaussian(1.0), sampling_rate=0.001), count=2), normal(0.7)),
    ],
)
def test_other_mechanisms_than_the_claim_s_family_have_no_conditional_headline(claim, sampler):
    found = run(sampler, claim)
    assert (found.assumption, found.rejected) == ("none", True)
    assert found.notes


@pytest.mark.slow_after(1)  # an audit of each member
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("sigma", "stddev", "rate"), [(1.0, 1.0, 1.0), (3.7, 1.9, 1.0), (1.0, 1.0, 0.3), (1.0, 0.5, 0.3)]
)
def test_members_of_the_family_are_known_as_such(sigma, stddev, rate, seed):
    claim = gaussian(sigma) if rate == 1.0 else PoissonSampled(gaussian(sigma), sampling_rate=rate)
    truth = gaussian(stddev) if rate == 1.0 else PoissonSampled(gaussian(stddev), sampling_rate=rate)
    found = run(normal(stddev, rate), claim, rng=seed)
    assert found.assumption == "the claim's family"
    assert found.notes == ()
    assert found.epsilon_lower <= 1.02 * price(truth).epsilon(1e-5)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 3.0, 50.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_the_member_is_the_gaussian_that_has_this_delta(mu, epsilon):
    delta = stats.norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2)
    if not 1e-12 < delta < 1.0 - 1e-9:
        return
    member = family.member(gaussian(1.0), CurvePoint(epsilon, 0.1, True), float(delta))
    assert member.noise_multiplier == pytest.approx(1.0 / mu, rel=1e-5)
    assert price(member).delta(epsilon) <= delta


def test_beyond_the_family_is_what_a_sample_cannot_show():
    """Whoever is in the sample with probability .1 can be told with probability .1, without any noise."""
    claim, point = PoissonSampled(gaussian(1.0), sampling_rate=0.1), CurvePoint(0.5, 0.01, True)
    assert not family.beyond(claim, point, 0.0999)
    assert family.beyond(claim, point, 0.1001)
    assert ClaimedCurve(claim).less_noise(0.5, 0.2) is None
    assert ClaimedCurve(claim).less_noise(0.5, 0.08) is not None


def test_attacks_that_are_a_little_worse_than_the_best_are_no_misfit():
    claim = gaussian(1.0)
    points = [CurvePoint(epsilon, price(claim).delta(epsilon), True) for epsilon in (0.0, 0.5, 1.0, 2.0)]
    exact = [Attack(point=point, delta=point.delta, error=0.01 * point.delta) for point in points]
    assert family.misfit(claim, exact, points[1]) is None
    worse = [Attack(point=point, delta=0.9 * point.delta, error=0.01 * point.delta) for point in points]
    assert family.misfit(claim, [exact[0], exact[1], *worse[2:]], points[1]) is None
    broken = [*exact[:3], Attack(point=points[3], delta=0.3 * points[3].delta, error=0.01 * points[3].delta)]
    assert "was measured" in family.misfit(claim, broken, points[1])
    assert family.misfit(LaplaceEvent(noise_multiplier=1.0, adjacency=A), exact, points[1]) is None


def fifty(stddev=5.0):
    return lambda dataset, n, rng: dataset + rng.normal(scale=stddev, size=(n, 50))


@pytest.mark.slow  # many audits
def test_the_order_of_bounds_is_settled_before_the_test_and_a_smaller_headline_says_so(monkeypatch):
    """Fifty composed Gaussians, and an event inside the family that never happens: its bound is 0, the other one's not.

    No event of the family is that unlucky often; the test takes its threshold away.
    """
    real = auditor.agenda

    def unlucky(*arguments):
        plan = real(*arguments)
        assert plan.family_first
        return dataclasses.replace(plan, main=dataclasses.replace(plan.main, threshold=math.inf))

    monkeypatch.setattr(auditor, "agenda", unlucky)
    found = run(fifty(), Repeated(gaussian(5.0), count=50), n=2_000)
    assert not found.rejected
    assert [bound.assumption for bound in found.bounds] == ["the claim's family", "none"]
    assert found.epsilon_lower == found.bounds[0].value == 0.0
    assert 1.0 < found.bounds[1].value <= gdp.epsilon(math.sqrt(50) / 5.0, 1e-5)
    assert "came out as 0, below the" in found.notes[0]
    assert "settled before the test" in found.notes[0]


@pytest.mark.slow_after(1)  # many audits
@pytest.mark.parametrize(
    ("n", "stddev", "stop"),
    [(100, 2.0, "never"), (100, 20.0, "rejected"), (1_000, 7.0, "never"), (500, 7.0, "rejected")],
)
def test_right_claims_of_fifty_gaussians_have_the_largest_bound_first_and_below_the_truth(n, stddev, stop):
    found = run(fifty(stddev), Composed((gaussian(stddev),) * 50), n=n, stop=stop, alpha=1e-3)
    assert not found.rejected
    assert found.epsilon_lower == max(bound.value for bound in found.bounds)
    assert found.epsilon_lower <= gdp.epsilon(math.sqrt(50) / stddev, 1e-5)


def test_what_no_assumption_is_expected_to_show_more_of_is_the_headline_before_the_test():
    """By the learning draws: a member with hardly less noise than a tiny claim against an event that says more."""
    terms = AuditTerms(
        curve=ClaimedCurve(gaussian(50.0)), n=1_000, alpha=0.05, numeric="ideal", delta=1e-5, stop="never",
        non_finite="outcome", learners="light",
    )  # fmt: skip
    asked = terms.question()
    candidate = ScoreCandidate(words="a score", side="first", score=lambda values: values[:, 0])
    common = {"candidate": candidate, "threshold": 0.0, "coin": 0.5, "power": 1.0}
    point = Choice(point=asked.points[0], way="labels", merit=-1.0, **common)
    for merit, first in ((0.5 * price(gaussian(50.0 * math.e)).epsilon(1e-5), True), (0.9 * asked.claimed, False)):
        bound = Choice(point=None, way="labels", merit=merit, **common)
        assert agenda(terms, asked, Chosen(bound=bound, point=point, attacks=())).family_first is first


def test_pages_and_the_command_line_show_the_unconditional_bound_and_the_note(capsys):
    from ledgerwood.report.audits.running import show_mechanism

    claim = PoissonSampled(gaussian(1.0), sampling_rate=0.01)
    report = run_mechanism_audit(
        "noise.py:sampler", normal(1.0), (0.0, 1.0), claim, n=5_000, alpha=0.05, numeric="ideal", delta=1e-5, seed=1
    )
    page = render(mechanism_page(report))
    assert "no member of the claim&#x27;s family" in page or "no member of the claim's family" in page
    assert "Notes" in page
    show_mechanism(report, html=None, as_json=False)
    assert "no member of the claim's family" in " ".join(capsys.readouterr().out.split())
