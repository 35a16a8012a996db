"""What pages of audits say in every case: refuted or not, above the promise or not, without scores, without a claim."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.pages.html import embedded, render
from ledgerwood.report.audits.inputs import claim_words
from ledgerwood.report.audits.pages import mechanism_page, model_page
from ledgerwood.report.audits.running import verdict
from ledgerwood.report.audits.shown import MechanismReport, ModelReport, curves_of
from ledgerwood.verification.auditing import LowerBound, Scores
from ledgerwood.verification.black_box import Audit
from ledgerwood.verification.canaries import ModelAudit, StructureCheck

A = lw.Adjacency.ADD_REMOVE
BUDGET = lw.Budget(epsilon=1.0, delta=0.0, adjacency=A)
GENERATOR = np.random.default_rng(11)
SCORES = Scores(GENERATOR.normal(1, size=300), GENERATOR.normal(size=300))


def bound(value, assumption="none"):
    return LowerBound(
        value=value, delta=1e-5, alpha=0.05, assumption=assumption, event="<b>an event</b>", samples=600,
        statistic="a test", seconds=1.0,
    )  # fmt: skip


HALF = (bound(0.5),)


def mechanism(*, bounds=HALF, rejected=False, claim=BUDGET, claimed=1.0, scores=SCORES, needed=10):
    audit = Audit(
        epsilon_lower=bounds[0].value, delta=1e-5, rejected=rejected, assumption=bounds[0].assumption, alpha=0.05,
        event="<b>an event</b>", direction="second", samples=1800, seconds=1.0, bounds=bounds, test="one against two",
        claim=claim, claimed_epsilon=claimed, needed=needed, scores=scores, pair=([], []), numeric="bitwise",
    )  # fmt: skip
    curves = curves_of(claim, epsilon=bounds[0].value, delta=1e-5, alpha=0.05, scores=scores)
    return MechanismReport(name="f.py:m", claim=claim_words(claim), pair="given", seed=1, audit=audit, curves=curves)


def model(**changed):
    audit = ModelAudit(
        epsilon_lower=0.5, assumption="Gaussian noise", statistic="means", rejected=False, alpha=0.05, delta=1e-5,
        bounds=(bound(0.5, "Gaussian noise"), bound(0.25)), price=1.0,
        epsilon_detectable=0.75, epsilon_ceiling=math.inf, expected=(0.75, 0.3), needed=4321,
        scores=SCORES, seconds=1.0, canaries=600, trainings=2, view="releases", structure="fixed", shared=False,
        scored=7, releases=8, mu=0.5, price_mu=0.5, system="SGBDTRegressor",
        claim=lw.GaussianEvent(noise_multiplier=4.0, adjacency=A), structure_check=None,
    )  # fmt: skip
    audit = replace(audit, **changed)
    curves = curves_of(audit.claim, epsilon=audit.epsilon_lower, delta=1e-5, alpha=0.05, scores=audit.scores)
    return ModelReport(claim=claim_words(audit.claim), seed=1, audit=audit, curves=curves)


def test_a_refuted_claim_is_said_in_colour_and_in_words():
    page = mechanism_page(mechanism(bounds=(bound(1.5),), rejected=True))
    assert (page.tone, page.verdict) == ("bad", "The claim is refuted")
    assert "would have probability 0.05 at most" in page.sentence
    assert "one against two" in page.sentence


def test_nothing_found_is_called_no_proof():
    page = mechanism_page(mechanism())
    assert page.tone == "good"
    assert "does not prove privacy" in page.sentence
    assert "above the claim" not in page.sentence


@pytest.mark.parametrize("assumption", ["none", "Gaussian noise"])
def test_a_bound_above_the_promise_is_never_silent(assumption):
    words = "by itself" if assumption == "none" else "assuming Gaussian noise"
    page = mechanism_page(mechanism(bounds=(bound(1.25, assumption),)))
    assert f"above the claim ({words})" in page.sentence
    page = model_page(model(bounds=(bound(1.25, assumption), bound(0.2)), epsilon_lower=1.25))
    assert f"above the claim ({words})" in page.sentence
    assert (page.tone, page.verdict) == ("open", "Not refuted, but a bound is above the claimed epsilon")
    assert verdict("price", (bound(1.25, assumption),), 1.0, rejected=False).startswith("not refuted, but a bound")
    assert verdict("price", (bound(1.25, assumption),), 1.0, rejected=True) == "the price is refuted"
    assert verdict("price", (bound(1.0, assumption),), 1.0, rejected=False) == "nothing found against the price"


def test_lower_bounds_are_rounded_down_and_prices_up():
    page = mechanism_page(mechanism(bounds=(bound(1.23456789),), rejected=True, claimed=0.12345678))
    assert [value for _, value in page.facts][:2] == ["epsilon \u2265 1.234", "epsilon 0.123457"]


def test_events_and_names_are_text():
    text = render(mechanism_page(mechanism()))
    assert "<b>" not in text
    assert "&lt;b&gt;an event&lt;/b&gt;" in text


@pytest.mark.parametrize(
    "report",
    [
        mechanism(scores=None),
        mechanism(bounds=(bound(math.inf),), rejected=True),
        mechanism(bounds=(bound(0.0),)),
        mechanism(claim=lambda epsilon: math.exp(-epsilon) / 2, claimed=math.inf, needed=None),
        mechanism(scores=Scores(np.array([1.0]), np.array([1.0]))),
        mechanism(scores=Scores(np.array([np.inf, 0.0]), np.array([-np.inf, -np.inf]))),
    ],
)
def test_every_case_has_a_page(report):
    page = mechanism_page(report)
    text = render(page)
    assert "nan" not in text.lower().replace("nonan", "")
    assert json.loads(embedded(page.record))["audit"]["rejected"] is report.audit.rejected


def test_a_missing_figure_says_why():
    report = mechanism(scores=None)
    assert dict(report.curves.absent).keys() == {"scores"}
    text = render(mechanism_page(report))
    assert "Not shown, scores" in text
    assert "figure-roc" not in text
    assert "figure-trade-off" in text


def test_a_record_has_the_figures_numbers_and_no_data():
    record = mechanism().to_record()
    assert record["roc"]["lower"].keys() == {"false_positive_rate", "true_positive_rate"}
    assert len(record["trade_off"]["claimed"]["false_positive_rate"]) > 100
    assert sum(record["scores"]["with_row"]) == 300
    assert "pair" not in record["audit"]


def test_a_training_says_what_could_be_shown():
    page = model_page(model())
    assert "a perfect attack on exactly this privacy cost is expected to show 0.75" in page.sentence
    assert "4,321 canaries would bring it near the claimed epsilon" in page.sentence
    assert dict(page.facts)["canaries"] == "600, 2 times"
    assert "No number of canaries" in model_page(model(needed=None)).sentence
    assert model_page(model(rejected=True)).verdict == "The claimed epsilon is refuted"


def test_shared_leaves_and_structures_are_named():
    shared = render(model_page(model(shared=True, structure="own", view="predictions")))
    assert "not independent" in shared
    checks = (
        (StructureCheck(independent=True, trees=5, changes=(), difference=None), "5 trees are the same, bit for bit"),
        (StructureCheck(independent=False, trees=5, changes=(), difference="tree 2"), "differs: tree 2"),
    )
    for check, words in checks:
        assert words in render(model_page(model(structure_check=check)))


def test_a_band_is_drawn_of_independent_scores_only():
    assert model().curves.roc is not None
    curves = curves_of(BUDGET, epsilon=0.5, delta=1e-5, alpha=0.05, scores=SCORES, independent=False)
    assert curves.roc is None
    assert curves.histograms is not None
    text = render(model_page(replace(model(shared=True), curves=curves)))
    assert "Not shown, ROC: Scores of canaries that may share leaves are not independent" in text
    assert "simultaneous band" not in text
    assert "the true curve lies between these" not in text


def test_a_training_without_a_claim_draws_none():
    page = model_page(model(claim=None, price=math.inf))
    assert dict(page.facts)["claimed at delta 1e-05"] == "no epsilon"
    assert "Not shown, claimed trade-off curve: Nothing is claimed." in render(page)


def test_a_very_long_claim_is_shown_in_part():
    report = replace(model(), claim="x" * 5000)
    page = model_page(report)
    assert "x" * 700 not in str(page.sections)
    assert page.record["claim"] == "x" * 5000
