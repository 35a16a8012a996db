"""Elements: what a user wrote stays text, whatever it is."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.pages.svg import document, element, printable


class Reader(HTMLParser):
    """The tags and the text of a page as a browser would find them."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append(attrs)

    def handle_data(self, data):
        self.text += data


@pytest.mark.slow  # renders whole pages
@given(st.text(), st.text())
def test_no_text_becomes_markup(words, value):
    page = Reader(document(element("main", {"title": value}, element("p", {}, words, element("b", {}, value), words))))
    assert page.tags == ["main", "p", "b"]
    assert page.attributes[0] == [("title", printable(value))]
    assert page.text.strip("\n") == f"{printable(words)}{printable(value)}{printable(words)}".strip("\n")


@pytest.mark.parametrize("hostile", ["a\x00b", "\x1b[2J", "\ud800", "\u202eabc", "\u2066", "\x7f"])
def test_what_could_hide_something_is_replaced(hostile):
    shown = printable(hostile)
    assert "\N{REPLACEMENT CHARACTER}" in shown
    assert len(shown) == len(hostile)
    document(element("p", {"title": hostile}, hostile)).encode("utf-8")


def test_children_keep_their_order_and_none_is_left_out():
    made = element("p", {}, "a", None, element("i", {}, "b"), "c", "d", element("i", {}), "e")
    assert Reader(document(made)).text.strip() == "abcde"


@pytest.mark.parametrize(("number", "text"), [(1.0, "1"), (0.126, "0.13"), (-2.5, "-2.5"), (10.0, "10"), (3, "3")])
def test_numbers_are_written_short(number, text):
    assert element("rect", {"x": number}).get("x") == text
