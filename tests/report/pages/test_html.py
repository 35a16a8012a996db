"""The page: it allows itself nothing, hides nothing, and carries its numbers."""

import base64
import hashlib
import html as standard_html
import json
import math
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.pages.html import Figure, HtmlTable, Page, Section, embedded, render, write
from ledgerwood.pages.svg import Axis, PlotCurve, plot
from ledgerwood.pages.values import least, plain

HOSTILE = "</script><script>alert(1)</script><img src=https://example.org/x onerror=alert(2)>\"'&"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def page(record=None, words="words"):
    axis = Axis(label=words, low=0.0, high=1.0)
    table = HtmlTable(header=(words, "number"), rows=((words, "1"),), numbers=frozenset({1}))
    figure = Figure(
        drawing=plot("figure-one", words, words, axis, axis, [PlotCurve(xs=(0.0, 1.0), ys=(0.0, 1.0), role="found")]),
        caption=words, legend=(("found", words, False), ("with", words, True)), note=words, table=table,
    )  # fmt: skip
    section = Section(title=words, texts=(words,), figures=(figure,), tables=(table,), facts=((words, words),))
    return Page(
        kind=words, title=words, tone="bad", verdict=words, sentence=words, facts=((words, words),),
        sections=(section,), footer=words, record=record,
    )  # fmt: skip


def numbers(text):
    """The JSON that a page carries."""
    return json.loads(re.search(r'<script[^>]* id="audit"[^>]*>(.*?)</script>', text, re.DOTALL).group(1))


@pytest.mark.slow  # renders whole pages
@given(JSON)
def test_the_numbers_come_back_as_they_went_in(record):
    assert numbers(render(page(record))) == record


def tags(text):
    """The elements of a page, each with the names of its attributes, as a browser would find them."""
    found = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.append((tag, [name for name, _ in attrs]))

    Reader().feed(text)
    return found


def test_infinities_become_texts():
    assert json.loads(embedded({"a": math.inf, "b": [-math.inf]})) == {"a": "inf", "b": ["-inf"]}


def test_nothing_in_a_text_becomes_an_element():
    calm, hostile = render(page(words="x" * len(HOSTILE))), render(page({"purpose": HOSTILE}, HOSTILE))
    assert tags(hostile) == tags(calm)
    assert numbers(hostile) == {"purpose": HOSTILE}
    assert standard_html.escape(HOSTILE, quote=False) in hostile


def test_the_page_allows_its_own_style_and_nothing_else():
    text = render(page())
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL).group(1)
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{allowed}'"]
    assert " style=" not in text
    assert not re.search(r"url\(|@import|https?://|<link|<img|<iframe", text)
    assert text.count("<script") == 1


def test_both_colour_schemes_name_the_same_colours():
    style = re.search(r"<style>(.*?)</style>", render(page()), re.DOTALL).group(1)
    schemes = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    names = [set(re.findall(r"(--[\w-]+):", scheme)) for scheme in schemes]
    assert len(names) == 2
    assert names[0] == names[1] >= set(re.findall(r"var\((--[\w-]+)\)", style))


def test_a_page_is_written_whole(tmp_path):
    write(page("first"), tmp_path / "page.html")
    write(page("second"), tmp_path / "page.html")
    assert numbers((tmp_path / "page.html").read_text(encoding="utf-8")) == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(OSError, match="no/page"):
        write(page(), tmp_path / "no" / "page.html")


def test_a_long_fact_has_a_line_of_its_own():
    text = render(page(words="x" * 60))
    assert '<div class="long">' in text
    assert '<div class="long">' not in render(page(words="short"))


def test_texts_beyond_ascii_and_lone_surrogates_can_be_written(tmp_path):
    write(page(words="\u00e9\u4e2d\ud800"), tmp_path / "page.html")
    assert "\u00e9\u4e2d\N{REPLACEMENT CHARACTER}" in (tmp_path / "page.html").read_text(encoding="utf-8")


@given(st.floats(1e-300, 1e300))
def test_what_is_shown_is_rounded_against_the_claim(value):
    assert float(least(value)) <= value <= float(plain(value))
    assert float(least(value)) >= value * (1 - 1.1e-3)


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (1.0, "1"), (1.99999, "1.999"), (math.inf, "inf")])
def test_lower_bounds_have_four_digits(value, text):
    assert least(value) == text
