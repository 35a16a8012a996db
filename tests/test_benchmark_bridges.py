"""The comparison with other libraries: its parts, and that the page says what the stored figures say."""

import json
import math
from pathlib import Path

import pytest

import ledgerwood as lw
from benchmarks import bridges

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "peers.md"
FOUND = json.loads(bridges.FILE.read_text())


def test_a_peer_is_too_small_where_it_is_below_the_lower_end():
    cases = [{"delta": 1e-5}] * 4
    found = bridges.compare([0.9, 1.05, 1.2, None], [(1.0, 1.1)] * 4, cases)
    assert (found["histories"], found["answered"], found["too_small"]) == (4, 3, 1)
    assert found["worst"]["theirs"] == 0.9
    assert found["median_ratio"] == pytest.approx(1.05 / 1.1)


def test_a_refusal_is_no_answer():
    assert bridges.tried(lambda case: 1.0 / case["x"], [{"x": 0}, {"x": math.inf}, {"x": 2}]) == [None, 0.0, 0.5]


def test_the_cases_are_the_same_in_each_run():
    assert bridges.trainings(3) == bridges.trainings(100)[:3]
    (case,) = bridges.spends(1)
    assert isinstance(bridges.spent(case), lw.Composed)


def test_every_comparison_has_100_histories():
    compared = {name: each for name, each in FOUND.items() if name != "seconds"}
    assert {each["histories"] for each in compared.values()} == {100}
    assert compared.pop("JAX Privacy")["equal_events"] == 100
    assert len(compared) == 9


def test_the_page_says_how_far_the_central_limit_theorem_is_off():
    """Its table is drawn from the stored figures; the sentence below it is written."""
    found = FOUND["Opacus, gdp"]
    factor = found["worst"]["at_least"] / found["worst"]["theirs"]
    said = f"in {found['too_small']} of {found['answered']} histories, by a factor of {factor:.1f} at the worst"
    assert f"The central limit theorem is too small {said}." in PAGE.read_text()
    others = {name: each for name, each in FOUND.items() if name not in {"seconds", "Opacus, gdp", "JAX Privacy"}}
    assert [name for name, each in others.items() if each["too_small"]] == []


@pytest.mark.slow  # prices beside those of another library
def test_a_few_histories_again():
    """dp-accounting and OpenDP give what was stored."""
    cases = bridges.trainings(3)
    ours = [
        bridges.ends(bridges.from_sgd_history(case["history"], adjacency=bridges.A, exact_rates=True), case["delta"])
        for case in cases
    ]
    for method in ("pld", "rdp"):
        assert bridges.compare(bridges.tried(bridges.dp_accounting(method), cases), ours, cases)["too_small"] == 0
    cases = bridges.releases(3)
    ours = [bridges.ends(bridges.counted(case), case["delta"]) for case in cases]
    assert bridges.compare(bridges.tried(bridges.opendp, cases), ours, cases)["too_small"] == 0
