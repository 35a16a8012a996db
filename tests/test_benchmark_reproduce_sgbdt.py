"""S-GBDT's page: its rules judge as they say, and its checks would notice a wrong bound."""

import math

import numpy as np
import pytest

from benchmarks.reproduce.papers.sgbdt import PAPER, figures, proofs
from benchmarks.reproduce.papers.sgbdt.runs import AS_PUBLISHED
from benchmarks.reproduce.papers.sgbdt.theorems import within
from benchmarks.utility import Scale

QUICK = Scale(seeds=1, rows=400)


def cell(value, spread=0.0, paired=None):
    stored = {"mean": [0.0, value], "spread": [0.0, spread]}
    return stored if paired is None else {**stored, "paired": {"mean": [0.0, paired], "spread": [0.0, spread]}}


def test_the_least_epsilon_lies_between_points_on_a_log_scale():
    assert figures.least_epsilon([0.1, 10.0], [0.0, 1.0], 0.5) == pytest.approx(1.0)
    assert figures.least_epsilon([0.1, 1.0, 10.0], [0.4, 0.2, 0.6], 0.3) == 0.1  # what is reached stays reached
    assert math.isnan(figures.least_epsilon([0.1, 1.0], [0.1, 0.2], 0.3))


@pytest.mark.parametrize(
    ("boosted", "spread", "verdict"),
    [(0.1, 0.0, "holds"), (0.4, 0.0, "does not hold"), (0.4, 0.5, "cannot be judged")],
)
def test_the_factor_is_judged_by_the_best_dpboost(boosted, spread, verdict):
    rows = {
        f"{epsilon:g}": {"S-GBDT, defaults": cell(score), f"DPBoost, {AS_PUBLISHED}": cell(-1.0)}
        for epsilon, score in ((0.1, 0.1), (0.5, 0.4), (10.0, 0.5))
    }
    rows["10"][f"DPBoost, {AS_PUBLISHED}"] = cell(boosted, spread)
    assert figures.factor({"splits": 5, "rows": rows}).verdict == verdict


@pytest.mark.parametrize(("first", "other", "verdict"), [("a", "b", "does not hold"), ("b", "a", "holds")])
def test_a_paired_claim_knows_which_one_the_differences_are_taken_from(first, other, verdict):
    rows = {"0.5": {"a": cell(0.4, paired=0.0), "b": cell(0.5, 0.01, paired=0.1)}}
    assert figures.paired(None, first, other)({"splits": 5, "rows": rows}).verdict == verdict


def test_a_share_above_one_refutes_a_bound():
    assert within()({"largest": 1.0, "cases": 3}).verdict == "holds"
    assert within()({"largest": 1.001, "cases": 3}).verdict == "does not hold"


def test_random_pairs_come_to_a_divergence_that_the_definition_gives():
    p, q = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    assert proofs.divergence(p, q, 2.0) == pytest.approx(math.log(0.25 / 0.2 + 0.25 / 0.8))  # the larger direction


def test_the_printed_sampling_bound_is_the_binomial_sum():
    order, rate, inner = 4, 0.3, 0.2
    printed = (1 - rate) ** 3 * (order * rate - rate + 1) + 6 * rate**2 * (1 - rate) ** 2 * math.exp(inner)
    printed += 3 * (4 * (1 - rate) * rate**3 * math.exp(2 * inner) + rate**4 * math.exp(3 * inner))
    assert proofs.printed_sampling(order, rate, lambda _: inner) == pytest.approx(math.log(printed) / 3)


def test_without_the_filter_the_rounds_lose_more_than_the_limit():
    found = proofs.filtered(QUICK)
    assert found["largest"] <= 1.0 < found["without"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "study", [study for study in PAPER.studies if study.kept is None], ids=lambda study: study.name
)  # the others have tests beside the page that keeps their values
def test_every_study_runs_on_few_rows_and_its_rows_read_it(study, on_disk):
    found = on_disk(lambda: study.run(QUICK))
    for item in PAPER.items:
        # A quick run has its first and last epsilon only, so that rows of one printed point cannot be read.
        if item.study == study.name and not item.number.startswith("Headline"):
            assert item.reading({study.name: found}).verdict
    if study.draw is not None:
        assert study.draw(found).axes
