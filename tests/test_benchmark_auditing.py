"""The auditing benchmark's cases, their exact losses, its tables, and small versions of what it measures."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import stats
from threadpoolctl import threadpool_limits

import ledgerwood as lw
from benchmarks import auditing, auditing_peers, auditing_runs, auditing_studies, auditing_trained
from benchmarks import auditing_samplers as draw
from benchmarks import auditing_truths as exact
from benchmarks.auditing_cases import BOUNDS, CATCH, NULL, near_miss
from benchmarks.auditing_kinds import ANSWERS, SPREAD, TIGHT, TWO_ABOVE
from benchmarks.auditing_nulls import CROSSED

PAGES = Path(__file__).parents[1] / "docs" / "benchmarks"
A = lw.Adjacency.ADD_REMOVE
DRAWS = 40_000
SEED = 20_261_122
"""Chosen before any of these tests was run."""


@pytest.fixture(autouse=True)
def one_thread():
    """A team of threads stalls on a machine whose cores other tests use."""
    with threadpool_limits(1):
        yield


# ------------------------------------------------------------------------------------------------- exact losses


@pytest.mark.parametrize(
    ("name", "printed", "digits"),
    [
        ("svt1", 0.9893, 4),
        ("svt4", 1.7426, 4),
        ("svt6", 4.486, 3),
        ("expmech", 1.9323, 4),
        ("classical_gaussian", 10.394, 3),
        ("clip_doubled", 2.1547, 4),
        ("double_spending_normal", 1.465, 3),
    ],
)
def test_losses_agree_with_figures_that_others_computed(name, printed, digits):
    assert round(auditing_runs.CASES[name].truth, digits) == printed


@pytest.mark.parametrize(("queries", "printed"), [(1, 0.820), (2, 1.704), (3, 2.617)])
def test_algorithm_6_loses_more_with_every_query(queries, printed):
    pair = (np.zeros(2 * queries), np.repeat([1.0, -1.0], queries))
    laws = [exact.every_pattern(answers, 2.0, 2.0) for answers in pair]
    assert round(exact.log_ratio(*laws), 3) == printed


def test_what_a_test_of_the_best_event_of_algorithm_6_can_show():
    """The page's figures: 2,000,000 outputs of an uneven coin, the exact bound in the mean over what may be counted."""
    first, second = (exact.every_pattern(answers, 2.0, 2.0) for answers in SPREAD)
    order = np.argsort(second / first)
    shown = []
    for size in (1, 11):  # the likeliest pattern, and its ten neighbours
        p, q = first[order[:size]].sum(), second[order[:size]].sum()
        found = []
        for coin in np.arange(1, 16) / 16.0:
            counts = np.round(stats.poisson(2e6 * (1.0 - coin) * q).ppf(np.arange(0.05, 1.0, 0.1)))
            least = stats.beta.ppf(0.05, 2e6 * coin * p, counts + 1.0)
            found.append(np.mean(np.log(least / (1.0 - least))) - math.log(coin / (1.0 - coin)))
        shown.append((math.log(p / q), max(found)))
    (rarest, most), (neighbours, with_them) = shown
    assert (round(rarest, 2), round(neighbours, 2)) == (4.49, 3.67)
    assert (round(most, 2), round(with_them, 2)) == (3.87, 3.55)


@pytest.mark.parametrize(("epsilon", "printed"), [(1, 0.1419), (2, 0.0522), (3, 0.0192), (5, 0.0026)])
def test_an_average_with_an_exact_count_has_no_epsilon(epsilon, printed):
    assert round(exact.laplace_scales_delta(epsilon), 4) == printed


def agree(found, law):
    """Frequencies within 5 standard deviations and a count: of some 1,000 cells, one fails once in 1,000 such tests."""
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    assert np.all(np.abs(found - law) <= 5.0 * np.sqrt(law * (1.0 - law) / DRAWS) + 1.0 / DRAWS)


@pytest.mark.parametrize("side", [0, 1])
def test_the_law_of_the_first_answer_above_is_that_of_the_draws(side):
    said = draw.sparse_vector(2.0, 4.0, 1)(ANSWERS[side], DRAWS, np.random.default_rng(SEED))
    first = np.where((said == draw.ABOVE).any(axis=1), (said == draw.ABOVE).argmax(axis=1), 10)
    agree(np.bincount(first, minlength=11) / DRAWS, exact.first_above(ANSWERS[side], 2.0, 4.0))
    assert np.all((said == draw.STOPPED).sum(axis=1) == np.maximum(9 - first, 0))


@pytest.mark.parametrize("side", [0, 1])
def test_the_law_of_two_answers_above_is_that_of_the_draws(side):
    said = draw.sparse_vector_fresh(4.0, 8.0, 2)(TWO_ABOVE[side], DRAWS, np.random.default_rng(SEED))
    law = exact.two_above(TWO_ABOVE[side], 4.0, 8.0)
    # none; then for each first place: each second place, and none after it
    places = {(): 0}
    for i in range(10):
        for j in (*range(i + 1, 10), None):
            places[(i,) if j is None else (i, j)] = len(places)
    rows = [places[tuple(np.flatnonzero(row))] for row in said == draw.ABOVE]
    agree(np.bincount(rows, minlength=len(places)) / DRAWS, law)


@pytest.mark.parametrize("side", [0, 1])
def test_the_law_of_all_patterns_is_that_of_the_draws(side):
    said = draw.sparse_vector(2.0, 2.0, None)(SPREAD[side], DRAWS, np.random.default_rng(SEED))
    numbers = (said == draw.ABOVE) @ (1 << np.arange(10))
    agree(np.bincount(numbers, minlength=1024) / DRAWS, exact.every_pattern(SPREAD[side], 2.0, 2.0))


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_the_law_of_the_noisy_maximum_is_that_of_the_draws(noise):
    found = draw.noisy_max(noise)(CROSSED[0], DRAWS, np.random.default_rng(SEED)).astype(int)
    agree(np.bincount(found, minlength=5) / DRAWS, exact.largest_index(CROSSED[0], noise))


def test_the_law_of_a_clamped_count_is_that_of_the_draws():
    found = draw.truncated_geometric(10)(np.array([1.0]), DRAWS, np.random.default_rng(SEED)).astype(int)
    agree(np.bincount(found, minlength=11) / DRAWS, exact.clamped_geometric(1, 10))


def test_randomised_response_keeps_its_category_as_often_as_it_says():
    found = draw.randomised_response(4, 1.0)(np.array([2.0]), DRAWS, np.random.default_rng(SEED)).astype(int)
    other = 1.0 / (math.e + 3.0)
    agree(np.bincount(found, minlength=4) / DRAWS, np.array([other, other, math.e * other, other]))


def test_sums_of_losses_agree_with_the_accountant():
    low, high = lw.price(lw.Repeated(lw.LaplaceEvent(noise_multiplier=10.0, adjacency=A), count=50)).epsilon_interval(
        1e-5
    )
    assert low - 1e-5 <= exact.laplaces_epsilon(10.0, 50, 1e-5) <= high + 1e-5
    inner = lw.GaussianEvent(noise_multiplier=1.0, adjacency=A)
    low, high = lw.price(lw.PoissonSampled(inner, sampling_rate=0.1)).epsilon_interval(1e-5)
    assert low - 1e-7 <= exact.sampled_gaussian_epsilon(1.0, 0.1, 1e-5) <= high + 1e-7


@pytest.mark.slow  # each study once, made small
def test_a_released_answer_tells_more_than_the_epsilon_of_all_comparisons():
    # Eight answers below and one far below the threshold: each factor e^(1/2), and the number itself one more.
    assert exact.released_answer_epsilon(ANSWERS) == pytest.approx(4.5, abs=1e-9)


@pytest.mark.slow_after(12)  # each study once, made small
@pytest.mark.parametrize("case", NULL, ids=lambda case: case.name)
def test_no_right_mechanism_loses_more_than_it_claims(case):
    claim = case.claim
    if isinstance(claim, lw.Budget):
        allowed = claim.epsilon if case.delta >= claim.delta else math.inf
    else:
        allowed = lw.price(claim).epsilon(case.delta)
    assert case.truth <= allowed * (1.0 + 1e-6)


@pytest.mark.slow_after(2)  # each study once, made small
@pytest.mark.parametrize("label", CATCH)
def test_every_wrong_mechanism_loses_more_than_it_claims(label):
    case = CATCH[label]
    claimed = case.claim.epsilon if isinstance(case.claim, lw.Budget) else lw.price(case.claim).epsilon(case.delta)
    assert case.truth > claimed * (1.0 + 1e-6)


def test_every_tree_of_the_forest_has_the_noise_that_is_claimed():
    for n in (1, 50, 1000):
        price = lw.price(lw.Repeated(lw.GaussianEvent(noise_multiplier=TIGHT, adjacency=A), count=n))
        plan = auditing_trained.forest_model(n, price.epsilon(1e-5), 0).make_plan(auditing_trained.FOREST_SCHEMA)
        (repeated,) = plan.event.events
        leaves = repeated.event
        mu = math.hypot(*(s / d for s, d in zip(leaves.sensitivities, leaves.stddevs, strict=True)))
        assert repeated.count == n
        assert mu <= 1.0 / auditing_trained.TREE.noise_multiplier


# --------------------------------------------------------------------------------------------- small studies

EASY = {
    "D1": 5_000, "D2": 5_000, "D3": 100_000, "D4": 10_000, "D5": 5_000, "D6": 10_000, "D7": 5_000, "D8": 5_000,
    "D9 Laplace": 5_000, "D9 normal": 5_000, "D11": 5_000, "D12": 10_000, "D13": 5_000, "D14": 5_000, "D15": 5_000,
    "D16": 5_000, "D17": 5_000, "D18": 100_000,
}  # fmt: skip
"""Outputs a side with which a bound at the truth less 3 standard errors is far above the claim."""


@pytest.mark.slow_after(2)  # an audit of each specimen
@pytest.mark.parametrize("label", EASY)
def test_what_must_be_caught_is_caught(label):
    job = auditing_runs.Job(study="catch", case=CATCH[label].name, repetition=10, n=EASY[label], alpha=0.05)
    assert auditing_runs.outcome(job)["rejected"]


@pytest.mark.slow  # a rate of error needs many audits
@pytest.mark.parametrize(("alpha", "seeds"), [(0.05, 2), (1e-3, 1)])
def test_what_is_right_is_accused_no_more_often_than_its_level_allows(alpha, seeds):
    jobs = [
        auditing_runs.Job(study="null", case=case.name, repetition=1_000 + i, n=min(500, case.runs or 500), alpha=alpha)
        for case in NULL
        for i in range(seeds)
    ]
    flagged = sum(auditing_runs.outcome(job)["rejected"] for job in jobs)
    # As many accusations as a level-alpha test makes, or more, with probability 1e-4 at most.
    assert flagged <= stats.binom.isf(1e-4, seeds * len(NULL), alpha)


def test_a_job_is_repeated_by_its_seed():
    job = auditing_runs.Job(study="bounds", case="laplace_ok", repetition=0, n=500, alpha=0.05)
    first, second = auditing_runs.outcome(job), auditing_runs.outcome(job)
    assert first["bound"] == second["bound"]
    other = auditing_runs.Job(study="bounds", case="laplace_ok", repetition=1, n=500, alpha=0.05)
    assert auditing_runs.generator(job).random() != auditing_runs.generator(other).random()


def test_the_planner_names_more_samples_for_a_nearer_miss():
    sizes = [auditing_studies.planned(factor, 0.9) for factor in auditing_runs.FACTORS]
    assert sizes == sorted(sizes, reverse=True)
    assert auditing_studies.planned(1.1, 0.5) < auditing_studies.planned(1.1, 0.9)
    assert near_miss(1.1).truth == 1.1


# --------------------------------------------------------------------------------------------------- peers and page


def test_the_best_peer_has_no_condition():
    rows = {
        "jax-privacy GDP": {"laplace_ok": {"bound": 4.4, "seconds": 0.1}},
        "jax-privacy CP, split": {"laplace_ok": {"bound": 0.97, "seconds": 0.1}},
    }
    assert auditing_peers.best(100_000, "laplace_ok", rows) == (0.97, "jax-privacy CP, split")
    assert auditing_peers.best(100_000, "laplace_ok", {}) == (0.96, "DP-Sniper, logistic (stored)")
    assert auditing_peers.best(5, "laplace_ok", {}) == (0.0, "")


def test_a_threshold_is_chosen_where_the_bound_is_largest():
    rng = np.random.default_rng(SEED)
    second = np.sort(rng.random(10_000))
    first = np.sort(np.where(rng.random(10_000) < 0.3, 2.0, rng.random(10_000)))
    assert 1.0 < auditing_peers.best_threshold(first, second, 10_000, 0.0) <= 2.0


def test_every_target_is_of_a_case():
    names = {case.name for case in BOUNDS}
    assert all(set(targets) <= names for targets in auditing_studies.TARGETS.values())
    assert set(auditing_studies.SECONDS) == set(auditing_studies.TARGETS) == set(auditing_studies.SIZES)


def test_what_falls_short_is_named():
    row = {"target": 0.975, "mean": 0.97, "seconds": 3.0}
    null = {name: {"seeds": 200, "flagged": flagged} for name, flagged in (("a", 3), ("b", 2), ("c", 4))}
    found = {
        "bounds": {"100000": {"cases": {"laplace_ok": row}}},
        "catch": {"cases": {"D1": {"name": "laplace_halfscale", "caught": 4, "seeds": 5}}},
        "null": {"0.001": {"alpha": 1e-3, "cases": null}},
    }
    lines = auditing.missed(found)
    assert [line.split(":")[0] for line in lines] == [
        "laplace_ok at 100,000", "laplace_ok at 100,000", "D1 (laplace_halfscale)", "a", "c",
        "9 refutations in total at 0.001, more than 8",
    ]  # fmt: skip
    assert auditing.missed({}) == []


def test_the_stored_page_shows_every_case():
    stored = json.loads((PAGES / "auditing.json").read_text(encoding="utf-8"))
    console = Console(width=auditing.WIDTH, record=True, force_jupyter=False)
    auditing.show(stored, console)
    text = console.export_text()
    for study in stored:
        assert study in auditing.STUDIES
    for case in BOUNDS:
        assert case.name in text
    assert set(stored["catch"]["cases"]) == set(CATCH)
    names = {case.name for case in NULL}
    assert all(set(entry["cases"]) == names for entry in stored.get("null", {}).values())
