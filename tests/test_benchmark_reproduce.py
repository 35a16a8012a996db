"""The pages of the five papers are what the stored values say, and leave no numbered item out."""

import re

import pytest

from benchmarks.reproduce import judging, pages, results
from benchmarks.reproduce.items import Item, Reading
from benchmarks.reproduce.judging import Mean
from benchmarks.reproduce.papers import PAPERS


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_a_page_is_what_the_stored_values_say(paper):
    written = (results.FOLDER / f"{paper.key}.md").read_text(encoding="utf-8")
    assert written == pages.page(paper, results.stored(paper), results.runs(paper))


def test_the_summary_is_what_the_stored_values_say():
    everything = [(paper, results.stored(paper), results.runs(paper)) for paper in PAPERS.values()]
    assert (results.FOLDER / "index.md").read_text(encoding="utf-8") == pages.index(everything)


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_every_numbered_item_has_a_row(paper):
    for kind, last in paper.numbered.items():
        numbers = {
            int(found[1])
            for item in paper.items
            if (found := re.match(rf"(?:{kind.replace('/', '|')}) (\d+)", item.number))
        }
        assert numbers == set(range(1, last + 1)), f"{paper.key}, {kind}"


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_every_study_is_read_and_every_picture_is_there(paper):
    read = {item.study for item in paper.items}
    assert [study.name for study in paper.studies if study.name not in read] == []
    found = results.stored(paper)
    drawn = {f"{paper.key}-{study.name}" for study in paper.studies if study.draw is not None and study.name in found}
    assert {file.stem for file in (results.FOLDER / "figures").glob(f"{paper.key}-*.svg")} == drawn


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_every_stored_run_is_one_of_a_study(paper):
    assert results.runs(paper).keys() <= {study.name for study in paper.studies}


def test_fits_behind_a_mean_are_counted_wherever_a_study_says_so():
    assert results.fits({"a": {"splits": 5, "rows": [{"count": 20}, {"splits": 5.5}]}, "splits": 3}) == {3, 5, 20}
    assert results.fits({"seconds": 1.0}) == set()


@pytest.mark.parametrize(
    ("printed", "value", "spread", "higher", "expected"),
    [
        (".39", 0.385, 0.0, True, True),
        (".39", 0.384, 0.0, True, False),
        (".39", 0.37, 0.02, True, True),  # two standard errors of four fits
        ("66", 65.5, 0.0, True, True),
        ("2.70", 2.705, 0.0, False, True),
        ("2.70", 2.72, 0.0, False, False),
        ("17.1%", 17.2, 0.0, False, False),
    ],
)
def test_a_printed_figure_is_reached_within_its_last_digit_and_two_standard_errors(
    printed, value, spread, higher, expected
):
    assert judging.is_reached(printed, Mean(value=value, spread=spread, count=4), higher=higher) is expected


def test_what_only_the_printed_noise_reaches_holds_with_less_noise():
    short, enough = {"eps 1": Mean(value=0.3)}, {"eps 1": Mean(value=0.4)}
    assert judging.reached({"eps 1": ".39"}, short, higher=True).verdict == "does not hold"
    assert judging.reached({"eps 1": ".39"}, short, higher=True, as_printed=enough).verdict == "holds with less noise"
    assert judging.reached({"eps 1": ".39"}, enough, higher=True, as_printed=short).verdict == "holds"


def test_what_only_the_errors_allow_is_not_judged():
    far = Mean(value=0.124, spread=0.142, count=5)
    assert judging.is_reached(".25", far, higher=True)
    assert judging.reached({"eps .1": ".25"}, {"eps .1": far}, higher=True).verdict == "cannot be judged"
    near = {"eps .1": Mean(value=0.23, spread=0.03, count=5)}
    assert judging.reached({"eps .1": ".25"}, near, higher=True).verdict == "holds"
    short = {"eps .1": Mean(value=0.1)}
    assert judging.reached({"eps .1": ".25"}, short, higher=True, as_printed={"eps .1": far}).verdict == "does not hold"


def test_most_points_may_not_be_contradicted():
    better = {str(i): Mean(value=gap) for i, gap in enumerate((0.1, 0.1, 0.1, -0.1, -0.1))}
    worse = dict.fromkeys(better, Mean(value=0.0))
    assert judging.ordered(better, worse, higher=True, names=("a", "b")).verdict == "does not hold"
    assert judging.ordered(better, worse, higher=True, names=("a", "b"), most=True).verdict == "holds"
    assert judging.ordered(worse, better, higher=True, names=("b", "a"), most=True).verdict == "does not hold"


def test_an_order_needs_one_clear_point_and_none_against_it():
    def verdict(*gaps):
        better = {str(i): Mean(value=gap, spread=0.1, count=1) for i, gap in enumerate(gaps)}
        worse = {point: Mean(value=0.0) for point in better}
        return judging.ordered(better, worse, higher=True, names=("a", "b")).verdict

    assert verdict(0.3, 0.1, -0.1) == "holds"
    assert verdict(0.3, -0.3) == "does not hold"
    assert verdict(0.1, -0.1) == "cannot be judged"


def test_methods_are_alike_where_no_difference_can_exceed_the_margin():
    def verdict(*gaps):
        means = {str(i): Mean(value=gap, spread=spread, count=4) for i, (gap, spread) in enumerate(gaps)}
        return judging.alike(means, margin=0.02, cells=dict.fromkeys(means, ""), names=("a", "b")).verdict

    assert verdict((0.01, 0.005), (-0.01, 0.01)) == "holds"
    assert verdict((0.01, 0.005), (0.0, 0.03)) == "cannot be judged"  # errors of .03 would hide a difference of .03
    assert verdict((0.01, 0.005), (-0.05, 0.01)) == "does not hold"


def test_a_refutation_rests_on_a_specimen_that_was_caught():
    assert judging.refuted("sgbdt-initial-score-scale").verdict == "does not hold"
    with pytest.raises(ValueError, match="needs a specimen"):
        judging.refuted()
    with pytest.raises(KeyError, match="no-such-specimen"):
        judging.refuted("no-such-specimen")


def test_an_item_without_its_study_cannot_be_judged():
    item = Item(
        number="Figure 1", says="", printed="", sentence="", study="figure1",
        read=lambda _: Reading(ours="1", verdict="holds"),
    )  # fmt: skip
    assert item.reading({}).verdict == "cannot be judged"
    assert item.reading({"figure1": {}}).verdict == "holds"
    with pytest.raises(ValueError, match="must begin with one of"):
        Item(number="Chapter 1", says="", printed="", sentence="")
    with pytest.raises(ValueError, match="belong together"):
        Item(number="Figure 1", says="", printed="", sentence="", study="figure1")
