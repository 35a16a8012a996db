"""Pictures of privacy costs: what is drawn is what the accounting says."""

import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from scipy.stats import norm

from ledgerwood.accounting import Adjacency, GaussianEvent, LaplaceEvent, PureEvent, Repeated, price, risk
from ledgerwood.displays import PrivacyProfileDisplay, TradeOffDisplay
from ledgerwood.errors import InvalidParameter
from ledgerwood.pages.values import most

A = Adjacency.ADD_REMOVE
GAUSS = price(GaussianEvent(noise_multiplier=2.0, adjacency=A))
LAPLACE = price(Repeated(LaplaceEvent(noise_multiplier=4.0, adjacency=A), count=3))


def test_a_profile_is_that_of_the_price_and_its_bars_are_its_intervals():
    display = PrivacyProfileDisplay.from_price(GAUSS, LAPLACE, names=("one", "other"), least_delta=1e-8)
    for curve, priced in zip(display.curves, (GAUSS, LAPLACE), strict=True):
        places = [1, 40, 90]
        read = [priced.delta(curve.epsilon[place]) for place in places]
        np.testing.assert_allclose([curve.delta[place] for place in places], read, rtol=1e-4)
        for delta, low, high in zip(curve.mark_delta, curve.mark_lower, curve.mark_upper, strict=True):
            assert (low, high) == priced.epsilon_interval(delta)
    ax = display.plot(Figure().add_subplot())
    assert ax.get_yscale() == "log"
    assert ax.get_ylim() == (1e-8, 1.0)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "other"]
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), display.curves[0].epsilon)
    assert PrivacyProfileDisplay.from_price(GAUSS, bars=False).curves[0].mark_delta == ()


def test_a_trade_off_is_the_gaussian_one_in_both_scales():
    display = TradeOffDisplay.from_price(GAUSS)
    curve = display.curves[0]
    truth = norm.cdf(norm.isf(curve.false_positive_rate) - 0.5)
    assert (curve.false_negative_rate <= truth + 1e-15).all()
    np.testing.assert_allclose(curve.false_negative_rate, truth, atol=1e-4)
    ax = display.plot(Figure().add_subplot())
    assert (ax.get_xscale(), ax.get_ylabel()) == ("linear", "false negative rate, at least")
    log = TradeOffDisplay.from_price(GAUSS, log=True)
    assert log.curves == display.curves
    ax = log.plot(Figure().add_subplot())
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_ylabel()) == ("log", "log", "true positive rate, at most")
    drawn = ax.get_lines()[0]
    np.testing.assert_array_equal(drawn.get_ydata(), 1.0 - np.array(curve.false_negative_rate))


def test_the_text_has_the_figures():
    rate, power, advantage = re.findall(r"rate of ([\d.]+) .*most ([\d.]+); advantage at most ([\d.]+\d)",
                                        TradeOffDisplay.from_price(GAUSS).alt)[0]  # fmt: skip
    assert float(rate) == 0.01
    assert float(power) == pytest.approx(risk.true_positive_rate(GAUSS, 0.01), rel=1e-2)
    assert float(advantage) == pytest.approx(risk.advantage(GAUSS), rel=1e-2)
    assert f"{most(GAUSS.epsilon(1e-10), 3)} at delta 1e-10" in PrivacyProfileDisplay.from_price(GAUSS, bars=False).alt


def test_the_text_errs_to_the_safe_side():
    pure = price(PureEvent(epsilon=1.0, adjacency=A))
    said = TradeOffDisplay.from_price(pure).alt
    assert "a true positive rate of at most 0.0272; advantage at most 0.463" in said, (
        "e / 100, and tanh(1 / 2) = .46212"
    )
    gauss = price(GaussianEvent(noise_multiplier=1.0, adjacency=A))
    assert "epsilon 0 at delta 0.39," in PrivacyProfileDisplay.from_price(gauss, bars=False).alt, "truth: .3829"


def test_a_notebook_shows_both_themes_and_the_text():
    shown = PrivacyProfileDisplay.from_price(GAUSS, names=('<script>"x"',), bars=False)._repr_html_()
    (image,) = (picture := ET.fromstring(shown)).findall("img")
    assert picture.find("source").get("media") == "(prefers-color-scheme: dark)"
    assert image.get("alt").startswith("Privacy profile, delta over epsilon")
    assert '<script>"x"' in image.get("alt")
    assert "<script" not in shown
    assert image.get("src").startswith("data:image/svg+xml;base64,")
    assert len(shown) < 120_000


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_a_file_has_the_text(ending, tmp_path):
    display = PrivacyProfileDisplay.from_price(GAUSS, bars=False)
    path = tmp_path / f"profile.{ending}"
    display.save(path, theme="dark")
    if ending == "png":
        assert Image.open(path).text["Description"] == display.alt
    else:
        assert path.read_bytes()[:5] in {b"%PDF-", b"<?xml"}
    if ending == "svg":
        assert display.alt in path.read_text()


def test_a_new_figure_is_one_of_pyplot():
    import matplotlib.pyplot as plt

    mpl.use("agg")
    ax = TradeOffDisplay.from_price(GAUSS).plot(theme="dark")
    assert ax.figure.number in plt.get_fignums()
    plt.close(ax.figure)


@pytest.mark.parametrize(
    ("priced", "named", "said"),
    [
        ((), {}, "at least one privacy cost"),
        ((GAUSS,), {"names": ("a", "b")}, "one for each of the 1"),
        ((GAUSS,), {"names": "ab"}, "not one text"),
        ((GAUSS.event,), {}, "write price"),
    ],
)
def test_what_is_unclear_is_refused(priced, named, said):
    for display in (PrivacyProfileDisplay, TradeOffDisplay):
        with pytest.raises(InvalidParameter, match=said):
            display.from_price(*priced, **named)
    with pytest.raises(InvalidParameter, match="least_delta"):
        PrivacyProfileDisplay.from_price(GAUSS, least_delta=0.5)
