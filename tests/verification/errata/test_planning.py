"""How many outputs it takes: the plan against the exact power of the test that it plans."""

import math

import pytest
from scipy import stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import ClaimedCurve
from ledgerwood.verification.errata import SPECIMENS, find
from ledgerwood.verification.errata.auditors import guesses, plan, share_of_event

ALPHA = 0.05
every = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)


@pytest.mark.slow_after(9)  # the exact loss of each specimen
@every
def test_the_plan_is_at_an_epsilon_at_which_the_claim_fails(specimen):
    found = plan(specimen, alpha=ALPHA)
    assert found.claimed == ClaimedCurve(specimen.claim).delta(found.epsilon) < found.exact
    assert found.exact == specimen.delta(found.epsilon)
    assert 5 <= found.least <= found.samples < 10**6


@pytest.mark.parametrize("name", ["dpboost-subset-sizes", "privatree-feature-composition", "sgbdt-custom-noise"])
def test_guesses_have_the_planned_power(name):
    """The exact binomial test: refuted where so many right guesses have probability alpha at most under the claim."""
    found = plan(find(name, SPECIMENS), alpha=ALPHA)
    allowed, true = guesses(found.epsilon, found.claimed), guesses(found.epsilon, found.exact)
    for samples in (found.samples,):
        critical = stats.binom.isf(ALPHA, samples, allowed) + 1
        power = stats.binom.sf(critical - 1, samples, true)
        assert 0.90 < power < 0.99 or found.test == "event"


def test_the_event_of_a_randomised_response():
    """Two outputs, p = .75 and .25, claimed epsilon .5: slope and power by hand."""
    specimen = find("peers-replaced-label", SPECIMENS)
    found = plan(specimen, alpha=ALPHA)
    p, q = (specimen.distribution(part)[0] for part in specimen.pair)
    p, q = max(p, q), min(p, q)
    assert found.exact == pytest.approx(p - math.exp(found.epsilon) * q, rel=1e-9)
    assert share_of_event(found.epsilon, 0.0, 0.5) == pytest.approx(1 / (1 + math.exp(-found.epsilon)))
    assert guesses(found.epsilon, 0.0) == share_of_event(found.epsilon, 0.0, 0.5)


def test_a_share_is_never_above_one():
    assert share_of_event(1.0, 0.9, 1e-3) == 1.0


@pytest.mark.parametrize("alpha", [0.0, 0.6, math.nan])
def test_a_level_out_of_range_is_refused(alpha):
    with pytest.raises(InvalidParameter, match="alpha"):
        plan(SPECIMENS[0], alpha=alpha)
