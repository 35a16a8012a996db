"""What a price says of itself: the numbers in the text are those of the price."""

import re

import pytest

from ledgerwood.accounting import Adjacency, GaussianEvent, LaplaceEvent, PoissonSampled, Repeated, price
from ledgerwood.errors import InvalidParameter

A = Adjacency.ADD_REMOVE


def training(count=1000):
    return Repeated(PoissonSampled(GaussianEvent(noise_multiplier=1.0, adjacency=A), sampling_rate=0.01), count=count)


def test_it_names_event_relation_method_certainty_and_meaning():
    text = price(training(), method="renyi").explain()
    for part in (
        "event: Repeated(event=PoissonSampled(",
        "adjacency: add-remove: data sets with and without any one unit",
        "method: renyi",
        "Proposition 12",
        "a proven upper bound, rounded up",
        "epsilon in nats",
        "e^epsilon times as likely, plus delta",
    ):
        assert part in text
    assert "at delta=" not in text


def test_by_renyi_it_gives_the_order_and_the_slack():
    priced = price(training(), method="renyi")
    text = priced.explain(1e-5)
    quote, (lower, upper) = priced.quote(1e-5), priced.epsilon_interval(1e-5)
    assert f"at delta=1e-05: epsilon={quote.epsilon!r} nats" in text
    assert f"order: {quote.order:.6g}" in text
    assert f"between {lower!r} and {upper!r}" in text
    assert f"at most {upper - lower:.3g} nats are slack" in text


def test_by_losses_it_gives_the_lattice_and_the_error_budget():
    priced = price(training(), method="pld")
    text = priced.explain(1e-5)
    grids = re.findall(
        r"first grid \((\w+)\): (\d+) losses over (\S+) nats in steps of ([^,\s]+), .* delta: (\S+) of truncation, "
        r"(\S+) of rounding and windows, a factor of 1 \+ (\S+)",
        text,
    )
    assert [grid[0] for grid in grids] == ["remove", "add"]
    for _, points, width, step, truncation, rounding, factor in grids:
        assert float(width) == pytest.approx((int(points) - 1) * float(step), rel=1e-2)
        assert 0.0 <= float(truncation) + float(rounding) < 1e-8  # of a delta of 1e-5
        assert 0.0 <= float(factor) < 1e-5
    assert "order" not in text
    slack = float(re.search(r"at most (\S+) nats are slack", text)[1])
    assert 0.0 < slack < 1e-3


def test_a_point_of_another_method_says_so():
    text = price(Repeated(LaplaceEvent(noise_multiplier=2.0, adjacency=A), count=3), method="renyi").explain(1e-30)
    assert "at delta=1e-30: epsilon=1.5 nats" in text
    assert "method at this point: pure (the sum of pure epsilons" in text
    assert "never above the pure sum 1.5" in text


@pytest.mark.parametrize(
    ("adjacency", "words"),
    [
        (Adjacency.ZERO_OUT, "zero-out: data sets with any one unit and with a null record in its place"),
        (Adjacency.REPLACE_ONE, "replace-one: data sets with any one unit replaced by another"),
    ],
)
def test_the_relation_is_spelled_out(adjacency, words):
    assert words in price(GaussianEvent(noise_multiplier=1.0, adjacency=adjacency)).explain()


def test_it_refuses_what_the_price_refuses():
    with pytest.raises(InvalidParameter, match="delta"):
        price(training()).explain(0.0)
    with pytest.raises(InvalidParameter, match="delta"):
        price(training()).explain(1.5)
