"""The style: contrast, colours that stay apart for colour-blind readers, and what a display without matplotlib says."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from ledgerwood.displays import style
from ledgerwood.errors import InvalidParameter

# Machado, Oliveira and Fernandes 2009, severity 1: linear RGB as seen without one kind of cone.
SEEN = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour):
    values = np.array(to_rgb(colour))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(colour, seen):
    xyz = (
        np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        @ np.clip(seen @ linear(colour), 0.0, 1.0)
        / [0.9505, 1.0, 1.089]
    )
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16.0 / 116.0)
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


@pytest.mark.parametrize("theme", style.PALETTES)
def test_texts_and_lines_stand_out(theme):
    """The bounds are those of WCAG 2.2: 7:1 for texts, 4.5:1 for secondary ones, 3:1 for graphics."""
    colours = style.PALETTES[theme]
    assert contrast(colours.ink, colours.paper) >= 7.0
    assert contrast(colours.soft, colours.paper) >= 4.5
    assert min(contrast(series, colours.paper) for series in colours.series) >= 3.0
    assert contrast(colours.grid, colours.paper) < 1.6  # behind the data


@pytest.mark.parametrize("theme", style.PALETTES)
@pytest.mark.parametrize("eyes", SEEN)
@pytest.mark.parametrize(("series", "apart"), [(3, 25.0), (5, 10.0)])
def test_series_differ_for_all_eyes(theme, eyes, series, apart):
    """Distances of CIE 1976, where about 2 are just noticeable; three series are common."""
    seen = [lab(colour, SEEN[eyes]) for colour in style.PALETTES[theme].series[:series]]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) >= apart


def test_no_two_series_differ_by_colour_alone():
    colours = style.PALETTES["light"]
    looks = [colours.marked(place) for place in range(len(colours.series))]
    assert len({str(look["linestyle"]) for look in looks}) == len({look["marker"] for look in looks}) == len(looks)
    assert colours.line(len(looks)) == colours.line(0)


@pytest.mark.parametrize(("background", "theme"), [("white", "light"), ("black", "dark"), ((0, 0, 0, 0), "light")])
def test_colours_follow_the_background_that_is_there(background, theme):
    ax = Figure().add_subplot()
    ax.set_facecolor(background)
    assert style.dress(ax) == style.PALETTES[theme]
    assert ax.get_facecolor() == Figure().add_subplot(facecolor=background).get_facecolor()
    assert style.dress(ax, "dark") == style.PALETTES["dark"]
    assert ax.get_facecolor()[:3] == pytest.approx(to_rgb(style.PALETTES["dark"].paper))


def test_another_theme_is_refused():
    with pytest.raises(InvalidParameter, match="theme='sepia' must be 'light' or 'dark'"):
        style.dress(Figure().add_subplot(), "sepia")


def test_names_are_shown_as_they_are():
    assert style.shortened("a$b\n\u202ec") == "a\\$b\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}c"
    assert len(style.shortened("x" * 99)) == 40


@pytest.mark.slow  # a process without matplotlib
def test_without_matplotlib_values_are_computed_and_drawing_names_the_extra():
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import ledgerwood as lw\n"
        "cost = lw.price(lw.GaussianEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE))\n"
        "display = lw.displays.PrivacyProfileDisplay.from_price(cost)\n"
        "assert display._repr_html_() is None\n"
        "for draw in (display.plot, lambda: display.save('x.svg')):\n"
        "    try:\n        draw()\n"
        "    except ImportError as error:\n        print(error)\n"
    )
    root = Path(__file__).parents[2]
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert finished.stdout == 2 * "PrivacyProfileDisplay needs matplotlib: pip install 'ledgerwood[plot]'\n"
